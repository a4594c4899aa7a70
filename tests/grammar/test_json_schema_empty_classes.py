"""Patterns of keys of which some exclude each other: no class of keys is searched in vain."""

from typing import Any

import pytest
from finite_texts import verdicts

import constrain
from constrain.grammar.json_schema.document.places import Handle, Place
from constrain.grammar.json_schema.normal.nodes import Normal, NullNode
from constrain.grammar.json_schema.normal.satisfiable import may_have_value

HEXADECIMAL = "^[0-9a-f]{1,31}$"


def test_patterns_that_exclude_each_other_whatever_their_lengths() -> None:
    """Took more steps than a pattern may take: ``admin`` is not hexadecimal, but that was searched length by length."""
    schema: dict[str, Any] = {
        "type": "object",
        "patternProperties": {"b.{11}$": {"type": "integer"}, "admin": {"type": "null"}},
        "propertyNames": {"pattern": HEXADECIMAL},
    }
    texts = ('{"b0":null}', '{"0":1}', '{"admin":null}', '{"":1}')
    assert verdicts(schema, *texts) == [True, True, False, False]


@pytest.mark.parametrize("last", [False, {"type": "null"}])
def test_keys_of_no_pattern(last: Any) -> None:
    """The keys that are of no pattern, and of some pattern, are none: that was searched, too."""
    schema: dict[str, Any] = {
        "type": "object",
        "patternProperties": {
            "id.*e.*customer": {"type": "null"},
            "admin": False,
            "^(?=.*[0-9])(?!0).{4,60}$": {"type": "integer"},
        },
        "additionalProperties": last,
        "maxProperties": 9,
    }
    texts = ('{"abc1":1}', '{"id e customer":null}', '{"id e customer1":null}', '{"admin":null}', '{"abc":null}')
    assert verdicts(schema, *texts) == [True, True, False, False, last is not False]


def test_a_pattern_within_another_one() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "patternProperties": {"^ab*$": {"type": "integer"}, "^a": {"minimum": 3}},
        "propertyNames": {"not": {"pattern": "c"}},
        "additionalProperties": {"type": "null"},
    }
    texts = ('{"abb":3}', '{"abb":2}', '{"abb":null}', '{"ad":3}', '{"d":null}', '{"c":null}')
    assert verdicts(schema, *texts) == [True, False, False, True, True, False]


def _long_keys(short: int) -> dict[str, Any]:
    return {
        "type": "object",
        "propertyNames": {"pattern": "^[a-z]{2,2002}$"},
        "patternProperties": {f"^.{{1,{short}}}$": False, r"b\w{10}$": False},
        "not": {"additionalProperties": {"type": "null"}, "propertyNames": {"maxLength": short}},
        "minProperties": 2,
    }


def test_many_keys_that_are_long() -> None:
    """Was not clear: all keys have more than 20 letters, and what they end with is remembered."""
    constrain.Grammar.from_json_schema(_long_keys(20))
    long, other, short = "a" * 9, "c" * 9, "a" * 8
    texts = [f'{{"{one}":1,"{two}":1}}' for one, two in ((long, other), (long, short), (long, f"{long}b{'a' * 10}"))]
    assert verdicts(_long_keys(8), *texts) == [True, False, False]


def test_what_has_a_value_is_not_looked_at_again() -> None:
    handle: Handle = (Place(),)
    asked: list[Handle] = []
    found: set[Handle] = set()

    def normal(handle: Handle) -> Normal:
        asked.append(handle)
        return Normal((NullNode("#"),))

    assert may_have_value(normal, handle, found)
    assert may_have_value(normal, handle, found)
    assert asked == [handle]
    assert found == {handle}
