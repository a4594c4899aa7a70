"""The frame of short texts of SentencePiece vocabularies: normalize, encode as one piece, keep the ids.

The words of a frame are the arguments of :func:`normalize_piece`, those of :func:`take_ids`, and from :data:`MODEL` on
those of the model's kernel, which begin with ``data`` and ``ends``.
"""

from __future__ import annotations

from constrain.kernel_files import njit
from constrain.tokenizers.kernel_options import INNER
from constrain.tokenizers.normalizing.charsmap_kernels import normalize_spaces
from constrain.tokenizers.short.frames import call, place_of, size_of


@njit(
    "int64(uint8[::1], uint8[::1], uint32[::1], uint8[::1], int32[:, ::1], int64, uint8[::1], int32[:, ::1],"
    " int32[::1])",
    **INNER,
)
def normalize_piece(text, plain, rules, blob, fixed, flags, normal, origins, ends):  # type: ignore[no-untyped-def]
    """Normalize a text to one piece, which ends at ``ends[0]``.

    text, plain, rules, blob, fixed, flags, normal : as ``data`` to ``out`` of
        :func:`constrain.tokenizers.normalizing.charsmap_kernels.normalize_spaces`
    origins : int32[0, 2];  ends : int32[1] (output)

    Returns what ``normalize_spaces`` returns.
    """
    length = normalize_spaces(text, plain, rules, blob, fixed, flags, normal, origins, False)
    ends[0] = length
    return length


@njit("int64(int64, int32[:, ::1], int32[::1])", **INNER)
def take_ids(count, out, ids):  # type: ignore[no-untyped-def]
    """Write the ids of the first ``count`` tokens of ``out`` (int32[n, 3]) to ``ids``; returns ``count``."""
    for i in range(count):
        ids[i] = out[i, 0]
    return count


_TEXT_SIZE = place_of(normalize_piece, "text") + 1
_TAKE = size_of(normalize_piece)
_COUNT = _TAKE + place_of(take_ids, "count")

MODEL = _TAKE + size_of(take_ids)
"""Where the words of the model's kernel begin."""


@njit("int64(int64[::1], int64)", **INNER)
def normalize_short(frame, size):  # type: ignore[no-untyped-def]
    """Normalize the text, which has ``size`` bytes; returns the length of the piece, or a negative number."""
    frame[_TEXT_SIZE] = size
    length = call(normalize_piece, frame, 0)
    frame[MODEL + 1] = length
    return length


@njit("int64(int64[::1], int64)", **INNER)
def take_short(frame, count):  # type: ignore[no-untyped-def]
    """Keep the ids of the tokens that the model has written; returns their number."""
    frame[_COUNT] = count
    return call(take_ids, frame, _TAKE)
