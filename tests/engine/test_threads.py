"""One compiled grammar, and one compiler, in several threads: the same masks as in one."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import pytest

import constrain
from constrain.grammar.ir import GrammarBuilder, GrammarIR
from constrain.grammar.languages.regular import byte_range, concat, literal, repeat
from constrain.grammar.languages.utf8 import encode, negate, normalize

Job = TypeVar("Job")

THREADS = 8
WALKS = 6
STEPS = 40

TOKENS = [bytes((byte,)) for byte in range(256)]
TOKENS += [
    b'"',
    b'",',
    b'":',
    b'": ',
    b"{}",
    b'{"',
    b'["',
    b"]]",
    b"[[",
    b"[{",
    b"}]",
    b"}}",
    b"},{",
    b'"a',
    b'a"',
    b"12",
]
TOKENS += [b"  ", b' "', "é".encode(), "日本".encode(), b'","', b'":"', b'":{"', b"abc", b"1,2", b"</s>"]
EOS = len(TOKENS) - 1


@pytest.fixture(autouse=True)
def _frequent_switches() -> Iterator[None]:
    """Threads take turns every few bytecodes, so that what can interleave does."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def json_like() -> GrammarIR:
    """Nested objects and lists: walks come upon new rows and lexer states all the time."""
    builder = GrammarBuilder()
    value = builder.nonterminal("value")
    character = encode(negate(normalize([(0, 0x1F), (0x22, 0x22), (0x5C, 0x5C)])))
    text = builder.lexeme(concat(literal('"'), repeat(character), literal('"')))
    number = builder.lexeme(repeat(byte_range(0x30, 0x39), 1, 12))
    comma, colon = builder.lexeme(literal(",")), builder.lexeme(literal(":"))
    member = builder.sequence((text, colon, value))
    members = builder.sequence((member, builder.star(builder.sequence((comma, member)))))
    items = builder.sequence((value, builder.star(builder.sequence((comma, value)))))
    for right in (
        (text,),
        (number,),
        (builder.lexeme(literal("{")), builder.optional(members), builder.lexeme(literal("}"))),
        (builder.lexeme(literal("[")), builder.optional(items), builder.lexeme(literal("]"))),
    ):
        builder.add(value, right)
    return builder.finish(value, ignore=(builder.lexeme(repeat(literal(" "), 1)),))


def walk(compiled: constrain.CompiledGrammar, seed: int) -> list[bytes]:
    """The masks along some random generations."""
    choose = random.Random(seed)
    matcher = constrain.Matcher(compiled)
    mask = constrain.allocate_token_bitmask(1, len(TOKENS))
    masks = []
    for _ in range(WALKS):
        matcher.reset()
        for _ in range(STEPS):
            matcher.fill_next_token_bitmask(mask, 0)
            masks.append(mask.tobytes())
            bits = np.unpackbits(mask.view(np.uint8), bitorder="little")[: len(TOKENS)]
            allowed = np.flatnonzero(bits).tolist()
            # Rarely a letter: most of what is allowed in a string keeps it going for ever.
            structure = [token for token in allowed if token >= 256 or token in b'"{}[],:1 ']
            token = choose.choice(structure or allowed)
            assert matcher.accept_token(token)
            if token == EOS:
                break
            if choose.random() < 0.1:
                matcher.rollback(1)
    return masks


def run_at_once(jobs: list[Job], work: Callable[[Job], list[bytes]]) -> list[list[bytes]]:
    barrier = threading.Barrier(len(jobs))

    def started_together(job: Job) -> list[bytes]:
        barrier.wait()
        return work(job)

    with ThreadPoolExecutor(len(jobs)) as pool:
        return list(pool.map(started_together, jobs))


def test_one_compiled_grammar_in_many_threads() -> None:
    vocabulary = constrain.Vocabulary(TOKENS, eos_ids=[EOS])
    alone = constrain.GrammarCompiler(vocabulary).compile(constrain.Grammar(json_like()))
    expected = [walk(alone, seed) for seed in range(THREADS)]
    # A fresh compiler: all that the threads share is found while they run.
    fresh = constrain.GrammarCompiler(constrain.Vocabulary(TOKENS, eos_ids=[EOS]))
    shared = fresh.compile(constrain.Grammar(json_like()))
    assert run_at_once(list(range(THREADS)), lambda seed: walk(shared, seed)) == expected


def test_forks_in_many_threads() -> None:
    vocabulary = constrain.Vocabulary(TOKENS, eos_ids=[EOS])
    compiled = constrain.GrammarCompiler(vocabulary).compile(constrain.Grammar(json_like()))
    matcher = constrain.Matcher(compiled)
    assert matcher.accept_bytes(b'[{"a": [')
    forks = [matcher.fork() for _ in range(THREADS)]

    def finish(job: tuple[int, constrain.Matcher]) -> list[bytes]:
        index, fork = job
        assert fork.accept_bytes(b"1," * index + b'1]}, "b"]')
        assert fork.is_accepting()
        fork.rollback(1)
        assert not fork.is_accepting()
        mask = constrain.allocate_token_bitmask(1, len(TOKENS))
        fork.fill_next_token_bitmask(mask, 0)
        return [mask.tobytes()]

    assert len({masks[0] for masks in run_at_once(list(enumerate(forks)), finish)}) == 1
    assert matcher.accept_bytes(b"2]}]")


def test_one_compiler_in_many_threads() -> None:
    """All compile the same grammars at once, in different orders, with a cache too small for all of them."""
    compiler = constrain.GrammarCompiler(constrain.Vocabulary(TOKENS, eos_ids=[EOS]), cache_limit_bytes=1 << 20)
    texts = ["".join(chr(97 + (index + step) % 26) for step in range(5)) for index in range(12)]

    def compile_all(job: int) -> list[bytes]:
        order = texts[:]
        random.Random(job).shuffle(order)
        for text in order:
            builder = GrammarBuilder()
            compiled = compiler.compile(constrain.Grammar(builder.finish(builder.lexeme(literal(text)))))
            matcher = constrain.Matcher(compiled)
            assert matcher.forced_bytes() == text.encode()
            assert matcher.accept_bytes(text.encode())
            assert matcher.is_accepting()
        return []

    run_at_once(list(range(THREADS)), compile_all)
