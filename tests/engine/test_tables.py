"""The memory of compiled grammars: used again when a grammar is gone, and no result depends on what was in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import constrain
from constrain.engine.storage import schemas, tables
from constrain.engine.storage.header import HEADER, NEED_SIZE
from constrain.engine.storage.schemas import (
    DERIVATIVE_KEYS,
    EXPRESSIONS,
    FOLLOWED,
    LEXEMES,
    LEXER_TRANSITIONS,
    LIFE_PLACES,
    NULLABLE,
    STATE_BUCKETS,
)
from constrain.engine.storage.tables import Tables
from constrain.errors import LimitError

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 30}, "tags": {"type": "array", "items": {"enum": [1, "a"]}}},
    "required": ["name"],
}
TEXT = b'{"name": "x\\u0041y", "tags": [1, "a", 1]}'


@pytest.fixture(scope="module")
def vocabulary() -> constrain.Vocabulary:
    pairs = [bytes((a, b)) for a in b'"{:, ,1a' for b in b'"}:] ,1a']
    return constrain.Vocabulary([bytes((byte,)) for byte in range(256)] + pairs + [b"</s>"], eos_ids=[320])


@pytest.fixture
def no_spares(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray[Any, Any]]:
    """Whatever other tests have left is put aside."""
    spares: list[np.ndarray[Any, Any]] = []
    monkeypatch.setattr(tables, "_spare_buffers", spares)
    defaults: Any = Tables.__del__.__defaults__
    monkeypatch.setattr(Tables.__del__, "__defaults__", (spares, *defaults[1:]))
    return spares


def masks(vocabulary: constrain.Vocabulary) -> list[bytes]:
    compiled = constrain.CompiledGrammar(constrain.Grammar.from_json_schema(SCHEMA).ir, vocabulary)
    matcher = constrain.Matcher(compiled)
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    result = []
    for byte in TEXT:
        matcher.fill_next_token_bitmask(mask)
        result.append(mask.tobytes())
        assert matcher.accept_token(byte)
    return result


def test_a_buffer_is_used_again_when_its_grammar_is_gone(no_spares: list[np.ndarray[Any, Any]]) -> None:
    first = Tables(1 << 30)
    address = first.ctx[HEADER + 3 * EXPRESSIONS]
    second = Tables(1 << 30)
    assert second.ctx[HEADER + 3 * EXPRESSIONS] != address
    del first
    assert len(no_spares) == 1
    third = Tables(1 << 30)
    assert third.ctx[HEADER + 3 * EXPRESSIONS] == address
    assert not no_spares


def test_a_buffer_that_someone_looks_at_is_not_used_again(no_spares: list[np.ndarray[Any, Any]]) -> None:
    first = Tables(1 << 30)
    view = first.get(EXPRESSIONS)
    del first
    assert not no_spares
    assert len(view) == 0


def test_not_all_buffers_are_kept(no_spares: list[np.ndarray[Any, Any]]) -> None:
    many = [Tables(1 << 30) for _ in range(tables._MOST_SPARE + 3)]
    del many
    assert len(no_spares) == tables._MOST_SPARE


@pytest.mark.parametrize("rubbish", [0x00, 0x01, 0x5B, 0xFF])
def test_what_was_in_a_buffer_does_not_matter(
    vocabulary: constrain.Vocabulary, no_spares: list[np.ndarray[Any, Any]], rubbish: int
) -> None:
    expected = masks(vocabulary)
    for buffer in no_spares:
        buffer[:] = rubbish
    assert no_spares
    assert masks(vocabulary) == expected


def test_a_table_grows_where_it_is_and_then_moves() -> None:
    memory = Tables(1 << 30)
    place = HEADER + 3 * LEXER_TRANSITIONS
    address, capacity, nbytes = memory.ctx[place], memory.capacity(LEXER_TRANSITIONS), memory.nbytes
    memory.append(LEXER_TRANSITIONS, np.arange(capacity, dtype=np.int32))
    memory.append(LEXER_TRANSITIONS, np.arange(5, dtype=np.int32))
    assert memory.ctx[place] == address
    assert memory.capacity(LEXER_TRANSITIONS) == 2 * capacity
    assert memory.nbytes == nbytes + 4 * capacity
    most = tables._LAYOUT.most[LEXER_TRANSITIONS]
    memory.append(LEXER_TRANSITIONS, np.zeros(most - capacity, np.int32))
    assert memory.ctx[place] != address
    assert memory.used(LEXER_TRANSITIONS) == most + 5
    content = memory.get(LEXER_TRANSITIONS)
    assert np.array_equal(content[:capacity], np.arange(capacity))
    assert np.array_equal(content[capacity : capacity + 5], np.arange(5))


def test_tables_that_fill_up_together_grow_together() -> None:
    """A kernel that finds one too small runs again from its start, and would find the next one too small then."""
    made = Tables(1 << 30)
    before = {slot: made.capacity(slot) for slot in (DERIVATIVE_KEYS, LIFE_PLACES, EXPRESSIONS)}
    # A map is full when half of it is in use; LIFE_PLACES has room, and EXPRESSIONS just so.
    for slot, used in ((DERIVATIVE_KEYS, 3 / 8), (LIFE_PLACES, 1 / 2), (EXPRESSIONS, 7 / 8)):
        made.ctx[HEADER + 3 * slot + 2] = int(used * before[slot])
    made.reserve(LEXER_TRANSITIONS, made.capacity(LEXER_TRANSITIONS) + 1)
    assert made.capacity(DERIVATIVE_KEYS) > before[DERIVATIVE_KEYS]
    assert made.capacity(LIFE_PLACES) == before[LIFE_PLACES]
    assert made.capacity(EXPRESSIONS) > before[EXPRESSIONS]


def test_a_grammar_begins_with_room_for_what_follows_its_lexemes(vocabulary: constrain.Vocabulary) -> None:
    """Its first mask would be begun twice otherwise."""
    compiled = constrain.CompiledGrammar(constrain.Grammar.from_json_schema(SCHEMA).ir, vocabulary)
    made = compiled._tables
    assert made.capacity(FOLLOWED) >= made.used(LEXEMES) + made.used(NULLABLE)


def test_tables_that_grow_in_place_do_not_meet() -> None:
    """Each is filled with its own number up to where it would move."""
    memory = Tables(1 << 30)
    growing = [slot for slot in range(schemas.N_SLOTS) if tables._LAYOUT.most[slot] > schemas.SPECS[slot][1]]
    assert LEXER_TRANSITIONS in growing
    assert STATE_BUCKETS not in growing
    for slot in growing:
        memory.reserve(slot, tables._LAYOUT.most[slot])
        assert memory.capacity(slot) == tables._LAYOUT.most[slot]
        memory.array(slot).view(schemas.SPECS[slot][0])[:] = slot % 128
    for slot in growing:
        assert (memory.array(slot).view(schemas.SPECS[slot][0]) == slot % 128).all()
    assert (memory.array(STATE_BUCKETS) == -1).all()
    # What is not in use is given back.
    memory.shrink(growing, 1)
    assert memory.nbytes == Tables(1 << 30).nbytes


def test_the_rules_of_a_grammar_are_within_its_limit() -> None:
    """They are copied into tables that have room for all of them at once."""
    rules = "\n".join(f'r{i}: "a" r{i + 1} | "b" r{i + 1} "c" | "d"' for i in range(5000))
    ir = constrain.Grammar.from_lark(f'start: r0\n{rules}\nr5000: "c"').ir
    vocabulary = constrain.Vocabulary([b"a", b"b", b"c", b"d"])
    needed = constrain.CompiledGrammar(ir, vocabulary)._tables.nbytes
    constrain.CompiledGrammar(ir, vocabulary, limit_bytes=needed)
    with pytest.raises(LimitError, match=f"needs more than {needed - 1:,} bytes of tables .*raise limit_bytes"):
        constrain.CompiledGrammar(ir, vocabulary, limit_bytes=needed - 1)


def test_a_table_is_not_allocated_beyond_the_limit() -> None:
    memory = Tables(1 << 30)
    beyond = 4 * tables._LAYOUT.most[LEXER_TRANSITIONS]
    for capacity in (beyond, beyond // 2, beyond // 4):
        memory.limit_bytes = memory.nbytes + 4 * (capacity - memory.capacity(LEXER_TRANSITIONS)) - 1
        before = memory.nbytes, memory.capacity(LEXER_TRANSITIONS)
        with pytest.raises(LimitError, match="lexer transitions table is full"):
            memory.allocate(LEXER_TRANSITIONS, capacity)
        assert (memory.nbytes, memory.capacity(LEXER_TRANSITIONS)) == before
    # What takes no more than before is no matter of limits.
    memory.limit_bytes = 0
    memory.allocate(LEXER_TRANSITIONS, memory.capacity(LEXER_TRANSITIONS))


@pytest.mark.parametrize("slot", [schemas.EARLEY_ITEMS, schemas.STATE_BUCKETS, schemas.SCAN_KEYS])
def test_what_was_wanted_is_wanted_again_behind_what_is_left(slot: int) -> None:
    memory = Tables(1 << 30)
    counted = schemas.SPECS[slot][2] if schemas.SPECS[slot][2] >= 0 else slot
    memory.ctx[HEADER + 3 * counted + 2] = 200
    memory.want(slot, 1)
    assert memory.wanted() == (slot, 1)
    before = int(memory.ctx[NEED_SIZE])
    memory.ctx[HEADER + 3 * counted + 2] = 20
    memory.want(slot, 1)
    assert memory.wanted() == (slot, 1)
    assert 21 <= memory.ctx[NEED_SIZE] <= before // 9


def test_memory_is_what_has_been_written_to() -> None:
    memory = Tables(1 << 30)
    begin = memory.bytes_in_memory
    memory.append(LEXER_TRANSITIONS, np.arange(1 << 20, dtype=np.int32))
    memory.append(LEXER_TRANSITIONS, np.arange(5, dtype=np.int32))
    written = 4 * memory.used(LEXER_TRANSITIONS)
    assert memory.nbytes > begin + (7 << 20)
    assert 0 <= memory.bytes_in_memory - begin - written < 1 << 16
    # What was written once is in memory, although nothing is in use any more; but not behind the room that is kept.
    memory.ctx[HEADER + 3 * LEXER_TRANSITIONS + 2] = 10
    memory.keep_room({LEXER_TRANSITIONS: 1 << 18})
    assert memory.capacity(LEXER_TRANSITIONS) == 1 << 18
    assert 0 <= memory.bytes_in_memory - begin - (1 << 20) < 1 << 16
    address = memory.ctx[HEADER + 3 * LEXER_TRANSITIONS]
    memory.append(LEXER_TRANSITIONS, np.full(1 << 19, 7, np.int32))
    assert memory.ctx[HEADER + 3 * LEXER_TRANSITIONS] == address
    content = memory.get(LEXER_TRANSITIONS)
    assert np.array_equal(content[:10], np.arange(10))
    assert (content[10:] == 7).all()


def test_a_map_that_moved_by_half_is_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """What grows beside another table may fail, but for a map, whose values would be found under other keys then."""
    tables = Tables(1 << 24)
    tables.ctx[HEADER + 3 * DERIVATIVE_KEYS + 2] = tables.capacity(DERIVATIVE_KEYS)
    install = Tables._install

    def fail(self: Tables, slot: int, array: np.ndarray[Any, Any]) -> None:
        if slot == DERIVATIVE_KEYS:
            raise MemoryError
        install(self, slot, array)

    monkeypatch.setattr(Tables, "_install", fail)
    with pytest.raises(MemoryError):
        tables.reserve(EXPRESSIONS, tables.capacity(EXPRESSIONS) + 1)
