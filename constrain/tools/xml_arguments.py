"""Arguments in the XML of a style, read back as JSON values."""

from __future__ import annotations

from typing import Any

from constrain.grammar.structural_tags.styles import ArgumentStyle
from constrain.tools.argument_schema import ArgumentSchema, Written
from constrain.tools.bracket_scanner import BracketScanner
from constrain.tools.json_values import read_json

_SPACE = " \t\r\n"

_PYTHON = {"True": ("true", True), "False": ("false", False), "None": ("null", None)}
"""How some templates write these in past calls, which a model may copy."""


class NotYet(Exception):
    """The text ends before the arguments do."""


def read_arguments(
    text: str, at: int, style: ArgumentStyle, end: str, schema: ArgumentSchema
) -> tuple[dict[str, Any], int]:
    """The arguments that begin at a place, and the place behind them.

    Parameters
    ----------
    text : str
    at : int
    style : ArgumentStyle
        One that writes arrays and objects as JSON.
    end : str
        What stands behind the arguments, without the white space before it.
    schema : ArgumentSchema
        Tells ``"3"`` from 3 where the style does not.

    Raises
    ------
    NotYet
        If more text is needed.
    ValueError
        If no arguments stand there.
    """
    found: dict[str, Written] = {}
    while True:
        at = _skip_space(text, at)
        if text.startswith(end, at):
            return schema.values(found), at
        at = _expect(text, at, style.before_key, end)
        head, mark, tail = style.after_key.partition(style.gap_at) if style.gap_at else (style.after_key, "", "")
        stop = text.find(head, at)
        if stop < 0:
            raise NotYet
        name, at = text[at:stop], stop + len(head)
        if mark:
            at = _expect(text, _skip_space(text, at), mark + tail)
        at, kinds = _opening(text, at, style)
        begin = at
        if "string" not in kinds:
            value_at = _skip_space(text, at)
            if text[value_at : value_at + 1] in ("{", "["):
                # A string in it may hold the end.
                begin = BracketScanner(value_at).end(text)
                if begin < 0:
                    raise NotYet
        stop = text.find(style.end, begin)
        if stop < 0:
            raise NotYet
        if name in found:
            raise ValueError(f"{name!r} comes twice")
        found[name] = _written(text[at:stop], kinds, style)
        at = stop + len(style.end)


def _skip_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _expect(text: str, at: int, *marks: str) -> int:
    """The place behind the first mark, which must stand at a place, unless the beginning of any stands at the end."""
    if text.startswith(marks[0], at):
        return at + len(marks[0])
    if any(mark.startswith(text[at:]) for mark in marks):
        raise NotYet
    raise ValueError(f"{marks[0]!r} does not stand at {at}")


def _opening(text: str, at: int, style: ArgumentStyle) -> tuple[int, set[str]]:
    """The place behind the opening of a value, and the kinds that it may have."""
    openings: dict[str, set[str]] = {}
    for kind, opening in style.openings.items():
        openings.setdefault(opening, set()).add(kind)
    if style.free_integer:
        openings.setdefault(style.free_integer, set()).add("number")
    # "" is the beginning of all, so it comes last.
    for opening in sorted(openings, key=len, reverse=True):
        if text.startswith(opening, at):
            return at + len(opening), openings[opening]
    if any(opening.startswith(text[at:]) for opening in openings):
        raise NotYet
    raise ValueError(f"no kind of value stands at {at}")


def _written(text: str, kinds: set[str], style: ArgumentStyle) -> Written:
    """A value as it is written: a string as it is, or JSON."""
    string = text
    if style.string_lines:
        string = string.removeprefix("\n").removesuffix("\n")
    if kinds == {"string"}:
        return Written(string, None, None)
    if text.strip(_SPACE) in _PYTHON:
        return Written(string, *_PYTHON[text.strip(_SPACE)], is_foreign=True)
    try:
        value = read_json(text)
    except ValueError:
        return Written(string, None, None)
    # A string would stand there without its quotes.
    is_string = isinstance(value, str) and "string" in kinds
    return Written(string, None if is_string else text, value)
