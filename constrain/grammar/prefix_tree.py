"""A finite set of strings as one regular language in which common beginnings are shared.

A plain union of 100,000 strings makes an automaton that is in 100,000 states at once on its first
byte; a tree is in one.  Ends are shared by nobody: a minimal automaton would be smaller, and
slower to make than it is to explore the part of the tree that a text reaches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from constrain.grammar.regular import EMPTY, EPSILON, Regular, concat, literal, union
from constrain.limits import spend

# A string that is a prefix of the next, again and again ("a", "aa", "aaa", ...), makes a tree as deep as
# there are strings; whoever reads trees by recursion must not fall for it.  Below this depth there is
# a plain union.
_DEPTH_LIMIT = 64


def prefix_tree(values: Iterable[str], spell: Callable[[str], Regular] = literal) -> Regular:
    """Exactly the strings ``values``.

    ``spell`` gives the language that stands for a piece of text (by default its UTF-8 bytes); it must be such
    that ``spell(a + b)`` is ``spell(a)`` followed by ``spell(b)``, and that different texts have nothing in common.
    """
    distinct = sorted(set(values))
    return _tree(distinct, 0, spell, _DEPTH_LIMIT) if distinct else EMPTY


def _tree(values: Sequence[str], start: int, spell: Callable[[str], Regular], depth: int) -> Regular:
    """The language of what follows the first ``start`` characters, which all ``values`` (sorted) share."""
    spend(len(values))
    if len(values) == 1:
        return spell(values[0][start:])
    if depth == 0 or len({value[start : start + 1] for value in values}) == len(values):
        # Nothing is shared, or too much.
        return union(*(spell(value[start:]) for value in values))
    branches: list[Regular] = []
    index = 0
    if len(values[0]) == start:
        branches.append(EPSILON)
        index = 1
    while index < len(values):
        end = index + 1
        first = values[index][start]
        while end < len(values) and values[end][start] == first:
            end += 1
        # Sorted, so what the first and the last have in common, all between them have.
        stop = _common_length(values[index], values[end - 1], start + 1)
        tail = _tree(values[index:end], stop, spell, depth - 1)
        branches.append(concat(spell(values[index][start:stop]), tail))
        index = end
    return union(*branches)


def _common_length(left: str, right: str, start: int) -> int:
    """How long the common beginning is, given that it is at least ``start``."""
    stop = min(len(left), len(right))
    while start < stop and left[start] == right[start]:
        start += 1
    return start
