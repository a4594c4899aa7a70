"""The walk over the token trie by itself: nanoseconds, and cycles, per node it has to look at.

What is timed is the first mask in a place whose automaton no earlier grammar had, so that nothing
kept for the grammar or the vocabulary can be used again.  That is the walk, deriving the few automaton
states it meets, and writing the mask: an upper bound for the walk.

The number of nodes is not the engine's own, but counted with the recognizer: the root's children,
and the children of every node that can be reached.  An engine that finds a way to look at fewer
nodes gets the benefit.
"""

from __future__ import annotations

import platform
import random
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, perf_counter_ns
from typing import TYPE_CHECKING

from bench.maskbench.token_list import read_table

if TYPE_CHECKING:
    import constrain

RUNS = 15

# {} is a character of the private use area, another one in each run, so that each is a new expression: to this process,
# and to the splits that earlier ones have left on disk.
CASES = {
    "inside a quoted string": (r'"[^"\\\x00-\x1f{}]*"', b'"'),
    "any text, which may end anywhere": (r"[^{}]*", b""),
    "a name, which may end anywhere": (r"[A-Za-z_][A-Za-z0-9_{}]*", b""),
}
"""Name: pattern, and the text before the mask."""

_PRIVATE_USE = range(0xE000, 0xF900)


@dataclass(frozen=True)
class Walk:
    """A case.

    Attributes
    ----------
    nodes : int
        Trie nodes that a walk from the root, cut at dead ends, looks at.
    alive : int
        Those of them that are not dead ends.
    nanoseconds : float
        Of the fastest of the runs, by ``nodes``.
    cycles : float or None
        The same in clock cycles; None where the clock is not known.
    """

    name: str
    nodes: int
    alive: int
    nanoseconds: float
    cycles: float | None


def measure(vocabulary: Path, runs: int = RUNS) -> tuple[list[Walk], float | None]:
    """Measure all cases on the vocabulary of a rank file or a saved list of tokens.

    Returns
    -------
    (walks, clock)
        The clock in GHz, or None.
    """
    import constrain

    table = read_table(vocabulary)
    compiler = constrain.GrammarCompiler(
        constrain.Vocabulary(table.tokens, eos_ids=table.end_ids, special_ids=table.special_ids), cache_limit_bytes=0
    )
    mask = constrain.allocate_token_bitmask(1, table.size)
    tokens = sorted({token for token in table.tokens if token})
    clock = clock_ghz()
    walks = []
    for name, (pattern, before) in CASES.items():
        times = []
        for code in random.SystemRandom().sample(_PRIVATE_USE, runs + 1):
            text = pattern.replace("{}", chr(code))
            compiled = compiler.compile(constrain.Grammar.from_regex(text))
            matcher = constrain.Matcher(compiled)
            if before and not matcher.accept_bytes(before):
                raise AssertionError(f"{name}: the text before the mask is not allowed")
            begin = perf_counter_ns()
            matcher.fill_next_token_bitmask(mask)
            times.append(perf_counter_ns() - begin)
        nodes, alive = count_nodes(tokens, compiled, before)
        # The first run is a warm-up.
        nanoseconds = min(times[1:]) / nodes
        walks.append(Walk(name, nodes, alive, nanoseconds, clock and clock * nanoseconds))
    return walks, clock


def count_nodes(tokens: list[bytes], compiled: constrain.CompiledGrammar, before: bytes) -> tuple[int, int]:
    """How many nodes of the tokens' trie a walk looks at, and how many of them are alive.

    Parameters
    ----------
    tokens : list of bytes
        Sorted, none empty.
    before : bytes
        What the grammar has read already.
    """
    recognizer = compiled.recognizer()
    for byte in before:
        if not recognizer.try_push_byte(byte):
            raise AssertionError("the text before the mask is not allowed")
    looked = alive = depth = 0
    # The path from the root to the last node looked at; its last byte may be a dead end.
    path = b""
    for token in tokens:
        common = 0
        while common < min(len(path), len(token)) and path[common] == token[common]:
            common += 1
        if common == len(path) and common > depth:
            continue  # below a dead end
        recognizer.pop_bytes(max(0, depth - common))
        depth = min(depth, common)
        path = token
        for position in range(depth, len(token)):
            looked += 1
            if not recognizer.try_push_byte(token[position]):
                path = token[: position + 1]
                break
            alive += 1
            depth += 1
    return looked, alive


def clock_ghz() -> float | None:
    """The clock under load, measured by a chain of instructions of one cycle each; None if it is not known how.

    What the system reports is the nominal clock, from which the real one differs by a third.
    """
    if platform.machine() not in ("x86_64", "AMD64"):
        return None
    import numba
    import numpy as np

    left, right, last = np.uint64(13), np.uint64(7), np.uint64(17)

    @numba.njit  # type: ignore[untyped-decorator, unused-ignore]
    def chain(n, value):  # type: ignore[no-untyped-def]
        for _ in range(n):
            value ^= value << left
            value ^= value >> right
            value ^= value << last
        return value

    seed = np.uint64(88172645463325252)
    chain(10, seed)
    rounds, best = 1_000_000, float("inf")
    for _ in range(20):
        begin = perf_counter()
        chain(rounds, seed)
        best = min(best, perf_counter() - begin)
    # Three shifts and three exclusive ors, each of which needs the result of the one before.
    return 6 * rounds / best / 1e9
