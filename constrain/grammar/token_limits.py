"""Rules that are over after so many tokens: ``thoughts[max_tokens=600]: /(.|\\n)*/``.

A grammar is a language over bytes, and how a text is cut into tokens is none of its business.  So a limit is no rule:
it is noted beside them, and a condition (engine/conditions/limited_rules) closes the rule when its tokens are used up.
For that it has to tell by an item of the parser whether it is in the rule.  What a limited rule is made of is therefore
its own: a nonterminal or a lexeme that is used elsewhere too is copied.

Worked example: in ``start: word limited`` with ``limited[max_tokens=2]: word word`` the nonterminal ``word`` gets a
twin, of which the limited rule is made, and the twin's lexeme is another one than that of ``word``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from constrain.errors import ConstrainError
from constrain.grammar.derivatives import has_empty_string
from constrain.grammar.regular import Regular


class TokenLimit(NamedTuple):
    """That a rule is over after so many tokens."""

    symbol: int
    """The nonterminal."""
    tokens: int
    """How many; at least 1."""
    nonterminals: tuple[int, ...]
    """What it is made of, sorted; nothing else is."""
    lexemes: tuple[int, ...]
    """The lexemes (by index) that it is made of, sorted; nothing else is."""
    body: Regular | None = None
    """Where the rule names its end: what it may be without that end, which may be missing behind the last token."""


class Limited(NamedTuple):
    """A limit as a front-end notes it."""

    tokens: int
    """How many; with 0 the rule is empty if it may be, and else over as soon as it can be."""
    body: Regular | None
    make_error: Callable[[str], ConstrainError]
    """Makes the error at the place of the limit."""


class Builder(Protocol):
    """What is asked of the builder of a grammar (:class:`constrain.grammar.ir.GrammarBuilder`)."""

    def lexemes(self) -> tuple[Regular, ...]:
        """The lexemes so far."""

    def productions_since(self, count: int) -> list[tuple[int, tuple[int, ...]]]:
        """The productions but for the first ``count``."""

    def add(self, left: int, right: tuple[int, ...]) -> None:
        """Add a production."""

    def replace_production(self, index: int, right: tuple[int, ...]) -> None:
        """Give a production another right-hand side."""

    def twin(self, symbol: int) -> int:
        """Another symbol like this one."""


def separate(
    builder: Builder,
    start: int,
    limited: dict[int, Limited],
    others: Iterable[int],
    unfolded: Iterable[int],
) -> tuple[TokenLimit, ...]:
    """Let each limited rule be made of symbols of its own.

    Parameters
    ----------
    builder : Builder
        Its productions are rewritten, and copies are added to them.
    start : int
    limited : dict of nonterminal to Limited
        Twins of limited rules are added.
    others : iterable of int
        Symbols that may stand anywhere: what is ignored.
    unfolded : iterable of int
        Nonterminals whose rules are made on demand.

    Raises
    ------
    ConstrainError
        If a limited rule holds itself.
    """
    for rule, limit in limited.items():
        if limit.tokens == 0 and (limit.body is not None or _may_be_empty(builder, rule)):
            for index, (left, _) in enumerate(builder.productions_since(0)):
                if left == rule:
                    builder.replace_production(index, ())
    on_demand = set(unfolded)
    others = tuple(others)
    todo = list(limited)
    for rule in todo:
        rules = _by_left(builder)
        inside = _reachable(rules, rule, -1)
        if rule in inside:
            raise limited[rule].make_error("the rule holds itself, which is not supported")
        outside = _reachable(rules, start, rule).union(others)
        # What is made on demand tells by where it began which rule it is in.
        shared = (inside & outside) - on_demand
        twins = {symbol: builder.twin(symbol) for symbol in sorted(shared)}
        if twins:
            _rewrite(builder, inside - shared | {rule}, twins)
        for symbol, twin in twins.items():
            if symbol in limited:
                limited[twin] = limited[symbol]
                todo.append(twin)
    rules = _by_left(builder)
    found = []
    for rule, limit in limited.items():
        inside = _reachable(rules, rule, -1)
        found.append(
            TokenLimit(
                rule,
                max(1, limit.tokens),
                tuple(sorted(symbol for symbol in inside if symbol >= 0)),
                tuple(sorted(~symbol for symbol in inside if symbol < 0)),
                limit.body,
            )
        )
    return tuple(found)


_Rules = dict[int, list[tuple[int, ...]]]


def _by_left(builder: Builder) -> _Rules:
    rules: _Rules = defaultdict(list)
    for left, right in builder.productions_since(0):
        rules[left].append(right)
    return rules


def _reachable(rules: _Rules, start: int, closed: int) -> set[int]:
    """The symbols in what a nonterminal derives; ``closed`` is not looked into."""
    found: set[int] = set()
    todo = [start] if start != closed else []
    while todo:
        for right in rules.get(todo.pop(), ()):
            for symbol in right:
                if symbol not in found:
                    found.add(symbol)
                    if symbol >= 0 and symbol != closed:
                        todo.append(symbol)
    return found


def _rewrite(builder: Builder, owners: set[int], twins: dict[int, int]) -> None:
    """Put twins into the productions of their owners, and copies of their own productions behind them."""
    for index, (left, right) in enumerate(builder.productions_since(0)):
        renamed = tuple(twins.get(symbol, symbol) for symbol in right)
        if left in owners:
            builder.replace_production(index, renamed)
        elif left in twins:
            builder.add(twins[left], renamed)


def _may_be_empty(builder: Builder, rule: int) -> bool:
    """Whether a nonterminal derives the empty string."""
    lexemes = builder.lexemes()
    found: set[int] = {~index for index, lexeme in enumerate(lexemes) if has_empty_string(lexeme)}
    while True:
        more = {left for left, right in builder.productions_since(0) if found.issuperset(right)} - found
        if not more:
            return rule in found
        found |= more
