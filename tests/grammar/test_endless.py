"""Expressions that show that every beginning goes on without end, against the strings that there are."""

from __future__ import annotations

import itertools

import pytest

from constrain.grammar.languages.derivatives import Automaton
from constrain.grammar.languages.endless import is_endless
from constrain.grammar.languages.regular import Regular, complement, intersect, literal
from constrain.grammar.regex import regex_code_points

ENDLESS = ["[a-z]+", "x-.*", "[a-z]+(-[a-z]+)?", "(a|b[0-9]*)+", "[^/]+/[^/]+", "(a+|b*)", "[ab]*(c+)?", "(x[a-z]*)?"]
NOT_ENDLESS = ["[a-z]+_id", "a{1,5}", "[0-9]{4}", "a|b+", "(a+b)", "x", ""]

# Bytes that tell the patterns above apart, and so many of them at most.
_ALPHABET, _LONGEST = b"abx0-/_id", 6


def language(pattern: str) -> Regular:
    return regex_code_points(pattern, anchored=True, dialect="ecma")


def fewest_ways(whole: Regular) -> int:
    """In how many ways at least a beginning of up to three bytes goes on, as far as the strings of the alphabet go."""
    automaton = Automaton(whole)
    words = [
        bytes(word)
        for length in range(_LONGEST + 1)
        for word in itertools.product(_ALPHABET, repeat=length)
        if automaton.matches(bytes(word))
    ]
    ways: dict[bytes, int] = {}
    for word in words:
        for end in range(min(len(word), 3) + 1):
            ways[word[:end]] = ways.get(word[:end], 0) + 1
    return min(ways.values(), default=0)


@pytest.mark.parametrize("pattern", ENDLESS)
def test_what_is_endless(pattern: str) -> None:
    assert is_endless(language(pattern))
    # Each byte more is a string more.
    assert fewest_ways(language(pattern)) >= _LONGEST - 3
    without = intersect(language(pattern), complement(literal(b"ab")))
    assert is_endless(without)
    assert fewest_ways(without) >= _LONGEST - 3


@pytest.mark.parametrize("pattern", NOT_ENDLESS)
def test_what_is_not(pattern: str) -> None:
    assert not is_endless(language(pattern))
