"""Kind "shared_masks": grammars of one vocabulary, with lexemes in common, share masks; each has those of its own."""

from __future__ import annotations

import functools
import random

import numpy as np

import constrain
from bench.fuzz.byte_judge import difference, mask_bits
from bench.fuzz.protocol import Budget, Counts, Difference, Kind, isolated
from constrain.engine.masks.accelerators import NAMES
from constrain.engine.vocabulary.vocabulary import Vocabulary

_GRAMMARS, _STEPS = 6, 6
_CLASSES = ("[a-z ]", '[^"]', "[^<]", "[^,\\n]", "(?s:.)", "[a-e]", "\\w", '([^"\\\\]|\\\\.)', "[^\\n]", "(a|b|c| )")
_COUNTS = ("*", "+", "{2,}", "{0,9}", "{0,40}", "{3,}")
_ENDS = ("", "", "e", "ab", "[ab]+", "<a>", '"', "\\d", ",.*")
_BETWEEN = ('"<"', '","', '"]"', "/[^a-z ]+/", '":"', '"e"', '"\\n"', "/[a-z]+/", '"<a>"', "/\\s+/")


@functools.cache
def _tokens(which: int) -> list[bytes]:
    """All bytes, and tokens in which lexemes end and the next ones begin."""
    rng = np.random.default_rng(which)
    signs = np.frombuffer('abcde  ,"\\\n<>:[]1é'.encode(), np.uint8)
    found = {bytes([byte]) for byte in range(256)}
    while len(found) < 2500:
        found.add(rng.choice(signs, int(rng.integers(2, 7))).tobytes())
    return [*sorted(found), b"</s>"]


def _vocabulary(which: int) -> Vocabulary:
    tokens = _tokens(which)
    return constrain.Vocabulary(tokens, eos_ids=[len(tokens) - 1])


def _sources(rng: random.Random) -> list[str]:
    """Grammars with few lexemes, each at the end of some and in the middle of others."""
    begin = "" if rng.random() < 0.7 else '"'
    lexemes = [f"/{begin}{rng.choice(_CLASSES)}{rng.choice(_COUNTS)}{rng.choice(_ENDS)}/" for _ in range(3)]

    def way() -> str:
        first = rng.choice(lexemes) if rng.random() < 0.8 else rng.choice(_BETWEEN)
        rest = (rng.choice(("", *_BETWEEN)), rng.choice(("", "", *lexemes)), rng.choice(("", *_BETWEEN)))
        return " ".join(filter(None, (first, *rest)))

    return ["start: " + " | ".join(way() for _ in range(rng.choice((1, 1, 2)))) for _ in range(_GRAMMARS)]


def _wrong(sources: list[str], which: int, seed: int, counts: Counts) -> str:
    rng = random.Random(seed)
    shared = _vocabulary(which)
    for source in sources:
        ir = constrain.Grammar.from_lark(source).ir
        try:
            plain = constrain.Matcher(constrain.CompiledGrammar(ir, _vocabulary(which), accelerators=()))
        except constrain.GrammarError:
            counts["grammars without a text"] += 1
            continue
        matcher = constrain.Matcher(constrain.CompiledGrammar(ir, shared, accelerators=NAMES))
        mask = constrain.allocate_token_bitmask(2, shared.size)
        taken: list[bytes] = []
        for _ in range(_STEPS):
            plain.fill_next_token_bitmask(mask, 0)
            matcher.fill_next_token_bitmask(mask, 1)
            counts["masks"] += 1
            expected, found = (mask_bits(mask[row : row + 1], shared.size) for row in range(2))
            wrong = difference(found, expected, shared)
            if wrong:
                return f"{source}, after {taken}: {wrong}"
            allowed = expected.nonzero()[0]
            allowed = allowed[shared.kinds[allowed] == 0]
            if not len(allowed):
                break
            token = int(rng.choice(allowed))
            assert plain.accept_token(token)
            assert matcher.accept_token(token)
            taken.append(shared.tokens[token])
    return ""


def run(rng: random.Random, budget: Budget) -> Counts:
    counts: Counts = Counts()
    which, seed, sources = rng.randrange(5), rng.randrange(1 << 30), _sources(rng)
    wrong = isolated(lambda: _wrong(sources, which, seed, counts))
    if wrong:
        raise Difference(wrong, "grammars, in turn:\n" + "\n".join(sources))
    return counts


KIND = Kind(
    "shared_masks",
    "masks of grammars that share them by those of the plain engine, which shares none",
    run,
    40,
    {"masks": 500},
)
