"""What it costs at least to finish an expression.

The cost of a string is the sum of the costs of its bytes: 1 for a byte that is a token of its own,
:data:`MISSING` for one that is not.  So the cheapest string is a shortest one of those that can
surely be written, and every string costs at least its length in bytes.

Most expressions say their costs themselves: a sequence costs the sum of its parts, a union the least
of them.  Only for intersections and complements the cheapest string has to be searched for, with A*
(Hart, Nilsson and Raphael, 1968) over their derivatives.  Costs are kept per node for good, as nodes are.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from numba import int64, types

from constrain.engine.automata.expressions import (
    ALL,
    CONCAT,
    EMPTY,
    EPSILON,
    INTERSECT,
    LITERAL,
    NOT,
    NULLABLE_FLAG,
    REPEAT,
    SET,
    UNION,
)
from constrain.engine.storage.access import i32, i64, room, set_used, used
from constrain.engine.storage.header import CLASSES, CTX, RESULT0, RESULT1, RESULT2
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_DERIVATIVE, F_NODE_COST, far_call, far_entry
from constrain.engine.storage.schemas import (
    BYTE_SUMS,
    COST_STACK,
    EXPRESSION_COSTS,
    EXPRESSION_HASHES,
    LITERAL_BYTES,
    SEARCH_HEAP,
    SEARCH_PLACES,
    SEARCH_RECORDS,
    byte_classes,
    byte_costs,
    byte_sets,
    byte_sums,
    children,
    class_bytes,
    cost_stack,
    expression_costs,
    expressions,
    literal_bytes,
    search_records,
)
from constrain.engine.storage.statuses import FAIL, LIMIT

NEVER = 1 << 30
"""A cost that nothing reaches: it cannot be finished, or at more cost than could ever be paid."""

MISSING = 1 << 12
"""The cost of a byte that is not a token."""

COST_FIELDS = 5
LEAST, LEAST_ON, WORST, NEXT_BYTE, BOUND = range(COST_FIELDS)
"""Fields of a node's costs: of its cheapest string; of its cheapest string that is not empty, and the byte that
begins it; the most that finishing can cost after any beginning of a string; a lower bound of the first."""

UNKNOWN = -1

NEWEST = 0xFFFFFFFF
"""In the lower half of a key on a heap: this minus the number of a record."""

# Derivatives that one search may look at, in units of (node, byte class).
_SEARCH_LIMIT = 5_000_000


@njit_inner(RESULT2)
def capped(_ctx, left, right):
    """The sum of two costs."""
    return min(left + right, int64(NEVER))


@njit_inner(RESULT2)
def better_byte(ctx, left, right):
    """The one of two bytes (or -1) to be preferred as a completion's next."""
    if left < 0 or right < 0:
        return max(left, right)
    ranks = byte_costs(ctx)
    return left if ranks[256 + left] <= ranks[256 + right] else right


@njit_inner(RESULT1)
def _best_of_set(ctx, index):
    """The preferred one of the cheapest bytes of a set."""
    best = int64(-1)
    for byte in range(256):
        if (byte_sets(ctx)[index, byte >> 6] >> (byte & 63)) & 1:
            best = better_byte(ctx, best, int64(byte))
    return best


@njit_inner(types.boolean(CTX, int64))
def _combine(ctx, node):
    """Work out a node's costs from those of its parts, as far as they are known; whether its own are known then."""
    nodes = expressions(ctx)
    costs = i32(ctx, EXPRESSION_COSTS)
    head = nodes[node].flags
    kind = head & 255
    a, b = nodes[node].first, nodes[node].second
    nullable = head & NULLABLE_FLAG != 0
    least, on, worst, byte, bound = int64(NEVER), int64(NEVER), int64(NEVER), int64(-1), int64(NEVER)
    if kind == EPSILON:
        least, worst = int64(0), int64(0)
    elif kind == ALL:
        least, worst = int64(0), int64(0)
        for candidate in range(256):
            byte = better_byte(ctx, byte, int64(candidate))
        on = byte_costs(ctx)[byte]
    elif kind == LITERAL:
        sums = byte_sums(ctx)
        least = min(sums[a + b] - sums[a], int64(NEVER))
        on, worst = least, least
        byte = literal_bytes(ctx)[a]
    elif kind == SET:
        byte = _best_of_set(ctx, a)
        if byte >= 0:
            least = byte_costs(ctx)[byte]
        on, worst = least, least
    elif kind == CONCAT:
        left, right = COST_FIELDS * a, COST_FIELDS * b
        bound = capped(ctx, int64(costs[left + BOUND]), int64(costs[right + BOUND]))
        if costs[left + LEAST_ON] == UNKNOWN or costs[right + LEAST_ON] == UNKNOWN:
            least, on = int64(UNKNOWN), int64(UNKNOWN)
        else:
            least = capped(ctx, int64(costs[left + LEAST]), int64(costs[right + LEAST]))
            on = capped(ctx, int64(costs[left + LEAST_ON]), int64(costs[right + LEAST]))
            byte = int64(costs[left + NEXT_BYTE])
            if nodes[a].flags & NULLABLE_FLAG and costs[right + LEAST_ON] <= on:
                other = int64(costs[right + NEXT_BYTE])
                byte = other if costs[right + LEAST_ON] < on else better_byte(ctx, byte, other)
                on = int64(costs[right + LEAST_ON])
            within = capped(ctx, int64(costs[left + WORST]), int64(costs[right + LEAST]))
            worst = max(within, int64(costs[right + WORST]))
    elif kind == UNION:
        worst = int64(0)
        for i in range(b):
            part = COST_FIELDS * children(ctx)[a + i]
            bound = min(bound, int64(costs[part + BOUND]))
            worst = max(worst, int64(costs[part + WORST]))
            if costs[part + LEAST_ON] == UNKNOWN or on == UNKNOWN:
                least, on = int64(UNKNOWN), int64(UNKNOWN)
                continue
            least = min(least, int64(costs[part + LEAST]))
            if costs[part + LEAST_ON] <= on:
                other = int64(costs[part + NEXT_BYTE])
                byte = other if costs[part + LEAST_ON] < on else better_byte(ctx, byte, other)
                on = int64(costs[part + LEAST_ON])
    elif kind == REPEAT:
        part = COST_FIELDS * a
        bound = min(b * int64(costs[part + BOUND]), int64(NEVER))
        if costs[part + LEAST_ON] == UNKNOWN:
            least, on = int64(UNKNOWN), int64(UNKNOWN)
        else:
            least = min(b * int64(costs[part + LEAST]), int64(NEVER))
            on = int64(costs[part + LEAST_ON]) if b == 0 else least
            byte = int64(costs[part + NEXT_BYTE])
            worst = min(int64(costs[part + WORST]) + max(b - 1, 0) * int64(costs[part + LEAST]), int64(NEVER))
    elif kind == INTERSECT or kind == NOT:
        least, on = int64(UNKNOWN), int64(UNKNOWN)
        bound = int64(1)
        if kind == INTERSECT:
            for i in range(b):
                bound = max(bound, int64(costs[COST_FIELDS * children(ctx)[a + i] + BOUND]))
    if on != UNKNOWN:
        bound = least
    if nullable:
        bound = int64(0)
        if least == UNKNOWN:
            least = int64(0)
    record = COST_FIELDS * node
    costs[record + LEAST] = least
    costs[record + LEAST_ON] = on
    costs[record + WORST] = worst
    costs[record + NEXT_BYTE] = byte if on < NEVER else int64(-1)
    costs[record + BOUND] = bound
    return on != UNKNOWN


@njit_inner(RESULT0)
def cost_new_nodes(ctx):
    """Give every node a record of costs; parts of a node have lower numbers than it.  Returns 0 or FAIL."""
    total = used(ctx, EXPRESSION_HASHES)
    n_bytes = used(ctx, LITERAL_BYTES)
    if not room(ctx, EXPRESSION_COSTS, total - used(ctx, EXPRESSION_COSTS)):
        return int64(FAIL)
    if not room(ctx, BYTE_SUMS, n_bytes + 1 - used(ctx, BYTE_SUMS)):
        return int64(FAIL)
    sums = byte_sums(ctx)
    sums[0] = 0
    for i in range(max(used(ctx, BYTE_SUMS), 1), n_bytes + 1):
        sums[i] = sums[i - 1] + byte_costs(ctx)[literal_bytes(ctx)[i - 1]]
    set_used(ctx, BYTE_SUMS, n_bytes + 1)
    for node in range(used(ctx, EXPRESSION_COSTS), total):
        _combine(ctx, node)
    set_used(ctx, EXPRESSION_COSTS, total)
    return int64(0)


@njit_inner(RESULT2)
def heap_push(ctx, slot, key):
    """Put a key on a heap; returns 0 or FAIL."""
    if not room(ctx, slot, 1):
        return int64(FAIL)
    heap = i64(ctx, slot)
    i = used(ctx, slot)
    set_used(ctx, slot, i + 1)
    while i > 0 and heap[(i - 1) // 2] > key:
        heap[i] = heap[(i - 1) // 2]
        i = (i - 1) // 2
    heap[i] = key
    return int64(0)


@njit_inner(RESULT1)
def heap_pop(ctx, slot):
    """Take the least key off a heap, which is not empty."""
    heap = i64(ctx, slot)
    n = used(ctx, slot) - 1
    set_used(ctx, slot, n)
    least, last = heap[0], heap[n]
    i = int64(0)
    while 2 * i + 1 < n:
        child = 2 * i + 1
        if child + 1 < n and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= last:
            break
        heap[i] = heap[child]
        i = child
    heap[i] = last
    return least


@njit_inner(int64(CTX, int64, int64, int64, int64, int64))
def search_record(ctx, slot, thing, cost, parent, step):
    """Note a way of this cost to a thing (a node or a state), if none as cheap is known.

    ``slot`` is that of the places; the records are in the one after it.  Returns the record, -1 if one as cheap is
    known, or FAIL.  What a place says counts only if the record is of that thing (sparse sets; Briggs and
    Torczon, 1993).
    """
    count = used(ctx, slot + 1) // 4
    if thing >= used(ctx, slot):
        if not room(ctx, slot, thing + 1 - used(ctx, slot)):
            return int64(FAIL)
        set_used(ctx, slot, thing + 1)
    if not room(ctx, slot + 1, 4):
        return int64(FAIL)
    places = i32(ctx, slot)
    records = i32(ctx, slot + 1)
    record = int64(places[thing])
    if 0 <= record < count and records[4 * record] == thing:
        if records[4 * record + 1] <= cost:
            return int64(-1)
    else:
        record = count
        places[thing] = record
        set_used(ctx, slot + 1, 4 * record + 4)
    records[4 * record] = thing
    records[4 * record + 1] = cost
    records[4 * record + 2] = parent
    records[4 * record + 3] = step
    return record


@njit_inner(RESULT1)
def _search(ctx, start):
    """Find the cheapest string, that is not empty, of an intersection or a complement; returns 0, FAIL or LIMIT."""
    set_used(ctx, SEARCH_HEAP, 0)
    set_used(ctx, SEARCH_RECORDS, 0)
    if search_record(ctx, SEARCH_PLACES, start, int64(0), int64(-1), int64(-1)) < 0:
        return int64(FAIL)
    if heap_push(ctx, SEARCH_HEAP, int64(NEWEST)) < 0:
        return int64(FAIL)
    work = int64(0)
    goal = int64(-1)
    while used(ctx, SEARCH_HEAP) > 0:
        key = heap_pop(ctx, SEARCH_HEAP)
        # Of equal ones the newest first: where all ways cost the same, that goes straight to an end.
        record = NEWEST - (key & NEWEST)
        node = search_records(ctx)[4 * record]
        spent = search_records(ctx)[4 * record + 1]
        costs = i32(ctx, EXPRESSION_COSTS)
        if record > 0:
            if spent + costs[COST_FIELDS * node + BOUND] < key >> 32:
                continue  # a cheaper way there was found since
            if costs[COST_FIELDS * node + LEAST] != UNKNOWN:
                goal = record
                break
        work += ctx[CLASSES]
        if work > _SEARCH_LIMIT:
            return int64(LIMIT)
        for k in range(ctx[CLASSES]):
            after = far_call(ctx, F_DERIVATIVE, node, class_bytes(ctx)[k])
            if after < 0:
                return after
            if after == EMPTY:
                continue
            if cost_new_nodes(ctx) < 0:
                return int64(FAIL)
            bound = expression_costs(ctx)[after].bound
            byte = byte_costs(ctx)[512 + k]
            cost = spent + byte_costs(ctx)[byte]
            if cost + bound >= NEVER:
                continue
            reached = search_record(ctx, SEARCH_PLACES, after, cost, record, byte)
            if reached == FAIL:
                return int64(FAIL)
            if reached >= 0 and heap_push(ctx, SEARCH_HEAP, (cost + bound) << 32 | (NEWEST - reached)) < 0:
                return int64(FAIL)
    costs = i32(ctx, EXPRESSION_COSTS)
    records = search_records(ctx)
    if goal < 0:
        place = COST_FIELDS * start
        costs[place + LEAST_ON] = NEVER
        if costs[place + LEAST] == UNKNOWN:
            costs[place + LEAST] = NEVER
        return int64(0)
    total = records[4 * goal + 1] + int64(costs[COST_FIELDS * records[4 * goal] + LEAST])
    while records[4 * goal + 2] >= 0:
        byte = records[4 * goal + 3]
        goal = records[4 * goal + 2]
        place = COST_FIELDS * records[4 * goal]
        left = total - records[4 * goal + 1]
        if costs[place + LEAST] == UNKNOWN:
            costs[place + LEAST] = left
            costs[place + BOUND] = left
        costs[place + LEAST_ON] = left
        costs[place + NEXT_BYTE] = byte
    return int64(0)


@njit_inner(RESULT2)
def node_cost(ctx, node, _unused):
    """Make the costs of a node known; returns 0, FAIL or LIMIT."""
    if cost_new_nodes(ctx) < 0:
        return int64(FAIL)
    bottom = used(ctx, COST_STACK)
    if expression_costs(ctx)[node].least_on != UNKNOWN:
        return int64(0)
    if not room(ctx, COST_STACK, 1):
        return int64(FAIL)
    cost_stack(ctx)[bottom] = node
    set_used(ctx, COST_STACK, bottom + 1)
    while used(ctx, COST_STACK) > bottom:
        top = used(ctx, COST_STACK)
        here = cost_stack(ctx)[top - 1]
        if expression_costs(ctx)[here].least_on != UNKNOWN or _combine(ctx, here):
            set_used(ctx, COST_STACK, top - 1)
            continue
        nodes = expressions(ctx)
        kind = nodes[here].kind
        if kind == INTERSECT or kind == NOT:
            status = _search(ctx, here)
            if status < 0:
                return status
            continue
        a, b = nodes[here].first, nodes[here].second
        count = b if kind == UNION else int64(2 if kind == CONCAT else 1)
        for i in range(count):
            part = children(ctx)[a + i] if kind == UNION else (a if i == 0 else b)
            if expression_costs(ctx)[part].least_on == UNKNOWN:
                if not room(ctx, COST_STACK, 1):
                    return int64(FAIL)
                cost_stack(ctx)[used(ctx, COST_STACK)] = part
                set_used(ctx, COST_STACK, used(ctx, COST_STACK) + 1)
    return int64(0)


far_entry(F_NODE_COST, node_cost)


@njit_inner(types.void(CTX))
def choose_class_bytes(ctx):
    """Write, behind costs and ranks in BYTE_COSTS, the preferred byte of each byte class."""
    table = byte_costs(ctx)
    for k in range(ctx[CLASSES]):
        table[512 + k] = class_bytes(ctx)[k]
    for byte in range(256):
        k = byte_classes(ctx)[byte]
        table[512 + k] = better_byte(ctx, table[512 + k], int64(byte))
