"""Masks under budgets with a real vocabulary: what is left out of them, and that texts are complete and valid."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import constrain
from constrain.demo import load
from constrain.engine.conditions.budget.known_completions import place_after, tokens_from
from tests.masks import mask_of

SHIPPED = sorted((Path(__file__).resolve().parents[2] / "grammars").glob("*.schema.json"))

OTHERS: dict[str, Any] = {
    "strings with lengths": {
        "type": "array",
        "items": {"type": "string", "minLength": 7, "maxLength": 300},
        "minItems": 2,
    },
    "patterns": {"type": "array", "items": {"pattern": "^[a-c]+(x|yy)*$", "type": "string"}, "minItems": 1},
    "formats": {"type": "object", "properties": {"at": {"type": "string", "format": "date-time"}}, "required": ["at"]},
    "keys beside others": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "nested": {"$ref": "#"}, "number": {"type": "number"}},
        "required": ["number", "name"],
        "additionalProperties": {"type": ["string", "null"]},
    },
    "strings of several kinds": {
        "anyOf": [{"type": "string", "pattern": "a$"}, {"type": "string", "maxLength": 9}, {"enum": ["ab", "abc", 1]}]
    },
    "anything": True,
}


@pytest.fixture(scope="module")
def vocabulary() -> constrain.Vocabulary:
    return constrain.Vocabulary.from_tokenizer(load()[0])


@pytest.mark.parametrize("name", [*OTHERS, *(path.name for path in SHIPPED)])
def test_masks_are_those_of_one_token_after_the_other(vocabulary: constrain.Vocabulary, name: str) -> None:
    """The naive twin: push each token that the grammar allows, and count what its completion takes then."""
    schema = OTHERS[name] if name in OTHERS else json.loads(next(p for p in SHIPPED if p.name == name).read_text())
    compiled = constrain.GrammarCompiler(vocabulary).compile(constrain.Grammar.from_json_schema(json.dumps(schema)))
    choose = random.Random(name)
    matcher = constrain.Matcher(compiled, max_tokens=10_000)
    plain = constrain.Matcher(compiled)
    budget: Any = matcher._budget
    for _ in range(7):
        allowed = mask_of(plain)
        normal = [token for token in allowed if vocabulary.kinds[token] == 0]
        if not normal:
            break
        with compiled.lock:
            counts = {token: tokens_from(compiled, place_after(compiled, matcher, [token])) for token in normal}
        least, *_, most = values = [*sorted(set(counts.values())), 10**6]
        before = budget.settle(matcher._steps)
        for limit in choose.sample([least, least - 1, values[len(values) // 2], values[-2], values[-2] - 1, most], k=4):
            if limit >= 0:
                budget.account = before._replace(left=limit + 1)
                expected = {token for token in normal if counts[token] <= limit}
                assert mask_of(matcher) == expected | (allowed - set(normal))
        budget.account = before
        # Quotes and letters lead to the interesting places; blanks are half of all tokens.
        words = [token for token in normal if vocabulary.tokens[token].strip()]
        token = choose.choice(words or normal)
        assert matcher.accept_token(token)
        assert plain.accept_token(token)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_random_texts_are_complete_and_valid(vocabulary: constrain.Vocabulary, path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="the package 'jsonschema' is not installed")
    schema = json.loads(path.read_text())
    compiled = constrain.GrammarCompiler(vocabulary).compile(constrain.Grammar.from_json_schema(json.dumps(schema)))
    least = constrain.Matcher(compiled).tokens_to_finish()
    choose = random.Random(path.name)
    for most in [least, least, *(choose.randint(least, least + 60) for _ in range(6))]:
        matcher = constrain.Matcher(compiled, max_tokens=most)
        text = b""
        while not matcher.is_terminated():
            token = choose.choice(sorted(mask_of(matcher)))
            assert matcher.accept_token(token)
            text += b"" if matcher.is_terminated() else vocabulary.tokens[token]
        assert matcher.steps - 1 <= most
        jsonschema.validate(json.loads(text), schema)
    with pytest.raises(constrain.ConstrainError, match=f"takes {least} tokens"):
        constrain.Matcher(compiled, max_tokens=least - 1)
