"""Small automata whose edges carry regular languages, and the expressions for their paths.

Look-arounds inside a repetition give such an automaton: a few states, and between them what one
repetition matches.  The states can be anything hashable.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

from constrain.grammar.languages import regular as r
from constrain.grammar.languages.elimination import eliminate

S = TypeVar("S", bound=Hashable)
Matrix = dict[S, dict[S, r.Regular]]
"""From state to state, the language of the step; absent for none."""

Sizes = dict[int, tuple[int, r.Regular]]
"""The size of nodes by their ``id``, with the node, which must live as long as its entry."""

MAX_STATES = 24
"""Path expressions can grow exponentially with the number of states, so there are few."""


def multiply(left: Matrix[S], right: Matrix[S]) -> Matrix[S]:
    """A step of ``left`` and then one of ``right``."""
    out: Matrix[S] = {}
    for source, row in left.items():
        found: dict[S, r.Regular] = {}
        for between, first in row.items():
            for target, second in right.get(between, {}).items():
                found[target] = r.union(found.get(target, r.EMPTY), r.concat(first, second))
        out[source] = found
    return out


def steps(
    row: dict[S, r.Regular], matrix: Matrix[S], count: int, check: Callable[[Matrix[S]], None]
) -> dict[S, r.Regular]:
    """``row`` and then ``count`` steps; ``check`` sees every intermediate result and may refuse it for its size."""
    start = next(iter(matrix))
    if count <= 8:
        for _ in range(count):
            row = multiply({start: row}, matrix)[start]
            check({start: row})
        return row
    # By squaring, the size grows polynomially with the count, though from a larger beginning.
    square = matrix
    while count:
        if count & 1:
            row = multiply({start: row}, square)[start]
            check({start: row})
        count >>= 1
        if count:
            square = multiply(square, square)
            check(square)
    return row


def all_paths(edges: Matrix[S], start: S) -> dict[S, r.Regular]:
    """For every state that can be reached from ``start``, in any number of steps, the language of the paths to it."""
    order = [start]
    for state in order:
        order += [target for target in edges.get(state, {}) if target not in order]
    return {target: _paths_between(edges, order, start, target) for target in order}


def _paths_between(edges: Matrix[S], order: list[S], start: S, end: S) -> r.Regular:
    rows: Matrix[S] = {state: dict(edges.get(state, {})) for state in order}
    for state in reversed(order):
        if state not in (start, end):
            eliminate(rows, state)
    again = r.repeat(rows[start].get(start, r.EMPTY))
    if start == end:
        return again
    there = r.concat(again, rows[start].get(end, r.EMPTY))
    around = r.concat(rows[end].get(start, r.EMPTY), again, rows[start].get(end, r.EMPTY))
    return r.concat(there, r.repeat(r.union(rows[end].get(end, r.EMPTY), around)))


def tree_size(regular: r.Regular, known: Sizes) -> int:
    """The number of nodes in the tree, shared parts counted every time; ``known`` remembers, by identity."""
    found = known.get(id(regular))
    if found is not None:
        return found[0]
    size = 1
    for part in regular.inner:
        size += tree_size(part, known)
    known[id(regular)] = (size, regular)
    return size
