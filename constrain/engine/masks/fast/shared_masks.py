"""Shared masks: lexer masks that the grammars of a vocabulary have in common.

Expressions that many grammars share have the same lexer mask in all of them.  The vocabulary keeps the large ones
(vocabulary/shared_masks.py), found by a fingerprint of the expressions; so does the disk.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from constrain.engine.automata.fingerprints import SHARED_MEMBERS, has_print, hint_of, print_state
from constrain.engine.automata.lexer_states import CLOSURE, NO_DENSE, NOT_SPLIT
from constrain.engine.masks.fast.repetitions import count_repetitions
from constrain.engine.masks.lexer_masks import FIRST_SHARED, add_dense, allow_listed, clear_scratch
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import room, set_used, used
from constrain.engine.storage.header import N_WORDS, NEW_MASK, RESULT1, RESULT2
from constrain.engine.storage.jit import njit_entry, njit_inner
from constrain.engine.storage.links import F_ACCEPT_SET, F_OFFER, F_SHARED_MASK, far_call, far_entry
from constrain.engine.storage.statuses import FAIL, NOT_MINE
from constrain.kernels.language import int64

if TYPE_CHECKING:
    from constrain.engine.vocabulary.vocabulary import Vocabulary


@njit_inner(RESULT2)
def _accept_set(ctx, offset, members):
    """The accept set of some members (a set of bits) of the lexer state whose members begin at ``offset``, or FAIL."""
    base = used(ctx, t.WORK_STACK)
    n = 0
    for member in range(SHARED_MEMBERS):
        if (members >> member) & 1:
            t.work_stack(ctx)[base + n] = t.lexer_members(ctx)[offset + 2 * member]
            n += 1
    return far_call(ctx, F_ACCEPT_SET, base, n)


@njit_inner(RESULT1)
def _find(ctx, lexer_state):
    """Which of the vocabulary's lexer masks is that of a state; NOT_MINE if none is, or FAIL."""
    prints = t.shared_prints(ctx)
    # The fingerprint of a large enumeration takes long.  It is asked for only if the hints are the same.
    hints, hint = t.shared_hints(ctx), hint_of(ctx, lexer_state)
    asked = False
    first_half, second_half = int64(0), int64(0)
    for entry in range(t.shared_counts(ctx)[0]):
        if hints[entry] != hint:
            continue
        if not asked:
            if print_state(ctx, lexer_state) < 0:
                return int64(FAIL)
            first_half, second_half = t.hashed_words(ctx)[0], t.hashed_words(ctx)[1]
            asked = True
        if prints[entry, 0] == first_half and prints[entry, 1] == second_half:
            return int64(entry)
    return int64(NOT_MINE)


@njit_inner(RESULT2)
def import_mask(ctx, lexer_state, _unused):
    """Take the lexer mask from the vocabulary's; returns 0, NOT_MINE if it is not there, FAIL or LIMIT."""
    if not has_print(ctx, lexer_state):
        return int64(NOT_MINE)
    entry = _find(ctx, lexer_state)
    if entry < 0:
        return entry
    begin, count = t.shared_masks(ctx)[entry].boundaries, t.shared_masks(ctx)[entry].boundary_count
    offset = t.lexer_states(ctx)[lexer_state].offset
    if t.lexer_members(ctx)[offset] == CLOSURE:
        t.lexer_masks(ctx)[lexer_state] = FIRST_SHARED - entry, 0, 0, begin, count
        return int64(0)
    if not room(ctx, t.BOUNDARIES, count) or not room(ctx, t.WORK_STACK, SHARED_MEMBERS):
        return int64(FAIL)
    shared = t.shared_boundaries(ctx)
    pairs = t.boundaries(ctx)
    first = used(ctx, t.BOUNDARIES)
    last_members, accept = int64(0), int64(0)
    for i in range(count):
        # Which members can end here is kept by position; lexeme numbers differ between grammars.
        members = shared[begin + i].accept
        if members != last_members:
            last_members = members
            accept = _accept_set(ctx, offset, members)
            if accept < 0:
                return accept
        pairs[first + i] = shared[begin + i].node, accept
    set_used(ctx, t.BOUNDARIES, first + count)
    t.lexer_masks(ctx)[lexer_state] = FIRST_SHARED - entry, 0, 0, first, count
    return int64(0)


far_entry(F_SHARED_MASK, import_mask)


@njit_inner(RESULT2)
def offer(ctx, lexer_state, replaces):
    """Note that the lexer mask of a state is worth sharing (NEW_MASK), if it can be; one at a time.

    ``replaces`` is 1 if it is worth more than what may have been noted before.
    """
    if (replaces or ctx[NEW_MASK] < 0) and has_print(ctx, lexer_state):
        ctx[NEW_MASK] = lexer_state
    return int64(0)


far_entry(F_OFFER, offer)


@njit_inner(RESULT2)
def _accepting_members(ctx, lexer_state, accept):
    """Which members of a lexer state are in an accept set, as bits by their position."""
    lexeme = t.accept_sets(ctx)[accept].offset
    stop = lexeme + t.accept_sets(ctx)[accept].count
    offset = t.lexer_states(ctx)[lexer_state].offset
    members = int64(0)
    for member in range(t.lexer_states(ctx)[lexer_state].count):
        if lexeme < stop and t.lexer_members(ctx)[offset + 2 * member] == t.accept_members(ctx)[lexeme]:
            members |= int64(1) << member
            lexeme += 1
    return members


@njit_entry(RESULT1)
def write_shared_mask(ctx, lexer_state):
    """Write a dense lexer mask behind the vocabulary's shared ones.

    Returns 1; 0 if it cannot be shared, or there is no room; 2 if it is a star closure that is there already; or FAIL.
    It becomes visible when the caller, who holds the lock of the shared masks, advances SHARED_COUNTS[0].
    """
    counts = t.shared_counts(ctx)
    entry = counts[0]
    record = t.lexer_masks(ctx)
    begin, count = record[lexer_state].boundaries, record[lexer_state].boundary_count
    dense = record[lexer_state].dense
    closure = t.lexer_members(ctx)[t.lexer_states(ctx)[lexer_state].offset] == CLOSURE
    if closure and dense <= FIRST_SHARED:
        return int64(2)
    if (
        dense in (NO_DENSE, NOT_SPLIT)
        or not has_print(ctx, lexer_state)
        or entry == t.MOST_SHARED
        or counts[1] + count > t.MOST_SHARED_BOUNDARIES
    ):
        return int64(0)
    if print_state(ctx, lexer_state) < 0:
        return int64(FAIL)
    first_half, second_half = t.hashed_words(ctx)[0], t.hashed_words(ctx)[1]
    # What is in the list goes into the dense mask: whoever imports it has no list then.
    clear_scratch(ctx)
    add_dense(ctx, dense)
    allow_listed(ctx, record[lexer_state].tokens, record[lexer_state].token_count)
    words = ctx[N_WORDS]
    scratch, target = t.scratch_mask(ctx), t.shared_dense(ctx)
    for i in range(words):
        target[entry * words + i] = scratch[i]
    shared = t.shared_boundaries(ctx)
    for i in range(count):
        shared[counts[1] + i] = t.boundaries(ctx)[begin + i]
        if not closure:
            shared[counts[1] + i].accept = _accepting_members(ctx, lexer_state, t.boundaries(ctx)[begin + i].accept)
    t.shared_masks(ctx)[entry] = counts[1], count
    counts[1] += count
    prints = t.shared_prints(ctx)
    prints[entry, 0], prints[entry, 1] = first_half, second_half
    t.shared_hints(ctx)[entry] = hint_of(ctx, lexer_state)
    return int64(1)


@njit_entry(RESULT1)
def shared_entry(ctx, lexer_state):
    """Which of the vocabulary's shared masks a state's is."""
    return FIRST_SHARED - t.lexer_masks(ctx)[lexer_state].dense


def publish(vocabulary: Vocabulary, run: Callable[..., int], lexer_state: int) -> None:
    """Share the mask of a lexer state with all grammars of a vocabulary, or sort the tokens of a shared star closure.

    ``run`` runs a kernel in the grammar of the state.
    """
    shared = vocabulary.shared
    with shared.lock:
        result = run(write_shared_mask, lexer_state)
        if result == 1:
            shared.add()
        elif result == 2 and shared.can_count():
            entry = run(shared_entry, lexer_state)
            if not shared.is_counted(entry):
                shared.set_counted(entry, bool(run(count_repetitions, lexer_state)))
