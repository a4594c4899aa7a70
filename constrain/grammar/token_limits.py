"""Rules that take so many tokens, at most or at least: ``thoughts[max_tokens=600]: /(.|\\n)*/``.

A grammar is a language over bytes, and how a text is cut into tokens is none of its business.  So a limit is no rule:
it is noted beside them, and a condition (engine/conditions/limited_rules) closes the rule when its tokens are used up.
(A rule that takes so many at least is written in a way of its own: least_tokens.py.)  For that it has to tell by an
item of the parser whether it is in the rule.  What a limited rule is made of is therefore its own: a nonterminal or a
lexeme that is used elsewhere too is copied.

Worked example: in ``start: word limited`` with ``limited[max_tokens=2]: word word`` the nonterminal ``word`` gets a
twin, of which the limited rule is made, and the twin's lexeme is another one than that of ``word``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from constrain.errors import ConstrainError
from constrain.grammar.languages.derivatives import has_empty_string
from constrain.grammar.languages.regular import Regular
from constrain.limits import spend


class TokenLimit(NamedTuple):
    """That a rule takes so many tokens."""

    symbol: int
    """The nonterminal."""
    tokens: int | None
    """How many at most, 1 or more; None for any number."""
    nonterminals: tuple[int, ...]
    """What it is made of, sorted; nothing else is."""
    lexemes: tuple[int, ...]
    """The lexemes (by index) that it is made of, sorted; nothing else is."""
    body: Regular | None = None
    """Where the rule names its end: what it may be without that end, which may be missing behind the last token."""
    least: int = 0
    """How many at least.  If they are more than one, the rule has gates (grammar/least_tokens.py)."""


class Limited(NamedTuple):
    """A limit as a front-end notes it."""

    tokens: int | None
    """How many at most; with 0 the rule is empty if it may be, and else over as soon as it can be."""
    body: Regular | None
    make_error: Callable[[str], ConstrainError]
    """Makes the error at the place of the limit."""
    least: int = 0


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
    on_demand, others = set(unfolded), set(others)
    rules = _Rules(builder, start)
    todo = list(limited)
    for rule in todo:
        inside = rules.inside(rule)
        if rule in inside:
            raise limited[rule].make_error("the rule holds itself, which is not supported")
        # What is made on demand tells by where it began which rule it is in.
        shared = (rules.used_outside(rule, inside) | inside & others) - on_demand
        twins = {symbol: builder.twin(symbol) for symbol in sorted(shared)}
        if twins:
            rules.rewrite(rule, inside - shared | {rule}, twins)
        for symbol, twin in twins.items():
            if symbol in limited:
                limited[twin] = limited[symbol]
                todo.append(twin)
    found = []
    for rule, limit in limited.items():
        inside = rules.inside(rule)
        found.append(
            TokenLimit(
                rule,
                None if limit.tokens is None else max(1, limit.tokens),
                tuple(sorted(symbol for symbol in inside if symbol >= 0)),
                tuple(sorted(~symbol for symbol in inside if symbol < 0)),
                limit.body,
                limit.least,
            )
        )
    return tuple(found)


class _Rules:
    """The productions of a grammar, kept so that each limited rule costs what it is made of, and not the grammar."""

    def __init__(self, builder: Builder, start: int) -> None:
        self._builder, self._start = builder, start
        self._productions: list[tuple[int, tuple[int, ...]]] = []
        self._of: dict[int, list[int]] = defaultdict(list)
        """The productions (by index) of a nonterminal."""
        self._used: Counter[int] = Counter()
        """How many nonterminals that the start leads to have a symbol in their productions."""
        self._take_new()
        self._count()

    def _count(self) -> None:
        self._live = self.inside(self._start) | {self._start}
        self._used.clear()
        for left in self._live:
            self._used.update(self._symbols(left))

    def _take_new(self) -> None:
        """Take note of productions that were added to the builder."""
        new = self._builder.productions_since(len(self._productions))
        for index, (left, _) in enumerate(new, len(self._productions)):
            self._of[left].append(index)
        self._productions += new

    def _symbols(self, left: int) -> set[int]:
        """The symbols in the productions of a nonterminal."""
        indices = self._of.get(left, ())
        spend(1 + len(indices))
        return {symbol for index in indices for symbol in self._productions[index][1]}

    def _led_to(self, todo: list[int]) -> set[int]:
        """The symbols in what some nonterminals derive."""
        found: set[int] = set()
        while todo:
            more = self._symbols(todo.pop()) - found
            found |= more
            todo += [symbol for symbol in more if symbol >= 0]
        return found

    def inside(self, rule: int) -> set[int]:
        """The symbols in what a nonterminal derives."""
        return self._led_to([rule])

    def used_outside(self, rule: int, inside: set[int]) -> set[int]:
        """Those of the symbols inside a rule that the start leads to without it."""
        # A nonterminal that is not inside the rule, and that the start leads to, it leads to without the rule.
        used = Counter[int]()
        for left in (inside | {rule}) & self._live:
            used.update(self._symbols(left))
        found = {symbol for symbol in inside if self._used[symbol] > used[symbol]}
        return found | self._led_to([symbol for symbol in found | inside & {self._start} if symbol >= 0])

    def rewrite(self, rule: int, owners: set[int], twins: dict[int, int]) -> None:
        """Put twins into the productions of their owners, and copies of their own productions behind them."""

        def renamed(index: int) -> tuple[int, ...]:
            return tuple(twins.get(symbol, symbol) for symbol in self._productions[index][1])

        for owner in owners:
            replaced = self._symbols(owner) & twins.keys()
            for index in self._of.get(owner, ()):
                self._productions[index] = owner, renamed(index)
                self._builder.replace_production(index, self._productions[index][1])
            if owner in self._live:
                self._used.subtract(replaced)
                self._used.update(twins[symbol] for symbol in replaced)
        for index in sorted(index for symbol in twins for index in self._of.get(symbol, ())):
            self._builder.add(twins[self._productions[index][0]], renamed(index))
        self._take_new()
        if rule in self._live:
            self._live.update(twins.values())
            for twin in twins.values():
                self._used.update(self._symbols(twin))
        elif not owners.isdisjoint(self._live):
            # The start leads to the twins, though not to the rule.
            self._count()


def _may_be_empty(builder: Builder, rule: int) -> bool:
    """Whether a nonterminal derives the empty string."""
    lexemes = builder.lexemes()
    spend(len(lexemes))
    found: set[int] = {~index for index, lexeme in enumerate(lexemes) if has_empty_string(lexeme)}
    while True:
        productions = builder.productions_since(0)
        spend(len(productions))
        more = {left for left, right in productions if found.issuperset(right)} - found
        if not more:
            return rule in found
        found |= more
