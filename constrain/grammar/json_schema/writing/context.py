"""What the writers of arrays and objects need from the writer of values."""

from __future__ import annotations

from typing import Protocol

from constrain.errors import LimitError
from constrain.grammar.ir import GrammarBuilder, Symbol
from constrain.grammar.json_schema.document.places import Handle
from constrain.grammar.json_schema.lexical.layout import Layout
from constrain.grammar.json_schema.normal.nodes import Conflict, Node, Normal
from constrain.grammar.languages.regular import Regular
from constrain.grammar.rules_on_demand import Template

Right = tuple[Symbol, ...]

BegunMembers = dict[tuple[Right, bool, str, Symbol, bool], tuple[Right, bool]]
"""What objects begin with, so that alternatives that begin alike share its rules.

By the members before one and whether there may be none, its name and value, and whether it must be there: the members
with it, and whether there may be none.
"""

MAX_STATES = 5000
"""How many states one array or object may have: what was counted, what is still to come."""

MAX_PLACES = 50_000
"""The same for members in the order of the schema, where each place has states of its own."""


class Written(Protocol):
    """The rules of a schema that are there already."""

    any_order: bool

    def normal(self, handle: Handle) -> Normal:
        """The normal form of a handle."""

    def written_value(self, layout: Layout, handle: Handle) -> Symbol | None:
        """The symbol of a value in a layout; None if there is none.  Complete when all rules have been written."""

    def written_container(self, layout: Layout, node: Node) -> Symbol | None:
        """The symbol of an array or object in a layout."""

    def refuse(self, reason: str, pointer: str) -> None:
        """Raise SchemaError for what cannot be enforced, or take note of it."""


class Context(Written, Protocol):
    """The writer of values, as the writers of containers see it."""

    builder: GrammarBuilder
    layout: Layout
    is_part: bool
    """Whether the value is part of a longer text, in which only rules can see to it that no key comes twice."""

    @property
    def begun_members(self) -> BegunMembers:
        """Of the objects of the layout."""

    def value(self, handle: Handle) -> Symbol | None:
        """The symbol of a value, after white space; None if there certainly is no such value."""

    def key(self, language: Regular, name: str) -> Symbol:
        """The symbol of the key of a name, which is written in this language."""

    def member(self, name: str | None, handle: Handle) -> Symbol | None:
        """The same for a member with a name, where that matters to how the value is written."""

    def why_nothing(self, handle: Handle) -> Conflict:
        """Why :meth:`value` gave None."""

    def scalar(self, node: Node) -> Symbol | None:
        """The symbol of a scalar node, after white space."""

    def unfolded(self, template: Template, name: str) -> Symbol:
        """A new nonterminal whose rules a template makes as they are needed."""

    makes_lexemes: bool

    told_apart: set[Handle]
    """Those of which it is known that rules can tell different values apart, of them and of all that is in them."""

    satisfiable: set[Handle]
    """Those of which it is known that something is valid for them."""

    def note(self, reason: str, pointer: str) -> None:
        """Add a warning."""


class Symbols:
    """Nonterminals of what has been read so far, one per state that it leads to.

    Left-recursive: wherever a member begins, the unfinished rules are the same, whichever members came before.
    """

    def __init__(self, builder: GrammarBuilder, pointer: str, keyword: str, limit: int = MAX_STATES) -> None:
        self.builder, self.pointer, self.keyword, self.limit = builder, pointer, keyword, limit
        self._known: dict[object, Symbol] = {}

    def symbol(self, state: object) -> Symbol:
        """The nonterminal of a state; LimitError if there are too many."""
        known = self._known.get(state)
        if known is None:
            if len(self._known) >= self.limit:
                raise LimitError(f"{self.keyword} needs more than {self.limit} states", self.pointer)
            known = self._known[state] = self.builder.nonterminal(self.pointer)
        return known


def nothing(who: str, conflict: Conflict) -> Conflict:
    """The conflict of a container, given that of a part that must be there."""
    return Conflict(f"{who} can never be valid: {conflict.reason}", conflict.pointer)
