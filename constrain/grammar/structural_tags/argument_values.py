"""Objects whose members are written in the way of a model, value by value: the rules of :mod:`~.styles`.

Which members there are, in which order, and that none comes twice, is up to the same rules as for JSON objects
(json_schema/rules/objects.py): here is only how a key and a value are written.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from constrain.errors import SchemaError
from constrain.grammar.ir import GrammarBuilder, Symbol
from constrain.grammar.json_schema.document.places import Handle, Never
from constrain.grammar.json_schema.lexical.layout import Layout
from constrain.grammar.json_schema.lexical.notation import USUAL_NOTATION, Spell
from constrain.grammar.json_schema.lexical.numbers import NumberForm
from constrain.grammar.json_schema.lexical.strings import Spelling, is_text
from constrain.grammar.json_schema.lexical.texts import Text, Words, every, pattern_text, plain, without
from constrain.grammar.json_schema.normal import nodes as n
from constrain.grammar.json_schema.normal.few_values import members_of
from constrain.grammar.json_schema.normal.key_classes import other_classes
from constrain.grammar.json_schema.rules.arrays import array_tails
from constrain.grammar.json_schema.rules.objects import object_tails
from constrain.grammar.json_schema.rules.rules import RuleWriter
from constrain.grammar.json_schema.writing.context import BegunMembers, Right
from constrain.grammar.languages import regular as r
from constrain.grammar.languages.prefix_tree import prefix_tree
from constrain.grammar.languages.substrings import ANY_BYTES, occurs_in
from constrain.grammar.languages.utf8 import ANY_CHAR, ANY_TEXT, CodePoints, common, encode, holds, negate, normalize
from constrain.grammar.regex import regex_code_points
from constrain.grammar.rules_on_demand import Template
from constrain.grammar.structural_tags.styles import STYLES, ArgumentStyle
from constrain.grammar.tokens import token_set

_ANY_SPACE = r.byte_set(b" \t\n\r")
_LINE_END = r.literal("\n")
# What a name holds that the schema does not say, and has no pattern for.
_IDENTIFIER = regex_code_points("[a-zA-Z_][a-zA-Z0-9_]*")
_CONTROLS = ((0, 0x1F),)
# These would end a name, in one style or another.
_NO_NAME = "<>\"&='"


def _marks_of(style: ArgumentStyle) -> CodePoints:
    """The characters that no name holds as they are."""
    marks = "".join(style.escapes) if style.any_name else _NO_NAME + style.reserved
    return normalize([*_CONTROLS, *((ord(each), ord(each)) for each in marks)])


class Names(Spelling):
    """How names are written: with the characters of a style that have a meaning otherwise escaped."""

    is_body_all = False

    def __init__(self, style: ArgumentStyle) -> None:
        self._style = style
        self._no_name = _marks_of(style)
        self.character = self.points(((0, 0x10FFFF),))
        self.body = r.repeat(self.character, 1) if style.any_name else _IDENTIFIER

    @lru_cache(maxsize=1024)  # noqa: B019 (there are few, and they live as long as the module)
    def points(self, points: CodePoints) -> r.Regular:
        """One character out of a code point set; none that could not stand in a name."""
        parts = [encode(common(points, negate(self._no_name)))]
        for character, escape in self._style.escapes.items():
            if holds(points, ord(character)):
                parts.append(r.literal(escape))
        return r.union(*parts)

    @lru_cache(maxsize=1024)  # noqa: B019
    def text(self, text: str) -> r.Regular:
        """Exactly this name."""
        return r.literal(self._style.write_name(text))

    def any_of(self, texts: tuple[str, ...]) -> r.Regular:
        """Exactly one of these names."""
        return prefix_tree(texts, self.text)

    def read(self, text: str) -> str:
        """The name that is written so."""
        return self._style.read_name(text)


@lru_cache(maxsize=64)
def _unwritable_names(style_name: str, excludes: tuple[str, ...]) -> Text:
    """The names that hold a character that names cannot hold, or a text that nothing may hold as it is written.

    And those with white space around them, or of nothing else, where only that stands around a name.
    """
    style = STYLES[style_name]

    def is_writable(point: int) -> bool:
        escape = style.escapes.get(chr(point))
        return escape is not None and not any(each in escape for each in excludes)

    bad = [point for first, last in _marks_of(style) for point in range(first, last + 1) if not is_writable(point)]
    texts = [f"[{''.join(map(_escaped, bad))}]", *("".join(map(_escaped, map(ord, each))) for each in excludes)]
    return pattern_text("|".join(texts if style.before_key else [*texts, r"^\s|^$|\s$"]))


def _escaped(point: int) -> str:
    """A character in a pattern."""
    return f"\\u{{{point:x}}}"


class ArgumentLayout(Layout):
    """How the members of an object, or the items of an array, stand one after the other.

    Parameters
    ----------
    style : ArgumentStyle
    space : Regular
        White space that may stand between two of them.
    excludes : tuple of str
        What no key may hold.
    """

    is_json = tells_values = has_pieces_of_keys = False

    def __init__(self, style: ArgumentStyle, space: r.Regular, excludes: tuple[str, ...]) -> None:
        self._names = Names(style)
        self._before = r.concat(space, r.literal(style.before_key))
        head, mark, tail = style.after_key.partition(style.gap_at) if style.gap_at else (style.after_key, "", "")
        self._after = r.concat(r.literal(head), space, r.literal(mark + tail)) if mark else r.literal(head)
        comma = r.literal(style.separator)
        if style.like_json:
            # What stands behind a brace is the container's.
            self._before = r.EPSILON
            self._after, comma = r.concat(space, self._after, space), r.concat(space, comma, space)
        self._has_space_around_names = style.like_json
        self._head = head.encode()
        before_names = (style.openings["object"], style.separator) if style.separator else (style.before_key,)
        self._before_names = tuple(mark.encode() for mark in before_names)
        self._clean = None if not excludes else r.complement(occurs_in(excludes))
        super().__init__(r.EPSILON, comma, r.EPSILON, USUAL_NOTATION)
        self.open_object = self.close_object = self.open_array = self.close_array = r.EPSILON

    @property
    def key_spelling(self) -> Spelling:
        """How names are written."""
        return self._names

    def keys(self, spell: Spell) -> tuple[r.Regular, r.Regular]:
        """Names with what stands around them; and the same behind another member."""
        body = spell(self._names)
        key = r.concat(self._before, body if self._clean is None else r.intersect(body, self._clean), self._after)
        return key, r.concat(self.comma, key)

    def _key_at_end(self, data: bytes) -> str | None:
        begin = max(data.rfind(mark) + len(mark) if mark in data else -1 for mark in self._before_names)
        if begin < 0:
            return None
        written = data[begin : data.index(self._head, begin)].decode()
        return self._names.read(written.strip(" \t\n\r") if self._has_space_around_names else written)


class ArgumentWriter:
    """Writes arguments; it is the :class:`~constrain.grammar.json_schema.writing.context.Context` of their object.

    Parameters
    ----------
    writer : RuleWriter
        Writes values in JSON, and knows the schema.
    style_name : str
    space : Regular
        White space, where any may stand.
    excludes : tuple of str
        What no string, and no key, may hold.
    tokens : tuple of str
        Special tokens among what stands around names and values: they stand for themselves.
    """

    is_part = True

    def __init__(
        self,
        writer: RuleWriter,
        style_name: str,
        space: r.Regular,
        excludes: tuple[str, ...],
        tokens: tuple[str, ...] = (),
    ) -> None:
        self._writer = writer
        self._style_name, self._style = style_name, STYLES[style_name]
        style = self._style
        # White space around values; with a separator it is that around the separator, if there is any.
        self._space = r.EPSILON if style.separator else space
        self._excludes = excludes
        self.builder: GrammarBuilder = writer.builder
        self.any_order = writer.any_order
        self.told_apart = writer.told_apart
        self.satisfiable = writer.satisfiable
        between = r.EPSILON if style.separator and not style.like_json else space
        self.layout: Layout = layout_of(style_name, between, excludes)
        self._values: dict[tuple[Handle, str], Symbol | None] = {}
        self._containers: dict[n.Node, Symbol] = {}
        self.begun_members: BegunMembers = {}
        self._why_nothing: dict[Handle, n.Conflict] = {}
        self._prefix = ""
        self._tokens = re.compile("|".join(map(re.escape, tokens))) if tokens else None
        self._gap = () if between == r.EPSILON else (self.builder.lexeme(between, "white space"),)
        self._has_tokens_at_names = self._holds_token(style.before_key) or self._holds_token(style.after_key)
        self._keys: dict[str, Symbol] = {}
        # The names of the member that is being written and of those around it, for messages.
        self._names: list[str] = []

    def write_root(self) -> Symbol:
        """The symbol of the arguments: of the members of the document's root, which must be an object, or all of it."""
        start = self.builder.nonterminal("#")
        for node in _values_of_root(self._writer) if self._style.like_json else objects_of_root(self._writer):
            if self._style.separator:
                right = self._value_of_node(node)
                if isinstance(right, n.Conflict):
                    self._writer.note_dead(start, right)
                else:
                    self.builder.add(start, right)
                continue
            assert isinstance(node, n.ObjectNode)
            self._write(start, node)
        self._writer.write_queued()
        return start

    def _with_names(self, node: n.ObjectNode) -> n.ObjectNode:
        """An object without members that the schema does not name, where only names can be written.

        That is in a style that repeats the name behind the value, and where there are special tokens around it.  Raises
        SchemaError if there are such members, and the caller is not lenient.
        """
        is_limited = bool(self._style.after_end) or self._has_tokens_at_names
        if not is_limited or all(self.value(handle) is None for _, handle in other_classes(node)):
            return node
        reason = "members that the schema does not name are not supported in this style"
        # What is said of a value of any kind stands nowhere in the schema.
        where = f"; they may come in {'.'.join(self._names)!r}" if self._names else ""
        self._writer.refuse(reason + where, node.pointer, "they are left out")
        named = frozenset(filter(is_text, {**node.properties, **node.required}))
        never = Never(node.pointer, "only names of the schema can be written").handle
        return replace(node, rules=(*node.rules, n.KeyRule(without(Words(named)) if named else every(), never)))

    def _without_unwritable(self, node: n.ObjectNode) -> n.ObjectNode:
        """An object without the named members whose names would be read as others.

        Raises SchemaError if there are some, and the caller is not lenient.
        """
        can_write, normal = self._style.can_write_name, self._writer.normal
        unwritable = {name: handle for name, handle in members_of(node) if not can_write(name) and normal(handle).nodes}
        return without_members(
            self._writer,
            node,
            unwritable,
            lambda name: f"the name {name!r} is not supported in this style: it would be read as another",
        )

    def _write(self, symbol: Symbol, node: n.ArrayNode | n.ObjectNode) -> None:
        """Write what stands in an array or object, with white space behind it, and before it if that is of no part."""
        prefix = self._prefix
        if isinstance(node, n.ArrayNode):
            self._prefix = self._style.before_item
            tails = array_tails(self, node)
        else:
            self._prefix = ""
            named = self._with_names(self._without_unwritable(node))
            tails = object_tails(self, self._with_writable_names(named))
        self._prefix = prefix
        if isinstance(tails, n.Conflict):
            self._writer.note_dead(symbol, tails)
            return
        nothing = (), (self.builder.lexeme(r.EPSILON),)
        for tail in tails:
            before = self._gap if self._style.like_json and tail not in nothing else ()
            self.builder.add(symbol, (*before, *tail, *self._gap))

    def _with_writable_names(self, node: n.ObjectNode) -> n.ObjectNode:
        """An object without the names that patterns allow and the style cannot write: they are no keys to count on."""
        if not node.rules and not node.some:
            return node
        keys = _unwritable_names(self._style_name, self._excludes)
        if node.required:
            keys = every(keys, without(Words(frozenset(filter(is_text, node.required)))))
        never = Never(node.pointer, "names of arguments hold no marks of their style").handle
        return replace(node, rules=(*node.rules, n.KeyRule(keys, never)))

    # -- the context of objects and arrays ---------------------------------------------------------

    def value(self, handle: Handle) -> Symbol | None:
        """The symbol of a value with its opening and its end; None if there certainly is no such value."""
        key = handle, self._prefix
        if key not in self._values:
            symbol = self.builder.nonterminal(handle[0].pointer if handle else "")
            # A value within itself finds the symbol.
            self._values[key] = symbol
            rights: list[Right] = []
            normal = self._writer.normal(handle)
            conflict = normal.conflict
            for node in normal.nodes:
                found = self._value_of_node(node)
                if isinstance(found, n.Conflict):
                    conflict = found
                else:
                    rights.append((*found, *self._behind_item()))
                if isinstance(node, n.NumberNode) and not handle and self._style.free_integer:
                    rights.append((*self._integer, *self._end_of(node)))
            for right in dict.fromkeys(rights):
                self.builder.add(symbol, right)
            if not rights:
                assert conflict is not None
                self._why_nothing[handle] = conflict
                self._values[key] = None
        return self._values[key]

    def key(self, language: r.Regular, name: str) -> Symbol:
        """The symbol of a name with what stands around it, in which there may be special tokens."""
        if not self._has_tokens_at_names:
            return self.builder.own_lexeme(language, name)
        if name not in self._keys:
            style = self._style
            head, gap, rest = style.after_key.partition(style.gap_at) if style.gap_at else (style.after_key, "", "")
            written = r.intersect(r.literal(style.write_name(name)), r.complement(occurs_in(self._excludes)))
            right = (*self._gap, *self._fixed(style.before_key), self.builder.lexeme(written, name), *self._fixed(head))
            self._keys[name] = self.builder.sequence((*right, *self._fixed(gap + rest, before=self._space)))
        return self._keys[name]

    def _holds_token(self, text: str) -> bool:
        return self._tokens is not None and self._tokens.search(text) is not None

    @property
    def _integer(self) -> Right:
        """An integer behind its own opening."""
        layout = self._writer.layout
        number = layout.value(layout.notation.numbers[NumberForm.INTEGRAL])
        return (*self._fixed(self._style.free_integer), self.builder.lexeme(number, "an integer"))

    def member(self, name: str | None, handle: Handle) -> Symbol | None:
        """The symbol of a value, with the name in its end if the style repeats it there."""
        if name is None:
            return self.value(handle)
        self._names.append(name)
        value = self.value(handle)
        self._names.pop()
        if value is None or not self._style.after_end:
            return value
        return self.builder.sequence((value, self.builder.lexeme(r.literal(name + self._style.after_end), name)))

    def _fixed(self, text: str, before: r.Regular = r.EPSILON) -> Right:
        """What stands around a value, behind white space; special tokens in it stand for themselves."""
        parts: list[Symbol] = []
        last = 0
        for place in self._tokens.finditer(text) if self._tokens is not None else ():
            parts += self._text(r.concat(before, r.literal(text[last : place.start()])), text)
            parts.append(self.builder.token(token_set([place.group()])))
            before, last = r.EPSILON, place.end()
        return (*parts, *self._text(r.concat(before, r.literal(text[last:])), text))

    def _text(self, language: r.Regular, name: str) -> Right:
        return () if language == r.EPSILON else (self.builder.lexeme(language, repr(name)),)

    @property
    def _before_value(self) -> r.Regular:
        """White space before the opening of a value: in an array, as a member has its own before its key."""
        return self._space if self._prefix else r.EPSILON

    def _opening(self, text: str) -> Right:
        """The opening of a value."""
        return self._fixed(text, before=self._before_value)

    def _behind_item(self) -> Right:
        return self._fixed(self._style.after_item) if self._prefix else ()

    def _end_of(self, node: n.Node) -> Right:
        """What stands behind a value that is no string."""
        return self._fixed(self._style.end_of(node.kind), before=self._space)

    def _value_of_node(self, node: n.Node) -> Right | n.Conflict:
        style, opening = self._style, self._prefix + self._style.openings[node.kind]
        if isinstance(node, n.StringNode):
            return self._string(node, opening)
        if isinstance(node, (n.ArrayNode, n.ObjectNode)) and style.nests:
            known = self._containers.get(node)
            if known is None:
                known = self._containers[node] = self.builder.nonterminal(node.pointer)
                self._write(known, node)
            return (*self._opening(opening), known, *self._fixed(style.end_of(node.kind)))
        value = self._writer.node(node)
        return value if isinstance(value, n.Conflict) else (*self._opening(opening), value, *self._end_of(node))

    def _string(self, node: n.StringNode, opening: str) -> Right:
        """The strings of a node, as they are, between their opening and their end."""
        body, end = self._body(node), self._style.end
        if self._tokens is None or not self._tokens.search(opening + end):
            whole = r.concat(self._before_value, r.literal(opening), body, r.literal(end))
            return (self.builder.lexeme(whole, node.pointer),)
        return (*self._opening(opening), self.builder.lexeme(body, node.pointer), *self._fixed(end))

    def _body(self, node: n.StringNode) -> r.Regular:
        """The strings of a node, with none in which the end begins: no end, or mark, ends as it begins."""
        body = ANY_TEXT
        if node.values is not None:
            body = prefix_tree([value for value in node.values if is_text(value)])
        elif not node.terms:
            if node.low is not None or node.high is not None:
                low, high = n.size_range(node)
                if self._style.string_lines:
                    return self._counted_within_lines(low, high)
                body = r.counted(ANY_TEXT, ANY_CHAR, low, high)
        else:
            irregular = n.irregular_term(node)
            if irregular is None:
                body = plain(n.text_of(node))
            else:
                self.refuse(f"{irregular.text} is supported in JSON only", irregular.pointer)
        if self._style.quoted:
            return self._quoted(body)
        is_any = body is ANY_TEXT
        body = self._without_end(body)
        return _within_lines(body) if self._style.string_lines and not is_any else body

    def _without_end(self, body: r.Regular) -> r.Regular:
        """Those strings of a language in which neither the end of a value begins nor what is excluded."""
        return r.intersect(body, r.complement(occurs_in((self._style.mark or self._style.end, *self._excludes))))

    def _quoted(self, body: r.Regular) -> r.Regular:
        """Those strings as they are where nothing in them needs quotes, and between quotes that they do not hold."""
        (begin, end), excludes = self._style.quotes, self._excludes
        bare = r.intersect(body, r.complement(occurs_in((*self._style.quoted, *excludes))))
        quoted = r.intersect(body, r.complement(occurs_in((end, *excludes))))
        return r.union(bare, r.concat(r.literal(begin), quoted, r.literal(end)))

    def _counted_within_lines(self, low: int, high: int | None) -> r.Regular:
        """As _within_lines, of texts of so many characters.

        A text that is short enough is so without its line ends too.  So nothing tells whose the last one is, and only
        texts that are too short without them are left out.
        """
        most = self._without_end(r.counted(ANY_TEXT, ANY_CHAR, 0, high))
        begun = r.union(r.concat(_LINE_END, most), r.intersect(most, r.complement(r.concat(_LINE_END, ANY_BYTES))))
        line_end = r.optional(_LINE_END)
        written = r.concat(begun, line_end)
        if low == 0:
            return written
        return r.intersect(written, r.complement(r.concat(line_end, r.repeat(ANY_CHAR, 0, low - 1), line_end)))

    def why_nothing(self, handle: Handle) -> n.Conflict:
        """Why :meth:`value` gave None."""
        return self._why_nothing[handle]

    def normal(self, handle: Handle) -> n.Normal:
        """The normal form of a handle."""
        return self._writer.normal(handle)

    def scalar(self, node: n.Node) -> Symbol | None:
        """The symbol of a scalar with its opening and its end."""
        right = self._value_of_node(node)
        return None if isinstance(right, n.Conflict) else self.builder.sequence((*right, *self._behind_item()))

    def unfolded(self, template: Template, name: str) -> Symbol:
        """A new nonterminal whose rules a template makes as they are needed."""
        return self._writer.unfolded(template, name)

    @property
    def makes_lexemes(self) -> bool:
        """Whether rules made on demand have lexemes of their own."""
        return self._writer.makes_lexemes

    @makes_lexemes.setter
    def makes_lexemes(self, value: bool) -> None:
        self._writer.makes_lexemes = value

    def written_value(self, layout: Layout, handle: Handle) -> Symbol | None:
        """The symbol of a value, if it is written."""
        return self._values.get((handle, self._prefix))

    def written_container(self, layout: Layout, node: n.Node) -> Symbol | None:
        """The symbol of what stands in an array or object, if it is written."""
        return self._containers.get(node)

    def refuse(self, reason: str, pointer: str) -> None:
        """Raise SchemaError for what cannot be enforced."""
        self._writer.refuse(reason, pointer)

    def note(self, reason: str, pointer: str) -> None:
        """Add a warning."""
        self._writer.note(reason, pointer)


def without_members(
    writer: RuleWriter, node: n.ObjectNode, names: dict[str, Handle], reason: Callable[[str], str]
) -> n.ObjectNode:
    """An object without some members, even where they are required: their names cannot be written.

    Raises SchemaError if there are some, and the caller is not lenient; ``reason`` says why of a name.
    """
    if not names:
        return node
    for name, handle in names.items():
        pointer = handle[0].pointer if handle else node.required.get(name, node.pointer)
        writer.refuse(reason(name), pointer, "it is left out")
    never = Never(node.pointer, "its name cannot be written").handle
    required = {name: pointer for name, pointer in node.required.items() if name not in names}
    return replace(node, properties={**node.properties, **dict.fromkeys(names, never)}, required=required)


def objects_of_root(writer: RuleWriter) -> list[n.ObjectNode]:
    """The alternatives of a schema that are objects, as arguments are.  Raises SchemaError if there are none."""
    normal = writer.root()
    objects = [node for node in normal.nodes if isinstance(node, n.ObjectNode)]
    if not objects:
        conflict = normal.conflict
        reason = "it allows no object" if conflict is None else f"nothing is valid for it: {conflict.reason}"
        raise SchemaError(f"arguments are the members of an object: {reason}", "#")
    return objects


def _values_of_root(writer: RuleWriter) -> tuple[n.Node, ...]:
    """The alternatives of a schema.  Raises SchemaError if there are none."""
    normal = writer.root()
    if normal.conflict is not None and not normal.nodes:
        raise SchemaError(f"nothing is valid for it: {normal.conflict.reason}", normal.conflict.pointer)
    return normal.nodes


def _within_lines(body: r.Regular) -> r.Regular:
    """Strings with a line end before and behind them that is not theirs: one of each is taken off, if it is there."""
    begins, ends = r.concat(_LINE_END, ANY_BYTES), r.concat(ANY_BYTES, _LINE_END)
    neither = r.complement(r.union(begins, ends))
    return r.union(
        r.concat(_LINE_END, body, _LINE_END),
        r.concat(_LINE_END, r.intersect(body, r.complement(ends))),
        r.concat(r.intersect(body, r.complement(begins)), _LINE_END),
        r.intersect(body, neither),
    )


@lru_cache(maxsize=64)
def layout_of(style_name: str, space: r.Regular, excludes: tuple[str, ...]) -> ArgumentLayout:
    """The one layout of a style, so that equal keys are the same objects."""
    return ArgumentLayout(STYLES[style_name], space, excludes)


def space_up_to(max_whitespace: int | None) -> r.Regular:
    """White space, as much as one likes or up to a number of characters."""
    return r.repeat(_ANY_SPACE, 0, max_whitespace)
