"""The jitted part of the demo model: next-token costs along a chain of back-offs.

The model is a trie of n-grams, level by level in one set of arrays.  Row i < vocab is the token i;
rows of order k + 1 follow those of order k; the children of a row are neighbours, sorted by word.
All costs are whole multiples of one step of the logarithm, so sums are exact and the same on every
machine.
"""

from __future__ import annotations

from constrain.kernels.jit import ENTRY, njit


@njit("int64(int32[::1], uint16[::1], int64, int64, int64)", **ENTRY)
def _child(first, words, vocab, row, word):  # type: ignore[no-untyped-def]
    """The child of ``row`` for ``word``, or -1."""
    low = first[row]
    high = first[row + 1]
    while low < high:
        middle = (low + high) >> 1
        if words[middle - vocab] < word:
            low = middle + 1
        else:
            high = middle
    if low < first[row + 1] and words[low - vocab] == word:
        return low
    return -1


@njit("void(int64[::1], int32[::1], uint16[::1], uint8[::1], int8[::1], int32[::1])", **ENTRY)
def next_costs(context, first, words, costs, weights, out):  # type: ignore[no-untyped-def]
    """Cost (negative log-probability, in steps) of each token after ``context``.

    context : int64[c], the last tokens, at most one less than the order of the model
    first   : int32[rows + 1], the first child of each row that can have children; a row's children
              end where those of the next row begin
    words   : uint16[n], last token of each row from row ``vocab`` on
    costs   : uint8[vocab + n], cost of the last token of each row after the others
    weights : int8[rows], cost of backing off from each row to a shorter context
    out     : int32[vocab], the costs (output)
    """
    vocab = out.size
    for token in range(vocab):
        out[token] = costs[token]
    for length in range(1, context.size + 1):
        row = context[context.size - length]
        for place in range(context.size - length + 1, context.size):
            row = _child(first, words, vocab, row, context[place])
            if row < 0:
                break
        if row < 0 or first[row] == first[row + 1]:
            continue
        weight = weights[row]
        for token in range(vocab):
            out[token] += weight
        for child in range(first[row], first[row + 1]):
            out[words[child - vocab]] = costs[child]
