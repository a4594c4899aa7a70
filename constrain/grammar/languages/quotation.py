"""Verbatim text: some pieces of a text in a row, or nothing, as one node of the IR.

A quotation is a union, of what may be quoted from each piece on.  Written out it would be as many nodes as there are
pieces, and as deep; so the node holds the text and its cuts, and the engine makes of them what it needs
(constrain/engine/automata/quotations.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, compress
from typing import Any

from constrain.errors import GrammarError, LimitError
from constrain.grammar.languages.regular import EMPTY, EPSILON, Regular, Union, concat, literal, union
from constrain.limits import spend

MOST_BYTES = 4 << 20
"""A longer text is refused."""

MOST_PARTS = 2_000
"""A text of more pieces is not written out."""


class Quotation(Union):
    """Some pieces of a text in a row, or nothing; or what is left of that.

    Parameters
    ----------
    text : bytes
        All pieces, one behind the other.
    cuts : bytes
        A byte for each byte of ``text``: 1 where a piece begins, else 0.
    places : tuple of int, optional
        Where in the text the quotation may be, if something was read of it; else wherever a piece begins, and it may
        be empty.
    """

    __slots__ = ("cuts", "places", "text")

    def __init__(self, text: bytes, cuts: bytes, places: tuple[int, ...] | None = None) -> None:
        self.text = text
        self.cuts = cuts
        self.places = places

    inner: tuple[Regular, ...] = ()

    def __getattr__(self, name: str) -> tuple[Regular, ...]:
        # ``parts``: what looks into languages in Python may treat this as any other union.
        if name != "parts":
            raise AttributeError(name)
        parts = self.parts = self._written_out()
        return parts

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            value = self._hash = hash(self._key())
            return value

    __eq__ = Regular.__eq__

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        return None, {"text": self.text, "cuts": self.cuts, "places": self.places}

    def _key(self) -> tuple[Any, ...]:
        return (self.text, self.cuts, self.places)

    @property
    def is_long(self) -> bool:
        """Whether it has too many parts to be written out."""
        return self.cuts.count(1) > MOST_PARTS

    def may_end(self) -> bool:
        """Whether the empty string is in it."""
        return self.places is None or any(place == len(self.text) or self.cuts[place] for place in self.places)

    def first_bytes(self) -> int:
        """The bytes that its strings may begin with, as bits."""
        bits = 0
        for byte in set(self._next_bytes()):
            bits |= 1 << byte
        return bits

    def after(self, byte: int) -> Regular:
        """What may follow a byte: the derivative."""
        places = self._places()
        spend(1 + len(places) // 16)
        text = self.text
        left = tuple([place + 1 for place in places if place < len(text) and text[place] == byte])
        if not left:
            return EMPTY
        return EPSILON if left == (len(text),) else Quotation(text, self.cuts, left)

    def shortest(self) -> bytes:
        """One of its shortest strings."""
        if self.may_end():
            return b""
        rests = [self.text[place : self._end_of_piece(place)] for place in self._places()]
        return min(rests, key=len)

    def _places(self) -> Sequence[int]:
        if self.places is not None:
            return self.places
        return [place for place, cut in enumerate(self.cuts) if cut]

    def _next_bytes(self) -> bytes:
        if self.places is None:
            return bytes(compress(self.text, self.cuts))
        return bytes([self.text[place] for place in self.places if place < len(self.text)])

    def _end_of_piece(self, place: int) -> int:
        end = self.cuts.find(1, place + 1)
        return len(self.text) if end < 0 else end

    def _written_out(self) -> tuple[Regular, ...]:
        if self.is_long:
            raise LimitError(
                f"there are {self.cuts.count(1):,} pieces of a text to be quoted from where the grammar is rewritten "
                f"around them, which takes up to {MOST_PARTS:,}; quote from a shorter text there"
            )
        begins = [place for place, cut in enumerate(self.cuts) if cut]
        spend(len(begins))
        tails: dict[int, Regular] = {len(self.text): EPSILON}
        for begin in reversed(begins):
            end = self._end_of_piece(begin)
            tails[begin] = union(EPSILON, concat(literal(self.text[begin:end]), tails[end]))
        if self.places is None:
            parts = [EPSILON, *tails.values()]
        else:
            parts = [tails[place] if place in tails else self._inside(place, tails) for place in self.places]
        whole = union(*parts)
        return whole.parts if isinstance(whole, Union) else (whole,)

    def _inside(self, place: int, tails: dict[int, Regular]) -> Regular:
        end = self._end_of_piece(place)
        return concat(literal(self.text[place:end]), tails[end])


def quotation(pieces: Iterable[str], text: str | None = None) -> Regular:
    """Some of the pieces in a row, or nothing; empty pieces do not count.

    ``text`` is all of them, if the caller has it; the pieces may then come one at a time.

    Raises
    ------
    GrammarError
        If they are too long, or no UTF-8 can stand for them.
    """
    if text is None:
        pieces = list(pieces)
        text = "".join(pieces)
    data = _encoded(text)
    cuts = bytearray(len(data) + 1)
    for place in accumulate(map(len, map(str.encode, pieces)), initial=0):
        cuts[place] = 1
    return _of(data, bytes(cuts[:-1]))


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
