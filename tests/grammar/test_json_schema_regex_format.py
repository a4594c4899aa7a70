"""The format ``regex``: classes, judged by a reading of ECMA-262, section 22.2.1 (ClassRanges, with the u flag)."""

from __future__ import annotations

import json
import random

import pytest

import constrain

BYTES = constrain.Vocabulary([bytes([byte]) for byte in range(256)])

ATOMS = ["-", "-", "^", "a", "z", "A", "0", "9", "_", "!", "~", ".", "(", "{"]
ESCAPES = [r"\d", r"\-", r"\x41", r"\x7a", r"\x7A", r"\x47", r"\u0041", r"\u007a", r"\u4e00", r"\u9fa5", r"\u4fff"]


@pytest.fixture(scope="module")
def compiled() -> constrain.CompiledGrammar:
    grammar = constrain.Grammar.from_json_schema({"type": "string", "format": "regex"})
    return constrain.CompiledGrammar(grammar.ir, BYTES)


def takes(compiled: constrain.CompiledGrammar, text: str) -> bool:
    matcher = constrain.Matcher(compiled)
    return matcher.accept_bytes(json.dumps(text).encode()) and matcher.is_accepting()


def code_of(atom: str) -> int | None:
    """The code point of an atom; None for a class of characters."""
    if atom == r"\d":
        return None
    return int(atom[2:], 16) if atom[:2] in (r"\x", r"\u") else ord(atom[-1])


def judge(atoms: list[str]) -> tuple[bool, bool]:
    """Whether what stands between brackets is valid, and whether it has nothing that the format leaves out.

    Left out are ranges between a character and an escape, between escapes of different kinds or that begin alike, and
    from a hyphen or a circumflex.
    """
    is_valid = is_taken = True
    place = 1 if atoms[:1] == ["^"] else 0
    while place < len(atoms):
        if place + 2 < len(atoms) and atoms[place + 1] == "-":
            first, last = atoms[place], atoms[place + 2]
            low, high = code_of(first), code_of(last)
            is_valid &= low is not None and high is not None and low <= high
            is_taken &= first not in ("-", "^") and r"\-" not in (first, last)
            if len(first) > 1 or len(last) > 1:
                is_taken &= first[:2] == last[:2] and len(first) > 2 and low != high
                pairs = zip(first[2:].lower(), last[2:].lower(), strict=False)
                same = next((index for index, (one, other) in enumerate(pairs) if one != other), 9)
                is_taken &= same < 2 or (same == 2 and first[2:4] == "00")
            place += 3
        else:
            place += 1
    return is_valid, is_taken


def test_classes_are_those_of_the_specification(compiled: constrain.CompiledGrammar) -> None:
    rng = random.Random(22)
    valid = 0
    for _ in range(6_000):
        atoms = [rng.choice(ATOMS if rng.random() < 0.7 else ESCAPES) for _ in range(rng.randint(0, 6))]
        is_valid, is_taken = judge(atoms)
        text = f"[{''.join(atoms)}]"
        assert takes(compiled, text) == (is_valid and is_taken), text
        valid += is_valid and is_taken
    assert valid > 1_000


@pytest.mark.parametrize(
    "text",
    ["[a-z-_]", "[0-9-_]", "^[\\w.-]+$", "[!-~]", "[+-/]", r"[\x20-\x7e]", r"[\u0020-\u007e]", "[-a]", "[A-z]"],
)
def test_classes_that_schemas_have(compiled: constrain.CompiledGrammar, text: str) -> None:
    assert takes(compiled, text)


@pytest.mark.parametrize(
    "text",
    [r"[\w-.]", r"\-", r"\_", r"\Z", r"\a", "x{,3}", "}", "a{", "[z-a]", r"[\x7e-\x20]", r"[\ud83d\udc00-\udfff]"],
)
def test_what_the_u_flag_forbids(compiled: constrain.CompiledGrammar, text: str) -> None:
    assert not takes(compiled, text)


def test_a_pattern_beside_the_format_is_alive_in_few_steps() -> None:
    schema = {"type": "string", "format": "regex", "pattern": "^/.+/$"}
    alone = constrain.CompiledGrammar(
        constrain.Grammar.from_json_schema({"type": "string", "format": "regex"}).ir, BYTES
    )
    both = constrain.CompiledGrammar(constrain.Grammar.from_json_schema(schema).ir, BYTES)
    assert both.statistics()["nodes"] < alone.statistics()["nodes"] + 2_000
    assert takes(both, "/[a-z]/")
    assert not takes(both, "/[a-z]")
    assert not takes(both, "/[z-a]/")


REGEX = {"type": "string", "format": "regex"}


@pytest.mark.parametrize(
    ("schema", "texts"),
    [
        ({"type": "string", "not": REGEX}, {'"a"': False, '"*a"': True, '")"': True, '""': False}),
        # Of texts that may or may not be regular expressions neither alternative may take too much.
        ({"not": {"not": REGEX}}, {'"a"': True, '"*a"': False, '"("': False, "1": False}),
        ({"not": {"anyOf": [REGEX, {"type": "string", "minLength": 3}]}}, {'"+a"': True, '"+aa"': False, '"a"': False}),
        ({"not": {"allOf": [REGEX, {"minLength": 2, "maxLength": 3, "pattern": "b"}]}}, {'"ab"': False, '"+b"': True}),
        ({"enum": ["(", "a", "*"], "not": REGEX}, {'"("': True, '"a"': False, '"*"': True}),
        ({"oneOf": [{"enum": ["(", "a"]}, {"type": "string", "not": REGEX}]}, {'"("': False, '"a"': True, '"+"': True}),
        (
            {"type": ["string", "object"], "not": {"not": REGEX, "unevaluatedProperties": False}},
            {'"a"': True, '"*"': False, '"("': False, "{}": False, '{"a": 1}': True},
        ),
        # A schema of schemas as one of several kinds of objects (AsyncAPI's).
        (
            {"oneOf": [{"type": "object", "properties": {"pattern": REGEX}}, {"type": "object", "required": ["$ref"]}]},
            {'{"pattern": "a"}': True, '{"$ref": "x"}': False, '{"pattern": 1, "$ref": "x"}': True}
            | {'{"pattern": "a", "$ref": "x"}': False, '{"pattern": "*", "$ref": "x"}': True, '{"pattern": 1}': False},
        ),
    ],
)
def test_what_is_no_regular_expression(schema: dict[str, object], texts: dict[str, bool]) -> None:
    compiled = constrain.CompiledGrammar(constrain.Grammar.from_json_schema(schema).ir, BYTES)
    for text, expected in texts.items():
        matcher = constrain.Matcher(compiled)
        assert (matcher.accept_bytes(text.encode()) and matcher.is_accepting()) == expected, text
