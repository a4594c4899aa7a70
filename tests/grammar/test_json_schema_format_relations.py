"""What formats have in common: the table says what automata say, and ``oneOf`` of many formats takes no time."""

from __future__ import annotations

from itertools import permutations

import pytest
from finite_texts import verdicts

import constrain
from constrain.errors import GrammarError
from constrain.grammar.ir import GrammarBuilder
from constrain.grammar.json_schema.lexical.formats.patterns import FORMATS
from constrain.grammar.json_schema.lexical.formats.relations import exclude_each_other, is_part
from constrain.grammar.json_schema.lexical.texts import Format, every, includes, plain, some, without
from constrain.grammar.languages.regular import Regular, complement, intersect

NAMES = [name for name in FORMATS if name != "regex"]
VOCABULARY = constrain.Vocabulary([bytes((byte,)) for byte in range(256)], eos_ids=[])


def _is_empty(language: Regular) -> bool:
    builder = GrammarBuilder()
    made = builder.finish(builder.lexeme(language, "both"), make_error=lambda reason, _place: GrammarError(reason))
    try:
        constrain.GrammarCompiler(VOCABULARY).compile(constrain.Grammar(made))
    except GrammarError:
        return True
    return False


@pytest.mark.parametrize("one", NAMES)
def test_the_table_is_what_automata_say(one: str) -> None:
    for other in NAMES:
        if one < other:
            both = intersect(plain(Format(one)), plain(Format(other)))
            assert _is_empty(both) == exclude_each_other(one, other) == exclude_each_other(other, one), other
        if one != other:
            rest = intersect(plain(Format(one)), complement(plain(Format(other))))
            assert _is_empty(rest) == is_part(one, other), other


def test_sets_are_simplified() -> None:
    uri, reference, date = Format("uri"), Format("uri-reference"), Format("date")
    assert every(uri, reference) == uri
    assert every(without(uri), without(reference)) == without(reference)
    assert every(uri, without(date)) == uri
    assert every(uri, date) == every(uri, without(reference)) == some()
    assert some(uri, reference) == reference
    assert some(without(uri), without(date)) == some(reference, without(uri)) == every()
    assert not any(includes(one, other) for one, other in permutations((Format("ipv4"), Format("regex")), 2))


NINE = ("date", "date-time", "time", "email", "uri", "uuid", "ipv4", "ipv6", "hostname")
OTHERS = (
    ("email", "time", "iri", "duration", "uri-reference", "ipv4", "hostname", "ipv6", "uri-template"),
    ("hostname", "uuid", "iri", "email", "time", "ipv6", "uri-template", "date", "idn-email"),
    ("idn-email", "ipv6", "relative-json-pointer", "iri-reference", "uri-reference", "hostname", "json-pointer"),
)


@pytest.mark.parametrize("names", [NINE, *OTHERS])
def test_one_of_many_formats_has_a_mask(names: tuple[str, ...]) -> None:
    schema = {"oneOf": [{"type": "string", "format": name} for name in names]}
    matcher = constrain.Matcher(
        constrain.GrammarCompiler(VOCABULARY).compile(constrain.Grammar.from_json_schema(schema))
    )
    mask = constrain.allocate_token_bitmask(1, VOCABULARY.size)
    for byte in b'"ab':
        matcher.fill_next_token_bitmask(mask, 0)
        assert matcher.accept_token(byte)


def test_exactly_one_of_nine_formats() -> None:
    schema = {"oneOf": [{"type": "string", "format": name} for name in NINE]}
    once = ['"a.example"', '"12:00:00Z"', '"a@b.c"', '"x:y"', '"2001:db8::1"']
    twice = ['"2024-02-29"', '"127.0.0.1"', '"12345678-1234-1234-1234-123456789abc"', '"a::"', '"a b"']
    assert verdicts(schema, *once, *twice) == [True] * len(once) + [False] * len(twice)
