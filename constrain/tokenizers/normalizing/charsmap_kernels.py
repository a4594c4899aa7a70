"""The jitted part of SentencePiece's normalization.

The rules are a double-array trie in the format of Darts-clone: a unit is a uint32 with the label in bits 0 to 7 and
31, "a value follows" in bit 8, and the offset to the children in bits 10 to 30, shifted by 8 more if bit 9 is on;
the units of values have bit 31 on and the value below it.  A value is a place in a blob of replacements, each with a
zero at its end.
"""

from __future__ import annotations

import numpy as np

from constrain.kernels.jit import ENTRY, INNER, njit
from constrain.tokenizers.trie_kernels import BASE, CHECK, TOKEN

NO_ROOM = -1
"""Result of :func:`normalize_spaces`: the output is too small."""

DAMAGED = -2
"""Result of :func:`normalize_spaces`: the rules lead out of their tables."""

DUMMY_PREFIX, REMOVE_EXTRA, ESCAPE, AS_SUFFIX = 1, 2, 4, 8
"""Flags: a space in front; only single spaces within, none around; spaces are written U+2581; the space in front
goes behind instead."""


@njit("int64(uint8[::1], int64)", **INNER)
def _valid_length(data, pos):  # type: ignore[no-untyped-def]
    """The length of the character at ``pos``, or 0 if it is not well-formed UTF-8."""
    left = data.size - pos
    lead = data[pos]
    if lead < 0x80:
        return 1
    if lead < 0xC2 or lead > 0xF4:
        return 0
    length = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    if left < length:
        return 0
    for i in range(1, length):
        if data[pos + i] & 0xC0 != 0x80:
            return 0
    second = data[pos + 1]
    if (lead == 0xE0 and second < 0xA0) or (lead == 0xED and second > 0x9F):
        return 0
    if (lead == 0xF0 and second < 0x90) or (lead == 0xF4 and second > 0x8F):
        return 0
    return length


@njit("UniTuple(int64, 3)(uint8[::1], int64, uint32[::1], uint8[::1], int32[:, ::1])", **INNER)
def _prefix(data, pos, rules, blob, fixed):  # type: ignore[no-untyped-def]
    """How the text at ``pos`` begins: the number of bytes taken, and begin and end of what they become.

    The place is one in ``blob``, or for text that stays as it is ``-1 - pos``, or for a byte of no character the
    end is -1.  The number of bytes is 0 if the rules are damaged.
    """
    if fixed.shape[0] > 0:
        node = 0
        place = pos
        longest = pos
        while place < data.size:
            child = fixed[node, BASE] ^ data[place]
            if fixed[child, CHECK] != node:
                break
            node = child
            place += 1
            if fixed[node, TOKEN] >= 0:
                longest = place
        if longest > pos:
            return longest - pos, -1 - pos, longest
    taken = 0
    value = np.int64(0)
    if rules.size > 0:
        one = np.int64(1)
        unit = np.int64(rules[0])
        node = (unit >> 10) << ((unit & 0x200) >> 6)
        for i in range(pos, data.size):
            node ^= np.int64(data[i])
            if node >= rules.size:
                return 0, 0, 0
            unit = np.int64(rules[node])
            if unit & 0x800000FF != np.int64(data[i]):
                break
            node ^= (unit >> 10) << ((unit & 0x200) >> 6)
            if (unit >> 8) & one:
                if node >= rules.size:
                    return 0, 0, 0
                taken = i + 1 - pos
                value = np.int64(rules[node]) & 0x7FFFFFFF
    if taken > 0:
        end = value
        while end < blob.size and blob[end] != 0:
            end += 1
        if end >= blob.size or blob[value] & 0xC0 == 0x80:
            return 0, 0, 0
        return taken, value, end
    length = _valid_length(data, pos)
    if length == 0:
        return 1, -1 - pos, -1
    return length, -1 - pos, pos + length


@njit(
    "int64(uint8[::1], uint8[::1], uint32[::1], uint8[::1], int32[:, ::1], int64, uint8[::1], int32[:, ::1], boolean)",
    **ENTRY,
)
def normalize_spaces(data, plain, rules, blob, fixed, flags, out, origins, with_origins):  # type: ignore[no-untyped-def]
    """Apply the rules and the treatment of spaces.

    data  : uint8[n], any bytes; those that are no UTF-8 become U+FFFD
    plain : uint8[256], 1 for an ASCII character that stays as it is if it is the last or another one follows
    rules, blob : uint32[], uint8[], see the module; both may be empty
    fixed : the trie of what is left as it is (0 rows: nothing)
    flags : see ``DUMMY_PREFIX`` and so on
    out   : uint8[m] (output)
    origins : int32[m, 2], where what became each byte begins and ends in ``data`` (output, if ``with_origins``)

    Returns the length of the output, NO_ROOM or DAMAGED.
    """
    escape = flags & ESCAPE != 0
    extra = flags & REMOVE_EXTRA != 0
    width = 3 if escape else 1
    pos = 0
    if extra:
        while pos < data.size:
            taken, begin, end = _prefix(data, pos, rules, blob, fixed)
            if taken == 0:
                return DAMAGED
            # A single space, as it is or as what something becomes.
            if end - begin == 1 and begin >= 0:
                if blob[begin] != 0x20:
                    break
            elif not (begin < 0 and end == pos + 1 and data[pos] == 0x20):
                break
            pos += taken
    if pos >= data.size:
        return 0
    size = 0
    behind_space = extra
    if flags & DUMMY_PREFIX and not flags & AS_SUFFIX:
        if out.size < width:
            return NO_ROOM
        if escape:
            out[0], out[1], out[2] = 0xE2, 0x96, 0x81
        else:
            out[0] = 0x20
        if with_origins:
            for i in range(width):
                origins[i, 0] = pos
                origins[i, 1] = pos
        size = width
    while pos < data.size:
        if not with_origins:
            # Most of most texts.
            first = pos
            last = min(data.size - 1, pos + out.size - size)
            while pos < last and plain[data[pos]] != 0 and data[pos] != 0x20 and data[pos + 1] < 0x80:
                out[size] = data[pos]
                size += 1
                pos += 1
            if pos > first:
                behind_space = False
        if plain[data[pos]] != 0 and (pos + 1 == data.size or data[pos + 1] < 0x80):
            if size + 3 > out.size:
                return NO_ROOM
            old = size
            if data[pos] != 0x20:
                out[size] = data[pos]
                size += 1
                behind_space = False
            elif not behind_space:
                behind_space = extra
                if escape:
                    out[size], out[size + 1], out[size + 2] = 0xE2, 0x96, 0x81
                    size += 3
                else:
                    out[size] = 0x20
                    size += 1
            if with_origins:
                for i in range(old, size):
                    origins[i, 0] = pos
                    origins[i, 1] = pos + 1
            pos += 1
            continue
        taken, begin, end = _prefix(data, pos, rules, blob, fixed)
        if taken == 0:
            return DAMAGED
        broken = end < 0
        copied = begin < 0
        if copied:
            begin = -1 - begin
        if broken:
            end = begin + 3
        if size + width * (end - begin) > out.size:
            return NO_ROOM
        old = size
        leading = behind_space
        for i in range(begin, end):
            if broken:
                byte = 0xEF if i == begin else 0xBF if i == begin + 1 else 0xBD
            else:
                byte = np.int64(data[i]) if copied else np.int64(blob[i])
            if byte == 0x20:
                if leading:
                    continue
                if escape:
                    out[size], out[size + 1], out[size + 2] = 0xE2, 0x96, 0x81
                    size += 3
                    continue
            leading = False
            out[size] = byte
            size += 1
        if size > old:
            last = size >= old + width and out[size - 1] == (0x81 if escape else 0x20)
            if escape:
                # Only what was a space: the marker itself is no space yet.
                last = not broken and (data[end - 1] if copied else blob[end - 1]) == 0x20
            behind_space = last and extra
        elif not extra:
            behind_space = False
        if with_origins:
            for i in range(old, size):
                origins[i, 0] = pos
                origins[i, 1] = pos + taken
        pos += taken
    if extra:
        if escape:
            while size >= 3 and out[size - 3] == 0xE2 and out[size - 2] == 0x96 and out[size - 1] == 0x81:
                size -= 3
        else:
            while size >= 1 and out[size - 1] == 0x20:
                size -= 1
    if flags & DUMMY_PREFIX and flags & AS_SUFFIX:
        if size + width > out.size:
            return NO_ROOM
        if escape:
            out[size], out[size + 1], out[size + 2] = 0xE2, 0x96, 0x81
        else:
            out[size] = 0x20
        if with_origins:
            for i in range(size, size + width):
                origins[i, 0] = data.size
                origins[i, 1] = data.size
        size += width
    return size


@njit("void(uint32[::1], int32[:, ::1], uint8[::1])", **ENTRY)
def find_plain(rules, fixed, plain):  # type: ignore[no-untyped-def]
    """Fill in ``plain``, see :func:`normalize_spaces`."""
    for char in range(128):
        plain[char] = 1
        if fixed.shape[0] > 0 and fixed[fixed[0, BASE] ^ char, CHECK] == 0:
            plain[char] = 0
        if rules.size == 0 or plain[char] == 0:
            continue
        unit = np.int64(rules[0])
        first = (unit >> 10) << ((unit & 0x200) >> 6) ^ char
        if first >= rules.size:
            plain[char] = 0
            continue
        unit = np.int64(rules[first])
        if unit & 0x800000FF != char:
            continue
        if (unit >> 8) & 1:
            plain[char] = 0
            continue
        base = first ^ ((unit >> 10) << ((unit & 0x200) >> 6))
        for second in range(128):
            child = base ^ second
            if child >= rules.size or np.int64(rules[child]) & 0x800000FF == second:
                plain[char] = 0
                break
