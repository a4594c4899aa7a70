"""Free text as lexemes: up to the first of some strings, or without any of them.

"No trigger occurs in it" is a regular language, so that a token may hold the end of a text and the beginning of a tag,
and a trigger may be spread over any number of tokens.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from functools import lru_cache

from constrain.grammar.ir import GrammarBuilder, Symbol
from constrain.grammar.languages.prefix_tree import common_length, prefix_tree
from constrain.grammar.languages.regular import Regular, complement, concat, counted, intersect, literal, union
from constrain.grammar.languages.substrings import ANY_BYTES, MORE_BYTES, occurs_in
from constrain.grammar.languages.utf8 import ANY_CHAR, ANY_TEXT
from constrain.limits import spend

LONGEST_GROUPED = 256
"""Strings of more characters are not looked at for what they have in common."""


@lru_cache(maxsize=256)
def text_without(excludes: tuple[str, ...], max_chars: int | None = None) -> Regular:
    """Every text in which none of some strings occurs."""
    text = intersect(ANY_TEXT, _without(excludes)) if excludes else ANY_TEXT
    return text if max_chars is None else counted(text, ANY_CHAR, 0, max_chars)


@lru_cache(maxsize=1024)
def text_through(
    end: tuple[str, ...], stops: tuple[str, ...], excludes: tuple[str, ...], max_chars: int | None = None
) -> Regular:
    """Every text with one of ``end`` behind it, in which no other of ``stops`` comes to its end before.

    Parameters
    ----------
    end, stops : tuple of str
        ``end`` are some of ``stops``.  With ``aba`` for both, ``ab`` is a text, but ``ababa`` is none with its end:
        ``aba`` came before.
    excludes : tuple of str
        What does not occur in the text; the end may hold it.
    """
    if not _overlap(end, reached(stops), _rests(stops)):
        # Then no stop can begin in the text and come to its end within one of ``end``, and it is enough that none
        # occurs in the text.  This form is quicker: it says itself that every beginning of it can be completed.
        return concat(text_without(tuple(sorted({*stops, *excludes})), max_chars), prefix_tree(end))
    by_length: dict[int, list[str]] = {}
    for each in end:
        by_length.setdefault(len(each) if max_chars is not None else 0, []).append(each)
    ways = []
    for length, some in by_length.items():
        through = intersect(concat(text_without(excludes), prefix_tree(some)), _no_end_before(stops))
        ways.append(through if max_chars is None else counted(through, ANY_CHAR, 0, max_chars + length))
    return union(*ways)


# Each is one object for all texts among the same strings, so that the engine reads these with the same states.


@lru_cache(maxsize=256)
def _without(some: tuple[str, ...]) -> Regular:
    """Every byte string in which none of some strings occurs."""
    return complement(occurs_in(some))


@lru_cache(maxsize=256)
def _no_end_before(stops: tuple[str, ...]) -> Regular:
    """Every byte string in which none of some strings comes to its end before that of the whole."""
    return complement(concat(ANY_BYTES, prefix_tree(stops), MORE_BYTES))


def grouped(stops: tuple[str, ...], others: tuple[str, ...]) -> list[tuple[str, list[str]]]:
    """The stops in groups with a beginning in common that tells where each can begin.

    None of ``stops`` and ``others`` may come to its end within another one.  A beginning is no shorter than the longest
    overlap of any end with the beginning of a stop: then nothing that began before a stop ends behind the beginning.
    """
    every = (*stops, *others)
    if max(map(len, every)) > LONGEST_GROUPED:
        return [(stop, [stop]) for stop in stops]
    spend(sum(map(len, every)))
    ends = {each[start:] for each in every for start in range(1, len(each))}
    longest = max((size for stop in stops for size in range(1, len(stop)) if stop[:size] in ends), default=0)
    groups: dict[str, list[str]] = {}
    for stop in stops:
        groups.setdefault(stop[: max(longest, 1)], []).append(stop)
    return [(_common_beginning(group), group) for group in groups.values()]


def _common_beginning(texts: list[str]) -> str:
    """What some texts have in common at their beginnings."""
    first, last = min(texts), max(texts)
    return first[: common_length(first, last, 0)]


@lru_cache(maxsize=4)
def reached(stops: tuple[str, ...]) -> frozenset[str]:
    """Those of some strings in which no other comes to its end before they do: the others could never be read."""
    known = frozenset(stops)
    lengths = {len(stop) for stop in known}
    found = []
    for stop in known:
        shorter = [length for length in lengths if length < len(stop)]
        # Each piece that is looked up is copied.
        spend(len(stop) * (len(shorter) // 16 + sum(shorter) // 1024) + 1)
        if not any(stop[end - length : end] in known for length in shorter for end in range(length, len(stop))):
            found.append(stop)
    return frozenset(found)


def shortest_beginning(text: str, stops: frozenset[str], lengths: Iterable[int]) -> str | None:
    """The first of some stops that comes to its end in a text that begins with one; ``lengths`` are theirs, sorted."""
    spend(1 + len(text) // 64)
    return next((text[:size] for size in lengths if text[:size] in stops), None)


class TextsThrough:
    """Writes the symbols of :func:`text_through` for several ends among the same stops; what they share is made once.

    Where stops begin alike, the text and that beginning are one lexeme for all of them: a text is at one place then,
    and not at one for each stop that it may go on to.
    """

    def __init__(self, builder: GrammarBuilder, stops: tuple[str, ...], excludes: tuple[str, ...] = ()) -> None:
        self._builder, self._stops, self._excludes = builder, stops, excludes
        self._known, self._reached, self._rests = frozenset(stops), reached(stops), _rests(stops)
        self._text = text_without(tuple(sorted({*stops, *excludes})))
        self._sorted_stops = tuple(sorted(set(stops)))
        alike: dict[str, list[str]] = {}
        for stop in stops:
            alike.setdefault(stop[:1], []).append(stop)
        self._shared = {letter: _common_beginning(some) for letter, some in alike.items()}

    def before(self, prefix: str) -> Regular:
        """Every text with the beginning of a stop behind it: no stop has come to its end, and nothing excluded occurs.

        With the rest of a stop that begins with ``prefix`` behind it, that is :func:`text_through` of the stop, if the
        prefix is one of :func:`grouped`.
        """
        spend(len(prefix))
        if prefix not in self._known:
            return intersect(concat(text_without(self._excludes), literal(prefix)), _without(self._sorted_stops))
        if _overlap((prefix,), self._reached, self._rests):
            return text_through((prefix,), self._stops, self._excludes)
        return concat(self._text, literal(prefix))

    def write(self, end: tuple[str, ...], name: str = "") -> Symbol:
        """The symbol of the texts through ``end``, which are some of the stops."""
        builder = self._builder
        spend(sum(map(len, end)))
        if _overlap(end, self._reached, self._rests):
            return builder.lexeme(text_through(end, self._stops, self._excludes), name)
        ways: list[tuple[Symbol, ...]] = []
        for each in end:
            shared = self._shared[each[:1]]
            head = builder.lexeme(_text_before(self._text, shared), repr(shared))
            ways.append((head, builder.lexeme(literal(each[len(shared) :]), name)) if each != shared else (head,))
        return builder.choice(ways)


@lru_cache(maxsize=1024)
def _text_before(text: Regular, shared: str) -> Regular:
    return concat(text, literal(shared))


def _overlap(end: tuple[str, ...], reached: frozenset[str], rests: dict[int, str]) -> bool:
    """Whether some stop can come to its end within one of ``end``: the whole of it, or what is left of it."""
    if not reached.issuperset(end):
        return True
    for each in end:
        value = 0
        for length, letter in enumerate(each[:-1], 1):
            value = (value * _BASE + ord(letter)) % _PRIME
            if value in rests and each[:length] == rests[value][-length:]:
                return True
    return False


_PRIME, _BASE = (1 << 127) - 1, secrets.randbits(120)
"""Strings are found by hashes: the beginnings of a long one, written out, would be as large as its square."""


@lru_cache(maxsize=4)
def _rests(some: tuple[str, ...]) -> dict[int, str]:
    """By the hash of what a string ends with, without the whole of it: one that ends so."""
    found: dict[int, str] = {}
    for each in some:
        spend(len(each) + 1)
        value, power = 0, 1
        for letter in reversed(each[1:]):
            value = (value + ord(letter) * power) % _PRIME
            power = power * _BASE % _PRIME
            found[value] = each
    return found
