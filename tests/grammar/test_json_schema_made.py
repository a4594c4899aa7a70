"""Schemas, and instances that are made for them: most are valid, and what differs from them in one place may not be.

The jsonschema package judges.  ``CONSTRAIN_SCHEMA_EXAMPLES`` says how many schemas are tried; a few hundred by
default.  (Instances by hypothesis-jsonschema were tried: it draws in a way that newer versions of hypothesis do not
allow.)
"""

from __future__ import annotations

import os
from typing import Any

import jsonschema
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from judged_schemas import assert_judged_alike

EXAMPLES = int(os.environ.get("CONSTRAIN_SCHEMA_EXAMPLES", "250"))
DRAFT_7 = "http://json-schema.org/draft-07/schema#"

NAMES = ["a", "b", "ab", "c d"]
names = st.sampled_from(NAMES)
counts = st.integers(0, 3)
texts = st.text(st.sampled_from('ab1 é"\\\n😀'), max_size=4)
numbers = st.integers(-20, 20) | st.sampled_from([0.5, -1.25, 1e3, 1e-3, 7.5, 2.0])
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=2),
    max_leaves=3,
)
PATTERNS = ["^a", "b$", "^[ab]{1,3}$", "^(a|b)+$", "[0-9]", "^.{2}$", "^[^a]*$"]


def several(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, min_size=1, max_size=3)


def of_type(kind: str, inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Schema objects of one type with keywords about it."""
    keywords: dict[str, dict[str, st.SearchStrategy[Any]]] = {
        "integer": {
            "minimum": st.integers(-10, 10),
            "maximum": st.integers(-5, 15),
            "exclusiveMinimum": numbers,
            "multipleOf": st.sampled_from([1, 2, 3, 5, 0.5]),
        },
        "number": {
            "minimum": numbers,
            "exclusiveMaximum": numbers,
            "multipleOf": st.sampled_from([0.5, 2, 0.25]),
        },
        "string": {
            "minLength": counts,
            "maxLength": st.integers(1, 5),
            "pattern": st.sampled_from(PATTERNS),
            "format": st.sampled_from(["date", "ipv4", "ipv6"]),
        },
        "array": {
            "items": inner | several(inner),
            "additionalItems": inner,
            "minItems": counts,
            "maxItems": counts,
            "contains": inner,
        },
        "object": {
            "properties": st.dictionaries(names, inner, max_size=3),
            "patternProperties": st.dictionaries(st.sampled_from(PATTERNS), inner, max_size=2),
            "additionalProperties": inner,
            "propertyNames": st.builds(lambda source: {"pattern": source}, st.sampled_from(PATTERNS)),
            "required": st.lists(names, max_size=2, unique=True),
            "minProperties": counts,
            "maxProperties": counts,
            "dependencies": st.dictionaries(names, st.lists(names, max_size=2, unique=True) | inner, max_size=2),
        },
    }
    chosen = keywords.get(kind, {})
    words = st.sets(st.sampled_from(sorted(chosen)), max_size=3) if chosen else st.just(set())
    return words.flatmap(
        lambda some: st.fixed_dictionaries({"type": st.just(kind), **{word: chosen[word] for word in sorted(some)}})
    )


TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"]


def combined(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Schemas of one type, and applicators."""
    return st.one_of(
        st.sampled_from(TYPES).flatmap(lambda kind: of_type(kind, inner)),
        st.sampled_from(["object", "array", "string"]).flatmap(lambda kind: of_type(kind, inner)),
        st.fixed_dictionaries({"anyOf": several(inner)}),
        st.fixed_dictionaries({"allOf": several(inner)}),
        st.fixed_dictionaries({"oneOf": several(inner)}),
        st.fixed_dictionaries({"not": inner, "type": st.sampled_from(TYPES)}),
        st.fixed_dictionaries({"if": inner, "then": inner, "else": inner}),
    )


schemas = st.recursive(
    st.builds(lambda some: {"enum": some}, st.lists(values, min_size=1, max_size=3))
    | st.builds(lambda kind: {"type": kind}, st.sampled_from(TYPES)),
    combined,
    max_leaves=5,
)


# For each pattern some strings that match it.
MATCHES = {
    "^a": ["a", "ab", "a1"],
    "b$": ["b", "ab", " b"],
    "^[ab]{1,3}$": ["a", "bab", "ab"],
    "^(a|b)+$": ["a", "abba"],
    "[0-9]": ["1", "a1b", "07"],
    "^.{2}$": ["ab", "é1", "\U0001f600a"],
    "^[^a]*$": ["", "b", "1 b"],
}
FORMATTED = {"date": ["2024-02-29", "2023-02-29"], "ipv4": ["10.0.0.1", "256.0.0.1"], "ipv6": ["::1", "fe80::g"]}


def made_for(schema: Any) -> st.SearchStrategy[Any]:
    """Values that mean to be valid: each keyword is followed, what keywords do to each other is left to chance."""
    if isinstance(schema, bool):
        return values
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    for keyword in ("anyOf", "oneOf", "allOf"):
        if keyword in schema:
            return st.one_of(*map(made_for, schema[keyword]))
    if "if" in schema:
        return st.one_of(*(made_for(schema[keyword]) for keyword in ("if", "then", "else")))
    kind = schema.get("type")
    if kind == "array":
        return made_array(schema)
    if kind == "object":
        return made_object(schema)
    if kind == "string":
        known = MATCHES.get(schema.get("pattern", ""), []) + FORMATTED.get(schema.get("format", ""), [])
        return st.sampled_from(known) | texts if known else texts
    if kind in ("integer", "number"):
        bounds = [
            schema[word]
            for word in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
            if word in schema
        ]
        near = st.sampled_from([bound + step for bound in bounds for step in (-1, 0, 0.5, 1)]) if bounds else numbers
        return near | numbers
    return {"null": st.none(), "boolean": st.booleans()}.get(str(kind), values)


def made_array(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    items, low = schema.get("items", True), schema.get("minItems", 0)
    size = {"min_size": low, "max_size": max(low, schema.get("maxItems", 3))}
    if isinstance(items, list):
        more = st.lists(made_for(schema.get("additionalItems", True)), max_size=2)
        return st.tuples(st.tuples(*map(made_for, items)), more).map(lambda parts: [*parts[0], *parts[1]])
    each = made_for(items)
    return st.lists(each | made_for(schema["contains"]) if "contains" in schema else each, **size)


@st.composite
def made_object(draw: st.DrawFn, schema: dict[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties", {})
    keys = set(schema.get("required", [])) | set(draw(st.lists(names, max_size=3)))
    keys |= {name for name in properties if draw(st.booleans())}
    for name, needed in schema.get("dependencies", {}).items():
        if name in keys and isinstance(needed, list):
            keys |= set(needed)
    for source in schema.get("patternProperties", {}):
        keys |= set(draw(st.lists(st.sampled_from(MATCHES[source]), max_size=1)))
    made = {}
    for key in sorted(keys):
        fitting = [one for source, one in schema.get("patternProperties", {}).items() if key in MATCHES[source]]
        one = properties.get(key, fitting[0] if fitting else schema.get("additionalProperties", True))
        made[key] = draw(made_for(one))
    return made


def neighbours(value: Any) -> list[Any]:
    """The value, and values that differ from it in one place."""
    found = [value]
    if isinstance(value, dict):
        for name, one in value.items():
            rest = {other: value[other] for other in value if other != name}
            found += [rest, *({**rest, name: changed} for changed in neighbours(one)[1:3])]
        found.append({**value, "a": 1})
    elif isinstance(value, list):
        found += [value[1:], [*value, None]]
        if value:
            found += [[changed, *value[1:]] for changed in neighbours(value[0])[1:3]]
    elif isinstance(value, str):
        found += [value + "a", value[1:], 0]
    elif isinstance(value, bool) or value is None:
        found += [0, "null", {}]
    else:
        found += [value + 1, value / 2, -value, ""]
    return found


def check(schema: dict[str, Any], instances: list[Any]) -> None:
    """The engine's verdicts are the judge's."""
    validator = jsonschema.Draft7Validator(schema, format_checker=jsonschema.FormatChecker(["date", "ipv4", "ipv6"]))
    assert_judged_alike(schema, validator, instances)


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(schemas, st.data())
def test_made_for_the_schema(schema: dict[str, Any], data: st.DataObject) -> None:
    schema = {"$schema": DRAFT_7, **schema}
    made = data.draw(st.lists(made_for(schema), min_size=1, max_size=4))
    check(schema, [*[near for one in made for near in neighbours(one)][:40], None, {}, [], 1, "a"])
