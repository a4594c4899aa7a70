"""The tokens of forced text: those that the tokenizer itself would have made of the whole text.

Where a grammar leaves no choice, the next bytes are known, and the model need not be asked for them.  But the
model was trained on texts as its tokenizer splits them, so the bytes have to become the tokens that stand there when
the finished text is encoded.  Two things can spoil that:

* the tokens so far may end where the tokenizer would not have ended one (after ``"`` where it makes ``",`` of it and
  the comma that is forced).  Then the model is asked, until the two agree again;
* what follows may change the last tokens (``":`` before a ``-`` may become ``":-``).  So texts that can follow are
  tried: each next character that the grammar allows, and whatever follows in a token of the vocabulary that begins
  within the last tokens and reaches beyond them.  Tokens that differ in any of these are left to the model.
"""

from __future__ import annotations

import operator
import reprlib
import threading
import weakref
from bisect import bisect_left
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from constrain.characters import whole_characters
from constrain.engine.vocabulary.bitmasks import allocate_token_bitmask
from constrain.engine.vocabulary.encoder import Encoder
from constrain.engine.vocabulary.vocabulary import NORMAL, Vocabulary
from constrain.errors import ConstrainError
from constrain.grammar.tokens import MARK

# How much text in front is encoded along: splits are made within words, which are shorter than this.
CONTEXT_BYTES = 192
# Forced text beyond this waits for the next call, and its own first bytes are what follows.
_MOST_BYTES = 4096
_MARGIN_BYTES = 64
# The last tokens, which what follows can change.
_TAIL_TOKENS = 8
_LONGEST_SPAN = 24
_MOST_SPANNING = 1024
_MOST_PROBES = 512
_MOST_REMEMBERED = 4096

# Something that is not ASCII, by its first byte: letters of several scripts, a space, punctuation, symbols.
_CHARACTERS = "\u00a0éñßžαжשعक一中가，。„—’€→☃Ａ😀"


class Follower(Protocol):
    """What is asked of a matcher."""

    def _ahead(self, forced: bytes, /) -> Follower | None:
        """Another one, behind forced text, which can go on with all that may follow; None if that is not certain."""

    def accept_bytes(self, data: bytes, /) -> bool:
        """Go on with these bytes, all or nothing."""

    def fill_next_token_bitmask(self, mask: Any, index: int = 0, /) -> None:
        """Write the tokens that may come next to a row of a mask."""

    def rollback(self, count: int = 1, /) -> None:
        """Take back the last steps."""


class ForcedTokens:
    """Finds the tokens of forced text; what it learns about a tokenizer it keeps.

    Parameters
    ----------
    vocabulary : Vocabulary
        Not kept: only its tokens are.
    encoder : Encoder
        The tokenizer.  If it does not give back a text's bytes exactly, nothing is ever forced.
    """

    def __init__(self, vocabulary: Vocabulary, encoder: Encoder) -> None:
        self._encoder = _checked(encoder)
        self._tokens = vocabulary.tokens
        self._size = vocabulary.size
        self._anchor = ""
        # In the trie's depth-first order, which is that of their bytes.
        order = vocabulary.trie.token[vocabulary.trie.token >= 0]
        self._sorted = [self._tokens[token] for token in order.tolist()]
        self._byte_tokens = np.full(256, -1, np.int64)
        for token in order[np.diff(vocabulary.starts)[order] == 1].tolist():
            self._byte_tokens[self._tokens[token][0]] = token
        self._mask = threading.local()
        # (end of the text, mask after it) -> how many tokens at the end may still change.
        self._unsettled: dict[tuple[bytes, bytes], int] = {}
        if self._encode(b"a") is None:
            # SentencePiece puts a space in front of a text, but not behind a character that is no part of any word.
            self._anchor = "\n"

    def next(self, text: bytes | bytearray, forced: bytes, matcher: Follower) -> list[int]:
        """The tokens that can be appended now: none, or the first of those that ``forced`` becomes.

        Parameters
        ----------
        text : bytes
            Everything so far, without the prompt; behind a special token, which is a border, what follows it.
        forced : bytes
            What every continuation of it begins with (at least one byte), as a matcher's ``forced_bytes()``.
        matcher : Follower
            At the end of ``text``; it is not changed.
        """
        start = _character_start(text, max(0, len(text) - CONTEXT_BYTES))
        context = bytes(text[start:])
        whole = context + forced[:_MOST_BYTES]
        whole = whole[: whole_characters(whole)]
        if len(whole) <= len(context):
            return []
        ids = self._encode(whole)
        if ids is None:
            return []
        lengths = [len(self._tokens[token]) for token in ids]
        first = _index_at(lengths, len(context))
        if first is None:
            return []
        if len(forced) > _MOST_BYTES:
            last = len(ids)
            margin = 0
            while last > first and margin < _MARGIN_BYTES:
                last -= 1
                margin += lengths[last]
        else:
            last = len(ids) - self._count_unsettled(whole, ids, lengths, whole[len(context) :], matcher)
        return ids[first:last] if last > first else []

    def _encode(self, data: bytes) -> list[int] | None:
        """The tokens of a text, or None if their bytes are not the text's."""
        try:
            ids: list[int] = list(self._encoder.encode(self._anchor + data.decode()).ids)
        except (UnicodeDecodeError, ConstrainError):
            return None
        # A token without a place in the vocabulary cannot be forced.
        if any(not 0 <= token < self._size for token in ids):
            return None
        if not self._anchor:
            return ids if b"".join([self._tokens[token] for token in ids]) == data else None
        length = 0
        for position in range(len(ids), -1, -1):
            if length == len(data):
                ids = ids[position:]
                return ids if b"".join([self._tokens[token] for token in ids]) == data else None
            if position:
                length += len(self._tokens[ids[position - 1]])
        return None

    def _count_unsettled(
        self, whole: bytes, ids: list[int], lengths: list[int], forced: bytes, matcher: Follower
    ) -> int:
        """How many of the last tokens of ``whole`` may be others when something follows."""
        after = matcher._ahead(forced)
        if after is None:
            return len(ids)
        if not hasattr(self._mask, "row"):
            self._mask.row = allocate_token_bitmask(1, self._size)
        mask = self._mask.row
        after.fill_next_token_bitmask(mask, 0)

        tail = ids[-_TAIL_TOKENS:]
        base = whole[len(whole) - sum(lengths[-_TAIL_TOKENS:]) :]
        key = (base, blake2b(mask, digest_size=16).digest())
        known = self._unsettled.get(key)
        if known is not None:
            return known
        if self._encode(base) != tail:
            # They are others without the tokens in front of them.
            base, tail = whole, ids
        settled = len(tail)
        for probe in self._continuations(base, after, mask[0]):
            longer = self._encode(base + probe)
            if longer is None:
                settled = 0
                break
            while tail[:settled] != longer[:settled]:
                settled -= 1
            if settled == 0:
                break
        if len(self._unsettled) >= _MOST_REMEMBERED:
            self._unsettled.clear()
        unsettled = self._unsettled[key] = len(tail) - settled
        return unsettled

    def _continuations(self, base: bytes, after: Follower, mask: NDArray[np.int32]) -> list[bytes]:
        """Texts that can follow ``base``, one for each way in which they may change its last tokens."""
        next_bytes = self._next_bytes(after, mask)
        probes = [bytes((byte,)) for byte in range(0x80) if byte in next_bytes]
        # What begins a special token (MARK) is no character, and changes nothing before it.
        leads = {byte for byte in next_bytes if 0xC0 <= byte < MARK}
        for data in map(str.encode, _CHARACTERS):
            if data[0] in next_bytes and _can_follow(after, data):
                probes.append(data)
                leads.discard(data[0])
        probes += [_some_character(after, lead) for lead in sorted(leads)]
        spanning: dict[bytes, None] = {}
        for length in range(min(len(base), _LONGEST_SPAN), 0, -1):
            prefix = base[-length:]
            begin = bisect_left(self._sorted, prefix)
            end = bisect_left(self._sorted, prefix + b"\xff" * _LONGEST_SPAN, begin)
            if end - begin > _MOST_SPANNING:
                # Begun by so many tokens, it is changed by single characters too.
                continue
            shortest: dict[bytes, bytes] = {}
            for token in self._sorted[begin:end]:
                rest = token[length:]
                if rest and rest[0] in next_bytes and len(rest) < len(shortest.get(rest[:2], rest + b"-")):
                    shortest[rest[:2]] = rest
            spanning.update(dict.fromkeys(shortest.values()))
        for rest in spanning:
            if len(probes) >= _MOST_PROBES:
                break
            rest = rest[: whole_characters(rest)]
            if len(rest) > 1 and _can_follow(after, rest):
                probes.append(rest)
        return probes

    def _next_bytes(self, after: Follower, mask: NDArray[np.int32]) -> set[int]:
        ids = self._byte_tokens
        allowed = (mask[np.maximum(ids, 0) >> 5] >> (ids & 31)) & 1
        found = set(np.flatnonzero((ids >= 0) & (allowed == 1)).tolist())
        found.update(byte for byte in np.flatnonzero(ids < 0).tolist() if _can_follow(after, bytes((byte,))))
        return found


# One for each vocabulary and tokenizer, so that what it learned serves later generations too.
_known: weakref.WeakKeyDictionary[Vocabulary, tuple[Any, ForcedTokens]] = weakref.WeakKeyDictionary()


def forced_tokens(vocabulary: Vocabulary, encoder: Encoder) -> ForcedTokens:
    """The :class:`ForcedTokens` of a vocabulary and its tokenizer, made when first asked for."""
    known = _known.get(vocabulary)
    if known is None or known[0] is not encoder:
        known = _known[vocabulary] = (encoder, ForcedTokens(vocabulary, encoder))
    return known[1]


def _checked(encoder: Any) -> Any:
    """The tokenizer, if its results have ids; those of ``transformers`` are lists."""
    try:
        # A str has an encode() of its own.
        found = encoder.encode("a") if hasattr(encoder, "encode") and not isinstance(encoder, str) else None
    except ConstrainError:  # not every tokenizer has a token for this text
        return encoder
    if not hasattr(found, "ids"):
        kind = type(encoder).__name__
        raise ConstrainError(
            f"a tokenizer is one of constrain.load_tokenizer(), or has encode(text).ids, which {kind} has not"
        )
    return encoder


def text_behind(vocabulary: Vocabulary, history: Sequence[int]) -> bytes:
    """The end of the text that some tokens spell, long enough to split what follows; behind the last special one.

    Raises
    ------
    ConstrainError
        If an id is out of range or no integer.
    """
    pieces: list[bytes] = []
    length = 0
    try:
        backwards = reversed(history)
    except TypeError:
        raise ConstrainError(f"history must be a list of token ids, not {reprlib.repr(history)}") from None
    for each in backwards:
        try:
            token = operator.index(each)
        except TypeError:
            raise ConstrainError(f"history: token id {each!r} is not an integer") from None
        if not 0 <= token < vocabulary.size:
            raise ConstrainError(f"token id {token} is out of range, the vocabulary has {vocabulary.size} tokens")
        if length >= CONTEXT_BYTES or vocabulary.kinds[token] != NORMAL or token in vocabulary.spelled_ids:
            break
        pieces.append(vocabulary.tokens[token])
        length += len(pieces[-1])
    return b"".join(reversed(pieces))


def _can_follow(after: Follower, data: bytes) -> bool:
    if not after.accept_bytes(data):
        return False
    after.rollback(1)
    return True


def _some_character(after: Follower, lead: int) -> bytes:
    """A character that can follow and begins with this byte."""
    data = bytes((lead,))
    while whole_characters(data) < len(data):
        data += next(bytes((byte,)) for byte in range(0x80, 0xC0) if _can_follow(after, data + bytes((byte,))))
    return data


def _index_at(lengths: Sequence[int], target: int) -> int | None:
    """Before which token of these lengths there are ``target`` bytes; None if a token has bytes on both sides."""
    position = 0
    for index, length in enumerate(lengths):
        if position == target:
            return index
        if position > target:
            return None
        position += length
    return None


def _character_start(data: bytes | bytearray, start: int) -> int:
    """The first beginning of a character at or after ``start``."""
    while start < len(data) and data[start] & 0xC0 == 0x80:
        start += 1
    return start
