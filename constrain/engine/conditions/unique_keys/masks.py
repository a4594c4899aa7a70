"""Whether a key is left that an object does not have, here or behind a token: the kernels of exhaustion.py."""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.conditions.unique_keys import memory as m
from constrain.engine.conditions.unique_keys.reading import read_keys, same_run
from constrain.engine.conditions.unique_keys.status import LOOK_AHEAD
from constrain.engine.conditions.unique_keys.ways import KNOWN, MOST_BLANKS, after_key, count_ways, step
from constrain.engine.parser.configurations import reset_work
from constrain.engine.storage.access import memory_i32, memory_u8
from constrain.engine.storage.header import CTX
from constrain.engine.storage.jit import njit_entry, njit_inner
from constrain.engine.storage.links import F_STEP
from constrain.engine.storage.statuses import UNSURE
from constrain.kernels.language import int32, int64, types, uint8

_TEXT = types.Array(uint8, 1, "C", readonly=True)


@njit_inner(int64(CTX, CTX, int64))
def _after_quote(ctx, memory, state):
    """The state in the key that is under way, or comes next; 0, or < 0: UNSURE, FAIL and its like."""
    if memory[m.ESCAPE] or memory[m.HIGH]:
        return int64(UNSURE)
    if memory[m.MODE] == m.IN_KEY:
        return state
    for _ in range(MOST_BLANKS):
        then = step(ctx, int64(F_STEP), state, int64(0x22))
        if then != 0:
            return then
        for blank in (0x20, 0x0A, 0x0D, 0x09):
            if then == 0:
                then = step(ctx, int64(F_STEP), state, int64(blank))
        state = then
    return int64(UNSURE)


@njit_inner(int64(CTX, CTX, int64, int64, int64[::1]))
def _find_key_left(ctx, memory, state, further, work):
    """Whether the object can get a key that it does not have: 1 or 0; < 0: UNSURE, FAIL and its like.

    ``state`` is that within the key; ``further``: 1 if it may not end there, else 0.
    """
    if state <= 0:
        return state
    begin = memory[m.BEGIN] if memory[m.MODE] == m.IN_KEY else memory[m.N_BYTES]
    length = memory[m.N_BYTES] - begin
    keys = memory_i32(memory, m.KEYS)
    data = memory_u8(memory, m.KEY_BYTES)
    first = int64(memory_i32(memory, m.FRAMES)[memory[m.DEPTH] - 1])
    # Those that go on from here, and those of them that can.
    there, possible = int64(0), int64(0)
    ways = int64(0)
    for only_possible in range(2):
        if only_possible:
            ways = count_ways(ctx, int64(F_STEP), state, there + further, work)
            if ways < 0 or ways > there + further:
                return min(ways, int64(1))
            if further:
                then = step(ctx, int64(F_STEP), state, int64(0x22))
                if then < 0:
                    return then
                ways -= then > 0
        for key in range(first, memory[m.N_KEYS]):
            start, end = int64(keys[3 * key]), int64(keys[3 * key + 1])
            if end - start < length + further or not same_run(data, start, data, begin, length):
                continue
            if only_possible:
                then = after_key(ctx, memory, int64(F_STEP), state, start + length, end, work)
                if then > 0:
                    then = step(ctx, int64(F_STEP), then, int64(0x22))
                if then < 0:
                    return then
                possible += then > 0
            else:
                there += 1
    return int64(1 if ways > possible else 0)


@njit_inner(types.void(CTX, CTX))
def _copy_keys(memory, ahead):
    """Let ``ahead`` be as ``memory``."""
    for i in range(m.N_SCALARS):
        ahead[i] = memory[i]
    for i in range(memory[m.DEPTH]):
        memory_i32(ahead, m.FRAMES)[i] = memory_i32(memory, m.FRAMES)[i]
    for i in range(3 * memory[m.N_KEYS]):
        memory_i32(ahead, m.KEYS)[i] = memory_i32(memory, m.KEYS)[i]
    for i in range(memory[m.N_BYTES]):
        memory_u8(ahead, m.KEY_BYTES)[i] = memory_u8(memory, m.KEY_BYTES)[i]


@njit_inner(int64(CTX, int64, CTX, CTX, _TEXT, int64[::1], int64, int64[::1]))
def _is_possible(ctx, state, memory, ahead, data, starts, token, work):
    """Whether a key is left behind a token, where that has to be asked: 1 or 0; < 0: UNSURE, FAIL and its like.

    ``ahead``, a copy of ``memory``, is that again afterwards.
    """
    result = int64(1)
    status = read_keys(ahead, data, starts, token)
    if status >= 0 and status & LOOK_AHEAD:
        result = int64(0)
        # Where a key is expected there is one, and so there is behind blanks and its quote.
        if memory[m.EXPECTS_KEY] and ahead[m.DEPTH] == memory[m.DEPTH] and ahead[m.N_KEYS] == memory[m.N_KEYS]:
            if ahead[m.EXPECTS_KEY] or (ahead[m.N_BYTES] == ahead[m.BEGIN] and not ahead[m.ESCAPE]):
                result = int64(1)
    if result == 0:
        first, last = starts[token], starts[token + 1]
        # Any character may be escaped, so what has been read of one, up to the u, says no more than that there is one.
        further = int64(0)
        if 0 < ahead[m.ESCAPE] <= 2 and last - first >= ahead[m.ESCAPE] and not ahead[m.HIGH]:
            last -= ahead[m.ESCAPE]
            further, ahead[m.ESCAPE] = int64(1), 0
        # Where no key has ended, and none has begun, all that matters is which object it is.
        is_plain = ahead[m.MODE] != m.IN_KEY or (further == 0 and ahead[m.N_BYTES] == ahead[m.BEGIN])
        for i in range(first, last):
            is_plain &= data[i] != 0x3A
            state = step(ctx, int64(F_STEP), state, int64(data[i]))
        state = _after_quote(ctx, ahead, state)
        place = KNOWN + 2 * (state & 7)
        if is_plain and work[place] == state and work[place + 1] >> 1 == ahead[m.DEPTH]:
            result = work[place + 1] & 1
        else:
            result = _find_key_left(ctx, ahead, state, further, work)
            if is_plain and result >= 0:
                work[place], work[place + 1] = state, ahead[m.DEPTH] << 1 | result
    # Where brackets closed, others may have been written over what was in them.
    for i in range(starts[token], starts[token + 1]):
        if data[i] == 0x5D or data[i] == 0x7D:
            _copy_keys(memory, ahead)
            break
    for i in range(m.N_SCALARS):
        ahead[i] = memory[i]
    ahead[m.DEAD_END], ahead[m.IS_LIMITED] = 0, 1
    return result


@njit_inner(int64(int32[:, ::1], int64, int32[::1], int64, int64))
def _take(out, index, found, count, token):
    """Take a token out of a mask, if it is there, and add it to the ``count`` in ``found``: how many there are then."""
    word, bit = token >> 5, int64(1) << (token & 31)
    if out[index, word] & bit:
        out[index, word] &= ~bit
        found[count] = token
        count += 1
    return count


@njit_inner(int64(CTX, int32[::1], int32[::1], int32[::1], int32[::1], int32[:, ::1], int64, int32[::1], int64))
def _take_beginnings(memory, node, size, leaf, same, out, index, found, count):
    """Take the tokens with which the key under way goes on like another, as it is spelled, and does not end."""
    keys = memory_i32(memory, m.KEYS)
    data = memory_u8(memory, m.KEY_BYTES)
    begin = memory[m.BEGIN]
    length = memory[m.N_BYTES] - begin
    for key in range(int64(memory_i32(memory, m.FRAMES)[memory[m.DEPTH] - 1]), memory[m.N_KEYS]):
        start, end = int64(keys[3 * key]), int64(keys[3 * key + 1])
        if keys[3 * key + 2] & m.LIMITED == 0 or end - start <= length or end - start < memory[m.DEAD_END]:
            continue
        if not same_run(data, start, data, begin, length):
            continue
        place, last = int64(0), int64(len(node))
        for i in range(start + length, end):
            while place < last and node[place] & 255 != data[i]:
                place += int64(size[place])
            if place >= last or data[i] == 0x22 or data[i] == 0x5C:
                break
            token = int64(leaf[place])
            while token >= 0:
                count = _take(out, index, found, count, token)
                token = int64(same[token]) if len(same) else int64(-1)
            last = place + int64(size[place])
            place += 1
    return count


@njit_entry(
    int64(
        *(CTX, int64, CTX, CTX, _TEXT, int64[::1], int32[::1], int32[::1], int32[::1], int32[::1], int32[::1]),
        *(int32[::1], int32[:, ::1], int64, int32[::1], int64[::1]),
    )
)
def forbid_dead_ends(
    ctx, state, memory, ahead, data, starts, lists, ends, node, size, leaf, same, out, index, found, work
):
    """Take the tokens behind which no new key is left out of a mask; or say whether one is left here, if there is none.

    It is one kernel for both since half of it is the same, and takes a second to compile.

    Parameters
    ----------
    memory, ahead : int64[...]
        The keys at the state, and room for them and any token.
    data, starts : uint8[n_bytes], int64[n_tokens + 1]
        Token ``i`` is ``data[starts[i]:starts[i + 1]]``.
    lists, ends : int32[...], int32[4]
        One after the other, tokens: with a comma behind a quote; with a comma, but not so; with a quote first; and with
        a backslash.
    node, size, leaf, same : int32[...]
        TokenTrie.node, size, token and same.
    out, index : int32[batch, words], int
        The mask; none if ``index < 0``.
    found : int32[n_tokens]
        Output: the tokens for which it was not found out; they are taken out as well.
    work : int64[WORK_SIZE]

    Returns
    -------
    How many these are; or FAIL and its like, and there are none.  Without a mask: 1, 0 or UNSURE.
    """
    reset_work(ctx)
    if index < 0:
        return _find_key_left(ctx, memory, _after_quote(ctx, memory, state), int64(0), work)
    mode = memory[m.MODE]
    count = int64(0)
    for which in range(4):
        # To where a key is expected, or one has begun, leads a comma; a key begins; it goes on, or ends before a comma.
        if which == 0 or (
            (which == 1 and mode == m.OUTSIDE)
            or (which == 2 and memory[m.EXPECTS_KEY])
            or (which == 3 and mode == m.IN_KEY)
        ):
            for i in range(ends[which - 1] if which > 0 else 0, ends[which]):
                count = _take(out, index, found, count, int64(lists[i]))
    if mode == m.IN_KEY:
        if memory[m.ESCAPE] or memory[m.HIGH]:
            for token in range(len(starts) - 1):
                if token >> 5 < out.shape[1]:
                    count = _take(out, index, found, count, int64(token))
        else:
            count = _take_beginnings(memory, node, size, leaf, same, out, index, found, count)
    if count == 0:
        return count
    _copy_keys(memory, ahead)
    # A key may end within a token.
    ahead[m.DEAD_END], ahead[m.IS_LIMITED] = 0, 1
    for i in range(8):
        work[KNOWN + 2 * i] = 0
    unsure, result = int64(0), int64(0)
    for i in range(count):
        token = int64(found[i])
        if result == 0 or result == 1 or result == UNSURE:
            result = _is_possible(ctx, state, memory, ahead, data, starts, token, work)
        if result == UNSURE:
            found[unsure] = token
            unsure += 1
        elif result != 0:
            out[index, token >> 5] |= int64(1) << (token & 31)
    if result >= 0 or result == UNSURE:
        return unsure
    for i in range(unsure):
        out[index, found[i] >> 5] |= int64(1) << int64(found[i] & 31)
    return result
