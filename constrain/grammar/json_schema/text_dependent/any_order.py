"""The members of an object in every order, as an automaton over the sets of names that were used.

There are 2^n such sets for n names, so none is looked at before a text has come to it.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from copy import copy
from functools import lru_cache
from typing import NamedTuple

from constrain.grammar import rules_on_demand as on_demand
from constrain.grammar.ir import BY_RULES, NEVER, Symbol


class _Way(NamedTuple):
    """A member as it may be written."""

    first_key: Symbol
    next_key: Symbol
    value: Symbol
    member: int
    """Which of the members it is."""
    met: int
    """The demands that it meets, as a set of bits."""


class Members(NamedTuple):
    """The members so far."""

    used: int
    """The names that were used, as a set of bits."""
    members: int
    """How many members there are, up to where that matters."""
    pending: int
    """The demands that are not met yet, as a set of bits."""
    counts: tuple[int, ...]
    """How many keys were used of each set that may run out before its demands are met."""
    is_empty: bool


Before = tuple[int, int, bool]
"""What members before come to: :attr:`Members.members`, ``pending`` and ``is_empty``."""


class AnyOrder:
    """The members of one object.

    Parameters
    ----------
    close : Symbol, optional
        The closing brace; without it the last member is the end.
    low, high : int, int or None
        The number of members.
    demands : int
        How many demands there are that some member must meet.
    """

    decided_by = BY_RULES

    def __init__(self, close: Symbol | None, low: int, high: int | None, demands: int) -> None:
        self.close = close
        self.low = low
        self.high = high
        self.demands = demands
        self.ways: list[_Way] = []
        self.named: list[bool] = []
        self.required: list[bool] = []
        self.most: list[int | None] = []
        self.before: Before = 0, (1 << demands) - 1, True

    def behind(self, before: Before) -> AnyOrder:
        """The same members, behind others."""
        behind = copy(self)
        behind.before = before
        return behind

    def add_way(self, first_key: Symbol, next_key: Symbol, value: Symbol, met: tuple[int, ...]) -> None:
        """A way to write the member that is being added, by which it meets some of the demands."""
        bits = sum(1 << demand for demand in met)
        self.ways.append(_Way(first_key, next_key, value, len(self.named), bits))

    def end_member(self, *, named: bool, required: bool, most: int | None) -> None:
        """All ways of a member are there.

        ``named``: it can come once.  ``most``: how many there can be of another one; None where that is without end, or
        does not matter.
        """
        self.named.append(named)
        self.required.append(required)
        self.most.append(most)

    def begin(self, unfolding: on_demand.UnfoldedAutomata) -> tuple[on_demand.Automaton, Hashable]:
        """The automaton for a compiled grammar, and its first state."""
        automaton = MembersInAnyOrder(self, unfolding.is_usable)
        return automaton, automaton.start


class MembersInAnyOrder(on_demand.NeverOpen, on_demand.PricesEdges):
    """The automaton; its states are :class:`Members`."""

    def __init__(self, order: AnyOrder, is_usable: on_demand.IsUsable) -> None:
        self.order = order
        self.ways = [
            way for way in order.ways if is_usable(way.value) and is_usable(way.first_key) and is_usable(way.next_key)
        ]
        self.bits = [1 << way.member if order.named[way.member] else 0 for way in self.ways]
        self.required = sum(1 << member for member, required in enumerate(order.required) if required)
        # The sets of keys that are counted: the place of each in the counts, and the demands that it can meet.
        counted = [member for member, most in enumerate(order.most) if most is not None and not order.named[member]]
        self._place = {member: place for place, member in enumerate(counted)}
        self._meets = [0] * len(counted)
        for way in self.ways:
            if way.member in self._place:
                self._meets[self._place[way.member]] |= way.met
        # Where no number of members and no demand can come to be out of reach, every member is followed by an end.
        self._may_fail = order.high is not None or order.demands > 0
        self._fewest_further = lru_cache(maxsize=10_000)(self._count_fewest)

    @property
    def start(self) -> Members:
        """The state before the first member."""
        count, pending, is_empty = self.order.before
        return Members(0, count, pending, (0,) * len(self._place), is_empty)

    def edges(self, state: Members) -> tuple[list[on_demand.Right], list[on_demand.Edge]]:
        """The ways to end in a state, and those to go on, each with its edge."""
        order = self.order
        ends: list[on_demand.Right] = []
        if order.close is not None and self.may_end(state):
            ends.append((order.close,))
        further: list[on_demand.Edge] = []
        used, pending, place = state.used, state.pending, 0 if state.is_empty else 1
        for edge, (way, bit) in enumerate(zip(self.ways, self.bits, strict=True)):
            if bit & used or way.met & ~pending or (state.counts and self.left(way.member, state.counts) == 0):
                continue
            if self._may_fail and not self._can_end(self.follow(state, edge)):
                continue
            if order.close is None and self.may_end(self.follow(state, edge)):
                ends.append((way[place], way.value))
            further.append(((way[place], way.value), edge, 0))
        return ends, further

    def may_end(self, state: Members) -> bool:
        """Whether the members may be all."""
        is_missing = state.is_empty or state.pending or self.required & ~state.used
        return not is_missing and state.members >= self.order.low

    def follow(self, state: Members, edge: int) -> Members:
        """The state behind an edge."""
        order, way = self.order, self.ways[edge]
        count = state.members + 1
        if order.high is None:
            count = min(count, order.low)
        pending, counts = state.pending & ~way.met, state.counts
        if counts:
            place = self._place.get(way.member)
            counts = tuple(
                0 if not meets & pending else number + (index == place)
                for index, (number, meets) in enumerate(zip(counts, self._meets, strict=True))
            )
        return Members(state.used | self.bits[edge], count, pending, counts, False)

    def left(self, member: int, counts: tuple[int, ...]) -> int | None:
        """How many more there can be of a member without a name; None where that is without end, or does not matter."""
        place = self._place.get(member)
        most = self.order.most[member]
        return None if place is None or most is None else most - counts[place]

    def least(self, state: Members, costs: on_demand.Costs) -> int:
        """What the cheapest members cost that are still needed, and the closing brace."""
        return self._prices(costs).least(state)

    def least_of_edges(self, state: Members, edges: list[int], costs: on_demand.Costs) -> list[int]:
        """The same behind each of some members."""
        prices = self._prices(costs)
        missing = self.required & ~state.used
        if state.pending or self.order.low - state.members > missing.bit_count():
            return [costs.least(self, self.follow(state, edge)) for edge in edges]
        # Just those that are missing are needed: each of them is then paid for.
        least = prices.least(state._replace(is_empty=False))
        return [least - prices.of(edge) if self.bits[edge] & missing else least for edge in edges]

    def _prices(self, costs: on_demand.Costs) -> _Prices:
        prices: _Prices | None = costs.known.get(self)
        if prices is None:
            prices = costs.known[self] = _Prices(self, costs)
        return prices

    def needed_of_any(self, state: Members) -> int:
        """How many more members there must be, if some of them may be any; 0 if just those that are required."""
        if not state.pending and self.order.low - state.members <= (self.required & ~state.used).bit_count():
            return 0
        fewest = self._fewest_further(state.used, state.pending, state.counts)
        return NEVER if fewest is None else max(self.order.low - state.members, fewest)

    def _can_end(self, state: Members) -> bool:
        """Whether what is missing in a state fits in.

        That there are enough names for the least number goes without saying: it is so at the start, and each
        member that is written takes one of both.
        """
        fewest = self._fewest_further(state.used, state.pending, state.counts)
        return fewest is not None and (self.order.high is None or state.members + fewest <= self.order.high)

    def _count_fewest(self, used: int, pending: int, counts: tuple[int, ...]) -> int | None:
        """How many members there must be yet, given the keys that were used and the demands; None if none will do."""
        required = self.required & ~used
        if not pending:
            return required.bit_count()
        # Each name can meet one of several sets of demands.  The fewest members for each set of demands that is left:
        best = {pending: required.bit_count()}
        choices: dict[tuple[int, bool], list[int]] = {}
        for way, bit in zip(self.ways, self.bits, strict=True):
            if way.met and not bit & used:
                choices.setdefault((way.member, bool(bit)), []).append(way.met)
        for (member, named), sets in choices.items():
            price = 0 if required >> member & 1 else 1
            # A member that can come any number of times has its turn as often as there are demands.
            left = self.left(member, counts)
            turns = self.order.demands if left is None else min(left, self.order.demands)
            for _ in range(1 if named else turns):
                after = dict(best)
                for missing, count in best.items():
                    for met in sets:
                        rest = missing & ~met
                        if rest != missing and count + price < after.get(rest, count + price + 1):
                            after[rest] = count + price
                best = after
        return best.get(0)


class _Prices:
    """The cheapest ways to meet what an object demands.

    In what order members come does not matter to what they cost, but for the comma that the first one goes without.
    So it is a matter of choosing: all that are required, others until there are enough, and in such ways that each
    demand is met.
    """

    def __init__(self, members: MembersInAnyOrder, costs: on_demand.Costs) -> None:
        self._order = order = members.order
        self._left = members.left
        self._required = members.required
        self._ways = ways = members.ways
        self._bits = members.bits
        self._close = 0 if order.close is None else costs.of(order.close)
        self._prices = [costs.right((way.next_key, way.value)) for way in ways]
        # Of each member the cheapest way by which it meets no demand; it can be taken whatever is pending.
        self._plain: dict[int, int] = {}
        for way, price in zip(ways, self._prices, strict=True):
            if not way.met and price < self._plain.get(way.member, NEVER):
                self._plain[way.member] = price
        self._by_price = sorted(self._plain, key=self._plain.__getitem__)
        self._of_required = sum(
            self._plain.get(member, NEVER) for member in range(len(order.required)) if self._is_required(member)
        )
        self._last_done = 0, 0
        # How much less a member costs without the comma, at least.
        self._comma = min(
            (
                price - costs.right((way.first_key, way.value))
                for way, price in zip(ways, self._prices, strict=True)
                if price < NEVER
            ),
            default=0,
        )

    def _is_required(self, member: int) -> bool:
        return bool(self._required >> member & 1)

    def least(self, state: Members) -> int:
        """What is left to be paid in a state, the closing brace included."""
        missing = self._required & ~state.used
        if state.pending:
            cost = self._meeting(state, missing)
        else:
            cost = self._of_required - self._of_done(self._required & state.used)
            # The object without members is a rule of its own.
            wanted = max(self._order.low, int(state.is_empty)) - state.members - missing.bit_count()
            cost += self._filling(state.used, wanted, ())
        if state.is_empty and cost < NEVER:
            cost -= self._comma
        return cost + self._close

    def of(self, edge: int) -> int:
        """The cheapest way to write the member of an edge by which it meets no demand."""
        return self._plain.get(self._ways[edge].member, NEVER)

    def _of_done(self, done: int) -> int:
        """What those that are required and done cost: mostly one of them is other than at the last call."""
        last, cost = self._last_done
        changed = done ^ last
        while changed:
            low = changed & -changed
            price = self._plain.get(low.bit_length() - 1, NEVER)
            cost += price if done & low else -price
            changed ^= low
        self._last_done = done, cost
        return cost

    def _filling(self, used: int, wanted: int, others: Collection[int]) -> int:
        """What it costs to add members that are not required, and none of ``others``, until there are enough."""
        if wanted <= 0:
            return 0
        prices: list[int] = []
        for member in self._by_price:
            if self._is_required(member) or member in others:
                continue
            if not self._order.named[member]:
                # It can come as often as need be, and the rest would be dearer.
                return sum(prices) + self._plain[member] * (wanted - len(prices))
            if not used >> member & 1:
                prices.append(self._plain[member])
                if len(prices) == wanted:
                    return sum(prices)
        return NEVER

    def _meeting(self, state: Members, missing: int) -> int:
        """What it costs at least with demands that are not met."""
        choices: dict[int, list[tuple[int, int]]] = {}
        for way, bit, price in zip(self._ways, self._bits, self._prices, strict=True):
            if way.met and not bit & state.used and not way.met & ~state.pending:
                choices.setdefault(way.member, []).append((way.met, price))
        # The least cost for each set of demands that is left and each number of members: those that meet some.
        best = {(state.pending, 0): 0}
        for member, found in choices.items():
            named, required = self._order.named[member], self._is_required(member)
            plain = [(0, self._plain[member])] if named and member in self._plain else []
            more = self._left(member, state.counts)
            turns = self._order.demands if more is None else min(more, self._order.demands)
            for turn in range(1 if named else turns):
                after: dict[tuple[int, int], int] = {} if required and turn == 0 and named else dict(best)
                for (left, count), cost in best.items():
                    for met, price in (*found, *plain):
                        key = left & ~met, count + 1
                        if not met & ~left and cost + price < after.get(key, NEVER):
                            after[key] = cost + price
                best = after
        free = missing & ~sum(1 << member for member in choices)
        rest = sum(self._plain.get(member, NEVER) for member in range(len(self._order.required)) if free >> member & 1)
        least = NEVER
        for (left, count), cost in best.items():
            if left:
                continue
            total = count + free.bit_count()
            wanted = max(self._order.low - state.members - total, 0)
            if self._order.high is None or state.members + total + wanted <= self._order.high:
                others = [member for member in choices if self._order.named[member]]
                least = min(least, cost + rest + self._filling(state.used, wanted, others))
        return least
