"""A forked child can use everything, whatever other threads were doing when it was made."""

from __future__ import annotations

import contextlib
import gc
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from forks import child_does

import constrain
from constrain import collection, demo, metrics
from constrain.backends.base import RememberingBackend
from constrain.engine.automata import prelude as stock
from constrain.engine.masks import batches as batch
from constrain.generation import generate
from constrain.tokenizers import metrics as tokenizer_metrics

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork"),
    pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning"),
]

TOKENS = [bytes((byte,)) for byte in range(256)]
TOKENS += [bytes((a, b)) for a in range(32, 127) for b in range(32, 127)] + [b"</s>"]
SCHEMA = {"type": "array", "items": {"type": "string", "maxLength": 5}}


@pytest.fixture(scope="module")
def vocabulary() -> constrain.Vocabulary:
    return constrain.Vocabulary(TOKENS, eos_ids=[len(TOKENS) - 1])


def while_held(lock: Any, work: Callable[[], bool]) -> bool:
    """The same, where another thread holds a lock at the time of the fork."""
    held, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            leave.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert held.wait(10)
        return child_does(work)
    finally:
        leave.set()
        thread.join()


def masks(compiler: constrain.GrammarCompiler) -> list[bytes]:
    compiled = compiler.compile(constrain.Grammar.from_json_schema(SCHEMA))
    matcher = constrain.Matcher(compiled)
    mask = constrain.allocate_token_bitmask(1, compiled.vocabulary.size)
    result = []
    for byte in b'["abc","d"]':
        matcher.fill_next_token_bitmask(mask)
        result.append(mask.tobytes())
        assert matcher.accept_token(byte)
    return result


def test_a_compiler(vocabulary: constrain.Vocabulary) -> None:
    compiler = constrain.GrammarCompiler(vocabulary)
    expected = masks(compiler)
    assert while_held(compiler._lock, lambda: masks(compiler) == expected)
    assert masks(compiler) == expected
    # A lock that nobody held leaves the cache as it was.
    compiled = compiler.compile(constrain.Grammar.from_json_schema(SCHEMA))
    assert child_does(lambda: compiler.compile(constrain.Grammar.from_json_schema(SCHEMA)) is compiled)


def test_a_vocabulary(vocabulary: constrain.Vocabulary) -> None:
    expected = masks(constrain.GrammarCompiler(vocabulary))
    fresh = constrain.Vocabulary([*TOKENS[:-1], b"<end>"], eos_ids=[len(TOKENS) - 1])
    assert while_held(fresh.shared.lock, lambda: masks(constrain.GrammarCompiler(fresh)) == expected)


def test_a_compiled_grammar(vocabulary: constrain.Vocabulary) -> None:
    compiler = constrain.GrammarCompiler(vocabulary)
    expected = masks(compiler)
    compiled = compiler.compile(constrain.Grammar.from_json_schema(SCHEMA))
    assert while_held(compiled.lock, lambda: masks(compiler) == expected)


def test_expressions_that_grammars_share(vocabulary: constrain.Vocabulary) -> None:
    compiler = constrain.GrammarCompiler(vocabulary, cache_limit_bytes=0)
    expected = masks(compiler)
    assert while_held(stock._lock, lambda: masks(compiler) == expected)


def test_the_threads_of_batches(vocabulary: constrain.Vocabulary) -> None:
    schemas = [SCHEMA, {"type": "integer"}]

    def fill() -> bytes:
        compiler = constrain.GrammarCompiler(vocabulary)
        matchers = [constrain.Matcher(compiler.compile(constrain.Grammar.from_json_schema(each))) for each in schemas]
        mask = constrain.allocate_token_bitmask(len(matchers), vocabulary.size)
        constrain.fill_next_token_bitmask_batch(matchers, mask, threads=2)
        return mask.tobytes()

    expected = fill()
    assert while_held(batch._threads._lock, lambda: fill() == expected)


def test_a_text_that_is_being_generated() -> None:
    tokenizer, model = demo.load()
    compiled = constrain.GrammarCompiler(constrain.Vocabulary.from_tokenizer(tokenizer)).compile(
        constrain.Grammar.from_json_schema({**SCHEMA, "minItems": 5})
    )
    steps = iter(generate(model, tokenizer, compiled, max_tokens=60, overlap=True))
    for _ in range(3):
        next(steps)
    assert child_does(lambda: list(steps))
    assert list(steps)


@contextlib.contextmanager
def without_collection() -> Iterator[None]:
    pause = collection._Pause()
    pause.begin()
    try:
        yield
    finally:
        pause.end()


def test_garbage_is_collected_in_the_child() -> None:
    is_off = collection.without_collection(lambda: not gc.isenabled())
    assert gc.isenabled()
    assert while_held(without_collection(), gc.isenabled)
    assert gc.isenabled()
    assert while_held(collection._lock, lambda: is_off() and gc.isenabled())
    # The thread that forks is in the child too, and so is its pause.
    with without_collection():
        assert child_does(lambda: not gc.isenabled())


def test_metrics() -> None:
    assert while_held(metrics._switch._lock, lambda: metrics.disable() is None)
    assert while_held(tokenizer_metrics._switch._lock, lambda: tokenizer_metrics.disable() is None)


class Backend(RememberingBackend):
    """Remembers the last text, and nothing else."""

    last: Sequence[int] = ()

    def logits(self, ids: Sequence[int]) -> Sequence[int]:
        with self._turn:
            before, self.last = self.last, ids
        return before

    def _let_go(self) -> None:
        self.last = ()


def test_a_model_in_use() -> None:
    backend = Backend()
    backend.logits([1])
    # What another thread was doing with its text is not known.
    assert while_held(backend._turn, lambda: backend.logits([2]) == ())
    assert child_does(lambda: backend.logits([2]) == [1])


def test_forks_in_the_middle_of_calls(vocabulary: constrain.Vocabulary) -> None:
    compiler = constrain.GrammarCompiler(vocabulary)
    expected = masks(compiler)
    done = threading.Event()

    def work() -> None:
        while not done.is_set():
            busy = constrain.GrammarCompiler(vocabulary)
            masks(busy)
            masks(compiler)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(20):
            assert child_does(lambda: masks(compiler) == expected)
    finally:
        done.set()
        thread.join()
