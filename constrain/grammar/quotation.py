"""Verbatim text: some pieces of a text in a row, or nothing, as one node of the IR.

A quotation is a union, of what may be quoted from each piece on.  Written out it would be as many nodes as there are
pieces, and as deep; so the node holds the text and its cuts, and the engine makes of them what it needs
(constrain/engine/automata/quotations.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import Any

from constrain.errors import GrammarError, LimitError
from constrain.grammar.regular import EPSILON, Regular, Union, concat, literal, union
from constrain.limits import spend

MOST_BYTES = 4 << 20
"""A longer text is refused."""

MOST_PARTS = 2_000
"""A text of more pieces is not written out."""


class Quotation(Union):
    """Some pieces of a text in a row, or nothing.

    Parameters
    ----------
    text : bytes
        All pieces, one behind the other.
    cuts : bytes
        A byte for each byte of ``text``: 1 where a piece begins, else 0.
    """

    __slots__ = ("cuts", "text")

    def __init__(self, text: bytes, cuts: bytes) -> None:
        self.text = text
        self.cuts = cuts

    def __getattr__(self, name: str) -> tuple[Regular, ...]:
        # ``parts``: what looks into languages in Python may treat this as any other union.
        if name != "parts":
            raise AttributeError(name)
        self.parts = self._written_out()
        return self.parts

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            value = self._hash = hash(self._key())
            return value

    __eq__ = Regular.__eq__

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        return None, {"text": self.text, "cuts": self.cuts}

    def _key(self) -> tuple[Any, ...]:
        return (self.text, self.cuts)

    def pieces(self) -> list[bytes]:
        """The pieces of the text."""
        begins = [place for place, cut in enumerate(self.cuts) if cut]
        return [self.text[begin:end] for begin, end in zip(begins, [*begins[1:], len(self.text)], strict=True)]

    def _written_out(self) -> tuple[Regular, ...]:
        count = self.cuts.count(1)
        if count > MOST_PARTS:
            raise LimitError(
                f"a text of more than {MOST_PARTS:,} pieces ({count:,}) to be quoted from can stand in a rule or a "
                "terminal, but not where the grammar is rewritten around it; quote from a shorter text there"
            )
        spend(count)
        tail: Regular = EPSILON
        tails: list[Regular] = []
        for piece in reversed(self.pieces()):
            tail = union(EPSILON, concat(literal(piece), tail))
            tails.append(tail)
        parts = union(EPSILON, *tails)
        return parts.parts if isinstance(parts, Union) else (parts,)


def quotation(pieces: Iterable[str]) -> Regular:
    """Some of the pieces in a row, or nothing; empty pieces do not count.

    Raises
    ------
    GrammarError
        If they are too long, or no UTF-8 can stand for them.
    """
    data = [_encoded(piece) for piece in pieces]
    text = b"".join(data)
    cuts = bytearray(len(text) + 1)
    for place in accumulate(map(len, data), initial=0):
        cuts[place] = 1
    return _of(text, bytes(cuts[:-1]))


def quotation_of_characters(text: str) -> Regular:
    """Some characters of a text in a row, or nothing; raises what :func:`quotation` does."""
    data = _encoded(text)
    return _of(data, data.translate(_BEGINS_CHARACTER))


_BEGINS_CHARACTER = bytes(byte & 0xC0 != 0x80 for byte in range(256))


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        surrogate = ascii(error.object[error.start])
        raise GrammarError(f"{surrogate} is half of a surrogate pair, which no text holds; leave it out") from None


def _of(text: bytes, cuts: bytes) -> Regular:
    spend(1 + len(text) // 16)
    if len(text) > MOST_BYTES:
        raise GrammarError(f"a text of {len(text):,} bytes; up to {MOST_BYTES:,} can be quoted from")
    return Quotation(text, cuts) if text else EPSILON
