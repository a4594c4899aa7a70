"""Whether every text that a lexer and an LALR parser have read can be finished; a proof, or what stands in its way.

A parser alone can finish whatever stack it has reached.  With a lexer in front of it that takes the longest match, and
with conflicts that were resolved, that is not certain: after ``/[a-z]+/`` no lexeme can follow that begins with a
letter, if nothing may stand between.  A mask must not lead there.

For any stack one way to finish is fixed beforehand: the cheapest in terminals, innermost rule first.  Two things are
checked for all its steps, whatever the stack is:

* The parser reduces where this way does (conflicts are resolved for it).
* Behind each terminal the next one can be written so that the lexer reads just that: it begins with a character with
  which no lexeme goes on that the lexer would rather have, or with an ignored one for which that holds.
"""

from __future__ import annotations

import heapq
import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from lark.lexer import PatternStr, TerminalDef

from constrain.grammar.lark.first_match import Automaton
from constrain.limits import spend

END = "$END"

_WITNESSES = 12
_NEVER = 1 << 40
_AVOIDED = 10_000
_MOST_AVOIDED = 20

Steps = list[tuple[str, int, str]]


@dataclass
class Lexing:
    """What the lexer of a parser's state looks for, and the texts of terminals.

    Attributes
    ----------
    terminals : list of TerminalDef
        In the lexer's order.
    automata : dict of str to Automaton
        All over one partition of the characters.
    contexts : list of frozenset of str
        By parser state: the terminals that the lexer looks for.
    inside : dict of str to list of TerminalDef
        By regex: the strings that it matches as a whole.
    ignored : set of str
    """

    terminals: list[TerminalDef]
    automata: dict[str, Automaton]
    contexts: list[frozenset[str]]
    inside: dict[str, list[TerminalDef]]
    ignored: set[str]
    _bad: dict[str, frozenset[int]] = field(default_factory=dict)
    _read: dict[tuple[frozenset[str], str], tuple[str, str] | None] = field(default_factory=dict)
    _regexes: dict[str, re.Pattern[str]] = field(default_factory=dict)
    _together: dict[str, set[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._regexes = {terminal.name: re.compile(terminal.pattern.to_regexp()) for terminal in self.terminals}
        rank = {terminal.name: i for i, terminal in enumerate(self.terminals)}
        last = dict(rank)
        for name, strings in self.inside.items():
            for string in strings:
                last[string.name] = max(last[string.name], rank[name])
        for context in set(self.contexts):
            for name in context:
                self._together.setdefault(name, set()).update(other for other in context if rank[other] <= last[name])

    def goes_on(self, name: str) -> frozenset[int]:
        """The classes of characters behind a text of a terminal with which the lexer might find another match."""
        if name not in self._bad:
            found: set[int] = set()
            for other in self._together.get(name, ()):
                found |= self.automata[name].continuations(self.automata[other])
            self._bad[name] = frozenset(found)
        return self._bad[name]

    def read(self, state: int, text: str) -> tuple[str, str] | None:
        """The first token that Lark's lexer reads of a text in a state of the parser: its name and text."""
        context = self.contexts[state]
        key = context, text
        if key not in self._read:
            self._read[key] = self._first_token(context, text)
        return self._read[key]

    def _first_token(self, context: frozenset[str], text: str) -> tuple[str, str] | None:
        within = {
            string.name
            for name in context
            for string in self.inside[name]
            if set(string.pattern.flags) <= set(self._flags(name))
        }
        for terminal in self.terminals:
            spend()
            if terminal.name in context and terminal.name not in within:
                match = self._regexes[terminal.name].match(text)
                if match is not None:
                    value = match.group()
                    if terminal.name not in self.ignored:
                        for string in self.inside[terminal.name]:
                            if string.name in context and self._regexes[string.name].fullmatch(value):
                                return string.name, value
                    return terminal.name, value
        return None

    def _flags(self, name: str) -> Iterable[str]:
        return next(terminal.pattern.flags for terminal in self.terminals if terminal.name == name)

    def can_follow(self, before: str | None, state: int, name: str) -> bool:
        """Whether a terminal can be written behind any text of another one (None: at the start) in a parser's state."""
        if name in self.ignored:
            return False
        automaton = self.automata[name]
        texts = [text for text in self._texts(name) if self.read(state, text) == (name, text)]
        firsts = {automaton.class_of(text[0]) for text in texts}
        if before is None:
            return bool(texts)
        refused = self.goes_on(before)
        if firsts - refused:
            return True
        for ignored in self.ignored & self.contexts[state]:
            between = self.goes_on(ignored)
            if not firsts - between:
                continue
            for text in self._texts(ignored):
                if automaton.class_of(text[0]) not in refused and self.read(state, text) == (ignored, text):
                    return True
        return False

    def _texts(self, name: str) -> list[str]:
        terminal = next(terminal for terminal in self.terminals if terminal.name == name)
        if isinstance(terminal.pattern, PatternStr):
            return [terminal.pattern.value]
        return self.automata[name].shortest(_WITNESSES)


class Finishing:
    """The way in which stacks of an LALR parser are finished.

    Parameters
    ----------
    states : dict
        Of Lark's table: by set of items, the actions by name.
    start : set of items
        The state in which a text begins.
    lexing : Lexing
    numbers : dict
        The numbers of the states.
    """

    def __init__(self, states: dict[Any, dict[str, Any]], start: Any, lexing: Lexing, numbers: dict[Any, int]) -> None:
        self._states = states
        self._start = start
        self._lexing = lexing
        self._numbers = numbers
        self._rules = {item.rule for state in states for item in state}
        self._avoided: set[str] = set()
        self._origins: dict[tuple[Any, Any, int], set[Any]] = {}
        self._find_origins()

    # -- costs -----------------------------------------------------------------------------------

    def _find_cheapest_rules(self) -> None:
        changed = True
        while changed:
            changed = False
            for rule in sorted(self._rules, key=str):
                spend()
                cost = sum(self._cost_of(symbol) for symbol in rule.expansion)
                if cost < self._cost.get(rule.origin.name, _NEVER):
                    self._cost[rule.origin.name] = cost
                    self._cheapest[rule.origin.name] = rule
                    changed = True

    def _cost_of(self, symbol: Any) -> int:
        if symbol.is_term:
            return _AVOIDED if symbol.name in self._avoided else 1
        return self._cost.get(symbol.name, _NEVER)

    def _ways_out(self, state: Any) -> dict[str, Any]:
        """By symbol: the item with which a stack is finished on which the symbol stands above the state."""
        cost: dict[str, int] = {}
        item_of: dict[str, Any] = {}
        waiting: dict[str, list[Any]] = {}
        todo: list[tuple[int, str, int]] = []
        order: dict[int, Any] = {}

        def offer(item: Any, behind: int) -> None:
            total = behind + sum(self._cost_of(symbol) for symbol in item.rule.expansion[item.index + 1 :])
            order[len(order)] = item
            heapq.heappush(todo, (total, str(item), len(order) - 1))

        for item in state:
            if item.is_satisfied:
                continue
            if item.index > 0 or item.rule.origin.name.startswith("$root_"):
                offer(item, 0)
            else:
                waiting.setdefault(item.rule.origin.name, []).append(item)
        while todo:
            spend()
            total, _, number = heapq.heappop(todo)
            item = order[number]
            name = item.next.name
            if name in cost:
                continue
            cost[name], item_of[name] = total, item
            for inner in waiting.get(name, ()):
                offer(inner, total)
        return item_of

    def _find_origins(self) -> None:
        """For each item in a state: the states in which its rule can have begun."""
        for origin in self._states:
            for item in origin:
                if item.index == 0:
                    state = origin
                    for index, symbol in enumerate(item.rule.expansion):
                        spend()
                        self._origins.setdefault((state, item.rule, index), set()).add(origin)
                        state = self._states[state][symbol.name][1]

    # -- the proof -------------------------------------------------------------------------------

    def obstacle(self) -> str:
        """What stands in the way of finishing every text, in words; empty if nothing does."""
        while True:
            obstacle, token = self._obstacle()
            # Another way may do without this terminal.
            if not obstacle or not token or token in self._avoided or len(self._avoided) == _MOST_AVOIDED:
                return obstacle
            self._avoided.add(token)

    def _obstacle(self) -> tuple[str, str]:
        """The same for one way to finish; and the terminal that is at fault, if one is."""
        self._cost: dict[str, int] = {}
        self._cheapest: dict[str, Any] = {}
        self._find_cheapest_rules()
        self._ways = {state: self._ways_out(state) for state in self._states}
        # What stands behind a symbol above a state: `stack` if a stack is finished, `made` if it is made on the way.
        self._follow: dict[tuple[str, Any, str], set[str]] = {}
        self._users: dict[tuple[str, Any, str], set[tuple[str, Any, str]]] = {}
        self._todo: deque[tuple[str, Any, str]] = deque()
        self._reduced: dict[tuple[str, Any, str], set[tuple[Any, Any]]] = {}
        self._made: set[tuple[Any, str]] = set()
        for rule in sorted(self._rules, key=str):
            if any(self._cost_of(symbol) >= _NEVER for symbol in rule.expansion):
                return f"the rule {rule.origin.name} has an alternative that no text can have: it never ends", ""
        for state, row in self._states.items():
            for name, (action, _) in row.items():
                if str(action) == "Shift" and name in self._ways[state]:
                    self._finish(state, name)
        while self._todo:
            spend()
            node = self._todo.popleft()
            for user in self._users.get(node, ()):
                self._add(user, self._follow[node])
        for (kind, _, name), ends in self._reduced.items():
            for state, rule in ends:
                for token in self._follow.get((kind, _, name), ()):
                    if self._states[state].get(token, (None, None))[1] is not rule:
                        return self._conflict(rule, token), token if token != END else ""
        return self._lexical_obstacle()

    def _add(self, node: tuple[str, Any, str], tokens: set[str]) -> None:
        known = self._follow.setdefault(node, set())
        if not tokens <= known:
            known |= tokens
            self._todo.append(node)

    def _use(self, node: tuple[str, Any, str], source: tuple[str, Any, str]) -> None:
        self._users.setdefault(source, set()).add(node)
        self._add(node, set(self._follow.get(source, ())))

    def _finish(self, state: Any, name: str) -> None:
        """A stack with a symbol above a state: the rest of the item is made, and its rule reduced."""
        item = self._ways[state][name]
        rule = item.rule
        node = ("stack", state, name)
        if rule.origin.name.startswith("$root_"):
            self._add(node, {END})
            return
        after = self._states[state][name][1]
        origins = self._origins[state, rule, item.index]
        behind = [("stack", origin, rule.origin.name) for origin in origins]
        last = self._make(node, after, rule.expansion[item.index + 1 :], behind)
        for source in behind:
            self._reduced.setdefault(source, set()).add((last, rule))

    def _make(self, node: tuple[str, Any, str], state: Any, symbols: Any, behind: list[tuple[str, Any, str]]) -> Any:
        """Symbols are made behind a node, then comes what is behind; returns the state on top in the end."""
        pending = [node]
        for symbol in symbols:
            spend()
            first = self._first(symbol)
            here = ("made", state, symbol.name)
            for waiting in pending:
                if first is not None:
                    self._add(waiting, {first})
                else:
                    self._use(waiting, here)
            pending = [here]
            if not symbol.is_term:
                self._derive(state, symbol.name)
            state = self._states[state][symbol.name][1]
        for waiting in pending:
            for source in behind:
                self._use(waiting, source)
        return state

    def _derive(self, state: Any, name: str) -> None:
        """A nonterminal is made above a state, by its cheapest rule."""
        if (state, name) in self._made:
            return
        self._made.add((state, name))
        rule = self._cheapest[name]
        node = ("made", state, name)
        if rule.expansion:
            symbol = rule.expansion[0]
            here = ("made", state, symbol.name)
            if not symbol.is_term:
                self._derive(state, symbol.name)
            last = self._make(here, self._states[state][symbol.name][1], rule.expansion[1:], [node])
        else:
            last = state
        self._reduced.setdefault(node, set()).add((last, rule))

    def _first(self, symbol: Any) -> str | None:
        """The first terminal of the cheapest text of a symbol; None if that is empty."""
        while not symbol.is_term:
            if self._cost[symbol.name] == 0:
                return None
            symbol = next(part for part in self._cheapest[symbol.name].expansion if self._cost_of(part))
        return str(symbol.name)

    def _conflict(self, rule: Any, token: str) -> str:
        what = "the end of the text" if token == END else token
        return (
            f"a text within {rule.origin.name} may be impossible to finish: before {what} the parser does not reduce "
            f"<{rule.origin.name} : {' '.join(symbol.name for symbol in rule.expansion)}>, as conflicts are resolved"
        )

    def _lexical_obstacle(self) -> tuple[str, str]:
        lexing = self._lexing
        events: set[tuple[str, int, str]] = set()
        begins = {self._first(item.next) for item in self._start if item.rule.origin.name.startswith("$root_")}
        for token in sorted(token for token in begins if token is not None):
            if not lexing.can_follow(None, self._numbers[self._start], token):
                reason = f"no text may be possible: it would begin with {token}, which the lexer never reads there"
                return reason, token
            first = self._numbers[self._start]
            events |= {(ignored, first, token) for ignored in lexing.ignored & lexing.contexts[first]}
        for (_, state, name), tokens in self._follow.items():
            if name in lexing.automata:
                after = self._numbers[self._states[state][name][1]]
                events |= {(name, after, token) for token in tokens if token != END}
        for _, after, token in list(events):
            events |= {(ignored, after, token) for ignored in lexing.ignored & lexing.contexts[after]}
        for before, after, token in sorted(events):
            spend()
            if not lexing.can_follow(before, after, token):
                if lexing.can_follow(None, after, token):
                    reason = (
                        f"the lexer may read on where {token} has to follow {before}, and nothing that is ignored "
                        "keeps them apart"
                    )
                else:
                    reason = f"behind {before} the lexer never reads {token}, since another terminal comes first"
                return f"a text may be impossible to finish: {reason}", token
        return "", ""
