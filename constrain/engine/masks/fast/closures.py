"""The closure of a repeated expression: the tokens that are the beginning of some repetitions of it, and its border.

A closure depends on the expression and the vocabulary alone, and grammars share it.  A lexer state of its own stands
for it, and its record has the tokens in place of a mask, the border in place of boundaries.  The tokens that leave
the closure begin with one of the nodes of the trie on the border: the node is not inside, its parent is.  A border
has some thousand nodes, few of which a given state can go on with.  They are kept, with the nodes above them, as a
small trie of its own, over which a state is run (relative_masks.py).
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata.lexer_states import CLOSURE, NO_DENSE, NOT_SPLIT
from constrain.engine.masks.lexer_masks import allow_found, clear_scratch, keep_dense, keep_lexer_mask, with_same_bytes
from constrain.engine.storage import links
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import push_pair, room, set_used, used
from constrain.engine.storage.header import CLASSES, CTX, LIST_END, N_WORDS, RESULT1, RESULT2
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import far_call, far_entry
from constrain.engine.storage.statuses import FAIL, NOT_MINE
from constrain.engine.vocabulary.trie import CHILD_OF_WIDE, DEPTH_SHIFT, LARGE, WIDE
from constrain.kernels.language import int64, types, uint64

_SHIFT, _BYTE, _LARGE, _LEAD = uint64(DEPTH_SHIFT), uint64(255), uint64(LARGE), uint64(0xC0)
_FLAGS = WIDE | CHILD_OF_WIDE | LARGE
_USUAL_BORDER = 8192


@njit_inner(types.void(CTX, int64, int64, int64))
def _close_pairs(ctx, depth, height, out):
    """Write the sizes of the subtrees of the border's trie that are open from ``depth`` up to ``height``."""
    pairs = t.boundaries(ctx)
    path = t.wide_stack(ctx)
    for above in range(depth, height):
        pairs[path[above]].accept = path[above] - out


@njit_inner(RESULT1)
def _walk_closure(ctx, closure):
    """Find the tokens in the closure that a lexer state stands for, and its border; returns how many, FAIL or LIMIT.

    The tokens are left in FOUND_TOKENS.  The border is left at the end of BOUNDARIES, up to the pair LIST_END, as the
    trie of the paths to the nodes on it: pairs in depth-first order of the entry of the node in the trie, and for a
    node on the border its place there, for one above it minus the size of its subtree here.
    """
    nodes = t.trie_nodes(ctx)
    sizes = t.subtree_sizes(ctx)
    tokens = t.node_tokens(ctx)
    wide = t.wide_nodes(ctx)
    stack = t.walk_stack(ctx)
    # The places of the nodes on the path; of those in the border's trie, up to a height, where they are there.
    path = t.wide_stack(ctx)
    class_of = t.byte_classes(ctx)
    classes = uint64(ctx[CLASSES])
    trans = t.lexer_transitions(ctx)
    found = t.found_tokens(ctx)
    pairs = t.boundaries(ctx)
    out = used(ctx, t.BOUNDARIES)
    space = len(pairs)
    height = uint64(0)
    stack[0] = closure
    far_call(ctx, links.F_SELF_LOOP, int64(-1), int64(0))
    looping = int64(-1)
    # As in lexer_masks.walk: unsigned, and without a branch on whether a token ends.
    n, p, stop = uint64(0), uint64(0), uint64(len(nodes))
    while p < stop:
        node = uint64(nodes[p])
        depth = node >> _SHIFT
        here = uint64(stack[depth])
        byte_class = uint64(class_of[node & _BYTE])
        there = trans[here * classes + byte_class]
        if depth < height:
            _close_pairs(ctx, int64(depth), int64(height), out)
            height = depth
        if there <= 0:
            if there < 0:
                there = far_call(ctx, links.F_LEXER_STEP, int64(here), int64(byte_class))
                if there < 0:
                    return there
            if there == 0:
                if out + int64(depth - height) + 1 > space:
                    room(ctx, t.BOUNDARIES, 2 * (out + int64(depth) + 1 - used(ctx, t.BOUNDARIES)))
                    return int64(FAIL)
                while height < depth:
                    pairs[out].node = nodes[path[height]] & ~_FLAGS
                    path[height] = out
                    out += 1
                    height += uint64(1)
                pairs[out] = int64(node) & ~_FLAGS, int64(p)
                out += 1
                p += uint64(sizes[p])
                continue
        token = tokens[p]
        found[n] = token
        n += uint64(token >= 0)
        stack[depth + uint64(1)] = there
        path[depth] = p
        if there == int64(here):
            looping = there
        if looping >= 0 and node & _LARGE:
            state = there if node & _LEAD != _LEAD else int64(here)
            if state == looping:
                taken = far_call(ctx, links.F_SELF_LOOP, state << 32 | wide[p], int64(n))
                if taken != NOT_MINE:
                    n = uint64(taken)
                    p += uint64(sizes[p])
                    continue
        p += uint64(1)
    _close_pairs(ctx, int64(0), int64(height), out)
    ctx[LIST_END] = out
    return with_same_bytes(ctx, int64(n))


@njit_inner(RESULT1)
def _find_closure(ctx, closure):
    """Keep the closure that a lexer state stands for where a lexer mask would be; returns 0, FAIL or LIMIT."""
    words = ctx[N_WORDS]
    # Asked for before the walk: to find out afterwards would mean walking twice.
    if not room(ctx, t.DENSE_MASKS, words) or not room(ctx, t.BOUNDARIES, _USUAL_BORDER):
        return int64(FAIL)
    first = used(ctx, t.BOUNDARIES)
    n = _walk_closure(ctx, closure)
    if n < 0:
        return n
    dense = int64(NO_DENSE)
    if n > words:
        clear_scratch(ctx)
        allow_found(ctx, n)
        set_used(ctx, t.BOUNDARIES, ctx[LIST_END])
        dense = keep_dense(ctx)
        far_call(ctx, links.F_OFFER, closure, 1)
    keep_lexer_mask(ctx, closure, dense, used(ctx, t.TOKEN_LISTS), first)
    return int64(0)


@njit_inner(RESULT2)
def _closure_of(ctx, star, _unused):
    """The lexer state that stands for the closure of ``star``, which has been found; FAIL or LIMIT."""
    base = used(ctx, t.WORK_STACK)
    if not push_pair(ctx, t.WORK_STACK, CLOSURE, star):
        return int64(FAIL)
    closure = far_call(ctx, links.F_LEXER_STATE, base, 1)
    set_used(ctx, t.WORK_STACK, base)
    if closure < 0 or t.lexer_masks(ctx)[closure].dense != NOT_SPLIT:
        return closure
    status = far_call(ctx, links.F_SHARED_MASK, closure, 0)
    if status == NOT_MINE:
        status = _find_closure(ctx, closure)
    return closure if status >= 0 else status


far_entry(links.F_FIND_CLOSURE, _closure_of)
