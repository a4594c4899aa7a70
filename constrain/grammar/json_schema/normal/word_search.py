"""A short look for a string of a language: best first, instead of all short strings one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count

from constrain.grammar.derivatives import Automaton, byte_classes
from constrain.grammar.regular import ByteSet, Concat, Intersect, Literal, Regular, Repeat, Union

# Beyond that many bytes it makes no difference how long a string must be.
_LONG = 1 << 20


def finds_word(language: Regular, steps: int) -> bool:
    """Whether a search of so many steps comes upon a string; False says nothing.

    What has the least to come yet is followed first.  A language that is the intersection of many patterns has a
    string that is not the shortest, and there may be very many shorter beginnings.
    """
    automaton = Automaton(language)
    classes = byte_classes(language)
    least = _Least()
    numbers = count()
    seen = {0}
    # What is left at least; in the order in which it was met; the state, and the ways on that were not tried.
    open_states: list[tuple[int, int, int, Iterator[bytes]]] = [
        (least.length(language), next(numbers), 0, iter(classes))
    ]
    while open_states:
        left, number, state, ways = heappop(open_states)
        if automaton.is_end(state):
            return True
        for members in ways:
            steps -= 1
            if steps < 0:
                return False
            then = automaton.step(state, members[0])
            if then in seen or automaton.is_dead(then):
                continue
            seen.add(then)
            after = least.length(automaton.rest(then))
            heappush(open_states, (after, next(numbers), then, iter(classes)))
            if after < left or automaton.is_end(then):
                # That is as well as one byte can do; the other ways are for later.
                heappush(open_states, (left, number, state, ways))
                break
    return False


class _Least:
    """How long the strings of languages are at least, in bytes; a lower bound."""

    def __init__(self) -> None:
        self._known: dict[Regular, int] = {}

    def length(self, language: Regular) -> int:
        """At least so many bytes has every string of a language."""
        known = self._known.get(language)
        if known is None:
            known = self._known[language] = min(self._length(language), _LONG)
        return known

    def _length(self, language: Regular) -> int:
        if isinstance(language, Literal):
            return len(language.data)
        if isinstance(language, ByteSet):
            return 1
        if isinstance(language, Concat):
            return sum(map(self.length, language.parts))
        if isinstance(language, Union):
            return min(map(self.length, language.parts))
        if isinstance(language, Intersect):
            return max(map(self.length, language.parts))
        if isinstance(language, Repeat):
            return language.low * self.length(language.item) if language.low else 0
        return 0
