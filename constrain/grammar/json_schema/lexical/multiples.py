"""How JSON spells the multiples of a decimal number.

A number ``D * 10**-k`` is a multiple of ``M * 10**-k`` (``M`` a whole number) if ``M`` divides ``D``.  So no digit
but zeros may follow the ``k``-th after the point, and the digits up to there make a multiple of ``M``: for the
factors 2 and 5 of ``M`` the last digits decide; for the rest ``r`` an automaton counts modulo ``r``.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import cache, lru_cache
from math import gcd, lcm

from constrain.errors import LimitError
from constrain.grammar.json_schema.lexical.numbers import NumberForm, number_language
from constrain.grammar.languages import regular as r
from constrain.grammar.languages.elimination import eliminate

MAX_LAST_DIGITS = 12
"""How many last digits may decide about the factors 2 and 5."""

MAX_ENDINGS = 2000
"""The greatest product of the factors 2 and 5 of a divisor."""

MAX_REMAINDERS = 13
"""The greatest power of another prime that divides a divisor."""

MAX_COMMON_DIGITS = 5000
"""How many digits the least common multiple of several divisors may have."""

_TOO_LARGE = 10**MAX_COMMON_DIGITS

_DIGIT = r.byte_range(0x30, 0x39)
_NOT_ZERO = r.byte_range(0x31, 0x39)
_SIGN = r.optional(r.literal("-"))
_NATURAL = r.union(r.literal("0"), r.concat(_NOT_ZERO, r.repeat(_DIGIT)))
_POINT = r.optional(r.literal("."))
_ANY_DIGITS = r.repeat(r.concat(_POINT, _DIGIT))
_SCIENTIFIC_BELOW = 5
_E = r.byte_set(b"eE")


def is_multiple(value: Decimal, divisor: Decimal) -> bool:
    """Whether ``value`` is a whole number of times ``divisor`` (positive), exactly."""
    top, top_scale = _scaled(value)
    bottom, bottom_scale = _scaled(divisor)
    scale = max(top_scale, bottom_scale)
    return bool(top * 10 ** (scale - top_scale) % (bottom * 10 ** (scale - bottom_scale)) == 0)


def decimal_places(number: Decimal) -> int:
    """How many digits a number has after the point, without zeros at its end that are written there or not."""
    whole, places = _scaled(number)
    while places and whole % 10 == 0:
        whole, places = whole // 10, places - 1
    return places


def least_common_multiple(numbers: Sequence[Decimal], pointer: str) -> Decimal:
    """The smallest positive number that is a whole number of times each of some positive ones, exactly.

    Raises LimitError, which names the place ``pointer`` of the schema, if that has more than MAX_COMMON_DIGITS digits.
    """
    scaled = [_scaled(number) for number in numbers]
    places = max(scale for _, scale in scaled)
    common = 1
    for whole, scale in scaled:
        common = lcm(common, whole * 10 ** (places - scale))
        if common >= _TOO_LARGE:
            raise LimitError(
                f"what is a multiple of all {len(scaled)} numbers has more than {MAX_COMMON_DIGITS:,} digits", pointer
            )
    return Decimal((0, Decimal(common).as_tuple().digits, -places))


def _scaled(number: Decimal) -> tuple[int, int]:
    """(n, k) with ``number == n * 10**-k``."""
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    whole = int(Decimal((sign, digits, 0)))
    return (whole * 10**exponent, 0) if exponent > 0 else (whole, -exponent)


@lru_cache(maxsize=256)
def multiples(divisor: Decimal) -> r.Regular | None:
    """The multiples in plain notation, ``-12.50``; None if the automaton would be too large.

    Where every integer is a multiple they are also in the scientific notation of programs, and small powers
    of ten have their multiples in it.
    """
    whole, places = _scaled(divisor.normalize())
    found: list[r.Regular] = []
    for size in range(places + 1):
        # With fewer digits behind the point than `places`, zeros stand for the others.
        modulus = whole // gcd(whole, 10 ** (places - size))
        digits = _digits(modulus)
        if digits is None:
            return None
        shape = _NATURAL if size == 0 else r.concat(_NATURAL, r.literal("."), r.repeat(_DIGIT, size, size))
        tail = r.EPSILON
        if size == places:
            tail = (
                r.optional(r.concat(r.literal("."), r.repeat(r.literal("0"), 1)))
                if size == 0
                else r.repeat(r.literal("0"))
            )
        found.append(r.concat(_SIGN, shape if digits is _ANY_DIGITS else r.intersect(shape, digits), tail))
    if is_multiple(Decimal(1), divisor):
        found.append(number_language(NumberForm.INTEGRAL))
    if whole == 1:
        for exponent in range(_SCIENTIFIC_BELOW, places + 1):
            rest = places - exponent
            fraction = (
                r.optional(r.concat(r.literal("."), r.repeat(_DIGIT, 1, rest), r.repeat(r.literal("0"))))
                if rest
                else (r.optional(r.concat(r.literal("."), r.repeat(r.literal("0"), 1))))
            )
            zero = r.optional(r.literal("0")) if exponent < 10 else r.EPSILON
            found.append(r.concat(_SIGN, _NOT_ZERO, fraction, _E, r.literal("-"), zero, r.literal(str(exponent))))
    return r.union(*found)


@lru_cache(maxsize=256)
def _digits(modulus: int) -> r.Regular | None:
    """The digit strings of the multiples of ``modulus``, with a point anywhere; None if there are too many cases."""
    twos = fives = 0
    rest = modulus
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    if max(twos, fives) > MAX_LAST_DIGITS or modulus // rest > MAX_ENDINGS:
        return None
    parts = []
    if modulus != rest:
        parts.append(_endings(modulus // rest, max(twos, fives)))
    factor = 3
    while rest > 1:
        power = 1
        while rest % factor == 0:
            rest, power = rest // factor, power * factor
        if power > MAX_REMAINDERS or (rest > 1 and factor > MAX_REMAINDERS):
            return None
        if power > 1:
            parts.append(_counting(power))
        factor += 2
    return r.intersect(*parts) if parts else _ANY_DIGITS


def _endings(modulus: int, length: int) -> r.Regular:
    """Digit strings whose last ``length`` digits make a multiple of ``modulus``, which divides ``10**length``."""

    @cache
    def tail(known: int, left: int) -> r.Regular:
        if left == 0:
            return r.EPSILON if known == 0 else r.EMPTY
        by_rest: dict[int, list[int]] = {}
        for digit in range(10):
            by_rest.setdefault((known + digit * 10 ** (left - 1)) % modulus, []).append(48 + digit)
        return r.union(*(r.concat(_POINT, r.byte_set(some), tail(rest, left - 1)) for rest, some in by_rest.items()))

    shorter = [tail(0, size) for size in range(1, length)]
    return r.union(r.concat(_ANY_DIGITS, tail(0, length)), *shorter)


@lru_cache(maxsize=64)
def _counting(modulus: int) -> r.Regular:
    """The digit strings of the multiples of ``modulus``, which 2 and 5 do not divide.

    Eliminates the states of the automaton of remainders.
    """
    edges: dict[int, dict[int, r.Regular]] = {}
    for state in range(modulus):
        row: dict[int, list[int]] = {}
        for digit in range(10):
            row.setdefault((10 * state + digit) % modulus, []).append(48 + digit)
        edges[state] = {target: r.concat(_POINT, r.byte_set(some)) for target, some in row.items()}
    for state in range(modulus - 1, 0, -1):
        eliminate(edges, state)
    return r.repeat(edges[0][0])
