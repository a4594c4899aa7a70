"""From a tree over code points to a regular language over bytes.

Parts without look-arounds are spelled out (:mod:`constrain.grammar.regex.spell`).  For the others the idea
is *continuation*: the language of ``A(?=X)B`` followed by everything up to the end of the text is
``A (B-and-the-rest ∩ X Σ*)``, which a :class:`~constrain.grammar.languages.regular.Regular` can say.

Assertions about one neighbour (anchors, ``\\b``, ``(?!-)``, ``(?<=\\d)``) need no intersection.  They
are worked out by a *state*, the pair of

* what the previous character was: its class in a partition that no look-behind can tell apart
  further, or the start of the text; and
* what the next character must be: a set, and whether the text may end instead.

A part of the pattern takes a state to several states, with a language for each (:meth:`Lowering.paths`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NoReturn

from constrain.grammar.languages import regular as r
from constrain.grammar.languages.derivatives import has_empty_string
from constrain.grammar.languages.utf8 import ALL, CodePoints, common, negate, partition
from constrain.grammar.regex import nodes as n
from constrain.grammar.regex.automaton import MAX_STATES, Matrix, Sizes, all_paths, multiply, steps, tree_size
from constrain.grammar.regex.charsets import error_at
from constrain.grammar.regex.guard import forbidden, guard_loop
from constrain.grammar.regex.settle import trim
from constrain.grammar.regex.spell import Encoder, Speller, meet
from constrain.limits import spend

Must = tuple[CodePoints, bool] | None
"""What the next character must be in, and whether the end of the text will do; None for no demand."""

State = tuple[int, Must]
"""The previous character's part, counted from 1, or _START; _ANY if nothing that follows looks; and the demand."""

_ANY, _START = -1, 0

_TOO_FAR_BACK = (
    "this look-behind reaches back further than can be followed here; "
    "it may be longer than one character only next to the text it looks at"
)

MAX_PARTS = 32
"""Classes of characters that the look-behinds of one pattern tell apart."""

MAX_TREE = 50_000
"""Nodes in the result, where look-arounds make it larger than the pattern; a set of characters counts as one."""

MAX_UNROLL = 32
"""Repetitions of an item with a look-around that are written out."""


class Rest:
    """Everything in the pattern that comes after some place, up to the end of the text."""

    def __init__(self, lowering: Lowering, node: n.Node, rest: Rest | None) -> None:
        self.lowering = lowering
        self.node = node
        self.rest = rest
        self.reads: bool = node.reads or (rest is not None and node.low == 0 and rest.reads)
        self._known: dict[State, r.Regular] = {}

    def after(self, state: State) -> r.Regular:
        """The texts that may follow in ``state``."""
        if not self.reads:
            state = (_ANY, state[1])
        known = self._known.get(state)
        if known is None:
            if self.rest is None:
                known = r.EPSILON if state[1] is None or state[1][1] else r.EMPTY
            else:
                known = self.lowering.lower(self.node, state, self.rest)
            self._known[state] = known
        return known


class AnyRest(Rest):
    """What may follow the text that a look-ahead looks for.

    That is any bytes, not any characters: the pattern that looks ahead sees to it that they are characters, so both say
    the same, and an intersection with any bytes is at once what the other side is.  With any characters, whether
    something is left behind a look-ahead would be found by going through all states of the pattern.
    """

    def after(self, state: State) -> r.Regular:
        must = state[1]
        if must is None:
            return r.ANY_BYTES
        points, edge = must
        follows = r.concat(self.lowering.speller.characters(points), r.ANY_BYTES) if points else r.EMPTY
        return r.optional(follows) if edge else follows


class Lowering:
    """The lowering of one pattern; ``tree`` must have been settled."""

    def __init__(self, pattern: str, tree: n.Node, encode_char: Encoder) -> None:
        self.pattern = pattern
        self.tree = tree
        self._sizes: Sizes = {}
        self.speller = Speller(encode_char, self._sizes)
        self.anything = self.speller.spell(n.ANYTHING)
        looked_behind = [each for each in _assertions(tree) if isinstance(each, n.Before)]
        self.parts = partition(ALL, [before.points for before in looked_behind])
        if len(self.parts) > MAX_PARTS:
            self.fail(f"look-behinds tell more than {MAX_PARTS} classes of characters apart", looked_behind[-1].at)
        self.end = Rest(self, n.NIL, None)
        self.any_rest = AnyRest(self, n.ANYTHING, self.end)
        # By identity, so each entry keeps its key alive.
        self._known: dict[tuple[int, State, bool], tuple[dict[State, r.Regular], n.Node]] = {}

    def fail(self, reason: str, at: int) -> NoReturn:
        """Raise a GrammarError that names the place of offset ``at``."""
        raise error_at(self.pattern, reason, at)

    def run(self) -> r.Regular:
        """The language of the whole pattern."""
        return Rest(self, self.tree, self.end).after((_START, None))

    # -- continuation ----------------------------------------------------------------------

    def lower(self, node: n.Node, state: State, rest: Rest) -> r.Regular:
        """The texts that begin with a match of ``node`` and go on with ``rest``."""
        spend(10)
        if node.tier < n.LOOKS:
            found = self.paths(node, state, rest.reads)
            return self._checked(r.union(*(r.concat(path, rest.after(then)) for then, path in found.items())), node)
        if type(node) is n.Seq:
            first = next(index for index, item in enumerate(node.items) if item.tier == n.LOOKS)
            if first == 0:
                return self.lower(node.items[0], state, Rest(self, n.seq(node.items[1:]), rest))
            return self.lower(n.seq(node.items[:first]), state, Rest(self, n.seq(node.items[first:]), rest))
        if type(node) is n.Alt:
            return self._checked(r.union(*(self.lower(item, state, rest) for item in node.items)), node)
        if type(node) is n.Look:
            if not node.ahead:
                self.fail(_TOO_FAR_BACK, node.at)
            after = rest.after(state)
            inside = self.lower(node.body, (state[0], None), self.any_rest)
            return self._checked(meet(after, inside, node.negated, self.anything), node)
        assert type(node) is n.Repeat
        return self._checked(self._lower_loop(node, state, rest), node)

    def _lower_loop(self, loop: n.Repeat, state: State, rest: Rest) -> r.Regular:
        if loop.least == 0 and (after := rest.after(state)) in (self.anything, r.ANY_BYTES):
            return after
        guarded = self._guarded(loop, state, rest)
        if guarded is not None:
            return guarded
        turned = _looking_first(loop)
        if turned is not None:
            return self.lower(turned, state, rest)
        if loop.most is None or loop.most > MAX_UNROLL:
            inside = next(each for each in _assertions(loop) if isinstance(each, n.Look))
            if not inside.ahead:
                self.fail(_TOO_FAR_BACK, inside.at)
            self.fail(
                "this look-ahead reaches beyond one repetition of the group around it; that is supported only for "
                "a repeated single character and a few short strings that must not follow, as in (?:(?!abc).)*",
                inside.at,
            )
        tail: n.Node = n.NIL
        for _ in range(loop.most - loop.least):
            tail = n.alt((n.seq((loop.item, tail)), n.NIL))
        return self.lower(n.seq((*[loop.item] * loop.least, tail)), state, rest)

    def _guarded(self, loop: n.Repeat, state: State, rest: Rest) -> r.Regular | None:
        """A repeated single character with look-aheads, as in ``(?:(?!X).)*``; None if the loop is another one."""
        item = loop.item
        if item.low != 1 or item.high != 1 or item.reads:
            return None
        bare = n.Repeat(_without_assertions(item), loop.least, loop.most, loop.at)
        if not rest.reads and rest.after((_ANY, None)) == r.EPSILON:
            # Up to the end of the text: no place in it may be one where the item does not match.
            spelled = self.speller.spell(bare)
            found = meet(spelled, r.concat(self.anything, self._unmatched(item)), True, self.anything)
        else:
            before = self._guarded_before(bare, item, state[0], rest)
            if before is None:
                return None
            found = before
        if state[1] is None:
            return found
        points, edge = state[1]
        if not points:
            return r.EPSILON if edge and has_empty_string(found) else r.EMPTY
        return meet(found, self.any_rest.after(state), False, self.anything)

    def _unmatched(self, item: n.Node) -> r.Regular:
        """The texts, not empty, at whose start the single character ``item`` and its look-aheads do not match."""
        some = self.speller.spell(n.seq((n.Chars(ALL), n.ANYTHING)))
        *looks, last = item.items if type(item) is n.Seq else (item,)
        if last.tier == n.PLAIN and all(type(each) is n.Look and each.negated for each in looks):
            # The character itself is seen to by the loop.
            wrong = [self.lower(each.body, (_ANY, None), self.any_rest) for each in looks if type(each) is n.Look]
            return r.union(
                *(meet(some, text, False, self.anything) if has_empty_string(text) else text for text in wrong)
            )
        return meet(some, self.lower(item, (_ANY, None), self.any_rest), True, self.anything)

    def _guarded_before(self, bare: n.Repeat, item: n.Node, left: int, rest: Rest) -> r.Regular | None:
        """The loop with more text after it, into which a forbidden string may reach."""
        words = forbidden(item)
        if words is None:
            return None
        assert type(bare.item) is n.Chars
        guard = guard_loop(bare.item.points, words)
        if guard is None:
            return None
        edges = {
            source: {target: self.speller.characters(points) for target, points in row.items()}
            for source, row in guard.items()
        }
        inside = all_paths(edges, frozenset())
        counted = bare.least > 0 or bare.most is not None
        found_all = []
        for pending, path in inside.items():
            must: CodePoints = ALL
            remains = []
            for word, length in pending:
                if len(word) == length + 1:
                    must = common(must, negate(word[length]))
                else:
                    remains.append(r.concat(self.speller.spell(n.seq(tuple(map(n.Chars, word[length:])))), r.ANY_BYTES))
            if counted:
                path = meet(path, self.speller.spell(bare), False, self.anything)
            for last, piece in self._by_last(path, left) if rest.reads else ((_ANY, path),):
                after = rest.after((last, None if must == ALL else (must, True)))
                for remain in remains:
                    after = meet(after, remain, True, self.anything)
                found_all.append(r.concat(piece, after))
        return r.union(*found_all)

    def _by_last(self, path: r.Regular, left: int) -> Iterator[tuple[int, r.Regular]]:
        """``path`` split by the previous character at its end; ``left`` is the one at its beginning."""
        if has_empty_string(path):
            yield left, r.EPSILON
        for index, part in enumerate(self.parts):
            yield index + 1, meet(path, self.speller.spell(n.seq((n.ANYTHING, n.Chars(part)))), False, self.anything)

    # -- states ------------------------------------------------------------------------------

    def paths(self, node: n.Node, state: State, reads: bool) -> dict[State, r.Regular]:
        """What ``node`` matches from ``state``, by the state it ends in; ``reads``: the previous character matters."""
        spend(5)
        if node.tier == n.PLAIN:
            return self._plain_paths(node, state, reads)
        left, must = state
        if isinstance(node, n.Before):
            assert left != _ANY
            holds = node.edge if left == _START else bool(common(self.parts[left - 1], node.points))
            return {(left if reads else _ANY, must): r.EPSILON} if holds else {}
        if isinstance(node, n.After):
            points, edge = (node.points, node.edge) if must is None else _both(must, node)
            return {(left if reads else _ANY, (points, edge)): r.EPSILON} if points or edge else {}
        key = (id(node), state, reads)
        if key not in self._known:
            if type(node) is n.Alt:
                found = self._alt_paths(node, state, reads)
            elif type(node) is n.Repeat:
                found = self._loop_paths(node, state, reads)
            else:
                assert type(node) is n.Seq
                found = self._seq_paths(node, state, reads)
            self._check_size(found.values(), node)
            self._known[key] = found, node
        return self._known[key][0]

    def _plain_paths(self, node: n.Node, state: State, reads: bool) -> dict[State, r.Regular]:
        left, must = state
        if must is None and not reads:
            return {(_ANY, None): self.speller.spell(node)}
        found: dict[State, r.Regular] = {}
        body = node if must is None else trim(node, must[0], at_end=False)
        if reads:
            for index, part in enumerate(self.parts):
                found[index + 1, None] = self.speller.spell(trim(body, part, at_end=True))
        else:
            found[_ANY, None] = self.speller.spell(body)
        if node.nullable:
            here = (left if reads else _ANY, must)
            found[here] = r.union(found.get(here, r.EMPTY), r.EPSILON)
        return {then: path for then, path in found.items() if path != r.EMPTY}

    def _alt_paths(self, node: n.Alt, state: State, reads: bool) -> dict[State, r.Regular]:
        found: dict[State, list[r.Regular]] = {}
        for item in node.items:
            for then, path in self.paths(item, state, reads).items():
                found.setdefault(then, []).append(path)
        return {then: r.union(*some) for then, some in found.items()}

    def _seq_paths(self, node: n.Seq, state: State, reads: bool) -> dict[State, r.Regular]:
        runs: list[n.Node] = []
        for plain, group in groupby(node.items, key=lambda item: item.tier == n.PLAIN):
            members = list(group)
            runs += [n.seq(members)] if plain else members
        later = [reads]
        for item in reversed(runs[1:]):
            later.append(item.reads or (item.low == 0 and later[-1]))
        found: dict[State, r.Regular] = {state: r.EPSILON}
        for item in runs:
            item_reads = later.pop()
            longer: dict[State, r.Regular] = {}
            for here, path in found.items():
                for then, step in self.paths(item, here, item_reads).items():
                    longer[then] = r.union(longer.get(then, r.EMPTY), r.concat(path, step))
            found = longer
        return found

    def _loop_paths(self, loop: n.Repeat, state: State, reads: bool) -> dict[State, r.Regular]:
        reads = reads or loop.item.reads
        start: State = state if reads else (_ANY, state[1])
        edges: dict[State, dict[State, r.Regular]] = {}
        todo = [start]
        while todo:
            here = todo.pop()
            if here not in edges:
                edges[here] = self.paths(loop.item, here, reads)
                todo += edges[here]
                if len(edges) > MAX_STATES:
                    self.fail("the assertions in this repetition have too many cases", loop.at)

        def check(matrix: Matrix[State]) -> None:
            self._check_size([path for row in matrix.values() for path in row.values()], loop)

        found = steps({start: r.EPSILON}, edges, loop.least, check)
        if loop.most is None:
            return multiply({start: found}, {here: all_paths(edges, here) for here in edges})[start]
        maybe = {here: dict(row) for here, row in edges.items()}
        for here, row in maybe.items():
            row[here] = r.union(r.EPSILON, row.get(here, r.EMPTY))
        return steps(found, maybe, loop.most - loop.least, check)

    # -- size --------------------------------------------------------------------------------

    def _checked(self, regular: r.Regular, node: n.Node) -> r.Regular:
        self._check_size([regular], node)
        return regular

    def _check_size(self, regulars: Iterable[r.Regular], node: n.Node) -> None:
        if sum(tree_size(regular, self._sizes) for regular in regulars) > MAX_TREE:
            self.fail(f"look-arounds make this pattern larger than {MAX_TREE} nodes", _first_assertion(node))


def _both(must: tuple[CodePoints, bool], after: n.After) -> tuple[CodePoints, bool]:
    return common(must[0], after.points), must[1] and after.edge


def _children(node: n.Node) -> tuple[n.Node, ...]:
    if isinstance(node, n.Seq | n.Alt):
        return node.items
    if isinstance(node, n.Repeat):
        return (node.item,)
    return (node.body,) if isinstance(node, n.Look) else ()


def _assertions(node: n.Node) -> Iterator[n.Before | n.After | n.Look]:
    """The assertions in ``node``, from left to right."""
    if node.tier:
        if isinstance(node, n.Before | n.After | n.Look):
            yield node
        for child in _children(node):
            yield from _assertions(child)


def _first_assertion(node: n.Node) -> int:
    return next((each.at for each in _assertions(node)), 0)


def _looking_first(loop: n.Repeat) -> n.Node | None:
    """A loop over a single character and what looks ahead behind it, as one that looks first; None of another one.

    ``(?:a(?!b))*`` is ``a(?:(?!b)a)*(?!b)``, or nothing.
    """
    if type(loop.item) is not n.Seq or loop.most == 0:
        return None
    first, *looks = loop.item.items
    if type(first) is not n.Chars or not all(
        type(each) is n.After or (type(each) is n.Look and each.ahead) for each in looks
    ):
        return None
    most = None if loop.most is None else loop.most - 1
    inner = n.rep(n.seq((*looks, first)), max(loop.least - 1, 0), most, loop.at)
    whole = n.seq((first, inner, *looks))
    return whole if loop.least > 0 else n.alt((whole, n.NIL))


def _without_assertions(node: n.Node) -> n.Node:
    """A node of one character, without what it asserts."""
    if type(node) is n.Seq:
        return n.seq([_without_assertions(item) for item in node.items if item.high != 0])
    if type(node) is n.Alt:
        return n.alt([_without_assertions(item) for item in node.items])
    return node
