"""What it costs at most to finish a text whose lexemes a hook narrows, whatever the hook says.

A budget has to know that a text can be completed before it allows a token.  Of a hook nothing is known but its promise:
where nothing else can follow it leaves a string, and the string is one of the lexeme's.  So a narrowed lexeme costs as
much as the longest of its strings, each byte of which costs as much as the dearest.  (It must have a longest one.)

It is a game: a hook chooses what is left, and then the cheapest way is taken.  The more is left the cheaper it is, so a
hook does its worst if it leaves one lexeme, or none where there is another way.  All costs are without end at first,
and fall until nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from constrain.grammar.ir import NEVER, Symbol
from constrain.grammar.languages.regular import (
    ByteSet,
    Complement,
    Concat,
    Empty,
    Intersect,
    Literal,
    Regular,
    Repeat,
    Union,
)

Left = frozenset[Symbol]
"""The narrowed lexemes of which a hook has left something."""

_NOTHING: Left = frozenset()


class Rules(Protocol):
    """The rules of a grammar, and which of its symbols may be empty or begin with a narrowed lexeme."""

    nullable: set[Symbol]
    first: dict[Symbol, set[Symbol]]
    holding: set[Symbol]

    def first_of(self, right: tuple[Symbol, ...], at: int) -> set[Symbol]:
        """The narrowed lexemes that may come next in a right-hand side."""


class NarrowedCosts:
    """The costs of one grammar, given what its symbols cost that no hook narrows.

    Parameters
    ----------
    grammar : Rules
    rules : dict of Symbol to list of tuple of Symbol
        The rules that can be used.
    of : callable (Symbol) -> int
        What the cheapest text of a symbol costs.
    most : dict of Symbol to int
        What a string of each narrowed lexeme costs at most.
    """

    def __init__(
        self,
        grammar: Rules,
        rules: Mapping[Symbol, list[tuple[Symbol, ...]]],
        of: Callable[[Symbol], int],
        most: Mapping[Symbol, int],
    ) -> None:
        self._grammar = grammar
        self._rules = rules
        self._of = of
        self._most = most
        self._wholes: dict[tuple[Symbol, Left], int] = {}
        # What can begin with something that is not narrowed.
        self._sure = closure(rules, self._is_sure, set())
        self._settle([_NOTHING, *(frozenset([lexeme]) for lexeme in most)])

    def whole(self, symbol: Symbol, left: Left) -> int:
        """What a nonterminal costs, without the empty string, of which a hook has left some first lexemes."""
        left &= self._grammar.first.get(symbol, _NOTHING)
        if (symbol, left) not in self._wholes:
            self._settle([left])
        return self._wholes[symbol, left]

    def rest(self, right: tuple[Symbol, ...], at: int, left: Left) -> int:
        """The same for the rest of a right-hand side."""
        for symbol in right[at:]:
            if symbol in self._rules:
                self.whole(symbol, left)
        return self._rest(right, at, left)

    def opened(self, right: tuple[Symbol, ...], at: int) -> int:
        """What the rest of a right-hand side costs at most, whatever a hook leaves."""
        first = self._grammar.first_of(right, at)
        if not first or self._is_sure(right[at:], self._sure):
            return self._rest(right, at, _NOTHING)
        return max(self._rest(right, at, frozenset([lexeme])) for lexeme in first)

    def _is_sure(self, right: tuple[Symbol, ...], sure: set[Symbol]) -> bool:
        """Whether a right-hand side can begin so, given which nonterminals can."""
        for symbol in right:
            if symbol not in self._most and (symbol not in self._rules or symbol in sure):
                return True
            if symbol not in self._grammar.nullable:
                return False
        return False

    def _settle(self, lefts: list[Left]) -> None:
        """Find the costs of all nonterminals for what a hook may have left."""
        first = self._grammar.first
        wanted = {(symbol, left & first.get(symbol, _NOTHING)) for symbol in self._rules for left in lefts}
        wanted -= self._wholes.keys()
        self._wholes.update(dict.fromkeys(wanted, NEVER))
        changes = True
        while changes:
            changes = False
            for symbol, left in wanted:
                cost = min((self._rest(right, 0, left) for right in self._rules[symbol]), default=NEVER)
                if cost < self._wholes[symbol, left]:
                    self._wholes[symbol, left], changes = cost, True

    def _rest(self, right: tuple[Symbol, ...], at: int, left: Left) -> int:
        return min(self._ways(right, at, left), default=NEVER)

    def _ways(self, right: tuple[Symbol, ...], at: int, left: Left) -> Iterator[int]:
        for place in range(at, len(right)):
            yield min(self._head(right[place], left) + self._behind(right, place + 1), NEVER)
            if right[place] not in self._grammar.nullable:
                return

    def _behind(self, right: tuple[Symbol, ...], place: int) -> int:
        """What stands behind a symbol costs; nothing if it may be empty."""
        nullable, first = self._grammar.nullable, self._grammar.first
        cost = 0
        while place < len(right) and right[place] not in nullable and right[place] not in first:
            cost += self._head(right[place], _NOTHING)
            place += 1
        return cost if nullable.issuperset(right[place:]) else min(cost + self.opened(right, place), NEVER)

    def _head(self, symbol: Symbol, left: Left) -> int:
        if symbol in self._most:
            return self._most[symbol] if symbol in left else NEVER
        if symbol in self._rules and (symbol in self._grammar.holding or symbol in self._grammar.nullable):
            return self._wholes[symbol, left & self._grammar.first.get(symbol, _NOTHING)]
        return self._of(symbol)


def closure(
    rules: Mapping[Symbol, list[tuple[Symbol, ...]]],
    holds: Callable[[tuple[Symbol, ...], set[Symbol]], bool],
    found: set[Symbol],
) -> set[Symbol]:
    """``found``, and the nonterminals of which a right-hand side holds, given all that were found before."""
    while True:
        more = {left for left, rights in rules.items() if any(holds(right, found) for right in rights)} - found
        if not more:
            return found
        found |= more


def longest(language: Regular) -> int | None:
    """How many bytes a string of a language has at most; None if there is no bound."""
    if isinstance(language, Literal):
        return len(language.data)
    if isinstance(language, ByteSet):
        return 1
    if isinstance(language, Empty):
        return 0
    if isinstance(language, Complement):
        return None
    if isinstance(language, Repeat):
        once = longest(language.item)
        if once == 0 or language.high == 0:
            return 0
        return None if once is None or language.high is None else once * language.high
    assert isinstance(language, (Concat, Union, Intersect))
    sizes = [longest(part) for part in language.parts]
    known = [size for size in sizes if size is not None]
    if isinstance(language, Intersect):
        return min(known, default=None)
    if len(known) < len(sizes):
        return None
    return sum(known) if isinstance(language, Concat) else max(known)
