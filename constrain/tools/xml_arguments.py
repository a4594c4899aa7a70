"""Arguments in the XML of a style, read back as JSON values while they come."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from constrain.grammar.structural_tags.styles import ArgumentStyle
from constrain.tools.argument_schema import Written
from constrain.tools.bracket_scanner import Brackets, BracketScanner
from constrain.tools.json_values import read_json
from constrain.tools.python_calls import read_literal

_SPACE = " \t\r\n"
_SPACES = re.compile(f"[{_SPACE}]*")

_PYTHON = {"True": ("true", True), "False": ("false", False), "None": ("null", None)}
"""How some templates write these in past calls, which a model may copy."""


class NotYet(Exception):
    """The text ends before the arguments do."""


@dataclass
class _Open:
    """An object or array that is being read, or what may be either.

    Attributes
    ----------
    name : str
        Of the member that it is the value of.
    kinds : set of str
    end : str
        What stands behind it.
    begin : int
        Where its content begins.
    members : list of (str, Written)
        What it has so far; the names of items are empty.
    """

    name: str
    kinds: set[str]
    end: str
    begin: int
    members: list[tuple[str, Written]] = field(default_factory=list)


class ArgumentReader:
    """Reads the arguments of a call in a text that still grows; what has been read is not read again.

    Parameters
    ----------
    style : ArgumentStyle
        One without a separator.
    end : str
        What stands behind the arguments, without the white space before it.
    """

    def __init__(self, style: ArgumentStyle, end: str) -> None:
        self._style = style
        openings: dict[str, set[str]] = {}
        for kind, opening in style.openings.items():
            openings.setdefault(opening, set()).add(kind)
        if style.free_integer:
            openings.setdefault(style.free_integer, set()).add("number")
        # "" is the beginning of all, so it comes last.
        self._openings = sorted(openings.items(), key=lambda each: -len(each[0]))
        self._text, self._is_whole = "", False
        self._stack = [_Open("", {"object"}, end, 0)]
        # Where the next part begins; the brackets of its value, and up to where its end does not begin behind them.
        self._at = 0
        self._brackets = Brackets("{[", ('"', "'"), stop=style.end)
        self._scanner: BracketScanner | None = None
        self._looked = 0

    def read(self, text: str, *, is_whole: bool = False) -> tuple[dict[str, Written], int]:
        """The arguments, and the place behind them; ``text`` begins with them, and may grow until it is whole.

        A value ends where its end first stands, but for one that is JSON, or what Python prints, only with an end in
        its strings.

        Raises
        ------
        NotYet
            If more text is needed.
        ValueError
            If these are no arguments.
        """
        self._text, self._is_whole = text, is_whole
        while True:
            self._at = self._skip_space(self._at)
            container = self._stack[-1]
            if not self._stands(container.end, self._at):
                self._read_part(container)
            elif len(self._stack) == 1:
                return _once(container.members), self._at
            else:
                self._stack.pop()
                self._add(container.name, self._closed(container), self._at + len(container.end))

    def _add(self, name: str, value: Written, at: int) -> None:
        """A part of what is being read has come to its end at a place."""
        self._stack[-1].members.append((name, value))
        self._at, self._scanner, self._looked = at, None, 0

    def _read_part(self, container: _Open) -> None:
        """Read the next member or item, or what an object or array in its place begins with."""
        style, text, at = self._style, self._text, self._at
        if self._stands(style.end, at):
            raise ValueError("another value ends here")
        if container.kinds == {"array"}:
            name, tail, at = "", style.after_item, self._expect(style.before_item, at)
        else:
            at = self._expect(style.before_key, at)
            head, mark, rest = style.after_key.partition(style.gap_at) if style.gap_at else (style.after_key, "", "")
            stop = self._find(head, at)
            name, at = text[at:stop], stop + len(head)
            if style.nests and "<" in name:
                raise ValueError(f"{name!r} is no name")
            tail = name + style.after_end if style.after_end else ""
            name = style.read_name(name)
            if mark:
                at = self._expect(mark + rest, self._skip_space(at))
        at, kinds = self._opening(at)
        if self._is_container(at, kinds, style.end + tail):
            self._stack.append(_Open(name, kinds, style.end + tail, at))
            self._at = at
            return
        begin = at
        if "string" not in kinds and not self._looked:
            value_at = self._skip_space(at)
            if value_at == len(text):
                # Whether a bracket comes is not known.
                raise NotYet
            if text[value_at] in "{[":
                begin = self._behind_brackets(value_at)
        if style.quoted and self._stands(style.quotes[0], at):
            # What is between quotes may hold the end.
            closing = text.find(style.quotes[1], at)
            if closing < 0 and not self._is_whole:
                raise NotYet
            begin = max(closing, at)
        stop = text.find(style.end, max(begin, self._looked))
        if stop < 0:
            self._looked = max(begin, len(text) - len(style.end))
            raise NotYet
        behind = self._expect(tail, stop + len(style.end))
        self._add(name, _written(text[at:stop], kinds, style), behind)

    def _behind_brackets(self, at: int) -> int:
        """The place behind a value in brackets, whose strings may hold the end; its beginning, if it is broken."""
        self._scanner = self._scanner or BracketScanner(at, self._brackets)
        end = self._scanner.end(self._text)
        if end < 0 and not self._is_whole:
            raise NotYet
        if end >= 0 and (self._text.find(self._style.end, at, end) < 0 or _is_value(self._text[at:end])):
            return end
        return at

    def _is_container(self, at: int, kinds: set[str], end: str) -> bool:
        """Whether the value that begins at a place is an object or array in the style, as far as that can be told."""
        if not self._style.nests or kinds.isdisjoint(("object", "array")):
            return False
        if kinds in ({"object"}, {"array"}):
            return True
        at = self._skip_space(at)
        return self._stands(end, at) or self._stands(self._style.before_key, at)

    def _closed(self, container: _Open) -> Written:
        """What an object or array is that has come to its end."""
        members, style = container.members, self._style
        if container.kinds == {"array"}:
            return Written(None, None, None, items=[value for _, value in members])
        if container.kinds == {"object"}:
            return Written(None, None, None, members=_once(members))
        # An array is written as an object is whose members have all the same name.
        item = style.after_item.removesuffix(style.after_end)
        if all(name == item for name, _ in members):
            text = None if members else self._text[container.begin : self._at]
            only = dict(members) if len(members) < 2 else None
            return Written(text, None, None, members=only, items=[value for _, value in members])
        return Written(None, None, None, members=_once(members))

    # -- marks -------------------------------------------------------------------------------------

    def _skip_space(self, at: int) -> int:
        found = _SPACES.match(self._text, at)
        assert found is not None
        return found.end()

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


def _once(members: list[tuple[str, Written]]) -> dict[str, Written]:
    """Members by their names, which must be different."""
    found = dict(members)
    if len(found) < len(members):
        raise ValueError("a name comes twice")
    return found


def _is_value(text: str) -> bool:
    """Whether a text is JSON, or what Python prints of a list or dictionary."""
    for read in (read_json, read_literal):
        try:
            read(text)
            return True
        except (ValueError, RecursionError):
            continue
    return False


def _written(text: str, kinds: set[str], style: ArgumentStyle) -> Written:
    """A value as it is written: a string as it is, or JSON."""
    string = text
    if style.string_lines:
        string = string.removeprefix("\n").removesuffix("\n")
    if kinds == {"string"} and style.nests:
        return Written(string, None, None)
    begin, end = style.quotes
    if style.quoted and text.startswith(begin) and text.endswith(end):
        string = text = text[len(begin) : -len(end)]
        kinds = {"string"}
    if text.strip(_SPACE) in _PYTHON:
        return Written(string, *_PYTHON[text.strip(_SPACE)], is_foreign=True)
    try:
        value = read_json(text)
    except ValueError:
        return _written_in_python(string)
    if kinds == {"string"}:
        # Marked as a string, it is one where one is valid.
        return Written(string, text, value, is_foreign=True)
    # A string would stand there without its quotes; and an object, where it nests, in the style.
    is_string = "string" in kinds and isinstance(value, (str, dict, list) if style.nests else str)
    return Written(string, None if is_string else text, value)


def _written_in_python(text: str) -> Written:
    """A string, or what Python prints of a list or dictionary."""
    if text.lstrip(_SPACE)[:1] not in ("{", "[", "("):
        return Written(text, None, None)
    try:
        value = read_literal(text)
        return Written(text, json.dumps(value), value, is_foreign=True)
    except (ValueError, RecursionError):
        return Written(text, None, None)
