"""The keys of the objects that are open in a JSON text, as kernels read it on.

The text is a prefix of JSON, which the grammar sees to, so nothing is checked here but whether a key comes again.  Keys
are kept as the UTF-8 they stand for, however they are spelled.

The memory is laid out in unique_keys/memory.py.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.conditions.unique_keys import memory as m
from constrain.engine.parser.companions import UNREAD
from constrain.engine.storage.access import memory_i32, memory_u8
from constrain.engine.storage.header import CTX
from constrain.engine.storage.jit import njit_entry, njit_inner
from constrain.engine.storage.links import F_READ_ALONG, far_entry
from constrain.engine.storage.statuses import KEYS_FULL, REPEATED_KEY
from constrain.kernels.language import int32, int64, types, uint8

_TEXT = types.Array(uint8, 1, "C", readonly=True)


@njit_inner(types.void(CTX, int64))
def _append_point(memory, point):
    """Add a code point as UTF-8 to the bytes."""
    out = memory_u8(memory, m.KEY_BYTES)
    at = memory[m.N_BYTES]
    if point < 0x80:
        out[at] = point
        at += 1
    elif point < 0x800:
        out[at] = 0xC0 | point >> 6
        out[at + 1] = 0x80 | point & 0x3F
        at += 2
    elif point < 0x10000:
        out[at] = 0xE0 | point >> 12
        out[at + 1] = 0x80 | (point >> 6) & 0x3F
        out[at + 2] = 0x80 | point & 0x3F
        at += 3
    else:
        out[at] = 0xF0 | point >> 18
        out[at + 1] = 0x80 | (point >> 12) & 0x3F
        out[at + 2] = 0x80 | (point >> 6) & 0x3F
        out[at + 3] = 0x80 | point & 0x3F
        at += 4
    memory[m.N_BYTES] = at


@njit_inner(int64(int64))
def _short_escape(byte):
    """The character that a backslash and this letter stand for."""
    if byte == 0x62:
        return int64(0x08)
    if byte == 0x66:
        return int64(0x0C)
    if byte == 0x6E:
        return int64(0x0A)
    if byte == 0x72:
        return int64(0x0D)
    if byte == 0x74:
        return int64(0x09)
    return byte


@njit_inner(types.boolean(uint8[::1], int64, uint8[::1], int64, int64))
def same_run(left, begin, right, first, count):
    """Whether ``left[begin:][:count]`` and ``right[first:][:count]`` are the same bytes."""
    i = int64(0)
    while i < count and left[begin + i] == right[first + i]:
        i += 1
    return i == count


@njit_inner(types.boolean(CTX))
def _is_repeated(memory):
    """Whether the key under way, if it ended here, would be there twice."""
    keys = memory_i32(memory, m.KEYS)
    data = memory_u8(memory, m.KEY_BYTES)
    begin, end = memory[m.BEGIN], memory[m.N_BYTES]
    for key in range(int64(memory_i32(memory, m.FRAMES)[memory[m.DEPTH] - 1]), memory[m.N_KEYS]):
        place = int64(keys[3 * key])
        if int64(keys[3 * key + 1]) - place == end - begin and same_run(data, place, data, begin, end - begin):
            return True
    return False


@njit_inner(types.boolean(CTX, int64))
def _goes_on_with(memory, byte):
    """Whether a key that is there may be the one under way, this byte and more."""
    keys = memory_i32(memory, m.KEYS)
    data = memory_u8(memory, m.KEY_BYTES)
    length = memory[m.N_BYTES] - memory[m.BEGIN]
    for key in range(int64(memory_i32(memory, m.FRAMES)[memory[m.DEPTH] - 1]), memory[m.N_KEYS]):
        place = int64(keys[3 * key]) + length
        if place < int64(keys[3 * key + 1]) and data[place] == byte:
            return True
    return False


@njit_inner(int64(CTX))
def _risk(memory):
    """1 if the key that ends here stands between quotes in some token."""
    begin, end = memory[m.BEGIN], memory[m.N_BYTES]
    starts = memory_i32(memory, m.RISKY_STARTS)
    risky = memory_u8(memory, m.RISKY_BYTES)
    data = memory_u8(memory, m.KEY_BYTES)
    for content in range(len(starts) - 1):
        place = int64(starts[content])
        if int64(starts[content + 1]) - place == end - begin and same_run(risky, place, data, begin, end - begin):
            return int64(1)
    return int64(0)


@njit_inner(int64(CTX))
def _status(memory):
    """What masks have to look out for where the text is now."""
    status = int64(m.IS_RISKY if memory[m.N_RISKY] > 0 else 0)
    if memory[m.MODE] != m.IN_KEY:
        return status
    keys = memory_i32(memory, m.KEYS)
    data = memory_u8(memory, m.KEY_BYTES)
    begin = memory[m.BEGIN]
    length = memory[m.N_BYTES] - begin
    # With an escape under way its character is not among the bytes yet.
    longest = memory[m.LONGEST_REST] + (4 if memory[m.ESCAPE] or memory[m.HIGH] else 0)
    for key in range(int64(memory_i32(memory, m.FRAMES)[memory[m.DEPTH] - 1]), memory[m.N_KEYS]):
        place = int64(keys[3 * key])
        rest = int64(keys[3 * key + 1]) - place - length
        if 0 <= rest <= longest and same_run(data, place, data, begin, length):
            return status | m.MAY_REPEAT
    return status


@njit_inner(types.void(CTX, int64))
def _read_key_byte(memory, byte):
    """Read a byte of the key under way that does not end it."""
    escape = memory[m.ESCAPE]
    if escape == 0:
        if byte == 0x5C:
            memory[m.ESCAPE] = 1
        else:
            memory_u8(memory, m.KEY_BYTES)[memory[m.N_BYTES]] = byte
            memory[m.N_BYTES] += 1
    elif escape == 1:
        memory[m.ESCAPE], memory[m.CODE] = 2, 0
        if byte != 0x75:
            memory[m.ESCAPE] = 0
            _append_point(memory, _short_escape(byte))
    else:
        point = memory[m.CODE] << 4 | ((byte & 15) + (9 if byte & 0x40 else 0))
        memory[m.ESCAPE], memory[m.CODE] = escape + 1, point
        if escape == 5:
            memory[m.ESCAPE] = 0
            if 0xD800 <= point < 0xDC00:
                memory[m.HIGH] = point
            else:
                if memory[m.HIGH]:
                    point += 0x10000 - 0xDC00 + ((memory[m.HIGH] - 0xD800) << 10)
                    memory[m.HIGH] = 0
                _append_point(memory, point)


@njit_entry(int64(CTX, _TEXT, int64[::1], int64))
def read_keys(memory, data, starts, piece):
    """Read on, ``data[starts[piece]:starts[piece + 1]]`` (uint8[n_bytes], int64[n_pieces + 1]).

    It is one loop over bytes, with a branch for each kind: every token of a text goes through it.

    Returns
    -------
    A sum of MAY_REPEAT and its like; KEYS_FULL, and nothing was read; or REPEATED_KEY, and the memory is of no more
    use.
    """
    first, last = starts[piece], starts[piece + 1]
    n = last - first
    memory[m.CALLS_LEFT] -= 1
    frames = memory_i32(memory, m.FRAMES)
    keys = memory_i32(memory, m.KEYS)
    if (
        memory[m.DEPTH] + n > len(frames)
        or 3 * (memory[m.N_KEYS] + n) > len(keys)
        or memory[m.N_BYTES] + 4 * n > len(memory_u8(memory, m.KEY_BYTES))
    ):
        memory[m.STATUS] = KEYS_FULL
        return int64(KEYS_FULL)
    for i in range(first, last):
        byte = int64(data[i])
        if memory[m.MODE] == m.IN_VALUE:
            if memory[m.ESCAPE]:
                memory[m.ESCAPE] = 0
            elif byte == 0x5C:
                memory[m.ESCAPE] = 1
            elif byte == 0x22:
                memory[m.MODE] = m.OUTSIDE
        elif memory[m.MODE] == m.IN_KEY:
            if byte != 0x22 or memory[m.ESCAPE]:
                _read_key_byte(memory, byte)
                continue
            if _is_repeated(memory):
                memory[m.STATUS] = REPEATED_KEY
                return int64(REPEATED_KEY)
            place = 3 * memory[m.N_KEYS]
            keys[place] = memory[m.BEGIN]
            keys[place + 1] = memory[m.N_BYTES]
            risk = _risk(memory)
            keys[place + 2] = risk
            memory[m.N_RISKY] += risk
            memory[m.N_KEYS] += 1
            memory[m.MODE] = m.OUTSIDE
        elif byte == 0x22:
            memory[m.MODE] = m.IN_KEY if memory[m.EXPECTS_KEY] else m.IN_VALUE
            memory[m.EXPECTS_KEY] = 0
            memory[m.BEGIN] = memory[m.N_BYTES]
        elif byte == 0x7B or byte == 0x5B:
            is_object = byte == 0x7B
            frames[memory[m.DEPTH]] = memory[m.N_KEYS] if is_object else ~memory[m.N_KEYS]
            memory[m.DEPTH] += 1
            memory[m.EXPECTS_KEY] = int64(is_object)
        elif byte == 0x7D or byte == 0x5D:
            memory[m.DEPTH] -= 1
            before = int64(frames[memory[m.DEPTH]])
            while memory[m.N_KEYS] > max(before, ~before):
                memory[m.N_KEYS] -= 1
                place = 3 * memory[m.N_KEYS]
                memory[m.N_BYTES] = int64(keys[place])
                memory[m.N_RISKY] -= int64(keys[place + 2])
            memory[m.EXPECTS_KEY] = 0
        elif byte == 0x2C:
            memory[m.EXPECTS_KEY] = int64(frames[memory[m.DEPTH] - 1] >= 0)
    status = memory[m.STATUS] = _status(memory)
    return status


@njit_inner(int64(CTX, _TEXT, int64[::1], int64, int64))
def read_along(memory, data, starts, token, marks):
    """Read a token as a companion (parser/companions.py): the word that it comes to.

    From time to time none is read, so that a copy of the memory can be made.
    """
    if memory[m.CALLS_LEFT] <= 0:
        return marks | UNREAD
    status = read_keys(memory, data, starts, token)
    if status < 0:
        return int64(m.IS_REPEATED) if status == REPEATED_KEY else marks | UNREAD
    return status


far_entry(F_READ_ALONG, read_along)


@njit_inner(int64(CTX, _TEXT, int64, int64))
def _would_repeat(memory, text, first, last):
    """Whether ``text[first:last]`` ends the key under way, and that was there before: 1 or 0.

    2 more if that was not decided at the first quote.
    """
    end, escape, code, high = memory[m.N_BYTES], memory[m.ESCAPE], memory[m.CODE], memory[m.HIGH]
    result = int64(0)
    for i in range(first, last):
        byte = int64(text[i])
        if byte == 0x22:
            if memory[m.ESCAPE] == 0:
                result += int64(_is_repeated(memory))
                break
            result = int64(2)
        _read_key_byte(memory, byte)
    memory[m.N_BYTES], memory[m.ESCAPE], memory[m.CODE], memory[m.HIGH] = end, escape, code, high
    return result


@njit_entry(int64(CTX, _TEXT, int64[::1], int32[::1], int32[::1], int32[:, ::1], int64))
def forbid_repeated(memory, data, starts, tokens, groups, out, index):
    """Take the tokens that complete a key that was there out of row ``index`` of ``out`` (int32[batch, words]).

    Parameters
    ----------
    memory : int64[...]
        A key is under way.
    data, starts : uint8[n_bytes], int64[n_tokens + 1]
        Token ``i`` is ``data[starts[i]:starts[i + 1]]``.
    tokens, groups : int32[n], int32[n_groups + 1]
        The tokens that hold a quote; group ``i``, those with the same bytes before their first quote, is
        ``tokens[groups[i]:groups[i + 1]]``.

    Returns
    -------
    0, or KEYS_FULL.
    """
    # With an escape under way, tokens begin with the rest of it.
    begins = memory[m.ESCAPE] != 0 or memory[m.HIGH] != 0
    for group in range(len(groups) - 1):
        token = int64(tokens[groups[group]])
        first = int64(data[starts[token]])
        if not begins and first != 0x22 and first != 0x5C and not _goes_on_with(memory, first):
            continue
        result = int64(2)
        for i in range(groups[group], groups[group + 1]):
            token = int64(tokens[i])
            # Once for all of the group, if that is enough.
            if result >= 2:
                if memory[m.N_BYTES] + 4 * (starts[token + 1] - starts[token]) > len(memory_u8(memory, m.KEY_BYTES)):
                    return int64(KEYS_FULL)
                result = _would_repeat(memory, data, starts[token], starts[token + 1])
            if result & 1:
                out[index, token >> 5] &= ~(1 << (token & 31))
            elif result == 0:
                break
    return int64(0)
