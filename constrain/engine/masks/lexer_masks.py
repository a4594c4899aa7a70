"""Splits: the tokens of a lexer state, divided into those that stay inside and the places where a lexeme can end.

A split depends on the lexer state and the vocabulary, not on the parser.  Three ways to get one,
from cheap to dear:

* *Import*: expressions that many grammars share have the same split in all of them.  The vocabulary keeps the
  large ones, found by a fingerprint of the expression.
* *Closure* (star_closures.py): inside a string nearly every token is allowed, whatever the string has to look like;
  only the tokens that leave it are looked at.
* *Walk*: over every trie node that the state reaches.

Counters too large for any token to feel are left out first, so that a run of blanks or of characters stays in one
state instead of making one for each.
"""

# mypy: allow-untyped-defs, allow-untyped-calls
from __future__ import annotations

from numba import int32, int64, types, uint64

import constrain.engine.masks.fast.literal_walks  # noqa: F401 (called through a pointer)
from constrain.engine.automata.expressions import (
    COMPLEX_FLAG,
    CONCAT,
    EPSILON,
    FITS_FLAG,
    INTERSECT,
    LOOP_FLAG,
    REPEAT,
    make_concat,
    make_repeat,
)
from constrain.engine.automata.fingerprints import SHARED_MEMBERS, has_print, hint_of, print_state
from constrain.engine.automata.lexer_states import (
    CLOSURE,
    LEX_ACCEPT,
    LEX_GOES_ON,
    NO_DENSE,
    NOT_SPLIT,
    leads_on,
)
from constrain.engine.automata.summaries import LONG
from constrain.engine.masks.fast.self_loops import forget_loops
from constrain.engine.storage.access import i32, room, set_used, used
from constrain.engine.storage.bits import count_bits, lowest_bit
from constrain.engine.storage.header import (
    CLASSES,
    CTX,
    LONGEST,
    N_WORDS,
    NEW_SPLIT,
    RESULT0,
    RESULT1,
    RESULT2,
    RESULT3,
)
from constrain.engine.storage.jit import njit_entry, njit_inner
from constrain.engine.storage.links import (
    F_ACCEPT_SET,
    F_CLOSURE,
    F_COUNTED,
    F_INDENTS,
    F_LEXER_STATE,
    F_LEXER_STEP,
    F_LOOPS,
    F_PLAIN,
    F_SET_OPERATION,
    F_SPLIT,
    F_TWIN,
    F_WITHOUT_INDENTS,
    far_call,
    far_entry,
)
from constrain.engine.storage.schemas import (
    BOUNDARIES,
    DENSE_MASKS,
    LEXER_MASKS,
    LEXER_STATES,
    SHARED_DENSE,
    TOKEN_LISTS,
    TRIE_NODES,
    WORK_STACK,
    accept_members,
    accept_sets,
    boundaries,
    byte_classes,
    children,
    dense_masks,
    dense_words,
    end_lengths,
    expressions,
    found_tokens,
    hashed_words,
    lexer_first_bytes,
    lexer_masks,
    lexer_members,
    lexer_states,
    lexer_transitions,
    lexer_twins,
    node_tokens,
    same_bytes,
    scratch_mask,
    shared_boundaries,
    shared_counts,
    shared_dense,
    shared_hints,
    shared_masks,
    shared_prints,
    subtree_sizes,
    token_lists,
    trie_nodes,
    walk_stack,
    wide_child,
    wide_ends,
    wide_first,
    wide_masks,
    wide_nodes,
    wide_stack,
    work_stack,
)
from constrain.engine.storage.statuses import FAIL
from constrain.engine.vocabulary.trie import CHILD_OF_WIDE, DEPTH_SHIFT, LARGE, WIDE

_SHIFT, _BYTE, _WORD = uint64(DEPTH_SHIFT), uint64(255), uint64(5)
_WIDE, _CHILD_OF_WIDE, _LARGE = uint64(WIDE), uint64(CHILD_OF_WIDE), uint64(LARGE)
_LEAD = uint64(0xC0)

SHARED_SPLITS, SHARED_CROSSING_LIMIT = 512, 1 << 17
"""How many splits, and crossings in all of them, a vocabulary keeps."""

FIRST_SHARED = -16
"""In place of where a dense mask is: ``FIRST_SHARED - i`` for the ``i``-th of the vocabulary's."""

# How long a sequence is compared to see where two expressions differ.
_MARGIN_DEPTH = 8


@njit_inner(types.UniTuple(int64, 2)(CTX, int64))
def place_of_dense(ctx, dense):
    """The table that a dense mask is in, the grammar's own or the vocabulary's, and its first word there.

    It is read as ``dense_words(ctx, table)[first + i]``.
    """
    if dense >= 0:
        return int64(DENSE_MASKS), dense
    return int64(SHARED_DENSE), (FIRST_SHARED - dense) * ctx[N_WORDS]


@njit_inner(types.void(CTX, int64))
def add_dense(ctx, dense):
    """Allow in the scratch mask what a dense mask allows."""
    scratch = scratch_mask(ctx)
    table, first = place_of_dense(ctx, dense)
    words = dense_words(ctx, table)
    for i in range(ctx[N_WORDS]):
        scratch[i] |= words[first + i]


@njit_inner(types.void(CTX, int64))
def take_dense(ctx, dense):
    """Take from the scratch mask what a dense mask allows."""
    scratch = scratch_mask(ctx)
    table, first = place_of_dense(ctx, dense)
    words = dense_words(ctx, table)
    for i in range(ctx[N_WORDS]):
        scratch[i] &= ~words[first + i]


@njit_inner(types.void(CTX))
def clear_scratch(ctx):
    """Allow nothing in the scratch mask."""
    scratch = scratch_mask(ctx)
    for i in range(ctx[N_WORDS]):
        scratch[i] = 0


@njit_inner(RESULT0)
def keep_dense(ctx):
    """Copy the scratch mask to the pool of dense masks, which has room; returns where it is."""
    words = ctx[N_WORDS]
    scratch = scratch_mask(ctx)
    pool = dense_masks(ctx)
    dense = used(ctx, DENSE_MASKS)
    begin = uint64(dense)
    for i in range(words):
        pool[begin + uint64(i)] = scratch[i]
    set_used(ctx, DENSE_MASKS, dense + words)
    return dense


@njit_inner(types.void(CTX, int64, int64, int64, int64))
def keep_split(ctx, lexer_state, dense, first, first_crossing):
    """Write the record of a split; its list and crossings are the ends of their tables."""
    split = lexer_masks(ctx)
    split[lexer_state].tokens = first
    split[lexer_state].token_count = used(ctx, TOKEN_LISTS) - first
    split[lexer_state].boundaries = first_crossing
    split[lexer_state].boundary_count = used(ctx, BOUNDARIES) - first_crossing
    split[lexer_state].dense = dense


@njit_inner(RESULT1)
def import_split(ctx, lexer_state):
    """Take the split from the vocabulary's if it is there; returns 1 if so, 0 if not, or FAIL."""
    if not has_print(ctx, lexer_state):
        return int64(0)
    prints = shared_prints(ctx)
    # The fingerprint of a large enumeration takes long.  It is asked for only if the hints are the same.
    hints, hint = shared_hints(ctx), hint_of(ctx, lexer_state)
    asked = False
    first_half, second_half = int64(0), int64(0)
    for entry in range(shared_counts(ctx)[0]):
        if hints[entry] != hint:
            continue
        if not asked:
            if print_state(ctx, lexer_state) < 0:
                return int64(FAIL)
            first_half, second_half = hashed_words(ctx)[0], hashed_words(ctx)[1]
            asked = True
        if prints[entry, 0] != first_half or prints[entry, 1] != second_half:
            continue
        record = shared_masks(ctx)
        begin, count = record[entry].boundaries, record[entry].boundary_count
        split = lexer_masks(ctx)
        split[lexer_state].tokens = 0
        split[lexer_state].token_count = 0
        split[lexer_state].boundary_count = count
        offset = lexer_states(ctx)[lexer_state].offset
        if lexer_members(ctx)[offset] == CLOSURE:
            split[lexer_state].boundaries = begin
            split[lexer_state].dense = FIRST_SHARED - entry
            return int64(1)
        if not room(ctx, BOUNDARIES, count) or not room(ctx, WORK_STACK, SHARED_MEMBERS):
            return int64(FAIL)
        shared = shared_boundaries(ctx)
        crossings = boundaries(ctx)
        first = used(ctx, BOUNDARIES)
        last_members, accept = int32(0), int64(0)
        for i in range(count):
            # Which members can end here is kept by position; lexeme numbers differ between grammars.
            members = shared[begin + i].accept
            if members != last_members:
                last_members = members
                base = used(ctx, WORK_STACK)
                n = 0
                for member in range(SHARED_MEMBERS):
                    if (members >> member) & 1:
                        work_stack(ctx)[base + n] = lexer_members(ctx)[offset + 2 * member]
                        n += 1
                accept = far_call(ctx, F_ACCEPT_SET, base, n)
                if accept < 0:
                    return accept
            crossings[first + i].node = shared[begin + i].node
            crossings[first + i].accept = accept
        set_used(ctx, BOUNDARIES, first + count)
        split[lexer_state].boundaries = first
        split[lexer_state].dense = FIRST_SHARED - entry
        return int64(1)
    return int64(0)


@njit_entry(RESULT1)
def publish_split(ctx, lexer_state):
    """Write a dense split behind the vocabulary's shared ones.

    Returns 1; 0 if it cannot be shared, or there is no room; 2 if it is a closure that is there already; or FAIL.
    It becomes visible when the caller, who holds the vocabulary's lock, advances SHARED_COUNTS[0].
    """
    counts = shared_counts(ctx)
    entry = counts[0]
    split = lexer_masks(ctx)
    begin = split[lexer_state].boundaries
    count = split[lexer_state].boundary_count
    dense = split[lexer_state].dense
    offset = lexer_states(ctx)[lexer_state].offset
    closure = lexer_members(ctx)[offset] == CLOSURE
    if closure and dense <= FIRST_SHARED:
        return int64(2)
    if (
        dense in (NO_DENSE, NOT_SPLIT)
        or not has_print(ctx, lexer_state)
        or entry == SHARED_SPLITS
        or counts[1] + count > SHARED_CROSSING_LIMIT
    ):
        return int64(0)
    if print_state(ctx, lexer_state) < 0:
        return int64(FAIL)
    first_half, second_half = hashed_words(ctx)[0], hashed_words(ctx)[1]
    # What is in the list goes into the dense mask: whoever imports it has no list then.
    clear_scratch(ctx)
    add_dense(ctx, dense)
    scratch = scratch_mask(ctx)
    lists = token_lists(ctx)
    listed = split[lexer_state].tokens
    for i in range(listed, listed + split[lexer_state].token_count):
        token = lists[i]
        scratch[token >> 5] |= int32(1) << int32(token & 31)
    words = ctx[N_WORDS]
    target = shared_dense(ctx)
    for i in range(words):
        target[entry * words + i] = scratch[i]
    members_count = lexer_states(ctx)[lexer_state].count
    shared = shared_boundaries(ctx)
    for i in range(count):
        accept = boundaries(ctx)[begin + i].accept
        if closure:
            shared[counts[1] + i].node = boundaries(ctx)[begin + i].node
            shared[counts[1] + i].accept = accept
            continue
        lexeme = accept_sets(ctx)[accept].offset
        stop = lexeme + accept_sets(ctx)[accept].count
        members = int32(0)
        for member in range(members_count):
            if lexeme < stop and lexer_members(ctx)[offset + 2 * member] == accept_members(ctx)[lexeme]:
                members |= int32(1) << int32(member)
                lexeme += 1
        shared[counts[1] + i].node = boundaries(ctx)[begin + i].node
        shared[counts[1] + i].accept = members
    records = shared_masks(ctx)
    records[entry].boundaries = counts[1]
    records[entry].boundary_count = count
    counts[1] += count
    prints = shared_prints(ctx)
    prints[entry, 0], prints[entry, 1] = first_half, second_half
    shared_hints(ctx)[entry] = hint_of(ctx, lexer_state)
    return int64(1)


@njit_inner(RESULT1)
def _without_count(ctx, node):
    """The intersection of two parts, of which one counts (FITS_FLAG), without the bound; -1 if that is not plain."""
    first = expressions(ctx)[node].first
    for i in range(2):
        nodes = expressions(ctx)
        part, other = children(ctx)[first + i], children(ctx)[first + 1 - i]
        if nodes[part].kind == REPEAT and nodes[part].third >= 0 and nodes[part].second <= 1:
            if end_lengths(ctx)[other] == LONG:
                return int64(-1)
            free = make_repeat(ctx, nodes[part].first, nodes[part].second, int64(-1))
            if free < 0:
                return free
            if not room(ctx, WORK_STACK, 2):
                return int64(FAIL)
            top = used(ctx, WORK_STACK)
            work_stack(ctx)[top] = other
            work_stack(ctx)[top + 1] = free
            set_used(ctx, WORK_STACK, top + 2)
            return far_call(ctx, F_SET_OPERATION, int64(INTERSECT | FITS_FLAG), top)
    return int64(-1)


@njit_inner(RESULT2)
def _counted_margin(ctx, left, right):
    """A number of bytes within which an intersection and the one without its bound cannot be told apart; 0 if unknown.

    What is begun can be completed in so many bytes (END_LENGTHS), and till then the bound must not be met.
    """
    nodes = expressions(ctx)
    pool = children(ctx)
    if not nodes[left].flags & nodes[right].flags & FITS_FLAG or nodes[left].second != 2 or nodes[right].second != 2:
        return int64(0)
    here, there = nodes[left].first, nodes[right].first
    for i in range(2):
        for j in range(2):
            other, count, free = pool[here + i], pool[here + 1 - i], pool[there + 1 - j]
            if (
                other == pool[there + j]
                and nodes[count].kind == REPEAT
                and nodes[free].kind == REPEAT
                and nodes[count].first == nodes[free].first
                and nodes[count].second == nodes[free].second
                and nodes[count].second <= 1
                and nodes[free].third < 0
            ):
                return max(int64(0), nodes[count].third - end_lengths(ctx)[other])
    return int64(0)


@njit_entry(RESULT1)
def shared_entry(ctx, lexer_state):
    """Which of the vocabulary's shared splits a state's is."""
    return FIRST_SHARED - lexer_masks(ctx)[lexer_state].dense


@njit_inner(RESULT1)
def uncounted(ctx, lexer_state):
    """The state whose members repeat without bound what this one's repeat at most n times; -1 if none does, or FAIL."""
    count = lexer_states(ctx)[lexer_state].count
    offset = lexer_states(ctx)[lexer_state].offset
    if not room(ctx, WORK_STACK, 2 * count):
        return int64(FAIL)
    base = used(ctx, WORK_STACK)
    # The members are built first: building uses the stack above them.
    set_used(ctx, WORK_STACK, base + 2 * count)
    changed = False
    for i in range(count):
        pool = lexer_members(ctx)
        lexeme, node = pool[offset + 2 * i], pool[offset + 2 * i + 1]
        nodes = expressions(ctx)
        head, tail = node, int64(EPSILON)
        if nodes[node].kind == CONCAT:
            head, tail = nodes[node].first, nodes[node].second
        if nodes[head].kind == REPEAT and nodes[head].third >= 0 and not nodes[head].flags & COMPLEX_FLAG:
            head = make_repeat(ctx, nodes[head].first, nodes[head].second, int64(-1))
            if head < 0:
                return head
            node = make_concat(ctx, head, tail)
            if node < 0:
                return node
            changed = True
        elif nodes[head].flags & FITS_FLAG and nodes[head].second == 2:
            free = _without_count(ctx, head)
            if free < -1:
                return free
            if free >= 0:
                node = make_concat(ctx, free, tail)
                if node < 0:
                    return node
                changed = True
        work_stack(ctx)[base + 2 * i] = lexeme
        work_stack(ctx)[base + 2 * i + 1] = node
    result = far_call(ctx, F_LEXER_STATE, base, count) if changed else int64(-1)
    set_used(ctx, WORK_STACK, base)
    return result


@njit_inner(RESULT2)
def _margin(ctx, left, right):
    """A number of bytes within which two expressions cannot be told apart; 0 if unknown.

    It looks at counters at the end of equal beginnings: each repetition takes a byte at least.
    """
    nodes = expressions(ctx)
    for _ in range(_MARGIN_DEPTH):
        if left == right:
            return int64(1 << 30)
        # Whether something loops is just what the two may differ in.
        head, other = nodes[left].flags & ~LOOP_FLAG, nodes[right].flags & ~LOOP_FLAG
        kind = head & 255
        if head != other:
            return int64(0)
        if kind == INTERSECT:
            return _counted_margin(ctx, left, right)
        if head & COMPLEX_FLAG and kind != CONCAT:
            return int64(0)
        if kind == CONCAT:
            a, b = nodes[left].first, nodes[right].first
            if a == b:
                left, right = nodes[left].second, nodes[right].second
                continue
            if nodes[left].second != nodes[right].second or (nodes[a].flags ^ nodes[b].flags) & ~LOOP_FLAG:
                return int64(0)
            left, right = a, b
            kind = nodes[a].kind
            if kind == INTERSECT:
                return _counted_margin(ctx, left, right)
            if nodes[a].flags & COMPLEX_FLAG:
                return int64(0)
        if kind != REPEAT or nodes[left].first != nodes[right].first or nodes[left].second != nodes[right].second:
            return int64(0)
        high, other_high = nodes[left].third, nodes[right].third
        return min(high if high >= 0 else int64(1 << 30), other_high if other_high >= 0 else int64(1 << 30))
    return int64(0)


@njit_inner(RESULT2)
def _state_margin(ctx, state, twin):
    """A number of bytes within which two lexer states cannot be told apart; 0 if unknown or none."""
    lex = lexer_states(ctx)
    count = lex[state].count
    if count != lex[twin].count or lex[state].accept != lex[twin].accept:
        return int64(0)
    pool = lexer_members(ctx)
    here, there = lex[state].offset, lex[twin].offset
    margin = int64(1 << 30)
    for i in range(count):
        if pool[here + 2 * i] != pool[there + 2 * i]:
            return int64(0)
        margin = min(margin, _margin(ctx, pool[here + 2 * i + 1], pool[there + 2 * i + 1]))
    return margin


@njit_inner(RESULT1)
def _without_indents(ctx, lexer_state):
    """The state without the bounds of indents that no token can reach; itself if there are none, or FAIL."""
    count = lexer_states(ctx)[lexer_state].count
    offset = lexer_states(ctx)[lexer_state].offset
    if not room(ctx, WORK_STACK, 2 * count):
        return int64(FAIL)
    base = used(ctx, WORK_STACK)
    # As above: building uses the stack above the members.
    set_used(ctx, WORK_STACK, base + 2 * count)
    changed = False
    for i in range(0, 2 * count, 2):
        node = lexer_members(ctx)[offset + i + 1]
        free = far_call(ctx, F_WITHOUT_INDENTS, node, 0)
        if free < 0:
            return free
        changed = changed or free != node
        work_stack(ctx)[base + i] = lexer_members(ctx)[offset + i]
        work_stack(ctx)[base + i + 1] = free
    result = far_call(ctx, F_LEXER_STATE, base, count) if changed else lexer_state
    set_used(ctx, WORK_STACK, base)
    return result


@njit_inner(RESULT2)
def unbounded_twin(ctx, lexer_state, _unused):
    """The state without this one's bounds, if no token is long enough to tell the two apart; else the state itself.

    In the twin a run of blanks or of characters stays in one state, where counting makes one for each.
    """
    known = lexer_twins(ctx)[lexer_state]
    if known >= 0:
        return known
    twin = uncounted(ctx, lexer_state)
    if twin < -1:
        return twin
    if twin == -1:
        twin = _without_indents(ctx, lexer_state)
        if twin < 0:
            return twin
    elif _state_margin(ctx, lexer_state, twin) <= ctx[LONGEST]:
        twin = lexer_state
    lexer_twins(ctx)[lexer_state] = twin
    return twin


far_entry(F_TWIN, unbounded_twin)


@njit_inner(int64(CTX, int64, int64, int64))
def next_child(ctx, wide, byte, state):
    """The first child of a wide node from ``byte`` on, with which a lexer state may go on; else the subtree's end."""
    children = wide_masks(ctx)
    begins = lexer_first_bytes(ctx)
    rank = wide_first(ctx)[wide]
    for word in range(4):
        own = children[wide, word]
        if 64 * word + 63 >= byte:
            bits = own & begins[state, word]
            if byte > 64 * word:
                bits &= int64(-1) << (byte - 64 * word)
            if bits:
                below = (int64(1) << lowest_bit(bits)) - 1
                return wide_child(ctx)[rank + count_bits(own & below)]
        rank += count_bits(own)
    return wide_ends(ctx)[wide]


@njit_inner(RESULT3)
def walk(ctx, p, end, n):
    """Walk the trie from node ``p`` to ``end``, its subtree's or the trie's; WALK_STACK has the state before ``p``.

    Tokens go to FOUND_TOKENS from ``n`` on, boundaries (see next_node) to the end of BOUNDARIES.  Returns how many
    tokens there are then, or FAIL or LIMIT.  If ``p`` is not at the top of the trie the state must be able to go on
    with it.
    """
    nodes = trie_nodes(ctx)
    sizes = subtree_sizes(ctx)
    tokens = node_tokens(ctx)
    stack = walk_stack(ctx)
    wides = wide_stack(ctx)
    wide = wide_nodes(ctx)
    class_of = byte_classes(ctx)
    classes = uint64(ctx[CLASSES])
    trans = lexer_transitions(ctx)
    records = i32(ctx, LEXER_STATES)
    found = found_tokens(ctx)
    crossings = boundaries(ctx)
    n_crossings = used(ctx, BOUNDARIES)
    crossing_room = len(crossings)
    wides[0] = 0
    forget_loops(ctx)
    looping = int64(-1)
    # Unsigned indices spare the check for negative ones, a quarter of the walk's time.
    place, stop, count = uint64(p), uint64(end), uint64(n)
    while place < stop:
        node = uint64(nodes[place])
        depth = node >> _SHIFT
        here = uint64(stack[depth])
        byte_class = uint64(class_of[node & _BYTE])
        there = trans[here * classes + byte_class]
        if there <= 0:
            if there < 0 and sizes[place] == 1 and leads_on(ctx, int64(here), int64(byte_class)):
                found[count] = tokens[place]
                count += uint64(1)
                place += uint64(1)
                continue
            if there < 0:
                set_used(ctx, BOUNDARIES, n_crossings)
                plain = far_call(ctx, F_PLAIN, int64(here) << 32 | int64(place), int64(count))
                if plain >= 0:
                    count, n_crossings, there = uint64(plain), used(ctx, BOUNDARIES), int64(0)
                elif plain != -1:
                    return plain
                else:
                    there = far_call(ctx, F_LEXER_STEP, int64(here), int64(byte_class))
                    if there < 0:
                        return there
            if there == 0:
                if node & _CHILD_OF_WIDE:
                    place = uint64(next_child(ctx, wides[depth], int64(node & _BYTE) + 1, int64(here)))
                else:
                    place += uint64(sizes[place])
                continue
        token = tokens[place]
        # Without a branch: whether a node ends a token is a coin toss to the processor.
        found[count] = token
        count += uint64(token >= 0)
        stack[depth + uint64(1)] = there
        # What a crossing at this node stands for, and for which lexemes.
        crossing, record = int64(place), uint64(4 * there)
        if there == int64(here):
            looping = there
        if looping >= 0 and node & _LARGE:
            state = there if node & _LEAD != _LEAD else int64(here)
            if state == looping:
                taken = far_call(ctx, F_LOOPS, state << 32 | wide[place], int64(count))
                if taken >= 0:
                    count, crossing, record = uint64(taken), ~crossing, uint64(4 * state)
        accept = records[record + uint64(LEX_ACCEPT)]
        if accept != 0 and sizes[place] > 1:
            if n_crossings == crossing_room:
                # Where a lexeme can end at many nodes it can at many more; to ask often means walking often.
                room(ctx, BOUNDARIES, 4 * n_crossings)
                return int64(FAIL)
            crossings[n_crossings].node = crossing
            crossings[n_crossings].accept = accept
            n_crossings += 1
        if crossing < 0 or (accept != 0 and records[record + uint64(LEX_GOES_ON)] == 0):
            place += uint64(sizes[place])
            continue
        if node & _WIDE:
            wides[depth + uint64(1)] = wide[place]
            place = uint64(next_child(ctx, wides[depth + uint64(1)], int64(0), there))
        else:
            place += uint64(1)
    set_used(ctx, BOUNDARIES, n_crossings)
    return int64(count)


@njit_inner(RESULT1)
def with_same_bytes(ctx, n):
    """Append to the ``n`` tokens in FOUND_TOKENS those with the same bytes; returns how many there are then."""
    found = found_tokens(ctx)
    same = same_bytes(ctx)
    count = n
    if len(same):
        for i in range(n):
            token = same[found[i]]
            while token >= 0:
                found[count] = token
                count += 1
                token = same[token]
    return count


@njit_inner(types.void(CTX, int64))
def allow_found(ctx, n):
    """Set the ``n`` tokens in FOUND_TOKENS in the scratch mask."""
    found = found_tokens(ctx)
    scratch = scratch_mask(ctx)
    for i in range(n):
        token = found[i]
        scratch[uint64(token) >> _WORD] |= int32(1) << (token & int32(31))


@njit_inner(RESULT1)
def list_found(ctx, n):
    """Append the ``n`` tokens in FOUND_TOKENS to the token lists, which have room; returns where they begin."""
    found = found_tokens(ctx)
    lists = token_lists(ctx)
    first = used(ctx, TOKEN_LISTS)
    for i in range(n):
        lists[first + i] = found[i]
    set_used(ctx, TOKEN_LISTS, first + n)
    return first


@njit_inner(RESULT1)
def _walk_split(ctx, lexer_state):
    """Split a state by a walk over the trie; returns 0, FAIL or LIMIT."""
    words = ctx[N_WORDS]
    # Asked for before the walk: to find out afterwards would mean walking twice.
    if not room(ctx, DENSE_MASKS, words) or not room(ctx, TOKEN_LISTS, words // 8):
        return int64(FAIL)
    first_crossing = used(ctx, BOUNDARIES)
    walk_stack(ctx)[0] = lexer_state
    n = walk(ctx, next_child(ctx, int64(0), int64(0), lexer_state), len(i32(ctx, TRIE_NODES)), int64(0))
    if n < 0:
        set_used(ctx, BOUNDARIES, first_crossing)
        return n
    n = with_same_bytes(ctx, n)
    dense, first = int64(NO_DENSE), used(ctx, TOKEN_LISTS)
    if n > words // 8:
        clear_scratch(ctx)
        allow_found(ctx, n)
        dense = keep_dense(ctx)
        if has_print(ctx, lexer_state):
            ctx[NEW_SPLIT] = lexer_state
    else:
        first = list_found(ctx, n)
    keep_split(ctx, lexer_state, dense, first, first_crossing)
    return int64(0)


@njit_inner(RESULT2)
def split(ctx, lexer_state, _unused):
    """Split the tokens of a lexer state unless that is done; returns 0, FAIL or LIMIT.

    NEW_SPLIT in the header is set to the state if the split is worth publishing.
    """
    if lexer_masks(ctx)[lexer_state].dense != NOT_SPLIT:
        return int64(0)
    twin = far_call(ctx, F_TWIN, lexer_state, 0)
    if twin < 0:
        return twin
    if twin != lexer_state:
        status = far_call(ctx, F_SPLIT, twin, 0)
        if status < 0:
            return status
        record = i32(ctx, LEXER_MASKS)
        for i in range(5):
            record[5 * lexer_state + i] = record[5 * twin + i]
        return int64(0)
    status = import_split(ctx, lexer_state)
    if status != 0:
        return min(status, int64(0))
    free = uncounted(ctx, lexer_state)
    if free < -1:
        return free
    if free >= 0:
        status = far_call(ctx, F_INDENTS, lexer_state, free)
        if status != 0:
            return min(status, int64(0))
    status = far_call(ctx, F_COUNTED, lexer_state, 0)
    if status != 0:
        return min(status, int64(0))
    status = far_call(ctx, F_CLOSURE, lexer_state, 0)
    if status != 0:
        return min(status, int64(0))
    return _walk_split(ctx, lexer_state)


@njit_inner(RESULT2)
def _no_counted_split(_ctx, _lexer_state, _unused):
    """What stands for fast/counted_masks.py while no grammar has needed it."""
    return int64(0)


far_entry(F_SPLIT, split)
far_entry(F_COUNTED, _no_counted_split)
