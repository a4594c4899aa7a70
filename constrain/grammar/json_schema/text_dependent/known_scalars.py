"""The strings or numbers of a schema that a text has so far, as languages: one of them, or any but them.

Each set of values has a tree of their spellings, which is that of the set it was made from, with one value more.  So a
language takes no longer to make, hash and compile after a thousand values than after ten.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from constrain.errors import LimitError
from constrain.grammar.json_schema.lexical.notation import Notation
from constrain.grammar.json_schema.lexical.numbers import MODERATE_NUMBER
from constrain.grammar.json_schema.lexical.strings import is_text
from constrain.grammar.json_schema.lexical.texts import GrowingWords, Words, spelled, without
from constrain.grammar.json_schema.normal import nodes as n
from constrain.grammar.json_schema.normal.instances import Instance, Number, decimal
from constrain.grammar.json_schema.normal.nodes import Conflict, NumberNode, StringNode, Term
from constrain.grammar.json_schema.text_dependent.persistent import PersistentSet
from constrain.grammar.json_schema.writing.scalars import (
    Refuse,
    any_of_numbers,
    constant,
    excluded_number,
    numbers_to_exclude_from,
    scalar,
    scalar_name,
)
from constrain.grammar.languages.growing_tree import GrowingTree
from constrain.grammar.languages.prefix_tree import Sequences
from constrain.grammar.languages.regular import EMPTY, Regular, Union, complement, intersect

_MOST_DIGITS, _GREATEST_EXPONENT = 100, 400


@lru_cache(maxsize=1 << 14)
def moderate(value: Number) -> Decimal | None:
    """A number as a Decimal; None if it has more digits, or is larger or smaller, than any MODERATE_NUMBER."""
    number = decimal(value)
    if number is None or len(value.digits) > _MOST_DIGITS or abs(number.adjusted()) > _GREATEST_EXPONENT:
        return None
    return number


class KnownStrings:
    """For one node and notation.

    Parameters
    ----------
    node : StringNode
    notation : Notation
    allows : callable (Instance) -> bool
        Whether the node has a value.
    refuse : callable
        Raises SchemaError for what cannot be enforced.
    """

    def __init__(
        self, node: StringNode, notation: Notation, allows: Callable[[Instance], bool], refuse: Refuse
    ) -> None:
        self._node = node
        self._notation = notation
        self._allows = allows
        self._refuse = refuse
        self._all = None if node.values is None else GrowingTree(notation.spelling.text, node.values)

    def count(self, values: PersistentSet[Instance]) -> int | None:
        """How many of some values the node has."""
        return values.derived(self._begin, self._step).size

    def same(self, values: PersistentSet[Instance]) -> tuple[Regular, str]:
        """Those of some values that the node has, and a name."""
        return self._strings(values.derived(self._begin, self._step)), self._node.pointer

    def different(self, values: PersistentSet[Instance]) -> tuple[Regular, str]:
        """The values of the node that are none of some, and a name."""
        if self._all is not None:
            return self._strings(values.derived(self._begin_all, self._step_left)), self._node.pointer
        words = GrowingWords(values.derived(self._begin, self._step), self._notation.spelling)
        node = replace(self._node, terms=(*self._node.terms, Term(without(words), self._node.pointer)))
        language = scalar(node, self._refuse, self._notation)
        return EMPTY if isinstance(language, Conflict) else language, scalar_name(node)

    def _strings(self, tree: GrowingTree) -> Regular:
        words = GrowingWords(tree, self._notation.spelling)
        return self._notation.strings(lambda spelling: spelled(words, spelling))

    def _begin(self) -> GrowingTree:
        return GrowingTree(self._notation.spelling.text)

    def _step(self, tree: GrowingTree, value: Instance, is_added: bool) -> GrowingTree:
        if not is_text(value.content) or not self._allows(value):
            return tree
        return tree.plus(value.content) if is_added else tree.minus(value.content)

    def _begin_all(self) -> GrowingTree:
        assert self._all is not None
        return self._all

    def _step_left(self, tree: GrowingTree, value: Instance, is_added: bool) -> GrowingTree:
        return self._step(tree, value, not is_added)


class _Known(NamedTuple):
    numbers: int
    """How many numbers the node has."""
    beyond: int
    """How many are too long or too large to be left out one by one."""
    same: GrowingTree
    """Those that the node has."""
    moderate: GrowingTree
    """Those of them that are left out one by one: the same object if these are all."""


class KnownNumbers:
    """For one node and notation; the parameters are those of :class:`KnownStrings`."""

    def __init__(
        self, node: NumberNode, notation: Notation, allows: Callable[[Instance], bool], refuse: Refuse
    ) -> None:
        self._node = node
        self._notation = notation
        self._allows = allows
        self._refuse = refuse
        self._sequences = Sequences()
        self._own = {value: value for value in dict.fromkeys(node.values or ())}
        self._others: Regular | None = None
        self._all: GrowingTree | None = None

    def count(self, values: PersistentSet[Instance]) -> int | None:
        """How many of some values the node has; None if those that it loses with them are more."""
        known = values.derived(self._begin, self._step)
        return None if known.beyond and self._node.values is None else known.numbers

    def same(self, values: PersistentSet[Instance]) -> tuple[Regular, str]:
        """Those of some values that the node has, and a name."""
        tree = values.derived(self._begin, self._step).same
        return any_of_numbers(self._node, tree.language, self._refuse), self._node.pointer

    def different(self, values: PersistentSet[Instance]) -> tuple[Regular, str]:
        """The values of the node that are none of some, and a name.

        With a number that is too long or too large to be left out alone, all of its kind are left out.
        """
        node = self._node
        if node.values is not None:
            left = values.derived(self._begin_all, self._step_left)
            return any_of_numbers(node, left.language, self._refuse), scalar_name(node)
        if self._others is None:
            self._others = numbers_to_exclude_from(node, self._refuse, self._notation)
        known = values.derived(self._begin, self._step)
        parts = [self._others] if known.moderate.size == 0 else [self._others, complement(known.moderate.language)]
        if known.beyond:
            parts.append(MODERATE_NUMBER)
        return intersect(*parts), scalar_name(node)

    def _begin(self) -> _Known:
        tree = GrowingTree(self._sequences.language)
        return _Known(0, 0, tree, tree)

    def _step(self, known: _Known, value: Instance, is_added: bool) -> _Known:
        sign = 1 if is_added else -1
        is_moderate = moderate(value.content) is not None
        if not is_moderate:
            known = known._replace(beyond=known.beyond + sign)
        if not self._allows(value):
            return known
        texts = self._texts(value.content)
        same = _changed(known.same, texts, is_added)
        if not is_moderate:
            return known._replace(numbers=known.numbers + sign, same=same)
        left = same if known.moderate is known.same else _changed(known.moderate, texts, is_added)
        return known._replace(numbers=known.numbers + sign, same=same, moderate=left)

    def _begin_all(self) -> GrowingTree:
        if self._all is None:
            texts = [text for value in self._own for text in self._spellings(value)]
            self._all = GrowingTree(self._sequences.language, texts)
        return self._all

    def _step_left(self, tree: GrowingTree, value: Instance, is_added: bool) -> GrowingTree:
        return _changed(tree, self._texts(value.content), not is_added) if self._allows(value) else tree

    def _texts(self, value: Number) -> list[str]:
        number = decimal(value)
        # Numbers that are none are allowed by no node.
        assert number is not None
        return self._spellings(number)

    def _spellings(self, value: Decimal) -> list[str]:
        """What :class:`~constrain.grammar.languages.prefix_tree.Sequences` calls the spellings of a number."""
        node, notation = self._node, self._notation
        if node.values is None:
            language = excluded_number(node, value, notation)
        else:
            # As it stands in the schema.
            language = constant(self._own[value], node.form, node.has_fraction, notation)
        parts = language.parts if isinstance(language, Union) else (language,)
        return [self._sequences.text(part) for part in parts if part is not EMPTY]


def _changed(tree: GrowingTree, texts: list[str], is_added: bool) -> GrowingTree:
    for text in texts:
        tree = tree.plus(text) if is_added else tree.minus(text)
    return tree


# -- scalar nodes without some of their values, or with just some -----------------------------------------


def excluding(node: n.Node, values: Collection[Instance]) -> n.Node | None:
    """A scalar node without some values; None where a list of values is used up.  Other nodes may be empty too."""
    if not values:
        return node
    if isinstance(node, n.NullNode):
        return None
    if isinstance(node, n.BooleanNode):
        booleans = tuple(value for value in node.values if Instance("boolean", value) not in values)
        return replace(node, values=booleans) if booleans else None
    if isinstance(node, n.StringNode):
        words = frozenset(filter(is_text, (value.content for value in values)))
        if node.values is not None:
            left = tuple(value for value in node.values if value not in words)
            return replace(node, values=left) if left else None
        return replace(node, terms=(*node.terms, n.Term(without(Words(words)), node.pointer)))
    assert isinstance(node, n.NumberNode)
    numbers = [number for value in values if (number := moderate(value.content)) is not None]
    # What is too long or too large to be left out one by one is left out with all of its kind.
    is_moderate = node.is_moderate or len(numbers) < len(values)
    return replace(node, excluded=(*node.excluded, *sorted(numbers)), is_moderate=is_moderate)


def only(node: n.Node, values: Sequence[Instance]) -> n.Node:
    """A scalar node with just some of its values."""
    if isinstance(node, n.BooleanNode):
        return replace(node, values=tuple(value.content for value in values))
    if isinstance(node, n.StringNode):
        return n.StringNode(node.pointer, values=tuple(value.content for value in values))
    if isinstance(node, n.NumberNode):
        numbers = [number for value in values if (number := decimal(value.content)) is not None]
        if len(numbers) < len(values):
            raise LimitError("a number of more than 10,000 digits that has to come again", node.pointer)
        if len(numbers) == 1:
            return n.single_number(node, numbers[0])
        return n.NumberNode(node.pointer, node.form, values=tuple(numbers), has_fraction=node.has_fraction)
    return node
