"""Applicators in every combination: random schemas and instances, judged by the jsonschema package."""

from __future__ import annotations

from typing import Any

import jsonschema
from hypothesis import given, settings
from hypothesis import strategies as st
from judged_schemas import assert_judged_alike

NAMES = ["a", "b", "ab"]
names = st.sampled_from(NAMES)
scalars = st.sampled_from([None, True, False, 0, 1, 2, 3, -1, 1.5, 6, "", "a", "ab", "b", "2024-02-29"])
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=4,
)
types = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
counts = st.integers(0, 2)
patterns = st.sampled_from(["^a", "b", "^a$", "^.b?$", ".*"])


def combinations(inner: st.SearchStrategy[Any], refers: bool = True) -> st.SearchStrategy[Any]:
    """Schema objects with a few keywords; with ``refers`` also references to the one definition."""
    several = st.lists(inner, min_size=1, max_size=3)
    keywords = {
        "allOf": several,
        "anyOf": several,
        "oneOf": several,
        "not": inner,
        "if": inner,
        "then": inner,
        "else": inner,
        "type": types | st.lists(types, min_size=1, max_size=2, unique=True),
        "enum": st.lists(values, min_size=1, max_size=3),
        "properties": st.dictionaries(names, inner, max_size=2),
        "patternProperties": st.dictionaries(patterns, inner, max_size=2),
        "additionalProperties": inner,
        "propertyNames": inner,
        "unevaluatedProperties": inner,
        "required": st.lists(names, max_size=2, unique=True),
        "minProperties": counts,
        "maxProperties": counts,
        "dependentRequired": st.dictionaries(names, st.lists(names, max_size=2, unique=True), max_size=2),
        "dependentSchemas": st.dictionaries(names, inner, max_size=2),
        "items": inner,
        "prefixItems": st.lists(inner, min_size=1, max_size=2),
        "contains": inner,
        "minContains": counts,
        "maxContains": counts,
        "unevaluatedItems": inner,
        "minItems": counts,
        "maxItems": counts,
        "minimum": st.sampled_from([0, 1, 1.5]),
        "exclusiveMaximum": st.sampled_from([1, 2, 3]),
        "multipleOf": st.sampled_from([1, 2, 3, 0.5]),
        "minLength": counts,
        "maxLength": counts,
        "pattern": patterns,
        "format": st.sampled_from(["date", "uuid"]),
    }
    if refers:
        keywords["$ref"] = st.just("#/$defs/x")
    chosen = st.sets(st.sampled_from(sorted(keywords)), min_size=1, max_size=4)
    return chosen.flatmap(lambda words: st.fixed_dictionaries({word: keywords[word] for word in sorted(words)}))


simple = (
    st.booleans()
    | st.builds(lambda name: {"type": name}, types)
    | st.builds(lambda value: {"const": value}, values)
    | st.builds(lambda name: {"required": [name]}, names)
)
schemas = st.recursive(simple, combinations, max_leaves=6)
# A definition that leads back to itself by applicators alone is an error, and the judge does not end.
definitions = st.recursive(simple, lambda inner: combinations(inner, False), max_leaves=6)
CHECKER = jsonschema.FormatChecker(["date", "uuid"])


@settings(max_examples=400)
@given(combinations(schemas), definitions, st.lists(values, min_size=6, max_size=12))
def test_the_language_is_what_is_valid(root: Any, definition: Any, instances: list[Any]) -> None:
    schema = {**root, "$defs": {"x": definition}}
    validator = jsonschema.Draft202012Validator(schema, format_checker=CHECKER)
    assert_judged_alike(schema, validator, instances)
