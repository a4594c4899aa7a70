"""A short look for strings of a language: best first, instead of all short ones one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from heapq import heappop, heappush
from itertools import count

from constrain.grammar.languages.derivatives import Automaton, byte_classes
from constrain.grammar.languages.regular import ByteSet, Complement, Concat, Intersect, Literal, Regular, Repeat, Union
from constrain.grammar.languages.utf8 import ANY_TEXT

# Beyond that it makes no difference how far it is.
_LONG = 1 << 20


def find_words(language: Regular, most: int, steps: int) -> list[bytes] | None:
    """So many different strings, if a search of so many steps comes upon them; None says nothing.

    What has the least to come yet is followed first.  A language that is the intersection of many patterns has a
    string that is not the shortest, and there may be very many shorter beginnings.
    """
    automaton = Automaton(language)
    classes = byte_classes(language)
    to_come = _Left()
    numbers = count()
    found = [b""] if automaton.is_end(0) else []
    seen = {0}
    # What is left; in the order in which it was met; a state, a word that leads there, and the ways on that
    # were not tried.
    open_states: list[tuple[int, int, int, bytes, Iterator[bytes]]] = [
        (to_come.length(language), next(numbers), 0, b"", iter(classes))
    ]
    while open_states and len(found) < most:
        left, number, state, word, ways = heappop(open_states)
        for members in ways:
            steps -= 1
            if steps < 0:
                return None
            then = automaton.step(state, members[0])
            is_end = automaton.is_end(then)
            if is_end:
                # By every way to an end but from the same state: the words are different.
                found += [word + members[place : place + 1] for place in range(min(len(members), most - len(found)))]
                if len(found) >= most:
                    return found
            if then in seen or automaton.is_dead(then):
                continue
            seen.add(then)
            after = to_come.length(automaton.rest(then))
            if after >= _LONG:
                continue
            heappush(open_states, (after, next(numbers), then, word + members[:1], iter(classes)))
            if after < left or is_end:
                # That is as well as one byte can do; the other ways are for later.
                heappush(open_states, (left, number, state, word, ways))
                break
    return found if len(found) >= most else None


class _Left:
    """How far it is to the end of a language: about how many bytes, of each part of an intersection for itself.

    So whatever brings one of the parts nearer to its end is a step ahead.
    """

    def __init__(self) -> None:
        self.length = cache(lambda language: min(self._length(language), _LONG))

    def _length(self, language: Regular) -> int:
        """The bytes of a shortest string, where nothing is intersected."""
        if isinstance(language, Literal):
            return len(language.data)
        if isinstance(language, ByteSet):
            return 1
        if isinstance(language, Concat):
            return sum(map(self.length, language.parts))
        if isinstance(language, Union):
            return min(map(self.length, language.parts))
        if isinstance(language, Intersect):
            return sum(map(self.length, language.parts))
        if isinstance(language, Repeat):
            return language.low * self.length(language.item) if language.low else 0
        if isinstance(language, Complement) and _is_any_text(language.item):
            # A pattern that must not be found has been found.
            return _LONG
        return 0


def _is_any_text(language: Regular) -> bool:
    return any(map(_is_any_text, language.parts)) if isinstance(language, Union) else language == ANY_TEXT
