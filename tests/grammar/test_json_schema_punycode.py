"""Host names with A-labels: what they decode to, and masks within them."""

from __future__ import annotations

import json
import random
import unicodedata

import pytest
from byte_tokens import fits
from hypothesis import given
from hypothesis import strategies as st
from masks import mask_of

import constrain
from constrain.grammar.json_schema.lexical.idn.a_labels import has_valid_a_labels
from constrain.grammar.json_schema.lexical.idn.punycode import OCTETS, ROOM, encode, is_valid, next_octets

BYTES = constrain.Vocabulary([bytes((byte,)) for byte in range(256)])
PIECES = [
    '"',
    ".",
    '".',
    '",',
    'a"',
    "a.",
    "kva",
    'kva"',
    "xn",
    "--",
    "xn--",
    "-",
    "---",
    "bcher-",
    "her-kv",
    "4ca",
    "4ca.",
]
PIECES += [
    "4ca.xn--4ca",
    'zca"',
    "9",
    "99",
    "9999",
    "XN--",
    "-kva.xn--",
    "-" * 50,
    "a" * 20,
    "0" * 30,
    "u0061",
    "\\",
    "\\u00",
]
TOKENS = [piece.encode() for piece in [*PIECES, *OCTETS]] + [b"</s>"]
VOCABULARY = constrain.Vocabulary(TOKENS, eos_ids=[len(TOKENS) - 1])
SCHEMA = {"type": "string", "format": "hostname"}


@pytest.fixture(scope="module")
def compiled() -> constrain.CompiledGrammar:
    return constrain.CompiledGrammar(constrain.Grammar.from_json_schema(SCHEMA).ir, BYTES)


VALID = [
    "xn--bcher-kva",
    "XN--BCHER-KVA.example",
    "a.xn--4ca.b.xn--4ca",
    "xn--zca",
    "xn--fiq02ib9d179b",
    "xn--fa-hia.xn--fa-hia",
]
VALID += ["a." * 123 + "xn--4ca", "xn--" + encode("ü" * 40), "xn--" + encode("a" * 50 + "ü")]
INVALID = [
    "xn--",
    "xn--a",
    "xn--abc",
    "xn--abc-",
    "xn--bcher-kv",
    "xn--99999999",
    "xn--wva3j",
    "xn--4ca-",
    "xn--4ca..a",
    "xn---4ca",
]
INVALID += ["xn--" + encode(label) for label in ("Ü", "u\u0308", "ü-", "-ü", "a·b", "aא", "\u0301a", "ü" * 60)]
INVALID += ["a." * 124 + "xn--4ca", "xn--4ca." + "a." * 123, "xn--4ca._"]


@pytest.mark.parametrize("name", VALID)
def test_valid_names(compiled: constrain.CompiledGrammar, name: str) -> None:
    assert fits(compiled, json.dumps(name))
    assert fits(compiled, '"' + "".join(f"\\u{ord(character):04x}" for character in name) + '"')
    assert has_valid_a_labels(name)


@pytest.mark.parametrize("name", INVALID)
def test_invalid_names(compiled: constrain.CompiledGrammar, name: str) -> None:
    assert not fits(compiled, json.dumps(name))


@given(
    st.text(st.sampled_from("abz019-äßñéαβγабв中国한글"), min_size=1, max_size=40).filter(
        lambda text: not text.isascii()
    )
)
def test_what_was_encoded_is_valid_if_the_label_is(compiled: constrain.CompiledGrammar, label: str) -> None:
    tail = encode(label)
    is_label = (
        unicodedata.is_normalized("NFC", label)
        and label[2:4] != "--"
        and "-" not in (label[0], label[-1])
        and len(tail) <= 59
    )
    assert is_valid(tail) == is_label
    assert fits(compiled, f'"xn--{tail}"') == is_label
    assert not is_label or all(tail[place] in next_octets(tail[:place], 59 - place) for place in range(len(tail)))


@given(st.text(st.sampled_from([*OCTETS, *"-------ab"]), max_size=59 - ROOM))
def test_whatever_is_written_can_be_completed(text: str) -> None:
    ways = {encode(label) for part in (text, text.rstrip("-"), text + "a") for label in _labels(part)}
    assert any(way.startswith(text) and len(way) <= len(text) + ROOM and is_valid(way) for way in ways)


def _labels(part: str) -> list[str]:
    third = part[:2] + "ß" + part[2:]
    return [before + middle + after for before in ("", "ß") for middle in (part, third) for after in ("", "ß")]


def test_masks_equal_what_is_accepted(masks_compared: object) -> None:
    grammar = constrain.CompiledGrammar(constrain.Grammar.from_json_schema(SCHEMA).ir, VOCABULARY)
    for seed in range(16):
        choose = random.Random(seed)
        matcher = constrain.Matcher(grammar)
        matcher.accept_bytes(
            choose.choice([b'"', b'"xn--', b'"a.xn--b', b'"xn--4ca', b'"xn--' + b"0" * 40, b'"xn--' + b"-" * 50])
        )
        for _ in range(12):
            allowed = mask_of(matcher)
            accepted = {token for token in range(len(TOKENS)) if matcher.fork().accept_token(token)}
            assert allowed == accepted, [TOKENS[token] for token in allowed ^ accepted]
            masks_compared.add()  # type: ignore[attr-defined]
            assert allowed
            if len(TOKENS) - 1 in allowed:
                break
            assert matcher.accept_token(choose.choice(sorted(allowed)))


def test_beside_other_assertions_it_is_a_warning() -> None:
    grammar = constrain.Grammar.from_json_schema({**SCHEMA, "maxLength": 20})
    assert any("Punycode" in warning for warning in grammar.warnings)
    compiled = constrain.CompiledGrammar(grammar.ir, BYTES)
    assert fits(compiled, '"xn--bcher-kva"')
    assert not fits(compiled, '"xn--bcher-kva.example"')
    listed = constrain.Grammar.from_json_schema({"enum": ["xn--4ca", "xn--wva3j"], "format": "hostname"})
    compiled = constrain.CompiledGrammar(listed.ir, BYTES)
    assert fits(compiled, '"xn--4ca"')
    assert not fits(compiled, '"xn--wva3j"')
