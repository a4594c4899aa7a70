"""What public objects look like in a debugger."""

from __future__ import annotations

import pytest

import constrain

VOCABULARY = constrain.Vocabulary([b"a", b"b", b"ab", b"</s>"], eos_ids=[3])


def test_grammars() -> None:
    assert repr(constrain.Grammar.from_regex("a")) == "<Grammar from a regular expression: 1 rule, 1 lexeme>"
    assert repr(constrain.Grammar.from_choices(["a", "b"])).startswith("<Grammar from choices: ")
    assert repr(constrain.Grammar.from_lark('start: "a" | "b" start')).startswith("<Grammar from Lark: ")
    assert repr(constrain.Grammar.from_gbnf('root ::= "a"')).startswith("<Grammar from GBNF: ")
    schema = constrain.Grammar.from_json_schema({"type": "array"})
    assert repr(schema).startswith("<Grammar from JSON Schema: ")
    assert f"{len(schema.ir.lexemes)} lexemes" in repr(schema)
    assert repr(constrain.Grammar(schema.ir)).startswith("<Grammar: ")


def test_vocabularies() -> None:
    assert repr(VOCABULARY) == "<Vocabulary: 4 tokens, ends with 3>"
    assert repr(constrain.Vocabulary([b"a"] * 1200)) == "<Vocabulary: 1,200 tokens, no end tokens>"
    many = constrain.Vocabulary([b"a"] * 9, eos_ids=range(1, 9))
    assert repr(many) == "<Vocabulary: 9 tokens, ends with 1, 2, 3, 4, ...>"


def test_compilers_and_matchers() -> None:
    compiler = constrain.GrammarCompiler(VOCABULARY)
    assert repr(compiler) == "<GrammarCompiler: 4 tokens, 0 grammars kept>"
    compiled = compiler.compile(constrain.Grammar.from_regex("ab?"))
    assert repr(compiler) == "<GrammarCompiler: 4 tokens, 1 grammar kept>"
    matcher = constrain.Matcher(compiled)
    assert repr(matcher) == "<Matcher: 0 steps, goes on>"
    assert matcher.accept_token(0)
    assert repr(matcher) == "<Matcher: 1 step, may end>"
    assert matcher.accept_token(1)
    assert matcher.accept_token(3)
    assert repr(matcher) == "<Matcher: 3 steps, ended>"
    counts = compiled.statistics()
    assert repr(compiled) == f"<CompiledGrammar: 4 tokens, {counts['states']} states, {counts['nbytes']:,} bytes>"


def test_a_place_that_was_lost_has_a_repr(monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = constrain.Matcher(constrain.GrammarCompiler(VOCABULARY).compile(constrain.Grammar.from_regex("a")))

    def fail(_matcher: constrain.Matcher) -> bool:
        raise constrain.LimitError("no room")

    monkeypatch.setattr(constrain.Matcher, "is_accepting", fail)
    assert repr(matcher) == "<Matcher: 0 steps, at a place that was lost>"
