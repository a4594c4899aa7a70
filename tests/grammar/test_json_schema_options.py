"""Formats, options, warnings, limits, and what cannot be enforced."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from naive import NaiveRecognizer
from processor_time import processor_time

import constrain
from constrain.errors import ConstrainError, LimitError, SchemaError
from constrain.grammar.json_schema import from_json_schema
from constrain.grammar.json_schema.lexical.formats.patterns import FORMATS

VOCABULARY = constrain.Vocabulary([bytes((byte,)) for byte in range(256)])


def fits(schema: Any, text: str, **options: Any) -> bool:
    compiled = constrain.CompiledGrammar(constrain.Grammar.from_json_schema(schema, **options).ir, VOCABULARY)
    matcher = constrain.Matcher(compiled)
    return matcher.accept_bytes(text.encode()) and matcher.is_accepting()


EXAMPLES = {
    "date-time": (["2024-02-29T23:59:60Z", "1998-12-31T15:59:60.1-08:00"], ["2023-02-29T00:00:00Z", "2024-01-01"]),
    "date": (["2000-02-29", "2024-12-31"], ["1900-02-29", "2024-04-31", "2024-1-1"]),
    "time": (["23:59:60Z", "00:29:60+00:30", "12:00:00.5z"], ["23:59:60+01:00", "24:00:00Z", "12:00:00"]),
    "duration": (["P1Y2M3DT4H5M6S", "PT1M", "P2W"], ["P", "P1D2H", "PT", "P1YT", "P1Y2W"]),
    "email": (["a.b@c.org", '"a b"@c.org', "a@[127.0.0.1]"], ["a", "a..b@c.org", "a@b@c", ".a@b"]),
    "idn-email": (["é@ü.org"], ["é"]),
    "hostname": (["a-b.c", "xn--4gbwdl.xn--wgbh1c"], ["-a", "a_b", "ab--c", "a" * 64, ".".join(["a" * 60] * 5)]),
    "ipv4": (["127.0.0.1"], ["256.0.0.1", "01.2.3.4", "1.2.3"]),
    "ipv6": (["::1", "::ffff:1.2.3.4", "1:2:3:4:5:6:7:8"], ["1::2::3", "12345::", "1:2:3:4:5:6:7"]),
    "uri": (["http://a:b@c.d:80/e?f=g#h", "urn:x:y", "http://[::1]/"], ["a", "//b", "http://a b", "http://[::1"]),
    "uri-reference": (["../a", "#b", ""], ["a b", "\\\\x"]),
    "iri": (["http://é.org/ü?ö"], ["é"]),
    "iri-reference": (["é", "//é"], ["é é"]),
    "uri-template": (["http://a/{b}{?c,d*}{e:3}"], ["{a", "{a:0}", "}"]),
    "uuid": (["2eb8aa08-aa98-11ea-b4aa-73b441d16380"], ["2eb8aa08aa9811eab4aa73b441d16380"]),
    "json-pointer": (["", "/a~0b/~1"], ["a", "/~2", "#/a"]),
    "relative-json-pointer": (["0", "1/a", "2#"], ["01", "-1", "a", "1#/a"]),
    "regex": (
        ["^(a|b)+?$", "[a-z]{2,3}", "(?=a)\\d", "(?<year>\\d)", "((?<ab>x))|(?=(c))", "a|(?<n>a(b)+)+|\\k<n>{2,3}c"],
        ["(", "[z-a]", "a{3,2}", "a**", "\\a", "(?<n>", "(?<>a)", "(?<n>a)(?<n>b)", "(?<n>a)\\k<m>", "\\k<n>"],
    ),
}


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_formats(name: str) -> None:
    valid, invalid = EXAMPLES[name]
    schema = {"type": "string", "format": name}
    for text in valid:
        assert fits(schema, json.dumps(text)), text
        assert fits(schema, json.dumps(text, ensure_ascii=False)), text
    for text in invalid:
        assert not fits(schema, json.dumps(text)), text
        assert fits(schema, json.dumps(text), formats="annotate"), text
    assert fits({"format": name}, "5")


def test_unknown_formats_are_annotations() -> None:
    grammar = constrain.Grammar.from_json_schema({"type": "string", "format": "color"})
    assert grammar.warnings == ("at #/format: the format 'color' is unknown: it has no effect",)


def test_slips_of_the_pen_are_asked_about() -> None:
    given = {"propertes": {"a": {}}, "minimun": 3, "additionalproperties": False, "x-order": 1, "schema": {}}
    warnings = constrain.Grammar.from_json_schema(given).warnings
    assert [each.partition(" has no effect")[2] for each in warnings] == [
        "; did you mean 'properties'?",
        "; did you mean 'minimum'?",
        "; did you mean 'additionalProperties'?",
        "",
        "; if that is the schema, give it alone",
    ]
    assert len(constrain.Grammar.from_json_schema({"maxLength" * 1000: 1}).warnings) == 1


def test_a_response_format_is_told_from_a_schema() -> None:
    given = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "null"}}}
    with pytest.raises(constrain.SchemaError, match=r"^at #/type: a response_format is no schema"):
        constrain.Grammar.from_json_schema(given)


NOT_ENFORCED = [
    ({"uniqueItems": True, "items": {"contains": {"const": 1}}}, "#/uniqueItems"),
    ({"not": {"uniqueItems": True}, "type": "array", "prefixItems": [{"type": "string"}]}, "#/not/uniqueItems"),
    ({"type": "string", "format": "idn-hostname", "minLength": 3}, "#/format"),
    ({"type": "number", "not": {"multipleOf": 604800.7}}, "#/not/multipleOf"),
    ({"type": "array", "uniqueItems": True, "items": {"type": "number", "multipleOf": 604800.7}}, "#/uniqueItems"),
    ({"not": {"format": "idn-hostname"}}, "#/not/format"),
]


@pytest.mark.parametrize(("schema", "pointer"), NOT_ENFORCED)
def test_what_cannot_be_enforced_is_refused_or_named(schema: Any, pointer: str) -> None:
    with pytest.raises(SchemaError, match="support") as caught:
        from_json_schema(schema)
    assert caught.value.pointer == pointer
    (warning,) = from_json_schema(schema, lenient=True).warnings
    assert warning.startswith(f"at {pointer}: ")
    assert warning.endswith("it is not enforced")


UNIQUE = [
    ({"items": {"enum": ["a", "b", 1, 1.0, None]}}, 3),
    ({"items": {"type": "boolean"}}, 3),
    ({"prefixItems": [{"enum": ["a", "b"]}, {"enum": ["b", "c"]}], "items": False}, 2),
    ({"items": {"type": "integer", "minimum": 0, "exclusiveMaximum": 3}}, 4),
    ({"items": {"enum": ["a", "b", "c"]}, "contains": {"const": "b"}}, 3),
]


@pytest.mark.parametrize(("schema", "most"), UNIQUE)
def test_unique_items_out_of_few_values(schema: Any, most: int) -> None:
    import jsonschema

    schema = {"type": "array", "uniqueItems": True, **schema}
    recognizer = NaiveRecognizer(from_json_schema(schema))
    validator = jsonschema.Draft202012Validator(schema)
    for size in range(most + 2):
        for items in itertools.product(["a", "b", "c", 1, 2, None, True][:6], repeat=size):
            assert recognizer.accepts(json.dumps(items).encode()) == validator.is_valid(list(items)), items


@pytest.mark.parametrize("divisor", ["1", "0.01", "3", "2.5", "7", "12", "1e-8", "0.3", "64"])
def test_multiples_are_exact(divisor: str) -> None:
    from decimal import Decimal

    compiled = constrain.CompiledGrammar(
        constrain.Grammar.from_json_schema(f'{{"type": "number", "multipleOf": {divisor}}}').ir, VOCABULARY
    )
    for count in range(400):
        for unit in ("1", "0.1", "0.005", "100"):
            number = -Decimal(count) * Decimal(unit)
            matcher = constrain.Matcher(compiled)
            accepted = matcher.accept_bytes(format(number, "f").encode()) and matcher.is_accepting()
            assert accepted == (number % Decimal(divisor) == 0), number


ORDER = {
    "properties": {"a": {"type": "integer"}, "b": {"type": "string"}, "c": {}},
    "required": ["a"],
    "additionalProperties": {"type": "null"},
}


def test_any_order_of_properties() -> None:
    recognizer = NaiveRecognizer(from_json_schema(ORDER, property_order="any"))
    in_schema_order = NaiveRecognizer(from_json_schema(ORDER))
    members = {"a": 1, "b": "x", "c": [], "d": None}
    for size in range(5):
        for names in itertools.permutations(members, size):
            text = json.dumps({name: members[name] for name in names}).encode()
            assert recognizer.accepts(text) == ("a" in names)
            assert in_schema_order.accepts(text) == ("a" in names and list(names) == sorted(names))
    assert not recognizer.accepts(b'{"a":1,"b":"x","a":1}')


def test_limits_bound_the_time() -> None:
    schema: Any = {"properties": {"x": {"type": "integer"}}}
    for level in range(12):
        schema = {"oneOf": [{"properties": {f"a{level}": schema}}, {"properties": {f"b{level}": schema}}, schema]}
    with processor_time() as spent, pytest.raises(LimitError):
        from_json_schema(schema)
    assert spent.seconds < 10
    with pytest.raises(LimitError, match="max_work"):
        from_json_schema(schema, max_work=100)


@pytest.mark.parametrize(
    "options", [{"property_order": "x"}, {"formats": True}, {"max_work": 0}, {"max_work": True}, {"max_work": 1.5}]
)
def test_options_that_are_wrong(options: dict[str, Any]) -> None:
    with pytest.raises(ConstrainError, match=next(iter(options))):
        from_json_schema({}, **options)


@pytest.mark.parametrize(
    ("schema", "pointer", "words"),
    [
        ({"allOf": [{"type": "string"}, {"type": "integer"}]}, "#/allOf/1/type", ["#/allOf/0", "number", "string"]),
        ({"type": "string", "not": {"type": "string"}}, "#/not", ["excluded"]),
        ({"required": ["a", "b"], "maxProperties": 1, "type": "object"}, "#/maxProperties", ["maxProperties 1"]),
        ({"minProperties": 2, "maxProperties": 1, "type": "object"}, "#/minProperties", ["#/maxProperties"]),
        ({"type": "array", "contains": {}, "minContains": 2, "maxContains": 1}, "#/maxContains", ["minContains 2"]),
        ({"enum": ["a"], "pattern": "b.", "type": "string"}, "#/enum", ["pattern 'b.'", "#/pattern"]),
        ({"enum": [3, 5], "multipleOf": 2, "type": "number"}, "#/enum", ["multiple of 2", "#/multipleOf"]),
        ({"oneOf": [{"const": 1}, {"const": 1}]}, "#/oneOf", ["oneOf"]),
        ({"type": "object", "required": ["x"], "propertyNames": {"maxLength": 0}}, "#/propertyNames", ["'x'"]),
    ],
)  # fmt: skip
def test_a_contradiction_names_its_parts(schema: Any, pointer: str, words: list[str]) -> None:
    with pytest.raises(SchemaError, match="nothing is valid") as caught:
        from_json_schema(schema)
    assert caught.value.pointer == pointer
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"allOf": []}, "#/allOf"),
        ({"oneOf": {}}, "#/oneOf"),
        ({"not": 5}, "#/not"),
        ({"if": "x"}, "#/if"),
        ({"patternProperties": []}, "#/patternProperties"),
        ({"patternProperties": {"(": {}}}, "#/patternProperties/("),
        ({"propertyNames": 1}, "#/propertyNames"),
        ({"minProperties": -1}, "#/minProperties"),
        ({"maxProperties": "1"}, "#/maxProperties"),
        ({"multipleOf": 0}, "#/multipleOf"),
        ({"multipleOf": "1"}, "#/multipleOf"),
        ({"uniqueItems": 1}, "#/uniqueItems"),
        ({"contains": None}, "#/contains"),
        ({"maxContains": -1}, "#/maxContains"),
        ({"format": 5}, "#/format"),
        ({"nullable": 1}, "#/nullable"),
        ({"dependentRequired": {"a": "b"}}, "#/dependentRequired/a"),
        ({"dependentSchemas": {"a": []}}, "#/dependentSchemas/a"),
        ({"dependencies": {"a": "b"}}, "#/dependencies/a"),
        ({"unevaluatedProperties": 1}, "#/unevaluatedProperties"),
        ({"unevaluatedItems": []}, "#/unevaluatedItems"),
    ],
)
def test_keywords_that_hold_what_they_must_not(schema: Any, pointer: str) -> None:
    with pytest.raises(SchemaError) as caught:
        from_json_schema(schema)
    assert caught.value.pointer == pointer


def test_nullable() -> None:
    assert fits({"type": "string", "nullable": True}, "null")
    assert not fits({"type": "string", "nullable": False}, "null")
    assert not fits({"$schema": "http://json-schema.org/draft-07/schema#", "type": "string", "nullable": True}, "null")


@pytest.mark.parametrize(
    ("schema", "limit"),
    [
        ({"patternProperties": {f"{index}": {"minimum": index} for index in range(40)}}, "classes of keys"),
        ({"type": "array", "contains": {"const": 1}, "minContains": 10**9}, "states"),
        ({"not": {"prefixItems": [{"const": index} for index in range(301)]}}, "items"),
        ({"dependentRequired": {f"a{index}": [f"b{index}"] for index in range(30)}}, "max_work"),
        (
            {
                "properties": {f"p{index}": {} for index in range(300)},
                "patternProperties": {f"^x{index}": {} for index in range(200)},
            },
            "pairs",
        ),
        (
            {
                "patternProperties": {f"^a{{{index}}}.*[xyz]{{3}}": {"type": "integer"} for index in range(60)},
                "dependentSchemas": {
                    f"k{index}": {"properties": {f"p{index}": {"const": 1}}, "required": [f"p{index}"]}
                    for index in range(60)
                },
            },
            "max_work",
        ),
    ],
)
def test_large_schemas_end_soon(schema: Any, limit: str) -> None:
    with processor_time() as spent, pytest.raises(LimitError, match=limit):
        from_json_schema(schema)
    assert spent.seconds < 3


def test_indentation_and_separators_are_those_of_json_dumps() -> None:
    value = {"a": [1, {"b": []}, [2]], "c": {}, "d": "x"}
    for indent in (0, 1, 4):
        text = json.dumps(value, indent=indent)
        assert fits({}, text, indent=indent)
        assert not fits({}, text, indent=indent + 1)
        assert not fits({}, text.replace("[]", "[ ]"), indent=indent)
        assert not fits({}, json.dumps(value), indent=indent)
    assert fits({}, json.dumps(value), separators=(", ", ": "))
    assert not fits({}, json.dumps(value, separators=(",", ":")), separators=(", ", ": "))


@pytest.mark.parametrize(
    "options",
    [
        {"indent": -1},
        {"indent": True},
        {"indent": 2, "whitespace": "compact"},
        {"separators": (",",)},
        {"separators": (";", ":")},
    ],
)
def test_white_space_options_that_are_wrong(options: dict[str, Any]) -> None:
    with pytest.raises(ConstrainError, match=next(iter(options))):
        from_json_schema({}, **options)


def test_a_discriminator_is_a_hint_that_needs_no_warning() -> None:
    """OpenAPI has it, and pydantic writes it beside ``oneOf``; it makes nothing invalid."""
    way = {"type": "object", "properties": {"k": {"const": "a"}}, "required": ["k"]}
    schema = {"oneOf": [way], "discriminator": {"propertyName": "k", "mapping": {"a": "#/oneOf/0"}}}
    grammar = constrain.Grammar.from_json_schema(schema)
    assert grammar.warnings == ()
    assert grammar.ir == constrain.Grammar.from_json_schema({"oneOf": [way]}).ir
