"""``numbers``, ``spelling`` and the usual white space, in both directions: what is written, and what is taken."""

from __future__ import annotations

import inspect
import itertools
import json
import re
from decimal import Decimal
from typing import Any

import jsonschema
import pytest
from conftest import MaskCount
from finite_texts import Texts, compare_masks
from hypothesis import example, given, settings
from hypothesis import strategies as st
from masks import mask_of

import constrain
from constrain.errors import ConstrainError, SchemaError
from constrain.grammar.json_schema import from_json_schema
from constrain.grammar.schema_options import SchemaOptions

STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
PLAIN = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")

TOKENS = [
    *(bytes([byte]) for byte in range(256)),
    *(
        text.encode()
        for text in ('"a"', '": ', '", "', "\\u00", "\\n", "\\/", "e+", "1.0", ".0", "  ", "\n  ", '{"', "é")
    ),
]
EOS = len(TOKENS)
VOCABULARY = constrain.Vocabulary([*TOKENS, b"</s>"], eos_ids=[EOS])
COMPILER = constrain.GrammarCompiler(VOCABULARY)


def compiled(schema: Any, **options: Any) -> constrain.CompiledGrammar:
    return COMPILER.compile(constrain.Grammar.from_json_schema(schema, **options))


def fits(schema: Any, text: str, **options: Any) -> bool:
    matcher = constrain.Matcher(compiled(schema, **options))
    return matcher.accept_bytes(text.encode()) and matcher.is_accepting()


def forced(schema: Any, before: str, **options: Any) -> bytes:
    matcher = constrain.Matcher(compiled(schema, **options))
    assert matcher.accept_bytes(before.encode())
    return matcher.forced_bytes()


# -- random schemas, made around a value that is valid for them -----------------------------------

texts = st.text('ab/\\"\n\t\x01\x7f\x85é\u2028\U0001f600', max_size=4)
numbers = st.integers(-30, 30) | st.integers(-(10**20), 10**20) | st.integers(-200, 200).map(lambda n: n / 8)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def schemas(draw: Any, value: Any) -> Any:
    """A schema for which a value is valid."""
    kind = draw(st.integers(0, 7))
    if kind == 0:
        return {"const": value}
    if kind == 1:
        return {"enum": [value, *[each for each in draw(st.lists(texts | numbers, max_size=3)) if each != value]]}
    if isinstance(value, str):
        found: dict[str, Any] = {"type": "string"}
        if draw(st.booleans()):
            found["maxLength"] = len(value) + draw(st.integers(0, 3))
        if draw(st.booleans()):
            found["pattern"] = f"^{re.escape(value[:1])}" if value.isalnum() else "^[^z]*$"
        if draw(st.booleans()):
            found["not"] = {"const": value + "x"}
        return found
    if isinstance(value, bool) or value is None:
        return {}
    if isinstance(value, (int, float)):
        found = {"type": "integer" if isinstance(value, int) and draw(st.booleans()) else "number"}
        for name, limit in (("minimum", value), ("exclusiveMaximum", value + 1), ("multipleOf", 0.125)):
            if draw(st.integers(0, 2)) == 0:
                found[name] = limit
        return found
    if isinstance(value, list):
        if value and draw(st.booleans()):
            return {"type": "array", "prefixItems": [draw(schemas(item)) for item in value]}
        found = {"type": "array", "minItems": draw(st.integers(0, len(value)))}
        return found | ({"uniqueItems": True} if kind == 2 and len(value) < 2 else {})
    properties = {name: draw(schemas(member)) for name, member in value.items() if draw(st.integers(0, 3))}
    found = {"type": "object", "properties": properties}
    if draw(st.booleans()):
        found["required"] = [name for name in value if draw(st.booleans())]
    if properties.keys() == value.keys() and draw(st.booleans()):
        found["additionalProperties"] = False
    return found


@st.composite
def pairs(draw: Any) -> tuple[Any, Any]:
    value = draw(values)
    return draw(schemas(value)), value


STYLES: tuple[dict[str, Any], ...] = ({}, {"separators": (",", ":")}, {"indent": 2}, {"indent": 4}, {"indent": "\t"})


@settings(max_examples=150)
@given(pairs(), st.booleans())
def test_what_json_dumps_writes_is_taken(pair: tuple[Any, Any], ensure_ascii: bool) -> None:
    schema, value = pair
    grammars = [
        compiled(schema, property_order="any", spelling=spelling, ensure_ascii=ensure_ascii)
        for spelling in ("any", "canonical")
    ]
    for style in STYLES:
        text = json.dumps(value, ensure_ascii=ensure_ascii, **style)
        for grammar in grammars:
            matcher = constrain.Matcher(grammar)
            assert matcher.accept_bytes(text.encode()), text
            assert matcher.is_accepting(), text
    if "e" in STRING.sub("", json.dumps(value)).replace("true", "").replace("false", ""):
        return
    plain = constrain.Matcher(compiled(schema, property_order="any", numbers="plain", ensure_ascii=ensure_ascii))
    assert plain.accept_bytes(json.dumps(value, ensure_ascii=ensure_ascii).encode())
    assert plain.is_accepting()


@settings(max_examples=120)
@given(
    pair=pairs(),
    numbers=st.sampled_from(["any", "plain"]),
    spelling=st.sampled_from(["any", "canonical"]),
    ensure_ascii=st.booleans(),
    walk=st.lists(st.integers(0, 10**6), min_size=1, max_size=40),
)
def write_as_the_options_say(
    finished: list[str], pair: tuple[Any, Any], numbers: str, spelling: str, ensure_ascii: bool, walk: list[int]
) -> None:
    schema = pair[0]
    grammar = compiled(schema, numbers=numbers, spelling=spelling, ensure_ascii=ensure_ascii)
    matcher = constrain.Matcher(grammar)
    written = b""
    for choice in (*walk, *([7] * 400)):
        allowed = mask_of(matcher)
        assert allowed, written
        if EOS in allowed and (len(allowed) == 1 or choice % 2):
            break
        onward = sorted(allowed - {EOS})
        if len(written) > 60:
            # What closes is worth more than what opens.
            ends = [token for token in onward if TOKENS[token] in (b'"', b"}", b"]", b":")]
            onward = ends or onward
        token = onward[choice % len(onward)]
        assert matcher.accept_token(token)
        written += TOKENS[token]
    if not matcher.is_accepting():
        return
    text = written.decode()
    value = json.loads(text)
    assert jsonschema.Draft202012Validator(schema).is_valid(value), text
    if spelling == "canonical":
        for string in STRING.findall(text):
            assert string == json.dumps(json.loads(string), ensure_ascii=ensure_ascii)
    assert text.isascii() or not ensure_ascii
    if numbers == "plain":
        for number in re.findall(r"[-0-9.eE+]+", re.sub("true|false|null", "", STRING.sub("", text))):
            assert PLAIN.fullmatch(number), text
    finished.append(text)


def test_what_is_written_is_as_the_options_say() -> None:
    finished: list[str] = []
    write_as_the_options_say(finished)
    assert len(finished) > 60


# -- numbers --------------------------------------------------------------------------------------

NUMBERS = ["".join(letters) for size in range(5) for letters in itertools.product("-.012579eE", repeat=size)]

halves = st.integers(-30, 30).map(lambda n: n / 2)


@st.composite
def number_schemas(draw: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": draw(st.sampled_from(["integer", "number"]))}
    for name in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
        if draw(st.integers(0, 2)) == 0:
            schema[name] = draw(halves)
    if draw(st.integers(0, 2)) == 0:
        schema["multipleOf"] = draw(st.sampled_from([1, 2, 0.5, 3, 2.5]))
    if draw(st.integers(0, 4)) == 0:
        schema["not"] = draw(st.sampled_from([{"const": 2}, {"multipleOf": 2}, {"type": "integer"}]))
    return schema


def is_plain(text: str, schema: dict[str, Any]) -> bool:
    """Whether a text is a number of a schema in plain notation, by the definition."""
    if not PLAIN.fullmatch(text):
        return False
    whole = schema["type"] == "integer" or schema.get("multipleOf", 0.5) in (1, 2, 3)
    return not (whole and "." in text) and jsonschema.Draft202012Validator(schema).is_valid(json.loads(text))


@settings(max_examples=40)
@given(number_schemas())
def test_plain_numbers_are_exact(schema: dict[str, Any]) -> None:
    good = {text for text in NUMBERS if is_plain(text, schema)}
    try:
        grammar = compiled(schema, numbers="plain")
    except SchemaError:
        assert not good
        return
    recognizer = grammar.recognizer()
    beginnings = {text[:size] for text in good for size in range(len(text) + 1)}
    for text in NUMBERS:
        count = 0
        while count < len(text) and recognizer.try_push_byte(ord(text[count])):
            count += 1
        assert (count == len(text) and recognizer.is_accepting()) == (text in good)
        # What can be finished is finished in two more characters here, of which not all are tried.
        assert text not in beginnings or count == len(text)
        if count == len(text) and text and len(text) <= 2:
            digits = "0123456789"
            ends = ["", *digits, *map("".join, itertools.product("." + digits, repeat=2))]
            ends += [end + more for end in (".5", ".") for more in digits] + [
                f"{a}.{b}" for a in digits for b in digits
            ]
            assert any(is_plain(text + end, schema) for end in ends), text
        recognizer.pop_bytes(count)


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "integer"}, ["1", "-5", "0", "100000000000000000000"], ["1.0", "1e5", "1E2", "1.", "01"]),
        ({"type": "number"}, ["1", "1.0", "-0.50", "1234567890.125"], ["1e5", "2E-7", "1."]),
        ({"type": "number", "multipleOf": 7}, ["14", "0", "-7"], ["14.0", "7e16"]),
        ({"type": "number", "multipleOf": 0.01}, ["1.50", "0.01"], ["0.001", "1e-2"]),
        ({"type": "integer", "multipleOf": 9973}, ["9973", "19946"], ["9973.0"]),
        ({"minimum": 1e20, "type": "number"}, ["100000000000000000000", "3" * 21], ["1e20", "1e+20", "9" * 20]),
        ({"maximum": 1e-7, "exclusiveMinimum": 0, "type": "number"}, ["0.0000001", "0.00000000123"], ["1e-07", "0.1"]),
        ({"const": 1}, ["1"], ["1.0", "1.00"]),
        ({"const": 1.0}, ["1", "1.0"], ["1.00", "1e0"]),
        ({"const": 2.5}, ["2.5"], ["2.50"]),
        ({"const": 0.0}, ["0", "0.0"], ["0.00", "0e0"]),
        ({"type": "integer", "const": 1.0}, ["1"], ["1.0"]),
        ({"enum": [1e20, 1e-7]}, ["100000000000000000000", "0.0000001"], ["1e20", "1e-07", "1e+20"]),
        ('{"const": 1e400}', ["1" + 400 * "0"], ["1e400"]),
        ({"type": "number", "not": {"type": "integer"}}, ["1.5"], ["1", "15e-1", "1.0"]),
    ],
)
def test_plain_numbers(schema: Any, good: list[str], bad: list[str]) -> None:
    for text in good:
        assert fits(schema, text, numbers="plain"), text
    for text in bad:
        assert not fits(schema, text, numbers="plain"), text


def test_a_number_too_long_to_be_written_is_named() -> None:
    with pytest.raises(SchemaError, match=r"1E\+401"):
        constrain.Grammar.from_json_schema('{"const": 1e401}', numbers="plain")


def test_no_beginning_is_allowed_that_only_an_exponent_could_save() -> None:
    schema = {"type": "number", "minimum": 0, "exclusiveMaximum": 0.001, "exclusiveMinimum": 0}
    matcher = constrain.Matcher(compiled(schema, numbers="plain"))
    assert matcher.forced_bytes() == b"0.000"
    assert constrain.Matcher(compiled(schema)).forced_bytes() == b""


def test_fractions_that_draft_4_asks_for() -> None:
    schema = {"$schema": "http://json-schema.org/draft-04/schema#", "type": "number", "not": {"type": "integer"}}
    for text, good in {"1.0": True, "1.5": True, "1": False, "1e0": False}.items():
        assert fits(schema, text, numbers="plain") == good
    assert fits(schema | {"enum": [3]}, "3.0", numbers="plain")
    assert not fits(schema | {"enum": [3]}, "3", numbers="plain")
    assert forced(schema | {"enum": [3]}, "", spelling="canonical") == b"3.0"


def test_items_that_must_differ_have_all_of_their_notations() -> None:
    schema = {"type": "array", "items": {"type": "number"}, "uniqueItems": True}
    objects = {
        "type": "array",
        "items": {"type": "object", "properties": {"x": {"type": "number"}}},
        "uniqueItems": True,
    }
    for spelling in ("any", "canonical"):
        assert fits(schema, "[1, 2.50, 3.0]", numbers="plain", spelling=spelling)
        assert not fits(schema, "[1, 1.0]", numbers="plain", spelling=spelling)
        assert fits(objects, '[{"x": 1.0}, {"x": 1.00, "y": 2}]', numbers="plain", spelling=spelling)
        assert not fits(objects, '[{"x": 1}, {"x": 1.0}]', numbers="plain", spelling=spelling)


# -- text -----------------------------------------------------------------------------------------

DUMPED = st.one_of(
    st.integers(-(10**25), 10**25),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
    st.dictionaries(
        st.text(), st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.text(), max_size=3
    ),
)


def without_surrogates(value: Any) -> bool:
    return not re.search("[\ud800-\udfff]", json.dumps(value, ensure_ascii=False))


@settings(max_examples=100)
@example(1.2994462292672534e16, False)
@example(-0.0, False)
@example({"\x7f/é": 1e16}, True)
@given(DUMPED.filter(without_surrogates), st.booleans())
def test_constants_are_forced_as_json_dumps_writes_them(value: Any, ensure_ascii: bool) -> None:
    for schema in ({"const": value}, json.dumps({"enum": [value]})):
        text = json.dumps(value, ensure_ascii=ensure_ascii, separators=(",", ":")).encode()
        options = {"spelling": "canonical", "ensure_ascii": ensure_ascii, "whitespace": "compact"}
        grammar = compiled(schema, **options)
        assert constrain.Matcher(grammar).forced_bytes() == text


def test_constants_of_more_digits_than_a_float_has() -> None:
    for text in ("0.12345678901234567890123", "1.5e+400", "1.2345678901234567890123e-30", "123456789012.1234567890123"):
        assert forced(f'{{"const": {text}}}', "", spelling="canonical").decode() == text
        assert Decimal(text) == Decimal(forced(f'{{"const": {text}}}', "", spelling="canonical").decode())


def test_keys_are_forced_text() -> None:
    schema = {
        "type": "object",
        "properties": {"na/mé\n": {"type": "integer"}, "kind": {"enum": ["big"]}},
        "required": ["na/mé\n", "kind"],
        "additionalProperties": False,
    }
    assert forced(schema, "{", spelling="canonical", whitespace="compact") == '"na/mé\\n":'.encode()
    assert forced(schema, '{"na/mé\\n":1,', spelling="canonical", whitespace="compact") == b'"kind":"big"}'
    assert forced(schema, '{"', spelling="canonical", ensure_ascii=True) == b'na/m\\u00e9\\n"'
    assert forced(schema, "{", spelling="canonical", indent=1) == '\n "na/mé\\n": '.encode()
    assert forced(schema, '{"') == b""


@pytest.mark.parametrize("ensure_ascii", [False, True])
def test_every_character_is_written_in_one_way(ensure_ascii: bool) -> None:
    grammar = compiled(
        {"type": "string", "minLength": 1, "maxLength": 1}, spelling="canonical", ensure_ascii=ensure_ascii
    )
    for point in (*range(0x250), 0x2028, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x1F600, 0x10FFFF):
        ways = {json.dumps(chr(point)), json.dumps(chr(point), ensure_ascii=False)}
        if point < 0x10000:
            ways |= {f'"\\u{point:04x}"', f'"\\u{point:04X}"'}
        if point == 0x2F:
            ways.add('"\\/"')
        for way in ways:
            matcher = constrain.Matcher(grammar)
            accepted = matcher.accept_bytes(way.encode()) and matcher.is_accepting()
            assert accepted == (way == json.dumps(chr(point), ensure_ascii=ensure_ascii)), way


def test_canonical_masks_of_a_finite_language(masks_compared: MaskCount) -> None:
    schema = {"properties": {'a"é': {"enum": ["/", "\n", 1.50, "é\x7f"]}, "b": {"const": [{}]}}, "type": "object"}
    schema |= {"additionalProperties": False, "required": ["b"]}
    for ensure_ascii in (False, True):
        allowed = [{'a"é': value, "b": [{}]} for value in ("/", "\n", 1.5, "é\x7f")] + [{"b": [{}]}]
        listed = [json.dumps(each, ensure_ascii=ensure_ascii, separators=(",", ":")).encode() for each in allowed]
        grammar = compiled(schema, spelling="canonical", ensure_ascii=ensure_ascii, whitespace="compact")
        for seed in range(12):
            walk = [seed * 31 + step * 17 for step in range(60)]
            masks_compared.add(compare_masks(grammar, Texts(listed), [*TOKENS, b""], EOS, walk))


def test_unnamed_keys_are_canonical_too() -> None:
    schema = {"type": "object", "properties": {"a": True}, "patternProperties": {"^[bé]$": {"type": "integer"}}}
    for text in ('{"\\u0061": 1}', '{"b\\/": 1}', '{"\\u00e9": 1}', '{"x": "\\u0020"}'):
        assert fits(schema, text)
        assert not fits(schema, text, spelling="canonical")
    assert fits(schema, '{"a": 1, "b": 1, "é": 2, "c/d": "\\u0001"}', spelling="canonical")
    assert not fits(schema, '{"b": 1, "b": 2}', spelling="canonical")
    closed = {"type": "object", "patternProperties": {"^[bé]$": True}, "additionalProperties": False}
    assert fits(closed, '{"b": 1, "é": 2}', spelling="canonical")
    assert not fits(closed, '{"b": 1, "é": 2,', spelling="canonical")


@pytest.mark.parametrize("name", ["hostname", "idn-hostname", "uri", "date-time", "json-pointer"])
def test_formats_are_canonical_too(name: str) -> None:
    value = {"hostname": "xn--nxasmq6b.org", "idn-hostname": "bücher.example", "uri": "http://a/b"}.get(name, "/a")
    value = "2024-02-29T23:59:59Z" if name == "date-time" else value
    schema = {"type": "string", "format": name}
    for ensure_ascii in (False, True):
        options: dict[str, Any] = {"spelling": "canonical", "ensure_ascii": ensure_ascii}
        assert fits(schema, json.dumps(value, ensure_ascii=ensure_ascii), **options)
        escaped = '"' + "".join(f"\\u{ord(character):04x}" for character in value) + '"'
        assert fits(schema, escaped)
        assert not fits(schema, escaped, **options)


def test_unique_items_are_written_as_the_options_say() -> None:
    schema = {
        "type": "array",
        "items": {"type": "object", "properties": {"é": {"enum": ["ü", 1]}}},
        "uniqueItems": True,
    }
    assert fits(schema, '[{"\\u00e9": 1}, {"\\u00e9": "\\u00fc"}]', ensure_ascii=True)
    assert not fits(schema, '[{"\\u00e9": 1}, {"é": "ü"}]', ensure_ascii=True)
    assert not fits(schema, '[{"é": 1}, {"\\u00e9": 2}]', spelling="canonical")
    assert fits(schema, '[{"é": 1}, {"é": "ü"}, {"é": 1, "x": 1}]', spelling="canonical")


# -- options --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["numbers", "spelling", "whitespace", "property_order", "formats"])
@pytest.mark.parametrize("value", ["none", 1, None, ["any"]])
def test_options_that_are_wrong(name: str, value: Any) -> None:
    with pytest.raises(ConstrainError, match=f"{name} must be '"):
        constrain.Grammar.from_json_schema({}, **{name: value})


def test_the_options_are_the_same_everywhere() -> None:
    public = inspect.signature(constrain.Grammar.from_json_schema).parameters
    names = SchemaOptions.__annotations__
    assert {name for name, each in public.items() if each.kind is each.KEYWORD_ONLY} == {*names, "time_limit"}
    schema = {"items": {"oneOf": [{"type": "number"}, {"pattern": "é/", "format": "date"}]}, "minProperties": 1}
    defaults: Any = {name: public[name].default for name in names}
    assert from_json_schema(schema) == from_json_schema(schema, **defaults)


def test_grammars_of_other_options_are_others() -> None:
    keys = {
        constrain.Grammar.from_json_schema({"type": "number"}, **options).key
        for options in (
            {},
            {"numbers": "plain"},
            {"spelling": "canonical"},
            {"max_whitespace": 3},
            {"ensure_ascii": True},
        )
    }
    assert len(keys) == 5


def test_durations_end() -> None:
    schema = {"type": "string", "format": "duration"}
    most = 12 * "9"
    assert fits(schema, f'"P{most}Y{most}M1DT{most}S"')
    assert not fits(schema, f'"P{most}9D"')
    assert not fits(schema, f'"PT{most}9S"')


def test_named_posix_classes_are_warned_about() -> None:
    for schema, pointer in (
        ({"pattern": "^[[:upper:]]+$"}, "#/pattern"),
        ({"patternProperties": {"x[a[:^digit:]]": True}}, "#/patternProperties"),
    ):
        (warning,) = constrain.Grammar.from_json_schema(schema).warnings
        assert pointer in warning
        assert "write" in warning
    for pattern in ("[[:up]", "[:upper:]", "\\[[:upper:]", "[\\[:upper:]", "[[:other:]]", "[a][:upper:]"):
        assert not constrain.Grammar.from_json_schema({"pattern": pattern}).warnings
