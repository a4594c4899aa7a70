"""Budgets: never too late, against every way to go on; and what else a matcher does agrees with them."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Tokens, viable_grammars, vocabularies

import constrain
from constrain.grammar.ir import GrammarIR
from tests.masks import mask_of

FAR = 99
"""In place of a number of tokens: more than were tried."""


def compile_ir(ir: GrammarIR, vocabulary: Tokens) -> constrain.CompiledGrammar:
    compiler = constrain.GrammarCompiler(constrain.Vocabulary(**vocabulary.as_arguments()))
    return compiler.compile(constrain.Grammar(ir))


class Fewest:
    """The specification: breadth first over all tokens, one after the other, without any budget."""

    def __init__(self, compiled: constrain.CompiledGrammar) -> None:
        vocabulary = compiled.vocabulary
        barred = {*vocabulary.eos_ids, *vocabulary.special_ids}
        # Of several tokens with the same bytes one will do; an empty one leads nowhere.
        self._tokens = sorted(
            {token: i for i, token in enumerate(vocabulary.tokens) if i not in barred and token}.values()
        )
        self._after: dict[int, list[constrain.Matcher]] = {}
        self._compiled = compiled

    def _next(self, matcher: constrain.Matcher) -> list[constrain.Matcher]:
        if matcher._state not in self._after:
            found = {}
            for token in self._tokens:
                other = matcher.fork()
                if other.accept_token(token):
                    found[other._state] = other
            self._after[matcher._state] = list(found.values())
        return self._after[matcher._state]

    def __call__(self, text: bytes, most: int) -> int:
        """How many tokens complete a text, up to ``most``; FAR if more."""
        matcher = constrain.Matcher(self._compiled)
        assert matcher.accept_bytes(text)
        level, seen = {matcher._state: matcher}, set()
        for count in range(most + 1):
            if any(each.is_accepting() for each in level.values()):
                return count
            seen |= level.keys()
            if len(seen) > 3000:
                return FAR
            following = [other for each in level.values() for other in self._next(each)]
            level = {other._state: other for other in following if other._state not in seen}
        return FAR


@settings(max_examples=150)
@given(
    ir=viable_grammars(),
    vocabulary=vocabularies(),
    most=st.integers(0, 7),
    choices=st.lists(st.integers(0, 999), min_size=8, max_size=8),
)
def never_too_late(exactness: Counter[str], ir: GrammarIR, vocabulary: Tokens, most: int, choices: list[int]) -> None:
    compiled = compile_ir(ir, vocabulary)
    fewest = Fewest(compiled)
    eos = set(vocabulary.eos_ids)
    least = fewest(b"", most)
    try:
        matcher = constrain.Matcher(compiled, max_tokens=most)
    except constrain.ConstrainError:
        exactness["starts refused rightly" if least == FAR else "starts refused wrongly"] += 1
        return
    assert least <= most
    exactness["starts allowed"] += 1
    text = b""
    plain = constrain.Matcher(compiled)
    for choice in choices:
        left = matcher.tokens_left
        assert left is not None
        allowed = mask_of(matcher)
        within_grammar = mask_of(plain)
        assert allowed <= within_grammar
        assert allowed & eos == within_grammar & eos
        right = set()
        for token in within_grammar - eos:
            fits = left > 0 and fewest(text + vocabulary.tokens[token], left - 1) <= left - 1
            if fits:
                right.add(token)
            # Never too late.
            assert fits or token not in allowed
        exactness["masks exact" if right == allowed - eos else "masks too small"] += 1
        assert allowed or matcher.is_accepting()
        if left == 0:
            assert allowed <= eos
        for token in range(len(vocabulary.tokens)):
            assert matcher.fork().accept_token(token) == (token in allowed)
        assert matcher.tokens_to_finish() <= left
        onward = sorted(allowed - eos)
        if not onward:
            break
        token = onward[choice % len(onward)]
        assert matcher.accept_token(token)
        assert plain.accept_token(token)
        assert matcher.tokens_left == left - 1
        text += vocabulary.tokens[token]
    for token in matcher.completion():
        assert token in mask_of(matcher)
        assert matcher.accept_token(token)
    assert matcher.is_accepting()


def test_never_too_late_and_mostly_exact() -> None:
    """How much is exact is a figure, with room for other versions of hypothesis."""
    exactness: Counter[str] = Counter()
    never_too_late(exactness)
    assert exactness["starts allowed"] > 30
    assert exactness["starts refused rightly"] > 5
    assert exactness["masks exact"] > 100
    assert exactness["masks too small"] <= exactness["masks exact"] / 50
    assert exactness["starts refused wrongly"] <= exactness["starts allowed"] / 50
