"""What a pattern says, as a tree over code points.

Flags are gone by the time a tree exists: the parser has already folded case, chosen what ``.`` and
``\\w`` mean and what ``^`` means.  Groups are gone too, because a language does not care what was
captured.  Three kinds of node consume text (:class:`Chars`, and :class:`Seq`, :class:`Alt`,
:class:`Repeat`, :class:`Meet` built from it) and three look around without consuming:

* :class:`Before` and :class:`After` look at one neighbouring character, or at the edge of the text.
  Anchors and word boundaries are these, and so are most look-arounds that people write.
* :class:`Look` is every other look-around.

Every node knows, in code points, the least and the greatest length it can match, whether it is
*plain* (no look-around inside, so that it means the same wherever it stands), and whether it may
look at the character before it.  Build nodes with :func:`seq`, :func:`alt`, :func:`rep`,
:func:`chars` and :func:`look`, which keep trees flat and small.
"""

from __future__ import annotations

from collections.abc import Iterable

from constrain.grammar.languages.utf8 import ALL, CodePoints, negate, normalize

PLAIN, EDGES, LOOKS = 0, 1, 2
"""Tiers: no assertion inside; only one-character assertions inside; look-arounds inside."""


class Node:
    """A part of a pattern.

    Attributes
    ----------
    tier : int
        ``PLAIN``, ``EDGES`` or ``LOOKS``.
    low : int
        No match is shorter than this many code points.
    high : int or None
        No match is longer than this many code points; None for no bound.
    nullable : bool
        For a plain node: the empty string matches.  For others: it may match.
    reads : bool
        May look at the character before its own match.
    """

    __slots__ = ("high", "low", "nullable", "reads", "tier")
    tier: int
    low: int
    high: int | None
    nullable: bool
    reads: bool


class Chars(Node):
    """One code point out of a set that is not empty."""

    __slots__ = ("points",)

    def __init__(self, points: CodePoints) -> None:
        self.points = points
        self.tier = PLAIN
        self.low = self.high = 1
        self.nullable = self.reads = False


class Seq(Node):
    """One item after the other.  Without items: the empty string."""

    __slots__ = ("items",)

    def __init__(self, items: tuple[Node, ...]) -> None:
        self.items = items
        tier = PLAIN
        low = 0
        high: int | None = 0
        nullable = True
        reads = False
        for item in items:
            if item.tier:
                tier = max(tier, item.tier)
                reads = reads or (low == 0 and item.reads)
            low += item.low
            high = None if high is None or item.high is None else high + item.high
            nullable = nullable and item.nullable
        self.tier, self.low, self.high, self.nullable, self.reads = tier, low, high, nullable, reads


class Alt(Node):
    """Any of the items.  Without items: no string at all."""

    __slots__ = ("items",)

    def __init__(self, items: tuple[Node, ...]) -> None:
        self.items = items
        self.tier = max((item.tier for item in items), default=PLAIN)
        self.low = min((item.low for item in items), default=0)
        self.high = 0
        for item in items:
            self.high = None if self.high is None or item.high is None else max(self.high, item.high)
        self.nullable = any(item.nullable for item in items)
        self.reads = any(item.reads for item in items)


class Repeat(Node):
    """``item`` from ``least`` to ``most`` times (None: no upper bound); ``at`` is the offset of the quantifier."""

    __slots__ = ("at", "item", "least", "most")

    def __init__(self, item: Node, least: int, most: int | None, at: int) -> None:
        self.item, self.least, self.most, self.at = item, least, most, at
        self.tier = item.tier
        self.low = item.low * least
        self.high = None if most is None or item.high is None else item.high * most
        self.nullable = least == 0 or item.nullable
        self.reads = item.reads


class Meet(Node):
    """The matches of the plain ``item`` that the plain ``filter`` matches whole (or, ``negated``, does not)."""

    __slots__ = ("filter", "item", "negated")

    def __init__(self, item: Node, filter: Node, negated: bool) -> None:
        self.item, self.filter, self.negated = item, filter, negated
        self.tier = PLAIN
        self.low, self.high = item.low, item.high
        self.nullable = item.nullable and filter.nullable != negated
        self.reads = False


class Edge(Node):
    """An assertion about one neighbour: it is in ``points``, or (if ``edge``) there is none."""

    __slots__ = ("at", "edge", "points")

    def __init__(self, points: CodePoints, edge: bool, at: int) -> None:
        self.points, self.edge, self.at = points, edge, at
        self.tier = EDGES
        self.low = self.high = 0
        self.nullable = True
        self.reads = isinstance(self, Before)


class Before(Edge):
    """The character before this place is in ``points``, or this is the start of the text and ``edge`` is set."""

    __slots__ = ()


class After(Edge):
    """The character after this place is in ``points``, or this is the end of the text and ``edge`` is set."""

    __slots__ = ()


class Look(Node):
    """A look-around that needs more than one character; ``at`` is the offset of its parenthesis."""

    __slots__ = ("ahead", "at", "body", "negated")

    def __init__(self, body: Node, ahead: bool, negated: bool, at: int) -> None:
        self.body, self.ahead, self.negated, self.at = body, ahead, negated, at
        self.tier = LOOKS
        self.low = self.high = 0
        self.nullable = True
        self.reads = body.reads or not ahead


NOTHING: Node = Alt(())
NIL: Node = Seq(())
ANY: Node = Chars(ALL)
ANYTHING: Node = Repeat(ANY, 0, None, 0)
"""Any text, line breaks included."""


def chars(points: CodePoints) -> Node:
    """One code point out of ``points``."""
    return Chars(points) if points else NOTHING


def seq(items: Iterable[Node]) -> Node:
    """The items one after the other, nested sequences flattened."""
    flat: list[Node] = []
    for item in items:
        if type(item) is Seq:
            flat += item.items
        elif item is NOTHING:
            return NOTHING
        else:
            flat.append(item)
    if not flat:
        return NIL
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))


def alt(items: Iterable[Node]) -> Node:
    """Any of the items; nested alternatives are flattened and all single characters put into one set."""
    flat: list[Node] = []
    points: list[tuple[int, int]] = []
    where = -1
    for item in items:
        for part in item.items if type(item) is Alt else (item,):
            if type(part) is not Chars:
                flat.append(part)
                continue
            if where < 0:
                where = len(flat)
                flat.append(part)
            points += part.points
    if where >= 0 and flat[where].points != tuple(points):  # type: ignore[attr-defined]
        flat[where] = Chars(normalize(points))
    if not flat:
        return NOTHING
    return flat[0] if len(flat) == 1 else Alt(tuple(flat))


def rep(item: Node, least: int, most: int | None, at: int) -> Node:
    """``item`` from ``least`` to ``most`` times."""
    if most == 0 or item is NIL:
        return NIL
    if item is NOTHING:
        return NOTHING if least else NIL
    if least == 1 and most == 1:
        return item
    if item.tier and item.high == 0:
        # Asserting twice says no more than asserting once, and asserting zero times is always possible.
        return item if least else NIL
    if type(item) is Repeat and item.most is None and item.least <= 1 and least <= 1:
        return Repeat(item.item, item.least * least, None, at)
    return Repeat(item, least, most, at)


def look(body: Node, ahead: bool, negated: bool, at: int) -> Node:
    """The look-around, in its one-character form where there is one."""
    if type(body) is (Before if ahead else After):
        # An assertion inside a look-around, as in (?=^), is the assertion itself or its opposite.
        points, edge = body.points, body.edge
        return type(body)(negate(points), not edge, at) if negated else body
    if type(body) is Look:
        return Look(body.body, body.ahead, body.negated != negated, at)
    if not negated and type(body) is Seq:
        # (?=\ba) is \b(?=a): what stands first in it asserts something about the same place.
        items = body.items if ahead else body.items[::-1]
        count = next((index for index, item in enumerate(items) if not item.tier or item.high != 0), len(items))
        if count:
            inside = items[count:] if ahead else items[count:][::-1]
            return seq((*items[:count], look(seq(inside), ahead, False, at)))
    found = _one_character(body, ahead)
    if found is None:
        return Look(body, ahead, negated, at)
    points, edge = found
    if negated:
        points, edge = negate(points), not edge
    if not points and not edge:
        return NOTHING
    if points == ALL and edge:
        return NIL
    return After(points, edge, at) if ahead else Before(points, edge, at)


def _one_character(body: Node, ahead: bool) -> tuple[CodePoints, bool] | None:
    """The neighbours that satisfy a look-around, if one neighbour decides it; and whether the text's edge does."""
    if body.tier == PLAIN and body.nullable:
        return ALL, True
    if type(body) is Chars:
        return body.points, False
    if isinstance(body, After if ahead else Before):
        return body.points, body.edge
    if type(body) is Repeat and body.least == 1 and body.tier == PLAIN:
        return _one_character(body.item, ahead)
    if type(body) is Seq:
        nearest, others = (body.items[0], body.items[1:]) if ahead else (body.items[-1], body.items[:-1])
        if nearest.tier == PLAIN and all(other.tier == PLAIN and other.nullable for other in others):
            return _one_character(nearest, ahead)
        return None
    if type(body) is Alt:
        points: list[tuple[int, int]] = []
        edge = False
        for item in body.items:
            found = _one_character(item, ahead)
            if found is None:
                return None
            points += found[0]
            edge = edge or found[1]
        return normalize(points), edge
    return None
