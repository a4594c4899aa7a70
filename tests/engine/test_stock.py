"""Expressions that the engine has ready for all grammars of a front-end change nothing but the time."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import constrain
from constrain.engine.automata.operations import OP_STORE
from constrain.engine.automata.prelude import Prelude, prelude_for
from constrain.engine.automata.programs import LexemeProgram
from constrain.engine.compiled_grammar import CompiledGrammar
from constrain.engine.storage.schemas import BYTE_CLASSES, EXPRESSION_HASHES, NEW_EXPRESSIONS
from constrain.engine.storage.tables import Tables
from constrain.grammar.ir import GrammarIR
from constrain.grammar.json_schema import from_json_schema
from constrain.grammar.json_schema.lexical.prelude import plain_stock, stock_with_addresses, stock_with_times
from constrain.grammar.languages.regular import Regular, literal

VOCABULARY = constrain.Vocabulary(
    [bytes((byte,)) for byte in range(256)] + [b'": ', b'{"', b'name"', b'", "', b"\\u00", b"true", b" 1"], eos_ids=[0]
)

SCHEMAS: list[Any] = [
    True,
    {"type": "object", "properties": {"name": {"type": "string"}, "é": {"type": "integer"}}, "required": ["name"]},
    {"enum": ["one", "two", 3]},
    {"type": "array", "items": {"type": "string", "format": "date"}, "uniqueItems": True},
    {"items": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "string", "format": "date"}]}},
    {"type": "array", "items": {"type": "string", "format": "uri"}},
    {"properties": {"n": {"minimum": 3.5}}, "patternProperties": {"^x-": {"maxLength": 3}}},
]


def _masks(ir: GrammarIR, text: bytes) -> list[bytes]:
    """The masks along a text, as far as it is allowed."""
    matcher = constrain.Matcher(CompiledGrammar(ir, VOCABULARY))
    mask = constrain.allocate_token_bitmask(1, VOCABULARY.size)
    masks = []
    for byte in text:
        matcher.fill_next_token_bitmask(mask)
        masks.append(mask.tobytes())
        if not matcher.accept_token(byte):
            break
    return masks


def _classes(ir: GrammarIR) -> list[int]:
    return CompiledGrammar(ir, VOCABULARY)._tables.array(BYTE_CLASSES).tolist()


def _many_words() -> tuple[Regular, ...]:
    return tuple(literal(f"word {number}") for number in range(2 * NEW_EXPRESSIONS))


@pytest.mark.parametrize("schema", SCHEMAS, ids=json.dumps)
def test_masks_and_byte_classes_are_those_without_a_stock(schema: Any) -> None:
    ir = from_json_schema(schema)
    assert ir.stock is not None
    bare = replace(ir, stock=None)
    assert _classes(ir) == _classes(bare)
    for text in (
        b'{"name": "a", "\xc3\xa9": 12}',
        b'["2024-02-29", "2023-12-',
        b'["2024-02-29T00:00:00Z"',
        b'["a://b"',
        b'"one"',
        b'{"x-": "abc", "n": 4.5}',
    ):
        assert _masks(ir, text) == _masks(bare, text)


def test_the_front_end_writes_grammars_of_its_stock() -> None:
    ir = from_json_schema({"type": "object"})
    assert ir.stock is plain_stock
    # But for the opening brace, which has no white space before it.
    program = LexemeProgram(ir.lexemes[1:], prelude_for(plain_stock, 5).program)
    # A load and where to store it, for each.
    assert len(program.code) == 3 * (program.registers - program.first)
    assert (program.code[0::3] < 0).all()
    assert (program.code[1::3] == OP_STORE).all()


@pytest.mark.parametrize(
    ("name", "expected"),
    [("date-time", stock_with_times), ("uri", stock_with_addresses), ("email", stock_with_addresses)],
)
def test_formats_with_large_expressions_are_in_the_stock_of_their_schemas(
    name: str, expected: Callable[[], tuple[Regular, ...]]
) -> None:
    ir = from_json_schema({"type": "array", "items": {"type": "string", "format": name}})
    assert ir.stock is expected
    program = LexemeProgram(ir.lexemes, prelude_for(expected, 5).program)
    assert len(program.code) < len(LexemeProgram(ir.lexemes).code) / 10


def test_a_stock_is_made_once() -> None:
    assert prelude_for(plain_stock, 5) is prelude_for(plain_stock, 5)
    assert prelude_for(plain_stock, 5) is not prelude_for(plain_stock, 6)


def test_a_stock_that_is_larger_than_new_tables() -> None:
    tables = Tables(1 << 30, snapshot=Prelude(_many_words(), 5).snapshot)
    assert tables.used(EXPRESSION_HASHES) > NEW_EXPRESSIONS
    ir = replace(from_json_schema(SCHEMAS[1]), stock=_many_words)
    text = b'{"name": "a"}'
    assert _masks(ir, text) == _masks(replace(ir, stock=None), text)
    assert len(np.unique(_classes(ir))) < 100
