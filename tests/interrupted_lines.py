"""A generation that an interrupt has stopped at any line goes on as if it had not.

    python -m tests.interrupted_lines NAME

It has a process of its own, which is small: a trace function is called for all that is called there.
"""

from __future__ import annotations

import faulthandler
import json
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import numpy as np

import constrain
from constrain.demo import load
from constrain.generation import generate, generate_batch
from constrain.sampling import Sampler

SCHEMA = {
    "type": "object",
    "properties": {"kind": {"enum": ["person", "place"]}, "age": {"type": "integer", "maximum": 99}},
    "required": ["kind", "age"],
    "additionalProperties": False,
}
TOKENIZER, MODEL = load()
COMPILED = constrain.GrammarCompiler(constrain.Vocabulary.from_tokenizer(TOKENIZER)).compile(
    constrain.Grammar.from_json_schema(SCHEMA, spelling="canonical", whitespace="compact")
)
GREEDY = Sampler(0)


class InBatches:
    """The demonstration model, asked about all rows at once."""

    vocab_size = MODEL.vocab_size
    logits = MODEL.logits

    def logits_batch(self, contexts: list[list[int] | None]) -> Any:
        return np.stack([MODEL.logits(context or [0]) for context in contexts])


def interrupted(call: Callable[[], Any], line: int) -> Any:
    """Call, with a KeyboardInterrupt at one line of the package's generation; None where it has fewer."""
    left = line

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal left
        if "/constrain/generation/" not in frame.f_code.co_filename.replace("\\", "/"):
            return None
        if event == "line":
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return call()
    finally:
        sys.settrace(before)


def played(make: Callable[[], Iterator[Any]], line: int) -> tuple[Any, bool]:
    """The iterator at its end, and whether it was interrupted."""
    steps = make()
    try:
        interrupted(lambda: list(steps), line)
    except KeyboardInterrupt:
        for _ in steps:
            pass
        return steps, True
    return steps, False


def one_text(**options: Any) -> None:
    """Interrupt every seventh line of the generation of a text."""

    def make() -> Iterator[Any]:
        return generate(MODEL, TOKENIZER, COMPILED, prompt="A person: ", max_tokens=30, sampler=GREEDY, **options)

    whole, _ = played(make, 0)
    line, again = 1, True
    while again:
        steps, again = played(make, line)
        assert (steps.text, steps.token_ids) == (whole.text, whole.token_ids), line
        told, expected = steps.statistics, whole.statistics
        assert (told.tokens, told.forced_tokens, told.finish_reason) == (
            expected.tokens,
            expected.forced_tokens,
            "complete",
        )
        line += 7
    assert line > 1_000
    assert set(json.loads(whole.text)) == {"kind", "age"}


def a_batch(model: Any) -> None:
    """Interrupt every twenty-third line of the generation of two texts."""

    def make() -> Iterator[Any]:
        return generate_batch(
            model, TOKENIZER, COMPILED, ["A person: ", "A place: "], max_tokens=30, sampler=GREEDY, overlap=False
        )

    whole, _ = played(make, 0)
    line, again = 1, True
    while again:
        steps, again = played(make, line)
        assert (steps.texts, steps.token_ids) == (whole.texts, whole.token_ids), line
        assert [each.finish_reason for each in steps.statistics] == ["complete", "complete"]
        line += 23
    assert line > 1_000


CASES: dict[str, Callable[[], None]] = {
    "a text": one_text,
    "a text with events": lambda: one_text(events=True, stop=["}x"]),
    "a text with overlap": lambda: one_text(overlap=True, skip_forced=False),
    "a batch at once": lambda: a_batch(InBatches()),
    "a batch one by one": lambda: a_batch(MODEL),
}

if __name__ == "__main__":
    # What does not end says where it is.
    faulthandler.dump_traceback_later(300, exit=True)
    CASES[sys.argv[1]]()
