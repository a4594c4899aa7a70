"""Masks may be forgotten whenever no thread holds the lock of a grammar; nobody may notice."""

from __future__ import annotations

import random
import threading
from types import TracebackType
from typing import Any

import numpy as np
import pytest

import constrain
from constrain.demo import load
from constrain.engine import matcher as matcher_module
from constrain.engine.compiled_grammar import CompiledGrammar
from constrain.engine.masks import state_masks as masks
from constrain.engine.storage.tables import NO_TABLES

SCHEMAS: list[Any] = [
    {"type": "array", "items": {"type": "string"}, "minItems": 1},
    {"type": "array", "items": {"type": "string", "minLength": 3, "maxLength": 60}, "minItems": 2},
    {
        "type": "object",
        "properties": {"name": {"type": "string"}, "number": {"type": "number"}, "nested": {"$ref": "#"}},
        "required": ["number", "name"],
        "additionalProperties": {"type": ["string", "null"]},
    },
    {"anyOf": [{"type": "string", "pattern": "a$"}, {"type": "string", "maxLength": 9}, {"enum": ["ab", "abc", 1]}]},
]


class ForgettingLock:
    """The lock of a grammar; whoever takes it finds all masks forgotten, as if another thread had it before."""

    def __init__(self, compiled: CompiledGrammar) -> None:
        self._compiled = compiled
        self._lock = threading.RLock()
        self._depth = 0
        self.times = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if not self._lock.acquire(blocking, timeout):
            return False
        self._depth += 1
        if self._depth == 1 and self._compiled.ctx is not NO_TABLES:
            self.times += 1
            masks.forget_masks(self._compiled.ctx)
            self._compiled._allocate_masks()
        return True

    def release(self) -> None:
        self._depth -= 1
        self._lock.release()

    def _is_owned(self) -> bool:
        return self._depth > 0

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


@pytest.fixture(scope="module")
def vocabulary() -> constrain.Vocabulary:
    return constrain.Vocabulary.from_tokenizer(load()[0])


def mask_of(matcher: constrain.Matcher) -> np.ndarray[Any, Any]:
    mask = constrain.allocate_token_bitmask(1, matcher.compiled.vocabulary.size)
    matcher.fill_next_token_bitmask(mask)
    return mask


@pytest.mark.parametrize("budget", [None, 12, 40, 400])
@pytest.mark.parametrize("number", range(len(SCHEMAS)))
def test_masks_that_are_forgotten_at_every_moment(
    vocabulary: constrain.Vocabulary, number: int, budget: int | None, masks_compared: Any
) -> None:
    ir = constrain.Grammar.from_json_schema(SCHEMAS[number]).ir
    compiled, judge = CompiledGrammar(ir, vocabulary), CompiledGrammar(ir, vocabulary)
    lock: Any = ForgettingLock(compiled)
    compiled.lock = lock
    choose = random.Random(number)
    for _ in range(2):
        matcher = constrain.Matcher(compiled, max_tokens=budget)
        other = constrain.Matcher(judge, max_tokens=budget)
        for _ in range(min(budget or 15, 15)):
            mask, expected = mask_of(matcher), mask_of(other)
            assert np.array_equal(mask, expected)
            masks_compared.add()
            allowed = np.flatnonzero(np.unpackbits(expected.view(np.uint8), bitorder="little")).tolist()
            token = choose.choice(allowed)
            assert matcher.accept_token(token)
            assert other.accept_token(token)
            if matcher.is_terminated():
                break
    assert lock.times > 50


def test_masks_that_are_forgotten_between_the_halves_of_a_fill(
    vocabulary: constrain.Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mask under a budget is made from the plain one, which need not be kept until then."""
    compiled = constrain.GrammarCompiler(vocabulary).compile(constrain.Grammar.from_json_schema(SCHEMAS[0]))
    matcher = constrain.Matcher(compiled, max_tokens=200)
    assert matcher.accept_bytes(b'["ab')
    expected = mask_of(matcher)
    matcher._budget._costs._clear(compiled)  # type: ignore[union-attr]
    write = matcher_module.write_mask

    def write_and_forget(compiled: CompiledGrammar, *args: Any) -> None:
        write(compiled, *args)
        masks.forget_masks(compiled.ctx)
        compiled._allocate_masks()

    monkeypatch.setattr(matcher_module, "write_mask", write_and_forget)
    assert np.array_equal(mask_of(matcher), expected)


def test_threads_that_forget_and_fill(vocabulary: constrain.Vocabulary, masks_compared: Any) -> None:
    ir = constrain.Grammar.from_json_schema(SCHEMAS[2]).ir
    compiled, judge = CompiledGrammar(ir, vocabulary, mask_limit_bytes=1), CompiledGrammar(ir, vocabulary)
    text = b'{"name": "abc", "number": 12.5, "nested": {"name": "de", "number": 1'
    expected = []
    other = constrain.Matcher(judge, max_tokens=300)
    for byte in text:
        expected.append(mask_of(other))
        assert other.accept_bytes(bytes([byte]))
    errors: list[BaseException] = []

    def run() -> None:
        try:
            for _ in range(2):
                matcher = constrain.Matcher(compiled, max_tokens=300)
                for place, byte in enumerate(text):
                    assert np.array_equal(mask_of(matcher), expected[place])
                    masks_compared.add()
                    assert matcher.accept_bytes(bytes([byte]))
        except BaseException as error:  # handed to the test's own thread
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
