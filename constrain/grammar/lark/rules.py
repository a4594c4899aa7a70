"""Rules and templates: each becomes productions over the lexemes of the terminals."""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from lark import Token

from constrain.errors import ConstrainError, GrammarError
from constrain.grammar.ir import GrammarBuilder, GrammarIR, Symbol
from constrain.grammar.lark.definitions import Body, Definition, Definitions, collect
from constrain.grammar.lark.fold import bounds, fold
from constrain.grammar.lark.literals import range_language
from constrain.grammar.lark.longest import from_lark_longest
from constrain.grammar.lark.source import Node, Source, subtrees_of, tokens_of
from constrain.grammar.lark.terminals import Terminals
from constrain.grammar.lark.validate import validate

Lexing: TypeAlias = Literal["any", "longest", "longest-basic"]

# Templates can call each other with ever longer arguments; a grammar that ends stays far below.
_MAX_INSTANCES = 10_000
_MAX_INSTANCE_NODES = 2_000_000


@dataclass(frozen=True)
class _Template:
    """A template that is handed over as an argument, by its name in the whole grammar."""

    name: str


_Argument: TypeAlias = "Symbol | _Template"


def from_lark(
    text: str,
    *,
    start: str = "start",
    base_path: str | os.PathLike[str] | None = None,
    lexing: Lexing = "any",
) -> GrammarIR:
    """The IR of a grammar in Lark's notation.

    Parameters
    ----------
    text : str
        The grammar.
    start : str
        The rule (or terminal) that a whole text has to match.
    base_path : path, optional
        Folder in which relative imports (``%import .file.name``) are looked up; they are refused
        without it.
    lexing : "any", "longest" or "longest-basic"
        Any way to split a text into terminals counts; or what Lark's LALR parser accepts with its contextual lexer, or
        with its basic lexer (:mod:`.longest`).

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
    source = Source("", None if base_path is None else Path(base_path))
    definitions = collect(text, source)
    validate(definitions)
    if (definition := definitions.by_name.get(start)) is None:
        known = [name for name, found in definitions.by_name.items() if not found.is_terminal and "." not in name]
        listed = ", ".join(known[:8]) + (", ..." if len(known) > 8 else "")
        raise source.error(f'the start rule "{start}" is not defined (defined are: {listed or "no rules"})')
    if definition.params:
        raise definition.source.error(f'the start rule "{start}" is a template', definition.token)
    if lexing != "any":
        if definition.is_terminal:
            raise definition.source.error(
                f'the start rule "{start}" is a terminal; Lark\'s LALR parser begins with a rule', definition.token
            )
        return from_lark_longest(text, source, start, "basic" if lexing == "longest-basic" else "contextual")
    return _Compiler(definitions).compile(start)


class _Compiler:
    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._builder = GrammarBuilder()
        self._terminals = Terminals(definitions)
        self._symbols: dict[tuple[object, ...], Symbol] = {}
        self._todo: deque[tuple[Symbol, Definition, tuple[_Argument, ...]]] = deque()
        self._instances = 0
        self._instance_nodes = 0
        self._places: dict[str, Definition] = {}

    def compile(self, start: str) -> GrammarIR:
        symbol = self._terminal(start) if self._definitions.by_name[start].is_terminal else self._rule(start, ())
        while self._todo:
            left, definition, arguments = self._todo.popleft()
            for body in definition.bodies:
                for alternative in self._alternatives(body, dict(zip(definition.params, arguments, strict=True))):
                    self._builder.add(left, alternative)
        ignored = [
            self._builder.lexeme(self._terminals.anonymous(body), "%ignore") for body in self._definitions.ignored
        ]
        self._builder.warnings.extend(self._terminals.warnings)
        return self._builder.finish(symbol, dict.fromkeys(ignored), self._make_error())

    def _terminal(self, name: str) -> Symbol:
        key = ("terminal", name)
        if key not in self._symbols:
            self._symbols[key] = self._builder.lexeme(self._terminals.named(name), self._definitions.by_name[name].name)
        return self._symbols[key]

    def _rule(self, name: str, arguments: tuple[_Argument, ...]) -> Symbol:
        key = ("rule", name, arguments)
        if key not in self._symbols:
            definition = self._definitions.by_name[name]
            shown = definition.name + ("{...}" if arguments else "")
            self._places.setdefault(shown, definition)
            symbol = self._symbols[key] = self._builder.nonterminal(shown)
            if arguments:
                self._charge_instance(definition)
            self._todo.append((symbol, definition, arguments))
        return self._symbols[key]

    def _charge_instance(self, template: Definition) -> None:
        self._instances += 1
        self._instance_nodes += sum(1 for body in template.bodies for _ in subtrees_of(body.tree))
        if self._instances > _MAX_INSTANCES or self._instance_nodes > _MAX_INSTANCE_NODES:
            raise template.source.error(
                f"the templates make more than {_MAX_INSTANCES} rules or {_MAX_INSTANCE_NODES} symbols; "
                f'does "{template.name}" call itself with ever new arguments?',
                template.token,
            )

    def _alternatives(self, body: Body, arguments: dict[str, _Argument]) -> list[tuple[Symbol, ...]]:
        """The alternatives of a rule's body; groups in it become nonterminals of their own."""
        source = body.source

        def symbol(value: Any, node: Node) -> Symbol:
            if isinstance(value, _Template):
                raise source.error("a template is used here without arguments", node)
            if isinstance(value, list):
                return self._builder.choice(value)
            assert isinstance(value, int)
            return value

        def combine(node: Node, values: list[Any]) -> Any:
            kind = node.data
            if kind == "literal":
                return self._literal(values[0], source)
            if kind == "range":
                return self._builder.lexeme(range_language(node, source), f"{values[0]}..{values[1]}")
            if kind == "terminal":
                return self._terminal(body.scope.resolve(values[0]))
            if kind == "nonterminal":
                return self._reference(values[0], body, arguments)
            if kind == "template_usage":
                return self._usage(node, tuple(values), body, arguments)
            if kind == "value":
                return values[0]
            if kind == "expansion":
                return tuple(symbol(value, node) for value in values)
            if kind == "expansions":
                return [value if isinstance(value, tuple) else (symbol(value, node),) for value in values]
            if kind == "maybe":
                return self._builder.optional(symbol(values[0], node))
            assert kind == "expr", kind
            return self._builder.repeat(symbol(values[0], node), *bounds(node, source))

        alternatives = fold(body.tree, combine)
        assert isinstance(alternatives, list)
        return alternatives

    def _literal(self, token: Token, source: Source) -> Symbol:
        # Equal texts are equal patterns, whatever file they are in; the first use reports errors.
        key = ("literal", token.type, str(token))
        if key not in self._symbols:
            self._symbols[key] = self._builder.lexeme(self._terminals.literal(token, source), str(token))
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

    def _make_error(self) -> Any:
        places = self._places

        def make_error(reason: str, place: str) -> ConstrainError:
            definition = places.get(place)
            if definition is None:
                return GrammarError(f"{place}: {reason}" if place else reason)
            return definition.source.error(f'the rule "{place}": {reason}', definition.token)

        return make_error
