"""After an exception everything is as before the call; see also the kinds "faults" and "interrupts" of bench.fuzz."""

from __future__ import annotations

import copy
import json
import os
import pickle
import random
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from forks import child_does

import constrain
from bench.fuzz.seams import small_tables
from constrain.engine import grammar_tables as tables_module
from constrain.engine.storage import header
from constrain.engine.storage.tables import NO_TABLES, Tables
from constrain.uninterrupted import uninterrupted

TOKENS = [bytes((byte,)) for byte in range(256)]
TOKENS += [b'{"', b'":', b'","', b'"a"', b"true", b"[[", b"]]", b"1.0", b'"]', b"[1,2]", b"</s>"]
EOS = len(TOKENS) - 1


@pytest.fixture(scope="module")
def vocabulary() -> constrain.Vocabulary:
    return constrain.Vocabulary(TOKENS, eos_ids=[EOS])


def mask_of(matcher: constrain.Matcher) -> bytes:
    mask = constrain.allocate_token_bitmask(1, len(TOKENS))
    matcher.fill_next_token_bitmask(mask)
    return mask.tobytes()


# A schema, its options, and a text: ordinary rules, keys that must not come again, rules that are made on demand.
CASES: list[tuple[Any, dict[str, Any], bytes, int | None]] = [
    ({"type": "array", "items": {"type": ["string", "integer"]}}, {}, b'["ab", 12, "', 40),
    ({}, {}, b'{"k": [1, {"k": {"x": [[', None),
    ({}, {}, b'{"k": [1, {"k": {"x": 1, "y": "', 200),
    ({"type": "array", "uniqueItems": True}, {}, b'["ab", 12, {"a": [1, 2]}, "', None),
    ({"properties": {"a": {}, "b": {}, "c": {}}, "required": ["b"]}, {"property_order": "any"}, b'{"c": [1], "', None),
    (
        {"propertyNames": {"pattern": "^[ab]{1,2}$"}, "additionalProperties": {"type": "null"}},
        {},
        b'{"a": null, "b',
        60,
    ),
]


def grammar_of(case: tuple[Any, dict[str, Any], bytes, int | None]) -> constrain.Grammar:
    return constrain.Grammar.from_json_schema(case[0], **case[1])


def play(matcher: constrain.Matcher, text: bytes, call: Callable[..., Any]) -> list[Any]:
    """Go through a text and back in all the ways there are, each by way of ``call``; what came of it."""
    results: list[Any] = []
    for byte in text:
        results += [call(matcher, mask_of, matcher), call(matcher, matcher.accept_token, byte)]
        results += [call(matcher, matcher.is_accepting), call(matcher, matcher.forced_bytes)]
    call(matcher, matcher.rollback, 3)
    results += [call(matcher, mask_of, matcher), call(matcher, matcher.accept_bytes, text[-3:], 3)]
    twin = matcher.fork()
    call(matcher, matcher.reset)
    results += [call(matcher, mask_of, matcher), call(matcher, matcher.accept_token, text[0]), mask_of(twin)]
    results.append(bytes(matcher.text(matcher.steps)))
    return results


@pytest.mark.parametrize("case", CASES, ids=[json.dumps(case[0])[:40] for case in CASES])
@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt, constrain.LimitError])
def test_growth_that_fails(
    vocabulary: constrain.Vocabulary, case: Any, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each time that a table would grow it fails once; the call again then does what it would have done."""
    *_, text, budget = case
    if case[1] or "uniqueItems" in case[0]:
        budget = None
    plain = constrain.CompiledGrammar(grammar_of(case).ir, vocabulary)
    expected = play(constrain.Matcher(plain, budget), text, lambda _, function, *args: function(*args))
    grow = Tables.grow
    failing = [False]
    failures = 0

    def failing_grow(self: Tables) -> None:
        if failing[0]:
            failing[0] = False
            raise error("no")
        grow(self)

    monkeypatch.setattr(Tables, "grow", failing_grow)
    monkeypatch.setattr(Tables, "reserve", _reserve_by_growing)

    def call(matcher: constrain.Matcher, function: Callable[..., Any], *args: Any) -> Any:
        nonlocal failures
        steps, before = matcher.steps, matcher.text(matcher.steps)
        failing[0] = True
        try:
            return function(*args)
        except error:
            failures += 1
            assert (matcher.steps, matcher.text(matcher.steps)) == (steps, before)
            if failures % 5 == 0:
                assert mask_of(other) == others
            return function(*args)
        finally:
            failing[0] = False

    with small_tables():
        shared = constrain.CompiledGrammar(grammar_of(case).ir, vocabulary)
        other, matcher = constrain.Matcher(shared, budget), constrain.Matcher(shared, budget)
        others = mask_of(other)
        assert play(matcher, text, call) == expected
    assert failures > 0


def _reserve_by_growing(self: Tables, slot: int, size: int) -> None:
    if size > self.capacity(slot):
        self.ctx[header.NEED_SLOT], self.ctx[header.NEED_SIZE] = slot, size
        self.grow()


def test_a_grammar_that_was_full_makes_room(vocabulary: constrain.Vocabulary) -> None:
    """Its lexer states are too many for the limit, not those of one text."""
    choose = random.Random(1)
    ir = constrain.Grammar.from_regex(r"(a|b)*a(a|b){14}c").ir
    tight = constrain.CompiledGrammar(ir, vocabulary, limit_bytes=3_000_000)
    wide = constrain.CompiledGrammar(ir, vocabulary)
    matchers = [constrain.Matcher(tight) for _ in range(4)]
    references = [constrain.Matcher(wide) for _ in range(4)]
    begun = tight.tables_made
    for turn in range(4000):
        place = turn % 4
        piece = bytes(choose.choices(b"ab", k=8))
        assert matchers[place].accept_bytes(piece)
        assert references[place].accept_bytes(piece)
        if turn % 97 == 0:
            assert mask_of(matchers[place]) == mask_of(references[place])
        if matchers[place].steps == 20:
            matchers[place].reset()
            references[place].reset()
    assert tight.tables_made > begun + 2


def test_dropped_tables_are_found_again(vocabulary: constrain.Vocabulary) -> None:
    for case in CASES:
        budget = None if case[1] or "uniqueItems" in case[0] else case[3]
        grammar = constrain.CompiledGrammar(grammar_of(case).ir, vocabulary)
        matcher = constrain.Matcher(grammar, budget)
        twin = matcher.fork()
        for byte in case[2]:
            assert matcher.accept_token(byte)
            before = mask_of(matcher), matcher.is_accepting(), matcher.forced_bytes()
            grammar.ctx = NO_TABLES
            assert (mask_of(matcher), matcher.is_accepting(), matcher.forced_bytes()) == before
            grammar.ctx = NO_TABLES
            assert twin.accept_token(byte)
            assert mask_of(twin) == before[0]
        grammar.ctx = NO_TABLES
        constrain.fill_next_token_bitmask_batch([matcher, twin], constrain.allocate_token_bitmask(2, len(TOKENS)))
        grammar.ctx = NO_TABLES
        matcher.rollback(len(case[2]))
        assert mask_of(matcher) == mask_of(constrain.Matcher(grammar, budget))


def test_copies_are_forks(vocabulary: constrain.Vocabulary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables_module, "_COLLECT_BYTES", 1 << 14)
    grammar = constrain.CompiledGrammar(constrain.Grammar.from_json_schema({}, whitespace="compact").ir, vocabulary)
    matcher = constrain.Matcher(grammar)
    assert matcher.accept_bytes(b'[{"a":[[1,{"b":"x')
    expected = mask_of(matcher)
    reader = grammar.recognizer()
    assert all(map(reader.try_push_byte, b"[["))
    twins = [copy.copy(matcher), copy.deepcopy(matcher)]
    readers = [copy.copy(reader), copy.deepcopy(reader)]
    other, choose = constrain.Matcher(grammar), random.Random(1)
    while grammar.generation < 3:
        other.accept_bytes(choose.choice([b"[", b'{"a":', b"[1,", b'["x",{"b":[', b"[[2],"]))
    matcher.reset()
    assert all(mask_of(twin) == expected for twin in twins)
    assert all(reader.try_push_byte(ord("1")) and reader.try_push_byte(ord("]")) for reader in readers)
    assert copy.copy(grammar) is copy.deepcopy(grammar) is grammar
    compiler = constrain.GrammarCompiler(vocabulary, limit_bytes=5_000_000)
    source = constrain.Grammar.from_json_schema({"type": "array", "uniqueItems": True})
    elsewhere, sent = pickle.loads(pickle.dumps((compiler, source)))
    assert elsewhere.limit_bytes == 5_000_000
    assert mask_of(constrain.Matcher(elsewhere.compile(sent))) == mask_of(constrain.Matcher(compiler.compile(source)))


def test_a_mask_that_is_changed_in_place(vocabulary: constrain.Vocabulary) -> None:
    matcher = constrain.Matcher(constrain.GrammarCompiler(vocabulary).compile(constrain.Grammar.from_regex(".*")))
    mask = constrain.allocate_token_bitmask(8, vocabulary.size)
    matcher.fill_next_token_bitmask(mask, 0)
    mask.flags.writeable = False
    with pytest.raises(constrain.ConstrainError, match="writable"):
        matcher.fill_next_token_bitmask(mask, 3)
    assert (mask[3] == -1).all()
    mask.flags.writeable = True
    matcher.fill_next_token_bitmask(mask, 0)
    with pytest.raises(constrain.ConstrainError, match="out of range"):
        matcher.fill_next_token_bitmask(mask, 8)
    with pytest.raises(constrain.ConstrainError, match="out of range"):
        matcher.fill_next_token_bitmask(mask, -1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_while_another_thread_is_in_the_grammar(vocabulary: constrain.Vocabulary) -> None:
    grammar = constrain.CompiledGrammar(constrain.Grammar.from_json_schema({}).ir, vocabulary)
    matcher = constrain.Matcher(grammar)
    assert matcher.accept_bytes(b"[1")
    expected = mask_of(matcher)
    inside, done = threading.Event(), threading.Event()

    def stay() -> None:
        with grammar.lock:
            inside.set()
            done.wait(60)

    thread = threading.Thread(target=stay)
    thread.start()
    inside.wait()
    is_right = child_does(lambda: mask_of(matcher) == expected)
    done.set()
    thread.join()
    assert is_right


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers here")
def test_signals_wait_for_what_must_not_be_interrupted() -> None:
    done = []

    def work() -> str:
        end = time.monotonic() + 0.05
        while time.monotonic() < end:
            pass
        done.append(True)
        return "done"

    def ring(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, ring)
    try:
        assert uninterrupted(work) == "done"
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        with pytest.raises(KeyboardInterrupt):
            uninterrupted(work)
        assert len(done) == 2
        assert signal.getsignal(signal.SIGALRM) is ring
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_an_interrupt_while_waiting_for_the_lock(vocabulary: constrain.Vocabulary) -> None:
    grammar = constrain.CompiledGrammar(constrain.Grammar.from_json_schema({}).ir, vocabulary)
    matcher = constrain.Matcher(grammar)
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    matcher.fill_next_token_bitmask(mask)
    inside, done = threading.Event(), threading.Event()

    def stay() -> None:
        with grammar.lock:
            inside.set()
            done.wait(60)

    def ring(*_: Any) -> None:
        # The call gives up only once it has the lock, or never had it: either is right.
        done.set()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, ring)
    try:
        for call in (lambda: matcher.fill_next_token_bitmask(mask), lambda: matcher.accept_token(ord("["))):
            inside.clear()
            done.clear()
            thread = threading.Thread(target=stay)
            thread.start()
            inside.wait()
            signal.setitimer(signal.ITIMER_REAL, 0.02)
            with pytest.raises(KeyboardInterrupt):
                call()
            thread.join()
            assert matcher.steps == 0
            assert grammar.lock.acquire(blocking=False)
            grammar.lock.release()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert matcher.accept_token(ord("["))
    assert np.count_nonzero(mask) > 0
