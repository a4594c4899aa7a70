"""The choices front-end."""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import NaiveRecognizer

from constrain import Grammar
from constrain.errors import ConstrainError, GrammarError
from constrain.grammar.ir import GrammarIR


def from_choices(choices: Any) -> GrammarIR:
    return Grammar.from_choices(choices).ir


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


Yes = Literal["yes"]


class Answer(Enum):
    YES = "yes"
    NO = "no"
    NAY = "no"  # noqa: PIE796


class Text(str, Enum):
    """Its members are strings, which say their names where they are printed."""

    YES = "yes"


class Number(IntEnum):
    ONE = 1


class Empty(Enum):
    pass


@pytest.mark.parametrize("choices", [Answer, Literal["yes", "no"], Literal[Yes, "no"]])
def test_types_of_choices(choices: Any) -> None:
    assert from_choices(choices) == from_choices(["yes", "no"])
    assert Grammar.from_choices(choices).key == Grammar.from_choices(["yes", "no"]).key


def test_an_enum_of_strings_means_their_values() -> None:
    assert NaiveRecognizer(from_choices(Text)).accepts(b"yes")
    assert NaiveRecognizer(from_choices([Text.YES])).accepts(b"yes")
    assert Grammar.from_choices(Text).key == ("choices", "yes")


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ([], "empty"),
        (["a", 1], "choice 1 is not a string but int"),
        ([None], "choice 0"),
        ("yes", "not one str"),
        (3, "not int"),
        (["\ud800"], "lone surrogate"),
        (Empty, "empty"),
        (Number, "choice 0 is not a string but int; Grammar.from_pydantic writes"),
        (Literal["a", 1], "choice 1 is not a string but int; Grammar.from_pydantic writes"),
        (str, "not type"),
        ([Answer.YES], "choice 0 is not a string but Answer$"),
    ],
)
def test_errors(choices: Any, message: str) -> None:
    with pytest.raises(GrammarError, match=message) as caught:
        from_choices(choices)
    assert isinstance(caught.value, ConstrainError)
