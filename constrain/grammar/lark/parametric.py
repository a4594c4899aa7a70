"""Rules with a number: ``perm::_ : "a" perm::set_bit(0) %if bit_clear(0) | ...``.

The number has 64 bits, and each number that is reached makes a rule of its own.  The functions are llguidance's.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import TypeAlias

from constrain.grammar.lark.definitions import Body
from constrain.grammar.lark.source import Node, Source, subtrees_of
from constrain.grammar.lark.tree import Token, Tree

BITS = 64
_ALL = (1 << BITS) - 1

_UNIT = re.compile(r"\s*(?:(?P<number>0[xX][0-9a-fA-F]+|\d+)|(?P<name>[A-Za-z_]\w*)|(?P<mark>[()\[\],:]))")

_Range: TypeAlias = "tuple[int, int]"
_Item: TypeAlias = "int | _Range | Callable[[int], bool]"

_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


class Numbers:
    """The expressions and conditions of a grammar's rules with numbers, each of which is read once.

    They are known by the identity of their tokens, which the definitions of the grammar hold.
    """

    def __init__(self) -> None:
        self._expressions: dict[int, int | Callable[[int], int]] = {}
        self._conditions: dict[int, Callable[[int], bool]] = {}
        # By body: the trees in it that have conditions.
        self._conditional: dict[int, set[int]] = {}

    def value(self, token: Token, number: int | None, source: Source) -> int:
        """The number that ``::...`` behind a rule's name stands for, in a rule whose own number is ``number``.

        Raises
        ------
        GrammarError
            If the expression is not valid, or needs a number where the rule has none.
        """
        found = self._expressions.get(id(token))
        if found is None:
            found = self._expressions[id(token)] = _read_number(token, source)
        if isinstance(found, int):
            return found
        if number is None:
            raise source.error(f'"{token}" needs the number of the rule that it stands in, which has none', token)
        return found(number)

    def chosen(self, body: Body, number: int) -> Node:
        """The tree of a body without the alternatives whose condition does not hold for a number.

        Raises
        ------
        GrammarError
            If a condition is not valid.
        """
        conditional = self._conditional.get(id(body))
        if conditional is None:
            conditional = self._conditional[id(body)] = set()
            for tree in reversed(list(subtrees_of(body.tree))):
                if tree.data == "conditional" or any(id(child) in conditional for child in tree.children):
                    conditional.add(id(tree))

        def holds(token: Token) -> bool:
            condition = self._conditions.get(id(token))
            if condition is None:
                condition = self._conditions[id(token)] = _read_condition(token, body.source)
            return condition(number)

        return _chosen(body.tree, conditional, holds)


def _chosen(tree: Node, conditional: set[int], holds: Callable[[Token], bool]) -> Node:
    if id(tree) not in conditional:
        return tree
    children: list[Node | Token] = []
    for child in tree.children:
        inner: Node | Token = child
        while isinstance(inner, Tree) and inner.data == "alias":
            inner = inner.children[0]
        if isinstance(inner, Tree) and inner.data == "conditional":
            child, condition = inner.children
            assert isinstance(condition, Token)
            if not holds(condition):
                continue
        children.append(_chosen(child, conditional, holds) if isinstance(child, Tree) else child)
    return Tree(tree.data, children)


def _read_number(token: Token, source: Source) -> int | Callable[[int], int]:
    reader = _Reader(str(token)[2:], token, source)
    kind, value = reader.unit()
    found = reader.in_range(value) if kind == "number" else reader.function(value)
    reader.end()
    return found


def _read_condition(token: Token, source: Source) -> Callable[[int], bool]:
    reader = _Reader(str(token)[3:], token, source)
    condition = reader.condition()
    reader.end()
    return condition


def _step(number: int, bits: _Range, step: int) -> int:
    """A number with one more or less in some of its bits, if there is."""
    part, most = _part(number, bits), (1 << bits[1] - bits[0]) - 1
    return number + (step << bits[0]) if 0 <= part + step <= most else number


def _part(number: int, bits: _Range) -> int:
    low, high = bits
    return number >> low & (1 << high - low) - 1


class _Reader:
    """Reads one expression."""

    def __init__(self, text: str, token: Token, source: Source) -> None:
        self._text = text.rstrip()
        self._token = token
        self._source = source
        self._at = 0

    def fault(self, reason: str) -> Exception:
        return self._source.error(f'{reason} in "{str(self._token).strip()}"', self._token)

    def unit(self) -> tuple[str, str]:
        """The next number, name or mark."""
        found = _UNIT.match(self._text, self._at)
        if found is None:
            raise self.fault(
                f"unexpected {self._text[self._at : self._at + 1]!r}" if self._rest() else "too early an end"
            )
        self._at = found.end()
        kind = str(found.lastgroup)
        return kind, found[kind]

    def _rest(self) -> str:
        return self._text[self._at :].strip()

    def end(self) -> None:
        if self._rest():
            raise self.fault(f"unexpected {self._rest()!r}")

    def _mark(self, mark: str) -> bool:
        """Read a mark if it is next."""
        if not self._rest().startswith(mark):
            return False
        self.unit()
        return True

    def _expect(self, mark: str) -> None:
        if not self._mark(mark):
            raise self.fault(f'"{mark}" is missing')

    def arguments(self, count: int) -> list[_Item]:
        """What stands in parentheses: numbers, ranges of bits and conditions."""
        self._expect("(")
        items = [] if self._rest().startswith(")") else [self._argument()]
        while self._mark(","):
            items.append(self._argument())
        self._expect(")")
        if len(items) != count:
            raise self.fault(f"{count} argument{'s' * (count != 1)} expected, not {len(items)}")
        return items

    def _argument(self) -> _Item:
        if self._mark("["):
            low = self.integer(self._number())
            self._expect(":")
            high = self.integer(self._number())
            self._expect("]")
            if not 0 <= low < high <= BITS:
                raise self.fault(f"the bits [{low}:{high}] are not in [0:{BITS}]")
            return low, high
        at = self._at
        kind, value = self.unit()
        if kind == "number":
            return self.in_range(value)
        if value == "_":
            return 0, BITS
        self._at = at
        return self.condition()

    def _number(self) -> int:
        kind, value = self.unit()
        if kind != "number":
            raise self.fault("a number is missing")
        return self.in_range(value)

    def in_range(self, text: str) -> int:
        value = int(text, 16 if text[:2].lower() == "0x" else 10)
        if value > _ALL:
            raise self.fault(f"{text} has more than {BITS} bits")
        return value

    def integer(self, item: _Item) -> int:
        if not isinstance(item, int):
            raise self.fault("a number is missing")
        return item

    def bit(self, item: _Item) -> int:
        if not isinstance(item, int) or item >= BITS:
            raise self.fault(f"the number of a bit, below {BITS}, is missing")
        return item

    def range(self, item: _Item) -> _Range:
        if not isinstance(item, tuple):
            raise self.fault("a range of bits is missing, as [0:3] or _")
        return item

    def _inner(self, item: _Item) -> Callable[[int], bool]:
        if not callable(item):
            raise self.fault("a condition is missing")
        return item

    def function(self, name: str) -> Callable[[int], int]:
        if name == "_":
            return lambda number: number
        if name in ("set_bit", "clear_bit"):
            mask = 1 << self.bit(self.arguments(1)[0])
            return (lambda number: number | mask) if name == "set_bit" else (lambda number: number & ~mask)
        if name in ("bit_and", "bit_or"):
            other = self.integer(self.arguments(1)[0])
            return (lambda number: number & other) if name == "bit_and" else (lambda number: number | other)
        if name in ("incr", "decr"):
            bits = self.range(self.arguments(1)[0])
            step = 1 if name == "incr" else -1
            return lambda number: _step(number, bits, step)
        raise self._source.error(f'there is no function "{name}" of a rule\'s number', self._token)

    def condition(self) -> Callable[[int], bool]:
        _, name = self.unit()
        if name == "true":
            if self._rest().startswith("("):
                self.arguments(0)
            return lambda number: True
        if name in ("bit_clear", "bit_set"):
            bit = self.bit(self.arguments(1)[0])
            wanted = int(name == "bit_set")
            return lambda number: number >> bit & 1 == wanted
        if name in ("is_ones", "is_zeros"):
            bits = self.range(self.arguments(1)[0])
            value = (1 << bits[1] - bits[0]) - 1 if name == "is_ones" else 0
            return lambda number: _part(number, bits) == value
        if name in ("and", "or"):
            left, right = map(self._inner, self.arguments(2))
            if name == "and":
                return lambda number: left(number) and right(number)
            return lambda number: left(number) or right(number)
        if name == "not":
            inner = self._inner(self.arguments(1)[0])
            return lambda number: not inner(number)
        counts = name.startswith("bit_count_")
        compare = _COMPARISONS.get(name.removeprefix("bit_count_"))
        if compare is None:
            raise self.fault(f'there is no condition "{name}"')
        some, other = self.arguments(2)
        bits, limit = self.range(some), self.integer(other)
        if counts:
            return lambda number: compare(_part(number, bits).bit_count(), limit)
        return lambda number: compare(_part(number, bits), limit)
