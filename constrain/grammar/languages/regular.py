"""Regular languages over bytes, as expression trees: what a lexeme may be.

This is the lower half of the IR.  Every front-end describes its terminals with these eight kinds
of node, of which a word is a shorter way to write a sequence, and nothing else; the engine turns
them into automata lazily.  All nodes are immutable and compare by content.  Build them with the
functions below rather than with the classes: they apply the identities (``union(EMPTY, x) == x``
and the like) that keep trees small.

What it does not do: there are no anchors, look-arounds, code points or flags here.  A front-end
has worked those out before it gets to bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Regular:
    """A regular language over bytes.  One of the node classes below."""

    # Trees are hashed whenever they become a lexeme, and parts are shared, so every node keeps its hash.
    __slots__ = ("_hash",)
    _hash: int
    _kind = ""

    @property
    def inner(self) -> tuple[Regular, ...]:
        """The languages that it is made of; none of a quotation, which says by itself what is in it."""
        return ()

    def _key(self) -> tuple[Any, ...]:
        return ()

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Regular) and _are_equal(self, other))

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            value = self._hash = self._new_hash()
            return value

    def _new_hash(self) -> int:
        return hash((type(self).__name__, self._key()))

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        # Hashes of bytes differ between processes: a pickled one would be wrong.
        return None, {name: getattr(self, name) for name in type(self).__slots__ if name != "_hash"}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self._key()))})"


def _parts_of(node: Concat | Union | Intersect) -> tuple[Regular, ...]:
    return node.parts


def _item_of(node: Repeat | Complement) -> tuple[Regular, ...]:
    return (node.item,)


def _hash_of_parts(node: Concat | Union | Intersect) -> int:
    # Without a call for each part, if possible: parts are shared, so most have been hashed.
    try:
        return hash((node._kind, tuple([part._hash for part in node.parts])))
    except AttributeError:
        return hash((node._kind, tuple(map(hash, node.parts))))


class Empty(Regular):
    """The language without any string."""

    __slots__ = ()


class Literal(Regular):
    """Exactly these bytes; ``Literal(b"")`` is the empty string."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data

    def _key(self) -> tuple[Any, ...]:
        return (self.data,)


class ByteSet(Regular):
    """One byte out of a set, given as an int whose bit ``b`` says that byte ``b`` is in it."""

    __slots__ = ("bits",)

    def __init__(self, bits: int) -> None:
        self.bits = bits

    def _key(self) -> tuple[Any, ...]:
        return (self.bits,)

    def __repr__(self) -> str:
        return f"ByteSet({bytes(b for b in range(256) if self.bits >> b & 1)!r})"


class Concat(Regular):
    """One part after the other (two or more)."""

    __slots__ = ("parts",)
    _kind = "Concat"

    def __init__(self, parts: tuple[Regular, ...]) -> None:
        self.parts = parts

    inner = property(_parts_of)
    _new_hash = _hash_of_parts

    def _key(self) -> tuple[Any, ...]:
        return self.parts


class Word(Concat):
    """Letters of an alphabet, one after the other: what a name in a schema is, without an object for each letter.

    Parameters
    ----------
    alphabet : tuple of Regular
        The languages of the bytes from FIRST_LETTER on.
    data : bytes
        The letters.  A word without any is the empty string; it makes an alphabet known beforehand (see
        :class:`constrain.engine.automata.programs.LexemeProgram`).
    """

    __slots__ = ("alphabet", "data")

    def __init__(self, alphabet: tuple[Regular, ...], data: bytes) -> None:
        self.alphabet = alphabet
        self.data = data

    def __getattr__(self, name: str) -> tuple[Regular, ...]:
        # ``parts``, which few ask for.
        if name != "parts":
            raise AttributeError(name)
        alphabet = self.alphabet
        parts = self.parts = tuple([alphabet[letter - FIRST_LETTER] for letter in self.data])
        return parts

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is Word and self.alphabet is other.alphabet:
            return self.data == other.data
        return isinstance(other, Concat) and _are_equal(self, other)

    __hash__ = Regular.__hash__


FIRST_LETTER = 0x20
"""The first byte of which an alphabet has a language."""


class Union(Regular):
    """Any of the parts (two or more)."""

    __slots__ = ("parts",)
    _kind = "Union"

    def __init__(self, parts: tuple[Regular, ...]) -> None:
        self.parts = parts

    inner = property(_parts_of)
    _new_hash = _hash_of_parts

    def _key(self) -> tuple[Any, ...]:
        return self.parts


class Intersect(Regular):
    """All of the parts at once (two or more).

    ``fits`` says that one part is a counter ``item{low,high}``, and that every string of all others is a sequence of
    items, so that the repetition does no more than count (see :func:`counted`).  It is no part of the content.
    """

    __slots__ = ("fits", "parts")
    _kind = "Intersect"

    def __init__(self, parts: tuple[Regular, ...], fits: bool = False) -> None:
        self.parts = parts
        self.fits = fits

    inner = property(_parts_of)
    _new_hash = _hash_of_parts

    def _key(self) -> tuple[Any, ...]:
        return self.parts


class Repeat(Regular):
    """``item`` from ``low`` to ``high`` times; ``high`` is None for no upper bound.

    ``counts`` says that it is the counter of :func:`counted`.  It is no part of the content.
    """

    __slots__ = ("counts", "high", "item", "low")

    def __init__(self, item: Regular, low: int, high: int | None, counts: bool = False) -> None:
        self.item = item
        self.low = low
        self.high = high
        self.counts = counts

    inner = property(_item_of)

    def _key(self) -> tuple[Any, ...]:
        return (self.item, self.low, self.high)


class Complement(Regular):
    """Every byte string that is not in ``item``, ill-formed UTF-8 included.

    A front-end that means "every *text* that is not" intersects with :data:`constrain.grammar.languages.utf8.ANY_TEXT`.
    """

    __slots__ = ("item",)

    def __init__(self, item: Regular) -> None:
        self.item = item

    inner = property(_item_of)

    def _key(self) -> tuple[Any, ...]:
        return (self.item,)


def _are_equal(one: Regular, other: Regular) -> bool:
    """Whether two trees, nested as deep as they may be, are the same; parts that are shared are compared once."""
    pairs, seen = [(one, other)], set()
    while pairs:
        one, other = pairs.pop()
        if type(one) is not type(other) and not (isinstance(one, Concat) and isinstance(other, Concat)):
            return False
        if type(one) is Word and type(other) is Word and one.alphabet is other.alphabet:
            if one.data != other.data:
                return False
            continue
        key, other_key = one._key(), other._key()
        if len(key) != len(other_key):
            return False
        for part, other_part in zip(key, other_key, strict=True):
            if part is other_part:
                continue
            if not isinstance(part, Regular) or not isinstance(other_part, Regular):
                if part != other_part:
                    return False
            elif (id(part), id(other_part)) not in seen:
                seen.add((id(part), id(other_part)))
                pairs.append((part, other_part))
    return True


EMPTY: Regular = Empty()
EPSILON: Regular = Literal(b"")
ANY_BYTES: Regular = Complement(EMPTY)


def literal(data: bytes | str) -> Regular:
    """Exactly these bytes (text is encoded as UTF-8)."""
    if isinstance(data, str):
        data = data.encode("utf-8")
    return Literal(data) if data else EPSILON


def byte_set(members: Iterable[int]) -> Regular:
    """One byte out of ``members``."""
    bits = 0
    for member in members:
        bits |= 1 << member
    return ByteSet(bits) if bits else EMPTY


def byte_range(first: int, last: int) -> Regular:
    """One byte from ``first`` to ``last``, both included."""
    if first > last:
        return EMPTY
    if first == last:
        return Literal(bytes((first,)))
    return ByteSet((1 << (last + 1)) - (1 << first))


def concat(*parts: Regular) -> Regular:
    """The parts, one after the other."""
    # Types are compared by identity: this is called for every word of a schema, and isinstance() takes longer.
    flat: list[Regular] = []
    run: list[Literal] = []  # the literals that stand last, to be joined at once
    for part in parts:
        kind = type(part)
        if kind is Literal:
            if part.data:  # type: ignore[attr-defined]
                run.append(part)  # type: ignore[arg-type]
            continue
        if kind is Empty:
            return EMPTY
        pieces: tuple[Regular, ...] = part.parts if kind is Concat else (part,)  # type: ignore[attr-defined]
        if type(pieces[0]) is Literal:
            run.append(pieces[0])
            pieces = pieces[1:]
        if run:
            flat.append(_joined(run))
            run.clear()
        flat += pieces
        if type(flat[-1]) is Literal:
            run.append(flat.pop())  # type: ignore[arg-type]
    if run:
        flat.append(_joined(run))
    if not flat:
        return EPSILON
    return flat[0] if len(flat) == 1 else Concat(tuple(flat))


def _joined(run: list[Literal]) -> Literal:
    return run[0] if len(run) == 1 else Literal(b"".join([each.data for each in run]))


def frame(before: Regular, item: Regular, after: Regular) -> Regular:
    """``item`` between two others, the three objects as they are, so that the engine reads each once for all uses."""
    if type(before) is Empty or type(item) is Empty or type(after) is Empty:
        return EMPTY
    return Concat((before, item, after))


def union(*parts: Regular) -> Regular:
    """Any of the parts.  Nested unions are flattened, equal parts kept once."""
    flat: dict[Regular, None] = {}
    for part in parts:
        if isinstance(part, Empty):
            continue
        if type(part) is Union:
            flat.update(dict.fromkeys(part.parts))
        else:
            flat[part] = None
    if not flat:
        return EMPTY
    return next(iter(flat)) if len(flat) == 1 else Union(tuple(flat))


def union_of_distinct(parts: list[Regular]) -> Regular:
    """Any of the parts, which are different from each other.  They are not compared, which takes long for many."""
    parts = [part for part in parts if type(part) is not Empty]
    if not parts:
        return EMPTY
    return parts[0] if len(parts) == 1 else Union(tuple(parts))


def intersect(*parts: Regular) -> Regular:
    """What lies in all of the parts (at least one must be given)."""
    if len(parts) == 1:
        return parts[0]
    flat: dict[Regular, None] = {}
    fits = False
    for part in parts:
        if isinstance(part, Empty):
            return EMPTY
        if isinstance(part, Intersect):
            flat.update(dict.fromkeys(part.parts))
            fits |= part.fits
        else:
            flat[part] = None
    if not flat:
        raise ValueError("intersect() needs at least one part")
    return next(iter(flat)) if len(flat) == 1 else Intersect(tuple(flat), fits)


def without(language: Regular, excluded: Regular) -> Regular:
    """The strings of ``language`` that are not in ``excluded``; parts of the two are not compared."""
    if type(excluded) is Empty:
        return language
    return Intersect((*(language.parts if isinstance(language, Intersect) else (language,)), complement(excluded)))


def counted(language: Regular, item: Regular, low: int, high: int | None) -> Regular:
    """The strings of ``language``, which must all be sequences of ``item``, of ``low`` to ``high`` items."""
    counter = repeat(item, low, high)
    if isinstance(counter, Repeat) and counter is not item:
        counter = Repeat(item, low, high, counts=True)
    both = intersect(language, counter)
    return Intersect(both.parts, fits=True) if isinstance(both, Intersect) else both


_MAX_JOINED_COUNT = 1_000_000
"""Nested counts are not made one count above this: the engine's counters are int32."""


def repeat(item: Regular, low: int = 0, high: int | None = None) -> Regular:
    """``item`` from ``low`` to ``high`` times (``high=None``: any number)."""
    if high is not None and high < low:
        return EMPTY
    if high == 0 or item == EPSILON:
        return EPSILON
    if isinstance(item, Empty):
        return EPSILON if low == 0 else EMPTY
    if low == 1 and high == 1:
        return item
    if isinstance(item, Repeat) and not item.counts:
        counts = nested_counts(item.low, item.high, low, high)
        if counts is not None and max(counts[0], counts[1] or 0) <= _MAX_JOINED_COUNT:
            return Repeat(item.item, *counts)
    return Repeat(item, low, high)


def nested_counts(inner_low: int, inner_high: int | None, low: int, high: int | None) -> tuple[int, int | None] | None:
    """How often ``X`` stands in ``X{inner_low,inner_high}{low,high}``, if that is every number of times in a range.

    ``X{2,3}{1,2}`` is ``X{2,6}``, but ``X{3,4}{1,2}`` is not ``X{3,8}``, for it has no five.  Neither ``inner_high``
    nor ``high`` is 0.  As two counters, a text of nullable ``X`` is counted in as many ways as there are pairs.
    """
    if low == 0 and inner_low > 1:
        return None
    # The gap between k and k + 1 times is the widest where k is the least that is not 0.
    first = max(low, 1)
    goes_on = high is None or high > first
    if inner_high is not None and goes_on and (first + 1) * inner_low > first * inner_high + 1:
        return None
    return low * inner_low, None if inner_high is None or high is None else inner_high * high


def optional(item: Regular) -> Regular:
    """``item`` or nothing."""
    return repeat(item, 0, 1)


def complement(item: Regular) -> Regular:
    """Every byte string that is not in ``item``."""
    return item.item if isinstance(item, Complement) else Complement(item)
