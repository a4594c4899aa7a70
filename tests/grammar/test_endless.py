"""Expressions that show that every beginning goes on without end, against automata."""

from __future__ import annotations

import pytest

from constrain.grammar.endless import is_endless
from constrain.grammar.json_schema.decide import Automaton
from constrain.grammar.regex import regex_code_points
from constrain.grammar.regular import Regular, complement, intersect, literal

ENDLESS = ["[a-z]+", "x-.*", "[a-z]+(-[a-z]+)?", "(a|b[0-9]*)+", "[^/]+/[^/]+", "(a+|b*)", "[ab]*(c+)?", "(x[a-z]*)?"]
NOT_ENDLESS = ["[a-z]+_id", "a{1,5}", "[0-9]{4}", "a|b+", "(a+b)", "x", ""]


def language(pattern: str) -> Regular:
    return regex_code_points(pattern, anchored=True, dialect="ecma")


@pytest.mark.parametrize("pattern", ENDLESS)
def test_what_is_endless(pattern: str) -> None:
    assert is_endless(language(pattern))
    assert Automaton(language(pattern)).dead_ends(1000, 100_000) == []
    without = intersect(language(pattern), complement(literal(b"ab")))
    assert is_endless(without)
    assert Automaton(without).dead_ends(1000, 100_000) == []


@pytest.mark.parametrize("pattern", NOT_ENDLESS)
def test_what_is_not(pattern: str) -> None:
    assert not is_endless(language(pattern))
    assert Automaton(language(pattern)).dead_ends(10**9, 100_000) != []


@pytest.mark.parametrize(
    ("pattern", "ends"),
    [
        ("[a-z]+_id", [(1, 2)]),
        ("[0-9]{2}", [(1, 2), (10, 1), (100, 0)]),
        ("a|bc|bd", [(1, 1), (2, 1), (3, 0)]),
        ("x*", []),
    ],
)
def test_how_far_beginnings_are_that_go_on_in_few_ways(pattern: str, ends: list[tuple[int, int]]) -> None:
    assert Automaton(language(pattern)).dead_ends(1000, 100_000) == ends
    assert Automaton(language(pattern)).dead_ends(1000, 3) == []
