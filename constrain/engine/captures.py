"""The texts of rules that are captured, read from the chart of a text.

They are worked out when they are asked for, from the bytes of the text alone, so they are right after any rollback and
cost nothing where nobody asks.  A chart is kept between two questions; what the texts have in common is not read again.

A text may be read in several ways.  Of these, the one counts in which what stands earlier takes as much as it can, and,
where that says nothing, rules that come first in the grammar.  So a rule that can go on is not complete yet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from constrain.engine.chart import Chart, Item
from constrain.grammar.captures import CaptureRule
from constrain.grammar.ir import GrammarIR, Symbol
from constrain.grammar.languages.derivatives import Automaton
from constrain.grammar.languages.regular import Literal, Regular

_LAST = 1 << 60


@dataclass(frozen=True)
class Capture:
    """The text of a rule.

    Attributes
    ----------
    name : str
    data : bytes
        The text, without what is ignored behind it and without the end that ``[stop]`` or ``[suffix]`` name.  Of a rule
        that is not complete, all of it so far.
    is_complete : bool
        Whether the rule is at its end, whatever follows.
    """

    name: str
    data: bytes
    is_complete: bool


class _Part(NamedTuple):
    """A symbol of a rule, the places that it is between, and what its last item has to be found before."""

    symbol: Symbol
    begin: int
    end: int
    before: int


class _Opening(NamedTuple):
    """How a rule may be under way: an item of it, where that is, and the symbol under way; None between two symbols."""

    item: Item
    place: int
    symbol: Symbol | None


class CaptureReader:
    """Finds captures in texts of one grammar.

    Parameters
    ----------
    ir : GrammarIR
        With captures, without a parse table.
    """

    def __init__(self, ir: GrammarIR) -> None:
        self._chart = Chart(ir)
        self._rules = dict(ir.captures)
        self._skips = {*ir.skips, self._chart.skip}
        self._leads = self._leading()
        self._ends: dict[Regular, Automaton] = {}

    def _leading(self) -> set[Symbol]:
        """The symbols that a captured rule may be part of."""
        found = set(self._rules)
        while True:
            more = {left for left, right in self._chart.rules if not found.isdisjoint(right)} - found
            if not more:
                return found
            found |= more

    def read(
        self, text: bytes, has_ended: bool, shut: Mapping[int, frozenset[int]] = MappingProxyType({})
    ) -> list[Capture] | None:
        """All captures of a text, in the order in which they begin; None if it is not one of the grammar's.

        ``shut`` says where limited rules were closed (:meth:`constrain.engine.chart.Chart.read`).

        Raises
        ------
        LimitError
            If there are too many ways to read the text.
        """
        self._chart.read(text, shut)
        whole = self._chart.start, 0
        openings = {} if has_ended else self._openings()
        if whole in openings:
            return self._under_way(openings)
        place = len(text)
        last = self._chart.sets[place]
        items = () if last is None else last.completed.get(whole, ())
        return self._complete(items[0], place) if items else None

    # -- what is at its end --------------------------------------------------------------------------

    def _complete(self, item: Item, end: int) -> list[Capture]:
        """The captures below a rule that has been read, without that rule."""
        found: list[Capture] = []
        todo = [self._parts(item, end)]
        while todo:
            part = todo[-1].pop() if todo[-1] else None
            if part is None:
                todo.pop()
            elif part.begin < part.end and part.symbol in self._leads:
                child = self._child(part)
                if part.symbol in self._rules:
                    found += self._made(self._rules[part.symbol], part.begin, self._real_end(child, part), True)
                todo.append(self._parts(child, part.end))
        return found

    def _parts(self, item: Item, place: int) -> list[_Part]:
        """What the symbols before the dot of an item stand for, the last one first."""
        return list(self._backwards(item, place))

    def _backwards(self, item: Item, place: int) -> Iterator[_Part]:
        while item.dot:
            part = self._last_part(item, place)
            yield part
            item, place = Item(item.rule, item.dot - 1, item.origin), part.begin

    def _last_part(self, item: Item, place: int) -> _Part:
        """The symbol before the dot, as short as can be.

        What ends at the same place, and what spans all that the item does, has to have been found before it: the item
        was found by way of something that was, and so nothing is a part of itself.
        """
        chart = self._chart
        here = chart.sets[place]
        assert here is not None
        time = here.order(item)
        assert time is not None
        before = Item(item.rule, item.dot - 1, item.origin)
        best: _Part | None = None
        for symbol, begin in (*here.lexemes, *here.completed):
            if begin < item.origin or (best is not None and begin <= best.begin):
                continue
            there = chart.sets[begin]
            if there is None:
                continue
            found_at = there.order(before) if begin == place else there.items.get(before)
            if found_at is None or chart.awaited(before, begin) != symbol:
                continue
            if begin == place and found_at >= time:
                continue
            limit = time if begin == item.origin else _LAST
            if symbol >= 0 and all(here.items[child] >= limit for child in here.completed[symbol, begin]):
                continue
            best = _Part(symbol, begin, place, limit)
        assert best is not None
        return best

    def _child(self, part: _Part) -> Item:
        """The rule by which a part is read: the first one in the grammar."""
        here = self._chart.sets[part.end]
        assert here is not None
        items = here.completed[part.symbol, part.begin]
        return min(item for item in items if here.items[item] < part.before)

    def _real_end(self, item: Item, whole: _Part) -> int:
        """Where a rule ends without what is ignored behind it."""
        return self._end_before_skips(item, whole.end, whole.begin)

    def _end_before_skips(self, item: Item, place: int, begin: int) -> int:
        todo = [self._backwards(item, place)]
        while todo:
            part = next(todo[-1], None)
            if part is None:
                todo.pop()
            elif part.begin < part.end and part.symbol not in self._skips:
                if part.symbol < 0:
                    return part.end
                todo.append(self._backwards(self._child(part), part.end))
        return begin

    # -- what is under way -----------------------------------------------------------------------------

    def _openings(self) -> dict[tuple[Symbol, int], tuple[int, list[_Opening]]]:
        """How rules may be under way, by left-hand side and beginning, with the order in which they were found."""
        chart, end = self._chart, len(self._chart.text)
        found: dict[tuple[Symbol, int], tuple[int, list[_Opening]]] = {}
        todo = deque(chart.open_lexemes())

        def note(opening: _Opening) -> None:
            key = chart.rules[opening.item.rule][0], opening.item.origin
            if key not in found:
                found[key] = len(found), []
                todo.append(key)
            found[key][1].append(opening)

        def follow() -> None:
            while todo:
                symbol, begin = todo.popleft()
                there = chart.sets[begin]
                assert there is not None
                for item in there.waiting.get(symbol, ()):
                    note(_Opening(item, begin, symbol))

        # First the rules in which a lexeme is under way: these come before those that are between two symbols.
        follow()
        last = chart.sets[end]
        for item in () if last is None else last.items:
            is_between = 0 < item.dot < len(chart.rules[item.rule][1]) and item.origin < end
            if is_between and chart.awaited(item, end) is not None:
                note(_Opening(item, end, None))
        follow()
        return found

    def _under_way(self, openings: dict[tuple[Symbol, int], tuple[int, list[_Opening]]]) -> list[Capture]:
        """The captures of a text that can go on."""
        way: list[tuple[tuple[Symbol, int], _Opening]] = []
        key: tuple[Symbol, int] | None = (self._chart.start, 0)
        while key is not None:
            order, several = openings[key]
            opening = min(
                (each for each in several if self._is_earlier(each, key, order, openings)),
                key=lambda each: (each.symbol is None, each.item.rule, each.item.dot, -each.place),
            )
            way.append((key, opening))
            is_rule = opening.symbol is not None and opening.symbol >= 0
            key = (opening.symbol, opening.place) if is_rule and opening.symbol is not None else None
        over = self._over(way)
        found: list[Capture] = []
        for ((symbol, begin), opening), is_over in zip(way, over, strict=True):
            if symbol in self._rules:
                end = len(self._chart.text)
                if is_over:
                    end = self._end_of_way(way, symbol, begin)
                found += self._made(self._rules[symbol], begin, end, is_over)
            found += self._complete(opening.item, opening.place)
        return found

    @staticmethod
    def _is_earlier(
        opening: _Opening,
        key: tuple[Symbol, int],
        order: int,
        openings: dict[tuple[Symbol, int], tuple[int, list[_Opening]]],
    ) -> bool:
        """Whether what is under way in a rule is not, in turn, that rule itself."""
        symbol, place = opening.symbol, opening.place
        return symbol is None or symbol < 0 or place > key[1] or openings[symbol, place][0] < order

    def _over(self, way: list[tuple[tuple[Symbol, int], _Opening]]) -> list[bool]:
        """For each rule on the way to what is under way, whether only what is ignored may still come of it."""
        found: list[bool] = []
        inner = False
        for (symbol, _), opening in reversed(way):
            item = opening.item
            right = self._chart.rules[item.rule][1]
            rest = right[item.dot :] if opening.symbol is None else right[item.dot + 1 :]
            inner = symbol in self._skips or (
                self._skips.issuperset(rest) and (opening.symbol is None or opening.symbol in self._skips or inner)
            )
            found.append(inner)
        return found[::-1]

    def _end_of_way(self, way: list[tuple[tuple[Symbol, int], _Opening]], symbol: Symbol, begin: int) -> int:
        """Where a rule ends that only what is ignored may still come of."""
        place = next(index for index, (key, _) in enumerate(way) if key == (symbol, begin))
        for (inner, start), opening in reversed(way[place:]):
            if inner in self._skips:
                continue
            end = self._end_before_skips(opening.item, opening.place, -1)
            if end > start or (end >= 0 and opening.item.dot):
                return end
        return begin

    # -- texts -----------------------------------------------------------------------------------------

    def _made(self, rule: CaptureRule, begin: int, end: int, is_complete: bool) -> list[Capture]:
        data = bytes(self._chart.text[begin:end])
        cut = len(data)
        if is_complete and rule.body is not None and rule.end is not None:
            cut = self._cut(data, rule.body, rule.end)
        found = [] if rule.name is None else [Capture(rule.name, data[:cut], is_complete)]
        if rule.end_name is not None and is_complete and cut < len(data):
            found.append(Capture(rule.end_name, data[cut:], True))
        return found

    def _cut(self, data: bytes, body: Regular, end: Regular) -> int:
        """Where the end begins in a text that has one: as early as can be."""
        if isinstance(end, Literal):
            return len(data) - len(end.data) if data.endswith(end.data) else len(data)
        ends = self._ends.setdefault(end, Automaton(end))
        bodies = self._ends.setdefault(body, Automaton(body))
        return next(
            (place for place in range(len(data) + 1) if ends.matches(data[place:]) and bodies.matches(data[:place])),
            len(data),
        )
