"""Estimates the n-gram model: interpolated modified Kneser-Ney, then pruning, then quantization.

An n-gram of order k is a row in three arrays: its ``parent`` (the n-gram of order k - 1 without the
last token), its last ``word``, and its ``suffix`` (the n-gram of order k - 1 without the first
token).  Rows are sorted by parent and word, so the children of a row are neighbours: the arrays are
the trie that the model looks things up in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from constrain.demo.ngram import STEP

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass
class Order:
    """All n-grams of one order."""

    parent: Ints
    word: Ints
    suffix: Ints
    count: Ints
    probability: Floats
    weight: Floats
    """``weight[i]`` is what the context i leaves to the next lower order."""


def count_ngrams(tokens: Ints, vocab_size: int, boundary: int, highest: int) -> list[Order]:
    """The n-grams of orders 1 to ``highest``.

    ``tokens`` is int64[n]; texts are separated by the token ``boundary``, which also begins the first
    one.  It may begin or end an n-gram but does not occur inside one.
    """
    empty = np.zeros(0)
    unigrams = np.bincount(tokens, minlength=vocab_size).astype(np.int64)
    orders = [
        Order(
            np.zeros(vocab_size, np.int64),
            np.arange(vocab_size),
            np.zeros(vocab_size, np.int64),
            unigrams,
            empty,
            empty,
        )
    ]
    row_at = tokens.copy()  # the row of the n-gram of the current order that begins at each place, or -1
    for _ in range(2, highest + 1):
        begin = np.flatnonzero(row_at[:-1] >= 0)
        length = len(orders) + 1
        begin = begin[begin + length <= len(tokens)]
        # The token before the last one must not end a text, unless it is the first of the n-gram.
        inner = tokens[begin + length - 2] != boundary
        begin = begin[inner | (length == 2)]
        keys = row_at[begin] * vocab_size + tokens[begin + length - 1]
        unique, first, rows, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
        suffix = row_at[begin[first] + 1]
        row_at = np.full(len(tokens), -1, dtype=np.int64)
        row_at[begin] = rows
        orders.append(Order(unique // vocab_size, unique % vocab_size, suffix, counts.astype(np.int64), empty, empty))
    return orders


def estimate(orders: list[Order], vocab_size: int, boundary: int, scale: float) -> None:
    """Fill in probabilities and weights, interpolated modified Kneser-Ney.

    ``scale`` multiplies the discounts of orders above 2.  Below 1 the model leaves less to shorter
    contexts than would predict unseen text best, and what it makes up reads better.
    """
    for level, order in enumerate(orders):
        counts = order.count.astype(np.float64)
        if level + 1 < len(orders):
            # How many different tokens precede it, except where nothing can.
            preceded = np.bincount(orders[level + 1].suffix, minlength=len(counts)).astype(np.float64)
            starts = _first_word(orders, level) == boundary
            counts = np.where(starts & (level > 0), counts, preceded)
        discount = _discounts(counts)[np.minimum(counts, 3).astype(np.int64)]
        if level > 1:
            discount = discount * scale
        parents = 1 if level == 0 else len(orders[level - 1].word)
        groups = order.parent
        sums = np.bincount(groups, counts, parents)
        held_back = np.bincount(groups, discount, parents)
        weight = np.divide(held_back, sums, out=np.ones(parents), where=sums > 0)
        if level == 0:
            lower: Floats = np.full(vocab_size, 1 / vocab_size)
        else:
            lower = orders[level - 1].probability[order.suffix]
            orders[level - 1].weight = weight
        share = np.divide(counts - discount, sums[groups], out=np.zeros(len(counts)), where=sums[groups] > 0)
        order.probability = share + weight[groups] * lower
        if level == 0:
            _set_share(order.probability, boundary, order.count[boundary] / order.count.sum())


def _set_share(probability: Floats, token: int, share: float) -> None:
    """Give one token this probability and scale the others.

    The end of a text follows so many different tokens that its Kneser-Ney count says nothing.
    """
    probability[token] = 0
    probability *= (1 - share) / probability.sum()
    probability[token] = share


def _discounts(counts: Floats) -> Floats:
    """The discounts for counts of 0, 1, 2 and more."""
    n1, n2, n3, n4 = (max(1, int((counts == number).sum())) for number in (1, 2, 3, 4))
    share = n1 / (n1 + 2 * n2)
    values = (1 - 2 * share * n2 / n1, 2 - 3 * share * n3 / n2, 3 - 4 * share * n4 / n3)
    return np.array(
        (0.0, *(min(max(value, 0.05), limit - 0.05) for value, limit in zip(values, (1, 2, 3), strict=True)))
    )


def _first_word(orders: list[Order], level: int) -> Ints:
    first = orders[0].word
    for order in orders[1 : level + 1]:
        first = first[order.parent]
    return first


def prune(orders: list[Order], limit: int) -> list[npt.NDArray[np.bool_]]:
    """Which rows to keep: the ``limit`` n-grams whose loss would cost most, and all that lead to them.

    The cost is the count times the logarithm of how much the lower order would change the
    probability.
    """
    costs = [np.full(len(orders[0].word), np.inf)]
    for level in range(1, len(orders)):
        order, lower = orders[level], orders[level - 1]
        backed_off = lower.weight[order.parent] * lower.probability[order.suffix]
        costs.append(order.count * np.log(order.probability / backed_off))
    everything = np.concatenate(costs[1:])
    threshold = (
        np.partition(everything, len(everything) - limit)[len(everything) - limit] if limit < len(everything) else 0.0
    )
    keep = [cost >= threshold for cost in costs]
    for level in range(len(orders) - 1, 0, -1):
        keep[level - 1][orders[level].parent[keep[level]]] = True
    return keep


def pack(orders: list[Order], keep: list[npt.NDArray[np.bool_]]) -> dict[str, npt.NDArray[Any]]:
    """The arrays that :class:`constrain.demo.ngram.DemoModel` reads, for the rows in ``keep``.

    Weights are worked out anew, so that the probabilities after each context still sum to one.
    """
    probability = orders[0].probability
    children: list[Ints] = []
    weights: list[Floats] = []
    for level in range(1, len(orders)):
        order = orders[level]
        kept = keep[level]
        parents = len(orders[level - 1].word)
        lower = probability[order.suffix]
        given = np.bincount(order.parent[kept], order.probability[kept], parents)
        replaced = np.bincount(order.parent[kept], lower[kept], parents)
        weight = np.maximum(1 - given, 1e-6) / np.maximum(1 - replaced, 1e-6)
        children.append(np.bincount(order.parent[kept], minlength=parents)[keep[level - 1]])
        weights.append(weight[keep[level - 1]])
        probability = np.where(kept, order.probability, weight[order.parent] * lower)
    counts = np.concatenate(children)
    words = np.concatenate([order.word[kept] for order, kept in zip(orders[1:], keep[1:], strict=True)])
    # Siblings are sorted: the differences are small numbers, which compress well.
    first = np.zeros(len(words), dtype=bool)
    first[np.cumsum(counts)[counts > 0] - counts[counts > 0]] = True
    steps = np.where(first, words, words - np.concatenate(([0], words[:-1])))
    costs = [-np.log(order.probability[kept]) for order, kept in zip(orders, keep, strict=True)]
    quantized = np.concatenate(costs) / STEP
    return {
        "children": _byte_planes(counts),
        "words": _byte_planes(steps),
        "costs": np.clip(np.rint(quantized), 0, 255).astype(np.uint8),
        "weights": np.clip(np.rint(-np.log(np.concatenate(weights)[counts > 0]) / STEP), -128, 127).astype(np.int8),
    }


def _byte_planes(values: Ints) -> npt.NDArray[np.uint8]:
    """uint8[2, n], low bytes before high bytes: they compress better apart."""
    return np.stack((values & 0xFF, values >> 8)).astype(np.uint8)
