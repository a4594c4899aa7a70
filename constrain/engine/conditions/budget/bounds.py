"""How much finishing a text may take at most behind the next token, known without a look at each token.

In a grammar of a programming language each place has a stack of rules of its own, and to work out what every token
leaves (masks.py) takes far longer than the mask.  With a large budget it is enough to know a bound.

**Frames.**  An item of an Earley set is a rule of which a part has been read, and in a grammar without rules that are
made on demand it costs ``rest(dot)`` to read what is left of it.  The rule began in the set ``origin``, within the next
symbol C of some item there, its *frame*.  Between the two there are rules that begin with each other, of which nothing
has been read before; the text has not chosen among them yet, and the cheapest way costs ``chain(C, rule)``, never more
than CHAIN.  So whichever item a text goes on with, it can be finished at

    value(item) = rest(dot) + base(item),    base(item) = CHAIN + the greatest of  rest(dot + 1) + base(frame)

over the items of the origin, and without ``base`` for the rule that is the whole text.

**What is read later** opens new frames within those that are there.  A rule that begins within C, read to before its
symbol D, is a frame for D: it adds ``chain(C, rule)`` and what the rule has behind D.  What is read before D takes a
byte that a rule can begin with, and as many bytes as it costs at least; a frame within D begins behind these.  So n
bytes add no more than GROWTH[n], the greatest sum along a path of such steps from any symbol to the next.  One more
step may have begun with the lexeme that is under way.  What is read within the rules that are there already makes them
cheaper.  At last there is an item within the innermost frame, and a lexeme that has begun.  So behind a token finishing
takes no more than the sum of: the greatest value of an item, the greatest step, GROWTH[n], CHAIN, the greatest rest of
any rule, and the most that a lexeme costs that has begun.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from constrain.engine.conditions.budget.expression_costs import MISSING, NEVER
from constrain.engine.grammar_tables import GrammarTables
from constrain.engine.parser.rules import BRANCH, END
from constrain.engine.storage import schemas as t
from constrain.engine.storage.header import START_NT

# The cheapest ways between all nonterminals take the cube of their number.
_MOST_NONTERMINALS = 400
# So many of the heaviest tokens are looked up in a mask at once.
_HEAVIEST = 4096

Int64Array = np.ndarray[Any, np.dtype[np.int64]]


class Bounds:
    """The bounds of a grammar whose rules are all known from the start, as long as its tables are the same.

    Attributes
    ----------
    least : int
        No bound is less; NEVER if something cannot be bounded, and so nothing is.
    """

    def __init__(self, compiled: GrammarTables) -> None:
        self.least = NEVER
        # By Earley set: the greatest value of an item, and of a frame.
        self._values: dict[int, tuple[int, int]] = {}
        tables = compiled._tables
        self._count = int(compiled.ctx[START_NT])
        self._symbols: list[int] = tables.get(t.SYMBOLS).tolist()
        self._left: list[int] = tables.get(t.DOT_LEFT).tolist()
        self._rest: list[int] = tables.get(t.REST_COSTS).tolist()
        # Only then do costs say how many bytes there are at least.
        self._has_all_bytes = bool(tables.array(t.TOKEN_WEIGHTS)["has_all_bytes"][0])
        lexemes = tables.get(t.LEXEMES)
        worst = int(tables.array(t.EXPRESSION_COSTS)["worst"][lexemes["expression"]].max(initial=0))
        greatest = max(self._rest)
        is_made_on_demand = any(symbol >= BRANCH and symbol != END for symbol in self._symbols)
        if self._count > _MOST_NONTERMINALS or is_made_on_demand or max(greatest, worst) >= MISSING or worst < 0:
            return
        productions = self._productions(tables)
        chains, begins = self._chains(productions, tables)
        self._chain = int(chains[chains < NEVER].max(initial=0))
        self._weigh_tokens(compiled, begins, partial(self._sums_of_steps, productions, chains))
        self.least = self._greatest_step + self._chain + greatest + worst

    def forget_sets(self) -> None:
        """Earley sets have other numbers from now on."""
        self._values.clear()

    def _productions(self, tables: Any) -> list[tuple[int, list[int]]]:
        """Left-hand sides with their dots, but for the one at the end."""
        rules, starts = tables.array(t.RULES).tolist(), tables.array(t.RULE_STARTS).tolist()
        found = []
        for left in range(self._count):
            for dot in starts[rules[left] : rules[left + 1]]:
                dots = []
                while self._symbols[dot] != END:
                    dots.append(dot)
                    dot += 1
                found.append((left, dots))
        return found

    def _chains(self, productions: list[tuple[int, list[int]]], tables: Any) -> tuple[Int64Array, set[int]]:
        """What it costs at least from each nonterminal to each that it may begin with; which lexemes rules begin with.

        Floyd's algorithm (1962).
        """
        chains = np.full((self._count, self._count), NEVER, np.int64)
        np.fill_diagonal(chains, 0)
        nullable, lexemes = tables.array(t.NULLABLE).tolist(), tables.array(t.LEXEMES)["is_nullable"].tolist()
        begins: set[int] = set()
        for left, dots in productions:
            for dot in dots:
                symbol = self._symbols[dot]
                if symbol < 0:
                    begins.add(~symbol)
                else:
                    chains[left, symbol] = min(chains[left, symbol], self._rest[dot + 1])
                if not (lexemes[~symbol] if symbol < 0 else nullable[symbol]):
                    break
        for middle in range(self._count):
            np.minimum(chains, chains[:, middle, None] + chains[None, middle, :], out=chains)
        return chains, begins

    def _sums_of_steps(
        self, productions: list[tuple[int, list[int]]], chains: Int64Array, most: int
    ) -> tuple[Int64Array, Int64Array]:
        """The greatest sums along paths of up to so many steps, and of so many bytes: int64[most + 1] each."""
        # By left-hand side, symbol, what is behind that, and the bytes before it.
        listed = sorted(
            {
                (left, self._symbols[dot], self._rest[dot + 1], max(1, self._rest[dots[0]] - self._rest[dot]))
                for left, dots in productions
                for dot in dots[1:]
                if self._symbols[dot] >= 0
            }
        )
        if not listed:
            return np.zeros(most + 1, np.int64), np.zeros(most + 1, np.int64)
        left, symbol, behind, size = np.array(listed, np.int64).T
        firsts = np.flatnonzero(np.diff(left, prepend=-1))
        lefts = left[firsts]
        into = np.where(chains[:, lefts] < NEVER, chains[:, lefts], -NEVER)

        def sums(sizes: Int64Array) -> Int64Array:
            ahead = np.zeros((most + 1, self._count), np.int64)
            for length in range(1, most + 1):
                ways = np.where(sizes <= length, behind + ahead[np.maximum(length - sizes, 0), symbol], -NEVER)
                ahead[length] = (into + np.maximum.reduceat(ways, firsts)).max(axis=1)
                np.maximum(ahead[length], ahead[length - 1], out=ahead[length])
            greatest: Int64Array = ahead.max(axis=1)
            return greatest

        return sums(np.ones_like(size)), sums(size if self._has_all_bytes else np.ones_like(size))

    def _weigh_tokens(self, compiled: GrammarTables, begins: set[int], sums: Any) -> None:
        """Work out what each token adds at most; the heaviest come first."""
        tables = compiled._tables
        expressions = tables.array(t.LEXEMES)["expression"][sorted(begins)]
        words = np.bitwise_or.reduce(tables.array(t.SUMMARY_SETS)[tables.array(t.FIRST_BYTES)[expressions]], axis=0)
        counts = np.unpackbits(np.ascontiguousarray(words).view(np.uint8), bitorder="little").astype(np.int64)
        starts = compiled.vocabulary.starts
        before = np.concatenate(([0], np.cumsum(counts[compiled.vocabulary.data])))
        lengths, steps = np.diff(starts), np.diff(before[starts])
        by_steps, by_bytes = sums(int(lengths.max(initial=0)))
        weights = np.minimum(by_steps[steps], by_bytes[lengths])
        self._order = np.argsort(-weights, kind="stable")
        self._weights = weights[self._order]
        self._greatest_step = int(by_steps[min(1, len(by_steps) - 1)])

    def _values_of(self, tables: Any, earley_set: int) -> tuple[int, int]:
        """The greatest value of an item of an Earley set, and of one that is a frame."""
        todo = [earley_set]
        records, items = tables.get(t.EARLEY_SETS), tables.get(t.EARLEY_ITEMS)
        while todo:
            here, before = todo[-1], len(todo)
            if here in self._values:
                # Several items may have begun there.
                todo.pop()
                continue
            value = frame = 0
            record = records[here]
            for dot, origin in items[record["offset"] :][: record["count"]].tolist():
                base = 0
                if self._left[dot] < self._count:
                    if origin >= here:
                        # A rule of which nothing was read.
                        return NEVER, NEVER
                    if origin not in self._values:
                        todo.append(origin)
                        continue
                    base = self._chain + self._values[origin][1]
                value = max(value, self._rest[dot] + base)
                if self._symbols[dot] != END:
                    frame = max(frame, self._rest[dot + 1] + base)
            if len(todo) == before:
                self._values[here] = value, frame
                todo.pop()
        return self._values[earley_set]

    def behind_any_token(self, compiled: GrammarTables, state: int, row: Any) -> int:
        """What finishing takes at most behind any token of a mask, that of a state without a budget; NEVER if unknown.

        Parameters
        ----------
        compiled : GrammarTables
            The caller holds its lock.
        state : int
        row : int32[n]
            The mask.
        """
        tables, greatest = compiled._tables, 0
        record = tables.get(t.STATES)[state]
        for configuration in tables.get(t.CONFIGURATIONS)[record["offset"] :][: record["count"]]:
            value, _ = self._values_of(tables, int(configuration["earley_set"]))
            greatest = max(greatest, value)
        found = greatest + self._heaviest(row) + self.least
        return found if found < MISSING else NEVER

    def _heaviest(self, row: Any) -> int:
        """What a token of a mask adds at most."""
        for first in range(0, len(self._order), _HEAVIEST):
            tokens = self._order[first : first + _HEAVIEST]
            allowed = (row[tokens >> 5] >> (tokens & 31)) & 1
            place = int(allowed.argmax())
            if allowed[place]:
                return int(self._weights[first + place])
        return 0
