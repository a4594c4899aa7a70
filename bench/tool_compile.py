"""Compile and first mask for many tools; masks in free text with many triggers, or without some words; for Llama-3.

    python -m bench.tool_compile [--tools 1 128 1000] [--style qwen3] [--triggers 1 20 200] [--excluded 50 1000]

Each line is for tools (triggers, words) that were not seen before in the process, after one that makes what all
grammars share.  Times are medians of ``--rounds`` rounds.  Masks in free text are timed in processor time, to which
other work on the machine adds little.
"""

from __future__ import annotations

import argparse
import itertools
import random
import time
from collections.abc import Collection
from statistics import mean, median
from typing import Any

import constrain
from bench.figures import llama3_vocabulary, mask_times
from constrain.engine.masks.accelerators import NAMES

KINDS: list[dict[str, Any]] = [
    {"type": "string", "description": "what it is"},
    {"type": "integer"},
    {"type": "number"},
    {"type": "boolean"},
    {"enum": ["a", "b", "c"]},
    {"type": "array", "items": {"type": "string"}},
]
TEXT = "Let me look. <b>bold</b> and so on, it costs 3 < 4.\nTake the <function of this, and func(x) = 2; été.\n" * 4


def tool(rng: random.Random, number: int) -> dict[str, Any]:
    """A tool of ten properties, three of which are required."""
    properties = {f"arg_{rng.randrange(1000)}_{place}": rng.choice(KINDS) for place in range(10)}
    parameters = {"type": "object", "properties": properties, "required": list(properties)[:3]}
    return {"name": f"tool_{number}_{rng.randrange(10**6)}", "parameters": parameters}


def measure_tools(vocabulary: constrain.Vocabulary, count: int, style: str, rng: random.Random) -> tuple[float, ...]:
    """Milliseconds to read, to compile, and for the first mask; and of the processor for all."""
    tools = [tool(rng, number) for number in range(count)]
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    processor = time.process_time()
    times = [time.perf_counter()]
    grammar = constrain.Grammar.from_tools(tools, style=style)
    times.append(time.perf_counter())
    compiled = constrain.CompiledGrammar(grammar.ir, vocabulary)
    times.append(time.perf_counter())
    constrain.Matcher(compiled).fill_next_token_bitmask(mask)
    times.append(time.perf_counter())
    processor = time.process_time() - processor
    return (*(1e3 * (after - before) for before, after in itertools.pairwise(times)), 1e3 * processor)


def tokens_of(vocabulary: constrain.Vocabulary, data: bytes) -> list[int]:
    """Some tokens of a text: the longest at each place."""
    known = {token: number for number, token in enumerate(vocabulary.tokens) if token}
    found, place = [], 0
    while place < len(data):
        size = next(size for size in range(min(24, len(data) - place), 0, -1) if data[place : place + size] in known)
        found.append(known[data[place : place + size]])
        place += size
    return found


def triggered(count: int) -> dict[str, Any]:
    """The format of free text with so many triggers."""
    triggers = [f"<function=name_{number:03}>" for number in range(count)]
    content = {"type": "const_string", "value": "x"}
    tags = [{"begin": trigger, "content": content, "end": "</function>"} for trigger in triggers]
    return {"type": "triggered_tags", "triggers": triggers, "tags": tags}


def without(count: int) -> dict[str, Any]:
    """The format of free text without so many words."""
    rng = random.Random(count)
    letters = "abcdefghijklmnopqrstuvwxyz"
    return {
        "type": "any_text",
        "excludes": ["".join(rng.choices(letters, k=rng.randrange(4, 10))) for _ in range(count)],
    }


def measure_text(
    vocabulary: constrain.Vocabulary, form: dict[str, Any], accelerators: Collection[str] | None = None
) -> tuple[float, list[float], list[float]]:
    """Milliseconds to read and compile; microseconds of the processor for each mask of a text, on a first and on a
    second walk, in the order of the text."""
    begin = time.perf_counter()
    grammar = constrain.Grammar.from_structural_tag(form)
    compiled = constrain.CompiledGrammar(grammar.ir, vocabulary, accelerators=accelerators)
    seconds = time.perf_counter() - begin
    tokens = tokens_of(vocabulary, TEXT.encode())
    first, second = (mask_times(constrain.Matcher(compiled), tokens) for _ in range(2))
    return 1e3 * seconds, first, second


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", type=int, nargs="*", default=[1, 128, 1000])
    parser.add_argument("--style", default="qwen3")
    parser.add_argument("--triggers", type=int, nargs="*", default=[1, 20, 200])
    parser.add_argument("--excluded", type=int, nargs="*", default=[50, 1000])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    rng = random.Random(1)
    vocabulary = llama3_vocabulary()
    _ = vocabulary.trie
    measure_tools(vocabulary, 2, options.style, rng)
    for count in options.tools:
        rounds = [measure_tools(vocabulary, count, options.style, rng) for _ in range(options.rounds)]
        read, compiled, first, processor = (median(each) for each in zip(*rounds, strict=True))
        total = median(sum(each[:3]) for each in rounds)
        parts = f"read {read:.1f} ms, compile {compiled:.1f} ms, first mask {first:.1f} ms"
        print(f"{count:5} tools: {parts}; {total:.1f} ms, of the processor {processor:.1f} ms")
    texts = [(f"{count:5} triggers", triggered(count), NAMES) for count in options.triggers]
    for count in options.excluded:
        for name, names in ((" (neighbours off)", set(NAMES) - {"neighbours"}), ("", NAMES)):
            texts.append((f"{count:5} words excluded{name}", without(count), names))
    for name, form, names in texts:
        milliseconds, new, again = measure_text(vocabulary, form, names)
        slowest = ", ".join(f"{each:.0f}" for each in sorted(new[1:], reverse=True)[:5])
        print(f"{name}: read and compile {milliseconds:.1f} ms; masks in free text: the first of all ", end="")
        print(f"{new[0]:.0f} us, then median {median(new[1:]):.1f} us, mean {mean(new[1:]):.1f} us, ", end="")
        print(f"the slowest {slowest} us; once more, median {median(again):.1f} us")


if __name__ == "__main__":
    main()
