"""Rules that are made as a text comes to them: the front-end's half of :class:`constrain.grammar.ir.Unfolding`.

A *template* is an automaton with too many states to write down, such as the sets of properties that an object may
have had so far.  Its states are numbered as branches, and worked out one by one as texts reach them.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol

from constrain.grammar.ir import BRANCH, Symbol
from constrain.grammar.regular import Regular

IsUsable = Callable[[Symbol], bool]


class Template(Protocol):
    """An automaton over symbols.  States are hashable; an edge is a number."""

    def begin(self, is_usable: IsUsable) -> Automaton:
        """The automaton for a compiled grammar, given which symbols derive something."""


class Automaton(Protocol):
    """A template of which is known what derives anything."""

    start: Hashable

    def edges(self, state: Any) -> tuple[list[tuple[Symbol, ...]], list[tuple[tuple[Symbol, ...], int]]]:
        """The ways to end in a state, and those to go on, each with its edge.  From where they lead there is an end."""

    def follow(self, state: Any, edge: int) -> Hashable:
        """The state behind an edge."""


class UnfoldingMaker:
    """Begins an unfolding of some templates, one for each nonterminal."""

    def __init__(self, templates: dict[Symbol, Template]) -> None:
        self._templates = templates

    def __call__(self, is_usable: IsUsable) -> JsonUnfolding:
        """An unfolding for a compiled grammar."""
        return JsonUnfolding({symbol: template.begin(is_usable) for symbol, template in self._templates.items()})


class JsonUnfolding:
    """Numbers the states of templates as they are reached.

    A branch whose turn has not come is kept as (the branch before it, edge): an object of 500 properties has
    500 of them in each place.
    """

    lexemes: Sequence[Regular] = ()
    nonterminals: Sequence[int] = ()

    def __init__(self, automata: dict[Symbol, Automaton]) -> None:
        self._automata = list(automata.values())
        self.lefts = array("i", automata)
        self.kinds = array("i", [0] * len(automata))
        self._before = array("i", [-1] * len(automata))
        self._edge = array("i", range(len(automata)))
        self._states: dict[int, tuple[int, Hashable]] = {}
        self._known: dict[tuple[int, Hashable], int] = {}

    def unfold(self, branch: int) -> list[tuple[Symbol, ...]] | int:
        """How a text goes on at a branch; see :class:`constrain.grammar.ir.Unfolding`."""
        before, edge = self._before[branch], self._edge[branch]
        if before < 0:
            index, state = edge, self._automata[edge].start
        else:
            index, state = self._states[before]
            state = self._automata[index].follow(state, edge)
        known = self._known.setdefault((index, state), branch)
        if known != branch:
            return known
        self._states[branch] = (index, state)
        ends, further = self._automata[index].edges(state)
        next_branch = len(self._before)
        self.lefts.extend([self.lefts[branch]] * len(further))
        self.kinds.extend([0] * len(further))
        self._before.extend([branch] * len(further))
        self._edge.extend([edge for _, edge in further])
        ends += [(*right, BRANCH + number) for number, (right, _) in enumerate(further, next_branch)]
        return ends

    def close(self, branch: int, text: Callable[[int], bytes]) -> int:
        """No branch depends on the text."""
        raise AssertionError("no branch is open")
