"""Finite sets of strings, compared with Python's sets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from naive_regular import matches
from processor_time import processor_time

from constrain.grammar.languages.prefix_tree import prefix_tree
from constrain.grammar.languages.regular import EMPTY


@given(st.lists(st.text("abé", max_size=5), max_size=12), st.lists(st.text("abé", max_size=5), max_size=12))
def test_exactly_these(values: list[str], others: list[str]) -> None:
    language = prefix_tree(values)
    for text in values + others:
        assert matches(language, text.encode()) == (text in values)


def test_nothing_at_all() -> None:
    assert prefix_tree([]) == EMPTY


def test_each_a_prefix_of_the_next() -> None:
    # A tree as deep as that would be beyond the stack of whoever reads it.
    language = prefix_tree("a" * size for size in range(3000))
    assert hash(language) == hash(prefix_tree("a" * size for size in range(3000)))


def test_many_values_are_fast() -> None:
    values = [f"prefix-{number:06d}-{number % 7}" for number in range(100_000)]
    with processor_time() as spent:
        prefix_tree(values)
    assert spent.seconds < 10
