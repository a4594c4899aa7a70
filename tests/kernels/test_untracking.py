"""What the garbage collector leaves alone: the steps of texts, however many there are."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest

import constrain
from constrain.kernels import library, untracking

WAYS = [pytest.param(untracking._untrack_by_ctypes(), id="ctypes")]
if library.loaded is not None:
    WAYS.append(pytest.param(library.loaded.untrack, id="library"))


@pytest.mark.parametrize("untrack", WAYS)
def test_tuples_and_lists_of_tuples(untrack: Callable[[Any], None]) -> None:
    number = int("5")
    chain: tuple[Any, ...] = (number, None)
    many = [(number, chain), (number, (number, None))]
    assert gc.is_tracked(chain)
    untrack(chain)
    untrack(chain)
    untrack(many)
    assert not any(map(gc.is_tracked, (chain, *many)))
    assert gc.is_tracked(many)
    assert gc.is_tracked(many[1][1])
    untrack([])
    # As deep as a long text: it is freed without a stack as deep.
    for _ in range(300_000):
        chain = (number, chain)
        untrack(chain)
    gc.collect()
    assert not gc.is_tracked(chain)
    del chain, many


def test_texts_leave_the_collector_nothing_to_do() -> None:
    vocabulary = constrain.Vocabulary([b"a", b"b", b"</s>"], eos_ids=[2])
    compiled = constrain.GrammarCompiler(vocabulary).compile(constrain.Grammar.from_regex("[ab]*"))
    matchers = [constrain.Matcher(compiled) for _ in range(8)]

    def go_on(steps: int) -> int:
        for step in range(steps):
            assert all(constrain.accept_token_batch(matchers[:6], [step % 2] * 6))
            assert matchers[6].accept_token(step % 2)
            assert matchers[7].accept_bytes(b"ab")
        gc.collect(0)
        return len(gc.get_objects())

    before = go_on(10)
    assert go_on(500) < before + 200
    # What was freed, forked and taken back is as it was.
    twin = matchers[0].fork()
    twin.rollback(400)
    assert (twin.steps, matchers[0].steps) == (110, 510)
    assert twin.accept_token(1)
    assert not twin.is_terminated()
