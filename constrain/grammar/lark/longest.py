"""``lexing="longest"``: the texts that Lark's own LALR parser accepts, with the lexer that it has.

Nothing is rebuilt: Lark makes the parser's table, orders the terminals and says which of them its lexer looks for in
each state.  What is added is the language of each terminal of which the longest match is the one that Lark's regex
finds (:mod:`.first_match`), which strings are read by a regex of the lexer and renamed (keywords, by the regex of
names), and a proof that what is begun can be finished (:mod:`.finishing`).
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable
from functools import partial
from itertools import count
from typing import Any, cast

import lark
from lark.exceptions import LarkError, LexError
from lark.lexer import Lexer, PatternStr, TerminalDef

from constrain.errors import ConstrainError, GrammarError, LimitError
from constrain.grammar.ir import GrammarIR
from constrain.grammar.languages.regular import EMPTY, Regular, intersect, literal
from constrain.grammar.lark.finishing import Finishing
from constrain.grammar.lark.first_match import automata, first_match
from constrain.grammar.lark.indenting import Indenting
from constrain.grammar.lark.lexing import Lexing
from constrain.grammar.lark.look_ahead import ordered
from constrain.grammar.lark.quote_regexes import with_regexes_of_quotes
from constrain.grammar.lark.regex_package import has_properties, pattern_errors, re_module
from constrain.grammar.lark.shifts import Shifts
from constrain.grammar.lark.source import Source, one_line
from constrain.grammar.parse_table import ANY_LINE, CLOSES, IGNORED, OPENS, ParseTable, TableLexeme
from constrain.limits import spend
from constrain.watched import watched

_END = "$END"

MOST_TERMINALS = 1_000
"""What Lark knows of which terminals may follow others takes as much memory as the square of their number."""

_LONG_MESSAGE = 500
_UNNAMED = re.compile(r"\b__(?:ANON|IGNORE)_\d+\b")
"""What Lark calls terminals that are written where they are used."""


def from_lark_longest(
    text: str, source: Source, start: str, lexer: str, indenting: Indenting | None = None
) -> GrammarIR:
    """The IR of a grammar whose texts Lark's LALR parser is to read.

    Parameters
    ----------
    text : str
        The grammar, whose names have been checked.
    source : Source
    start : str
        The start rule.
    lexer : "contextual" or "basic"
    indenting : Indenting, optional
        What stands between the lexer and the parser.

    Raises
    ------
    GrammarError
        If Lark refuses the grammar (conflicts that it does not resolve, terminals that match the empty string), or a
        terminal cannot be followed exactly; the message names it.
    """
    parser = _lark_of(with_regexes_of_quotes(text, source), source, start, indenting)
    terminals = _in_order(parser.terminals)
    try:
        return _Longest(parser, terminals, source, lexer == "contextual", indenting).ir(start)
    except GrammarError as error:
        own_text = {terminal.name: one_line(_shown(terminal)) for terminal in terminals}
        raise source.error(_UNNAMED.sub(lambda found: own_text.get(found[0], found[0]), error.reason)) from None


class _NoLexer(Lexer):
    """Refuses the terminals that Lark's lexers refuse.

    They stand by to read texts, and search for texts of two terminals only to warn of them, for however long it takes.
    """

    def __init__(self, conf: Any) -> None:
        module = re_module(_use_properties(conf.terminals))
        for terminal in conf.terminals:
            try:
                module.compile(terminal.pattern.to_regexp())
            except module.error as error:
                raise LexError(f"Cannot compile token {terminal.name}: {terminal.pattern}: {error}") from None
            if terminal.pattern.min_width == 0:
                raise LexError(f"Lexer does not allow zero-width terminals. ({terminal.name}: {terminal.pattern})")
        if undefined := set(conf.ignore) - {terminal.name for terminal in conf.terminals}:
            raise LexError(f"Ignore terminals are not defined: {undefined}")

    def lex(self, lexer_state: Any, parser_state: Any) -> Any:
        raise NotImplementedError


def _lark_of(text: str, source: Source, start: str, indenting: Indenting | None) -> Any:
    faults: tuple[type[Exception], ...] = (*pattern_errors(), AssertionError, RecursionError)
    logger = logging.getLogger("lark")
    level = logger.level
    try:
        logger.setLevel(logging.CRITICAL)
        folders = [] if source.folder is None else [os.fspath(source.folder)]
        options: Any = {"parser": "lalr", "lexer": _NoLexer, "start": start, "import_paths": folders, "debug": True}
        numbers = count(1)

        def check_number(_: TerminalDef) -> None:
            if next(numbers) > MOST_TERMINALS:
                raise LimitError(f'with lexing="longest" a grammar may have {MOST_TERMINALS:,} terminals')

        # Lark calls it for each terminal before it looks for what may follow what.
        options["edit_terminals"] = check_number
        if indenting is not None:
            options["postlex"] = indenting.indenter
        return watched(lambda: lark.Lark(text, **options))
    except LarkError as error:
        raise source.error(f"Lark's LALR parser refuses this grammar: {_brief(str(error))}") from None
    except ImportError:
        raise source.error(
            r"Lark reads \p{...} by the package regex, which is not installed: pip install regex, "
            'list the characters in a set, or use lexing="any"'
        ) from None
    except faults as error:
        raise source.error(f"Lark's LALR parser refuses this grammar: {type(error).__name__} {error}") from None
    finally:
        logger.setLevel(level)


def _brief(message: str) -> str:
    """A message of Lark's on one line; of a long one the first parts, and how many more there are."""
    parts = [" ".join(part.split()) for part in re.split(r"\n(?=\s*(?:-|Reduce/Reduce|collision))", message)]
    shown = parts[:1]
    for part in parts[1:]:
        if sum(map(len, shown)) + len(shown) + len(part) > _LONG_MESSAGE:
            break
        shown.append(part)
    text = " ".join(shown)
    if "zero-width" in text:
        text += "; a terminal of its own must not be empty: name one with what stands around it, also around %regex"
    if len(text) > _LONG_MESSAGE:
        text = text[: text.rfind(" ", 0, _LONG_MESSAGE)] + " ..."
    more = len(parts) - len(shown)
    return f"{text} ... (and {more} more {'lines' if more > 1 else 'line'})" if more else text


def _shown(terminal: TerminalDef) -> str:
    """A terminal as it is written."""
    return terminal.pattern.raw or terminal.pattern.value


def _use_properties(terminals: Iterable[TerminalDef]) -> bool:
    r"""Whether a regex has ``\p{...}``, so that Lark reads them all by the package ``regex``."""
    return any(has_properties(terminal.pattern.to_regexp()) for terminal in terminals)


def _in_order(terminals: Iterable[TerminalDef]) -> list[TerminalDef]:
    """The order in which Lark's lexer tries terminals (``lark.lexer.BasicLexer``)."""
    return sorted(terminals, key=lambda t: (-t.priority, -t.pattern.max_width, -len(t.pattern.value), t.name))


class _Longest:
    def __init__(
        self,
        parser: Any,
        terminals: list[TerminalDef],
        source: Source,
        is_contextual: bool,
        indenting: Indenting | None,
    ) -> None:
        self._parser = parser
        self._is_contextual = is_contextual
        self._indenting = indenting
        self._terminals = terminals
        self._source = source
        self._by_package = _use_properties(terminals)
        self._re = re_module(self._by_package)
        self._ignored = set(parser.lexer_conf.ignore)
        # What the lexer looks for in each state.
        self._always = self._ignored | ({indenting.newline} if indenting is not None else set())
        # By terminal: its texts with what must not follow them.
        self._refused: dict[str, Regular] = {terminal.name: EMPTY for terminal in terminals}
        self._guards: dict[str, int] = {}
        self._languages = {terminal.name: self._language(terminal) for terminal in terminals}
        # By regex: the strings that it matches as a whole, and which its values are compared with.
        self._inside = {terminal.name: self._strings_in(terminal) for terminal in terminals}
        self._newline = "" if indenting is None else indenting.newline
        # The lexemes that the end of a line is, by what follows it.
        self._lines: list[int] = []
        if indenting is not None:
            self._check_indenting(indenting)
        try:
            patterns = {terminal.name: terminal.pattern.to_regexp() for terminal in terminals}
            self._automata = automata(patterns, self._by_package)
            if any(each.looks_ahead for each in self._automata.values()):
                self._terminals = self._ordered()
        except GrammarError as error:
            raise self._source.error(error.reason) from None

    def _language(self, terminal: TerminalDef) -> Regular:
        pattern = terminal.pattern
        try:
            if isinstance(pattern, PatternStr) and not pattern.flags:
                return literal(pattern.value)
            found = first_match(pattern.to_regexp(), self._by_package)
            self._refused[terminal.name] = found.refused
            return found.language
        except (GrammarError, UnicodeEncodeError) as error:
            named = terminal.name if _UNNAMED.fullmatch(terminal.name) else f'"{terminal.name}" ({_shown(terminal)})'
            reason = error.reason if isinstance(error, GrammarError) else "a lone surrogate is not text"
            raise self._source.error(f"the terminal {named}: {reason}") from None

    def _strings_in(self, terminal: TerminalDef) -> list[TerminalDef]:
        if isinstance(terminal.pattern, PatternStr):
            return []
        regex = self._re.compile(terminal.pattern.to_regexp())
        found = []
        for other in self._terminals:
            if isinstance(other.pattern, PatternStr) and other.priority == terminal.priority:
                match = regex.match(other.pattern.value)
                if match is not None and match.group() == other.pattern.value:
                    found.append(other)
        return found

    def _ordered(self) -> list[TerminalDef]:
        """The terminals, those with look-ahead where they can be read."""
        states = cast(Any, self._parser).parser.parser._parse_table.states
        rows = list(states.values())
        numbers = {items: number for number, items in enumerate(states)}
        shifts: dict[str, set[int]] = {}
        for row in rows:
            for name, (action, target) in row.items():
                if action.name == "Shift":
                    shifts.setdefault(name, set()).add(numbers[target])
        return ordered(self._terminals, self._automata, self._contexts(rows), shifts, self._inside)

    def _contexts(self, rows: Iterable[dict[str, Any]]) -> list[frozenset[str]]:
        """By state of the parser: the terminals that the lexer looks for."""
        names = set(self._languages)
        if not self._is_contextual:
            return [frozenset(names) for _ in rows]
        return [frozenset((set(row) & names) | self._always) for row in rows]

    def _check_indenting(self, indenting: Indenting) -> None:
        if self._newline not in self._languages:
            raise self._source.error(f'the grammar has no terminal "{self._newline}", which the indenter calls NL_type')
        if self._newline in self._ignored:
            raise self._source.error(f'"{self._newline}" is ignored, so the indenter would see no line')
        strings = {string.name for found in self._inside.values() for string in found}
        if self._inside[self._newline] or self._newline in strings:
            raise self._source.error(
                f'"{self._newline}" and a string match the same text, of which the indenter sees one only'
            )
        if self._refused[self._newline] != EMPTY:
            raise self._source.error(
                f'"{self._newline}" has look-ahead, which is not supported in what an indenter sees'
            )
        for name in (indenting.indent, indenting.dedent):
            if name in self._languages:
                raise self._source.error(f'"{name}" has texts of its own; %declare it for an indenter')

    def ir(self, start: str) -> GrammarIR:
        parse_table = cast(Any, self._parser).parser.parser._parse_table
        self._check_finishing(parse_table, start)
        # With debug, Lark names states by their items.
        numbers = {items: number for number, items in enumerate(parse_table.states)}
        states = {
            numbers[items]: {
                name: (action, numbers[target] if action.name == "Shift" else target)
                for name, (action, target) in row.items()
            }
            for items, row in parse_table.states.items()
        }
        columns = self._columns(states)
        lexemes: list[TableLexeme] = []
        languages: list[Regular] = []
        names: list[str] = []
        places: dict[tuple[str, str], int] = {}
        for rank, terminal in enumerate(self._terminals):
            ignored = terminal.name in self._ignored
            inside = [] if ignored else self._inside[terminal.name]
            if terminal.name == self._newline and self._indenting is not None:
                for line, each in enumerate(self._indenting.line_languages(self._languages[terminal.name]), 1):
                    self._lines.append(len(lexemes))
                    lexemes.append(TableLexeme(rank, columns.get(terminal.name, columns[""]), line))
                    languages += [each, each]
                    names += [terminal.name, terminal.name]
                self._lines.append(len(lexemes))
                places[terminal.name, terminal.name] = len(lexemes)
                lexemes.append(TableLexeme(rank, IGNORED, ANY_LINE))
                languages += [self._languages[terminal.name]] * 2
                names += [terminal.name, terminal.name]
                continue
            for string in (*inside, terminal):
                language = self._languages[string.name]
                if string is not terminal and string.pattern.flags:
                    language = intersect(language, self._languages[terminal.name])
                places[string.name, terminal.name] = len(lexemes)
                column = IGNORED if ignored else columns.get(string.name, columns[""])
                lexemes.append(TableLexeme(rank, column, self._line_of(string.name)))
                languages += [language, language]
                names += [string.name, string.name]
            if self._refused[terminal.name] != EMPTY:
                # No parser takes it.
                self._guards[terminal.name] = len(lexemes)
                lexemes.append(TableLexeme(rank, columns[""]))
                languages += [self._refused[terminal.name]] * 2
                names += [terminal.name, terminal.name]
        contexts = [self._context(set(actions), places) for _, actions in sorted(states.items())]
        rules: dict[Any, int] = {}
        lefts: dict[str, int] = {}
        actions, gotos = self._actions(states, columns, rules, lefts)
        table = ParseTable(
            lexemes=tuple(lexemes),
            contexts=tuple(contexts),
            actions=tuple(actions),
            gotos=tuple(gotos),
            rules=tuple((lefts[rule.origin.name], len(rule.expansion)) for rule in rules),
            first=numbers[parse_table.start_states[start]],
            last=numbers[parse_table.end_states[start]],
            indentation=(columns[self._indenting.indent], columns[self._indenting.dedent])
            if self._indenting is not None
            else (-1, -1),
        )
        # The productions are not followed; they say of which terminals something could be made.
        symbol_of = {name: ~(2 * places[name, name]) for name in self._languages}
        productions = tuple(
            (
                lefts[rule.origin.name],
                tuple(
                    self._symbol(symbol, symbol_of, lefts)
                    for symbol in rule.expansion
                    if not symbol.is_term or symbol.name in symbol_of
                ),
            )
            for rule in rules
        )
        return GrammarIR(
            lexemes=(*languages, EMPTY),
            lexeme_names=(*names, ""),
            nonterminal_names=tuple(lefts),
            productions=productions,
            start=lefts[start],
            ignore=tuple(2 * places[name, name] for name in sorted(self._ignored)),
            parse_table=table,
            make_error=partial(_error, self._source),
        )

    def _line_of(self, name: str) -> int:
        """What a terminal is to the indenter."""
        if self._indenting is None:
            return 0
        return OPENS if name in self._indenting.opening else CLOSES if name in self._indenting.closing else 0

    def _check_finishing(self, parse_table: Any, start: str) -> None:
        """Refuse a grammar of which it is not certain that every text that is begun can be finished."""
        contexts = self._contexts(parse_table.states.values())
        states = list(parse_table.states)
        numbers = {items: number for number, items in enumerate(states)}
        shifts = Shifts(parse_table.states)

        def behind(state: int, name: str) -> set[int]:
            found = shifts.behind(states[state], name)
            if name == self._newline and self._indenting is not None:
                # The lexer goes on when the parser has taken the indents and dedents behind a line.
                todo = [*found]
                while todo:
                    spend()
                    here = todo.pop()
                    for level in (self._indenting.indent, self._indenting.dedent):
                        new = shifts.behind(here, level) - found
                        found |= new
                        todo += new
            return {numbers[items] for items in found}

        try:
            lexing = Lexing(
                self._terminals,
                self._automata,
                contexts,
                self._inside,
                self._ignored,
                behind,
                self._newline,
                self._re,
            )
            start_state = parse_table.start_states[start]
            finishing = Finishing(parse_table.states, start_state, lexing, numbers, shifts, self._indenting)
            obstacle = finishing.obstacle()
        except GrammarError as error:
            raise self._source.error(error.reason) from None
        if obstacle:
            raise self._source.error(obstacle)

    def _columns(self, states: dict[int, dict[str, Any]]) -> dict[str, int]:
        """The column of each terminal that the parser knows, of those that it does not ("" for all), and of indents."""
        columns: dict[str, int] = {}
        known = {name for actions in states.values() for name in actions}
        for terminal in self._terminals:
            if terminal.name in known:
                columns[terminal.name] = len(columns)
        columns[""] = len(columns)
        if self._indenting is not None:
            for name in (self._indenting.indent, self._indenting.dedent):
                columns[name] = len(columns)
        return columns

    def _context(self, accepted: set[str], places: dict[tuple[str, str], int]) -> tuple[int, ...]:
        """The lexemes that the lexer looks for in a state of the parser (``lark.lexer._create_unless``)."""
        if self._is_contextual:
            accepted = accepted | self._always
        else:
            accepted = set(self._languages)
        within: set[str] = set()
        found: list[int] = []
        for terminal in self._terminals:
            if terminal.name not in accepted:
                continue
            for string in self._inside[terminal.name]:
                if string.name in accepted:
                    if terminal.name not in self._ignored:
                        found.append(places[string.name, terminal.name])
                    if set(string.pattern.flags) <= set(terminal.pattern.flags):
                        within.add(string.name)
        found += [places[name, name] for name in self._languages if name in accepted and name not in within]
        if self._newline in accepted:
            found += self._lines
        found += [place for name, place in self._guards.items() if name in accepted]
        return tuple(sorted(set(found)))

    def _actions(
        self, states: dict[int, dict[str, Any]], columns: dict[str, int], rules: dict[Any, int], lefts: dict[str, int]
    ) -> tuple[list[int], list[int]]:
        width = len(columns) + 1
        for rule in self._parser.rules:
            lefts.setdefault(rule.origin.name, len(lefts))
        actions = [0] * (width * len(states))
        for state, row in states.items():
            for name, (kind, target) in row.items():
                if name in columns or name == _END:
                    column = width - 1 if name == _END else columns[name]
                    shifts = kind.name == "Shift"
                    number = target + 1 if shifts else -1 - rules.setdefault(target, len(rules))
                    actions[state * width + column] = number
        for row in states.values():
            for name in row:
                if name not in columns and name != _END:
                    lefts.setdefault(name, len(lefts))
        for rule in rules:
            lefts.setdefault(rule.origin.name, len(lefts))
        gotos = [0] * (len(lefts) * len(states))
        for state, row in states.items():
            for name, (_, target) in row.items():
                if name not in columns and name != _END:
                    gotos[state * len(lefts) + lefts[name]] = target
        return actions, gotos

    def _symbol(self, symbol: Any, terminals: dict[str, int], lefts: dict[str, int]) -> int:
        return terminals[symbol.name] if symbol.is_term else lefts[symbol.name]


def _error(source: Source, reason: str, place: str) -> ConstrainError:
    """The error that the engine finds in a rule.  It is a function by name, so that rules can be pickled."""
    return source.error(f'the rule "{place}": {reason}' if place else reason)
