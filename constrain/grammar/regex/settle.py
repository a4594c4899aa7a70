"""Settling look-arounds where they stand, before anything is turned into bytes.

``(?!-)[a-z-]+`` is ``[a-z][a-z-]*``: the text that follows inside the same pattern is long enough
to decide the look-ahead, so it goes away.  :func:`settle` does this for every look-around that is
so decided, on both sides.  What it leaves needs to know what comes after or before, and is the
business of :mod:`constrain.grammar.regex.lower`.
"""

from __future__ import annotations

from constrain.grammar.regex.nodes import (
    ANYTHING,
    EDGES,
    NIL,
    NOTHING,
    PLAIN,
    After,
    Alt,
    Before,
    Chars,
    Edge,
    Look,
    Meet,
    Node,
    Repeat,
    Seq,
    alt,
    chars,
    look,
    rep,
    seq,
)
from constrain.grammar.utf8 import ALL, CodePoints, common, negate, normalize
from constrain.limits import spend

_MAX_NULLABLE = 32
"""Up to so many items in a row that may be empty, the result is written out; it grows with their square."""


def settle(node: Node, at_start: bool = False) -> Node:
    """An equal tree with as few assertions as can be; ``at_start``: the text begins where ``node`` does."""
    spend()
    if node.tier == PLAIN:
        return node
    if type(node) is Seq:
        return _settle_seq([settle(item, at_start and not index) for index, item in enumerate(node.items)], at_start)
    if type(node) is Alt:
        return alt([settle(item, at_start) for item in node.items])
    if type(node) is Repeat:
        item = settle(node.item)
        counted = _counted(item, node) if node.most is not None and node.most > 2 else None
        return rep(item, node.least, node.most, node.at) if counted is None else counted
    if type(node) is Look:
        node = look(settle(node.body), node.ahead, node.negated, node.at)
    return _settle_seq([node], at_start)


def _settle_seq(items: list[Node], at_start: bool) -> Node:
    # Flatten first: an assertion may stand at the end of a group and be decided by what follows it.
    node = seq(items)
    if node.tier == PLAIN:
        return node
    items = list(node.items) if type(node) is Seq else [node]
    index = 0
    while index < len(items):
        item = items[index]
        if isinstance(item, Before) or (type(item) is Look and not item.ahead):
            index += _settle_behind(items, index, at_start)
        index += 1
    for index in reversed(range(len(items))):
        item = items[index]
        if isinstance(item, After) or (type(item) is Look and item.ahead):
            _settle_ahead(items, index)
    return seq(items)


def _settle_behind(items: list[Node], index: int, at_start: bool) -> int:
    """Settle the look-behind at ``index`` by what precedes it, if that suffices; how far the place has moved."""
    end = index
    while end > 0 and items[end - 1].tier and items[end - 1].high == 0:
        end -= 1
    begin = end
    item = items[index]
    body = item.body if type(item) is Look else None
    if body is not None and body.tier:
        return 0
    length = 0
    while begin > 0 and items[begin - 1].tier == PLAIN:
        begin -= 1
        length += items[begin].low
        if body is None:
            if not items[begin].nullable:
                break
        elif body.high is not None and length >= body.high:
            break
    run = seq(items[begin:end])
    if type(item) is Look:
        enough = item.body.high is not None and length >= item.body.high
        if not enough and not _starts_text(items, begin, at_start):
            return 0
        settled: Node = Meet(run, seq((ANYTHING, item.body)), item.negated)
    elif isinstance(item, Edge) and not run.nullable:
        settled = trim(run, item.points, at_end=True)
    else:
        return 0
    del items[index]
    items[begin:end] = [settled]
    return begin - end


def _starts_text(items: list[Node], begin: int, at_start: bool) -> bool:
    """Nothing can precede ``items[begin]``: only assertions do, and one of them is the start of the text."""
    while begin > 0 and items[begin - 1].tier and items[begin - 1].high == 0:
        begin -= 1
        before = items[begin]
        if type(before) is Before and before.edge and not before.points:
            return True
    return begin == 0 and at_start


def _settle_ahead(items: list[Node], index: int) -> None:
    """Settle the look-ahead at ``index`` by what follows it, if that suffices."""
    begin = index + 1
    while begin < len(items) and items[begin].tier and items[begin].high == 0:
        begin += 1
    end = begin
    item = items[index]
    body = item.body if type(item) is Look else None
    if body is not None and (body.tier or body.high is None):
        return
    length = 0
    enough = False
    while end < len(items) and items[end].tier == PLAIN and not enough:
        length += items[end].low
        if body is None:
            enough = not items[end].nullable
        else:
            enough = body.high is not None and length >= body.high
        end += 1
    if not enough:
        return
    run = seq(items[begin:end])
    if type(item) is Look:
        settled: Node = Meet(run, seq((item.body, ANYTHING)), item.negated)
    else:
        assert isinstance(item, Edge)
        settled = trim(run, item.points, at_end=False)
    items[begin:end] = [settled]
    del items[index]


def trim(node: Node, points: CodePoints, at_end: bool) -> Node:
    """The matches of a plain ``node`` that are not empty and begin (or, ``at_end``, end) in ``points``."""
    spend()
    if type(node) is Chars:
        return node if points == ALL else chars(common(node.points, points))
    if type(node) is Alt:
        return alt([trim(item, points, at_end) for item in node.items])
    if type(node) is Repeat:
        edge = trim(node.item, points, at_end)
        least = 0 if node.item.nullable else max(node.least - 1, 0)
        rest = rep(node.item, least, None if node.most is None else node.most - 1, node.at)
        return seq((rest, edge) if at_end else (edge, rest))
    if type(node) is Meet:
        item = trim(node.item, points, at_end)
        return NOTHING if item is NOTHING else Meet(item, node.filter, node.negated)
    assert type(node) is Seq
    return _trim_seq(node, points, at_end)


def _trim_seq(node: Seq, points: CodePoints, at_end: bool) -> Node:
    # Any of the items at that end may hold the last character, as long as those beyond it may be empty.
    items = node.items if at_end else node.items[::-1]
    begin = len(items)
    while begin > 0 and (begin == len(items) or items[begin].nullable):
        begin -= 1
    if len(items) - begin > _MAX_NULLABLE:
        edge = chars(points)
        return Meet(node, seq((ANYTHING, edge) if at_end else (edge, ANYTHING)), False) if points else NOTHING
    tails = []
    for index in range(begin, len(items)):
        tail = [*items[begin:index], trim(items[index], points, at_end)]
        tails.append(seq(tail if at_end else tail[::-1]))
    rest = items[:begin]
    return seq((*rest, alt(tails)) if at_end else (alt(tails), *rest[::-1]))


def _counted(item: Node, loop: Repeat) -> Node | None:
    """A counted loop over single characters, each with a say about the next one, without the loop's assertions.

    ``(?:a|-(?=a)){0,38}`` is ``[a-]{0,38}`` without ``-[^a]`` inside, and then what the last
    character says about the next.  None if the loop is not of that form.
    """
    if item.tier != EDGES or item.low != 1 or item.high != 1:
        return None
    branches: list[tuple[CodePoints, CodePoints, bool]] = []
    for part in item.items if type(item) is Alt else (item,):
        pieces = part.items if type(part) is Seq else (part,)
        if type(pieces[0]) is not Chars or any(type(piece) is not After for piece in pieces[1:]):
            return None
        after, edge = ALL, True
        for piece in pieces[1:]:
            assert type(piece) is After
            after, edge = common(after, piece.points), edge and piece.edge
        branches.append((pieces[0].points, after, edge))
    groups: list[tuple[CodePoints, CodePoints, bool]] = []
    every = normalize(span for points, _, _ in branches for span in points)
    for group in partition(every, [points for points, _, _ in branches]):
        allowed = [branch for branch in branches if common(group, branch[0]) == group]
        after = normalize(span for _, points, _ in allowed for span in points)
        groups.append((group, after, any(edge for _, _, edge in allowed)))
    loose = rep(Chars(every), loop.least, loop.most, loop.at)
    wrong = alt([seq((Chars(group), chars(negate(after)))) for group, after, _ in groups])
    inside = loose if wrong is NOTHING else Meet(loose, seq((ANYTHING, wrong, ANYTHING)), True)
    ends = [seq((trim(inside, group, at_end=True), look_after(after, edge, loop.at))) for group, after, edge in groups]
    return alt([*ends, NIL] if loop.least == 0 else ends)


def look_after(points: CodePoints, edge: bool, at: int) -> Node:
    """The assertion that the next character is in ``points``, or that there is none if ``edge``."""
    if points == ALL and edge:
        return NIL
    return After(points, edge, at) if points or edge else NOTHING


def partition(every: CodePoints, sets: list[CodePoints]) -> list[CodePoints]:
    """Split ``every`` into parts, none empty, so that each of ``sets`` holds all of a part or nothing of it."""
    parts = [every] if every else []
    for points in dict.fromkeys(sets):
        outside = negate(points)
        parts = [part for old in parts for part in (common(old, points), common(old, outside)) if part]
    return parts
