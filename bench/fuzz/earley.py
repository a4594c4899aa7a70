"""A plain Earley recogniser over characters: the judge of random grammars.

There is no scanner: terminals are rules like all others, down to classes of characters.  A symbol is an int (a rule's
name) or a frozenset of classes.  It follows Earley's paper; nullable rules are stepped over (Aycock and Horspool).
"""

from __future__ import annotations

from typing import Any

from bench.fuzz import patterns
from bench.fuzz.characters import characters

Symbol = Any
Rules = list[tuple[int, tuple[Symbol, ...]]]


class Row:
    """The items after a text: (rule, dot, the row where it began)."""

    def __init__(self, is_first: bool = False) -> None:
        self.is_first = is_first
        self.items: dict[tuple[int, int, Row], None] = {}
        self.waiting: dict[int, list[tuple[int, int, Row]]] = {}


class EarleyJudge:
    """Judges texts by rules; a :class:`bench.fuzz.byte_judge.Judge`."""

    def __init__(self, rules: Rules, start: int) -> None:
        productive = self._productive(rules)
        self._rules = [
            (left, right)
            for left, right in rules
            if all(symbol in productive if isinstance(symbol, int) else symbol for symbol in right)
        ]
        self._start = start
        self._is_empty = start not in productive
        self._of: dict[int, list[int]] = {}
        for index, (left, _) in enumerate(self._rules):
            self._of.setdefault(left, []).append(index)
        self._nullable = self._nullables()

    @staticmethod
    def _productive(rules: Rules) -> set[int]:
        found: set[int] = set()
        while True:
            more = {
                left
                for left, right in rules
                if left not in found and all(symbol in found if isinstance(symbol, int) else symbol for symbol in right)
            }
            if not more:
                return found
            found |= more

    def _nullables(self) -> set[int]:
        found: set[int] = set()
        while True:
            more = {left for left, right in self._rules if left not in found and all(s in found for s in right)}
            if not more:
                return found
            found |= more

    def start(self) -> Row | None:
        if self._is_empty:
            return None
        row = Row(is_first=True)
        return self._close(row, [(index, 0, row) for index in self._of[self._start]])

    def _close(self, row: Row, todo: list[tuple[int, int, Row]]) -> Row:
        while todo:
            item = todo.pop()
            if item in row.items:
                continue
            row.items[item] = None
            index, dot, origin = item
            left, right = self._rules[index]
            if dot == len(right):
                # What began in this very row and is empty is stepped over where it is predicted.
                for waiting, at, began in list(origin.waiting.get(left, ())):
                    todo.append((waiting, at + 1, began))
                continue
            symbol = right[dot]
            if isinstance(symbol, int):
                row.waiting.setdefault(symbol, []).append(item)
                todo += [(rule, 0, row) for rule in self._of.get(symbol, ())]
                if symbol in self._nullable:
                    todo.append((index, dot + 1, origin))
        return row

    def step(self, place: Row, which: int) -> Row | None:
        todo = []
        for index, dot, origin in place.items:
            right = self._rules[index][1]
            if dot < len(right) and not isinstance(right[dot], int) and which in right[dot]:
                todo.append((index, dot + 1, origin))
        return self._close(Row(), todo) if todo else None

    def accepts(self, place: Row) -> bool:
        return any(
            self._rules[index][0] == self._start and dot == len(self._rules[index][1]) and origin.is_first
            for index, dot, origin in place.items
        )


class RuleMaker:
    """Rules of trees: of terminals (:mod:`bench.fuzz.patterns`) and of right-hand sides.

    Attributes
    ----------
    rules : list of (int, tuple)
    """

    def __init__(self) -> None:
        self.rules: Rules = []
        self._names = 0

    def name(self) -> int:
        self._names += 1
        return self._names

    def leaf(self, text: str) -> Symbol:
        return characters().classes_of[text]

    def symbol(self, tree: patterns.Tree, of_leaf: Any) -> Symbol:
        """The symbol that derives what a tree does; ``of_leaf`` gives the symbol of a leaf's name."""
        kind = tree[0]
        if kind == "leaf":
            return of_leaf(tree[1])
        name = self.name()
        if kind == "cat":
            self.rules.append((name, tuple(self.symbol(part, of_leaf) for part in tree[1])))
        elif kind == "alt":
            for part in tree[1]:
                self.rules.append((name, (self.symbol(part, of_leaf),)))
        else:
            _, item, low, high = tree
            inside = self.symbol(item, of_leaf)
            if high is None:
                more = self.name()
                self.rules += [(more, ()), (more, (more, inside)), (name, (*[inside] * low, more))]
            else:
                self.rules += [(name, (inside,) * count) for count in range(low, high + 1)]
        return name
