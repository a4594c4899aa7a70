"""Whether every text that a lexer and an LALR parser have read can be finished; a proof, or what stands in its way.

A parser alone can finish whatever stack it has reached.  With a lexer in front of it that takes the longest match, and
with conflicts that were resolved, that is not certain: after ``/[a-z]+/`` no lexeme can follow that begins with a
letter, if nothing may stand between.  A mask must not lead there.

For any stack one way to finish is fixed beforehand: the cheapest in terminals, innermost rule first.  Two things are
checked for all its steps, whatever the stack is:

* The parser reduces where this way does (conflicts are resolved for it).
* Behind each terminal the next one can be written so that the lexer reads just that: it begins with a character with
  which no lexeme goes on that the lexer would rather have, or with an ignored one for which that holds.

Where one of these does not hold, the rule or terminal at fault is made dear, and the way that is the cheapest then is
tried, some times.

With an indenter between the lexer and the parser, an indent or a dedent can be had behind the end of a line only, whose
text can be written as needed.  Where a line has ended already, its text says what comes; the engine allows it only if
some terminal can follow, or the text can end there.  In all that follows from that terminal another line ends before
the next dedent.
"""

from __future__ import annotations

import heapq
import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from lark.lexer import PatternStr, TerminalDef

from constrain.errors import GrammarError
from constrain.grammar.lark.first_match import Automaton
from constrain.grammar.lark.indenting import Indenting
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
    newline : str
        The terminal of line ends that an indenter sees; empty without one.
    re_module : module
        What reads regexes.
    """

    terminals: list[TerminalDef]
    automata: dict[str, Automaton]
    contexts: list[frozenset[str]]
    inside: dict[str, list[TerminalDef]]
    ignored: set[str]
    newline: str = ""
    re_module: Any = re
    _hidden: set[str] | None = None
    _bad: dict[str, frozenset[int]] = field(default_factory=dict)
    _read: dict[tuple[frozenset[str], str], tuple[str, str] | None] = field(default_factory=dict)
    _regexes: dict[str, Any] = field(default_factory=dict)
    _rank: dict[str, int] = field(default_factory=dict)
    _last: dict[str, int] = field(default_factory=dict)
    _contexts_of: dict[str, list[frozenset[str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._regexes = {
            terminal.name: self.re_module.compile(terminal.pattern.to_regexp()) for terminal in self.terminals
        }
        self._rank = {terminal.name: i for i, terminal in enumerate(self.terminals)}
        self._last = dict(self._rank)
        for name, strings in self.inside.items():
            for string in strings:
                self._last[string.name] = max(self._last[string.name], self._rank[name])
        for context in set(self.contexts):
            spend(len(context))
            for name in context:
                self._contexts_of.setdefault(name, []).append(context)

    def _together(self, name: str) -> set[str]:
        """The terminals that the lexer may find in the place of one."""
        found: set[str] = set()
        for context in self._contexts_of.get(name, ()):
            spend(len(context))
            found.update(other for other in context if self._rank[other] <= self._last[name])
        return found

    def ignored_in(self, state: int) -> set[str]:
        """The ignored terminals that the lexer may read in a state of the parser."""
        if self._hidden is None:
            names = [terminal.name for terminal in self.terminals]
            self._hidden = {
                name
                for name in self.ignored
                if self.newline
                and names.index(self.newline) < names.index(name)
                # The end of a line, which the lexer looks for everywhere, is read in its place: a comment, say.
                and self.automata[self.newline].begins_all(self.automata[name])
            }
        return (self.ignored & self.contexts[state]) - self._hidden

    def goes_on(self, name: str) -> frozenset[int]:
        """The classes of characters behind a text of a terminal with which the lexer might find another match."""
        if name not in self._bad:
            found: set[int] = set()
            if name == self.newline:
                found = self._goes_on_in_line()
            else:
                for other in self._together(name):
                    found |= self.automata[name].continuations(self.automata[other])
            self._bad[name] = frozenset(found)
        return self._bad[name]

    def _goes_on_in_line(self) -> set[int]:
        """The same behind line ends that are a line break with blanks, which suffice for any indentation.

        Behind others either the same characters go on, or all do: then nothing else can follow, as behind a comment.
        """
        found: set[int] = set()
        others = sorted(self._together(self.newline))
        seen = set()
        todo = ["\n"]
        while todo:
            spend()
            text = todo.pop()
            if self.automata[self.newline].after(text) is None:
                raise GrammarError(f'"{self.newline}" has to match a line break with any blanks behind it')
            states = tuple(self.automata[other].after(text) for other in others)
            if states not in seen:
                seen.add(states)
                for other, state in zip(others, states, strict=True):
                    found |= self.automata[other].goes_on(state)
                todo += [text + " ", text + "\t"]
        automaton = self.automata[self.newline]
        if any(not steps <= found and len(steps) < automaton.class_count for steps in automaton.ends()):
            raise GrammarError(f'of some texts of "{self.newline}" it is not certain what can follow them')
        return found

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

    def firsts(self, name: str) -> set[int]:
        """The classes of characters with which a terminal begins."""
        return self.automata[name].firsts()

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
    indenting : Indenting, optional
        What stands between the lexer and the parser.
    """

    def __init__(
        self,
        states: dict[Any, dict[str, Any]],
        start: Any,
        lexing: Lexing,
        numbers: dict[Any, int],
        indenting: Indenting | None = None,
    ) -> None:
        self._indenting = indenting
        self._made_of_lines = set() if indenting is None else {indenting.indent, indenting.dedent}
        self._states = states
        self._start = start
        self._lexing = lexing
        self._numbers = numbers
        self._rules = {item.rule for state in states for item in state}
        self._avoided: set[str] = set()
        self._avoided_rules: set[Any] = set()
        # Nonterminals whose cheapest text is empty.
        self._empty: set[str] = set()
        self._origins: dict[tuple[Any, Any, int], set[Any]] = {}
        self._find_origins()

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
            return _AVOIDED if symbol.name in self._avoided or symbol.name in self._made_of_lines else 1
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
        if self._indenting is not None and (obstacle := self._unbalanced(self._indenting)):
            return obstacle
        obstacle = self._least_obstacle(avoids_rules=False)
        if self._indenting is not None:
            # What is proved of line ends goes by the way that is the cheapest in terminals.
            return obstacle
        # Any other way to finish is as good, if the proof holds for it.
        self._avoided.clear()
        return obstacle and self._least_obstacle(avoids_rules=True) and obstacle

    def _least_obstacle(self, *, avoids_rules: bool) -> str:
        """What stands in the way when terminals that were at fault are avoided, and before them rules if wanted."""
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
            if any(self._cost_of(symbol) >= _NEVER for symbol in rule.expansion):
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
                        return self._conflict(rule, token), token if token != END else "", rule
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
        events: set[tuple[str, int, str]] = set()
        begins = {self._first(item.next) for item in self._start if item.rule.origin.name.startswith("$root_")}
        for token in sorted(token for token in begins if token is not None):
            if token in self._made_of_lines:
                return f"no text is possible: it would begin with {token}", token
            if not lexing.can_follow(None, self._numbers[self._start], token):
                reason = f"no text may be possible: it would begin with {token}, which the lexer never reads there"
                return reason, token
            first = self._numbers[self._start]
            events |= {(ignored, first, token) for ignored in lexing.ignored_in(first)}
        for (_, state, name), tokens in self._follow.items():
            # An indent or a dedent is made of the end of a line.
            before = self._indenting.newline if self._indenting and name in self._made_of_lines else name
            if before in lexing.automata:
                after = self._numbers[self._states[state][name][1]]
                events |= {(before, after, token) for token in tokens - self._made_of_lines if token != END}
        for _, after, token in list(events):
            events |= {(ignored, after, token) for ignored in lexing.ignored_in(after)}
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
