"""How JSON spells numbers: all of them, the integers, and those within exact decimal bounds.

A number without bounds has all of JSON's syntax.  Within bounds, and where it must be an integer, it has

* plain decimal notation (``12``, ``-0.50``, and ``12.0`` for an integer), and
* scientific notation with one digit before the point, ``1.5e-07`` or ``2e+16``, where programs use it to print floating
  point numbers: from 1e16 up and below 1e-4, within the range of a double.

In *plain* notation there is no exponent at all, and no fraction of zeros behind an integer.

The set of *all* spellings within a bound is not regular (``1000e-3``, ``0.001e3``, ... are all 1), so no automaton has
it; that is why these are the ones.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal
from enum import IntEnum
from functools import lru_cache
from itertools import groupby

from constrain.grammar.languages import regular as r


class NumberForm(IntEnum):
    """Which numbers count, from all to few; of two forms, the greater is the intersection."""

    ANY = 0
    INTEGRAL = 1
    """Those whose value is an integer, ``1.0`` among them (draft 6 and later)."""
    NO_FRACTION = 2
    """Those written without fraction and exponent (draft 4)."""


# Beyond these no bound of a real schema lies, and the automaton would have a state per digit.
MAX_EXPONENT = 400
MAX_DIGITS = 100

_GREATEST_DOUBLE = Decimal("1.7976931348623157e308")
_LEAST_DOUBLE = Decimal("5e-324")
_SCIENTIFIC_FROM = 16
_SCIENTIFIC_BELOW = -5

_DIGIT = r.byte_range(0x30, 0x39)
_DIGITS = r.repeat(_DIGIT)
_NOT_ZERO = r.byte_range(0x31, 0x39)
_SIGN = r.optional(r.literal("-"))
_NATURAL = r.union(r.literal("0"), r.concat(_NOT_ZERO, _DIGITS))
_ANY_FRACTION = r.optional(r.concat(r.literal("."), r.repeat(_DIGIT, 1)))
_ZERO_FRACTION = r.optional(r.concat(r.literal("."), r.repeat(r.literal("0"), 1)))
_E = r.byte_set(b"eE")

ANY_NUMBER: r.Regular = r.concat(
    _SIGN, _NATURAL, _ANY_FRACTION, r.optional(r.concat(_E, r.optional(r.byte_set(b"+-")), r.repeat(_DIGIT, 1)))
)
"""All of JSON's number syntax."""


PLAIN_NUMBER: r.Regular = r.concat(_SIGN, _NATURAL, _ANY_FRACTION)
"""All numbers in plain notation."""

PLAIN_INTEGER: r.Regular = r.concat(_SIGN, _NATURAL)
"""All integers in plain notation, without fraction."""

TINY_NUMBER: r.Regular = r.concat(
    *(_SIGN, _NOT_ZERO, _ANY_FRACTION, _E, r.literal("-")),
    r.union(r.concat(r.optional(r.literal("0")), r.byte_range(0x35, 0x39)), r.concat(_NOT_ZERO, r.repeat(_DIGIT, 1))),
)
"""Numbers below 1e-4, and not 0, in the scientific notation of programs."""


MODERATE_NUMBER: r.Regular = r.concat(
    *(_SIGN, r.repeat(_DIGIT, 1, 50), r.optional(r.concat(r.literal("."), r.repeat(_DIGIT, 1, 49)))),
    r.optional(
        r.concat(_E, r.optional(r.byte_set(b"+-")), r.optional(r.byte_range(0x30, 0x32)), r.repeat(_DIGIT, 1, 2))
    ),
)
"""Texts of at most 99 digits, and of an order of magnitude between 1e-350 and 1e350."""


def is_within_limits(number: Decimal) -> bool:
    """Whether a bound has an automaton of reasonable size."""
    if abs(number.adjusted()) > MAX_EXPONENT:
        return False
    digits = number.as_tuple().digits
    return len(digits) <= MAX_DIGITS or not any(digits[MAX_DIGITS:])


def is_integral(number: Decimal) -> bool:
    """Whether the value is an integer."""
    return number == number.to_integral_value()


@lru_cache(maxsize=1 << 13)
def number_language(
    form: NumberForm,
    low: Decimal | None = None,
    low_open: bool = False,
    high: Decimal | None = None,
    high_open: bool = False,
    *,
    is_plain: bool = False,
) -> r.Regular:
    """The numbers of a form from ``low`` to ``high``; None is no bound, an open bound is not itself among them.

    ``is_plain``: without exponents, and integers without fraction.
    """
    if low is None and high is None and form is NumberForm.ANY:
        return PLAIN_NUMBER if is_plain else ANY_NUMBER
    if is_plain and form is NumberForm.INTEGRAL:
        form = NumberForm.NO_FRACTION
    if low is not None and low == high and not low_open and not high_open and not is_plain:
        return _one_number(form, low)
    if form is not NumberForm.ANY:
        if low is not None:
            low, low_open = _next_integer(low, low_open), False
        if high is not None:
            high, high_open = _next_integer(high.copy_negate(), high_open).copy_negate(), False
    if low is not None and high is not None and (low > high or (low == high and (low_open or high_open))):
        return r.EMPTY
    below = r.EMPTY
    if low is None or low <= 0:
        magnitude = None if low is None else low.copy_negate()
        if high is None or high > 0:
            below = _magnitudes(form, is_plain, Decimal(0), low == 0 and low_open, magnitude, low_open)
        else:
            below = _magnitudes(form, is_plain, high.copy_negate(), high_open, magnitude, low_open)
    above = r.EMPTY
    if high is None or high >= 0:
        if low is None or low < 0:
            above = _magnitudes(form, is_plain, Decimal(0), high == 0 and high_open, high, high_open)
        else:
            above = _magnitudes(form, is_plain, low, low_open, high, high_open)
    if below == above:
        return r.concat(_SIGN, above)
    return r.union(r.concat(r.literal("-"), below), above)


def _one_number(form: NumberForm, value: Decimal) -> r.Regular:
    """A single number, as :func:`number_language` would have it between two bounds, but quickly: lists are long."""
    sign = _SIGN if not value else r.literal("-") if value < 0 else r.EPSILON
    whole, fraction = _split(value)
    if fraction and form is not NumberForm.ANY:
        return r.EMPTY
    plain = r.concat(sign, _digits_alone(whole, fraction, None if form is not NumberForm.NO_FRACTION else 0))
    exponent = value.adjusted()
    if form is NumberForm.NO_FRACTION or not _LEAST_DOUBLE <= value.copy_abs() <= _GREATEST_DOUBLE:
        return plain
    if _SCIENTIFIC_BELOW < exponent < _SCIENTIFIC_FROM or (exponent < 0 and form is not NumberForm.ANY):
        return plain
    whole, fraction = _split(_mantissa(value))
    most = None if form is NumberForm.ANY else _SCIENTIFIC_FROM
    if most is not None and len(fraction) > most:
        return plain
    return r.Union((plain, r.concat(sign, _digits_alone(whole, fraction, most), _E, _exponent_alone(exponent))))


def _digits_alone(whole: str, fraction: str, most: int | None) -> r.Regular:
    """One number without exponent and sign; behind the point there may be ``most`` digits, zeros at the end."""
    if fraction:
        return r.concat(r.literal(f"{whole}.{fraction}"), _zeros(0, None if most is None else most - len(fraction)))
    if most == 0:
        return r.literal(whole)
    return r.concat(
        r.literal(whole), _ZERO_FRACTION if most is None else r.optional(r.concat(r.literal("."), _zeros(1, most)))
    )


@lru_cache(maxsize=64)
def _zeros(low: int, high: int | None) -> r.Regular:
    return r.repeat(r.literal("0"), low, high)


@lru_cache(maxsize=1024)
def _exponent_alone(exponent: int) -> r.Regular:
    return _exponents(exponent, exponent) if exponent > 0 else _small_exponents(exponent, exponent)


def _next_integer(number: Decimal, is_open: bool) -> Decimal:
    """The least integer that is not below a lower bound."""
    rounded = number.to_integral_value(ROUND_CEILING)
    if is_open and rounded == number:
        return Decimal(int(number) + 1)
    return rounded


def _magnitudes(
    form: NumberForm, is_plain: bool, low: Decimal, low_open: bool, high: Decimal | None, high_open: bool
) -> r.Regular:
    """Numbers without sign, ``0 <= low <= high``."""
    if high is not None and low == high and (low_open or high_open):
        return r.EMPTY
    plain = _plain(form, low, low_open, high, high_open)
    if is_plain or form is NumberForm.NO_FRACTION:
        return plain
    return r.union(plain, _scientific(form, low, low_open, high, high_open))


# -- plain notation ----------------------------------------------------------------------------


def _plain(form: NumberForm, low: Decimal, low_open: bool, high: Decimal | None, high_open: bool) -> r.Regular:
    fraction = {
        NumberForm.ANY: _ANY_FRACTION,
        NumberForm.INTEGRAL: _ZERO_FRACTION,
        NumberForm.NO_FRACTION: r.EPSILON,
    }[form]
    bottom, low_fraction = _split(low)
    at_bottom = fraction if form is not NumberForm.ANY else _fraction_from(low_fraction, low_open)
    size = len(bottom)
    if high is None:
        longer = r.concat(_NOT_ZERO, r.repeat(_DIGIT, size), fraction)
        return r.union(_digits_from(bottom, 0, at_bottom, fraction), longer)
    top, high_fraction = _split(high)
    at_top = fraction if form is not NumberForm.ANY else _fraction_to(high_fraction, high_open)
    if size < len(top):
        between = r.concat(_NOT_ZERO, r.repeat(_DIGIT, size, len(top) - 2), fraction)
        return r.union(_digits_from(bottom, 0, at_bottom, fraction), between, _digits_to(top, 0, at_top, fraction))
    if bottom == top:
        if form is NumberForm.ANY:
            fraction = _fraction_between(low_fraction, low_open, high_fraction, high_open)
        return r.concat(r.literal(bottom), fraction)
    split = next(index for index in range(size) if bottom[index] != top[index])
    rest = size - split - 1
    return r.concat(
        r.literal(bottom[:split]),
        r.union(
            r.concat(r.literal(bottom[split]), _digits_from(bottom, split + 1, at_bottom, fraction)),
            r.concat(_between_digits(bottom[split], top[split]), r.repeat(_DIGIT, rest, rest), fraction),
            r.concat(r.literal(top[split]), _digits_to(top, split + 1, at_top, fraction)),
        ),
    )


def _split(number: Decimal) -> tuple[str, str]:
    """Digits before and after the point, without zeros at the outer ends."""
    whole, _, fraction = format(number.copy_abs(), "f").partition(".")
    return whole.lstrip("0") or "0", fraction.rstrip("0")


def _between_digits(low: str, high: str) -> r.Regular:
    return r.byte_range(ord(low) + 1, ord(high) - 1)


def _digits_from(digits: str, start: int, at_end: r.Regular, fraction: r.Regular) -> r.Regular:
    """What may follow the first ``start`` of ``digits`` so that a number as long as these is not less.

    ``at_end`` are the fractions allowed when all digits are equal, ``fraction`` those when they are greater.
    """
    language = at_end
    for index in range(len(digits) - 1, start - 1, -1):
        rest = len(digits) - 1 - index
        if at_end == fraction and digits[index:].strip("0") == "":
            language = r.concat(r.repeat(_DIGIT, rest + 1, rest + 1), fraction)
            continue
        greater = r.concat(r.byte_range(ord(digits[index]) + 1, 0x39), r.repeat(_DIGIT, rest, rest), fraction)
        language = r.union(greater, r.concat(r.literal(digits[index]), language))
    return language


def _digits_to(digits: str, start: int, at_end: r.Regular, fraction: r.Regular) -> r.Regular:
    """What may follow the first ``start`` of ``digits`` so that a number as long as these is not greater."""
    language = at_end
    for index in range(len(digits) - 1, start - 1, -1):
        rest = len(digits) - 1 - index
        leading = index == 0 and len(digits) > 1
        if at_end == fraction and not leading and digits[index:].strip("9") == "":
            language = r.concat(r.repeat(_DIGIT, rest + 1, rest + 1), fraction)
            continue
        lowest = 0x31 if leading else 0x30
        less = r.concat(r.byte_range(lowest, ord(digits[index]) - 1), r.repeat(_DIGIT, rest, rest), fraction)
        language = r.union(less, r.concat(r.literal(digits[index]), language))
    return language


def _tail_from(digits: str, is_open: bool) -> r.Regular:
    """Digits that may follow so that the fraction is not less than ``digits``, which end in no zero."""
    language = r.concat(r.repeat(r.literal("0")), _NOT_ZERO, _DIGITS) if is_open else _DIGITS
    for digit, size in _runs_backwards(digits):
        greater = r.concat(r.repeat(r.literal(digit), 0, size - 1), r.byte_range(ord(digit) + 1, 0x39), _DIGITS)
        language = r.union(greater, r.concat(r.literal(digit * size), language))
    return language


def _tail_to(digits: str, is_open: bool) -> r.Regular:
    """Digits that may follow so that the fraction is not greater than ``digits``, which end in no zero."""
    language = r.EMPTY if is_open else r.repeat(r.literal("0"))
    for digit, size in _runs_backwards(digits):
        less = r.optional(r.concat(r.byte_range(0x30, ord(digit) - 1), _DIGITS))
        language = r.union(
            r.concat(r.repeat(r.literal(digit), 0, size - 1), less), r.concat(r.literal(digit * size), language)
        )
    return language


def _runs_backwards(digits: str) -> list[tuple[str, int]]:
    """Equal digits in a row, the last first: 1e-300 is one run, not a tree 300 levels deep."""
    return [(digit, len(list(run))) for digit, run in groupby(reversed(digits))]


def _fraction_from(digits: str, is_open: bool) -> r.Regular:
    if not digits and not is_open:
        return _ANY_FRACTION
    return r.concat(r.literal("."), _tail_from(digits, is_open))


def _fraction_to(digits: str, is_open: bool) -> r.Regular:
    if not digits:
        return r.EMPTY if is_open else _ZERO_FRACTION
    first, rest = digits[0], digits[1:]
    less = r.concat(r.byte_range(0x30, ord(first) - 1), _DIGITS)
    return r.optional(r.concat(r.literal("."), r.union(less, r.concat(r.literal(first), _tail_to(rest, is_open)))))


def _fraction_between(low: str, low_open: bool, high: str, high_open: bool) -> r.Regular:
    """Fractions from ``low`` to ``high`` (``low <= high``)."""
    if low == high:
        if low_open or high_open:
            return r.EMPTY
        return r.concat(r.literal("." + low), r.repeat(r.literal("0"))) if low else _ZERO_FRACTION
    size = max(len(low), len(high))
    bottom, top = low.ljust(size, "0"), high.ljust(size, "0")
    split = next(index for index in range(size) if bottom[index] != top[index])

    def may_end(index: int) -> bool:
        # The digits so far are those of both bounds; to end here is to go on with zeros.
        return not low_open and bottom[index:].strip("0") == ""

    language = r.union(
        r.concat(r.literal(bottom[split]), _tail_from(bottom[split + 1 :].rstrip("0"), low_open)),
        r.concat(_between_digits(bottom[split], top[split]), _DIGITS),
        r.concat(r.literal(top[split]), _tail_to(top[split + 1 :].rstrip("0"), high_open)),
    )
    for index in range(split, 0, -1):
        if may_end(index):
            language = r.union(r.EPSILON, language)
        language = r.concat(r.literal(bottom[index - 1]), language)
    language = r.concat(r.literal("."), language)
    return r.union(r.EPSILON, language) if may_end(0) else language


# -- scientific notation -----------------------------------------------------------------------

_TEN = Decimal(10)
_ONE = Decimal(1)
# An integer from 1e16 up has no fraction digit past its exponent if there are no more than sixteen of them,
# which is what a double ever has.
_SHORT_MANTISSA = r.concat(_NOT_ZERO, r.optional(r.concat(r.literal("."), r.repeat(_DIGIT, 1, _SCIENTIFIC_FROM))))


def _scientific(form: NumberForm, low: Decimal, low_open: bool, high: Decimal | None, high_open: bool) -> r.Regular:
    if low < _LEAST_DOUBLE:
        low, low_open = _LEAST_DOUBLE, False
    if high is None or high > _GREATEST_DOUBLE:
        high, high_open = _GREATEST_DOUBLE, False
    if low > high or (low == high and (low_open or high_open)):
        return r.EMPTY
    first, last = low.adjusted(), high.adjusted()
    if first == last:
        pieces = [(_plain(NumberForm.ANY, _mantissa(low), low_open, _mantissa(high), high_open), first, last)]
    else:
        pieces = [
            (_plain(NumberForm.ANY, _mantissa(low), low_open, _TEN, True), first, first),
            (_plain(NumberForm.ANY, _ONE, False, _TEN, True), first + 1, last - 1),
            (_plain(NumberForm.ANY, _ONE, False, _mantissa(high), high_open), last, last),
        ]
    languages = []
    for mantissa, least, most in pieces:
        large = _exponents(max(least, _SCIENTIFIC_FROM), most)
        if form is NumberForm.ANY:
            languages.append(r.concat(mantissa, _E, r.union(_small_exponents(least, most), large)))
        elif large != r.EMPTY:
            languages.append(r.concat(r.intersect(mantissa, _SHORT_MANTISSA), _E, large))
    return r.union(*languages)


def _mantissa(number: Decimal) -> Decimal:
    digits = number.as_tuple().digits
    return Decimal((0, digits, 1 - len(digits)))


def _exponents(least: int, most: int) -> r.Regular:
    if least > most:
        return r.EMPTY
    return r.concat(r.optional(r.literal("+")), _counts(least, most))


def _small_exponents(least: int, most: int) -> r.Regular:
    most = min(most, _SCIENTIFIC_BELOW)
    if least > most:
        return r.EMPTY
    return r.concat(r.literal("-"), _counts(-most, -least))


def _counts(least: int, most: int) -> r.Regular:
    """Positive integers in a range; one digit may have a zero before it, as in ``1e-07``."""
    one_digit = r.EMPTY
    if least < 10:
        one_digit = r.concat(
            r.optional(r.literal("0")),
            _plain(NumberForm.NO_FRACTION, Decimal(least), False, Decimal(min(most, 9)), False),
        )
        least = 10
    if least > most:
        return one_digit
    return r.union(one_digit, _plain(NumberForm.NO_FRACTION, Decimal(least), False, Decimal(most), False))
