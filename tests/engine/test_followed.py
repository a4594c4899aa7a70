"""Which lexemes anything may follow (parser/followed.py), where rules are made on demand beside free text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import constrain
from constrain.engine.masks.accelerators import NAMES
from constrain.engine.storage import schemas as t

PIECES = [b"ab", b"a<", b"<t", b"<t>", b'[1,"', b'>["', b'"]</t>', b"]</", b'",', b"t>a", b"  ", b"</s>"]
VOCABULARY = constrain.Vocabulary([*(bytes([byte]) for byte in range(128)), *PIECES], eos_ids=[127 + len(PIECES)])
UNIQUE = {"type": "array", "items": {"type": ["string", "integer"]}, "uniqueItems": True}
KEYS = {"type": "object", "minProperties": 1}


def grammar(schema: Any, **options: Any) -> constrain.Grammar:
    content = {"type": "json_schema", "json_schema": schema}
    tag = {"type": "tag", "begin": "<t>", "content": content, "end": "</t>"}
    form = {"type": "triggered_tags", "triggers": ["<t>"], "tags": [tag], **options}
    return constrain.Grammar.from_structural_tag({"type": "structural_tag", "format": form})


@pytest.mark.parametrize("schema", [UNIQUE, KEYS])
@pytest.mark.parametrize("options", [{}, {"at_least_one": True}, {"stop_after_first": True}])
def test_masks_are_those_of_the_plain_engine(schema: Any, options: dict[str, Any]) -> None:
    source = grammar(schema, **options)
    assert source.ir.unfolded
    fast, plain = (
        constrain.Matcher(constrain.CompiledGrammar(source.ir, VOCABULARY, accelerators=names)) for names in (NAMES, ())
    )
    masks = [constrain.allocate_token_bitmask(1, VOCABULARY.size) for _ in range(2)]
    rng = np.random.default_rng(4)
    texts = 0
    for _ in range(400):
        for matcher, mask in zip((fast, plain), masks, strict=True):
            matcher.fill_next_token_bitmask(mask)
        assert (masks[0] == masks[1]).all()
        allowed = np.flatnonzero(np.unpackbits(masks[0].view(np.uint8), bitorder="little"))
        pieces = allowed[allowed >= 128]
        token = int(rng.choice(pieces if len(pieces) and rng.random() < 0.7 else allowed))
        end = fast.completion() if rng.random() < 0.3 else []
        token = int(end[0]) if len(end) else token
        for matcher in (fast, plain):
            assert matcher.accept_token(token)
            if matcher.is_terminated():
                matcher.reset()
                texts += 1
    assert texts > 4


def test_free_text_at_the_end_is_not_followed() -> None:
    source = grammar(UNIQUE)
    compiled = constrain.CompiledGrammar(source.ir, VOCABULARY, accelerators=NAMES)
    constrain.Matcher(compiled).fill_next_token_bitmask(constrain.allocate_token_bitmask(1, VOCABULARY.size))
    followed = compiled._tables.array(t.FOLLOWED)
    (outside,) = source.ir.outside
    assert source.ir.lexeme_names[outside] == "text"
    # Of what is part of rules that are made later nothing is known.
    assert [index for index in range(len(source.ir.lexemes)) if not followed[index]] == [outside]


def test_rules_on_demand_never_name_what_is_outside() -> None:
    """Not even where they ask for a lexeme with the same language."""
    source = grammar(UNIQUE)
    assert source.ir.make_unfolding is not None
    unfolding: Any = source.ir.make_unfolding(lambda symbol: True, lambda branch: 1)
    (outside,) = source.ir.outside
    symbol = unfolding.lexeme(source.ir.lexemes[outside])
    assert ~symbol >= len(source.ir.lexemes)
