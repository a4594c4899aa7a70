"""The jitted part of Unigram: the best path through a text, token by token.

Viterbi's algorithm over the tokens that the trie finds at every character, as in T. Kudo, "Subword
Regularization" (ACL 2018) and its implementations: of paths with equal scores the one found first stays, which is
the one whose last token begins earlier.

Which paths are equal depends on how sums are rounded.  sentencepiece sums in single precision.
To stay precise in long texts, it subtracts the sum at a place from all later ones when that sum falls below -100,000.
Others sum in double precision.
"""

from __future__ import annotations

import numpy as np

from constrain.kernels.jit import ENTRY, INNER, njit
from constrain.tokenizers.short.frames import caller_of
from constrain.tokenizers.short.pieces import MODEL, normalize_short, take_short
from constrain.tokenizers.trie_kernels import BASE, CHECK, TOKEN

_LOWEST_SINGLE = -1e5


@njit("int64(int64)", **INNER)
def char_length(lead):  # type: ignore[no-untyped-def]
    """The number of bytes of the character with this first byte."""
    if lead < 0xC0:
        return 1
    if lead < 0xE0:
        return 2
    return 3 if lead < 0xF0 else 4


@njit(
    "void(uint8[::1], int64, int64, int32[:, ::1], float64[::1], int64, float64, boolean, float64[::1], int32[:, ::1])",
    **INNER,
)
def _best_paths(data, begin, end, units, scores, unk, unk_score, single, best, back):  # type: ignore[no-untyped-def]
    """For each place in ``data[begin:end]`` the best sum up to it, and where its last token begins and which it is."""
    root = units[0, BASE]
    for i in range(begin, end + 1):
        best[i] = -np.inf
    best[begin] = 0.0
    pos = begin
    reached = begin
    while pos < end:
        here = best[pos]
        if single and here < _LOWEST_SINGLE:
            for i in range(pos, reached + 1):
                best[i] = np.float64(np.float32(best[i] - here))
            here = 0.0
        length = char_length(data[pos])
        covered = False
        node = 0
        base = root
        place = pos
        while place < end:
            child = base ^ data[place]
            if units[child, CHECK] != node:
                break
            node = child
            place += 1
            base = units[node, BASE]
            token = units[node, TOKEN]
            if token >= 0:
                score = scores[token] + here
                if single:
                    score = np.float64(np.float32(score))
                if score > best[place]:
                    best[place] = score
                    back[place, 0] = pos
                    back[place, 1] = token
                if place - pos == length:
                    covered = True
        if place > reached:
            reached = place
        place = pos + length
        if not covered:
            score = unk_score + here
            if single:
                score = np.float64(np.float32(score))
            if place > reached:
                reached = place
            if score > best[place]:
                best[place] = score
                back[place, 0] = pos
                back[place, 1] = unk
        pos = place


@njit(
    "int64(uint8[::1], int32[::1], int32[:, ::1], float64[::1], int64, float64, boolean, boolean, int32[::1],"
    " float64[::1], int32[:, ::1], int32[:, ::1])",
    **ENTRY,
)
def encode_unigram(data, ends, units, scores, unk, unk_score, single, fuse, byte_ids, best, back, out):  # type: ignore[no-untyped-def]
    """Turn pieces of text into ids.

    data, ends : uint8[n], well-formed UTF-8, and int32[p], the end of each piece
    units  : the trie of the tokens, see :mod:`constrain.tokenizers.trie_kernels`
    scores : float64[vocab]
    unk, unk_score : what stands for a character that no token covers
    single : sums are those of sentencepiece, see the module
    fuse   : neighbouring unknown characters become one token
    byte_ids : int32[256], the tokens of the bytes of an unknown character; the first is -1 if there are none
    best, back : float64[n + 1], int32[n + 1, 2], scratch
    out    : int32[n, 3], id, begin and end of each token (output)

    Returns the number of tokens.
    """
    count = 0
    begin = 0
    for piece in range(ends.size):
        end = ends[piece]
        _best_paths(data, begin, end, units, scores, unk, unk_score, single, best, back)
        # The path is known from its end.  Turn it round: each place gets the place of the next one.
        place = end
        following = end
        token = -1
        while place > begin:
            previous, before = back[place, 0], back[place, 1]
            back[place, 0] = following
            back[place, 1] = token
            following = place
            token = before
            place = previous
        place = begin
        last_unknown = False
        while place < end:
            if token != unk:
                out[count, 0] = token
                out[count, 1] = place
                out[count, 2] = following
                count += 1
            elif byte_ids[0] >= 0:
                for i in range(place, following):
                    out[count, 0] = byte_ids[data[i]]
                    out[count, 1] = place
                    out[count, 2] = following
                    count += 1
            elif last_unknown and fuse:
                out[count - 1, 2] = following
            elif unk >= 0:
                out[count, 0] = unk
                out[count, 1] = place
                out[count, 2] = following
                count += 1
            last_unknown = token == unk
            place = following
            following, token = back[place, 0], back[place, 1]
        begin = end
    return count


_encode = caller_of(encode_unigram)


@njit("int64(int64[::1], int64)", **ENTRY)
def encode_short(frame, size):  # type: ignore[no-untyped-def]
    """A short text in one call: the number of ids, or a negative number where it cannot be normalized.

    frame : see :mod:`constrain.tokenizers.short.pieces`;  size : bytes of text
    """
    length = normalize_short(frame, size)
    return take_short(frame, _encode(frame, MODEL)) if length > 0 else length
