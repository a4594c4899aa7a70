"""How a text that was begun can be finished in the fewest bytes.

A walk over a grammar that stops anywhere should be one short string away from an accepted text.
This finds that string from the grammar alone, with nothing of the engine.
"""

from __future__ import annotations

from functools import lru_cache
from heapq import heapify, heappop, heappush
from itertools import count

from naive import Item, NaiveRecognizer, Row
from naive_regular import derivative, distinct_bytes, is_viable_prefix, nullable

from constrain.grammar.ir import Symbol
from constrain.grammar.languages.regular import ByteSet, Concat, Literal, Regular, Repeat, Union


@lru_cache(maxsize=20_000)
def shortest_string(language: Regular) -> bytes:
    """A shortest string of a language that is not empty."""
    if isinstance(language, Literal):
        return language.data
    if isinstance(language, ByteSet):
        # A printable one if there is one: failures are easier to read.
        members = [byte for byte in (*range(33, 256), *range(33)) if language.bits >> byte & 1]
        return bytes(members[:1])
    if isinstance(language, Concat):
        return b"".join(map(shortest_string, language.parts))
    if isinstance(language, Union):
        return min((shortest_string(part) for part in language.parts if is_viable_prefix(part, b"")), key=len)
    if isinstance(language, Repeat):
        return b"" if language.low == 0 else shortest_string(language.item) * language.low
    # Intersections and complements: breadth first over the derivatives.
    level, seen = {language: b""}, {language}
    while True:
        for here, text in level.items():
            if nullable(here):
                return text
        following: dict[Regular, bytes] = {}
        for here, text in level.items():
            for byte in distinct_bytes(here):
                then = derivative(here, byte)
                if then not in seen:
                    seen.add(then)
                    following[then] = text + bytes((byte,))
        assert following, "the language is empty"
        level = following


class Completer:
    """Finds completions for what was pushed to a recogniser."""

    def __init__(self, recognizer: NaiveRecognizer) -> None:
        self._recognizer = recognizer
        self._productions = recognizer.productions
        self._shortest: dict[Symbol, bytes] = {}
        for _, right in self._productions:
            for symbol in right:
                if symbol < 0:
                    self._shortest[symbol] = shortest_string(recognizer.lexemes[~symbol])
        changed = True
        while changed:
            changed = False
            for left, right in self._productions:
                if all(symbol in self._shortest for symbol in right):
                    text = self._join(right)
                    if left not in self._shortest or len(text) < len(self._shortest[left]):
                        self._shortest[left] = text
                        changed = True

    def _join(self, symbols: tuple[Symbol, ...]) -> bytes:
        return b"".join(self._shortest[symbol] for symbol in symbols)

    def _rest_of(self, item: Item) -> bytes:
        index, dot, _, rest = item
        right = self._productions[index][1]
        return self._join(right[dot:]) if rest is None else shortest_string(rest) + self._join(right[dot + 1 :])

    def shortest(self) -> bytes:
        """A shortest byte string that turns what was pushed into a string of the language.

        Dijkstra over "nonterminal N, begun at row R, is complete": what is missing then is the rest
        of a production that waits for N in R, and after it that production's own left-hand side.
        """
        first, now = self._recognizer.rows[0], self._recognizer.rows[-1]
        order = count()
        todo: list[tuple[int, int, bytes, int, Row]] = []
        for item in now.items:
            text = self._rest_of(item)
            todo.append((len(text), next(order), text, self._productions[item[0]][0], item[2]))
        heapify(todo)
        done: set[tuple[int, int]] = set()
        while todo:
            _, _, text, left, origin = heappop(todo)
            if left == self._recognizer.start and origin is first:
                return text
            if (left, id(origin)) in done:
                continue
            done.add((left, id(origin)))
            for index, dot, began, _ in origin.waiting.get(left, ()):
                outer, right = self._productions[index]
                longer = text + self._join(right[dot + 1 :])
                heappush(todo, (len(longer), next(order), longer, outer, began))
        raise AssertionError("a viable row that cannot be finished")
