"""A generation that Ctrl-C has stopped at any line goes on as if it had not."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import numpy as np
import pytest

import constrain
from constrain.backends import CallableBackend
from constrain.demo import load
from constrain.errors import ConstrainError
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


@pytest.mark.parametrize("options", [{}, {"events": True, "stop": ["}x"]}, {"overlap": True, "skip_forced": False}])
def test_one_text(options: dict[str, Any]) -> None:
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
    assert set(json.loads(whole.text)) == {"kind", "age"}


@pytest.mark.parametrize("model", [InBatches(), MODEL], ids=["at once", "one by one"])
def test_a_batch(model: Any) -> None:
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


def test_a_batch_goes_on_after_an_error_of_the_model() -> None:
    failing = [True]

    class Fails(InBatches):
        def logits_batch(self, contexts: list[list[int] | None]) -> Any:
            if failing[0] and len(contexts[0] or []) > 4:
                raise OSError("no connection")
            return super().logits_batch(contexts)

    batch = generate_batch(Fails(), TOKENIZER, COMPILED, ["", ""], max_tokens=30, sampler=GREEDY, skip_forced=False)
    for _ in range(2):
        with pytest.raises(OSError, match="no connection"):
            list(batch)
    failing[0] = False
    list(batch)
    assert all(set(json.loads(text)) == {"kind", "age"} for text in batch.texts)


@pytest.mark.parametrize("wrong", [None, "3", 1.5])
def test_a_number_of_tokens_that_is_none(wrong: Any) -> None:
    with pytest.raises(ConstrainError, match="max_tokens must be an integer, not"):
        generate(MODEL, TOKENIZER, COMPILED, max_tokens=wrong)


def test_bytes_are_no_prompt() -> None:
    backend = CallableBackend(MODEL.logits, TOKENIZER)
    with pytest.raises(ConstrainError, match="a prompt must be a str or the ids of tokens, not b'A'"):
        generate(backend, TOKENIZER, COMPILED, prompt=b"A")
