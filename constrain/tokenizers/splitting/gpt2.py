"""The split pattern of GPT-2, which r50k, p50k and many later vocabularies share.

``'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+``

There is no option.
"""

from __future__ import annotations

from constrain.kernels.jit import ENTRY, njit
from constrain.tokenizers.splitting.common import (
    SIGNATURE,
    char_at,
    is_ascii_letter,
    is_letter,
    skip_contraction,
    skip_letters,
    skip_numbers,
    skip_signs,
    skip_spaces,
)
from constrain.tokenizers.splitting.unicode_classes import NUMBER, SPACE


@njit(SIGNATURE, **ENTRY)
def split(data, classes, option, ends):  # type: ignore[no-untyped-def]
    """Ends of the pieces; see :mod:`constrain.tokenizers.splitting.common` for the arrays."""
    pos = 0
    count = 0
    while pos < data.size:
        begin = pos + (data[pos] == 0x20)
        if begin < data.size and is_ascii_letter(data[begin]):
            end = skip_letters(data, classes, begin + 1)
            ends[count] = end
            count += 1
            pos = end
            continue
        end = skip_contraction(data, pos, False)
        if end == pos:
            begin = pos
            if data[pos] == 0x20 and pos + 1 < data.size:
                begin = pos + 1
            kind, after = char_at(data, classes, begin)
            if is_letter(kind):
                end = skip_letters(data, classes, after)
            elif kind == NUMBER:
                end = skip_numbers(data, classes, after, data.size)
            elif kind != SPACE:
                end = skip_signs(data, classes, after)
            else:
                end, last, _ = skip_spaces(data, classes, pos)
                # The last white space before a visible character is left to that character.
                if end < data.size and last > pos:
                    end = last
        ends[count] = end
        count += 1
        pos = end
    return count
