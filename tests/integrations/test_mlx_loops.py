"""The processor of mlx-lm in the orders in which its loops call it: drafts, batches, and one text after the other.

MLX is not needed: what the processor uses of it is here with numpy.
"""

from __future__ import annotations

import random
import sys
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import constrain

VOCABULARY = constrain.Vocabulary([b"</s>", *(bytes((byte,)) for byte in b"abc!")], eos_ids=[0])
A, B, C, BANG = 1, 2, 3, 4
COMPILED = constrain.GrammarCompiler(VOCABULARY).compile(constrain.Grammar.from_regex("a(b|c)a?!"))
MORE = 3
"""Logits are wider than the vocabulary."""


class Array(np.ndarray):
    """What is read of an array of MLX: its values, its shape; it cannot be written."""

    def __setitem__(self, *_: Any) -> None:
        raise AssertionError("arrays of MLX are changed by others than the processor")


def array(values: Any) -> Array:
    made = np.array(values).view(Array)
    made.flags.writeable = False
    return made


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes processors with MLX's place taken by numpy."""
    core = SimpleNamespace(array=array, where=lambda c, x, y: array(np.where(c, x, y)), inf=float("inf"))
    package = ModuleType("mlx")
    package.core = core  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mlx", package)
    monkeypatch.setitem(sys.modules, "mlx.core", core)
    monkeypatch.delitem(sys.modules, "constrain.integrations.mlx_lm", raising=False)
    module = import_module("constrain.integrations.mlx_lm")
    monkeypatch.delitem(sys.modules, "constrain.integrations.mlx_lm")
    return module.ConstrainLogitsProcessor


def allowed(processor: Any, ids: list[int]) -> set[int]:
    logits = array(np.zeros((1, VOCABULARY.size + MORE), np.single))
    masked = processor(array(np.array(ids, np.uint32)), logits)
    assert masked.shape == logits.shape
    return set(np.isfinite(masked[0]).nonzero()[0].tolist())


ALL = set(range(VOCABULARY.size + MORE))


def expected(said: list[int]) -> set[int]:
    """What may come after what was said, by a matcher of its own."""
    matcher = constrain.Matcher(COMPILED)
    for token in said:
        if matcher.is_terminated():
            break
        assert matcher.accept_token(token)
    if matcher.is_terminated():
        return ALL
    mask = constrain.allocate_token_bitmask(1, VOCABULARY.size)
    matcher.fill_next_token_bitmask(mask)
    return {token for token in range(VOCABULARY.size) if mask[0, 0] >> token & 1}


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("drafts", [1, 2, 4])
def test_drafts(make: Any, drafts: int, seed: int) -> None:
    """The model goes over each draft again from its beginning, and the next draft begins where it differed."""
    draw = random.Random(seed)
    processor = make(COMPILED)
    prompt = [BANG]  # of a prompt mlx-lm hands over the last token

    def chosen(said: list[int]) -> int:
        found = allowed(processor, prompt + said)
        assert found == expected(said), said
        return draw.choice(sorted(found & set(range(VOCABULARY.size))))

    said: list[int] = []
    while 0 not in said:
        draft: list[int] = []
        for _ in range(drafts):
            draft.append(chosen(said + draft))
        verified: list[int] = []
        for token in [*draft, None]:
            verified.append(chosen(said + verified))
            if verified[-1] != token:
                break
        # What the model says behind a token that the draft does not have is computed too, and dropped.
        ahead = list(verified)
        while len(ahead) <= drafts:
            ahead.append(chosen(said + ahead))
        said += verified
    text = said[: said.index(0)]
    assert constrain.Matcher(COMPILED).accept_tokens([*text, 0])


def test_rows_of_a_batch(make: Any) -> None:
    """mlx-lm gives all rows of a batch the processors that it was given once."""
    draw = random.Random(1)
    processor = make(COMPILED)
    prompts = [[C, B], [BANG, A, A], [C, B], [A]]
    rows: list[list[int]] = [[] for _ in prompts]
    for step in range(8):
        for number, (prompt, said) in enumerate(zip(prompts, rows, strict=True)):
            # One joins later, and those that have ended are called no more.
            if 0 in said or (number == 3 and step < 2):
                continue
            found = allowed(processor, prompt + said)
            assert found == expected(said), (number, said)
            said.append(draw.choice(sorted(found)))
    assert all(0 in said for said in rows)
    assert len({tuple(said) for said in rows}) > 1


def test_a_batch_of_more_rows_than_are_kept(make: Any) -> None:
    """What has been dropped is not taken for a new text."""
    rows = [[BANG, 1000 + number] for number in range(600)]
    processor = make(COMPILED)
    for prompt in rows:
        assert allowed(processor, prompt) == {A}
    with pytest.raises(constrain.ConstrainError, match="more than 512 texts at a time"):
        allowed(processor, [*rows[0], A])
    # The last ones are there, and one that begins where it did.
    assert allowed(processor, [*rows[-1], A]) == {B, C}
    assert allowed(processor, rows[0]) == {A}
    assert allowed(processor, [*rows[0], A]) == {B, C}
    processor.reset()
    assert allowed(processor, [*rows[1], A]) == {A}


def test_what_is_used_again_is_kept(make: Any) -> None:
    processor = make(COMPILED)
    allowed(processor, [BANG, 999])
    for number in range(600):
        assert allowed(processor, [BANG, 999, A]) == {B, C}
        assert allowed(processor, [BANG, 1000 + number]) == {A}


def test_one_text_after_the_other(make: Any) -> None:
    processor = make(COMPILED, max_new_tokens=3)
    for text in ([A, B, BANG, 0], [A, C, BANG, 0]):
        for length in range(len(text)):
            found = allowed(processor, [BANG, *text[:length]])
            assert found == expected(text[:length]) - ({A} if length == 2 else set())
        # One call more is made behind the end token.
        assert allowed(processor, [BANG, *text]) == ALL
        assert processor.follower.matcher.is_terminated()


def test_a_token_that_is_not_allowed(make: Any) -> None:
    processor = make(COMPILED)
    allowed(processor, [BANG])
    with pytest.raises(constrain.ConstrainError, match="generated token 0 has the id 2"):
        allowed(processor, [BANG, B])
    # The text is where it was.
    assert allowed(processor, [BANG, A]) == {B, C}


def test_long_texts_are_not_all_kept(make: Any) -> None:
    compiled = constrain.GrammarCompiler(VOCABULARY).compile(constrain.Grammar.from_regex("(ab)*!"))
    processor = make(compiled)
    ids = [BANG]
    for step in range(2_000):
        assert allowed(processor, ids) == ({A, BANG} if step % 2 == 0 else {B})
        ids.append((A, B)[step % 2])
    assert len(processor._places) < 1_000
    for number in range(9_000):
        allowed(processor, [C, 1000 + number])
    assert len(processor._dropped) < 9_000
