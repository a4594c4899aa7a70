"""Relative masks: the tokens of a lexer state, told by those of another that it agrees with but below few trie nodes.

The other, the *base*, has its mask already or serves many states.  Bases are

* the relaxation of a state (relaxations.py), which lacks bounds on words, lines, characters or the blanks of an indent:
  the two agree up to so many bytes, so only the paths to longer tokens are followed;
* "any key" for "any key but these": the two differ along few words, and only outside the star closure of a character
  (closures.py);
* another state of a free text, which is within other words of those that it is looked for (neighbours.py).

A bound that is longer than all tokens makes no difference: the mask is that of the relaxation, the state's *twin*.

The trie is walked with both states beside each other.  A subtree is left out as soon as the two are one state, or if
none of its tokens is longer than what they agree in.  What is left is a list of differences, by which the base's tokens
and lexeme boundaries are changed.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata.expressions import CONCAT, NULLABLE_FLAG, first_bytes
from constrain.engine.automata.lexer_states import NO_DENSE, count_first_bytes, step_lexer
from constrain.engine.masks.boundaries import next_node
from constrain.engine.masks.fast.relaxations import BLANK_BYTES, BLANKS, TWIN, WORDS, counts_blanks, relaxed_state
from constrain.engine.masks.lexer_masks import (
    FIRST_SHARED,
    add_dense,
    allow_found,
    allow_listed,
    clear_scratch,
    keep_dense,
    list_found,
    next_child,
    place_of_dense,
    walk,
    with_same_bytes,
)
from constrain.engine.parser.followed import any_is_followed, find_followed
from constrain.engine.storage import links
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import i32, push_pair, room, set_used, take, used
from constrain.engine.storage.header import AGREED_BYTES, CTX, LONGEST, N_WORDS, RESULT2, RESULT3
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import far_call, far_entry
from constrain.engine.storage.statuses import FAIL, NOT_MINE
from constrain.engine.vocabulary.trie import CHILD_OF_WIDE, DEPTH_SHIFT, WIDE
from constrain.kernels.language import int64, types

GONE, OTHER, OWN = -1, -2, 0
"""How a state differs from its base at a trie node: it goes no further; its tokens and boundaries below are found by
themselves; its boundary there is."""
# States that go on with fewer bytes than this, which are those of ASCII alone, are as quickly walked.
TEXT_BYTES = 128
# Bounds of fewer characters leave too little in common.
_LEAST_CHARACTERS = 10
# A walk over so many nodes beside another state is a twentieth of a walk over all of a large vocabulary.
_MOST_BESIDE = 16384
_ALL = 1 << 40


@njit_inner(types.void(CTX))
def _find_heights(ctx):
    """Note for each trie node how many bytes the longest token below it is longer; once for a vocabulary."""
    nodes, heights = t.trie_nodes(ctx), t.trie_height(ctx)
    count = len(nodes)
    if heights[count]:
        return
    # Backwards, children come before their parent: for each depth, one more than the greatest height of a child.
    below = t.walk_stack(ctx)
    for depth in range(len(below)):
        below[depth] = 0
    for p in range(count - 1, -1, -1):
        depth = nodes[p] >> DEPTH_SHIFT
        height = below[depth + 1]
        heights[p] = height
        below[depth + 1] = 0
        below[depth] = max(below[depth], height + 1)
    # It is the same whoever does it.
    heights[count] = 1


@njit_inner(int64(CTX, int64, int64, int64, int64, int64))
def _differences(ctx, lexer_state, base, closure, agreed, most):
    """Push on WORK_STACK the trie nodes at which two states differ, upwards: (node, GONE, OTHER or OWN).

    The first state's tokens below OTHER are left in FOUND_TOKENS, its boundaries below OTHER and at OWN at the end of
    BOUNDARIES.  With a ``closure``, not 0, the walk is over its border alone: inside, the states do not differ.  Else
    no text of ``agreed`` bytes tells them apart.  Returns the number of tokens; NOT_MINE if about ``most`` nodes do not
    suffice; FAIL or LIMIT.

    As long as it is since it is one loop, whose variables a call for each node would have to pass.
    """
    nodes, sizes, heights = t.trie_nodes(ctx), t.subtree_sizes(ctx), t.trie_height(ctx)
    stack, class_of = t.walk_stack(ctx), t.byte_classes(ctx)
    records, masks = t.lexer_states(ctx), t.lexer_masks(ctx)
    shared = masks[closure].dense <= FIRST_SHARED
    # By depth, the states of the base; the differences take their place in the end.
    depths = int64(ctx[LONGEST] + 2)
    beside = take(ctx, t.WORK_STACK, depths)
    if beside < 0:
        return beside
    kept = t.work_stack(ctx)
    stack[0], kept[beside] = lexer_state, base
    n, i, end, visits = int64(0), int64(0), int64(len(nodes)), int64(0)
    if closure:
        i = masks[closure].boundaries
        end = i + masks[closure].boundary_count
    while i < end:
        visits += 1
        if visits > most:
            return int64(NOT_MINE)
        node, place = nodes[i] if not closure else int64(0), i
        if closure:
            pairs = i32(ctx, t.SHARED_BOUNDARIES) if shared else i32(ctx, t.BOUNDARIES)
            node, place = int64(pairs[2 * i]), int64(pairs[2 * i + 1])
        depth, byte = node >> DEPTH_SHIFT, node & 255
        if not closure and depth + 1 + heights[i] <= agreed:
            i += sizes[i]
            continue
        byte_class = class_of[byte]
        here, before = stack[depth], kept[beside + depth]
        # Nothing follows from the dead state, 0.
        there = step_lexer(ctx, here, byte_class) if here else int64(0)
        other = step_lexer(ctx, before, byte_class) if before else int64(0)
        if there < 0 or other < 0:
            return min(there, other)
        passed = max(int64(1), -place) if closure else sizes[i]
        if there == other:
            i += passed
            continue
        if place >= 0:
            what, accept = int64(OWN), records[there].accept
            if there == 0:
                what = int64(GONE)
            elif closure or other == 0:
                what = int64(OTHER)
            is_noted = what < 0 or accept != records[other].accept
            if is_noted and not push_pair(ctx, t.WORK_STACK, place, what):
                return int64(FAIL)
            # The base may have left out a boundary that nothing follows, so it is not enough to change its boundaries.
            if what == OWN and is_noted and accept and sizes[place] > 1:
                boundary = take(ctx, t.BOUNDARIES, int64(1))
                if boundary < 0:
                    return boundary
                t.boundaries(ctx)[boundary] = place, accept
            if what < 0:
                visits += sizes[place]
            if what == OTHER and visits <= most:
                n = walk(ctx, place, place + sizes[place], n)
                if n < 0:
                    return n
            if what < 0:
                i += passed
                continue
        stack[depth + 1], kept[beside + depth + 1] = there, other
        i += 1
    top = used(ctx, t.WORK_STACK)
    for k in range(beside + depths, top):
        kept[k - depths] = kept[k]
    set_used(ctx, t.WORK_STACK, top - depths)
    return with_same_bytes(ctx, n)


@njit_inner(RESULT2)
def _blanks_left(ctx, state, base):
    """How many blanks may still come in a state, if that is all that tells it from its base; else -1.

    What follows the blanks does not begin with one.
    """
    lex, pool, nodes = t.lexer_states(ctx), t.lexer_members(ctx), t.expressions(ctx)
    here, there = lex[state].offset, lex[base].offset
    left = int64(-1)
    for i in range(1, 2 * lex[state].count, 2):
        node, other = pool[here + i], pool[there + i]
        if lex[state].count != lex[base].count or pool[here + i - 1] != pool[there + i - 1]:
            return int64(-1)
        if nodes[node].kind != CONCAT or nodes[other].kind != CONCAT:
            return int64(-1)
        head, tail = nodes[node].first, nodes[node].second
        if tail != nodes[other].second or nodes[tail].flags & NULLABLE_FLAG or not counts_blanks(ctx, head):
            return int64(-1)
        # The members of one state may not allow the same blanks.
        if first_bytes(ctx, int64(tail), 0) & BLANK_BYTES or (left >= 0 and nodes[head].third != left):
            return int64(-1)
        if nodes[head].first != nodes[nodes[pool[here + 1]].first].first:
            return int64(-1)
        left = nodes[head].third
    return left


@njit_inner(RESULT3)
def _longer_runs(ctx, members, left, base):
    """Push on WORK_STACK, as :func:`_differences` does, the topmost nodes to which more than ``left`` blanks lead.

    The blanks are a byte set, and may begin the base.  No state is made for each number of blanks.  Returns 0 or FAIL.
    """
    nodes, sizes = t.trie_nodes(ctx), t.subtree_sizes(ctx)
    wide, wides = t.wide_nodes(ctx), t.wide_stack(ctx)
    allowed = t.byte_sets(ctx)[members, 0]
    wides[0] = 0
    p = next_child(ctx, int64(0), int64(0), base)
    while p < len(nodes):
        node = nodes[p]
        byte, depth = node & 255, node >> DEPTH_SHIFT
        if byte < 64 and (allowed >> byte) & 1:
            if depth < left:
                if node & WIDE:
                    wides[depth + 1] = wide[p]
                    p = next_child(ctx, wide[p], int64(0), base)
                else:
                    p += 1
                continue
            if not push_pair(ctx, t.WORK_STACK, p, int64(GONE)):
                return int64(FAIL)
        if node & CHILD_OF_WIDE:
            p = next_child(ctx, wides[depth], byte + 1, base)
        else:
            p += sizes[p]
    return int64(0)


@njit_inner(RESULT2)
def border_tokens(ctx, lexer_state, closure):
    """Leave the tokens of a state outside a closure in FOUND_TOKENS, its boundaries there at the end of BOUNDARIES.

    Returns how many tokens there are, FAIL or LIMIT.
    """
    bottom = used(ctx, t.WORK_STACK)
    n = _differences(ctx, lexer_state, int64(0), closure, int64(0), int64(_ALL))
    set_used(ctx, t.WORK_STACK, bottom)
    return n


@njit_inner(int64(CTX, int64, int64, int64))
def _bisect(ctx, first, end, node):
    """Where the first difference at a trie node behind ``node`` is, of those at ``WORK_STACK[first:end]``."""
    differences = t.work_stack(ctx)
    while first < end:
        middle = first + (end - first) // 4 * 2
        if differences[middle] <= node:
            first = middle + 2
        else:
            end = middle
    return first


@njit_inner(RESULT3)
def _keep_boundaries(ctx, base, first, end):
    """Append to BOUNDARIES those of a base at which there is none of the differences at ``WORK_STACK[first:end]``.

    Those that nothing follows are left out.  Returns 0 or FAIL.
    """
    sizes = t.subtree_sizes(ctx)
    differences = t.work_stack(ctx)
    begin, count = t.lexer_masks(ctx)[base].boundaries, t.lexer_masks(ctx)[base].boundary_count
    if not room(ctx, t.BOUNDARIES, count + (end - first) // 2):
        return int64(FAIL)
    pairs = t.boundaries(ctx)
    out = used(ctx, t.BOUNDARIES)
    # Between these nodes there is no difference.  Boundaries come in any order if they were found by their last bytes.
    low, high, k = int64(0), int64(0), first
    left_out = int64(-1)
    for i in range(begin, begin + count):
        boundary, accept = pairs[i].node, pairs[i].accept
        if accept == left_out:
            continue
        if not any_is_followed(ctx, accept):
            left_out = accept
            continue
        top = boundary if boundary >= 0 else ~boundary
        stop = top + (sizes[top] if boundary < 0 else int64(1))
        if top < low or stop > high:
            k = _bisect(ctx, first, end, top)
            high = differences[k] if k < end else int64(len(t.trie_nodes(ctx)))
            low = int64(0)
            if k > first:
                place, what = differences[k - 2], differences[k - 1]
                low = place + (sizes[place] if what < 0 else int64(1))
        if low <= top and stop <= high:
            if out == len(pairs):
                room(ctx, t.BOUNDARIES, 4 * (out - used(ctx, t.BOUNDARIES) + 1))
                return int64(FAIL)
            pairs[out] = boundary, accept
            out += 1
            continue
        # Of all that it stands for, each node.
        k = max(k - 2, first)
        p = next_node(ctx, boundary, top)
        while p >= 0:
            while k + 2 < end and differences[k + 2] <= p:
                k += 2
            place, what = differences[k], differences[k + 1]
            if not place <= p < place + (sizes[place] if what < 0 else int64(1)):
                if out == len(pairs):
                    # Much at once, since all of this is then done again.
                    room(ctx, t.BOUNDARIES, 4 * (out - used(ctx, t.BOUNDARIES) + 1))
                    return int64(FAIL)
                pairs[out] = p, accept
                out += 1
            p = next_node(ctx, boundary, p + 1)
    set_used(ctx, t.BOUNDARIES, out)
    return int64(0)


@njit_inner(RESULT2)
def _is_in_dense(ctx, base, token):
    """Whether the tokens of a base, listed ones aside, hold this one (1 or 0)."""
    dense = t.lexer_masks(ctx)[base].dense
    if dense == NO_DENSE:
        return int64(0)
    table, first = place_of_dense(ctx, dense)
    return (int64(t.dense_words(ctx, table)[first + (token >> 5)]) >> (token & 31)) & 1


@njit_inner(int64(CTX, int64, int64, int64, types.boolean))
def _mark_below(ctx, base, first, end, value):
    """Set or clear in the scratch mask the tokens below the nodes at ``WORK_STACK[first:end]`` where the base's go.

    Returns how many of them the base holds, listed ones aside.
    """
    scratch, tokens, same, sizes = t.scratch_mask(ctx), t.node_tokens(ctx), t.same_bytes(ctx), t.subtree_sizes(ctx)
    held = int64(0)
    for k in range(first, end, 2):
        if t.work_stack(ctx)[k + 1] >= 0:
            continue
        place = t.work_stack(ctx)[k]
        for p in range(place, place + sizes[place]):
            token = tokens[p]
            while token >= 0:
                bit = int64(1) << (token & 31)
                scratch[token >> 5] = scratch[token >> 5] | bit if value else scratch[token >> 5] & ~bit
                held += _is_in_dense(ctx, base, token)
                token = same[token] if len(same) else int64(-1)
    return held


@njit_inner(types.void(CTX, int64, int64, int64, int64))
def _change_tokens(ctx, lexer_state, base, first, n):
    """Change the tokens of a state, so far a base's, by the differences at ``WORK_STACK[first:]``, and the ``n`` found.

    They go to the end of TOKEN_LISTS and a dense mask, for which there is room, unless they are the same after all.
    """
    scratch, lists, found = t.scratch_mask(ctx), t.token_lists(ctx), t.found_tokens(ctx)
    end = used(ctx, t.WORK_STACK)
    dense = t.lexer_masks(ctx)[base].dense
    begin = t.lexer_masks(ctx)[base].tokens
    stop = begin + t.lexer_masks(ctx)[base].token_count
    clear_scratch(ctx)
    held = _mark_below(ctx, base, first, end, True)
    left = used(ctx, t.TOKEN_LISTS)
    for i in range(begin, stop):
        lists[left] = lists[i]
        left += 1 - ((scratch[lists[i] >> 5] >> (lists[i] & 31)) & 1)
    lost = held + (stop - begin) - (left - used(ctx, t.TOKEN_LISTS))
    if lost == n:
        # As many are found as are lost; perhaps the same.
        clear_scratch(ctx)
        allow_found(ctx, n)
        for i in range(n):
            lost -= _is_in_dense(ctx, base, found[i])
        for i in range(begin, stop):
            lost -= (scratch[lists[i] >> 5] >> (lists[i] & 31)) & 1
        if lost == 0:
            return
    record = t.lexer_masks(ctx)[lexer_state]
    record.tokens = used(ctx, t.TOKEN_LISTS)
    if held or left - used(ctx, t.TOKEN_LISTS) + n > ctx[N_WORDS]:
        clear_scratch(ctx)
        if dense != NO_DENSE:
            add_dense(ctx, dense)
        allow_listed(ctx, used(ctx, t.TOKEN_LISTS), left - used(ctx, t.TOKEN_LISTS))
        _mark_below(ctx, base, first, end, False)
        allow_found(ctx, n)
        record.token_count = 0
        record.dense = keep_dense(ctx)
        return
    set_used(ctx, t.TOKEN_LISTS, left)
    list_found(ctx, n)
    record.token_count = used(ctx, t.TOKEN_LISTS) - record.tokens


@njit_inner(int64(CTX, int64, int64, int64, int64, int64))
def _change_base(ctx, lexer_state, base, closure, agreed, most):
    """Make the mask of a state by that of a base; returns 0, NOT_MINE if ``most`` nodes do not suffice, FAIL or LIMIT.

    With a ``closure``, not 0, the two differ nowhere inside it.  Without one, no text of ``agreed`` bytes tells them
    apart.
    """
    records = t.lexer_masks(ctx)
    status = far_call(ctx, links.F_LEXER_MASK, base, 0)
    if status < 0:
        return status
    listed = records[base].token_count
    if not room(ctx, t.DENSE_MASKS, ctx[N_WORDS]) or not room(ctx, t.TOKEN_LISTS, listed + ctx[N_WORDS]):
        return int64(FAIL)
    first, first_boundary = used(ctx, t.WORK_STACK), used(ctx, t.BOUNDARIES)
    left = _blanks_left(ctx, lexer_state, base) if agreed > 0 else int64(-1)
    if left >= 0:
        head = t.expressions(ctx)[t.lexer_members(ctx)[t.lexer_states(ctx)[lexer_state].offset + 1]].first
        n = _longer_runs(ctx, t.expressions(ctx)[t.expressions(ctx)[head].first].first, left, base)
    else:
        if not closure:
            _find_heights(ctx)
        n = _differences(ctx, lexer_state, base, closure, agreed, most)
    if n < 0:
        set_used(ctx, t.WORK_STACK, first)
        set_used(ctx, t.BOUNDARIES, first_boundary)
        return n
    end = used(ctx, t.WORK_STACK)
    if end > first and (find_followed(ctx) < 0 or _keep_boundaries(ctx, base, first, end) < 0):
        set_used(ctx, t.BOUNDARIES, first_boundary)
        return int64(FAIL)
    # Nothing can fail any more.
    records[lexer_state] = records[base]
    if end > first:
        records[lexer_state].boundaries = first_boundary
        records[lexer_state].boundary_count = used(ctx, t.BOUNDARIES) - first_boundary
        _change_tokens(ctx, lexer_state, base, first, n)
    set_used(ctx, t.WORK_STACK, first)
    return int64(0)


@njit_inner(RESULT2)
def relative_mask(ctx, lexer_state, _unused):
    """Make the mask of a state by that of its twin, or of its relaxation.

    Returns 0, NOT_MINE if it has none that is worth it, FAIL or LIMIT.
    """
    base = relaxed_state(ctx, lexer_state, int64(TWIN))
    if base < 0:
        return base
    if base != lexer_state:
        status = far_call(ctx, links.F_LEXER_MASK, base, 0)
        if status >= 0:
            t.lexer_masks(ctx)[lexer_state] = t.lexer_masks(ctx)[base]
        return status
    is_text = count_first_bytes(ctx, lexer_state) >= TEXT_BYTES
    base = relaxed_state(ctx, lexer_state, int64(WORDS if is_text else BLANKS))
    if base < 0 or base == lexer_state:
        return int64(NOT_MINE) if base >= 0 else base
    return _change_base(ctx, lexer_state, base, int64(0), ctx[AGREED_BYTES], int64(_ALL))


@njit_inner(RESULT2)
def bounded_mask(ctx, lexer_state, _unused):
    """Make the mask of a state by that of the one without bounds on characters; 0, NOT_MINE, FAIL or LIMIT."""
    base = relaxed_state(ctx, lexer_state, int64(_LEAST_CHARACTERS))
    if base < 0 or base == lexer_state or ctx[AGREED_BYTES] == 0:
        return int64(NOT_MINE) if base >= 0 else base
    return _change_base(ctx, lexer_state, base, int64(0), ctx[AGREED_BYTES], int64(_ALL))


@njit_inner(RESULT2)
def mask_along_words(ctx, lexer_state, closure_and_base):
    """Make the mask of a state by that of one that it differs from along a few words.

    Returns 0, NOT_MINE if a lexeme may end inside the closure, FAIL or LIMIT.
    """
    closure, base = closure_and_base >> 32, closure_and_base & 0xFFFFFFFF
    first_boundary = used(ctx, t.BOUNDARIES)
    for state in (lexer_state, base):
        status = far_call(ctx, links.F_ENDS, state, closure)
        if status < 0:
            return status
    if used(ctx, t.BOUNDARIES) != first_boundary:
        set_used(ctx, t.BOUNDARIES, first_boundary)
        return int64(NOT_MINE)
    return _change_base(ctx, lexer_state, base, closure, int64(0), int64(_ALL))


@njit_inner(RESULT2)
def mask_beside(ctx, lexer_state, base):
    """Make the mask of a state by that of any other; 0, NOT_MINE if they differ at many nodes, FAIL or LIMIT."""
    return _change_base(ctx, lexer_state, base, int64(0), int64(0), int64(_MOST_BESIDE))


far_entry(links.F_RELATIVE, relative_mask)
far_entry(links.F_BOUNDED, bounded_mask)
far_entry(links.F_ALONG_WORDS, mask_along_words)
far_entry(links.F_BESIDE, mask_beside)
far_entry(links.F_BORDER, border_tokens)
