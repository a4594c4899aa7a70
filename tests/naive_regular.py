"""A slow, obvious matcher for regular languages: Brzozowski derivatives, one byte at a time.

The derivative of a language by a byte is what may follow that byte.  A string is matched if, after
taking the derivative by each of its bytes, the empty string is left in the language.  There is no
automaton here and nothing shared with the engine, which is what makes it a judge.

* :func:`derivative` and :func:`nullable` are the textbook definitions for the eight kinds of node.
* :func:`matches` is membership.
* :func:`is_viable_prefix` says whether some string of the language begins so.  It explores the
  derivatives that can be reached, so it is for small languages.
"""

from __future__ import annotations

from functools import lru_cache

from constrain.grammar.languages.regular import (
    EMPTY,
    EPSILON,
    ByteSet,
    Complement,
    Concat,
    Empty,
    Intersect,
    Literal,
    Regular,
    Repeat,
    Union,
    complement,
    concat,
    intersect,
    literal,
    repeat,
    union,
)

_MAX_STATES = 20_000
_ALL_BYTES = ByteSet((1 << 256) - 1)
_ANY = repeat(_ALL_BYTES)


@lru_cache(maxsize=200_000)
def nullable(regular: Regular) -> bool:
    """The empty string is in the language."""
    if isinstance(regular, Literal):
        return regular.data == b""
    if isinstance(regular, Concat | Intersect):
        return all(nullable(part) for part in regular.parts)
    if isinstance(regular, Union):
        return any(nullable(part) for part in regular.parts)
    if isinstance(regular, Repeat):
        return regular.low == 0 or nullable(regular.item)
    if isinstance(regular, Complement):
        return not nullable(regular.item)
    assert isinstance(regular, Empty | ByteSet)
    return False


@lru_cache(maxsize=200_000)
def derivative(regular: Regular, byte: int) -> Regular:
    """What may follow ``byte`` in the language."""
    if isinstance(regular, Empty):
        return EMPTY
    if isinstance(regular, Literal):
        return literal(regular.data[1:]) if regular.data[:1] == bytes((byte,)) else EMPTY
    if isinstance(regular, ByteSet):
        return EPSILON if regular.bits >> byte & 1 else EMPTY
    if isinstance(regular, Concat):
        found = []
        for index, part in enumerate(regular.parts):
            found.append(concat(derivative(part, byte), *regular.parts[index + 1 :]))
            if not nullable(part):
                break
        return _union(*found)
    if isinstance(regular, Union):
        return _union(*(derivative(part, byte) for part in regular.parts))
    if isinstance(regular, Intersect):
        parts = [derivative(part, byte) for part in regular.parts]
        return intersect(*[part for part in parts if part != _ANY] or [_ANY])
    if isinstance(regular, Complement):
        inside = derivative(regular.item, byte)
        return _ANY if inside == EMPTY else EMPTY if inside == _ANY else complement(inside)
    assert isinstance(regular, Repeat)
    # Where the item may be empty, fewer repetitions than the least are as good as the least.
    low = 0 if nullable(regular.item) else max(regular.low - 1, 0)
    high = None if regular.high is None else regular.high - 1
    return concat(derivative(regular.item, byte), repeat(regular.item, low, high))


def _union(*parts: Regular) -> Regular:
    one = union(*parts)
    # Sorting makes equal unions equal, so that few derivatives are told apart.
    if isinstance(one, Union):
        return Union(tuple(sorted(one.parts, key=hash)))
    return one


def matches(regular: Regular, data: bytes) -> bool:
    """``data`` is in the language."""
    for byte in data:
        regular = derivative(regular, byte)
    return nullable(regular)


def is_viable_prefix(regular: Regular, data: bytes) -> bool:
    """Some string in the language begins with ``data``."""
    for byte in data:
        regular = derivative(regular, byte)
    return _inhabited(regular)


@lru_cache(maxsize=20_000)
def _inhabited(regular: Regular) -> bool:
    """The language has a string in it."""
    seen = {regular}
    todo = [regular]
    while todo:
        here = todo.pop()
        if nullable(here):
            return True
        for byte in distinct_bytes(here):
            then = derivative(here, byte)
            if then != EMPTY and then not in seen:
                seen.add(then)
                todo.append(then)
        if len(seen) > _MAX_STATES:
            raise MemoryError(f"more than {_MAX_STATES} derivatives: too large a language for the naive matcher")
    return False


@lru_cache(maxsize=20_000)
def distinct_bytes(regular: Regular) -> tuple[int, ...]:
    """One byte for each way that the bytes can be told apart at the start of the language."""
    by_use: dict[tuple[bool, ...], int] = {}
    sets = list(dict.fromkeys(_first_sets(regular)))
    for byte in range(256):
        by_use.setdefault(tuple(bool(bits >> byte & 1) for bits in sets), byte)
    return tuple(by_use.values())


def _first_sets(regular: Regular) -> list[int]:
    if isinstance(regular, Literal):
        return [1 << regular.data[0]] if regular.data else []
    if isinstance(regular, ByteSet):
        return [regular.bits]
    if isinstance(regular, Concat):
        found = []
        for part in regular.parts:
            found += _first_sets(part)
            if not nullable(part):
                break
        return found
    if isinstance(regular, Union | Intersect):
        return [bits for part in regular.parts for bits in _first_sets(part)]
    if isinstance(regular, Repeat | Complement):
        return _first_sets(regular.item)
    return []
