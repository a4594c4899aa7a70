"""Counters of characters beside a pattern: ``maxLength``."""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata import expressions as e
from constrain.engine.automata.summaries import LONG
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import push, push_pair, set_used, used
from constrain.engine.storage.header import CTX, RESULT1, RESULT2
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_SET_OPERATION, far_call
from constrain.engine.storage.statuses import FAIL
from constrain.kernels.language import int64, types

# The rest of a character has no more parts.
_MOST_PARTS = 8

# So many parts of a character are looked at.
_MOST_STEPS = 256


@njit_inner(RESULT1)
def counting_part(ctx, node):
    """Of an intersection: ``counter << 32 | which part`` if it has a counter that may be left out; else -1.

    The counter may stand behind the rest of a character.  It may be left out beside what the others hold, if they have
    no more characters than it counts.
    """
    nodes = t.expressions(ctx)
    first, count = nodes[node].first, nodes[node].second
    for i in range(count):
        counter = t.children(ctx)[first + i]
        parts = 0
        while nodes[counter].kind == e.CONCAT and parts < _MOST_PARTS:
            counter = nodes[counter].second
            parts += 1
        if not nodes[counter].flags & e.COUNTS_FLAG:
            continue
        if nodes[counter].third < 0:
            return int64(-1)
        low = nodes[counter].second
        if low == 1 and parts == 0:
            # Another part has no string without a character.
            for j in range(count):
                if j != i and not nodes[t.children(ctx)[first + j]].flags & e.NULLABLE_FLAG:
                    low = int64(0)
        return int64(-1) if low > 0 else counter << 32 | i
    return int64(-1)


@njit_inner(RESULT1)
def character_counter(ctx, node):
    """Of an intersection with a counter of characters that may be left out: ``counter << 32 | the other part``; or -1.

    See expressions.FITS_FLAG.  There is one other part, which is no intersection or complement.
    """
    nodes = t.expressions(ctx)
    if not nodes[node].flags & e.FITS_FLAG or nodes[node].second != 2:
        return int64(-1)
    found = counting_part(ctx, node)
    if found < 0:
        return found
    other = t.children(ctx)[nodes[node].first + 1 - (found & 1)]
    return int64(-1) if nodes[other].flags & e.COMPLEX_FLAG else found >> 32 << 32 | other


@njit_inner(RESULT1)
def counter_and_rest(ctx, node):
    """Of an intersection with a counter of characters that may be left out: ``counter << 32 | all other parts``.

    -1 if it has none; FAIL or LIMIT.
    """
    nodes = t.expressions(ctx)
    if nodes[node].kind != e.INTERSECT or not nodes[node].flags & e.FITS_FLAG:
        return int64(-1)
    found = counting_part(ctx, node)
    if found < 0:
        return found
    base = used(ctx, t.WORK_STACK)
    for i in range(nodes[node].second):
        if i != found & 0xFFFFFFFF and not push(ctx, t.WORK_STACK, t.children(ctx)[nodes[node].first + i]):
            return int64(FAIL)
    rest = far_call(ctx, F_SET_OPERATION, int64(e.INTERSECT), base)
    return rest if rest < 0 else found >> 32 << 32 | rest


@njit_inner(RESULT1)
def _most_bytes(ctx, node):
    """A bound of the bytes of the longest string of an expression; LONG if there is none, or it is not found; FAIL."""
    if t.expressions(ctx)[node].flags & e.INHERITED:
        return int64(LONG)
    base = used(ctx, t.WORK_STACK)
    if not push_pair(ctx, t.WORK_STACK, node, int64(1)):
        return int64(FAIL)
    total, steps = int64(0), int64(0)
    while used(ctx, t.WORK_STACK) > base:
        top = used(ctx, t.WORK_STACK) - 2
        part, times = int64(t.work_stack(ctx)[top]), int64(t.work_stack(ctx)[top + 1])
        set_used(ctx, t.WORK_STACK, top)
        record = t.expressions(ctx)[part]
        kind, first, second = record.kind, int64(record.first), int64(record.second)
        steps += 1 if kind != e.UNION else second
        if steps > _MOST_STEPS or total >= LONG or times >= LONG:
            set_used(ctx, t.WORK_STACK, base)
            return int64(LONG)
        if kind == e.LITERAL or kind == e.SET:
            total += times * (second if kind == e.LITERAL else 1)
        elif kind == e.UNION:
            # Their sum is no less than the longest of them.
            for i in range(first, first + second):
                if not push_pair(ctx, t.WORK_STACK, int64(t.children(ctx)[i]), times):
                    return int64(FAIL)
        elif kind == e.REPEAT:
            if not push_pair(ctx, t.WORK_STACK, first, min(times * int64(record.third), int64(LONG))):
                return int64(FAIL)
        elif kind == e.CONCAT and (
            not push_pair(ctx, t.WORK_STACK, first, times) or not push_pair(ctx, t.WORK_STACK, second, times)
        ):
            return int64(FAIL)
    return min(total, int64(LONG))


@njit_inner(RESULT1)
def _most_bytes_of_item(ctx, node):
    """As _most_bytes, of a character: of its encodings the longest."""
    record = t.expressions(ctx)[node]
    if record.kind != e.UNION:
        return _most_bytes(ctx, node)
    first, count, most = int64(record.first), int64(record.second), int64(0)
    for i in range(first, first + count):
        length = _most_bytes(ctx, int64(t.children(ctx)[i]))
        if length < 0:
            return length
        most = max(most, length)
    return most


@njit_inner(types.boolean(CTX, int64))
def takes_all_behind(ctx, node):
    """Whether any bytes may follow each string of an expression: then no beginning of another one is a string of it."""
    nodes = t.expressions(ctx)
    first, count = int64(0), int64(1)
    if nodes[node].kind == e.UNION:
        first, count = int64(nodes[node].first), int64(nodes[node].second)
    for i in range(first, first + count):
        part = int64(t.children(ctx)[i]) if nodes[node].kind == e.UNION else node
        while nodes[part].kind == e.CONCAT:
            part = int64(nodes[part].second)
        if nodes[part].kind == e.ALL:
            continue
        if (
            nodes[part].kind != e.REPEAT
            or nodes[part].third >= 0
            or not e.takes_any_byte(ctx, int64(nodes[part].first))
        ):
            return False
    return True


@njit_inner(RESULT2)
def spare_beside_complements(ctx, node, counter):
    """How many bytes may be read before a counter is felt that stands beside text in which something does not occur.

    The text is characters, as many as come, perhaps behind the rest of one.  The other parts of the intersection say
    what does not occur in it: with a string they have all of its beginnings.  So a string of all parts, cut off at the
    end of any of its characters, is one again; and what was read before that is no more than a character from its end.

    -1 if this is not what stands beside it; FAIL.
    """
    first, count = int64(t.expressions(ctx)[node].first), int64(t.expressions(ctx)[node].second)
    item, high = int64(t.expressions(ctx)[counter].first), int64(t.expressions(ctx)[counter].third)
    ahead = int64(-1)
    for i in range(first, first + count):
        nodes = t.expressions(ctx)
        part = int64(t.children(ctx)[i])
        if nodes[part].kind == e.NOT and takes_all_behind(ctx, int64(nodes[part].first)):
            continue
        length = int64(0)
        while nodes[part].kind == e.CONCAT and length < LONG:
            head = _most_bytes(ctx, int64(nodes[part].first))
            if head < 0:
                return head
            length, nodes = length + head, t.expressions(ctx)
            part = int64(nodes[part].second)
        if part == counter:
            continue
        if ahead >= 0 or nodes[part].kind != e.REPEAT or nodes[part].first != item or nodes[part].second > 0:
            return int64(-1)
        longest = _most_bytes_of_item(ctx, item)
        if longest < 0:
            return longest
        ahead = length + longest
    return max(high - ahead, int64(-1)) if ahead >= 0 else int64(-1)
