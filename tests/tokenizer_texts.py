"""Texts that tokenizers find hard, and a naive twin of byte-level merging."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

from constrain.tokenizers.splitting.patterns import by_name

PIECES = (
    "the", " The", "HELLO", " world", "'s", "'S", "'ll", "'LL", "'Ve", "'\u017f", "'", "''d", " 's", "can't",
    "0", " 12345", "3.14", "\u0664\u0665", "\u00bd", "\u2167", " ", "  ", "    ", "\t", "\n", "\r\n", " \n", "\n ",
    "\n\n  ", "\u00a0", "\u2003", "\u0085", "\x1c", "\x00", "\x7f", "{", '"', '":', "},\n", "/", "//", "...", "!\n",
    "\u4e2d\u6587", "\u65e5\u672c\u8a9eA", "\ud55c\uad6d", "\u0928\u092e\u0938\u094d\u0924\u0947", "\u0645\u0631",
    "e\u0301", "\u0301", "\u01c5", "\u02b0", "\u00aa", "camelCaseWord", "X\u4e2dYz", "\u0130", "\U0001f600",
    "\U0001f469\u200d\U0001f4bb", "\U0001f1e9\U0001f1ea", "\ufeff", "\ufffd", "\U0010ffff", "_", "$", "<|endoftext|>",
)  # fmt: skip

TEXTS = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=4)), max_size=24).map("".join)
"""Texts without lone surrogates (``st.text`` makes none)."""

CORPUS = (
    "The quick brown fox jumps over the lazy dog. It's what they'd said: \"we'll see, won't we?\"\n"
    '{"name": "Ada", "age": 36, "tags": ["a", "b"]}   def f(x):\n    return x ** 2  # 中文 and 日本語, naïve café\n'
    "Numbers 1 12 123 1234 and 3.14; HELLO World helloWorld, the end of the text is the end of the text.\n"
)


def pieces_of(text: str, split_name: str) -> list[bytes]:
    """The pieces that a split pattern makes of a text."""
    data = text.encode()
    ends = by_name(split_name).ends(np.frombuffer(bytearray(data), dtype=np.uint8)).tolist()
    return [data[begin:end] for begin, end in pairwise([0, *ends])]


def naive_merge(piece: bytes, ranks: dict[bytes, int]) -> list[bytes]:
    """Joins the pair of lowest rank, leftmost first, until no pair is a token."""
    parts = [piece[i : i + 1] for i in range(len(piece))]
    while True:
        candidates = [(ranks[a + b], i) for i, (a, b) in enumerate(pairwise(parts)) if a + b in ranks]
        if not candidates:
            return parts
        _, place = min(candidates)
        parts[place : place + 2] = [parts[place] + parts[place + 1]]
