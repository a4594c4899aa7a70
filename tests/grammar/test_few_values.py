"""The first values of a schema: different, right, and as many as asked for or all there are."""

from __future__ import annotations

from decimal import Decimal
from itertools import product
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import constrain
from constrain.errors import ConstrainError, LimitError
from constrain.grammar.json_schema.lexical.multiples import MAX_COMMON_DIGITS, least_common_multiple
from constrain.grammar.json_schema.lexical.numbers import NumberForm
from constrain.grammar.json_schema.lexical.texts import Text
from constrain.grammar.json_schema.normal import satisfiable
from constrain.grammar.json_schema.normal.few_values import FewValues, _of_some_length, few_words
from constrain.grammar.json_schema.normal.instances import Instance, decimal
from constrain.grammar.json_schema.normal.intersect import number_fits
from constrain.grammar.json_schema.normal.nodes import Bound, Divisor, Normal, NumberNode

FEW = FewValues(lambda _: Normal(()), lambda _: [])

STEPS = st.sampled_from(
    [Decimal(text) for text in ("0.1", "0.25", "0.5", "0.75", "1", "1.5", "2", "3", "7", "10", "12")]
)
BOUNDS = st.none() | st.builds(
    lambda value, is_open: Bound(Decimal(value) / 4, is_open, "#"), st.integers(-40, 40), st.booleans()
)


def divisors(most: int) -> st.SearchStrategy[tuple[Divisor, ...]]:
    return st.lists(st.builds(Divisor, STEPS, st.just("#")), max_size=most).map(tuple)


@given(BOUNDS, BOUNDS, divisors(3), divisors(2), st.sampled_from(NumberForm), st.integers(1, 12))
def test_numbers(
    low: Bound | None,
    high: Bound | None,
    are: tuple[Divisor, ...],
    are_not: tuple[Divisor, ...],
    form: NumberForm,
    most: int,
) -> None:
    """Judge: every twentieth from -200 to 200, which holds all multiples of the steps within the bounds."""
    assume(low is None or high is None or low.value < high.value)
    node = NumberNode("#", form, low, high, excluded=(Decimal("1.5"), Decimal(3)), divisors=are, not_divisors=are_not)
    found = [decimal(instance.content) for instance in FEW.of_node(node, most)]
    assert len(set(found)) == len(found) <= most
    assert all(value is not None and number_fits(value, node) for value in found)
    fitting = [value for index in range(-4000, 4001) if number_fits(value := Decimal(index) / 20, node)]
    is_endless = fitting and (low is None or high is None or (not are and form is NumberForm.ANY))
    assert len(found) == (most if is_endless else min(most, len(fitting)))


@given(st.lists(STEPS, min_size=1, max_size=4))
def test_least_common_multiple(steps: list[Decimal]) -> None:
    found = least_common_multiple(steps, "#")
    multiples = (Decimal(index) / 20 for index in range(1, 20_000))
    assert found == next(each for each in multiples if not any(each % step for step in steps))


def test_a_common_multiple_of_too_many_digits() -> None:
    steps = [Decimal(10**90 + index) for index in range(MAX_COMMON_DIGITS // 90 * 2)]
    with pytest.raises(LimitError, match=r"at #/items: .* of all 110 numbers has more than 5,000 digits"):
        least_common_multiple(steps, "#/items")


@given(
    st.lists(st.lists(st.none() | st.integers(0, 3), min_size=1, max_size=3, unique=True), max_size=5),
    st.integers(0, 4),
    st.none() | st.integers(0, 4),
)
def test_rows_of_some_length(made: list[list[int | None]], low: int, high: int | None) -> None:
    """Judge: all of the product, of which those are left out that are too short or too long."""
    choices: list[list[tuple[str, Instance] | None]] = [
        [None if each is None else (f"{place}", Instance("number", each)) for each in choice]
        for place, choice in enumerate(made)
    ]
    expected = [[each for each in row if each is not None] for row in product(*choices)]
    expected = [row for row in expected if low <= len(row) and (high is None or len(row) <= high)]
    assert list(_of_some_length(choices, low, high)) == expected


def test_few_of_many_members_are_found_at_once() -> None:
    choices: list[list[tuple[str, Instance] | None]] = [
        [None, (f"{place}", Instance("null", None))] for place in range(60)
    ]
    assert len(list(_of_some_length(choices, 0, 2))) == 1 + 60 + 60 * 59 // 2


def test_a_string_that_may_be_none_is_looked_at_once_and_shortly(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def count(text: Text, most: int, steps: int) -> list[str]:
        asked.append(steps)
        return few_words(text, most, steps)

    monkeypatch.setattr(satisfiable, "few_words", count)
    none = {"type": "string", "format": "date-time", "pattern": "a", "minLength": 12}
    schema = {"type": "object", "dependentRequired": {"a": ["b"], "b": ["c"]}, "unevaluatedProperties": none}
    constrain.Grammar.from_json_schema(schema)
    assert len(asked) == 1
    assert asked[0] < 10_000


@pytest.mark.parametrize(
    ("items", "inner"),
    [
        ({"minItems": 4, "maxItems": 4}, {"prefixItems": [{"const": None}, {"const": ""}], "minItems": 2}),
        ({}, {"minItems": 6}),
        ({"minItems": 6}, {"uniqueItems": False, "minItems": 6}),
        (
            {
                "prefixItems": [{"type": "array", "prefixItems": [{"enum": [1, "a"]}], "uniqueItems": True}],
                "minItems": 6,
            },
            {"uniqueItems": False, "minItems": 2, "maxItems": 4},
        ),
    ],
)
def test_values_within_values_of_their_own_kind_are_looked_for_once(items: Any, inner: Any) -> None:
    """Took all the steps that a reading may take, up to 75 seconds: each level asked for the next ones again."""
    node = {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/z"}, {"type": "boolean"}]}, "uniqueItems": True}
    inner = {"type": "array", "items": {"$ref": "#"}, "uniqueItems": True, **inner}
    with pytest.raises(ConstrainError, match=r"not clear after 40 levels|have uniqueItems beside prefixItems"):
        constrain.Grammar.from_json_schema({**node, **items, "$defs": {"z": inner}})
