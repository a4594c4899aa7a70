"""What a schema allows, type by type: the normal form between keywords and rules.

A schema in normal form is a list of nodes, any of which may hold.  A node describes values of *one* JSON type by a
conjunction of assertions.  Parts of arrays and objects are :data:`Handle`, that is, conjunctions of places in the
schema that have not been looked at yet: that keeps recursion lazy, and makes the intersection of two
parts a matter of putting two handles together.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, NamedTuple

from constrain.grammar.json_schema.document.document import cut
from constrain.grammar.json_schema.document.places import Handle
from constrain.grammar.json_schema.lexical.numbers import NumberForm
from constrain.grammar.json_schema.lexical.strings import is_text
from constrain.grammar.json_schema.lexical.texts import Length, Text, Words, every, is_regular


class Bound(NamedTuple):
    """A limit on a number, and the pointer of the keyword that set it."""

    value: Decimal
    is_open: bool
    """Whether the bound itself is excluded."""
    pointer: str

    def __str__(self) -> str:
        return f"{self.pointer.rpartition('/')[2]} {self.value} (at {self.pointer})"


class Count(NamedTuple):
    """A limit on a length, and the pointer of the keyword that set it."""

    value: int
    pointer: str

    def __str__(self) -> str:
        return f"{self.pointer.rpartition('/')[2]} {self.value} (at {self.pointer})"


def size_range(node: StringNode | ArrayNode | ObjectNode) -> tuple[int, int | None]:
    """The fewest and the most characters, items or members that a node allows; None: any number."""
    return 0 if node.low is None else node.low.value, None if node.high is None else node.high.value


def has_size_of(node: StringNode | ArrayNode | ObjectNode, size: int) -> bool:
    """Whether a node allows so many characters, items or members."""
    low, high = size_range(node)
    return low <= size and (high is None or size <= high)


def higher(left: Bound | None, right: Bound | None) -> Bound | None:
    """The stricter of two lower bounds."""
    if left is None or right is None:
        return left or right
    return right if (right.value, right.is_open) > (left.value, left.is_open) else left


def lower(left: Bound | None, right: Bound | None) -> Bound | None:
    """The stricter of two upper bounds."""
    if left is None or right is None:
        return left or right
    return right if (right.value, not right.is_open) < (left.value, not left.is_open) else left


@dataclass(eq=False)
class Node:
    """Values of one type.  ``pointer`` is the schema they come from, for names and messages."""

    kind: ClassVar[str]
    pointer: str


@dataclass(eq=False)
class NullNode(Node):
    kind = "null"


@dataclass(eq=False)
class BooleanNode(Node):
    kind = "boolean"
    values: tuple[bool, ...] = (False, True)


class Divisor(NamedTuple):
    """A ``multipleOf``, and the pointer of the keyword."""

    value: Decimal
    pointer: str


@dataclass(eq=False)
class NumberNode(Node):
    """Numbers of a form between two bounds; with ``values``, only those (which satisfy all the rest already).

    They are multiples of all ``divisors`` and of none of ``not_divisors``, and none of ``excluded``.
    ``has_fraction`` is the complement of draft 4's integers: the text has a fraction or an exponent.  With
    ``is_moderate``, only those of few digits (MODERATE_NUMBER in lexical/numbers.py).
    """

    kind = "number"
    form: NumberForm = NumberForm.ANY
    low: Bound | None = None
    high: Bound | None = None
    values: tuple[Decimal, ...] | None = None
    excluded: tuple[Decimal, ...] = ()
    divisors: tuple[Divisor, ...] = ()
    not_divisors: tuple[Divisor, ...] = ()
    has_fraction: bool = False
    is_moderate: bool = False


def single_number(node: NumberNode, value: Decimal) -> NumberNode:
    """The node of just one of the numbers of another, in all the notations that it has there."""
    if node.values is not None:
        # As it stands in the schema.
        own = next(each for each in node.values if each == value)
        return NumberNode(node.pointer, node.form, values=(own,), has_fraction=node.has_fraction)
    bound = Bound(value, False, node.pointer)
    return NumberNode(node.pointer, node.form, bound, bound, divisors=node.divisors, has_fraction=node.has_fraction)


class Term(NamedTuple):
    """A set that a string must be in, and the pointer of the keyword that says so."""

    text: Text
    pointer: str

    def __str__(self) -> str:
        return f"{self.text} (at {self.pointer})"


@dataclass(eq=False)
class StringNode(Node):
    """Strings of ``low`` to ``high`` characters that are in the sets of all ``terms``.

    With ``values``, only those (which satisfy all the rest already).
    """

    kind = "string"
    low: Count | None = None
    high: Count | None = None
    terms: tuple[Term, ...] = ()
    values: tuple[str, ...] | None = None


def text_of(node: StringNode) -> Text:
    """All that a string node says, as a set of strings."""
    if node.values is not None:
        return Words(frozenset(filter(is_text, node.values)))
    texts = [term.text for term in node.terms]
    if node.low is not None or node.high is not None:
        texts.append(Length(*size_range(node)))
    return every(*texts)


def irregular_term(node: StringNode) -> Term | None:
    """The first set of a string node that no automaton has."""
    return next((term for term in node.terms if not is_regular(term.text)), None)


class Contains(NamedTuple):
    """How many items from index ``start`` on are valid for ``item``: ``low`` to ``high``."""

    item: Handle
    start: int
    low: int
    high: int | None
    pointer: str


@dataclass(eq=False)
class ArrayNode(Node):
    """Arrays that begin with ``prefix`` (as far as they go) and continue with ``items``, ``low`` to ``high`` in all.

    ``unique`` is the pointer of the keyword that forbids equal items, ``repeated`` that of the one whose complement
    demands them.  ``seen`` and ``seen_contains`` matter to
    ``unevaluatedItems`` only: how many items were evaluated (None: all), and what those elsewhere match that were.
    ``constant`` is the array itself where the node is no more than one value of ``enum`` or ``const``.
    """

    kind = "array"
    prefix: tuple[Handle, ...] = ()
    items: Handle = ()
    low: Count | None = None
    high: Count | None = None
    contains: tuple[Contains, ...] = ()
    unique: str | None = None
    repeated: str | None = None
    seen: int | None = 0
    seen_contains: tuple[Handle, ...] = ()
    constant: list[Any] | tuple[Any, ...] | None = None


class KeyRule(NamedTuple):
    """Says something about members by their keys: those in ``keys`` have values that are valid for ``value``."""

    keys: Text
    value: Handle


@dataclass(eq=False)
class ObjectNode(Node):
    """Objects: the schema of each named property, in order; of all others; and the names that must be there.

    ``required`` maps a name to the pointer of the keyword that says so.  ``rules`` bind every member that is not
    named in ``properties``, beside ``additional``.  For each rule of ``some`` there is a member, named or not,
    that is as it says.  ``low`` and ``high`` are the number of members.  ``seen`` matters to
    ``unevaluatedProperties`` only: the keys that were evaluated.  ``constant`` is the object itself where the node is
    no more than one value of ``enum`` or ``const``.
    """

    kind = "object"
    properties: dict[str, Handle]
    required: dict[str, str]
    additional: Handle = ()
    rules: tuple[KeyRule, ...] = ()
    some: tuple[KeyRule, ...] = ()
    low: Count | None = None
    high: Count | None = None
    seen: tuple[Text, ...] = ()
    constant: dict[str, Any] | None = None


class Conflict(NamedTuple):
    """Why nothing satisfies two assertions, or one."""

    reason: str
    pointer: str


@dataclass(eq=False)
class Normal:
    """A schema in normal form.  ``conflict`` says why there are no nodes, where there are none.

    ``typed_by`` is the pointer of the one keyword that decided about the types, for messages.
    """

    nodes: tuple[Node, ...]
    conflict: Conflict | None = None
    typed_by: str | None = None


ANY = Normal(
    (
        StringNode("#"),
        NumberNode("#"),
        ObjectNode("#", {}, {}),
        ArrayNode("#"),
        BooleanNode("#"),
        NullNode("#"),
    )
)
"""Every JSON value."""


def describe(value: Any) -> str:
    """A value of the schema, short enough for a message."""
    try:
        text = str(value) if isinstance(value, Decimal) else repr(value)
    except (ValueError, RecursionError):
        # Python writes no integer of more than some thousand digits, and nothing that is nested too deeply.
        text = f"a very large {type(value).__name__}"
    return cut(text)
