"""The split patterns of cl100k, Llama 3 and Qwen 2, which differ in two details.

With ``C = (?i:'s|'t|'re|'ve|'m|'ll|'d)``::

    C|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+

That is Llama 3.  Qwen 2 has ``\\p{N}`` for ``\\p{N}{1,3}``, and tiktoken's cl100k takes white space at
the end of the text whole (``\\s++$``) even if it has newlines in it.  ``option`` is the largest
number of digits in a piece, plus 16 for that last rule.
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
    skip_newlines,
    skip_numbers,
    skip_signs,
    skip_spaces,
)
from constrain.tokenizers.splitting.unicode_classes import NUMBER, SPACE

WHOLE_TAIL = 16
"""Added to ``option``: white space up to the end of the text is one piece."""


@njit(SIGNATURE, **ENTRY)
def split(data, classes, option, ends):  # type: ignore[no-untyped-def]
    """Ends of the pieces; see :mod:`constrain.tokenizers.splitting.common` for the arrays."""
    most_digits = option % WHOLE_TAIL
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
        end = skip_contraction(data, pos, True)
        if end == pos:
            kind, after = char_at(data, classes, pos)
            next_kind = SPACE
            after_next = after
            if after < data.size:
                next_kind, after_next = char_at(data, classes, after)
            if is_letter(kind):
                end = skip_letters(data, classes, after)
            elif kind == NUMBER:
                end = skip_numbers(data, classes, pos, most_digits)
            elif is_letter(next_kind) and data[pos] != 0x0A and data[pos] != 0x0D:
                end = skip_letters(data, classes, after_next)
            elif kind != SPACE or (data[pos] == 0x20 and next_kind != SPACE and next_kind != NUMBER):
                end = skip_newlines(data, skip_signs(data, classes, after))
            else:
                end, last, newline = skip_spaces(data, classes, pos)
                if not (end == data.size and option >= WHOLE_TAIL):
                    if newline >= 0:
                        end = newline
                    elif end < data.size and last > pos:
                        end = last
        ends[count] = end
        count += 1
        pos = end
    return count
