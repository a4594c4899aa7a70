"""Vocabularies: what is accepted, what is refused, and odd tokens."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from naive import tokens_of

import constrain
from constrain.grammar.ir import GrammarBuilder
from constrain.grammar.languages.regular import literal, repeat


def masks_along(vocabulary: constrain.Vocabulary, text: str, *steps: int) -> list[set[int]]:
    """The mask for the one string ``text``, before and after each accepted token."""
    builder = GrammarBuilder()
    grammar = constrain.Grammar(builder.finish(builder.lexeme(literal(text))))
    matcher = constrain.Matcher(constrain.GrammarCompiler(vocabulary).compile(grammar))
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    masks = []
    for step in [*steps, None]:
        matcher.fill_next_token_bitmask(mask, 0)
        masks.append(tokens_of(mask[0], vocabulary.size))
        if step is not None:
            assert matcher.accept_token(step)
    return masks


def test_size_and_ids() -> None:
    vocabulary = constrain.Vocabulary([b"a", b"b", b"</s>", b"<s>"], eos_ids=[2], special_ids=[3])
    assert vocabulary.size == 4
    assert list(vocabulary.eos_ids) == [2]


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({"tokens": [], "eos_ids": []}, id="no tokens"),
        pytest.param({"tokens": [b"a"], "eos_ids": [1]}, id="eos too large"),
        pytest.param({"tokens": [b"a"], "eos_ids": [-1]}, id="eos negative"),
        pytest.param({"tokens": [b"a"], "eos_ids": [0], "special_ids": [7]}, id="special too large"),
        pytest.param({"tokens": [b"a"], "eos_ids": [0], "special_ids": [-1]}, id="special negative"),
        pytest.param({"tokens": ["a", "b"], "eos_ids": [0]}, id="text for bytes"),
        pytest.param({"tokens": [b"a", None], "eos_ids": [0]}, id="none for bytes"),
        pytest.param({"tokens": [b"a", b"b"], "eos_ids": ["b"]}, id="text for an id"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any]) -> None:
    with pytest.raises(constrain.ConstrainError):
        constrain.Vocabulary(**arguments)


def test_a_token_longer_than_a_depth_can_say() -> None:
    with pytest.raises(constrain.ConstrainError, match="token 1 has 1,048,577 bytes; at most 1,048,576"):
        constrain.Vocabulary([b"a", b"b" * (2**20 + 1), b""], eos_ids=[2])


def test_tokens_with_the_same_bytes() -> None:
    vocabulary = constrain.Vocabulary([b"a", b"b", b"a", b"ab", b"ab", b""], eos_ids=[5])
    assert masks_along(vocabulary, "ab", 2, 1) == [{0, 2, 3, 4}, {1}, {5}]


def test_special_tokens_are_never_allowed_by_their_bytes() -> None:
    vocabulary = constrain.Vocabulary([b"a", b"a", b"ab", b"b", b"a"], eos_ids=[4], special_ids=[1, 2])
    assert masks_along(vocabulary, "ab", 0, 3) == [{0}, {3}, {4}]


def test_eos_among_the_special_ids() -> None:
    vocabulary = constrain.Vocabulary([b"a", b"</s>", b"<s>"], eos_ids=[1], special_ids=[1, 2])
    assert masks_along(vocabulary, "a", 0) == [{0}, {1}]


def test_several_eos_tokens() -> None:
    vocabulary = constrain.Vocabulary([b"a", b"x", b"x", b"a"], eos_ids=[1, 2, 3])
    assert masks_along(vocabulary, "aa", 0, 0) == [{0}, {0}, {1, 2, 3}]


def test_empty_tokens_are_allowed_wherever_there_is_a_mask() -> None:
    """By the contract: the prefix and nothing is the prefix, which is viable."""
    vocabulary = constrain.Vocabulary([b"", b"a", b"", b"</s>"], eos_ids=[3])
    assert masks_along(vocabulary, "a", 0, 1, 2) == [{0, 1, 2}, {0, 1, 2}, {0, 2, 3}, {0, 2, 3}]


def test_tokens_that_split_a_character() -> None:
    vocabulary = constrain.Vocabulary([b"\xc3", b"\xa9", b"\xc3\xa9", b"x\xc3", b"\xa9\xa9", b"$"], eos_ids=[5])
    assert masks_along(vocabulary, "é", 0, 1) == [{0, 2}, {1}, {5}]
    assert masks_along(vocabulary, "xéé", 3, 1, 2) == [{3}, {1}, {0, 2}, {5}]


@pytest.mark.parametrize("length", [255, 256, 257, 1_000, 70_000])
def test_very_long_tokens(length: int) -> None:
    vocabulary = constrain.Vocabulary([b"a", b"a" * length, b"a" * (length - 1) + b"b", b"$"], eos_ids=[3])
    builder = GrammarBuilder()
    grammar = constrain.Grammar(builder.finish(builder.lexeme(repeat(literal("a"), 0, length))))
    matcher = constrain.Matcher(constrain.GrammarCompiler(vocabulary).compile(grammar))
    mask = constrain.allocate_token_bitmask(1, 4)
    matcher.fill_next_token_bitmask(mask, 0)
    assert tokens_of(mask[0], 4) == {0, 1, 3}
    assert matcher.accept_token(1)
    matcher.fill_next_token_bitmask(mask, 0)
    assert tokens_of(mask[0], 4) == {3}
    matcher.rollback(1)
    assert matcher.accept_token(0)
    matcher.fill_next_token_bitmask(mask, 0)
    assert tokens_of(mask[0], 4) == {0, 3}


def test_all_bytes_and_all_pairs() -> None:
    """Every branch of a trie node is taken: 256 children, each with 256 children."""
    tokens = [bytes((byte,)) for byte in range(256)]
    tokens += [bytes((first, second)) for first in range(256) for second in range(256)]
    vocabulary = constrain.Vocabulary([*tokens, b"$"], eos_ids=[len(tokens)])
    builder = GrammarBuilder()
    wanted = bytes((0, 255, 128, 7))
    grammar = constrain.Grammar(builder.finish(builder.lexeme(literal(wanted))))
    matcher = constrain.Matcher(constrain.GrammarCompiler(vocabulary).compile(grammar))
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    for byte, following in itertools.pairwise(wanted):
        matcher.fill_next_token_bitmask(mask, 0)
        assert tokens_of(mask[0], vocabulary.size) == {byte, 256 + 256 * byte + following}
        assert matcher.accept_token(byte)
