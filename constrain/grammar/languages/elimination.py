"""Taking states out of an automaton whose edges carry regular languages: the method of Brzozowski and McCluskey."""

from __future__ import annotations

from collections.abc import Callable, Hashable, MutableMapping
from typing import TypeVar

from constrain.grammar.languages.regular import EMPTY, Regular, concat, repeat, union

S = TypeVar("S", bound=Hashable)


def eliminate(edges: MutableMapping[S, dict[S, Regular]], state: S, join: Callable[..., Regular] = concat) -> None:
    """Remove a state, and put every way through it into the edge between the states before and behind it.

    Parameters
    ----------
    edges : dict of state to dict of state to Regular
        From state to state, the language of the step; absent for none.  It is changed.
    state
    join : callable (*Regular) -> Regular
        What the parts of a way make in a row.
    """
    row = edges.pop(state)
    loop = repeat(row.pop(state, EMPTY))
    for source in edges.values():
        into = source.pop(state, None)
        if into is not None:
            for target, out in row.items():
                source[target] = union(source.get(target, EMPTY), join(into, loop, out))
