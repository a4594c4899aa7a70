"""What it costs at least to finish an expression.

The cost of a string is the sum of the costs of its bytes: 1 for a byte that is a token of its own,
:data:`MISSING` for one that is not.  So the cheapest string is a shortest one of those that can
surely be written, and every string costs at least its length in bytes.

Most expressions say their costs themselves: a sequence costs the sum of its parts, a union the least
of them.  Only for intersections and complements the cheapest string has to be searched for, with A*
(Hart, Nilsson and Raphael, 1968) over their derivatives.  Costs are kept for good, as expressions are.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata import expressions as e
from constrain.engine.automata.character_counters import character_counter, takes_all_behind
from constrain.engine.storage import best_first as search
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import push, room, set_used, used
from constrain.engine.storage.header import CLASSES, CTX, RESULT0, RESULT1, RESULT2
from constrain.engine.storage.heaps import heap_pop
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_DERIVATIVE, F_NODE_COST, far_call, far_entry
from constrain.engine.storage.statuses import FAIL, LIMIT
from constrain.kernels.language import int64, types

NEVER = 1 << 30
"""A cost that nothing reaches: it cannot be finished, or at more cost than could ever be paid."""

FAR = 1 << 26
"""A cost that is not known, but of what can be finished once the text has come to some place: only what is beyond it,
which is what it costs to come to that place.
"""

MISSING = 1 << 12
"""The cost of a byte that is not a token."""

UNKNOWN = -1

# Derivatives that one search may look at, in units of (expression, byte class).
_SEARCH_LIMIT = 5_000_000


@njit_inner(int64(int64, int64))
def capped(left, right):
    """The sum of two costs."""
    return min(left + right, int64(NEVER))


@njit_inner(RESULT2)
def better_byte(ctx, left, right):
    """The one of two bytes (or -1) to be preferred as a completion's next."""
    if left < 0 or right < 0:
        return max(left, right)
    costs = t.byte_costs(ctx)
    return left if costs[left].rank <= costs[right].rank else right


@njit_inner(RESULT1)
def _best_of_set(ctx, index):
    """The preferred one of the cheapest bytes of a set."""
    best = int64(-1)
    for byte in range(256):
        if (t.byte_sets(ctx)[index, byte >> 6] >> (byte & 63)) & 1:
            best = better_byte(ctx, best, int64(byte))
    return best


@njit_inner(RESULT1)
def _dearest_of_set(ctx, index):
    """The most that a byte of a set costs."""
    most = int64(0)
    for byte in range(256):
        if (t.byte_sets(ctx)[index, byte >> 6] >> (byte & 63)) & 1:
            most = max(most, int64(t.byte_costs(ctx)[byte].cost))
    return most


@njit_inner(RESULT1)
def _worst_of_items(ctx, expression):
    """What finishing costs at most in an intersection that can be cut off behind each item; NEVER if it is not known.

    Its parts are the same items, each up to some number of times and perhaps behind the rest of one, and complements
    that say what does not occur in them.  Let ``w`` be a string of all parts, and ``r`` the beginning of ``w`` up to
    the end of the item that is under way, as the part reads it that takes the fewest items.  Then ``r`` is a string of
    all parts too: it has no more items than any of them takes, and nothing occurs in it that does not occur in ``w``.
    """
    nodes, costs = t.expressions(ctx), t.expression_costs(ctx)
    first = int64(-1)
    for i in range(nodes[expression].second):
        part = int64(t.children(ctx)[nodes[expression].first + i])
        if nodes[part].kind == e.NOT and takes_all_behind(ctx, int64(nodes[part].first)):
            continue
        if first < 0:
            first = part
        # The rest of an item is the same in all of them.
        other = first
        while nodes[part].kind == nodes[other].kind == e.CONCAT and nodes[part].first == nodes[other].first:
            part, other = int64(nodes[part].second), int64(nodes[other].second)
        if nodes[part].kind != e.REPEAT or nodes[other].kind != e.REPEAT or nodes[part].first != nodes[other].first:
            return int64(NEVER)
        if nodes[part].second > 0:
            return int64(NEVER)
    worst = int64(0)
    if first >= 0:
        while nodes[first].kind == e.CONCAT:
            worst = capped(worst, int64(costs[nodes[first].first].most))
            first = int64(nodes[first].second)
        worst = max(worst, int64(costs[nodes[first].first].most))
    return worst


@njit_inner(types.boolean(CTX, int64))
def _combine(ctx, expression):
    """Work out an expression's costs from those of its parts, as far as known; whether its own are known then.

    It is a long list of cases, one for each kind of expression.
    """
    costs = t.expression_costs(ctx)
    flags = t.expressions(ctx)[expression].flags
    kind = t.expressions(ctx)[expression].kind
    a, b = t.expressions(ctx)[expression].first, t.expressions(ctx)[expression].second
    least, on, worst, byte, bound = int64(NEVER), int64(NEVER), int64(NEVER), int64(-1), int64(NEVER)
    most = int64(NEVER)
    if kind == e.EPSILON:
        least, worst, most = int64(0), int64(0), int64(0)
    elif kind == e.ALL:
        least, worst = int64(0), int64(0)
        for candidate in range(256):
            byte = better_byte(ctx, byte, int64(candidate))
        on = t.byte_costs(ctx)[byte].cost
    elif kind == e.LITERAL:
        sums = t.byte_sums(ctx)
        least = min(sums[a + b] - sums[a], int64(NEVER))
        on, worst, most = least, least, least
        byte = t.literal_bytes(ctx)[a]
    elif kind == e.SET:
        byte = _best_of_set(ctx, a)
        if byte >= 0:
            least = t.byte_costs(ctx)[byte].cost
        on, worst, most = least, least, _dearest_of_set(ctx, a)
    elif kind == e.CONCAT:
        left, right = costs[a], costs[b]
        bound = capped(left.bound, right.bound)
        most = capped(left.most, right.most)
        if left.least_on == UNKNOWN or right.least_on == UNKNOWN:
            least, on = int64(UNKNOWN), int64(UNKNOWN)
        else:
            least = capped(left.least, right.least)
            on = capped(left.least_on, right.least)
            byte = left.next_byte
            if t.expressions(ctx)[a].flags & e.NULLABLE_FLAG and right.least_on <= on:
                byte = right.next_byte if right.least_on < on else better_byte(ctx, byte, right.next_byte)
                on = right.least_on
            worst = max(capped(left.worst, right.least), right.worst)
    elif kind == e.UNION:
        worst, most = int64(0), int64(0)
        for i in range(b):
            part = costs[t.children(ctx)[a + i]]
            bound = min(bound, part.bound)
            most = max(most, part.most)
            worst = max(worst, part.worst)
            if part.least_on == UNKNOWN or on == UNKNOWN:
                least, on = int64(UNKNOWN), int64(UNKNOWN)
                continue
            least = min(least, part.least)
            if part.least_on <= on:
                byte = part.next_byte if part.least_on < on else better_byte(ctx, byte, part.next_byte)
                on = part.least_on
    elif kind == e.REPEAT:
        part = costs[a]
        bound = min(b * part.bound, int64(NEVER))
        high = t.expressions(ctx)[expression].third
        if high >= 0:
            most = min(high * part.most, int64(NEVER))
        if part.least_on == UNKNOWN:
            least, on = int64(UNKNOWN), int64(UNKNOWN)
        else:
            least = min(b * part.least, int64(NEVER))
            on = part.least_on if b == 0 else least
            byte = part.next_byte
            worst = min(part.worst + max(b - 1, 0) * part.least, int64(NEVER))
    elif kind == e.INTERSECT or kind == e.NOT or kind == e.QUOTATION:
        least, on = int64(UNKNOWN), int64(UNKNOWN)
        bound = int64(1)
        if kind == e.NOT and takes_all_behind(ctx, int64(a)):
            # What does not occur in a string, does not occur in any beginning of it.
            worst = int64(0)
        if kind == e.INTERSECT:
            for i in range(b):
                bound = max(bound, costs[t.children(ctx)[a + i]].bound)
            worst = _worst_of_items(ctx, expression)
            counted = character_counter(ctx, expression)
            if counted >= 0:
                counter, rest = t.expressions(ctx)[counted >> 32], t.expressions(ctx)[counted & 0xFFFFFFFF]
                high = counter.third
                other = costs[counted & 0xFFFFFFFF]
                # What is under way is one of the characters that are counted, and there may be no further one.
                if rest.kind == e.REPEAT and rest.second == 0 and rest.third < 0:
                    if rest.first == counter.first or t.expressions(ctx)[rest.first].kind == e.SET:
                        worst = min(worst, int64(other.worst))
                # No string has more characters than bytes, nor more bytes than it costs.
                if other.least_on != UNKNOWN and other.least_on <= high:
                    least, on, byte = int64(other.least), int64(other.least_on), int64(other.next_byte)
    if on != UNKNOWN:
        bound = least
    if flags & e.NULLABLE_FLAG:
        bound = int64(0)
        if least == UNKNOWN:
            least = int64(0)
    costs[expression] = least, on, worst, byte if on < NEVER else int64(-1), bound, most
    return on != UNKNOWN


@njit_inner(RESULT0)
def cost_new_expressions(ctx):
    """Give every expression a record of costs; parts of one have lower numbers than it.  Returns 0 or FAIL."""
    total = used(ctx, t.EXPRESSION_HASHES)
    n_bytes = used(ctx, t.LITERAL_BYTES)
    known = used(ctx, t.EXPRESSION_COSTS)
    if not room(ctx, t.EXPRESSION_COSTS, total - known):
        return int64(FAIL)
    if not room(ctx, t.BYTE_SUMS, n_bytes + 1 - used(ctx, t.BYTE_SUMS)):
        return int64(FAIL)
    sums = t.byte_sums(ctx)
    sums[0] = 0
    for i in range(max(used(ctx, t.BYTE_SUMS), 1), n_bytes + 1):
        sums[i] = sums[i - 1] + t.byte_costs(ctx)[t.literal_bytes(ctx)[i - 1]].cost
    set_used(ctx, t.BYTE_SUMS, n_bytes + 1)
    for expression in range(known, total):
        _combine(ctx, expression)
    set_used(ctx, t.EXPRESSION_COSTS, total)
    return int64(0)


@njit_inner(RESULT2)
def _keep_path(ctx, start, goal):
    """Write down what the expressions on the way to ``goal`` cost, and with which byte each goes on.

    ``goal`` is the way to an expression whose least cost is known; or -1: nothing but the empty string is in ``start``.
    """
    costs = t.expression_costs(ctx)
    found = t.search_ways(ctx)
    if goal < 0:
        costs[start].least_on = NEVER
        if costs[start].least == UNKNOWN:
            costs[start].least = NEVER
        return int64(0)
    total = found[goal].cost + costs[found[goal].reached].least
    while found[goal].before >= 0:
        byte = found[goal].step
        goal = found[goal].before
        left = total - found[goal].cost
        here = costs[found[goal].reached]
        if here.least == UNKNOWN:
            here.least = left
            here.bound = left
        here.least_on = left
        here.next_byte = byte
    return int64(0)


@njit_inner(RESULT1)
def _search(ctx, start):
    """Find the cheapest string, that is not empty, of an expression whose parts do not tell; 0, FAIL or LIMIT."""
    if search.begin_search(ctx, t.SEARCH_HEAP, start) < 0:
        return int64(FAIL)
    if t.expression_costs(ctx)[start].least != UNKNOWN:
        # The string may lead back to where it begins, as those of /[ab]+/ & /.*b/ behind "b" do.
        t.way_places(ctx, t.SEARCH_PLACES)[start] = -1
    work = int64(0)
    while used(ctx, t.SEARCH_HEAP) > 0:
        key = heap_pop(ctx, t.SEARCH_HEAP)
        way = search.way_of(key)
        here = t.search_ways(ctx)[way].reached
        spent = t.search_ways(ctx)[way].cost
        if way > 0:
            if spent + t.expression_costs(ctx)[here].bound < search.estimate_of(key):
                continue  # a cheaper way there was found since
            if t.expression_costs(ctx)[here].least != UNKNOWN:
                return _keep_path(ctx, start, way)
        work += ctx[CLASSES]
        if work > _SEARCH_LIMIT:
            return int64(LIMIT)
        for k in range(ctx[CLASSES]):
            after = far_call(ctx, F_DERIVATIVE, here, t.class_bytes(ctx)[k])
            if after < 0:
                return after
            if after == e.EMPTY:
                continue
            if cost_new_expressions(ctx) < 0:
                return int64(FAIL)
            bound = t.expression_costs(ctx)[after].bound
            byte = t.class_costs(ctx)[k]
            cost = spent + t.byte_costs(ctx)[byte].cost
            if cost + bound >= NEVER:
                continue
            reached = search.note_way(ctx, t.SEARCH_HEAP, after, cost, way, byte)
            if reached != search.KNOWN and (
                reached < 0 or search.push_way(ctx, t.SEARCH_HEAP, cost + bound, reached) < 0
            ):
                return int64(FAIL)
    return _keep_path(ctx, start, int64(-1))


@njit_inner(RESULT2)
def expression_cost(ctx, expression, _unused):
    """Make the costs of an expression known; returns 0, FAIL or LIMIT."""
    if cost_new_expressions(ctx) < 0:
        return int64(FAIL)
    bottom = used(ctx, t.COST_STACK)
    if t.expression_costs(ctx)[expression].least_on != UNKNOWN:
        return int64(0)
    if not push(ctx, t.COST_STACK, expression):
        return int64(FAIL)
    while used(ctx, t.COST_STACK) > bottom:
        top = used(ctx, t.COST_STACK)
        here = t.cost_stack(ctx)[top - 1]
        if t.expression_costs(ctx)[here].least_on != UNKNOWN or _combine(ctx, here):
            set_used(ctx, t.COST_STACK, top - 1)
            continue
        kind = t.expressions(ctx)[here].kind
        if kind == e.INTERSECT or kind == e.NOT or kind == e.QUOTATION:
            status = _search(ctx, here)
            if status < 0:
                return status
            continue
        a, b = t.expressions(ctx)[here].first, t.expressions(ctx)[here].second
        count = b if kind == e.UNION else int64(2 if kind == e.CONCAT else 1)
        for i in range(count):
            part = t.children(ctx)[a + i] if kind == e.UNION else (a if i == 0 else b)
            if t.expression_costs(ctx)[part].least_on == UNKNOWN and not push(ctx, t.COST_STACK, part):
                return int64(FAIL)
    return int64(0)


far_entry(F_NODE_COST, expression_cost)
