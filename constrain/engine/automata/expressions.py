"""Expression nodes: hash-consed regular expressions over bytes, and their derivatives.

A node is four int32 in the EXPRESSIONS table: ``kind | flags << 8, a, b, c``.  Nodes are interned, so
equal expressions (up to associativity, commutativity and idempotence of ``|`` and ``&``) are the
same integer; that makes the set of derivatives of an expression finite (Brzozowski, 1964,
theorem 5.2) and a node a ready-made automaton state.

What a derivative buys over a compiled automaton: bounded repetition is a counter in a node and not
a thousand copies of a state, intersection and complement cost nothing to build, and only what a
given input reaches is ever made.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from numba import int64, types, uint8

from constrain.engine.storage.access import bucket_room, i32, i64, room, set_used, used
from constrain.engine.storage.hashing import finish_hash, map_get, map_put, mix, sort_keys
from constrain.engine.storage.header import BUDGET, CLASSES, CTX
from constrain.engine.storage.jit import njit_entry, njit_inner
from constrain.engine.storage.links import (
    F_DERIVATIVE,
    F_DESCRIBE,
    F_LIVE,
    F_SET_OPERATION,
    F_SUBSUME,
    far_call,
    far_entry,
)
from constrain.engine.storage.schemas import (
    CHILDREN,
    DERIVATIVE_KEYS,
    DERIVATIVE_VALUES,
    END_LENGTHS,
    EXPRESSION_BUCKETS,
    EXPRESSION_HASHES,
    EXPRESSION_PRINTS,
    EXPRESSIONS,
    FIRST_BYTES,
    LAST_BYTES,
    LIVENESS,
    LIVENESS_STACK,
    NECESSARY_BYTES,
    SHORTEST_LENGTHS,
    SUBSUMED,
    WORK_STACK,
    byte_sets,
    children,
    class_bytes,
    end_lengths,
    expression_buckets,
    expression_hashes,
    expression_prints,
    expressions,
    first_bytes,
    literal_bytes,
    liveness,
    liveness_stack,
    necessary_bytes,
    shortest_lengths,
    work_stack,
)
from constrain.engine.storage.statuses import FAIL, LIMIT

EMPTY, EPSILON, ALL, LITERAL, SET, CONCAT, UNION, INTERSECT, NOT, REPEAT = range(10)
"""Kinds of node.  Node 0 is the empty language, node 1 the empty string, node 2 every string."""

NULLABLE_FLAG = 1 << 8
# An expression with an intersection or a complement inside may denote nothing although it is not
# node 0, so whether it is alive has to be searched for.
COMPLEX_FLAG = 2 << 8
# An expression without this flag denotes finitely many strings.
LOOP_FLAG = 4 << 8
# Of an intersection: a part counts, and every string of the others is a sequence of what it counts.
FITS_FLAG = 8 << 8
_INHERITED = COMPLEX_FLAG | LOOP_FLAG

_UNKNOWN, _ALIVE, _DEAD, _VISITED = 0, 1, 2, 3
_LIVENESS_LIMIT = 200_000
_LONG_PATH = 64
_FEW_PARTS = 4
LONG = 1 << 24
"""Larger lengths are not told apart."""

RESULT0 = int64(CTX)
RESULT1 = int64(CTX, int64)
RESULT2 = int64(CTX, int64, int64)
RESULT3 = int64(CTX, int64, int64, int64)


@njit_inner(int64(CTX, int64))
def is_nullable(ctx, node):
    """Whether a node's language holds the empty string (1 or 0)."""
    return int64(expressions(ctx)[node].flags >> 8) & 1


@njit_inner(types.void(CTX, int64, int64))
def _set_edge(ctx, node, slot):
    """Compute the set of bytes that may begin (FIRST_BYTES) or end (LAST_BYTES) a node's strings.

    It is 256 bits, possibly more than do.
    """
    nodes = expressions(ctx)
    edge = i64(ctx, slot)
    kind = nodes[node].kind
    a, b = nodes[node].first, nodes[node].second
    outer, inner = (a, b) if slot == FIRST_BYTES else (b, a)
    for word in range(4):
        bits = int64(0)
        if kind == LITERAL:
            byte = literal_bytes(ctx)[a if slot == FIRST_BYTES else a + b - 1]
            if byte >> 6 == word:
                bits = int64(1) << (byte & 63)
        elif kind == SET:
            bits = byte_sets(ctx)[a, word]
        elif kind == CONCAT:
            bits = edge[4 * outer + word]
            if nodes[outer].flags & NULLABLE_FLAG:
                bits |= edge[4 * inner + word]
        elif kind == UNION:
            for i in range(b):
                bits |= edge[4 * children(ctx)[a + i] + word]
        elif kind == INTERSECT:
            bits = int64(-1)
            for i in range(b):
                bits &= edge[4 * children(ctx)[a + i] + word]
        elif kind == REPEAT:
            bits = edge[4 * a + word]
        elif kind > EPSILON:
            bits = int64(-1)
        edge[4 * node + word] = bits
    set_used(ctx, slot, 4 * node + 4)


@njit_inner(types.void(CTX, int64))
def _set_must(ctx, node):
    """Compute the set of bytes that every string of a node has somewhere; it is 256 bits, possibly fewer than are."""
    nodes = expressions(ctx)
    must = necessary_bytes(ctx)
    kind = nodes[node].kind
    a, b = nodes[node].first, nodes[node].second
    for word in range(4):
        bits = int64(0)
        if kind == LITERAL:
            for i in range(a, a + b):
                byte = literal_bytes(ctx)[i]
                if byte >> 6 == word:
                    bits |= int64(1) << (byte & 63)
        elif kind == CONCAT:
            bits = must[a, word] | must[b, word]
        elif kind == UNION:
            bits = int64(-1)
            for i in range(b):
                bits &= must[children(ctx)[a + i], word]
        elif kind == INTERSECT:
            for i in range(b):
                bits |= must[children(ctx)[a + i], word]
        elif kind == REPEAT and b > 0:
            bits = must[a, word]
        must[node, word] = bits
    set_used(ctx, NECESSARY_BYTES, 4 * node + 4)


@njit_inner(types.void(CTX, int64))
def _set_shortest(ctx, node):
    """Compute a length that no string of a node is shorter than."""
    nodes = expressions(ctx)
    shortest = shortest_lengths(ctx)
    kind = nodes[node].kind
    a, b = nodes[node].first, nodes[node].second
    length = int64(0)
    if kind == LITERAL:
        length = b
    elif kind == SET:
        length = int64(1)
    elif kind == CONCAT:
        length = shortest[a] + shortest[b]
    elif kind == UNION:
        length = int64(LONG)
        for i in range(b):
            length = min(length, shortest[children(ctx)[a + i]])
    elif kind == INTERSECT:
        for i in range(b):
            length = max(length, shortest[children(ctx)[a + i]])
    elif kind == REPEAT:
        length = shortest[a] * b
    shortest[node] = min(length, int64(LONG))
    set_used(ctx, SHORTEST_LENGTHS, node + 1)


@njit_inner(types.void(CTX, int64))
def _set_reach(ctx, node):
    """Compute how many bytes are enough to complete any beginning of a string of a node; ``LONG`` if unknown."""
    nodes = expressions(ctx)
    shortest = shortest_lengths(ctx)
    reach = end_lengths(ctx)
    kind = nodes[node].kind
    a, b = nodes[node].first, nodes[node].second
    length = int64(0)
    if nodes[node].flags & COMPLEX_FLAG:
        length = int64(LONG)
    elif kind == LITERAL:
        length = b
    elif kind == SET:
        length = int64(1)
    elif kind == CONCAT:
        length = max(reach[a] + shortest[b], reach[b])
    elif kind == UNION:
        for i in range(b):
            length = max(length, reach[children(ctx)[a + i]])
    elif kind == REPEAT:
        length = reach[a] + shortest[a] * max(b - 1, int64(0))
    reach[node] = min(length, int64(LONG))
    set_used(ctx, END_LENGTHS, node + 1)


@njit_inner(RESULT2)
def _describe(ctx, node, _unused):
    """Compute what is kept about a new node besides its fields; there is room for it."""
    # Fingerprints are made as they are asked for (automata/fingerprints.py).
    expression_prints(ctx)[node, 0] = expression_prints(ctx)[node, 1] = 0
    set_used(ctx, EXPRESSION_PRINTS, 2 * node + 2)
    _set_edge(ctx, node, int64(FIRST_BYTES))
    _set_edge(ctx, node, int64(LAST_BYTES))
    _set_must(ctx, node)
    _set_shortest(ctx, node)
    _set_reach(ctx, node)
    return int64(0)


far_entry(F_DESCRIBE, _describe)


@njit_inner(int64(CTX, int64, int64, int64, int64, int64))
def _insert(ctx, head, a, b, c, code):
    """Append a node that is known to be new; returns its id or FAIL."""
    node = used(ctx, EXPRESSION_HASHES)
    if ctx[BUDGET] == 0:
        return int64(LIMIT)
    ctx[BUDGET] -= 1
    if not room(ctx, EXPRESSIONS, 4) or not room(ctx, LIVENESS, 1) or not room(ctx, EXPRESSION_HASHES, 1):
        return int64(FAIL)
    if not room(ctx, EXPRESSION_PRINTS, 2) or not room(ctx, FIRST_BYTES, 4) or not room(ctx, LAST_BYTES, 4):
        return int64(FAIL)
    if not room(ctx, NECESSARY_BYTES, 4) or not room(ctx, SHORTEST_LENGTHS, 1) or not room(ctx, END_LENGTHS, 1):
        return int64(FAIL)
    if not bucket_room(ctx, EXPRESSION_BUCKETS, node):
        return int64(FAIL)
    buckets = expression_buckets(ctx)
    mask = len(buckets) - 1
    i = code & mask
    while buckets[i] >= 0:
        i = (i + 1) & mask
    buckets[i] = node
    nodes = expressions(ctx)
    nodes[node].flags = head
    nodes[node].first = a
    nodes[node].second = b
    nodes[node].third = c
    far_call(ctx, F_DESCRIBE, int64(node), 0)
    liveness(ctx)[node] = _UNKNOWN
    expression_hashes(ctx)[node] = code
    set_used(ctx, EXPRESSIONS, 4 * node + 4)
    set_used(ctx, LIVENESS, node + 1)
    set_used(ctx, EXPRESSION_HASHES, node + 1)
    return node


@njit_inner(int64(CTX, int64, int64, int64, int64))
def intern_node(ctx, head, a, b, c):
    """The node with these fields (not for UNION and INTERSECT, whose children lie in a pool)."""
    code = finish_hash(mix(mix(mix(mix(0, head), a), b), c))
    buckets = expression_buckets(ctx)
    nodes = i32(ctx, EXPRESSIONS)
    mask = len(buckets) - 1
    i = code & mask
    while buckets[i] >= 0:
        n = 4 * buckets[i]
        if nodes[n] == head and nodes[n + 1] == a and nodes[n + 2] == b and nodes[n + 3] == c:
            return buckets[i]
        i = (i + 1) & mask
    return _insert(ctx, head, a, b, c, code)


@njit_inner(types.UniTuple(int64, 3)(CTX, int64))  # type: ignore[no-untyped-call]
def _counter(ctx, node):
    """(item, low, high) of the counter that a sequence begins with."""
    nodes = expressions(ctx)
    head = nodes[node].first
    return nodes[head].first, nodes[head].second, nodes[head].third


@njit_inner(RESULT2)
def _subsume(ctx, base, count):
    """Drop from the ``count`` parts of a union at ``WORK_STACK[base]`` those that a part with a wider counter holds.

    That is, ``x{a,b} t`` beside ``x{c,d} t`` with c <= a and b <= d.  Counters within counters would
    otherwise make unions as long as the product of their bounds.  Returns how many are left.
    """
    if not room(ctx, WORK_STACK, count) or not room(ctx, SUBSUMED, count):
        return int64(FAIL)
    tmp = work_stack(ctx)
    nodes = expressions(ctx)
    # The counted parts, by what follows them; only those with equal tails are compared.
    keys = i64(ctx, SUBSUMED)
    counted = int64(0)
    for i in range(count):
        node = tmp[base + i]
        if nodes[node].kind == CONCAT and nodes[nodes[node].first].kind == REPEAT:
            keys[counted] = nodes[node].second << 32 | i
            counted += 1
    if counted < 2:
        return count
    sort_keys(keys, counted)
    dropped = 0
    for i in range(counted):
        place = keys[i] & 0x7FFFFFFF
        item, low, high = _counter(ctx, tmp[base + place])
        for step in (-1, 1):
            j = i + step
            while 0 <= j < counted and keys[j] >> 32 == keys[i] >> 32:
                # A part that was dropped is now EMPTY; what held it holds this one too, if it did.
                other = tmp[base + (keys[j] & 0x7FFFFFFF)]
                if other != EMPTY:
                    wide_item, wide_low, wide_high = _counter(ctx, other)
                    if wide_item == item and wide_low <= low and (wide_high < 0 or 0 <= high <= wide_high):
                        tmp[base + place] = EMPTY
                        dropped += 1
                        break
                j += step
            if tmp[base + place] == EMPTY:
                break
    if dropped == 0:
        return count
    n = int64(0)
    for i in range(count):
        if tmp[base + i] != EMPTY:
            tmp[base + n] = tmp[base + i]
            n += 1
    return n


far_entry(F_SUBSUME, _subsume)


@njit_inner(int64(CTX, int64, int64))
def make_set_operation(ctx, kind, base):
    """Union or intersection of the nodes on the work stack from ``base`` up, which are taken off it.

    FITS_FLAG may be added to the kind.
    """
    fits = kind & FITS_FLAG
    kind &= 255
    tmp = work_stack(ctx)
    nodes = i32(ctx, EXPRESSIONS)
    pool = children(ctx)
    top = used(ctx, WORK_STACK)
    neutral, absorbing = (EMPTY, ALL) if kind == UNION else (ALL, EMPTY)
    # Children that are themselves of this kind give way to their own children.
    for i in range(base, top):
        child = tmp[i]
        if nodes[4 * child] & 255 == kind:
            tmp[i] = neutral
            length = nodes[4 * child + 2]
            if not room(ctx, WORK_STACK, length):
                return int64(FAIL)
            end = used(ctx, WORK_STACK)
            offset = nodes[4 * child + 1]
            for j in range(length):
                tmp[end + j] = pool[offset + j]
            set_used(ctx, WORK_STACK, end + length)
    count = used(ctx, WORK_STACK) - base
    gap = 1
    while gap < count // 2:
        gap = gap * 9 // 4 + 1
    while gap > 0:
        for i in range(base + gap, base + count):
            key = tmp[i]
            j = i
            while j >= base + gap and tmp[j - gap] > key:
                tmp[j] = tmp[j - gap]
                j -= gap
            tmp[j] = key
        gap = gap * 4 // 9
    n = 0
    nullable = 0 if kind == UNION else 1
    flags = 0
    for i in range(base, base + count):
        child = tmp[i]
        if child == absorbing:
            set_used(ctx, WORK_STACK, base)
            return int64(absorbing)
        if child == neutral or (n > 0 and tmp[base + n - 1] == child):
            continue
        tmp[base + n] = child
        n += 1
        flags |= nodes[4 * child] & _INHERITED
        child_nullable = (nodes[4 * child] >> 8) & 1
        if kind == UNION:
            nullable |= child_nullable
        else:
            nullable &= child_nullable
    if ctx[BUDGET] < count:
        return int64(LIMIT)
    ctx[BUDGET] -= count
    if kind == UNION and n > 1:
        n = far_call(ctx, F_SUBSUME, int64(base), int64(n))
        if n < 0:
            return n
    set_used(ctx, WORK_STACK, base)
    if n == 0:
        return int64(neutral)
    if n == 1:
        return tmp[base]
    if kind == INTERSECT:
        flags |= COMPLEX_FLAG | fits
    head = kind | flags | (nullable * NULLABLE_FLAG)
    code = mix(0, head)
    for i in range(n):
        code = mix(code, tmp[base + i])
    code = finish_hash(code)
    buckets = expression_buckets(ctx)
    mask = len(buckets) - 1
    i = code & mask
    while buckets[i] >= 0:
        node = 4 * buckets[i]
        if nodes[node] == head and nodes[node + 2] == n:
            offset = nodes[node + 1]
            same = True
            for j in range(n):
                if pool[offset + j] != tmp[base + j]:
                    same = False
                    break
            if same:
                return buckets[i]
        i = (i + 1) & mask
    if not room(ctx, CHILDREN, n):
        return int64(FAIL)
    offset = used(ctx, CHILDREN)
    for j in range(n):
        pool[offset + j] = tmp[base + j]
    node = _insert(ctx, head, offset, n, 0, code)
    if node >= 0:
        set_used(ctx, CHILDREN, offset + n)
    return int64(node)


far_entry(F_SET_OPERATION, make_set_operation)


@njit_inner(RESULT2)
def make_union(ctx, left, right):
    """``left | right``."""
    if left == EMPTY or left == right:
        return right
    if right == EMPTY:
        return left
    if not room(ctx, WORK_STACK, 2):
        return int64(FAIL)
    base = used(ctx, WORK_STACK)
    tmp = work_stack(ctx)
    tmp[base] = left
    tmp[base + 1] = right
    set_used(ctx, WORK_STACK, base + 2)
    return far_call(ctx, F_SET_OPERATION, UNION, base)


@njit_inner(RESULT2)
def make_concat(ctx, left, right):
    """``left`` then ``right``, kept right-associative so that equal sequences are the same node."""
    if left == EMPTY or right == EMPTY:
        return int64(EMPTY)
    if left == EPSILON:
        return right
    if right == EPSILON:
        return left
    base = used(ctx, WORK_STACK)
    nodes = expressions(ctx)
    while nodes[left].kind == CONCAT:
        if not room(ctx, WORK_STACK, 1):
            return int64(FAIL)
        work_stack(ctx)[used(ctx, WORK_STACK)] = nodes[left].first
        set_used(ctx, WORK_STACK, used(ctx, WORK_STACK) + 1)
        left = nodes[left].second
    while True:
        nodes = expressions(ctx)
        flags = (nodes[left].flags | nodes[right].flags) & _INHERITED
        nullable = nodes[left].flags & nodes[right].flags & NULLABLE_FLAG
        right = intern_node(ctx, CONCAT | flags | nullable, left, right, 0)
        if right < 0 or used(ctx, WORK_STACK) == base:
            return right
        left = work_stack(ctx)[used(ctx, WORK_STACK) - 1]
        set_used(ctx, WORK_STACK, used(ctx, WORK_STACK) - 1)


@njit_inner(RESULT1)
def make_not(ctx, node):
    """The complement of ``node``."""
    if node == EMPTY:
        return int64(ALL)
    if node == ALL:
        return int64(EMPTY)
    nodes = expressions(ctx)
    if nodes[node].kind == NOT:
        return nodes[node].first
    nullable = NULLABLE_FLAG - (nodes[node].flags & NULLABLE_FLAG)
    return intern_node(ctx, NOT | COMPLEX_FLAG | LOOP_FLAG | nullable, node, 0, 0)


@njit_inner(RESULT3)
def make_repeat(ctx, node, low, high):
    """``node`` from ``low`` to ``high`` times; ``high`` -1 for no bound."""
    if high == 0 or node == EPSILON:
        return int64(EPSILON)
    if node == EMPTY:
        return int64(EPSILON) if low == 0 else int64(EMPTY)
    head = expressions(ctx)[node].flags
    if head & NULLABLE_FLAG:
        low = 0
    if low == 1 and high == 1:
        return node
    if node == ALL:
        return int64(ALL)
    flags = (head & _INHERITED) | (NULLABLE_FLAG if low == 0 else 0) | (LOOP_FLAG if high < 0 else 0)
    return intern_node(ctx, REPEAT | flags, node, low, high)


@njit_inner(RESULT2)
def make_literal(ctx, offset, length):
    """The bytes ``LITERAL_BYTES[offset:offset + length]``."""
    if length == 0:
        return int64(EPSILON)
    return intern_node(ctx, LITERAL, offset, length, 0)


@njit_inner(types.boolean(CTX, int64, int64))
def _stays(ctx, node, byte):
    """Whether a sequence begins with any number of bytes of a set, of which this is one, as white space does."""
    nodes = expressions(ctx)
    head, tail = nodes[node].first, nodes[node].second
    if nodes[head].kind != REPEAT or nodes[head].second > 0 or nodes[head].third >= 0:
        return False
    part, word = nodes[head].first, byte >> 6
    if nodes[part].kind != SET:
        return False
    # What follows must not begin so: then there would be two ways.
    bits = byte_sets(ctx)[nodes[part].first, word] & ~first_bytes(ctx)[tail, word]
    return (bits >> (byte & 63)) & 1 != 0


@njit_inner(RESULT2)
def known_derivative(ctx, node, byte):
    """The derivative of a leaf, or of any node if it was computed before; else -1."""
    nodes = expressions(ctx)
    kind = nodes[node].kind
    if kind == LITERAL:
        offset = nodes[node].first
        if literal_bytes(ctx)[offset] != byte:
            return int64(EMPTY)
        length = nodes[node].second
        if length == 1:
            return int64(EPSILON)
        return intern_node(ctx, LITERAL, offset + 1, length - 1, 0)
    if kind == SET:
        word = byte_sets(ctx)[nodes[node].first, byte >> 6]
        return (word >> (byte & 63)) & 1  # EPSILON is 1 and EMPTY is 0
    if kind <= EPSILON:
        return int64(EMPTY)
    if kind == ALL:
        return int64(ALL)
    # Most bytes cannot begin most expressions; saying so needs no memo.
    if not (first_bytes(ctx)[node, byte >> 6] >> (byte & 63)) & 1:
        return int64(EMPTY)
    if kind == CONCAT and _stays(ctx, node, byte):
        return node
    return map_get(ctx, DERIVATIVE_KEYS, DERIVATIVE_VALUES, (node << 8 | byte) + 1)


@njit_inner(RESULT2)
def _simple_derivative(ctx, node, byte):
    """The derivative of a sequence of which one leaf matches the byte; -1 if it is not as simple, or FAIL.

    So are the names of keys, which are characters, each in its spellings, and the blanks around them.  Such derivatives
    are not worth remembering.
    """
    nodes = expressions(ctx)
    begins = first_bytes(ctx)
    word, bit = byte >> 6, int64(1) << (byte & 63)
    while nodes[node].kind == CONCAT:
        first, rest = nodes[node].first, nodes[node].second
        kind = nodes[first].kind
        if kind == REPEAT:
            item, low, high = nodes[first].first, nodes[first].second, nodes[first].third
            if nodes[item].kind != SET:
                return int64(-1)
            if not begins[item, word] & bit:
                if low > 0:
                    return int64(EMPTY)
                node = rest
                continue
            if low == 0 and begins[rest, word] & bit:
                return int64(-1)
            if high < 0 and low == 0:
                return node
            fewer = make_repeat(ctx, item, max(low - 1, int64(0)), high - 1 if high > 0 else high)
            return make_concat(ctx, fewer, rest) if fewer >= 0 else fewer
        if nodes[first].flags & NULLABLE_FLAG:
            return int64(-1)
        if kind == UNION:
            found = int64(EMPTY)
            begin, count = nodes[first].first, nodes[first].second
            if count > _FEW_PARTS:
                return int64(-1)
            for i in range(begin, begin + count):
                part = children(ctx)[i]
                if begins[part, word] & bit:
                    if found != EMPTY:
                        return int64(-1)
                    found = part
            if found == EMPTY:
                return int64(EMPTY)
            first = found
            kind = nodes[first].kind
        if kind != LITERAL and kind != SET:
            return int64(-1)
        part = known_derivative(ctx, first, byte)
        return make_concat(ctx, part, rest) if part >= 0 else part
    return int64(-1)


@njit_inner(RESULT2)
def derivative(ctx, node, byte):
    """What may follow ``byte`` in ``node``: { w : byte w in L(node) }; a node id, or FAIL.

    Post-order over the parts of the expression with the work stack, memoised per (node, byte), so
    that neither nesting nor sharing of subexpressions can make it recurse deeply or run long.
    """
    result = _simple_derivative(ctx, node, byte)
    if result == -1:
        result = known_derivative(ctx, node, byte)
    if result != -1:
        return result
    bottom = used(ctx, WORK_STACK)
    if not room(ctx, WORK_STACK, 1):
        return int64(FAIL)
    work_stack(ctx)[bottom] = node
    set_used(ctx, WORK_STACK, bottom + 1)
    while used(ctx, WORK_STACK) > bottom:
        top = used(ctx, WORK_STACK)
        node = work_stack(ctx)[top - 1]
        nodes = expressions(ctx)
        kind = nodes[node].kind
        a, b, c = nodes[node].first, nodes[node].second, nodes[node].third
        missing = int64(-1)
        if kind == UNION or kind == INTERSECT:
            dead = False
            for i in range(b):
                child = children(ctx)[a + i]
                part = known_derivative(ctx, child, byte)
                if part < -1:
                    return part
                if part == -1:
                    missing = child
                    break
                if part == EMPTY and kind == INTERSECT:
                    dead = True
                    break
                if not room(ctx, WORK_STACK, 1):
                    return int64(FAIL)
                work_stack(ctx)[used(ctx, WORK_STACK)] = part
                set_used(ctx, WORK_STACK, used(ctx, WORK_STACK) + 1)
            if dead or missing != -1:
                set_used(ctx, WORK_STACK, top)
                result = int64(EMPTY)
            else:
                result = far_call(ctx, F_SET_OPERATION, int64(nodes[node].flags & (FITS_FLAG | 255)), top)
        else:
            part = known_derivative(ctx, a, byte)
            if part < -1:
                return part
            if part == -1:
                missing = a
            elif kind == NOT:
                result = make_not(ctx, part)
            elif kind == REPEAT:
                if part == EMPTY:
                    result = int64(EMPTY)
                else:
                    rest = make_repeat(ctx, a, max(b - 1, 0), c - 1 if c > 0 else c)
                    if rest < 0:
                        return rest
                    result = make_concat(ctx, part, rest)
            else:
                result = make_concat(ctx, part, b)
                if result >= 0 and is_nullable(ctx, a):
                    part = known_derivative(ctx, b, byte)
                    if part < -1:
                        return part
                    if part == -1:
                        missing = b
                    else:
                        result = make_union(ctx, result, part)
        if missing != -1:
            if not room(ctx, WORK_STACK, 1):
                return int64(FAIL)
            work_stack(ctx)[top] = missing
            set_used(ctx, WORK_STACK, top + 1)
            continue
        if result < 0:
            return result
        if map_put(ctx, DERIVATIVE_KEYS, DERIVATIVE_VALUES, (node << 8 | byte) + 1, result) < 0:
            return int64(FAIL)
        set_used(ctx, WORK_STACK, top - 1)
    return result


far_entry(F_DERIVATIVE, derivative)


@njit_inner(RESULT2)
def _search_live(ctx, node, _unused):
    """Whether a node with intersections or complements inside, and not nullable, is alive; see is_live."""
    known = liveness(ctx)[node]
    if known == _ALIVE or known == _DEAD:
        return int64(known == _ALIVE)
    # Depth first for a nullable derivative.  On a long path it goes towards shorter strings first: with a counter of
    # thousands the way to its end would be long.  The visited nodes are kept on the work stack; the path, as (node,
    # next class), on the liveness stack, where a class is counted from ``classes`` on when any successor will do.
    bottom = used(ctx, WORK_STACK)
    path = used(ctx, LIVENESS_STACK)
    classes = ctx[CLASSES]
    if not room(ctx, WORK_STACK, 1) or not room(ctx, LIVENESS_STACK, 2):
        return int64(FAIL)
    work_stack(ctx)[bottom] = node
    set_used(ctx, WORK_STACK, bottom + 1)
    liveness_stack(ctx)[path] = node
    liveness_stack(ctx)[path + 1] = classes
    set_used(ctx, LIVENESS_STACK, path + 2)
    liveness(ctx)[node] = _VISITED
    status = int64(0)
    while used(ctx, LIVENESS_STACK) > path and status == 0:
        top = used(ctx, LIVENESS_STACK)
        stack = liveness_stack(ctx)
        here = stack[top - 2]
        next_class = stack[top - 1]
        if next_class == 2 * classes:
            set_used(ctx, LIVENESS_STACK, top - 2)
            continue
        stack[top - 1] = next_class + 1
        closer = next_class < classes
        byte = class_bytes(ctx)[next_class if closer else next_class - classes]
        if not (first_bytes(ctx)[here, byte >> 6] >> (byte & 63)) & 1:
            continue
        successor = far_call(ctx, F_DERIVATIVE, here, byte)
        if successor < 0:
            status = successor
            break
        if successor == EMPTY:
            continue
        head = expressions(ctx)[successor].flags
        known = liveness(ctx)[successor]
        if head & NULLABLE_FLAG or head & COMPLEX_FLAG == 0 or known == _ALIVE:
            status = int64(1)
        elif known == _UNKNOWN:
            if closer and shortest_lengths(ctx)[successor] >= shortest_lengths(ctx)[here]:
                continue
            if not room(ctx, WORK_STACK, 1) or not room(ctx, LIVENESS_STACK, 2):
                status = int64(FAIL)
            elif used(ctx, WORK_STACK) - bottom > _LIVENESS_LIMIT:
                status = int64(LIMIT)
            else:
                work_stack(ctx)[used(ctx, WORK_STACK)] = successor
                set_used(ctx, WORK_STACK, used(ctx, WORK_STACK) + 1)
                liveness_stack(ctx)[top] = successor
                liveness_stack(ctx)[top + 1] = classes if top - path < 2 * _LONG_PATH else 0
                set_used(ctx, LIVENESS_STACK, top + 2)
                liveness(ctx)[successor] = _VISITED
    # Only an exhausted search proves that what it visited is dead.
    live = liveness(ctx)
    verdict = uint8(_DEAD) if status == 0 else uint8(_UNKNOWN)
    tmp = work_stack(ctx)
    for i in range(bottom, used(ctx, WORK_STACK)):
        if live[tmp[i]] == _VISITED:
            live[tmp[i]] = verdict
    if status == 1:
        stack = liveness_stack(ctx)
        for i in range(path, used(ctx, LIVENESS_STACK), 2):
            live[stack[i]] = _ALIVE
    set_used(ctx, WORK_STACK, bottom)
    set_used(ctx, LIVENESS_STACK, path)
    return status


far_entry(F_LIVE, _search_live)


@njit_inner(RESULT1)
def is_live(ctx, node):
    """1 if the node's language holds any string, else 0; FAIL, or LIMIT if the search grew too large."""
    nodes = expressions(ctx)
    while True:
        if node == EMPTY:
            return int64(0)
        head = nodes[node].flags
        if head & COMPLEX_FLAG == 0 or head & NULLABLE_FLAG:
            return int64(1)
        if head & 255 != CONCAT:
            return far_call(ctx, F_LIVE, node, 0)
        # A sequence is alive if its parts are; searching it as a whole would walk through all of them.
        first = nodes[node].first
        head = nodes[first].flags
        if head & COMPLEX_FLAG and not head & NULLABLE_FLAG:
            live = far_call(ctx, F_LIVE, first, 0)
            if live != 1:
                return live
        node = nodes[node].second


# Operations of the postfix program that automata/programs.py writes for the lexemes.
# A negative one, ``~register``, loads a register.
(OP_EMPTY, OP_LITERAL, OP_SET, OP_CONCAT, OP_UNION, OP_INTERSECT, OP_NOT, OP_REPEAT, OP_STORE, OP_KEEP, OP_FIT) = range(
    11
)


@njit_entry(int64(CTX, types.int32[::1], types.int32[::1]))
def build_nodes(ctx, program, registers):
    """Run a postfix program and leave the values it ends with in the registers; returns 0 or FAIL.

    ``program`` is int32: an operation and its operands (LITERAL offset length; SET index; CONCAT,
    UNION, INTERSECT, FIT count; REPEAT low high; STORE and KEEP register, of which the second leaves the value on the
    stack; ``~register`` to load it).
    """
    set_used(ctx, WORK_STACK, 0)
    if used(ctx, EXPRESSION_HASHES) == 0:
        for kind in range(3):
            flags = (NULLABLE_FLAG if kind > EMPTY else 0) | (LOOP_FLAG if kind == ALL else 0)
            node = intern_node(ctx, kind | flags, 0, 0, 0)
            if node < 0:
                return node
    pc = 0
    while pc < len(program):
        if not room(ctx, WORK_STACK, 1):
            return int64(FAIL)
        op = program[pc]
        top = used(ctx, WORK_STACK)
        if op < 0:
            work_stack(ctx)[top] = registers[~op]
            set_used(ctx, WORK_STACK, top + 1)
            pc += 1
            continue
        if op == OP_STORE or op == OP_KEEP:
            registers[program[pc + 1]] = work_stack(ctx)[top - 1]
            set_used(ctx, WORK_STACK, top - 1 if op == OP_STORE else top)
            pc += 2
            continue
        if op == OP_EMPTY:
            node = int64(EMPTY)
            pc += 1
        elif op == OP_LITERAL:
            node = make_literal(ctx, int64(program[pc + 1]), int64(program[pc + 2]))
            pc += 3
        elif op == OP_SET:
            node = intern_node(ctx, SET, int64(program[pc + 1]), 0, 0)
            pc += 2
        elif op == OP_NOT:
            node = make_not(ctx, work_stack(ctx)[top - 1])
            top -= 1
            pc += 1
        elif op == OP_REPEAT:
            node = make_repeat(ctx, work_stack(ctx)[top - 1], int64(program[pc + 1]), int64(program[pc + 2]))
            top -= 1
            pc += 3
        elif op == OP_CONCAT:
            count = int64(program[pc + 1])
            node = work_stack(ctx)[top - 1]
            for i in range(top - 2, top - count - 1, -1):
                node = make_concat(ctx, work_stack(ctx)[i], node)
                if node < 0:
                    return node
            top -= count
            pc += 2
        else:
            top -= int64(program[pc + 1])
            fits = FITS_FLAG if op == OP_FIT else 0
            node = far_call(ctx, F_SET_OPERATION, UNION if op == OP_UNION else INTERSECT | fits, top)
            pc += 2
        if node < 0:
            return node
        work_stack(ctx)[top] = node
        set_used(ctx, WORK_STACK, top + 1)
    return int64(0)
