"""Short texts of SentencePiece vocabularies: normalize, encode as one piece, keep the ids.

A frame (short/frames.py) has the words of ``normalize_spaces``, :func:`end_piece` and :func:`take_ids`, and from
:data:`MODEL` on those of the model's kernel, whose first arguments are ``data`` and ``ends``.
"""

from __future__ import annotations

from constrain.kernels.jit import INNER, njit
from constrain.tokenizers.normalizing.charsmap_kernels import normalize_spaces
from constrain.tokenizers.short.frames import caller_of, place_of, size_of


@njit("int64(int64, int32[::1])", **INNER)
def end_piece(length, ends):  # type: ignore[no-untyped-def]
    """Let the only piece end at ``length``; ``ends``: int32[1]."""
    ends[0] = length
    return length


@njit("int64(int64, int32[:, ::1], int32[::1])", **INNER)
def take_ids(count, out, ids):  # type: ignore[no-untyped-def]
    """Write the ids of the first ``count`` tokens of ``out`` (int32[n, 3]) to ``ids``; returns ``count``."""
    for i in range(count):
        ids[i] = out[i, 0]
    return count


_END = size_of(normalize_spaces)
_TAKE = _END + size_of(end_piece)
MODEL = _TAKE + size_of(take_ids)
"""Where the words of the model's kernel begin."""

_TEXT_SIZE = place_of(normalize_spaces, "data") + 1
_LENGTH = _END + place_of(end_piece, "length")
_COUNT = _TAKE + place_of(take_ids, "count")
_DATA_SIZE = MODEL + 2

_normalize, _end, _take = caller_of(normalize_spaces), caller_of(end_piece), caller_of(take_ids)


@njit("int64(int64[::1], int64)", **INNER)
def normalize_short(frame, size):  # type: ignore[no-untyped-def]
    """Normalize the text, which has ``size`` bytes; the length of the piece, or what ``normalize_spaces`` returns."""
    frame[_TEXT_SIZE] = size
    length = _normalize(frame, 0)
    frame[_LENGTH] = length
    frame[_DATA_SIZE] = length
    return _end(frame, _END)


@njit("int64(int64[::1], int64)", **INNER)
def take_short(frame, count):  # type: ignore[no-untyped-def]
    """Keep the ids of the tokens that the model has written; returns their number."""
    frame[_COUNT] = count
    return _take(frame, _TAKE)
