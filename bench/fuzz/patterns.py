"""Random patterns as trees, and a matcher of their own for them: sets of positions, and which of those can end.

It shares nothing with the engine: no derivatives, no byte automata, no front-end.  A tree is a tuple:
("leaf", text), ("cat", parts), ("alt", parts), ("rep", item, low, high or None).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, NamedTuple

from bench.fuzz.characters import ASCII_POOL, POOL, characters

Tree = tuple[Any, ...]


class Taste(NamedTuple):
    """What random patterns are made of: their leaves, and how many of their nodes are repetitions."""

    leaves: Sequence[str] = POOL
    repeats: float = 0.25


_ANY = Taste()


def taste(rng: random.Random) -> Taste:
    """A taste for one pattern: often for few leaves, so that its parts begin and end alike, and many repetitions."""
    leaves = rng.sample(POOL, rng.randint(2, 3)) if rng.random() < 0.5 else POOL
    return Taste(leaves, rng.choice((0.25, 0.5)))


def tree(rng: random.Random, depth: int, taste: Taste = _ANY) -> Tree:
    """A random pattern."""
    what = rng.random()
    others = 1 - taste.repeats
    if depth == 0 or what < 0.4 * others:
        return ("leaf", rng.choice(taste.leaves))
    if what < 0.8 * others:
        return ("cat", tuple(tree(rng, depth - 1, taste) for _ in range(rng.randint(1, 4))))
    if what < others:
        return ("alt", tuple(tree(rng, depth - 1, taste) for _ in range(rng.randint(2, 4))))
    low, high = rng.choice(((0, None), (1, None), (0, 1), (0, 3), (2, 2), (1, 4), (2, None), (0, 12), (3, 9)))
    return ("rep", tree(rng, min(depth - 1, 1 if high and high > 4 else 2), taste), low, high)


def ascii_tree(rng: random.Random, depth: int) -> Tree:
    return tree(rng, depth, Taste(ASCII_POOL))


def text(made: Tree, rng: random.Random | None = None) -> str:
    """The tree as a pattern; with ``rng`` in one of several spellings."""
    kind = made[0]
    if kind == "leaf":
        return str(made[1])
    if kind == "cat":
        return "".join(f"(?:{text(part, rng)})" if part[0] == "alt" else text(part, rng) for part in made[1])
    if kind == "alt":
        return "|".join(text(part, rng) for part in made[1])
    _, item, low, high = made
    inside = text(item, rng)
    if item[0] != "leaf":
        inside = f"(?:{inside})" if rng is None or rng.random() < 0.7 else f"({inside})"
    bound = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((low, high))
    if bound is None or (rng is not None and rng.random() < 0.2):
        bound = f"{{{low},{'' if high is None else high}}}" if low != high else f"{{{low}}}"
    return inside + bound + ("?" if rng is not None and rng.random() < 0.1 else "")


class Machine:
    """A nondeterministic automaton over classes of characters.

    ``edges[state]`` is a list of (classes, next state), with None for no character.
    """

    def __init__(self, made: Tree) -> None:
        self.edges: list[list[tuple[frozenset[int] | None, int]]] = []
        self.end = self._state()
        self.first = self._build(made, self.end)
        self._closed: dict[frozenset[int], frozenset[int]] = {}

    def _state(self) -> int:
        self.edges.append([])
        return len(self.edges) - 1

    def _build(self, made: Tree, then: int) -> int:
        """The state from which the tree is read, and then ``then`` is reached."""
        kind = made[0]
        if kind == "leaf":
            state = self._state()
            self.edges[state].append((characters().classes_of[made[1]], then))
            return state
        if kind == "cat":
            for part in reversed(made[1]):
                then = self._build(part, then)
            return then
        if kind == "alt":
            state = self._state()
            for part in made[1]:
                self.edges[state].append((None, self._build(part, then)))
            return state
        _, item, low, high = made
        if high is None:
            loop = self._state()
            self.edges[loop].append((None, then))
            self.edges[loop].append((None, self._build(item, loop)))
            then = loop
        else:
            for _ in range(high - low):
                state = self._state()
                self.edges[state].append((None, then))
                self.edges[state].append((None, self._build(item, then)))
                then = state
        for _ in range(low):
            then = self._build(item, then)
        return then

    def close(self, states: frozenset[int]) -> frozenset[int]:
        """With all that is reached without a character."""
        if states not in self._closed:
            found = set(states)
            todo = list(states)
            while todo:
                for classes, then in self.edges[todo.pop()]:
                    if classes is None and then not in found:
                        found.add(then)
                        todo.append(then)
            self._closed[states] = frozenset(found)
        return self._closed[states]

    def start(self) -> frozenset[int]:
        return self.close(frozenset([self.first]))

    def step(self, states: frozenset[int], which: int) -> frozenset[int]:
        """After a character of a class."""
        return self.close(
            frozenset(
                then
                for state in states
                for classes, then in self.edges[state]
                if classes is not None and which in classes
            )
        )

    def accepts(self, states: frozenset[int]) -> bool:
        return self.end in states
