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

from constrain.engine.automata.expressions import (
    COMPLEX_FLAG,
    CONCAT,
    EPSILON,
    FITS_FLAG,
    INTERSECT,
    NULLABLE_FLAG,
    REPEAT,
    SET,
    UNION,
    make_concat,
    make_repeat,
)
from constrain.engine.automata.lexer_states import (
    NO_DENSE,
    SPLIT_COUNT,
    SPLIT_DENSE,
    SPLIT_LIST,
)
from constrain.engine.masks.boundaries import next_node
from constrain.engine.masks.lexer_masks import add_dense, clear_scratch, keep_dense, keep_lexer_mask
from constrain.engine.storage.access import i32, room, set_used, used
from constrain.engine.storage.bits import count_bits
from constrain.engine.storage.header import CLASSES, CTX, LONGEST, N_WORDS, RESULT1, RESULT2
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import (
    F_AGREE,
    F_COUNTED,
    F_FREE,
    F_LEXER_MASK,
    F_LEXER_STATE,
    F_LEXER_STEP,
    F_SET_OPERATION,
    far_call,
    far_entry,
)
from constrain.engine.storage.schemas import (
    AGREEMENTS,
    BOUNDARIES,
    DENSE_MASKS,
    LEXER_MASKS,
    LEXER_STATE_HASHES,
    TOKEN_LISTS,
    TRIE_HEIGHT,
    WORK_STACK,
    agreements,
    boundaries,
    byte_classes,
    children,
    end_lengths,
    expressions,
    first_bytes,
    lexer_first_bytes,
    lexer_masks,
    lexer_members,
    lexer_states,
    lexer_transitions,
    node_tokens,
    same_bytes,
    scratch_mask,
    shortest_lengths,
    subtree_sizes,
    token_lists,
    trie_height,
    trie_nodes,
    walk_stack,
    wide_stack,
    work_stack,
)
from constrain.engine.storage.statuses import FAIL, NOT_MINE
from constrain.engine.vocabulary.trie import DEPTH_SHIFT
from constrain.kernels.language import int32, int64, types

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
    nodes = expressions(ctx)
    if not nodes[node].flags & FITS_FLAG or nodes[node].second != 2:
        return int64(-1)
    first = nodes[node].first
    found, widest = int64(-1), int64(-1)
    for i in range(2):
        counter, other = children(ctx)[first + i], children(ctx)[first + 1 - i]
        # Where both parts count, that one counts characters which begins with more bytes: it allows all of the other.
        width = int64(0)
        for word in range(4):
            width += count_bits(first_bytes(ctx)[counter, word])
        begun = nodes[counter].kind == CONCAT
        for _ in range(_MOST_PARTS):
            if nodes[counter].kind == CONCAT:
                counter = nodes[counter].second
        if nodes[counter].kind != REPEAT or nodes[counter].third < 0 or nodes[other].flags & COMPLEX_FLAG:
            continue
        low = nodes[counter].second
        if low > 1 or (low == 1 and (begun or nodes[other].flags & NULLABLE_FLAG)):
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
    nodes = expressions(ctx)
    kind = nodes[node].kind
    if depth > _MOST_DEPTH:
        return node
    if kind == INTERSECT:
        counted = _counted_part(ctx, node)
        return node if counted < 0 else far_call(ctx, F_FREE, counted & 0xFFFFFFFF, depth + 1)
    if kind == REPEAT:
        item = nodes[node].first
        high = nodes[node].third
        if (
            nodes[node].flags & COMPLEX_FLAG
            or nodes[item].kind == SET
            or high < _LEAST_HIGH
            or high * shortest_lengths(ctx)[item] < _LEAST_AGREED
        ):
            return node
        return make_repeat(ctx, item, nodes[node].second, int64(-1))
    if kind != UNION and kind != CONCAT:
        return node
    # The parts are put on the stack, and made into one again.
    base = used(ctx, WORK_STACK)
    if not room(ctx, WORK_STACK, _MOST_PARTS + 1):
        return int64(FAIL)
    if kind == UNION:
        count = nodes[node].second
        if count > _MOST_PARTS:
            return node
        for i in range(count):
            work_stack(ctx)[base + i] = children(ctx)[nodes[node].first + i]
    else:
        count, rest = int64(0), node
        while nodes[rest].kind == CONCAT and count < _MOST_PARTS:
            work_stack(ctx)[base + count] = nodes[rest].first
            rest = nodes[rest].second
            count += 1
        work_stack(ctx)[base + count] = rest
        count += 1
    set_used(ctx, WORK_STACK, base + count)
    changed = False
    for i in range(count):
        part = work_stack(ctx)[base + i]
        free = far_call(ctx, F_FREE, part, depth + 1)
        if free < 0:
            return free
        changed = changed or free != part
        work_stack(ctx)[base + i] = free
    if changed and kind == UNION:
        return far_call(ctx, F_SET_OPERATION, int64(UNION), base)
    if changed:
        node = work_stack(ctx)[base + count - 1]
        for i in range(count - 2, -1, -1):
            node = make_concat(ctx, work_stack(ctx)[base + i], node)
            if node < 0:
                return node
    set_used(ctx, WORK_STACK, base)
    return node


@njit_inner(RESULT1)
def _spread(ctx, node):
    """Of a sequence that begins with a union, the union of sequences; -1 for anything else or if there is no room."""
    nodes = expressions(ctx)
    if nodes[node].kind != CONCAT:
        return int64(-1)
    head, tail = nodes[node].first, nodes[node].second
    count = nodes[head].second
    if nodes[head].kind != UNION or count > _MOST_PARTS or not room(ctx, WORK_STACK, count):
        return int64(-1)
    base = used(ctx, WORK_STACK)
    set_used(ctx, WORK_STACK, base + count)
    for i in range(count):
        part = make_concat(ctx, children(ctx)[nodes[head].first + i], tail)
        if part < 0:
            set_used(ctx, WORK_STACK, base)
            return int64(-1)
        work_stack(ctx)[base + i] = part
    return max(far_call(ctx, F_SET_OPERATION, int64(UNION), base), int64(-1))


@njit_inner(RESULT2)
def _agreed(ctx, node_and_depth, free):
    """A number of bytes up to which an expression cannot be told from another, which lacks some of its bounds.

    Neither by whether a text of up to so many bytes is a beginning of a string, nor by whether it is one.  -1 if that
    is not so even without any byte, or not known.  The depth of the recursion stands above the node's _DEPTH bits.
    """
    nodes = expressions(ctx)
    node, depth = node_and_depth & _NODE, (node_and_depth >> _DEPTH) + 1
    shortest = shortest_lengths(ctx)
    # ``before`` bytes at least are read before what is looked at; and up to ``agreed`` all is the same.
    before, agreed = int64(0), int64(_ALWAYS)
    if depth > _MOST_DEPTH:
        return int64(-1)
    for _ in range(_MOST_STEPS):
        if node == free:
            return agreed
        kind = nodes[node].kind
        head, tail = node, int64(EPSILON)
        if kind == CONCAT:
            head, tail = nodes[node].first, nodes[node].second
        if nodes[head].kind == INTERSECT and head != free:
            counted = _counted_part(ctx, head)
            if counted < 0:
                return min(agreed, before - 1)
            other = counted & 0xFFFFFFFF
            spare = nodes[counted >> 32].third - end_lengths(ctx)[other]
            agreed = min(agreed, before + max(spare, int64(-1)))
            # Without the counter it may be a part of the sequence.
            node = make_concat(ctx, other, tail)
            if node < 0:
                return int64(-1)
            continue
        if kind != nodes[free].kind:
            # What follows a union may be part of it.
            if kind == UNION:
                free = _spread(ctx, free)
            else:
                node = _spread(ctx, node)
            if node < 0 or free < 0:
                return min(agreed, before - 1)
            continue
        if kind == UNION:
            here, there = nodes[node].second, nodes[free].second
            if here > _MOST_PARTS or there > _MOST_PARTS:
                return min(agreed, before - 1)
            # Each part has one like it on the other side.
            for i in range(here):
                part, best = children(ctx)[nodes[node].first + i], int64(-1)
                for j in range(there):
                    other = children(ctx)[nodes[free].first + j]
                    best = max(best, far_call(ctx, F_AGREE, depth << _DEPTH | part, other))
                agreed = min(agreed, before + best)
            for j in range(there):
                other, best = children(ctx)[nodes[free].first + j], int64(-1)
                for i in range(here):
                    part = children(ctx)[nodes[node].first + i]
                    best = max(best, far_call(ctx, F_AGREE, depth << _DEPTH | part, other))
                agreed = min(agreed, before + best)
            return agreed
        free_head, free_tail = free, int64(EPSILON)
        if kind == CONCAT:
            free_head, free_tail = nodes[free].first, nodes[free].second
        if head == free_head:
            before += shortest[head]
        elif nodes[head].kind == REPEAT:
            item, high = nodes[head].first, nodes[head].third
            if (
                nodes[free_head].kind != REPEAT
                or nodes[free_head].first != item
                or nodes[free_head].second != nodes[head].second
                or nodes[free_head].third >= 0
            ):
                return min(agreed, before - 1)
            agreed = min(agreed, before + high * shortest[item])
        elif kind == CONCAT:
            agreed = min(agreed, before + far_call(ctx, F_AGREE, depth << _DEPTH | head, free_head))
        else:
            return min(agreed, before - 1)
        node, free = tail, free_tail
    return min(agreed, before - 1)


@njit_inner(RESULT2)
def _states_agree(ctx, state, free):
    """A number of bytes up to which two lexer states cannot be told apart, as for :func:`_agreed`."""
    lex, pool = lexer_states(ctx), lexer_members(ctx)
    count = lex[state].count
    if count != lex[free].count:
        return int64(-1)
    here, there = lex[state].offset, lex[free].offset
    agreed = int64(_ALWAYS)
    for i in range(0, 2 * count, 2):
        if pool[here + i] != pool[there + i]:
            return int64(-1)
        agreed = min(agreed, far_call(ctx, F_AGREE, pool[here + i + 1], pool[there + i + 1]))
    return agreed


@njit_inner(RESULT2)
def _known_agreed(ctx, state, free):
    """What :func:`_states_agree` says, kept for the state's last partner; or FAIL."""
    pairs = agreements(ctx)
    count = used(ctx, AGREEMENTS)
    if state >= count:
        # Room for all states that there are by now.
        wanted = used(ctx, LEXER_STATE_HASHES)
        if not room(ctx, AGREEMENTS, wanted - count):
            return int64(FAIL)
        for i in range(count, wanted):
            pairs[i, 0] = pairs[i, 1] = -1
        set_used(ctx, AGREEMENTS, wanted)
    if pairs[state, 0] != free:
        agreed = _states_agree(ctx, state, free)
        pairs[state, 0], pairs[state, 1] = free, agreed
    return pairs[state, 1]


@njit_inner(RESULT1)
def _free_state(ctx, lexer_state):
    """The free state of a state; -1 if there is none, FAIL or LIMIT."""
    count = lexer_states(ctx)[lexer_state].count
    offset = lexer_states(ctx)[lexer_state].offset
    base = used(ctx, WORK_STACK)
    if not room(ctx, WORK_STACK, 2 * count):
        return int64(FAIL)
    set_used(ctx, WORK_STACK, base + 2 * count)
    changed = False
    for i in range(0, 2 * count, 2):
        node = lexer_members(ctx)[offset + i + 1]
        head = node
        if expressions(ctx)[node].kind == CONCAT:
            head = expressions(ctx)[node].first
        # What begins with counted characters or blanks is looked after by repetitions.py and star_closures.py.
        free = node
        if (
            expressions(ctx)[head].kind != REPEAT
            or expressions(ctx)[head].third < 0
            or shortest_lengths(ctx)[expressions(ctx)[head].first] > 1
        ):
            free = far_call(ctx, F_FREE, node, 0)
            if free < 0:
                return free
        changed = changed or free != node
        work_stack(ctx)[base + i] = lexer_members(ctx)[offset + i]
        work_stack(ctx)[base + i + 1] = free
    result = far_call(ctx, F_LEXER_STATE, base, count) if changed else int64(-1)
    set_used(ctx, WORK_STACK, base)
    return result


@njit_inner(RESULT1)
def _find_heights(ctx, _unused):
    """Note for each trie node how many bytes the longest token below it is longer; returns 0 or FAIL."""
    nodes = trie_nodes(ctx)
    count = len(nodes)
    if used(ctx, TRIE_HEIGHT) == count:
        return int64(0)
    if not room(ctx, TRIE_HEIGHT, count):
        return int64(FAIL)
    # Backwards, children come before their parent: for each depth, one more than the greatest height of a child.
    below = walk_stack(ctx)
    for depth in range(len(below)):
        below[depth] = 0
    heights = trie_height(ctx)
    for p in range(count - 1, -1, -1):
        depth = nodes[p] >> DEPTH_SHIFT
        height = below[depth + 1]
        heights[p] = height
        below[depth + 1] = 0
        below[depth] = max(below[depth], height + int32(1))
    set_used(ctx, TRIE_HEIGHT, count)
    return int64(0)


@njit_inner(RESULT2)
def _differences(ctx, lexer_state, free):
    """Append to WORK_STACK the trie nodes at which two states differ, upwards; returns 0, FAIL or LIMIT.

    They are (node, -1) if nothing is left of the first state there, or (node, the set of lexemes that can end there).
    """
    nodes = trie_nodes(ctx)
    sizes = subtree_sizes(ctx)
    heights = trie_height(ctx)
    stack = walk_stack(ctx)
    beside = wide_stack(ctx)
    class_of = byte_classes(ctx)
    classes = ctx[CLASSES]
    trans = lexer_transitions(ctx)
    records = lexer_states(ctx)
    stack[0], beside[0] = lexer_state, free
    p = int64(0)
    while p < len(nodes):
        depth = nodes[p] >> DEPTH_SHIFT
        byte_class = class_of[nodes[p] & 255]
        here, before = stack[depth], beside[depth]
        other = trans[before * classes + byte_class]
        if other < 0:
            other = far_call(ctx, F_LEXER_STEP, before, byte_class)
            if other < 0:
                return other
        there = trans[here * classes + byte_class]
        if there < 0:
            there = far_call(ctx, F_LEXER_STEP, here, byte_class)
            if there < 0:
                return there
        if there == other:
            p += sizes[p]
            continue
        accept = records[there].accept if there else int64(-1)
        if accept != records[other].accept:
            if not room(ctx, WORK_STACK, 2):
                return int64(FAIL)
            top = used(ctx, WORK_STACK)
            work_stack(ctx)[top], work_stack(ctx)[top + 1] = p, accept
            set_used(ctx, WORK_STACK, top + 2)
        if there == 0:
            p += sizes[p]
            continue
        agreed = _known_agreed(ctx, there, other)
        if agreed == FAIL:
            return int64(FAIL)
        if heights[p] <= agreed:
            p += sizes[p]
            continue
        stack[depth + 1], beside[depth + 1] = there, other
        p += 1
    return int64(0)


@njit_inner(int64(CTX, int64, int64, int64))
def _accept_at(ctx, base, node, accept):
    """What can end at a node: ``accept``, if no difference (``WORK_STACK[base:]``) says other; 0 if nothing can."""
    differences = work_stack(ctx)
    low, high = base, used(ctx, WORK_STACK)
    while low < high:
        middle = low + (high - low) // 4 * 2
        if differences[middle] <= node:
            low = middle + 2
        else:
            high = middle
    if low == base:
        return accept
    place, other = differences[low - 2], differences[low - 1]
    if other < 0 and node < place + subtree_sizes(ctx)[place]:
        return int64(0)
    return other if place == node else accept


@njit_inner(types.boolean(CTX, int64, int64, int64))
def _differ_within(ctx, base, first, end):
    """Whether there is a difference (from ``WORK_STACK[base]`` on) at a trie node from ``first`` on, before ``end``."""
    differences = work_stack(ctx)
    low, high = base, used(ctx, WORK_STACK)
    while low < high:
        middle = low + (high - low) // 4 * 2
        if differences[middle] < first:
            low = middle + 2
        else:
            high = middle
    return low < used(ctx, WORK_STACK) and differences[low] < end


@njit_inner(RESULT2)
def _change_crossings(ctx, free, base):
    """Append the boundaries of a state to BOUNDARIES, changed where there is a difference; their end, or FAIL."""
    split = lexer_masks(ctx)
    sizes = subtree_sizes(ctx)
    begin, count = split[free].boundaries, split[free].boundary_count
    pairs = boundaries(ctx)
    first = end = used(ctx, BOUNDARIES)
    # Crossings come in any order if they were found by their last bytes (fast/star_closures.py): a bisection for each.
    for i in range(begin, begin + count):
        crossing, known = pairs[i].node, pairs[i].accept
        node, top, as_one = crossing, ~crossing, False
        if crossing < 0:
            # All of a subtree; node by node where the states differ within.
            as_one = not _differ_within(ctx, base, top, top + sizes[top])
            node = top if as_one else next_node(ctx, crossing, top)
        while node >= 0:
            accept = _accept_at(ctx, base, node, known)
            if accept != 0:
                if end + 1 > len(pairs):
                    # Much at once, since all of this is then done again.
                    room(ctx, BOUNDARIES, 4 * (end - first + 1))
                    return int64(FAIL)
                pairs[end].node = crossing if as_one else node
                pairs[end].accept = accept
                end += 1
            node = int64(-1) if crossing >= 0 or as_one else next_node(ctx, crossing, node + 1)
    return end


@njit_inner(RESULT2)
def counted_split(ctx, lexer_state, _unused):
    """Split a state by the split of its free state; returns 1, NOT_MINE if that does not fit, FAIL or LIMIT."""
    begins = lexer_first_bytes(ctx)
    width = int64(0)
    for word in range(4):
        width += count_bits(begins[lexer_state, word])
    if width < _LEAST_BYTES:
        return int64(NOT_MINE)
    free = _free_state(ctx, lexer_state)
    if free < 0:
        return int64(NOT_MINE) if free == -1 else free
    agreed = _states_agree(ctx, lexer_state, free)
    if agreed < _LEAST_AGREED:
        return int64(NOT_MINE)
    status = far_call(ctx, F_LEXER_MASK, free, 0)
    if status < 0:
        return status
    split = i32(ctx, LEXER_MASKS)
    base = used(ctx, WORK_STACK)
    if agreed < ctx[LONGEST]:
        words = ctx[N_WORDS]
        if not room(ctx, DENSE_MASKS, words) or _find_heights(ctx, 0) < 0:
            return int64(FAIL)
        status = _differences(ctx, lexer_state, free)
        if status < 0:
            return status
    top = used(ctx, WORK_STACK)
    if top == base:
        for i in range(5):
            split[5 * lexer_state + i] = split[5 * free + i]
        return int64(1)

    differences = work_stack(ctx)
    sizes = subtree_sizes(ctx)
    first_crossing = used(ctx, BOUNDARIES)
    end = _change_crossings(ctx, free, base)
    if end < 0:
        return end
    set_used(ctx, BOUNDARIES, end)

    scratch = scratch_mask(ctx)
    tokens = node_tokens(ctx)
    same = same_bytes(ctx)
    lists = token_lists(ctx)
    clear_scratch(ctx)
    if split[5 * free + SPLIT_DENSE] != NO_DENSE:
        add_dense(ctx, int64(split[5 * free + SPLIT_DENSE]))
    begin = int64(split[5 * free + SPLIT_LIST])
    for i in range(begin, begin + int64(split[5 * free + SPLIT_COUNT])):
        scratch[lists[i] >> 5] |= int32(1) << int32(lists[i] & 31)
    for i in range(base, top, 2):
        if differences[i + 1] < 0:
            place = differences[i]
            for p in range(place, place + sizes[place]):
                token = tokens[p]
                while token >= 0:
                    scratch[token >> 5] &= ~(int32(1) << int32(token & 31))
                    token = same[token] if len(same) else int64(-1)
    set_used(ctx, WORK_STACK, base)
    keep_lexer_mask(ctx, lexer_state, keep_dense(ctx), used(ctx, TOKEN_LISTS), first_crossing)
    return int64(1)


far_entry(F_FREE, _free_of)
far_entry(F_AGREE, _agreed)
far_entry(F_COUNTED, counted_split)
