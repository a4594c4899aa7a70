"""The protocol of conditions (conditions/protocol.py), with one that the engine has never heard of.

It is put into a matcher's list by hand, since no public option brings another condition than those that there are.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import constrain
from constrain.engine.conditions.protocol import Walk
from constrain.engine.history import Place
from constrain.engine.parser.companions import NO_COMPANION
from constrain.engine.vocabulary.bitmasks import Bitmask, forbid

TOKENS = [b"[", b"]", b"1", b",", b"1,1", b"</s>"]
EOS = len(TOKENS) - 1
ONES = [2, 4]


class AtMost:
    """A text has at most so many bytes ``1``."""

    asks_always = True
    note = 1
    companion = NO_COMPANION

    def __init__(self, most: int) -> None:
        self.most = most
        # How many there are after each step.
        self.counts = [0]
        self.raises = False

    def push(self, cursor: Walk, step: int | bytes, behind: Place, word: int) -> bool:
        assert behind._state > 0
        data = step if isinstance(step, bytes) else cursor.compiled.vocabulary.tokens[step]
        self.counts.append(self.counts[-1] + data.count(b"1"))
        if self.raises:
            raise RuntimeError("half-way")
        return self.counts[-1] <= self.most

    def restrict(self, cursor: Walk, out: Bitmask, index: int) -> None:
        for token in ONES:
            if self.counts[-1] + TOKENS[token].count(b"1") > self.most:
                forbid(out[index], token)

    def rewind(self, steps: int) -> None:
        del self.counts[steps + 1 :]

    def copy(self) -> AtMost:
        twin = AtMost(self.most)
        twin.counts = list(self.counts)
        twin.raises = self.raises
        return twin


@pytest.fixture
def matcher() -> constrain.Matcher:
    vocabulary = constrain.Vocabulary(TOKENS, eos_ids=[EOS])
    grammar = constrain.Grammar.from_regex(r"\[(1(,1)*)?\]")
    return constrain.Matcher(constrain.GrammarCompiler(vocabulary).compile(grammar))


def with_conditions(matcher: constrain.Matcher, *conditions: AtMost) -> None:
    matcher._conditions = conditions
    matcher._heed()


def allowed(matcher: constrain.Matcher) -> set[int]:
    mask = constrain.allocate_token_bitmask(1, len(TOKENS))
    matcher.fill_next_token_bitmask(mask)
    return {token for token in range(len(TOKENS)) if int(mask[0, 0]) >> token & 1}


def ones(matcher: constrain.Matcher) -> int:
    return matcher.text(matcher.steps).count(b"1")


def test_masks_and_steps_keep_it(matcher: constrain.Matcher) -> None:
    plain = matcher.fork()
    with_conditions(matcher, AtMost(4))
    rng = random.Random(1)
    refused = 0
    for _ in range(400):
        of_rules = {token for token in allowed(plain) if token == EOS or plain.fork().accept_token(token)}
        expected = {token for token in of_rules if ones(matcher) + TOKENS[token].count(b"1") <= 4}
        assert allowed(matcher) == expected
        # Rather not to the end.
        token = rng.choice([*(of_rules - {1, EOS}), *(of_rules - {1, EOS}), *range(EOS)])
        assert matcher.accept_token(token) == (token in expected)
        refused += token in of_rules - expected
        if token in expected:
            assert plain.accept_token(token)
        if not allowed(matcher) - {EOS} or rng.random() < 0.05:
            count = rng.randint(0, matcher.steps)
            matcher.rollback(count)
            plain.rollback(count)
    assert refused > 20


def test_bytes_forks_and_resets(matcher: constrain.Matcher) -> None:
    with_conditions(matcher, AtMost(2))
    assert not matcher.accept_bytes(b"[1,1,1")
    assert matcher.accept_bytes(b"[1,")
    twin = matcher.fork()
    assert twin.accept_token(2)
    assert ONES[0] not in allowed(twin)
    assert ONES[0] in allowed(matcher)
    assert not matcher.accept_token(4)
    twin.reset()
    assert twin.accept_bytes(b"[1,1")


def test_one_that_refuses_leaves_the_others_where_they_were(matcher: constrain.Matcher) -> None:
    loose, strict = AtMost(9), AtMost(1)
    with_conditions(matcher, loose, strict)
    assert matcher.accept_bytes(b"[1,")
    for _ in range(3):
        assert not matcher.accept_token(2)
        assert loose.counts == strict.counts == [0, 1]
    assert allowed(matcher) == set()


@pytest.mark.parametrize("step", [2, b"1"])
def test_an_exception_leaves_all_as_before(matcher: constrain.Matcher, step: Any) -> None:
    take = matcher.accept_bytes if isinstance(step, bytes) else matcher.accept_token
    with_conditions(matcher, AtMost(3), AtMost(2))
    assert matcher.accept_bytes(b"[")
    before = allowed(matcher)
    for place in range(2):
        condition: Any = matcher._conditions[place]
        condition.raises = True
        with pytest.raises(RuntimeError, match="half-way"):
            take(step)
        for restored in matcher._conditions:
            assert np.array_equal(restored.counts, [0, 0])  # type: ignore[attr-defined]
            restored.raises = False  # type: ignore[attr-defined]
        assert allowed(matcher) == before
    assert take(step)
    assert [condition.counts for condition in matcher._conditions] == [[0, 0, 1]] * 2  # type: ignore[attr-defined]
