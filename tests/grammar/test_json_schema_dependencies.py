"""Dependencies that tell kinds of objects apart by the values of one member."""

from __future__ import annotations

import itertools
from typing import Any

import jsonschema
from hypothesis import given, settings
from hypothesis import strategies as st
from judged_schemas import assert_judged_alike

KINDS = ["red", "green", "blue", "grey"]
NAMES = ["a", "b", "c", "d"]
INSTANCES: list[Any] = [
    ({} if kind is None else {"kind": kind})
    | {name: 1 for name, is_there in zip(NAMES, present, strict=True) if is_there}
    for kind in (None, *KINDS, "pink", 7)
    for present in itertools.product((False, True), repeat=len(NAMES))
] + [None, 1, "a"]

values = st.lists(st.sampled_from([*KINDS, 7]), min_size=1, max_size=3).map(lambda listed: {"enum": listed})
of_kind = st.fixed_dictionaries(
    {"properties": st.fixed_dictionaries({"kind": values})}, optional={"required": st.sampled_from([["kind"], []])}
)
other = st.sampled_from([{"required": ["a"]}, {"properties": {"a": {"const": 1}}}, {"maxProperties": 2}, False, ["d"]])
said = of_kind | of_kind | of_kind | other
schemas = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["object", ["object", "null"]]),
        "dependencies": st.dictionaries(st.sampled_from([*NAMES, "kind"]), said, min_size=3),
        "properties": st.dictionaries(
            st.sampled_from(["kind", "a"]), st.sampled_from([{"enum": KINDS}, {"type": "string"}, {}, False])
        ),
        "required": st.lists(st.sampled_from(["kind", "a", "b"]), max_size=2, unique=True),
        "additionalProperties": st.sampled_from([True, {"type": ["integer", "string"]}]),
    }
)


@settings(max_examples=60)
@given(schemas)
def test_small_objects_are_judged_alike(schema: dict[str, Any]) -> None:
    assert_judged_alike(schema, jsonschema.Draft7Validator(schema), INSTANCES)


def test_many_are_no_more_alternatives_than_the_values() -> None:
    kinds = [f"kind{number}" for number in range(12)]
    dependencies = {f"name{n}": {"properties": {"kind": {"enum": kinds[n % 5 : n % 7 + 5]}}} for n in range(40)}
    schema = {"properties": {"kind": {"enum": kinds}}, "dependencies": dependencies}
    instances: list[Any] = [{}, {"kind": "kind2"}, {"name39": 1}, {"kind": "kind2", "name1": 1, "name2": 1}]
    instances += [{"kind": kind, f"name{n}": 1} for kind in kinds for n in range(40)]
    assert_judged_alike(schema, jsonschema.Draft7Validator(schema), instances)


def test_what_depends_may_lead_back_to_the_schema() -> None:
    again = {"properties": {"kind": {"$ref": "#"}}}
    schema = {"type": "object", "dependencies": dict.fromkeys(NAMES, again)}
    instances = [{"a": 1, "kind": {"b": 2, "kind": {}}}, {"a": 1, "kind": 1}, {"a": 1, "kind": {"b": 1, "kind": 1}}, {}]
    assert_judged_alike(schema, jsonschema.Draft7Validator(schema), instances)
