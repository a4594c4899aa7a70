"""A generation that Ctrl-C, or an error of the model, has stopped goes on as if it had not."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from interrupted_lines import CASES, COMPILED, GREEDY, MODEL, TOKENIZER, InBatches

import constrain
from constrain.backends import CallableBackend
from constrain.errors import ConstrainError
from constrain.generation import generate, generate_batch

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", CASES)
def test_an_interrupt_at_any_line(name: str) -> None:
    command = [sys.executable, "-m", "tests.interrupted_lines", name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


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


def test_a_text_that_has_ended_stays_so_behind_an_error_of_the_model() -> None:
    compiled = constrain.GrammarCompiler(COMPILED.vocabulary).compile(constrain.Grammar.from_regex("[a-z]*"))
    end = COMPILED.vocabulary.eos_ids[0]
    asked = 0

    class Fails(InBatches):
        def logits_batch(self, contexts: list[list[int] | None]) -> Any:
            nonlocal asked
            asked += 1
            if asked == 6:
                raise OSError("no connection")
            logits = np.zeros((len(contexts), self.vocab_size), np.float32)
            logits[:, ord("a")] = 1
            logits[0, end] = 2 * (asked == 2)
            return logits

    batch = generate_batch(Fails(), TOKENIZER, compiled, ["", ""], max_tokens=9, sampler=GREEDY)
    with pytest.raises(OSError, match="no connection"):
        list(batch)
    assert batch.texts == ["a", "aaaaa"]
    list(batch)
    assert batch.texts == ["a", "aaaaaaaaa"]


@pytest.mark.parametrize("overlap", [True, False])
def test_masks_of_rows_that_come_one_after_the_other_are_made_where_that_is_asked_for(overlap: bool) -> None:
    before, threads = set(threading.enumerate()), set[threading.Thread]()

    class Looks:
        vocab_size = MODEL.vocab_size

        def logits(self, ids: list[int]) -> Any:
            threads.update(threading.enumerate())
            return MODEL.logits(ids)

    list(generate_batch(Looks(), TOKENIZER, COMPILED, [""], max_tokens=30, sampler=GREEDY, overlap=overlap))
    assert any(thread.name.startswith("constrain-mask") for thread in threads - before) == overlap


@pytest.mark.parametrize("wrong", [None, "3", 1.5])
def test_a_number_of_tokens_that_is_none(wrong: Any) -> None:
    with pytest.raises(ConstrainError, match="max_tokens must be an integer, not"):
        generate(MODEL, TOKENIZER, COMPILED, max_tokens=wrong)


def test_bytes_are_no_prompt() -> None:
    backend = CallableBackend(MODEL.logits, TOKENIZER)
    with pytest.raises(ConstrainError, match="a prompt must be a str or the ids of tokens, not b'A'"):
        generate(backend, TOKENIZER, COMPILED, prompt=b"A")
