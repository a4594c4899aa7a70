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

from constrain.grammar.json_schema.document import Handle
from constrain.grammar.json_schema.numbers import NumberForm


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


@dataclass(eq=False)
class NumberNode(Node):
    """Numbers of a form between two bounds; with ``values``, only those (which are within the bounds already)."""

    kind = "number"
    form: NumberForm = NumberForm.ANY
    low: Bound | None = None
    high: Bound | None = None
    values: tuple[Decimal, ...] | None = None


@dataclass(eq=False)
class StringNode(Node):
    """Strings of ``low`` to ``high`` characters that match all ``patterns``, which are (pattern, pointer) pairs.

    With ``values``, only those (of the right length already).
    """

    kind = "string"
    low: Count | None = None
    high: Count | None = None
    patterns: tuple[tuple[str, str], ...] = ()
    values: tuple[str, ...] | None = None


@dataclass(eq=False)
class ArrayNode(Node):
    """Arrays that begin with ``prefix`` (as far as they go) and continue with ``items``, ``low`` to ``high`` in all."""

    kind = "array"
    prefix: tuple[Handle, ...] = ()
    items: Handle = ()
    low: Count | None = None
    high: Count | None = None


@dataclass(eq=False)
class ObjectNode(Node):
    """Objects: the schema of each named property, in order; of all others; and the names that must be there.

    ``required`` maps a name to the pointer of the keyword that says so.
    """

    kind = "object"
    properties: dict[str, Handle]
    required: dict[str, str]
    additional: Handle = ()


class Conflict(NamedTuple):
    """Why nothing satisfies two assertions, or one."""

    reason: str
    pointer: str


@dataclass(eq=False)
class Normal:
    """A schema in normal form.  ``conflict`` says why there are no nodes, where there are none."""

    nodes: tuple[Node, ...]
    conflict: Conflict | None = None


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
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
