"""Masks where words, groups or lines are counted, beside characters or not: against trying every token."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import constrain
from constrain.engine.masks.accelerators import NAMES
from tests.masks import by_trying, mask_of


def vocabulary() -> constrain.Vocabulary:
    """Every byte, short pieces, and texts of many words, with quotes, blanks and escapes at all places; some twice."""
    tokens = [bytes([byte]) for byte in range(256)]
    rng = np.random.default_rng(11)
    alphabet = ["a", "b", "a", "b", "é", "7", ".", ",", " ", " ", " ", '"', "\\n", "\\u0020", "\\u00e9", "\\t", "-"]
    for longest, count in ((6, 1500), (14, 500), (40, 200)):
        for _ in range(count):
            length = int(rng.integers(2, longest + 1))
            tokens.append("".join(rng.choice(alphabet, length)).encode())
    for length in range(2, 40):
        tokens += [b" " * length, b"a" * length, b"a " * (length // 2), b"ab " * (length // 3) + b'"', b"7." * length]
    tokens += tokens[300:340]
    return constrain.Vocabulary([*tokens, b""], eos_ids=[len(tokens)])


VOCABULARY = vocabulary()


WORDS = r"^(?:\S+\s+){0,%d}\S+$"
TEXT = '"ab a é, a\\n b7 a\\u0020b aa'
CASES: list[tuple[dict[str, Any], str]] = [
    ({"pattern": WORDS % 9}, TEXT),
    ({"pattern": WORDS % 3}, '"ab a é'),
    ({"pattern": WORDS % 30}, TEXT),
    ({"pattern": WORDS % 9, "maxLength": 60}, TEXT),
    ({"pattern": WORDS % 9, "maxLength": 30, "minLength": 1}, TEXT),
    ({"pattern": WORDS % 9, "minLength": 12, "maxLength": 40}, TEXT),
    ({"pattern": "^$|(" + WORDS % 12 + ")", "maxLength": 50, "minLength": 0}, TEXT),
    ({"pattern": r"^(?:\S+\s+){4,9}\S+$"}, TEXT),
    # The counter of words may be taken for that of characters.
    ({"pattern": r"^(?:\S+\s?){0,12}$", "maxLength": 30}, TEXT),
    ({"pattern": r"^(?:[^b]b?){0,60}$", "maxLength": 40}, '"aaba a é a'),
    ({"pattern": r"^[ab][ab ]{0,25}$", "maxLength": 20}, '"ab a a b'),
    # Counters in counters, alternatives with counters of their own, and several in a row.
    ({"pattern": r"^(?:\w{1,5}[ ,]+){0,8}\w+$"}, '"ab a7, aab aaaa a'),
    ({"pattern": r"^(?:(?:\w+ ){1,3}\w+[.] ?){0,6}$"}, '"ab a b a. a a.'),
    ({"pattern": r"^(?:(?:\S+ ){0,7}\S+|(?:\d+[.]){0,20}x)$"}, '"7.7.77.7'),
    ({"pattern": r"^(?:ab ){0,9}(?:\S+\s){0,7}-"}, '"ab ab é b'),
    ({"pattern": r"^(?:\S+\s+){0,9}\S+$", "not": {"const": "ab a"}}, '"ab a b'),
]


@pytest.mark.parametrize(("schema", "text"), CASES, ids=[json.dumps(schema) for schema, _ in CASES])
def test_masks_are_those_of_trying(schema: dict[str, Any], text: str) -> None:
    grammar = constrain.Grammar.from_json_schema(json.dumps({"type": "string", **schema}))
    compiled, alone = (constrain.GrammarCompiler(VOCABULARY).compile(grammar) for _ in range(2))
    matcher = constrain.Matcher(compiled)
    data = text.encode()
    for place in range(len(data)):
        assert mask_of(matcher) == by_trying(alone, data[:place]), data[:place]
        if not matcher.accept_bytes(data[place : place + 1]):
            assert place > 12  # out of words or characters
            break


def test_masks_after_long_tokens() -> None:
    """Random walks by tokens, so that counters fall by several at a time."""
    rng = np.random.default_rng(3)
    for words, length in ((12, None), (20, 90), (7, 40)):
        schema = {"type": "string", "pattern": WORDS % words, **({} if length is None else {"maxLength": length})}
        grammar = constrain.Grammar.from_json_schema(json.dumps(schema))
        compiled, alone = (constrain.GrammarCompiler(VOCABULARY).compile(grammar) for _ in range(2))
        for _ in range(3):
            matcher = constrain.Matcher(compiled)
            assert matcher.accept_bytes(b'"a')
            prefix = b'"a'
            for _ in range(7):
                tokens = mask_of(matcher)
                assert tokens == by_trying(alone, prefix), prefix
                inside = sorted(token for token in tokens if b'"' not in VOCABULARY.tokens[token])
                if not inside:
                    break
                token = int(rng.choice(inside))
                assert matcher.accept_token(token)
                prefix += VOCABULARY.tokens[token]


def test_words_take_few_lexer_states() -> None:
    """The number of words that are left makes no difference to short tokens, so no states are made for these."""
    states = []
    for words in (100, 101, 102):
        schema = {"type": "string", "pattern": WORDS % words}
        compiler = constrain.GrammarCompiler(VOCABULARY, accelerators=NAMES)
        compiled = compiler.compile(constrain.Grammar.from_json_schema(json.dumps(schema)))
        matcher = constrain.Matcher(compiled)
        assert matcher.accept_bytes(b'"a')
        mask_of(matcher)
        before = compiled.statistics()["lexer_states"]
        assert matcher.accept_bytes(b" b b b a")
        mask_of(matcher)
        states.append(compiled.statistics()["lexer_states"] - before)
    assert max(states) < 20, states
