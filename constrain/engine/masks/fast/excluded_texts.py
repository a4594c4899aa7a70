"""Repetitions from which some texts are excluded: any key but these, any text without that.

A state of them is that of the repetition but for the few bytes and the few tokens with which an excluded text begins.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata import expressions as e
from constrain.engine.automata.expressions import make_concat
from constrain.engine.automata.lexer_states import step_lexer
from constrain.engine.masks.boundaries import path_to
from constrain.engine.masks.fast.inside_closures import nodes_inside
from constrain.engine.masks.fast.leading_repetitions import repetition_in, starts_with
from constrain.engine.storage import links
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import room, set_used, used
from constrain.engine.storage.bits import lowest_bit
from constrain.engine.storage.header import CLASSES, CTX, LOOP_NODE, RESULT2
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import far_call, far_entry
from constrain.engine.storage.statuses import FAIL
from constrain.engine.vocabulary.trie import DEPTH_SHIFT
from constrain.kernels.language import int32, int64, types

# After so many nodes of the trie at which something may be forbidden, a walk is cheaper.
_MOST_FORBIDDEN = 8192
# A repetition has fewer states, or it is not looked into.
_MOST_BEGUN = 32


@njit_inner(RESULT2)
def _fill_transitions(ctx, lexer_state, _unused):
    """Copy the transitions of "any key but these" from those of "any key" where the bytes tell nothing.

    The excluded strings do not begin with most bytes, and after those the two states are one.  Returns the state of
    "any key", 0 if there is none, FAIL or LIMIT.
    """
    count = t.lexer_states(ctx)[lexer_state].count
    offset = t.lexer_states(ctx)[lexer_state].offset
    base = used(ctx, t.WORK_STACK)
    if not room(ctx, t.WORK_STACK, 2 * count):
        return int64(FAIL)
    set_used(ctx, t.WORK_STACK, base + 2 * count)
    begins, sets = t.first_bytes(ctx), t.summary_sets(ctx)
    w0, w1, w2, w3 = int64(0), int64(0), int64(0), int64(0)
    relaxed = 0
    for i in range(count):
        pool = t.lexer_members(ctx)
        node = pool[offset + 2 * i + 1]
        nodes = t.expressions(ctx)
        head, tail = node, int64(-1)
        if nodes[node].kind == e.CONCAT:
            head, tail = nodes[node].first, nodes[node].second
        repetition = repetition_in(ctx, head) if nodes[head].kind == e.INTERSECT else int64(-1)
        if repetition < 0 or repetition & 1 or nodes[head].second != 2:
            begin = begins[node]
            w0, w1, w2, w3 = w0 | sets[begin, 0], w1 | sets[begin, 1], w2 | sets[begin, 2], w3 | sets[begin, 3]
            continue
        repetition >>= 1
        # Whether the intersection may end here decides about the bytes of what follows it.
        excluded = int64(-1)
        for j in range(2):
            part = t.children(ctx)[nodes[head].first + j]
            if part != repetition:
                excluded = nodes[part].first
        for part in (excluded, tail):
            if part >= 0:
                begin = begins[part]
                w0, w1, w2, w3 = w0 | sets[begin, 0], w1 | sets[begin, 1], w2 | sets[begin, 2], w3 | sets[begin, 3]
        relaxed_node = repetition
        if tail >= 0:
            relaxed_node = make_concat(ctx, repetition, tail)
            if relaxed_node < 0:
                return relaxed_node
        t.work_stack(ctx)[base + 2 * relaxed] = pool[offset + 2 * i]
        t.work_stack(ctx)[base + 2 * relaxed + 1] = relaxed_node
        relaxed += 1
    set_used(ctx, t.WORK_STACK, base + 2 * relaxed)
    source = far_call(ctx, links.F_LEXER_STATE, base, relaxed) if relaxed else int64(0)
    set_used(ctx, t.WORK_STACK, base)
    if source <= 0:
        return source
    classes = ctx[CLASSES]
    trans = t.lexer_transitions(ctx)
    class_byte = t.class_bytes(ctx)
    for byte_class in range(classes):
        if trans[lexer_state * classes + byte_class] >= 0:
            continue
        byte = class_byte[byte_class]
        word = w0 if byte < 64 else (w1 if byte < 128 else (w2 if byte < 192 else w3))
        if not (word >> (byte & 63)) & 1:
            target = step_lexer(ctx, source, byte_class)
            if target < 0:
                return target
            trans[lexer_state * classes + byte_class] = target
    return source


@njit_inner(RESULT2)
def _covers(ctx, lexer_state, inside):
    """Whether a member of a state is what is left of a closure, a lexer state, and something behind it (1 or 0)."""
    pool = t.lexer_members(ctx)
    rest = pool[t.lexer_states(ctx)[inside].offset + 1]
    offset = t.lexer_states(ctx)[lexer_state].offset
    for i in range(offset, offset + 2 * t.lexer_states(ctx)[lexer_state].count, 2):
        if starts_with(ctx, pool[i + 1], rest):
            return int64(1)
    return int64(0)


@njit_inner(RESULT2)
def _only_begins(ctx, closure, byte):
    """Whether no repetition of a closure that has begun can go on with a byte (1 or 0); FAIL or LIMIT if < 0.

    So it is with ASCII bytes and the characters of UTF-8.
    """
    bottom = used(ctx, t.WORK_STACK)
    if not room(ctx, t.WORK_STACK, _MOST_BEGUN + 1):
        return int64(FAIL)
    t.work_stack(ctx)[bottom] = closure
    count, i, result = int64(1), int64(0), int64(1)
    set_used(ctx, t.WORK_STACK, bottom + _MOST_BEGUN + 1)
    while i < count and result == 1:
        state = t.work_stack(ctx)[bottom + i]
        for byte_class in range(ctx[CLASSES]):
            there = step_lexer(ctx, int64(state), int64(byte_class))
            if there < 0:
                return there
            k = int64(0)
            while k < count and t.work_stack(ctx)[bottom + k] != there:
                k += 1
            if k == count and there > 0:
                t.work_stack(ctx)[bottom + count] = there
                count += 1
                if count > _MOST_BEGUN or (t.lexer_first_bytes(ctx)[there, byte >> 6] >> (byte & 63)) & 1:
                    result = int64(0)
                    break
        i += 1
    set_used(ctx, t.WORK_STACK, bottom)
    return result


@njit_inner(RESULT2)
def _forbidden_byte(ctx, node, closure):
    """A byte that every token of a closure holds which an intersection forbids; -1 if none is known, FAIL or LIMIT.

    Let all that is forbidden hold a byte with which no repetition goes on that has begun.  A token without it is
    completed without it, and is then one of the repetitions that are not forbidden.
    """
    nodes, pool, starts = t.expressions(ctx), t.children(ctx), t.byte_starts(ctx)
    first, count = nodes[node].first, nodes[node].second
    best, rarest = int64(-1), int64(1 << 40)
    for word in range(4):
        bits = int64(-1)
        for i in range(first, first + count):
            if nodes[pool[i]].kind == e.NOT:
                bits &= e.necessary_bytes(ctx, int64(nodes[pool[i]].first), word)
            elif nodes[pool[i]].second > 0:
                # More repetitions may be asked for, and these might be forbidden.
                return int64(-1)
        while bits:
            byte = 64 * word + lowest_bit(bits)
            bits &= bits - 1
            if starts[byte + 1] - starts[byte] < rarest:
                best, rarest = byte, int64(starts[byte + 1] - starts[byte])
    if best >= 0:
        status = _only_begins(ctx, closure, best)
        if status <= 0:
            return status if status < 0 else int64(-1)
    return best


@njit_inner(types.UniTuple(int64, 2)(CTX, int64, int64, int64, int64))
def _forbid_below(ctx, p, stop, whole, last):
    """Take from the scratch mask what a state forbids of the tokens in a closure from trie node ``p`` up to ``stop``.

    WALK_STACK has the state before ``p``, WIDE_STACK the closure, ``whole`` is its repetition.  ``last`` is what was
    asked last, which is mostly asked next too: ``state << 32 | what is left of the closure << 1``, and 1 if nothing is
    forbidden there any more; or -1.

    Returns how many nodes were visited, FAIL or LIMIT; and what was asked last.
    """
    nodes = t.trie_nodes(ctx)
    sizes = t.subtree_sizes(ctx)
    tokens = t.node_tokens(ctx)
    stack = t.walk_stack(ctx)
    inside = t.wide_stack(ctx)
    class_of = t.byte_classes(ctx)
    scratch = t.scratch_mask(ctx)
    same = t.same_bytes(ctx)
    visits = int64(0)
    while p < stop and visits <= _MOST_FORBIDDEN:
        visits += 1
        depth = nodes[p] >> DEPTH_SHIFT
        byte_class = class_of[nodes[p] & 255]
        outer = step_lexer(ctx, int64(inside[depth]), byte_class)
        if outer < 0:
            return outer, last
        if outer == 0:
            p += sizes[p]
            continue
        there = step_lexer(ctx, int64(stack[depth]), byte_class)
        if there < 0:
            return there, last
        if there == 0:
            for q in range(p, p + sizes[p]):
                token = tokens[q]
                while token >= 0:
                    scratch[token >> 5] &= ~(int32(1) << int32(token & 31))
                    token = same[token] if len(same) else int64(-1)
            p += sizes[p]
            continue
        asked = there << 32 | outer << 1
        if last & ~1 != asked:
            covered = _covers(ctx, there, outer)
            if not covered:
                loop = far_call(ctx, links.F_REPETITION, there, 0)
                if loop < -1:
                    return loop, last
                covered = int64(loop == whole)
            last = asked | covered
        if last & 1:
            p += sizes[p]
            continue
        stack[depth + 1], inside[depth + 1] = there, outer
        p += 1
    return visits, last


@njit_inner(RESULT2)
def _forbid(ctx, lexer_state, closure):
    """Take from the scratch mask the tokens in the closure that the state forbids; returns 0, 1 if it takes too long.

    The trie is walked only below nodes with a byte that no forbidden token lacks, if one is known, and only as far as
    the state is not yet one with all of the closure.  FAIL or LIMIT if < 0.
    """
    # The repetition of the state was looked for last.
    byte = _forbidden_byte(ctx, ctx[LOOP_NODE], closure)
    if byte < -1:
        return byte
    whole = far_call(ctx, links.F_REPETITION, closure, 0)
    if whole < 0:
        return whole
    stack, inside = t.walk_stack(ctx), t.wide_stack(ctx)
    stack[0], inside[0] = lexer_state, closure
    visits, last = int64(0), int64(-1)
    if byte < 0:
        visits, _ = _forbid_below(ctx, int64(0), int64(len(t.trie_nodes(ctx))), whole, last)
        return visits if visits < 0 else int64(visits > _MOST_FORBIDDEN)
    record = nodes_inside(ctx, closure, byte)
    if record < 0:
        return record
    sizes, done = t.subtree_sizes(ctx), int64(0)
    first = t.closure_bytes(ctx)[record + 2]
    for i in range(first, first + t.closure_bytes(ctx)[record + 3]):
        top = int64(t.closure_nodes(ctx)[i])
        if top < done:
            continue
        done = top + sizes[top]
        # What leads there: no byte of it is forbidden.
        path = path_to(ctx, top)
        place, depth = t.token_starts(ctx)[path >> 32], (path & 0xFFFFFFFF) - 1
        for above in range(depth):
            byte_class = t.byte_classes(ctx)[t.token_bytes(ctx)[place + above]]
            there = step_lexer(ctx, int64(stack[above]), byte_class)
            outer = step_lexer(ctx, int64(inside[above]), byte_class)
            if there < 0 or outer < 0:
                return min(there, outer)
            stack[above + 1], inside[above + 1] = there, outer
        visited, last = _forbid_below(ctx, top, done, whole, last)
        visits += visited
        if visited < 0 or visits > _MOST_FORBIDDEN:
            return min(visited, int64(1))
    return int64(0)


far_entry(links.F_FILL, _fill_transitions)
far_entry(links.F_FORBID, _forbid)
