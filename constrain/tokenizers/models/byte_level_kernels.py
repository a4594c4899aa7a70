"""Byte-level BPE of a short text in one kernel call.

A frame (short/frames.py) has the words of the pattern's scanner, and from ``_MODEL`` on those of
:func:`~constrain.tokenizers.models.bpe_kernels.encode_pieces`.
"""

from __future__ import annotations

from constrain.kernels.jit import ENTRY, njit
from constrain.tokenizers.models.bpe_kernels import encode_pieces
from constrain.tokenizers.short.frames import caller_of, place_of, size_of
from constrain.tokenizers.splitting.common import SIGNATURE

_MODEL = size_of(SIGNATURE)
_TEXT_SIZE = 2  # behind the addresses of the scanner and of the text
_DATA_SIZE = _MODEL + place_of(encode_pieces, "data") + 1
_PIECES = _MODEL + place_of(encode_pieces, "ends") + 1

_split, _encode = caller_of(SIGNATURE), caller_of(encode_pieces)


@njit("int64(int64[::1], int64)", **ENTRY)
def encode_short(frame, size):  # type: ignore[no-untyped-def]
    """The number of ids, or as :func:`~constrain.tokenizers.models.bpe_kernels.encode_pieces` says.

    frame : see the module;  size : bytes of text
    """
    frame[_TEXT_SIZE] = size
    frame[_DATA_SIZE] = size
    frame[_PIECES] = _split(frame, 0)
    return _encode(frame, _MODEL)
