"""The choices front-end."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import NaiveRecognizer

from constrain.errors import ConstrainError, GrammarError
from constrain.grammar.choices import from_choices

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


@given(st.lists(texts, min_size=1, max_size=8), st.lists(texts, max_size=4))
def test_exactly_these(choices: list[str], others: list[str]) -> None:
    recognizer = NaiveRecognizer(from_choices(choices))
    for text in [*choices, *others, *(choice + "a" for choice in choices), *(choice[:-1] for choice in choices)]:
        assert recognizer.accepts(text.encode()) == (text in choices)


def test_repeated_choices_count_once() -> None:
    assert from_choices(["a", "b", "a"]) == from_choices(["b", "a"])


def test_a_generator_will_do() -> None:
    assert NaiveRecognizer(from_choices(str(number) for number in range(3))).accepts(b"2")


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ([], "empty"),
        (["a", 1], "choice 1 is not a string but int"),
        ([None], "choice 0"),
        ("yes", "not one str"),
        (3, "not int"),
        (["\ud800"], "lone surrogate"),
    ],
)
def test_errors(choices: Any, message: str) -> None:
    with pytest.raises(GrammarError, match=message) as caught:
        from_choices(choices)
    assert isinstance(caught.value, ConstrainError)
