"""Masks against a finite list of texts: the contract of a mask where a language can be written down."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from masks import mask_of

import constrain
from bench.fuzz import finite_texts


class Texts(finite_texts.Texts):
    """A finite language over a vocabulary."""

    def allowed(self, prefix: bytes, tokens: Sequence[bytes], eos: int) -> set[int]:
        """The tokens that may follow ``prefix``."""
        found = {token for token, data in enumerate(tokens) if token != eos and self.is_viable(prefix + data)}
        return found | {eos} if prefix in self.all else found


def compare_masks(
    compiled: constrain.CompiledGrammar, texts: Texts, tokens: Sequence[bytes], eos: int, walk: Iterable[int]
) -> int:
    """Walk over allowed tokens and compare each mask with the texts; returns how many were compared."""
    matcher = constrain.Matcher(compiled)
    prefix = b""
    compared = 0
    for choice in walk:
        expected = texts.allowed(prefix, tokens, eos)
        found = mask_of(matcher)
        assert found == expected, (prefix, [tokens[token] for token in found ^ expected])
        assert matcher.is_accepting() == (eos in expected)
        compared += 1
        forbidden = sorted(set(range(len(tokens))) - expected)
        if forbidden:
            assert not matcher.accept_token(forbidden[choice % len(forbidden)])
        onward = sorted(expected - {eos})
        if not onward:
            break
        token = onward[choice % len(onward)]
        assert matcher.accept_token(token)
        prefix += tokens[token]
    return compared


def verdicts(schema: Any, *texts: str) -> list[bool]:
    """Of each text whether a schema allows it, as a whole."""
    compiler = constrain.GrammarCompiler(constrain.Vocabulary([bytes((byte,)) for byte in range(256)]))
    compiled = compiler.compile(constrain.Grammar.from_json_schema(schema))
    found = []
    for text in texts:
        matcher = constrain.Matcher(compiled)
        found.append(matcher.accept_bytes(text.encode()) and matcher.is_accepting())
    return found
