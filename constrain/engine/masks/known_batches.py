"""The kernels of masks/batches.py, masks/drafts.py and accepting.py, in a file that imports kernels only."""

# mypy: allow-untyped-defs

from __future__ import annotations

from constrain.engine.automata.lexer_states import NOT_SPLIT
from constrain.engine.masks.state_masks import write_mask
from constrain.engine.parser.companions import STATE_BITS
from constrain.engine.parser.configurations import ENDED, NO_MASK, accepts, push_token
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import context_at, used
from constrain.engine.storage.header import CTX, NEW_MASK
from constrain.engine.storage.jit import njit_entry, njit_inner
from constrain.kernels.language import boolean, int32, int64, uint8, uint64, void

KNOWN, QUICK, ALL = 0, 1, 2
"""Which masks are written: those that are known; also those that are put together of lexer masks; and all others."""


@njit_inner(boolean(CTX, int64))
def _is_quick(ctx, state):
    """Whether the lexer masks are known that the mask of a state is made of."""
    first = t.states(ctx)[state].offset
    for i in range(first, first + t.states(ctx)[state].count):
        if t.lexer_masks(ctx)[t.configurations(ctx)[i].lexer_state].dense == NOT_SPLIT:
            return False
    return True


@njit_inner(boolean(CTX, int64, int32[:, ::1], int64, int64))
def _write_mask(ctx, state, out, row, what):
    """Write the mask of a state, if it is one of ``what`` and does not depend on the text; whether it is so."""
    if uint64(state) >= uint64(used(ctx, t.STATE_HASHES)):
        return False
    # One lexer mask can wait to be published; another one would not be shared.
    if t.state_masks(ctx)[state].dense == NO_MASK and (
        what == KNOWN or ctx[NEW_MASK] >= 0 or (what == QUICK and not _is_quick(ctx, state))
    ):
        return False
    return write_mask(ctx, state, out, row) == 0


@njit_inner(void(int32[::1]))
def _clear(row):
    for j in range(len(row)):
        row[j] = 0


@njit_entry(int64(int64[::1], int64[::1], int64[::1], int64, int32[:, ::1], int64[::1]))
def write_masks(contexts, states, rows, what, out, missing):
    """Write the masks that are known, or can be made without more room.

    Parameters
    ----------
    contexts : int64[n]
        Address of each sequence's ``ctx``, whose lock the caller holds.
    states : int64[n]
        State of each sequence; ENDED after an end token, where nothing is allowed.
    rows : int64[n]
        The row of ``out`` for each sequence.
    what : int
        KNOWN, QUICK or ALL.
    out : int32[batch, words]
    missing : int64[n]
        Output: the positions whose mask has yet to be computed.

    Returns
    -------
    How many are missing.
    """
    count = 0
    for i in range(len(states)):
        if states[i] == ENDED:
            _clear(out[rows[i]])
            continue
        if not _write_mask(context_at(contexts[i]), states[i], out, rows[i], what):
            missing[count] = i
            count += 1
    return count


@njit_entry(int64(int64[::1], int64[::1], int64[::1], int64[::1], int64[::1]))
def push_tokens(contexts, states, tokens, companions, results):
    """Take a token with each of some sequences.

    Parameters
    ----------
    contexts, states, companions : int64[n]
        Address of each sequence's ``ctx``, whose lock the caller holds; its state; the address of its companion.
    tokens : int64[n]
        Its token, which is one of text.
    results : int64[n]
        Output: what push_token returns.

    Returns
    -------
    0.
    """
    for i in range(len(states)):
        results[i] = push_token(context_at(contexts[i]), states[i], tokens[i], context_at(companions[i]))
    return int64(0)


IS_TEXT, IS_END = 0, 2
"""Kinds of token; others are not allowed (Vocabulary.kinds)."""


@njit_entry(
    int64(
        *(int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], uint8[::1], int64[::1]),
        *(int64[::1], int32[:, ::1], int64[::1], int64[::1], int64[::1]),
    )
)
def write_known_drafts(
    contexts, states, companions, starts, tokens, kinds, parents, rows, out, reached, counts, missing
):
    """Write the masks before and behind the tokens of drafts, for sequences with which all of that is known.

    Parameters
    ----------
    contexts, states, companions : int64[n]
        As for :func:`push_tokens`; a companion is a copy that may be changed.
    starts : int64[n + 1]
        The draft of sequence ``i`` is ``tokens[starts[i]:starts[i + 1]]``.
    tokens : int64[m]
    kinds : uint8[m]
        What each of them is.
    parents : int64[m]
        The token of the draft before each, by its place in the draft, which is a smaller one; -1 for none.
    rows : int64[n]
        The row of ``out`` for the place before the draft; those behind its tokens follow.
    out : int32[batch, words]
    reached : int64[m]
        Scratch.
    counts : int64[n]
        Output: how many tokens of each draft are legal.
    missing : int64[n]
        Output: the sequences that have yet to be done.

    Returns
    -------
    How many are missing.
    """
    count = 0
    for i in range(len(states)):
        ctx = context_at(contexts[i])
        companion = context_at(companions[i])
        first, n = starts[i], starts[i + 1] - starts[i]
        counts[i] = 0
        known = states[i] == ENDED or _write_mask(ctx, states[i], out, rows[i], KNOWN)
        if states[i] == ENDED:
            _clear(out[rows[i]])
        j = int64(0)
        while known and j < n:
            before = states[i] if parents[first + j] < 0 else reached[first + parents[first + j]]
            kind = kinds[first + j]
            state = int64(0)
            if before > 0 and kind == IS_TEXT:
                result = push_token(ctx, before, tokens[first + j], companion)
                # A question to conditions, a note of theirs about the mask, or a status.
                known = 0 <= result <= STATE_BITS
                state = result
            elif before > 0 and kind == IS_END and accepts(ctx, before):
                state = int64(ENDED)
            reached[first + j] = state
            counts[i] += int64(state != 0)
            row = rows[i] + 1 + j
            if known and state > 0:
                known = _write_mask(ctx, state, out, row, KNOWN)
            elif known:
                _clear(out[row])
            j += 1
        if not known:
            missing[count] = i
            count += 1
    return count
