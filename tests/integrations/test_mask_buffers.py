"""Masks that are filled beside the model, step after step, against the masks of each matcher by itself."""

from __future__ import annotations

import os
import random
import threading
from typing import Any

import numpy as np
import pytest
from forks import child_does

from constrain import Grammar, GrammarCompiler, Matcher, Vocabulary, allocate_token_bitmask
from constrain.errors import ConstrainError

torch = pytest.importorskip("torch", reason="torch is not installed")

from constrain.integrations import mask_buffers  # noqa: E402
from constrain.integrations.mask_buffers import MaskBuffers  # noqa: E402

TOKENS = [b"</s>"] + [bytes([byte]) for byte in range(32, 127)] + [b"ab", b"ba", b'": ', b"true", b"10"]
PATTERNS = ["(ab|ba){1,40}c", "[0-9]{2}-[0-9]{1,30}", '\\{"a": (true|[1-9][0-9]*)\\}']
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary(TOKENS, eos_ids=[0], special_ids=[0])


@pytest.fixture
def matchers(vocabulary: Vocabulary) -> list[Matcher]:
    compiler = GrammarCompiler(vocabulary)
    return [Matcher(compiler.compile(Grammar.from_regex(PATTERNS[row % 3]))) for row in range(7)]


def allowed(matcher: Matcher) -> list[int]:
    mask = allocate_token_bitmask(1, len(TOKENS))
    matcher.fill_next_token_bitmask(mask)
    bits = np.unpackbits(mask.view(np.uint8), bitorder="little")
    return np.nonzero(bits[: len(TOKENS)])[0].tolist()


def test_steps_of_a_batch(matchers: list[Matcher]) -> None:
    # Each step is applied without waiting for the one before, while logits of all steps are kept.
    rng, width, kept = random.Random(3), len(TOKENS) + 40, []
    with MaskBuffers(8, len(TOKENS), DEVICE) as buffers:
        for step in range(30):
            running = [row for row, matcher in enumerate(matchers) if not matcher.is_terminated()]
            rng.shuffle(running)
            expected = torch.zeros(8, width)
            for row in running:
                choices = allowed(matchers[row])
                expected[row] = -torch.inf
                expected[row, choices] = 0
            buffers.fill([matchers[row] for row in running], indices=running)
            logits = torch.zeros(8, width, device=DEVICE, dtype=[torch.float32, torch.bfloat16][step % 2])
            buffers.apply(logits)
            kept.append((logits, expected))
            for row in running:
                assert matchers[row].accept_token(rng.choice(allowed(matchers[row])))
    assert any(torch.isneginf(expected).any() for _, expected in kept[10:])
    for logits, expected in kept:
        assert torch.equal(logits.cpu().float(), expected)


def test_one_row_and_all_rows(matchers: list[Matcher]) -> None:
    with MaskBuffers(7, len(TOKENS), DEVICE, threads=2) as buffers:
        for shape in ((len(TOKENS),), (1, len(TOKENS))):
            logits = torch.zeros(shape, device=DEVICE)
            buffers.fill(matchers[:1])
            buffers.apply(logits)
            assert torch.nonzero(logits.reshape(-1).cpu() == 0).reshape(-1).tolist() == allowed(matchers[0])
        logits = torch.zeros(7, len(TOKENS), device=DEVICE)
        buffers.fill(matchers)
        buffers.apply(logits)
        for row, matcher in enumerate(matchers):
            assert torch.nonzero(logits[row].cpu() == 0).reshape(-1).tolist() == allowed(matcher)
        buffers.fill([])
        before = logits.clone()
        buffers.apply(logits)
        assert torch.equal(logits, before)


def test_what_does_not_fit(matchers: list[Matcher]) -> None:
    logits = torch.zeros(7, len(TOKENS), device=DEVICE)
    with MaskBuffers(7, len(TOKENS), DEVICE) as buffers:
        with pytest.raises(ConstrainError, match="call fill before apply"):
            buffers.apply(logits)
        for given, reason in (
            ([0, 1], "1 matchers and 2 rows"),
            ([7], "row 7 is out of range, the buffers have 7"),
            ([-1], "row -1"),
        ):
            with pytest.raises(ConstrainError, match=reason):
                buffers.fill(matchers[:1], indices=given)
        with pytest.raises(ConstrainError, match="names a row twice"):
            buffers.fill(matchers[:2], indices=[3, 3])
        buffers.fill(matchers)
        for wrong, reason in (
            (logits[:6], "logits of 6 rows do not fit masks of 7 rows"),
            (torch.zeros(8, len(TOKENS), device=DEVICE), "logits of 8 rows"),
            (torch.zeros(7, len(TOKENS), device="meta"), "the logits are on meta"),
            (logits.int(), "floating point"),
        ):
            with pytest.raises(ConstrainError, match=reason):
                buffers.apply(wrong)
        # What was filled is still there.
        buffers.apply(logits)
        assert torch.isneginf(logits).any()
        with pytest.raises(ConstrainError, match="call fill before apply"):
            buffers.apply(logits)
    for sizes in ((0, 5), (5, 0)):
        with pytest.raises(ConstrainError, match="must be at least 1"):
            MaskBuffers(*sizes, DEVICE)


def test_a_mask_that_cannot_be_made(matchers: list[Matcher], vocabulary: Vocabulary) -> None:
    other = Matcher(GrammarCompiler(Vocabulary([b"a", b"</s>"], eos_ids=[1])).compile(Grammar.from_regex("a")))
    logits = torch.zeros(7, len(TOKENS), device=DEVICE)
    with MaskBuffers(7, len(TOKENS), DEVICE) as buffers:
        buffers.fill([*matchers[:2], other])
        with pytest.raises(ConstrainError):
            buffers.apply(logits)
        assert not torch.isneginf(logits).any()
        buffers.fill(matchers)
        buffers.apply(logits)
        assert torch.isneginf(logits).any()


def test_tokens_are_accepted_beside_the_model(matchers: list[Matcher]) -> None:
    rng, width = random.Random(4), len(TOKENS)
    twins = [matcher.fork() for matcher in matchers]
    tokens: list[int | None] = [None] * 7
    with MaskBuffers(7, width, DEVICE) as buffers:
        for _ in range(12):
            buffers.fill(matchers, tokens=tokens)
            logits = torch.zeros(7, width, device=DEVICE)
            buffers.apply(logits)
            for row, twin in enumerate(twins):
                assert torch.nonzero(logits[row].cpu() == 0).reshape(-1).tolist() == allowed(twin)
                if twin.is_terminated() or not allowed(twin):
                    # Another sequence takes its place, with a mask of its own and no token so far.
                    matchers[row].reset()
                    twin.reset()
                    tokens[row] = None
                else:
                    tokens[row] = rng.choice(allowed(twin))
                    assert twin.accept_token(tokens[row])
        # After a token that is not allowed all are where they were, and the same tokens can be given again.
        places = [(matcher.steps, allowed(matcher)) for matcher in matchers]
        wrong = list(tokens)
        wrong[2] = next(token for token in range(width) if token not in places[2][1])
        buffers.fill(matchers, tokens=wrong)
        before = logits.clone()
        with pytest.raises(ConstrainError, match=f"row 2: the grammar does not allow token {wrong[2]} there"):
            buffers.apply(logits)
        assert torch.equal(logits, before)
        assert [(matcher.steps, allowed(matcher)) for matcher in matchers] == places
        with pytest.raises(ConstrainError, match="there are 6 tokens for 7 matchers"):
            buffers.fill(matchers, tokens=tokens[:6])
        buffers.fill(matchers, tokens=tokens)
        buffers.apply(logits)
    assert [allowed(matcher) for matcher in matchers] == [allowed(twin) for twin in twins]


def test_what_is_filled_may_be_dropped(matchers: list[Matcher]) -> None:
    before = threading.active_count()
    buffers: Any = MaskBuffers(7, len(TOKENS), DEVICE)
    buffers.fill(matchers)
    buffers.settle()
    assert matchers[0].accept_token(allowed(matchers[0])[0])
    buffers.fill(matchers)
    buffers.fill(matchers[:1])
    logits = torch.zeros(2, len(TOKENS), device=DEVICE)
    buffers.apply(logits)
    assert torch.nonzero(logits[0].cpu() == 0).reshape(-1).tolist() == allowed(matchers[0])
    assert (logits[1] == 0).all()
    buffers.fill(matchers)
    buffers.close()
    assert threading.active_count() == before
    with pytest.raises(ConstrainError, match="closed"):
        buffers.fill(matchers)
    buffers.close()


def test_tokens_are_not_accepted_where_no_thread_can_be_started(
    matchers: list[Matcher], monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    tokens = [allowed(matcher)[0] for matcher in matchers]
    with MaskBuffers(7, len(TOKENS), DEVICE) as buffers:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", start)
            with pytest.raises(ConstrainError, match="can't start new thread"):
                buffers.fill(matchers, tokens=tokens)
        assert [matcher.steps for matcher in matchers] == [0] * 7
        buffers.fill(matchers, tokens=tokens)
        buffers.apply(torch.zeros(7, len(TOKENS), device=DEVICE))
    assert [matcher.steps for matcher in matchers] == [1] * 7


@pytest.mark.skipif(
    not hasattr(os, "fork") or DEVICE != "cpu", reason="there is no fork, or it leaves no use of the GPU"
)
def test_a_forked_child_has_a_thread_of_its_own(matchers: list[Matcher]) -> None:
    with MaskBuffers(7, len(TOKENS), DEVICE) as buffers:
        logits = torch.zeros(7, len(TOKENS))
        buffers.fill(matchers)

        def work() -> bool:
            buffers.fill(matchers)
            buffers.apply(logits)
            return torch.nonzero(logits[0] == 0).reshape(-1).tolist() == allowed(matchers[0])

        assert child_does(work)
        assert (logits == 0).all()
        buffers.apply(logits)


@pytest.mark.parametrize("moment", ["begin", "wait"])
def test_an_interrupt_while_masks_are_filled(
    matchers: list[Matcher], moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind it the matchers are the caller's only when the thread has done with them."""
    may_go_on, has_begun = threading.Event(), threading.Event()
    fill = mask_buffers.fill_next_token_bitmask_batch

    def slow(*arguments: Any, **options: Any) -> None:
        has_begun.set()
        assert may_go_on.wait(20)
        fill(*arguments, **options)

    monkeypatch.setattr(mask_buffers, "fill_next_token_bitmask_batch", slow)
    with MaskBuffers(7, len(TOKENS), DEVICE) as buffers:
        submit = buffers._pool.submit

        def interrupted(*_: Any) -> None:
            raise KeyboardInterrupt

        def interrupted_behind(*arguments: Any) -> None:
            submit(*arguments)
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            if moment == "begin":
                patch.setattr(buffers._pool, "submit", interrupted_behind)
            else:
                buffers.fill(matchers)
                patch.setattr(mask_buffers, "wait", interrupted)
            with pytest.raises(KeyboardInterrupt):
                buffers.fill(matchers)
        assert has_begun.wait(20)
        settling = threading.Thread(target=buffers.settle)
        settling.start()
        settling.join(0.1)
        assert settling.is_alive()
        may_go_on.set()
        settling.join(20)
        assert not settling.is_alive()
        logits = torch.zeros(7, len(TOKENS), device=DEVICE)
        buffers.fill(matchers)
        buffers.apply(logits)
        assert torch.isfinite(logits[0]).nonzero().flatten().tolist() == allowed(matchers[0])
