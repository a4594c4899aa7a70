"""Lengths of texts in which their end does not occur: ``maxLength`` in XML, ``max_chars`` within a tag."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

import constrain

MOST = 24
"""Characters that are allowed: more than the tokens have, so that masks are made from those without a length."""

TOKENS = [bytes([byte]) for byte in range(256)] + [
    text.encode()
    for text in (
        "ab",
        "a<",
        "</",
        "</v",
        "é",
        "éa",
        "東東",
        "😀b",
        "a</v>",
        "é</v>",
        "</v></v>",
        "\n",
        "a\n",
        "\n</v>",
        "ab\né",
    )
]
VOCABULARY = constrain.Vocabulary([*TOKENS, b"</s>"], eos_ids=[len(TOKENS)])
SIGNS = ("a", "b", "<", "/", "é", "è", "東", "😀", "\n")


def masks_agree(tag_format: dict[str, Any], begin: str, seed: int) -> None:
    """Walk at random, long tokens first, and compare each mask with that of the plain engine."""
    grammar = constrain.Grammar.from_structural_tag({"type": "structural_tag", "format": tag_format})
    fast = constrain.GrammarCompiler(VOCABULARY).compile(grammar)
    plain = constrain.GrammarCompiler(VOCABULARY, accelerators=()).compile(grammar)
    rng = random.Random(seed)
    masks = [constrain.allocate_token_bitmask(1, VOCABULARY.size) for _ in range(2)]
    for _ in range(4):
        matchers = [constrain.Matcher(compiled) for compiled in (fast, plain)]
        assert all(matcher.accept_bytes(begin.encode()) for matcher in matchers)
        for _ in range(MOST + 8):
            for matcher, mask in zip(matchers, masks, strict=True):
                matcher.fill_next_token_bitmask(mask)
            assert np.array_equal(*masks)
            allowed = [token for token in range(len(TOKENS)) if int(masks[0][0, token // 32]) >> token % 32 & 1]
            if not allowed:
                break
            token = rng.choice([token for token in allowed if token >= 256] or allowed)
            assert all(matcher.accept_token(token) for matcher in matchers)


@pytest.mark.parametrize("low", [0, 1, 5])
@pytest.mark.parametrize("excludes", [[], ["é"], ["a\n", "東"]])
def test_masks_of_strings_in_xml(low: int, excludes: list[str]) -> None:
    schema = {"properties": {"q": {"type": "string", "minLength": low, "maxLength": MOST}}, "required": ["q"]}
    for style, begin in (("glm_xml", "<arg_key>q</arg_key><arg_value>"), ("qwen_xml", "<parameter=q>")):
        content: dict[str, Any] = {"type": "json_schema", "json_schema": schema, "style": style}
        if excludes:
            content["excludes"] = excludes
        masks_agree(content, begin, low)


@pytest.mark.parametrize("end", ["</v>", "é<", "\n"])
def test_masks_of_text_within_a_tag(end: str) -> None:
    content = {"type": "any_text", "max_chars": MOST, "excludes": ["ab"]}
    masks_agree({"type": "tag", "begin": "<v>", "content": content, "end": end}, "<v>", 1)


@pytest.mark.parametrize(("low", "high"), [(0, 0), (0, 2), (1, 1), (1, 3), (2, 2), (2, None), (3, 4)])
def test_line_ends_around_a_value_do_not_count(low: int, high: int | None) -> None:
    """The template writes a value on lines of its own, so one line end before it and one behind it are not its own."""
    length = {"minLength": low} if high is None else {"minLength": low, "maxLength": high}
    schema = {"properties": {"q": {"type": "string", **length}}, "required": ["q"]}
    tag = {"type": "structural_tag", "format": {"type": "json_schema", "json_schema": schema, "style": "qwen_xml"}}
    compiled = constrain.GrammarCompiler(VOCABULARY).compile(constrain.Grammar.from_structural_tag(tag))
    for signs in itertools.chain.from_iterable(itertools.product("\na<", repeat=count) for count in range(6)):
        text = "".join(signs)
        value = text.removeprefix("\n").removesuffix("\n")
        matcher = constrain.Matcher(compiled)
        fits = matcher.accept_bytes(f"<parameter=q>{text}</parameter>".encode()) and matcher.is_accepting()
        assert fits == (low <= len(value) and (high is None or len(value) <= high)), text


def test_a_text_behind_an_end_that_overlaps_itself_is_over() -> None:
    """Nothing of it is searched for any more, however many characters would be left."""
    grammar = constrain.Grammar.from_lark('start: text "x"\ntext[suffix="aba", max_chars=20000]: /(.|\\n)*/')
    matcher = constrain.Matcher(constrain.GrammarCompiler(VOCABULARY).compile(grammar))
    assert matcher.accept_bytes(b"hello aba")
    mask = constrain.allocate_token_bitmask(1, VOCABULARY.size)
    matcher.fill_next_token_bitmask(mask)
    assert [token for token in range(VOCABULARY.size) if int(mask[0, token // 32]) >> token % 32 & 1] == [ord("x")]
