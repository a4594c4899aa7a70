"""Whether every text that a lexer and an LALR parser have read can be finished; a proof, or what stands in its way.

A parser alone can finish whatever stack it has reached.  With a lexer in front of it that takes the longest match, and
with conflicts that were resolved, that is not certain: after ``/[a-z]+/`` no lexeme can follow that begins with a
letter, if nothing may stand between.  A mask must not lead there.

For any stack one way to finish is fixed beforehand: the cheapest in terminals, innermost rule first.  Two things are
checked for all its steps, whatever the stack is:

* The parser reduces where this way does (conflicts are resolved for it).
* Behind each terminal the next one can be written so that the lexer reads just that: it begins with a character with
  which no lexeme goes on that the lexer would rather have, or with an ignored one for which that holds.

Where one of these does not hold, some things more are tried:

* The rule or terminal at fault is made dear, and the way that is the cheapest then is taken, some times.
* Behind a text that is given, another terminal is written first, if the parser takes it above any stack and the way
  from there holds: behind a comment, the line end that the next statement needs in front of it.
* All that is written is made of few characters, with which the lexeme that goes on never ends: behind a lone quote,
  a string that would need a second one.

With an indenter between the lexer and the parser, an indent or a dedent can be had behind the end of a line only, whose
text can be written as needed.  Where a line has ended already, its text says what comes; the engine allows it only if
some terminal can follow, or the text can end there.  In all that follows from that terminal another line ends before
the next dedent.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Set
from typing import Any

from constrain.grammar.lark.indenting import Indenting
from constrain.grammar.lark.lexing import Lexing
from constrain.grammar.lark.shifts import Shifts
from constrain.limits import spend

END = "$END"

_NEVER = 1 << 40
_AVOIDED = 10_000
_MOST_AVOIDED = 20

_Event = tuple[str, int, str]
"""A terminal, the number of the parser's state behind it, and the terminal that has to follow there."""


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
    shifts : Shifts
        Of these states.
    indenting : Indenting, optional
        What stands between the lexer and the parser.
    """

    def __init__(
        self,
        states: dict[Any, dict[str, Any]],
        start: Any,
        lexing: Lexing,
        numbers: dict[Any, int],
        shifts: Shifts,
        indenting: Indenting | None = None,
    ) -> None:
        self._indenting = indenting
        self._made_of_lines = set() if indenting is None else {indenting.indent, indenting.dedent}
        self._states = states
        self._start = start
        self._lexing = lexing
        self._numbers = numbers
        self._by_number = {number: state for state, number in numbers.items()}
        self._rules = {item.rule for state in states for item in state}
        self._avoided: set[str] = set()
        self._avoided_rules: set[Any] = set()
        # Nonterminals whose cheapest text is empty.
        self._empty: set[str] = set()
        self._is_lexical = self._has_alphabet = False
        self._shifts = shifts
        self._read_in: dict[tuple[str, Any], frozenset[frozenset[str]]] = {}

    # -- costs -----------------------------------------------------------------------------------

    def _find_cheapest_rules(self) -> None:
        changed = True
        while changed:
            changed = False
            for rule in sorted(self._rules, key=str):
                spend()
                cost = self._cost_of_rule(rule, 0)
                if cost < self._cost.get(rule.origin.name, _NEVER):
                    self._cost[rule.origin.name] = cost
                    self._cheapest[rule.origin.name] = rule
                    changed = True
        self._empty = set()
        changed = True
        while changed:
            changed = False
            for name, rule in self._cheapest.items():
                spend()
                if name not in self._empty and all(symbol.name in self._empty for symbol in rule.expansion):
                    self._empty.add(name)
                    changed = True

    def _cost_of_rule(self, rule: Any, index: int) -> int:
        """What the symbols of a rule from an index on cost, and its reduction."""
        avoided = _AVOIDED if rule in self._avoided_rules else 0
        return avoided + sum(self._cost_of(symbol) for symbol in rule.expansion[index:])

    def _cost_of(self, symbol: Any) -> int:
        if symbol.is_term:
            if symbol.name in self._avoided or symbol.name in self._made_of_lines:
                return _AVOIDED
            # Short texts have few characters, and with those little else ends.
            return self._lexing.least_length(symbol.name) if self._has_alphabet else 1
        return self._cost.get(symbol.name, _NEVER)

    def _ways_out(self, state: Any) -> dict[str, Any]:
        """By symbol: the item with which a stack is finished on which the symbol stands above the state."""
        cost: dict[str, int] = {}
        item_of: dict[str, Any] = {}
        waiting: dict[str, list[Any]] = {}
        todo: list[tuple[int, str, int]] = []
        order: dict[int, Any] = {}

        def offer(item: Any, behind: int) -> None:
            total = behind + self._cost_of_rule(item.rule, item.index + 1)
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

    # -- the proof -------------------------------------------------------------------------------

    def obstacle(self) -> str:
        """What stands in the way of finishing every text, in words; empty if nothing does."""
        if self._indenting is not None and (obstacle := self._unbalanced(self._indenting)):
            return obstacle
        obstacle = self._least_obstacle(avoids_rules=False)
        if self._indenting is not None:
            # What is proved of line ends goes by the way that is the cheapest in terminals.
            return obstacle
        if not obstacle:
            return ""
        # Any other way to finish is as good, if the proof holds for it.
        for has_alphabet in (True, False) if self._is_lexical else (False,):
            self._has_alphabet = has_alphabet
            if not self._least_obstacle(avoids_rules=True):
                return ""
        return obstacle

    def _least_obstacle(self, *, avoids_rules: bool) -> str:
        """What stands in the way when terminals that were at fault are avoided, and before them rules if wanted."""
        self._avoided.clear()
        self._avoided_rules.clear()
        while True:
            obstacle, token, rule = self._obstacle()
            if not obstacle or len(self._avoided) + len(self._avoided_rules) >= _MOST_AVOIDED:
                return obstacle
            # Another way may do without this reduction, or without this terminal.
            if avoids_rules and rule is not None and rule not in self._avoided_rules:
                self._avoided_rules.add(rule)
            elif token and token not in self._avoided:
                self._avoided.add(token)
            else:
                return obstacle

    def _obstacle(self) -> tuple[str, str, Any]:
        """The same for one way to finish; and the terminal and the rule that are at fault, if one is."""
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
            is_own = not rule.origin.name.startswith("$root_")
            if is_own and any(self._cost_of(symbol) >= _NEVER for symbol in rule.expansion):
                return f"the rule {rule.origin.name} has an alternative that no text can have: it never ends", "", None
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
                        self._is_lexical = False
                        return self._conflict(rule, token), token if token != END else "", rule
        self._is_lexical = True
        return *self._lexical_obstacle(), None

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
        origins = self._shifts.origins(state, rule, item.index)
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
            if symbol.name in self._empty:
                return None
            symbol = next(part for part in self._cheapest[symbol.name].expansion if part.name not in self._empty)
        return str(symbol.name)

    def _conflict(self, rule: Any, token: str) -> str:
        what = "the end of the text" if token == END else token
        return (
            f"a text within {rule.origin.name} may be impossible to finish: before {what} the parser does not reduce "
            f"<{rule.origin.name} : {' '.join(symbol.name for symbol in rule.expansion)}>, as conflicts are resolved"
        )

    def _unbalanced(self, indenting: Indenting) -> str:
        """What is wrong with a rule that opens a bracket or an indent and does not close it, in words; or empty."""
        holds_lines = {indenting.newline, indenting.indent, indenting.dedent}
        changed = True
        while changed:
            changed = False
            for rule in self._rules:
                if rule.origin.name not in holds_lines and any(each.name in holds_lines for each in rule.expansion):
                    holds_lines.add(rule.origin.name)
                    changed = True
        opening, closing = {*indenting.opening, indenting.indent}, {*indenting.closing, indenting.dedent}
        for rule in sorted(self._rules, key=str):
            brackets: list[bool] = []
            for symbol in rule.expansion:
                if symbol.name in opening:
                    brackets.append(symbol.name == indenting.indent)
                elif symbol.name in closing:
                    if not brackets or brackets.pop() != (symbol.name == indenting.dedent):
                        return f"the rule {rule.origin.name} closes a bracket or an indent that it does not open"
                if symbol.name in holds_lines and not all(brackets):
                    return f"the rule {rule.origin.name} ends a line within brackets, where the indenter sees no line"
            if brackets:
                return f"the rule {rule.origin.name} opens a bracket or an indent that it does not close"
        return ""

    def _line_obstacle(self) -> tuple[str, str]:
        """Why an indent or a dedent may be impossible where it is needed; ("", "") if that cannot be."""
        indenting = self._indenting
        assert indenting is not None
        for (kind, state, name), tokens in self._follow.items():
            if name not in self._lexing.automata and name not in self._made_of_lines:
                continue
            after = self._states[state][name][1]
            for token in sorted(tokens & self._made_of_lines):
                if token == indenting.dedent:
                    works = name in (indenting.dedent, indenting.newline)
                    works = works or (kind == "stack" and name == indenting.indent)
                else:
                    only = set(self._states[after]) <= {indenting.indent}
                    works = name == indenting.newline and (kind == "made" or only)
                if not works:
                    return f"a text may be impossible to finish: {token} would have to come behind {name}", token
        lines = self._lexing.goes_on(indenting.newline)
        for name in sorted(self._lexing.automata):
            if name != indenting.newline and name not in self._lexing.ignored and not self._lexing.firsts(name) - lines:
                return f"{name} can never be read behind {indenting.newline}, which goes on with it", name
        return "", ""

    def _lexical_obstacle(self) -> tuple[str, str]:
        lexing = self._lexing
        if self._indenting is not None:
            obstacle, token = self._line_obstacle()
            if obstacle:
                return obstacle, token
        roots = [self._first(item.next) for item in self._start if item.rule.origin.name.startswith("$root_")]
        begins = {token for token in roots if token is not None}
        first = self._numbers[self._start]
        made, given = self._events()
        for token in begins:
            for ignored in lexing.ignored_in(first):
                given.setdefault((ignored, first, token), set()).add(self._start)
        lexing.write_with(None)
        if self._has_alphabet:
            begun = {(first, token) for token in begins}
            lexing.write_with(self._alphabet(begun | {event[1:] for event in (*made, *given)}))
        for token in sorted(begins):
            if token in self._made_of_lines:
                return f"no text is possible: it would begin with {token}", token
            if not lexing.can_follow(None, first, token):
                reason = f"no text may be possible: it would begin with {token}, which the lexer never reads there"
                return reason, token
        wrong = {
            event: sources
            for events in (made, given)
            for event, sources in events.items()
            if not self._can_follow(*event, sources)
        }
        for event, sources in sorted(wrong.items()):
            if event in made or not self._has_detour(event, sources, wrong.keys()):
                return self._unread(*event), event[2]
        return "", ""

    def _events(self) -> tuple[dict[_Event, set[Any]], dict[_Event, set[Any]]]:
        """What has to follow what where both are written, and where the first stands in the text.

        By event: the states in which the first of the two may be shifted, or is ignored.
        """
        made: dict[_Event, set[Any]] = {}
        given: dict[_Event, set[Any]] = {}
        ignored_in: dict[_Event, set[Any]] = {}
        for (kind, state, name), tokens in self._follow.items():
            # An indent or a dedent is made of the end of a line.
            before = self._indenting.newline if self._indenting and name in self._made_of_lines else name
            if before in self._lexing.automata:
                behind = self._states[state][name][1]
                after = self._numbers[behind]
                for token in tokens - self._made_of_lines - {END}:
                    (made if kind == "made" else given).setdefault((before, after, token), set()).add(state)
                    for ignored in self._lexing.ignored_in(after):
                        ignored_in[ignored, after, token] = {behind}
        return made, {**given, **ignored_in}

    def _alphabet(self, written: set[tuple[int, str]]) -> frozenset[int]:
        """The classes of characters of the shortest texts of some terminals in states, and of what is ignored there."""
        found: set[int] = set()
        for state, token in sorted(written):
            spend()
            found |= self._lexing.classes("".join(self._lexing.written(state, token)[:1]))
            for ignored in self._lexing.ignored_in(state):
                found |= self._lexing.classes("".join(t for t in self._lexing.written(state, ignored) if len(t) == 1))
        return frozenset(found)

    def _can_follow(self, before: str, after: int, token: str, sources: set[Any]) -> bool:
        if self._lexing.can_follow(before, after, token):
            return True
        if self._indenting is not None:
            return False
        return all(self._lexing.can_follow(before, after, token, self._contexts(before, source)) for source in sources)

    def _contexts(self, name: str, source: Any) -> frozenset[frozenset[str]]:
        """What the lexer may have looked for where it read a terminal that is shifted, or ignored, in a state."""
        if name in self._lexing.ignored:
            return frozenset((self._lexing.contexts[self._numbers[source]],))
        if (name, source) not in self._read_in:
            self._read_in[name, source] = frozenset(
                self._lexing.contexts[self._numbers[state]]
                for state, row in self._states.items()
                if name in row and source in self._shifts.of(state, name)[0]
            )
        return self._read_in[name, source]

    def _has_detour(self, event: _Event, sources: set[Any], wrong: Set[_Event]) -> bool:
        """Whether something else can be written in place of what has to follow, from where the text is finished.

        ``wrong``: the events of which it is not certain that they are possible.
        """
        before, after, _ = event
        state = self._by_number[after]
        for name in sorted(self._lexing.automata):
            spend()
            shifted_in, is_certain = self._shifts.of(state, name)
            if self._indenting is None and is_certain and self._can_follow(before, after, name, sources):
                behind = [
                    (name, self._numbers[self._states[source][name][1]], token)
                    for source in shifted_in
                    for token in self._follow["stack", source, name]
                ]
                if wrong.isdisjoint(behind):
                    return True
        return False

    def _unread(self, before: str, after: int, token: str) -> str:
        if self._lexing.can_follow(None, after, token):
            reason = (
                f"the lexer may read on, in {self._lexing.reads_on_as(before, after, token)}, where {token} has to "
                f"follow {before}, and nothing that is ignored keeps them apart"
            )
        else:
            reason = f"behind {before} the lexer never reads {token}, since another terminal comes first"
        return f"a text may be impossible to finish: {reason}"
