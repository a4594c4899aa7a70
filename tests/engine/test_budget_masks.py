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
    schema = OTHERS[name] if name in OTHERS else json.loads(next(p for p in SHIPPED if p.name == name).read_text())
    _compare(
        constrain.GrammarCompiler(vocabulary).compile(constrain.Grammar.from_json_schema(json.dumps(schema))), name
    )


LIMITED = {"type": "object", "properties": {"text": {"type": "string", "maxLength": 40}}, "required": ["text"]}


@pytest.mark.parametrize(
    ("style", "data"),
    [
        ("qwen3_coder", "<tool_call>\n<function=f>\n<parameter=text>\n"),
        ("glm4.5", "<tool_call>f\n<arg_key>text</arg_key>\n<arg_value>"),
        ("minimax_m2", '<minimax:tool_call>\n<invoke name="f">\n<parameter name="text">'),
    ],
)
def test_masks_of_strings_with_a_length_in_xml(vocabulary: constrain.Vocabulary, style: str, data: str) -> None:
    """The same, where what is left of a string is known to be short although it holds no end of itself."""
    tools = [{"name": "f", "parameters": LIMITED}]
    grammar = constrain.Grammar.from_tools(tools, style=style, tool_choice="required", reasoning=False)
    compiled = constrain.CompiledGrammar(grammar.ir, vocabulary)
    _compare(compiled, style, data.encode())
    matcher = constrain.Matcher(constrain.CompiledGrammar(grammar.ir, vocabulary), max_tokens=10_000)
    assert matcher.accept_bytes(data.encode())
    for _ in range(30):
        assert len(mask_of(matcher)) > vocabulary.size // 2
        assert matcher.accept_bytes(b"x")
    # No state of a string needed a list of its tokens: each would take milliseconds.
    budget: Any = matcher._budget
    assert not budget._costs._groups
    assert budget._costs._size < 30 * vocabulary.size // 10


def _compare(compiled: constrain.CompiledGrammar, name: str, data: bytes = b"") -> None:
    """The naive twin: push each token that the grammar allows, and count what its completion takes then."""
    vocabulary = compiled.vocabulary
    choose = random.Random(name)
    matcher = constrain.Matcher(compiled, max_tokens=10_000)
    plain = constrain.Matcher(compiled)
    assert matcher.accept_bytes(data)
    assert plain.accept_bytes(data)
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
