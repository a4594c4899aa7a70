"""What each keyword lets through, compared with the jsonschema package and with what is written here."""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import Any

import jsonschema
import pytest
from naive import NaiveRecognizer

from constrain.errors import ConstrainError
from constrain.grammar.json_schema import from_json_schema

D4 = "http://json-schema.org/draft-04/schema#"
D7 = "http://json-schema.org/draft-07/schema#"
D2019 = "https://json-schema.org/draft/2019-09/schema"
D2020 = "https://json-schema.org/draft/2020-12/schema"

POINT = {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}, "required": ["x"]}
TREE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"value": {}, "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
            "required": ["value"],
            "additionalProperties": False,
        }
    },
}

# schema, instances that are valid, instances that are not; all in an order of keys that the schema allows
CASES: list[tuple[Any, list[Any], list[Any]]] = [
    (True, [None, 1, "a", [1, {"a": [None]}], {"a": {"b": 1}}], []),
    ({}, [None, -1.5e-8, "\n", [], {}], []),
    ({"type": "null"}, [None], [0, False, ""]),
    ({"type": "boolean"}, [True, False], [0, 1, "true"]),
    ({"type": "integer"}, [0, -3, 12345678901234567890, 2.0, 1e16], [0.5, "1", None, 1e-7]),
    ({"type": "integer", "$schema": D4}, [0, -3], [0.5]),
    ({"type": "number"}, [0, -0.5, 1e300, 1e-300], ["1", True]),
    ({"type": ["string", "null"]}, ["", None], [1, []]),
    ({"type": ["integer", "number"]}, [1, 1.5], ["a"]),
    ({"type": []} | {"type": ["integer"]}, [3], [3.5]),
    # numbers
    ({"minimum": 3}, [3, 3.5, 1e17, "a", None, [1]], [2, 2.999, -5, 1e-7]),
    ({"type": "integer", "minimum": -2, "maximum": 11}, [-2, -1, 0, 9, 10, 11, 3.0], [-3, 12, 100, 1e16]),
    ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, [0.5, 1e-7], [0, 1, -0.0, 1.5]),
    ({"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 2}, [1], [0, 2]),
    ({"minimum": 1, "exclusiveMinimum": 1}, [2], [1, 0]),
    ({"$schema": D4, "type": "number", "minimum": 0, "exclusiveMinimum": True}, [1, 0.1], [0, -1]),
    ({"$schema": D4, "type": "number", "maximum": 0.1, "exclusiveMaximum": False}, [0.1], [0.2]),
    ({"type": "number", "minimum": 0.1, "maximum": 0.3}, [0.1, 0.2, 0.3], [0.05, 0.31, 1]),
    # strings
    ({"type": "string", "minLength": 2, "maxLength": 3}, ["ab", "äöü", "\U0001f600\U0001f600", '""'], ["a", "abcd"]),
    ({"minLength": 1}, ["a", 5, None, []], [""]),
    ({"maxLength": 0}, ["", 5], ["a"]),
    ({"type": "string", "pattern": "^a+$"}, ["a", "aaa"], ["", "b", "ab", "ba"]),
    ({"type": "string", "pattern": "b"}, ["b", "abc"], ["", "a"]),
    ({"type": "string", "pattern": "^[a-c]*$", "minLength": 2, "maxLength": 3}, ["ab", "cba"], ["a", "abca", "xy"]),
    ({"type": "string", "pattern": "^\\d\\\\\"$"}, ['1\\"'], ["1", '1"']),
    ({"type": "integer", "minLength": 3, "pattern": "x"}, [5], ["xxx"]),
    # enum and const
    ({"enum": ["a", "ab", "", "\n\"\\é"]}, ["a", "ab", "", "\n\"\\é"], ["b", "abc", None]),
    ({"enum": [1, 2.5, True, None, "1"]}, [1, 1.0, 2.5, True, None, "1"], [2, False, "true", 0]),
    ({"enum": [0]}, [0, -0.0], [False, None]),
    ({"enum": [1, "a", None], "type": "string"}, ["a"], [1, None]),
    ({"enum": [1, 2, 3.5], "type": "integer", "minimum": 2}, [2], [1, 3.5]),
    ({"enum": ["a", "abc", "abcde"], "minLength": 2, "maxLength": 4}, ["abc"], ["a", "abcde"]),
    ({"enum": ["a1", "b2"], "pattern": "2"}, ["b2"], ["a1"]),
    ({"enum": [1, 2, 3], "const": 2}, [2], [1, 3]),
    ({"const": {"a": 1, "b": [1, {"c": None}]}}, [{"a": 1.0, "b": [1, {"c": None}]}],
     [{"a": 1}, {}, {"a": 1, "b": []}]),
    ({"const": []}, [[]], [[1], {}]),
    ({"const": {}}, [{}], [{"a": 1}, []]),
    ({"const": 1e-7}, [1e-7], [1e-6, 0]),
    ({"const": 1e20}, [1e20, 10**20], [10**21]),
    ({"enum": [[1], {"a": 1}], "items": {"maximum": 0}}, [{"a": 1}], [[1]]),
    ({"enum": [{"a": 1}, {"b": 1}], "required": ["a"]}, [{"a": 1}], [{"b": 1}]),
    ({"type": "string", "$schema": D4, "const": 5}, ["a"], [5]),
    # arrays
    ({"type": "array"}, [[], [1], [[], "a"]], [{}]),
    ({"type": "array", "items": {"type": "integer"}}, [[], [1], [1, 2, 3]], [["a"], [1, "a"]]),
    ({"type": "array", "items": False}, [[]], [[1]]),
    ({"type": "array", "items": {"type": "null"}, "minItems": 2}, [[None] * 2, [None] * 5], [[], [None]]),
    ({"type": "array", "items": {"type": "null"}, "maxItems": 2}, [[], [None] * 2], [[None] * 3]),
    ({"type": "array", "items": {"type": "null"}, "minItems": 1, "maxItems": 1}, [[None]], [[], [None] * 2]),
    ({"type": "array", "items": {"type": "null"}, "minItems": 2, "maxItems": 3}, [[None] * 2, [None] * 3], [[None]]),
    ({"type": "array", "maxItems": 0}, [[]], [[1]]),
    ({"prefixItems": [{"type": "integer"}, {"type": "string"}]}, [[], [1], [1, "a"], [1, "a", None]], [["a"], [1, 2]]),
    ({"prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False}, [[], [1], [1, "a"]], [[1, "a", 1]]),
    ({"prefixItems": [{"const": 1}], "items": {"const": 2}, "minItems": 2, "maxItems": 3}, [[1, 2], [1, 2, 2]], [[1]]),
    ({"prefixItems": [{"const": 1}, {"const": 2}], "minItems": 2}, [[1, 2], [1, 2, 3]], [[], [1]]),
    ({"prefixItems": [{"const": 1}, {"const": 2}], "maxItems": 1}, [[], [1]], [[1, 2], [2]]),
    ({"prefixItems": [{"const": 1}, False]}, [[], [1]], [[1, 2], [2]]),
    ({"$schema": D7, "items": [{"const": 1}], "additionalItems": {"const": 2}}, [[], [1], [1, 2, 2]], [[2], [1, 1]]),
    ({"$schema": D7, "items": [{"const": 1}], "additionalItems": False}, [[], [1]], [[1, 1]]),
    ({"$schema": D7, "items": {"const": 1}, "additionalItems": False}, [[], [1, 1]], [[2]]),
    ({"$schema": D7, "type": "array", "prefixItems": [False]}, [[1]], [1]),
    # objects
    ({"type": "object"}, [{}, {"a": 1, "": {"b": []}}], [[]]),
    (POINT, [{"x": 1}, {"x": 1, "y": 2}, {"x": 1, "z": "any"}, {"x": 1, "y": 1, "z": 1, "xx": 2}], [{}, {"y": 1}]),
    ({**POINT, "additionalProperties": False}, [{"x": 1}, {"x": 1, "y": 2}], [{"x": 1, "z": 1}, {"x": "a"}]),
    ({**POINT, "additionalProperties": {"type": "null"}}, [{"x": 1, "z": None}], [{"x": 1, "z": 1}, {"x": None}]),
    ({"properties": {"a": {}, "b": {}, "c": {}}, "additionalProperties": False},
     [{}, {"a": 1}, {"b": 1}, {"a": 1, "c": 1},
      {"b": 1, "c": 1}, {"a": 1, "b": 1, "c": 1}], [{"d": 1}]),
    ({"properties": {"a": {}, "b": {}, "c": {}}, "required": ["b"], "additionalProperties": False},
     [{"b": 1}, {"a": 1, "b": 1}, {"b": 1, "c": 1}, {"a": 1, "b": 1, "c": 1}], [{}, {"a": 1}, {"a": 1, "c": 1}]),
    ({"properties": {"a": {}}, "required": ["r", "s"]}, [{"a": 1, "r": 1, "s": 2}, {"r": 1, "s": 2, "t": 1}],
     [{"a": 1}]),
    ({"required": ["r"], "additionalProperties": {"type": "integer"}}, [{"r": 1}, {"r": 1, "t": 1}],
     [{"r": "a"}, {"t": 1}]),
    ({"properties": {"a": False}}, [{}, {"b": 1}], [{"a": 1}, {"b": 1, "a": 1}]),
    ({"properties": {"a": {"type": "string", "enum": [1]}}, "additionalProperties": False}, [{}], [{"a": 1}]),
    ({"properties": {"é\"/\\": {"const": 1}}, "additionalProperties": False}, [{"é\"/\\": 1}], [{"é": 1}]),
    ({"properties": {"": {"const": 1}}}, [{"": 1}, {"a": 2}], [{"": 2}]),
    ({"additionalProperties": False}, [{}, 1, "a"], [{"a": 1}]),
    ({"properties": {"a": {"const": 1}}, "type": ["object", "integer"]}, [{"a": 1}, {"b": 1}, 5], [{"a": 2}, "x"]),
    # anyOf
    ({"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 1}]}, [1, "a", ""], ["ab", None]),
    ({"anyOf": [False, {"const": 1}]}, [1], [2]),
    ({"anyOf": [True, {"const": 1}]}, [1, 2, "a"], []),
    ({"type": "string", "anyOf": [{"minLength": 3}, {"const": "a"}]}, ["abc", "a"], ["ab", 1]),
    ({"minimum": 2, "anyOf": [{"maximum": 4, "type": "integer"}, {"const": 9}]}, [2, 4, 9], [1, 5, 3.5, "a"]),
    ({**POINT, "anyOf": [{"required": ["y"]}, {"properties": {"z": {"const": 1}}, "required": ["z"]}]},
     [{"x": 1, "y": 1}, {"x": 1, "z": 1}, {"x": 1, "y": 1, "z": 2}, {"x": 1, "y": 1, "z": 1}],
     [{"x": 1}, {"x": 1, "z": 2}]),
    ({"type": "array", "items": {"type": "integer"}, "anyOf": [{"minItems": 2}, {"prefixItems": [{"const": 7}]}]},
     [[1, 2], [7], []], [[1], ["a", "b"], [7, "a"]]),
    ({"anyOf": [{"anyOf": [{"const": 1}, {"const": 2}]}, {"const": 3}]}, [1, 2, 3], [4]),
    ({"type": "object", "additionalProperties": {"type": "integer"}, "anyOf": [{"properties": {"a": {"minimum": 5}}}]},
     [{"a": 5}, {"b": 1}], [{"a": 4}, {"a": 5.5}, {"b": "x"}]),
    # references
    (TREE, [{"value": 1}, {"value": 1, "children": [{"value": 2, "children": []}]}],
     [{"children": []}, {"value": 1, "children": [1]}]),
    ({"properties": {"next": {"$ref": "#"}}, "additionalProperties": False}, [{}, {"next": {"next": {}}}],
     [{"next": {"x": 1}}]),
    ({"$defs": {"a/b~c %": {"const": 1}}, "$ref": "#/$defs/a~1b~0c%20%25"}, [1], [2]),
    ({"definitions": {"n": {"type": "integer"}}, "items": {"$ref": "#/definitions/n"}}, [[1], 5], [["a"]]),
    ({"properties": {"a": {"type": "null"}, "b": {"$ref": "#/properties/a"}}}, [{"a": None, "b": None}], [{"b": 1}]),
    ({"prefixItems": [{"const": 1}, {"$ref": "#/prefixItems/0"}]}, [[1, 1]], [[1, 2]]),
    ({"$defs": {"t": True, "f": False}, "properties": {"a": {"$ref": "#/$defs/t"}, "b": {"$ref": "#/$defs/f"}}},
     [{"a": 1}, {}], [{"b": 1}]),
    ({"$schema": D7, "$ref": "#/definitions/a", "type": "string", "definitions": {"a": {"type": "integer"}}}, [1],
     ["a"]),
    ({"$schema": D2019, "$ref": "#/$defs/a", "minimum": 5, "$defs": {"a": {"type": "integer"}}}, [5], [4, 5.5, "a"]),
    ({"$ref": "#/$defs/a", "required": ["b"], "$defs": {"a": {"properties": {"a": {}, "b": {"const": 1}}}}},
     [{"a": 1, "b": 1}, {"b": 1}], [{"a": 1}, {"b": 2}]),
    ({"$ref": "#/$defs/a", "description": "d", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"const": 1}}}, [1], [2]),
    ({"$id": "http://x.org/s.json", "$ref": "http://x.org/s.json#/$defs/a", "$defs": {"a": {"const": 1}}}, [1], [2]),
    ({"$id": "http://x.org/s.json", "items": {"$ref": "s.json"}, "type": "array"}, [[[]]], [[1]]),
    ({"properties": {"a": {"$id": "http://x.org/a", "$defs": {"n": {"const": 1}},
     "properties": {"b": {"$ref": "#/$defs/n"}}}},
      "$defs": {"n": {"const": 2}}}, [{"a": {"b": 1}}], [{"a": {"b": 2}}]),
    ({"$schema": D4, "definitions": {"a": {"id": "#foo", "type": "integer"}},
     "items": {"$ref": "#/definitions/a"}}, [[1]], [["a"]]),
    # annotations
    ({"title": "t", "description": "d", "default": 5, "examples": [1], "deprecated": True, "$comment": "c"},
     [1, "a"], []),
]  # fmt: skip


def expected(schema: Any, instance: Any) -> bool:
    validator = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    return bool(validator(schema).is_valid(instance))


def dumps(instance: Any) -> bytes:
    return json.dumps(instance, ensure_ascii=False).encode()


@pytest.mark.parametrize(("schema", "valid", "invalid"), CASES, ids=[json.dumps(case[0])[:70] for case in CASES])
def test_keywords(schema: Any, valid: list[Any], invalid: list[Any]) -> None:
    recognizer = NaiveRecognizer(from_json_schema(schema))
    for instance in valid:
        assert expected(schema, instance), f"{instance} is not valid: the case is wrong"
        assert recognizer.accepts(dumps(instance)), instance
        assert recognizer.accepts(json.dumps(instance).encode()), instance
        assert recognizer.accepts(json.dumps(instance, indent=2).encode()), instance
    for instance in invalid:
        assert not expected(schema, instance), f"{instance} is valid: the case is wrong"
        assert not recognizer.accepts(dumps(instance)), instance


def test_text_and_dict_mean_the_same() -> None:
    for schema, _, _ in CASES:
        from_text = from_json_schema(json.dumps(schema))
        assert from_text == from_json_schema(schema)
        assert from_text == from_json_schema(json.dumps(schema).encode())


def accepts(schema: Any, text: str, **options: Any) -> bool:
    return NaiveRecognizer(from_json_schema(schema, **options)).accepts(text.encode())


@pytest.mark.parametrize("draft", [D7, D2019, D2020, None])
def test_dependencies_count_in_all_drafts(draft: str | None) -> None:
    """As in the optional tests of the official suite; the jsonschema package asserts them up to draft 7."""
    schema: dict[str, Any] = {"dependencies": {"a": ["b"], "c": {"minProperties": 2}, "d": False}}
    if draft is not None:
        schema["$schema"] = draft
    for text in ("{}", '{"b":1}', '{"a":1,"b":2}', '{"c":1,"e":1}', "5"):
        assert accepts(schema, text), text
    for text in ('{"a":1}', '{"c":1}', '{"d":1}', '{"a":1,"c":2}'):
        assert not accepts(schema, text), text


# -- white space ---------------------------------------------------------------------------------

NESTED = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}, "b": {}}}


@pytest.mark.parametrize(
    "text",
    [
        '{"a":[1,2],"b":{}}',
        '{ "a" : [ 1 , 2 ] , "b" : { } }',
        '{\n\t"a"\r\n:[\n]\n}',
        "{ }",
        '{"a":[ ]}',
        '{"b" :\tnull }',
    ],
)
def test_flexible_white_space(text: str) -> None:
    assert accepts(NESTED, text, max_whitespace=10)
    assert accepts(NESTED, text, whitespace="compact") == (not any(character in text for character in " \t\r\n"))


@pytest.mark.parametrize("text", [" {}", "{} ", "\n{}", '{"a":[1 1]}', '{"a":[1\xa0]}', '{"a":[1,\f2]}'])
def test_white_space_that_is_never_allowed(text: str) -> None:
    assert not accepts(NESTED, text)


def test_white_space_is_bounded_in_every_place() -> None:
    text = '{@"a"@:@[@1@,@2@]@,@"b"@:@null@}'
    recognizer = NaiveRecognizer(from_json_schema(NESTED, max_whitespace=3))
    assert recognizer.accepts(text.replace("@", " \n\t").encode())
    places = text.split("@")
    for place in range(1, len(places)):
        changed = "".join(places[:place]) + "    " + "".join(places[place:])
        assert not recognizer.accepts(changed.encode()), changed
    assert accepts(NESTED, '{"a":[]}', max_whitespace=0)
    assert not accepts(NESTED, '{"a": []}', max_whitespace=0)


GAPS = [
    "",
    " ",
    "  ",
    *(end + indent for end in ("\n", "\r\n") for indent in ("", " ", 96 * " ", "\t", 96 * "\t", "\t ")),
]
NO_GAPS = ["   ", "\t", "\r", " \n", "\n\n", "\r\r\n", "\n" + 97 * " ", "\r\n" + 97 * "\t", " \t", "\n \n", "\n \r"]


def test_the_usual_white_space_in_every_place() -> None:
    recognizer = NaiveRecognizer(from_json_schema(NESTED))
    gaps, marks = '{@"a":@[@1,@2@],@"b":@null@}', '{"a"@:[1@,2]@,"b"@:null}'
    for text, good in ((gaps, GAPS), (marks, ["", " "])):
        places = text.split("@")
        for place in range(1, len(places)):
            for gap in (*GAPS, *NO_GAPS):
                changed = "".join(places[:place]) + gap + "".join(places[place:])
                assert recognizer.accepts(changed.encode()) == (gap in good), changed
    for gap in GAPS:
        assert recognizer.accepts(gaps.replace("@", gap).encode())
    assert recognizer.accepts(b'{ "a" : [ 1 , 2 ] , "b" : { } }')


@pytest.mark.parametrize(
    "style",
    [
        {},
        {"separators": (",", ":")},
        {"separators": (" , ", " : ")},
        *({"indent": indent} for indent in (0, 1, 2, 4, "\t", "   ")),
    ],
)
def test_what_programs_write_is_usual(style: dict[str, Any]) -> None:
    deep: Any = [{}, []]
    for _ in range(22):
        deep = {"a": [1, 2], "b": deep}
    assert accepts(NESTED, json.dumps(deep, **style))


@pytest.mark.parametrize(
    "options",
    [
        {"whitespace": "none"},
        {"whitespace": 2},
        {"max_whitespace": -1},
        {"max_whitespace": 1.5},
        {"max_whitespace": True},
        # Where there is no choice of white space, it has no effect.
        {"max_whitespace": 3, "whitespace": "compact"},
        {"max_whitespace": 3, "indent": 2},
        {"max_whitespace": 3, "separators": (", ", ": ")},
    ],
)
def test_options_that_are_wrong(options: dict[str, Any]) -> None:
    with pytest.raises(ConstrainError, match=next(iter(options))):
        from_json_schema({}, **options)


# -- spellings -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "integer"}, ["1", "-0", "1.0", "1.00", "1e16", "1.5E+20"], ["01", "+1", "1.", "1.5", ".5", "1.5e0"]),
        ({"$schema": D4, "type": "integer"}, ["1", "-1"], ["1.0", "1e16"]),
        ({"type": "number"}, ["1e5", "1E-05", "-0.0", "0e0"], ["1e", "00", "-", "1.e5", "Infinity", "NaN"]),
        ({"minimum": 0, "type": "number"}, ["0", "-0", "-0.0", "5e-05", "0.00005"], ["-0.1"]),
        ({"const": "aé"}, ['"aé"', '"\\u0061\\u00E9"', '"a\\u00e9"'], ['"A\\u00e9"', '"a\\u00ea"']),
        ({"const": "/"}, ['"/"', '"\\/"', '"\\u002F"'], ['"//"']),
        ({"const": "\U0001f600"}, ['"\U0001f600"', '"\\uD83D\\ude00"'], ['"\\ud83d"', '"\\ude00\\ud83d"']),
        ({"type": "string", "maxLength": 1}, ['"\\ud83d\\ude00"', '"\\n"'], ['"\\ud83d"', '"\\u0061b"']),
        ({"type": "string", "pattern": "^.$"}, ['"\\ud83d\\ude00"', '"\\u0041"'], ['"\\n"', '"\\u000A"']),
        ({"type": "string"}, ['""', '"\x7f"'], ['"\x00"', '"\n"', '"\\q"', "'a'", '"']),
        ({"const": 12}, ["12", "12.0", "12.000"], ["012", "12.5", "1.2e1"]),
        ({"type": "boolean"}, ["true", "false"], ["True", "t", ""]),
    ],
)
def test_spellings(schema: Any, good: list[str], bad: list[str]) -> None:
    recognizer = NaiveRecognizer(from_json_schema(schema))
    for text in good:
        assert recognizer.accepts(text.encode()), text
    for text in bad:
        assert not recognizer.accepts(text.encode()), text


def test_a_declared_name_is_not_additional_however_it_is_spelled() -> None:
    schema = {"properties": {"a": {"const": 1}, "bé": False}, "required": ["r"]}
    recognizer = NaiveRecognizer(from_json_schema(schema))
    assert recognizer.accepts(b'{"\\u0061":1,"r":2,"c":3}')
    for text in (
        '{"r":2,"\\u0061":2}',
        '{"r":2,"a":1}',
        '{"r":1,"b\\u00E9":2}',
        '{"r":1,"\\u0072":2}',
        '{"r":1,"r":2}',
    ):
        assert not recognizer.accepts(text.encode()), text


def test_properties_come_in_the_order_of_the_schema_and_once() -> None:
    schema = {"properties": {"b": {}, "a": {}}, "required": ["z", "a"]}
    assert accepts(schema, '{"b":1,"a":1,"z":1,"other":1}')
    for text in ('{"a":1,"b":1,"z":1}', '{"a":1,"a":1,"z":1}', '{"z":1,"a":1}', '{"a":1,"other":1,"z":1}'):
        assert not accepts(schema, text), text


def test_the_exact_value_of_a_number_in_a_text_counts() -> None:
    schema = '{"type": "number", "minimum": 0.1000000000000000055, "maximum": 12345678901234567890.5}'
    assert not accepts(schema, "0.1")
    assert accepts(schema, "0.100000000000000006")
    assert accepts(schema, "12345678901234567890.5")
    assert not accepts(schema, "12345678901234567890.6")


def test_a_repeated_key_of_the_schema_text_counts_with_its_last_value() -> None:
    assert accepts('{"type": "string", "type": "null"}', "null")


# -- what the result says --------------------------------------------------------------------------


def test_warnings_name_what_has_no_effect() -> None:
    schema = {"$schema": D4, "x-foo": 1, "properties": {"a b": {"const": 1}}, "$defs": {"unused": {"x-bar": 1}}}
    warnings = from_json_schema(schema).warnings
    assert len(warnings) == 2
    assert "#/x-foo" in warnings[0]
    assert "#/properties/a%20b/const" in warnings[1]
    assert "draft 4" in warnings[1]


def test_unknown_drafts_and_content_keywords_are_warned_of() -> None:
    ir = from_json_schema({"$schema": "http://example.org/mine", "contentEncoding": "base64"})
    assert [warning.partition(": ")[0] for warning in ir.warnings] == ["at #/$schema", "at #/contentEncoding"]


def test_parts_that_nothing_refers_to_cost_nothing_and_are_not_checked() -> None:
    used = {"type": "string"}
    assert from_json_schema({**used, "$defs": {"a": {"not": {}}}}) == from_json_schema(used)


def test_nonterminals_are_named_by_pointer() -> None:
    names = from_json_schema(NESTED).nonterminal_names
    assert "#/properties/a" in names
    assert names[0] == "#"


def test_make_error_points_to_the_schema() -> None:
    error = from_json_schema({}).make_error("nothing", "#/properties/a")
    assert error.args == ("at #/properties/a: nothing",)


def test_a_python_schema_that_holds_itself_is_recursive() -> None:
    schema: dict[str, Any] = {"type": "object", "additionalProperties": False}
    schema["properties"] = {"a": schema, "b": schema}
    assert accepts(schema, '{"a":{"b":{}},"b":{}}')
    assert not accepts(schema, '{"a":{"c":{}}}')


def test_any_kind_of_dict_will_do() -> None:
    schema = OrderedDict({"type": "object", "properties": OrderedDict(a=OrderedDict(const=1)), "required": ("a",)})
    assert accepts(schema, '{"a":1}')
    assert not accepts(schema, "{}")


def test_the_schema_is_not_changed() -> None:
    before = json.dumps(TREE)
    from_json_schema(TREE)
    assert json.dumps(TREE) == before


def test_large_limits_have_few_rules() -> None:
    ir = from_json_schema({"items": {"const": 1}, "minItems": 10**6, "maxItems": 10**12, "type": "array"})
    assert len(ir.productions) < 500
    from_json_schema({"type": "string", "minLength": 10**6, "maxLength": 10**9})


def test_rules_are_as_many_as_properties() -> None:
    properties = {f"p{index}": {"type": "integer"} for index in range(500)}
    assert len(from_json_schema({"properties": properties, "type": "object"}).productions) < 3000
