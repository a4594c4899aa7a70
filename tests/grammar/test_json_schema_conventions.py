"""Conventions of other engines as options, and ``x-guidance``."""

from __future__ import annotations

import itertools
import json
import random
import re
from typing import Any

import jsonschema
import numpy as np
import pytest
from byte_tokens import BYTES

import constrain
from constrain.errors import ConstrainError, SchemaError

PAIR = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": [1, "x"]}}, "required": ["a"]}


def compiled(schema: Any, **options: Any) -> constrain.CompiledGrammar:
    return constrain.CompiledGrammar(constrain.Grammar.from_json_schema(schema, **options).ir, BYTES)


def fits(schema: Any, text: str, **options: Any) -> bool:
    matcher = constrain.Matcher(compiled(schema, **options))
    return matcher.accept_bytes(text.encode()) and matcher.is_accepting()


@pytest.mark.parametrize("pattern", ["", " ?", " ", r"\s*", r"[ \t]{1,2}", r"\n|  ", r"(x|\n)+"])
def test_white_space_stands_before_each_token_but_the_first(pattern: str) -> None:
    tokens = ["{", '"a"', ":", "1", ",", '"b"', ":", '"x"', "}"]
    schema = {**PAIR, "additionalProperties": False}
    grammar = compiled(schema, whitespace_pattern=pattern)
    random_ = random.Random(pattern)
    gaps = ["", " ", "  ", "\n", "\t ", "\r\n", "x\n", "\f"]
    fitting = [gap for gap in gaps if re.fullmatch(pattern, gap) and not gap.strip(" \t\r\n")]
    for _ in range(60):
        chosen = [random_.choice(fitting if random_.random() < 0.9 else gaps) for _ in tokens[1:]]
        text = tokens[0] + "".join(gap + token for gap, token in zip(chosen, tokens[1:], strict=True))
        matcher = constrain.Matcher(grammar)
        found = matcher.accept_bytes(text.encode()) and matcher.is_accepting()
        assert found == all(gap in fitting for gap in chosen), text


@pytest.mark.parametrize("outer", [None, " ?"])
def test_patterns_of_separators(outer: str | None) -> None:
    options = {"separator_patterns": (r" {0,2}, ?", r":\s?"), "whitespace_pattern": outer}
    assert fits(PAIR, '{"a":1  , "b":1}', **options)
    assert fits(PAIR, '{"a":\t1,"b":1}', **options)
    assert not fits(PAIR, '{"a":1    ,"b":1}', **options)
    assert not fits(PAIR, '{"a"\n:1}', **options)
    assert fits(PAIR, '{ "a":1 }', **options) == (outer is not None)


def test_white_space_around() -> None:
    for text, (before, behind) in itertools.product(['{"a":1}', "{}"], itertools.product(["", " ", "\n  "], repeat=2)):
        assert fits({}, before + text + behind, surrounding_whitespace=True)
        assert fits({}, before + text + behind, surrounding_whitespace=True, whitespace="compact")
        assert fits({}, before + text + behind) == (not before and not behind)
    assert not fits({}, "\t{}", surrounding_whitespace=True, whitespace_pattern="[ ]*")
    assert fits({"type": "integer"}, "  12 ", surrounding_whitespace=True)


def test_arrays_that_do_not_say_how_long_they_are() -> None:
    integers = {"type": "array", "items": {"type": "integer"}}
    for schema, most in (
        (integers, 2),
        ({"type": "array"}, 2),
        ({"items": {}}, 2),
        ({**integers, "maxItems": 3}, 3),
        ({**integers, "minItems": 4}, 4),
        ({"allOf": [integers, {"maxItems": 3}]}, 3),
        ({"type": ["array", "null"]}, 2),
        ({"if": {"type": "array"}, "then": {"items": {}}}, 2),
    ):
        for count in range(6):
            fitting = schema.get("minItems", 0) <= count <= most
            assert fits(schema, json.dumps([1] * count), max_array_length=2) == fitting
            inner = json.dumps({"a": [1] * count})
            assert fits({"properties": {"a": schema}}, inner, max_array_length=2) == fitting
    assert not fits({"$defs": {"x": integers}, "$ref": "#/$defs/x"}, "[1,2,3]", max_array_length=2)
    assert not fits({"prefixItems": [integers]}, "[[1,2,3]]", max_array_length=2)
    assert fits({"prefixItems": [integers]}, "[[1,2]]", max_array_length=2)
    assert fits(integers, "[1,2,3]")


def test_objects_that_name_members_are_closed() -> None:
    for text, fitting in (('{"a":1}', True), ('{"a":1,"c":1}', False)):
        assert fits(PAIR, text, additional_properties=False) == fitting
        assert fits({"allOf": [PAIR, {"properties": {"d": {}}}]}, text, additional_properties=False) == fitting
        assert fits({"items": PAIR}, f"[{text}]", additional_properties=False) == fitting
        assert fits({"prefixItems": [PAIR]}, f"[{text}]", additional_properties=False) == fitting
    # What holds under a condition names members of the same object, and does not close it.
    more = {"properties": {"c": {}}}
    for conditional in (
        {**PAIR, "if": {"properties": {"a": {}}}, "then": more},
        {**PAIR, "dependentSchemas": {"a": more}},
    ):
        assert fits(conditional, '{"a":1,"c":1}', additional_properties=False)
        assert not fits(conditional, '{"a":1,"d":1}', additional_properties=False)
    assert fits({"type": "object"}, '{"c":1}', additional_properties=False)
    assert fits({**PAIR, "additionalProperties": True}, '{"a":1,"c":1}', additional_properties=False)
    assert not fits(json.dumps(PAIR), '{"a":1,"c":1}', additional_properties=False)
    # What is required is named, too.
    required = {**PAIR, "required": ["c"]}
    assert fits(required, '{"a":1,"c":[1]}', additional_properties=False)
    more = {"properties": {"b": {"type": "integer"}}}
    also = {"if": {"properties": {"a": {"const": 1}}}, "then": {"required": ["b"]}}
    for schema in (
        required,
        {**required, "allOf": [more]},
        {**required, "anyOf": [more, {"properties": {"c": {"const": 1}}}]},
        {"allOf": [{**PAIR, "required": ["c"]}, more]},
        {"allOf": [PAIR, {"required": ["c"]}]},
        {**required, **also},
        {**required, "patternProperties": {"^c": {"minItems": 1}}},
    ):
        assert fits(schema, '{"a":2,"c":[1]}', additional_properties=False), schema
        for text in ('{"a":2}', '{"a":2,"c":[1],"d":1}'):
            assert not fits(schema, text, additional_properties=False), schema
    # Drafts before 2019-09 have no word for it.
    old = {"$schema": "http://json-schema.org/draft-07/schema#", **PAIR}
    assert not fits(old, '{"a":1,"d":1}', additional_properties=False)
    grammar = constrain.Grammar.from_json_schema({**old, "allOf": [more]}, additional_properties=False)
    assert "no keyword 'unevaluatedProperties'" in grammar.warnings[0]
    assert fits({**old, "allOf": [more]}, '{"a":1,"d":1}', additional_properties=False)
    # What is said of others holds for it.
    assert not fits({**required, "additionalProperties": {"type": "null"}}, '{"c":1}', additional_properties=False)


NAMED = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
KINDS = {"named": NAMED, "a/b~": {"properties": {"n": {}}, "required": ["n"]}, "50%": {"properties": {"p": {}}}}
PARTS = {"allOf": [{"$ref": "#/$defs/named"}, {"properties": {"next": {"$ref": "#/$defs/whole"}}}]}


@pytest.mark.parametrize(
    ("schema", "fitting", "others"),
    [
        (
            {"properties": {"a": {}}, "$ref": "#/$defs/named"},
            ['{"id":1}', '{"a":1,"id":1}'],
            ['{"a":1}', '{"id":1,"b":1}'],
        ),
        # One that is alone closes itself.
        ({"allOf": [{"$ref": "#/$defs/named"}]}, ['{"id":1}'], ['{"id":1,"n":1}']),
        (
            {"allOf": [{"$ref": "#/$defs/named"}, {"$ref": "#/$defs/a~1b~0"}]},
            ['{"id":1,"n":1}'],
            ['{"id":1}', '{"id":1,"n":1,"p":1}'],
        ),
        ({"allOf": [{"$ref": "#/$defs/50%25"}, {"required": ["x"]}]}, ['{"p":1,"x":2}', '{"x":2}'], ['{"x":2,"y":3}']),
        (
            {"properties": {"k": {}}, "anyOf": [{"$ref": "#/$defs/named"}, {"$ref": "#/$defs/a~1b~0"}]},
            ['{"k":1,"id":1}', '{"k":1,"n":1}', '{"id":1,"n":1}'],
            ['{"k":1}', '{"k":1,"n":1,"p":1}'],
        ),
        # Through definitions that join others themselves, and that refer to themselves.
        (
            {"allOf": [{"$ref": "#/$defs/whole"}, {"properties": {"more": {}}}], "$defs": {"whole": PARTS}},
            ['{"id":1}', '{"id":1,"next":{"id":2},"more":3}', '{"id":1,"next":{"id":2,"next":{"id":3}}}'],
            ['{"id":1,"next":{"id":2,"more":3}}', '{"id":1,"other":2}', '{"id":1,"next":{"id":2,"other":2}}'],
        ),
        # What says itself that it is open, or is a resource of its own, is as it says.
        (
            {
                "allOf": [{"$ref": "#/$defs/open"}, {"properties": {"a": {}}}],
                "$defs": {"open": {"additionalProperties": True}},
            },
            ['{"a":1,"b":2}'],
            [],
        ),
        ({"properties": {"a": {}}, "$ref": "#/$defs/own", "$defs": {"own": {"$id": "x", **NAMED}}}, ['{"id":1}'], []),
    ],
)
def test_parts_of_an_object_that_is_closed_do_not_close_it(
    schema: dict[str, Any], fitting: list[str], others: list[str]
) -> None:
    """Objects that inherit members, as OpenAPI documents have them, could not have their own."""
    schema = {**schema, "$defs": {**KINDS, **schema.get("$defs", {})}}
    judge = jsonschema.Draft202012Validator(schema)
    for text in fitting:
        assert fits(schema, text, additional_properties=False, property_order="any"), text
        assert judge.is_valid(json.loads(text)), text
    for text in others:
        assert not fits(schema, text, additional_properties=False, property_order="any"), text


def test_references_of_draft_7_hide_what_stands_beside_them() -> None:
    old = {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"named": NAMED}}
    named = {"$ref": "#/definitions/named", "properties": {"a": {}}}
    for schema, text, fitting in (
        ({"$ref": "#/definitions/named", "additionalProperties": True}, '{"id":1}', True),
        ({"$ref": "#/definitions/named", "additionalProperties": True}, '{"id":1,"a":1}', False),
        ({"items": named}, '[{"id":1}]', True),
        ({"items": named}, '[{"id":1,"a":1}]', False),
        ({"allOf": [named, {"properties": {"b": {}}}]}, '{"id":1,"b":1}', True),
    ):
        assert fits({**old, **schema}, text, additional_properties=False) == fitting, (schema, text)


def test_what_is_wrong_in_a_definition_is_told_where_it_stands() -> None:
    definition = {"properties": {"q": {"pattern": "(a*)\\1"}}}
    schema = {"properties": {"a": {}}, "$ref": "#/$defs/x~1y as a part", "$defs": {"x/y as a part": definition}}
    with pytest.raises(SchemaError) as caught:
        constrain.Grammar.from_json_schema(schema, additional_properties=False)
    assert caught.value.pointer == "#/$defs/x~1y as a part/properties/q/pattern"
    taken = {**schema, "$defs": {"x/y as a part": {}, "#/$defs/x~1y as a part as a part": {"const": 1}}}
    assert fits(taken, '{"a":1}', additional_properties=False)


@pytest.mark.parametrize(
    ("text", "fitting"),
    [
        (r'"\u0041"', ("any",)),
        (r'"\u00e9"', ("any",)),
        (r'"\uD83D\uDE00"', ("any",)),
        (r'"\u001F"', ("any", "controls")),
        (r'"\u000a"', ("any",)),
        (r'"\n\/\\"', ("any", "controls", "never")),
        ('"é"', ("any", "controls", "never")),
    ],
)
def test_escapes_by_number(text: str, fitting: tuple[str, ...]) -> None:
    for choice in ("any", "controls", "never"):
        assert fits({"type": "string"}, text, unicode_escapes=choice) == (choice in fitting)
        assert fits({"type": "object"}, f"{{{text}:1}}", unicode_escapes=choice) == (choice in fitting)


NO_WAY: list[tuple[Any, bool]] = [
    ({"const": "\x01"}, False),
    ({"enum": ["\x01", "b"]}, True),
    ({"type": "object", "required": ["\x01"]}, False),
    ({"type": "string", "pattern": "^[\\x01-\\x03]$"}, False),
    ({"type": "object", "propertyNames": {"pattern": "^[a\\x01]$"}, "minProperties": 2}, False),
    ({"type": "object", "propertyNames": {"pattern": "^[a\\x01]$"}, "required": ["a"]}, True),
    ({"type": "object", "patternProperties": {"^[ab\\x01]$": True}, "additionalProperties": False}, True),
    ({"type": "array", "items": {"pattern": "^[ab\\x01]$", "type": "string"}, "uniqueItems": True}, True),
    ({"type": "array", "items": {"enum": ["\x01", "b"]}, "uniqueItems": True, "minItems": 2}, False),
]


@pytest.mark.parametrize(("schema", "is_valid"), NO_WAY, ids=str)
@pytest.mark.parametrize("order", ["schema", "any"])
def test_what_cannot_be_written_leads_nowhere(schema: Any, is_valid: bool, order: str) -> None:
    options = {"unicode_escapes": "never", "property_order": order, "whitespace": "compact"}
    if not is_valid:
        with pytest.raises(SchemaError):
            compiled(schema, **options)
        return
    todo = [(b"", constrain.Matcher(compiled(schema, **options)))]
    mask = constrain.allocate_token_bitmask(1, 257)
    for text, matcher in itertools.islice(iter(lambda: todo.pop(), None), 400):
        matcher.fill_next_token_bitmask(mask)
        allowed = np.flatnonzero(np.unpackbits(mask[0].view(np.uint8), bitorder="little")[:257]).tolist()
        assert allowed, text
        for token in allowed:
            if token < 256 and len(text) < 24:
                fork = matcher.fork()
                assert fork.accept_token(token)
                todo.append((text + bytes((token,)), fork))
        if not todo:
            break


def test_patterns_in_full() -> None:
    text = {"type": "string", "pattern": "[ab]|cd"}
    assert [word for word in ("a", "cd", "xa", "cdx", "ab") if fits(text, f'"{word}"', patterns="full")] == ["a", "cd"]
    assert fits(text, '"xcdx"')
    names = {"patternProperties": {"a": {"type": "null"}}, "additionalProperties": {"type": "integer"}}
    assert fits(names, '{"ba":1,"a":null}', patterns="full")
    assert not fits(names, '{"ba":1}')
    assert not fits({"type": "string", "pattern": ""}, '"a"', patterns="full")


def test_one_of_as_any_of() -> None:
    schema = {"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 3}], "unevaluatedProperties": False}
    assert not fits(schema, "5")
    assert fits(schema, "5", coerce_one_of=True)
    assert fits(schema, "1", coerce_one_of=True)
    assert not fits(schema, "1.5", coerce_one_of=True)


@pytest.mark.parametrize(
    ("guidance", "yes", "no"),
    [
        ({"whitespace_flexible": False}, '{"a":1}', '{"a": 1}'),
        ({"whitespace_flexible": True}, '{"a"\n\n:  \t1}', '{"a": 1} '),
        ({"whitespace_pattern": r"\s{1,2}"}, '{"a":  1}', '{"a":   1}'),
        ({"item_separator": ", ", "key_separator": ": ", "whitespace_flexible": False}, '{"a": 1, "b": 1}', '{"a":1}'),
        ({"item_separator": r"\s*,"}, '{"a":1  ,"b":1}', '{"a":1 "b":1}'),
        ({"json_allow_general_unicode_escapes": False}, '{"a":1,"c":"\\u0001"}', '{"a":1,"c":"\\u0041"}'),
        ({"json_allowed_escapes": 'n"'}, '{"a":1,"c":"\\n"}', '{"a":1,"c":"\\t"}'),
        ({"json_allowed_escapes": None, "lenient": None}, '{"a":1}', '{"a":"1"}'),
    ],
)
def test_x_guidance(guidance: Any, yes: str, no: str) -> None:
    schema = {**PAIR, "x-guidance": guidance}
    assert fits(schema, yes)
    assert not fits(schema, no)
    assert constrain.Grammar.from_json_schema(schema).warnings == ()
    inner = constrain.Grammar.from_lark(f"start: %json {json.dumps(schema)}")
    matcher = constrain.Matcher(constrain.CompiledGrammar(inner.ir, BYTES))
    assert matcher.accept_bytes(yes.encode())
    assert matcher.is_accepting()


def test_x_guidance_coerces_and_is_lenient() -> None:
    schema: Any = {"oneOf": [{"type": "integer"}, {"type": "number"}]}
    assert not fits(schema, "5")
    assert fits({**schema, "x-guidance": {"coerce_one_of": True}}, "5")
    assert fits({**schema, "x-guidance": {"lenient": True}}, "5")
    table = {"type": "array", "uniqueItems": True, "items": {"contains": {"const": 1}}, "x-guidance": {"lenient": True}}
    assert fits(table, "[[1],[1]]")


@pytest.mark.parametrize(
    ("guidance", "message"),
    [
        ({"item_separator": "-"}, "at #/x-guidance/item_separator: .*no comma"),
        ({"whitespace_pattern": "x"}, "at #/x-guidance/whitespace_pattern: .*no white space"),
        ({"whitespace_pattern": "["}, "at #/x-guidance/whitespace_pattern: .*never closed"),
        ({"whitespace": True}, "at #/x-guidance/whitespace: .*no option 'whitespace'"),
        ({"lenient": "yes"}, "at #/x-guidance/lenient: .*a boolean, not a string"),
        (5, "at #/x-guidance: .*an object, not a number"),
    ],
)
def test_faults_of_x_guidance(guidance: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        constrain.Grammar.from_json_schema({"x-guidance": guidance})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"whitespace_pattern": "x"}, "whitespace_pattern: 'x': it matches no white space"),
        ({"whitespace_pattern": "("}, r"whitespace_pattern: '\('"),
        ({"whitespace_pattern": 5}, "whitespace_pattern must hold patterns"),
        ({"separator_patterns": ",:"}, "separator_patterns must be two strings"),
        ({"separator_patterns": (",", ";")}, "it matches no colon"),
        ({"whitespace_pattern": " ", "indent": 2}, "does not go with"),
        ({"separator_patterns": (",", ":"), "whitespace": "compact"}, "does not go with"),
        ({"ensure_ascii": True, "unicode_escapes": "controls"}, "ensure_ascii goes with"),
        ({"unicode_escapes": "some"}, "unicode_escapes must be"),
        ({"patterns": "whole"}, "patterns must be"),
        ({"additional_properties": None}, "additional_properties must be a boolean"),
        ({"surrounding_whitespace": 1}, "surrounding_whitespace must be a boolean"),
        ({"coerce_one_of": "yes"}, "coerce_one_of must be a boolean"),
        ({"max_array_length": -1}, "max_array_length must be a number of items"),
        ({"max_array_length": True}, "max_array_length must be a number of items"),
    ],
)
def test_faults_of_options(options: Any, message: str) -> None:
    with pytest.raises(ConstrainError, match=message):
        constrain.Grammar.from_json_schema({}, **options)


@pytest.mark.parametrize("inside", [" ?", r"\s{0,3}", r"\n\s*"])
@pytest.mark.parametrize("flexible", [False, True])
def test_white_space_inside_brackets(inside: str, flexible: bool) -> None:
    guidance = {"container_whitespace": inside, "item_separator": ", ?", "whitespace_flexible": flexible}
    schema = {"items": {"properties": {"a": {"items": {"enum": [1, [2]]}}}, "additionalProperties": False}}
    grammar = compiled({"type": "array", **schema, "x-guidance": guidance})
    gap = r"\s*" if flexible else ""
    ahead, behind = re.compile(f"(?:{inside}){gap}"), re.compile(f"{gap}(?:{inside})")
    for before, after in itertools.product(["", " ", "  ", "\n", "\n  ", "     "], repeat=2):
        # The value [2] is listed, the others are not.
        text = f'[{before}{{{before}"a":[{before}[{before}2{after}]{after}]{after}}}{after}]'
        matcher = constrain.Matcher(grammar)
        found = matcher.accept_bytes(text.encode()) and matcher.is_accepting()
        assert found == bool(ahead.fullmatch(before) and behind.fullmatch(after)), text
    with pytest.raises(SchemaError, match="container_whitespace: it matches no white space"):
        compiled({"x-guidance": {"container_whitespace": "x"}})
