"""Lexemes that a hook narrows by the text so far: a column belongs to a table that the statement names.

Which strings such a lexeme has becomes known where the lexeme before it ends.  So a rule is an *open* branch wherever a
narrowed lexeme may be the next one (:class:`constrain.grammar.ir.Unfolding`): there the hook is asked, and what may
come first in the rest of the rule is made anew, with the strings of the hook in place of the lexeme.  The branch is
*hard* too: masks ask the hook about each text that a token may lead to.

Example: ``where: "where" sum``, ``sum: COLUMN | sum "+" COLUMN``.  Behind ``where`` stands an open branch.  When a text
has come there and the hook says ``a, b``, the branch is closed with a nonterminal of its own: ``sum'``, with the rules
``"a" | "b"`` and ``sum' "+"``, behind which the next open branch stands.  Only what may come *first* is made anew
(the left corner), so there are as many new rules as there are rules through which a narrowed lexeme may begin.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import NamedTuple

from constrain.errors import GrammarError
from constrain.grammar.ir import BY_TEXT, HARD, NEVER, OPEN, UNSURE, GrammarBuilder, NothingLeftError, Symbol
from constrain.grammar.languages.derivatives import Automaton as Membership
from constrain.grammar.languages.derivatives import bytes_in, has_empty_string
from constrain.grammar.languages.prefix_tree import prefix_tree
from constrain.grammar.languages.regular import Regular, byte_set
from constrain.grammar.lark.narrowing_costs import NarrowedCosts, closure, longest
from constrain.grammar.rules_on_demand import Automaton, Costs, Edge, Right, TextBefore, UnfoldedAutomata

Hook = Callable[[str], Iterable[str] | None]
"""The strings that a lexeme may be after a text; None for all that it may be otherwise.  It has to be a function of the
text alone, and leave a string wherever nothing else can follow."""

_ALL = 1 << 62
_MOST_TEXTS = 4096
# A hook may leave nothing where other rules go on: what the open branch itself would allow is no answer for a mask.
_ASKED = OPEN | HARD | UNSURE

Texts = tuple[tuple[str, ...] | None, ...]
"""By narrowed lexeme, in order: the strings that there are, or None for all."""


class _Whole(NamedTuple):
    """Anything but the empty string that a nonterminal derives."""

    symbol: Symbol
    texts: Texts


class _Rest(NamedTuple):
    """The rest of a right-hand side, likewise."""

    right: Right
    at: int
    texts: Texts


class Narrowing:
    """The rules of a grammar in which lexemes are narrowed.

    Parameters
    ----------
    builder : GrammarBuilder
        All rules.
    start : Symbol
        Nonterminal.
    hooks : dict of Symbol to Hook
        By lexeme.

    Raises
    ------
    GrammarError
        If a lexeme of the grammar may be empty: then nothing tells where the next one begins.
    """

    decided_by = BY_TEXT

    def __init__(self, builder: GrammarBuilder, start: Symbol, hooks: Mapping[Symbol, Hook]) -> None:
        self.start = start
        self.hooks = dict(hooks)
        self.lexemes = builder.lexemes()
        self.names = {symbol: builder.name_of(symbol) for symbol in hooks}
        self.rules: dict[Symbol, list[Right]] = {}
        for left, right in builder.productions_since(0):
            self.rules.setdefault(left, []).append(right)
        for right in (right for rights in self.rules.values() for right in rights):
            for symbol in right:
                if symbol < 0 and has_empty_string(self.lexemes[~symbol]):
                    name = builder.name_of(symbol)
                    raise GrammarError(f"with narrow no terminal may match the empty text, as {name} does")
        self.nullable = closure(self.rules, lambda right, found: found.issuperset(right), set())
        self.holding = closure(self.rules, lambda right, found: not found.isdisjoint(right), set(hooks))
        # What may begin with a narrowed lexeme, and with which.
        self.first: dict[Symbol, set[Symbol]] = {symbol: {symbol} for symbol in hooks}
        self._find_first()

    @property
    def can_be_empty(self) -> bool:
        """Whether the start derives the empty string."""
        return self.start in self.nullable

    def begin(self, unfolding: UnfoldedAutomata) -> tuple[Automaton, Hashable]:
        """The automaton for a compiled grammar, and its first state."""
        automaton = _Automaton(self, unfolding)
        state = _Whole(self.start, automaton.texts(self.first.get(self.start, set()), ""))
        if not self.can_be_empty and not any(automaton.edges(state)):
            raise GrammarError("no text is possible: what narrow gives at the beginning leaves nothing to begin with")
        return automaton, state

    def first_of(self, right: Right, at: int) -> set[Symbol]:
        """The narrowed lexemes that may come next in a right-hand side."""
        found: set[Symbol] = set()
        for symbol in right[at:]:
            found |= self.first.get(symbol, set())
            if symbol not in self.nullable:
                break
        return found

    def _find_first(self) -> None:
        changed = True
        while changed:
            changed = False
            for left, rights in self.rules.items():
                for right in rights:
                    new = self.first_of(right, 0) - self.first.get(left, set())
                    if new:
                        self.first.setdefault(left, set()).update(new)
                        changed = True


class _Automaton:
    def __init__(self, grammar: Narrowing, unfolding: UnfoldedAutomata) -> None:
        self._grammar = grammar
        self._unfolding = unfolding
        self._order = {symbol: place for place, symbol in enumerate(grammar.hooks)}
        self._nothing: Texts = (None,) * len(self._order)
        self._membership: dict[Symbol, Membership] = {}
        self._known: dict[tuple[Symbol, str], tuple[str, ...] | None] = {}
        # One of equal answers: there may be many names, and they change less often than the text.
        self._answers: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._narrowed: dict[tuple[Symbol, tuple[str, ...]], Symbol] = {}
        self._beginning: dict[Texts, set[Symbol]] = {}
        usable = unfolding.is_usable
        rules = {
            left: [right for right in rights if all(map(usable, right))]
            for left, rights in grammar.rules.items()
            if usable(left)
        }
        self._rules = rules
        # What derives something but the empty string.  A nonterminal whose rules are made elsewhere is never empty.
        others = {symbol for rights in rules.values() for right in rights for symbol in right if symbol not in rules}
        self._filled = closure(rules, lambda right, filled: not filled.isdisjoint(right), others)

    # -- what hooks say ----------------------------------------------------------------------------

    def texts(self, symbols: set[Symbol], text: str) -> Texts:
        """What the hooks of some lexemes give after a text."""
        found = list(self._nothing)
        for symbol in symbols:
            found[self._order[symbol]] = self._texts_of(symbol, text)
        return tuple(found)

    def _texts_of(self, symbol: Symbol, text: str) -> tuple[str, ...] | None:
        key = symbol, text
        if key not in self._known:
            if len(self._known) >= _MOST_TEXTS:
                self._known.clear()
                self._answers.clear()
            answer = self._ask(symbol, text)
            self._known[key] = answer and self._answers.setdefault(answer, answer)
        return self._known[key]

    def _ask(self, symbol: Symbol, text: str) -> tuple[str, ...] | None:
        name = self._grammar.names[symbol]
        answer = self._grammar.hooks[symbol](text)
        if answer is None:
            return None
        if isinstance(answer, (str, bytes)) or not isinstance(answer, Iterable):
            raise GrammarError(f'narrow of "{name}" must give a list of strings or None, not {type(answer).__name__}')
        known = self._membership.get(symbol)
        if known is None:
            known = self._membership[symbol] = Membership(self._grammar.lexemes[~symbol])
        found = set()
        for each in answer:
            if not isinstance(each, str):
                raise GrammarError(f'narrow of "{name}" must give strings, not {type(each).__name__}')
            if known.matches(each.encode("utf-8", "surrogatepass")):
                found.add(each)
        return tuple(sorted(found))

    # -- rules -------------------------------------------------------------------------------------

    def edges(self, state: _Whole | _Rest) -> tuple[list[Right], list[Edge]]:
        """The ways to end in a state, and those to go on."""
        ends: dict[Right, None] = {}
        further: dict[Edge, None] = {}
        if isinstance(state, _Rest):
            self._add(state.right, state.at, state.texts, ends, further)
        else:
            for right in self._rules.get(state.symbol, ()):
                self._add(right, 0, state.texts, ends, further)
        return list(ends), list(further)

    def _add(self, right: Right, at: int, texts: Texts, ends: dict[Right, None], further: dict[Edge, None]) -> None:
        nullable = self._grammar.nullable
        for place in range(at, len(right)):
            head = self._head(right[place], texts)
            if head is not None:
                self._add_rest(right, place + 1, head, ends, further)
            if right[place] not in nullable:
                break

    def _add_rest(
        self, right: Right, place: int, head: Symbol, ends: dict[Right, None], further: dict[Edge, None]
    ) -> None:
        """What begins with a symbol; then comes the rest of a right-hand side."""
        grammar = self._grammar
        done = [head]
        while place < len(right) and right[place] not in grammar.nullable and right[place] not in grammar.first:
            symbol = self._head(right[place], self._nothing)
            assert symbol is not None
            done.append(symbol)
            place += 1
        rest = right[place:]
        if grammar.nullable.issuperset(rest):
            ends[tuple(done)] = None
        if any(symbol in self._filled or symbol < 0 for symbol in rest):
            further[tuple(done), (right, place), _ASKED if grammar.first_of(right, place) else 0] = None

    def _head(self, symbol: Symbol, texts: Texts) -> Symbol | None:
        """The symbol of what comes next without being empty; None if nothing is left of it."""
        grammar = self._grammar
        if symbol in self._order:
            values = texts[self._order[symbol]]
            if values is None:
                return symbol
            return self._lexeme(symbol, values) if values else None
        if symbol < 0:
            return symbol
        if symbol not in self._filled:
            return None
        if symbol in grammar.first:
            kept = tuple(
                each if lexeme in grammar.first[symbol] else None
                for each, lexeme in zip(texts, self._order, strict=True)
            )
            if symbol not in self._begins(kept):
                return None
            return self._unfolding.nonterminal(self, _Whole(symbol, kept))
        if symbol in self._rules and (symbol in grammar.holding or symbol in grammar.nullable):
            return self._unfolding.nonterminal(self, _Whole(symbol, self._nothing))
        return symbol

    def _lexeme(self, symbol: Symbol, values: tuple[str, ...]) -> Symbol:
        key = symbol, values
        if key not in self._narrowed:
            language: Regular = prefix_tree(values)
            self._narrowed[key] = self._unfolding.lexeme(language, self._grammar.names[symbol])
        return self._narrowed[key]

    def _begins(self, texts: Texts) -> set[Symbol]:
        """The nonterminals through which a narrowed lexeme may begin of which something is left."""
        found = self._beginning.get(texts)
        if found is None:
            rules = {left: rights for left, rights in self._rules.items() if left in self._grammar.first}
            found = closure(rules, lambda right, begins: self._may_begin(right, texts, begins), set())
            self._beginning[texts] = found
        return found

    def _may_begin(self, right: Right, texts: Texts, begins: set[Symbol]) -> bool:
        for symbol in right:
            if symbol in self._order:
                left = texts[self._order[symbol]] != ()
            elif symbol in self._grammar.first:
                left = symbol in begins
            else:
                left = symbol < 0 or symbol in self._filled
            if left:
                return True
            if symbol not in self._grammar.nullable:
                return False
        return False

    def follow(self, state: _Whole | _Rest, edge: tuple[Right, int]) -> Hashable:
        """The state behind an edge that is not open."""
        return _Rest(*edge, self._nothing)

    def close(self, state: _Whole | _Rest, edge: tuple[Right, int], text: TextBefore) -> Hashable:
        """The state with what the hooks give after a text.  Raises NothingLeftError if they leave nothing."""
        before = text(_ALL).decode("utf-8", "replace")
        first = self._grammar.first_of(*edge)
        behind = _Rest(*edge, self.texts(first, before))
        if not any(self.edges(behind)):
            names = " and ".join(sorted(self._grammar.names[symbol] for symbol in first))
            raise NothingLeftError(f"narrow of {names} leaves nothing that could follow {before[-60:]!r}")
        return behind

    # -- costs ---------------------------------------------------------------------------------------

    def least(self, state: _Whole | _Rest, costs: Costs) -> int:
        """What it costs at most from a state on (:mod:`constrain.grammar.lark.narrowing_costs`).

        Raises
        ------
        GrammarError
            If a narrowed lexeme has no longest string.
        """
        left = frozenset(lexeme for lexeme, texts in zip(self._order, state.texts, strict=True) if texts != ())
        narrowed = self._costs(costs)
        if isinstance(state, _Whole):
            return narrowed.whole(state.symbol, left)
        return narrowed.rest(state.right, state.at, left)

    def least_behind(self, state: _Whole | _Rest, edge: tuple[Right, int], costs: Costs) -> int:
        """The same behind an edge, whatever the hooks will say."""
        return self._costs(costs).opened(*edge)

    def _costs(self, costs: Costs) -> NarrowedCosts:
        key = self, "narrowed"
        known: NarrowedCosts | None = costs.known.get(key)
        if known is None:
            most = {lexeme: self._most(lexeme, costs) for lexeme in self._order}
            known = costs.known[key] = NarrowedCosts(self._grammar, self._rules, costs.of, most)
        return known

    def _most(self, symbol: Symbol, costs: Costs) -> int:
        """What a string of a narrowed lexeme costs at most."""
        language = self._grammar.lexemes[~symbol]
        length = longest(language)
        if length is None:
            raise GrammarError(
                f'max_tokens or a completion with narrow needs a longest string of "{self._grammar.names[symbol]}": '
                "bound its repetitions, as in /[a-z]{1,64}/"
            )
        members = bytes_in(language)
        dearest = max(
            costs.of(self._unfolding.lexeme(byte_set([byte]), "")) for byte in range(256) if members >> byte & 1
        )
        return min(length * dearest, NEVER)


def narrowed(builder: GrammarBuilder, start: Symbol, hooks: Mapping[Symbol, Hook]) -> tuple[Symbol, Symbol, Narrowing]:
    """Give a grammar a start whose rules are made on demand.

    Returns
    -------
    start, unfolded : Symbol
        The new start, and the nonterminal that the third is the template of.
    template : Narrowing
    """
    template = Narrowing(builder, start, hooks)
    unfolded = builder.nonterminal(builder.name_of(start))
    # Not followed; it says whether there is a text, and that it is not empty.
    builder.add(unfolded, (start, builder.lexeme(prefix_tree(["x"]))))
    return (builder.optional(unfolded) if template.can_be_empty else unfolded), unfolded, template
