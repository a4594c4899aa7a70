"""Strings of a style, as models write them: white space in them may be other than the style says."""

from __future__ import annotations

import re
from dataclasses import dataclass

from constrain.grammar.tools.style import pieces

NAME = "[A-Za-z0-9_.:/-]+?"
_SPACE = "[ \t\r\n]*"

# Where white space may stand: where the style has some, around the signs of JSON, and between two marks.
_PLACES_OF_SPACE = re.compile(r"[ \t\r\n]+|(?<=[{},])|(?=[{},])|(?<=[\]>])(?=[\[<])")


@dataclass(frozen=True)
class _Run:
    """A part that is not one text: its pattern, and that of its beginnings, which takes as much as it can."""

    pattern: str
    beginning: re.Pattern[str]
    least: int

    def __str__(self) -> str:
        return self.pattern


_RUNS = {
    _SPACE: _Run(_SPACE, re.compile(_SPACE), 0),
    NAME: _Run(f"(?P<name>{NAME})", re.compile("[A-Za-z0-9_.:/-]*"), 1),
    "[0-9]+": _Run("[0-9]+", re.compile("[0-9]*"), 1),
    "[a-zA-Z0-9]{9}": _Run("[a-zA-Z0-9]{9}", re.compile("[a-zA-Z0-9]{0,9}"), 9),
}


class Mark:
    """A string of a style where it stands in a turn.

    Parameters
    ----------
    before : str
        As in the style, with ``{number}`` and ``{id}``.
    behind : str, optional
        What follows behind a name; without it there is no name.
    exact : int
        So many characters at the beginning of ``before`` stand as they are.
    is_inside : bool
        Whether it stands in a section, where any white space may precede it.
    is_last : bool
        Whether text may follow it: white space at its end is as in the style then.
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
        parts: list[str | _Run] = [_RUNS[_SPACE]] if is_inside else []
        parts += [before[:exact], *_parts(before[exact:])]
        if behind is not None:
            parts += [_RUNS[NAME], *_parts(behind)]
        if is_last:
            parts = [*parts[:-1], before[len(before.rstrip()) :]] if parts[-1] is _RUNS[_SPACE] else parts
        parts = [part for part in parts if part]
        self._parts = [part for place, part in enumerate(parts) if not place or part is not parts[place - 1]]
        patterns = [str(part) if isinstance(part, _Run) else re.escape(part) for part in self._parts]
        if behind == "":
            # Where nothing stands behind a name, it goes on as far as it can.
            patterns.append(r"(?=[^A-Za-z0-9_.:/-])")
        self._pattern = re.compile("".join(patterns))

    def match(self, text: str, at: int = 0) -> re.Match[str] | None:
        """The mark where it stands at a place of a text, with the group ``name``."""
        return self._pattern.match(text, at)

    def may_go_on(self, text: str, at: int = 0) -> bool:
        """Whether all that is there from a place on is, or may become, the mark."""
        places = {at}
        for part in self._parts:
            following: set[int] = set()
            for place in places:
                if isinstance(part, _Run):
                    found = part.beginning.match(text, place)
                    assert found is not None
                    if found.end() == len(text):
                        return True
                    following.update(range(place + part.least, found.end() + 1))
                elif text.startswith(part, place):
                    following.add(place + len(part))
                elif part.startswith(text[place:]):
                    return True
            places = following
        return len(text) in places


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
