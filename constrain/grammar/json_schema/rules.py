"""From the normal form to rules and lexemes.

Objects and arrays are written from a queue, not by recursion, so depth of nesting costs no stack.  Lists of members are
left-recursive: wherever a member begins, the unfinished rules are those of the object, whichever members came before,
so the recognizer has one row for it and not one per history.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from functools import lru_cache

from constrain.errors import ConstrainError, GrammarError, SchemaError
from constrain.grammar.ir import GrammarBuilder, GrammarIR, Symbol
from constrain.grammar.json_schema import layout as tokens
from constrain.grammar.json_schema.document import Document, Handle
from constrain.grammar.json_schema.layout import Layout, named_keys, other_keys
from constrain.grammar.json_schema.nodes import (
    ArrayNode,
    BooleanNode,
    Conflict,
    Node,
    NullNode,
    NumberNode,
    ObjectNode,
    StringNode,
    describe,
)
from constrain.grammar.json_schema.normalize import Normalizer
from constrain.grammar.json_schema.numbers import ANY_NUMBER, NumberForm, number_language
from constrain.grammar.json_schema.strings import ANY_CHARACTER, is_text, spell_any, spell_points
from constrain.grammar.regex import regex_code_points
from constrain.grammar.regular import Empty, Regular, intersect, literal, repeat, union

Right = tuple[Symbol, ...]
Container = ArrayNode | ObjectNode


def write_rules(document: Document, layout: Layout) -> GrammarIR:
    """The grammar of the values that are valid for the document's root.

    Raises SchemaError if there certainly is none; where only the engine can know, ``make_error`` of the result does.
    """
    return _RuleWriter(document, layout).write()


class _RuleWriter:
    def __init__(self, document: Document, layout: Layout) -> None:
        self._document = document
        self._layout = layout
        self._normalizer = Normalizer()
        self._builder = GrammarBuilder()
        self._values: dict[Handle, Symbol | None] = {}
        self._why_nothing: dict[Handle, Conflict] = {}
        self._containers: dict[Node, Symbol] = {}
        self._tails: dict[Node, list[Right]] = {}
        # Containers whose rules are still to be written: nonterminal, its opening bracket, node.
        self._queue: deque[tuple[Symbol, Symbol, Container]] = deque()
        # Nonterminals that derive nothing and why; and whether a rule may lead back to itself.
        self._dead: dict[Symbol, Conflict] = {}
        self._may_recur = False

    def write(self) -> GrammarIR:
        builder = self._builder
        start = builder.nonterminal("#")
        normal = self._normalizer.normal(self._document.follow(self._document.root))
        conflict = normal.conflict
        for node in normal.nodes:
            if isinstance(node, (ArrayNode, ObjectNode)):
                bracket = "[" if isinstance(node, ArrayNode) else "{"
                self._queue.append((start, builder.lexeme(literal(bracket), repr(bracket)), node))
            else:
                core = _scalar(node)
                if isinstance(core, Conflict):
                    conflict = core
                else:
                    builder.add(start, (builder.lexeme(core, _name(node)),))
        if conflict is not None:
            self._dead[start] = conflict
        while self._queue:
            symbol, bracket_symbol, node = self._queue.popleft()
            tails = self._tails.get(node)
            if tails is not None:
                # The root, met again below itself: it only differs in the white space before it.
                self._may_recur = True
            else:
                if isinstance(node, ArrayNode):
                    result = self._array_tails(node)
                else:
                    result = self._object_tails(node)
                if isinstance(result, Conflict):
                    self._dead[symbol] = result
                    result = []
                tails = self._tails[node] = result
            for tail in tails:
                builder.add(symbol, (bracket_symbol, *tail))
        builder.warnings += self._document.warnings
        ir = builder.finish(start, make_error=_make_error)
        if self._dead or self._may_recur:
            _check_satisfiable(ir, self._dead)
        return ir

    # -- values ----------------------------------------------------------------------------------

    def _value(self, handle: Handle) -> Symbol | None:
        """The symbol of a value, after white space; None if there certainly is no such value."""
        if handle in self._values:
            return self._values[handle]
        normal = self._normalizer.normal(handle)
        conflict = normal.conflict
        symbols: dict[Symbol, None] = {}
        for node in normal.nodes:
            if isinstance(node, (ArrayNode, ObjectNode)):
                symbols[self._container(node)] = None
                continue
            core = _scalar(node)
            if isinstance(core, Conflict):
                conflict = core
            else:
                symbols[self._builder.lexeme(self._layout.value(core), _name(node))] = None
        result: Symbol | None = None
        if len(symbols) == 1:
            result = next(iter(symbols))
        elif symbols:
            name = handle[0].pointer if handle else ""
            result = self._builder.choice([(symbol,) for symbol in symbols], name)
        else:
            assert conflict is not None
            self._why_nothing[handle] = conflict
        self._values[handle] = result
        return result

    def _container(self, node: Container) -> Symbol:
        symbol = self._containers.get(node)
        if symbol is not None:
            self._may_recur = True
            return symbol
        symbol = self._containers[node] = self._builder.nonterminal(node.pointer)
        layout = self._layout
        if isinstance(node, ArrayNode):
            bracket = self._builder.lexeme(layout.open_array, "'['")
        else:
            bracket = self._builder.lexeme(layout.open_object, "'{'")
        self._queue.append((symbol, bracket, node))
        return symbol

    # -- arrays ----------------------------------------------------------------------------------

    def _array_tails(self, node: ArrayNode) -> list[Right] | Conflict:
        """All that may follow the opening bracket."""
        builder = self._builder
        comma = builder.lexeme(self._layout.comma, "','")
        close = builder.lexeme(self._layout.close_array, "']'")
        low = 0 if node.low is None else node.low.value
        high = None if node.high is None else node.high.value
        elements: list[Symbol] = []
        item: Symbol | None = None
        for index, handle in enumerate((*node.prefix, node.items)):
            if high is not None and index >= high:
                break
            symbol = self._value(handle)
            if symbol is None:
                # Nothing can stand here: the array ends before it at the latest.
                high = index
                if low > high:
                    assert node.low is not None
                    return _nothing(
                        f"item {index}, which must be there (at {node.low.pointer}),", self._why_nothing[handle]
                    )
                break
            if index < len(node.prefix):
                elements.append(symbol)
            else:
                item = symbol
        tails: list[Right] = [(close,)] if low == 0 else []
        members: Right = ()
        for count, element in enumerate(elements, 1):
            members = (*members, comma, element) if members else (element,)
            if count >= low:
                members = self._wrapped(members, node)
                tails.append((*members, close))
        if item is None:
            return tails
        fixed = len(elements)
        most = None if high is None else high - fixed
        if fixed == 0 and low <= 1 and most is None:
            some = builder.nonterminal(node.pointer)
            builder.add(some, (item,))
            builder.add(some, (some, comma, item))
            tails.append((some, close))
            return tails
        least = max(low - fixed, 1)
        if fixed == 0:
            members, least, most = (item,), least - 1, None if most is None else most - 1
        if most != 0:
            pair = builder.sequence((comma, item))
            members = (*members, builder.repeat(pair, least, most))
        tails.append((*members, close))
        return tails

    # -- objects ---------------------------------------------------------------------------------

    def _object_tails(self, node: ObjectNode) -> list[Right] | Conflict:
        """All that may follow the opening brace."""
        builder, layout = self._builder, self._layout
        lexeme = builder.lexeme
        close = lexeme(layout.close_object, "'}'")
        members: Right = ()
        # Whether no member at all is possible so far.
        may_be_empty = True
        for name, handle in self._members(node):
            value = self._value(handle) if is_text(name) else None
            required = name in node.required
            if value is None:
                if not required:
                    continue
                if not is_text(name):
                    return Conflict(
                        "a required name holds a lone surrogate, which no UTF-8 text can", node.required[name]
                    )
                who = f"property {name!r}, which is required (at {node.required[name]}),"
                return _nothing(who, self._why_nothing[handle])
            first_key, next_key = named_keys(layout, name)
            ways: list[Right] = []
            if members:
                if not required:
                    members = self._wrapped(members, node)
                    ways.append(members)
                ways.append((*members, lexeme(next_key, name), value))
            if may_be_empty:
                ways.append((lexeme(first_key, name), value))
                may_be_empty = not required
            members = ways[0] if len(ways) == 1 else (self._any_of(ways, node),)
        other = self._value(node.additional)
        if other is not None:
            first_key, next_key = other_keys(layout, filter(is_text, self._names(node)))
            some = builder.nonterminal(node.pointer)
            if members:
                builder.add(some, members)
            if may_be_empty:
                builder.add(some, (lexeme(first_key, "key"), other))
            builder.add(some, (some, lexeme(next_key, "key"), other))
            members = (some,)
        tails: list[Right] = []
        if members:
            tails.append((*members, close))
        if may_be_empty:
            tails.append((close,))
        return tails

    @staticmethod
    def _members(node: ObjectNode) -> Iterable[tuple[str, Handle]]:
        """All names that are treated alone, in order: those with a schema, then those that are just required."""
        yield from node.properties.items()
        for name in node.required:
            if name not in node.properties:
                yield name, node.additional

    @staticmethod
    def _names(node: ObjectNode) -> dict[str, object]:
        return {**node.properties, **node.required}

    def _wrapped(self, right: Right, node: Node) -> Right:
        """One symbol for what is used more than once."""
        return right if len(right) == 1 else (self._any_of([right], node),)

    def _any_of(self, ways: list[Right], node: Node) -> Symbol:
        symbol = self._builder.nonterminal(node.pointer)
        for way in ways:
            self._builder.add(symbol, way)
        return symbol


def _nothing(who: str, conflict: Conflict) -> Conflict:
    return Conflict(f"{who} can never be valid: {conflict.reason}", conflict.pointer)


# -- scalars -------------------------------------------------------------------------------------


def _scalar(node: Node) -> Regular | Conflict:
    """How the values of a scalar node are written."""
    if isinstance(node, StringNode):
        return _string(node)
    if isinstance(node, NumberNode):
        return _number(node)
    if isinstance(node, BooleanNode):
        if len(node.values) == 2:
            return tokens.BOOLEAN
        return tokens.TRUE if node.values[0] else tokens.FALSE
    assert isinstance(node, NullNode)
    return tokens.NULL


def _name(node: Node) -> str:
    """What the engine calls the lexeme of a scalar: where it comes from, and all that could make it empty."""
    if not isinstance(node, StringNode) or not node.patterns:
        return node.pointer
    parts = [f"pattern {describe(pattern)} (at {pointer})" for pattern, pointer in node.patterns]
    parts += [str(count) for count in (node.low, node.high) if count is not None]
    if node.values is not None:
        parts.append(f"the values at {node.pointer}")
    return "a string with " + " and ".join(parts)


def _string(node: StringNode) -> Regular:
    parts: list[Regular] = []
    if node.values is not None:
        parts.append(spell_any(node.values))
    elif node.low is not None or node.high is not None:
        low = 0 if node.low is None else node.low.value
        parts.append(repeat(ANY_CHARACTER, low, None if node.high is None else node.high.value))
    for pattern, pointer in node.patterns:
        try:
            parts.append(_pattern(pattern))
        except GrammarError as error:
            raise SchemaError(f"pattern {describe(pattern)}: {error}", pointer) from error
    return tokens.quoted(intersect(*parts)) if parts else tokens.STRING


@lru_cache(maxsize=512)
def _pattern(pattern: str) -> Regular:
    return regex_code_points(pattern, anchored=False, dialect="ecma", encode_char=spell_points)


def _number(node: NumberNode) -> Regular | Conflict:
    if node.values is not None:
        return union(*(number_language(node.form, value, False, value, False) for value in node.values))
    low, high = node.low, node.high
    if low is None and high is None:
        return _UNBOUNDED[node.form]
    language = number_language(
        node.form,
        None if low is None else low.value,
        low is not None and low.is_open,
        None if high is None else high.value,
        high is not None and high.is_open,
    )
    if isinstance(language, Empty):
        assert low is not None
        assert high is not None
        return Conflict(
            f"no integer lies between {low.value} (at {low.pointer}) and {high.value} (at {high.pointer})", low.pointer
        )
    return language


_UNBOUNDED = {
    NumberForm.ANY: ANY_NUMBER,
    NumberForm.INTEGRAL: tokens.INTEGER,
    NumberForm.NO_FRACTION: tokens.PLAIN_INTEGER,
}


# -- schemas that nothing satisfies ------------------------------------------------------------


def _make_error(reason: str, place: str) -> ConstrainError:
    return SchemaError(reason, place or "#")


def _check_satisfiable(ir: GrammarIR, dead: dict[Symbol, Conflict]) -> None:
    """Raise SchemaError if the start derives nothing, with a reason; lexemes count as not empty."""
    waiting: dict[Symbol, list[int]] = {}
    missing: list[int] = []
    productive: set[Symbol] = set()
    todo: list[Symbol] = []
    for index, (left, right) in enumerate(ir.productions):
        needed = {symbol for symbol in right if symbol >= 0}
        missing.append(len(needed))
        for symbol in needed:
            waiting.setdefault(symbol, []).append(index)
        if not needed:
            todo.append(left)
    while todo:
        symbol = todo.pop()
        if symbol in productive:
            continue
        productive.add(symbol)
        for index in waiting.get(symbol, ()):
            missing[index] -= 1
            if missing[index] == 0:
                todo.append(ir.productions[index][0])
    if ir.start in productive:
        return
    # The nearest part that is contradictory in itself is the reason; without one it is recursion.
    by_left: dict[Symbol, list[Right]] = {}
    for left, right in ir.productions:
        by_left.setdefault(left, []).append(right)
    order = [ir.start]
    for symbol in order:
        conflict = dead.get(symbol)
        if conflict is not None:
            raise SchemaError(f"nothing is valid for this schema: {conflict.reason}", conflict.pointer)
        for right in by_left.get(symbol, ()):
            order += [part for part in right if part >= 0 and part not in productive and part not in order]
    raise SchemaError("nothing is valid for this schema: what it requires leads back to itself without end", "#")
