"""Splits: the tokens of a lexer state, divided into those that stay inside and the places where a lexeme can end.

A split depends on the lexer state and the vocabulary, not on the parser.  Three ways to get one,
from cheap to dear:

* *Import*: expressions that many grammars share (the inside of a JSON string, also one with a
  length limit) have the same split in all of them.  The vocabulary keeps the large ones, found by
  a fingerprint of the expression.
* *Delta*: the inside of a string that may also be one of nine property names differs from the
  inside of any string only along those nine paths.  Both states walk the trie together; where they
  become the same state the subtree is skipped, and the known split holds.  A string of at most 40
  characters differs from one of any length only at tokens with more than 40; there the two count
  as the same state while the tokens below are too short to tell them apart.
* *Walk*: over every trie node that the state reaches.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from numba import int32, int64, types, uint64

from constrain.engine.jit import njit_entry, njit_inner
from constrain.engine.lexer import (
    LEX_ACCEPT,
    LEX_COUNT,
    LEX_GOES_ON,
    LEX_OFFSET,
    NOT_SPLIT,
    SPLIT_COUNT,
    SPLIT_CROSSING_COUNT,
    SPLIT_CROSSINGS,
    SPLIT_DENSE,
    SPLIT_LIST,
)
from constrain.engine.nodes import (
    COMPLEX_FLAG,
    CONCAT,
    EPSILON,
    REPEAT,
    RESULT0,
    RESULT1,
    RESULT2,
    make_concat,
    make_repeat,
)
from constrain.engine.tables import (
    ACCEPT_POOL,
    ACCEPTS,
    CLASS_OF,
    CLASS_SIZE,
    CLASSES,
    CROSSINGS,
    CTX,
    DENSE,
    F_ACCEPT_SET,
    F_LEXER_STATE,
    F_LEXER_STEP,
    F_SPLIT,
    F_TWIN,
    FAIL,
    FOUND,
    LEX,
    LEX_FIRST,
    LEX_POOL,
    LEX_TRANS,
    LEX_TWIN,
    LONGEST,
    N_WORDS,
    NEW_SPLIT,
    NODE_PRINTS,
    NODES,
    SAME_BYTES,
    SCRATCH,
    SHARED_COUNTS,
    SHARED_CROSSINGS,
    SHARED_DENSE,
    SHARED_PRINTS,
    SHARED_RECORDS,
    SPLITS,
    STACK,
    TMP,
    TOKEN_LISTS,
    TRIE_HEIGHT,
    TRIE_NODE,
    TRIE_SIZE,
    TRIE_TOKEN,
    TRIE_WIDE,
    TWIN_STACK,
    WIDE_CHILD,
    WIDE_ENDS,
    WIDE_FIRST,
    WIDE_MASKS,
    WIDE_STACK,
    count_bits,
    far_call,
    far_entry,
    i32,
    i64,
    lowest_bit,
    mix,
    room,
    set_used,
    u8,
    used,
)
from constrain.engine.trie import CHILD_OF_WIDE, DEPTH_SHIFT, WIDE

_SHIFT, _BYTE, _WORD = uint64(DEPTH_SHIFT), uint64(255), uint64(5)
_WIDE, _CHILD_OF_WIDE = uint64(WIDE), uint64(CHILD_OF_WIDE)

SHARED_SPLITS, SHARED_CROSSING_LIMIT = 512, 1 << 17
"""How many splits, and crossings in all of them, a vocabulary keeps."""

_SHARED_MEMBERS = 8
# A delta is tried only if this many of the 256 bytes lead to the same state from both.
_DELTA_BYTES = 200
_CANDIDATES = 16
# How long a sequence is compared to see where two expressions differ.
_MARGIN_DEPTH = 8
_MARGIN_MEMO = 256
# With a counter below this so many tokens are too long that a plain walk is cheaper; it is shared afterwards.
_SHORT = 20


@njit_inner(RESULT0)
def keep_dense(ctx):
    """Copy the scratch mask to the pool of dense masks, which has room; returns where it is."""
    words = ctx[N_WORDS]
    scratch = i32(ctx, SCRATCH)
    pool = i32(ctx, DENSE)
    dense = used(ctx, DENSE)
    for i in range(words):
        pool[dense + i] = scratch[i]
    set_used(ctx, DENSE, dense + words)
    return dense


@njit_inner(types.void(CTX, int64, int64, int64, int64, int64))
def _keep_split(ctx, lexer_state, dense, first, first_crossing, crossing):
    """Write the record of a split; its list and crossings are the ends of their tables."""
    set_used(ctx, CROSSINGS, 2 * crossing)
    split = i32(ctx, SPLITS)
    split[5 * lexer_state + SPLIT_LIST] = first
    split[5 * lexer_state + SPLIT_COUNT] = used(ctx, TOKEN_LISTS) - first
    split[5 * lexer_state + SPLIT_CROSSINGS] = first_crossing
    split[5 * lexer_state + SPLIT_CROSSING_COUNT] = crossing - first_crossing
    split[5 * lexer_state + SPLIT_DENSE] = dense


@njit_inner(RESULT2)
def _print_of(ctx, lexer_state, half):
    """One half of the fingerprint of a lexer state; 0 if its split cannot be shared."""
    count = int64(i32(ctx, LEX)[4 * lexer_state + LEX_COUNT])
    offset = int64(i32(ctx, LEX)[4 * lexer_state + LEX_OFFSET])
    if count > _SHARED_MEMBERS:
        return int64(0)
    pool = i32(ctx, LEX_POOL)
    prints = i64(ctx, NODE_PRINTS)
    result = int64(half)
    for i in range(count):
        own = prints[2 * int64(pool[offset + 2 * i + 1]) + half]
        if own == 0:
            return int64(0)
        result = mix(result, own)
    return result


@njit_inner(RESULT1)
def _import_split(ctx, lexer_state):
    """Take the split from the vocabulary's if it is there; returns 1 if so, 0 if not, or FAIL."""
    first_half = _print_of(ctx, lexer_state, 0)
    if first_half == 0:
        return int64(0)
    second_half = _print_of(ctx, lexer_state, 1)
    prints = i64(ctx, SHARED_PRINTS)
    for entry in range(i64(ctx, SHARED_COUNTS)[0]):
        if prints[2 * entry] != first_half or prints[2 * entry + 1] != second_half:
            continue
        words = ctx[N_WORDS]
        record = i32(ctx, SHARED_RECORDS)
        begin, count = int64(record[2 * entry]), int64(record[2 * entry + 1])
        if not room(ctx, DENSE, words) or not room(ctx, CROSSINGS, 2 * count) or not room(ctx, TMP, _SHARED_MEMBERS):
            return int64(FAIL)
        shared = i32(ctx, SHARED_CROSSINGS)
        crossings = i32(ctx, CROSSINGS)
        first = used(ctx, CROSSINGS) // 2
        last_members, accept = int32(0), int64(0)
        offset = int64(i32(ctx, LEX)[4 * lexer_state + LEX_OFFSET])
        for i in range(count):
            # Which members can end here is kept by position; lexeme numbers differ between grammars.
            members = shared[2 * (begin + i) + 1]
            if members != last_members:
                last_members = members
                base = used(ctx, TMP)
                n = 0
                for member in range(_SHARED_MEMBERS):
                    if (members >> member) & 1:
                        i32(ctx, TMP)[base + n] = i32(ctx, LEX_POOL)[offset + 2 * member]
                        n += 1
                accept = far_call(ctx, F_ACCEPT_SET, base, n)
                if accept < 0:
                    return accept
            crossings[2 * (first + i)] = shared[2 * (begin + i)]
            crossings[2 * (first + i) + 1] = accept
        dense = used(ctx, DENSE)
        pool = i32(ctx, DENSE)
        source = i32(ctx, SHARED_DENSE)
        for i in range(words):
            pool[dense + i] = source[entry * words + i]
        set_used(ctx, DENSE, dense + words)
        _keep_split(ctx, lexer_state, dense, used(ctx, TOKEN_LISTS), first, first + count)
        return int64(1)
    return int64(0)


@njit_entry(RESULT1)
def publish_split(ctx, lexer_state):
    """Write a dense split behind the vocabulary's shared ones; returns 1 if it fits.

    It becomes visible when the caller, who holds the vocabulary's lock, advances SHARED_COUNTS[0].
    """
    counts = i64(ctx, SHARED_COUNTS)
    entry = counts[0]
    split = i32(ctx, SPLITS)
    begin = int64(split[5 * lexer_state + SPLIT_CROSSINGS])
    count = int64(split[5 * lexer_state + SPLIT_CROSSING_COUNT])
    dense = int64(split[5 * lexer_state + SPLIT_DENSE])
    if dense < 0 or entry == SHARED_SPLITS or counts[1] + count > SHARED_CROSSING_LIMIT:
        return int64(0)
    words = ctx[N_WORDS]
    target = i32(ctx, SHARED_DENSE)
    pool = i32(ctx, DENSE)
    for i in range(words):
        target[entry * words + i] = pool[dense + i]
    offset = int64(i32(ctx, LEX)[4 * lexer_state + LEX_OFFSET])
    members_count = int64(i32(ctx, LEX)[4 * lexer_state + LEX_COUNT])
    shared = i32(ctx, SHARED_CROSSINGS)
    for i in range(count):
        accept = int64(i32(ctx, CROSSINGS)[2 * (begin + i) + 1])
        lexeme = int64(i32(ctx, ACCEPTS)[2 * accept])
        stop = lexeme + int64(i32(ctx, ACCEPTS)[2 * accept + 1])
        members = int32(0)
        for member in range(members_count):
            if lexeme < stop and i32(ctx, LEX_POOL)[offset + 2 * member] == i32(ctx, ACCEPT_POOL)[lexeme]:
                members |= int32(1) << int32(member)
                lexeme += 1
        shared[2 * (counts[1] + i)] = i32(ctx, CROSSINGS)[2 * (begin + i)]
        shared[2 * (counts[1] + i) + 1] = members
    records = i32(ctx, SHARED_RECORDS)
    records[2 * entry] = counts[1]
    records[2 * entry + 1] = count
    counts[1] += count
    prints = i64(ctx, SHARED_PRINTS)
    prints[2 * entry] = _print_of(ctx, lexer_state, 0)
    prints[2 * entry + 1] = _print_of(ctx, lexer_state, 1)
    return int64(1)


@njit_inner(RESULT1)
def _uncounted(ctx, lexer_state):
    """The state whose members repeat without bound what this one's repeat at most n times; -1 if none does, or FAIL."""
    count = int64(i32(ctx, LEX)[4 * lexer_state + LEX_COUNT])
    offset = int64(i32(ctx, LEX)[4 * lexer_state + LEX_OFFSET])
    if not room(ctx, TMP, 2 * count):
        return int64(FAIL)
    base = used(ctx, TMP)
    # The members are built first: building uses the stack above them.
    set_used(ctx, TMP, base + 2 * count)
    changed = False
    for i in range(count):
        pool = i32(ctx, LEX_POOL)
        lexeme, node = pool[offset + 2 * i], int64(pool[offset + 2 * i + 1])
        nodes = i32(ctx, NODES)
        head, tail = node, int64(EPSILON)
        if nodes[4 * node] & 255 == CONCAT:
            head, tail = int64(nodes[4 * node + 1]), int64(nodes[4 * node + 2])
        if nodes[4 * head] & 255 == REPEAT and nodes[4 * head + 3] >= 0 and not nodes[4 * node] & COMPLEX_FLAG:
            head = make_repeat(ctx, int64(nodes[4 * head + 1]), int64(nodes[4 * head + 2]), int64(-1))
            if head < 0:
                return head
            node = make_concat(ctx, head, tail)
            if node < 0:
                return node
            changed = True
        i32(ctx, TMP)[base + 2 * i] = lexeme
        i32(ctx, TMP)[base + 2 * i + 1] = node
    result = far_call(ctx, F_LEXER_STATE, base, count) if changed else int64(-1)
    set_used(ctx, TMP, base)
    return result


@njit_inner(RESULT2)
def _margin(ctx, left, right):
    """A number of bytes within which two expressions cannot be told apart; 0 if unknown.

    It looks at counters at the end of equal beginnings: each repetition takes a byte at least.
    """
    nodes = i32(ctx, NODES)
    for _ in range(_MARGIN_DEPTH):
        if left == right:
            return int64(1 << 30)
        head, other = nodes[4 * left], nodes[4 * right]
        if head != other or head & COMPLEX_FLAG:
            return int64(0)
        kind = head & 255
        if kind == CONCAT:
            a, b = int64(nodes[4 * left + 1]), int64(nodes[4 * right + 1])
            if a == b:
                left, right = int64(nodes[4 * left + 2]), int64(nodes[4 * right + 2])
                continue
            if nodes[4 * left + 2] != nodes[4 * right + 2] or nodes[4 * a] != nodes[4 * b]:
                return int64(0)
            left, right = a, b
            kind = nodes[4 * a] & 255
        if kind != REPEAT or nodes[4 * left + 1] != nodes[4 * right + 1] or nodes[4 * left + 2] != nodes[4 * right + 2]:
            return int64(0)
        high, other_high = int64(nodes[4 * left + 3]), int64(nodes[4 * right + 3])
        return min(high if high >= 0 else int64(1 << 30), other_high if other_high >= 0 else int64(1 << 30))
    return int64(0)


@njit_inner(RESULT2)
def _state_margin(ctx, state, twin):
    """A number of bytes within which two lexer states cannot be told apart; 0 if unknown or none."""
    lex = i32(ctx, LEX)
    count = lex[4 * state + LEX_COUNT]
    if count != lex[4 * twin + LEX_COUNT] or lex[4 * state + LEX_ACCEPT] != lex[4 * twin + LEX_ACCEPT]:
        return int64(0)
    pool = i32(ctx, LEX_POOL)
    here, there = int64(lex[4 * state + LEX_OFFSET]), int64(lex[4 * twin + LEX_OFFSET])
    margin = int64(1 << 30)
    for i in range(count):
        if pool[here + 2 * i] != pool[there + 2 * i]:
            return int64(0)
        margin = min(margin, _margin(ctx, int64(pool[here + 2 * i + 1]), int64(pool[there + 2 * i + 1])))
    return margin


@njit_inner(RESULT2)
def unbounded_twin(ctx, lexer_state, _unused):
    """The state without this one's bounds, if no token is long enough to tell the two apart; else the state itself.

    In the twin a run of blanks or of characters stays in one state, where counting makes one for each.
    """
    known = int64(i32(ctx, LEX_TWIN)[lexer_state])
    if known >= 0:
        return known
    twin = _uncounted(ctx, lexer_state)
    if twin < -1:
        return twin
    if twin == -1 or _state_margin(ctx, lexer_state, twin) <= ctx[LONGEST]:
        twin = lexer_state
    i32(ctx, LEX_TWIN)[lexer_state] = twin
    return twin


far_entry(F_TWIN, unbounded_twin)


@njit_inner(RESULT1)
def _find_base(ctx, lexer_state):
    """A state that this one is nearly like: the target of most of its bytes, if it is that; else -1.  FAIL or LIMIT."""
    classes = ctx[CLASSES]
    size = i32(ctx, CLASS_SIZE)
    # The first few distinct targets, with how many bytes lead to each, are enough to find the usual one.
    base, most = int64(-1), int64(0)
    alive = int64(0)
    if not room(ctx, TMP, 2 * _CANDIDATES):
        return int64(FAIL)
    counts = used(ctx, TMP)
    set_used(ctx, TMP, counts + 2 * _CANDIDATES)
    n = 0
    for byte_class in range(classes):
        target = int64(i32(ctx, LEX_TRANS)[lexer_state * classes + byte_class])
        if target < 0:
            target = far_call(ctx, F_LEXER_STEP, lexer_state, byte_class)
            if target < 0:
                return target
        if target == 0:
            continue
        alive += size[byte_class]
        if target == lexer_state:
            continue
        tmp = i32(ctx, TMP)
        k = 0
        while k < n and tmp[counts + 2 * k] != target:
            k += 1
        if k == n:
            if n == _CANDIDATES:
                continue
            tmp[counts + 2 * n] = target
            tmp[counts + 2 * n + 1] = 0
            n += 1
        tmp[counts + 2 * k + 1] += size[byte_class]
        if tmp[counts + 2 * k + 1] > most:
            base, most = target, int64(tmp[counts + 2 * k + 1])
    set_used(ctx, TMP, counts)
    if most < 16 or alive < 64:
        return int64(-1)
    same = int64(0)
    for byte_class in range(classes):
        target = far_call(ctx, F_LEXER_STEP, base, byte_class)
        if target < 0:
            return target
        if target == i32(ctx, LEX_TRANS)[lexer_state * classes + byte_class]:
            same += size[byte_class]
    return base if same >= _DELTA_BYTES else int64(-1)


@njit_inner(int64(CTX, int64, int64, int64))
def _next_child(ctx, wide, byte, state):
    """The first child of a wide node from ``byte`` on, with which a lexer state may go on; else the subtree's end."""
    children = i64(ctx, WIDE_MASKS)
    begins = i64(ctx, LEX_FIRST)
    rank = int64(i32(ctx, WIDE_FIRST)[wide])
    for word in range(4):
        own = children[4 * wide + word]
        if 64 * word + 63 >= byte:
            bits = own & begins[4 * state + word]
            if byte > 64 * word:
                bits &= int64(-1) << (byte - 64 * word)
            if bits:
                below = (int64(1) << lowest_bit(bits)) - 1
                return int64(i32(ctx, WIDE_CHILD)[rank + count_bits(own & below)])
        rank += count_bits(own)
    return int64(i32(ctx, WIDE_ENDS)[wide])


@njit_inner(int64(CTX, int64, int64, int64, int64))
def _next_difference(ctx, wide, byte, state, twin):
    """The first child of a wide node from ``byte`` on, at which two lexer states may differ; else the subtree's end."""
    children = i64(ctx, WIDE_MASKS)
    begins = i64(ctx, LEX_FIRST)
    class_of = u8(ctx, CLASS_OF)
    trans = i32(ctx, LEX_TRANS)
    here, there = state * ctx[CLASSES], twin * ctx[CLASSES]
    rank = int64(i32(ctx, WIDE_FIRST)[wide])
    for word in range(4):
        own = children[4 * wide + word]
        if 64 * word + 63 >= byte:
            bits = own & (begins[4 * state + word] | begins[4 * twin + word])
            if byte > 64 * word:
                bits &= int64(-1) << (byte - 64 * word)
            while bits:
                bit = lowest_bit(bits)
                byte_class = int64(class_of[64 * word + bit])
                next_state = trans[here + byte_class]
                if next_state < 0 or next_state != trans[there + byte_class]:
                    return int64(i32(ctx, WIDE_CHILD)[rank + count_bits(own & ((int64(1) << bit) - 1))])
                bits &= bits - 1
        rank += count_bits(own)
    return int64(i32(ctx, WIDE_ENDS)[wide])


@njit_inner(RESULT2)
def _delta_split(ctx, lexer_state, base):
    """Split a state by its difference from ``base``, whose split is known and dense; returns 0, FAIL or LIMIT."""
    words = ctx[N_WORDS]
    classes = ctx[CLASSES]
    nodes = i32(ctx, TRIE_NODE)
    sizes = i32(ctx, TRIE_SIZE)
    heights = i32(ctx, TRIE_HEIGHT)
    tokens = i32(ctx, TRIE_TOKEN)
    same = i32(ctx, SAME_BYTES)
    stack = i32(ctx, STACK)
    twins = i32(ctx, TWIN_STACK)
    class_of = u8(ctx, CLASS_OF)
    trans = i32(ctx, LEX_TRANS)
    scratch = i32(ctx, SCRATCH)
    records = i32(ctx, LEX)
    split = i32(ctx, SPLITS)
    known = int64(split[5 * base + SPLIT_CROSSINGS])
    known_end = known + int64(split[5 * base + SPLIT_CROSSING_COUNT])
    if not room(ctx, DENSE, words):
        return int64(FAIL)
    pool = i32(ctx, DENSE)
    dense = int64(split[5 * base + SPLIT_DENSE])
    for i in range(words):
        scratch[i] = pool[dense + i]
    first_crossing = used(ctx, CROSSINGS) // 2
    crossing = first_crossing
    if not room(ctx, TMP, 3 * _MARGIN_MEMO):
        return int64(FAIL)
    tmp = i32(ctx, TMP)
    memo = used(ctx, TMP)
    for i in range(3 * _MARGIN_MEMO):
        tmp[memo + i] = 0
    set_used(ctx, TMP, memo + 3 * _MARGIN_MEMO)
    wides = i32(ctx, WIDE_STACK)
    stack[0], twins[0], wides[0] = lexer_state, base, 0
    p = _next_difference(ctx, int64(0), int64(0), lexer_state, base)
    while True:
        # Where the two are one, what is known holds.
        crossings = i32(ctx, CROSSINGS)
        while known < known_end and crossings[2 * known] < p:
            if not room(ctx, CROSSINGS, 2 * (crossing - first_crossing + 1)):
                return int64(FAIL)
            crossings[2 * crossing] = crossings[2 * known]
            crossings[2 * crossing + 1] = crossings[2 * known + 1]
            crossing += 1
            known += 1
        if p >= len(nodes):
            break
        node = int64(nodes[p])
        depth = node >> DEPTH_SHIFT
        byte_class = int64(class_of[node & 255])
        here, twin = int64(stack[depth]), int64(twins[depth])
        there = int64(trans[here * classes + byte_class])
        if there < 0:
            there = far_call(ctx, F_LEXER_STEP, here, byte_class)
            if there < 0:
                return there
        next_twin = int64(trans[twin * classes + byte_class])
        if next_twin < 0:
            next_twin = far_call(ctx, F_LEXER_STEP, twin, byte_class)
            if next_twin < 0:
                return next_twin
        if there and next_twin and there != next_twin:
            # The pairs are few; a small table keeps what is known of them.
            place = memo + 3 * ((there * 31 + next_twin) & (_MARGIN_MEMO - 1))
            if tmp[place] != there or tmp[place + 1] != next_twin:
                tmp[place] = there
                tmp[place + 1] = next_twin
                tmp[place + 2] = _state_margin(ctx, there, next_twin)
            cut = tmp[place + 2] > heights[p]
        else:
            cut = there == next_twin
        if cut:
            if node & CHILD_OF_WIDE:
                p = _next_difference(ctx, int64(wides[depth]), (node & 255) + 1, here, twin)
            else:
                p += int64(sizes[p])
            continue
        if known < known_end and crossings[2 * known] == p:
            known += 1
        token = int64(tokens[p])
        while token >= 0:
            if there:
                scratch[token >> 5] |= 1 << (token & 31)
            else:
                scratch[token >> 5] &= ~(1 << (token & 31))
            token = int64(same[token]) if len(same) else int64(-1)
        accept = int64(records[4 * there + LEX_ACCEPT])
        if accept and sizes[p] > 1:
            if not room(ctx, CROSSINGS, 2 * (crossing - first_crossing + 1)):
                return int64(FAIL)
            crossings[2 * crossing] = p
            crossings[2 * crossing + 1] = accept
            crossing += 1
        stack[depth + 1], twins[depth + 1] = there, next_twin
        if node & WIDE:
            wides[depth + 1] = i32(ctx, TRIE_WIDE)[p]
            p = _next_difference(ctx, int64(wides[depth + 1]), int64(0), there, next_twin)
        else:
            p += 1
    set_used(ctx, TMP, memo)
    _keep_split(ctx, lexer_state, keep_dense(ctx), used(ctx, TOKEN_LISTS), first_crossing, crossing)
    return int64(0)


@njit_inner(RESULT1)
def _walk_split(ctx, lexer_state):
    """Split a state by a walk over the trie; returns 0, FAIL or LIMIT."""
    words = ctx[N_WORDS]
    nodes = i32(ctx, TRIE_NODE)
    sizes = i32(ctx, TRIE_SIZE)
    tokens = i32(ctx, TRIE_TOKEN)
    stack = i32(ctx, STACK)
    class_of = u8(ctx, CLASS_OF)
    scratch = i32(ctx, SCRATCH)
    classes = uint64(ctx[CLASSES])
    n_nodes = uint64(len(nodes))
    # Asked for before the walk: to find out afterwards would mean walking twice.
    if not room(ctx, DENSE, words) or not room(ctx, TOKEN_LISTS, words // 8):
        return int64(FAIL)
    found = i32(ctx, FOUND)
    n = uint64(0)
    first_crossing = used(ctx, CROSSINGS) // 2
    crossing = first_crossing
    trans = i32(ctx, LEX_TRANS)
    records = i32(ctx, LEX)
    crossings = i32(ctx, CROSSINGS)
    crossing_room = len(crossings) // 2
    wides = i32(ctx, WIDE_STACK)
    stack[0], wides[0] = lexer_state, 0
    # Unsigned indices spare the check for negative ones, a quarter of the walk's time.
    p = uint64(_next_child(ctx, int64(0), int64(0), lexer_state))
    while p < n_nodes:
        node = uint64(nodes[p])
        depth = node >> _SHIFT
        here = uint64(stack[depth])
        byte_class = uint64(class_of[node & _BYTE])
        there = int64(trans[here * classes + byte_class])
        if there <= 0:
            if there < 0:
                there = far_call(ctx, F_LEXER_STEP, int64(here), int64(byte_class))
                if there < 0:
                    return there
            if there == 0:
                if node & _CHILD_OF_WIDE:
                    p = uint64(_next_child(ctx, int64(wides[depth]), int64(node & _BYTE) + 1, int64(here)))
                else:
                    p += uint64(sizes[p])
                continue
        token = tokens[p]
        # Without a branch: whether a node ends a token is a coin toss to the processor.
        found[n] = token
        n += uint64(token >= 0)
        stack[depth + uint64(1)] = there
        record = uint64(4 * there)
        accept = records[record + uint64(LEX_ACCEPT)]
        if accept != 0 and sizes[p] > 1:
            if crossing == crossing_room:
                room(ctx, CROSSINGS, 2 * (crossing - first_crossing + 1))
                return int64(FAIL)
            crossings[2 * crossing] = p
            crossings[2 * crossing + 1] = accept
            crossing += 1
            if records[record + uint64(LEX_GOES_ON)] == 0:
                p += uint64(sizes[p])
                continue
        if node & _WIDE:
            wides[depth + uint64(1)] = i32(ctx, TRIE_WIDE)[p]
            p = uint64(_next_child(ctx, int64(wides[depth + uint64(1)]), int64(0), there))
        else:
            p += uint64(1)
    same = i32(ctx, SAME_BYTES)
    if len(same):
        for i in range(int64(n)):
            token = same[found[i]]
            while token >= 0:
                found[n] = token
                n += uint64(1)
                token = same[token]
    dense = int64(-1)
    first = used(ctx, TOKEN_LISTS)
    count = int64(n)
    if count > words // 8:
        for i in range(words):
            scratch[i] = 0
        for i in range(n):
            token = found[i]
            scratch[uint64(token) >> _WORD] |= int32(1) << (token & int32(31))
        dense = keep_dense(ctx)
        if _print_of(ctx, lexer_state, 0) != 0:
            ctx[NEW_SPLIT] = lexer_state
    else:
        lists = i32(ctx, TOKEN_LISTS)
        for i in range(count):
            lists[first + i] = found[i]
        set_used(ctx, TOKEN_LISTS, first + count)
    _keep_split(ctx, lexer_state, dense, first, first_crossing, crossing)
    return int64(0)


@njit_inner(RESULT2)
def split(ctx, lexer_state, _unused):
    """Split the tokens of a lexer state unless that is done; returns 0, FAIL or LIMIT.

    NEW_SPLIT in the header is set to the state if the split is worth publishing.
    """
    if i32(ctx, SPLITS)[5 * lexer_state + SPLIT_DENSE] != NOT_SPLIT:
        return int64(0)
    twin = unbounded_twin(ctx, lexer_state, int64(0))
    if twin < 0:
        return twin
    if twin != lexer_state:
        status = far_call(ctx, F_SPLIT, twin, 0)
        if status < 0:
            return status
        record = i32(ctx, SPLITS)
        for i in range(5):
            record[5 * lexer_state + i] = record[5 * twin + i]
        return int64(0)
    status = _import_split(ctx, lexer_state)
    if status != 0:
        return min(status, int64(0))
    base = _uncounted(ctx, lexer_state)
    if base == -1:
        base = _find_base(ctx, lexer_state)
    elif base >= 0 and _state_margin(ctx, lexer_state, base) < _SHORT:
        base = int64(-1)
    if base < -1:
        return base
    if base >= 0:
        if i32(ctx, SPLITS)[5 * base + SPLIT_DENSE] == NOT_SPLIT:
            status = _import_split(ctx, base)
            if status == 0:
                status = _walk_split(ctx, base)
            if status < 0:
                return status
        if i32(ctx, SPLITS)[5 * base + SPLIT_DENSE] >= 0:
            return _delta_split(ctx, lexer_state, base)
    return _walk_split(ctx, lexer_state)


far_entry(F_SPLIT, split)
