"""The grammars of requests to servers that come as text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from byte_tokens import BYTES

from constrain import ConstrainError, Grammar, GrammarCompiler, Matcher
from constrain.integrations.request_grammars import ebnf_or_lark_grammar, structural_tag_grammar
from constrain.integrations.vllm.requests import JsonOptions, grammar_of
from constrain.limits import Deadline

COMPILER = GrammarCompiler(BYTES)


def fits(grammar: Grammar, text: str) -> bool:
    matcher = Matcher(COMPILER.compile(grammar))
    return matcher.accept_bytes(text.encode()) and matcher.is_accepting()


@pytest.mark.parametrize(
    "text", ['root ::= "yes" | "no"', 'start: "yes" | "no" // no ::=', '# ::=\nstart: "yes" | "no"']
)
def test_ebnf_or_lark(text: str) -> None:
    grammar = ebnf_or_lark_grammar(text)
    assert fits(grammar, "no")
    assert not fits(grammar, "noyes")


@pytest.mark.parametrize("text", ["not valid", "root ::= (", 'start: "a'])
def test_wrong_ebnf_or_lark(text: str) -> None:
    with pytest.raises(ConstrainError):
        ebnf_or_lark_grammar(text)


ANY = {"type": "json_schema", "json_schema": None}
OPENS, CLOSES = {"type": "const_string", "value": "<"}, {"type": "const_string", "value": ">"}


@pytest.mark.parametrize(
    "format",
    [
        {"type": "tag", "begin": "<", "content": ANY, "end": ">"},
        {"type": "sequence", "elements": [OPENS, {"type": "optional", "content": ANY}, CLOSES]},
        {"type": "triggered_tags", "triggers": ["<"], "tags": [{"begin": "<", "content": ANY, "end": ">"}]},
        {"type": "dispatch", "rules": [["<", {"type": "sequence", "elements": [ANY, CLOSES]}]]},
    ],
)
def test_a_schema_that_is_null_is_any_value(format: Any) -> None:
    grammar = structural_tag_grammar(json.dumps({"type": "structural_tag", "format": format}))
    assert fits(grammar, '<{"a": [null]}>')
    assert not fits(grammar, "<{]>")


def test_older_structural_tags_may_have_null_too() -> None:
    tag = {"structures": [{"begin": "<f>", "schema": None, "end": "</f>"}], "triggers": ["<f"]}
    assert fits(structural_tag_grammar(json.dumps(tag)), "text <f>1</f>")


def test_other_values_that_are_null_stay() -> None:
    schema = {"const": {"schema": None, "content": {"json_schema": None}}}
    grammar = structural_tag_grammar(json.dumps({"type": "json_schema", "json_schema": schema}))
    assert fits(grammar, '{"schema": null, "content": {"json_schema": null}}')
    for tag in ('{"type": "json_schema", "json_schema": 1, "schema": null}', '{"format": null', "null"):
        with pytest.raises(ConstrainError):
            structural_tag_grammar(tag)


def test_numbers_beside_a_schema_that_is_null_stay_exact() -> None:
    number = "12345678901234567890123.5"
    schema = {"type": "json_schema", "json_schema": {"const": 0}}
    tag = {"format": {"type": "sequence", "elements": [schema, ANY]}}
    grammar = structural_tag_grammar(json.dumps(tag).replace('"const": 0', f'"const": {number}'))
    assert fits(grammar, f"{number}[]")


def test_numbers_of_a_schema_stay_exact() -> None:
    """As a float 2^53 + 1 would be 2^53, and 1e400 no number."""
    schema = '{"enum": [9007199254740993.0, 1e400]}'
    grammar = grammar_of("JSON", schema, options=JsonOptions(is_compact=True), deadline=Deadline(60))
    assert fits(grammar, "9007199254740993")
    assert not fits(grammar, "9007199254740992")
    assert fits(grammar, "1" + 400 * "0")


@pytest.mark.parametrize("schema", ["{", "", "[" * 100_000, '{"enum": ' + "[" * 100_000])
def test_a_schema_that_is_no_json_is_an_error(schema: str) -> None:
    with pytest.raises(ConstrainError):
        grammar_of("JSON", schema, options=JsonOptions(is_compact=True), deadline=Deadline(60))
