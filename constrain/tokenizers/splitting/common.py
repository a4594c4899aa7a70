"""Steps that the scanners for split patterns share.

Each pattern is a hand-written scanner over UTF-8 bytes in its own module, not a regex: Python's
``re`` has neither ``\\p{L}`` nor possessive repeats before 3.11, and a scanner reads every byte
about once, whatever the input.

All scanners have one signature::

    split(data, classes, option, ends) -> count

data    : uint8[n], well-formed UTF-8
classes : uint8[0x110000], class of each code point, see :mod:`constrain.tokenizers.splitting.unicode_classes`
option  : int64, what varies within the family of the pattern; each module says
ends    : int32[n] or longer; ``ends[i]`` becomes the end of piece i, in bytes (output)

The pieces cover the whole of ``data``, and none is empty.
"""

from __future__ import annotations

from constrain.kernels.jit import INNER, njit
from constrain.tokenizers.splitting.unicode_classes import NUMBER, OTHER_LETTER, SPACE

SIGNATURE = "int64(uint8[::1], uint8[::1], int64, int32[::1])"

_NEWLINES = (0x0A, 0x0D)


@njit("UniTuple(int64, 2)(uint8[::1], uint8[::1], int64)", **INNER)
def char_at(data, classes, pos):  # type: ignore[no-untyped-def]
    """The class of the character at ``pos``, and the position after it."""
    lead = data[pos]
    if lead < 0x80:
        return classes[lead], pos + 1
    if lead < 0xE0:
        return classes[(lead & 0x1F) << 6 | data[pos + 1] & 0x3F], pos + 2
    if lead < 0xF0:
        return classes[(lead & 0x0F) << 12 | (data[pos + 1] & 0x3F) << 6 | data[pos + 2] & 0x3F], pos + 3
    code = (lead & 0x07) << 18 | (data[pos + 1] & 0x3F) << 12 | (data[pos + 2] & 0x3F) << 6 | data[pos + 3] & 0x3F
    return classes[code], pos + 4


@njit("boolean(int64)", **INNER)
def is_letter(kind):  # type: ignore[no-untyped-def]
    """``\\p{L}``: the classes from UPPER to OTHER_LETTER."""
    return 1 <= kind <= OTHER_LETTER


@njit("boolean(int64)", **INNER)
def is_ascii_letter(byte):  # type: ignore[no-untyped-def]
    """``[A-Za-z]``."""
    return 0x61 <= byte | 0x20 <= 0x7A


@njit("int64(uint8[::1], uint8[::1], int64)", **INNER)
def skip_letters(data, classes, pos):  # type: ignore[no-untyped-def]
    """The end of ``\\p{L}*`` at ``pos``."""
    while pos < data.size:
        # Most text is ASCII, and this costs a third of a look into the table.
        if data[pos] < 0x80:
            if not is_ascii_letter(data[pos]):
                break
            pos += 1
            continue
        kind, after = char_at(data, classes, pos)
        if not is_letter(kind):
            break
        pos = after
    return pos


@njit("int64(uint8[::1], uint8[::1], int64, int64)", **INNER)
def skip_numbers(data, classes, pos, most):  # type: ignore[no-untyped-def]
    """The end of ``\\p{N}{0,most}`` at ``pos``."""
    while pos < data.size and most > 0:
        kind, after = char_at(data, classes, pos)
        if kind != NUMBER:
            break
        pos = after
        most -= 1
    return pos


@njit("int64(uint8[::1], uint8[::1], int64)", **INNER)
def skip_signs(data, classes, pos):  # type: ignore[no-untyped-def]
    """The end of ``[^\\s\\p{L}\\p{N}]*`` at ``pos``."""
    while pos < data.size:
        kind, after = char_at(data, classes, pos)
        if is_letter(kind) or kind in (NUMBER, SPACE):
            break
        pos = after
    return pos


@njit("int64(uint8[::1], int64)", **INNER)
def skip_newlines(data, pos):  # type: ignore[no-untyped-def]
    """The end of ``[\\r\\n]*`` at ``pos``."""
    while pos < data.size and data[pos] in _NEWLINES:
        pos += 1
    return pos


@njit("UniTuple(int64, 3)(uint8[::1], uint8[::1], int64)", **INNER)
def skip_spaces(data, classes, pos):  # type: ignore[no-untyped-def]
    """For the white space that begins at ``pos``: its end, the place of its last character, and
    the place after its last newline (-1 if it has none)."""
    last = pos
    newline = -1
    while pos < data.size:
        kind, after = char_at(data, classes, pos)
        if kind != SPACE:
            break
        if data[pos] in _NEWLINES:
            newline = after
        last = pos
        pos = after
    return pos, last, newline


@njit("int64(uint8[::1], int64, boolean)", **INNER)
def skip_contraction(data, pos, ignore_case):  # type: ignore[no-untyped-def]
    """The end of ``'(s|t|re|ve|m|ll|d)`` at ``pos``, or ``pos`` where there is none."""
    if pos + 1 >= data.size or data[pos] != 0x27:
        return pos
    first = data[pos + 1]
    second = data[pos + 2] if pos + 2 < data.size else 0
    if ignore_case:
        if first == 0xC5 and second == 0xBF:  # U+017F, the long s, is an s when case is ignored
            return pos + 3
        if first < 0x80:
            first |= 0x20
        if second < 0x80:
            second |= 0x20
    if first == 0x73 or first == 0x74 or first == 0x6D or first == 0x64:  # s t m d
        return pos + 2
    if first == 0x6C and second == 0x6C:  # ll
        return pos + 3
    if (first == 0x72 or first == 0x76) and second == 0x65:  # re ve
        return pos + 3
    return pos
