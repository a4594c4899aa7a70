"""Terminals: each becomes one regular language.

A terminal is put together from the languages of its parts.  Only where a part has look-around or
an anchor, which can see the other parts, is the terminal joined to one regex first, as Lark does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from constrain.errors import GrammarError
from constrain.grammar.languages import regular as r
from constrain.grammar.languages.derivatives import Automaton
from constrain.grammar.languages.utf8 import ANY_TEXT
from constrain.grammar.lark.definitions import Body, Definition, Definitions
from constrain.grammar.lark.fold import bounds, fold
from constrain.grammar.lark.literals import Pattern, pattern_language, range_language, read_pattern
from constrain.grammar.lark.source import Node, Source, subtrees_of
from constrain.grammar.lark.substring import regex_block
from constrain.grammar.lark.tree import Token, Tree
from constrain.grammar.regex import regex_language
from constrain.grammar.regex.single_bytes import byte_language
from constrain.limits import spend

# The engine walks a regular language recursively, so its depth has to stay far below Python's limit.
_MAX_DEPTH = 100
# The work for all terminals together, in nodes and literal bytes, with repetitions written out: what an
# automaton for all of them could reach.
_MAX_SIZE = 3_000_000

# Derivatives that are made for a warning, in units of (derivative, byte class); one that takes more is left out.
_EFFORT_FOR_WARNING = 5_000


@dataclass(frozen=True)
class _Part:
    """A language with its size in nodes and bytes, repetitions written out, and the depth of its tree."""

    language: r.Regular
    size: int
    depth: int


def _place(token: Token, source: Source) -> str:
    line, column = token.place
    return f"line {line}, column {column}{f' of {source.name}' if source.name else ''}"


@lru_cache(maxsize=256)
def _is_empty(language: r.Regular) -> bool | None:
    """Whether a language has no text, for a warning; None if that is not clear soon.

    Kept, as it takes a third of the time in which a grammar is read that has been read before.
    """
    return Automaton(language).is_empty(_EFFORT_FOR_WARNING)


class Terminals:
    """Compiles terminals on demand, each one once.

    Parameters
    ----------
    definitions : Definitions
        Names must have been checked: every terminal that is used exists, none is recursive.

    Attributes
    ----------
    warnings : list of str
    """

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._ascii_case = definitions.conventions.ascii_case
        self._json_strings = definitions.conventions.json_strings
        self._dialect = definitions.conventions.dialect
        self._is_bytes = definitions.conventions.is_bytes
        self._parts: dict[str, _Part] = {}
        # By the token's identity; a pattern holds its token.
        self._patterns: dict[int, tuple[Pattern, _Part | None]] = {}
        self._asserting: dict[str, bool] = {}
        self._joined: dict[str, str] = {}
        self._size = 0
        self.warnings: list[str] = []

    def named(self, name: str) -> r.Regular:
        """The language of the terminal with this name (in the whole grammar)."""
        if name not in self._parts:
            for dependency in self._in_order(name):
                if dependency not in self._parts:
                    self._parts[dependency] = self._compile(self._definitions.by_name[dependency], dependency)
        return self._parts[name].language

    def anonymous(self, body: Body) -> r.Regular:
        """The language of an expression outside of any definition, as in ``%ignore "x"+``."""
        definition = Definition("%ignore", Token("TERMINAL", "%ignore"), True, (), [body], body.source)
        for name in terminal_references(definition):
            self.named(name)
        return self._compile(definition, None).language

    def of_rule(self, definition: Definition) -> tuple[r.Regular, r.Regular | None, bool]:
        """What a rule made of terminals is, the end that it names if any, and whether it ends at its first end.

        ``[lazy]`` ends at the first place where it can.  ``[suffix=...]`` and ``[stop=...]`` put an end behind it, the
        first of which is the last thing that is read (:mod:`.first_ends`): that is left to the caller.

        Raises
        ------
        GrammarError
            If a part of it is no terminal.
        """
        found = first_non_terminal(definition)
        if found is not None:
            source, tree = found
            raise source.error(
                f'[{definition.attributes[0].name}]: the rule "{definition.name}" names its end, so it has '
                "to be made of terminals alone",
                tree,
            )
        for name in terminal_references(definition):
            self.named(name)
        part = self._compile(definition, None)
        for attribute in definition.attributes:
            if attribute.name in ("stop", "suffix"):
                assert attribute.value is not None
                end = self._end(attribute.value, definition)
                # A stop that is the end of the generation says nothing about the text.
                if end is not r.EPSILON:
                    return part.language, end, True
        return part.language, None, any(attribute.name == "lazy" for attribute in definition.attributes)

    def _end(self, token: Token, definition: Definition) -> r.Regular:
        if token.type == "TERMINAL":
            return self.named(definition.bodies[0].scope.resolve(token))
        return self.literal(token, definition.source)

    def literal(self, token: Token, source: Source) -> r.Regular:
        """The language of a string or regex."""
        return self._literal(token, source).language

    def warn_if_empty(self, name: str | None, token: Token, source: Source, language: r.Regular) -> None:
        """Warn of look-around or anchors that leave no text: they look at text that is no part of their terminal.

        ``token`` is where the terminal is defined, or, without a ``name``, a string or regex that stands in a rule.
        """
        asserts = self._pattern(token, source)[0].has_assertion if name is None else self._asserting.get(name)
        if asserts and _is_empty(language):
            what = "this regex" if name is None else f'the terminal "{self._definitions.by_name[name].name}"'
            self.warnings.append(
                f"{_place(token, source)}: {what} matches no text: "
                "look-around and anchors see their own terminal only, not what follows it or stands before it"
            )

    # -- putting parts together --------------------------------------------------------------------

    def _in_order(self, name: str) -> Iterator[str]:
        """The terminals that ``name`` is made of, before those made of them; ``name`` comes last."""
        done: set[str] = set()
        todo = [(name, False)]
        while todo:
            spend()
            current, ready = todo.pop()
            if ready:
                yield current
            elif current not in done:
                done.add(current)
                todo.append((current, True))
                todo.extend((other, False) for other in terminal_references(self._definitions.by_name[current]))

    def _compile(self, definition: Definition, name: str | None) -> _Part:
        asserts = self._has_assertion(definition)
        if name is not None:
            self._asserting[name] = asserts
        single = _single_pattern(definition)
        if single is not None:
            return self._literal(single, definition.bodies[0].source)
        if asserts:
            text = self._join(definition)
            if name is not None:
                self._joined[name] = text
            try:
                joined = (
                    byte_language(text, dialect=self._dialect)
                    if self._is_bytes
                    else regex_language(text, ascii_case=self._ascii_case, dialect=self._dialect)
                )
                part = _measured(joined)
            except GrammarError as error:
                raise definition.source.error(
                    f'the terminal "{definition.name}" has look-around or anchors, so its parts were joined to one '
                    f"regex, which cannot be used: {error.reason}",
                    definition.bodies[0].tree,
                ) from None
        else:
            part = self._union([self._fold(body) for body in definition.bodies], definition.bodies[0])
        return part

    def _fold(self, body: Body) -> _Part:
        def combine(node: Node, values: list[Any]) -> Any:
            kind = node.data
            if kind == "literal":
                return self._literal(values[0], body.source)
            if kind == "range":
                return _measured(range_language(node, body.source))
            if kind == "terminal":
                return self._parts[body.scope.resolve(values[0])]
            if kind == "expansion":
                return self._concat(values, body)
            if kind == "expansions":
                return self._union(values, body)
            if kind == "maybe":
                return self._repeat(values[0], 0, 1, body)
            if kind == "conjunction":
                return self._intersect(values, body)
            if kind == "negation":
                return self._negate(values[0], body)
            if kind == "block":
                return _measured(regex_block(values[0], body.source))
            assert kind == "expr", kind
            return self._repeat(values[0], *bounds(node, body.source), body)

        part = fold(body.tree, combine)
        assert isinstance(part, _Part)
        return part

    def _literal(self, token: Token, source: Source) -> _Part:
        pattern, part = self._pattern(token, source)
        if part is None:
            language = pattern_language(
                pattern, source, ascii_case=self._ascii_case, is_bytes=self._is_bytes, dialect=self._dialect
            )
            part = _measured(language)
            self._patterns[id(token)] = pattern, part
        return part

    def _pattern(self, token: Token, source: Source) -> tuple[Pattern, _Part | None]:
        key = id(token)
        known = self._patterns.get(key)
        if known is None:
            pattern = read_pattern(token, source, is_json=self._json_strings, is_bytes=self._is_bytes)
            warnings = [*pattern.warnings]
            if pattern.is_lazy:
                warnings.append(
                    "a lazy quantifier is the same as a greedy one here: there is no first match, only the language"
                )
            self.warnings += [f"{_place(token, source)}: {warning}" for warning in warnings]
            known = self._patterns[key] = pattern, None
        return known

    def _concat(self, parts: list[_Part], body: Body) -> _Part:
        if len(parts) == 1:
            return parts[0]
        size, depth = self._checked(parts, body)
        return _Part(r.concat(*(part.language for part in parts)), size, depth)

    def _union(self, parts: list[_Part], body: Body) -> _Part:
        if len(parts) == 1:
            return parts[0]
        size, depth = self._checked(parts, body)
        return _Part(r.union(*(part.language for part in parts)), size, depth)

    def _intersect(self, parts: list[_Part], body: Body) -> _Part:
        size, depth = self._checked(parts, body)
        return _Part(r.intersect(*(part.language for part in parts)), size, depth)

    def _negate(self, part: _Part, body: Body) -> _Part:
        size, depth = self._checked([part], body)
        other = r.complement(part.language)
        return _Part(other if self._is_bytes else r.intersect(ANY_TEXT, other), size, depth + 1)

    def _repeat(self, part: _Part, low: int, high: int | None, body: Body) -> _Part:
        size, depth = self._checked([part], body, max(low if high is None else high, 1))
        return _Part(r.repeat(part.language, low, high), size, depth)

    def _checked(self, parts: list[_Part], body: Body, count: int = 1) -> tuple[int, int]:
        """Size and depth of ``count`` times all ``parts``; checked before the work is done."""
        size = count * sum(part.size for part in parts) + 1
        depth = max((part.depth for part in parts), default=0) + 1
        if depth > _MAX_DEPTH:
            raise body.source.error(f"the terminal is nested more than {_MAX_DEPTH} levels deep", body.tree)
        self._charge(size, body)
        return size, depth

    def _charge(self, size: int, body: Body) -> None:
        self._size += size
        if self._size > _MAX_SIZE:
            raise body.source.error(
                f"the terminals, put into each other, are larger than {_MAX_SIZE} characters in all", body.tree
            )

    # -- terminals with look-around ------------------------------------------------------------------

    def _has_assertion(self, definition: Definition) -> bool:
        for body in definition.bodies:
            for token in body.contents.literals:
                if self._pattern(token, body.source)[0].has_assertion:
                    return True
        return any(self._asserting[name] for name in terminal_references(definition))

    def _join(self, definition: Definition) -> str:
        """The terminal as one regex in Python's notation."""

        def group(texts: list[str]) -> str:
            return texts[0] if len(texts) == 1 else f"(?:{'|'.join(texts)})"

        def join(body: Body) -> str:
            def combine(node: Node, values: list[Any]) -> Any:
                kind = node.data
                if kind == "literal":
                    return self._pattern(values[0], body.source)[0].to_regex()
                if kind == "range":
                    range_language(node, body.source)
                    first, last = (ord(read_pattern(token, body.source).text) for token in values)
                    return f"[\\U{first:08x}-\\U{last:08x}]"
                if kind == "terminal":
                    return self._joined_name(body.scope.resolve(values[0]))
                if kind == "expansion":
                    self._charge(sum(map(len, values)), body)
                    return "".join(values)
                if kind == "expansions":
                    return group(values)
                if kind in ("conjunction", "negation", "block"):
                    shown = {"conjunction": '"&"', "negation": '"~"', "block": "%regex"}[str(kind)]
                    raise body.source.error(f"{shown} cannot stand in a terminal with look-around or anchors", node)
                low, high = (0, 1) if kind == "maybe" else bounds(node, body.source)
                return f"(?:{values[0]}){{{low},{'' if high is None else high}}}"

            text = fold(body.tree, combine)
            assert isinstance(text, str)
            return text

        return group([join(body) for body in definition.bodies])

    def _joined_name(self, name: str) -> str:
        if name not in self._joined:
            for dependency in self._in_order(name):
                if dependency not in self._joined:
                    self._joined[dependency] = self._join(self._definitions.by_name[dependency])
        return self._joined[name]


def first_non_terminal(definition: Definition) -> tuple[Source, Node] | None:
    """The first part of a rule that is no terminal, with where it stands."""
    for body in definition.bodies:
        for tree in subtrees_of(body.tree):
            if tree.data in ("nonterminal", "template_usage", "special", "parametric", "reference") or (
                tree.data == "block" and str(tree.children[0]) != "%regex"
            ):
                return body.source, tree
    return None


def terminal_references(definition: Definition) -> tuple[str, ...]:
    """The terminals a terminal's bodies name, as called in the whole grammar."""
    bodies = definition.bodies
    if len(bodies) == 1:
        return bodies[0].terminals
    return tuple(dict.fromkeys(name for body in bodies for name in body.terminals))


def _single_pattern(definition: Definition) -> Token | None:
    """The string or regex that a terminal is, if it is nothing else: joining would change nothing."""
    if len(definition.bodies) != 1:
        return None
    tree: Node | Token = definition.bodies[0].tree
    while isinstance(tree, Tree) and len(tree.children) == 1:
        if tree.data == "literal":
            (token,) = tree.children
            assert isinstance(token, Token)
            return token
        if tree.data not in ("expansions", "expansion"):
            return None
        tree = tree.children[0]
    return None


def _measured(language: r.Regular) -> _Part:
    return _Part(language, *_size_and_depth(language))


@lru_cache(maxsize=512)
def _size_and_depth(language: r.Regular) -> tuple[int, int]:
    """Size and depth of a language that was not put together here; shared parts are walked once."""
    known: dict[int, tuple[int, int]] = {}
    todo = [language]
    while todo:
        node = todo[-1]
        kind = type(node)
        size, depth = 1, 0
        if kind is r.Literal:
            size += len(node.data)  # type: ignore[attr-defined]
        elif kind is not r.ByteSet:
            inner = node.inner
            missing = [item for item in inner if id(item) not in known]
            if missing:
                todo += missing
                continue
            for item in inner:
                measure = known[id(item)]
                size += measure[0]
                depth = max(depth, measure[1])
        known[id(node)] = size, depth + 1
        todo.pop()
    spend(len(known))
    return known[id(language)]
