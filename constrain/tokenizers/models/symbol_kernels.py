"""The jitted part of BPE over characters: SentencePiece's, and that of ``tokenizer.json`` with byte fallback.

A text is cut wherever no token contains the two characters around a place one after the other; nothing can be
merged across such a cut, so each *word* between two of them is merged alone.  With the marker in front of every word
these are the words; a text without any cut is one long word, for which pairs are kept in a heap.

The tables are those of :mod:`constrain.tokenizers.models.bpe_kernels`, and

* *characters*: the id of code point c is ``char_ids[char_blocks[c >> 8] * 256 + (c & 255)]`` (-1: none).  Ids from
  ``vocab`` on stand for characters of tokens that are no tokens themselves;
* *neighbours*: ``neighbours`` is a Bloom filter (uint32[]) of the pairs of characters within tokens.
"""

from __future__ import annotations

import numpy as np

from constrain.kernels.jit import ENTRY, INNER, njit
from constrain.tokenizers.models.bpe_kernels import find_token, merge_long, merge_short
from constrain.tokenizers.models.whole_pieces import ALWAYS, NEWLINES
from constrain.tokenizers.short.frames import caller_of
from constrain.tokenizers.short.pieces import MODEL, normalize_short, take_short
from constrain.tokenizers.trie_kernels import BASE, CHECK, TOKEN

UNKNOWN = 0x7FFFFFFF

NEIGHBOUR_BITS = 20


_SHORT = 32


@njit("int64(int64, int64)", **INNER)
def neighbour_bit(left, right):  # type: ignore[no-untyped-def]
    """The place in the filter of a pair of code points."""
    value = np.uint64(left) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(right) * np.uint64(0xC2B2AE3D27D4EB4F)
    return np.int64(value >> np.uint64(64 - NEIGHBOUR_BITS))


@njit("void(int32[::1], boolean[::1], uint32[::1])", **ENTRY)
def fill_neighbours(codes, joined, neighbours):  # type: ignore[no-untyped-def]
    """Enter each ``codes[i], codes[i + 1]`` with ``joined[i]`` into the filter."""
    for i in range(codes.size - 1):
        if joined[i]:
            bit = neighbour_bit(codes[i], codes[i + 1])
            neighbours[bit >> 5] |= np.uint32(1) << np.uint32(bit & 31)


@njit("UniTuple(int64, 2)(uint8[::1], int64)", **INNER)
def code_at(data, pos):  # type: ignore[no-untyped-def]
    """The code point at ``pos`` of well-formed UTF-8, and the place after it."""
    lead = data[pos]
    if lead < 0x80:
        return lead, pos + 1
    if lead < 0xE0:
        return (lead & 0x1F) << 6 | data[pos + 1] & 0x3F, pos + 2
    if lead < 0xF0:
        return (lead & 0x0F) << 12 | (data[pos + 1] & 0x3F) << 6 | data[pos + 2] & 0x3F, pos + 3
    code = (lead & 0x07) << 18 | (data[pos + 1] & 0x3F) << 12 | (data[pos + 2] & 0x3F) << 6 | data[pos + 3] & 0x3F
    return code, pos + 4


@njit(
    "int64(uint8[::1], int64, int64, int32[::1], int64, int64, boolean, int32[::1], int32[::1], int32[:, ::1], int64,"
    " int64)",
    **INNER,
)
def _put_symbols(  # type: ignore[no-untyped-def]
    data, pos, size, symbols, vocab, unk, fuse, byte_ids, starts, out, first, count
):
    """Write the tokens of ``symbols[:size]``, which begin at ``pos``; returns the number of all tokens.

    ``out[first:count]`` are those of the same piece.
    """
    for i in range(size):
        symbol = symbols[i]
        if symbol < vocab:
            after = pos + starts[symbol + 1] - starts[symbol]
            out[count, 0] = symbol
            out[count, 1] = pos
            out[count, 2] = after
            count += 1
            pos = after
            continue
        after = code_at(data, pos)[1]
        if byte_ids[0] >= 0:
            for place in range(pos, after):
                out[count, 0] = byte_ids[data[place]]
                out[count, 1] = pos
                out[count, 2] = after
                count += 1
        elif fuse and count > first and out[count - 1, 0] == unk:
            out[count - 1, 2] = after
        elif unk >= 0:
            out[count, 0] = unk
            out[count, 1] = pos
            out[count, 2] = after
            count += 1
        pos = after
    return count


@njit(
    "int64(uint8[::1], int32[::1], int64, int32[::1], int32[::1], uint32[::1], int32[:, ::1], uint8[::1],"
    " int32[::1], int32[::1], uint8[::1], int64[::1], int64[::1], int64, int64, boolean, int32[::1], int32[::1],"
    " int32[:, ::1])",
    **ENTRY,
)
def encode_symbols(  # type: ignore[no-untyped-def]
    data,
    ends,
    whole,
    char_blocks,
    char_ids,
    neighbours,
    fixed,
    blob,
    starts,
    slots,
    direct,
    keys,
    values,
    vocab,
    unk,
    fuse,
    byte_ids,
    symbols,
    out,
):
    """Turn pieces of text into ids.

    data, ends : uint8[n], well-formed UTF-8, and int32[p], the end of each piece
    whole  : NEVER, ALWAYS or NEWLINES of models/whole_pieces.py
    char_blocks, char_ids, neighbours : see the module
    fixed  : the trie of user-defined symbols, which are found first, longest first, and never merged (0 rows: none)
    blob, starts, slots, direct, keys, values : see :mod:`constrain.tokenizers.models.bpe_kernels`
    vocab  : the number of tokens
    unk    : the token of a character without one, -1 for none;  fuse : neighbouring ones become one
    byte_ids : int32[256], the tokens of the bytes of such a character; the first is -1 if there are none
    symbols : int32[n], scratch
    out    : int32[n, 3], id, begin and end of each token (output)

    Returns the number of tokens.
    """
    found = np.empty(_SHORT, dtype=np.int64)
    count = 0
    begin = 0
    for piece in range(ends.size):
        end = ends[piece]
        first_out = count
        if end > begin and (whole == ALWAYS or (whole == NEWLINES and data[begin] == 0x0A)):
            token = find_token(data, begin, end, blob, starts, slots)
            if 0 <= token < vocab:
                out[count, 0] = token
                out[count, 1] = begin
                out[count, 2] = end
                count += 1
                begin = end
                continue
        word = begin
        size = 0
        last = -1
        pos = begin
        while pos <= end:
            code = -1
            after = pos + 1
            fixed_token = -1
            if pos < end:
                if fixed.shape[0] > 0:
                    node = 0
                    place = pos
                    while place < end:
                        child = fixed[node, BASE] ^ data[place]
                        if fixed[child, CHECK] != node:
                            break
                        node = child
                        place += 1
                        if fixed[node, TOKEN] >= 0:
                            fixed_token = fixed[node, TOKEN]
                            after = place
                if fixed_token < 0:
                    code, after = code_at(data, pos)
            cut = True
            if last >= 0 and code >= 0:
                bit = neighbour_bit(last, code)
                cut = (neighbours[bit >> 5] >> np.uint32(bit & 31)) & np.uint32(1) == 0
            if cut and size > 0:
                token = -1
                if size > 1:
                    token = find_token(data, word, pos, blob, starts, slots)
                    if token >= 0 and direct[token] == 1:
                        symbols[0] = token
                        size = 1
                    else:
                        if size <= _SHORT:
                            size = merge_short(symbols, found, size, keys, values)
                        else:
                            size = merge_long(symbols, size, keys, values)
                        if token >= 0:
                            direct[token] = 1 if size == 1 and symbols[0] == token else 2
                count = _put_symbols(
                    data, word, size, symbols, vocab, unk, fuse, byte_ids, starts, out, first_out, count
                )
                size = 0
            if fixed_token >= 0:
                out[count, 0] = fixed_token
                out[count, 1] = pos
                out[count, 2] = after
                count += 1
            elif pos < end:
                if size == 0:
                    word = pos
                symbol = char_ids[(np.int64(char_blocks[code >> 8]) << 8) + (code & 0xFF)]
                symbols[size] = symbol if symbol >= 0 else UNKNOWN
                size += 1
            last = code
            pos = after
        begin = end
    return count


_encode = caller_of(encode_symbols)


@njit("int64(int64[::1], int64)", **ENTRY)
def encode_short(frame, size):  # type: ignore[no-untyped-def]
    """A short text in one call: the number of ids, or a negative number where it cannot be normalized.

    frame : see :mod:`constrain.tokenizers.short.pieces`;  size : bytes of text
    """
    length = normalize_short(frame, size)
    return take_short(frame, _encode(frame, MODEL)) if length > 0 else length
