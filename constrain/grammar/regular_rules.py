"""Rules as a regular language, where they have one.

    body ::= [a-z]* | [a-z]* "\\" esc body        esc ::= ["n]

Rules that refer to each other in a circle have a regular language if each of them does so only at its very end, as
``body`` does, or only at its very beginning.  Such a circle is a system of equations, ``X = a X | b``, which is solved
one rule at a time: ``X = a* b`` (Arden's lemma).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from constrain.grammar.ir import GrammarBuilder, Symbol
from constrain.grammar.languages.elimination import eliminate
from constrain.grammar.languages.regular import EMPTY, Regular, concat, repeat, union
from constrain.limits import spend

MOST_IN_A_CIRCLE = 24
"""The solution can grow exponentially with the number of rules, so there are few."""

_Equation = dict[Symbol, Regular]
"""What stands beside each rule of the circle; under ``_NOTHING`` what stands alone."""

_NOTHING: Symbol = 1 << 30


class NotRegularError(Exception):
    """A rule has no regular language, or has marks that a language cannot have; the message says which rule and why."""


class RegularRules:
    """The languages of the rules that a builder has so far.

    Parameters
    ----------
    builder : GrammarBuilder
    stands_for : mapping of Symbol to Symbol
        Nonterminals without productions of their own, and those that stand in their place within their circle.
    finish : callable (symbol, language) -> Regular
        What is made of the language of a nonterminal of ``stands_for`` where another rule refers to it.
    is_known : callable (symbol) -> bool
        Whether a symbol is its language, whatever stands beside it.
    """

    def __init__(
        self,
        builder: GrammarBuilder,
        stands_for: Mapping[Symbol, Symbol],
        finish: Callable[[Symbol, Regular], Regular],
        is_known: Callable[[Symbol], bool] = lambda symbol: True,
    ) -> None:
        self._builder, self._finish, self._is_known = builder, finish, is_known
        self._stands_for = stands_for
        self._lexemes = builder.lexemes()
        self._rights: dict[Symbol, list[tuple[Symbol, ...]]] = {}
        for left, right in builder.productions_since(0):
            self._rights.setdefault(left, []).append(right)
        for left, body in stands_for.items():
            self._rights[left] = [(body,)]
        self._languages: dict[Symbol, Regular] = {}

    def language(self, rule: Symbol) -> Regular:
        """The language of a nonterminal of ``stands_for``, as ``finish`` makes it.

        Raises
        ------
        NotRegularError
        """
        try:
            return self._of(rule)
        except RecursionError:
            raise NotRegularError("the rules are nested too deeply") from None

    def refers_to_itself(self, rule: Symbol) -> bool:
        """Whether a nonterminal of ``stands_for`` is part of itself."""
        return len(self._circle(rule)) > 1

    def _part(self, symbol: Symbol) -> Regular:
        """The language of what another rule refers to."""
        if self._builder.is_token(symbol):
            raise NotRegularError("a special token in it is no text")
        if self._builder.is_marked(symbol) or not self._is_known(symbol):
            raise NotRegularError(f"{self._shown(symbol)} in it is more than its text")
        return self._lexemes[~symbol] if symbol < 0 else self._of(symbol)

    def _of(self, symbol: Symbol) -> Regular:
        if symbol not in self._languages:
            circle = self._circle(symbol)
            for other in circle - {symbol}:
                if other in self._stands_for:
                    raise NotRegularError(f"{self._shown(other)} refers to it and says where it ends too")
            if len(circle) > 1 and any(map(self._builder.is_marked, circle)):
                raise NotRegularError("rules that refer to each other cannot be captured or limited one by one")
            found = self._solved(symbol, circle)
            self._languages[symbol] = self._finish(symbol, found) if symbol in self._stands_for else found
        return self._languages[symbol]

    def _shown(self, symbol: Symbol) -> str:
        name = self._builder.name_of(symbol)
        return f'"{name}"' if name else "a part"

    def _circle(self, symbol: Symbol) -> set[Symbol]:
        """A nonterminal, and those that it refers to and that refer to it, over however many others."""
        users: dict[Symbol, set[Symbol]] = {}
        todo, seen = [symbol], {symbol}
        while todo:
            spend()
            left = todo.pop()
            for right in self._rights.get(left, ()):
                for each in right:
                    if each >= 0:
                        users.setdefault(each, set()).add(left)
                        if each not in seen:
                            seen.add(each)
                            todo.append(each)
        circle, todo = {symbol}, [symbol]
        while todo:
            for user in users.get(todo.pop(), ()):
                if user not in circle:
                    circle.add(user)
                    todo.append(user)
        return circle

    def _solved(self, symbol: Symbol, circle: set[Symbol]) -> Regular:
        if len(circle) > MOST_IN_A_CIRCLE:
            raise NotRegularError(f"more than {MOST_IN_A_CIRCLE} rules refer to each other")
        places = {
            (place > 0, place + 1 < len(right))
            for left in circle
            for right in self._rights.get(left, ())
            for place, each in enumerate(right)
            if each in circle and len(right) > 1
        }
        if len(places) > 1 or (True, True) in places:
            raise NotRegularError("its rules refer to each other with text on both sides, which is not regular")
        is_last = (False, True) not in places
        equations = {left: self._equation(left, circle, is_last) for left in circle}

        def join(*parts: Regular) -> Regular:
            return concat(*parts) if is_last else concat(*reversed(parts))

        for left in circle:
            if left != symbol:
                eliminate(equations, left, join)
        equation = equations[symbol]
        return join(repeat(equation.get(symbol, EMPTY)), equation.get(_NOTHING, EMPTY))

    def _equation(self, left: Symbol, circle: set[Symbol], is_last: bool) -> _Equation:
        equation: _Equation = {}
        for right in self._rights.get(left, ()):
            rule = _NOTHING
            end = right[-1:] if is_last else right[:1]
            if end and end[0] in circle:
                rule = end[0]
                right = right[:-1] if is_last else right[1:]
            equation[rule] = union(equation.get(rule, EMPTY), concat(*map(self._part, right)))
        return equation
