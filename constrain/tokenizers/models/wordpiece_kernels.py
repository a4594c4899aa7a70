"""The jitted part of WordPiece: the longest token first, word by word."""

from __future__ import annotations

from constrain.kernels.jit import ENTRY, njit
from constrain.tokenizers.trie_kernels import BASE, CHECK, TOKEN


@njit("int64(uint8[::1], int32[::1], int32[:, ::1], int64, int64, int64, int32[:, ::1])", **ENTRY)
def encode_words(data, ends, units, inner, unk, most_chars, out):  # type: ignore[no-untyped-def]
    """Turn words into ids.

    data, ends : uint8[n], well-formed UTF-8, and int32[p], the end of each word
    units  : the trie of the tokens, see :mod:`constrain.tokenizers.trie_kernels`
    inner  : the node that the prefix of tokens within a word leads to (-1: there are none)
    unk    : the token of a word that cannot be covered, or has more than ``most_chars`` characters
    out    : int32[n, 3], id, begin and end of each token (output)

    Returns the number of tokens.
    """
    count = 0
    begin = 0
    for word in range(ends.size):
        end = ends[word]
        chars = 0
        for i in range(begin, end):
            if data[i] & 0xC0 != 0x80:
                chars += 1
        first = count
        pos = begin
        if chars > most_chars:
            pos = -1
        while 0 <= pos < end:
            node = 0 if pos == begin else inner
            token = -1
            after = pos
            place = pos
            while node >= 0 and place < end:
                child = units[node, BASE] ^ data[place]
                if units[child, CHECK] != node:
                    break
                node = child
                place += 1
                if units[node, TOKEN] >= 0:
                    token = units[node, TOKEN]
                    after = place
            if token < 0:
                pos = -1
                break
            out[count, 0] = token
            out[count, 1] = pos
            out[count, 2] = after
            count += 1
            pos = after
        if pos < 0:
            count = first
            out[count, 0] = unk
            out[count, 1] = begin
            out[count, 2] = end
            count += 1
        begin = end
    return count
