"""What a lenient caller gets where a schema has too many alternatives, or patterns that are not regular.

Random ones with too many alternatives are judged by ``python -m bench.fuzz --kind applicators``.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from byte_tokens import BYTES
from byte_tokens import fits as fits_compiled
from processor_time import processor_time

import constrain
from constrain.errors import LimitError, SchemaError

_DEPENDENCIES: dict[str, Any] = {
    "properties": {f"a{index}": {"type": "integer"} for index in range(30)},
    "dependentRequired": {f"a{index}": [f"b{index}"] for index in range(30)},
}


def _contains(name: str, then: dict[str, Any]) -> dict[str, Any]:
    return {"if": {"properties": {"plugins": {"contains": {"const": name}}}, "required": ["plugins"]}, "then": then}


@cache
def _grammar(schema: str, **options: Any) -> constrain.Grammar:
    return constrain.Grammar.from_json_schema(schema, lenient=True, **options)


def _lenient(schema: Any, **options: Any) -> tuple[str, ...]:
    return _grammar(json.dumps(schema), **options).warnings


def fits(schema: Any, text: str, **options: Any) -> bool:
    return fits_compiled(constrain.CompiledGrammar(_grammar(json.dumps(schema), **options).ir, BYTES), text)


def test_dependencies_that_are_too_many() -> None:
    with pytest.raises(LimitError, match="lenient leaves some of them out"):
        constrain.Grammar.from_json_schema(_DEPENDENCIES)
    warnings = _lenient(_DEPENDENCIES)
    assert warnings[-1].startswith("at #: what depends on property 'a29' has too many alternatives")
    assert warnings[-1].endswith("it is not enforced")
    # The first ones are enforced, and so is all that stands beside them.
    assert fits(_DEPENDENCIES, '{"a0": 1, "b0": 1}')
    assert not fits(_DEPENDENCIES, '{"a0": 1}')
    assert fits(_DEPENDENCIES, '{"a29": 1}')
    assert not fits(_DEPENDENCIES, '{"a29": "x"}')


def test_branches_of_all_of_that_are_too_many() -> None:
    schema = {
        "allOf": [
            *[_contains(f"p{index}", {"properties": {"config": {"required": [f"c{index}"]}}}) for index in range(30)],
            {"properties": {"plugins": {"type": "array", "items": {"type": "string"}}}, "required": ["plugins"]},
        ]
    }
    with pytest.raises(LimitError):
        constrain.Grammar.from_json_schema(schema)
    assert any(warning.startswith("at #/allOf/29: ") for warning in _lenient(schema))
    # What has no alternatives counts, wherever it stands.
    assert not any(warning.startswith("at #/allOf/30") for warning in _lenient(schema))
    assert not fits(schema, '{"config": {}}')
    assert not fits(schema, '{"plugins": [1]}')
    assert fits(schema, '{"plugins": ["p29"], "config": {}}')


def test_one_of_becomes_any_of() -> None:
    schema = {"oneOf": [{"properties": {f"a{index}": {"minimum": index}}} for index in range(40)]}
    with pytest.raises(LimitError):
        constrain.Grammar.from_json_schema(schema, max_work=1000)
    assert _lenient(schema, max_work=1000) == (
        "at #/oneOf: that just one branch of oneOf holds takes too many alternatives: it is not enforced",
    )
    assert not fits(schema, '{"a1": 1, "a2": 2}')
    assert fits(schema, '{"a1": 1, "a2": 2}', max_work=1000)
    assert not fits({"oneOf": schema["oneOf"][:2]}, '{"a0": -1, "a1": 0}', max_work=1000)


def test_what_is_left_out_may_have_evaluated_everything() -> None:
    branches = [{"properties": {f"h{index}": True}, "required": [f"h{index}"]} for index in range(12)]
    schema = {"anyOf": branches, "unevaluatedProperties": False}
    with pytest.raises(LimitError):
        constrain.Grammar.from_json_schema(schema, max_work=2000)
    assert _lenient(schema, max_work=2000)
    assert fits(schema, '{"h7": 1}', max_work=2000)


def test_what_stands_behind_is_not_left_out_too() -> None:
    """The alternatives that are too many are to blame, not the small ones behind them."""
    schema = {
        "properties": {"first": _DEPENDENCIES, "second": {"oneOf": [{"type": "string"}, {"maximum": 3}]}},
        "required": ["second"],
    }
    assert all("second" not in warning for warning in _lenient(schema))
    assert fits(schema, '{"first": {"a29": 1}, "second": 2}')
    assert not fits(schema, '{"second": 4}')


def test_many_that_are_too_many_end_soon() -> None:
    schema = {"properties": {f"p{index}": _DEPENDENCIES | {"minProperties": index} for index in range(40)}}
    with processor_time() as spent:
        assert len(_lenient(schema)) > 40
    assert spent.seconds < 10


# -- patterns ---------------------------------------------------------------------------------------

_TWICE = r"^(.)\1$"


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"pattern": _TWICE}, '"x"'),
        ({"not": {"pattern": _TWICE}}, '"xx"'),
        ({"not": {"pattern": _TWICE}}, '"x"'),
        ({"oneOf": [{"pattern": _TWICE}, {"pattern": r"(b)\1"}]}, '"bb"'),
        ({"if": {"pattern": _TWICE}, "then": {"minLength": 5}, "else": {"maxLength": 3}}, '"abcdef"'),
        ({"if": {"pattern": _TWICE}, "then": {"minLength": 5}, "else": {"maxLength": 3}}, '"ab"'),
        ({"patternProperties": {_TWICE: {}}, "additionalProperties": False}, '{"aa": 1}'),
        ({"patternProperties": {_TWICE: {}}, "unevaluatedProperties": False}, '{"aa": 1}'),
        ({"not": {"patternProperties": {_TWICE: False}}}, '{"a": 1}'),
        ({"propertyNames": {"pattern": _TWICE}}, '{"a": 1}'),
        ({"not": {"propertyNames": {"pattern": _TWICE}}}, '{"a": 1}'),
    ],
)
def test_what_depends_on_an_irregular_pattern(schema: Any, text: str) -> None:
    """Whatever the pattern says of the text: it may be valid."""
    with pytest.raises(SchemaError, match=r"back-references are not regular.*lenient leaves it out"):
        constrain.Grammar.from_json_schema(schema)
    assert _lenient(schema)[0].endswith("it is not enforced")
    assert fits(schema, text)


def test_what_stands_beside_an_irregular_pattern() -> None:
    schema = {"type": "string", "pattern": _TWICE, "maxLength": 2}
    assert not fits(schema, '"abc"')
    assert not fits({"patternProperties": {_TWICE: {}, "^b": {"type": "string"}}}, '{"b": 1}')


def test_names_that_are_not_enforced() -> None:
    """A complement must not take them for all that are valid."""
    names = {"propertyNames": {"format": "idn-hostname"}}
    schema = {"if": names, "then": {"required": ["a"]}, "else": {"required": ["b"]}}
    assert fits(schema, '{"a..b": 0, "b": 1}', property_order="any")
    assert fits({"not": names}, '{"a..b": 0}')
    assert fits({"oneOf": [{"type": "object"} | names, {"type": "object"}]}, '{"a..b": 0}')


def test_complements_that_are_not_enforced() -> None:
    """Their own complements must not take them for all that is valid either."""
    excluded = {"not": {"format": "idn-hostname"}}
    assert fits({"not": excluded | {"unevaluatedProperties": False}}, '"abc"')
    schema = {"if": {"propertyNames": excluded}, "then": {"required": ["a"]}, "else": {"required": ["b"]}}
    assert fits(schema, '{"b": 0}')


def _condition(member: dict[str, Any], then: str, otherwise: str, **more: Any) -> dict[str, Any]:
    condition = {"properties": {"t": member}, "required": ["t"], **more}
    return {"if": condition, "then": {"required": [then]}, "else": {"required": [otherwise]}}


@pytest.mark.parametrize(
    "loose",
    [
        _condition({"enum": ["ab"], "pattern": _TWICE}, "r", "s"),
        _condition({"enum": ["ab"]}, "r", "s", patternProperties={r"^(p)\1?$": False}),
    ],
)
def test_conditions_on_one_member_that_are_not_enforced(loose: dict[str, Any]) -> None:
    """Where the condition seems to hold of a value, it may fail, whatever others say of the value."""
    exact = [_condition({"enum": ["ab"]}, "p", "q"), _condition({"enum": ["cc", "cd"]}, "u", "v")]
    for schema in ({"allOf": [loose, *exact]}, {"allOf": [*exact, loose]}):
        assert fits(schema, '{"t": "ab", "p": 1, "s": 1, "v": 1}', property_order="any")
        assert not fits(schema, '{"t": "ab", "q": 1, "s": 1, "v": 1}', property_order="any")


def test_unique_items_counted_by_what_is_not_enforced() -> None:
    words = {"enum": ["aa", "ab", "ac"]}
    schema = {"uniqueItems": True, "contains": words | {"pattern": _TWICE}, "maxContains": 1}
    assert fits(schema, '["ab", "aa", "ac"]')
    assert not fits(schema, '["ab", "aa", "ab"]')
    assert not fits(schema, '["x"]')
    assert not fits(schema | {"contains": words}, '["ab", "aa"]')


@pytest.mark.parametrize("style", ["qwen3_coder", "internlm2", "mistral_args", "hermes"])
def test_tools_that_ask_for_it_are_warned_of_once(style: str) -> None:
    """Some styles write the same arguments in several places."""
    parameters = {
        "x-guidance": {"lenient": True},
        "properties": {"word": {"type": "string", "pattern": _TWICE}},
        "required": ["word"],
    }
    tool = {"type": "function", "function": {"name": "find", "parameters": parameters}}
    grammar = constrain.Grammar.from_tools([tool], style=style, tool_choice="required", reasoning=False)
    (warning,) = grammar.warnings
    assert warning.startswith("at #/0/function/parameters/properties/word/pattern: ")
