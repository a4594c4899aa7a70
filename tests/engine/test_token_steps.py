"""Tokens lead to the same states as their bytes one by one."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import constrain
from constrain.engine.compiled_grammar import CompiledGrammar
from constrain.engine.parser import configurations as states
from constrain.engine.parser.companions import unpack
from constrain.engine.traveller import push_token

SCHEMAS: list[dict[str, Any]] = [
    {"properties": {"name": {"type": "string"}, "names": {}, "nam\u00e9": {}}, "additionalProperties": False},
    {"properties": {"name": {"enum": ["namely", "nam"]}}, "patternProperties": {"^x-": {}}},
    {"type": "array", "items": {"type": "string", "format": "date-time"}},
    {"type": "string", "pattern": "^(?:ab|abc)*d{2,5}$"},
    {"type": "string", "maxLength": 7},
    {"enum": [True, None, "true", "truth", 1.25, [1, "a"]]},
]


def compiled_for(schema: dict[str, Any], tokens: list[bytes]) -> CompiledGrammar:
    vocabulary = constrain.Vocabulary([*tokens, b"</s>"], eos_ids=[len(tokens)])
    return constrain.GrammarCompiler(vocabulary).compile(constrain.Grammar.from_json_schema(json.dumps(schema)))


@given(
    schema=st.sampled_from(SCHEMAS),
    texts=st.lists(st.text(alphabet='nameds:,{}[]" \\x-\u00e9tru1', min_size=1, max_size=9), min_size=1, max_size=12),
    seed=st.integers(0, 1000),
)
def test_a_token_leads_where_its_bytes_do(schema: dict[str, Any], texts: list[str], seed: int) -> None:
    tokens = [text.encode() for text in texts]
    tokens += [json.dumps(key).encode() for key in ("name", "namely", "2024-02-29T23:59:60Z", "abababddd")]
    tokens += [bytes([byte]) for byte in range(32, 127)]
    compiled = compiled_for(schema, tokens)
    rng = random.Random(seed)
    for _ in range(4):
        place = constrain.Matcher(compiled)
        for _ in range(20):
            possible = []
            for token, data in enumerate(tokens):
                by_token = unpack(push_token(compiled, place, token))[0]
                for _ in range(2):
                    by_bytes = unpack(compiled.run_at(place, states.push_bytes, np.frombuffer(data, np.uint8)))[0]
                    assert by_token == by_bytes, data
                    by_token = unpack(push_token(compiled, place, token))[0]
                if by_token:
                    possible.append(token)
            # Not those that end a key that was there.
            if not any(place.accept_token(token) for token in rng.sample(possible, len(possible))):
                break
