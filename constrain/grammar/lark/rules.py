"""Rules and templates: each becomes productions over the lexemes of the terminals."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

from constrain.errors import ConstrainError, GrammarError, SchemaError
from constrain.grammar.embedding import EmbeddingBuilder
from constrain.grammar.ir import GrammarIR, Symbol
from constrain.grammar.languages.derivatives import has_empty_string
from constrain.grammar.languages.regular import EPSILON, Regular, concat
from constrain.grammar.lark.attributes import (
    least_tokens,
    most_characters,
    note_attributes,
    says_where_it_ends,
)
from constrain.grammar.lark.blocks import BlockToken
from constrain.grammar.lark.definitions import Body, Definition, Definitions, collect
from constrain.grammar.lark.first_ends import first_ends, separate
from constrain.grammar.lark.fold import bounds, fold
from constrain.grammar.lark.indenting import Indenting
from constrain.grammar.lark.literals import range_language
from constrain.grammar.lark.max_chars import over_after
from constrain.grammar.lark.named import NamedGrammar, Part, ReadGrammar, inner_definitions, read_named
from constrain.grammar.lark.narrowing import Hook, narrowed
from constrain.grammar.lark.options import Conventions
from constrain.grammar.lark.parametric import Numbers
from constrain.grammar.lark.source import Node, Source, one_line, place_of, subtrees_of, tokens_of
from constrain.grammar.lark.substring import regex_block
from constrain.grammar.lark.terminals import Terminals, first_non_terminal
from constrain.grammar.lark.tree import Token, Tree
from constrain.grammar.lark.validate import validate
from constrain.grammar.least_tokens import write_least
from constrain.grammar.regex.parser import Dialect
from constrain.grammar.regular_rules import NotRegularError, RegularRules
from constrain.grammar.tokens import Named, any_tokens, token_set

Lexing: TypeAlias = Literal["any", "longest", "longest-basic"]
Case: TypeAlias = Literal["unicode", "ascii"]

# Templates can call each other with ever longer arguments; a grammar that ends stays far below.
_MAX_INSTANCES = 10_000
_MAX_INSTANCE_NODES = 2_000_000
# Those of rules with numbers are small; this is enough for any order of 16 things.
_MAX_NUMBERED = 100_000
_MAX_NUMBERED_NODES = 10_000_000


@dataclass(frozen=True)
class _Template:
    """A template that is handed over as an argument, by its name in the whole grammar."""

    name: str


@dataclass(frozen=True)
class _Number:
    """The number of a rule (:mod:`.parametric`)."""

    value: int


@dataclass(frozen=True)
class _AnyToken:
    """Any token but some, as ``text`` says: of the special ones, or a piece of text."""

    text: str
    excluded: tuple[Named, ...]


_Argument: TypeAlias = "Symbol | _Template | _Number"

# What the number of a rule is called among its arguments; no parameter has such a name.
_NUMBER = "::"


def from_lark(
    text: str,
    *,
    start: str = "start",
    base_path: str | os.PathLike[str] | None = None,
    lexing: Lexing = "any",
    narrow: Mapping[str, Hook] | None = None,
    case: Case = "unicode",
    initial_ignore: bool = True,
    indenting: Indenting | None = None,
    named: Mapping[str, NamedGrammar] | None = None,
    json_strings: bool = False,
    dialect: Dialect = "python",
) -> GrammarIR:
    """The IR of a grammar in Lark's notation.

    The parameters are those of :meth:`constrain.Grammar.from_lark`; ``indenting`` is what its ``indenter`` does,
    ``named`` what its ``named_grammars`` are.  With ``json_strings``, strings have the escapes of JSON; ``dialect`` is
    that of the regexes.

    Raises
    ------
    GrammarError
        For a syntax error, an undefined or recursive name, an unsupported construct, or a limit;
        with line and column.

    Notes
    -----
    With ``lexing="any"`` the language is that of the rules alone: any way to split a text into terminals counts.
    Priorities, ``?``/``!``/``_`` before rule names, and aliases have no effect on it.
    """
    folder = None if base_path is None else Path(base_path)
    source = Source("", folder, folder)
    conventions = Conventions(case == "ascii", json_strings, dialect, ignores_first=initial_ignore)
    definitions = collect(text, source, conventions)
    named = named or {}
    if named and lexing != "any":
        raise source.error(f'named_grammars is for lexing="any", not "{lexing}"')
    if indenting is not None and lexing == "any":
        raise source.error('indenter is for lexing="longest" or "longest-basic", not "any"')
    validate(definitions, () if indenting is None else (indenting.indent, indenting.dedent), named)
    definition = _start_of(definitions, start, source)
    if lexing != "any":
        if narrow:
            raise source.error(f'narrow is for lexing="any", not "{lexing}"')
        _check_longest(definitions, definition, lexing, source)
        # Only here Lark itself is needed, which takes as long to import as the whole engine.
        from constrain.grammar.lark.longest import from_lark_longest

        lexer = "basic" if lexing == "longest-basic" else "contextual"
        try:
            return from_lark_longest(text, source, start, lexer, indenting)
        except GrammarError as error:
            raise _placed(error, definitions) from None
    builder = EmbeddingBuilder()
    shared = _Shared(conventions, read_named(named, source, conventions))
    compiler = _Compiler(definitions, builder, shared, hooks=narrow or {})
    return compiler.finish(compiler.compile(start))


def write_lark(builder: EmbeddingBuilder, text: str) -> Symbol:
    """The start of a grammar by XGrammar's conventions that is a part of another one.  Raises GrammarError."""
    source, shared = Source("", None, None), _Shared(Conventions(ascii_case=True, ignores_first=False), {})
    definitions = collect(text, source, shared.conventions)
    validate(definitions)
    _start_of(definitions, "start", source)
    compiler = _Compiler(definitions, builder, shared, is_inner=True)
    return compiler.complete(compiler.compile("start"))


def _start_of(definitions: Definitions, start: str, source: Source) -> Definition:
    """The rule that a whole text has to match."""
    if (definition := definitions.by_name.get(start)) is None:
        known = [name for name, found in definitions.by_name.items() if not found.is_terminal and "." not in name]
        listed = ", ".join(known[:8]) + (", ..." if len(known) > 8 else "")
        raise source.error(f'the start rule "{start}" is not defined (defined are: {listed or "no rules"})')
    if definition.params:
        raise definition.error(f'the start rule "{start}" is a template')
    if definition.has_number:
        reason = f'the start rule "{start}" has a number, and nothing says which'
        raise definition.error(reason)
    return definition


def _check_longest(definitions: Definitions, definition: Definition, lexing: Lexing, source: Source) -> None:
    """Refuse what Lark's own lexer and parser do not know; ``definition`` is the start rule's."""
    if definitions.conventions != Conventions():
        raise source.error(
            f'lexing="{lexing}" reads as Lark does; case="ascii", initial_ignore=False, ignore_once, '
            'allow_invalid_utf8 and lexer_backtracking go with lexing="any" only'
        )
    for each in definitions.by_name.values():
        if each.attributes:
            name = each.attributes[0].name
            raise each.error(f'[{name}]: lexing="{lexing}" knows no attributes of rules')
    if definition.is_terminal:
        raise definition.error(
            f'the start rule "{definition.name}" is a terminal; Lark\'s LALR parser begins with a rule'
        )


@dataclass
class _Shared:
    """What a grammar and those inside of it know of their symbols.

    Attributes
    ----------
    ending : dict of Symbol to Regular
        The lexemes of rules with a first end, and what they would be without it.
    closed : set of Symbol
        What is ignored, and values of schemas: they are what they are, whatever stands beside them.
    conventions : Conventions
        Those that the caller chose.
    cut_rules : dict of Symbol to (Symbol, Definition)
        The rules made of others whose texts are cut off, or long enough: what they are made of.
    named : dict of str to ReadGrammar
        The grammars beside this one.
    symbols : dict of str to Symbol
        Those of them that something refers to.
    unwritten : deque of str
        Those of these whose rules are not written yet.
    """

    conventions: Conventions
    named: Mapping[str, ReadGrammar]
    cut_rules: dict[Symbol, tuple[Symbol, Definition]] = field(default_factory=dict)
    symbols: dict[str, Symbol] = field(default_factory=dict)
    unwritten: deque[str] = field(default_factory=deque)
    ending: dict[Symbol, Regular] = field(default_factory=dict)
    closed: set[Symbol] = field(default_factory=set)


class _Compiler:
    """Writes the rules of a grammar, and of those inside of it with others of the kind.

    A grammar with others inside writes what it ignores into its rules, behind each of its terminals, so that it may
    stand between those and nowhere else.
    """

    def __init__(
        self,
        definitions: Definitions,
        builder: EmbeddingBuilder,
        shared: _Shared,
        *,
        is_inner: bool = False,
        hooks: Mapping[str, Hook] | None = None,
    ) -> None:
        self._hooks = hooks or {}
        # By lexeme, as far as rules have them.
        self._narrowed: dict[Symbol, Hook] = {}
        self._definitions = definitions
        self._builder = builder
        self._ignored: list[Symbol] = []
        # What may stand behind a terminal, where that is written out.
        self._skip: Symbol | None = None
        self._shared = shared
        reads_as_usual = definitions.conventions.ignores_first and not definitions.conventions.ignores_once
        # What is ignored may not stand between the parts of a rule that takes so many tokens at least.
        has_least = any(least_tokens(definition.attributes) for definition in definitions.by_name.values())
        self._writes_skips = is_inner or not reads_as_usual or has_least or _has_inner_grammars(definitions)
        self._terminals = Terminals(definitions)
        self._symbols: dict[tuple[object, ...], Symbol] = {}
        self._todo: deque[tuple[Symbol, Definition, tuple[_Argument, ...]]] = deque()
        # Of templates, and of rules with numbers: how many rules they have made, and symbols.
        self._made = {False: (0, 0), True: (0, 0)}
        self._places: dict[str, Definition] = {}
        self._numbers = Numbers()
        self._sizes: dict[int, int] = {}

    def compile(self, start: str) -> Symbol:
        """The symbol of the start rule, with all rules behind it."""
        self._ignored = [
            self._builder.lexeme(self._terminals.anonymous(body), "%ignore") for body in self._definitions.ignored
        ]
        self._shared.closed.update(self._ignored)
        if self._ignored and self._writes_skips:
            ignored = self._builder.choice([(symbol,) for symbol in self._ignored])
            is_once = self._definitions.conventions.ignores_once
            skip = self._skip = self._builder.nonterminal()
            self._builder.add(skip)
            self._builder.add(skip, (ignored,) if is_once else (skip, ignored))
            self._builder.skip(skip)
        symbol = self._terminal(start) if self._definitions.by_name[start].is_terminal else self._rule(start, ())
        while self._todo:
            left, definition, arguments = self._todo.popleft()
            least = least_tokens(definition.attributes)
            has_end = least > 0 or (says_where_it_ends(definition.attributes) and not _ends_with_token(definition))
            if has_end and not self._is_cut_alone(definition):
                self._end_rule(left, definition, least)
                continue
            self._capture(left, definition)
            if has_end:
                body_symbol = self._builder.nonterminal(self._builder.name_of(left))
                self._shared.cut_rules[left] = body_symbol, definition
                left = body_symbol
            names = (_NUMBER,) if definition.has_number else definition.params
            for body in definition.bodies:
                for alternative in self._alternatives(body, dict(zip(names, arguments, strict=True))):
                    self._builder.add(left, alternative)
        self._builder.warnings.extend(self._terminals.warnings)
        if self._skip is None or not self._definitions.conventions.ignores_first:
            return symbol
        return self._builder.sequence((self._skip, symbol))

    def complete(self, start: Symbol) -> Symbol:
        """The start of the grammar when all that its rules need is written."""
        self._write_named()
        self._cut_rules()
        return separate(self._builder, start, self._shared.ending, self._is_closed)

    def finish(self, start: Symbol) -> GrammarIR:
        """The whole grammar."""
        start = self.complete(start)
        if self._hooks:
            start = self._narrow(start)
        ignored = () if self._writes_skips else dict.fromkeys(self._ignored)
        stock = None
        if self._builder.has_schemas:
            from constrain.grammar.lark.schemas import stock_of

            stock = stock_of(self._builder)
        return self._builder.finish_whole(start, stock, ignore=ignored, make_error=self._make_error())

    def _narrow(self, start: Symbol) -> Symbol:
        """The start of the grammar whose terminals are narrowed by hooks."""
        for name in self._hooks:
            definition = self._definitions.by_name.get(name)
            if definition is None or not definition.is_terminal:
                raise GrammarError(f'narrow names "{name}", which is no terminal of the grammar')
            if ("terminal", name) not in self._symbols:
                raise GrammarError(f'narrow names "{name}", a terminal that stands in no rule')
        if start < 0:
            start = self._builder.sequence((start, self._builder.choice([()])))
        start, unfolded, template = narrowed(self._builder, start, self._narrowed)
        self._builder.unfolded[unfolded] = template
        self._builder.makes_lexemes = True
        return start

    def _is_closed(self, symbol: Symbol) -> bool:
        """Which symbols are what they are, whatever stands beside them."""
        return symbol in self._shared.closed or self._builder.is_token(symbol)

    def _spaced(self, symbol: Symbol) -> Symbol:
        """A terminal with what may be ignored behind it."""
        return symbol if self._skip is None else self._builder.sequence((symbol, self._skip))

    def _capture(
        self, left: Symbol, definition: Definition, body: Regular | None = None, end: Regular | None = None
    ) -> None:
        """Note what is said of a rule's texts."""
        attributes, name = definition.attributes, definition.name
        note_attributes(self._builder, left, attributes, name, definition.error, body, end)

    def _is_cut_alone(self, definition: Definition) -> bool:
        """Whether a rule is made of others, and what is said of its text is how long it is."""
        ends = [each.name for each in definition.attributes if says_where_it_ends((each,))]
        return ends in ([], ["max_chars"]) and not self._ignored and first_non_terminal(definition) is not None

    def _cut_rules(self) -> None:
        """Give rules that are made of others, and of which is said how long their texts are, their languages."""
        cut = self._shared.cut_rules
        if not cut:
            return

        def finish(left: Symbol, language: Regular) -> Regular:
            most = most_characters(cut[left][1].attributes)
            return language if most is None else over_after(language, most, cut[left][1].error)

        def is_known(symbol: Symbol) -> bool:
            return not any(symbol in each for each in (self._shared.ending, self._narrowed, self._builder.unfolded))

        bodies = {left: body for left, (body, _) in cut.items()}
        rules = RegularRules(self._builder, bodies, finish, is_known)
        for left, (_, definition) in cut.items():
            try:
                language = rules.language(left)
            except NotRegularError as error:
                name = "max_chars" if most_characters(definition.attributes) is not None else "min_tokens"
                reason = f'[{name}]: the rule "{definition.name}" is made of others: {error}'
                raise definition.error(reason) from None
            self._write(left, language, definition)

    def _end_rule(self, left: Symbol, definition: Definition, least: int) -> None:
        """Write a rule that is made of terminals, and of which is said where it ends or how long it is."""
        rule = left
        if least and self._skip is not None:
            # What is ignored behind it is no part of it.
            rule = self._builder.nonterminal(self._builder.name_of(left))
            self._builder.add(left, (self._spaced(rule),))
        symbol = self._ending(definition, rule)
        if least:
            self._write(rule, self._builder.lexemes()[~symbol], definition)
        else:
            self._builder.add(rule, (self._spaced(symbol),))

    def _write(self, left: Symbol, language: Regular, definition: Definition) -> None:
        """Give a rule its language, and the number of tokens that it takes at least."""
        least = least_tokens(definition.attributes)
        write_least(self._builder, left, language, least, definition.error, definition.name)

    def _ending(self, definition: Definition, left: Symbol) -> Symbol:
        """The lexeme of a rule with attributes that say where it ends."""
        body, end, has_first_end = self._terminals.of_rule(definition)
        self._capture(left, definition, body, end)
        most = most_characters(definition.attributes)
        if not has_first_end:
            body = body if most is None else over_after(body, most, definition.error)
            return self._builder.lexeme(body, definition.name)
        language = body if end is None else concat(body, end)
        if most is not None:
            language = over_after(first_ends(language), most, definition.error, None if end is None else body)
        if has_empty_string(language):
            # It is at its end where it begins, and nothing stands beside it.
            return self._builder.lexeme(EPSILON, definition.name)
        symbol = self._builder.lexeme(first_ends(language), definition.name)
        self._shared.ending[symbol] = language
        return symbol

    def _terminal(self, name: str) -> Symbol:
        key = ("terminal", name)
        known = self._symbols.get(key)
        if known is None:
            language = self._terminals.named(name)
            definition = self._definitions.by_name[name]
            self._terminals.warn_if_empty(name, definition.token, definition.source, language)
            shown = definition.name
            if name in self._hooks:
                symbol = self._builder.separate_lexeme(language, shown)
                self._narrowed[symbol] = self._hooks[name]
            else:
                symbol = self._builder.lexeme(language, shown)
            known = self._symbols[key] = self._spaced(symbol)
        return known

    def _rule(self, name: str, arguments: tuple[_Argument, ...]) -> Symbol:
        key = ("rule", name, arguments)
        if key not in self._symbols:
            definition = self._definitions.by_name[name]
            shown = definition.name + ("::..." if definition.has_number else "{...}" if arguments else "")
            self._places.setdefault(shown, definition)
            symbol = self._symbols[key] = self._builder.nonterminal(shown)
            if arguments:
                self._charge_instance(definition)
            self._todo.append((symbol, definition, arguments))
        return self._symbols[key]

    def _charge_instance(self, template: Definition) -> None:
        size = self._sizes.get(id(template))
        if size is None:
            size = self._sizes[id(template)] = sum(1 for body in template.bodies for _ in subtrees_of(body.tree))
        count, symbols = self._made[template.has_number]
        self._made[template.has_number] = count, symbols = count + 1, symbols + size
        kind, most, most_symbols = "templates", _MAX_INSTANCES, _MAX_INSTANCE_NODES
        if template.has_number:
            kind, most, most_symbols = "rules with numbers", _MAX_NUMBERED, _MAX_NUMBERED_NODES
        if count > most or symbols > most_symbols:
            raise template.error(
                f"the {kind} make more than {most} rules or {most_symbols} symbols; "
                f'does "{template.name}" call itself with ever new arguments?'
            )

    def _alternatives(self, body: Body, arguments: dict[str, _Argument]) -> list[tuple[Symbol, ...]]:
        """The alternatives of a rule's body; groups in it become nonterminals of their own."""
        source = body.source

        def symbol(value: Any, node: Node) -> Symbol:
            if type(value) is int:
                return value
            if isinstance(value, _Template):
                raise source.error("a template is used here without arguments", node)
            if isinstance(value, list):
                return self._builder.choice(value)
            if isinstance(value, _AnyToken):
                return self._any_tokens(value, 1, 1, node, source)
            assert isinstance(value, int)
            return value

        def combine(node: Node, values: list[Any]) -> Any:
            # The most frequent first.
            kind = node.data
            if kind == "terminal":
                return self._terminal(body.scope.resolve(values[0]))
            if kind == "expansion":
                return tuple(value if type(value) is int else symbol(value, node) for value in values)
            if kind == "nonterminal":
                return self._reference(values[0], body, arguments)
            if kind == "expansions":
                return [value if type(value) is tuple else (symbol(value, node),) for value in values]
            if kind == "literal":
                return self._literal(values[0], source)
            if kind == "maybe":
                return self._builder.optional(symbol(values[0], node))
            if kind == "range":
                return self._spaced(self._builder.lexeme(range_language(node, source), f"{values[0]}..{values[1]}"))
            if kind == "template_usage":
                return self._usage(node, tuple(values), body, arguments)
            if kind == "special":
                return self._token(values[0], source)
            if kind == "block":
                return self._block(values[0], source)
            if kind == "reference":
                return self._named(values[0])
            if kind == "parametric":
                return self._numbered(values[0], node, body, arguments)
            if kind in ("conjunction", "negation"):
                raise source.error(f'"{"&" if kind == "conjunction" else "~"}" can stand in terminals only', node)
            assert kind == "expr", kind
            if isinstance(values[0], _AnyToken):
                return self._any_tokens(values[0], *bounds(node, source), node, source)
            return self._builder.repeat(symbol(values[0], node), *bounds(node, source))

        number = arguments.get(_NUMBER)
        tree = self._numbers.chosen(body, number.value) if isinstance(number, _Number) else body.tree
        alternatives = fold(tree, combine)
        assert isinstance(alternatives, list)
        return alternatives

    def _literal(self, token: Token, source: Source) -> Symbol:
        # Equal texts are equal patterns, whatever file they are in; the first use reports errors.
        key = ("literal", token.type, str(token))
        if key not in self._symbols:
            language = self._terminals.literal(token, source)
            self._terminals.warn_if_empty(None, token, source, language)
            symbol = self._builder.lexeme(language, str(token))
            # "" is no terminal behind which something might be ignored.
            self._symbols[key] = symbol if language == EPSILON else self._spaced(symbol)
        return self._symbols[key]

    def _reference(self, token: Token, body: Body, arguments: dict[str, _Argument]) -> _Argument:
        if token in arguments:
            return arguments[str(token)]
        name = body.scope.resolve(token)
        return _Template(name) if self._definitions.by_name[name].params else self._rule(name, ())

    def _usage(self, node: Node, values: tuple[_Argument, ...], body: Body, arguments: dict[str, _Argument]) -> Symbol:
        token = next(tokens_of(node))
        called = arguments.get(str(token))
        name = body.scope.resolve(token)
        if called is not None:
            if not isinstance(called, _Template):
                raise body.source.error(f'the parameter "{token}" is called like a template, but it is none', token)
            name = called.name
        wanted = len(self._definitions.by_name[name].params)
        if wanted != len(values):
            raise body.source.error(f'"{token}" takes {wanted} argument{"s" * (wanted != 1)}, not {len(values)}', token)
        return self._rule(name, values)

    def _token(self, token: Token, source: Source) -> Symbol | _AnyToken:
        """The symbol of ``<name>`` or ``<[ids]>``."""
        line, column = place_of(token)
        text = str(token)
        if not text.startswith("<["):
            return self._spaced(self._builder.token(token_set([text], line=line, column=column), text))
        ids = text[2:-2].strip()
        excluded = ids.startswith("^")
        parts: list[Named] = []
        for part in [] if ids == "*" else ids.removeprefix("^").split(","):
            found = re.fullmatch(r"\s*(\d{1,9})\s*(?:-\s*(\d{1,9})\s*)?", part)
            if found is None:
                raise source.error(
                    f"the tokens {text} cannot be read: they look like <[1]>, <[1-5,7]>, <[^1]> or <[*]>", token
                )
            parts.append((int(found[1]), int(found[2] or found[1])))
        if excluded or ids == "*":
            return _AnyToken(text, tuple(parts))
        return self._spaced(self._builder.token(token_set(parts, line=line, column=column), text))

    def _any_tokens(self, some: _AnyToken, low: int, high: int | None, node: Node, source: Source) -> Symbol:
        line, column = place_of(node)
        if low > 1:
            raise source.error(
                f"{some.text}: at least {low} tokens cannot be asked for: a text may be cut into fewer", node
            )
        language, name = any_tokens(some.excluded, low, line=line, column=column), f"{some.text}{'+' if low else '*'}"
        if high is None:
            return self._spaced(self._builder.token(language, name))
        if high == 0:
            return self._builder.choice([()])
        return self._spaced(
            self._builder.limited_token(
                language, high, lambda reason: source.error(f"{some.text}: {reason}", node), name
            )
        )

    def _block(self, token: Token, source: Source) -> Symbol:
        """The symbol of another notation inside the grammar."""
        if str(token) == "%regex":
            return self._spaced(self._builder.lexeme(regex_block(token, source), "%regex"))
        if not isinstance(token, BlockToken):
            raise source.error(f"{token} needs braces behind it, as in {token} {{...}}", token)
        if token.block.kind in _DOCUMENTS:
            return self._spaced(self._document(token, source))
        # What stands before it in the text is left out, but for its lines, so that places are those of the whole.
        line, column = place_of(token)
        opening = token.block.begin - token.block.keyword
        inner_text = "#\n" * (line - 1) + " " * (column - 1 + opening) + token.block.text
        inner = inner_definitions(inner_text, source, token, self._shared.conventions, self._shared.named)
        return self._spaced(_Compiler(inner, self._builder, self._shared, is_inner=True).compile("start"))

    def _named(self, token: Token) -> Symbol:
        """The symbol of a grammar beside this one; its rules are written when those of this one are."""
        shared, name = self._shared, str(token)[1:]
        if name not in shared.symbols:
            shared.symbols[name] = self._builder.nonterminal(str(token))
            shared.unwritten.append(name)
        return self._spaced(shared.symbols[name])

    def _write_named(self) -> None:
        """Write the rules of all grammars beside this one that something refers to."""
        shared = self._shared
        while shared.unwritten:
            name = shared.unwritten.popleft()
            grammar = shared.named[name]
            if isinstance(grammar, Definitions):
                symbol = _Compiler(grammar, self._builder, shared, is_inner=True).compile("start")
            else:
                symbol = self._complete(name, grammar)
                shared.closed.add(symbol)
            self._builder.add(shared.symbols[name], (symbol,))

    def _complete(self, name: str, grammar: dict[str, Any] | bool | Part | GrammarIR) -> Symbol:
        """The symbol of a schema or of a grammar that is complete."""
        try:
            if isinstance(grammar, GrammarIR):
                return self._builder.include(grammar)
            if isinstance(grammar, Part):
                return grammar.write(self._builder)
            from constrain.grammar.lark.schemas import values_symbol

            return values_symbol(self._builder, grammar)
        except SchemaError as error:
            raise GrammarError(f"@{name}: at {error.pointer}: {error.reason}") from None
        except GrammarError as error:
            raise GrammarError(f"@{name}: {error}") from None

    def _document(self, token: BlockToken, source: Source) -> Symbol:
        # Only here the front-ends of JSON Schema and structural tags are needed, which are larger than this one.
        from constrain.grammar.lark.schemas import schema_symbol, tag_symbol

        if token.block.kind == "json":
            symbol = schema_symbol(self._builder, token, source)
        else:
            symbol = tag_symbol(self._builder, token, source, write_lark)
        self._shared.closed.add(symbol)
        return symbol

    def _numbered(self, token: Token, node: Node, body: Body, arguments: dict[str, _Argument]) -> Symbol:
        """The symbol of a rule with the number that ``token`` says."""
        number = arguments.get(_NUMBER)
        value = self._numbers.value(token, number.value if isinstance(number, _Number) else None, body.source)
        return self._rule(body.scope.resolve(next(tokens_of(node))), (_Number(value),))

    def _make_error(self) -> Callable[[str, str], ConstrainError]:
        places = {place: (definition.source, place_of(definition.token)) for place, definition in self._places.items()}
        return partial(_error, places)


# Blocks that describe texts in JSON, as grammars of their own.
_DOCUMENTS = ("json", "structural_tag")
# How messages of Lark and of its lexer's rules name what they are about.
_NAMED = re.compile(r'(?:the terminal |the rule |^)"(\w+)"|the rule (\w+)|\((\w+): |\b(_?[A-Z][A-Z0-9_]*)\b')
# Rules that collide, in another order in each process.
_COLLIDING = re.compile(r"<(\w+) : ")


def _placed(error: GrammarError, definitions: Definitions) -> GrammarError:
    """An error about Lark's lexer or parser, which know no places, at what it names first, if the text defines that.

    Where rules collide, it is at the one that stands first in the text.
    """

    def named(pattern: re.Pattern[str]) -> list[Definition]:
        names = [found[found.lastindex or 0] for found in pattern.finditer(error.reason)]
        known = [definitions.by_name[name] for name in names if name in definitions.by_name]
        return [definition for definition in known if not definition.source.name]

    found = sorted(named(_COLLIDING), key=lambda each: place_of(each.token)) or named(_NAMED)
    if found:
        return found[0].source.error(error.reason, found[0].token)
    bodies = [body for definition in definitions.by_name.values() for body in definition.bodies]
    for body in (*definitions.ignored, *bodies):
        for token in body.contents.literals:
            if one_line(token) in error.reason and not body.source.name:
                return body.source.error(error.reason, token)
    return error


def _ends_with_token(definition: Definition) -> bool:
    """Whether a rule that is lazy ends with a special token and is text before: that token is its first end anyway."""
    ends = [each for each in definition.attributes if says_where_it_ends((each,))]
    if [each.name for each in ends] != ["lazy"] or len(definition.bodies) != 1:
        return False
    tree = definition.bodies[0].tree
    inner = list(subtrees_of(tree))
    if any(node.data in ("nonterminal", "template_usage", "parametric", "block", "reference") for node in inner):
        return False
    specials = [node for node in inner if node.data == "special"]
    while tree.data == "expansions" and len(tree.children) == 1 and isinstance(tree.children[0], Tree):
        tree = tree.children[0]
    if tree.data == "expansion" and isinstance(tree.children[-1], Tree):
        tree = tree.children[-1]
    return len(specials) == 1 and tree is specials[0] and str(tree.children[0])[:3] not in ("<[*", "<[^")


def _error(places: dict[str, tuple[Source, tuple[int, int]]], reason: str, place: str) -> ConstrainError:
    """The error that the engine finds in a rule.  It is a function by name, so that rules can be pickled."""
    if place not in places:
        return GrammarError(f"{place}: {reason}" if place else reason)
    source, at = places[place]
    return source.error(f'the rule "{place}": {reason}', at)


def _has_inner_grammars(definitions: Definitions) -> bool:
    """Whether there is a grammar inside that ignores other things, or nothing."""
    return any(
        "reference" in body.contents.kinds
        or (
            "block" in body.contents.kinds
            and any(tree.data == "block" and str(tree.children[0]) != "%regex" for tree in subtrees_of(body.tree))
        )
        for definition in definitions.by_name.values()
        for body in definition.bodies
    )
