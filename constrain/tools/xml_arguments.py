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
        One without a separator.
    end : str
        What stands behind the arguments, without the white space before it.
    schema : ArgumentSchema
        Tells ``"3"`` from 3 where the style does not, and an object from an array.

    Raises
    ------
    NotYet
        If more text is needed.
    ValueError
        If no arguments stand there, or Python cannot read them, as they are nested some hundred levels deep.
    """
    try:
        members, at = _Reader(text, style).members(at, end)
        return schema.values(_once(members)), at
    except RecursionError:
        raise ValueError("the arguments are nested too deeply") from None


def _once(members: list[tuple[str, Written]]) -> dict[str, Written]:
    """Members by their names, which must be different."""
    found = dict(members)
    if len(found) < len(members):
        raise ValueError("a name comes twice")
    return found


class _Reader:
    """Reads a text, which may not be complete: all methods raise NotYet where it ends too early."""

    def __init__(self, text: str, style: ArgumentStyle) -> None:
        self._text = text
        self._style = style
        openings: dict[str, set[str]] = {}
        for kind, opening in style.openings.items():
            openings.setdefault(opening, set()).add(kind)
        if style.free_integer:
            openings.setdefault(style.free_integer, set()).add("number")
        # "" is the beginning of all, so it comes last.
        self._openings = sorted(openings.items(), key=lambda each: -len(each[0]))

    def members(self, at: int, end: str) -> tuple[list[tuple[str, Written]], int]:
        """Names and values up to an end, and the place before that."""
        style = self._style
        found: list[tuple[str, Written]] = []
        at = self._skip_space(at)
        while not self._stands(end, at):
            if self._stands(style.end, at):
                raise ValueError("another value ends here")
            at = self._expect(style.before_key, at)
            head, mark, tail = style.after_key.partition(style.gap_at) if style.gap_at else (style.after_key, "", "")
            stop = self._find(head, at)
            name, at = self._text[at:stop], stop + len(head)
            if style.nests and "<" in name:
                raise ValueError(f"{name!r} is no name")
            if mark:
                at = self._expect(mark + tail, self._skip_space(at))
            value, at = self._value(at, name + style.after_end if style.after_end else "")
            found.append((style.read_name(name), value))
            at = self._skip_space(at)
        return found, at

    def _items(self, at: int, end: str) -> tuple[list[Written], int]:
        """The items of an array up to an end, and the place before that."""
        found = []
        at = self._skip_space(at)
        while not self._stands(end, at):
            value, at = self._value(self._expect(self._style.before_item, at), self._style.after_item)
            found.append(value)
            at = self._skip_space(at)
        return found, at

    def _value(self, at: int, tail: str) -> tuple[Written, int]:
        """The value whose opening begins at a place, and the place behind its end, and what stands behind that."""
        style, text = self._style, self._text
        at, kinds = self._opening(at)
        if style.nests and not kinds.isdisjoint(("object", "array")):
            nested = self._nested(at, kinds, tail)
            if nested is not None:
                return nested
        begin = at
        if "string" not in kinds:
            value_at = self._skip_space(at)
            if text[value_at : value_at + 1] in ("{", "["):
                # A string in it may hold the end.
                begin = BracketScanner(value_at).end(text)
                if begin < 0:
                    raise NotYet
        stop = self._find(style.end, begin)
        return _written(text[at:stop], kinds, style), self._expect(tail, stop + len(style.end))

    def _nested(self, at: int, kinds: set[str], tail: str) -> tuple[Written, int] | None:
        """An object or array that is written in the style; None if it is a string, or the like."""
        style, text = self._style, self._text
        end = style.end + tail
        if kinds == {"array"}:
            items, stop = self._items(at, end)
            return Written(None, None, None, items=items), stop + len(end)
        begin = self._skip_space(at)
        if kinds != {"object"} and not (self._stands(end, begin) or self._stands(style.before_key, begin)):
            return None
        members, stop = self.members(begin, end)
        if kinds == {"object"}:
            return Written(None, None, None, members=_once(members)), stop + len(end)
        # An array is written as an object is whose members have all the same name.
        item = style.after_item.removesuffix(style.after_end)
        is_array = all(name == item for name, _ in members)
        names = {name for name, _ in members}
        written = Written(
            None if members else text[at:stop],
            None,
            None,
            members=dict(members) if len(names) == len(members) else None,
            items=[value for _, value in members] if is_array else None,
        )
        if written.members is None and written.items is None:
            raise ValueError("a name comes twice")
        return written, stop + len(end)

    def _skip_space(self, at: int) -> int:
        while at < len(self._text) and self._text[at] in _SPACE:
            at += 1
        return at

    def _stands(self, mark: str, at: int) -> bool:
        """Whether a mark stands at a place."""
        there = self._text[at : at + len(mark)]
        if there != mark and mark.startswith(there):
            raise NotYet
        return there == mark

    def _expect(self, mark: str, at: int) -> int:
        """The place behind a mark that must stand at a place."""
        if not self._stands(mark, at):
            raise ValueError(f"{mark!r} does not stand at {at}")
        return at + len(mark)

    def _find(self, mark: str, at: int) -> int:
        """Where a mark stands next."""
        found = self._text.find(mark, at)
        if found < 0:
            raise NotYet
        return found

    def _opening(self, at: int) -> tuple[int, set[str]]:
        """The place behind the opening of a value, and the kinds that it may have."""
        for opening, kinds in self._openings:
            if self._text.startswith(opening, at):
                return at + len(opening), kinds
        if any(opening.startswith(self._text[at:]) for opening, _ in self._openings):
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
    # A string would stand there without its quotes; and an object, where it nests, in the style.
    is_string = "string" in kinds and isinstance(value, (str, dict, list) if style.nests else str)
    return Written(string, None if is_string else text, value)
