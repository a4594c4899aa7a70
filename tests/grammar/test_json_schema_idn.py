"""``idn-hostname``: the rules of RFC 5892 and 5893, compared with the idna package on random labels."""

from __future__ import annotations

import json
import random
import unicodedata
from typing import Literal

import pytest

import constrain
from constrain.errors import SchemaError
from constrain.grammar.json_schema.lexical.idn.hostnames import is_idn_hostname
from constrain.grammar.json_schema.lexical.idn.labels import kinds, label_automaton

VOCABULARY = constrain.Vocabulary([bytes((byte,)) for byte in range(256)])
SCHEMA = {"type": "string", "format": "idn-hostname"}


@pytest.fixture(scope="module")
def compiled() -> constrain.CompiledGrammar:
    return constrain.CompiledGrammar(constrain.Grammar.from_json_schema(SCHEMA).ir, VOCABULARY)


def fits(compiled: constrain.CompiledGrammar, value: object, ascii_only: bool = False) -> bool:
    matcher = constrain.Matcher(compiled)
    return matcher.accept_bytes(json.dumps(value, ensure_ascii=ascii_only).encode()) and matcher.is_accepting()


VALID = [
    *("example", "a-b.c", "Host1", "bücher.example", "實例", "παράδειγμα。δοκιμή", "l·l", "α͵β", "א׳ב", "あ・", "ب٠ب"),
    *("۰0", "क्‍ष", "क्‌ष", "بي‌بي", "ßς་〇", "a．ü", "a" * 63, "אב.גד", "a1.אב"),
    *("xn--bcher-kva", "a.xn--4ca.XN--4ca"),
]
INVALID = [
    *(
        "",
        ".",
        "a..b",
        "-a",
        "a-",
        "ü-",
        "-ü",
        "üa--b",
        "xn--wva3j",
        "Ü",
        "a b",
        "a·l",
        "l·",
        "α͵",
        "a׳",
        "・",
        "ب٠۰",
    ),
    *("क‍ष", "‍ष", "क्‌षx‌y", "̀a", "ःa", "〮실", "aא", "0א", "א0٠", "0a.א", "ü.א-", "a" * 64, "a.", "ü."),
]


@pytest.mark.parametrize("name", VALID)
def test_valid_names(compiled: constrain.CompiledGrammar, name: str) -> None:
    assert is_idn_hostname(name)
    assert fits(compiled, name)
    assert fits(compiled, name, ascii_only=True)


@pytest.mark.parametrize("name", INVALID)
def test_invalid_names(compiled: constrain.CompiledGrammar, name: str) -> None:
    assert not is_idn_hostname(name)
    assert not fits(compiled, name)
    assert not fits(compiled, name, ascii_only=True)


def samples(rng: random.Random) -> list[str]:
    """Characters of every kind, so that the rare ones come often enough."""
    return [chr(rng.choice([rng.randint(*rng.choice(points)) for _ in range(3)])) for points in kinds().values()]


def test_labels_are_those_of_idna(compiled: constrain.CompiledGrammar) -> None:
    idna = pytest.importorskip("idna")
    rng = random.Random(3)
    valid = 0
    for _ in range(3000):
        characters = samples(rng)
        few = rng.sample(characters, rng.randrange(1, 5))
        label = "".join(rng.choice(few) for _ in range(rng.randrange(1, 6)))
        label += rng.choice(["", "", "l·l", "a", "\u094d\u200d"])
        if label.isascii() or unicodedata.normalize("NFC", label) != label:
            continue
        # The package asks Python for directions, and an older one does not know newer characters.
        if any(unicodedata.category(character) == "Cn" for character in label):
            continue
        try:
            idna.encode(label)
            expected = True
        except (idna.IDNAError, UnicodeError):
            expected = False
        assert is_idn_hostname(label) == expected, ascii(label)
        valid += expected
    assert valid > 200


def test_both_ways_to_tell_agree(compiled: constrain.CompiledGrammar) -> None:
    rng = random.Random(4)
    for _ in range(1500):
        few = rng.sample(samples(rng), 3)
        name = "".join(rng.choice([*few, few[0], "."]) for _ in range(rng.randrange(1, 8)))
        assert fits(compiled, name) == is_idn_hostname(name), ascii(name)


def test_the_automata_are_small() -> None:
    assert max(len(label_automaton(bidi).steps) for bidi in (False, True)) < 200


def test_in_enum_and_beside_other_types(compiled: constrain.CompiledGrammar) -> None:
    grammar = constrain.Grammar.from_json_schema({"enum": ["ü", "Ü", 5], "format": "idn-hostname"})
    listed = constrain.CompiledGrammar(grammar.ir, VOCABULARY)
    assert fits(listed, "ü")
    assert not fits(listed, "Ü")
    assert any("Punycode" in warning for warning in constrain.Grammar.from_json_schema(SCHEMA).warnings)
    anything = constrain.Grammar.from_json_schema({"properties": {"host": {"format": "idn-hostname"}}})
    matcher = constrain.Matcher(constrain.CompiledGrammar(anything.ir, VOCABULARY))
    assert matcher.accept_bytes('{"host": "bücher.example", "x": 1}'.encode())


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "format": "idn-hostname", "maxLength": 5},
        {"type": "string", "format": "idn-hostname", "pattern": "^a"},
        {"not": {"format": "idn-hostname"}},
        {"type": "object", "propertyNames": {"format": "idn-hostname"}},
        {"items": {"format": "idn-hostname"}, "uniqueItems": True},
        {"contains": {"format": "idn-hostname"}, "uniqueItems": True, "minItems": 3},
        {"items": {"properties": {"host": {"format": "idn-hostname"}}, "required": ["host"]}, "uniqueItems": True},
    ],
)
def test_what_is_not_supported(schema: dict[str, object]) -> None:
    with pytest.raises(SchemaError, match="not supported") as caught:
        constrain.Grammar.from_json_schema(schema)
    assert caught.value.pointer != "#"
    lenient = constrain.Grammar.from_json_schema(schema, lenient=True)
    assert any("not enforced" in warning for warning in lenient.warnings)
    constrain.CompiledGrammar(lenient.ir, VOCABULARY)


@pytest.mark.parametrize("property_order", ["schema", "any"])
def test_members_without_a_name(property_order: Literal["schema", "any"]) -> None:
    """Whether there can be such a member is asked before it is written."""
    schema = {"additionalProperties": {"type": "string", "format": "idn-hostname"}, "minProperties": 1}
    grammar = constrain.Grammar.from_json_schema(schema, property_order=property_order)
    compiled = constrain.CompiledGrammar(grammar.ir, VOCABULARY)
    assert fits(compiled, {"host": "bücher.example"})
    assert not fits(compiled, {"host": "-"})
    assert not fits(compiled, {})
