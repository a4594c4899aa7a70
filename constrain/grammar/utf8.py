"""Sets of code points, and the UTF-8 byte sequences that encode them.

A code point set is a sorted tuple of disjoint, non-adjacent ``(first, last)`` pairs.  Surrogates
(U+D800 to U+DFFF) have no UTF-8 encoding, so they are dropped when a set is turned into bytes:
what comes out of :func:`encode` is only ever well-formed UTF-8 (Unicode Standard, table 3-7).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise

from constrain.grammar.regular import ByteSet, Literal, Regular, byte_range, concat, repeat, union
from constrain.limits import spend

CodePoints = tuple[tuple[int, int], ...]

LAST = 0x10FFFF
ALL: CodePoints = ((0, LAST),)
SURROGATES: CodePoints = ((0xD800, 0xDFFF),)
_MANY_TIMES = 8


def normalize(ranges: Iterable[tuple[int, int]]) -> CodePoints:
    """Sort the ranges and merge those that overlap or touch."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if first > last:
            continue
        if merged and first <= merged[-1][1] + 1:
            if last > merged[-1][1]:
                merged[-1] = (merged[-1][0], last)
        else:
            merged.append((first, last))
    return tuple(merged)


def negate(points: CodePoints) -> CodePoints:
    """All code points that are not in ``points``."""
    gaps = []
    begin = 0
    for first, last in points:
        if first > begin:
            gaps.append((begin, first - 1))
        begin = last + 1
    if begin <= LAST:
        gaps.append((begin, LAST))
    return tuple(gaps)


def holds(points: CodePoints, point: int) -> bool:
    """Whether a code point is in a set."""
    return any(first <= point <= last for first, last in points)


def common(left: CodePoints, right: CodePoints) -> CodePoints:
    """The code points that are in both."""
    if len(left) > len(right):
        left, right = right, left
    out: list[tuple[int, int]] = []
    i = j = 0
    many = len(right) > _MANY_TIMES * len(left)
    while i < len(left) and j < len(right):
        # Without calls of min() and max(): classes of letters have hundreds of ranges.
        begin, end = left[i]
        first, last = right[j]
        if many and last < begin:
            # Ranges that end before this one begins are leapt over.
            j = max(bisect_right(right, (begin, LAST)) - 1, j + 1)
            if j == len(right):
                break
            first, last = right[j]
        if begin > first:
            first = begin
        if end < last:
            last = end
            i += 1
        else:
            j += 1
        if first <= last:
            out.append((first, last))
    return tuple(out)


def classes_of(sets: Sequence[CodePoints]) -> list[CodePoints]:
    """The classes of code points that no set tells apart."""
    cuts = sorted({0, LAST + 1, *(cut for points in sets for first, last in points for cut in (first, last + 1))})
    ranges: dict[tuple[bool, ...], list[tuple[int, int]]] = {}
    bounds = [[first for first, _ in points] for points in sets]
    at = [0] * len(sets)
    for begin, end in pairwise(cuts):
        spend()
        signature = []
        for i, points in enumerate(sets):
            while at[i] < len(points) and points[at[i]][1] < begin:
                at[i] += 1
            signature.append(at[i] < len(bounds[i]) and bounds[i][at[i]] <= begin)
        ranges.setdefault(tuple(signature), []).append((begin, end - 1))
    return [tuple(each) for each in ranges.values()]


def partition(every: CodePoints, sets: Sequence[CodePoints]) -> list[CodePoints]:
    """Split ``every`` into parts, none empty, so that each of ``sets`` holds all of a part or nothing of it."""
    return list(filter(None, (common(every, each) for each in classes_of(sets))))


@lru_cache(maxsize=1024)
def encode(points: CodePoints) -> Regular:
    """The UTF-8 encodings of the code points in ``points``, without surrogates."""
    pieces: list[Regular] = []
    spend(10 * len(points))
    for first, last in common(points, negate(SURROGATES)):
        for low, high in ((0, 0x7F), (0x80, 0x7FF), (0x800, 0xFFFF), (0x10000, LAST)):
            begin, end = max(first, low), min(last, high)
            if begin <= end:
                pieces.append(_sequences(chr(begin).encode(), chr(end).encode()))
    return union(*_merge_single_bytes(pieces))


def _sequences(first: bytes, last: bytes) -> Regular:
    """All sequences between two encodings of the same length, both included."""
    if len(first) == 1:
        return byte_range(first[0], last[0])
    tails = len(first) - 1
    lowest, highest = b"\x80" * tails, b"\xbf" * tails
    if first[0] == last[0]:
        return concat(byte_range(first[0], first[0]), _sequences(first[1:], last[1:]))
    parts: list[Regular] = []
    begin, end = first[0], last[0]
    if first[1:] != lowest:
        parts.append(concat(byte_range(begin, begin), _sequences(first[1:], highest)))
        begin += 1
    after = None
    if last[1:] != highest:
        after = concat(byte_range(end, end), _sequences(lowest, last[1:]))
        end -= 1
    if begin <= end:
        parts.append(concat(byte_range(begin, end), _sequences(lowest, highest)))
    if after is not None:
        parts.append(after)
    return union(*parts)


def _merge_single_bytes(pieces: list[Regular]) -> list[Regular]:
    """Join all one-byte pieces into one set."""
    bits = 0
    rest: list[Regular] = []
    for piece in pieces:
        if isinstance(piece, ByteSet):
            bits |= piece.bits
        elif isinstance(piece, Literal) and len(piece.data) == 1:
            bits |= 1 << piece.data[0]
        else:
            rest.append(piece)
    if bits.bit_count() == 1:
        return [Literal(bytes((bits.bit_length() - 1,))), *rest]
    return [ByteSet(bits), *rest] if bits else rest


ANY_CHAR: Regular = encode(ALL)
"""One code point, as UTF-8."""

ANY_TEXT: Regular = repeat(ANY_CHAR)
"""Any well-formed UTF-8 text."""
