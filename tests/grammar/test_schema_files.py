"""The example schemas in ``grammars/``: what they must accept, and what they must not."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from naive import NaiveRecognizer

from constrain.grammar.json_schema import from_json_schema

FOLDER = Path(__file__).resolve().parents[2] / "grammars"

PERSON = {
    "name": "Ada Lovelace",
    "age": 36,
    "email": "ada@example.org",
    "role": "engineer",
    "hobbies": ["number games"],
}
INGREDIENT = {"name": "flour", "amount": 0.5, "unit": "g"}
RECIPE = {"title": "Bread", "servings": 4, "difficulty": "easy", "ingredients": [INGREDIENT], "steps": ["Mix it all."]}
LEAF = {"label": "a", "children": []}

SAMPLES: dict[str, tuple[list[Any], list[Any]]] = {
    "person": (
        [PERSON, PERSON | {"age": 0, "hobbies": ["chess", "old maps", "tea"]}],
        [
            {},
            PERSON | {"name": "ada"},
            PERSON | {"age": 121},
            PERSON | {"age": 1.5},
            PERSON | {"email": "ada"},
            PERSON | {"role": "king"},
            PERSON | {"hobbies": []},
            PERSON | {"hobbies": ["chess"] * 4},
            PERSON | {"more": 1},
            [PERSON],
        ],
    ),
    "recipe": (
        [RECIPE, {key: RECIPE[key] for key in RECIPE if key != "difficulty"}],
        [
            RECIPE | {"servings": 0},
            RECIPE | {"ingredients": []},
            RECIPE | {"ingredients": [INGREDIENT | {"amount": 0}]},
            RECIPE | {"ingredients": [INGREDIENT | {"unit": "kg"}]},
            RECIPE | {"steps": ["Mix"]},
            {"title": "Bread"},
        ],
    ),
    "api_call": (
        [
            {"function": "get_weather", "arguments": {"city": "Zürich", "unit": "celsius"}},
            {"function": "search", "arguments": {"query": "x", "limit": 50}},
            {"function": "send_message", "arguments": {"to": ["ada", "bob"], "text": "Hi!", "urgent": True}},
        ],
        [
            {"function": "get_weather", "arguments": {"query": "x"}},
            {"function": "search", "arguments": {"query": "", "limit": 5}},
            {"function": "send_message", "arguments": {"to": ["Ada"], "text": "Hi!"}},
            {"function": "unknown", "arguments": {}},
            {"function": "search"},
        ],
    ),
    "tree": (
        [LEAF, LEAF | {"children": [LEAF, {"label": "b", "value": None, "children": [LEAF]}]}],
        [
            {},
            {"label": "a"},
            LEAF | {"children": [LEAF] * 4},
            LEAF | {"label": ""},
            {"label": "a", "value": 1000, "children": []},
            LEAF | {"children": [{"label": "a"}]},
        ],
    ),
}


def schema(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.schema.json").read_text(encoding="utf-8"))


@functools.cache
def recognizer(name: str) -> NaiveRecognizer:
    ir = from_json_schema(schema(name))
    assert ir.warnings == ()
    return NaiveRecognizer(ir)


def test_every_schema_file_has_samples() -> None:
    assert sorted(SAMPLES) == sorted(path.name.partition(".")[0] for path in FOLDER.glob("*.json"))


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_samples(name: str) -> None:
    good, bad = SAMPLES[name]
    assert schema(name)["description"]
    for instance in [*good, *bad]:
        assert jsonschema.Draft202012Validator(schema(name)).is_valid(instance) == (instance in good)
        text = json.dumps(instance, ensure_ascii=False)
        assert recognizer(name).accepts(text.encode()) == (instance in good), text
