"""Multiples whose rules are made digit by digit, compared with exact arithmetic."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest
from byte_tokens import fits
from hypothesis import given, settings
from hypothesis import strategies as st
from masks import mask_of

import constrain
from constrain.errors import SchemaError
from constrain.grammar.ir import NEVER
from constrain.grammar.json_schema.text_dependent import counted_multiples

VOCABULARY = constrain.Vocabulary([bytes((byte,)) for byte in range(256)])


def compiled_for(schema: str) -> constrain.CompiledGrammar:
    return constrain.CompiledGrammar(constrain.Grammar.from_json_schema(schema).ir, VOCABULARY)


@given(
    st.sampled_from(["6.75", "17", "0.27", "81", "0.0081", "2.125", "604800.7"]),
    st.booleans(),
    st.none() | st.sampled_from(["-50", "0", "1", "6.75", "-1000"]),
    st.none() | st.sampled_from(["50", "81", "1000000", "-5", "2e9"]),
    st.none() | st.sampled_from(["2", "7", "0.5", "13.5", "29"]),
    st.lists(
        st.tuples(st.integers(-300, 300) | st.integers(-(10**9), 10**9), st.sampled_from(["", "0", ".0", "1", ".5"])),
        min_size=20,
        max_size=20,
    ),
)
def test_multiples_are_exact(
    divisor: str, whole: bool, low: str | None, high: str | None, other: str | None, instances: list[tuple[int, str]]
) -> None:
    schema = f'{{"type": "{"integer" if whole else "number"}", "multipleOf": {divisor}'
    schema += f', "minimum": {low}' if low is not None else ""
    schema += f', "exclusiveMaximum": {high}' if high is not None else ""
    schema += f', "not": {{"multipleOf": {other}}}' if other is not None else ""
    schema += ', "anyOf": [{"not": {"enum": [27, 0, 81]}}]}'
    texts = set()
    for count, tail in instances:
        value = Fraction(divisor) * count
        places = len(divisor.partition(".")[2])
        digits = str(abs(value.numerator * 10**places // value.denominator)).rjust(places + 1, "0")
        text = ("-" if value < 0 else "") + (f"{digits[:-places]}.{digits[-places:]}" if places else digits)
        if "." not in text or not tail.startswith("."):
            texts.add(text + tail)
        texts.add(text)
        texts.add(text.removesuffix(".0"))
    expected = {}
    for text in texts:
        value = Fraction(text)
        expected[text] = (
            value % Fraction(divisor) == 0
            and (not whole or value.denominator == 1)
            and (low is None or value >= Fraction(low))
            and (high is None or value < Fraction(high))
            and (other is None or value % Fraction(other) != 0)
            and value not in (27, 0, 81)
            and str(text.lstrip("-"))[:2] not in ("00", "01")
        )
    try:
        compiled = compiled_for(schema)
    except SchemaError:
        assert not any(expected.values())
        return
    assert {text: fits(compiled, text) for text in texts} == expected


def test_every_multiple_can_be_reached_and_nothing_leads_nowhere() -> None:
    compiled = compiled_for('{"type": "integer", "multipleOf": 123456789, "minimum": 1e9, "maximum": 2e9}')
    recognizer = compiled.recognizer()
    found = []

    def visit(text: str) -> None:
        if recognizer.is_accepting():
            found.append(text)
        ways = 0
        for byte in b"0123456789-":
            if recognizer.try_push_byte(byte):
                ways += 1
                visit(text + chr(byte))
                recognizer.pop_bytes(1)
        assert ways or recognizer.is_accepting()

    visit("")
    assert found == [str(123456789 * count) for count in range(9, 17)]


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        ({"type": "integer", "multipleOf": 17, "not": {"multipleOf": 1}}, ["#/not/multipleOf"]),
        ({"type": "integer", "multipleOf": 17, "minimum": 1, "exclusiveMaximum": 17}, ["#/multipleOf", "#/minimum"]),
        (
            {"multipleOf": 34, "type": "number", "allOf": [{"multipleOf": 27}], "not": {"multipleOf": 459}},
            ["#/multipleOf", "#/not/multipleOf"],
        ),
    ],
)
def test_no_multiple(schema: dict[str, object], named: list[str]) -> None:
    with pytest.raises(SchemaError) as caught:
        compiled_for(json.dumps(schema))
    for pointer in named:
        assert pointer in str(caught.value)


def test_many_divisors_at_once() -> None:
    divisors = [{"multipleOf": 33}, {"multipleOf": 39}, {"not": {"multipleOf": 12}}, {"not": {"multipleOf": 7}}]
    compiled = compiled_for(json.dumps({"type": "number", "allOf": [*divisors, {"not": {"multipleOf": 125}}]}))
    assert all(fits(compiled, text) for text in ("429", "-858", "429.00"))
    assert not any(fits(compiled, text) for text in ("1", "5148", "3003", "53625", "428", "429.5"))


def test_white_space_and_neighbours() -> None:
    schema = '{"type": "array", "items": {"multipleOf": 17, "type": "integer"}, "maxItems": 3}'
    compiled = compiled_for(schema)
    assert fits(compiled, "[ 17, -34 ,\n0]")
    assert not fits(compiled, "[17, 18]")


def fewest_by_steps(template: counted_multiples.CountedMultiples, start: counted_multiples._State) -> int:
    """How many characters must follow, by trying all of them."""
    layer, seen, count = [start], {start}, 0
    while layer:
        count += 1
        layer = [then for state in layer for _, then in template._steps(state)]
        if any(map(template._may_end, layer)):
            return count
        layer = [state for state in dict.fromkeys(layer) if state not in seen]
        seen.update(layer)
    return NEVER


@settings(max_examples=80)
@given(
    st.sampled_from(["17", "1.7", "0.17", "23", "0.023", "7e-3", "0.11"]),
    st.sampled_from(['"number"', '"integer"']),
    st.sampled_from(
        [
            "",
            ', "minimum": 0.5',
            ', "maximum": -17',
            ', "minimum": -55, "maximum": 60.7',
            ', "minimum": 1200',
            ', "minimum": -9999, "maximum": 70',
        ]
    ),
    st.sampled_from(
        ["", ', "not": {"multipleOf": 34}', ', "not": {"multipleOf": 2}', ', "not": {"enum": [17, 34, 0, 1.7]}']
    ),
    st.sampled_from([{}, {"numbers": "plain"}]),
    st.lists(st.integers(0, 11), max_size=8),
)
def test_the_fewest_characters_that_end_a_number(
    divisor: str, kind: str, bounds: str, other: str, options: dict[str, Any], choices: list[int]
) -> None:
    templates: list[counted_multiples.CountedMultiples] = []

    def keep(self: counted_multiples.CountedMultiples, *arguments: Any) -> None:
        made(self, *arguments)
        templates.append(self)

    made = counted_multiples.CountedMultiples.__init__
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counted_multiples.CountedMultiples, "__init__", keep)
        schema = f'{{"type": {kind}, "multipleOf": {divisor}{bounds}{other}}}'
        try:
            constrain.CompiledGrammar(constrain.Grammar.from_json_schema(schema, **options).ir, VOCABULARY)
        except SchemaError:
            return
    for template in templates:
        state = counted_multiples._State(-1, False, -1)
        for choice in choices:
            further = list(template._steps(state))
            if not further:
                break
            state = further[choice % len(further)][1]
            if state.digits >= 0:
                assert template._fewest(state) == fewest_by_steps(template, state), state


def test_a_budget_for_multiples_of_a_large_prime_looks_at_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """What ends a number is a matter of division, not of trying tens of thousands of digits after each one."""
    count = 0
    is_any_between = counted_multiples.Multiples.is_any_between

    def counted(self: counted_multiples.Multiples, *arguments: Any, **keywords: Any) -> bool:
        nonlocal count
        count += 1
        return is_any_between(self, *arguments, **keywords)

    monkeypatch.setattr(counted_multiples.Multiples, "is_any_between", counted)
    matcher = constrain.Matcher(compiled_for('{"type": "number", "multipleOf": 0.0123457, "minimum": 0.5}'), 24)
    while not matcher.is_accepting():
        text = b"".join([VOCABULARY.tokens[token] for token in matcher.completion()])
        assert Fraction((matcher.text(matcher.steps) + text).decode()) % Fraction("0.0123457") == 0
        assert matcher.accept_bytes(b"1") or matcher.accept_bytes(text[:1])
    assert matcher.steps > 10
    assert count < 50_000


def test_no_rules_are_made_behind_the_last_digit_of_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    # A thousand tokens of three digits lead to a thousand states, into which a mask need not look.
    digits = [str(number).zfill(size).encode() for size in (1, 2, 3) for number in range(10**size)]
    compiled = constrain.CompiledGrammar(
        constrain.Grammar.from_json_schema({"type": "integer", "multipleOf": 7, "not": {"multipleOf": 9973}}).ir,
        constrain.Vocabulary([*digits, b"-"]),
    )
    looked_at = []
    edges = counted_multiples.CountedMultiples.edges

    def counted(self: counted_multiples.CountedMultiples, state: counted_multiples._State) -> Any:
        looked_at.append(state)
        return edges(self, state)

    monkeypatch.setattr(counted_multiples.CountedMultiples, "edges", counted)
    assert len(mask_of(constrain.Matcher(compiled))) == 9 + 90 + 900 + 1
    assert 90 < len(looked_at) < 110
