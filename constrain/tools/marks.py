"""Strings of a style, as models write them: white space in them may be other than the style says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from string import ascii_letters, digits

from constrain.grammar.tools.style import NAME as AGAIN
from constrain.grammar.tools.style import pieces

NAME = "[A-Za-z0-9_.:/-]+?"
SPACE_SIGNS = " \t\r\n"
_SPACE = f"[{SPACE_SIGNS}]*"

# Where white space may stand: where the style has some, around the signs of JSON, between two marks, before the end of
# a block of code, and around what is a token in most models.
_PLACES_OF_SPACE = re.compile(
    r"[ \t\r\n]+|(?<=[{},])|(?=[{},])|(?<=\")(?=:)|(?<=[\]>])(?=[\[<])|(?<=\])(?=```)|(?<=[|｜]>)|(?=<[|｜])"
)


_NAME_SIGNS = frozenset(f"{ascii_letters}{digits}_.:/-")


@dataclass(frozen=True)
class _Run:
    """A part that is not one text: its pattern, of which characters it is, how many at least, and whether of more."""

    pattern: str
    signs: frozenset[str]
    least: int
    is_endless: bool = True

    def __str__(self) -> str:
        return self.pattern


_RUNS = {
    _SPACE: _Run(_SPACE, frozenset(SPACE_SIGNS), 0),
    NAME: _Run(f"(?P<name>{NAME})", _NAME_SIGNS, 1),
    "[0-9]+": _Run("[0-9]+", frozenset(digits), 1),
    "[a-zA-Z0-9]{9}": _Run("[a-zA-Z0-9]{9}", frozenset(ascii_letters + digits), 9, is_endless=False),
    "[a-zA-Z0-9_-]+": _Run("[a-zA-Z0-9_-]+", frozenset(f"{ascii_letters}{digits}_-"), 1),
}

_IDENTIFIERS = (_RUNS["[0-9]+"], _RUNS["[a-zA-Z0-9]{9}"], _RUNS["[a-zA-Z0-9_-]+"])
_SAME_NAME = _Run("(?P=name)", _NAME_SIGNS, 1)


class Mark:
    """A string of a style where it stands in a turn.

    Parameters
    ----------
    before : str
        As in the style, with ``{number}``, ``{id}`` and ``{word}``.
    behind : str, optional
        What follows behind a name, with ``{name}`` for the same name; without it there is no name.
    exact : int
        So many characters at the beginning of ``before`` stand as they are.
    is_inside : bool
        Whether it stands in a section, where any white space may precede it.
    is_last : bool
        Whether text may follow it: white space at its end is as in the style then; within a section there is none, as
        what follows begins with it.

    Attributes
    ----------
    pattern : re.Pattern
        With the group ``name``, and ``id`` for the first of ``{number}`` and ``{id}``.
    """

    def __init__(
        self,
        before: str,
        behind: str | None = None,
        *,
        exact: int = 0,
        is_inside: bool = False,
        is_last: bool = False,
    ) -> None:
        if behind is not None and not behind.strip():
            # Arguments may begin with white space.
            behind = ""
        parts: list[str | _Run] = [_RUNS[_SPACE]] if is_inside else []
        parts += [before[:exact], *_parts(before[exact:])]
        if behind is not None:
            parts.append(_RUNS[NAME])
            for number, piece in enumerate(behind.split(AGAIN)):
                parts += [*([_SAME_NAME] if number else []), *_parts(piece)]
        if is_last:
            parts = [*parts[:-1], before[len(before.rstrip()) :]] if parts[-1] is _RUNS[_SPACE] else parts
        parts = [part for part in parts if part]
        parts = [part for place, part in enumerate(parts) if not place or part is not parts[place - 1]]
        patterns = [str(part) if isinstance(part, _Run) else re.escape(part) for part in parts]
        for place, part in enumerate(parts):
            if part in _IDENTIFIERS:
                patterns[place] = f"(?P<id>{part})"
                break
        if behind == "":
            # Where nothing stands behind a name, it goes on as far as it can.
            patterns.append(r"(?=[^A-Za-z0-9_.:/-])")
        self.pattern = re.compile("".join(patterns))
        self._make_places(parts, is_name_last=behind == "")

    def _make_places(self, parts: list[str | _Run], *, is_name_last: bool) -> None:
        """Number the places between characters: those before which each stands, and those that it does not lead on."""
        self._before: dict[str, int] = {}
        self._loops, place = 0, 1
        for part in parts:
            each: list[Iterable[str]] = [part.signs] * part.least if isinstance(part, _Run) else [*part]
            if isinstance(part, _Run) and part.is_endless:
                self._loops |= place << len(each)
                each.append(part.signs)
            for signs in each:
                for sign in signs:
                    self._before[sign] = self._before.get(sign, 0) | place
                place <<= 1
        # What stands before all other characters.
        self._others = 0
        if is_name_last:
            self._before.update({sign: bits | place for sign, bits in self._before.items() if sign not in _NAME_SIGNS})
            self._others, place = place, place << 1
        self._end = place
        self.begin = self._with_those_behind(1)

    def _with_those_behind(self, places: int) -> int:
        while (more := places | (places & self._loops) << 1) != places:
            places = more
        return places

    def read(self, places: int, text: str, at: int) -> int:
        """The places that a text leads to from some of the mark, as bits; none if it is not the mark."""
        for index in range(at, len(text)):
            if not places or places & self._end:
                break
            taken = places & self._before.get(text[index], self._others)
            places = self._with_those_behind((taken & ~self._loops) << 1 | taken & self._loops)
        return places

    def is_end(self, places: int) -> bool:
        """Whether all of the mark was read."""
        return bool(places & self._end)


class MarkSearch:
    """Looks for the first of some marks that stands at a place of a text that grows; each character is read once.

    Parameters
    ----------
    marks : sequence of Mark
    """

    def __init__(self, marks: Sequence[Mark]) -> None:
        self.marks = marks
        self._index, self._places, self._read = 0, marks[0].begin, 0

    def look(self, text: str, at: int, *, is_whole: bool) -> tuple[re.Match[str] | None, bool]:
        """The mark; or whether there may be one when there is more of the text."""
        while True:
            mark = self.marks[self._index]
            self._places = mark.read(self._places, text, at + self._read)
            self._read = len(text) - at
            if mark.is_end(self._places):
                # The name that comes twice may be two names.
                found = mark.pattern.match(text, at)
                if found is not None:
                    return found, False
            elif self._places and not is_whole:
                return None, True
            if self._index + 1 == len(self.marks):
                return None, False
            self._index += 1
            self._places, self._read = self.marks[self._index].begin, 0


def _parts(text: str) -> list[str | _Run]:
    """The parts of a string of a style; what has no white space in it is one."""
    found: list[str | _Run] = []
    for is_pattern, piece in pieces(text):
        if is_pattern:
            found.append(_RUNS[piece])
            continue
        if piece[0] in "<[":
            found.append(_RUNS[_SPACE])
        for number, part in enumerate(_PLACES_OF_SPACE.split(piece)):
            if number and found[-1:] != [_RUNS[_SPACE]]:
                found.append(_RUNS[_SPACE])
            if part:
                found.append(part)
    return found
