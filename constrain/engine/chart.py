"""A chart of all ways to read a text (Earley, 1970), in Python: for what only some callers ask of a text.

Masks are not made with it, and nothing of it is there until somebody asks.  A set has the items at one place of the
text; most places within a lexeme have none.  For a grammar without ambiguity the work is at most quadratic in the
length of the text, and for a list that is written left-recursively linear; there is a limit for all others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from constrain.errors import LimitError
from constrain.grammar.ir import BRANCH, OPEN, GrammarIR, Symbol, Unfolding
from constrain.grammar.languages.derivatives import Automaton, example
from constrain.grammar.languages.regular import Regular, byte_range, intersect, repeat

MOST_ITEMS = 3_000_000
"""Items that the ways to read a text may have, together."""

_DEAD_SEARCH = 20_000
_MORE = repeat(byte_range(0, 255), 1)


class Item(NamedTuple):
    """How far a rule has been read (``dot``) since some place of the text (``origin``)."""

    rule: int
    dot: int
    origin: int


class Set:
    """The items at one place, in the order in which they were found, and what they wait for."""

    __slots__ = ("completed", "dropped", "items", "lexemes", "waiting")

    def __init__(self) -> None:
        self.items: dict[Item, int] = {}
        self.dropped: dict[Item, int] = {}
        """Those that were dropped where limited rules were closed, by way of which rules may have ended here."""
        self.waiting: dict[Symbol, list[Item]] = {}
        self.completed: dict[tuple[Symbol, int], list[Item]] = {}
        """Rules that end here, by left-hand side and where they began."""
        self.lexemes: set[tuple[Symbol, int]] = set()
        """The same for lexemes."""

    def order(self, item: Item) -> int | None:
        """When an item was found, which may have been dropped then; None if it was not."""
        return self.items.get(item, self.dropped.get(item))


class Chart:
    """All ways to read a text that grows at its end.

    Parameters
    ----------
    ir : GrammarIR
        Without a parse table, and without token sets.

    Attributes
    ----------
    rules : list of (Symbol, tuple of Symbol)
        Left-hand and right-hand sides.
    start, skip : Symbol
        The start, and what derives all that may be ignored behind a lexeme.
    text : bytearray
        What has been read.
    """

    def __init__(self, ir: GrammarIR) -> None:
        self._ir = ir
        self._unfolding: Unfolding | None = None
        is_usable = usable_symbols(ir).__contains__
        if ir.make_unfolding is not None:
            # There are no masks that look ahead.
            self._unfolding = ir.make_unfolding(is_usable, lambda byte: 0)
        self._unfolded = {left: branch for branch, left in enumerate(ir.unfolded)}
        self.rules: list[tuple[Symbol, tuple[Symbol, ...]]] = []
        self._by_left: dict[Symbol, list[int]] = {}
        # Symbols of the chart's own are beyond all others.
        self.start, self.skip = 2 * BRANCH, 2 * BRANCH + 1
        ignored = [~index for index in ir.ignore]
        self._skips = bool(ignored)
        self._add_rule(self.start, (self.skip, ir.start) if ignored else (ir.start,))
        if ignored:
            self._add_rule(self.skip, ())
            for symbol in ignored:
                self._add_rule(self.skip, (self.skip, symbol))
        for left, right in ir.productions:
            if left not in self._unfolded and all(map(is_usable, right)):
                self._add_rule(left, self._with_skips(right))
        self._same: dict[Symbol, Symbol] = {}
        self._closed: dict[tuple[int, int], Symbol] = {}
        self._automata: dict[Symbol, Automaton] = {}
        self._shut: dict[int, frozenset[int]] = {}
        self.text = bytearray()
        self.sets: list[Set | None] = []
        # Lexemes under way, by symbol and beginning, with the state of the automaton; for each place.
        self._running: list[dict[tuple[Symbol, int], int]] = []
        # The items up to each place.
        self._counts: list[int] = []
        self._begin()

    # -- rules -------------------------------------------------------------------------------------

    def _with_skips(self, right: Iterable[Symbol]) -> tuple[Symbol, ...]:
        if not self._skips:
            return tuple(right)
        return tuple(each for symbol in right for each in ((symbol, self.skip) if symbol < 0 else (symbol,)))

    def _add_rule(self, left: Symbol, right: tuple[Symbol, ...]) -> None:
        self._by_left.setdefault(left, []).append(len(self.rules))
        self.rules.append((left, right))

    def _named(self, symbol: Symbol) -> Symbol:
        """The symbol with the same rules that stands for it: a branch may go on like another one."""
        while symbol in self._same:
            symbol = self._same[symbol]
        if symbol < 0 or symbol in self._by_left:
            return symbol
        branch = self._branch_of(symbol)
        if branch is None or self._unfolding is None:
            return symbol
        rights = self._unfolding.unfold(branch)
        if isinstance(rights, int):
            self._same[symbol] = BRANCH + rights
            return self._named(BRANCH + rights)
        self._by_left[symbol] = []
        for right in rights:
            self._add_rule(symbol, self._with_skips(right))
        return symbol

    def _branch_of(self, symbol: Symbol) -> int | None:
        if symbol in self._unfolded:
            return self._unfolded[symbol]
        if symbol >= BRANCH:
            return symbol - BRANCH
        made = symbol - len(self._ir.nonterminal_names) - 1
        return self._unfolding.nonterminals[made] if made >= 0 and self._unfolding is not None else None

    def awaited(self, item: Item, place: int) -> Symbol | None:
        """The symbol that an item at a place waits for; None if it is at its end, or nothing follows in this text."""
        right = self.rules[item.rule][1]
        if item.dot == len(right):
            return None
        symbol = right[item.dot]
        if not BRANCH <= symbol < 2 * BRANCH or self._unfolding is None:
            return self._named(symbol)
        branch = symbol - BRANCH
        if not self._unfolding.kinds[branch] & OPEN:
            return self._named(symbol)
        key = branch, place
        if key not in self._closed:
            before = bytes(self.text[:place])
            self._closed[key] = self._unfolding.close(branch, lambda count: before[-count:] if count else b"")
        closed = self._closed[key]
        return None if closed < 0 else self._named(BRANCH + closed)

    def automaton(self, symbol: Symbol) -> Automaton:
        """That of a lexeme."""
        known = self._automata.get(symbol)
        if known is None:
            index, own = ~symbol, self._ir.lexemes
            if index < len(own):
                language = own[index]
            else:
                assert self._unfolding is not None
                language = self._unfolding.lexemes[index - len(own)]
            known = self._automata[symbol] = Automaton(language)
        return known

    # -- reading -----------------------------------------------------------------------------------

    def read(self, text: bytes, shut: Mapping[int, frozenset[int]] = MappingProxyType({})) -> None:
        """Be the chart of this text; what it has in common with the one before is kept.

        Parameters
        ----------
        text : bytes
        shut : mapping of int to frozenset of int, optional
            The places at which limited rules were closed (conditions/limited_rules), and which: none that began before
            goes on behind such a place.
        """
        low, high = 0, min(len(text), len(self.text))
        changed = [place for place in {*shut, *self._shut} if shut.get(place) != self._shut.get(place)]
        high = min(high, *(place - 1 for place in changed)) if changed else high
        self._shut = dict(shut)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if text[:middle] == self.text[:middle] else (low, middle - 1)
        common = low
        del self.text[common:]
        del self.sets[common + 1 :]
        del self._running[common + 1 :]
        del self._counts[common + 1 :]
        self._closed = {key: closed for key, closed in self._closed.items() if key[1] <= common}
        for byte in text[common:]:
            self._step(byte)

    def _begin(self) -> None:
        first = Set()
        self.sets.append(first)
        self._running.append({})
        self._counts.append(0)
        for rule in self._by_left[self.start]:
            self._add(first, Item(rule, 0, 0))
        self._close(first, 0)

    def _step(self, byte: int) -> None:
        place = len(self.text) + 1
        running: dict[tuple[Symbol, int], int] = {}
        ended: list[tuple[Symbol, int]] = []
        for key, state in self._running[-1].items():
            automaton = self.automaton(key[0])
            then = automaton.step(state, byte)
            if automaton.is_dead(then):
                continue
            running[key] = then
            if automaton.is_end(then):
                ended.append(key)
        shut = [self._ir.token_limits[index] for index in self._shut.get(place, ())]
        closed = {key: limit for limit in shut for key in running if ~key[0] in limit.lexemes}
        for key, limit in closed.items():
            # A rule that names its end may end without it.
            if limit.body is not None and key not in ended:
                body = Automaton(limit.body)
                if body.matches(bytes(self.text[key[1] :]) + bytes((byte,))):
                    ended.append(key)
            del running[key]
        self._charge(self._counts[-1] + len(running))
        self.text.append(byte)
        self._running.append(running)
        self._counts.append(self._counts[-1] + len(running))
        if not ended:
            self.sets.append(None)
            return
        found = Set()
        self.sets.append(found)
        for symbol, begin in ended:
            found.lexemes.add((symbol, begin))
            before = self.sets[begin]
            assert before is not None
            for item in before.waiting[symbol]:
                self._add(found, Item(item.rule, item.dot + 1, item.origin))
        self._close(found, place)
        for limit in shut:
            self._leave(found, place, {limit.symbol, *limit.nonterminals})

    def _leave(self, found: Set, place: int, rules: Collection[Symbol]) -> None:
        """Drop the items of a set that go on with rules which began before it; some may have ended by way of them."""
        for item in list(found.items):
            left, right = self.rules[item.rule]
            if left in rules and item.origin < place and item.dot < len(right):
                found.dropped[item] = found.items.pop(item)
        for symbol, items in found.waiting.items():
            found.waiting[symbol] = [item for item in items if item in found.items]

    def _add(self, into: Set, item: Item) -> None:
        if item not in into.items:
            into.items[item] = len(into.items)

    def _charge(self, count: int) -> None:
        if count > MOST_ITEMS:
            raise LimitError(f"the ways to read the text have more than {MOST_ITEMS:,} items")

    def _close(self, found: Set, place: int) -> None:
        """Add what follows from the items of a set: rules that may begin, and rules that go on."""
        queue = list(found.items)
        running = self._running[place]
        most = MOST_ITEMS - self._counts[place]

        def add(item: Item) -> None:
            if item not in found.items:
                if len(queue) > most:
                    self._charge(self._counts[place] + len(queue))
                self._add(found, item)
                queue.append(item)

        for item in queue:
            self._counts[place] += 1
            left, right = self.rules[item.rule]
            if item.dot == len(right):
                key = left, item.origin
                known = found.completed.setdefault(key, [])
                known.append(item)
                if len(known) == 1:
                    before = found if item.origin == place else self.sets[item.origin]
                    assert before is not None
                    for waiting in list(before.waiting.get(left, ())):
                        add(Item(waiting.rule, waiting.dot + 1, waiting.origin))
                continue
            symbol = self.awaited(item, place)
            if symbol is None:
                continue
            others = found.waiting.setdefault(symbol, [])
            others.append(item)
            if symbol >= 0:
                if (symbol, place) in found.completed:
                    add(Item(item.rule, item.dot + 1, item.origin))
                elif len(others) == 1:
                    for rule in self._by_left.get(symbol, ()):
                        add(Item(rule, 0, place))
            elif self.automaton(symbol).is_end(0):
                found.lexemes.add((symbol, place))
                add(Item(item.rule, item.dot + 1, item.origin))
            if symbol < 0 and len(others) == 1:
                running[symbol, place] = 0

    def open_lexemes(self) -> Iterator[tuple[Symbol, int]]:
        """The lexemes that have begun and can go on, each with its beginning."""
        size = len(self.text)
        for (symbol, begin), state in self._running[-1].items():
            rest = self.automaton(symbol).rest(state)
            if begin < size and not Automaton(intersect(rest, _MORE)).is_empty(_DEAD_SEARCH):
                yield symbol, begin


def usable_symbols(ir: GrammarIR) -> set[Symbol]:
    """The lexemes and nonterminals that derive something."""
    found = {~index for index, lexeme in enumerate(ir.lexemes) if _has_string(lexeme)}
    by_symbol: dict[Symbol, list[int]] = {}
    missing = []
    for index, (_, right) in enumerate(ir.productions):
        lacking = {symbol for symbol in right if symbol not in found}
        missing.append(len(lacking))
        for symbol in lacking:
            by_symbol.setdefault(symbol, []).append(index)
    todo = [left for (left, _), count in zip(ir.productions, missing, strict=True) if not count]
    while todo:
        symbol = todo.pop()
        if symbol in found:
            continue
        found.add(symbol)
        for index in by_symbol.get(symbol, ()):
            missing[index] -= 1
            if not missing[index]:
                todo.append(ir.productions[index][0])
    return found


def _has_string(language: Regular) -> bool:
    return example(language) is not None or not Automaton(language).is_empty(_DEAD_SEARCH)
