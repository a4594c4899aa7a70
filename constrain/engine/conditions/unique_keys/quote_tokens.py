"""The tokens of a vocabulary that hold a quote, for the search for keys that come again (unique_keys.py)."""

from __future__ import annotations

import json
import re
import weakref
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from constrain.engine.vocabulary.vocabulary import NORMAL, Vocabulary
from constrain.errors import LimitError

Int32Array = np.ndarray[Any, np.dtype[np.int32]]

_QUOTE = ord('"')

_BLANKS = b" \t\r\n"

# The colon of a key that may end in the token, with its quote or without.  All patterns here take linear time, however
# long a token is: none has a part of any length before another.
_KEY_END = re.compile(rb'(?:"|\A)[ \t\r\n]*:')

# A whole key behind a comma.
_WHOLE_KEY = re.compile(rb',[ \t\r\n]*"[^"]*"')

# The quote with which a key begins, and what is before it; the one with which a key ends.
_KEY_BEGIN = re.compile(rb'(?:[{,]|\A)[ \t\r\n]*"')
_KEY_QUOTE = re.compile(rb'"(?=[ \t\r\n]*(?::|\Z))')

# A comma behind which a key may begin, in the token or behind it.
_BEFORE_KEY = re.compile(rb',(?=[ \t\r\n]*(?:"|\Z))')

_BACKSLASH = ord("\\")

_MOST_CONTENT = 64 << 20
"""Bytes of all strings that stand in tokens.  A token of n escaped quotes holds n strings, the square of its length."""


class QuoteTokens:
    """The tokens with a quote.

    Attributes
    ----------
    data, starts : uint8[n_bytes], int64[n_tokens + 1]
        The bytes of all tokens, as in the vocabulary.
    tokens, groups : int32[n], int32[n_groups + 1]
        The tokens; ``tokens[groups[i]:groups[i + 1]]`` are those that are the same before their first quote.
    longest_rest : int
        The most bytes that stand before a quote.
    with_strings : list of int
        The tokens in which a whole string may stand.
    content_bytes, content_starts : uint8[n_bytes + 1], int32[n + 1]
        What stands in those strings, as UTF-8.
    to_next_key : list of int
        The tokens in which a key may end and the next one be begun, or at least the comma be.
    may_hold_two_keys : bool
        Whether in one of them the next key may stand as a whole.
    longest : int
        The most bytes of a token with a quote or a closing brace.
    empty_keys : int64[...], optional
        For unique_keys/unique_keys.py, which keeps there the memory that every text begins with.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.data, self.starts = vocabulary.data, vocabulary.starts
        self._is_normal = vocabulary.kinds == NORMAL
        counts = self._counts(_QUOTE)
        bytes_of = self._bytes_of
        texts = {token: bytes_of(token) for token in np.flatnonzero(counts).tolist()}
        before = {token: text.split(b'"', 1)[0] for token, text in texts.items()}
        ordered = sorted(before, key=before.__getitem__)
        first = [i for i, token in enumerate(ordered) if i == 0 or before[token] != before[ordered[i - 1]]]
        self.tokens: Int32Array = np.array(ordered, np.int32)
        self.groups: Int32Array = np.array([*first, len(ordered)], np.int32)
        self.with_strings: list[int] = np.flatnonzero(counts > 1).tolist()
        self.longest_rest = max((text.rindex(b'"') for text in texts.values()), default=0)
        contents = sorted(_contents(map(texts.__getitem__, self.with_strings)))
        self.content_starts: Int32Array = np.cumsum([0, *map(len, contents)], dtype=np.int32)
        self.content_bytes = np.frombuffer(b"".join(contents) + b"\0", np.uint8)
        # Where such a colon ends, in the tokens that have a comma behind it, and perhaps no quote.
        commas = np.flatnonzero((self._counts(ord(",")) > 0) & (self._counts(ord(":")) > 0)).tolist()
        colons = {token: found.end() for token in commas if (found := _KEY_END.search(bytes_of(token)))}
        self.to_next_key = [token for token, end in colons.items() if bytes_of(token).find(b",", end) >= 0]
        self.empty_keys: np.ndarray[Any, np.dtype[np.int64]] | None = None
        lengths = np.diff(self.starts)[: len(counts)]
        self.longest = int(lengths[(counts > 0) | (self._counts(ord("}")) > 0)].max(initial=1))
        self.may_hold_two_keys = any(_WHOLE_KEY.search(bytes_of(token), colons[token]) for token in self.to_next_key)

    @cached_property
    def most_keys(self) -> int:
        """How many keys a token ends at most."""
        texts = map(self._bytes_of, self.tokens.tolist())
        return max((len(_KEY_END.findall(text)) for text in texts), default=1) or 1

    @cached_property
    def longest_around_key(self) -> tuple[int, int]:
        """How many bytes a token has at most before a key that begins in it, and behind one that ends in it."""
        before = behind = 0
        for token in self.tokens.tolist():
            text = self._bytes_of(token)
            before = max([before, *(found.end() - 1 for found in _KEY_BEGIN.finditer(text))])
            behind = max([behind, *(len(text) - found.end() for found in _KEY_QUOTE.finditer(text))])
        return before, behind

    @cached_property
    def to_key(self) -> tuple[list[int], list[int]]:
        """The tokens that may go on to a key behind a comma: from outside of strings, and from within one."""
        found: tuple[list[int], list[int]] = [], []
        for token in np.flatnonzero(self._counts(ord(","))).tolist():
            text = self._bytes_of(token)
            quotes = [text.count(b'"', 0, comma.start()) for comma in _BEFORE_KEY.finditer(text)]
            for side, tokens in enumerate(found):
                # A quote behind a backslash is none that ends a string.
                if any(count % 2 == side for count in quotes) or (quotes and b"\\" in text):
                    tokens.append(token)
        return found

    @cached_property
    def with_backslash(self) -> list[int]:
        """The tokens with a backslash."""
        return np.flatnonzero(self._counts(_BACKSLASH)).tolist()  # type: ignore[no-any-return]

    @cached_property
    def with_blank_before(self) -> list[int]:
        """The tokens of blanks, and those in which nothing but blanks stands before a quote."""
        counts = np.sum([self._counts(blank) for blank in _BLANKS], axis=0)
        lengths = np.diff(self.starts)[: len(counts)]
        blank = np.flatnonzero((counts == lengths) & (lengths > 0)).tolist()
        before = [(token, self._bytes_of(token).split(b'"', 1)[0]) for token in self.tokens.tolist()]
        return sorted([*blank, *(token for token, text in before if text and not text.strip(_BLANKS))])

    def _bytes_of(self, token: int) -> bytes:
        # The vocabulary's own tuple of all tokens is not made for some of them.
        found: bytes = self.data[self.starts[token] : self.starts[token + 1]].tobytes()
        return found

    def _counts(self, byte: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """How often each normal token holds a byte."""
        owners = np.searchsorted(self.starts, np.flatnonzero(self.data == byte), side="right") - 1
        size = len(self._is_normal)
        counts = np.bincount(owners[owners < size], minlength=size)
        counts[~self._is_normal] = 0
        return counts


def _contents(tokens: Iterable[bytes]) -> set[bytes]:
    """What stands between two quotes of a token, if that is a string wherever it begins."""
    found: set[bytes] = set()
    total = 0
    for token in tokens:
        for begin, end in _strings(token):
            try:
                content = json.loads(token[begin - 1 : end + 1], strict=False).encode()
            except ValueError:
                continue  # no JSON, or no UTF-8
            if content not in found:
                found.add(content)
                total += len(content)
            if total > _MOST_CONTENT:
                raise LimitError(
                    f"the vocabulary has tokens that hold strings of {total:,} bytes; keys that must not come again "
                    f"are looked for in {_MOST_CONTENT:,} bytes of them"
                )
    return found


def _strings(token: bytes) -> Iterator[tuple[int, int]]:
    """Where strings begin and end that a token may hold: behind a quote, and at the next that is not escaped."""
    size = len(token)
    # Of a string with its next character at each of the last places gone through: where it ends, or -1.
    here, later = -1, -1
    found = []
    for place in range(size - 1, -1, -1):
        byte = token[place]
        if byte == _QUOTE and here >= 0:
            found.append((place + 1, here))
        ends = place if byte == _QUOTE else later if byte == _BACKSLASH else here
        here, later = ends, here
    return reversed(found)


_known: weakref.WeakKeyDictionary[Vocabulary, QuoteTokens] = weakref.WeakKeyDictionary()


def quote_tokens(vocabulary: Vocabulary) -> QuoteTokens:
    """The tokens of a vocabulary with a quote, looked for once."""
    known = _known.get(vocabulary)
    if known is None:
        known = _known[vocabulary] = QuoteTokens(vocabulary)
    return known
