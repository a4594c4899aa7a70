"""Rules made on demand, when a text reaches them: the front-end's half of :class:`constrain.grammar.ir.Unfolding`.

A *template* is an automaton with too many states to write down, such as the sets of properties that an object may
have had so far.  Its states are numbered as branches.  A state is computed when a text first reaches it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import groupby
from typing import Any, Protocol, TypeVar

from constrain.grammar.ir import BRANCH, FAR, NEVER, OPEN, UNSURE, Symbol
from constrain.grammar.languages.regular import Regular
from constrain.limits import limited

Shared = TypeVar("Shared")

IsUsable = Callable[[Symbol], bool]
LongestBehind = Callable[[int], int]
Right = tuple[Symbol, ...]
TextBefore = Callable[[int], bytes]

Edge = tuple[Right, Any, int]
"""What is written, what tells where it leads from a state, and the kind of the branch there."""


class Automaton(Protocol):
    """States are hashable, and there is an end to be reached from each."""

    def edges(self, state: Any) -> tuple[list[Right], list[Edge]]:
        """The ways to end in a state, and those to go on."""

    def follow(self, state: Any, edge: Any) -> Hashable:
        """The state behind an edge; for an open branch, the one that stands in for what it is in a text."""

    def close(self, state: Any, edge: Any, text: TextBefore) -> Hashable:
        """The state behind an edge to an open branch, in a text."""

    def least(self, state: Any, costs: Costs) -> int:
        """What it costs to reach an end from a state: no less than with the best of the ways that are looked at.

        It is the least over some of the ways in :meth:`edges`, of what a way costs and then the state (or open branch)
        behind it, so whoever takes that way pays no more than was said.
        """

    def least_behind(self, state: Any, edge: Any, costs: Costs) -> int:
        """The same behind an edge to an open branch: no less than for any state that :meth:`close` may give."""


class PricesEdges(ABC):
    """An automaton without open branches that knows at once what it costs behind all edges of a state."""

    @abstractmethod
    def least_of_edges(self, state: Any, edges: list[Any], costs: Costs) -> list[int]:
        """What :meth:`Automaton.least` says of the state behind each of some edges."""


class NeverOpen:
    """What an automaton without open branches is never asked."""

    def close(self, state: Any, edge: Any, text: TextBefore) -> Hashable:
        """No branch is open."""
        raise AssertionError("no branch is open")

    def least_behind(self, state: Any, edge: Any, costs: Costs) -> int:
        """No branch is open."""
        raise AssertionError("no branch is open")


class Costs:
    """What symbols cost at least, as the engine says, and what follows for the states of automata.

    Parameters
    ----------
    of : callable (Symbol) -> int
    """

    def __init__(self, of: Callable[[Symbol], int]) -> None:
        self.of = of
        self.known: dict[Hashable, Any] = {}
        """For automata, under keys that begin with themselves."""

    def right(self, right: Right) -> int:
        """What a right-hand side costs."""
        return min(sum(map(self.of, right)), NEVER)

    def any_of(self, symbols: Iterable[Symbol]) -> int:
        """What the cheapest of some symbols costs."""
        return min(map(self.of, symbols), default=NEVER)

    def least(self, automaton: Automaton, state: Hashable) -> int:
        """:meth:`Automaton.least`, worked out once."""
        key = automaton, state
        cost: int | None = self.known.get(key)
        if cost is None:
            cost = self.known[key] = min(automaton.least(state, self), NEVER)
        return cost

    def behind(self, automaton: Automaton, state: Any, edge: Any, kind: int) -> int:
        """:meth:`Automaton.least_behind`; FAR where that is not known, but a text that comes there goes on."""
        return min(automaton.least_behind(state, edge, self), NEVER if kind & UNSURE else FAR)


class Template(Protocol):
    """Makes the automaton for one nonterminal."""

    @property
    def decided_by(self) -> int:
        """As in :class:`constrain.grammar.ir.Unfolding`."""

    def begin(self, unfolding: UnfoldedAutomata) -> tuple[Automaton, Hashable]:
        """An automaton for a compiled grammar, and its first state."""


class UnfoldingMaker:
    """Begins an unfolding of some templates, one for each nonterminal.

    Parameters
    ----------
    templates : dict of Symbol to Template
    lexemes : tuple of Regular
        The lexemes of the grammar.
    nonterminals : int
        How many nonterminals it has.
    outside : frozenset of Symbol
        The lexemes that no rule made here may name (:attr:`constrain.grammar.ir.GrammarIR.outside`).
    """

    def __init__(
        self,
        templates: dict[Symbol, Template],
        lexemes: tuple[Regular, ...],
        nonterminals: int,
        outside: frozenset[Symbol] = frozenset(),
    ) -> None:
        self._templates = templates
        self._lexemes = lexemes
        self._nonterminals = nonterminals
        self._outside = outside

    def __call__(self, is_usable: IsUsable, longest_behind: LongestBehind) -> UnfoldedAutomata:
        """An unfolding for a compiled grammar; see :class:`constrain.grammar.ir.UnfoldingMaker`."""
        known = self._lexemes, self._nonterminals, self._outside
        return UnfoldedAutomata(self._templates, *known, is_usable, longest_behind)


class UnfoldedAutomata:
    """Numbers the states of automata as they are reached; see :class:`constrain.grammar.ir.Unfolding`.

    A branch whose turn has not come is kept as (the branch before it, edge): an object of 500 properties has
    500 of them in each place.
    """

    def __init__(
        self,
        templates: dict[Symbol, Template],
        lexemes: tuple[Regular, ...],
        nonterminals: int,
        outside: frozenset[Symbol],
        is_usable: IsUsable,
        longest_behind: LongestBehind,
    ) -> None:
        self.longest_behind = longest_behind
        self._grammar_lexemes = lexemes
        self._outside = outside
        # Filled when it is first needed: not all unfoldings make lexemes.
        self._numbers: dict[Regular, int] = {}
        self._is_usable = is_usable
        self._n_nonterminals = nonterminals
        self.lefts = array("i")
        self.kinds = array("i")
        self.lexemes: list[Regular] = []
        self.lexeme_names: list[str] = []
        self.marked: set[int] = set()
        self._key_numbers: dict[Regular, int] = {}
        self.nonterminals: list[int] = []
        self._before = array("i")
        self._edge: list[Any] = []
        self._places: dict[int, tuple[Automaton, Any]] = {}
        self._known: dict[tuple[Automaton, Any, Symbol], int] = {}
        self._closed: dict[tuple[Automaton, Any, Symbol], int] = {}
        self._shared: dict[object, Any] = {}
        self.decided_by = max(template.decided_by for template in templates.values())
        self._symbols: dict[tuple[Automaton, Any], Symbol] = {}
        self._costs: Costs | None = None
        places = [self._new_branch(symbol) for symbol in templates]
        for branch, template in zip(places, templates.values(), strict=True):
            self._places[branch] = template.begin(self)

    def is_usable(self, symbol: Symbol) -> bool:
        """Whether a symbol derives anything; those that were made here do."""
        if symbol < 0:
            return ~symbol >= len(self._grammar_lexemes) or self._is_usable(symbol)
        return symbol >= self._n_nonterminals or self._is_usable(symbol)

    def shared(self, owner: object, make: Callable[[], Shared]) -> Shared:
        """The one object that all automata of ``owner`` use, which is one of several schemas in a grammar."""
        if owner not in self._shared:
            self._shared[owner] = make()
        return self._shared[owner]  # type: ignore[no-any-return]

    def lexeme(self, language: Regular, name: str = "") -> Symbol:
        """The symbol of a lexeme that is not empty."""
        if not self._numbers:
            self._numbers = {
                known: index for index, known in enumerate(self._grammar_lexemes) if ~index not in self._outside
            }
        return self._lexeme(self._numbers, language, name)

    def key(self, language: Regular, name: str) -> Symbol:
        """The symbol of keys that must not come again; never a lexeme of the grammar, which might be no key there."""
        symbol = self._lexeme(self._key_numbers, language, name)
        self.marked.add(~symbol - len(self._grammar_lexemes))
        return symbol

    def _lexeme(self, numbers: dict[Regular, int], language: Regular, name: str) -> Symbol:
        index = numbers.get(language)
        if index is None:
            index = numbers[language] = len(self._grammar_lexemes) + len(self.lexemes)
            self.lexemes.append(language)
            self.lexeme_names.append(name)
        return ~index

    def nonterminal(self, automaton: Automaton, state: Hashable) -> Symbol:
        """The nonterminal of all that an automaton reads from a state on."""
        symbol = self._symbols.get((automaton, state))
        if symbol is None:
            symbol = self._symbols[automaton, state] = self._n_nonterminals + 1 + len(self.nonterminals)
            branch = self._new_branch(symbol)
            self.nonterminals.append(branch)
            self._places[branch] = automaton, state
        return symbol

    def unfold(self, branch: int) -> list[Right] | int:
        """How a text goes on at a branch."""
        place = self._places.get(branch)
        if place is None:
            automaton, state = self._places[self._before[branch]]
            place = automaton, automaton.follow(state, self._edge[branch])
        automaton, state = place
        known = self._known.setdefault((automaton, state, self.lefts[branch]), branch)
        if known != branch:
            return known
        self._places[branch] = place
        with limited(None, "making rules for a text"):
            ends, further = automaton.edges(state)
        rights = list(ends)
        left = self.lefts[branch]
        begin = len(self._before)
        rights += [(*right, BRANCH + number) for number, (right, _, _) in enumerate(further, begin)]
        self.lefts.extend([left] * len(further))
        self.kinds.extend([kind for _, _, kind in further])
        self._before.extend([branch] * len(further))
        self._edge.extend([edge for _, edge, _ in further])
        return rights

    def close(self, branch: int, text: TextBefore) -> int:
        """The branch in place of an open one."""
        automaton, state = self._places[self._before[branch]]
        with limited(None, "making rules for a text"):
            state = automaton.close(state, self._edge[branch], text)
        key = automaton, state, self.lefts[branch]
        closed = self._closed.get(key)
        if closed is None:
            closed = self._closed[key] = self._new_branch(self.lefts[branch])
            self._places[closed] = automaton, state
        return closed

    def costs(self, branches: Sequence[int], cost_of: Callable[[Symbol], int]) -> list[int]:
        """What it costs at most to go on from each of some branches to the end."""
        if self._costs is None or self._costs.of is not cost_of:
            self._costs = Costs(cost_of)
        costs = self._costs
        found: list[int] = []
        for before, group in groupby(branches, self._before.__getitem__):
            automaton, state = self._places.get(before, (None, None))
            if isinstance(automaton, PricesEdges):
                with limited(None, "finding the shortest way to end a text"):
                    found += automaton.least_of_edges(state, [self._edge[branch] for branch in group], costs)
                continue
            for branch in group:
                with limited(None, "finding the shortest way to end a text"):
                    found.append(self._cost(branch, costs))
        return [min(cost, NEVER) for cost in found]

    def _cost(self, branch: int, costs: Costs) -> int:
        if self.kinds[branch] & OPEN:
            automaton, state = self._places[self._before[branch]]
            return costs.behind(automaton, state, self._edge[branch], self.kinds[branch])
        place = self._places.get(branch)
        if place is None:
            automaton, state = self._places[self._before[branch]]
            place = automaton, automaton.follow(state, self._edge[branch])
        return costs.least(*place)

    def _new_branch(self, left: Symbol) -> int:
        self.lefts.append(left)
        self.kinds.append(0)
        self._before.append(-1)
        self._edge.append(None)
        return len(self._before) - 1
