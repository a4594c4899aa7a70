"""Which keys a text may run short of: what the front-end finds out for budgets."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import constrain

REFUSED: dict[str, Any] = {"additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        # Each of a few keys is a member of its own, and what it costs is known.
        ({"propertyNames": {"enum": ["a", "bbb"]}}, False),
        ({"patternProperties": {"^(a|ab{9})$": {}}, **REFUSED}, False),
        ({"patternProperties": {"^(a|b*)$": {}}, **REFUSED}, True),
        # Endlessly many, of which each is longer than the one before, or all but one are long.
        ({"patternProperties": {"^a*$": {}}, **REFUSED}, True),
        ({"patternProperties": {"^b(|b{20}b*)$": {}}, **REFUSED}, True),
        ({"patternProperties": {"^prefix_[a-j]*$": {}}, **REFUSED}, False),
        ({"patternProperties": {"^long_prefix_[a-j]*$": {}}, **REFUSED}, True),
        ({"patternProperties": {"^[a-i]*$": {}}, **REFUSED}, True),
        ({"patternProperties": {"^[a-z]{1,5}$": {}}, **REFUSED}, True),
        ({"patternProperties": {"^[a-z]+$": {}}, **REFUSED}, False),
        ({"patternProperties": {"^x-": {}}, **REFUSED}, False),
        # What is left of all keys: one, and endlessly many.
        ({"patternProperties": {"[\\s\\S]": {"const": 1}}, "additionalProperties": {"const": 2}}, True),
        ({"patternProperties": {"^[a-z_]+$": {"const": 1}}, "additionalProperties": {"const": 2}}, False),
        ({"patternProperties": {"^[a-z_]+$": {"const": 1}}, "properties": {"A": {}, "b": {}}}, False),
        ({"patternProperties": {"^a*$": {}}, "minProperties": 20, **REFUSED}, True),
        ({"minProperties": 20}, False),
        ({"properties": {"a": {}, "b": {}}, **REFUSED}, False),
        ({}, False),
    ],
)
def test_scarce_keys(schema: Any, expected: bool) -> None:
    ir = constrain.Grammar.from_json_schema({"type": "object", **schema}).ir
    again = pickle.loads(pickle.dumps(ir))
    for each in (ir, again):
        found = each.has_scarce_keys is not None and each.has_scarce_keys()
        assert found is expected


@pytest.mark.parametrize(("count", "expected"), [(3, False), (40, True)])
def test_many_kinds_of_keys_are_taken_for_scarce(count: int, expected: bool) -> None:
    """Each of them would have to be looked at, which takes time."""
    objects = {
        f"p{size}": {
            "type": "object",
            "patternProperties": {f"^{'a' * size}[a-z]+$": {"const": 1}},
            "additionalProperties": {"const": 0},
        }
        for size in range(count)
    }
    ir = constrain.Grammar.from_json_schema({"type": "object", "properties": objects}).ir
    assert ir.has_scarce_keys is not None
    assert ir.has_scarce_keys() is expected


@pytest.mark.parametrize("order", ["schema", "any"])
@pytest.mark.parametrize("patterns", [("^x[0-9]$", "^(?:a|b){6}$"), ("^x[0-9]{3}$", "^(?:a|b){7}$")])
def test_keys_that_there_are_none_of_do_not_matter(patterns: tuple[str, ...], order: Any) -> None:
    """That a key is of neither pattern and yet of one of them is a class of its own, and an empty one."""
    schema = {
        "type": "object",
        "patternProperties": {pattern: {"const": 1} for pattern in patterns},
        "minProperties": 2,
        **REFUSED,
    }
    vocabulary = constrain.Vocabulary([*(bytes((byte,)) for byte in range(32, 127)), b"</s>"], eos_ids=[95])
    compiled = constrain.GrammarCompiler(vocabulary).compile(
        constrain.Grammar.from_json_schema(schema, property_order=order)
    )
    matcher = constrain.Matcher(compiled, max_tokens=60)
    assert matcher.tokens_to_finish() <= 26
    assert matcher.accept_bytes(b'{"' + (b"x1" if "{3}" not in patterns[0] else b"x111") + b'":1,"')
    text = bytes(vocabulary.tokens[token][0] for token in matcher.completion())
    assert matcher.accept_bytes(text)
