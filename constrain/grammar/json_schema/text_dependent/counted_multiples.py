"""Multiples of numbers for which a regular language would be too large: rules that are made digit by digit.

A number in plain notation is a whole number of units, ``10**-places``.  The digits so far leave an interval of these
for each number of digits still to come, and whether one of them is a multiple that is within the bounds is a matter of
division.  So no digit is written from which there is no way on.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from functools import cache, partial
from itertools import combinations
from math import lcm
from typing import NamedTuple

from constrain.grammar import rules_on_demand as on_demand
from constrain.grammar.ir import BY_RULES, NEVER, GrammarBuilder
from constrain.grammar.json_schema.lexical.multiples import decimal_places, least_common_multiple
from constrain.grammar.json_schema.lexical.numbers import NumberForm
from constrain.grammar.json_schema.normal.nodes import Bound, NumberNode
from constrain.grammar.languages.regular import Regular, literal

MAX_PERIOD = 500
"""Where there are several divisors, the greatest common multiple for which there is a regular language."""

# Each set of divisors that are excluded is counted by itself.
_MAX_EXCLUDED_DIVISORS = 8

# What is looked at to find out how many characters a number needs yet.
_MOST_DIGITS = 2_000

# No number of the schema has more digits (lexical/numbers.py), and products of a few of them are exact with these.
_PRECISION = 10_000


def can_be_counted(node: NumberNode) -> bool:
    """Whether the numbers of a node are whole numbers of some unit, as here they must be."""
    if node.values is not None or len(node.not_divisors) > _MAX_EXCLUDED_DIVISORS:
        return False
    return bool(node.divisors) or node.form is not NumberForm.ANY


class Multiples:
    """The numbers of a node, counted in units; ``is_plain``: integers without fraction."""

    def __init__(self, node: NumberNode, is_plain: bool = False) -> None:
        divisors = [each.value for each in node.divisors]
        if node.form is not NumberForm.ANY:
            divisors.append(Decimal(1))
        with localcontext() as context:
            context.prec = _PRECISION
            common = least_common_multiple(divisors, node.pointer)
            self.places = places = decimal_places(common)
            self._step = step = _units(common, places)
            self._not = [
                _units(least_common_multiple([common, each.value], each.pointer), places) for each in node.not_divisors
            ]
            self._period = lcm(step, *self._not)
            self.is_involved = len(self._not) + len(divisors) > 1 and self._period > MAX_PERIOD
            """Whether an intersection of the multiples of each divisor would be a large automaton."""
            self.low = _limit(node.low, places, ROUND_CEILING, 1)
            self.high = _limit(node.high, places, ROUND_FLOOR, -1)
            excluded = [value * 10**places for value in node.excluded]
            whole = sorted({int(value) for value in excluded if value == value.to_integral_value()})
            self._excluded = [value for value in whole if self._fits(value)]
        self.has_all_multiples = not self._not and not self._excluded
        """Whether no multiple within the bounds is left out."""
        self.has_fraction = node.has_fraction
        self.form = node.form
        if is_plain and self.places == 0 and not node.has_fraction:
            self.form = NumberForm.NO_FRACTION
        # From here on nothing but the remainder matters.
        bounds = [abs(value) for value in (self.low, self.high, *self._excluded) if value is not None]
        self._far = max([0, *bounds]) + 1
        self._is_endless = self._count_to(self._far + self._period) > self._count_to(self._far)

    def _fits(self, value: int) -> bool:
        return value % self._step == 0 and all(value % other for other in self._not)

    def holds(self, units: int) -> bool:
        """Whether a number of units is one of the numbers."""
        return (
            self._fits(units)
            and (self.low is None or units >= self.low)
            and (self.high is None or units <= self.high)
            and units not in self._excluded
        )

    def _count_to(self, high: int, unit: int = 1) -> int:
        """How many multiples of ``unit`` up to ``high`` fit, counted from those that are below 0."""
        # By inclusion and exclusion.
        total = high // lcm(self._step, unit)
        for size in range(1, len(self._not) + 1):
            for some in combinations(self._not, size):
                total += (-1) ** size * (high // lcm(unit, *some))
        return total

    def is_any_between(self, low: int, high: int, is_negative: bool, unit: int = 1) -> bool:
        """Whether there is a number from ``low`` to ``high`` units, negated if need be, in the bounds (low <= high).

        Of those that are multiples of ``unit`` units.
        """
        if is_negative:
            low, high = -high, -low
        low = low if self.low is None else max(low, self.low)
        high = high if self.high is None else min(high, self.high)
        if low > high:
            return False
        # A whole period has as many as every other, wherever it begins.
        count = self._count_to(high, unit) - self._count_to(low - 1, unit)
        return count > sum(low <= value <= high and value % unit == 0 for value in self._excluded)

    def is_any(self) -> bool:
        """Whether there is any number at all."""
        far = self._far + self._period
        return any(self.is_any_between(0, far, is_negative) for is_negative in (False, True))

    def can_grow(self, digits: int, is_negative: bool) -> bool:
        """Whether there is a number whose digits before the point begin with those of ``digits``, and end there or not.

        After zero none can follow.
        """
        if digits > 0 and self.is_endless(is_negative):
            return True
        unit: int = 10**self.places
        low, high = digits * unit, (digits + 1) * unit - 1
        while True:
            if self.is_any_between(low, high, is_negative):
                return True
            if digits == 0 or low > self._far:
                return False
            low, high = 10 * low, 10 * high + 9

    def is_endless(self, is_negative: bool) -> bool:
        """Whether there are ever greater numbers: then there are some that begin with any digits but zero."""
        return self._is_endless and (self.low if is_negative else self.high) is None

    def greatest(self, is_negative: bool) -> int | None:
        """The limit in units, without the sign; negative if there is no such number, None if there is no limit."""
        if is_negative:
            return None if self.low is None else -self.low
        return self.high

    def may_be_as_great(self, digits: int, is_negative: bool) -> bool:
        """Whether there may be numbers with ``digits`` or more before the point; False if there is none."""
        return self.is_endless(is_negative) or digits * 10**self.places <= self._far

    def reduced(self, digits: int, is_negative: bool) -> int:
        """A number of digits from which all goes on in the same way."""
        limit = self.low if is_negative else self.high
        if limit is not None or digits <= self._far:
            return digits
        return self._far + (digits - self._far) % self._period


def _units(value: Decimal, places: int) -> int:
    return int(value.scaleb(places))


def _limit(bound: Bound | None, places: int, rounding: str, inward: int) -> int | None:
    if bound is None:
        return None
    scaled = bound.value.scaleb(places)
    whole = int(scaled.to_integral_value(rounding))
    return whole + inward if bound.is_open and scaled == whole else whole


class _State(NamedTuple):
    digits: int
    """All digits so far; -1 for none."""
    is_negative: bool
    fraction: int
    """How many of them stand behind the point; -1 if there is no point."""


class CountedMultiples(on_demand.NeverOpen):
    """The template of a number; see :mod:`constrain.grammar.rules_on_demand`.

    Parameters
    ----------
    numbers : Multiples
    builder : GrammarBuilder
        Takes the lexemes, which are single characters.
    opened : callable
        Puts before a token what may stand before it.
    """

    decided_by = BY_RULES

    def __init__(self, numbers: Multiples, builder: GrammarBuilder, opened: Callable[[Regular], Regular]) -> None:
        self._numbers = numbers
        characters = "0123456789.-"
        self._inner = {sign: builder.lexeme(literal(sign), repr(sign)) for sign in characters}
        self._fewest = cache(self._count_fewest)
        self._first = {sign: builder.lexeme(opened(literal(sign)), repr(sign)) for sign in characters if sign != "."}

    @property
    def example(self) -> on_demand.Right:
        """A rule that says that there are such numbers."""
        return (self._first["0"],)

    def begin(self, unfolding: on_demand.UnfoldedAutomata) -> tuple[on_demand.Automaton, Hashable]:
        """The automaton, and its first state."""
        return self, _State(-1, False, -1)

    def edges(self, state: _State) -> tuple[list[on_demand.Right], list[on_demand.Edge]]:
        """The ways to end in a state, and those to go on."""
        ends: list[on_demand.Right] = []
        further: list[on_demand.Edge] = []
        symbols = self._first if state == _State(-1, False, -1) else self._inner
        for sign, then in self._steps(state):
            right: on_demand.Right = (symbols[sign],)
            if self._may_end(then):
                ends.append(right)
            if self._goes_on(then):
                further.append((right, then, 0))
        return ends, further

    def _goes_on(self, state: _State) -> bool:
        """Whether there are characters that may follow."""
        if state.digits > 0 and state.fraction < 0 and self._numbers.is_endless(state.is_negative):
            return True
        return any(True for _ in self._steps(state))

    def follow(self, state: _State, edge: Hashable) -> Hashable:
        """The state behind an edge."""
        return edge

    def least(self, state: _State, costs: on_demand.Costs) -> int:
        """What the fewest characters cost that end the number."""
        dearest = max(costs.of(symbol) for symbol in self._inner.values())
        symbols = self._first if state == _State(-1, False, -1) else self._inner
        if state.digits >= 0:
            return self._fewest(state) * dearest
        return min(
            (
                costs.of(symbols[sign]) + (0 if self._may_end(then) else self.least(then, costs))
                for sign, then in self._steps(state)
            ),
            default=NEVER,
        )

    def _count_fewest(self, state: _State) -> int:
        """How many characters there must be after some digits, at least one; NEVER if there must be too many."""
        numbers = self._numbers
        digits, is_negative, fraction = state
        places = max(numbers.places, 1)
        if fraction >= 0:
            counts = range(fraction + 1, max(places, fraction + 1) + 1)
            found = bisect_left(counts, True, key=partial(self._is_any, state, 0))
            return found + 1 if found < len(counts) else NEVER
        # For each number of digits before the point, the fewest behind it: of more there are all of these, with zeros.
        fewest = NEVER
        has_point = numbers.form is not NumberForm.NO_FRACTION
        counts = range(_MOST_DIGITS if digits else 1)
        if numbers.has_all_multiples:
            # Ten times a multiple is one too: once there are any there are always some, up to where the limit is.
            counts = counts[bisect_left(counts, True, key=partial(self._is_any_or_limit, state)) :]
        for more in counts:
            if more >= fewest or not numbers.may_be_as_great(digits * 10**more, is_negative):
                break
            if more and not numbers.has_fraction and self._is_any(state, more, 0):
                fewest = min(fewest, more)
            elif has_point and self._is_any(state, more, places):
                behind = 1 + bisect_left(range(1, places), True, key=partial(self._is_any, state, more))
                fewest = min(fewest, more + 1 + behind)
        return fewest

    def _is_any(self, state: _State, more: int, behind: int) -> bool:
        """Whether a number begins so, with so many more digits before the point and ``behind`` of them behind it."""
        places = self._numbers.places
        left = max(places - max(state.fraction, 0), 0) + more
        low = state.digits * 10**left
        return self._numbers.is_any_between(
            low, low + 10**left - 1, state.is_negative, unit=10 ** max(places - behind, 0)
        )

    def _is_any_or_limit(self, state: _State, more: int) -> bool:
        """Whether a number begins so, with so many more digits before the point, or some that do are too great."""
        numbers = self._numbers
        limit = numbers.greatest(state.is_negative)
        if limit is not None and (state.digits + 1) * 10 ** (more + numbers.places) > limit:
            return True
        return self._is_any(state, more, max(numbers.places, 1))

    def _may_end(self, state: _State) -> bool:
        digits, is_negative, fraction = state
        if digits < 0 or fraction == 0 or (fraction < 0 and self._numbers.has_fraction):
            return False
        units = digits * 10 ** max(self._numbers.places - max(fraction, 0), 0)
        return self._numbers.holds(-units if is_negative else units)

    def _steps(self, state: _State) -> Iterator[tuple[str, _State]]:
        """The characters that may follow, each with the state behind it."""
        numbers = self._numbers
        digits, is_negative, fraction = state
        if digits < 0:
            if not is_negative:
                minus = _State(-1, True, -1)
                if any(True for _ in self._steps(minus)):
                    yield "-", minus
            for digit in range(10):
                if numbers.can_grow(digit, is_negative):
                    yield str(digit), _State(digit, is_negative, -1)
            return
        if fraction < 0:
            for digit in range(10) if digits else ():
                if numbers.can_grow(10 * digits + digit, is_negative):
                    yield str(digit), _State(numbers.reduced(10 * digits + digit, is_negative), is_negative, -1)
            unit = 10**numbers.places
            if numbers.form is not NumberForm.NO_FRACTION and numbers.is_any_between(
                digits * unit, (digits + 1) * unit - 1, is_negative
            ):
                yield ".", _State(digits, is_negative, 0)
            return
        if fraction >= numbers.places:
            # Zeros say nothing more.
            yield "0", _State(digits, is_negative, max(numbers.places, 1))
            return
        unit = 10 ** (numbers.places - fraction - 1)
        for digit in range(10):
            longer = 10 * digits + digit
            if numbers.is_any_between(longer * unit, (longer + 1) * unit - 1, is_negative):
                yield str(digit), _State(longer, is_negative, fraction + 1)
