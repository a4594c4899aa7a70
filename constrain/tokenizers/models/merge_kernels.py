"""The jitted part of reading merges: out of JSON, and from tokens to ids."""

from __future__ import annotations

import numpy as np

from constrain.kernels.jit import ENTRY, INNER, njit
from constrain.tokenizers.models.bpe_kernels import find_token


@njit("int64(uint8[::1], int64)", **INNER)
def _behind_space(data, pos):  # type: ignore[no-untyped-def]
    """The place of what follows JSON's white space."""
    while pos < data.size and (data[pos] == 0x20 or 0x09 <= data[pos] <= 0x0A or data[pos] == 0x0D):
        pos += 1
    return pos


@njit("int64(uint8[::1], int64)", **INNER)
def _hexadecimal(data, pos):  # type: ignore[no-untyped-def]
    """The number of four digits, -1 if there are none."""
    if pos + 4 > data.size:
        return -1
    value = np.int64(0)
    for i in range(pos, pos + 4):
        digit = np.int64(data[i])
        lower = digit | 0x20
        if 0x30 <= digit <= 0x39:
            digit -= 0x30
        elif 0x61 <= lower <= 0x66:
            digit = lower - 0x57
        else:
            return -1
        value = value << 4 | digit
    return value


@njit("UniTuple(int64, 2)(uint8[::1], int64, uint8[::1], int64)", **INNER)
def _read_string(data, pos, out, size):  # type: ignore[no-untyped-def]
    """Write the string whose quote is at ``pos`` to ``out[size:]``; the place behind it (-1: not read), and the end."""
    pos += 1
    while pos < data.size:
        byte = data[pos]
        pos += 1
        if byte == 0x22:
            return pos, size
        if byte < 0x20:
            return -1, size
        if byte != 0x5C:
            out[size] = byte
            size += 1
            continue
        if pos == data.size:
            return -1, size
        escape = data[pos]
        pos += 1
        if escape == 0x22 or escape == 0x5C or escape == 0x2F:
            out[size] = escape
        elif escape == 0x62:
            out[size] = 0x08
        elif escape == 0x66:
            out[size] = 0x0C
        elif escape == 0x6E:
            out[size] = 0x0A
        elif escape == 0x72:
            out[size] = 0x0D
        elif escape == 0x74:
            out[size] = 0x09
        elif escape == 0x75:
            code = _hexadecimal(data, pos)
            pos += 4
            if 0xD800 <= code < 0xDC00 and pos + 2 <= data.size and data[pos] == 0x5C and data[pos + 1] == 0x75:
                low = _hexadecimal(data, pos + 2)
                if not 0xDC00 <= low < 0xE000:
                    return -1, size
                code = 0x10000 + ((code - 0xD800) << 10) + low - 0xDC00
                pos += 6
            if code < 0 or 0xD800 <= code < 0xE000:
                return -1, size
            if code < 0x80:
                out[size] = code
            elif code < 0x800:
                out[size], out[size + 1] = 0xC0 | code >> 6, 0x80 | code & 0x3F
                size += 1
            elif code < 0x10000:
                out[size], out[size + 1] = 0xE0 | code >> 12, 0x80 | code >> 6 & 0x3F
                out[size + 2] = 0x80 | code & 0x3F
                size += 2
            else:
                out[size], out[size + 1] = 0xF0 | code >> 18, 0x80 | code >> 12 & 0x3F
                out[size + 2], out[size + 3] = 0x80 | code >> 6 & 0x3F, 0x80 | code & 0x3F
                size += 3
        else:
            return -1, size
        size += 1
    return -1, size


@njit("UniTuple(int64, 2)(uint8[::1], int64, uint8[::1], int32[::1])", **ENTRY)
def read_pairs(data, pos, out, bounds):  # type: ignore[no-untyped-def]
    """Read a JSON array of merges, each ``["left", "right"]`` or ``"left right"``.

    data   : uint8[n], JSON;  pos : the place behind the bracket that begins the array
    out    : uint8[n - pos], the tokens one after the other (output)
    bounds : int32[], where each token begins, and the last one ends (output); long enough for a token in 3 bytes

    Returns the number of pairs and the place of the bracket that ends the array, or -1 and any place if there is
    anything else in it, or text that has no UTF-8.
    """
    size = 0
    count = 0
    bounds[0] = 0
    pos = _behind_space(data, pos)
    if pos < data.size and data[pos] == 0x5D:
        return 0, pos
    while pos < data.size:
        first = size
        cut = -1
        if data[pos] == 0x22:
            pos, size = _read_string(data, pos, out, size)
            if pos < 0:
                return -1, 0
            for i in range(first, size):
                if out[i] == 0x20:
                    if cut >= 0:
                        return -1, 0
                    cut = i
                elif cut >= 0:
                    out[i - 1] = out[i]
            size -= 1
        elif data[pos] == 0x5B:
            for part in range(2):
                pos = _behind_space(data, pos + 1)
                if pos == data.size or data[pos] != 0x22:
                    return -1, 0
                pos, size = _read_string(data, pos, out, size)
                if pos < 0:
                    return -1, 0
                pos = _behind_space(data, pos)
                if pos == data.size or data[pos] != (0x2C if part == 0 else 0x5D):
                    return -1, 0
                if part == 0:
                    cut = size
            pos += 1
        if cut < 0:
            return -1, 0
        bounds[2 * count + 1] = cut
        bounds[2 * count + 2] = size
        count += 1
        pos = _behind_space(data, pos)
        if pos == data.size:
            break
        if data[pos] == 0x5D:
            return count, pos
        if data[pos] != 0x2C:
            return -1, 0
        pos = _behind_space(data, pos + 1)
    return -1, 0


@njit("boolean(uint8[::1], int32[::1], uint8[::1], int32[::1], int32[::1], int32[:, ::1])", **ENTRY)
def find_pairs(data, bounds, blob, starts, slots, found):  # type: ignore[no-untyped-def]
    """Find pairs of tokens, and what each pair makes.

    data, bounds : uint8[], int32[2 * n + 1], the tokens of the pairs one after the other, and where each begins
    blob, starts, slots : the tokens by content, see :mod:`constrain.tokenizers.models.bpe_kernels`
    found        : int32[3, n], the first, the second, and both together (output)

    Returns whether all are tokens.
    """
    for i in range(found.shape[1]):
        first, second, end = bounds[2 * i], bounds[2 * i + 1], bounds[2 * i + 2]
        found[0, i] = find_token(data, first, second, blob, starts, slots)
        found[1, i] = find_token(data, second, end, blob, starts, slots)
        found[2, i] = find_token(data, first, end, blob, starts, slots)
        if found[0, i] < 0 or found[1, i] < 0 or found[2, i] < 0:
            return False
    return True
