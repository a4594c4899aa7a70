"""Sets of code points, and the UTF-8 byte sequences that encode them.

A code point set is a sorted tuple of disjoint, non-adjacent ``(first, last)`` pairs.  Surrogates
(U+D800 to U+DFFF) have no UTF-8 encoding, so they are dropped when a set is turned into bytes:
what comes out of :func:`encode` is only ever well-formed UTF-8 (Unicode Standard, table 3-7).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import pairwise

from constrain.grammar.languages.regular import ByteSet, Literal, Regular, concat, repeat, union
from constrain.limits import spend

CodePoints = tuple[tuple[int, int], ...]

LAST = 0x10FFFF
ALL: CodePoints = ((0, LAST),)
SURROGATES: CodePoints = ((0xD800, 0xDFFF),)


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
    at = bisect_right(points, (point, LAST)) - 1
    return at >= 0 and point <= points[at][1]


def common(left: CodePoints, right: CodePoints) -> CodePoints:
    """The code points that are in both."""
    if len(left) > len(right):
        left, right = right, left
    out: list[tuple[int, int]] = []
    for begin, end in left:
        # Classes of letters have hundreds of ranges: those that lie within this one are taken together.
        part = right[max(bisect_right(right, (begin, LAST)) - 1, 0) : bisect_right(right, (end, LAST))]
        if part and part[0][1] < begin:
            part = part[1:]
        if part:
            at = len(out)
            out += part
            out[at] = (max(part[0][0], begin), part[0][1])
            out[-1] = (out[-1][0], min(part[-1][1], end))
    return tuple(out)


def classes_of(sets: Sequence[CodePoints]) -> list[CodePoints]:
    """The classes of code points that no set tells apart."""
    sets = list(dict.fromkeys(sets))
    cuts = sorted({0, LAST + 1, *(cut for points in sets for first, last in points for cut in (first, last + 1))})
    ranges: dict[tuple[bool, ...], list[tuple[int, int]]] = {}
    at = [0] * len(sets)
    for begin, end in pairwise(cuts):
        spend()
        signature = []
        for i, points in enumerate(sets):
            while at[i] < len(points) and points[at[i]][1] < begin:
                at[i] += 1
            signature.append(at[i] < len(points) and points[at[i]][0] <= begin)
        ranges.setdefault(tuple(signature), []).append((begin, end - 1))
    return [tuple(each) for each in ranges.values()]


def partition(every: CodePoints, sets: Sequence[CodePoints]) -> list[CodePoints]:
    """Split ``every`` into parts, none empty, so that each of ``sets`` holds all of a part or nothing of it."""
    return list(filter(None, (common(every, each) for each in classes_of(sets))))


@lru_cache(maxsize=1024)
def encode(points: CodePoints) -> Regular:
    """The UTF-8 encodings of the code points in ``points``, without surrogates."""
    spend(10 * len(points))
    single = 0
    sequences: list[Regular] = []
    for begin, end, tails, mark in _LENGTHS:
        part = common(points, ((begin, end),)) if end != 0xFFFF else common(points, _THREE_BYTES)
        if not part:
            continue
        if not tails:
            single = bits_of(part)
            continue
        for rest, leads in by_first_digit(part, 64**tails).items():
            sequences.append(concat(_byte_set(leads << mark), in_digits(rest, tails, 64, _continuation)))
    return union(*([_byte_set(single)] if single else []), *sequences)


# Of each length the first and the last code point, the bytes behind the first, and the first byte of 0.
_LENGTHS = ((0, 0x7F, 0, 0), (0x80, 0x7FF, 1, 0xC0), (0x800, 0xFFFF, 2, 0xE0), (0x10000, LAST, 3, 0xF0))
_THREE_BYTES: CodePoints = ((0x800, 0xD7FF), (0xE000, 0xFFFF))


def _continuation(values: int) -> Regular:
    return _byte_set(values << 0x80)


def _byte_set(bits: int) -> Regular:
    """One byte of those whose bits are set."""
    return ByteSet(bits) if bits & (bits - 1) else Literal(bytes((bits.bit_length() - 1,)))


# -- digits ---------------------------------------------------------------------------------------


def bits_of(numbers: CodePoints) -> int:
    """An integer in which the bit of each number is set."""
    bits = 0
    for first, last in numbers:
        bits |= (2 << last) - (1 << first)
    return bits


def ranges_of(bits: int) -> CodePoints:
    """The numbers whose bits are set."""
    ranges = []
    begin = 0
    while bits:
        skipped = (bits & -bits).bit_length() - 1
        bits >>= skipped
        length = (~bits & -~bits).bit_length() - 1
        ranges.append((begin + skipped, begin + skipped + length - 1))
        begin += skipped + length
        bits >>= length
    return tuple(ranges)


def by_first_digit(numbers: CodePoints, unit: int) -> dict[CodePoints, int]:
    """What may follow a first digit, which counts ``unit``, and for each the digits that it may follow, as bits."""
    rests: dict[int, list[tuple[int, int]]] = {}
    for first, last in numbers:
        digit, low = divmod(first, unit)
        end = last // unit
        for between in range(digit, end):
            rests.setdefault(between, []).append((low, unit - 1))
            low = 0
        rests.setdefault(end, []).append((low, last - end * unit))
    digits: dict[CodePoints, int] = {}
    for digit, ranges in rests.items():
        rest = tuple(ranges)
        digits[rest] = digits.get(rest, 0) | 1 << digit
    return digits


@lru_cache(maxsize=1 << 14)
def in_digits(numbers: CodePoints, count: int, radix: int, spell: Callable[[int], Regular]) -> Regular:
    """The numbers of a set, all below ``radix ** count``, in so many digits.

    ``spell`` says how one digit is written of those whose bits are set.  Sets of characters mostly differ in a few
    blocks of Unicode: what they have in common is made once.
    """
    if count == 1:
        return spell(bits_of(numbers))
    unit = radix ** (count - 1)
    return union(
        *(
            concat(spell(digits), in_digits(rest, count - 1, radix, spell))
            for rest, digits in by_first_digit(numbers, unit).items()
        )
    )


ANY_CHAR: Regular = encode(ALL)
"""One code point, as UTF-8."""

ANY_TEXT: Regular = repeat(ANY_CHAR)
"""Any well-formed UTF-8 text."""
