"""Number languages compared with exact decimal arithmetic on every short text."""

from __future__ import annotations

import itertools
import json
import re
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from naive_regular import matches

import constrain
from constrain.grammar.json_schema.lexical.numbers import ANY_NUMBER, NumberForm, is_within_limits, number_language
from constrain.grammar.languages.regular import Regular

JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
DECIMALS = [
    text
    for size in range(1, 6)
    for text in map("".join, itertools.product("-0159.", repeat=size))
    if JSON_NUMBER.fullmatch(text)
]

short_decimals = st.builds(
    lambda digits, exponent: Decimal((digits < 0, tuple(map(int, str(abs(digits)))), exponent)),
    st.integers(-1200, 1200),
    st.integers(-3, 1),
)


def accepts(language: Regular, text: str) -> bool:
    return matches(language, text.encode())


def is_inside(
    value: Decimal, form: NumberForm, low: Decimal | None, low_open: bool, high: Decimal | None, high_open: bool
) -> bool:
    if form is not NumberForm.ANY and value != value.to_integral_value():
        return False
    if low is not None and (value < low or (low_open and value == low)):
        return False
    return high is None or not (value > high or (high_open and value == high))


@given(
    st.sampled_from(NumberForm),
    st.none() | short_decimals,
    st.booleans(),
    st.none() | short_decimals,
    st.booleans(),
)
@example(NumberForm.ANY, Decimal("0.1"), False, Decimal("0.1"), False)
@example(NumberForm.ANY, Decimal("0"), True, Decimal("0.05"), True)
@example(NumberForm.ANY, Decimal("-0.5"), True, Decimal("0"), True)
@example(NumberForm.ANY, Decimal("9.5"), True, Decimal("10.5"), False)
@example(NumberForm.INTEGRAL, Decimal("-1"), True, Decimal("0"), False)
@example(NumberForm.NO_FRACTION, Decimal("9"), False, Decimal("100"), False)
def test_plain_notation_is_exact(
    form: NumberForm, low: Decimal | None, low_open: bool, high: Decimal | None, high_open: bool
) -> None:
    language = number_language(form, low, low_open, high, high_open)
    for text in DECIMALS:
        expected = is_inside(Decimal(text), form, low, low_open, high, high_open)
        if form is NumberForm.NO_FRACTION and "." in text:
            expected = False
        assert accepts(language, text) == expected, text


doubles = st.floats(allow_nan=False, allow_infinity=False)


@given(doubles, st.none() | doubles, st.booleans(), st.none() | doubles, st.booleans(), st.sampled_from(NumberForm))
@example(1e16, 1e16, False, None, False, NumberForm.INTEGRAL)
@example(1.7976931348623157e308, 0.0, False, None, False, NumberForm.ANY)
@example(5e-324, 0.0, True, 1e-323, False, NumberForm.ANY)
@example(1e-05, None, False, 1e-05, False, NumberForm.ANY)
@example(123456789012345680.0, 123456789012345680.0, False, 123456789012345680.0, False, NumberForm.ANY)
def test_what_json_dumps_writes_is_judged_by_its_value(
    value: float, low: float | None, low_open: bool, high: float | None, high_open: bool, form: NumberForm
) -> None:
    least = None if low is None else Decimal(repr(low))
    most = None if high is None else Decimal(repr(high))
    text = json.dumps(value)
    expected = is_inside(Decimal(text), form, least, low_open, most, high_open)
    if form is NumberForm.NO_FRACTION:
        expected = expected and text.lstrip("-").isdecimal()
    assert accepts(number_language(form, least, low_open, most, high_open), text) == expected


@given(st.floats(1e16, 1e300), st.integers(-3, 3), st.integers(-3, 3), st.text("0123456789", min_size=0, max_size=4))
def test_scientific_notation_is_exact(bound: float, above: int, below: int, digits: str) -> None:
    exponent = Decimal(repr(bound)).adjusted()
    low = Decimal(repr(bound)).scaleb(-abs(below))
    high = Decimal(repr(bound)).scaleb(abs(above))
    language = number_language(NumberForm.ANY, low, True, high, False)
    for shift in range(-4, 5):
        mantissa = repr(bound).split("e")[0]
        text = f"{mantissa if '.' in mantissa else mantissa + '.0'}{digits}e+{exponent + shift}"
        if exponent + shift >= 16:
            assert accepts(language, text) == (low < Decimal(text) <= high), text


@pytest.mark.parametrize("exponent", [-300, -12, -6, -5, -4, 15, 16, 17, 20, 100, 308])
@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize("sign", ["", "-"])
def test_bounds_about_powers_of_ten(exponent: int, is_open: bool, sign: str) -> None:
    texts = [
        f"{sign}{mantissa}e{exponent + shift:+03}"
        for mantissa in ("1", "1.0", "1.00001", "1.5", "5", "9.99999")
        for shift in (-1, 0, 1)
        if exponent + shift >= 16 or exponent + shift < -4
    ]
    for mantissa in ("1", "1.00001", "1.5", "5", "9.99999"):
        bound = Decimal(f"{sign}{mantissa}e{exponent}")
        below = number_language(NumberForm.ANY, high=bound, high_open=is_open)
        above = number_language(NumberForm.ANY, bound, is_open)
        for text in texts:
            is_double = abs(Decimal(text)) < Decimal("1.8e308")
            is_equal = not is_open and Decimal(text) == bound
            assert accepts(below, text) == (is_double and (Decimal(text) < bound or is_equal)), (text, bound)
            assert accepts(above, text) == (is_double and (Decimal(text) > bound or is_equal)), (text, bound)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "number", "exclusiveMaximum": 1e-5},
        {"type": "number", "exclusiveMaximum": 1e-5, "minimum": 0},
        {"type": "number", "not": {"const": 1e-5}},
    ],
)
def test_what_is_left_out_is_so_in_every_notation(schema: dict[str, Any]) -> None:
    vocabulary = constrain.Vocabulary([bytes([byte]) for byte in range(128)] + [b"</s>"], eos_ids=[128])
    compiled = constrain.GrammarCompiler(vocabulary).compile(constrain.Grammar.from_json_schema(schema))
    for text, is_valid in (("0.00001", 0), ("1e-05", 0), ("1e-5", 0), ("1.0E-5", 0), ("9e-06", 1), ("0.000009", 1)):
        matcher = constrain.Matcher(compiled)
        assert (matcher.accept_bytes(text.encode()) and matcher.is_accepting()) == is_valid, text


def test_all_numbers_are_json_numbers() -> None:
    language = ANY_NUMBER
    for text in map("".join, itertools.product("-0195.e+", repeat=5)):
        assert accepts(language, text) == (JSON_NUMBER.fullmatch(text) is not None), text


@pytest.mark.parametrize("text", ["1e5", "1.5", "1e-07", "1.00000000000000001e16", "01", "-"])
def test_integers_refuse(text: str) -> None:
    assert not accepts(number_language(NumberForm.INTEGRAL), text)


@pytest.mark.parametrize("text", ["0", "-0", "12", "12.0", "-7.000", "1e+16", "1.5e16", "1.2345678901234567e+18"])
def test_integers_accept(text: str) -> None:
    assert accepts(number_language(NumberForm.INTEGRAL), text)


def count_nodes(language: Regular) -> int:
    parts = getattr(language, "parts", None) or ([language.item] if hasattr(language, "item") else [])  # type: ignore[attr-defined]
    return 1 + sum(map(count_nodes, parts))


@pytest.mark.parametrize("low", ["-1e308", "1e-7", "1.7976931348623157e308", "-9223372036854775808", "5e-324"])
@pytest.mark.parametrize("high", ["1e308", "1.7976931348623157e308", "9223372036854775807"])
def test_huge_bounds_stay_small(low: str, high: str) -> None:
    language = number_language(NumberForm.ANY, Decimal(low), False, Decimal(high), True)
    assert count_nodes(language) < 1000


def test_absurd_exponents_are_outside_the_limits() -> None:
    assert is_within_limits(Decimal("1e400"))
    assert is_within_limits(Decimal(10**300))
    assert not is_within_limits(Decimal("1e100000"))
    assert not is_within_limits(Decimal("1e-100000"))
    assert not is_within_limits(Decimal("0." + "7" * 101))
