"""Schemas that were found to be slow stay quick, and the search for others finds what is slow."""

from __future__ import annotations

import gc
import json

import pytest

from bench import hard_schemas, slow_visits
from bench.maskbench.schemas import NoData, data_folder

# Milliseconds of the processor.  The aim is 20; other work on a machine makes each step up to some times as long, and
# what a process does once, such as finding the letters among all characters, is among them.
MOST = 400.0


@pytest.fixture(scope="module")
def visitor() -> slow_visits.Visitor:
    pytest.importorskip("tiktoken")
    try:
        folder = data_folder()
    except NoData as error:
        pytest.skip(str(error))
    made = slow_visits.Visitor(MOST, folder)
    slow_visits._load_kernels()
    made.warm_up()
    return made


@pytest.mark.parametrize("name", hard_schemas.FOUND)
def test_what_was_slow_is_not_any_more(name: str, visitor: slow_visits.Visitor) -> None:
    gc.disable()
    try:
        visitor.visit_made(name, hard_schemas.FOUND[name])
    finally:
        gc.enable()
    found = visitor.take()
    assert not found["slow"]
    assert found["compiles"] == 1
    assert found["masks"] > slow_visits.WALKS


def test_schemas_are_made_of_their_seeds() -> None:
    texts = [json.dumps(hard_schemas.schema(seed)) for seed in range(200)]
    assert texts == [json.dumps(hard_schemas.schema(seed)) for seed in range(200)]
    assert len(set(texts)) == 200
    everything = "".join(texts)
    for keyword in ("oneOf", "not", "uniqueItems", "patternProperties", "multipleOf", "maxLength", "allOf"):
        assert f'"{keyword}"' in everything


def test_what_is_slow_is_noted(visitor: slow_visits.Visitor) -> None:
    visitor._above = 0.0
    try:
        entry = {"id": "one", "schema": {"type": "string"}, "tests": [{"data": "abc", "valid": True}]}
        visitor.visit_entry(entry, 1000)
        found = visitor.take()
        visitor.visit_entry(entry, 5)
    finally:
        visitor._above = MOST
    whats = [one.what for one in found["slow"]]
    assert whats[0] == "compile"
    assert "mask, instance 0, token 0" in whats
    assert "accept, instance 0, token 0" in whats
    assert found["longest"] == max(one.milliseconds for one in found["slow"])
    assert visitor.take()["compiles"] == 0
