"""Compiled grammars as bytes: what was learned is taken over, and bytes of any origin are an error or a grammar."""

from __future__ import annotations

import copy
import json
import pickle
import random
import struct
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import constrain
from constrain import CompiledGrammar, ConstrainError, Grammar, Matcher, Vocabulary
from constrain.engine.parser.configurations import NO_MASK
from constrain.engine.storage.packed_arrays import pack, unpack
from constrain.engine.storage.schemas import STATE_MASKS

MAGIC = b"constrain grammar 2\n"
TOKENS = [bytes([byte]) for byte in range(32, 127)] + [
    b'{"',
    b'":',
    b'",',
    b"ab",
    b"true",
    b"null",
    b"12",
    b"</s>",
    b"<x>",
    b"",
]
END, MARK = len(TOKENS) - 3, len(TOKENS) - 2
VOCABULARY = Vocabulary(TOKENS, eos_ids=[END], special_ids=[MARK])
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"enum": ["ab", "x", True]}, "c": {"type": "array", "items": {}}},
    "required": ["a"],
}
TOOL = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"x": {}}}}}]
GRAMMARS: dict[str, Callable[[], Grammar]] = {
    "schema": lambda: Grammar.from_json_schema(SCHEMA, whitespace="compact", separators=(",", ":")),
    "bytes": lambda: Grammar.from_json_schema(json.dumps(SCHEMA).encode()),
    "any order": lambda: Grammar.from_json_schema(SCHEMA, property_order="any"),
    "unique items": lambda: Grammar.from_json_schema({"type": "array", "uniqueItems": True}),
    "regex": lambda: Grammar.from_regex("(ab|c)*[0-9]{2,5}", "i"),
    "lark": lambda: Grammar.from_lark('start: "a" start "b" | /[0-9]+/'),
    "longest": lambda: Grammar.from_lark('start: ("ab" | "a")+ NAME\nNAME: /x+/', lexing="longest"),
    "token": lambda: Grammar.from_lark("start: /[a-z]*/ <x>"),
    "gbnf": lambda: Grammar.from_gbnf('root ::= "a" root | "b"'),
    "ebnf": lambda: Grammar.from_ebnf('root ::= "a" root | "b"'),
    "choices": lambda: Grammar.from_choices(["ab", "abc", "x"]),
    "tag": lambda: Grammar.from_structural_tag({"type": "regex", "pattern": "[ab]+"}),
    "tools": lambda: Grammar.from_tools(TOOL, style="hermes"),
    "thoughts": lambda: Grammar.from_tools(TOOL, style="qwen3", reasoning_begun=True),
}


def compiled(name: str, vocabulary: Vocabulary = VOCABULARY) -> CompiledGrammar:
    return constrain.GrammarCompiler(vocabulary).compile(GRAMMARS[name]())


def mask_of(matcher: Matcher) -> list[int]:
    mask = constrain.allocate_token_bitmask(1, VOCABULARY.size)
    matcher.fill_next_token_bitmask(mask)
    return [token for token in range(VOCABULARY.size) if mask[0, token >> 5] >> (token & 31) & 1]


def walk(*grammars: CompiledGrammar, seed: int, steps: int = 12) -> list[int]:
    """Random texts; all grammars have the same masks everywhere."""
    choose = random.Random(seed)
    matchers = [Matcher(grammar) for grammar in grammars]
    text = []
    for _ in range(steps):
        masks = [mask_of(matcher) for matcher in matchers]
        assert all(mask == masks[0] for mask in masks)
        if not masks[0]:
            break
        text.append(choose.choice(masks[0]))
        assert all(matcher.accept_token(text[-1]) for matcher in matchers)
    return text


@pytest.mark.parametrize("name", GRAMMARS)
def test_what_was_learned_is_taken_over(name: str) -> None:
    grammar = compiled(name)
    for seed in range(8):
        walk(grammar, seed=seed)
    data = grammar.to_bytes()
    again = CompiledGrammar.from_bytes(data, VOCABULARY)
    assert again.source == grammar.source
    masks = again._tables.get(STATE_MASKS)
    assert again.statistics()["states"] >= (2 if name in ("tools", "unique items") else 3)
    assert (masks["dense"] != NO_MASK).any()
    for seed in range(16):
        walk(again, grammar, compiled(name), seed=seed)
    # What it has learned itself is written too.
    walk(CompiledGrammar.from_bytes(again.to_bytes(), VOCABULARY), compiled(name), seed=17)


def test_a_known_mask_is_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    grammar = compiled("schema")
    text = walk(grammar, seed=1, steps=30)
    again = CompiledGrammar.from_bytes(grammar.to_bytes(), VOCABULARY)
    before = again._tables.get(STATE_MASKS)["dense"].copy()
    matcher = Matcher(again)
    for token in text:
        mask_of(matcher)
        assert matcher.accept_token(token)
    assert (again._tables.get(STATE_MASKS)["dense"][: len(before)] == before).all()


def test_what_is_refused() -> None:
    data = compiled("schema").to_bytes()
    with pytest.raises(ConstrainError, match="another vocabulary"):
        CompiledGrammar.from_bytes(data, Vocabulary(TOKENS, eos_ids=[0]))
    head, arrays = unpack(MAGIC, data, "it")
    with pytest.raises(ConstrainError, match=r"written by version 9\.9 .*compile the grammar here"):
        CompiledGrammar.from_bytes(pack(MAGIC, head | {"version": "9.9"}, arrays), VOCABULARY)
    with pytest.raises(ConstrainError, match="another state of its sources"):
        CompiledGrammar.from_bytes(pack(MAGIC, head | {"kernels": "0"}, arrays), VOCABULARY)
    with pytest.raises(ConstrainError, match="they begin otherwise"):
        CompiledGrammar.from_bytes(b"", VOCABULARY)
    with pytest.raises(ConstrainError, match="cut off"):
        CompiledGrammar.from_bytes(data[:-1], VOCABULARY)
    with pytest.raises(ConstrainError, match="takes bytes, not str"):
        CompiledGrammar.from_bytes("x", VOCABULARY)  # type: ignore[arg-type]
    alone = CompiledGrammar(Grammar.from_regex("a").ir, VOCABULARY)
    with pytest.raises(ConstrainError, match="the source of this grammar is not known"):
        alone.to_bytes()


def altered(change: Callable[[dict[str, Any]], None]) -> bytes:
    grammar = compiled("schema")
    walk(grammar, seed=1, steps=30)
    head, arrays = unpack(MAGIC, grammar.to_bytes(), "it")
    parts = {name: array.copy() for name, array in arrays.items()}
    change(parts)
    return pack(MAGIC, head, parts)


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("tokens", [VOCABULARY.size], "a token that the vocabulary does not have"),
        ("tokens", [-1], "a token that the vocabulary does not have"),
        ("tokens", [MARK], "a token in a mask that is no text"),
        ("tokens", [END], "a token in a mask that is no text"),
        ("from", [7], "not known before it"),
        ("from", [-1], "not known before it"),
        ("dense_of", [10**6], "beyond the array of masks"),
        ("dense_of", [-3], "beyond the array of masks"),
        ("ends", [-1], "parts beyond their array"),
        ("ends", [2**31 - 1], "parts beyond their array"),
        ("ways", [2**31 - 1], "parts beyond their array"),
        ("bytes", [0], "a way that leads nowhere"),
    ],
)
def test_numbers_that_do_not_fit(name: str, values: list[int], reason: str) -> None:
    def change(parts: dict[str, Any]) -> None:
        parts[name][: len(values)] = values

    with pytest.raises(ConstrainError, match=reason):
        CompiledGrammar.from_bytes(altered(change), VOCABULARY)


def test_other_arrays() -> None:
    with pytest.raises(ConstrainError, match="other arrays"):
        CompiledGrammar.from_bytes(altered(lambda parts: parts.pop("dense")), VOCABULARY)
    with pytest.raises(ConstrainError, match="different lengths"):
        CompiledGrammar.from_bytes(altered(lambda parts: parts.update(ends=parts["ends"][:-1])), VOCABULARY)

    def with_dense(words: int, value: int) -> Callable[[dict[str, Any]], None]:
        return lambda parts: parts.update(dense=np.full(words, value, np.int32))

    words = (VOCABULARY.size + 31) // 32
    with pytest.raises(ConstrainError, match="beyond the array of masks"):
        CompiledGrammar.from_bytes(altered(with_dense(words + 1, 0)), VOCABULARY)
    # Bits behind the vocabulary, and of special tokens.
    with pytest.raises(ConstrainError, match="no text"):
        CompiledGrammar.from_bytes(altered(with_dense(64 * words, -1)), VOCABULARY)


@settings(max_examples=200)
@given(st.data())
def test_bytes_of_any_kind(data: st.DataObject) -> None:
    """What is changed on purpose, with a checksum that fits: an error of ours, or a grammar that works."""
    written = bytearray(_written())
    for _ in range(data.draw(st.integers(1, 4))):
        kind = data.draw(st.sampled_from(["byte", "word", "cut", "double"]))
        place = data.draw(st.integers(len(MAGIC) + 4, len(written) - 5))
        if kind == "byte":
            written[place] = data.draw(st.integers(0, 255))
        elif kind == "word":
            number = data.draw(st.sampled_from([-1, -2, 0, 1, 2**31 - 1, -(2**31), 4096]))
            written[place : place + 4] = struct.pack("<i", number)
        elif kind == "cut":
            del written[place : place + data.draw(st.integers(1, 64))]
        else:
            written[place:place] = written[place : place + 64]
        if len(written) < len(MAGIC) + 16:
            break
    written[len(MAGIC) : len(MAGIC) + 4] = struct.pack("<I", zlib.crc32(written[len(MAGIC) + 4 :]))
    try:
        grammar = CompiledGrammar.from_bytes(bytes(written), VOCABULARY, time_limit=10)
    except ConstrainError:
        return
    matcher = Matcher(grammar)
    choose = random.Random(1)
    for _ in range(8):
        allowed = mask_of(matcher)
        if not allowed or not matcher.accept_token(choose.choice(allowed)):
            break


_known: list[bytes] = []


def _written() -> bytes:
    if not _known:
        grammar = compiled("schema")
        for seed in range(4):
            walk(grammar, seed=seed)
        _known.append(grammar.to_bytes())
    return _known[0]


@pytest.mark.parametrize(
    "source",
    [
        '["json_schema", {"a": 1}]',
        '["json_schema", "{}"]',
        '["regex", 5, []]',
        '["regex"]',
        '["choices", 5]',
        '["choices"]',
        '["lark", "start: x", "start", {"bytes": 1}]',
        '["tools", "{", "hermes", "auto", true, true, "schema", true, []]',
        '["tools", "[]", ["x"], "auto", true, true, "schema", true, []]',
        '["tools", "[]", "hermes", 5, true, true, "schema", true, 7]',
        '[["regex"], "a", ""]',
        '["__init__", "a"]',
        "[" * 100_000,
        "1" * 5000,
        "5",
        "{}",
        "[]",
        "",
    ],
)
def test_sources_that_are_none(source: str) -> None:
    head, arrays = unpack(MAGIC, _written(), "it")
    with pytest.raises(ConstrainError):
        CompiledGrammar.from_bytes(pack(MAGIC, head | {"source": source}, arrays), VOCABULARY)
    with pytest.raises(ConstrainError, match="no source"):
        CompiledGrammar.from_bytes(pack(MAGIC, head | {"source": [source]}, arrays), VOCABULARY)


def test_what_was_learned_of_another_grammar_is_refused() -> None:
    head, _ = unpack(MAGIC, compiled("choices").to_bytes(), "it")
    _, arrays = unpack(MAGIC, _written(), "it")
    with pytest.raises(ConstrainError, match="a way that leads nowhere"):
        CompiledGrammar.from_bytes(pack(MAGIC, head, arrays), VOCABULARY)


def test_limits_hold() -> None:
    data = compiled("schema").to_bytes()
    with pytest.raises(constrain.LimitError):
        CompiledGrammar.from_bytes(data, VOCABULARY, time_limit=1e-9)
    small = CompiledGrammar.from_bytes(_written(), VOCABULARY, mask_limit_bytes=0)
    walk(small, compiled("schema"), seed=3)


def test_a_compiler_finds_what_it_has_loaded() -> None:
    compiler = constrain.GrammarCompiler(VOCABULARY)
    loaded = compiler.load(_written())
    assert compiler.compile(GRAMMARS["schema"]()) is loaded
    assert compiler.load(_written()) is loaded
    again = pickle.loads(pickle.dumps(compiler))
    assert "1 grammar kept" in repr(again)
    walk(again.compile(GRAMMARS["schema"]()), loaded, seed=5)


@pytest.mark.parametrize("name", ["schema", "any order", "token", "regex"])
def test_pickles(name: str) -> None:
    grammar = compiled(name)
    text = walk(grammar, seed=2)
    elsewhere = pickle.loads(pickle.dumps(grammar))
    assert elsewhere.vocabulary.digest == grammar.vocabulary.digest
    walk(elsewhere, grammar, seed=4)
    for options in ({}, {"stop_token_ids": [0, 3]}, {"max_tokens": 40}):
        matcher = Matcher(grammar, **options)
        for token in text[:4]:
            if not matcher.accept_token(token):
                break
        again = pickle.loads(pickle.dumps(matcher))
        assert again.steps == matcher.steps
        assert again.tokens_left == matcher.tokens_left
        assert mask_of(again) == mask_of(matcher)
        again.rollback(again.steps)
        assert mask_of(again) == mask_of(Matcher(grammar, **options))


@pytest.mark.parametrize(
    "grammar",
    [
        Grammar.from_lark('start: part "0"\npart: "a" part | "b"'),
        Grammar.from_lark('start: "b" %json {"type": "array"}'),
        Grammar.from_lark('start: part "0"\npart[max_tokens=2]: /[ab]*/'),
        Grammar.from_lark("start: A+\nA: /ab?/", lexing="longest"),
        Grammar.from_ebnf('root ::= part "0"\npart[capture="x", max_tokens=2] ::= [ab]*'),
        Grammar.from_gbnf(f'root ::= [ab] (!<[{END}]>){{0,2}} "0"'),
    ],
    ids=["rules", "json", "limited", "longest", "attributes of EBNF", "tokens of GBNF"],
)
def test_pickles_of_rules(grammar: Grammar) -> None:
    matcher = Matcher(CompiledGrammar(grammar.ir, VOCABULARY))
    assert matcher.accept_bytes(b"b") or matcher.accept_bytes(b"a")
    assert mask_of(pickle.loads(pickle.dumps(matcher))) == mask_of(matcher)


def test_pickles_of_bytes_and_of_rules_alone() -> None:
    alone = CompiledGrammar(Grammar.from_regex("[ab]+0").ir, VOCABULARY)
    matcher = Matcher(alone, 20)
    assert matcher.accept_bytes(b"abab", 3)
    assert matcher.accept_bytes(b"ab")
    again = pickle.loads(pickle.dumps(matcher))
    assert (again.tokens_left, again.steps, mask_of(again)) == (matcher.tokens_left, 2, mask_of(matcher))
    reader = alone.recognizer()
    assert all(map(reader.try_push_byte, b"ab0"))
    behind = pickle.loads(pickle.dumps(reader))
    assert behind.is_accepting()
    behind.pop_bytes(2)
    assert behind.try_push_byte(ord("a"))
    assert copy.copy(alone) is copy.deepcopy(alone) is alone
    ended = Matcher(compiled("choices"))
    assert ended.accept_bytes(b"ab")
    assert ended.accept_token(END)
    assert pickle.loads(pickle.dumps(ended)).is_terminated()
