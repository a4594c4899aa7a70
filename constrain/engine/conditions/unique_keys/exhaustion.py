"""Looking ahead where keys can run out: is another key left that the object does not have yet?

A grammar's keys may be so many and no more ({"^[ab]$": ...}), or a key may have come so far that it can only end in
ways that are taken.  So where a text has come to a comma, or is within a key that begins like an earlier one, one key
that is new is looked for: kernels count the ways in which a key can go on, and those that are taken (masks.py).
They do not follow what the search byte by byte below does: an escape that is under way, rules that are made as a text
comes to them, characters that can only be escaped.

Only the next key is looked for.  That there are as many as the object still needs is for the grammar to see to, which
counts the keys of a kind without telling them apart.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from typing import Final

import numpy as np

from constrain.engine.conditions.unique_keys.limited_keys import LimitedKeys
from constrain.engine.conditions.unique_keys.memory import DEPTH, N_KEYS
from constrain.engine.conditions.unique_keys.object_keys import ObjectKeys
from constrain.engine.conditions.unique_keys.status import LOOK_AHEAD, MAY_RUN_OUT
from constrain.engine.grammar_tables import GrammarTables
from constrain.engine.history import Place
from constrain.engine.parser.configurations import reset_work
from constrain.engine.storage.header import CLASSES, CTX
from constrain.engine.storage.jit import njit_entry
from constrain.engine.storage.links import F_STEP, far_call
from constrain.engine.storage.schemas import byte_classes
from constrain.engine.traveller import place_behind
from constrain.engine.vocabulary.bitmasks import Bitmask, allow
from constrain.kernels.language import int64, uint8

# States that the search byte by byte for one new key may look at before it takes it that there is one.
_MOST_PLACES: Final = 2000

_QUOTE: Final = ord('"')


def limited_keys(compiled: GrammarTables) -> LimitedKeys:
    """What is known of the limited keys of a grammar, which has some.  The caller holds its lock."""
    return compiled.kept(LimitedKeys)


def forbid_dead_ends(compiled: GrammarTables, place: Place, keys: ObjectKeys, out: Bitmask, index: int) -> None:
    """Take the tokens behind which no new key is left out of row ``index`` of a mask.

    The caller holds the lock of the compiled grammar.
    """
    keys.look_for_dead_ends()
    if not keys.status & MAY_RUN_OUT:
        return
    vocabulary = compiled.vocabulary
    found = limited_keys(compiled).forbid(place, keys, out, index)
    # What was found out for states behind a quote, for which blanks before it make no difference.
    known: dict[tuple[int, bytes], bool] = {}
    generation = compiled.generation
    for token in found:
        there = place_behind(compiled, place, vocabulary.tokens[token])
        behind = keys.copy()
        behind.expect_limited_keys()
        behind.read_token(vocabulary, token)
        if not behind.is_in_key():
            begun = place_behind(compiled, there, b'"')
            if begun._state:
                there = begun
                behind.read(b'"')
        if compiled.generation != generation:
            generation, known = compiled.generation, {}
        which = there._state, behind.key_under_way() + bytes(behind.memory[[DEPTH, N_KEYS]])
        if which not in known:
            known[which] = _search_key(compiled, there, behind)
        if known[which]:
            allow(out[index], token)


def has_key_left(compiled: GrammarTables, place: Place, keys: ObjectKeys) -> bool:
    """Whether the object at a place can get a key that it does not have; the keys are those at the place.

    The caller holds the lock of the compiled grammar.
    """
    is_left = limited_keys(compiled).is_left(place, keys)
    return _search_key(compiled, place, keys) if is_left is None else is_left


@njit_entry(int64(CTX, int64, uint8[::1]))
def find_next_bytes(ctx, state, out):
    """Write to ``out`` (uint8[256]) whether each byte may come next; returns 0, FAIL, LIMIT or UNMADE."""
    reset_work(ctx)
    for byte_class in range(ctx[CLASSES]):
        then = far_call(ctx, F_STEP, state, int64(byte_class))
        if then < 0:
            return then
        for byte in range(256):
            if byte_classes(ctx)[byte] == byte_class:
                out[byte] = then > 0
    return int64(0)


def _search_key(compiled: GrammarTables, place: Place, keys: ObjectKeys) -> bool:
    """:func:`has_key_left` byte by byte."""
    todo = [(place, keys)]
    generation = compiled.generation
    tried: set[tuple[int, bytes]] = set()
    possible = np.empty(256, np.uint8)
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
        compiled.run_at(here, find_next_bytes, possible)
        following = np.flatnonzero(possible).tolist()
        if known.is_in_key():
            taken = known.bytes_taken()
            if taken is not None and not taken.issuperset(following):
                # No key that is there goes on so.
                return True
        elif _QUOTE in following:
            following = [_QUOTE]
        for byte in reversed(following):
            behind = known.copy()
            behind.read(bytes((byte,)))
            if behind.status < 0:
                continue
            if not behind.status & LOOK_AHEAD:
                # A key that is new has ended, or none that is there begins like the one under way, which can end.
                return True
            todo.append((place_behind(compiled, here, bytes((byte,))), behind))
    return False
