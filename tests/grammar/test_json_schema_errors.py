"""What is refused, and where the error points."""

from __future__ import annotations

import copy
import json
import pickle
from decimal import Decimal
from typing import Any

import pytest
from byte_tokens import BYTES

import constrain
from constrain.engine import grammar_tables, loading
from constrain.errors import GrammarError, LimitError, SchemaError
from constrain.grammar.json_schema import from_json_schema
from constrain.grammar.json_schema.document.drafts import ALL_WORDS, ANNOTATIONS, CONTENT
from constrain.grammar.json_schema.normal import attempts
from constrain.grammar.json_schema.normal.keywords import KEYWORDS

D3 = "http://json-schema.org/draft-03/schema#"
D4 = "http://json-schema.org/draft-04/schema#"
D2020 = "https://json-schema.org/draft/2020-12/schema"


def error(schema: Any) -> SchemaError:
    with pytest.raises(SchemaError) as caught:
        from_json_schema(schema)
    assert "\n" not in str(caught.value)
    assert str(caught.value) == f"at {caught.value.pointer}: {caught.value.reason}"
    return caught.value


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "line 1, column 1"),
        ('{"type":\n  strong}', "line 2, column 3"),
        ("{'type': 1}", "line 1, column 2"),
        ('{"a": 1,}', "column"),
        ("[1", "line 1, column 3"),
        ('{"minimum": NaN}', "NaN"),
        ('{"const": 1e' + "9" * 30 + "}", "the exponent of the number '1e999"),
        ("[" * 100_000, "nested too deeply"),
        ('{"minimum": 1e' + "9" * 30 + "}", ""),
        (b'{"a": "\xff"}', "UTF-8"),
    ],
)
def test_text_that_is_not_json(text: str, place: str) -> None:
    assert place in str(error(text))


@pytest.mark.parametrize("digits", [5000, 30_000])
def test_very_long_integers_in_a_text_are_judged_where_they_stand(digits: int) -> None:
    number = "1" * digits
    from_json_schema(f'{{"type": "string", "default": {number}}}')
    assert error(f'{{"properties": {{"a": {{"const": {number}}}}}}}').pointer == "#/properties/a/const"
    assert error(f'{{"minLength": {number}}}').pointer == "#/minLength"
    assert "must be an object or a boolean" in error(number).reason


@pytest.mark.parametrize("schema", [None, 1, "1", '"a"', [], "[]", 1.5, ()])
def test_what_is_no_schema(schema: Any) -> None:
    assert "must be an object or a boolean" in error(schema).reason


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        *(("STRING", "string"), ("strin", "string"), ("dict", "object"), ("float", "number"), ("Bool", "boolean")),
        *(("int", "integer"), ("list", "array"), ("None", "null"), ("any", None), ("file", None), (None, None)),
    ],
)
def test_types_as_others_call_them(name: Any, meant: str | None) -> None:
    found = error({"properties": {"a": {"type": name}}})
    assert found.pointer == "#/properties/a/type"
    assert f"{name!r} is not a type" in found.reason
    assert found.reason.partition("; did you mean ")[2] == (f"{meant!r}?" if meant else "")


@pytest.mark.parametrize("keyword", ["exclusiveMinimum", "exclusiveMaximum"])
def test_boolean_bounds_of_openapi(keyword: str) -> None:
    schema = {"minimum": 0, "maximum": 9, keyword: True}
    assert "must be a number, not a boolean (it is one in draft 4, if $schema says so)" in error(schema).reason
    from_json_schema({"$schema": "http://json-schema.org/draft-04/schema#", **schema})


def test_every_keyword_of_every_draft_has_a_meaning() -> None:
    assert KEYWORDS.keys() | ANNOTATIONS | CONTENT >= ALL_WORDS


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"type": "strin"}, "#/type"),
        ({"type": ["string", 5]}, "#/type"),
        ({"type": []}, "#/type"),
        ({"type": None}, "#/type"),
        ({"type": {}}, "#/type"),
        ({"enum": "a"}, "#/enum"),
        ({"enum": [{1, 2}]}, "#/enum/0"),
        ({"anyOf": []}, "#/anyOf"),
        ({"anyOf": {}}, "#/anyOf"),
        ({"anyOf": [{}, 3]}, "#/anyOf/1"),
        ({"minimum": "3"}, "#/minimum"),
        ({"minimum": True}, "#/minimum"),
        ({"maximum": None}, "#/maximum"),
        ({"maximum": float("nan")}, "#/maximum"),
        ({"maximum": float("inf")}, "#/maximum"),
        ({"exclusiveMinimum": True}, "#/exclusiveMinimum"),
        ({"$schema": D4, "exclusiveMinimum": 3}, "#/exclusiveMinimum"),
        ({"minLength": "3"}, "#/minLength"),
        ({"minLength": -1}, "#/minLength"),
        ({"maxLength": 1.5}, "#/maxLength"),
        ({"maxLength": True}, "#/maxLength"),
        ({"maxLength": float("inf")}, "#/maxLength"),
        ({"minItems": None}, "#/minItems"),
        ({"minItems": Decimal("NaN")}, "#/minItems"),
        ({"minItems": Decimal("1e999999")}, "#/minItems"),
        ({"maxItems": []}, "#/maxItems"),
        ({"pattern": 5}, "#/pattern"),
        ({"type": "string", "pattern": "("}, "#/pattern"),
        ({"type": "string", "pattern": "(a*)\\1"}, "#/pattern"),
        ({"items": 5}, "#/items"),
        ({"items": [{}], "$schema": D2020}, "#/items"),
        ({"items": [{}], "prefixItems": [{}]}, "#/items"),
        ({"prefixItems": {}}, "#/prefixItems"),
        ({"prefixItems": [None]}, "#/prefixItems/0"),
        ({"properties": []}, "#/properties"),
        ({"properties": {"a": 1}}, "#/properties/a"),
        ({"properties": {"a b~": "x"}}, "#/properties/a%20b~0"),
        ({"required": "a"}, "#/required"),
        ({"required": True}, "#/required"),
        ({"required": ["a", 1]}, "#/required"),
        ({"additionalProperties": None}, "#/additionalProperties"),
        ({"$ref": 5}, "#/$ref"),
        ({"$schema": 5}, "#/$schema"),
        ({"$schema": D3}, "#/$schema"),
        ({"$id": 5}, "#/$id"),
        ({"$id": "http://a/", "not": {"$id": "http://["}}, "#/not/$id"),
        ({5: 6}, "#"),
        ({"properties": {5: {}}}, "#/properties"),
        ({"const": {5: 1}}, "#/const"),
        ({"enum": [[{None: 1}]]}, "#/enum/0/0"),
        ({"const": b"a"}, "#/const"),
        ({"minimum": 10**1000}, "#/minimum"),
        ('{"minimum": 1e100000}', "#/minimum"),
        ('{"const": 1e-100000}', "#/const"),
        ({"enum": [1, 10**1000]}, "#/enum/1"),
    ],
)
def test_keywords_that_hold_what_they_must_not(schema: Any, pointer: str) -> None:
    refused = error(schema)
    assert refused.pointer == pointer
    assert pointer.rpartition("/")[2].partition("%")[0] or pointer == "#"


def test_a_bad_pattern_shows_the_place_in_it() -> None:
    assert "column 2" in error({"type": "string", "pattern": "a("}).reason


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("#/$defs/b", "leads nowhere: there is no 'b' at #/$defs"),
        ("#/$def/a", "leads nowhere: there is no '$def' at #; did you mean '$defs'?"),
        ("#/$defs/a/0", "leads nowhere"),
        ("#/anyOf/0/x", "leads nowhere"),
        ("#/anyOf/2", "leads nowhere: there is no '2' at #/anyOf"),
        ("#/anyOf/01", "leads nowhere"),
        ("#/anyOf/-", "leads nowhere"),
        ("#foo", "anchor"),
        ("other.json", "a place in this one begins with '#'"),
        ("http://example.org/x#/a", "remote"),
        ("urn:uuid:1", "remote"),
        ("#/%FF", "URI"),
    ],
)
def test_references_that_lead_nowhere(reference: str, reason: str) -> None:
    schema = {"properties": {"x": {"$ref": reference}}, "$defs": {"a": {}}, "anyOf": [True, {}]}
    refused = error(schema)
    assert refused.pointer == "#/properties/x/$ref"
    assert reason in refused.reason
    assert reference in refused.reason


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
        {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
        {"type": "string", "$ref": "#"},
        {"items": {"$ref": "#/items"}},
    ],
)
def test_references_in_a_circle(schema: Any) -> None:
    assert "leads back to itself" in error(schema).reason


UNSATISFIABLE: list[tuple[Any, str, list[str]]] = [
    (False, "#", ["false"]),
    ({"type": "string", "minLength": 3, "maxLength": 1}, "#/minLength", ["#/minLength", "#/maxLength"]),
    ({"type": "array", "minItems": 3, "maxItems": 1}, "#/minItems", ["#/minItems", "#/maxItems"]),
    ({"type": "number", "minimum": 3, "maximum": 1}, "#/minimum", ["#/minimum", "#/maximum"]),
    ({"type": "number", "minimum": 3, "exclusiveMaximum": 3}, "#/minimum", ["#/exclusiveMaximum"]),
    ({"type": "integer", "minimum": 0.2, "maximum": 0.8}, "#/minimum", ["integer", "#/maximum"]),
    ({"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2}, "#/exclusiveMinimum", ["integer"]),
    ({"enum": []}, "#/enum", ["empty"]),
    ({"enum": [1, 2], "type": "string"}, "#/type", ["#/enum", "string"]),
    ({"enum": [1.5], "type": "integer"}, "#/enum", ["1.5", "integer"]),
    ({"enum": ["abc"], "maxLength": 2, "type": "string"}, "#/enum", ["#/maxLength"]),
    ({"enum": [1, 2], "minimum": 3, "type": "integer"}, "#/enum", ["#/minimum"]),
    ({"enum": [1], "const": 2}, "#/enum", ["#/const"]),
    ({"const": "\ud800"}, "#/const", ["surrogate"]),
    ({"type": "object", "properties": {"a": False}, "required": ["a"]}, "#/properties/a", ["'a'", "#/required"]),
    ({"type": "object", "additionalProperties": False, "required": ["a"]}, "#/additionalProperties", ["#/required"]),
    ({"type": "array", "items": False, "minItems": 1}, "#/items", ["#/minItems"]),
    ({"type": "array", "prefixItems": [{}, False], "minItems": 2}, "#/prefixItems/1", ["#/minItems"]),
    ({"anyOf": [False, {"type": "string", "minLength": 2, "maxLength": 1}]}, "#/anyOf", ["#/anyOf/1/minLength"]),
    ({"type": "string", "anyOf": [{"type": "null"}]}, "#/anyOf/0", ["string", "null"]),
    ({"type": "string", "minLength": 5, "anyOf": [{"maxLength": 4}]}, "#/minLength", ["#/anyOf/0/maxLength"]),
    (
        {"type": "object", "required": ["a"], "properties": {"a": {"type": "array", "minItems": 1, "items": False}}},
        "#/properties/a/items",
        ["#/properties/a/minItems"],
    ),
    ({"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}}, "#", ["without end"]),
    ({"type": "array", "minItems": 1, "items": {"anyOf": [{"$ref": "#"}, False]}}, "#", ["without end"]),
    ({"const": {"a": 1}, "properties": {"a": {"type": "string"}}}, "#/properties/a/type", ["string", "number"]),
    ({"type": "object", "required": ["\udc00"]}, "#/required", ["surrogate"]),
]


@pytest.mark.parametrize(("schema", "pointer", "words"), UNSATISFIABLE, ids=[repr(c[0])[:70] for c in UNSATISFIABLE])
def test_schemas_that_nothing_satisfies(schema: Any, pointer: str, words: list[str]) -> None:
    refused = error(schema)
    assert "nothing is valid" in refused.reason
    for word in words:
        assert word in str(refused)
    assert refused.pointer == pointer


@pytest.mark.parametrize("required", [False, True])
def test_patterns_that_leave_nothing_are_found_when_compiled(required: bool) -> None:
    text = {"type": "string", "pattern": "^a?$", "minLength": 2}
    schema = {"type": "object", "properties": {"a": text}, "required": ["a"] * required, "additionalProperties": False}
    compiler = constrain.GrammarCompiler(BYTES)
    grammar = constrain.Grammar.from_json_schema(schema)
    if not required:
        assert constrain.Matcher(compiler.compile(grammar)).forced_bytes() == b"{"
        return
    with pytest.raises(SchemaError) as caught:
        compiler.compile(grammar)
    assert "pattern '^a?$' (at #/properties/a/pattern)" in str(caught.value)
    assert "minLength 2 (at #/properties/a/minLength)" in str(caught.value)


def test_errors_in_parts_that_can_be_left_out_do_not_make_it_unsatisfiable() -> None:
    for schema, _, _ in UNSATISFIABLE:
        if "$ref" not in str(schema):
            from_json_schema({"properties": {"a": schema}, "type": "object"})
            from_json_schema({"anyOf": [schema, {"type": "null"}]})


@pytest.mark.parametrize("wrap", [{"items": ...}, {"properties": {"a": ...}}, {"anyOf": [...]}, {"prefixItems": [...]}])
def test_deep_nesting(wrap: dict[str, Any]) -> None:
    schema: Any = {"type": "integer"}
    keyword, inside = next(iter(wrap.items()))
    for _ in range(10_000):
        if inside is ...:
            schema = {keyword: schema}
        else:
            schema = {keyword: [schema] if isinstance(inside, list) else {"a": schema}}
    refused = error(schema)
    assert "nested" in refused.reason
    assert len(str(refused)) < 1000


def test_deep_values() -> None:
    value: Any = 1
    for _ in range(300):
        value = {"a": [value]}
    from_json_schema({"const": value})


def test_nesting_that_is_deep_but_within_the_limit() -> None:
    schema: Any = {"type": "integer"}
    for _ in range(100):
        schema = {"type": "object", "properties": {"a": {"anyOf": [schema, {"type": "null"}]}}}
    from_json_schema(schema)
    from_json_schema(json.dumps(schema))


def test_alternatives_are_bounded() -> None:
    branches = [{"type": "array", "minItems": size, "maxItems": size + 400} for size in range(400)]
    with pytest.raises(LimitError, match="alternatives"):
        from_json_schema({"anyOf": branches, "$ref": "#/$defs/a", "$defs": {"a": {"anyOf": branches}}})


def test_conjunctions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    # After n keys, what must hold is a subset of the definitions that tells which of them were "a".
    monkeypatch.setattr(attempts, "MAX_CONJUNCTIONS", 1000)
    definitions: dict[str, Any] = {
        f"d{index}": {"properties": {name: {"$ref": f"#/$defs/d{index + 1}"} for name in "ab"}}
        for index in range(1, 16)
    }
    definitions["d16"] = {"properties": {"a": False}}
    definitions["both"] = {"$ref": "#/$defs/d0", "anyOf": [{"$ref": "#/$defs/d1"}]}
    definitions["d0"] = {"properties": {"a": {"$ref": "#/$defs/both"}, "b": {"$ref": "#/$defs/d0"}}}
    for max_work, most in ((100_000, 1000), (200_000, 2000)):
        with pytest.raises(LimitError, match=f"more than {most} combinations"):
            from_json_schema({"$ref": "#/$defs/d0", "$defs": definitions}, max_work=max_work)


# -- dicts that no JSON text could be -------------------------------------------------------------


def test_dicts_that_are_more_than_json() -> None:
    compiler = constrain.GrammarCompiler(constrain.Vocabulary([bytes((byte,)) for byte in range(256)]))
    itself: dict[str, Any] = {"type": "object", "properties": {}}
    itself["properties"]["again"] = itself
    nested: dict[str, Any] = {}
    for _ in range(20_000):
        nested = {"not": nested}
    for schema in (
        {"minimum": Decimal("0.1")},
        {"type": "string", "default": {1, 2}},
        {"type": "string", "$defs": {"deep": nested}},
        itself,
    ):
        first, second = (constrain.Grammar.from_json_schema(schema) for _ in range(2))
        assert first.key == second.key
        compiler.compile(first)


def test_separators_in_a_list() -> None:
    compiler = constrain.GrammarCompiler(constrain.Vocabulary([bytes((byte,)) for byte in range(256)]))
    grammar = constrain.Grammar.from_json_schema({"type": "object"}, separators=[", ", ": "])
    assert grammar.key == constrain.Grammar.from_json_schema({"type": "object"}, separators=(", ", ": ")).key
    compiler.compile(grammar)


def test_which_string_takes_too_long_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammar_tables, "_WORK_PER_CALL", 2_000)
    monkeypatch.setattr(loading, "_WORK_OF_A_LEXEME", 500)
    # No text is both, which is seen only when all that may be read of them was looked at.
    slow = {"type": "string", "pattern": "^[ab]*a[ab]{40}$", "allOf": [{"pattern": "^[ab]*b[ab]{40}$"}]}
    schema = constrain.Grammar.from_json_schema(
        {"type": "object", "properties": {"quick": {"type": "string"}, "slow": slow}}
    )
    compiler = constrain.GrammarCompiler(constrain.Vocabulary([bytes((byte,)) for byte in range(256)]))
    with pytest.raises(
        LimitError, match=r"a pattern \(of .*at #/properties/slow/pattern\).*takes too long to follow"
    ) as raised:
        compiler.compile(schema)
    assert raised.value.pointer == "#/properties/slow"


@pytest.mark.parametrize(
    "raised",
    [SchemaError("a reason", "#/a/b"), GrammarError("a reason", line=2, column=3), LimitError("a reason", "#/a")],
)
def test_errors_are_the_same_in_another_process(raised: Exception) -> None:
    for again in (pickle.loads(pickle.dumps(raised)), copy.copy(raised)):
        assert type(again) is type(raised)
        assert str(again) == str(raised)
        assert vars(again) == vars(raised)


def test_limits_have_the_pointer_that_they_name() -> None:
    schema = {"items": {"type": "array", "uniqueItems": True, "minItems": 10**6}}
    with pytest.raises(LimitError, match=r"^at #/items/uniqueItems: minItems") as raised:
        constrain.Grammar.from_json_schema(schema)
    assert raised.value.pointer == "#/items/uniqueItems"
    assert pickle.loads(pickle.dumps(raised.value)).pointer == raised.value.pointer
    assert LimitError("of time").pointer is None
