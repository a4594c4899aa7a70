"""Masks along names and other plain sequences, for which no states are made, against brute force."""

from __future__ import annotations

import json
from typing import Any

import pytest

import constrain
from constrain.engine.masks import accelerators
from constrain.grammar.ir import GrammarBuilder, GrammarIR
from constrain.grammar.languages import regular
from constrain.grammar.languages.regular import Regular, literal
from tests.masks import by_trying, mask_of

NAMES = ["config", "configuration", "contact", "id", 'a"b', "été", "J_k"]


def spellings(name: str) -> list[bytes]:
    """A name as it is, with one character escaped, and with all of them, in small and capital digits."""
    plain = json.dumps(name, ensure_ascii=False).encode()
    escaped = [f"\\u{ord(character):04x}" for character in name]
    one = (json.dumps(name[0])[1:-1] + "".join(escaped[1:2]) + name[2:]).encode()
    return [plain, b'"' + one, b'"' + "".join(escaped).encode(), b'"' + "".join(escaped).upper().encode()]


def tokens() -> list[bytes]:
    """Every byte; every part of the names up to 12 bytes, with what may stand around it; some of them twice."""
    result = [bytes([byte]) for byte in range(256)]
    texts = [b'{"' + text.strip(b'"') + b'": 1, "' for name in NAMES for text in spellings(name)]
    texts += [b"\n   \t  :", b'"  , "', b'":', b'"}', b'c":true', b"conconcon"]
    parts = {text[i : i + n] for text in texts for n in range(2, 13) for i in range(len(text) - n + 1)}
    result += sorted(parts)
    # Nodes with many children: behind "c", "co", "con" and a quote.
    for stem in (b"c", b"co", b"con", b'"', b"\\u00"):
        result += [stem + bytes([byte]) + tail for byte in range(33, 127) for tail in (b"", b"x", b'":')]
    return [*result, b"config", b'id":', b'id":']


TOKENS = tokens()
VOCABULARY = constrain.Vocabulary([*TOKENS, b"</s>"], eos_ids=[len(TOKENS)])


def check(ir: GrammarIR, text: bytes) -> None:
    """Compare at each place of a text: in a grammar that made the masks before, and in one that makes this one only."""
    matcher = constrain.Matcher(constrain.CompiledGrammar(ir, VOCABULARY))
    for place in range(len(text) + 1):
        expected = by_trying(constrain.CompiledGrammar(ir, VOCABULARY), text[:place])
        alone = constrain.Matcher(constrain.CompiledGrammar(ir, VOCABULARY))
        assert alone.accept_bytes(text[:place])
        assert mask_of(alone) == expected, text[:place]
        assert mask_of(matcher) == expected, text[:place]
        if place < len(text):
            assert matcher.accept_bytes(text[place : place + 1])


def keys(*names: str, **more: Any) -> GrammarIR:
    schema = {"type": "object", "properties": {name: {"type": "integer"} for name in names}, **more}
    return constrain.Grammar.from_json_schema(schema).ir


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["config"], '{"config" : 1}'),
        (["configuration"], '{"c\\u006fnf'),
        (["configuration", "contact", "id"], '{"contact":1,"id":2}'),
        (['a"b', "été"], '{"a\\"b": 1, "\\u00e9t'),
        (["J_k", "id"], '{"\\u004A_k":1'),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_names_of_keys(names: list[str], text: str) -> None:
    check(keys(*names, additionalProperties=False), text.encode())
    check(keys(*names, additionalProperties=False, required=names[-1:]), text.encode())


def test_names_beside_any_other() -> None:
    check(keys("config", "contact", "id"), b'{"con')


def test_choices_of_words() -> None:
    check(constrain.Grammar.from_json_schema({"enum": ["config", "contact", "id", True, "conconcon"]}).ir, b'"conc')


def spelled(text: bytes) -> Regular:
    return regular.concat(*[regular.union(literal(bytes([byte])), literal(b"\\u00%02x" % byte)) for byte in text])


def grammar_of(*lexemes: Regular) -> GrammarIR:
    builder = GrammarBuilder()
    return builder.finish(builder.sequence([builder.lexeme(lexeme) for lexeme in lexemes]))


def test_a_lexeme_that_ends_behind_a_name() -> None:
    check(grammar_of(spelled(b"con"), spelled(b"con"), literal(b"config")), b"c\\u006fnconc")


def test_a_lexeme_that_may_end_or_go_on_behind_a_name() -> None:
    check(grammar_of(regular.concat(spelled(b"con"), regular.optional(literal(b"con"))), literal(b"config")), b"co")
    check(grammar_of(regular.concat(spelled(b"co"), regular.repeat(literal(b"n"))), literal(b"config")), b"c")


def test_a_sequence_that_is_dead_further_on() -> None:
    nothing = regular.intersect(literal(b"fig"), regular.complement(regular.repeat(regular.byte_range(0, 255))))
    ways = regular.union(regular.concat(spelled(b"con"), nothing), regular.concat(spelled(b"con"), literal(b"tact")))
    check(grammar_of(ways), b"con")


def test_two_members_that_go_on_with_the_same_byte() -> None:
    builder = GrammarBuilder()
    start = builder.nonterminal("start")
    for word, end in ((b"config", b'":'), (b"configuration", b'"}'), (b"contact", b'"')):
        builder.add(start, [builder.lexeme(spelled(word)), builder.lexeme(literal(end))])
    check(builder.finish(start), b"configuration")


def test_no_states_are_made_along_a_name() -> None:
    ir = keys("configuration", additionalProperties=False, required=["configuration"])
    # What grammars share, the star closure of strings among it, the first ones find out.
    for _ in range(4):
        compiled = constrain.CompiledGrammar(ir, VOCABULARY, accelerators=accelerators.NAMES)
        matcher = constrain.Matcher(compiled)
        assert matcher.accept_bytes(b'{"')
        before = compiled.statistics()["lexer_states"]
        assert TOKENS.index(b"configuratio") in mask_of(matcher)
        made = compiled.statistics()["lexer_states"] - before
    assert made == 0
