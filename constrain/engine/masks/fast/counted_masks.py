"""Splits of states that count what takes several bytes: words, lines, groups of digits; and beside that characters.

A state with n words to come goes on like one with any number of them, its *free* state, until so many words are read.
So the two have the same tokens, but for those long enough to tell them apart.  How long that is follows from the
expressions: n repetitions take n times the bytes of the shortest one.  The free state is split once.  For each number
of words the trie is then walked with both states, only along paths that lead to tokens long enough.

A string that has a length too is the intersection of its pattern and a counter of characters.  If every string of the
pattern is a sequence of characters anyway, the free state is that of the pattern.  The two agree as long as what is
begun can be completed before the characters run out.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from numba import int32, int64, types

from constrain.engine.automata.expressions import (
    COMPLEX_FLAG,
    CONCAT,
    EPSILON,
    FITS_FLAG,
    INTERSECT,
    NULLABLE_FLAG,
    REPEAT,
    RESULT1,
    RESULT2,
    SET,
    UNION,
    make_concat,
    make_repeat,
)
from constrain.engine.automata.lexer_states import (
    LEX_ACCEPT,
    LEX_COUNT,
    LEX_OFFSET,
    NO_DENSE,
    SPLIT_COUNT,
    SPLIT_CROSSING_COUNT,
    SPLIT_CROSSINGS,
    SPLIT_DENSE,
    SPLIT_LIST,
)
from constrain.engine.masks.fast.self_loops import next_node
from constrain.engine.masks.lexer_masks import add_dense, clear_scratch, keep_dense, keep_split
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.tables import (
    CLASS_OF,
    CLASSES,
    CROSSINGS,
    CTX,
    DENSE,
    F_AGREE,
    F_COUNTED,
    F_FREE,
    F_LEXER_STATE,
    F_LEXER_STEP,
    F_SET_OPERATION,
    F_SPLIT,
    FAIL,
    LEX,
    LEX_AGREED,
    LEX_FIRST,
    LEX_HASH,
    LEX_POOL,
    LEX_TRANS,
    LONGEST,
    N_WORDS,
    NODE_FIRST,
    NODE_REACH,
    NODE_SHORTEST,
    NODES,
    POOL,
    SAME_BYTES,
    SCRATCH,
    SPLITS,
    STACK,
    TMP,
    TOKEN_LISTS,
    TRIE_HEIGHT,
    TRIE_NODE,
    TRIE_SIZE,
    TRIE_TOKEN,
    WIDE_STACK,
    count_bits,
    far_call,
    far_entry,
    i32,
    i64,
    room,
    set_used,
    u8,
    used,
)
from constrain.engine.vocabulary.trie import DEPTH_SHIFT

# States that go on with fewer bytes than this, which are those of ASCII alone, are as quickly walked.
_LEAST_BYTES = 128
# Bounds that are felt within so many bytes leave too little in common.
_LEAST_AGREED = 6
# What may come once or twice is no counter.
_LEAST_HIGH = 4
# Unions of more parts, longer sequences and deeper trees are not looked into.
_MOST_PARTS = 8
_MOST_DEPTH = 6
_MOST_STEPS = 32
_DEPTH = 40
_NODE = (1 << _DEPTH) - 1
_ALWAYS = 1 << 30


@njit_inner(RESULT1)
def _counted_part(ctx, node):
    """Of an intersection with a counter of characters that may be left out, the other part; -1 if it is none.

    See nodes.FITS_FLAG.  The counter may stand behind the rest of a character.
    """
    nodes = i32(ctx, NODES)
    if not nodes[4 * node] & FITS_FLAG or nodes[4 * node + 2] != 2:
        return int64(-1)
    first = int64(nodes[4 * node + 1])
    found, widest = int64(-1), int64(-1)
    for i in range(2):
        counter, other = int64(i32(ctx, POOL)[first + i]), int64(i32(ctx, POOL)[first + 1 - i])
        # Where both parts count, that one counts characters which begins with more bytes: it allows all of the other.
        width = int64(0)
        for word in range(4):
            width += count_bits(i64(ctx, NODE_FIRST)[4 * counter + word])
        begun = nodes[4 * counter] & 255 == CONCAT
        for _ in range(_MOST_PARTS):
            if nodes[4 * counter] & 255 == CONCAT:
                counter = int64(nodes[4 * counter + 2])
        if nodes[4 * counter] & 255 != REPEAT or nodes[4 * counter + 3] < 0 or nodes[4 * other] & COMPLEX_FLAG:
            continue
        low = nodes[4 * counter + 2]
        if low > 1 or (low == 1 and (begun or nodes[4 * other] & NULLABLE_FLAG)):
            continue
        if width == widest:
            return int64(-1)
        if width > widest:
            found, widest = counter << 32 | other, width
    return found


@njit_inner(RESULT2)
def _free_of(ctx, node, depth):
    """An expression without its bounds on what takes several bytes, and without a counter of characters; FAIL or LIMIT.

    Bounds are left out at the top only, not within what is repeated: there they begin anew each time.
    """
    nodes = i32(ctx, NODES)
    kind = nodes[4 * node] & 255
    if depth > _MOST_DEPTH:
        return node
    if kind == INTERSECT:
        counted = _counted_part(ctx, node)
        return node if counted < 0 else far_call(ctx, F_FREE, counted & 0xFFFFFFFF, depth + 1)
    if kind == REPEAT:
        item = int64(nodes[4 * node + 1])
        high = int64(nodes[4 * node + 3])
        if (
            nodes[4 * node] & COMPLEX_FLAG
            or nodes[4 * item] & 255 == SET
            or high < _LEAST_HIGH
            or high * int64(i32(ctx, NODE_SHORTEST)[item]) < _LEAST_AGREED
        ):
            return node
        return make_repeat(ctx, item, int64(nodes[4 * node + 2]), int64(-1))
    if kind != UNION and kind != CONCAT:
        return node
    # The parts are put on the stack, and made into one again.
    base = used(ctx, TMP)
    if not room(ctx, TMP, _MOST_PARTS + 1):
        return int64(FAIL)
    if kind == UNION:
        count = int64(nodes[4 * node + 2])
        if count > _MOST_PARTS:
            return node
        for i in range(count):
            i32(ctx, TMP)[base + i] = i32(ctx, POOL)[nodes[4 * node + 1] + i]
    else:
        count, rest = int64(0), node
        while nodes[4 * rest] & 255 == CONCAT and count < _MOST_PARTS:
            i32(ctx, TMP)[base + count] = nodes[4 * rest + 1]
            rest = int64(nodes[4 * rest + 2])
            count += 1
        i32(ctx, TMP)[base + count] = rest
        count += 1
    set_used(ctx, TMP, base + count)
    changed = False
    for i in range(count):
        part = int64(i32(ctx, TMP)[base + i])
        free = far_call(ctx, F_FREE, part, depth + 1)
        if free < 0:
            return free
        changed = changed or free != part
        i32(ctx, TMP)[base + i] = free
    if changed and kind == UNION:
        return far_call(ctx, F_SET_OPERATION, int64(UNION), base)
    if changed:
        node = int64(i32(ctx, TMP)[base + count - 1])
        for i in range(count - 2, -1, -1):
            node = make_concat(ctx, int64(i32(ctx, TMP)[base + i]), node)
            if node < 0:
                return node
    set_used(ctx, TMP, base)
    return node


@njit_inner(RESULT1)
def _spread(ctx, node):
    """Of a sequence that begins with a union, the union of sequences; -1 for anything else or if there is no room."""
    nodes = i32(ctx, NODES)
    if nodes[4 * node] & 255 != CONCAT:
        return int64(-1)
    head, tail = int64(nodes[4 * node + 1]), int64(nodes[4 * node + 2])
    count = int64(nodes[4 * head + 2])
    if nodes[4 * head] & 255 != UNION or count > _MOST_PARTS or not room(ctx, TMP, count):
        return int64(-1)
    base = used(ctx, TMP)
    set_used(ctx, TMP, base + count)
    for i in range(count):
        part = make_concat(ctx, int64(i32(ctx, POOL)[nodes[4 * head + 1] + i]), tail)
        if part < 0:
            set_used(ctx, TMP, base)
            return int64(-1)
        i32(ctx, TMP)[base + i] = part
    return max(far_call(ctx, F_SET_OPERATION, int64(UNION), base), int64(-1))


@njit_inner(RESULT2)
def _agreed(ctx, node_and_depth, free):
    """A number of bytes up to which an expression cannot be told from another, which lacks some of its bounds.

    Neither by whether a text of up to so many bytes is a beginning of a string, nor by whether it is one.  -1 if that
    is not so even without any byte, or not known.  The depth of the recursion stands above the node's _DEPTH bits.
    """
    nodes = i32(ctx, NODES)
    node, depth = node_and_depth & _NODE, (node_and_depth >> _DEPTH) + 1
    shortest = i32(ctx, NODE_SHORTEST)
    # ``before`` bytes at least are read before what is looked at; and up to ``agreed`` all is the same.
    before, agreed = int64(0), int64(_ALWAYS)
    if depth > _MOST_DEPTH:
        return int64(-1)
    for _ in range(_MOST_STEPS):
        if node == free:
            return agreed
        kind = nodes[4 * node] & 255
        head, tail = node, int64(EPSILON)
        if kind == CONCAT:
            head, tail = int64(nodes[4 * node + 1]), int64(nodes[4 * node + 2])
        if nodes[4 * head] & 255 == INTERSECT and head != free:
            counted = _counted_part(ctx, head)
            if counted < 0:
                return min(agreed, before - 1)
            other = counted & 0xFFFFFFFF
            spare = int64(nodes[4 * (counted >> 32) + 3]) - int64(i32(ctx, NODE_REACH)[other])
            agreed = min(agreed, before + max(spare, int64(-1)))
            # Without the counter it may be a part of the sequence.
            node = make_concat(ctx, other, tail)
            if node < 0:
                return int64(-1)
            continue
        if kind != nodes[4 * free] & 255:
            # What follows a union may be part of it.
            if kind == UNION:
                free = _spread(ctx, free)
            else:
                node = _spread(ctx, node)
            if node < 0 or free < 0:
                return min(agreed, before - 1)
            continue
        if kind == UNION:
            here, there = int64(nodes[4 * node + 2]), int64(nodes[4 * free + 2])
            if here > _MOST_PARTS or there > _MOST_PARTS:
                return min(agreed, before - 1)
            # Each part has one like it on the other side.
            for i in range(here):
                part, best = int64(i32(ctx, POOL)[nodes[4 * node + 1] + i]), int64(-1)
                for j in range(there):
                    other = int64(i32(ctx, POOL)[nodes[4 * free + 1] + j])
                    best = max(best, far_call(ctx, F_AGREE, depth << _DEPTH | part, other))
                agreed = min(agreed, before + best)
            for j in range(there):
                other, best = int64(i32(ctx, POOL)[nodes[4 * free + 1] + j]), int64(-1)
                for i in range(here):
                    part = int64(i32(ctx, POOL)[nodes[4 * node + 1] + i])
                    best = max(best, far_call(ctx, F_AGREE, depth << _DEPTH | part, other))
                agreed = min(agreed, before + best)
            return agreed
        free_head, free_tail = free, int64(EPSILON)
        if kind == CONCAT:
            free_head, free_tail = int64(nodes[4 * free + 1]), int64(nodes[4 * free + 2])
        if head == free_head:
            before += int64(shortest[head])
        elif nodes[4 * head] & 255 == REPEAT:
            item, high = int64(nodes[4 * head + 1]), int64(nodes[4 * head + 3])
            if (
                nodes[4 * free_head] & 255 != REPEAT
                or nodes[4 * free_head + 1] != item
                or nodes[4 * free_head + 2] != nodes[4 * head + 2]
                or nodes[4 * free_head + 3] >= 0
            ):
                return min(agreed, before - 1)
            agreed = min(agreed, before + high * int64(shortest[item]))
        elif kind == CONCAT:
            agreed = min(agreed, before + far_call(ctx, F_AGREE, depth << _DEPTH | head, free_head))
        else:
            return min(agreed, before - 1)
        node, free = tail, free_tail
    return min(agreed, before - 1)


@njit_inner(RESULT2)
def _states_agree(ctx, state, free):
    """A number of bytes up to which two lexer states cannot be told apart, as for :func:`_agreed`."""
    lex, pool = i32(ctx, LEX), i32(ctx, LEX_POOL)
    count = int64(lex[4 * state + LEX_COUNT])
    if count != lex[4 * free + LEX_COUNT]:
        return int64(-1)
    here, there = int64(lex[4 * state + LEX_OFFSET]), int64(lex[4 * free + LEX_OFFSET])
    agreed = int64(_ALWAYS)
    for i in range(0, 2 * count, 2):
        if pool[here + i] != pool[there + i]:
            return int64(-1)
        agreed = min(agreed, far_call(ctx, F_AGREE, int64(pool[here + i + 1]), int64(pool[there + i + 1])))
    return agreed


@njit_inner(RESULT2)
def _known_agreed(ctx, state, free):
    """What :func:`_states_agree` says, kept for the state's last partner; or FAIL."""
    pairs = i32(ctx, LEX_AGREED)
    count = used(ctx, LEX_AGREED)
    if 2 * state >= count:
        # Room for all states that there are by now.
        wanted = 2 * used(ctx, LEX_HASH)
        if not room(ctx, LEX_AGREED, wanted - count):
            return int64(FAIL)
        for i in range(count, wanted):
            pairs[i] = -1
        set_used(ctx, LEX_AGREED, wanted)
    if pairs[2 * state] != free:
        pairs[2 * state], pairs[2 * state + 1] = free, _states_agree(ctx, state, free)
    return int64(pairs[2 * state + 1])


@njit_inner(RESULT1)
def _free_state(ctx, lexer_state):
    """The free state of a state; -1 if there is none, FAIL or LIMIT."""
    count = int64(i32(ctx, LEX)[4 * lexer_state + LEX_COUNT])
    offset = int64(i32(ctx, LEX)[4 * lexer_state + LEX_OFFSET])
    base = used(ctx, TMP)
    if not room(ctx, TMP, 2 * count):
        return int64(FAIL)
    set_used(ctx, TMP, base + 2 * count)
    changed = False
    for i in range(0, 2 * count, 2):
        node = int64(i32(ctx, LEX_POOL)[offset + i + 1])
        head = node
        if i32(ctx, NODES)[4 * node] & 255 == CONCAT:
            head = int64(i32(ctx, NODES)[4 * node + 1])
        # What begins with counted characters or blanks is looked after by repetitions.py and star_closures.py.
        free = node
        if (
            i32(ctx, NODES)[4 * head] & 255 != REPEAT
            or i32(ctx, NODES)[4 * head + 3] < 0
            or i32(ctx, NODE_SHORTEST)[int64(i32(ctx, NODES)[4 * head + 1])] > 1
        ):
            free = far_call(ctx, F_FREE, node, 0)
            if free < 0:
                return free
        changed = changed or free != node
        i32(ctx, TMP)[base + i] = i32(ctx, LEX_POOL)[offset + i]
        i32(ctx, TMP)[base + i + 1] = free
    result = far_call(ctx, F_LEXER_STATE, base, count) if changed else int64(-1)
    set_used(ctx, TMP, base)
    return result


@njit_inner(RESULT1)
def _find_heights(ctx, _unused):
    """Note for each trie node how many bytes the longest token below it is longer; returns 0 or FAIL."""
    nodes = i32(ctx, TRIE_NODE)
    count = len(nodes)
    if used(ctx, TRIE_HEIGHT) == count:
        return int64(0)
    if not room(ctx, TRIE_HEIGHT, count):
        return int64(FAIL)
    # Backwards, children come before their parent: for each depth, one more than the greatest height of a child.
    below = i32(ctx, STACK)
    for depth in range(len(below)):
        below[depth] = 0
    heights = i32(ctx, TRIE_HEIGHT)
    for p in range(count - 1, -1, -1):
        depth = int64(nodes[p]) >> DEPTH_SHIFT
        height = below[depth + 1]
        heights[p] = height
        below[depth + 1] = 0
        below[depth] = max(below[depth], height + int32(1))
    set_used(ctx, TRIE_HEIGHT, count)
    return int64(0)


@njit_inner(RESULT2)
def _differences(ctx, lexer_state, free):
    """Append to TMP the trie nodes at which two states differ, upwards; returns 0, FAIL or LIMIT.

    They are (node, -1) if nothing is left of the first state there, or (node, the set of lexemes that can end there).
    """
    nodes = i32(ctx, TRIE_NODE)
    sizes = i32(ctx, TRIE_SIZE)
    heights = i32(ctx, TRIE_HEIGHT)
    stack = i32(ctx, STACK)
    beside = i32(ctx, WIDE_STACK)
    class_of = u8(ctx, CLASS_OF)
    classes = ctx[CLASSES]
    trans = i32(ctx, LEX_TRANS)
    records = i32(ctx, LEX)
    stack[0], beside[0] = lexer_state, free
    p = int64(0)
    while p < len(nodes):
        depth = int64(nodes[p]) >> DEPTH_SHIFT
        byte_class = int64(class_of[nodes[p] & 255])
        here, before = int64(stack[depth]), int64(beside[depth])
        other = int64(trans[before * classes + byte_class])
        if other < 0:
            other = far_call(ctx, F_LEXER_STEP, before, byte_class)
            if other < 0:
                return other
        there = int64(trans[here * classes + byte_class])
        if there < 0:
            there = far_call(ctx, F_LEXER_STEP, here, byte_class)
            if there < 0:
                return there
        if there == other:
            p += int64(sizes[p])
            continue
        accept = int64(records[4 * there + LEX_ACCEPT]) if there else int64(-1)
        if accept != records[4 * other + LEX_ACCEPT]:
            if not room(ctx, TMP, 2):
                return int64(FAIL)
            top = used(ctx, TMP)
            i32(ctx, TMP)[top], i32(ctx, TMP)[top + 1] = p, accept
            set_used(ctx, TMP, top + 2)
        if there == 0:
            p += int64(sizes[p])
            continue
        agreed = _known_agreed(ctx, there, other)
        if agreed == FAIL:
            return int64(FAIL)
        if heights[p] <= agreed:
            p += int64(sizes[p])
            continue
        stack[depth + 1], beside[depth + 1] = there, other
        p += 1
    return int64(0)


@njit_inner(int64(CTX, int64, int64, int64))
def _accept_at(ctx, base, node, accept):
    """What can end at a node: ``accept``, if no difference (from ``TMP[base]`` on) says other; 0 if nothing can."""
    differences = i32(ctx, TMP)
    low, high = base, used(ctx, TMP)
    while low < high:
        middle = low + (high - low) // 4 * 2
        if differences[middle] <= node:
            low = middle + 2
        else:
            high = middle
    if low == base:
        return accept
    place, other = int64(differences[low - 2]), int64(differences[low - 1])
    if other < 0 and node < place + int64(i32(ctx, TRIE_SIZE)[place]):
        return int64(0)
    return other if place == node else accept


@njit_inner(types.boolean(CTX, int64, int64, int64))
def _differ_within(ctx, base, first, end):
    """Whether there is a difference (from ``TMP[base]`` on) at a trie node from ``first`` on, before ``end``."""
    differences = i32(ctx, TMP)
    low, high = base, used(ctx, TMP)
    while low < high:
        middle = low + (high - low) // 4 * 2
        if differences[middle] < first:
            low = middle + 2
        else:
            high = middle
    return low < used(ctx, TMP) and differences[low] < end


@njit_inner(RESULT2)
def _change_crossings(ctx, free, base):
    """Append the crossings of a state to CROSSINGS, changed where there is a difference; returns their end, or FAIL."""
    split = i32(ctx, SPLITS)
    sizes = i32(ctx, TRIE_SIZE)
    begin, count = int64(split[5 * free + SPLIT_CROSSINGS]), int64(split[5 * free + SPLIT_CROSSING_COUNT])
    pairs = i32(ctx, CROSSINGS)
    first = end = used(ctx, CROSSINGS) // 2
    # Crossings come in any order if they were found by their last bytes (fast/star_closures.py): a bisection for each.
    for i in range(begin, begin + count):
        crossing, known = int64(pairs[2 * i]), int64(pairs[2 * i + 1])
        node, top, as_one = crossing, ~crossing, False
        if crossing < 0:
            # All of a subtree; node by node where the states differ within.
            as_one = not _differ_within(ctx, base, top, top + int64(sizes[top]))
            node = top if as_one else next_node(ctx, crossing, top)
        while node >= 0:
            accept = _accept_at(ctx, base, node, known)
            if accept != 0:
                if 2 * end + 2 > len(pairs):
                    # Much at once, since all of this is then done again.
                    room(ctx, CROSSINGS, 8 * (end - first + 1))
                    return int64(FAIL)
                pairs[2 * end] = crossing if as_one else node
                pairs[2 * end + 1] = accept
                end += 1
            node = int64(-1) if crossing >= 0 or as_one else next_node(ctx, crossing, node + 1)
    return end


@njit_inner(RESULT2)
def counted_split(ctx, lexer_state, _unused):
    """Split a state by the split of its free state; returns 1, 0 if that does not fit, FAIL or LIMIT."""
    begins = i64(ctx, LEX_FIRST)
    width = int64(0)
    for word in range(4):
        width += count_bits(begins[4 * lexer_state + word])
    if width < _LEAST_BYTES:
        return int64(0)
    free = _free_state(ctx, lexer_state)
    if free < 0:
        return int64(0) if free == -1 else free
    agreed = _states_agree(ctx, lexer_state, free)
    if agreed < _LEAST_AGREED:
        return int64(0)
    status = far_call(ctx, F_SPLIT, free, 0)
    if status < 0:
        return status
    split = i32(ctx, SPLITS)
    base = used(ctx, TMP)
    if agreed < ctx[LONGEST]:
        words = ctx[N_WORDS]
        if not room(ctx, DENSE, words) or _find_heights(ctx, 0) < 0:
            return int64(FAIL)
        status = _differences(ctx, lexer_state, free)
        if status < 0:
            return status
    top = used(ctx, TMP)
    if top == base:
        for i in range(5):
            split[5 * lexer_state + i] = split[5 * free + i]
        return int64(1)

    differences = i32(ctx, TMP)
    sizes = i32(ctx, TRIE_SIZE)
    first_crossing = used(ctx, CROSSINGS) // 2
    end = _change_crossings(ctx, free, base)
    if end < 0:
        return end
    set_used(ctx, CROSSINGS, 2 * end)

    scratch = i32(ctx, SCRATCH)
    tokens = i32(ctx, TRIE_TOKEN)
    same = i32(ctx, SAME_BYTES)
    lists = i32(ctx, TOKEN_LISTS)
    clear_scratch(ctx)
    if split[5 * free + SPLIT_DENSE] != NO_DENSE:
        add_dense(ctx, int64(split[5 * free + SPLIT_DENSE]))
    begin = int64(split[5 * free + SPLIT_LIST])
    for i in range(begin, begin + int64(split[5 * free + SPLIT_COUNT])):
        scratch[lists[i] >> 5] |= int32(1) << int32(lists[i] & 31)
    for i in range(base, top, 2):
        if differences[i + 1] < 0:
            place = int64(differences[i])
            for p in range(place, place + int64(sizes[place])):
                token = int64(tokens[p])
                while token >= 0:
                    scratch[token >> 5] &= ~(int32(1) << int32(token & 31))
                    token = int64(same[token]) if len(same) else int64(-1)
    set_used(ctx, TMP, base)
    keep_split(ctx, lexer_state, keep_dense(ctx), used(ctx, TOKEN_LISTS), first_crossing)
    return int64(1)


far_entry(F_FREE, _free_of)
far_entry(F_AGREE, _agreed)
far_entry(F_COUNTED, counted_split)
