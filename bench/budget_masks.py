"""What a budget adds to masks: the same texts with and without ``max_tokens``, on real schemas and 128,256 tokens.

Each valid instance of a schema is read twice by matchers of a fresh compiled grammar: the first time everything in it
is new, the second time nothing is.  Times are the processor's, of one thread.
"""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from typing import Any

import click

import constrain
from bench.figures import data_folder
from bench.walks import entries
from constrain.tokenizers.factory import load_tokenizer

BUDGETS = (60, 200, 1000)

_TEXTS = ["alpha beta gamma", "the quick brown fox jumps over the lazy dog", "lorem ipsum dolor sit amet", "xyz"]
_STRINGS: list[dict[str, Any]] = [
    {"type": "string"},
    {"type": "string", "minLength": 1},
    {"type": "string", "maxLength": 60},
    {"type": "string", "pattern": "^[a-z ]+$", "maxLength": 60},
    {"type": ["string", "null"], "maxLength": 60},
    {"anyOf": [{"enum": ["a", "data"]}, {"type": "string", "minLength": 1}]},
]
UNIQUE_STRINGS = [
    {"schema": {"type": "array", "uniqueItems": True, "items": items}, "tests": [{"data": _TEXTS, "valid": True}]}
    for items in _STRINGS
]


def read(
    compiled: constrain.CompiledGrammar, tokens: list[int], most: int | None
) -> tuple[int, int, float, float] | None:
    """Masks, accepted tokens, and seconds for the matcher and for the masks; None if the budget is too small."""
    mask = constrain.allocate_token_bitmask(1, compiled.vocabulary.size)
    start = time.thread_time()
    try:
        matcher = constrain.Matcher(compiled, max_tokens=most)
    except constrain.ConstrainError:
        return None
    ready = time.thread_time()
    spent = 0.0
    masks = 0
    for token in tokens:
        begin = time.thread_time()
        matcher.fill_next_token_bitmask(mask)
        spent += time.thread_time() - begin
        masks += 1
        if not matcher.accept_token(token):
            break
    return masks, matcher.steps, ready - start, spent


@click.command()
@click.option("--count", default=200, show_default=True, help="Schemas.")
@click.option("--seed", default=1, show_default=True)
@click.option("--scarce", is_flag=True, help="Only schemas whose keys a text may run short of.")
@click.option("--unique", is_flag=True, help="Some arrays of strings with uniqueItems instead.")
def main(count: int, seed: int, scarce: bool, unique: bool) -> None:
    """Times of masks with and without budgets."""
    tokenizer = load_tokenizer(data_folder() / "vocab" / "llama3.tiktoken")
    vocabulary = constrain.Vocabulary.from_tokenizer(tokenizer)
    warm = constrain.GrammarCompiler(vocabulary).compile(constrain.Grammar.from_json_schema(True))
    constrain.Matcher(warm, max_tokens=9).fill_next_token_bitmask(constrain.allocate_token_bitmask(1, vocabulary.size))
    constrain.Matcher(warm).completion()
    masks: Counter[tuple[str, str]] = Counter()
    seconds: defaultdict[tuple[str, str], float] = defaultdict(float)
    done = seen = 0
    for entry in UNIQUE_STRINGS if unique else entries(seed):
        if done == count:
            break
        texts = [json.dumps(test["data"]) for test in entry["tests"] if test["valid"]]
        try:
            grammar = constrain.Grammar.from_json_schema(entry["schema"])
            constrain.GrammarCompiler(vocabulary, cache_limit_bytes=0).compile(grammar)
        except constrain.ConstrainError:
            continue
        if not texts:
            continue
        seen += 1
        if scarce and not grammar.ir.has_scarce_keys():
            continue
        done += 1
        tokens = [int(token) for token in tokenizer.encode(texts[0]).ids]
        budgets = [("as few as the text takes", len(tokens))]
        budgets += [(f"{most:,}", most) for most in BUDGETS if most >= len(tokens)]
        for name, most in budgets:
            for kind, budget in (("without", None), ("with", most)):
                compiled = constrain.GrammarCompiler(vocabulary, cache_limit_bytes=0).compile(grammar)
                for visit in ("first", "again"):
                    found = read(compiled, tokens, budget)
                    if found is None or found[1] < len(tokens):
                        break
                    masks[name, f"{kind} {visit}"] += found[0]
                    seconds[name, f"{kind} {visit}"] += found[3]
                    seconds[name, f"{kind} {visit} start"] += found[2]
                    masks[name, f"{kind} {visit} start"] += 1
    click.echo(f"{done:,} of {seen:,} schemas")
    click.echo(
        "| budget | masks | us without, first | us with, first | us without, again | us with, again | ms to begin |"
    )
    click.echo("|---|---|---|---|---|---|---|")
    for name in dict.fromkeys(name for name, _ in masks):
        times = [
            1e6 * seconds[name, key] / max(1, masks[name, key])
            for key in ("without first", "with first", "without again", "with again")
        ]
        start = 1e3 * seconds[name, "with first start"] / max(1, masks[name, "with first start"])
        cells = [f"{masks[name, 'with first']:,}", *(f"{value:.1f}" for value in times), f"{start:.2f}"]
        click.echo(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
