"""Byte-level BPE of a short text in one kernel call.

A frame (short/frames.py) has the words of the pattern's scanner, and from ``_MODEL`` on those of
:func:`~constrain.tokenizers.models.bpe_kernels.encode_pieces`.  Where a text is cut in stages, it has the number of the
stages, the words of ``end_piece``, those of ``encode_pieces``, and for each stage those of
:func:`~constrain.tokenizers.splitting.machine.split_stage`.
"""

from __future__ import annotations

from constrain.kernels.jit import ENTRY, njit
from constrain.tokenizers.models.bpe_kernels import encode_pieces
from constrain.tokenizers.short.frames import caller_of, place_of, size_of
from constrain.tokenizers.short.pieces import end_piece
from constrain.tokenizers.splitting.common import SIGNATURE
from constrain.tokenizers.splitting.machine import split_stage

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


_END = 1
_STAGED_MODEL = _END + size_of(end_piece)
_STAGES = _STAGED_MODEL + size_of(encode_pieces)
_STAGE = size_of(split_stage)
_END_LENGTH = _END + place_of(end_piece, "length")
_STAGED_DATA_SIZE = _STAGED_MODEL + place_of(encode_pieces, "data") + 1
_STAGED_PIECES = _STAGED_MODEL + place_of(encode_pieces, "ends") + 1
_STAGE_TEXT_SIZE = place_of(split_stage, "data") + 1
_STAGE_ENDS = place_of(split_stage, "ends") + 1
_STAGE_KEEPS = place_of(split_stage, "keeps") + 1

_end, _cut = caller_of(end_piece), caller_of(split_stage)


@njit("int64(int64[::1], int64)", **ENTRY)
def encode_staged(frame, size):  # type: ignore[no-untyped-def]
    """The same for a text that is cut in stages; a negative number too where a pattern needs too many steps."""
    if size == 0:
        return 0
    frame[_END_LENGTH] = size
    _end(frame, _END)
    frame[_STAGED_DATA_SIZE] = size
    pieces = 1
    for stage in range(frame[0]):
        place = _STAGES + stage * _STAGE
        frame[place + _STAGE_TEXT_SIZE] = size
        frame[place + _STAGE_ENDS] = pieces
        frame[place + _STAGE_KEEPS] = pieces
        pieces = _cut(frame, place)
        if pieces < 0:
            return pieces
    frame[_STAGED_PIECES] = pieces
    return _encode(frame, _STAGED_MODEL)
