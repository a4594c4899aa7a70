"""Calls in Python: what may be written, what Python and the schema make of it, and how it is read back."""

from __future__ import annotations

import ast
import contextlib
import random
import warnings
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
from byte_tokens import BYTES, fits
from hypothesis import given, settings
from hypothesis import strategies as st
from processor_time import processor_time

import constrain
from bench.tool_turns import TOOLS as BENCH_TOOLS
from bench.tool_turns import calls_as_python_reads_them, random_turn, schemas, vocabulary_for, with_infinities
from constrain.errors import SchemaError
from constrain.grammar.tools.styles import STYLES
from constrain.tools import Call, TurnParser, parse
from constrain.tools.python_calls import read_call

STYLE = "llama4_pythonic"


def compiled(parameters: Any, **options: Any) -> constrain.CompiledGrammar:
    tool = {"name": "f", "parameters": parameters}
    grammar = constrain.Grammar.from_tools([tool], **{"style": STYLE, "tool_choice": "required", **options})
    return constrain.CompiledGrammar(grammar.ir, BYTES)


def has(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


STRINGS = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
ANY_INTEGERS = {"type": "object", "additionalProperties": {"type": "integer"}}
MEMBERS = {"type": "object", "additionalProperties": {"type": "boolean"}}
DASHED = {"type": "object", "patternProperties": {"^x-?[ab]$": {"type": "integer"}}, "additionalProperties": False}
# A schema, arguments that are valid for it, and such that are not, or are not written as they may be.
CASES: list[tuple[Any, list[str], list[str]]] = [
    (
        has(s={"type": "string", "minLength": 2, "maxLength": 3}),
        ['s="ab"', "s='\\x41\\U0001f600'", 's= "abc" ', 's="\'a"', "s='\\a\\v\\''"],
        [
            ' s="ab"',
            '\n  s="ab"',
            's ="ab"',
            's="a"',
            's="abcd"',
            's="\\ud83d\\ude00"',
            's="\n\n"',
            's="\\/a"',
            "s='''ab'''",
            "s='ab\"",
            "s=ab",
            "'ab'",
        ],
    ),
    (has(s={"type": "string", "pattern": "^a'b\"+$"}), ["s='a\\'b\"'", 's="a\'b\\"\\""'], ['s="a\'b"']),
    (has(s={"type": "string", "format": "date"}), ['s="2020-01-01"', "s='2020-01-\\x301'"], ['s="2020-1-1"']),
    (has(s={"type": "string", "format": "idn-hostname"}), ['s="a.b"'], ['s="-a"']),
    (
        has(e={"enum": ["x'", 1, None, True, ["q"], {"k": "v"}]}),
        ['e="x\'"', "e='x\\''", "e=1", "e=None", "e=True", "e=['q']", "e={\"k\": 'v'}"],
        ["e=False", "e=true", "e=null", "e={'k': 'w'}", "e=('q',)", "e='x''"],
    ),
    (has(a=STRINGS), ["a=[\"a\", 'b']", "a=[ 'a' , \"it's\"]", "a=[]"], ["a=[\"a\", 'a']", "a=['\\x61', \"b\", 'a']"]),
    (has(a=STRINGS), [], ['a=[\'"\', "\\""]', "a=['a', 'b', \"c\", '\\u0062']"]),
    (
        has(a={"type": "array", "items": {"type": ["boolean", "null", "number"]}, "uniqueItems": True}),
        ["a=[1, True, False, None, 0, 2.5]"],
        ["a=[1, 1.0]", "a=[True, True]", "a=[None, None]", "a=[0, 25e-1, 2.5]", "a=[True, 1, 1e0]"],
    ),
    (
        has(a={"type": "array", "items": has(k={"type": "string"}, n={"type": "null"}), "uniqueItems": True}),
        ["a=[{'k': 'a'}, {\"k\": 'b'}, {}]", "a=[{'k': 'a'}, {'k': 'a', 'n': None}]"],
        ["a=[{'k': 'a'}, {\"k\": \"\\x61\"}]", "a=[{}, {}]", "a=[{'n': None}, {\"n\": None}]"],
    ),
    (
        has(a={"type": "array", "items": {"type": "array", "items": {"type": "boolean"}}, "uniqueItems": True}),
        ["a=[[True], [False], [], [True, True]]"],
        ["a=[[True], [ True]]", "a=[[], []]"],
    ),
    (
        has(a={"type": "array", "items": {"type": "string"}, "not": {"uniqueItems": True}}),
        ["a=['a', \"a\"]"],
        ["a=['a']"],
    ),
    (has(a={"contains": {"const": True}, "minContains": 2, "type": "array"}), ["a=[True, 1, True]"], ["a=[True, 1]"]),
    (
        has(n={"type": "integer", "multipleOf": 3, "maximum": 9}),
        ["n=-3", "n= 9"],
        ["n=4", "n=12", "n=0x3", "n=1_2", "n=+3"],
    ),
    (
        has(m=MEMBERS),
        ["m={'a-b': True, \"c\" : False}"],
        ["m={'a': True, \"a\": False}", "m={'a': True, '\\x61': True}"],
    ),
    (has(m=MEMBERS), ["m={ }"], ["m={a: True}", "m={'a': true}", "m=dict(a=True)", "m={'a': True,}"]),
    (has(r={"$ref": "#"}), ["r={'r': {\"r\": {}}}"], ["r={r={}}", "r=1"]),
    (has(größe={"type": "integer"}), ["größe=1"], ["größe='1'", "gr\\xf6ße=1"]),
    (
        {**has(a={}, b={}), "required": ["b"]},
        ["a=1, b=2", "b=1"],
        ["a=1", "b=1, a=2", "b=1, b=1", "b=1 a=1", "1, b=1", "b=1,"],
    ),
    ({**ANY_INTEGERS, "minProperties": 2}, ["a=1,b=2", "_x=1, A9=2"], ["a=1", "a=1, a=2", "a=1, class=2", "1a=1, b=2"]),
    ({**DASHED, "minProperties": 2}, ["xa=1, xb=2"], ["xa=1", "x-a=1, xb=2"]),
    ({**has(**{"a-b": False}, c={}), "minProperties": 1}, ["c=1"], ["a-b=1", ""]),
    ({"enum": [{"a": 1}, {"a": 2, "b": [True]}]}, ["a=1", "a=2, b=[True]"], ["a=2", "b=[True], a=2"]),
    ({"enum": [{"a": number} for number in range(30)]}, ["a=1", "a=29"], ["a=30"]),
    ({**has(a={"type": "null"}), "type": ["object", "array"]}, ["a=None", ""], [" ", "a=None, b=1"]),
    (
        has(o=has(**{f"p{number}": {} for number in range(600)})),
        ["o={'p1': 2, \"p599\": 3}"],
        ["o={'p1\": 2}", "o={'p2': 1, 'p1': 2}"],
    ),
    (has(**{f"p{number}": {} for number in range(600)}), ["p1=2, p599=3"], ["p2=1, p1=2", "p600=1"]),
]


@pytest.mark.parametrize(("schema", "right", "wrong"), CASES)
def test_what_a_schema_says_holds_in_calls(schema: Any, right: list[str], wrong: list[str]) -> None:
    grammar = compiled(schema)
    for arguments in right:
        text = f"[f({arguments})]"
        assert fits(grammar, text), arguments
        assert parse(text, STYLE).calls == calls_as_python_reads_them(text, STYLES[STYLE])
        jsonschema.validate(parse(text, STYLE).calls[0].arguments, schema)
    for arguments in wrong:
        assert not fits(grammar, f"[f({arguments})]"), arguments


def test_arguments_in_any_order() -> None:
    grammar = compiled(has(a={}, b=has(x={}, y={})), property_order="any")
    assert fits(grammar, "[f(b={'y': 1, \"x\": 2}, a=2)]")
    assert not fits(grammar, "[f(a=1, b={}, a=2)]")
    assert not fits(grammar, "[f(b={'y': 1, \"y\": 2})]")


@pytest.mark.parametrize(
    ("tool", "message"),
    [
        (
            {"parameters": has(**{"a-b": {}})},
            "at #/0/parameters/properties/a-b: the property 'a-b' of 'f' cannot be an",
        ),
        (
            {"parameters": has(**{"class": {}})},
            "at #/0/parameters/properties/class: the property 'class' of 'f' cannot",
        ),
        # Python takes it for "fi".
        (
            {"parameters": {"properties": {"ﬁ": {}}}},
            "at #/0/parameters/properties/%EF%AC%81: the property 'ﬁ' of 'f'",
        ),
        ({"parameters": {"required": ["x y"]}}, "at #/0/parameters/required: the property 'x y' of 'f' cannot be an"),
        ({"parameters": {**DASHED, "minProperties": 3}}, "at #/0/parameters/minProperties: nothing is valid for this"),
        ({"parameters": {"type": "array"}}, "at #/0/parameters/type: the arguments of a tool are an object, not"),
        ({"parameters": {"x-guidance": {"whitespace_pattern": " "}}}, "at #/0/parameters/x-guidance: white space, "),
        ({"parameters": {"x-guidance": {"json_allowed_escapes": "n"}}}, "at #/0/parameters/x-guidance: white space, "),
        ({"name": "a-b"}, "at #/0/name: a tool is called by an identifier of Python in the style llama4_pythonic, not"),
        (
            {"name": "a.if"},
            "at #/0/name: a tool is called by an identifier of Python in the style llama4_pythonic, not",
        ),
    ],
)
def test_what_cannot_be_called(tool: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        constrain.Grammar.from_tools([{"name": "f", **tool}], style=STYLE)
    assert str(caught.value).startswith(message)


def test_names_with_dots() -> None:
    grammar = constrain.Grammar.from_tools([{"name": "math.sqrt", "parameters": has(x={})}], style=STYLE)
    text = "[math.sqrt(x=2)]"
    assert fits(constrain.CompiledGrammar(grammar.ir, BYTES), text)
    assert parse(text, STYLE).calls == [Call("math.sqrt", {"x": 2})]


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab'\"\\é\n", max_size=3), inner, max_size=3),
    max_leaves=8,
)
FREE = compiled({"type": "object"}, closed=False)


@given(st.dictionaries(st.sampled_from(["a", "b_1", "_"]), VALUES))
@settings(max_examples=150, deadline=None)
def test_what_python_writes_for_values_is_allowed_and_read_back(values: dict[str, Any]) -> None:
    text = f"[f({', '.join(f'{name}={value!r}' for name, value in values.items())})]"
    assert fits(FREE, text)
    assert parse(text, STYLE).calls == [Call("f", values)]


# -- reading ---------------------------------------------------------------------------------------

PIECES = [
    "'",
    '"',
    "'''",
    '"""',
    "\\",
    "\\x41",
    "\\d",
    "\\777",
    "\\N{DASH}",
    "\\u00e9",
    "1.5",
    "1_0",
    "0x1",
    "2j",
    "...",
]
PIECES += ["...", "None", "True", *"\na1-[]{}(),: rbuf*é\0#"]


def as_python_reads(literal: str) -> Any:
    """A value of JSON that Python reads, with lists for tuples; ValueError for anything else."""

    def plain(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [plain(item) for item in value]
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return {key: plain(item) for key, item in value.items()}
        if value is None or isinstance(value, (bool, str, int, float)):
            return value
        raise ValueError

    try:
        return plain(ast.literal_eval(f"({literal}\n)"))
    except (SyntaxError, TypeError):
        raise ValueError from None


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=9).map("".join) | VALUES.map(repr))
@settings(max_examples=600, deadline=None)
def test_what_is_read_is_what_python_reads(literal: str) -> None:
    turn = parse(f"[f(a=({literal}\n))]", STYLE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = [Call("f", {"a": as_python_reads(literal)})]
        except ValueError:
            expected = []
    # What Python takes for a comment is not looked into.
    if "#" not in literal:
        assert turn.is_complete == bool(expected)
        assert not expected or turn.calls == expected


def test_strings_that_python_warns_of() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (call,) = parse("""[f(a="\\d+\\\\d\\777", b=r'\\d', c='''it's \\q''')]""", STYLE).calls
    assert call.arguments == {"a": "\\d+\\d\u01ff", "b": "\\d", "c": "it's \\q"}


READ = [
    "[f(a=\"it's (1)\", b='\"]'), g()]",
    "[f(a=(1, 2,), b={'k': [None, true], \"l\": null}, c=-1.5, d=+2)]",
    "[f(a='''x'y''', b=\"\"\"]\"\"\", c='' \"\")]",
    "[math.sqrt(x = 1)]",
    "[1] is no call",
    "text [f(a=1)]",
    "[f(a=1), g(1)] and more",
    "[f(a=1, a=2)]",
    "[f(**{'a': 1})]",
    "[f(a=b)]",
    "[f(a=b'x')]",
    "[f(a={1: 2})]",
    "[f(a=1",
    "[f(a='x)]",
    "[]",
    "",
]


@pytest.mark.parametrize("text", READ)
def test_calls_that_stream(text: str) -> None:
    whole = parse(text, STYLE)
    for cut in range(len(text) + 1):
        parser = TurnParser(STYLE)
        events = parser.feed(text[:cut])
        assert whole.text.startswith(parser.turn.text)
        assert whole.calls[: len(parser.turn.calls)] == parser.turn.calls
        assert [event.call for event in events if event.kind == "call"] == parser.turn.calls
        parser.feed(text[cut:])
        parser.finish()
        assert parser.turn == whole


def test_what_streams_is_read() -> None:
    found = [(turn.text, [call.arguments for call in turn.calls]) for turn in (parse(text, STYLE) for text in READ)]
    assert found[:4] == [
        ("", [{"a": "it's (1)", "b": '"]'}, {}]),
        ("", [{"a": [1, 2], "b": {"k": [None, True], "l": None}, "c": -1.5, "d": 2}]),
        ("", [{"a": "x'y", "b": "]", "c": ""}]),
        ("", [{"x": 1}]),
    ]
    # What is no call is text, all of it.
    assert found[4:6] == [("[1] is no call", []), ("text [f(a=1)]", [])]
    assert found[6] == (", g(1)] and more", [{"a": 1}])
    assert found[7:12] == [(text, []) for text in READ[7:12]]
    assert found[12:] == [("", []), ("", []), ("[]", []), ("", [])]


@pytest.mark.parametrize(
    "middle", ["[" * 50_000, "-" * 50_000, "'" * 50_001, "(" * 500 + ")" * 500, "a" * 100_000, "'\\" * 50_000]
)
def test_what_python_cannot_read_is_no_call(middle: str) -> None:
    turn = parse(f"[f(x={middle})]", STYLE)
    assert turn.calls == []
    assert not turn.is_complete


_LONG_VALUES: dict[str, Callable[[int], str]] = {
    "numbers": lambda n: f"(a=[{'1e400,' * n}])",
    "no end": lambda n: '(a=["' + '\\"' * 8 * n,
    "no end of several lines": lambda n: "(a=['''" + "\\'" * 8 * n + "\\",
}


@pytest.mark.parametrize("name", _LONG_VALUES)
def test_long_values_take_time_in_proportion_to_their_length(name: str) -> None:
    def seconds(n: int) -> float:
        with processor_time() as spent, contextlib.suppress(ValueError):
            read_call(_LONG_VALUES[name](n))
        return spent.seconds

    assert min(seconds(2000) for _ in range(2)) < 8 * min(seconds(500) for _ in range(2)) + 0.05


def test_places_of_numbers_beyond_a_float() -> None:
    text = "(a=['é', 1e400,\r\n'é\\\n',1e401,\r -1e402,'''\n''', # it's 07\n \"a\\d\", 1_0e400])"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = read_call(text)
    assert found == {"a": ["é", 10**400, "é", 10**401, -(10**402), "\n", "a\\d", 10**401]}


def test_text_around_the_calls_of_lfm2() -> None:
    grammar = constrain.Grammar.from_tools([{"name": "f", "parameters": has(a={})}], style="lfm2")
    text = "<think>Hm.</think>\nLet me see.<|tool_call_start|>[f(a='x')]<|tool_call_end|>Just a moment."
    again = f"{text}<|tool_call_start|>[f()]<|tool_call_end|>"
    for each, calls in ((text, 1), (again, 2)):
        assert fits(constrain.CompiledGrammar(grammar.ir, BYTES), each)
        turn = parse(each, "lfm2")
        assert (turn.text, turn.reasoning, len(turn.calls)) == ("Let me see.Just a moment.", "Hm.", calls)
    alone = constrain.Grammar.from_tools([{"name": "f", "parameters": has(a={})}], style="lfm2", parallel=False)
    assert not fits(constrain.CompiledGrammar(alone.ir, BYTES), again)


def test_a_turn_that_is_text_or_calls() -> None:
    grammar = constrain.Grammar.from_tools([{"name": "f", "parameters": has(a={})}], style=STYLE)
    turns = constrain.CompiledGrammar(grammar.ir, BYTES)
    for text in ("", "See [1] and [f(a=1)].", " [", "[f(a=1), f()]"):
        assert fits(turns, text)
    for text in ("[", "[1]", "[f()", "[]", "[f(a=1)] ", "[f(),f()]"):
        assert not fits(turns, text)


def test_what_the_template_of_lfm2_writes_for_past_calls_is_read() -> None:
    """Strings as they are in double quotes, objects as JSON, anything else as Python prints it."""
    text = """<|tool_call_start|>[f(s="é", o={"a": true, "b": null}, l=['x', True], n=None)]<|tool_call_end|>"""
    (call,) = parse(text, "lfm2").calls
    assert call.arguments == {"s": "é", "o": {"a": True, "b": None}, "l": ["x", True], "n": None}


def test_words_of_json_in_the_calls_of_olmo3() -> None:
    grammar = compiled(has(a={"type": ["boolean", "null"]}), style="olmo3", reasoning=False)
    for value, is_right in (("true", True), ("null", True), ("True", False), ("\ntrue", False)):
        assert fits(grammar, f"<function_calls>f(a={value})</function_calls>") == is_right
    assert parse("<function_calls>f(a=true)\nf()</function_calls>", "olmo3").calls == [
        Call("f", {"a": True}),
        Call("f", {}),
    ]


def test_marks_that_are_tokens() -> None:
    names = {257: "<|tool_call_start|>", 258: "<|tool_call_end|>"}
    texts = [*(bytes((byte,)) for byte in range(256)), b"</s>", b"", b""]
    vocabulary = constrain.Vocabulary(texts, eos_ids=[256], special_ids=list(names), names=names)
    tools = [{"name": "f", "parameters": has(a={"type": "string"})}]
    grammar = constrain.Grammar.from_tools(tools, style="lfm2", special_tokens=names.values())
    turn = constrain.GrammarCompiler(vocabulary).compile(grammar)

    def follows(*parts: str | int) -> bool:
        matcher = constrain.Matcher(turn)
        tokens = [token for part in parts for token in ([part] if isinstance(part, int) else part.encode())]
        return all(map(matcher.accept_token, tokens)) and matcher.is_accepting()

    assert follows("Hm.", 257, "[f(a='<|tool_call_end|>')]", 258, "Done.")
    assert not follows(257, "[f(a='", 258, "')]", 258)
    assert not follows(257, "[f()]<|tool_call_end|>")


# -- turns, and what becomes of them by accident -----------------------------------------------------


@pytest.mark.parametrize("name", ["llama4_pythonic", "olmo3"])
def test_what_is_still_allowed_after_an_accident_is_valid(name: str) -> None:
    """Turns with a character changed: those that fit are calls that Python reads, valid for the schema."""
    style, rng, known = STYLES[name], random.Random(3), schemas()
    vocabulary = vocabulary_for(style, rng)
    grammar = constrain.Grammar.from_tools(BENCH_TOOLS, style=style, tool_choice="required", reasoning=False)
    walks = constrain.CompiledGrammar(grammar.ir, vocabulary)
    alone = constrain.CompiledGrammar(grammar.ir, BYTES)
    kept = 0
    for _ in range(60):
        text = random_turn(walks, rng)
        assert text is not None
        for _ in range(20):
            place = rng.randrange(len(text))
            changed = text[:place] + rng.choice(["", *"'\"\\[](){}=,: \nx1aTN"]) + text[place + rng.randrange(2) :]
            if not fits(alone, changed):
                continue
            kept += 1
            calls = calls_as_python_reads_them(changed, style)
            read = [Call(each.name, with_infinities(each.arguments)) for each in parse(changed, style).calls]
            assert read == calls
            for call in calls:
                jsonschema.validate(call.arguments, known[call.name])
    assert kept > 50


def test_what_may_come_is_told_in_words() -> None:
    grammar = compiled(has(s={"type": "string"}, e={"enum": ["x"]}, b={"type": "boolean"}))

    def expected(arguments: str) -> list[str]:
        matcher = constrain.Matcher(grammar)
        assert matcher.accept_bytes(f"[f({arguments}".encode())
        return [text for each in matcher.expected() for text in each.texts]

    assert expected("") == ["')' (more of an empty value)", "s", "e", "b"]
    assert expected("s=") == ["a string"]
    assert expected("s='a") == ["more of a string", '"\'"']
    assert expected('s="a') == ["more of a string", "'\"'"]
    assert expected("b=") == ["True", "False"]
    assert expected("e=") == ['"x"', "'x'"]
