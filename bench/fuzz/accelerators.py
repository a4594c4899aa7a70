"""Kind "accelerators": what makes masks fast is switched off, one room at a time and all together; masks stay the same.

Kernels reach each accelerator through a pointer (``far_call``), and each may answer "not mine".  So one is switched off
by a pointer to a kernel that always answers that, in tables that are made meanwhile; nothing in the engine knows of it.
"""

from __future__ import annotations

import contextlib
import functools
import random
from collections.abc import Iterator
from typing import Any

from numba import int64

import constrain
from bench.fuzz import patterns, schemas_made, scripts, vocabularies
from bench.fuzz.byte_judge import difference, mask_bits
from bench.fuzz.protocol import Budget, Counts, Difference, Kind, isolated, smallest
from constrain.engine.storage import header, links, statuses
from constrain.engine.storage.jit import compile_inner, njit_inner
from constrain.engine.vocabulary.vocabulary import Vocabulary

_SIGNATURE = int64(header.CTX, int64, int64)


@njit_inner(_SIGNATURE)
def _minus_one(_ctx: Any, _a: Any, _b: Any) -> Any:
    return int64(-1)


@njit_inner(_SIGNATURE)
def _zero(_ctx: Any, _a: Any, _b: Any) -> Any:
    return int64(0)


@njit_inner(_SIGNATURE)
def _no_leap(_ctx: Any, _a: Any, _b: Any) -> Any:
    return int64(statuses.NO_LEAP)


@njit_inner(_SIGNATURE)
def _same(_ctx: Any, a: Any, _b: Any) -> Any:
    return a


# Pointer, and what it says instead.
SWITCHES = {
    "plain walks": (links.F_PLAIN, _minus_one),
    "loops": (links.F_LOOPS, _minus_one),
    "leaps": (links.F_LEAP, _no_leap),
    "near splits": (links.F_NEAR, _zero),
    "counted splits": (links.F_COUNTED, _zero),
    "closures": (links.F_CLOSURE, _zero),
    "twins without bounds": (links.F_TWIN, _same),
}
SHARING = "shared splits"
NAMES = (*SWITCHES, SHARING)


@functools.cache
def _address(name: str) -> int:
    compiled = compile_inner(SWITCHES[name][1])
    address: int = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
    return address


@contextlib.contextmanager
def without(*names: str) -> Iterator[None]:
    """Grammars that are compiled meanwhile do without some accelerators; for grammars of a vocabulary of their own."""
    module: Any = links
    before = module.addresses.copy()
    publish = Vocabulary.publish
    for name in names:
        if name == SHARING:
            Vocabulary.publish = lambda *_: None  # type: ignore[assignment, method-assign]
        else:
            module.addresses[SWITCHES[name][0]] = _address(name)
    try:
        yield
    finally:
        module.addresses[:] = before
        Vocabulary.publish = publish  # type: ignore[method-assign]


def _masks(
    source: scripts.Source, choices: list[float], off: tuple[str, ...], path: list[int] | None
) -> tuple[list[Any], list[int], Vocabulary]:
    """The masks along a walk, with some accelerators off: along ``path``, or along one that ``choices`` draw."""
    found: list[Any] = []
    taken: list[int] = []
    vocabulary = vocabularies.large()
    with without(*off):
        compiled = constrain.CompiledGrammar(source.grammar().ir, vocabulary)
        matcher = constrain.Matcher(compiled)
        mask = constrain.allocate_token_bitmask(1, vocabulary.size)
        for index in range(len(choices) + 1):
            matcher.fill_next_token_bitmask(mask)
            found.append(mask_bits(mask, vocabulary.size).copy())
            if index == len(choices):
                break
            if path is None:
                allowed = found[-1].nonzero()[0]
                allowed = allowed[vocabulary.kinds[allowed] == 0]
                if not len(allowed):
                    break
                token = int(allowed[int(choices[index] * len(allowed))])
            elif index < len(path):
                token = path[index]
            else:
                break
            if not matcher.accept_token(token):
                break
            taken.append(token)
    return found, taken, vocabulary


def _wrong(source: scripts.Source, choices: list[float], counts: Counts) -> str:
    masks, path, _ = _masks(source, choices, (), None)
    for off in (*((name,) for name in NAMES), NAMES):
        others, taken, vocabulary = _masks(source, choices, off, path)
        text = b"".join(vocabulary.tokens[token] for token in path)
        if taken != path:
            return f"without {', '.join(off)}: {path[len(taken)]} is refused, of {path} {text!r}"
        for index, (mask, other) in enumerate(zip(masks, others, strict=True)):
            counts["masks"] += 1
            wrong = difference(other, mask, vocabulary)
            if wrong:
                text = b"".join(vocabulary.tokens[token] for token in path[:index])
                return f"without {', '.join(off)}, after {path[:index]} {text!r}: {wrong}, or the other way round"
    return ""


def run(rng: random.Random, budget: Budget) -> Counts:
    counts: Counts = Counts()
    what = rng.randrange(3)
    if what == 0:
        source = rng.choice(scripts.SOURCES)
    elif what == 1:
        source = scripts.Source("regex", patterns.text(patterns.tree(rng, rng.choice((2, 3, 4)))))
    else:
        source = scripts.Source("json_schema", schemas_made.schema(rng))
    choices = [rng.random() for _ in range(rng.choice((3, 6, 12)))]
    try:
        constrain.CompiledGrammar(source.grammar().ir, vocabularies.small())
    except constrain.ConstrainError:
        counts["refused"] += 1
        return counts
    wrong = isolated(lambda: _wrong(source, choices, counts))
    if wrong:
        choices, wrong = smallest(choices, lambda fewer: isolated(lambda: _wrong(source, fewer, Counts())), wrong)
        raise Difference(wrong, f"grammar = {source}\nvocabulary = bench.fuzz.vocabularies.large()")
    return counts


KIND = Kind(
    "accelerators",
    "masks with accelerators switched off by masks with all of them",
    run,
    20,
    {"masks": 500},
)
