"""Settling look-arounds where they stand, before anything is turned into bytes.

``(?!-)[a-z-]+`` is ``[a-z][a-z-]*``: the text that follows inside the same pattern is long enough
to decide the look-ahead, so it goes away.  :func:`settle` does this for every look-around that is
so decided, on both sides.  What it leaves needs to know what comes after or before, and is the
business of :mod:`constrain.grammar.regex.lower`.
"""

from __future__ import annotations

from constrain.grammar.languages.utf8 import ALL, CodePoints, common, negate, normalize, partition
from constrain.grammar.regex import nodes as n
from constrain.limits import spend

_MAX_NULLABLE = 32
"""Up to so many items in a row that may be empty, the result is written out; it grows with their square."""


def settle(node: n.Node, at_start: bool = False) -> n.Node:
    """An equal tree with as few assertions as can be; ``at_start``: the text begins where ``node`` does."""
    spend()
    if node.tier == n.PLAIN:
        return node
    if type(node) is n.Seq:
        return _settle_seq([settle(item, at_start and not index) for index, item in enumerate(node.items)], at_start)
    if type(node) is n.Alt:
        return n.alt([settle(item, at_start) for item in node.items])
    if type(node) is n.Repeat:
        item = settle(node.item)
        counted = _counted(item, node) if node.most is not None and node.most > 2 else None
        return n.rep(item, node.least, node.most, node.at) if counted is None else counted
    if type(node) is n.Look:
        node = n.look(settle(node.body), node.ahead, node.negated, node.at)
    return _settle_seq([node], at_start)


def _settle_seq(items: list[n.Node], at_start: bool) -> n.Node:
    # Flatten first: an assertion may stand at the end of a group and be decided by what follows it.
    node = n.seq(items)
    if node.tier == n.PLAIN:
        return node
    items = list(node.items) if type(node) is n.Seq else [node]
    index = 0
    while index < len(items):
        item = items[index]
        if isinstance(item, n.Before) or (type(item) is n.Look and not item.ahead):
            index += _settle_behind(items, index, at_start)
        index += 1
    for index in reversed(range(len(items))):
        item = items[index]
        if isinstance(item, n.After) or (type(item) is n.Look and item.ahead):
            _settle_ahead(items, index)
    return n.seq(items)


def _settle_behind(items: list[n.Node], index: int, at_start: bool) -> int:
    """Settle the look-behind at ``index`` by what precedes it, if that suffices; how far the place has moved."""
    end = index
    while end > 0 and items[end - 1].tier and items[end - 1].high == 0:
        end -= 1
    begin = end
    item = items[index]
    body = item.body if type(item) is n.Look else None
    if body is not None and body.tier:
        return 0
    length = 0
    while begin > 0 and items[begin - 1].tier == n.PLAIN:
        begin -= 1
        length += items[begin].low
        if body is None:
            if not items[begin].nullable:
                break
        elif body.high is not None and length >= body.high:
            break
    run = n.seq(items[begin:end])
    if type(item) is n.Look:
        enough = item.body.high is not None and length >= item.body.high
        if not enough and not _starts_text(items, begin, at_start):
            return 0
        settled: n.Node = n.Meet(run, n.seq((n.ANYTHING, item.body)), item.negated)
    elif isinstance(item, n.Edge) and not run.nullable:
        settled = trim(run, item.points, at_end=True)
    else:
        return 0
    del items[index]
    items[begin:end] = [settled]
    return begin - end


def _starts_text(items: list[n.Node], begin: int, at_start: bool) -> bool:
    """Nothing can precede ``items[begin]``: only assertions do, and one of them is the start of the text."""
    while begin > 0 and items[begin - 1].tier and items[begin - 1].high == 0:
        begin -= 1
        before = items[begin]
        if type(before) is n.Before and before.edge and not before.points:
            return True
    return begin == 0 and at_start


def _settle_ahead(items: list[n.Node], index: int) -> None:
    """Settle the look-ahead at ``index`` by what follows it, if that suffices."""
    begin = index + 1
    while begin < len(items) and items[begin].tier and items[begin].high == 0:
        begin += 1
    end = begin
    item = items[index]
    body = item.body if type(item) is n.Look else None
    if body is not None and (body.tier or body.high is None):
        return
    length = 0
    enough = False
    while end < len(items) and items[end].tier == n.PLAIN and not enough:
        length += items[end].low
        if body is None:
            enough = not items[end].nullable
        else:
            enough = body.high is not None and length >= body.high
        end += 1
    if not enough:
        return
    run = n.seq(items[begin:end])
    if type(item) is n.Look:
        settled: n.Node = n.Meet(run, n.seq((item.body, n.ANYTHING)), item.negated)
    else:
        assert isinstance(item, n.Edge)
        settled = trim(run, item.points, at_end=False)
    items[begin:end] = [settled]
    del items[index]


def trim(node: n.Node, points: CodePoints, at_end: bool) -> n.Node:
    """The matches of a plain ``node`` that are not empty and begin (or, ``at_end``, end) in ``points``."""
    spend()
    if type(node) is n.Chars:
        return node if points == ALL else n.chars(common(node.points, points))
    if type(node) is n.Alt:
        return n.alt([trim(item, points, at_end) for item in node.items])
    if type(node) is n.Repeat:
        edge = trim(node.item, points, at_end)
        least = 0 if node.item.nullable else max(node.least - 1, 0)
        rest = n.rep(node.item, least, None if node.most is None else node.most - 1, node.at)
        return n.seq((rest, edge) if at_end else (edge, rest))
    if type(node) is n.Meet:
        item = trim(node.item, points, at_end)
        return n.NOTHING if item is n.NOTHING else n.Meet(item, node.filter, node.negated)
    assert type(node) is n.Seq
    return _trim_seq(node, points, at_end)


def _trim_seq(node: n.Seq, points: CodePoints, at_end: bool) -> n.Node:
    # Any of the items at that end may hold the last character, as long as those beyond it may be empty.
    items = node.items if at_end else node.items[::-1]
    begin = len(items)
    while begin > 0 and (begin == len(items) or items[begin].nullable):
        begin -= 1
    if len(items) - begin > _MAX_NULLABLE:
        edge = n.chars(points)
        return n.Meet(node, n.seq((n.ANYTHING, edge) if at_end else (edge, n.ANYTHING)), False) if points else n.NOTHING
    tails = []
    for index in range(begin, len(items)):
        tail = [*items[begin:index], trim(items[index], points, at_end)]
        tails.append(n.seq(tail if at_end else tail[::-1]))
    rest = items[:begin]
    return n.seq((*rest, n.alt(tails)) if at_end else (n.alt(tails), *rest[::-1]))


def _counted(item: n.Node, loop: n.Repeat) -> n.Node | None:
    """A counted loop over single characters, each with a say about the next one, without the loop's assertions.

    ``(?:a|-(?=a)){0,38}`` is ``[a-]{0,38}`` without ``-[^a]`` inside, and then what the last
    character says about the next.  None if the loop is not of that form.
    """
    if item.tier != n.EDGES or item.low != 1 or item.high != 1:
        return None
    branches: list[tuple[CodePoints, CodePoints, bool]] = []
    for part in item.items if type(item) is n.Alt else (item,):
        pieces = part.items if type(part) is n.Seq else (part,)
        if type(pieces[0]) is not n.Chars or any(type(piece) is not n.After for piece in pieces[1:]):
            return None
        after, edge = ALL, True
        for piece in pieces[1:]:
            assert type(piece) is n.After
            after, edge = common(after, piece.points), edge and piece.edge
        branches.append((pieces[0].points, after, edge))
    groups: list[tuple[CodePoints, CodePoints, bool]] = []
    every = normalize(span for points, _, _ in branches for span in points)
    for group in partition(every, [points for points, _, _ in branches]):
        allowed = [branch for branch in branches if common(group, branch[0]) == group]
        after = normalize(span for _, points, _ in allowed for span in points)
        groups.append((group, after, any(edge for _, _, edge in allowed)))
    loose = n.rep(n.Chars(every), loop.least, loop.most, loop.at)
    wrong = n.alt([n.seq((n.Chars(group), n.chars(negate(after)))) for group, after, _ in groups])
    inside = loose if wrong is n.NOTHING else n.Meet(loose, n.seq((n.ANYTHING, wrong, n.ANYTHING)), True)
    ends = [
        n.seq((trim(inside, group, at_end=True), look_after(after, edge, loop.at))) for group, after, edge in groups
    ]
    return n.alt([*ends, n.NIL] if loop.least == 0 else ends)


def look_after(points: CodePoints, edge: bool, at: int) -> n.Node:
    """The assertion that the next character is in ``points``, or that there is none if ``edge``."""
    if points == ALL and edge:
        return n.NIL
    return n.After(points, edge, at) if points or edge else n.NOTHING
