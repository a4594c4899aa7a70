"""Expression nodes: hash-consed regular expressions over bytes, and their derivatives.

A node is four int32 in the NODES table: ``kind | flags << 8, a, b, c``.  Nodes are interned, so
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

from constrain.engine.storage.jit import njit_entry, njit_inner
from constrain.engine.storage.tables import (
    BUDGET,
    BYTES,
    CLASS_BYTE,
    CLASSES,
    CTX,
    F_DERIVATIVE,
    F_DESCRIBE,
    F_LIVE,
    F_SET_OPERATION,
    F_SUBSUME,
    FAIL,
    LIMIT,
    LIVE_STACK,
    MEMO_KEYS,
    MEMO_VALUES,
    NODE_BUCKETS,
    NODE_FIRST,
    NODE_HASH,
    NODE_LAST,
    NODE_LIVE,
    NODE_MUST,
    NODE_PRINTS,
    NODE_REACH,
    NODE_SHORTEST,
    NODES,
    POOL,
    SETS,
    SUBSUMED,
    TMP,
    bucket_room,
    far_call,
    far_entry,
    finish_hash,
    i32,
    i64,
    map_get,
    map_put,
    mix,
    room,
    set_used,
    sort_keys,
    u8,
    used,
)

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
    return int64(i32(ctx, NODES)[4 * node] >> 8) & 1


@njit_inner(types.void(CTX, int64, int64))
def _set_edge(ctx, node, slot):
    """Compute the set of bytes that may begin (NODE_FIRST) or end (NODE_LAST) a node's strings.

    It is 256 bits, possibly more than do.
    """
    nodes = i32(ctx, NODES)
    edge = i64(ctx, slot)
    kind = nodes[4 * node] & 255
    a, b = int64(nodes[4 * node + 1]), int64(nodes[4 * node + 2])
    outer, inner = (a, b) if slot == NODE_FIRST else (b, a)
    for word in range(4):
        bits = int64(0)
        if kind == LITERAL:
            byte = int64(u8(ctx, BYTES)[a if slot == NODE_FIRST else a + b - 1])
            if byte >> 6 == word:
                bits = int64(1) << (byte & 63)
        elif kind == SET:
            bits = i64(ctx, SETS)[4 * a + word]
        elif kind == CONCAT:
            bits = edge[4 * outer + word]
            if nodes[4 * outer] & NULLABLE_FLAG:
                bits |= edge[4 * inner + word]
        elif kind == UNION:
            for i in range(b):
                bits |= edge[4 * int64(i32(ctx, POOL)[a + i]) + word]
        elif kind == INTERSECT:
            bits = int64(-1)
            for i in range(b):
                bits &= edge[4 * int64(i32(ctx, POOL)[a + i]) + word]
        elif kind == REPEAT:
            bits = edge[4 * a + word]
        elif kind > EPSILON:
            bits = int64(-1)
        edge[4 * node + word] = bits
    set_used(ctx, slot, 4 * node + 4)


@njit_inner(types.void(CTX, int64))
def _set_must(ctx, node):
    """Compute the set of bytes that every string of a node has somewhere; it is 256 bits, possibly fewer than are."""
    nodes = i32(ctx, NODES)
    must = i64(ctx, NODE_MUST)
    kind = nodes[4 * node] & 255
    a, b = int64(nodes[4 * node + 1]), int64(nodes[4 * node + 2])
    for word in range(4):
        bits = int64(0)
        if kind == LITERAL:
            for i in range(a, a + b):
                byte = int64(u8(ctx, BYTES)[i])
                if byte >> 6 == word:
                    bits |= int64(1) << (byte & 63)
        elif kind == CONCAT:
            bits = must[4 * a + word] | must[4 * b + word]
        elif kind == UNION:
            bits = int64(-1)
            for i in range(b):
                bits &= must[4 * int64(i32(ctx, POOL)[a + i]) + word]
        elif kind == INTERSECT:
            for i in range(b):
                bits |= must[4 * int64(i32(ctx, POOL)[a + i]) + word]
        elif kind == REPEAT and b > 0:
            bits = must[4 * a + word]
        must[4 * node + word] = bits
    set_used(ctx, NODE_MUST, 4 * node + 4)


@njit_inner(types.void(CTX, int64))
def _set_shortest(ctx, node):
    """Compute a length that no string of a node is shorter than."""
    nodes = i32(ctx, NODES)
    shortest = i32(ctx, NODE_SHORTEST)
    kind = nodes[4 * node] & 255
    a, b = int64(nodes[4 * node + 1]), int64(nodes[4 * node + 2])
    length = int64(0)
    if kind == LITERAL:
        length = b
    elif kind == SET:
        length = int64(1)
    elif kind == CONCAT:
        length = int64(shortest[a]) + int64(shortest[b])
    elif kind == UNION:
        length = int64(LONG)
        for i in range(b):
            length = min(length, int64(shortest[i32(ctx, POOL)[a + i]]))
    elif kind == INTERSECT:
        for i in range(b):
            length = max(length, int64(shortest[i32(ctx, POOL)[a + i]]))
    elif kind == REPEAT:
        length = int64(shortest[a]) * b
    shortest[node] = min(length, int64(LONG))
    set_used(ctx, NODE_SHORTEST, node + 1)


@njit_inner(types.void(CTX, int64))
def _set_reach(ctx, node):
    """Compute how many bytes are enough to complete any beginning of a string of a node; ``LONG`` if unknown."""
    nodes = i32(ctx, NODES)
    shortest = i32(ctx, NODE_SHORTEST)
    reach = i32(ctx, NODE_REACH)
    kind = nodes[4 * node] & 255
    a, b = int64(nodes[4 * node + 1]), int64(nodes[4 * node + 2])
    length = int64(0)
    if nodes[4 * node] & COMPLEX_FLAG:
        length = int64(LONG)
    elif kind == LITERAL:
        length = b
    elif kind == SET:
        length = int64(1)
    elif kind == CONCAT:
        length = max(int64(reach[a]) + int64(shortest[b]), int64(reach[b]))
    elif kind == UNION:
        for i in range(b):
            length = max(length, int64(reach[i32(ctx, POOL)[a + i]]))
    elif kind == REPEAT:
        length = int64(reach[a]) + int64(shortest[a]) * max(b - 1, int64(0))
    reach[node] = min(length, int64(LONG))
    set_used(ctx, NODE_REACH, node + 1)


@njit_inner(RESULT2)
def _describe(ctx, node, _unused):
    """Compute what is kept about a new node besides its fields; there is room for it."""
    # Fingerprints are made as they are asked for (automata/fingerprints.py).
    i64(ctx, NODE_PRINTS)[2 * node] = i64(ctx, NODE_PRINTS)[2 * node + 1] = 0
    set_used(ctx, NODE_PRINTS, 2 * node + 2)
    _set_edge(ctx, node, int64(NODE_FIRST))
    _set_edge(ctx, node, int64(NODE_LAST))
    _set_must(ctx, node)
    _set_shortest(ctx, node)
    _set_reach(ctx, node)
    return int64(0)


far_entry(F_DESCRIBE, _describe)


@njit_inner(int64(CTX, int64, int64, int64, int64, int64))
def _insert(ctx, head, a, b, c, code):
    """Append a node that is known to be new; returns its id or FAIL."""
    node = used(ctx, NODE_HASH)
    if ctx[BUDGET] == 0:
        return int64(LIMIT)
    ctx[BUDGET] -= 1
    if not room(ctx, NODES, 4) or not room(ctx, NODE_LIVE, 1) or not room(ctx, NODE_HASH, 1):
        return int64(FAIL)
    if not room(ctx, NODE_PRINTS, 2) or not room(ctx, NODE_FIRST, 4) or not room(ctx, NODE_LAST, 4):
        return int64(FAIL)
    if not room(ctx, NODE_MUST, 4) or not room(ctx, NODE_SHORTEST, 1) or not room(ctx, NODE_REACH, 1):
        return int64(FAIL)
    if not bucket_room(ctx, NODE_BUCKETS, node):
        return int64(FAIL)
    buckets = i32(ctx, NODE_BUCKETS)
    mask = len(buckets) - 1
    i = code & mask
    while buckets[i] >= 0:
        i = (i + 1) & mask
    buckets[i] = node
    nodes = i32(ctx, NODES)
    nodes[4 * node] = head
    nodes[4 * node + 1] = a
    nodes[4 * node + 2] = b
    nodes[4 * node + 3] = c
    far_call(ctx, F_DESCRIBE, int64(node), 0)
    u8(ctx, NODE_LIVE)[node] = _UNKNOWN
    i32(ctx, NODE_HASH)[node] = code
    set_used(ctx, NODES, 4 * node + 4)
    set_used(ctx, NODE_LIVE, node + 1)
    set_used(ctx, NODE_HASH, node + 1)
    return node


@njit_inner(int64(CTX, int64, int64, int64, int64))
def intern_node(ctx, head, a, b, c):
    """The node with these fields (not for UNION and INTERSECT, whose children lie in a pool)."""
    code = finish_hash(mix(mix(mix(mix(0, head), a), b), c))
    buckets = i32(ctx, NODE_BUCKETS)
    nodes = i32(ctx, NODES)
    mask = len(buckets) - 1
    i = code & mask
    while buckets[i] >= 0:
        n = 4 * buckets[i]
        if nodes[n] == head and nodes[n + 1] == a and nodes[n + 2] == b and nodes[n + 3] == c:
            return int64(buckets[i])
        i = (i + 1) & mask
    return _insert(ctx, head, a, b, c, code)


@njit_inner(types.UniTuple(int64, 3)(CTX, int64))  # type: ignore[no-untyped-call]
def _counter(ctx, node):
    """(item, low, high) of the counter that a sequence begins with."""
    nodes = i32(ctx, NODES)
    head = int64(nodes[4 * node + 1])
    return int64(nodes[4 * head + 1]), int64(nodes[4 * head + 2]), int64(nodes[4 * head + 3])


@njit_inner(RESULT2)
def _subsume(ctx, base, count):
    """Drop from the ``count`` parts of a union at ``TMP[base]`` those that a part with a wider counter holds.

    That is, ``x{a,b} t`` beside ``x{c,d} t`` with c <= a and b <= d.  Counters within counters would
    otherwise make unions as long as the product of their bounds.  Returns how many are left.
    """
    if not room(ctx, TMP, count) or not room(ctx, SUBSUMED, count):
        return int64(FAIL)
    tmp = i32(ctx, TMP)
    nodes = i32(ctx, NODES)
    # The counted parts, by what follows them; only those with equal tails are compared.
    keys = i64(ctx, SUBSUMED)
    counted = int64(0)
    for i in range(count):
        node = int64(tmp[base + i])
        if nodes[4 * node] & 255 == CONCAT and nodes[4 * int64(nodes[4 * node + 1])] & 255 == REPEAT:
            keys[counted] = int64(nodes[4 * node + 2]) << 32 | i
            counted += 1
    if counted < 2:
        return count
    sort_keys(keys, counted)
    dropped = 0
    for i in range(counted):
        place = keys[i] & 0x7FFFFFFF
        item, low, high = _counter(ctx, int64(tmp[base + place]))
        for step in (-1, 1):
            j = i + step
            while 0 <= j < counted and keys[j] >> 32 == keys[i] >> 32:
                # A part that was dropped is now EMPTY; what held it holds this one too, if it did.
                other = int64(tmp[base + (keys[j] & 0x7FFFFFFF)])
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
    tmp = i32(ctx, TMP)
    nodes = i32(ctx, NODES)
    pool = i32(ctx, POOL)
    top = used(ctx, TMP)
    neutral, absorbing = (EMPTY, ALL) if kind == UNION else (ALL, EMPTY)
    # Children that are themselves of this kind give way to their own children.
    for i in range(base, top):
        child = tmp[i]
        if nodes[4 * child] & 255 == kind:
            tmp[i] = neutral
            length = nodes[4 * child + 2]
            if not room(ctx, TMP, length):
                return int64(FAIL)
            end = used(ctx, TMP)
            offset = nodes[4 * child + 1]
            for j in range(length):
                tmp[end + j] = pool[offset + j]
            set_used(ctx, TMP, end + length)
    count = used(ctx, TMP) - base
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
            set_used(ctx, TMP, base)
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
    set_used(ctx, TMP, base)
    if n == 0:
        return int64(neutral)
    if n == 1:
        return int64(tmp[base])
    if kind == INTERSECT:
        flags |= COMPLEX_FLAG | fits
    head = kind | flags | (nullable * NULLABLE_FLAG)
    code = mix(0, head)
    for i in range(n):
        code = mix(code, tmp[base + i])
    code = finish_hash(code)
    buckets = i32(ctx, NODE_BUCKETS)
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
                return int64(buckets[i])
        i = (i + 1) & mask
    if not room(ctx, POOL, n):
        return int64(FAIL)
    offset = used(ctx, POOL)
    for j in range(n):
        pool[offset + j] = tmp[base + j]
    node = _insert(ctx, head, offset, n, 0, code)
    if node >= 0:
        set_used(ctx, POOL, offset + n)
    return int64(node)


far_entry(F_SET_OPERATION, make_set_operation)


@njit_inner(RESULT2)
def make_union(ctx, left, right):
    """``left | right``."""
    if left == EMPTY or left == right:
        return right
    if right == EMPTY:
        return left
    if not room(ctx, TMP, 2):
        return int64(FAIL)
    base = used(ctx, TMP)
    tmp = i32(ctx, TMP)
    tmp[base] = left
    tmp[base + 1] = right
    set_used(ctx, TMP, base + 2)
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
    base = used(ctx, TMP)
    nodes = i32(ctx, NODES)
    while nodes[4 * left] & 255 == CONCAT:
        if not room(ctx, TMP, 1):
            return int64(FAIL)
        i32(ctx, TMP)[used(ctx, TMP)] = nodes[4 * left + 1]
        set_used(ctx, TMP, used(ctx, TMP) + 1)
        left = int64(nodes[4 * left + 2])
    while True:
        nodes = i32(ctx, NODES)
        flags = (nodes[4 * left] | nodes[4 * right]) & _INHERITED
        nullable = nodes[4 * left] & nodes[4 * right] & NULLABLE_FLAG
        right = intern_node(ctx, CONCAT | flags | nullable, left, right, 0)
        if right < 0 or used(ctx, TMP) == base:
            return right
        left = int64(i32(ctx, TMP)[used(ctx, TMP) - 1])
        set_used(ctx, TMP, used(ctx, TMP) - 1)


@njit_inner(RESULT1)
def make_not(ctx, node):
    """The complement of ``node``."""
    if node == EMPTY:
        return int64(ALL)
    if node == ALL:
        return int64(EMPTY)
    nodes = i32(ctx, NODES)
    if nodes[4 * node] & 255 == NOT:
        return int64(nodes[4 * node + 1])
    nullable = NULLABLE_FLAG - (nodes[4 * node] & NULLABLE_FLAG)
    return intern_node(ctx, NOT | COMPLEX_FLAG | LOOP_FLAG | nullable, node, 0, 0)


@njit_inner(RESULT3)
def make_repeat(ctx, node, low, high):
    """``node`` from ``low`` to ``high`` times; ``high`` -1 for no bound."""
    if high == 0 or node == EPSILON:
        return int64(EPSILON)
    if node == EMPTY:
        return int64(EPSILON) if low == 0 else int64(EMPTY)
    head = i32(ctx, NODES)[4 * node]
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
    """The bytes ``BYTES[offset:offset + length]``."""
    if length == 0:
        return int64(EPSILON)
    return intern_node(ctx, LITERAL, offset, length, 0)


@njit_inner(types.boolean(CTX, int64, int64))
def _stays(ctx, node, byte):
    """Whether a sequence begins with any number of bytes of a set, of which this is one, as white space does."""
    nodes = i32(ctx, NODES)
    head, tail = int64(nodes[4 * node + 1]), int64(nodes[4 * node + 2])
    if nodes[4 * head] & 255 != REPEAT or nodes[4 * head + 2] > 0 or nodes[4 * head + 3] >= 0:
        return False
    part, word = int64(nodes[4 * head + 1]), byte >> 6
    if nodes[4 * part] & 255 != SET:
        return False
    # What follows must not begin so: then there would be two ways.
    bits = i64(ctx, SETS)[4 * int64(nodes[4 * part + 1]) + word] & ~i64(ctx, NODE_FIRST)[4 * tail + word]
    return (bits >> (byte & 63)) & 1 != 0


@njit_inner(RESULT2)
def known_derivative(ctx, node, byte):
    """The derivative of a leaf, or of any node if it was computed before; else -1."""
    nodes = i32(ctx, NODES)
    kind = nodes[4 * node] & 255
    if kind == LITERAL:
        offset = int64(nodes[4 * node + 1])
        if u8(ctx, BYTES)[offset] != byte:
            return int64(EMPTY)
        length = int64(nodes[4 * node + 2])
        if length == 1:
            return int64(EPSILON)
        return intern_node(ctx, LITERAL, offset + 1, length - 1, 0)
    if kind == SET:
        word = i64(ctx, SETS)[4 * int64(nodes[4 * node + 1]) + (byte >> 6)]
        return (word >> (byte & 63)) & 1  # EPSILON is 1 and EMPTY is 0
    if kind <= EPSILON:
        return int64(EMPTY)
    if kind == ALL:
        return int64(ALL)
    # Most bytes cannot begin most expressions; saying so needs no memo.
    if not (i64(ctx, NODE_FIRST)[4 * node + (byte >> 6)] >> (byte & 63)) & 1:
        return int64(EMPTY)
    if kind == CONCAT and _stays(ctx, node, byte):
        return node
    return map_get(ctx, MEMO_KEYS, MEMO_VALUES, (node << 8 | byte) + 1)


@njit_inner(RESULT2)
def _simple_derivative(ctx, node, byte):
    """The derivative of a sequence of which one leaf matches the byte; -1 if it is not as simple, or FAIL.

    So are the names of keys, which are characters, each in its spellings, and the blanks around them.  Such derivatives
    are not worth remembering.
    """
    nodes = i32(ctx, NODES)
    begins = i64(ctx, NODE_FIRST)
    word, bit = byte >> 6, int64(1) << (byte & 63)
    while nodes[4 * node] & 255 == CONCAT:
        first, rest = int64(nodes[4 * node + 1]), int64(nodes[4 * node + 2])
        kind = nodes[4 * first] & 255
        if kind == REPEAT:
            item, low, high = int64(nodes[4 * first + 1]), int64(nodes[4 * first + 2]), int64(nodes[4 * first + 3])
            if nodes[4 * item] & 255 != SET:
                return int64(-1)
            if not begins[4 * item + word] & bit:
                if low > 0:
                    return int64(EMPTY)
                node = rest
                continue
            if low == 0 and begins[4 * rest + word] & bit:
                return int64(-1)
            if high < 0 and low == 0:
                return node
            fewer = make_repeat(ctx, item, max(low - 1, int64(0)), high - 1 if high > 0 else high)
            return make_concat(ctx, fewer, rest) if fewer >= 0 else fewer
        if nodes[4 * first] & NULLABLE_FLAG:
            return int64(-1)
        if kind == UNION:
            found = int64(EMPTY)
            begin, count = int64(nodes[4 * first + 1]), int64(nodes[4 * first + 2])
            if count > _FEW_PARTS:
                return int64(-1)
            for i in range(begin, begin + count):
                part = int64(i32(ctx, POOL)[i])
                if begins[4 * part + word] & bit:
                    if found != EMPTY:
                        return int64(-1)
                    found = part
            if found == EMPTY:
                return int64(EMPTY)
            first = found
            kind = nodes[4 * first] & 255
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
    bottom = used(ctx, TMP)
    if not room(ctx, TMP, 1):
        return int64(FAIL)
    i32(ctx, TMP)[bottom] = node
    set_used(ctx, TMP, bottom + 1)
    while used(ctx, TMP) > bottom:
        top = used(ctx, TMP)
        node = int64(i32(ctx, TMP)[top - 1])
        nodes = i32(ctx, NODES)
        kind = nodes[4 * node] & 255
        a, b, c = int64(nodes[4 * node + 1]), int64(nodes[4 * node + 2]), int64(nodes[4 * node + 3])
        missing = int64(-1)
        if kind == UNION or kind == INTERSECT:
            dead = False
            for i in range(b):
                child = int64(i32(ctx, POOL)[a + i])
                part = known_derivative(ctx, child, byte)
                if part < -1:
                    return part
                if part == -1:
                    missing = child
                    break
                if part == EMPTY and kind == INTERSECT:
                    dead = True
                    break
                if not room(ctx, TMP, 1):
                    return int64(FAIL)
                i32(ctx, TMP)[used(ctx, TMP)] = part
                set_used(ctx, TMP, used(ctx, TMP) + 1)
            if dead or missing != -1:
                set_used(ctx, TMP, top)
                result = int64(EMPTY)
            else:
                result = far_call(ctx, F_SET_OPERATION, int64(nodes[4 * node] & (FITS_FLAG | 255)), top)
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
            if not room(ctx, TMP, 1):
                return int64(FAIL)
            i32(ctx, TMP)[top] = missing
            set_used(ctx, TMP, top + 1)
            continue
        if result < 0:
            return result
        if map_put(ctx, MEMO_KEYS, MEMO_VALUES, (node << 8 | byte) + 1, result) < 0:
            return int64(FAIL)
        set_used(ctx, TMP, top - 1)
    return result


far_entry(F_DERIVATIVE, derivative)


@njit_inner(RESULT2)
def _search_live(ctx, node, _unused):
    """Whether a node with intersections or complements inside, and not nullable, is alive; see is_live."""
    known = u8(ctx, NODE_LIVE)[node]
    if known == _ALIVE or known == _DEAD:
        return int64(known == _ALIVE)
    # Depth first for a nullable derivative.  On a long path it goes towards shorter strings first: with a counter of
    # thousands the way to its end would be long.  The visited nodes are kept on the work stack; the path, as (node,
    # next class), on the liveness stack, where a class is counted from ``classes`` on when any successor will do.
    bottom = used(ctx, TMP)
    path = used(ctx, LIVE_STACK)
    classes = ctx[CLASSES]
    if not room(ctx, TMP, 1) or not room(ctx, LIVE_STACK, 2):
        return int64(FAIL)
    i32(ctx, TMP)[bottom] = node
    set_used(ctx, TMP, bottom + 1)
    i32(ctx, LIVE_STACK)[path] = node
    i32(ctx, LIVE_STACK)[path + 1] = classes
    set_used(ctx, LIVE_STACK, path + 2)
    u8(ctx, NODE_LIVE)[node] = _VISITED
    status = int64(0)
    while used(ctx, LIVE_STACK) > path and status == 0:
        top = used(ctx, LIVE_STACK)
        stack = i32(ctx, LIVE_STACK)
        here = int64(stack[top - 2])
        next_class = int64(stack[top - 1])
        if next_class == 2 * classes:
            set_used(ctx, LIVE_STACK, top - 2)
            continue
        stack[top - 1] = next_class + 1
        closer = next_class < classes
        byte = int64(u8(ctx, CLASS_BYTE)[next_class if closer else next_class - classes])
        if not (i64(ctx, NODE_FIRST)[4 * here + (byte >> 6)] >> (byte & 63)) & 1:
            continue
        successor = far_call(ctx, F_DERIVATIVE, here, byte)
        if successor < 0:
            status = successor
            break
        if successor == EMPTY:
            continue
        head = i32(ctx, NODES)[4 * successor]
        known = u8(ctx, NODE_LIVE)[successor]
        if head & NULLABLE_FLAG or head & COMPLEX_FLAG == 0 or known == _ALIVE:
            status = int64(1)
        elif known == _UNKNOWN:
            if closer and i32(ctx, NODE_SHORTEST)[successor] >= i32(ctx, NODE_SHORTEST)[here]:
                continue
            if not room(ctx, TMP, 1) or not room(ctx, LIVE_STACK, 2):
                status = int64(FAIL)
            elif used(ctx, TMP) - bottom > _LIVENESS_LIMIT:
                status = int64(LIMIT)
            else:
                i32(ctx, TMP)[used(ctx, TMP)] = successor
                set_used(ctx, TMP, used(ctx, TMP) + 1)
                i32(ctx, LIVE_STACK)[top] = successor
                i32(ctx, LIVE_STACK)[top + 1] = classes if top - path < 2 * _LONG_PATH else 0
                set_used(ctx, LIVE_STACK, top + 2)
                u8(ctx, NODE_LIVE)[successor] = _VISITED
    # Only an exhausted search proves that what it visited is dead.
    live = u8(ctx, NODE_LIVE)
    verdict = uint8(_DEAD) if status == 0 else uint8(_UNKNOWN)
    tmp = i32(ctx, TMP)
    for i in range(bottom, used(ctx, TMP)):
        if live[tmp[i]] == _VISITED:
            live[tmp[i]] = verdict
    if status == 1:
        stack = i32(ctx, LIVE_STACK)
        for i in range(path, used(ctx, LIVE_STACK), 2):
            live[stack[i]] = _ALIVE
    set_used(ctx, TMP, bottom)
    set_used(ctx, LIVE_STACK, path)
    return status


far_entry(F_LIVE, _search_live)


@njit_inner(RESULT1)
def is_live(ctx, node):
    """1 if the node's language holds any string, else 0; FAIL, or LIMIT if the search grew too large."""
    nodes = i32(ctx, NODES)
    while True:
        if node == EMPTY:
            return int64(0)
        head = nodes[4 * node]
        if head & COMPLEX_FLAG == 0 or head & NULLABLE_FLAG:
            return int64(1)
        if head & 255 != CONCAT:
            return far_call(ctx, F_LIVE, node, 0)
        # A sequence is alive if its parts are; searching it as a whole would walk through all of them.
        first = int64(nodes[4 * node + 1])
        head = nodes[4 * first]
        if head & COMPLEX_FLAG and not head & NULLABLE_FLAG:
            live = far_call(ctx, F_LIVE, first, 0)
            if live != 1:
                return live
        node = int64(nodes[4 * node + 2])


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
    set_used(ctx, TMP, 0)
    if used(ctx, NODE_HASH) == 0:
        for kind in range(3):
            flags = (NULLABLE_FLAG if kind > EMPTY else 0) | (LOOP_FLAG if kind == ALL else 0)
            node = intern_node(ctx, kind | flags, 0, 0, 0)
            if node < 0:
                return node
    pc = 0
    while pc < len(program):
        if not room(ctx, TMP, 1):
            return int64(FAIL)
        op = program[pc]
        top = used(ctx, TMP)
        if op < 0:
            i32(ctx, TMP)[top] = registers[~op]
            set_used(ctx, TMP, top + 1)
            pc += 1
            continue
        if op == OP_STORE or op == OP_KEEP:
            registers[program[pc + 1]] = i32(ctx, TMP)[top - 1]
            set_used(ctx, TMP, top - 1 if op == OP_STORE else top)
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
            node = make_not(ctx, int64(i32(ctx, TMP)[top - 1]))
            top -= 1
            pc += 1
        elif op == OP_REPEAT:
            node = make_repeat(ctx, int64(i32(ctx, TMP)[top - 1]), int64(program[pc + 1]), int64(program[pc + 2]))
            top -= 1
            pc += 3
        elif op == OP_CONCAT:
            count = int64(program[pc + 1])
            node = int64(i32(ctx, TMP)[top - 1])
            for i in range(top - 2, top - count - 1, -1):
                node = make_concat(ctx, int64(i32(ctx, TMP)[i]), node)
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
        i32(ctx, TMP)[top] = node
        set_used(ctx, TMP, top + 1)
    return int64(0)
