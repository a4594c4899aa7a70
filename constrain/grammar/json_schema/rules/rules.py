"""From the normal form to rules and lexemes.

Objects and arrays are written from a queue, not by recursion, so depth of nesting costs no stack.  Lists of members are
left-recursive: wherever a member begins, the unfinished rules are those of the object, whichever members came before,
so the recognizer has one row for it and not one per history.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

from constrain.errors import ConstrainError, SchemaError
from constrain.grammar.embedding import EmbeddingBuilder
from constrain.grammar.ir import GrammarBuilder, GrammarIR, Symbol
from constrain.grammar.json_events import JsonReader
from constrain.grammar.json_schema.document.document import Document
from constrain.grammar.json_schema.document.places import Handle
from constrain.grammar.json_schema.lexical.idn.a_labels import HostNames
from constrain.grammar.json_schema.lexical.idn.hostnames import idn_hostname, may_be_in_name
from constrain.grammar.json_schema.lexical.layout import MAX_INDENTED_DEPTH, Layout
from constrain.grammar.json_schema.lexical.numbers import NumberForm
from constrain.grammar.json_schema.lexical.prelude import stock_for
from constrain.grammar.json_schema.lexical.texts import HOST_NAME, Format, is_regular
from constrain.grammar.json_schema.lexical.words import describe
from constrain.grammar.json_schema.normal import nodes as n
from constrain.grammar.json_schema.normal.algebra import content
from constrain.grammar.json_schema.normal.metaschema import check_document
from constrain.grammar.json_schema.normal.normalize import Normalizer
from constrain.grammar.json_schema.rules.arrays import array_tails
from constrain.grammar.json_schema.rules.objects import object_tails
from constrain.grammar.json_schema.text_dependent.counted_multiples import CountedMultiples, Multiples, can_be_counted
from constrain.grammar.json_schema.writing.context import BegunMembers, Right
from constrain.grammar.json_schema.writing.listed_values import MIN_LISTED, is_listed, listed_language
from constrain.grammar.json_schema.writing.scalars import is_regular_number, plain_scalar, scalar, scalar_name
from constrain.grammar.languages.regular import Empty, Regular
from constrain.grammar.rules_on_demand import Template, UnfoldingMaker
from constrain.limits import spend

Container = n.ArrayNode | n.ObjectNode

# No symbol of a lexeme or nonterminal.
_NOT_WRITTEN: Symbol = 1 << 40


class RuleWriter:
    """Writes values; it is the :class:`~..writing.context.Context` of arrays and objects.

    Parameters
    ----------
    document : Document
    layout : Layout
    any_order : bool
    max_work : int
    whole : EmbeddingBuilder, optional
        Of a grammar that the values are part of; without it they are a grammar of their own.
    """

    def __init__(
        self, document: Document, layout: Layout, any_order: bool, max_work: int, whole: EmbeddingBuilder | None = None
    ) -> None:
        self._document = document
        self.is_part = whole is not None
        self.told_apart: set[Handle] = set()
        self.satisfiable: set[Handle] = set()
        self.layout = layout
        self.any_order = any_order
        self.refuse = document.refuse
        self.note = document.note
        self.normal = Normalizer(max_work, document).normal
        self.builder: GrammarBuilder = GrammarBuilder() if whole is None else whole
        self.key = self.builder.own_lexeme
        self._first = self.builder.nonterminal_count
        self._first_production = self.builder.production_count
        # What was written in each layout.
        self._known: dict[Layout, _Written] = {}
        self._written = _Written()
        self._why_nothing: dict[Handle, n.Conflict] = {}
        self._tails: dict[tuple[n.Node, Layout], list[Right]] = {}
        # Containers whose rules are still to be written: nonterminal, its opening bracket, node, its layout.
        self._queue: deque[tuple[Symbol, Symbol, Container, Layout]] = deque()
        # Nonterminals that derive nothing and why; and whether a rule may lead back to itself.
        self._dead: dict[Symbol, n.Conflict] = {}
        self._may_recur = False
        self._unfolded: dict[Symbol, Template] = {} if whole is None else whole.unfolded
        self.makes_lexemes = False
        self._formats: set[str] = set() if whole is None else whole.formats

    def write(self, around: Regular | None = None) -> GrammarIR:
        """The grammar of the values of the document's root; with some white space around them.

        Raises SchemaError if there certainly is none; where only the engine can know, ``make_error`` of the result
        does.
        """
        start = self.write_root()
        self.check_satisfiable(start)
        # Last, so that what is wrong with a part that matters is told by who knows what it is for.
        check_document(self._document)
        self.builder.warnings += self._document.warnings
        whole = start
        if around is not None:
            space = self.builder.optional(self.builder.lexeme(around, "white space"))
            whole = self.builder.sequence((space, start, space))
        return self.builder.finish(
            whole,
            make_error=_make_error,
            describe=describe,
            unfolded=self._unfolded,
            make_unfolding=(
                UnfoldingMaker(self._unfolded, self.builder.lexemes(), self.builder.nonterminal_count)
                if self._unfolded
                else None
            ),
            makes_lexemes=self.makes_lexemes,
            stock=stock_for(self._formats),
            make_events=JsonReader,
        )

    def check_satisfiable(self, start: Symbol) -> None:
        """Raise SchemaError if what was written derives nothing."""
        if self._dead or self._may_recur:
            productions = self.builder.productions_since(self._first_production)
            _check_satisfiable(productions, start, self._first, self.builder.nonterminal_count, self._dead)

    def root(self) -> n.Normal:
        """The normal form of the document's root."""
        return self.normal(self._document.references.follow(self._document.root))

    def write_root(self) -> Symbol:
        """The nonterminal of the values of the document's root, without white space before them."""
        normal = self.root()
        return self.write_nodes(normal.nodes, normal.conflict)

    def write_nodes(self, alternatives: tuple[n.Node, ...], conflict: n.Conflict | None) -> Symbol:
        """The same for some of the root's alternatives; ``conflict`` says why there is nothing else."""
        builder = self.builder
        start = builder.nonterminal("#")
        listed, nodes = self._listed(alternatives, self.layout, is_root=True)
        if listed is not None:
            builder.add(start, (listed,))
        for node in nodes:
            if isinstance(node, (n.ArrayNode, n.ObjectNode)):
                if isinstance(node, n.ArrayNode):
                    bracket = builder.lexeme(self.layout.first_array, "'['")
                else:
                    bracket = builder.lexeme(self.layout.first_object, self.layout.object_brackets[0])
                self._queue.append((start, bracket, node, self.layout))
            else:
                symbol = self._scalar(node, _nothing_before)
                if isinstance(symbol, n.Conflict):
                    conflict = symbol
                else:
                    builder.add(start, (symbol,))
        if conflict is not None:
            self._dead[start] = conflict
        self.write_queued()
        return start

    def write_queued(self) -> None:
        """Write the arrays and objects that symbols were asked for."""
        builder = self.builder
        while self._queue:
            spend(5)
            symbol, bracket_symbol, node, layout = self._queue.popleft()
            if layout is not self.layout or layout not in self._known:
                self.layout = layout
                self._written = self._known.setdefault(layout, _Written())
            tails = self._tails.get((node, layout))
            if tails is not None:
                # The root, met again below itself: it only differs in the white space before it.
                self._may_recur = True
            else:
                if isinstance(node, n.ArrayNode):
                    result = array_tails(self, node)
                else:
                    result = object_tails(self, node)
                if isinstance(result, n.Conflict):
                    self._dead[symbol] = result
                    result = []
                tails = self._tails[node, layout] = result
            empty = layout.empty_array if isinstance(node, n.ArrayNode) else layout.empty_object
            for tail in tails:
                if len(tail) == 1 and tail[0] < 0 and empty is not None:
                    builder.add(symbol, (builder.lexeme(empty, "an empty value"),))
                else:
                    builder.add(symbol, (bracket_symbol, *tail))

    # -- values ----------------------------------------------------------------------------------

    def value(self, handle: Handle) -> Symbol | None:
        """The symbol of a value, after white space; None if there certainly is no such value."""
        written = self._written
        values = written.values
        result = values.get(handle, _NOT_WRITTEN)
        if result != _NOT_WRITTEN:
            return result
        if not handle and self.layout.inner is self.layout and not self.any_order and not self.is_part:
            result = values[handle] = self._any_value()
            return result
        core = plain_scalar(handle, self.layout.notation)
        if core is not None:
            # Most values of a schema are of four or five kinds.
            known = written.scalars.get(id(core))
            if known is None:
                # Equal ones are the same object, so none has to be looked for by its content.
                known = self.builder.own_lexeme(self.layout.value(core), handle[0].pointer), core
                written.scalars[id(core)] = known
            result = values[handle] = known[0]
            return result
        normal = self.normal(handle)
        conflict = normal.conflict
        symbols: dict[Symbol, None] = {}
        listed, nodes = self._listed(normal.nodes, self.layout.inner)
        if listed is not None:
            symbols[listed] = None
        for node in nodes:
            if isinstance(node, (n.ArrayNode, n.ObjectNode)):
                container = self._container(node)
                if container is None:
                    conflict = n.Conflict(f"values are nested more than {MAX_INDENTED_DEPTH} levels deep", node.pointer)
                else:
                    symbols[container] = None
                continue
            symbol = self._scalar(node, self.layout.value)
            if isinstance(symbol, n.Conflict):
                conflict = symbol
            else:
                symbols[symbol] = None
        result = None
        if len(symbols) == 1:
            result = next(iter(symbols))
        elif symbols:
            name = handle[0].pointer if handle else ""
            result = self.builder.choice([(symbol,) for symbol in symbols], name)
        else:
            assert conflict is not None
            self._why_nothing[handle] = conflict
        values[handle] = result
        return result

    @property
    def begun_members(self) -> BegunMembers:
        """Of the objects of the layout."""
        return self._written.begun_members

    def member(self, name: str | None, handle: Handle) -> Symbol | None:
        """The symbol of a value; in JSON it does not matter whose."""
        return self.value(handle)

    def _any_value(self) -> Symbol:
        """The symbol of every value, written at once: nearly every schema needs it, and none needs it otherwise."""
        builder, layout, notation = self.builder, self.layout, self.layout.notation
        # All of these are the layout's own objects.
        add, lexeme = builder.add, builder.own_lexeme
        value, an_object, an_array = builder.nonterminal(), builder.nonterminal("#"), builder.nonterminal("#")
        for core in (notation.string, notation.numbers[NumberForm.ANY], notation.boolean, notation.null):
            add(value, (lexeme(layout.value(core), "#"),))
        add(value, (an_object,))
        add(value, (an_array,))
        members, items = builder.nonterminal("#"), builder.nonterminal("#")
        first_key, next_key = layout.any_keys
        opening, closing = lexeme(layout.open_object, "'{'"), lexeme(layout.close_object, "'}'")
        add(members, (builder.distinct_key(first_key, "key"), value))
        add(members, (members, builder.distinct_key(next_key, "key"), value))
        add(an_object, (opening, members, closing))
        add(an_object, (opening, closing))
        opening, closing = lexeme(layout.open_array, "'['"), lexeme(layout.close_array, "']'")
        add(items, (value,))
        add(items, (items, lexeme(layout.comma, "','"), value))
        add(an_array, (opening, items, closing))
        add(an_array, (opening, closing))
        symbols = {"object": an_object, "array": an_array}
        self._written.containers.update((node, symbols[node.kind]) for node in n.ANY.nodes if node.kind in symbols)
        return value

    def _listed(
        self, nodes: tuple[n.Node, ...], layout: Layout | None, *, is_root: bool = False
    ) -> tuple[Symbol | None, Sequence[n.Node]]:
        """The symbol of all arrays and objects of a long list of values; and the nodes that are still to be written."""
        if len(nodes) < MIN_LISTED or self.any_order or layout is None:
            return None, nodes
        several = [node for node in nodes if is_listed(node)]
        if len(several) < MIN_LISTED:
            return None, nodes
        language = listed_language(several, layout, self.refuse, is_root=is_root)
        if isinstance(language, Empty):
            return None, nodes
        known = set(several)
        symbol = self.builder.own_lexeme(language, f"a value listed at {several[0].pointer.rpartition('/')[0]}")
        return symbol, [node for node in nodes if node not in known]

    def why_nothing(self, handle: Handle) -> n.Conflict:
        """Why :meth:`value` gave None for a handle."""
        return self._why_nothing[handle]

    def scalar(self, node: n.Node) -> Symbol | None:
        """The symbol of a scalar node, after white space."""
        symbol = self._scalar(node, self.layout.value)
        return None if isinstance(symbol, n.Conflict) else symbol

    def node(self, node: n.Node) -> Symbol | n.Conflict:
        """The symbol of a node, after white space."""
        if not isinstance(node, (n.ArrayNode, n.ObjectNode)):
            return self._scalar(node, self.layout.value)
        symbol = self._container(node)
        return n.Conflict("values are nested too deeply", node.pointer) if symbol is None else symbol

    def note_dead(self, symbol: Symbol, conflict: n.Conflict) -> None:
        """Note that a nonterminal derives nothing, and why."""
        self._dead[symbol] = conflict

    def _scalar(self, node: n.Node, opened: Callable[[Regular], Regular]) -> Symbol | n.Conflict:
        """The symbol of a scalar node; ``opened`` puts before a token what may stand before it."""
        notation = self.layout.notation
        spelling = notation.spelling
        if isinstance(node, n.StringNode) and node.values is None and node.terms:
            self._formats.update([term.text.name for term in node.terms if type(term.text) is Format])
            is_alone = len(node.terms) == 1 and node.low is None and node.high is None
            # What is excluded is an assertion about the string, too.
            is_alone = is_alone and not any(map(may_be_in_name, spelling.excludes))
            irregular = n.irregular_term(node)
            if irregular is not None:
                where = irregular.pointer
                if is_alone and isinstance(irregular.text, Format):
                    self.note("how long labels are in Punycode, and that they are in form C, is not enforced", where)
                    a_labels = self._names_with_a_labels(HostNames(self.builder, opened, spelling))
                    return self.builder.choice([(idn_hostname(self.builder, opened, spelling),), (a_labels,)])
                self.refuse(f"{irregular.text} beside other assertions about the string is not supported", where)
                node = replace(node, terms=tuple(term for term in node.terms if is_regular(term.text)))
            if any(term.text == HOST_NAME for term in node.terms):
                if is_alone:
                    names = HostNames(self.builder, opened, spelling)
                    return self.builder.choice([(names.plain(),), (self._names_with_a_labels(names),)])
                where = next(term.pointer for term in node.terms if term.text == HOST_NAME)
                self.note("what Punycode stands for is not looked at beside other assertions about the string", where)
        if isinstance(node, n.NumberNode) and (node.divisors or node.not_divisors) and can_be_counted(node):
            numbers = Multiples(node, notation.is_plain)
            if numbers.is_involved or not is_regular_number(node):
                return self._counted(node, numbers, opened)
        core = scalar(node, self.refuse, notation)
        return core if isinstance(core, n.Conflict) else self.builder.lexeme(opened(core), scalar_name(node))

    def _names_with_a_labels(self, names: HostNames) -> Symbol:
        symbol = self.unfolded(names, str(HOST_NAME))
        self.builder.add(symbol, (names.begins,))
        self.makes_lexemes = True
        return symbol

    def _counted(
        self, node: n.NumberNode, numbers: Multiples, opened: Callable[[Regular], Regular]
    ) -> Symbol | n.Conflict:
        if not numbers.is_any():
            return n.Conflict(f"there is not {scalar_name(node)}", node.pointer)
        template = CountedMultiples(numbers, self.builder, opened)
        symbol = self.unfolded(template, scalar_name(node))
        self.builder.add(symbol, template.example)
        return symbol

    def written_value(self, layout: Layout, handle: Handle) -> Symbol | None:
        """The symbol of a value in a layout; None if there is none."""
        written = self._known.get(layout)
        return None if written is None else written.values.get(handle)

    def written_container(self, layout: Layout, node: n.Node) -> Symbol | None:
        """The symbol of an array or object in a layout."""
        written = self._known.get(layout)
        return None if written is None else written.containers.get(node)

    def unfolded(self, template: Template, name: str) -> Symbol:
        """A new nonterminal whose rules a template makes as they are needed."""
        symbol = self.builder.nonterminal(name)
        self._unfolded[symbol] = template
        return symbol

    def _container(self, node: Container) -> Symbol | None:
        """The nonterminal of an array or object; None if it would be nested too deeply for its layout."""
        containers = self._written.containers
        symbol = containers.get(node)
        if symbol is not None:
            self._may_recur = True
            return symbol
        layout = self.layout.inner
        if layout is None:
            return None
        same = content(node)
        symbol = self._written.by_content.get(same)
        if symbol is not None and _has_parts(node):
            # Mostly alternatives that come of one schema in several ways, such as by way of different branches.
            containers[node] = symbol
            self._may_recur = True
            return symbol
        symbol = containers[node] = self._written.by_content[same] = self.builder.nonterminal(node.pointer)
        if isinstance(node, n.ArrayNode):
            bracket = self.builder.lexeme(layout.open_array, "'['")
        else:
            bracket = self.builder.lexeme(layout.open_object, "'{'")
        self._queue.append((symbol, bracket, node, layout))
        return symbol


class _Written:
    """The symbols of what stands in containers of one layout."""

    def __init__(self) -> None:
        self.values: dict[Handle, Symbol | None] = {}
        # By the identity of their language, which is held here.
        self.scalars: dict[int, tuple[Symbol, Regular]] = {}
        self.containers: dict[n.Node, Symbol] = {}
        # By what makes two nodes the same.
        self.by_content: dict[object, Symbol] = {}
        self.begun_members: BegunMembers = {}


def _has_parts(node: Container) -> bool:
    """Whether a node speaks of schemas: one of the same content then speaks of the same ones."""
    if isinstance(node, n.ArrayNode):
        return bool(node.prefix or node.items or node.contains)
    return bool(node.properties or node.rules or node.additional)


def _nothing_before(token: Regular) -> Regular:
    return token


# -- schemas that nothing satisfies ------------------------------------------------------------


def _make_error(reason: str, place: str) -> ConstrainError:
    return SchemaError(reason, place or "#")


Productions = list[tuple[Symbol, Right]]


def _is_seen_to_derive(by_left: dict[Symbol, list[Right]], start: Symbol, first: Symbol) -> bool:
    """Whether a nonterminal is seen to derive something; False also where that takes more than one look at a rule.

    Lexemes count as not empty, and so do nonterminals below ``first``, which other rules are for.
    """
    derives: set[Symbol] = set()
    begun = {start}
    todo: list[tuple[Symbol, Iterator[Right]]] = [(start, iter(by_left.get(start, ())))]
    while todo:
        symbol, rights = todo.pop()
        for right in rights:
            missing = next((part for part in right if part >= first and part not in derives), None)
            if missing is None:
                derives.add(symbol)
                break
            if missing not in begun:
                begun.add(missing)
                todo += (symbol, chain((right,), rights)), (missing, iter(by_left.get(missing, ())))
                break
    return start in derives


def _productive(productions: Productions, first: int, count: int) -> bytearray:
    """For each nonterminal whether it derives something."""
    productive = bytearray(count)
    productive[:first] = bytes([1]) * first
    waiting: dict[Symbol, list[int]] = {}
    missing: list[int] = []
    todo: list[Symbol] = []
    for index, (left, right) in enumerate(productions):
        needed = {symbol for symbol in right if symbol >= first}
        missing.append(len(needed))
        for symbol in needed:
            waiting.setdefault(symbol, []).append(index)
        if not needed:
            todo.append(left)
    while todo:
        symbol = todo.pop()
        if productive[symbol]:
            continue
        productive[symbol] = 1
        for index in waiting.get(symbol, ()):
            missing[index] -= 1
            if missing[index] == 0:
                todo.append(productions[index][0])
    return productive


def _check_satisfiable(
    productions: Productions, start: Symbol, first: int, count: int, dead: dict[Symbol, n.Conflict]
) -> None:
    """Raise SchemaError if the start derives nothing, with a reason; lexemes count as not empty."""
    by_left: dict[Symbol, list[Right]] = {}
    for left, right in productions:
        by_left.setdefault(left, []).append(right)
    if _is_seen_to_derive(by_left, start, first):
        return
    productive = _productive(productions, first, count)
    if productive[start]:
        return
    # The nearest part that is contradictory in itself is the reason; without one it is recursion.
    order = dict.fromkeys([start])
    todo = deque(order)
    while todo:
        symbol = todo.popleft()
        conflict = dead.get(symbol)
        if conflict is not None:
            raise SchemaError(f"nothing is valid for this schema: {conflict.reason}", conflict.pointer)
        for right in by_left.get(symbol, ()):
            for part in right:
                if part >= 0 and not productive[part] and part not in order:
                    order[part] = None
                    todo.append(part)
    raise SchemaError("nothing is valid for this schema: what it requires leads back to itself without end", "#")
