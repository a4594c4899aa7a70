"""The boundaries of a state's configurations, one trie node after the other, each with the state that begins there.

Where a lexeme can end within a token, the rest of the token belongs to what comes after.  The boundaries of a lexer
mask (masks/lexer_masks.py) say where that is, and with which lexemes; the Earley set of the configuration says what
comes after these.  Masks and budgets go through them in the same way:

    begin_boundaries(ctx, first, count)
    node = next_boundary(ctx)
    while node >= 0:
        ...                        # boundary_cursor(ctx)[0].after is the state behind the lexemes that end there
        node = next_boundary(ctx)
    return node if node < NO_MORE else 0
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.masks.boundaries import goes_on, next_node
from constrain.engine.parser.configurations import IS_HARD, first_groups, state_kinds
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import room, used
from constrain.engine.storage.header import CTX, RESULT0, RESULT2
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_GUARDED, F_SCAN, F_STATE_OF_SET, far_call
from constrain.engine.storage.statuses import FAIL, Status
from constrain.kernels.language import int64, types

NO_MORE = Status.NONE.value
"""Instead of a trie node: there is none left."""

# How many states behind lexemes are kept at hand.
_FOLLOWS = 64


@njit_inner(RESULT2)
def _state_after(ctx, earley_set, accept):
    """The state after any lexeme of an accept set, for what is left of a token; FAIL or LIMIT if < 0."""
    if not room(ctx, t.STATE_WORK, 1):
        return int64(FAIL)
    t.state_work(ctx)[0] = earley_set << 32 | accept
    after = far_call(ctx, F_SCAN, 0, 1)
    if after < 0:
        return after
    initial = int64(t.cores(ctx)[t.earley_sets(ctx)[after].core].initial)
    if used(ctx, t.PARSE_CONTEXTS):
        initial = far_call(ctx, F_GUARDED, initial, accept)
    return initial if initial < 0 else far_call(ctx, F_STATE_OF_SET, after, initial)


@njit_inner(RESULT2)
def _follow(ctx, earley_set, accept):
    """Let the cursor be where lexemes of an accept set end, that began in an Earley set; returns 0, FAIL or LIMIT."""
    # A few accept sets take turns.
    place = accept & (_FOLLOWS - 1)
    known = t.follows(ctx)[place]
    key = earley_set << 32 | accept
    if known.key != key:
        after = _state_after(ctx, earley_set, accept)
        if after < 0:
            return after
        t.follows(ctx)[place] = key, after, first_groups(ctx, after)
    cursor = t.boundary_cursor(ctx)[0]
    cursor.after = known.state
    cursor.groups = known.groups
    cursor.kinds = state_kinds(ctx, known.state)
    return int64(0)


@njit_inner(types.void(CTX, int64, int64))
def begin_boundaries(ctx, first, count):
    """Put the cursor before the boundaries of ``count`` configurations, whose lexer masks are known."""
    cursor = t.boundary_cursor(ctx)[0]
    cursor.configuration, cursor.last = first - 1, first + count - 1
    cursor.boundary, cursor.stop, cursor.top, cursor.node, cursor.accept = 0, 0, 0, -1, -1
    known = t.follows(ctx)
    for i in range(_FOLLOWS):
        known[i].key = -1


@njit_inner(RESULT0)
def next_boundary(ctx):
    """The next trie node at which a lexeme can end and a token can go on behind it; NO_MORE, FAIL or LIMIT if < 0.

    It is a node some child of which begins what comes after, as far as the groups of bytes tell; or any, where what
    comes after depends on the text (IS_HARD).  One boundary may stand for many nodes (next_node).
    """
    cursor = t.boundary_cursor(ctx)[0]
    table, children = t.boundaries(ctx), t.child_groups(ctx)
    boundary, stop, top = cursor.boundary, cursor.stop, cursor.top
    accept, groups, is_hard = cursor.accept, cursor.groups, cursor.kinds & IS_HARD != 0
    node = cursor.node
    if node >= 0:
        node = next_node(ctx, top, node + 1)
    while True:
        while node >= 0:
            if is_hard or children[node] & groups:
                cursor.boundary, cursor.stop, cursor.top, cursor.node = boundary, stop, top, node
                cursor.accept = accept
                return node
            node = next_node(ctx, top, node + 1)
        while boundary == stop:
            if cursor.configuration == cursor.last:
                return int64(NO_MORE)
            cursor.configuration += 1
            mask = t.lexer_masks(ctx)[t.configurations(ctx)[cursor.configuration].lexer_state]
            boundary, accept = mask.boundaries, int64(-1)
            stop = boundary + mask.boundary_count
        if table[boundary].accept != accept:
            accept = table[boundary].accept
            status = _follow(ctx, t.configurations(ctx)[cursor.configuration].earley_set, accept)
            if status < 0:
                return status
            groups, is_hard = cursor.groups, cursor.kinds & IS_HARD != 0
        top = table[boundary].node
        boundary += 1
        # Where an identifier can end at every node, few nodes have a child with which anything goes on.
        if is_hard or goes_on(ctx, top, groups):
            node = next_node(ctx, top, int64(0))
