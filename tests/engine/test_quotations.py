"""Quotations in the engine: masks, budgets and files are those of the same language written out as a union."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from processor_time import processor_time
from strategies import Tokens, quotations, regulars, step, vocabularies, walks

import constrain
from constrain.engine.automata.suffix_order import suffix_order
from constrain.grammar.ir import GrammarBuilder
from constrain.grammar.languages.quotation import Quotation, quotation
from constrain.grammar.languages.regular import (
    ANY_BYTES,
    Regular,
    byte_range,
    complement,
    concat,
    intersect,
    repeat,
    union,
)

SECONDS = 30
"""Processor seconds that a text of a megabyte may take, whatever it holds."""

BYTES = constrain.Vocabulary([*(bytes((byte,)) for byte in range(256)), b"aa", b"aaaaaaaa", b"abab", b"</s>"], [259])


@given(st.text(st.sampled_from("ab\0"), max_size=40))
def test_suffixes_are_sorted(text: str) -> None:
    data = text.encode()
    order = suffix_order(np.frombuffer(data, np.uint8))
    assert order.tolist() == sorted(range(len(data)), key=lambda place: data[place:])


def set_of(mask: Any, size: int) -> set[int]:
    return set(np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")[:size]).tolist())


def mask_of(matcher: constrain.Matcher) -> set[int]:
    size = matcher.compiled.vocabulary.size
    mask = constrain.allocate_token_bitmask(1, size)
    matcher.fill_next_token_bitmask(mask)
    return set_of(mask, size)


def compiled(language: Regular, vocabulary: constrain.Vocabulary) -> constrain.CompiledGrammar:
    builder = GrammarBuilder()
    return constrain.CompiledGrammar(constrain.Grammar(builder.finish(builder.lexeme(language))).ir, vocabulary)


def written_out(language: Regular) -> Regular:
    return union(*language.parts) if isinstance(language, Quotation) else language


SHAPES: dict[str, Any] = {
    "alone": lambda quote, other: quote,
    "before": lambda quote, other: concat(quote, other),
    "behind": lambda quote, other: concat(other, quote),
    "beside": lambda quote, other: union(quote, other),
    "within": lambda quote, other: union(intersect(quote, other), quote),
    "without": lambda quote, other: union(intersect(quote, complement(other)), other),
    "outside": lambda quote, other: intersect(repeat(byte_range(0, 255), 0, 5), complement(quote)),
    "again and again": lambda quote, other: repeat(quote),
    "twice or thrice": lambda quote, other: repeat(concat(quote, other), 2, 3),
    "in anything": lambda quote, other: concat(quote, ANY_BYTES),
}


@pytest.mark.parametrize("max_tokens", [None, 3])
@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=25)
@given(quote=quotations(), other=regulars(2), vocabulary=vocabularies(complete=True), walk=walks(8))
def test_masks_are_those_of_the_union(
    shape: str, max_tokens: int | None, quote: Regular, other: Regular, vocabulary: Tokens, walk: list[int]
) -> None:
    words = constrain.Vocabulary(**vocabulary.as_arguments())
    try:
        grammars = [compiled(SHAPES[shape](form, other), words) for form in (quote, written_out(quote))]
        one, twin = (constrain.Matcher(grammar, max_tokens=max_tokens) for grammar in grammars)
    except constrain.ConstrainError:
        # One is refused exactly if the other one is.
        for form in (quote, written_out(quote)):
            with pytest.raises(constrain.ConstrainError):
                constrain.Matcher(compiled(SHAPES[shape](form, other), words), max_tokens=max_tokens)
        return
    for choice in walk:
        expected = mask_of(twin)
        assert mask_of(one) == expected
        assert one.is_accepting() == twin.is_accepting()
        assert one.forced_bytes() == twin.forced_bytes()
        token = step(choice, expected, vocabulary)
        if token is None:
            break
        assert one.accept_token(token)
        assert twin.accept_token(token)


def test_a_compiled_grammar_is_written_and_read() -> None:
    grammar = constrain.Grammar.from_lark('start: "<" %regex {"substring_words": "to be or not to be"} ">"')
    before = constrain.GrammarCompiler(BYTES).compile(grammar)
    matcher = constrain.Matcher(before)
    assert matcher.accept_bytes(b"<to be o")
    masks = mask_of(matcher)
    after = constrain.Matcher(constrain.CompiledGrammar.from_bytes(before.to_bytes(), BYTES))
    assert after.accept_bytes(b"<to be o")
    assert mask_of(after) == masks == {ord("r")}
    assert after.forced_bytes() == b"r"


def test_several_texts_are_kept_apart() -> None:
    grammar = compiled(
        concat(quotation(["ab", "c"]), quotation(["cd", "a"]), quotation(["ab", "c"]), quotation(["x"])), BYTES
    )
    for text, expected in ((b"abccdcx", True), (b"cdaabx", True), (b"", True), (b"abd", False), (b"cdcd", False)):
        matcher = constrain.Matcher(grammar)
        assert (matcher.accept_bytes(text) and matcher.is_accepting()) == expected, text


def fibonacci_word(length: int) -> str:
    one, other = "a", "ab"
    while len(other) < length:
        one, other = other, other + one
    return other[:length]


def de_bruijn_word(letters: str, order: int) -> str:
    """Every word of a length once: concatenated Lyndon words (Fredricksen and Maiorana, 1978)."""
    word, found = [0], []
    while word:
        if order % len(word) == 0:
            found += word
        word = (word * order)[:order]
        while word and word[-1] == len(letters) - 1:
            word.pop()
        if word:
            word[-1] += 1
    return "".join(letters[letter] for letter in found)


HOSTILE = {
    "one letter": lambda size: "a" * size,
    "two letters": lambda size: "ab" * (size // 2),
    "Fibonacci": fibonacci_word,
    "de Bruijn": lambda size: de_bruijn_word("abcd", 10)[:size],
    "random": lambda size: random.Random(1).randbytes(size).decode("latin-1")[: size // 2],
    "twice the same": lambda size: 2 * random.Random(2).randbytes(size // 8).hex(),
    "many lengths": lambda size: "".join("a" * length + "b" for length in range(1, int((2 * size) ** 0.5) - 1)),
}


@pytest.mark.parametrize("kind", ["substring_words", "substring_chars", "substring_chunks"])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_megabyte_of_anything_takes_bounded_time(name: str, kind: str) -> None:
    text = HOSTILE[name](1_000_000)
    given_text = [text[place : place + 2] for place in range(0, len(text), 2)] if kind == "substring_chunks" else text
    with processor_time() as spent:
        grammar = constrain.Grammar.from_lark(f'start: "<" %regex {json.dumps({kind: given_text})} ">"')
        matcher = constrain.Matcher(constrain.CompiledGrammar(grammar.ir, BYTES))
        assert matcher.accept_bytes(b"<")
        for piece in range(0, 60, 2):
            allowed = mask_of(matcher)
            data = text[piece : piece + 2].encode()
            assert data[0] in allowed
            assert matcher.accept_bytes(data)
    assert spent.seconds < SECONDS
