"""What a structured stream costs: events of JSON texts, token by token.

    python -m bench.events [--texts N] [--rounds N]

Texts are valid instances of MaskBench's schemas, in Llama-3's tokens.  Each goes through two matchers: one accepts its
tokens, the other tells the events of each as well.  The difference is what a token costs more, in processor time; the
best of several rounds, since other work on the machine only adds to it.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import json
import statistics
from collections.abc import Iterator
from time import thread_time

import constrain
from bench.maskbench.schemas import SCHEMAS, data_folder, vocabulary_file
from bench.maskbench.vocabulary import TokenTable

_FEWEST = 10
"""Shorter texts would measure the clock."""


def texts(most: int) -> Iterator[str]:
    """Valid instances of MaskBench's schemas, with an indent of 2 and without one in turn."""
    count = 0
    with gzip.open(data_folder() / SCHEMAS, "rt", encoding="utf-8") as file:
        for line in file:
            for test in json.loads(line)["tests"]:
                if test["valid"]:
                    if count == most:
                        return
                    count += 1
                    yield json.dumps(test["data"], ensure_ascii=False, indent=2 if count % 2 else None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", type=int, default=200, help="how many texts (default: 200)")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is read (default: 5)")
    options = parser.parse_args()
    table = TokenTable.read(vocabulary_file())
    vocabulary = constrain.Vocabulary(table.tokens, eos_ids=table.end_ids, special_ids=table.special_ids)
    compiled = constrain.GrammarCompiler(vocabulary).compile(constrain.Grammar.from_json_schema(True))
    costs, plainly, counts, events = [], [], [], 0
    gc.disable()
    for text in texts(options.texts):
        try:
            tokens = table.encode(text)
        except (ValueError, UnicodeEncodeError):
            # The tokenizer changes some texts.
            continue
        if len(tokens) < _FEWEST or not constrain.Matcher(compiled).accept_tokens(tokens):
            continue
        plain, told = [], []
        for _ in range(options.rounds):
            matcher = constrain.Matcher(compiled)
            begin = thread_time()
            for token in tokens:
                matcher.accept_token(token)
            plain.append(thread_time() - begin)
            matcher = constrain.Matcher(compiled)
            matcher.events()
            found = 0
            begin = thread_time()
            for token in tokens:
                matcher.accept_token(token)
                found += len(matcher.events())
            told.append(thread_time() - begin)
        events += found
        costs.append(min(told) - min(plain))
        plainly.append(min(plain))
        counts.append(len(tokens))
        gc.collect()
    total = sum(counts)
    each = [1e6 * cost / count for cost, count in zip(costs, counts, strict=True)]
    print(f"{len(counts)} texts, {total:,} tokens, {events:,} events")
    print(f"to accept a token takes {1e6 * sum(plainly) / total:.2f} us")
    print(
        f"its events take {1e6 * sum(costs) / total:.2f} us more; by text: p50 {statistics.median(each):.2f} us, ",
        end="",
    )
    print(f"p90 {statistics.quantiles(each, n=10)[-1]:.2f} us")


if __name__ == "__main__":
    main()
