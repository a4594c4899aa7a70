"""Text that knows of each of its characters who wrote it: the chat template, or a message.

A message may spell ``<|im_end|>``.  In the finished text of a conversation nothing tells this from the template's own
``<|im_end|>``, so the characters carry marks while the template runs: through slices, splits, concatenations and every
other method of strings.  A result is always what :class:`str` itself makes; only its marks are worked out here.  Where
they cannot be, all characters of a result get the mark that all strings it was made of have, or :data:`UNKNOWN`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, SupportsIndex

UNKNOWN, TEMPLATE, CONTENT = range(3)
"""Who wrote a character: nobody knows, the template (or the tokenizer), or whoever wrote the messages and tools."""

GENERATED = 4
"""Is added where the character is within ``{% generation %}``."""

_ORIGIN = 3
_CONVERSION = re.compile(r"%(?:\((?P<key>[^)]*)\))?(?P<format>[#0\- +]*(?:\d+)?(?:\.\d+)?[hlL]?[a-zA-Z%])")


class MarkedText(str):
    """A string with a mark for each character."""

    __slots__ = ("_marks",)
    _marks: bytes

    def __new__(cls, text: str = "", marks: bytes | int = UNKNOWN) -> MarkedText:
        """``marks``: one byte for each character, or the mark of all of them."""
        made = str.__new__(cls, text)
        made._marks = bytes((marks,)) * len(text) if isinstance(marks, int) else marks
        assert len(made._marks) == len(text)
        return made

    def __str__(self) -> str:
        return self

    def __iter__(self) -> Iterator[MarkedText]:
        for place in range(len(self)):
            yield self[place]

    def __getitem__(self, key: SupportsIndex | slice) -> MarkedText:
        if isinstance(key, slice):
            return MarkedText(str.__getitem__(self, key), self._marks[key])
        return MarkedText(str.__getitem__(self, key), self._marks[key.__index__()])

    def __add__(self, other: Any) -> MarkedText:
        return MarkedText(str.__add__(self, other), self._marks + marks_of(other))

    def __radd__(self, other: Any) -> MarkedText:
        if not isinstance(other, str):
            return NotImplemented
        return MarkedText(str.__add__(other, self), marks_of(other) + self._marks)

    def __mul__(self, times: SupportsIndex) -> MarkedText:
        return MarkedText(str.__mul__(self, times), self._marks * max(0, times.__index__()))

    __rmul__ = __mul__

    def __mod__(self, values: Any) -> MarkedText:
        text = str.__mod__(self, values)
        found = list(_CONVERSION.finditer(self))
        given = values if isinstance(values, tuple) else (values,)
        pieces: list[MarkedText] = []
        done = used = 0
        for match in found:
            pieces.append(self[done : match.start()])
            done = match.end()
            key, form = match["key"], match["format"]
            if form == "%":
                pieces.append(self[match.start() : match.start() + 1])
                continue
            if key is None and used >= len(given):
                return MarkedText(text, common_mark((self, values)))
            value = given[used] if key is None else values[key]
            used += key is None
            pieces.append(_shown(str.__mod__("%" + form, (value,)), value))
        return _if_same(text, [*pieces, self[done:]], (self, values))

    def capitalize(self) -> MarkedText:
        return self._changed(str.capitalize(self))

    def casefold(self) -> MarkedText:
        return self._changed(str.casefold(self), str.casefold)

    def lower(self) -> MarkedText:
        return self._changed(str.lower(self), str.lower)

    def swapcase(self) -> MarkedText:
        return self._changed(str.swapcase(self), str.swapcase)

    def title(self) -> MarkedText:
        return self._changed(str.title(self))

    def upper(self) -> MarkedText:
        return self._changed(str.upper(self), str.upper)

    def translate(self, table: Any) -> MarkedText:
        return MarkedText(str.translate(self, table), common_mark((self, table)))

    def expandtabs(self, tabsize: SupportsIndex = 8) -> MarkedText:
        return self._changed(str.expandtabs(self, tabsize))

    def ljust(self, width: SupportsIndex, fillchar: str = " ") -> MarkedText:
        text = str.ljust(self, width, fillchar)
        return self + MarkedText(text[len(self) :], mark_of_fill(fillchar))

    def rjust(self, width: SupportsIndex, fillchar: str = " ") -> MarkedText:
        text = str.rjust(self, width, fillchar)
        return MarkedText(text[: len(text) - len(self)], mark_of_fill(fillchar)) + self

    def center(self, width: SupportsIndex, fillchar: str = " ") -> MarkedText:
        text = str.center(self, width, fillchar)
        filled = len(text) - len(self)
        left = filled // 2 + (filled & width.__index__() & 1)
        fill = mark_of_fill(fillchar)
        pieces = [MarkedText(text[:left], fill), self, MarkedText(text[left + len(self) :], fill)]
        return _if_same(text, pieces, (self, fillchar))

    def zfill(self, width: SupportsIndex) -> MarkedText:
        return self._changed(str.zfill(self, width))

    def strip(self, chars: str | None = None) -> MarkedText:
        return self.lstrip(chars).rstrip(chars)

    def lstrip(self, chars: str | None = None) -> MarkedText:
        return self[len(self) - len(str.lstrip(self, chars)) :]

    def rstrip(self, chars: str | None = None) -> MarkedText:
        return self[: len(str.rstrip(self, chars))]

    def removeprefix(self, prefix: str, /) -> MarkedText:
        return self[len(self) - len(str.removeprefix(self, prefix)) :]

    def removesuffix(self, suffix: str, /) -> MarkedText:
        return self[: len(str.removesuffix(self, suffix))]

    def partition(self, sep: str, /) -> tuple[MarkedText, MarkedText, MarkedText]:
        return _three(self._in_turn(str.partition(self, sep)))

    def rpartition(self, sep: str, /) -> tuple[MarkedText, MarkedText, MarkedText]:
        return _three(self._in_turn(str.rpartition(self, sep)))

    def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[MarkedText]:  # type: ignore[override]
        return self._in_turn(str.split(self, sep, maxsplit), 0 if sep is None else len(sep))

    def rsplit(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[MarkedText]:  # type: ignore[override]
        return self._in_turn(str.rsplit(self, sep, maxsplit), 0 if sep is None else len(sep))

    def splitlines(self, keepends: bool = False) -> list[MarkedText]:  # type: ignore[override]
        whole = self._in_turn(str.splitlines(self, True))
        return whole if keepends else [line[: len(str.splitlines(line)[0])] for line in whole]

    def join(self, parts: Iterable[str], /) -> MarkedText:
        pieces = list(parts)
        text = str.join(self, pieces)
        return MarkedText(text, self._marks.join([marks_of(piece) for piece in pieces]))

    def replace(self, old: str, new: str, count: SupportsIndex = -1, /) -> MarkedText:
        text = str.replace(self, old, new, count)
        times = count.__index__()
        pieces: list[MarkedText] = []
        inserted = MarkedText(new, marks_of(new))
        done = place = 0
        while times != 0 and (place := self.find(old, place)) >= 0:
            pieces += [self[done:place], inserted]
            times -= 1
            done = place + len(old)
            if old:
                place = done
            elif (place := place + 1) > len(self):  # the empty string is between all characters and at both ends
                break
        return _if_same(text, [*pieces, self[done:]], (self, old, new))

    def format(self, *args: Any, **kwargs: Any) -> MarkedText:
        return MarkedText(str.format(self, *args, **kwargs), common_mark((self, args, kwargs)))

    def format_map(self, mapping: Any, /) -> MarkedText:
        return MarkedText(str.format_map(self, mapping), common_mark((self, mapping)))

    def _changed(self, text: str, each: Any = None) -> MarkedText:
        """The marks of a text that was changed character by character; ``each``: the change of one of them."""
        if len(text) == len(self):
            return MarkedText(text, self._marks)
        marks = common_mark((self,))
        if marks == UNKNOWN and each is not None:
            pieces = [
                MarkedText(each(character), mark)
                for character, mark in zip(str.__iter__(self), self._marks, strict=True)
            ]
            return _if_same(text, pieces, (self,))
        return MarkedText(text, marks)

    def _in_turn(self, pieces: Iterable[str], between: int = 0) -> list[MarkedText]:
        """Pieces of this text, one after the other, with so many characters between them, or white space."""
        found: list[MarkedText] = []
        place = 0
        for piece in pieces:
            if not self.startswith(piece, place):
                place = self.find(piece, place)
            found.append(self[place : place + len(piece)])
            place += len(piece) + between
        return found


def _three(pieces: list[MarkedText]) -> tuple[MarkedText, MarkedText, MarkedText]:
    before, middle, after = pieces
    return before, middle, after


def plain(text: str) -> str:
    """The text without its marks."""
    return str.__getitem__(text, slice(None))


def marks_of(text: str) -> bytes:
    """A mark for each character."""
    return text._marks if isinstance(text, MarkedText) else bytes(len(text))


def mark_of_fill(fill: str) -> int:
    """The mark of what fills a field: that of the template, where it did not take a message for it."""
    return marks_of(fill)[0] if isinstance(fill, MarkedText) and fill else TEMPLATE


def origins_of(value: Any) -> set[int]:
    """Who wrote the strings in a value, which may be a container.  Numbers and the like were written by nobody."""
    origins: set[int] = set()
    seen: set[int] = set()
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, MarkedText):
            origins.update(mark & _ORIGIN for mark in set(item._marks))
        elif isinstance(item, str | bytes):
            if item:
                origins.add(UNKNOWN)
        elif isinstance(item, Mapping | list | tuple | set | frozenset):
            if id(item) not in seen:
                seen.add(id(item))
                waiting += [*item.keys(), *item.values()] if isinstance(item, Mapping) else item
        elif isinstance(item, Iterable):  # a generator, a view
            origins.add(UNKNOWN)
    return origins


def common_mark(values: Any) -> int:
    """The mark of all strings in some values; :data:`UNKNOWN` if they differ, the template's if there are none."""
    origins = origins_of(values)
    if not origins:
        return TEMPLATE
    return origins.pop() if len(origins) == 1 else UNKNOWN


def _shown(text: str, value: Any) -> MarkedText:
    """A value as a format shows it, perhaps filled with blanks."""
    if isinstance(value, MarkedText):
        left = text.find(value)
        if left >= 0 and not text[:left].strip() and not text[left + len(value) :].strip():
            fill = MarkedText(text[:left], TEMPLATE), MarkedText(text[left + len(value) :], TEMPLATE)
            return fill[0] + value + fill[1]
    return MarkedText(text, common_mark((value,)))


def _if_same(text: str, pieces: Iterable[MarkedText], made_of: Any) -> MarkedText:
    """The text with the marks of these pieces, if they are that text; else with the mark of all that it was made of."""
    pieces = list(pieces)
    if "".join(pieces) == text:
        return MarkedText(text, b"".join([piece._marks for piece in pieces]))
    return MarkedText(text, common_mark(made_of))


def written_by(value: Any, mark: int) -> Any:
    """A copy of plain JSON whose strings, keys too, have this mark."""
    if isinstance(value, str):
        return MarkedText(value, mark)
    if isinstance(value, dict):
        return {MarkedText(key, mark): written_by(item, mark) for key, item in value.items()}
    if isinstance(value, list):
        return [written_by(item, mark) for item in value]
    return value


def generated(text: str) -> MarkedText:
    """The text within ``{% generation %}``."""
    return MarkedText(text, bytes(mark | GENERATED for mark in marks_of(text)))


def where_template(marks: bytes) -> bytes:
    """1 for each character that the template wrote, else 0."""
    return marks.translate(bytes(int(mark & _ORIGIN == TEMPLATE) for mark in range(256)))


def where_generated(marks: bytes) -> bytes:
    """1 for each character within ``{% generation %}``, else 0."""
    return marks.translate(bytes(int(bool(mark & GENERATED)) for mark in range(256)))
