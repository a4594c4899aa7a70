"""Spelling out the parts of a pattern that have no look-arounds, node by node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from constrain.grammar.languages import regular as r
from constrain.grammar.languages.derivatives import has_empty_string
from constrain.grammar.languages.utf8 import CodePoints
from constrain.grammar.regex.automaton import Sizes
from constrain.grammar.regex.nodes import ANYTHING, NIL, Alt, Chars, Meet, Node, Repeat, Seq
from constrain.limits import spend

Encoder = Callable[[CodePoints], r.Regular]
"""Says how one code point out of a set is written in bytes."""


@lru_cache(maxsize=4096)
def _encoded(encode_char: Encoder, points: CodePoints) -> r.Regular:
    return encode_char(points)


# Few alternatives are written as they stand.
_MANY = 16


def _by_first_set(items: Sequence[Node]) -> tuple[dict[CodePoints, list[tuple[Node, ...]]], Sequence[Node]]:
    """Of many alternatives those that begin with the same set of characters, by that set: what follows; and the others.

    A set may have a thousand derivatives, which are then made once and not once for each alternative.
    """
    if len(items) < _MANY:
        return {}, items
    together: dict[CodePoints, list[tuple[Node, ...]]] = {}
    for item in items:
        points = _first_set(item)
        if points:
            together.setdefault(points, []).append(item.items[1:])  # type: ignore[attr-defined]
    together = {points: rests for points, rests in together.items() if len(rests) > 1}
    return together, [item for item in items if _first_set(item) not in together]


def _first_set(node: Node) -> CodePoints:
    """The set of several characters that a sequence begins with; an empty one if it begins otherwise."""
    first = node.items[0] if type(node) is Seq and node.items else None
    points: CodePoints = first.points if type(first) is Chars else ()
    return points if len(points) > 1 or (points and points[0][0] < points[0][1]) else ()


class Speller:
    """Turns plain nodes into bytes; ``encode_char`` says how the code points of a set are written.

    ``sizes`` is told the sets of characters that were used, as :func:`~.automaton.tree_size` wants it.
    """

    def __init__(self, encode_char: Encoder, sizes: Sizes | None = None) -> None:
        self.encode_char = encode_char
        self._sizes: Sizes = {} if sizes is None else sizes

    def characters(self, points: CodePoints) -> r.Regular:
        """One code point out of ``points``."""
        spelled = _encoded(self.encode_char, points)
        # One object for every occurrence of a set, however many nodes it has: it counts once.
        self._sizes[id(spelled)] = 1, spelled
        return spelled

    def spell(self, node: Node) -> r.Regular:
        """The language of a plain node."""
        spend()
        kind = type(node)
        if kind is Chars:
            return self.characters(node.points)  # type: ignore[attr-defined]
        if kind is Repeat:
            return r.repeat(self.spell(node.item), node.least, node.most)  # type: ignore[attr-defined]
        if kind is Seq:
            return self._spell_seq(node.items)  # type: ignore[attr-defined]
        if kind is Alt:
            # Loops rather than comprehensions: one frame less per level of nesting.
            together, apart = _by_first_set(node.items)  # type: ignore[attr-defined]
            parts = []
            for first, rests in together.items():
                parts.append(r.concat(self.characters(first), r.union(*map(self._spell_seq, rests))))
            for item in apart:
                if item is not NIL:
                    parts.append(self.spell(item))  # noqa: PERF401
            one = r.union(*parts)
            return r.optional(one) if any(item is NIL for item in apart) else one
        assert type(node) is Meet
        inside = self._spell_filter(node.filter)
        return meet(self.spell(node.item), inside, node.negated, self.spell(ANYTHING))

    def _spell_filter(self, node: Node) -> r.Regular:
        """What a text is met with.

        Where that goes on with any text it goes on with any bytes: a derivative tells then that nothing more is asked
        for, and nobody has to search for a text that is none.
        """
        if type(node) is Seq and node.items and node.items[-1] is ANYTHING:
            return r.concat(self._spell_seq(node.items[:-1]), r.ANY_BYTES)
        return self.spell(node)

    def _spell_seq(self, items: Iterable[Node]) -> r.Regular:
        parts: list[r.Regular] = []
        run: list[bytes] = []
        for item in items:
            part = self.spell(item)
            if type(part) is r.Literal:
                run.append(part.data)
                continue
            if run:
                parts.append(r.literal(b"".join(run)))
                run.clear()
            parts.append(part)
        if run:
            parts.append(r.literal(b"".join(run)))
        return r.concat(*parts)


def meet(left: r.Regular, right: r.Regular, negated: bool, anything: r.Regular) -> r.Regular:
    """``left`` and (or, ``negated``, but not) ``right``; ``anything`` is the language of all texts.

    ``right`` may go on with any bytes where ``left`` goes on with characters.
    """
    if left == r.EMPTY:
        return r.EMPTY
    if left == r.EPSILON:
        return r.EPSILON if has_empty_string(right) != negated else r.EMPTY
    if right == r.EMPTY:
        return left if negated else r.EMPTY
    if right in (anything, r.ANY_BYTES):
        return r.EMPTY if negated else left
    return r.intersect(left, r.complement(right) if negated else right)
