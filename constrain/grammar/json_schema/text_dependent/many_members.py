"""The members of an object with thousands of names, in the order of the schema, as rules made on demand.

With a lexeme for each name, every byte of a key would go through all names that may still come.  Here a key is written
in pieces: the names are a tree by their beginnings, and a piece leads from one node of it to the next.  What may follow
depends on the place, that is, on how many names have been passed by: a piece is left out if no name below it may come.
Nodes below which every name may come are the same at all places.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable
from itertools import accumulate, groupby
from typing import NamedTuple

from constrain.grammar.ir import BY_RULES, NEVER, GrammarBuilder, Symbol
from constrain.grammar.json_schema.lexical.layout import Layout
from constrain.grammar.languages.prefix_tree import common_length
from constrain.grammar.rules_on_demand import Automaton, Costs, Edge, IsUsable, NeverOpen, Right, UnfoldedAutomata
from constrain.limits import spend

MANY_MEMBERS = 512
"""So many names are worth a tree."""

# So few names are not told apart by further pieces, and neither are names with very long beginnings in common.
_FEW_NAMES, _MOST_PIECES = 64, 32


class Member(NamedTuple):
    """A member that an object may have."""

    value: Symbol
    is_required: bool


class _Piece(NamedTuple):
    """A piece of a key, and what it leads to: a node, or behind the whole key the value of a member."""

    first: Symbol
    """As a piece of the first key of an object; pieces behind the beginning of a key are the same in all keys."""
    following: Symbol
    node: int
    """-1: the key is whole."""
    members: list[int]
    """All members whose keys have it, by number, upwards."""


class _State(NamedTuple):
    place: int
    """The member that may come first; -1: all that are below the node may come."""
    node: int
    """0: before a key."""
    is_empty: bool


class ManyMembers:
    """The members of one object.

    Parameters
    ----------
    builder : GrammarBuilder
    layout : Layout
    members : dict of str to Member
        By name, in the order of the schema.  No other keys may come.
    close : Symbol
        The closing brace.
    """

    decided_by = BY_RULES

    def __init__(self, builder: GrammarBuilder, layout: Layout, members: dict[str, Member], close: Symbol) -> None:
        self.members = list(members.values())
        self.close = close
        self.nodes: list[list[_Piece]] = []
        names = sorted((name, number) for number, name in enumerate(members))
        self._add_node(builder, layout, names, 0, 0)

    def _add_node(
        self, builder: GrammarBuilder, layout: Layout, names: list[tuple[str, int]], start: int, depth: int
    ) -> int:
        """Add the node of some names, sorted, that have their first ``start`` characters in common; its number."""
        spend(len(names))
        node = len(self.nodes)
        pieces: list[_Piece] = []
        self.nodes.append(pieces)
        if len(names) <= _FEW_NAMES or depth == _MOST_PIECES:
            groups = [[each] for each in names]
        else:
            groups = [list(group) for _, group in groupby(names, lambda each: each[0][start : start + 1])]
        for group in groups:
            first, then = group[0][0], -1
            stop = len(first)
            if len(group) > 1:
                stop = common_length(first, group[-1][0], start + 1)
                then = self._add_node(builder, layout, group, stop, depth + 1)
            text = first[start:stop]
            if depth == 0:
                opening = builder.lexeme(layout.pieces_of_first_keys(text, then < 0), text)
                following = builder.lexeme(layout.pieces_of_next_keys(text, then < 0), text)
            else:
                opening = following = builder.lexeme(layout.pieces_of_keys(text, then < 0), text)
            pieces.append(_Piece(opening, following, then, sorted(number for _, number in group)))
        return node

    def begin(self, unfolding: UnfoldedAutomata) -> tuple[Automaton, Hashable]:
        """The automaton for a compiled grammar, and its first state."""
        return _Automaton(self, unfolding.is_usable), _State(0, 0, True)


class _Automaton(NeverOpen):
    def __init__(self, template: ManyMembers, is_usable: IsUsable) -> None:
        self._members = template.members
        self._close = template.close
        self._nodes = template.nodes
        if not all(is_usable(member.value) for member in self._members):
            self._nodes = [
                [
                    piece._replace(members=[each for each in piece.members if is_usable(self._members[each].value)])
                    for piece in pieces
                ]
                for pieces in template.nodes
            ]
        # For each place the last member that may come next: a required one is not passed by.
        end = len(self._members)
        self._last = [end - 1] * (end + 1)
        for number in range(end - 1, -1, -1):
            self._last[number] = number if self._members[number].is_required else self._last[number + 1]
        # From here on nothing is required.
        required = [number for number, member in enumerate(self._members) if member.is_required]
        self._may_end = max(required, default=-1) + 1

    def edges(self, state: _State) -> tuple[list[Right], list[Edge]]:
        """The ways to end in a state, and those to go on, each with the number of its piece as the edge."""
        ends: list[Right] = []
        if state.node == 0 and not state.is_empty and state.place >= self._may_end:
            ends.append((self._close,))
        further: list[Edge] = []
        for number, piece in enumerate(self._nodes[state.node]):
            if self._next_member(state.place, piece) >= 0:
                key = piece.first if state.is_empty else piece.following
                right: Right = (key, self._members[piece.members[0]].value) if piece.node < 0 else (key,)
                further.append((right, number, 0))
        return ends, further

    def _next_member(self, place: int, piece: _Piece) -> int:
        """The first of a piece's members that may come at a place; -1 if none may."""
        members = piece.members
        if place < 0:
            return members[0] if members else -1
        at = bisect_left(members, place)
        return members[at] if at < len(members) and members[at] <= self._last[place] else -1

    def follow(self, state: _State, edge: int) -> _State:
        """The state behind a piece."""
        piece, place = self._nodes[state.node][edge], state.place
        if piece.node < 0:
            return _State(piece.members[0] + 1, 0, False)
        if place >= 0 and place <= piece.members[0] and piece.members[-1] <= self._last[place]:
            place = -1
        return _State(place, piece.node, False)

    def least(self, state: _State, costs: Costs) -> int:
        """What it costs to write the rest of a key, its value, the required members behind it, and the closing brace.

        Of each piece two members count: the first that may come, and the last, which alone may be required.
        """
        prices: _Prices | None = costs.known.get(self)
        if prices is None:
            prices = costs.known[self] = _Prices(self._members, self._nodes, self._close, costs)
        if state.node == 0 and not state.is_empty and state.place >= self._may_end:
            return prices.behind[-1]
        best = NEVER
        for piece in self._nodes[state.node]:
            first = self._next_member(state.place, piece)
            if first < 0:
                continue
            cost = prices.of(first)
            last = piece.members[-1] if state.place < 0 else self._last[state.place]
            if piece.members[bisect_left(piece.members, last, hi=len(piece.members) - 1)] == last:
                cost = min(cost, prices.of(last))
            cost -= prices.before[state.node]
            if state.is_empty:
                cost += costs.of(piece.first) - costs.of(piece.following)
            best = min(best, cost)
        return best


class _Prices:
    """What members cost.

    Attributes
    ----------
    keys : list of int
        By member: its key, behind another member.
    before : list of int
        By node: the pieces that lead to it.
    behind : list of int
        By member: its value, and all that must follow; at the end: the closing brace alone.
    """

    def __init__(self, members: list[Member], nodes: list[list[_Piece]], close: Symbol, costs: Costs) -> None:
        self.keys = [NEVER] * len(members)
        self.before = [0] * len(nodes)
        # A node is added before those below it.
        for node, pieces in enumerate(nodes):
            for piece in pieces:
                cost = self.before[node] + costs.of(piece.following)
                if piece.node >= 0:
                    self.before[piece.node] = cost
                elif piece.members:
                    self.keys[piece.members[0]] = cost
        values = [costs.of(member.value) for member in members]
        required = [
            key + value if member.is_required else 0
            for member, key, value in zip(members, self.keys, values, strict=True)
        ]
        rest = list(accumulate(reversed(required), initial=costs.of(close)))[::-1]
        self.behind = [*(value + after for value, after in zip(values, rest[1:], strict=True)), rest[-1]]

    def of(self, member: int) -> int:
        """A member, and all that must follow."""
        return self.keys[member] + self.behind[member]
