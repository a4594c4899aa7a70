"""Learns byte-level BPE merges from counted pieces of text."""

from __future__ import annotations

import itertools
from collections import defaultdict
from heapq import heapify, heappop, heappush

from constrain.tokenizers.byte_alphabet import bytes_to_text

Pair = tuple[int, int]


def learn_merges(pieces: dict[bytes, int], vocab_size: int) -> tuple[list[bytes], list[Pair]]:
    """The tokens, bytes first, and the merges in order.

    Repeatedly joins the most frequent pair of neighbours; among equally frequent ones the pair with
    the lowest ids, so that the result depends on the counts alone.  Stops early when no pair occurs
    twice.
    """
    tokens = [bytes((byte,)) for byte in range(256)]
    merges: list[Pair] = []
    words = [list(piece) for piece in pieces]
    weights = list(pieces.values())
    counts: dict[Pair, int] = defaultdict(int)
    where: dict[Pair, set[int]] = defaultdict(set)
    for index, word in enumerate(words):
        for pair in itertools.pairwise(word):
            counts[pair] += weights[index]
            where[pair].add(index)
    heap = [(-count, pair) for pair, count in counts.items()]
    heapify(heap)
    while heap and len(tokens) < vocab_size:
        count, pair = heappop(heap)
        if counts.get(pair, 0) != -count:
            continue
        if -count < 2:
            break
        new = len(tokens)
        tokens.append(tokens[pair[0]] + tokens[pair[1]])
        merges.append(pair)
        changed: set[Pair] = set()
        for index in where.pop(pair):
            word, weight = words[index], weights[index]
            for old in itertools.pairwise(word):
                counts[old] -= weight
                changed.add(old)
            word = words[index] = _joined(word, pair, new)
            for fresh in itertools.pairwise(word):
                counts[fresh] += weight
                where[fresh].add(index)
                changed.add(fresh)
        counts.pop(pair, None)
        for touched in changed:
            if counts.get(touched, 0) > 0:
                heappush(heap, (-counts[touched], touched))
    return tokens, merges


def _joined(word: list[int], pair: Pair, new: int) -> list[int]:
    out: list[int] = []
    place = 0
    while place < len(word):
        if place + 1 < len(word) and word[place] == pair[0] and word[place + 1] == pair[1]:
            out.append(new)
            place += 2
        else:
            out.append(word[place])
            place += 1
    return out


def tokenizer_json(tokens: list[bytes], merges: list[Pair], end_of_text: str) -> dict[str, object]:
    """The content of a ``tokenizer.json`` with GPT-2's split pattern; ``end_of_text`` gets the last id."""
    written = [bytes_to_text(token) for token in tokens]
    pipeline = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    special = {
        "id": len(tokens),
        "content": end_of_text,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": True,
    }
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [special],
        "normalizer": None,
        "pre_tokenizer": pipeline,
        "post_processor": None,
        "decoder": pipeline,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: index for index, token in enumerate(written)},
            "merges": [f"{written[left]} {written[right]}" for left, right in merges],
        },
    }
