"""Masks in free text from which texts are excluded, such as triggers."""

from __future__ import annotations

import random

import link_callbacks
import pytest
from masks import mask_of

import constrain
from constrain.engine.storage import links

PIECES = ["<", "<f", "fun", "<fun", "ction=", "name_", "0", "1", "<function=name_00", "=name", "a", "é", "the", " "]
PIECES += ["</", ">", "<g", "go", "n<"]
TEXTS = ["a b<f é <fu <function=nam <g <functio n the <f", "the <function=", "<functio", " é<f"]
TRIGGERS = [
    # The boundary behind what all have in common is one that free text does not have.
    [f"<function=name_{number:02}" for number in range(12)],
    [f"<function=name_{number}" for number in range(3)],
    ["<fun", "<go>"],
    ["<function=name_0", "n<"],
]


def _vocabulary() -> constrain.Vocabulary:
    rng = random.Random(1)
    tokens = [bytes([byte]) for byte in range(256)]
    made = {"".join(rng.choices(PIECES, k=rng.randrange(2, 5))).encode() for _ in range(2500)}
    tokens += sorted(made - set(tokens))
    # Some tokens twice.
    return constrain.Vocabulary([*tokens, *tokens[300:310], b"</s>"], eos_ids=[len(tokens) + 10])


def _masks(grammar: constrain.CompiledGrammar, text: str) -> list[set[int]]:
    """The masks at each place of a text, as far as it goes."""
    matcher = constrain.Matcher(grammar)
    masks = []
    for byte in text.encode():
        masks.append(mask_of(matcher))
        if not matcher.accept_bytes(bytes([byte])):
            break
    return masks


@pytest.mark.parametrize("triggers", TRIGGERS, ids=lambda triggers: triggers[-1])
def test_masks_beside_triggers_are_those_of_the_plain_engine(triggers: list[str]) -> None:
    content = {"type": "const_string", "value": "x"}
    tags = [{"begin": trigger, "content": content, "end": "</"} for trigger in triggers]
    tag = {"type": "triggered_tags", "triggers": triggers, "tags": tags}
    grammar, vocabulary = constrain.Grammar.from_structural_tag(tag), _vocabulary()
    asked = []

    def noted(kernel, lexer_state: int, _: int) -> int:  # type: ignore[no-untyped-def]
        result: int = kernel()
        asked.append(result)
        return result

    plain = constrain.CompiledGrammar(grammar.ir, vocabulary, accelerators=())
    with link_callbacks.replaced(links.F_FORBID, noted):
        fast = constrain.CompiledGrammar(grammar.ir, vocabulary)
        for text in TEXTS:
            expected = _masks(plain, text)
            found = _masks(fast, text)
            assert len(found) == len(expected)
            for place, (one, other) in enumerate(zip(found, expected, strict=True)):
                assert one == other, (text, place)
    assert 0 in asked


@pytest.mark.parametrize("pattern", ["ab", "a[bc]+d", "(ab|é)c", "a.c", "fun|n<f"])
def test_masks_of_texts_without_a_pattern_are_those_of_the_plain_engine(pattern: str) -> None:
    grammar = constrain.Grammar.from_lark(f"start: TEXT\nTEXT: /(?s:.)*/ & ~/(?s:.)*({pattern})(?s:.)*/")
    vocabulary = _vocabulary()
    plain = constrain.CompiledGrammar(grammar.ir, vocabulary, accelerators=())
    fast = constrain.CompiledGrammar(grammar.ir, vocabulary)
    for text in ("the a", "aabbacc é", "éfu", "a<fu"):
        for one, other in zip(_masks(fast, text), _masks(plain, text), strict=True):
            assert one == other
