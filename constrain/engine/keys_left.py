"""Looking ahead where keys can run out: is another key left that the object does not have yet?

A grammar's keys may be so many and no more ({"^[ab]$": ...}), or a key may have come so far that it can only end in
ways that are taken.  So where a text has come to a comma, or is within a key that begins like an earlier one, one key
that is new is looked for, by going on byte by byte.  It is soon found if there is one: most keys differ from the others
after some bytes.

Only the next key is looked for: an object that needs three more keys may find that there are just two.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import int32, int64, types, uint8

from constrain.engine import states
from constrain.engine.cursor import Place, Traveller
from constrain.engine.distinct_keys import ObjectKeys
from constrain.engine.jit import njit_entry
from constrain.engine.key_status import LOOK_AHEAD
from constrain.engine.object_keys import (
    DEPTH,
    FRAMES,
    IN_VALUE,
    KEY_BYTES,
    KEYS,
    MODE,
    N_BYTES,
    N_KEYS,
    N_SCALARS,
    read_keys,
)
from constrain.engine.tables import CLASS_OF, CLASSES, CTX, i32, u8

if TYPE_CHECKING:
    from constrain.engine.bitmask import Bitmask
    from constrain.engine.compiled import CompiledGrammar

# States that the search for one new key may look at before it takes it that there is one.
_MOST_PLACES = 2000

_QUOTES = b'"'


@njit_entry(
    int64(CTX, CTX, types.Array(uint8, 1, "C", readonly=True), int64[::1], int32[::1], int32[:, ::1], int64, int32[::1])
)
def find_to_look_at(memory, ahead, data, starts, tokens, out, index, found):
    """Find the tokens of a mask after which it has to be looked for a new key.

    Parameters
    ----------
    memory, ahead : int64[...]
        The keys (object_keys.py), and a copy of them; both have room for any token.
    data, starts : uint8[n_bytes], int64[n_tokens + 1]
        Token ``i`` is ``data[starts[i]:starts[i + 1]]``.
    tokens : int32[n]
        The tokens to look at; none for all.
    out, index : int32[batch, words], int
        The mask.
    found : int32[n_tokens]
        Output.

    Returns
    -------
    How many.
    """
    count = 0
    n = len(tokens)
    for i in range(n if n else len(starts) - 1):
        token = int64(tokens[i]) if n else int64(i)
        if not (out[index, token >> 5] >> (token & 31)) & 1:
            continue
        status = read_keys(ahead, data, starts[token], starts[token + 1])
        if status >= 0 and status & LOOK_AHEAD:
            found[count] = token
            count += 1
        for j in range(N_SCALARS):
            ahead[j] = memory[j]
        # Where brackets closed, others may have been written over what was in them.
        for j in range(starts[token], starts[token + 1]):
            if data[j] == 0x5D or data[j] == 0x7D:
                for k in range(memory[DEPTH]):
                    i32(ahead, FRAMES)[k] = i32(memory, FRAMES)[k]
                for k in range(3 * memory[N_KEYS]):
                    i32(ahead, KEYS)[k] = i32(memory, KEYS)[k]
                for k in range(memory[N_BYTES]):
                    u8(ahead, KEY_BYTES)[k] = u8(memory, KEY_BYTES)[k]
                break
    return count


def forbid_dead_ends(compiled: CompiledGrammar, place: Place, keys: ObjectKeys, out: Bitmask, index: int) -> None:
    """Take the tokens behind which no new key is left out of row ``index`` of a mask.

    The caller holds the lock of the compiled grammar.
    """
    vocabulary = compiled.vocabulary
    keys.make_room(vocabulary.trie.depth)
    ahead = keys.copy()
    inside = keys.memory[MODE] == IN_VALUE
    tokens = keys.quotes.tokens if inside else np.empty(0, np.int32)
    if inside and not len(tokens):
        return
    found = np.empty(vocabulary.size, np.int32)
    count = find_to_look_at(keys.memory, ahead.memory, vocabulary.data, vocabulary.starts, tokens, out, index, found)
    row = out[index]
    for token in found[:count].tolist():
        there = Traveller(compiled, place._state, place._parent)
        there.read(vocabulary.tokens[token])
        behind = keys.copy()
        behind.read_token(vocabulary, token)
        if not has_key_left(compiled, there, behind):
            row[token >> 5] &= ~np.uint32(1 << (token & 31)).astype(np.int32)


def has_key_left(compiled: CompiledGrammar, place: Place, keys: ObjectKeys) -> bool:
    """Whether the object at a place can get a key that it does not have; the keys are those at the place.

    The caller holds the lock of the compiled grammar.
    """
    tables = compiled._tables
    class_of = tables.array(CLASS_OF)
    classes = [bytes(np.flatnonzero(class_of == number).tolist()) for number in range(tables.ctx[CLASSES])]
    todo = [(place, keys)]
    generation = compiled.generation
    tried: set[tuple[int, bytes]] = set()
    while todo:
        here, known = todo.pop()
        if compiled.generation != generation:
            # States have new numbers.
            generation, tried = compiled.generation, set()
        been = here._state, known.key_under_way()
        if been in tried:
            continue
        tried.add(been)
        if len(tried) > _MOST_PLACES:
            return True
        for members in [_QUOTES] if _is_possible(compiled, here, _QUOTES) and not known.is_in_key() else classes:
            if not _is_possible(compiled, here, members):
                continue
            there = Traveller(compiled, here._state, here._parent)
            there.read(members[:1])
            for byte in members:
                behind = known.copy()
                behind.read(bytes((byte,)))
                if behind.status >= 0 and behind.status & LOOK_AHEAD:
                    todo.append((there, behind))
                elif behind.status >= 0:
                    # A key that is new has ended, or none that is there begins like the one under way, which can end.
                    return True
    return False


def _is_possible(compiled: CompiledGrammar, place: Place, members: bytes) -> bool:
    """Whether the text at a place can go on with any of some bytes of one class."""
    return compiled.run_at(place, states.push_byte, members[0]) != 0
