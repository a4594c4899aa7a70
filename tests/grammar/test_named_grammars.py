"""Grammars that a Lark grammar refers to by name, and llguidance's lists of them."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import pytest

from constrain import CompiledGrammar, Grammar, GrammarCompiler, GrammarError, Matcher, SchemaError, Vocabulary

BYTES = [bytes([byte]) for byte in range(256)]
VOCABULARY = Vocabulary([*BYTES, b"", b"</s>"], special_ids=[256], eos_ids=[257], names={256: "<|call|>"})
COMPILER = GrammarCompiler(VOCABULARY)


def accepted(grammar: Grammar | CompiledGrammar, *texts: str) -> list[str]:
    compiled = COMPILER.compile(grammar) if isinstance(grammar, Grammar) else grammar

    def is_accepted(text: str) -> bool:
        matcher = Matcher(compiled)
        return matcher.accept_bytes(text.encode()) and matcher.is_accepting()

    return [text for text in texts if is_accepted(text)]


def test_a_name_stands_for_a_lark_grammar_a_schema_or_a_grammar() -> None:
    named: dict[str, Any] = {
        "word": 'start: "a" | B\nB: /b+/',
        "number": {"type": "integer", "minimum": 3, "maximum": 5},
        "any": True,
        "code": Grammar.from_regex("x[0-9]"),
        "other": Grammar.from_ebnf('root ::= "(" root ")" | "."'),
    }
    grammar = Grammar.from_lark('start: @word "-" (@number | @any "!" | @code+) "-" @other', named_grammars=named)
    good = ["a-4-.", "bb-[1]!-(.)", "a-x1x2-((.))"]
    assert accepted(grammar, *good, "a-6-.", "b-[1]-.", "ab-4-.", "a-x-.", "a-x1-(.", "c-4-.") == good


def test_a_named_grammar_of_a_schema_keeps_its_options() -> None:
    schema = {"properties": {"a": {"type": "number"}, "b": {"type": "array"}}, "required": ["a"]}
    part = Grammar.from_json_schema(
        {"type": "object", **schema},
        separators=(", ", ": "),
        property_order="any",
        numbers="plain",
        additional_properties=False,
        surrounding_whitespace=True,
        max_array_length=1,
    )
    grammar = Grammar.from_lark('start: "<" @part ">" @part?', named_grammars={"part": part})
    good = ['{"a": 1}', '{"b": [1], "a": 1.5}', ' {"a": 1, "b": []} ']
    bad = ['{"a":1}', '{"b": []}', '{"a": 1e3}', '{"a": 1, "c": 2}', '{"a": 1, "b": [1, 2]}', '{"a": 1, "a": 1}']
    assert accepted(part, *good, *bad) == good
    assert accepted(grammar, *(f"<{text}>" for text in good + bad)) == [f"<{text}>" for text in good]
    assert accepted(grammar, f"<{good[0]}>{good[1]}") != []


def test_a_named_grammar_of_a_structural_tag_may_have_any_schema() -> None:
    schema = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
    tag = {"type": "tag", "begin": "<", "content": {"type": "json_schema", "json_schema": schema}, "end": ">"}
    part = Grammar.from_structural_tag(tag)
    assert part.ir.unfolded
    grammar = Grammar.from_lark('start: "[" @part "]"', named_grammars={"part": part})
    assert accepted(grammar, "[<[1, 2]>]", "[<[1, 1]>]", "[<1>]") == ["[<[1, 2]>]"]


def test_a_named_grammar_may_ignore_what_it_says() -> None:
    part = Grammar.from_lark('start: "b" "c"? C\nC: /d*/\n%ignore " "\n%ignore ","')
    words = ["".join(word) for size in range(5) for word in itertools.product("bcd ,", repeat=size)]
    good = [word for word in words if re.fullmatch("[ ,]*b[ ,]*(c[ ,]*)?d*[ ,]*", word)]
    assert accepted(part, *words) == good
    grammar = Grammar.from_lark('start: "(" @part ")"', named_grammars={"part": part})
    assert accepted(grammar, *(f"({word})" for word in words)) == [f"({word})" for word in good]


def test_named_grammars_may_refer_to_each_other_and_to_themselves() -> None:
    named = {"list": 'start: "[" @item ("," @item)* "]"', "item": "start: /[0-9]+/ | @list"}
    good = ["[1]", "[1,[2,[3]],4]"]
    assert accepted(Grammar.from_lark("start: @list", named_grammars=named), *good, "1", "[1", "[]") == good


def test_a_long_chain_of_names() -> None:
    named = {f"n{number}": f'start: "a" @n{number + 1}' for number in range(1500)} | {"n1500": 'start: "b"'}
    grammar = Grammar.from_lark("start: @n1490", named_grammars=named)
    assert accepted(grammar, "a" * 10 + "b", "a" * 9 + "b") == ["a" * 10 + "b"]
    assert Grammar.from_lark("start: @n0", named_grammars=named).ir.productions


def test_each_grammar_ignores_what_it_says() -> None:
    named = {"inner": 'start: "b" "c"\n%ignore ","'}
    grammar = Grammar.from_lark('start: "a" @inner "d"\n%ignore " "', initial_ignore=False, named_grammars=named)
    good = ["abcd", "a b,c, d", "a bc d "]
    assert accepted(grammar, *good, "ab cd", "a,bcd", "abc ,d", " abcd") == good


def test_attributes_of_a_rule_that_is_a_named_grammar() -> None:
    named = {"it": "start: /[a-z]+/", "number": {"type": "integer"}}
    cut = Grammar.from_lark('start: it "!"\nit[max_chars=2, capture]: @it', named_grammars=named)
    assert accepted(cut, "a!", "ab!", "abc!") == ["a!", "ab!"]
    matcher = Matcher(COMPILER.compile(cut))
    assert matcher.accept_bytes(b"ab!")
    assert [(each.name, each.data) for each in matcher.captures()] == [("it", b"ab")]
    warm = Grammar.from_lark('start: "=" n\nn[temperature=0.5, capture="n"]: @number', named_grammars=named)
    matcher = Matcher(COMPILER.compile(warm))
    assert matcher.accept_bytes(b"=1")
    assert matcher.temperature == 0.5
    with pytest.raises(GrammarError, match=r"line 2, column 10: \[lazy\].*made of terminals alone"):
        Grammar.from_lark("start: n\nn[lazy]: @it", named_grammars=named)
    with pytest.raises(GrammarError, match=r"line 2, column 10: \[lazy\].*made of terminals alone"):
        Grammar.from_lark("start: n\nn[lazy]: @it <|call|>", named_grammars=named)


def test_first_ends_of_named_grammars() -> None:
    named = {"head": 'start: h\nh[suffix="<f"]: /(.|\\n)*/'}
    grammar = Grammar.from_lark('start: (call)* /(.|\\n)*/\ncall: @head "1>"', named_grammars=named)
    good = ["", "a", "a<f1>", "<f1><f1>b"]
    assert accepted(grammar, *good, "<f", "a<f2>", "<f1><f2>") == good


def test_wrong_names_and_grammars() -> None:
    for named, text, message in (
        ({}, "start: @a", r"line 1, column 8: there is no grammar @a beside this one \(there are: none\)"),
        ({"b": "start: @c"}, "start: @b", r"line 1, column 8: there is no grammar @c .*are: @b\) \(in @b\)"),
        ({"b": "start: ("}, 'start: "a"', r"line 1, column 9: .* \(in @b\)"),
        ({"b": 'begin: "x"'}, 'start: "a"', r'the grammar needs a rule "start" \(in @b\)'),
        ({"b": {"type": "nul"}}, "start: @b", "@b: at #/type: "),
        ({"b": False}, "start: @b", "@b: at #: nothing is valid"),
        ({"b": Grammar.from_lark("start: /a/", lexing="longest")}, "start: @b", "@b: .* Lark's lexer cannot be part"),
        ({"b": 1}, "start: @b", r"named_grammars\['b'\] must be the text of a grammar, a JSON Schema or a Grammar"),
        ({1: "start: /a/"}, "start: /a/", "named_grammars must be a dict from names to grammars"),
        ({"b": "start: /b/"}, "start: A\nA: @b", "a terminal cannot contain a rule"),
    ):
        with pytest.raises(GrammarError, match=message):
            COMPILER.compile(Grammar.from_lark(text, named_grammars=named))  # type: ignore[arg-type]
    with pytest.raises(GrammarError, match='named_grammars is for lexing="any"'):
        Grammar.from_lark('start: "a"', named_grammars={"b": 'start: "b"'}, lexing="longest")


# -- llguidance's lists ----------------------------------------------------------------------------


def test_a_list_of_grammars() -> None:
    listed = {
        "grammars": [
            {"lark_grammar": "start: TEXT | call\nTEXT: /[a-z ]*/\ncall: <|call|> @arguments"},
            {"name": "arguments", "json_schema": {"properties": {"n": {"type": "integer"}}, "required": ["n"]}},
            {"name": "unused", "lark_grammar": 'start: "x"'},
        ],
        "max_tokens": None,
        "test_trace": False,
    }
    for given in (listed, json.dumps(listed)):
        compiled = COMPILER.compile(Grammar.from_llguidance(given))
        assert accepted(compiled, "no call", '{"n": 1}') == ["no call"]
        matcher = Matcher(compiled)
        assert matcher.accept_token(256)
        assert matcher.accept_bytes(b'{ "n" : 12 }')
        assert matcher.is_accepting()


def test_a_list_that_begins_with_a_schema() -> None:
    grammar = Grammar.from_llguidance({"grammars": [{"json_schema": {"items": {"type": "null"}, "type": "array"}}]})
    good = ["[]", "[null ,\n null]"]
    assert accepted(grammar, *good, " []", "[1]") == good
    with pytest.raises(SchemaError, match="#/type"):
        Grammar.from_llguidance({"grammars": [{"json_schema": {"type": "nul"}}]})


def test_the_text_of_a_lark_grammar() -> None:
    grammar = Grammar.from_llguidance('%llguidance {}\nstart: "a" "b"\n%ignore " "')
    assert accepted(grammar, "a b", " a b") == ["a b"]


def test_strings_have_the_escapes_of_json() -> None:
    text = r'start: "\/\b\ud83d\ude00" | "\""'
    assert accepted(Grammar.from_llguidance(text), "/\b\U0001f600", '"', r"\/\b\U0001f600") == ["/\b\U0001f600", '"']
    assert accepted(Grammar.from_lark(text), "/\b\U0001f600", "\\/\\b\U0001f600") == ["\\/\\b\U0001f600"]
    assert accepted(Grammar.from_lark(r"start: /[\uD83D\uDE00]/"), "\U0001f600") == ["\U0001f600"]


def test_the_first_of_a_list_may_refer_to_itself() -> None:
    grammar = Grammar.from_llguidance({"grammars": [{"name": "it", "lark_grammar": 'start: "(" @it? ")"'}]})
    assert accepted(grammar, "()", "(())", "(()") == ["()", "(())"]


@pytest.mark.parametrize(
    ("grammar", "message"),
    [
        ({"grammars": []}, "a list of grammars looks like"),
        ({"lark_grammar": 'start: "a"'}, "a list of grammars looks like"),
        ({"grammars": [{"lark_grammar": 'start: "a"'}], "max_tokens": 9}, "max_tokens .* give it to the Matcher"),
        ({"grammars": [{"lark_grammar": 'start: "a"'}], "greedy": True}, "'greedy' .* is not supported"),
        ({"grammars": [{"lark_grammar": 'start: "a"', "greedy": True}]}, r"'greedy' in grammars\[0\] is not"),
        ({"grammars": [{"name": "a"}]}, r"grammars\[0\] needs one of lark_grammar and json_schema"),
        ({"grammars": [{"lark_grammar": 'start: "a"', "json_schema": {}}]}, "needs one of"),
        ({"grammars": [{"json_schema": "{}"}]}, r"grammars\[0\]: json_schema cannot be str"),
        ({"grammars": ["start"]}, r"grammars\[0\] is no object"),
        ({"grammars": 2 * [{"name": "a", "lark_grammar": 'start: "a"'}]}, "two of the grammars have the name 'a'"),
        ({"grammars": [{"name": 1, "json_schema": {}}]}, r"the name of grammars\[0\] is no string"),
        ({"grammars": [{"lark_grammar": "start: @b"}]}, "there is no grammar @b"),
        ("{", "invalid JSON"),
        ("words.lark", r"'words.lark' is no grammar; of a file, pathlib.Path\('words.lark'\).read_text\(\)"),
        (1, "a grammar must be a dict, its JSON text or a Lark grammar, not int"),
    ],
)
def test_what_is_no_list_of_grammars(grammar: Any, message: str) -> None:
    with pytest.raises(GrammarError, match=message):
        Grammar.from_llguidance(grammar)


def test_compiled_grammars_with_names_can_be_kept() -> None:
    listed = {"grammars": [{"lark_grammar": "start: @n"}, {"name": "n", "json_schema": {"enum": [1.5, 2]}}]}
    for grammar in (
        Grammar.from_llguidance(listed),
        Grammar.from_lark("start: @n", named_grammars={"n": {"enum": [1.5, 2]}}),
    ):
        kept = CompiledGrammar.from_bytes(COMPILER.compile(grammar).to_bytes(), VOCABULARY)
        assert accepted(kept, "1.5", "2", "3") == ["1.5", "2"]
    unique = {"type": "array", "items": {"type": "number"}, "uniqueItems": True}
    parts = {"n": Grammar.from_json_schema(unique, separators=(", ", ": ")), "r": Grammar.from_regex("r+")}
    inner = {"i": Grammar.from_lark("start: @r", named_grammars={"r": parts["r"]}), **parts}
    grammars = [Grammar.from_lark("start: @n @i", named_grammars=inner) for _ in range(2)]
    kept = CompiledGrammar.from_bytes(COMPILER.compile(grammars[0]).to_bytes(), VOCABULARY)
    assert accepted(kept, "[1.5, 2]r", "[2, 2]r", "[1.5,2]r") == ["[1.5, 2]r"]
    assert grammars[0].key == grammars[1].key
    assert re.match("<Grammar from Lark: ", repr(grammars[0]))
    # What stands in files may be different next time.
    importing = Grammar.from_lark("start: /a/", base_path=".")
    assert re.match("<Grammar: ", repr(Grammar.from_lark("start: @n", named_grammars={"n": importing})))
    assert grammars[0].ir.unfolded
    with pytest.raises(GrammarError, match=r"@n: a grammar with rules made on demand .*; a schema or"):
        Grammar.from_lark("start: @n", named_grammars={"n": grammars[0]})
    assert Grammar.from_llguidance(listed).key == Grammar.from_llguidance(listed).key
    texts = [Grammar.from_lark("start: @n", named_grammars={"n": f'start: "{n}"'}) for n in "ab"]
    assert len({each.key for each in texts}) == 2
    assert re.match("<Grammar from llguidance: ", repr(Grammar.from_llguidance(listed)))


def test_llguidance_reads_sets_as_rust_does() -> None:
    inner = {"name": "inner", "lark_grammar": "start: /[a-z--[x-z]]/"}
    text = "start: A | @inner | block\nA: /[[0-4]_]/ /[[:upper:]]/\nblock: %lark {\n  start: /[!-&&&[^#]]/\n}"
    grammar = Grammar.from_llguidance({"grammars": [{"lark_grammar": text}, inner]})
    assert accepted(grammar, "3A", "_Z", "b", "!", "[A", "x", "#", "&&", "--") == ["3A", "_Z", "b", "!"]
    assert accepted(Grammar.from_lark("start: /[[a-c]d]/"), "[d]", "d") == ["[d]"]


def test_llguidance_reads_sets_of_bytes_as_rust_does() -> None:
    text = '%llguidance {"allow_invalid_utf8": true}\nstart: /[a-z--[x-z]]+/'
    assert accepted(Grammar.from_llguidance(text), "ab", "ax", "-") == ["ab"]


def test_a_backslash_before_a_quote_in_a_regex_of_llguidance() -> None:
    text = r'start: /"\\"!/ | /[\\"]\?/ | /\\\"/ | /\"#/'
    good = [r'"\"!', "\\?", '"?', '\\"', '"#']
    grammar = Grammar.from_llguidance(text)
    assert accepted(grammar, *good, '""!', "?") == good
    assert grammar.warnings == ()
    # Lark reads the first two differently, which is a warning.
    lark = Grammar.from_lark(text)
    assert accepted(lark, *good, '""!') == ['"?', '\\"', '"#', '""!']
    assert len(lark.warnings) == 2
