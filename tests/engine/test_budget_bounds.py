"""Bounds of what finishing takes behind the next token: never too low, and what large budgets go by."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import ALPHABET, viable_grammars, walks

import constrain
from constrain.engine.conditions.budget.bounds import Bounds
from constrain.engine.conditions.budget.budget import Budget
from constrain.engine.conditions.budget.expression_costs import NEVER
from constrain.engine.conditions.budget.token_costs import ALL, TokenCosts
from constrain.engine.conditions.protocol import condition_of
from constrain.engine.storage.schemas import ROOTS
from constrain.grammar.ir import GrammarIR

STATEMENTS = """
start: statement+
statement: NAME "=" expression ";" | "do" statement "while" "(" expression ")" ";" | "{" statement* "}"
expression: sum | NAME "=" expression | expression "?" expression ":" expression
sum: unary | sum ("+" | "-") unary
unary: "-" unary | atom | unary "(" [expression ("," expression)*] ")" | unary "[" expression "]"
atom: NAME | NUMBER | "(" expression ")" | TEXT
NAME: /[a-z]+/
NUMBER: /[0-9]+/
TEXT: /"[^"]*"/
%ignore /[ \\n]+/
"""
TEXT = b'a = (b[c(1,-2)] ? "x" : d); do { e = f(g)(h); } while (a - b); {{ i = -(-j); }}'


def places(compiled: constrain.CompiledGrammar, walk: list[int]) -> Any:
    """Each place of a walk: its bound, and the most that finishing takes behind a token, by looking at each."""
    size = compiled.vocabulary.size
    matcher = constrain.Matcher(compiled, max_tokens=100_000)
    budget = condition_of(matcher, Budget)
    assert budget is not None
    mask = constrain.allocate_token_bitmask(1, size)
    with compiled.lock:
        bounds = Bounds(compiled)
    for choice in walk:
        matcher.fill_next_token_bitmask(mask)
        with compiled.lock:
            if bounds.least < NEVER:
                bound = bounds.behind_any_token(compiled, matcher._state, mask[0])
                # What a budget of any size goes by.
                yield bound, budget._costs._new(compiled, matcher, ALL, False).highest
        allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8)[0], bitorder="little")[: size - 1])
        # Mostly bytes of the alphabet: a complement allows nearly all others everywhere.
        usual = [token for token in allowed.tolist() if compiled.vocabulary.tokens[token].strip(ALPHABET) == b""]
        if not len(allowed) or not matcher.accept_token(int((usual or allowed)[choice % len(usual or allowed)])):
            break


@settings(max_examples=80)
@given(
    ir=viable_grammars(),
    walk=walks(10),
    words=st.lists(st.binary(min_size=2, max_size=9), max_size=12),
    missing=st.sets(st.sampled_from(ALPHABET), max_size=1),
)
def test_no_token_leaves_more_than_the_bound(
    ir: GrammarIR, walk: list[int], words: list[bytes], missing: set[int]
) -> None:
    letters = [bytes(ALPHABET[byte % len(ALPHABET)] for byte in word) for word in words]
    tokens = [*(bytes((byte,)) for byte in range(256) if byte not in missing), *dict.fromkeys(letters), b"</s>"]
    compiled = constrain.CompiledGrammar(ir, constrain.Vocabulary(tokens, eos_ids=[len(tokens) - 1]))
    try:
        constrain.Matcher(compiled, max_tokens=100_000)
    except constrain.ConstrainError:
        # Nothing that the tokens spell.
        assume(False)
    for bound, exact in places(compiled, walk):
        assert exact <= bound


def vocabulary() -> constrain.Vocabulary:
    rng = np.random.default_rng(7)
    signs = np.frombuffer(b'abcdo  ={}()[]?:;,-+12"\nwhile', np.uint8)
    found = {bytes([byte]) for byte in range(256)}
    while len(found) < 1500:
        found.add(rng.choice(signs, int(rng.integers(2, 7))).tobytes())
    found |= {sign * 40 for sign in (b"-", b"(", b"{", b" ", b"do{", b"a?")}
    return constrain.Vocabulary([*sorted(found), b"</s>"], eos_ids=[len(found)])


def test_a_programming_language_has_useful_bounds() -> None:
    compiled = constrain.CompiledGrammar(constrain.Grammar.from_lark(STATEMENTS).ir, vocabulary())
    found = list(places(compiled, list(range(7, 400, 13))))
    assert len(found) > 10
    assert all(exact <= bound < NEVER for bound, exact in found)
    # Forty parentheses are a token here.
    assert max(exact for _, exact in found) > 40
    assert max(bound for bound, _ in found) < 600


@pytest.mark.parametrize("most", [90, 350, 700, 2000])
def test_masks_within_budgets_are_the_same_with_bounds(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    def masks() -> list[Any]:
        compiled = constrain.CompiledGrammar(constrain.Grammar.from_lark(STATEMENTS).ir, vocabulary())
        matcher = constrain.Matcher(compiled, max_tokens=most)
        found = []
        # Long walks are what masks by core are made for.
        for _ in range(2):
            for place in range(len(TEXT)):
                mask = constrain.allocate_token_bitmask(1, compiled.vocabulary.size)
                matcher.fill_next_token_bitmask(mask)
                found.append(mask)
                token = compiled.vocabulary.tokens.index(TEXT[place : place + 1])
                if not matcher.accept_token(token):
                    return found
            if not compiled._tables.used(ROOTS):
                return []
            matcher.reset()
        return found

    asked: list[bool] = []
    is_surely_enough = TokenCosts.is_surely_enough

    def counted(*args: Any) -> bool:
        asked.append(is_surely_enough(*args))
        return asked[-1]

    monkeypatch.setattr(TokenCosts, "is_surely_enough", counted)
    with_bounds = masks()
    monkeypatch.setattr(TokenCosts, "is_surely_enough", lambda *_: False)
    without = masks()
    assert len(with_bounds) > 50
    assert len(with_bounds) == len(without)
    assert all((one == other).all() for one, other in zip(with_bounds, without, strict=True))
    assert sum(asked) > (40 if most == 2000 else 0)
    assert not all(asked)
