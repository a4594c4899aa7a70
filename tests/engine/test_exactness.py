"""The mask contract on random grammars: every mask equals the brute force, token for token."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import NaiveRecognizer, allowed_tokens, tokens_of
from strategies import ALPHABET, Tokens, grammars, regulars, step, viable_grammars, vocabularies, walks

import constrain
from constrain.grammar.ir import GrammarBuilder, GrammarIR
from constrain.grammar.languages.regular import Regular

LONGEST = 16
"""Walks end after so many bytes: the naive recogniser is cubic in a very ambiguous grammar."""


on_both_engines = pytest.mark.parametrize("accelerators", [None, ()], ids=["fast", "plain"])


def current_mask(matcher: constrain.Matcher, size: int) -> set[int]:
    mask = constrain.allocate_token_bitmask(1, size)
    matcher.fill_next_token_bitmask(mask, 0)
    return tokens_of(mask[0], size)


def compare_along(
    ir: GrammarIR, compiled: constrain.CompiledGrammar, vocabulary: Tokens, walk: list[int], counter: Any
) -> None:
    """Walk over allowed tokens; at each step compare the mask, and try one forbidden token."""
    size = len(vocabulary.tokens)
    matcher = constrain.Matcher(compiled)
    naive = NaiveRecognizer(ir)
    length = 0
    for choice in [*walk, 0]:
        expected = allowed_tokens(naive, vocabulary)
        assert current_mask(matcher, size) == expected
        assert matcher.is_accepting() == naive.is_accepting()
        counter.add()
        forbidden = sorted(set(range(size)) - expected)
        if forbidden:
            assert matcher.accept_token(forbidden[choice % len(forbidden)]) is False
            assert current_mask(matcher, size) == expected
        token = step(choice, expected, vocabulary)
        if token is None or length > LONGEST:
            break
        length += len(vocabulary.tokens[token])
        assert matcher.accept_token(token) is True
        assert naive.push_bytes(vocabulary.tokens[token])


@on_both_engines
@settings(max_examples=100)
@given(ir=viable_grammars(), vocabulary=vocabularies(), walk=walks())
def test_masks_of_random_grammars(
    masks_compared: Any, ir: GrammarIR, vocabulary: Tokens, walk: list[int], accelerators: Any
) -> None:
    compiler = constrain.GrammarCompiler(constrain.Vocabulary(**vocabulary.as_arguments()), accelerators=accelerators)
    compiled = compiler.compile(constrain.Grammar(ir))
    compare_along(ir, compiled, vocabulary, walk, masks_compared)
    # Once more, now that everything on the way is known, and then along another way.
    compare_along(ir, compiled, vocabulary, walk, masks_compared)
    compare_along(ir, compiled, vocabulary, walk[::-1], masks_compared)


@settings(max_examples=150)
@given(ir=grammars())
def test_compiling_fails_exactly_if_the_language_is_empty(ir: GrammarIR) -> None:
    compiler = constrain.GrammarCompiler(constrain.Vocabulary([b"a", b"$"], eos_ids=[1]))
    if NaiveRecognizer(ir).is_viable:
        compiler.compile(constrain.Grammar(ir))
    else:
        with pytest.raises(constrain.GrammarError):
            compiler.compile(constrain.Grammar(ir))


@on_both_engines
@settings(max_examples=150)
@given(tree=regulars(), vocabulary=vocabularies(), walk=walks())
def test_masks_of_one_lexeme(
    masks_compared: Any, tree: Regular, vocabulary: Tokens, walk: list[int], accelerators: Any
) -> None:
    builder = GrammarBuilder()
    ir = builder.finish(builder.lexeme(tree))
    compiler = constrain.GrammarCompiler(constrain.Vocabulary(**vocabulary.as_arguments()), accelerators=accelerators)
    if not NaiveRecognizer(ir).is_viable:
        with pytest.raises(constrain.GrammarError):
            compiler.compile(constrain.Grammar(ir))
        return
    compare_along(ir, compiler.compile(constrain.Grammar(ir)), vocabulary, walk, masks_compared)


@on_both_engines
@settings(max_examples=20)
@given(irs=st.lists(viable_grammars(3), min_size=2, max_size=4), vocabulary=vocabularies(), walk=walks(8))
def test_grammars_that_share_a_vocabulary(
    masks_compared: Any, irs: list[GrammarIR], vocabulary: Tokens, walk: list[int], accelerators: Any
) -> None:
    vocabulary_of_all = constrain.Vocabulary(**vocabulary.as_arguments())
    compiler = constrain.GrammarCompiler(vocabulary_of_all, accelerators=accelerators)
    compiled = [compiler.compile(constrain.Grammar(ir)) for ir in irs]
    for _ in range(2):
        for ir, one in zip(irs, compiled, strict=True):
            compare_along(ir, one, vocabulary, walk, masks_compared)


@on_both_engines
@settings(max_examples=60)
@given(ir=viable_grammars(), walk=walks(25))
def test_no_dead_ends(ir: GrammarIR, walk: list[int], accelerators: Any) -> None:
    """With every byte a token, no mask is ever empty: whatever was allowed can be finished."""
    tokens = [bytes((byte,)) for byte in range(256)] + [b"ab", "é".encode(), b"\xa9a", b""]
    vocabulary = Tokens(tokens, [260], [])
    tokens.append(b"</s>")
    compiler = constrain.GrammarCompiler(constrain.Vocabulary(**vocabulary.as_arguments()), accelerators=accelerators)
    compiled = compiler.compile(constrain.Grammar(ir))
    matcher = constrain.Matcher(compiled)
    for choice in walk:
        allowed = current_mask(matcher, len(tokens))
        onward = sorted(allowed - {259, 260})
        assert 260 in allowed or onward
        if not onward:
            break
        # Mostly bytes of the alphabet: a complement allows nearly all others everywhere.
        usual = [token for token in onward if token >= 256 or token in ALPHABET]
        assert matcher.accept_token((usual or onward)[choice % len(usual or onward)])
