"""What the schema of a tool says of arguments whose XML does not tell a text from JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from constrain.errors import ConstrainError, LimitError
from constrain.grammar.json_schema.conventions import take_conventions
from constrain.grammar.json_schema.document.document import Document, Options
from constrain.grammar.json_schema.document.places import Handle
from constrain.grammar.json_schema.document.references import References, with_scope_if_needed
from constrain.grammar.json_schema.embedded import MAX_WORK
from constrain.grammar.json_schema.lexical.layout import Layout
from constrain.grammar.json_schema.normal.few_values import FewValues
from constrain.grammar.json_schema.normal.instances import Instance, Number, instance
from constrain.grammar.json_schema.normal.intersect import member
from constrain.grammar.json_schema.normal.key_classes import other_classes
from constrain.grammar.json_schema.normal.nodes import ArrayNode, Node, Normal, ObjectNode
from constrain.grammar.json_schema.normal.normalize import Normalizer
from constrain.grammar.json_schema.text_dependent.membership import Membership

_misfits = itemgetter(1)
"""Of a value as an alternative of the schema has it: how many of its parts are not valid there."""


class Written(NamedTuple):
    """An argument as it is written.

    Attributes
    ----------
    text : str, optional
        The string that it may be.
    json : str, optional
        The JSON of the other value that it may be.
    value : JSON value
        That value.
    is_foreign : bool
        Whether it is written as Python writes it, and not as JSON: then it is that value only where no string is valid.
    members : mapping of str to Written, optional
        Those of the object that it may be, where objects are not written as JSON.
    items : sequence of Written, optional
        Those of the array that it may be, likewise.
    """

    text: str | None
    json: str | None
    value: Any
    is_foreign: bool = False
    members: Mapping[str, Written] | None = None
    items: Sequence[Written] | None = None

    @property
    def is_container(self) -> bool:
        """Whether it may be an object or array that is not written as JSON."""
        return self.members is not None or self.items is not None

    def unknown(self) -> Any:
        """What it is where nothing is known of it."""
        if self.text is not None and (self.json is None or self.is_foreign):
            return self.text
        if self.items is not None:
            return [each.unknown() for each in self.items]
        if self.members is not None:
            return {name: each.unknown() for name, each in self.members.items()}
        return self.value


class ArgumentSchema:
    """The schema of a tool's arguments.

    It is read as the grammar reads it, when the first argument asks for it.

    Parameters
    ----------
    schema : JSON Schema, optional
        None if it is not known.  Of such a schema, and of one that is not supported, every value is valid.
    """

    any_order = False

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._nodes: Sequence[Node] | None = None
        # What a part of the arguments is by a handle.
        self._known: dict[tuple[Handle, int], tuple[Any, bool]] = {}
        self._normalizer: Normalizer | None = None
        self._membership = Membership(self, FewValues(self.normal, other_classes))

    def values(self, written: Mapping[str, Written]) -> dict[str, Any]:
        """What the arguments of a call are.

        An argument is JSON where that is valid, and a string where only that is.  Of several alternatives of the schema
        the one counts that most arguments fit.
        """
        if all(each.json is None and not each.is_container for each in written.values()):
            return {name: each.text for name, each in written.items()}
        self._known.clear()
        unknown = {name: each.unknown() for name, each in written.items()}
        return min(self._members(self._objects(), written), key=_misfits, default=(unknown, 0))[0]

    def _members(self, nodes: Iterable[Node], written: Mapping[str, Written]) -> Iterator[tuple[dict[str, Any], int]]:
        """Members as each alternative has them, and how many misfit."""
        for node in nodes:
            if isinstance(node, ObjectNode):
                found = {name: self._value(member(node, name), each) for name, each in written.items()}
                misfits = sum(not fits for _, fits in found.values()) + len(node.required.keys() - found.keys())
                yield {name: value for name, (value, _) in found.items()}, misfits

    def _items(self, nodes: Iterable[Node], written: Sequence[Written]) -> Iterator[tuple[list[Any], int]]:
        """The same of items."""
        for node in nodes:
            if isinstance(node, ArrayNode):
                handles = [*node.prefix[: len(written)], *[node.items] * (len(written) - len(node.prefix))]
                found = [self._value(handle, each) for handle, each in zip(handles, written, strict=True)]
                yield [value for value, _ in found], sum(not fits for _, fits in found)

    def _value(self, handle: Handle, written: Written) -> tuple[Any, bool]:
        """What is written as an alternative has it, and whether it is valid there."""
        if written.is_container:
            key = handle, id(written)
            if key not in self._known:
                self._known[key] = self._container(handle, written)
            return self._known[key]
        assert written.text is not None
        is_text = (written.json is None or written.is_foreign) and self._allows_text(handle, written.text)
        if not is_text and written.json is not None and self._allows_json(handle, written.json):
            return written.value, True
        return written.text, is_text or self._allows_text(handle, written.text)

    def _container(self, handle: Handle, written: Written) -> tuple[Any, bool]:
        """The same of what may be an object or array."""
        if written.text is not None and self._allows_text(handle, written.text):
            return written.text, True
        try:
            nodes = self.normal(handle).nodes
        except ConstrainError:
            return written.unknown(), True
        ways: list[tuple[Any, int]] = []
        # Of an object and an array that fit as well, the array.
        if written.items is not None:
            ways += self._items(nodes, written.items)
        if written.members is not None:
            ways += self._members(nodes, written.members)
        value, misfits = min(ways, key=_misfits, default=(written.unknown(), 1))
        return value, misfits == 0

    def _allows_text(self, handle: Handle, text: str) -> bool:
        return self._allows(handle, Instance("string", text))

    def _allows_json(self, handle: Handle, text: str) -> bool:
        try:
            value = _within_reach(instance(text.encode(errors="surrogatepass")))
        except LimitError:
            return True
        return self._allows(handle, value)

    def _allows(self, handle: Handle, value: Instance) -> bool:
        try:
            return any(self._membership.allows(node, value) for node in self.normal(handle).nodes)
        except (ConstrainError, RecursionError):
            return True

    def _objects(self) -> Sequence[Node]:
        """The alternatives of the schema."""
        if self._nodes is None:
            try:
                self._nodes = with_scope_if_needed(self._read)
            except (ConstrainError, RecursionError):
                self._nodes = ()
        return self._nodes

    def _read(self, keeps_scope: bool) -> tuple[Node, ...]:
        if self._schema is None:
            return ()
        schema, conventions = take_conventions(self._schema)
        # What a grammar may leave out says nothing here either.
        options = Options(is_lenient=True, coerces_one_of=conventions.coerces_one_of)
        document = Document(schema, options, keeps_scope, lambda document: References(document, None))
        self._normalizer = Normalizer(MAX_WORK, document)
        return self._normalizer.normal(document.references.follow(document.root)).nodes

    # -- what a membership asks of the rules of a grammar ------------------------------------------

    def normal(self, handle: Handle) -> Normal:
        """The normal form of a handle."""
        assert self._normalizer is not None
        return self._normalizer.normal(handle)

    def written_value(self, layout: Layout, handle: Handle) -> None:
        """There are no rules."""

    def written_container(self, layout: Layout, node: Node) -> None:
        """There are no rules."""

    def refuse(self, reason: str, pointer: str) -> None:
        """Nothing is enforced."""


_REACH = 10_000


def _within_reach(value: Instance) -> Instance:
    """A value with numbers of a size that can be compared: a larger one is as good as another that is very large."""
    content = value.content
    if isinstance(content, Number):
        exponent = min(max(content.exponent, -_REACH), _REACH)
        return Instance(value.kind, Number(content.is_negative, content.digits[:_REACH], exponent))
    if isinstance(content, tuple):
        return Instance(value.kind, tuple(map(_within_reach, content)))
    if isinstance(content, frozenset):
        return Instance(value.kind, frozenset((name, _within_reach(member)) for name, member in content))
    return value


ANY_ARGUMENTS = ArgumentSchema(None)
"""Of a tool that nothing is known of."""
