"""Events of the steps of a generation."""

from __future__ import annotations

import json

import pytest

import constrain
from constrain.backends import load_backend
from constrain.errors import ConstrainError
from constrain.generation import generate, generate_batch
from constrain.sampling import Sampler

BACKEND = load_backend()
COMPILER = constrain.GrammarCompiler(BACKEND.vocabulary)
PERSON = COMPILER.compile(
    constrain.Grammar.from_json_schema(
        {
            "properties": {
                "name": {"type": "string", "maxLength": 12},
                "age": {"type": "integer"},
                "tags": {"enum": [["a", 1.5]]},
            },
            "required": ["name", "age", "tags"],
            "additionalProperties": False,
        },
        spelling="canonical",
    )
)
NUMBER = COMPILER.compile(constrain.Grammar.from_json_schema({"type": "integer", "maximum": 99, "minimum": 10}))


@pytest.mark.parametrize("skip_forced", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_the_events_of_all_steps_are_those_of_the_text(seed: int, skip_forced: bool) -> None:
    generation = generate(
        BACKEND,
        BACKEND.tokenizer,
        PERSON,
        max_tokens=60,
        sampler=Sampler(1.0, seed=seed),
        skip_forced=skip_forced,
        events=True,
    )
    steps = list(generation)
    matcher = constrain.Matcher(PERSON)
    for token in generation.token_ids:
        assert matcher.accept_token(token)
    events = [event for step in steps for event in step.events]
    whole = matcher.events(at_end=True)
    complete = {event.pointer: event.value for event in events if event.is_complete}
    assert complete == {event.pointer: event.value for event in whole if event.is_complete}
    assert complete[""] == json.loads(generation.text)
    # Each step has its own.
    text, at = "", {}
    for step in steps:
        text += step.text
        for event in step.events:
            at[event.pointer] = at.get(event.pointer, "") + event.delta
            assert event.kind != "string" or at[event.pointer] == event.value
    assert any(step.forced and step.events for step in steps) == skip_forced


def test_a_number_is_complete_in_a_last_step() -> None:
    steps = list(generate(BACKEND, BACKEND.tokenizer, NUMBER, sampler=Sampler(1.0, seed=1), events=True))
    assert [event.is_complete for event in steps[-1].events] == [True]
    assert steps[-1].token_id is None
    assert steps[-1].text == ""
    plain = list(generate(BACKEND, BACKEND.tokenizer, NUMBER, sampler=Sampler(1.0, seed=1)))
    assert all(step.events == () for step in plain)
    assert len(plain) == len(steps) - 1


@pytest.mark.parametrize("most", range(1, 5))
def test_a_capture_is_complete_in_a_last_step(most: int) -> None:
    words = COMPILER.compile(constrain.Grammar.from_lark('start: word ("," word)*\nword[capture]: /[a-z]{1,9}/'))
    generation = generate(BACKEND, BACKEND.tokenizer, words, max_tokens=most, sampler=Sampler(1.0, seed=3), events=True)
    found = [event.value for step in generation for event in step.events if event.is_complete]
    assert found == generation.text.split(",")


def test_batches_and_errors() -> None:
    batch = generate_batch(
        BACKEND, BACKEND.tokenizer, [PERSON, NUMBER], ["a", "b"], sampler=Sampler(seed=1), events=True, max_tokens=60
    )
    found: dict[int, list[object]] = {0: [], 1: []}
    for row, step in batch:
        found[row] += [event.value for event in step.events if event.is_complete and event.pointer == ""]
    assert [found[row] for row in (0, 1)] == [[json.loads(text)] for text in batch.texts]
    with pytest.raises(ConstrainError, match="events=True needs a grammar"):
        generate(BACKEND, BACKEND.tokenizer, None, events=True)
    other = COMPILER.compile(constrain.Grammar.from_regex("a+"))
    with pytest.raises(ConstrainError, match=r"^events\(\) needs a grammar"):
        generate(BACKEND, BACKEND.tokenizer, other, events=True)
