"""Kind "accelerators": they are switched off, one at a time and all together, and masks stay the same."""

from __future__ import annotations

import random
from typing import Any

import constrain
from bench.fuzz import lark, patterns, schemas_made, scripts, seams, vocabularies
from bench.fuzz.byte_judge import difference, mask_bits
from bench.fuzz.protocol import Budget, Counts, Difference, Kind, isolated, smallest
from constrain.engine.masks.accelerators import NAMES
from constrain.engine.vocabulary.vocabulary import Vocabulary


def _masks(
    source: scripts.Source, choices: list[float], off: tuple[str, ...], path: list[int] | None
) -> tuple[list[Any], list[int], Vocabulary]:
    """The masks along a walk, with some accelerators off: along ``path``, or along one that ``choices`` draw."""
    found: list[Any] = []
    taken: list[int] = []
    # A vocabulary of its own, to which no grammar with all accelerators has left masks, neither here nor on disk.
    vocabulary = vocabularies.large()
    vocabulary.shared.clear()
    accelerators = [name for name in NAMES if name not in off]
    compiled = constrain.CompiledGrammar(source.grammar().ir, vocabulary, accelerators=accelerators)
    if not off:
        seams.make_masks_by_core(compiled)
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
    what = rng.randrange(4)
    if what == 0:
        source = rng.choice(scripts.SOURCES)
    elif what == 1:
        source = scripts.Source("regex", patterns.text(patterns.tree(rng, rng.choice((2, 3, 4)), patterns.taste(rng))))
    elif what == 2:
        source = scripts.Source("json_schema", schemas_made.schema(rng))
    else:
        source = scripts.Source("lark", str(lark.random_text(rng)))
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
