"""What the recognizer says it expects: in words, and byte for byte the same as what it then takes."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import constrain
from constrain.engine.expectations import END_OF_TEXT, in_words

BYTES = constrain.Vocabulary([bytes((byte,)) for byte in range(256)])
COMPILER = constrain.GrammarCompiler(BYTES)

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer"},
        "size": {"type": "number", "minimum": 0.5},
        "tags": {"type": "array", "items": {"enum": ["a", "b", 3, None]}},
        "code": {"type": "string", "pattern": "^[A-Z]{3}$"},
        "key": True,
    },
    "required": ["name"],
    "additionalProperties": False,
}
SUM = """
start: sum
sum: NUMBER | sum "+" sum | "(" sum ")" | "if"i
NUMBER: /[0-9]+/
%ignore / +/
%ignore "#" /[a-z]*/ ";"
"""
GBNF = 'root ::= [a-c] ("+" item){2}\nitem ::= "foo" | [0-9]+ ws\nws ::= [ \\t]*\n'


def place(grammar, text):
    recognizer = COMPILER.compile(grammar).recognizer()
    for byte in text.encode() if isinstance(text, str) else text:
        assert recognizer.try_push_byte(byte)
    return recognizer


def parts(words):
    """Alternatives without their order, which is that of the lexemes and up to the front-end."""
    return sorted(re.split(r", | or | ?[()]", words))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "'{'"),
        ("{", 'a property name ("name")'),
        ("{ ", 'a property name ("name")'),
        ('{"', 'the rest of a property name ("name")'),
        ('{"name', 'the rest of a property name ("name")'),
        ('{"name"', "':'"),
        ('{"name": ', "a string"),
        ('{"name": "A', "more of a string or '\"'"),
        ('{"name": "A"', "'}' or ','"),
        ('{"name": "A",', 'a property name ("age", "size", "tags", "code" or "key")'),
        ('{"name": "A", "age" :', "an integer"),
        ('{"name": "A", "age": 1', "more of an integer, '}' or ','"),
        ('{"name": "A", "size": ', "a number as #/properties/size says"),
        ('{"name": "A", "tags": [', 'null, \']\', "a", "b" or 3'),
        ('{"name": "A", "tags": [nu', "the rest of null"),
        ('{"name": "A", "tags": ["', 'the rest of "a" or "b"'),
        ('{"name": "A", "tags": ["a"', "',' or ']'"),
        ('{"name": "A", "code": ', "a string with pattern '^[A-Z]{3}$'"),
        ('{"name": "A", "code": "A', "[A-Z] (more of a string with pattern '^[A-Z]{3}$')"),
        ('{"name": "A", "code": "ABC', "'\"'"),
        ('{"name": "A", "key": ', "a string, '[', a number, '{', true, false or null"),
        ('{"name": "A", "key": {', "'}' or a property name (another one)"),
        ('{"name": "A", "key": {"', "the rest of a property name"),
        ('{"name": "A"}', "end of text"),
    ],
)
def test_json_schema(text, expected):
    words = in_words(place(constrain.Grammar.from_json_schema(PERSON), text).expected())
    assert parts(words) == parts(expected)


@pytest.mark.parametrize(
    ("make", "text", "expected"),
    [
        (constrain.Grammar.from_lark, "", 'NUMBER, "(" or "if"i'),
        (constrain.Grammar.from_lark, "(1", '[0-9] (more of NUMBER), "+" or ")"'),
        (constrain.Grammar.from_lark, "(1 ", '"+" or ")"'),
        (constrain.Grammar.from_lark, "1 ", '"+" or end of text'),
        (constrain.Grammar.from_lark, "1 #a", "[;a-z] (more of what is ignored)"),
        (constrain.Grammar.from_lark, "i", "'F' or 'f' (more of \"if\"i)"),
        (constrain.Grammar.from_gbnf, "", "'a', 'b' or 'c'"),
        (constrain.Grammar.from_gbnf, "a", "'+'"),
        (constrain.Grammar.from_gbnf, "a+", "'foo' or [0-9]"),
        (constrain.Grammar.from_gbnf, "a+f", "'oo'"),
        (constrain.Grammar.from_gbnf, "a+1+2", "[0-9], '\\t' or ' ' or end of text"),
    ],
)
def test_grammars(make, text, expected):
    grammar = make(SUM if make == constrain.Grammar.from_lark else GBNF)
    assert in_words(place(grammar, text).expected()) == expected


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("[A-Z][a-z]{2,8} (foo|bar)é", "", "[A-Z]"),
        ("[A-Z][a-z]{2,8} (foo|bar)é", "Abc", "[ a-z]"),
        ("[A-Z][a-z]{2,8} (foo|bar)é", "Abc ", "'fooé' or 'baré'"),
        ("[A-Z][a-z]{2,8} (foo|bar)é", "Abc foo", "'é'"),
        ("é", b"\xc3", "byte 0xa9"),
        ("(nowhere|nothing|[x-z])+!", "", "'no', 'x', 'y' or 'z'"),
        ("\\x1b|\\x07", "", "'\\x07' or '\\x1b'"),
        ('[^"\\\\]*', "", "any character but '\"' or '\\\\' or end of text"),
        ("\\p{Lu}.", b"\xc3\x89", "any character"),
        ("[ä-ü]", b"\xc3", "the rest of a character"),
    ],
)
def test_regex(pattern, text, expected):
    assert in_words(place(constrain.Grammar.from_regex(pattern), text).expected()) == expected


def test_choices():
    grammar = constrain.Grammar.from_choices(["yes", "no"])
    assert in_words(place(grammar, "").expected()) == "'no' or 'yes'"
    assert in_words(place(grammar, "y").expected()) == "'es'"
    assert place(grammar, "yes").expected() == [END_OF_TEXT]


@pytest.mark.parametrize("values", [["x" * 100_000], ["x" * 100_000, "y"], ["x" * 70, "y" * 70]])
def test_long_values_are_put_in_few_words(values):
    grammar = constrain.Grammar.from_json_schema({"enum": values})
    for text in ("", '"', '"xx'):
        words = in_words(place(grammar, text).expected())
        assert 5 < len(words) < 200
        assert "of" not in words[-3:]


def test_patterns_can_be_read():
    grammar = constrain.Grammar.from_json_schema({"type": "string", "pattern": r"^\d+\.\d$"})
    assert in_words(place(grammar, "").expected()) == r"a string with pattern '^\d+\.\d$'"


def test_names_cannot_reach_the_terminal():
    # A schema or a grammar may come from anywhere.
    schema = {"properties": {"\x1b[31m\u202e": {"type": "string", "maxLength": 9}}, "required": ["\x1b[31m\u202e"]}
    recognizer = place(constrain.Grammar.from_json_schema(schema), "{")
    assert all(str(each).isprintable() for each in recognizer.expected())
    for byte in rb'"\u001b[31m' + "\u202e".encode() + b'":':
        assert recognizer.try_push_byte(byte)
    for each in recognizer.expected():
        assert str(each).isprintable()
        assert all(rule.isprintable() for rule in each.rules)
    lark = place(constrain.Grammar.from_lark('start: "\x1b[31m"'), "")
    assert in_words(lark.expected()).isprintable()


def test_fields():
    (bracket, *names) = place(constrain.Grammar.from_json_schema({"properties": {"a": True}}), "{").expected()
    assert (bracket.texts, bracket.next_bytes, bracket.rules) == (("'}'",), b"\n\r }", ("#",))
    assert {each.kind for each in names} == {"a property name"}
    assert all(each.next_bytes == b'\n\r "' for each in names)


def test_after_an_end_token_nothing_is_expected():
    vocabulary = constrain.Vocabulary([b"a", b""], eos_ids=[1])
    matcher = constrain.Matcher(constrain.GrammarCompiler(vocabulary).compile(constrain.Grammar.from_regex("a")))
    assert in_words(matcher.expected()) == "'a'"
    assert matcher.accept_token(0)
    assert matcher.expected() == [END_OF_TEXT]
    assert matcher.accept_token(1)
    assert matcher.expected() == []


def test_as_many_as_asked_for():
    schema = {"properties": {f"p{i}": True for i in range(300)}, "additionalProperties": False}
    recognizer = place(constrain.Grammar.from_json_schema(schema), "{")
    assert len(recognizer.expected()) == 64
    assert len(recognizer.expected(limit=1000)) == 301
    assert in_words(recognizer.expected(), 2) == '\'}\' or a property name ("p0", "p1" or more)'
    assert (
        in_words(recognizer.expected(limit=1000), 2, limit=1000) == '\'}\' or a property name ("p0", "p1" or 298 more)'
    )


@pytest.mark.parametrize(
    "pattern",
    ["(" * 90 + "a" + ")*" * 90, "[a-z]{3000}", "(a|b|c|d|e|f|g|h|i|j|k){100}", "|".join(f"x{i}" for i in range(5000))],
    ids=["deep", "long", "product", "wide"],
)
def test_large_expressions_are_put_in_few_words(pattern):
    recognizer = place(constrain.Grammar.from_regex(pattern), "")
    assert len(in_words(recognizer.expected())) < 200


values = st.recursive(
    st.none() | st.booleans() | st.integers(-50, 50) | st.text('ab"\\é😀', max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "name", "é"]), inner, max_size=3),
    max_leaves=6,
)


def test_keys_in_any_order():
    # Their rules, and lexemes, are made while the text is read.
    schema = {
        "properties": {f"p{i}": {"type": "integer"} for i in range(12)},
        "patternProperties": {"^x": {"type": "string"}},
        "additionalProperties": {"type": "boolean"},
        "required": ["p3"],
        "type": "object",
    }
    recognizer = COMPILER.compile(constrain.Grammar.from_json_schema(schema, property_order="any")).recognizer()
    said = {}
    text = b'{"p5": 1, "zz": true, "xy": "q", "p3": 2}'
    for i in range(len(text)):
        expected = recognizer.expected(1000)
        said[text[:i]] = in_words(expected, 20, limit=1000)
        assert set(b"".join(each.next_bytes for each in expected)) == bytes_taken(recognizer)
        assert recognizer.try_push_byte(text[i])
    assert said[b'{"p5": 1,'].startswith('a property name ("p0", "p1", "p2", "p3", "p4", "p6", ')
    assert said[b'{"p5": 1, "zz": '] == "true or false"
    assert said[b'{"p5": 1, "zz": true, "xy": '] == "a string"


def test_names_in_any_order_are_listed_as_in_the_schema():
    schema = {"properties": {f"p{i}": {"type": "integer"} for i in range(4)}, "required": ["p2"], "type": "object"}
    recognizer = COMPILER.compile(constrain.Grammar.from_json_schema(schema, property_order="any")).recognizer()
    for byte in b'{"p1": 1,':
        assert recognizer.try_push_byte(byte)
    assert in_words(recognizer.expected(100), 20, limit=100) == 'a property name ("p0", "p2", "p3" or another one)'


def bytes_taken(recognizer):
    taken = set()
    for byte in range(256):
        if recognizer.try_push_byte(byte):
            taken.add(byte)
            recognizer.pop_bytes(1)
    return taken


@settings(max_examples=40)
@given(value=values, data=st.data())
def test_next_bytes_are_exactly_those_that_are_taken(value, data):
    # A union of what is expected is the truth about the next byte, whatever the words.
    grammar = constrain.Grammar.from_json_schema({"properties": {"a": {"type": "string", "pattern": "^[ab]*$"}}})
    recognizer = COMPILER.compile(grammar).recognizer()
    text = json.dumps(value, ensure_ascii=data.draw(st.booleans())).encode()
    for byte in text[: data.draw(st.integers(0, len(text)))]:
        if not recognizer.try_push_byte(byte):
            break
    expected = recognizer.expected(1000)
    told = set(b"".join(each.next_bytes for each in expected))
    assert told == bytes_taken(recognizer)
    assert (END_OF_TEXT in expected) == recognizer.is_accepting()
    assert in_words(expected)
