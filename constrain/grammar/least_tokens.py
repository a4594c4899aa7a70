"""Rules that take so many tokens at least: ``thoughts[min_tokens=50]: /(.|\\n)*/``.

A grammar is a language over bytes, and how a text is cut into tokens is none of its business (grammar/token_limits.py).
So such a rule is written with *gates*, each of which a token opens:

    thoughts: guarded guarded ... guarded gate gate        thoughts: gate gate ... gate text

A gate is a byte that no text holds (``GATE`` in tokens.py).  ``guarded`` is the beginning of a text of the rule, with a
gate behind it.  So within a token the rule begins with ``guarded`` and does not come to its end.  Behind each token of
the rule a condition (engine/conditions/limited_rules) puts it before the next ``guarded``, as if that had been read
from the beginning of the rule on, and behind the last but one before ``text``.  Masks lack the token of the gates.

A rule may have texts that are too short.  So behind the token that opens a gate enough has to be left for the others:
each ``guarded`` is the beginning of a text that goes on for at least so many bytes, any of which may be a token.
Worked example: ``/[a-z]*|[0-9]{1,4}/`` with three tokens is ``/[a-z]+|[0-9]{1,2}/ gate`` at first, for two more bytes;
then ``/[a-z]*|[0-9]{0,3}/ gate``, for one; then itself.

The gates say what the rule costs at least, which is how budgets count it: a token for each gate.  Those at the end are
for the longest way from within a text to its end.  So what a text needs is never more than what was counted for it: no
token goes over a gate, so what follows the rule is counted by itself.  The way to ``text`` has so many gates that it is
nobody's shortest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from math import inf

from constrain.errors import ConstrainError
from constrain.grammar.ir import GrammarBuilder, GrammarIR, Symbol
from constrain.grammar.languages.derivatives import Automaton, byte_classes, has_empty_string
from constrain.grammar.languages.elimination import eliminate
from constrain.grammar.languages.quotation import Quotation
from constrain.grammar.languages.regular import (
    EMPTY,
    EPSILON,
    ByteSet,
    Concat,
    Literal,
    Regular,
    Repeat,
    Union,
    byte_set,
    concat,
    intersect,
    repeat,
    union,
)
from constrain.grammar.languages.substrings import MORE_BYTES
from constrain.grammar.tokens import GATE, token_sets
from constrain.limits import spend

_MOST_SYMBOLS = 10_000
"""So many symbols the rule may be written with."""

_MOST_STATES = 200
"""So many states the automaton of an intersection or a complement may have."""

_FINAL = -1

_GATE = Literal(bytes((GATE,)))


def write_least(
    builder: GrammarBuilder,
    symbol: Symbol,
    language: Regular,
    least: int,
    make_error: Callable[[str], ConstrainError],
    name: str = "",
) -> None:
    """Add the rule of a nonterminal whose texts are of a language, and take at least so many tokens.

    The nonterminal has been given to :meth:`GrammarBuilder.limit_tokens`.

    Raises
    ------
    ConstrainError
        By ``make_error``: if no text is long enough, tokens that are no text are part of it, or it is too large.
    """

    def error(reason: str) -> ConstrainError:
        return make_error(f"[min_tokens]: {reason}")

    if token_sets(language):
        raise error("tokens in the rule are not supported")
    if least == 0:
        builder.add(symbol, (builder.lexeme(language, name),))
        return
    try:
        for right in _rights(builder, language, least, error, name):
            builder.add(symbol, right)
    except RecursionError:
        raise error("the rule is nested too deeply") from None


def _rights(
    builder: GrammarBuilder,
    language: Regular,
    least: int,
    make_error: Callable[[str], ConstrainError],
    name: str,
) -> list[tuple[Symbol, ...]]:
    rests = _Rests(make_error)
    longest = rests.longest(language)
    if longest < least:
        raise make_error(
            f"a text of the rule has at most {max(0, int(longest))} bytes, which are fewer than {least} tokens"
        )
    text = builder.lexeme(intersect(language, MORE_BYTES) if has_empty_string(language) else language, name)
    if least == 1:
        return [(text,)]
    out = rests.way_out(language)
    if least + out > _MOST_SYMBOLS:
        raise make_error(
            f"{least:,} tokens, and {out:,} bytes that it may take from within the rule to its end, are more than "
            f"{_MOST_SYMBOLS:,}"
        )
    # Often all texts may go on for ever, wherever they are.
    endless = rests.begins(language, inf)
    is_endless = rests.begins(language, 1) == endless
    begins = [endless if is_endless else rests.begins(language, left) for left in range(least - 1, 0, -1)]
    # The first token holds something of the rule.
    begins[0] = intersect(begins[0], MORE_BYTES)
    guarded = [builder.token(concat(begin, _GATE), name) for begin in begins]
    gate = builder.token(_GATE, name)
    gated = [*guarded, *[gate] * out]
    return [tuple(gated), (*[gate] * (len(gated) + 2), text)]


def without_least(ir: GrammarIR) -> GrammarIR:
    """The grammar without gates, for who knows no tokens: each rule is any of its texts."""
    gated = {limit.symbol for limit in ir.token_limits if limit.least > 1}
    if not gated:
        return ir
    productions = (
        (left, right[-1:] if left in gated else right)
        for left, right in ir.productions
        if left not in gated or ~right[-1] not in ir.token_lexemes
    )
    return replace(ir, productions=tuple(productions))


class _Rests:
    """How a text of a language may go on from within it; lengths are in bytes."""

    def __init__(self, make_error: Callable[[str], ConstrainError]) -> None:
        self._make_error = make_error
        self._automata: dict[Regular, _Graph] = {}
        self._longest: dict[Regular, float] = {}
        self._begins: dict[tuple[Regular, float], Regular] = {}

    def _graph(self, language: Regular) -> _Graph:
        if language not in self._automata:
            self._automata[language] = _Graph(language, self._make_error)
        return self._automata[language]

    def longest(self, language: Regular) -> float:
        """The length of the longest text; -inf if there is none, inf if there is no longest."""
        known = self._longest.get(language)
        if known is None:
            spend()
            known = self._longest[language] = self._find_longest(language)
        return known

    def _find_longest(self, language: Regular) -> float:
        if language is EMPTY:
            return -inf
        if isinstance(language, Literal):
            return len(language.data)
        if isinstance(language, ByteSet):
            return 1
        if isinstance(language, Concat):
            lengths = [self.longest(part) for part in language.parts]
            return -inf if -inf in lengths else sum(lengths)
        if isinstance(language, Union) and not isinstance(language, Quotation):
            return max(map(self.longest, language.parts))
        if isinstance(language, Repeat):
            length = self.longest(language.item)
            if length <= 0:
                return 0 if length == 0 or language.low == 0 else -inf
            return inf if language.high is None else length * language.high
        return self._graph(language).longest[0]

    def shortest(self, language: Regular) -> float:
        """The length of the shortest text; inf if there is none."""
        if language is EMPTY:
            return inf
        if isinstance(language, Literal):
            return len(language.data)
        if isinstance(language, ByteSet):
            return 1
        if isinstance(language, Concat):
            return sum(map(self.shortest, language.parts))
        if isinstance(language, Union) and not isinstance(language, Quotation):
            return min(map(self.shortest, language.parts))
        if isinstance(language, Repeat):
            return language.low * self.shortest(language.item) if language.low else 0
        return self._graph(language).shortest[0]

    def way_out(self, language: Regular) -> int:
        """An upper bound of how many bytes the shortest way takes to an end, behind any byte of a text."""
        return int(max(0, self._way_out(language)))

    def _way_out(self, language: Regular) -> float:
        if self.longest(language) <= 0 or isinstance(language, ByteSet):
            return 0
        if isinstance(language, Literal):
            return len(language.data) - 1
        if isinstance(language, Concat):
            most, behind = 0.0, 0.0
            for part in reversed(language.parts):
                most = max(most, self._way_out(part) + behind)
                behind += self.shortest(part)
                if part is not language.parts[0]:
                    most = max(most, behind)
            return most
        if isinstance(language, Union) and not isinstance(language, Quotation):
            return max(map(self._way_out, language.parts))
        if isinstance(language, Repeat):
            more = max(0, language.low - 1)
            return self._way_out(language.item) + (more * self.shortest(language.item) if more else 0)
        return max(length for length in self._graph(language).shortest[1:] if length < inf)

    def begins(self, language: Regular, left: float) -> Regular:
        """What a text may begin with of which at least ``left`` bytes are left then: a quotient of the language."""
        left = max(0, left)
        if self.longest(language) < left:
            return EMPTY
        if self.longest(language) == inf and left > 0 and isinstance(language, Repeat):
            left = 1
        key = language, left
        known = self._begins.get(key)
        if known is None:
            spend()
            known = self._begins[key] = self._find_begins(language, left)
        return known

    def _find_begins(self, language: Regular, left: float) -> Regular:
        if isinstance(language, Literal):
            most = len(language.data) - int(left)
            return _prefixes(language.data[:most])
        if isinstance(language, ByteSet):
            return union(EPSILON, language) if left == 0 else EPSILON
        if isinstance(language, Concat):
            head, tail = language.parts[0], concat(*language.parts[1:])
            behind = self.longest(tail)
            in_head = self.begins(head, 0 if behind == inf else left - behind)
            return union(in_head, concat(head, self.begins(tail, left)))
        if isinstance(language, Union) and not isinstance(language, Quotation):
            return union(*(self.begins(part, left) for part in language.parts))
        if isinstance(language, Repeat):
            return self._begins_of_repeat(language, left)
        return self._graph(language).begins(left)

    def _begins_of_repeat(self, language: Repeat, left: float) -> Regular:
        item, high = language.item, language.high
        length = self.longest(item)
        if length <= 0:
            return EPSILON
        if high is None:
            return concat(repeat(item), self.begins(item, 0))
        # Behind ``before`` items and one that has begun, the others may have so many bytes.
        ways = []
        enough = high - 1 - int(-(-left // length)) if length < inf else high - 2
        if enough >= 0:
            ways.append(concat(repeat(item, 0, enough), self.begins(item, 0)))
        for before in range(max(0, enough + 1), high):
            rest = left - (high - 1 - before) * length if before < high - 1 else left
            if rest > length:
                break
            ways.append(concat(repeat(item, before, before), self.begins(item, rest)))
        return union(*ways)


def _prefixes(data: bytes) -> Regular:
    """Any beginning of some bytes."""
    found: Regular = EPSILON
    for byte in reversed(data):
        found = union(EPSILON, concat(Literal(bytes((byte,))), found))
    return found


class _Graph:
    """The automaton of a language whose parts do not tell how its texts go on: an intersection, a complement.

    Attributes
    ----------
    longest, shortest : list of float
        For each state the lengths of the longest and the shortest way to an end; -inf and inf where there is none.
        State 0 is the first.
    """

    def __init__(self, language: Regular, make_error: Callable[[str], ConstrainError]) -> None:
        automaton = Automaton(language)
        classes = list(byte_classes(language))
        self._edges: list[dict[int, list[int]]] = []
        self._begins: dict[tuple[int, ...], Regular] = {}
        numbers = {0: 0}
        todo = deque([0])
        while todo:
            state = todo.popleft()
            spend(len(classes))
            row: dict[int, list[int]] = {}
            for members in classes:
                then = automaton.step(state, members[0])
                if automaton.is_dead(then):
                    continue
                if then not in numbers:
                    if len(numbers) == _MOST_STATES:
                        raise make_error(f"a part of the rule needs an automaton of more than {_MOST_STATES} states")
                    numbers[then] = len(numbers)
                    todo.append(then)
                row.setdefault(numbers[then], []).extend(members)
            self._edges.append(row)
        self._ends = [automaton.is_end(state) for state in numbers]
        self.shortest = self._find_shortest()
        self.longest = self._find_longest()

    def _find_shortest(self) -> list[float]:
        found = [0.0 if ends else inf for ends in self._ends]
        for _ in found:
            before = list(found)
            for state, row in enumerate(self._edges):
                found[state] = min([found[state], *(1 + found[then] for then in row)])
            if found == before:
                break
        return found

    def _find_longest(self) -> list[float]:
        # After as many rounds as there are states, what still grows goes round in a circle.
        found = [0.0 if ends else -inf for ends in self._ends]
        for number in range(2 * len(found)):
            before = list(found)
            for state, row in enumerate(self._edges):
                most = max([found[state], *(1 + before[then] for then in row)])
                found[state] = inf if most > found[state] and number >= len(found) else most
            if found == before:
                break
        return found

    def begins(self, left: float) -> Regular:
        """What leads to a state from which a way of at least ``left`` bytes leads to an end."""
        wanted = tuple(state for state, length in enumerate(self.longest) if length >= left)
        if wanted not in self._begins:
            self._begins[wanted] = self._begins_within(wanted) if 0 in wanted else EMPTY
        return self._begins[wanted]

    def _begins_within(self, wanted: tuple[int, ...]) -> Regular:
        """What leads to some states, state 0 among them, by way of these alone."""
        rows: dict[int, dict[int, Regular]] = {}
        for state in wanted:
            edges = self._edges[state].items()
            rows[state] = {then: byte_set(members) for then, members in edges if then in wanted}
            rows[state][_FINAL] = EPSILON
        for state in wanted[:0:-1]:
            spend(len(rows))
            eliminate(rows, state)
        row = rows[0]
        return concat(repeat(row.get(0, EMPTY)), row[_FINAL])
