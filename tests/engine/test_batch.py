"""Masks for a batch in one call: the same as one by one, whatever the threads do."""

from __future__ import annotations

import gc
import os
import random
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from forks import child_does
from numpy.lib.stride_tricks import as_strided

import constrain
from constrain.engine import matcher as matcher_module
from constrain.engine.masks import batches, known_batches
from constrain.engine.vocabulary.bitmasks import Bitmask
from constrain.grammar.ir import GrammarBuilder
from constrain.grammar.languages.regular import byte_range, concat, literal, repeat

TOKENS = [bytes((byte,)) for byte in range(256)] + [b'{"', b'":', b'"}', b'","', b"12", b"}}", b"ab", b"</s>"]
EOS = len(TOKENS) - 1


@pytest.fixture(autouse=True)
def _frequent_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.fixture(scope="module")
def vocabulary() -> constrain.Vocabulary:
    return constrain.Vocabulary(TOKENS, eos_ids=[EOS])


def compile_pairs(vocabulary: constrain.Vocabulary, name: bytes) -> constrain.CompiledGrammar:
    """Nested lists of ``{"name":digits}``; nothing is known of it yet."""
    builder = GrammarBuilder()
    value = builder.nonterminal("value")
    number = builder.lexeme(repeat(byte_range(0x30, 0x39), 1, 30))
    comma = builder.lexeme(literal(","))
    items = builder.sequence((value, builder.star(builder.sequence((comma, value)))))
    builder.add(value, (builder.lexeme(concat(literal(b'{"' + name + b'":'))), number, builder.lexeme(literal("}"))))
    builder.add(value, (builder.lexeme(literal("[")), builder.optional(items), builder.lexeme(literal("]"))))
    return constrain.CompiledGrammar(builder.finish(value), vocabulary)


def allowed(row: np.ndarray[Any, Any]) -> list[int]:
    bits: list[int] = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()
    return bits


def advance(matchers: list[constrain.Matcher], mask: np.ndarray[Any, Any], choose: random.Random) -> None:
    for matcher, row in zip(matchers, mask, strict=True):
        tokens = allowed(row)
        if tokens:
            assert matcher.accept_token(choose.choice(tokens))


@pytest.fixture
def no_time_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """All masks that are new are left to several threads."""
    monkeypatch.setattr(batches, "_SECONDS_ALONE", 0.0)


@pytest.mark.parametrize(("threads", "seconds"), [(1, 1.0), (2, 1.0), (2, 1e-4), (2, 0.0), (5, 0.0)])
@pytest.mark.parametrize(("grammars", "rows"), [(1, 1), (1, 40), (7, 40), (40, 40), (3, 400)])
def test_the_same_masks_as_one_by_one(
    vocabulary: constrain.Vocabulary,
    grammars: int,
    rows: int,
    threads: int,
    seconds: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batches, "_SECONDS_ALONE", seconds)
    names = [b"n%d" % index for index in range(grammars)]
    batch = [compile_pairs(vocabulary, name) for name in names]
    alone = [compile_pairs(vocabulary, name) for name in names]
    matchers = [constrain.Matcher(batch[row % grammars]) for row in range(rows)]
    twins = [constrain.Matcher(alone[row % grammars]) for row in range(rows)]
    mask = constrain.allocate_token_bitmask(rows, vocabulary.size)
    expected = mask.copy()
    for step in range(12):
        constrain.fill_next_token_bitmask_batch(matchers, mask, threads=threads)
        for row, twin in enumerate(twins):
            twin.fill_next_token_bitmask(expected, row)
        assert (mask == expected).all()
        advance(matchers, mask, random.Random(step))
        advance(twins, mask, random.Random(step))
    assert any(matcher.steps for matcher in matchers)


def test_ended_sequences_allow_nothing(vocabulary: constrain.Vocabulary) -> None:
    matchers = [constrain.Matcher(compile_pairs(vocabulary, b"a")) for _ in range(3)]
    assert matchers[1].accept_bytes(b"[]")
    assert matchers[1].accept_token(EOS)
    mask = constrain.allocate_token_bitmask(3, vocabulary.size)
    constrain.fill_next_token_bitmask_batch(matchers, mask)
    assert [bool(row.any()) for row in mask] == [True, False, True]


def test_rows_by_index(vocabulary: constrain.Vocabulary) -> None:
    compiled = compile_pairs(vocabulary, b"a")
    first, second = constrain.Matcher(compiled), constrain.Matcher(compiled)
    assert second.accept_bytes(b"[[]")
    mask = constrain.allocate_token_bitmask(5, vocabulary.size)
    constrain.fill_next_token_bitmask_batch([first, second], mask, indices=[4, 1])
    assert (mask[[0, 2, 3]] == -1).all()
    assert allowed(mask[4]) == sorted([ord("["), ord("{"), TOKENS.index(b'{"')])
    assert allowed(mask[1]) == sorted([ord(","), ord("]")])
    constrain.fill_next_token_bitmask_batch([], mask)


def test_tensors_whose_rows_are_one(vocabulary: constrain.Vocabulary) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    matchers = [constrain.Matcher(compile_pairs(vocabulary, b"a")) for _ in range(2)]
    mask = torch.full((1, 9), -1, dtype=torch.int32)
    for fill in (
        lambda rows: constrain.fill_next_token_bitmask_batch(matchers, rows),
        lambda rows: constrain.fill_draft_bitmasks(matchers, [[], []], None, rows),
        lambda rows: matchers[0].fill_next_token_bitmask(rows, 0),
    ):
        with pytest.raises(constrain.ConstrainError, match="rows of the mask share memory"):
            fill(mask.expand(2, -1))
    assert (mask == -1).all()


@pytest.mark.parametrize(
    "strided",
    [
        lambda mask: np.asfortranarray(mask),
        lambda mask: mask[::-1, ::-1],
        lambda mask: np.repeat(mask, 2, axis=0)[::2],
        lambda mask: np.repeat(mask, 2, axis=1)[:, ::2],
    ],
)
def test_masks_in_memory_of_any_order(vocabulary: constrain.Vocabulary, strided: Callable[[Bitmask], Bitmask]) -> None:
    matchers = [constrain.Matcher(compile_pairs(vocabulary, b"a")) for _ in range(2)]
    assert matchers[1].accept_bytes(b"[")
    expected = constrain.allocate_token_bitmask(2, vocabulary.size)
    constrain.fill_next_token_bitmask_batch(matchers, expected)
    mask = strided(constrain.allocate_token_bitmask(2, vocabulary.size))
    constrain.fill_next_token_bitmask_batch(matchers, mask)
    np.testing.assert_array_equal(mask, expected)


def test_torch_tensors(vocabulary: constrain.Vocabulary) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    matchers = [constrain.Matcher(compile_pairs(vocabulary, b"a")) for _ in range(2)]
    mask = constrain.allocate_token_bitmask(2, vocabulary.size)
    constrain.fill_next_token_bitmask_batch(matchers, mask)
    tensor = torch.full(mask.shape, -1, dtype=torch.int32)
    constrain.fill_next_token_bitmask_batch(matchers, tensor)
    assert (tensor.numpy() == mask).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"threads": 0}, "threads"),
        ({"threads": 1.0}, "threads"),
        ({"indices": [0]}, "indices"),
        ({"indices": [0, 0]}, "twice"),
        ({"indices": [0, 2]}, "row 2 is out of range"),
        ({"indices": [-1, 0]}, "row -1 is out of range"),
        ({"indices": [0.0, 1.0]}, "indices"),
        ({"mask": np.zeros((1, 9), np.int32)}, "1 rows for 2 matchers"),
        ({"mask": np.zeros((2, 8), np.int32)}, "shape"),
        ({"mask": np.zeros((2, 9), np.int64)}, "dtype"),
        ({"mask": as_strided(np.zeros(10, np.int32), (2, 9), (4, 4))}, "rows of the mask share memory"),
        ({"mask": None}, "numpy"),
        ({"matchers": [None, None]}, "entry 0"),
    ],
)
def test_bad_arguments_write_nothing(vocabulary: constrain.Vocabulary, arguments: dict[str, Any], message: str) -> None:
    compiled = compile_pairs(vocabulary, b"a")
    mask = constrain.allocate_token_bitmask(2, vocabulary.size)
    taken = {"matchers": [constrain.Matcher(compiled) for _ in range(2)], "mask": mask, **arguments}
    with pytest.raises(constrain.ConstrainError, match=message):
        constrain.fill_next_token_bitmask_batch(**taken)
    assert (mask == -1).all()


def test_vocabularies_of_two_sizes(vocabulary: constrain.Vocabulary) -> None:
    other = compile_pairs(constrain.Vocabulary(TOKENS[:-1]), b"a")
    matchers = [constrain.Matcher(compile_pairs(vocabulary, b"a")), constrain.Matcher(other)]
    with pytest.raises(constrain.ConstrainError, match="one vocabulary"):
        constrain.fill_next_token_bitmask_batch(matchers, constrain.allocate_token_bitmask(2, vocabulary.size))


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_of_one_leaves_the_others_written(
    vocabulary: constrain.Vocabulary, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = matcher_module.write_mask

    def write_or_be_full(compiled: constrain.CompiledGrammar, place: Any, *args: Any) -> None:
        if place is matchers[1]:
            raise constrain.LimitError("full")
        write(compiled, place, *args)

    def write_nothing(_contexts: Any, states: Any, _rows: Any, _may_make: bool, _out: Any, missing: Any) -> int:
        missing[:] = range(len(states))
        return len(states)

    grammars = [compile_pairs(vocabulary, b"n%d" % index) for index in range(2)]
    matchers = [constrain.Matcher(grammars[index % 2]) for index in range(5)]
    monkeypatch.setattr(matcher_module, "write_mask", write_or_be_full)
    monkeypatch.setattr(batches, "write_masks", write_nothing)
    mask = constrain.allocate_token_bitmask(5, vocabulary.size)
    mask[:] = 0
    with pytest.raises(constrain.LimitError, match="full"):
        constrain.fill_next_token_bitmask_batch(matchers, mask, threads=threads)
    assert [bool(row.any()) for row in mask] == [True, False, True, True, True]


def test_new_masks_of_a_grammar_take_one_call(
    vocabulary: constrain.Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = compile_pairs(vocabulary, b"a")
    matchers = [constrain.Matcher(compiled) for _ in range(6)]
    for matcher in matchers[:3]:
        assert matcher.accept_bytes(b"[")
    expected = constrain.allocate_token_bitmask(6, vocabulary.size)
    for row in range(6):
        twin = constrain.Matcher(compile_pairs(vocabulary, b"a"))
        assert row >= 3 or twin.accept_bytes(b"[")
        twin.fill_next_token_bitmask(expected, row)
    monkeypatch.setattr(constrain.Matcher, "fill_next_token_bitmask", None)
    mask = constrain.allocate_token_bitmask(6, vocabulary.size)
    constrain.fill_next_token_bitmask_batch(matchers, mask)
    assert (mask == expected).all()


def test_no_thread_is_woken_for_masks_that_take_no_time(
    vocabulary: constrain.Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "_SECONDS_ALONE", 60.0)
    monkeypatch.setattr(batches._threads, "submit", lambda *_: pytest.fail("another thread"))
    matchers = [constrain.Matcher(compile_pairs(vocabulary, name)) for name in (b"a", b"b")]
    mask = constrain.allocate_token_bitmask(2, vocabulary.size)
    constrain.fill_next_token_bitmask_batch(matchers, mask, threads=2)
    twin = constrain.Matcher(compile_pairs(vocabulary, b"a"))
    twin.fill_next_token_bitmask(expected := mask.copy())
    assert (mask == expected).all()


@pytest.mark.usefixtures("no_time_alone")
def test_masks_that_take_longer_are_shared_out_by_grammar(
    vocabulary: constrain.Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    grammars = [compile_pairs(vocabulary, name) for name in (b"a", b"b")]
    matchers = [constrain.Matcher(grammars[place]) for place in (0, 1, 1)]
    mask = constrain.allocate_token_bitmask(3, vocabulary.size)
    shared: list[tuple[int, int]] = []
    run = batches.run_jobs

    def note(jobs: Any, threads: int, *, seconds_alone: float = 0) -> None:
        shared.append((len(jobs), threads))
        run(jobs, threads, seconds_alone=seconds_alone)

    monkeypatch.setattr(batches, "run_jobs", note)
    constrain.fill_next_token_bitmask_batch(matchers, mask, threads=2)
    assert shared[0] == (2, 2)
    shared.clear()
    constrain.fill_next_token_bitmask_batch(matchers, mask, threads=2)
    assert shared == [(0, 2)], "all is known"


@pytest.mark.parametrize("seconds", [0.0, 1e-9])
def test_jobs_are_shared_when_the_time_alone_is_over(seconds: float) -> None:
    both = threading.Barrier(2, timeout=60)
    batches.run_jobs([lambda: both.wait() and None] * 2, 2, seconds_alone=seconds)
    assert not both.broken


def test_jobs_are_not_shared_before() -> None:
    names: list[str] = []
    batches.run_jobs([lambda: names.append(threading.current_thread().name)] * 12, 3, seconds_alone=60.0)
    assert names == [threading.current_thread().name] * 12


@pytest.mark.parametrize("threads", [1, 2])
def test_a_slow_mask_keeps_nobody_from_another_grammar(
    vocabulary: constrain.Vocabulary, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    grammars = [compile_pairs(vocabulary, b"n%d" % index) for index in range(3)]
    matchers = [constrain.Matcher(grammars[index % 3]) for index in range(6)]
    write = batches.write_masks
    held: list[int] = []

    def note(*args: Any) -> int:
        if args[3] == known_batches.ALL:
            held.append(sum(compiled.lock._is_owned() for compiled in grammars))
        return int(write(*args))

    monkeypatch.setattr(batches, "write_masks", note)
    mask = constrain.allocate_token_bitmask(6, vocabulary.size)
    constrain.fill_next_token_bitmask_batch(matchers, mask, threads=threads)
    assert held == [1, 1, 1]


def test_what_is_known_of_a_batch_ends_with_any_of_its_matchers(vocabulary: constrain.Vocabulary) -> None:
    """A new matcher often has the address of the one that was dropped before."""
    grammars = [compile_pairs(vocabulary, name) for name in (b"a", b"b", b"c")]
    first, second = constrain.Matcher(grammars[0]), constrain.Matcher(grammars[1])
    mask = constrain.allocate_token_bitmask(2, vocabulary.size)
    constrain.fill_next_token_bitmask_batch([first, second], mask)
    address, dropped = id(second), weakref.ref(grammars[1])
    del second, grammars[1]
    others: list[constrain.Matcher] = []
    while not others or (id(others[-1]) != address and len(others) < 100):
        others.append(constrain.Matcher(grammars[1]))
        assert others[-1].accept_bytes(b'{"c')
    gc.collect()
    assert dropped() is None
    constrain.fill_next_token_bitmask_batch([first, others[-1]], mask)
    assert allowed(mask[1]) == [ord('"'), TOKENS.index(b'":')]
    assert constrain.accept_token_batch([first, others[-1]], [ord("["), TOKENS.index(b'":')]) == [True, True]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.usefixtures("no_time_alone")
def test_an_interrupt_while_masks_are_made(
    vocabulary: constrain.Vocabulary, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    grammars = [compile_pairs(vocabulary, b"n%d" % index) for index in range(3)]
    matchers = [constrain.Matcher(grammars[index % 3]) for index in range(6)]
    addresses = [compiled.context_address for compiled in grammars]
    write = known_batches.write_masks
    in_doubt: set[int] = set()

    def interrupt(*args: Any) -> int:
        missing: int = write(*args)
        if args[3] != known_batches.KNOWN:
            in_doubt.update(args[0].tolist())
            raise KeyboardInterrupt
        return missing

    mask = constrain.allocate_token_bitmask(6, vocabulary.size)
    monkeypatch.setattr(batches, "write_masks", interrupt)
    with pytest.raises(KeyboardInterrupt):
        constrain.fill_next_token_bitmask_batch(matchers, mask, threads=threads)
    monkeypatch.undo()
    assert not any(compiled.lock._is_owned() for compiled in grammars)
    made = [compiled.tables_made for compiled in grammars]
    constrain.fill_next_token_bitmask_batch(matchers, mask, threads=threads)
    expected_made = [number + (place in in_doubt) for number, place in zip(made, addresses, strict=True)]
    assert in_doubt
    assert [compiled.tables_made for compiled in grammars] == expected_made, "tables are in doubt"
    expected = mask.copy()
    constrain.Matcher(compile_pairs(vocabulary, b"a")).fill_next_token_bitmask(expected)
    assert (mask == expected[0]).all()


def test_one_batch_after_the_other(vocabulary: constrain.Vocabulary) -> None:
    """They begin with the same matcher, or with forks of it."""
    first, second, third = (constrain.Matcher(compile_pairs(vocabulary, name)) for name in (b"a", b"b", b"c"))
    for matcher, name in ((second, b"b"), (third, b"c")):
        assert matcher.accept_bytes(b'{"' + name)
    mask = constrain.allocate_token_bitmask(2, vocabulary.size)
    begin, rest = sorted([ord("["), ord("{"), TOKENS.index(b'{"')]), [ord('"'), TOKENS.index(b'":')]
    for batch in ([first, second], [first, third], [second, first], [first.fork(), third], [first, second.fork()]):
        constrain.fill_next_token_bitmask_batch(batch, mask)
        assert [allowed(row) for row in mask] == [begin if matcher.steps == 0 else rest for matcher in batch]
        with pytest.raises(constrain.ConstrainError, match="twice"):
            constrain.accept_token_batch([batch[0], batch[0]], [ord("["), ord("[")])


@pytest.mark.usefixtures("no_time_alone")
def test_grammars_in_use_elsewhere(vocabulary: constrain.Vocabulary) -> None:
    """Another thread keeps entering the same grammars; and two batches name them in opposite orders."""
    grammars = [compile_pairs(vocabulary, b"n%d" % index) for index in range(6)]
    twins = [compile_pairs(vocabulary, b"n%d" % index) for index in range(6)]
    done = threading.Event()

    def disturb() -> None:
        matchers = [constrain.Matcher(compiled) for compiled in reversed(grammars)]
        mask = constrain.allocate_token_bitmask(6, vocabulary.size)
        choose = random.Random(1)
        while not done.is_set():
            constrain.fill_next_token_bitmask_batch(matchers, mask, threads=2)
            advance(matchers, mask, choose)
            for matcher in matchers:
                if matcher.is_terminated():
                    matcher.reset()

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        for seed in range(8):
            matchers = [constrain.Matcher(compiled) for compiled in grammars]
            expected_of = [constrain.Matcher(compiled) for compiled in twins]
            mask = constrain.allocate_token_bitmask(6, vocabulary.size)
            expected = mask.copy()
            for step in range(15):
                constrain.fill_next_token_bitmask_batch(matchers, mask, threads=2)
                for row, twin in enumerate(expected_of):
                    twin.fill_next_token_bitmask(expected, row)
                assert (mask == expected).all()
                advance(matchers, mask, random.Random(100 * seed + step))
                advance(expected_of, mask, random.Random(100 * seed + step))
    finally:
        done.set()
        thread.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.usefixtures("no_time_alone")
def test_after_a_fork(vocabulary: constrain.Vocabulary) -> None:
    """A child has none of its parent's threads, and must not wait for them."""
    matchers = [constrain.Matcher(compile_pairs(vocabulary, b"n%d" % index)) for index in range(6)]
    mask = constrain.allocate_token_bitmask(6, vocabulary.size)
    constrain.fill_next_token_bitmask_batch(matchers, mask, threads=3)
    for matcher in matchers:
        assert matcher.accept_bytes(b"[")

    def work() -> bool:
        constrain.fill_next_token_bitmask_batch(matchers, mask, threads=3)
        return bool(mask.any(axis=1).all())

    assert child_does(work)
