"""Where a rule with a first end may stand, nothing else that begins there goes on over its end.

    start: tool* /(.|\\n)*/            # free text, with calls in it
    tool: head /[0-9]+/ "</call>"
    head[lazy]: /(.|\\n)*/ "<call>"

A call is a call: the free text that stands beside ``head`` may not hold ``<call>``.  So the lexemes of a grammar depend
on what else may begin where they begin.  That is known from the states of an LR(0) automaton (DeRemer, 1969): a state
is a set of places in rules that may be reached together.  Here each nonterminal becomes one for each state that it is
expected in, and each lexeme is what is left of it beside the others of its state.  Rules that derive nothing are
written out before, since a state has to be left by each symbol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from typing import TypeAlias

from constrain.errors import GrammarError
from constrain.grammar.free_text import TextsThrough, text_through, text_without
from constrain.grammar.ir import GrammarBuilder, Symbol
from constrain.grammar.languages.derivatives import has_empty_string
from constrain.grammar.languages.regular import Concat, Regular, complement, concat, intersect, union
from constrain.grammar.languages.substrings import ANY_BYTES, MORE_BYTES
from constrain.grammar.languages.utf8 import ANY_TEXT
from constrain.grammar.words import few_strings
from constrain.limits import spend

_MOST_RULES = 20_000
_MOST_OPTIONAL = 10
# So many ends of one lexeme are told from each other.
_MOST_STRINGS = 500

_Rules: TypeAlias = "dict[Symbol, list[tuple[Symbol, ...]]]"
_Place: TypeAlias = "tuple[Symbol, tuple[Symbol, ...], int]"
_State: TypeAlias = "frozenset[_Place]"


def first_ends(language: Regular) -> Regular:
    """The strings of a language that have no other one as their beginning."""
    texts = _texts_behind_any(language)
    if texts is not None:
        return text_through(texts, texts, ())
    return intersect(language, complement(concat(language, MORE_BYTES)))


def separate(
    builder: GrammarBuilder, start: Symbol, ending: Mapping[Symbol, Regular], closed: Callable[[Symbol], bool]
) -> Symbol:
    """A start rule of the same texts in which nothing goes on over the first end of something that began with it.

    Parameters
    ----------
    builder : GrammarBuilder
        New rules are added, and those that there are stay.
    start : Symbol
    ending : mapping of Symbol to Regular
        The lexemes with a first end, and what they were without it.
    closed : callable
        Which symbols to leave as they are, lexemes and nonterminals.

    Raises
    ------
    GrammarError
        If that makes too many rules.
    """
    return _Separation(builder, ending, closed).run(start) if ending else start


class _Separation:
    def __init__(
        self, builder: GrammarBuilder, ending: Mapping[Symbol, Regular], closed: Callable[[Symbol], bool]
    ) -> None:
        self._builder = builder
        self._ending = ending
        self._closed = closed
        self._lexemes = builder.lexemes()
        self._count = 0
        self._states: dict[_State, dict[Symbol, _State]] = {}
        self._rules: _Rules = {}
        self._symbols: dict[tuple[_State, Symbol], Symbol] = {}
        self._strings: dict[_State, tuple[str, ...] | None] = {}
        self._excluding: dict[tuple[_State, bool], Regular] = {}

    def run(self, start: Symbol) -> Symbol:
        if start < 0 or self._closed(start):
            return start
        rules = self._reachable(start)
        nullable = self._nullable(rules)
        self._rules = {left: self._without_nothing(left, rights, nullable) for left, rights in rules.items()}
        first = frozenset((start, right, 0) for right in self._rules[start])
        if not any(self._is_crowded(state) for state in self._all_states(first)):
            return start
        whole = self._symbol(first, start)
        return self._builder.optional(whole) if start in nullable else whole

    def _charge(self) -> None:
        spend()
        self._count += 1
        if self._count > _MOST_RULES:
            raise GrammarError(
                f"rules that end at their first end stand beside so many others that more than {_MOST_RULES:,} rules "
                "would be made"
            )

    # -- rules without nothing ---------------------------------------------------------------------

    def _reachable(self, start: Symbol) -> Mapping[Symbol, list[tuple[Symbol, ...]]]:
        by_left: _Rules = {}
        for left, right in self._builder.productions_since(0):
            by_left.setdefault(left, []).append(right)
        found: _Rules = {start: by_left.get(start, [])}
        todo = [start]
        while todo:
            for right in found[todo.pop()]:
                for symbol in right:
                    if symbol >= 0 and symbol not in found and not self._closed(symbol):
                        found[symbol] = by_left.get(symbol, [])
                        todo.append(symbol)
        return found

    def _nullable(self, rules: Mapping[Symbol, list[tuple[Symbol, ...]]]) -> set[Symbol]:
        found = {
            symbol
            for rights in rules.values()
            for right in rights
            for symbol in right
            if symbol < 0 and not self._closed(symbol) and has_empty_string(self._lexemes[~symbol])
        }
        while True:
            more = {left for left, rights in rules.items() if any(found.issuperset(right) for right in rights)} - found
            if not more:
                return found
            found |= more

    def _without_nothing(
        self, left: Symbol, rights: list[tuple[Symbol, ...]], nullable: set[Symbol]
    ) -> list[tuple[Symbol, ...]]:
        """The rules of a symbol for all but the empty text, of symbols for all but the empty text."""
        found: dict[tuple[Symbol, ...], None] = {}
        for right in rights:
            optional = [index for index, symbol in enumerate(right) if symbol in nullable]
            if len(optional) > _MOST_OPTIONAL:
                raise GrammarError(
                    f"a rule with more than {_MOST_OPTIONAL} parts that may be empty, in a grammar with rules that end "
                    "at their first end"
                )
            for count in range(len(optional) + 1):
                for dropped in combinations(optional, count):
                    self._charge()
                    kept = tuple(symbol for index, symbol in enumerate(right) if index not in dropped)
                    if kept and kept != (left,):
                        found[kept] = None
        return list(found)

    # -- states ------------------------------------------------------------------------------------

    def _closure(self, kernel: _State) -> Iterator[_Place]:
        """The places that may be reached together with some."""
        seen = set(kernel)
        todo = list(kernel)
        while todo:
            place = todo.pop()
            yield place
            symbol = _next(place)
            if symbol is not None and symbol in self._rules:
                for right in self._rules[symbol]:
                    begin = (symbol, right, 0)
                    if begin not in seen:
                        self._charge()
                        seen.add(begin)
                        todo.append(begin)

    def _steps(self, state: _State) -> dict[Symbol, _State]:
        """The states behind one, by symbol."""
        known = self._states.get(state)
        if known is None:
            found: dict[Symbol, set[_Place]] = {}
            for place in self._closure(state):
                symbol = _next(place)
                if symbol is not None:
                    left, right, dot = place
                    found.setdefault(symbol, set()).add((left, right, dot + 1))
            known = self._states[state] = {symbol: frozenset(places) for symbol, places in found.items()}
        return known

    def _all_states(self, first: _State) -> list[_State]:
        seen = {first: None}
        todo = [first]
        while todo:
            for state in self._steps(todo.pop()).values():
                if state not in seen:
                    seen[state] = None
                    todo.append(state)
        return list(seen)

    def _beside(self, state: _State) -> tuple[list[Symbol], list[Symbol]]:
        """The lexemes that may begin in a state: those with a first end, and others."""
        lexemes = sorted(symbol for symbol in self._steps(state) if symbol < 0)
        ending = [symbol for symbol in lexemes if symbol in self._ending]
        return ending, [symbol for symbol in lexemes if symbol not in self._ending and not self._closed(symbol)]

    def _is_crowded(self, state: _State) -> bool:
        ending, others = self._beside(state)
        return bool(ending) and len(ending) + len(others) > 1

    # -- the new rules -----------------------------------------------------------------------------

    def _symbol(self, state: _State, symbol: Symbol) -> Symbol:
        """What a symbol is where a state is, for all but the empty text."""
        todo: list[tuple[_State, Symbol]] = []
        found = self._begin(state, symbol, todo)
        while todo:
            state, symbol = todo.pop()
            for right in self._rules[symbol]:
                self._charge()
                here, symbols = state, []
                for each in right:
                    symbols.append(self._begin(here, each, todo))
                    here = self._steps(here)[each]
                self._builder.add(self._symbols[state, symbol], symbols)
        return found

    def _begin(self, state: _State, symbol: Symbol, todo: list[tuple[_State, Symbol]]) -> Symbol:
        key = state, symbol
        known = self._symbols.get(key)
        if known is None:
            if symbol < 0:
                known = self._lexeme(state, symbol)
            elif symbol not in self._rules:
                known = symbol
            else:
                known = self._builder.nonterminal(self._builder.name_of(symbol))
                self._builder.copy_marks(symbol, known)
                todo.append(key)
            self._symbols[key] = known
        return known

    def _lexeme(self, state: _State, symbol: Symbol) -> Symbol:
        """What is left of a lexeme beside others with a first end."""
        if self._closed(symbol):
            return symbol
        ending, _ = self._beside(state)
        language = self._lexemes[~symbol]
        if not ending or ending == [symbol]:
            return self._builder.lexeme(_not_empty(language), self._builder.name_of(symbol))
        stops = self._stops(state, ending)
        if stops is not None and symbol in self._ending:
            own = _texts_behind_any(self._ending[symbol])
            assert own is not None
            return TextsThrough(self._builder, stops).write(own, self._builder.name_of(symbol))
        if stops is not None and language == ANY_TEXT:
            language = text_without(stops)
        else:
            language = intersect(language, self._without(state, ending, symbol in self._ending))
        return self._builder.lexeme(_not_empty(language), self._builder.name_of(symbol))

    def _stops(self, state: _State, ending: list[Symbol]) -> tuple[str, ...] | None:
        """The strings that all lexemes with a first end in a state end with, if before them stands any text."""
        if state not in self._strings:
            found = [_texts_behind_any(self._ending[symbol]) for symbol in ending]
            all_known = [texts for texts in found if texts is not None]
            whole = tuple(sorted({text for texts in all_known for text in texts}))
            self._strings[state] = whole if len(all_known) == len(found) else None
        return self._strings[state]

    def _without(self, state: _State, ending: list[Symbol], may_end: bool) -> Regular:
        """What has no first end of a state before its own end, or has none at all."""
        key = state, may_end
        if key not in self._excluding:
            rest = MORE_BYTES if may_end else ANY_BYTES
            self._excluding[key] = complement(concat(union(*(self._ending[symbol] for symbol in ending)), rest))
        return self._excluding[key]


def _not_empty(language: Regular) -> Regular:
    return intersect(language, MORE_BYTES) if has_empty_string(language) else language


def _texts_behind_any(language: Regular) -> tuple[str, ...] | None:
    """The strings of a language that is any text and one of them behind it; None for any other."""
    if not isinstance(language, Concat) or language.parts[0] != ANY_TEXT:
        return None
    strings = few_strings(concat(*language.parts[1:]), _MOST_STRINGS)
    if not strings or b"" in strings:
        return None
    try:
        return tuple(string.decode() for string in strings)
    except UnicodeDecodeError:
        return None


def _next(place: _Place) -> Symbol | None:
    _, right, dot = place
    return right[dot] if dot < len(right) else None
