"""What a schema finds fault with: named as a person would, and never where jsonschema sees none."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from constrain.explain.faults import find_faults
from constrain.explain.json_places import read_json

ROOT = Path(__file__).resolve().parents[2]
PERSON = (ROOT / "grammars" / "person.schema.json").read_text()
DATA = Path(os.environ.get("CONSTRAIN_TEST_DATA", ROOT.parent / "shared" / "data")) / "maskbench-dev.jsonl.gz"


def messages(schema: Any, text: str | bytes) -> list[str]:
    data = text if isinstance(text, bytes) else text.encode()
    found = find_faults(schema if isinstance(schema, str) else json.dumps(schema), data)
    return [f"{each.offset} {each.place}: {each.message} {each.schema_place}" for each in found]


def test_what_is_missing_is_named() -> None:
    assert messages(PERSON, '{"name": "Ada Lovelace", "age": 36}') == [
        '0 : missing: "email", "role" and "hobbies" #/required'
    ]
    assert messages(PERSON, '{"name": "Ada Lovelace", "age"') == [
        '0 : still to come: "age", "email", "role" and "hobbies" #/required'
    ]
    # Behind the place where it is no JSON any more, anything may stand.
    assert messages(PERSON, '{"name": "Ada Lovelace" "age": 3}') == []
    assert messages(PERSON, '{"name": 5, ]') == ["9 /name: 5 is not a string #/properties/name/type"]


@pytest.mark.parametrize(
    ("schema", "text", "expected"),
    [
        ({"type": "integer"}, "1.5", ["0 : 1.5 is not an integer #/type"]),
        ({"type": ["null", "array"]}, '"a"', ['0 : "a" is not null or an array #/type']),
        (
            {"type": "string", "minLength": 2, "maxLength": 3},
            '"é"',
            ['0 : "é" is shorter than 2 characters #/minLength'],
        ),
        ({"maxLength": 3}, '"abcd"', ['0 : "abcd" is longer than 3 characters #/maxLength']),
        ({"minimum": 3}, " 2", ["1 : 2 is less than 3 #/minimum"]),
        ({"exclusiveMaximum": 3}, "3", ["0 : 3 is not less than 3 #/exclusiveMaximum"]),
        ({"multipleOf": 0.5}, "0.7", ["0 : 0.7 is no multiple of 0.5 #/multipleOf"]),
        ({"type": "string", "format": "date"}, '"today"', ['0 : "today" does not have the format "date" #/format']),
        ({"const": {"a": 1}}, '{"a": 2}', ['0 : this object is not {"a": 1} #/const']),
        ({"enum": ["a", 1, None]}, "true", ['0 : true is not "a", 1 or null #/enum']),
        (
            {"items": {"type": "string"}, "minItems": 3},
            '["a", 1]',
            ["0 : this array has fewer than 3 items #/minItems", "6 /1: 1 is not a string #/items/type"],
        ),
        ({"uniqueItems": True}, "[1, 2, 1]", ["0 : two of its items are equal #/uniqueItems"]),
        (
            {"prefixItems": [{"const": 1}], "items": False},
            "[2, 3]",
            ["1 /0: 2 is not 1 #/prefixItems/0/const", "4 /1: nothing may stand here, but 3 does #/items"],
        ),
        (
            {"properties": {"a/b": {"properties": {"~": {"type": "null"}}}}},
            '{"a/b": {"~": 1}}',
            ["14 /a~1b/~0: 1 is not null #/properties/a~1b/properties/~0/type"],
        ),
        (
            {"patternProperties": {"^x": {"type": "null"}}, "additionalProperties": False},
            '{"x1": 1, "y": 1}',
            [
                "7 /x1: 1 is not null #/patternProperties/^x/type",
                '10 : there is no property "y" #/additionalProperties',
            ],
        ),
        ({"additionalProperties": {"type": "null"}}, '{"é": 1}', ["7 /é: 1 is not null #/additionalProperties/type"]),
        ({"$ref": "#/$defs/n", "$defs": {"n": {"type": "null"}}}, "1", ["0 : 1 is not null #/$defs/n/type"]),
        (
            {"allOf": [{"minimum": 3}, {"maximum": 1}]},
            "2",
            ["0 : 2 is less than 3 #/allOf/0/minimum", "0 : 2 is more than 1 #/allOf/1/maximum"],
        ),
        (
            {"anyOf": [{"type": "string"}, {"type": "number", "minimum": 3}]},
            "2",
            ["0 : 2 is less than 3 #/anyOf/1/minimum"],
        ),
        ({"anyOf": [{"minimum": 4}, {"minimum": 3}]}, "2", ["0 : 2 fits none of the 2 alternatives #/anyOf"]),
        ({"oneOf": [{"minimum": 1}, {"minimum": 0}]}, "2", ["0 : 2 fits more than one of the 2 alternatives #/oneOf"]),
        ({"not": {"type": "string"}}, '"a"', ['0 : "a" is what it must not be: {"type": "string"} #/not']),
        (
            {"contains": {"const": 1}, "minContains": 2},
            "[1, 2]",
            ['0 : this array has too few or too many items that fit {"const": 1} #/contains'],
        ),
        (
            {"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 3, "exclusiveMinimum": True},
            "3",
            ["0 : 3 is not more than 3 #/minimum"],
        ),
        (
            {"dependentRequired": {"a": ["b"]}},
            '{"a": 1}',
            ['0 : this object does not fit dependentRequired {"a": ["b"]} #/dependentRequired'],
        ),
        ({"if": {"minimum": 3}, "then": {"multipleOf": 2}}, "5", ["0 : 5 does not fit if"]),
        (False, "1", ["0 : nothing may stand here, but 1 does #"]),
        (True, '{"a": 1, "a": 2}', []),
        ({"type": "object"}, '{"a": 1, "a": 2}', ['9 : "a" is there twice #']),
        (
            {"properties": {"a": {}, "b": {}}},
            '{"b": 1, "a": 2}',
            ["0 : every keyword is fulfilled, but members stand in another order"],
        ),
        (PERSON, "nonsense", []),
        (PERSON, "", []),
        (PERSON, b"\xff", []),
        ("{", "1", []),
    ],
)
def test_words(schema: Any, text: str | bytes, expected: list[str]) -> None:
    found = messages(schema, text)
    assert len(found) == len(expected), found
    for each, begin in zip(found, expected, strict=True):
        assert each.startswith(begin)


def test_hostile_texts_and_schemas() -> None:
    deep = "[" * 5000
    assert messages({"type": "array"}, deep) == []
    assert messages({"type": "object"}, deep) == ["0 : this array is not an object #/type"]
    assert messages({"$ref": "#"}, "1") == []
    assert messages({"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}, "1") == []
    assert messages({"$ref": "other.json", "type": "null"}, "1") == ["0 : 1 is not null #/type"]
    assert messages({"type": 5, "required": "a", "properties": [], "items": 3, "anyOf": {}, "enum": "x"}, "{}") == []
    many = json.dumps({f"k{index}": index for index in range(3000)})
    assert len(messages({"additionalProperties": {"maximum": 1}}, many)) > 10
    assert len(messages({"items": {"type": "string"}}, json.dumps([*range(5000)]))) == 500
    assert messages({"type": "string"}, "[" + "1, " * 2_000_000 + "1]") == []
    (said,) = messages({"required": [f"k{index}" for index in range(50)]}, "{}")
    assert said.endswith('"k7" and 42 more #/required')
    (said,) = messages({"type": "null"}, json.dumps("\x1b[31m" + "x" * 500))
    assert len(said) < 150
    assert "\x1b" not in said
    assert not any("is not an integer" in each for each in messages({"type": "integer"}, "1e999999999"))


@pytest.mark.parametrize("cut", range(0, 60, 3))
def test_texts_that_break_off(cut: int) -> None:
    text = json.dumps({"name": "Ada Lovelace", "age": 36, "hobbies": ["reading"]})
    for each in find_faults(PERSON, text[:cut].encode()):
        assert each.message.startswith("still to come: ")


def test_reading_json() -> None:
    text = ' {"a": [1, {"b": "\\u00e9 x"}, -1.5e3], "a" : true}  '
    document = read_json(text)
    assert document.ends
    assert document.value is not None
    assert document.value.text == '{"a":[1,{"b":"\\u00e9 x"},-1.5e3],"a":true}'
    assert [(name, text[place]) for name, place, _ in document.value.members] == [("a", '"')] * 2
    for wrong in ('{"a" 1}', "[1 2]", "[1,]", "1 2", "tru e", '"\n"', "[}", "{]", "nul1", "{} {", '"a" "b'):
        assert not read_json(wrong).ends, wrong
    for begun in ("[1,", '{"a', '{"a": "x\\', "[tr", "[-", '{"a":', "[1.", "{", "["):
        document = read_json(begun)
        assert document.ends, begun


def _instances(most: int) -> Iterator[tuple[dict[str, Any], Any]]:
    with gzip.open(DATA, "rt", encoding="utf-8", errors="surrogatepass") as file:
        for number, line in enumerate(file):
            if number % 37:
                continue
            entry = json.loads(line)
            for test in entry["tests"]:
                if not test["valid"]:
                    yield entry["schema"], test["data"]
                    most -= 1
                    break
            if most == 0:
                return


def pointer(path: Any) -> str:
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)


def _errors(found: Any) -> Iterator[Any]:
    for error in found:
        yield error
        yield from _errors(error.context)


@pytest.mark.skipif(not DATA.exists(), reason="no MaskBench data (CONSTRAIN_TEST_DATA)")
def test_real_schemas_find_fault_where_jsonschema_does() -> None:
    named = total = 0
    for schema, instance in _instances(60):
        try:
            data = json.dumps(instance, ensure_ascii=False).encode()
            kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
            errors = list(_errors(kind(schema).iter_errors(instance)))
        except (UnicodeEncodeError, jsonschema.exceptions.SchemaError, RecursionError):
            continue
        except Exception as error:  # references that cannot be resolved, patterns that Python cannot read
            assert "resol" in repr(error).lower() or "re." in repr(error) or "error" in repr(error)  # noqa: PT017
            continue
        if not errors:
            continue  # a format, which jsonschema does not enforce
        places = {
            "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in e.absolute_path) for e in errors
        }
        total += 1
        faults = find_faults(json.dumps(schema), data)
        named += bool(faults)
        for fault in faults:
            if "every keyword is fulfilled" in fault.message or fault.schema_place.endswith("/format"):
                continue
            assert fault.place in places or any(place.startswith(fault.place) for place in places), (fault, places)
    assert total > 20
    assert named >= 0.9 * total
