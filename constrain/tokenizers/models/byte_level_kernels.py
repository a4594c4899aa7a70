"""Byte-level BPE of a short text in one kernel call.

The words of a frame (short/frames.py) are the arguments of a scanner, and from :data:`MODEL` on those of
:func:`~constrain.tokenizers.models.bpe_kernels.encode_pieces`; the last word is the scanner, by its place
in ``FAMILIES`` of splitting/patterns.py.
"""

from __future__ import annotations

from constrain.kernel_files import njit
from constrain.tokenizers.kernel_options import ENTRY
from constrain.tokenizers.models.bpe_kernels import encode_pieces
from constrain.tokenizers.short.frames import call, place_of, size_of
from constrain.tokenizers.splitting.cl100k import split as split_cl100k
from constrain.tokenizers.splitting.gpt2 import split as split_gpt2
from constrain.tokenizers.splitting.o200k import split as split_o200k
from constrain.tokenizers.splitting.patterns import FAMILIES

SCANNER = split_gpt2
"""Any scanner: all take the same arguments."""

MODEL = size_of(SCANNER)
"""Where the words of ``encode_pieces`` begin."""

_GPT2, _CL100K = FAMILIES.index("gpt2"), FAMILIES.index("cl100k")
_TEXT_SIZE = place_of(SCANNER, "data") + 1
_DATA_SIZE = MODEL + place_of(encode_pieces, "data") + 1
_PIECES = MODEL + place_of(encode_pieces, "ends") + 1
_SCANNER = MODEL + size_of(encode_pieces)


@njit("int64(int64[::1], int64)", **ENTRY)
def encode_short(frame, size):  # type: ignore[no-untyped-def]
    """The number of ids, or as :func:`~constrain.tokenizers.models.bpe_kernels.encode_pieces` says.

    frame : see the module;  size : bytes of text
    """
    frame[_TEXT_SIZE] = size
    frame[_DATA_SIZE] = size
    if frame[_SCANNER] == _GPT2:
        frame[_PIECES] = call(split_gpt2, frame, 0)
    elif frame[_SCANNER] == _CL100K:
        frame[_PIECES] = call(split_cl100k, frame, 0)
    else:
        frame[_PIECES] = call(split_o200k, frame, 0)
    return call(encode_pieces, frame, MODEL)
