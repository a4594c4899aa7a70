"""Structural tags: free text against a slow reader, schemas within a text against json, styles and errors."""

from __future__ import annotations

import itertools
import json
import random
import tracemalloc
from collections.abc import Sequence
from typing import Any

import pytest
from byte_tokens import BYTES, fits
from masks import mask_of
from processor_time import processor_time

import constrain
from constrain.errors import ConstrainError, SchemaError
from constrain.grammar import free_text
from constrain.grammar.embedding import EmbeddingBuilder
from constrain.grammar.json_schema.embedded import embed_schema
from constrain.grammar.json_schema.lexical.layout import layout_for
from constrain.grammar.json_schema.lexical.notation import USUAL_NOTATION
from constrain.grammar.languages.regular import Intersect, literal

COMPILER = constrain.GrammarCompiler(BYTES)


def compiled(format: Any, vocabulary: constrain.Vocabulary = BYTES) -> constrain.CompiledGrammar:
    return constrain.CompiledGrammar(constrain.Grammar.from_structural_tag(format).ir, vocabulary)


def begins(grammar: constrain.CompiledGrammar, text: str) -> bool:
    return constrain.Matcher(grammar).accept_bytes(text.encode())


# -- free text -------------------------------------------------------------------------------------


class Reader:
    """Reads triggered tags as they are described: the first trigger that comes to its end begins a tag.

    Tags are (begin, content, end), all of them strings.
    """

    def __init__(self, triggers: Sequence[str], tags: Sequence[tuple[str, str, str]], excludes: Sequence[str]) -> None:
        self.triggers = triggers
        self.tags = tags
        self.excludes = excludes

    def read(self, text: str) -> tuple[bool, bool]:
        """Whether a text is the beginning of one of the language, and whether it is one."""
        ends = [(text.find(trigger) + len(trigger), trigger) for trigger in self.triggers if text.find(trigger) >= 0]
        if not ends:
            clean = not any(each in text for each in self.excludes)
            # Behind what is excluded nothing helps, unless a trigger reaches into it.
            return clean, clean
        first = min(ends)[0]
        viable = whole = False
        for end, trigger in ends:
            if end != first or any(each in text[: end - len(trigger)] for each in self.excludes):
                continue
            for begin, content, close in self.tags:
                if begin.startswith(trigger):
                    rest = begin[len(trigger) :] + content + close
                    behind = text[end:]
                    if behind.startswith(rest):
                        found = self.read(behind[len(rest) :])
                        viable, whole = viable or found[0], whole or found[1]
                    else:
                        viable = viable or rest.startswith(behind)
        return viable, whole


CASES: list[tuple[list[str], list[tuple[str, str, str]], list[str]]] = [
    (["ab"], [("ab", "c", "a")], []),
    (["aba"], [("aba", "b", "c"), ("abac", "", "")], []),
    (["a", "bb"], [("ab", "", "c"), ("bba", "c", "b")], []),
    (["cc"], [("cc", "a", "c")], ["ab"]),
    (["aab", "bab"], [("aab", "", "c"), ("bab", "c", ""), ("babb", "a", "c")], []),
    # Of many triggers, those with a common beginning share a lexeme.
    (["abaa", "abab", "abac", "abb", "abc"], [(each, "b", "a") for each in ("abaa", "abab", "abac", "abb", "abc")], []),
    (["cab", "cac", "cba", "cbb", "bba"], [(each, "", "") for each in ("cab", "cac", "cba", "cbba", "bba")], ["aa"]),
    (["caa", "cab", "cac", "cbaa", "cba", "cca"], [(f"{each}b", "a", "") for each in ("caa", "cab", "cac", "cba")], []),
]


@pytest.mark.parametrize(("triggers", "tags", "excludes"), CASES)
def test_free_text_is_free_up_to_the_first_trigger(
    triggers: list[str], tags: list[tuple[str, str, str]], excludes: list[str]
) -> None:
    grammar = compiled(
        {
            "type": "triggered_tags",
            "triggers": triggers,
            "tags": [
                {"begin": begin, "content": {"type": "const_string", "value": content}, "end": end}
                for begin, content, end in tags
            ],
            "excludes": excludes,
        }
    )
    reader = Reader(triggers, tags, excludes)
    for length in range(8):
        for letters in itertools.product("abc", repeat=length):
            text = "".join(letters)
            assert (begins(grammar, text), fits(grammar, text)) == reader.read(text), text


def test_masks_in_free_text_are_exact_over_the_borders_of_tokens() -> None:
    tokens = ["a", "b", "c", "ab", "ba", "cab", "abc", "bca", "aabcab", "caab", "abca"]
    vocabulary = constrain.Vocabulary([*(token.encode() for token in tokens), b"</s>"], eos_ids=[len(tokens)])
    rng = random.Random(3)
    for triggers, tags, excludes in CASES:
        inner = [{"begin": b, "content": {"type": "const_string", "value": c}, "end": e} for b, c, e in tags]
        grammar = compiled(
            {"type": "triggered_tags", "triggers": triggers, "tags": inner, "excludes": excludes}, vocabulary
        )
        reader = Reader(triggers, tags, excludes)
        for _ in range(20):
            matcher, text = constrain.Matcher(grammar), ""
            for _ in range(12):
                expected = {index for index, token in enumerate(tokens) if reader.read(text + token)[0]}
                if reader.read(text)[1]:
                    expected.add(len(tokens))
                assert mask_of(matcher) == expected, text
                token = rng.choice(sorted(expected - {len(tokens)}))
                assert matcher.accept_token(token)
                text += tokens[token]


def test_a_tag_of_text_ends_with_its_first_end() -> None:
    grammar = compiled({"type": "tag", "begin": "<", "content": {"type": "any_text"}, "end": ["aba", ">>"]})
    for text in ("<", "<ab", "<x>", "<é"):
        assert begins(grammar, text)
        assert not fits(grammar, text)
    for text in ("<aba", "<>>", "<abbaba", "<\nabaaba"):
        assert fits(grammar, text) == (text.find("aba") in (-1, len(text) - 3)), text
    assert not begins(grammar, "<ababa")


@pytest.mark.parametrize("limit", [{}, {"max_tokens": 9}])
def test_an_end_that_begins_with_another_is_never_reached(limit: dict[str, int]) -> None:
    text = {"type": "any_text", **limit}
    grammar = compiled({"type": "tag", "begin": "<", "content": text, "end": ["!", "!.", "a!b", "?"]})
    assert all(fits(grammar, text) for text in ("<!", "<a!", "<ab?"))
    assert not begins(grammar, "<!.")
    assert not begins(grammar, "<a!b")


def test_text_that_may_be_left_out_of_a_tag_ends_with_its_first_end() -> None:
    call = {"type": "tag", "begin": "[x", "content": {"type": "const_string", "value": "1"}, "end": "]"}
    calls = {"type": "triggered_tags", "triggers": ["[x"], "tags": [call]}
    for content in ({"type": "any_text"}, calls, {"type": "sequence", "elements": [call, {"type": "any_text"}]}):
        optional = {"type": "optional", "content": content}
        grammar = compiled({"type": "tag", "begin": "<", "content": optional, "end": ["aba", ">"]})
        said = "[x1]" if content["type"] == "sequence" else ""
        for text in ("<>", "<aba", f"<{said}b>", f"<{said}abbaba"):
            assert fits(grammar, text)
            assert not begins(grammar, text + "b")
        assert begins(grammar, f"<{said}b")
        assert not fits(grammar, f"<{said}b")


def test_text_anywhere_in_a_tag_holds_no_end_of_it() -> None:
    text: dict[str, Any] = {"type": "any_text"}
    mark = {"type": "const_string", "value": "x"}
    call = {"type": "tag", "begin": "[x", "content": {"type": "const_string", "value": "1"}, "end": "]"}
    calls = {"type": "triggered_tags", "triggers": ["[x"], "tags": [call]}
    few = {"type": "repeat", "content": {**text, "max_chars": 1}, "min": 1, "max": 3}
    marked = [{"type": "sequence", "elements": elements} for elements in ([mark, text], [text, mark])]
    choice = {"type": "or", "elements": [mark, text]}
    for content, said in (
        ({"type": "star", "content": text}, ("", "a", "ab")),
        ({"type": "plus", "content": text}, ("", "a", "ab")),
        ({"type": "repeat", "content": text, "min": 2, "max": 3}, ("", "a", "ab")),
        ({"type": "repeat", "content": text, "min": 0, "max": -1}, ("", "a", "ab")),
        (few, ("", "a", "abc")),
        ({"type": "star", "content": marked[0]}, ("", "x", "xaxb")),
        ({"type": "plus", "content": marked[0]}, ("x", "xa", "xaxb")),
        ({"type": "star", "content": marked[1]}, ("", "x", "axbx")),
        ({"type": "star", "content": choice}, ("", "x", "xab")),
        ({"type": "plus", "content": calls}, ("", "a", "[x1]", "a[x1]b[x1]")),
        ({"type": "sequence", "elements": [calls, mark]}, ("x", "[x1]ax")),
        ({"type": "optional", "content": {"type": "plus", "content": {**text, "excludes": ["c"]}}}, ("", "a", "ab")),
        # A text is free between the patterns of a dispatch, and not behind one of them.
        ({"type": "dispatch", "rules": [["[x", text]], "loop": False}, ("", "a", "a>b", "[xa")),
    ):
        grammar = compiled({"type": "tag", "begin": "<", "content": content, "end": ["</a>", ">"]})
        for each in said:
            for end in ("</a>", ">"):
                assert fits(grammar, f"<{each}{end}"), (content, each)
        for each in ("ax</a>x", "x>ax", "[x1]>x", "[xa>b"):
            if content["type"] != "dispatch" or each == "[xa>b":
                assert not fits(grammar, f"<{each}>"), (content, each)


def test_texts_one_behind_the_other_end_with_the_first_end_of_the_tag() -> None:
    for kind in ("star", "plus", "optional"):
        grammar = compiled(
            {
                "type": "tag",
                "begin": "<",
                "content": {"type": kind, "content": {"type": "any_text"}},
                "end": ["aba", ">"],
            }
        )
        assert fits(grammar, "<abbaba")
        assert not begins(grammar, "<ababa")
    never = {"type": "repeat", "content": {"type": "any_text"}, "min": 0, "max": 0}
    assert fits(compiled({"type": "tag", "begin": "<", "content": never, "end": ">"}), "<>")
    assert not begins(compiled({"type": "tag", "begin": "<", "content": never, "end": ">"}), "<a")


def test_text_with_a_number_of_characters() -> None:
    grammar = compiled({"type": "tag", "begin": "(", "content": {"type": "any_text", "max_chars": 2}, "end": ")"})
    assert fits(grammar, "(éé)")
    assert fits(grammar, "()")
    assert not begins(grammar, "(éée")


@pytest.mark.parametrize(
    ("options", "good", "bad"),
    [
        ({}, ["", "x", "<a>1</a>", "x<a>1</a>y<a>1</a>"], ["<a>2"]),
        ({"at_least_one": True}, ["<a>1</a>", "<a>1</a>y<a>1</a>"], ["", "x", "x<a>1</a>"]),
        ({"stop_after_first": True}, ["", "x", "x<a>1</a>"], ["<a>1</a>y", "<a>1</a><a>1</a>"]),
        ({"at_least_one": True, "stop_after_first": True}, ["<a>1</a>"], ["", "x<a>1</a>", "<a>1</a> "]),
    ],
)
def test_options_of_triggered_tags(options: dict[str, bool], good: list[str], bad: list[str]) -> None:
    tag = {"begin": "<a>", "content": {"type": "const_string", "value": "1"}, "end": "</a>"}
    grammar = compiled({"type": "triggered_tags", "triggers": ["<a"], "tags": [tag], **options})
    within = {"type": "triggered_tags", "triggers": ["<a"], "tags": [tag], **options}
    inside = compiled({"type": "tag", "begin": "[", "content": within, "end": "]"})
    for text in good:
        assert fits(grammar, text)
        assert fits(inside, f"[{text}]")
    for text in bad:
        assert not fits(grammar, text)
        assert not fits(inside, f"[{text}]")


def test_formats_that_are_put_together() -> None:
    def const(value: str) -> dict[str, str]:
        return {"type": "const_string", "value": value}

    def tag(name: str) -> dict[str, Any]:
        return {"begin": f"<{name}>", "content": const("."), "end": ["/", f"</{name}>"]}

    dispatch = {"type": "dispatch", "rules": [["x", const("1")]]}
    beginning = {"type": "dispatch", "rules": [["xy", const("1")], ["x", const("2")], ["xyz", const("3")]]}
    cases: list[tuple[dict[str, Any], list[str], list[str]]] = [
        (beginning, ["", "yx2z", "xy1xyz3"], ["x1", "xy2", "xyz1", "x", "xy"]),
        ({"type": "sequence", "elements": [const("a"), const("b")]}, ["ab"], ["a", "abb"]),
        ({"type": "sequence", "elements": []}, [""], ["a"]),
        ({"type": "or", "elements": [const("a"), const("bc")]}, ["a", "bc"], ["", "b", "abc"]),
        ({"type": "optional", "content": const("a")}, ["", "a"], ["aa"]),
        ({"type": "plus", "content": const("a")}, ["a", "aaa"], ["", "b"]),
        ({"type": "star", "content": const("a")}, ["", "aaa"], ["b"]),
        ({"type": "repeat", "min": 2, "max": 3, "content": const("a")}, ["aa", "aaa"], ["a", "aaaa"]),
        ({"type": "repeat", "min": 2, "max": -1, "content": const("a")}, ["aa", "a" * 9], ["a"]),
        ({"type": "regex", "pattern": "[0-9]{2}"}, ["42"], ["4", "421"]),
        ({"type": "grammar", "grammar": 'root ::= "x" y\ny ::= "y" y | ""'}, ["x", "xyy"], ["y"]),
        (
            {"type": "tags_with_separator", "tags": [tag("a"), tag("b")], "separator": ","},
            ["", "<a>./", "<a>.</a>,<b>./,<a>./"],
            ["<a>./<b>./", "<a>./,", "<a>.</b>"],
        ),
        (
            {"type": "tags_with_separator", "tags": [tag("a")], "separator": ",", "at_least_one": True},
            ["<a>./"],
            [""],
        ),
        (
            {"type": "tags_with_separator", "tags": [tag("a")], "separator": ",", "stop_after_first": True},
            ["", "<a>./"],
            ["<a>./,<a>./"],
        ),
        (
            {"type": "dispatch", "rules": [["x", const("1")], ["yx", const("2")]]},
            ["", "ax1b", "yx2", "yx1", "x1x1 "],
            ["x", "x2", "yx3"],
        ),
        ({"type": "dispatch", "rules": [["x", const("1")]], "loop": False}, ["", "ax1"], ["x1x1", "x1 "]),
        # The text of a dispatch may hold the end of its tag, unless that is excluded.
        (
            {"type": "tag", "begin": "<", "content": dispatch, "end": [">", "/"]},
            ["<>", "<a>", "<a>b/", "<x1>", "<a>x1/"],
            ["<", "<x>", "<ax1", "a>"],
        ),
        (
            {"type": "tag", "begin": "<", "content": {**dispatch, "excludes": [">"]}, "end": ">"},
            ["<>", "<x1>"],
            ["<a>b>"],
        ),
        ({"type": "tag", "begin": "<", "content": {**dispatch, "excludes": [">"]}, "end": ""}, ["<", "<x1"], ["<>"]),
        # The notation of a grammar is EBNF.
        (
            {
                "type": "grammar",
                "grammar": 'root ::= my_rule "!" |\n TagDispatch(("<a>", b.c))\n'
                'my_rule ::= Regex("[0-9]+")\nb.c ::= "1"',
            },
            ["12!", "q<a>1r", "12"],
            ["q<a>"],
        ),
    ]
    for format, good, bad in cases:
        grammar = compiled(format)
        for text in good:
            assert fits(grammar, text), (format, text)
        for text in bad:
            assert not fits(grammar, text), (format, text)


def test_what_a_grammar_says_of_its_rules_holds_in_a_tag() -> None:
    text = 'root ::= a b "!"\na[capture="first", temperature=0.5] ::= [a-z]\nb[max_tokens=2] ::= [a-z]*'
    grammar = compiled({"type": "tag", "begin": "<", "content": {"type": "grammar", "grammar": text}, "end": ">"})
    matcher = constrain.Matcher(grammar)
    assert matcher.accept_bytes(b"<")
    assert matcher.temperature == 0.5
    assert matcher.accept_tokens(list(b"abc"))
    assert [(each.name, each.data) for each in matcher.captures()] == [("first", b"a")]
    assert not matcher.accept_token(ord("d"))
    assert matcher.accept_tokens(list(b"!>"))


# -- schemas ---------------------------------------------------------------------------------------


def keys_are_unique(text: str) -> bool:
    found = True

    def pairs(members: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal found
        found = found and len({key for key, _ in members}) == len(members)
        return dict(members)

    json.loads(text, object_pairs_hook=pairs)
    return found


def some_json(rng: random.Random, depth: int) -> str:
    kind = rng.randrange(4 if depth else 2)
    if kind == 0:
        return rng.choice(["1", "null", "-2.5e3"])
    if kind == 1:
        return rng.choice(['""', '"a"', '"\\u0061{"', '"}\\\\"', '"é"'])
    inner = [some_json(rng, depth - 1) for _ in range(rng.randrange(3))]
    if kind == 2:
        return f"[{', '.join(inner)}]"
    keys = ['"a"', '"\\u0061"', '"b\\\\"', '"b"', '"\\"a"']
    return "{" + ",".join(f"{rng.choice(keys)}: {each}" for each in inner) + "}"


def test_keys_are_unique_in_every_object_within_free_text() -> None:
    tag = {"begin": "<j>", "content": {"type": "json_schema", "json_schema": True}, "end": "</j>"}
    grammar = compiled({"type": "triggered_tags", "triggers": ["<j>"], "tags": [tag]})
    rng = random.Random(5)
    repeated = 0
    for _ in range(400):
        texts = [some_json(rng, 3) for _ in range(2)]
        text = '"}{ ' + "".join(f"<j>{each}</j> {{" for each in texts)
        expected = all(map(keys_are_unique, texts))
        repeated += not expected
        assert fits(grammar, text) == expected, text
    assert repeated > 20


def test_masks_know_the_keys_that_are_there() -> None:
    tokens = ["{", "}", '"a"', '"b', '"', ":", "1", ",", "<j>", "</j>", '"a":1', ',"a"', '1,"b":', '":1,"', "a", "x{"]
    vocabulary = constrain.Vocabulary([*(token.encode() for token in tokens), b"</s>"], eos_ids=[len(tokens)])
    schema = {"type": "object", "additionalProperties": {"enum": [1]}, "maxProperties": 3}
    format = {
        "type": "triggered_tags",
        "triggers": ["<j>"],
        "tags": [
            {
                "begin": "<j>",
                "content": {"type": "json_schema", "json_schema": schema, "max_whitespace_cnt": 0},
                "end": "</j>",
            }
        ],
    }
    grammar, judge = compiled(format, vocabulary), compiled(format)
    rng = random.Random(1)
    seen = 0
    for _ in range(60):
        matcher, text = constrain.Matcher(grammar), ""
        for _ in range(14):
            # A vocabulary of bytes has no token that holds the end of a key and more.
            expected = {index for index, token in enumerate(tokens) if begins(judge, text + token)}
            if fits(judge, text):
                expected.add(len(tokens))
            assert mask_of(matcher) == expected, text
            token = rng.choice(sorted(expected - {len(tokens)}))
            assert matcher.accept_token(token)
            text += tokens[token]
            seen += text.count('"') > 3
    assert seen > 50


@pytest.mark.parametrize("any_order", [False, True])
def test_members_with_and_without_a_name(any_order: bool) -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"const": 1}, "b": {"const": 2}},
        "required": ["b"],
        "patternProperties": {"^[xy]$": {"const": 3}},
        "additionalProperties": False,
        "maxProperties": 3,
    }
    grammar = compiled(
        {"type": "tag", "begin": "<", "content": {"type": "json_schema", "json_schema": schema, "any_order": any_order},
         "end": ">"}
    )  # fmt: skip
    values = {"a": 1, "b": 2, "x": 3, "y": 3}
    for count in range(5):
        for keys in itertools.product(values, repeat=count):
            in_order = [key for key in keys if key in "ab"] == sorted(key for key in keys if key in "ab")
            named_first = not any(key in "ab" for key in "".join(keys).lstrip("ab"))
            expected = len(set(keys)) == count <= 3 and "b" in keys and (any_order or (in_order and named_first))
            text = "<{" + ", ".join(f'"{key}": {values[key]}' for key in keys) + "}>"
            assert fits(grammar, text) == expected, text


def test_names_of_cohere_are_escaped_text() -> None:
    def member(name: str) -> str:
        return f'<cofl:value name="{name}" type="json">1</cofl:value>'

    schema = {"type": "object", "properties": {"a-b": {"type": "string"}}, "additionalProperties": {"type": "integer"}}
    grammar = compiled({"type": "json_schema", "json_schema": schema, "style": "cohere_xml"})
    for name in ("x", "x-y", "a.b", "0", "日本", "x y", "x=y", "it's", "a&amp;b", "&lt;&gt;", "&quot;"):
        assert fits(grammar, member(name)), name
    for name in ("", "a&b", "a<b", "a>b", "a&ampb", "a-b", "x\ny"):
        assert not fits(grammar, member(name)), name


def test_objects_that_name_members_have_no_others_unless_the_schema_says_so() -> None:
    def good(schema: Any, text: str) -> bool:
        return fits(compiled({"type": "json_schema", "json_schema": schema}), text)

    named = {"type": "object", "properties": {"a": {}}}
    assert good(named, '{"a": 1}')
    assert not good(named, '{"b": 1}')
    assert good({**named, "additionalProperties": True}, '{"b": 1}')
    assert good({"type": "object"}, '{"b": 1}')
    both = {"allOf": [named, {"properties": {"b": {}}}], "type": "object"}
    assert good(both, '{"a": 1, "b": 2}')
    assert not good(both, '{"a": 1, "c": 2}')
    assert not good({"properties": {"o": named}}, '{"o": {"x": 1}}')
    assert good({"const": {"properties": {}}}, '{"properties": {}}')


def test_strings_without_some_texts() -> None:
    schema = {
        "type": "object",
        "properties": {
            "s": {"type": "string"},
            "e": {"enum": ["ok", "a<b"]},
            "p": {"type": "string", "pattern": "^[<>]{2}$"},
            "f": {"type": "string", "format": "uri-template"},
        },
    }
    format = {"type": "json_schema", "json_schema": schema, "excludes": ["<"]}
    grammar = compiled(format)
    assert fits(grammar, '{"s": "x>", "e": "ok", "p": ">>", "f": "a>"}') == fits(grammar, '{"f": "a>"}')
    assert fits(grammar, '{"s": "x>", "e": "ok", "p": ">>"}')
    # It is about what is written.
    assert fits(grammar, r'{"p": "\u003c>"}')
    for text in ('{"s": "<', '{"e": "a<', '{"p": "<', '{"p": "><'):
        assert not begins(grammar, text)


@pytest.mark.parametrize("style", ["json", "kimi_k3_xml"])
@pytest.mark.parametrize(
    ("schema", "kept", "left_out"),
    [
        ({"type": "string", "pattern": "^x[xyz]*$"}, ["x", "xxyx"], ["xyz", "xxzy", "y"]),
        ({"type": "string", "format": "email"}, ["a@b.example"], ["yz@b.example", "a"]),
        ({"type": "string", "format": "hostname"}, ["a.example"], ["yz.example", "a..b"]),
        ({"type": "string", "minLength": 2, "maxLength": 4}, ["zz", "zxyx"], ["x", "xyz", "xxxxx"]),
        ({"anyOf": [{"const": "yz"}, {"const": "y"}]}, ["y"], ["yz"]),
        ({"type": "string", "allOf": [{"pattern": "z"}, {"pattern": "y"}]}, ["z-y"], ["yz", "zy", "z"]),
    ],
)
def test_excluded_texts_occur_in_no_kind_of_string(
    style: str, schema: dict[str, Any], kept: list[str], left_out: list[str]
) -> None:
    is_json = style == "json"
    tool = {"type": "object", "properties": {"k": schema}, "required": ["k"]}
    format = {"type": "json_schema", "json_schema": tool, "style": style, "excludes": ["yz", "zy"]}
    grammar = compiled(format)
    opening, end = ('{"k":"', '"}') if is_json else (KIMI_KEY.format("k") + 'type="string"<|sep|>', KIMI_END)
    for text in kept:
        assert fits(grammar, opening + text + end)
    for text in left_out:
        assert not fits(grammar, opening + text + end)


def test_texts_that_may_be_in_international_host_names_are_not_excluded_from_them() -> None:
    format = {"type": "json_schema", "json_schema": {"type": "string", "format": "idn-hostname"}}
    assert fits(compiled({**format, "excludes": ["<a>"]}), '"a.example"')
    with pytest.raises(SchemaError, match="'idn-hostname' beside other assertions"):
        compiled({**format, "excludes": ["<a>", "a.ex"]})


@pytest.mark.parametrize(
    "schema",
    [
        {"patternProperties": {"^[a-z]*$": {"type": "integer"}}, "additionalProperties": False},
        {"propertyNames": {"pattern": "^[a-z]*$"}, "additionalProperties": {"type": "integer"}},
    ],
)
def test_excluded_texts_occur_in_no_key(schema: dict[str, Any]) -> None:
    grammar = compiled({"type": "json_schema", "json_schema": {"type": "object", **schema}, "excludes": ["zzz"]})
    assert fits(grammar, '{"azz":1,"zzb":2}')
    assert not fits(grammar, '{"azzzb":1}')


# -- styles ----------------------------------------------------------------------------------------

ARGUMENTS = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "unit": {"enum": ["warm", "cold"]},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["city"],
}
KIMI_KEY, KIMI_END = '<|open|>argument key="{}" ', "<|close|>argument<|sep|>"
# Each argument as it is written.
WRITTEN = {
    "qwen_xml": [
        "<parameter=city>Oslo</parameter>\n",
        "<parameter=days>3</parameter>",
        "<parameter=unit>\nwarm\n</parameter>",
        '<parameter=tags>["a"]</parameter>',
    ],
    "seed_xml": [
        "<parameter=city>Oslo</parameter>\n",
        "<parameter=days>3</parameter>",
        "<parameter=unit>warm</parameter>",
        '<parameter=tags>["a"]</parameter>',
    ],
    "minimax_xml": [
        '<parameter name="city">Oslo</parameter>\n',
        '<parameter name="days">3</parameter>',
        '<parameter name="unit">warm</parameter>',
        '<parameter name="tags">["a"]</parameter>',
    ],
    "deepseek_xml": [
        '<｜DSML｜parameter name="city" string="true">Oslo</｜DSML｜parameter>',
        '<｜DSML｜parameter name="days" string="false">3</｜DSML｜parameter>',
        '<｜DSML｜parameter name="unit" string="true">warm</｜DSML｜parameter>',
        '<｜DSML｜parameter name="tags" string="false">["a"]</｜DSML｜parameter>',
    ],
    "deepseek_v4_1_xml": [
        '<｜DSML｜ parameter name="city" string="true">Oslo</｜DSML｜ parameter>',
        '<｜DSML｜ parameter name="days" string="false">3</｜DSML｜ parameter>',
        '<｜DSML｜ parameter name="unit" string="true">warm</｜DSML｜ parameter>',
        '<｜DSML｜ parameter name="tags" string="false">["a"]</｜DSML｜ parameter>',
    ],
    "glm_xml": [
        "<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>",
        "<arg_key>days</arg_key><arg_value>3</arg_value>",
        "<arg_key>unit</arg_key><arg_value>warm</arg_value>",
        '<arg_key>tags</arg_key><arg_value>["a"]</arg_value>',
    ],
    "kimi_k3_xml": [
        '<|open|>argument key="city" type="string"<|sep|>Oslo<|close|>argument<|sep|>',
        '<|open|>argument key="days" type="number"<|sep|>3<|close|>argument<|sep|>',
        '<|open|>argument key="unit" type="string"<|sep|>warm<|close|>argument<|sep|>',
        '<|open|>argument key="tags" type="array"<|sep|>["a"]<|close|>argument<|sep|>',
    ],
    "cohere_xml": [
        '<cofl:value name="city" type="raw">Oslo</cofl:value>',
        '<cofl:value name="days" type="json">3</cofl:value>',
        '<cofl:value name="unit" type="raw">warm</cofl:value>',
        '<cofl:value name="tags" type="list"><cofl:value type="raw">a</cofl:value></cofl:value>',
    ],
    "minimax_m3_xml": [
        "]<]minimax[>[<city>Oslo]<]minimax[>[</city>\n",
        "]<]minimax[>[<days>3]<]minimax[>[</days>",
        "]<]minimax[>[<unit>warm]<]minimax[>[</unit>",
        "]<]minimax[>[<tags>]<]minimax[>[<item>a]<]minimax[>[</item>]<]minimax[>[</tags>",
    ],
}


@pytest.mark.parametrize("style", WRITTEN)
def test_arguments_in_the_style_of_a_model(style: str) -> None:
    city, days, unit, tags = WRITTEN[style]
    grammar = compiled({"type": "json_schema", "json_schema": ARGUMENTS, "style": style})
    for chosen in itertools.chain.from_iterable(itertools.combinations((days, unit, tags), n) for n in range(4)):
        assert fits(grammar, city + "".join(chosen))
        assert not fits(grammar, "".join(chosen))
    # A value of another kind, and one that is not listed.
    assert not fits(grammar, city + days.replace("3", "three"))
    assert not fits(grammar, city + unit.replace("warm", "hot"))
    assert not fits(grammar, city + tags.replace('["a"]', "a").replace("list", "raw").replace("[</item>", ""))
    # Members twice, or in another order.
    assert not fits(grammar, city + city)
    assert not fits(grammar, days + city)
    ordered = compiled({"type": "json_schema", "json_schema": ARGUMENTS, "style": style, "any_order": True})
    for members in itertools.permutations((city, days, unit)):
        assert fits(ordered, "".join(members))
    assert not fits(ordered, days + unit)
    assert not fits(ordered, days + city + days)


@pytest.mark.parametrize(
    ("item", "written"),
    [
        ({"type": "string", "pattern": "^1.*5$"}, '"1{}5"'),
        ({"type": "string", "pattern": "^1.*5$", "minLength": 3, "maxLength": 40}, '"1{}5"'),
        ({"type": "string", "not": {"pattern": "2"}}, '"1{}5"'),
        ({"type": "string", "format": "json-pointer"}, '"/1{}5"'),
        ({"type": "object", "patternProperties": {"^1": {}}, "additionalProperties": False}, '{{"1{}5": 0}}'),
    ],
)
def test_json_within_a_style_holds_no_end_of_a_value_as_it_is(item: Any, written: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": item}}}
    grammar = compiled({"type": "json_schema", "json_schema": schema, "style": "qwen_xml"})
    # A reader of the style would end the value here, within its JSON.
    assert not begins(grammar, "<parameter=a>[" + written.format("</parameter>"))
    for escaped in ("\\u003c/parameter>", "<\\/parameter>", "</parameter"):
        assert fits(grammar, f"<parameter=a>[{written.format(escaped)}]</parameter>")


@pytest.mark.parametrize("any_order", [False, True])
def test_the_style_gemma_is_json_with_bare_names_and_marks_around_strings(any_order: bool) -> None:
    properties = {"a": {"type": "string"}, "b c": {"type": "array", "items": {"type": "number"}}, "o": {}}
    schema = {"properties": properties, "required": ["a"], "additionalProperties": {"type": "boolean"}}
    tag = {"type": "json_schema", "json_schema": schema, "style": "gemma", "any_order": any_order}
    grammar = compiled({**tag, "max_whitespace_cnt": 1})
    text = '<|"|>x "y"\\\n<|"|>'
    signs = [
        "{",
        "a",
        ":",
        text,
        ",",
        "b c",
        ":",
        "[",
        "1",
        ",",
        "2.5",
        "]",
        ",",
        "o",
        ":",
        "{",
        "k",
        ":",
        "[",
        "]",
        "}",
    ]
    signs += [",", "more", ":", "true", "}"]
    assert fits(grammar, "".join(signs))
    assert fits(grammar, "\n".join(signs))
    for place in range(1, len(signs)):
        assert not fits(grammar, "".join(signs[:place]) + "  " + "".join(signs[place:])), place
    assert not fits(grammar, "".join(signs) + " ")
    members = [f"a:{text}", "b c:[]", "o:null", "more:false"]
    for order in itertools.permutations(members):
        assert fits(grammar, "{" + ",".join(order) + "}") == (any_order or list(order) == members)
    for wrong in ("{}", "{b c:[]}", '{"a":' + text + "}", "{a:x}", f"{{a:{text},a:{text}}}", f"{{a:{text},more:1}}"):
        assert not fits(grammar, wrong), wrong
    # A name that the schema does not say is an identifier.
    assert not fits(grammar, f"{{a:{text},d-e:true}}")


def test_the_style_gemma_writes_any_value() -> None:
    for schema, texts in (
        ({"type": ["string", "integer"]}, {'<|"|>a<|"|>': True, "3": True, "null": False, "{}": False}),
        (
            {"type": "array", "items": {"enum": ["q", 1, None]}},
            {'[<|"|>q<|"|>,1, null]': True, "[q]": False, "[ ]": True},
        ),
        (True, {"{}": True, "{ }": True, "[]": True, '{a:[{b:<|"|><|"|>}]}': True, '{"a":1}': False}),
    ):
        grammar = compiled({"type": "json_schema", "json_schema": schema, "style": "gemma"})
        for text, expected in texts.items():
            assert fits(grammar, text) == expected, text
    with pytest.raises(constrain.SchemaError, match="nothing is valid"):
        compiled({"type": "json_schema", "json_schema": False, "style": "gemma"})


@pytest.mark.parametrize(
    ("style", "schema", "message"),
    [
        ("minimax_m3_xml", {"additionalProperties": {"type": "string"}}, "members that the schema does not name"),
        ("qwen_xml", {"properties": {"a>b": {"type": "integer"}}}, "the name 'a>b' is not supported in this style"),
    ],
)
def test_leniency_leaves_out_members_that_cannot_be_written(style: str, schema: Any, message: str) -> None:
    """What was written with them no reader of the style could read."""
    lenient = {"type": "object", **schema, "x-guidance": {"lenient": True}}
    grammar = compiled({"type": "json_schema", "json_schema": lenient, "style": style})
    assert bytes(constrain.Matcher(grammar).completion()) == b""
    for name in ("a>b", "b"):
        assert not fits(grammar, f"<parameter={name}>1</parameter>")
        assert not fits(grammar, f"]<]minimax[>[<{name}>1]<]minimax[>[</{name}>")
    del lenient["x-guidance"]
    with pytest.raises(SchemaError, match=f"{message}.*leaves it out, with a warning$"):
        compiled({"type": "json_schema", "json_schema": lenient, "style": style})


def test_what_a_schema_of_a_tag_asks_for_that_is_not_supported() -> None:
    tag = {"type": "json_schema", "json_schema": {"type": "string", "pattern": r"^(.)\1$"}}
    with pytest.raises(
        SchemaError, match=r'; lenient, or "x-guidance": \{"lenient": true\} in the schema, leaves it out'
    ):
        constrain.Grammar.from_structural_tag(tag)
    grammar = constrain.Grammar.from_structural_tag(tag, lenient=True)
    assert [warning.rpartition(": ")[2] for warning in grammar.warnings] == ["it is not enforced"]
    assert fits(constrain.GrammarCompiler(BYTES).compile(grammar), '"ab"')
    with pytest.raises(constrain.ConstrainError, match="lenient must be a boolean, not 1"):
        constrain.Grammar.from_structural_tag(tag, lenient=1)  # type: ignore[arg-type]


def test_white_space_around_names() -> None:
    strings = {"type": "object", "additionalProperties": {"type": "string"}}
    grammar = compiled({"type": "json_schema", "json_schema": strings, "style": "cohere_xml"})
    members = {name: f'<cofl:value name="{name}" type="raw">x</cofl:value>' for name in ("a", " a", "a ")}
    for names in itertools.permutations(members):
        assert fits(grammar, "".join(members[name] for name in names))
        assert not fits(grammar, "".join(members[name] for name in (*names, names[0])))
    # A reader of the style leaves it out.
    patterns = {"type": "object", "patternProperties": {"^ ?a* ?$": {}}, "additionalProperties": False}
    grammar = compiled({"type": "json_schema", "json_schema": patterns, "style": "gemma"})
    assert fits(grammar, "{ a : 1 , aa : 2}")
    for wrong in ("{ a : 1 , a : 2}", "{a : 1, a:2}", "{: 1}", "{ : 1}"):
        assert not fits(grammar, wrong), wrong


def test_grammars_in_the_notation_of_lark() -> None:
    schema = '{"items": {"type": "integer"}, "uniqueItems": true, "type": "array"}'
    text = f'start: x ("," x)* call?\nx: "k"i\ncall: %json {schema}\n%ignore " "'
    grammar = compiled({"type": "tag", "begin": "<", "content": _lark(text), "end": ">"})
    for written in ("<k>", "<K , k>", "<k [1, 2]>", "<k >"):
        assert fits(grammar, written), written
    # XGrammar's conventions: nothing is ignored at the beginning, and letters are those of ASCII.
    for written in ("< k>", "<\u212a>", "<k [1, 1]>", "<k"):
        assert not fits(grammar, written), written
    lazy = compiled(
        {"type": "sequence", "elements": [_lark('start: a\na[lazy]: /.*/ "e"'), {"type": "regex", "pattern": "e?"}]}
    )
    assert [fits(lazy, written) for written in ("xe", "xee", "xexe", "x")] == [True, True, False, False]
    # A tag in a grammar in a tag.
    inner = json.dumps({"type": "structural_tag", "format": _lark('start: "a"+')})
    assert fits(compiled(_lark(f"start: %structural_tag {inner}")), "aa")
    for text, reason in (('root: "a"', 'start rule "start"'), ("start: b", "b"), ('start: "a', "line 1, column 8")):
        with pytest.raises(constrain.SchemaError, match=reason) as caught:
            compiled(_lark(text))
        assert caught.value.pointer == "#/grammar"
    with pytest.raises(constrain.SchemaError, match="ebnf or lark"):
        compiled({"type": "grammar", "grammar": "", "syntax": "gbnf"})


def _lark(text: str) -> dict[str, str]:
    return {"type": "grammar", "grammar": text, "syntax": "lark"}


@pytest.mark.parametrize("style", ["cohere_xml", "minimax_m3_xml"])
def test_white_space_in_arrays_and_objects_of_a_style_stands_everywhere_and_is_counted(style: str) -> None:
    items = {"type": "array", "items": {"type": "string", "maxLength": 1}}
    inner = {"type": "object", "properties": {"b": {"type": "boolean"}}, "additionalProperties": False}
    schema = {"properties": {"l": items, "o": inner}}
    mark, value = "]<]minimax[>[", "</cofl:value>"
    opening, item, closing, begin, member, end = {
        "cohere_xml": (
            *('<cofl:value name="l" type="list">', f'<cofl:value type="raw">a{value}', value),
            *('<cofl:value name="o" type="dict">', f'<cofl:value name="b" type="json">true{value}', value),
        ),
        "minimax_m3_xml": (
            *(f"{mark}<l>", f"{mark}<item>a{mark}</item>", f"{mark}</l>"),
            *(f"{mark}<o>", f"{mark}<b>true{mark}</b>", f"{mark}</o>"),
        ),
    }[style]
    grammar = compiled({"type": "json_schema", "json_schema": schema, "style": style, "max_whitespace_cnt": 1})
    for text in (
        *((opening, closing), (opening, item, item, closing), (begin, end), (begin, member, end)),
        (opening, closing, begin, end),
    ):
        assert fits(grammar, "".join(text))
        assert fits(grammar, " " + "\n".join(text) + "\t")
        for place in range(len(text) + 1):
            assert not fits(grammar, "".join(text[:place]) + "  " + "".join(text[place:])), (text, place)


@pytest.mark.parametrize("any_order", [False, True])
@pytest.mark.parametrize(
    ("style", "begin"),
    [("gemma4", "{a:1"), ("qwen_xml", "<parameter=a>1"), ("glm_xml", "<arg_key>a</arg_key><arg_value>1")],
)
def test_names_that_a_style_cannot_write_are_no_keys(style: str, begin: str, any_order: bool) -> None:
    """Behind the first of two members nothing went on: the second name could not be written."""
    schema = {"type": "object", "patternProperties": {"^[a<>]$": {"const": 1}}, "additionalProperties": False}
    format = {"type": "json_schema", "json_schema": schema, "style": style, "any_order": any_order}
    assert begins(compiled({"type": "structural_tag", "format": format}), begin)
    for more, excludes in (({}, []), ({"patternProperties": {"^(a|xyz)$": {"const": 1}}}, ["yz"])):
        both = {**format, "json_schema": {**schema, **more, "minProperties": 2}, "excludes": excludes}
        with pytest.raises(SchemaError, match="only 1 names for minProperties 2"):
            compiled({"type": "structural_tag", "format": both})


@pytest.mark.parametrize("low", [0, 3])
@pytest.mark.parametrize("more", [{}, {"ab-": False}, {"ab-": {"const": 2}}], ids=str)
def test_names_of_a_pattern_need_not_be_identifiers_beside_others(more: Any, low: int) -> None:
    """Beside a name that is treated alone they had to be; where three were needed, nothing went on behind two."""
    schema = {"type": "object", "patternProperties": {"^a?b?-?$": {"const": 1}}, "properties": more}
    format = {"type": "json_schema", "json_schema": {**schema, "minProperties": low}, "style": "qwen_xml"}
    grammar = compiled({"type": "structural_tag", "format": format})
    for names in itertools.permutations(["", "a", "b-", "ab"], 3):
        assert fits(grammar, "".join(f"<parameter={name}>1</parameter>" for name in names)), names
    assert not fits(grammar, "<parameter=ab->1</parameter>" * 3)


@pytest.mark.parametrize("any_order", [False, True])
@pytest.mark.parametrize("style", [style for style in WRITTEN if style != "minimax_m3_xml"])
def test_members_without_a_name_come_once_in_every_style(style: str, any_order: bool) -> None:
    schema = {**ARGUMENTS, "properties": {"city": {"type": "string"}}, "additionalProperties": {"type": "integer"}}
    grammar = compiled({"type": "json_schema", "json_schema": schema, "style": style, "any_order": any_order})
    city, days, *_ = WRITTEN[style]
    day = days.replace("days", "day")
    assert fits(grammar, city + days)
    assert fits(grammar, city + day + days + days.replace("days", "dayss"))
    assert not fits(grammar, city + days + days)
    assert not fits(grammar, city + days + day + days)
    assert not fits(grammar, city + days.replace("days", "city"))
    assert not fits(grammar, days)
    assert fits(grammar, days + city) == any_order


def test_a_string_with_its_line_ends_is_what_is_between_them() -> None:
    schema = {"properties": {"s": {"type": "string", "minLength": 1, "maxLength": 2}}, "required": ["s"]}
    grammar = compiled({"type": "json_schema", "json_schema": schema, "style": "qwen_xml"})
    for length in range(6):
        for letters in itertools.product("a\n", repeat=length):
            text = "".join(letters)
            value = text.removeprefix("\n").removesuffix("\n")
            assert fits(grammar, f"<parameter=s>{text}</parameter>") == (1 <= len(value) <= 2), repr(text)


# -- how it is given -------------------------------------------------------------------------------


def test_the_ways_to_give_a_structural_tag() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Const(pydantic.BaseModel):  # type: ignore[name-defined,misc]
        type: str = "const_string"
        value: str

    class Whole(pydantic.BaseModel):  # type: ignore[name-defined,misc]
        type: str = "structural_tag"
        format: Const

    format = {"type": "const_string", "value": "x"}
    whole = {"type": "structural_tag", "format": format}
    for tag in (format, whole, json.dumps(whole), json.dumps(whole).encode(), Whole(format=Const(value="x"))):
        assert fits(compiled(tag), "x")
    assert constrain.Grammar.from_structural_tag(whole).key == constrain.Grammar.from_structural_tag(whole).key
    assert repr(constrain.Grammar.from_structural_tag(whole)).startswith("<Grammar from a structural tag")


def test_numbers_of_a_json_text_are_exact() -> None:
    number = "0.10000000000000000000001"
    schema = json.dumps(f'{{"const": {number}}}')
    for tag in (
        f'{{"type": "json_schema", "json_schema": {{"const": {number}}}}}',
        f'{{"structures": [{{"begin": "<", "schema": {schema}, "end": ">"}}], "triggers": ["<"]}}',
    ):
        before, behind = ("<", ">") if "structures" in tag else ("", "")
        grammar = compiled(tag)
        assert fits(grammar, before + number + behind)
        assert not fits(grammar, before + "0.1" + behind)


def test_the_older_form() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    for given in (schema, json.dumps(schema)):
        tag = {"structures": [{"begin": "<f>", "schema": given, "end": "</f>"}], "triggers": ["<f"]}
        grammar = compiled(tag)
        assert fits(grammar, 'x<f>{"a": 1}</f>y')
        assert not begins(grammar, "<f>{}")
        assert fits(grammar, "xy")


@pytest.mark.parametrize("flag", [True, False])
def test_the_older_form_with_at_least_one_call(flag: bool) -> None:
    """As SGLang sends it where a call is required."""
    structures = [{"begin": "<f>", "schema": {"type": "integer"}, "end": "</f>"}]
    grammar = compiled({"type": "structural_tag", "structures": structures, "triggers": ["<f"], "at_least_one": flag})
    assert fits(grammar, "<f>1</f>")
    assert fits(grammar, "xy") != flag
    assert fits(grammar, "") != flag


@pytest.mark.parametrize(
    ("tag", "message"),
    [
        ("{", "at #: the structural tag: invalid JSON at line 1, column 2"),
        ([], "at #: a structural tag must be an object, not []"),
        ({"type": "structural_tag"}, "at #: format is missing"),
        ({"type": "tag", "begin": "a", "end": "b"}, "at #: content is missing"),
        ({"type": "x"}, "at #/type: there is no format 'x'"),
        ({"type": "sequence", "elements": [{"type": "any_text", "exclude": []}]}, "at #/elements/0/exclude: "),
        ({"type": "any_text", "max_tokens": -1}, "at #/max_tokens: "),
        ({"type": "any_text", "max_chars": -1}, "at #/max_chars: "),
        ({"type": "json_schema", "json_schema": {"type": "x"}}, "at #/json_schema/type: "),
        ({"type": "json_schema", "json_schema": False}, "at #/json_schema: "),
        ({"type": "json_schema", "json_schema": {"type": "string"}, "style": "qwen_xml"}, "at #/json_schema: "),
        (
            {"type": "json_schema", "json_schema": {"type": "object"}, "style": "minimax_m3_xml"},
            "at #/json_schema: members that the schema does not name",
        ),
        ({"type": "regex", "pattern": "("}, "at #/pattern: "),
        ({"type": "grammar", "grammar": "root ::= x"}, "at #/grammar: "),
        (
            {
                "type": "triggered_tags",
                "triggers": ["<b"],
                "tags": [{"begin": "<a", "content": {"type": "any_text"}, "end": ">"}],
            },
            "at #/tags/0/begin: no trigger",
        ),
        (
            {
                "type": "triggered_tags",
                "triggers": ["bc", "abcd"],
                "tags": [{"begin": "abcd", "content": {"type": "any_text"}, "end": ">"}],
            },
            "at #/tags/0/begin: within 'abcd'",
        ),
    ],
)
def test_errors_say_where(tag: Any, message: str) -> None:
    with pytest.raises(ConstrainError) as caught:
        compiled(tag)
    assert isinstance(caught.value, SchemaError)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


SCHEMAS: list[Any] = [
    True,
    {"type": "object", "properties": {"a": {}}, "required": ["a"]},
    {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "string"}},
    {"patternProperties": {"^a": {"type": "string"}, "b$": {"minLength": 1}}, "minProperties": 1, "maxProperties": 2},
    {"anyOf": [{"type": "array", "items": {"$ref": "#"}, "maxItems": 2}, {"type": "object"}, {"const": "a"}]},
    {"allOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {"type": "null"}}}]},
    {"type": "array", "uniqueItems": True, "items": {"type": "string"}},
    {"type": "object", "propertyNames": {"pattern": "^[ab]$"}, "unevaluatedProperties": {"enum": [1, "a"]}},
]


@pytest.mark.parametrize("any_order", [False, True])
@pytest.mark.parametrize("schema", SCHEMAS, ids=json.dumps)
def test_a_value_within_a_text_is_what_it_is_alone(schema: Any, any_order: bool) -> None:
    alone = constrain.Grammar.from_json_schema(schema, property_order="any" if any_order else "schema")
    grammar = constrain.CompiledGrammar(alone.ir, BYTES)
    whole = EmbeddingBuilder()
    layout = layout_for("flexible", None, None, None, USUAL_NOTATION)
    value = embed_schema(whole, schema, layout, any_order=any_order)
    before, after = whole.lexeme(literal('"}{[<')), whole.lexeme(literal('{"'))
    within = constrain.CompiledGrammar(whole.finish_whole(whole.sequence((before, value, after))), BYTES)
    rng = random.Random(2)
    accepted = 0
    for _ in range(300):
        text = some_json(rng, 3)
        expected = fits(grammar, text)
        accepted += expected
        assert fits(within, f'"}}{{[<{text}{{"') == expected, text
    assert accepted


@pytest.mark.parametrize("any_order", [False, True])
def test_masks_in_xml_know_the_members_that_are_there(any_order: bool) -> None:
    tokens = ["<parameter=", "a", "b", "c", ">", "1", "</parameter>", "a>1</parameter>", "b>1</parameter><parameter="]
    tokens += ["1</parameter><parameter=a", "c>1</", "parameter>", "<parameter=b>1</parameter>;", ";", "\n", ">1</par"]
    tokens += ["<parameter=a>1</parameter><parameter=c>1</parameter>", "a>1</parameter>;", "ameter>", "=", "</"]
    vocabulary = constrain.Vocabulary([*(token.encode() for token in tokens), b"</s>"], eos_ids=[len(tokens)])
    schema = {
        "type": "object",
        "properties": {"c": {"const": 1}},
        "additionalProperties": {"const": 1},
        "minProperties": 1,
        "maxProperties": 3,
    }
    content = {"type": "json_schema", "json_schema": schema, "style": "qwen_xml", "any_order": any_order}
    format = {"type": "tag", "begin": "", "content": {**content, "max_whitespace_cnt": 1}, "end": ";"}
    grammar, judge = compiled(format, vocabulary), compiled(format)
    rng = random.Random(1)
    members = 0
    for _ in range(60):
        matcher, text = constrain.Matcher(grammar), ""
        for _ in range(12):
            expected = {index for index, token in enumerate(tokens) if begins(judge, text + token)}
            if fits(judge, text):
                expected.add(len(tokens))
            assert mask_of(matcher) == expected, text
            if not expected - {len(tokens)}:
                break
            token = rng.choice(sorted(expected - {len(tokens)}))
            assert matcher.accept_token(token)
            text += tokens[token]
        members += text.count("</parameter>")
    assert members > 60


@pytest.mark.parametrize("tag", ["{}", '{{"format": {}}}', '{{"type": "structural_tag", "format": {}}}'])
def test_a_number_that_is_no_object_is_named_however_long(tag: str) -> None:
    with pytest.raises(constrain.SchemaError, match="object, not a very large int"):
        constrain.Grammar.from_structural_tag(tag.format("1" * 5_000))


def test_overlaps_of_ends_and_stops() -> None:
    texts = ["".join(letters) for size in (1, 2, 3, 4) for letters in itertools.product("ab", repeat=size)]
    rng = random.Random(7)
    for _ in range(500):
        stops = tuple(rng.sample(texts, rng.randrange(1, 4)))
        end = stops[: rng.randrange(1, len(stops) + 1)]
        expected = any(
            stop in each[:-1] or any(each[:size] == stop[-size:] for size in range(1, min(len(each), len(stop))))
            for each in end
            for stop in stops
        )
        assert free_text._overlap(end, free_text.reached(stops), free_text._rests(stops)) is expected, (end, stops)


def test_long_ends_and_many_take_little_memory_and_time() -> None:
    tag = {"type": "tag", "begin": "<", "content": {"type": "any_text"}, "end": "a" * 10_000 + "b"}
    tracemalloc.start()
    try:
        constrain.Grammar.from_structural_tag(tag)
        # Its beginnings are 50 MB.
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()
    many = {**tag, "end": [f"e{number:05d}" for number in range(20_000)]}
    constrain.Grammar.from_structural_tag(many, time_limit=5)


def test_the_pieces_of_long_stops_are_counted() -> None:
    stops = ["a" * 200_000 + "b", "a" * 400_000 + "b"]
    tag = {"type": "tag", "begin": "<", "content": {"type": "any_text"}, "end": stops}
    with pytest.raises(constrain.LimitError, match="steps"):
        constrain.Grammar.from_structural_tag(tag)


def test_several_of_few_keys_are_needed_within_a_text() -> None:
    schema = {"patternProperties": {"^[abc]$": {"const": 1}}, "additionalProperties": False, "minProperties": 3}
    content = {"type": "json_schema", "json_schema": {"type": "object", **schema}}
    tag = {"type": "structural_tag", "format": {"type": "tag", "begin": "<a>", "content": content, "end": "</a>"}}
    tokens = [bytes((byte,)) for byte in range(32, 127)]
    vocabulary = constrain.Vocabulary([*tokens, b"</s>"], eos_ids=[len(tokens)])
    compiled = constrain.GrammarCompiler(vocabulary).compile(constrain.Grammar.from_structural_tag(tag))
    assert constrain.Matcher(compiled).accept_bytes(b'<a>{"c":1,"b":1,"a":1}</a>')
    for text in (b'<a>{"a":1,"b":1}', b'<a>{"a":1,"b":1,"a"', b'<a>{"a":1,"b":1,"c":1,'):
        assert not constrain.Matcher(compiled).accept_bytes(text)


def test_names_in_the_style_of_kimi_k3_are_written_as_attributes() -> None:
    schema = {"type": "object", "properties": {'a"b&c<d': {"type": "string"}}, "required": ['a"b&c<d']}
    format = {"type": "json_schema", "json_schema": schema, "style": "kimi_k3_xml"}
    value = 'type="string"<|sep|>x' + KIMI_END
    # A text that is excluded is looked for in what is written.
    for excludes in ([], ['"']):
        grammar = compiled({**format, "excludes": excludes})
        assert fits(grammar, KIMI_KEY.format("a&quot;b&amp;c<d") + value)
        assert not begins(grammar, KIMI_KEY.format('a"b'))
    with pytest.raises(ConstrainError, match="no text"):
        compiled({**format, "excludes": ["&"]})


@pytest.mark.parametrize("excludes", [(), ("<a>", "ab")])
@pytest.mark.parametrize("said", [{}, {"minLength": 3}, {"pattern": "x.*y"}, {"pattern": "^[^z]{2,}$"}])
@pytest.mark.parametrize("style", ["json", "glm_xml", "qwen_xml", "kimi_k3_xml", "minimax_m3_xml"])
def test_bounds_of_strings_may_be_large(style: str, said: dict[str, Any], excludes: tuple[str, ...]) -> None:
    """Where a string has ended, what could still follow within the bound is not searched through."""
    schema = {"properties": {"k": {"type": "string", "maxLength": 200_000, **said}}, "required": ["k"]}
    format = {"type": "json_schema", "json_schema": schema, "style": style, "excludes": excludes}
    before, end = {
        "json": ('{"k":"', '"}'),
        "glm_xml": ("<arg_key>k</arg_key><arg_value>", "</arg_value>"),
        "qwen_xml": ("<parameter=k>\n", "\n</parameter>"),
        "kimi_k3_xml": (KIMI_KEY.format("k") + 'type="string"<|sep|>', KIMI_END),
        "minimax_m3_xml": ("]<]minimax[>[<k>", "]<]minimax[>[</k>"),
    }[style]
    matcher = constrain.Matcher(compiled(format))
    for byte in (before + "x < y" * 30).encode():
        assert byte in mask_of(matcher)
        assert matcher.accept_token(byte)
    assert matcher.fork().accept_bytes(b"<a>") == (not excludes)
    assert matcher.accept_bytes(end.encode())
    mask_of(matcher)
    assert matcher.is_accepting()


@pytest.mark.parametrize("ends", [["</a>", "</bc>"], ["</bc<", "c<"], ["</bc<", "<b", "</bc</bc<"]])
def test_free_text_of_many_characters_with_an_end(ends: list[str]) -> None:
    text = {"type": "any_text", "max_chars": 300_000, "excludes": ["<a>", "<b>"]}
    grammar = compiled({"type": "tag", "begin": "", "content": text, "end": ends})
    matcher = constrain.Matcher(grammar)
    end = min(ends, key=len)
    for byte in ("a < b" * 30 + end).encode():
        assert byte in mask_of(matcher)
        assert matcher.accept_token(byte)
    mask_of(matcher)
    assert matcher.is_accepting()


@pytest.mark.parametrize("ends", [["aba"], ["ab", "bb"], ["aab", "ba"], ["a", "abb"]])
def test_ends_that_overlap_behind_few_characters(ends: list[str]) -> None:
    content = {"type": "any_text", "max_chars": 2}
    grammar = compiled({"type": "tag", "begin": "", "content": content, "end": ends})
    for length in range(7):
        for letters in itertools.product("ab", repeat=length):
            text = "".join(letters)
            # The first end is the end; of those that end at once, each will do.
            first = min((text.find(each) + len(each) for each in ends if each in text), default=-1)
            is_one = first == length and any(text.endswith(each) and length - len(each) <= 2 for each in ends)
            assert fits(grammar, text) == is_one, text


def test_many_triggers_that_begin_differently_are_read_in_time_proportional_to_their_number() -> None:
    def seconds(count: int) -> float:
        triggers = [f"{chr(0x4E00 + number)}t" for number in range(count)]
        tags = [{"begin": each, "content": {"type": "any_text"}, "end": "</t>"} for each in triggers]
        with processor_time() as spent:
            constrain.Grammar.from_structural_tag({"type": "triggered_tags", "triggers": triggers, "tags": tags})
        return spent.seconds

    seconds(50)
    # All of them were sorted for each, which took 16 times as long.
    assert seconds(4000) < 8 * seconds(1000) + 0.2


@pytest.mark.parametrize("ends", [["</t>"], ["</t>", "!"], ["</", "</t>"]])
def test_an_end_of_a_tag_may_begin_with_a_trigger(ends: list[str]) -> None:
    call = {"begin": "<f>", "content": {"type": "regex", "pattern": "[0-9]+"}, "end": "</f>"}
    tags = {"type": "triggered_tags", "triggers": ["<"], "tags": [call]}
    grammar = compiled({"type": "tag", "begin": "[", "content": tags, "end": ends})
    once = compiled({"type": "tag", "begin": "[", "content": {**tags, "stop_after_first": True}, "end": ends})
    least = compiled({"type": "tag", "begin": "[", "content": {**tags, "at_least_one": True}, "end": ends})
    for end in ends:
        assert fits(grammar, f"[a{end}")
        assert fits(once, f"[a{end}")
        assert not fits(least, f"[a{end}")
        assert fits(grammar, f"[a<f>1</f>b<f>2</f>{end}")
        assert not fits(once, f"[a<f>1</f>b<f>2</f>{end}")
        assert fits(once, f"[a<f>1</f>{end}")
        assert fits(least, f"[<f>1</f>b{end}")
        # Behind a trigger there is a tag, or the end.
        assert not begins(grammar, "[a<b")
        assert not begins(grammar, "[a<f>1</t")
        assert not fits(grammar, f"[a{end}a")


def test_texts_among_the_same_stops_share_states() -> None:
    """Each lexeme had the automaton of all triggers for itself: 2.6 s for the first mask beside 200 words."""
    words = ("stone", "nest", "steam", "amber", "berry", "ember")
    whole = [free_text.text_through((word,), words, ()) for word in words]
    texts = free_text.TextsThrough(EmbeddingBuilder(), words)
    for some in (whole, [texts.before(prefix) for prefix in ("ste", "am", "be")]):
        complements = [text.parts[1] for text in some if isinstance(text, Intersect)]
        assert len(complements) > 1
        assert all(complement is complements[0] for complement in complements)
