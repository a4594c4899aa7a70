"""What Lark's lexer reads: which terminals it looks for together, and what can be written behind a text of one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from lark.lexer import PatternStr, TerminalDef

from constrain.errors import GrammarError
from constrain.grammar.lark.first_match import Automaton
from constrain.limits import spend

_WITNESSES = 12

_End = tuple[str, Any, frozenset[int]]
"""A lexeme, its state behind a text of another terminal with which it goes on, and what must not follow that text."""

_Ends = frozenset[_End]


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
    behind : callable
        The states of the parser behind a terminal that is read in a state.
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
    behind: Callable[[int, str], set[int]]
    newline: str = ""
    re_module: Any = re
    _hidden: set[str] | None = None
    _alphabet: frozenset[int] | None = None
    _bad: dict[Any, frozenset[int]] = field(default_factory=dict)
    _continued: dict[tuple[str, str], set[int]] = field(default_factory=dict)
    _carried: dict[str, set[int]] | None = None
    _begun_earlier: set[tuple[str, str, Any]] | None = None
    _begun_in: dict[frozenset[str], list[tuple[str, _Ends]]] = field(default_factory=dict)
    _beside: dict[tuple[str, str], _Ends] = field(default_factory=dict)
    _within: dict[tuple[str, str, Any, frozenset[int]], _Ends] = field(default_factory=dict)
    _lengths: dict[str, int] = field(default_factory=dict)
    _written: dict[tuple[frozenset[str], str], list[str]] = field(default_factory=dict)
    _read: dict[tuple[frozenset[str], str], tuple[str, str] | None] = field(default_factory=dict)
    _regexes: dict[str, Any] = field(default_factory=dict)
    _rank: dict[str, int] = field(default_factory=dict)
    _least: dict[str, int] = field(default_factory=dict)
    _last: dict[str, int] = field(default_factory=dict)
    _contexts_of: dict[str, list[frozenset[str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._regexes = {
            terminal.name: self.re_module.compile(terminal.pattern.to_regexp()) for terminal in self.terminals
        }
        self._rank = {terminal.name: i for i, terminal in enumerate(self.terminals)}
        self._least, self._last = dict(self._rank), dict(self._rank)
        for name, strings in self.inside.items():
            for string in strings:
                self._least[string.name] = min(self._least[string.name], self._rank[name])
                self._last[string.name] = max(self._last[string.name], self._rank[name])
        for context in set(self.contexts):
            spend(len(context))
            for name in context:
                self._contexts_of.setdefault(name, []).append(context)

    def write_with(self, alphabet: frozenset[int] | None) -> None:
        """From here on, all that is written is made of some classes of characters (None: of any)."""
        if alphabet != self._alphabet:
            self._alphabet = alphabet
            self._bad.clear()
            self._continued.clear()
            self._carried = None
            self._written.clear()

    def classes(self, text: str) -> set[int]:
        """The classes of the characters of a text."""
        automaton = next(iter(self.automata.values()))
        return {automaton.class_of(char) for char in text}

    def _together(self, name: str, contexts: Iterable[frozenset[str]]) -> set[str]:
        """The terminals that the lexer may find in the place of one."""
        found: set[str] = set()
        for context in contexts:
            spend(len(context))
            found.update(other for other in context if self._rank[other] <= self._last[name])
        return found

    def ignored_in(self, state: int) -> set[str]:
        """The ignored terminals that the lexer may read in a state of the parser."""
        if self._hidden is None:
            self._hidden = {
                name
                for name in self.ignored
                if self.newline
                and self._rank[self.newline] < self._rank[name]
                # The end of a line, which the lexer looks for everywhere, is read in its place: a comment, say.
                and self.automata[self.newline].begins_all(self.automata[name])
            }
        return (self.ignored & self.contexts[state]) - self._hidden

    def goes_on(self, name: str, contexts: frozenset[frozenset[str]] | None = None) -> frozenset[int]:
        """The classes of characters behind a text of a terminal with which the lexer might find another match.

        ``contexts`` are those in which it has read the text, if that is known.
        """
        key = name, contexts
        if key not in self._bad:
            found: set[int] = set()
            if name == self.newline:
                found = self._goes_on_in_line()
            else:
                for other in self._together(name, self._contexts_of.get(name, ()) if contexts is None else contexts):
                    found |= self._goes_on_as(name, other)
                if self._carried is None:
                    self._carried = self._goes_on_behind_others()
                found |= self._carried.get(name, set())
            self._bad[key] = frozenset(found)
        return self._bad[key]

    def _goes_on_as(self, name: str, other: str) -> set[int]:
        if (name, other) not in self._continued:
            self._continued[name, other] = self.automata[name].continuations(
                self.automata[other], is_first=self._is_first(other, name), alphabet=self._alphabet
            )
        return self._continued[name, other]

    def _is_first(self, name: str, other: str) -> bool:
        """Whether the lexer tries a terminal before another one, wherever it looks for both."""
        # A string within a regex is not looked for where the regex is.
        return self._rank[name] < self._least[other] and self._least[name] == self._last[name]

    def _goes_on_behind_others(self) -> dict[str, set[int]]:
        """By terminal, what goes on behind it with a lexeme that began earlier: ``abcd`` behind the b of ``ab``."""
        if self._begun_earlier is None:
            self._begun_earlier = self._find_begun_earlier()
        found: dict[str, set[int]] = {}
        for name, longer, state in self._begun_earlier:
            found.setdefault(name, set()).update(self.automata[longer].ending(state, self._alphabet))
        return found

    def reads_on_as(self, before: str, state: int, name: str) -> str:
        """The terminal that keeps another one from following a text, though something may be ignored between them."""
        firsts = self._firsts_of_texts(state, name)
        for ignored in sorted(self.ignored & self.contexts[state]):
            between = self._firsts_of_texts(state, ignored)
            if between - self.goes_on(before):
                return self._goes_on_with(ignored, firsts)
            firsts |= between
        return self._goes_on_with(before, firsts)

    def _goes_on_with(self, name: str, symbols: set[int]) -> str:
        """A terminal with which the lexer may read on behind a text of another one, by a character of some classes."""
        for before, longer, state in sorted(self._begun_earlier or (), key=lambda found: found[:2]):
            if before == name and symbols & self.automata[longer].ending(state, self._alphabet):
                return longer
        others = sorted(self._together(name, self._contexts_of.get(name, ())))
        return next((other for other in others if symbols & self._goes_on_as(name, other)), name)

    def _find_begun_earlier(self) -> set[tuple[str, str, Any]]:
        """Terminals, and longer lexemes with their states behind a text of the terminal within them."""
        found: set[tuple[str, str, Any]] = set()
        # States of the parser, and where a longer lexeme is behind what has been read within it.
        todo: list[tuple[int, _End]] = []
        seen: dict[int, set[_End]] = {}
        behind: dict[tuple[int, str], Iterable[int]] = {}
        # By what the lexer looks for, and where a longer lexeme is: what it reads there, and where the lexeme is then.
        within: dict[tuple[frozenset[str], _End], list[tuple[str, _Ends]]] = {}

        def read(state: int, name: str, ends: _Ends) -> None:
            if (state, name) not in behind:
                behind[state, name] = [state] if name in self.ignored else self.behind(state, name)
            for after in behind[state, name]:
                known = seen.setdefault(after, set())
                new = ends - known
                known |= new
                todo.extend((after, end) for end in new)

        for state, context in enumerate(self.contexts):
            for first, ends in self._begun(context):
                read(state, first, ends)
        while todo:
            spend()
            state, end = todo.pop()
            context = self.contexts[state]
            if (context, end) not in within:
                all_ends = [(name, self._ends_within(name, *end)) for name in sorted(context)]
                within[context, end] = [(name, ends) for name, ends in all_ends if ends]
            for name, ends in within[context, end]:
                found.update((name, longer, there) for longer, there, _ in ends)
                read(state, name, ends)
        return found

    def _begun(self, context: frozenset[str]) -> list[tuple[str, _Ends]]:
        """Terminals of a context, and the longer lexemes that the lexer may find in their place."""
        if context not in self._begun_in:
            found = []
            for first in sorted(context):
                ends: set[_End] = set()
                for longer in self._together(first, [context]):
                    ends |= self._ends_beside(first, longer)
                if ends:
                    found.append((first, frozenset(ends)))
            self._begun_in[context] = found
        return self._begun_in[context]

    def _ends_beside(self, first: str, longer: str) -> _Ends:
        """A longer lexeme behind the texts of a terminal that begins with it."""
        key = first, longer
        if key not in self._beside:
            automaton, other = self.automata[first], self.automata[longer]
            beside = automaton.beside(other, until_match=self._is_first(longer, first))
            ends = {(longer, there, automaton.guard(here)) for here, there in beside if here.matches}
            self._beside[key] = frozenset(end for end in ends if other.steps(end[1]))
        return self._beside[key]

    def _ends_within(self, name: str, longer: str, state: Any, guard: frozenset[int]) -> _Ends:
        """The same for a terminal that begins behind a state of the longer lexeme, and not with what is guarded."""
        key = name, longer, state, guard
        if key not in self._within:
            automaton, other = self.automata[name], self.automata[longer]
            ends: set[_End] = set()
            todo = [(automaton.start, state)]
            seen = set(todo)
            refused = guard
            while todo:
                spend()
                here, there = todo.pop()
                own, others = automaton.steps(here), other.steps(there)
                for symbol in (own.keys() & others.keys()) - refused:
                    pair = own[symbol], others[symbol]
                    # Where the longer lexeme ends, it is what the lexer reads.
                    if pair in seen or (pair[1].matches and not other.guard(pair[1])):
                        continue
                    seen.add(pair)
                    todo.append(pair)
                    if pair[0].matches:
                        ends.add((longer, pair[1], automaton.guard(pair[0])))
                refused = frozenset()
            self._within[key] = frozenset(ends)
        return self._within[key]

    def _goes_on_in_line(self) -> set[int]:
        """The same behind line ends that are a line break with blanks, which suffice for any indentation.

        Behind others either the same characters go on, or all do: then nothing else can follow, as behind a comment.
        """
        found: set[int] = set()
        others = sorted(self._together(self.newline, self._contexts_of.get(self.newline, ())))
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
            if set(string.pattern.flags) <= set(self._pattern(name).flags)
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

    def firsts(self, name: str) -> set[int]:
        """The classes of characters with which a terminal begins."""
        return self.automata[name].firsts()

    def can_follow(
        self, before: str | None, state: int, name: str, contexts: frozenset[frozenset[str]] | None = None
    ) -> bool:
        """Whether a terminal can be written behind any text of another one (None: at the start) in a parser's state.

        ``contexts`` are those in which the lexer has read the other one, if that is known.
        """
        if name in self.ignored:
            return False
        firsts = self._firsts_of_texts(state, name)
        if before is None:
            return bool(firsts)
        refused = self.goes_on(before, contexts)
        if firsts - refused:
            return True
        here = None if contexts is None else frozenset((self.contexts[state],))
        return any(
            firsts - self.goes_on(ignored, here) and self._firsts_of_texts(state, ignored) - refused
            for ignored in self.ignored & self.contexts[state]
        )

    def _firsts_of_texts(self, state: int, name: str) -> set[int]:
        """The classes with which the texts of a terminal begin that can be written in a parser's state."""
        return self.classes("".join(text[0] for text in self.written(state, name)))

    def written(self, state: int, name: str) -> list[str]:
        """Some texts of a terminal that the lexer reads as it in a parser's state, the shortest first."""
        key = self.contexts[state], name
        if key not in self._written:
            self._written[key] = [
                text
                for text in self._texts(name, _WITNESSES, self._alphabet)
                if (self._alphabet is None or self.classes(text) <= self._alphabet)
                and self.read(state, text) == (name, text)
            ]
        return self._written[key]

    def _texts(self, name: str, count: int, alphabet: frozenset[int] | None) -> list[str]:
        pattern = self._pattern(name)
        return [pattern.value] if isinstance(pattern, PatternStr) else self.automata[name].shortest(count, alphabet)

    def _pattern(self, name: str) -> Any:
        return self.terminals[self._rank[name]].pattern

    def least_length(self, name: str) -> int:
        """How many characters the shortest text of a terminal has."""
        if name not in self._lengths:
            self._lengths[name] = min(map(len, self._texts(name, 1, None)), default=1)
        return self._lengths[name]
