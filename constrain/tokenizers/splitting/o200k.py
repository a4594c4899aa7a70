"""The split pattern of o200k (GPT-4o), which splits words where lower case turns into upper case.

With ``U = \\p{Lu}\\p{Lt}``, ``L = \\p{Ll}``, ``X = \\p{Lm}\\p{Lo}\\p{M}`` and ``C = (?i:'s|'t|'re|'ve|'m|'ll|'d)?``::

    [^\\r\\n\\p{L}\\p{N}]?[UX]*[LX]+C | [^\\r\\n\\p{L}\\p{N}]?[UX]+[LX]*C | \\p{N}{1,3}
    | ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]* | \\s*[\\r\\n]+ | \\s+(?!\\S) | \\s+

There is no option.
"""

from __future__ import annotations

from constrain.kernels.jit import ENTRY, INNER, njit
from constrain.tokenizers.splitting.common import (
    SIGNATURE,
    char_at,
    is_letter,
    skip_contraction,
    skip_numbers,
    skip_signs,
    skip_spaces,
)
from constrain.tokenizers.splitting.unicode_classes import LOWER, MARK, MODIFIER, NUMBER, OTHER_LETTER, TITLE, UPPER

# Sets of classes as bits.
_U = 1 << UPPER | 1 << TITLE
_X = 1 << MODIFIER | 1 << OTHER_LETTER | 1 << MARK
_LX = 1 << LOWER | _X


@njit("int64(uint8[::1], int64)", **INNER)
def _ascii_word(data, pos):  # type: ignore[no-untyped-def]
    """The end of the piece at ``pos`` if that is ASCII letters behind at most a space, with a contraction or without;
    ``pos`` if it is something else, or a character that is not ASCII follows, which may belong to it."""
    begin = pos + (data[pos] == 0x20)
    end = begin
    while end < data.size and 0x41 <= data[end] <= 0x5A:
        end += 1
    while end < data.size and 0x61 <= data[end] <= 0x7A:
        end += 1
    if end == begin or (end < data.size and data[end] >= 0x80):
        return pos
    return skip_contraction(data, end, True)


@njit(**INNER)
def _word(data, classes, pos):  # type: ignore[no-untyped-def]
    """The ends of ``[UX]*[LX]+`` and of ``[UX]+[LX]*`` at ``pos``; ``pos`` where there is none."""
    begin = pos
    after_x = begin  # the end of the last X in [UX]*: where [LX]+ can still begin after giving back
    while pos < data.size:
        kind, after = char_at(data, classes, pos)
        if 1 << kind & _X:
            after_x = after
        elif not 1 << kind & _U:
            break
        pos = after
    upper_end = pos
    while pos < data.size:
        kind, after = char_at(data, classes, pos)
        if not 1 << kind & _LX:
            break
        pos = after
    if pos > upper_end:
        return pos, pos if upper_end > begin else begin
    return after_x, upper_end


@njit(SIGNATURE, **ENTRY)
def split(data, classes, option, ends):  # type: ignore[no-untyped-def]
    """Ends of the pieces; see :mod:`constrain.tokenizers.splitting.common` for the arrays."""
    pos = 0
    count = 0
    while pos < data.size:
        end = _ascii_word(data, pos)
        if end > pos:
            ends[count] = end
            count += 1
            pos = end
            continue
        kind, after = char_at(data, classes, pos)
        lower_end, upper_end = pos, pos
        if 1 << kind & (_U | _LX):
            lower_end, upper_end = _word(data, classes, pos)
        if not is_letter(kind) and kind != NUMBER and data[pos] != 0x0A and data[pos] != 0x0D:
            # The alternatives in order: the sign in front is taken along if the word still matches.
            prefixed_lower, prefixed_upper = _word(data, classes, after)
            if prefixed_lower > after:
                end = prefixed_lower
            elif lower_end > pos:
                end = lower_end
            elif prefixed_upper > after:
                end = prefixed_upper
        elif lower_end > pos:
            end = lower_end
        if end == pos and upper_end > pos:
            end = upper_end
        if end > pos:
            end = skip_contraction(data, end, True)
        elif kind == NUMBER:
            end = skip_numbers(data, classes, pos, 3)
        else:
            begin = pos
            if data[pos] == 0x20:
                begin = pos + 1
            end = skip_signs(data, classes, begin)
            if end > begin:
                while end < data.size and (data[end] == 0x0A or data[end] == 0x0D or data[end] == 0x2F):
                    end += 1
            else:
                end, last, newline = skip_spaces(data, classes, pos)
                if newline >= 0:
                    end = newline
                elif end < data.size and last > pos:
                    end = last
        ends[count] = end
        count += 1
        pos = end
    return count
