"""What each token that is allowed would leave to be finished, in tokens: the mask under a budget.

A walk over the trie with whole states, as for a recognizer; each state's count is known after its first
visit (budget/completions.py).  Inside a string that would be a hundred thousand tokens, so most of it is left out:

    No token that stays within the lexemes of a state needs more than a token for each byte that finishing
    then costs at most (budget/costs.py).  Often it is far less: let the only configuration of a state be in the only
    lexeme x, begun in the Earley set r, with the expression e, and T the state after x in r.  However x goes on, it
    can be finished at the cost WORST of e at most, a token for each byte; and then T.  So no token that stays
    within x needs more than WORST(e) + tokens(T).

This is so for the counts as they are, not only for some completion.  The completion of a state in the
middle of x is a way to the end of x and then that of T: where x could go on as well as end, going on means
ending it later, which costs more.

If that is within the budget, the tokens below the trie node are left out, but for those that go beyond the
end of x.  They are found by the boundaries of the lexer mask (masks/boundary_walks.py), and their states are visited.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata.lexer_states import NO_DENSE
from constrain.engine.conditions.budget.completions import CHAIN_LIMIT, reset_costs
from constrain.engine.conditions.budget.expression_costs import MISSING, NEVER
from constrain.engine.masks.boundaries import path_to
from constrain.engine.masks.boundary_walks import NO_MORE, begin_boundaries, next_boundary
from constrain.engine.masks.token_walks import note_open, walk_tokens
from constrain.engine.parser.configurations import IS_HARD, state_at_set, state_kinds
from constrain.engine.storage import links
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import room, set_used, take, used
from constrain.engine.storage.best_first import note_way
from constrain.engine.storage.header import CLASSES, CTX, N_WORDS, OPEN, RESULT1, RESULT2, RESULT3
from constrain.engine.storage.jit import njit_entry, njit_inner
from constrain.engine.storage.links import far_call, far_entry
from constrain.engine.storage.statuses import FAIL, IN_GROUPS, NO_GROUPS
from constrain.engine.vocabulary.trie import DEPTH_SHIFT
from constrain.kernels.language import int32, int64, types, uint64

_SHIFT, _BYTE = uint64(DEPTH_SHIFT), uint64(255)

_MOST_GROUPS = 4095

# More tokens than this in a string are not gone through one by one.
_MANY = 8192

# As many tokens as there are.
_ANY_NUMBER = 1 << 40

# A depth below all trie nodes.
_NOWHERE = 1 << 30

ALL, CROSSINGS_ONLY = -1, -2
"""Instead of a budget, for :func:`cost_tokens`: leave nothing out; leave out all that stays within the lexemes.

From CROSSINGS_ONLY the budget is taken that decides about tokens that depend on the text.
"""


@njit_inner(RESULT2)
def _tokens_after(ctx, earley_set, lexeme):
    """What finishing takes in the state after a lexeme that began in an Earley set.

    NEVER if that is not sure; FAIL or LIMIT if < 0.
    """
    top = used(ctx, t.WORK_STACK)
    if not room(ctx, t.WORK_STACK, 1) or not room(ctx, t.STATE_WORK, 1):
        return int64(FAIL)
    t.work_stack(ctx)[top] = lexeme
    accept = far_call(ctx, links.F_ACCEPT_SET, top, 1)
    if accept < 0:
        return accept
    t.state_work(ctx)[0] = earley_set << 32 | accept
    after_set = far_call(ctx, links.F_SCAN, 0, 1)
    if after_set < 0:
        return after_set
    after = state_at_set(ctx, after_set)
    if after < 0:
        return after
    count = far_call(ctx, links.F_TOKENS, after, 0)
    # A long completion is not counted by how it is cut into tokens.
    if count >= 0 and t.state_costs(ctx)[after].least > CHAIN_LIMIT - MISSING:
        return int64(NEVER)
    return count


@njit_inner(types.boolean(CTX, int64))
def _has_begun(ctx, state):
    """Whether a lexeme may have begun with the last byte, which means that one may have ended."""
    offset = t.states(ctx)[state].offset
    for i in range(offset, offset + t.states(ctx)[state].count):
        core = t.earley_sets(ctx)[t.configurations(ctx)[i].earley_set].core
        if t.cores(ctx)[core].initial == t.configurations(ctx)[i].lexer_state:
            return True
    return False


@njit_inner(RESULT1)
def _inside(ctx, state):
    """What a token that stays within the lexemes of a state needs at most; NEVER if not known, FAIL or LIMIT."""
    status = far_call(ctx, links.F_STATE_COST, state, 0)
    if status < 0:
        return status
    walk = t.cost_walk(ctx)[0]
    # No more than a token for each byte; unless there is a byte that is no token.
    worst = t.state_costs(ctx)[state].worst
    if worst < MISSING and worst <= walk.budget:
        return worst
    if t.states(ctx)[state].count != 1:
        return int64(NEVER)
    configuration = t.configurations(ctx)[t.states(ctx)[state].offset]
    earley_set, lexer_state = configuration.earley_set, t.lexer_states(ctx)[configuration.lexer_state]
    if lexer_state.count != 1:
        return int64(NEVER)
    member = lexer_state.offset
    lexeme, expression = t.lexer_members(ctx)[member], t.lexer_members(ctx)[member + 1]
    worst = t.expression_costs(ctx)[expression].worst
    if worst >= MISSING:
        return int64(NEVER)
    # Most calls ask for the same lexeme as the last one.
    if walk.earley_set != earley_set or walk.lexeme != lexeme:
        behind = _tokens_after(ctx, earley_set, lexeme)
        if behind < 0:
            return behind
        walk.earley_set, walk.lexeme, walk.behind = earley_set, lexeme, behind
    return min(worst + walk.behind, int64(NEVER))


@njit_inner(RESULT3)
def note_token(ctx, token, count, n):
    """Append a token and those with the same bytes to the ``n`` in TOKEN_COSTS, each once; how many there are then."""
    out = t.token_costs(ctx)
    seen = t.scratch_mask(ctx)
    same = t.same_bytes(ctx)
    while token >= 0:
        if not (seen[token >> 5] >> (token & 31)) & 1:
            seen[token >> 5] |= 1 << (token & 31)
            out[n] = token, count
            n += 1
        token = same[token] if len(same) else int64(-1)
    return n


@njit_inner(RESULT2)
def _note_state(ctx, token, state):
    """Note a token with the count of the state behind it, unless that is surely low enough; 0, FAIL or LIMIT."""
    status = far_call(ctx, links.F_STATE_COST, state, 0)
    if status < 0:
        return status
    walk = t.cost_walk(ctx)[0]
    least = t.state_costs(ctx)[state].least
    if least < MISSING and least <= walk.budget:
        # Finding out how its completion is cut into tokens would mean going through it.
        walk.needed = max(walk.needed, least)
        return int64(0)
    count = far_call(ctx, links.F_TOKENS, state, 0)
    if count < 0:
        return count
    walk.count = note_token(ctx, token, count, walk.count)
    return int64(0)


@njit_inner(RESULT1)
def _least(ctx, state):
    """What finishing costs from a state, in bytes that are tokens; NEVER if not in such, FAIL or LIMIT."""
    status = far_call(ctx, links.F_STATE_COST, state, 0)
    if status < 0:
        return status
    least = t.state_costs(ctx)[state].least
    return least if least < MISSING else int64(NEVER)


@njit_inner(RESULT1)
def _leave_open(ctx, node):
    """Note a trie node from which on the text decides what tokens leave to be finished, once in a row; 0 or FAIL."""
    n = used(ctx, t.OPEN_NODES)
    if n > 0 and t.open_nodes(ctx)[n - 1] == node:
        return int64(0)
    return note_open(ctx, node)


@njit_inner(RESULT2)
def _leave_out(ctx, begin, end):
    """Leave out a part of the trie, whose tokens need little enough; 0 or FAIL."""
    n = take(ctx, t.LEFT_OUT, int64(1))
    if n < 0:
        return n
    t.left_out(ctx)[n] = begin, end
    return int64(0)


@njit_inner(RESULT2)
def _visit(ctx, node, there):
    """Note the token of a trie node with the count of its state; how many nodes to go on (token_walks.walk_tokens).

    Where the text decides how it goes on, the rules that stand in for those that it will be cost no less.  If that is
    not within the budget, or nothing stands in for them, the trie node goes to OPEN_NODES and the walk goes round it.
    """
    walk = t.cost_walk(ctx)[0]
    token, size = t.node_tokens(ctx)[node], t.subtree_sizes(ctx)[node]
    if there >= OPEN:
        there -= OPEN
        if node >= walk.open_end:
            walk.open_node, walk.open_end = node, node + size
        if state_kinds(ctx, there) & IS_HARD:
            status = _leave_open(ctx, walk.open_node)
            return status if status < 0 else walk.open_end - node
        if there == 0:
            return size
    if node < walk.open_end:
        if token >= 0:
            bound = _least(ctx, there)
            if bound < 0:
                return bound
            if bound > walk.open_budget:
                status = _leave_open(ctx, walk.open_node)
                return status if status < 0 else walk.open_end - node
            walk.needed = max(walk.needed, bound)
            if walk.budget < 0:
                walk.count = note_token(ctx, token, bound, walk.count)
    elif token >= 0:
        status = _note_state(ctx, token, there)
        if status < 0:
            return status
        walk.visited += 1
        if walk.visited > walk.patience:
            return int64(IN_GROUPS)
    if walk.may_skip and size > 1:
        depth = t.trie_nodes(ctx)[node] >> DEPTH_SHIFT
        if depth <= walk.ended:
            walk.ended = depth if _has_begun(ctx, there) else int64(_NOWHERE)
        if depth < walk.ended:
            bound = _inside(ctx, there)
            if bound < 0:
                return bound
            if bound <= walk.budget:
                walk.needed = max(walk.needed, bound)
                status = _leave_out(ctx, node, node + size)
                return status if status < 0 else size
    return int64(1)


far_entry(links.F_COST_NODE, _visit)


@njit_inner(RESULT2)
def _cost_below(ctx, root, state):
    """Note the tokens below trie node ``root`` with the counts of their states; 0 or a status.

    If ``root`` is -1 it is the whole trie, of which parts may be left out.  If OPEN is added to the state, the text
    decides how it goes on from there: the state stands in for the one that it will be.
    """
    walk = t.cost_walk(ctx)[0]
    walk.may_skip = root < 0 and walk.budget >= 0
    walk.visited = 0
    # From this depth on a lexeme has ended on the way, and nothing may be left out.
    walk.ended = _NOWHERE
    # The part of the trie behind a place where the text decides, in which the walk is.
    walk.open_node, walk.open_end = root, 0
    if state >= OPEN:
        walk.open_end = root + t.subtree_sizes(ctx)[root]
        state -= OPEN
    return min(walk_tokens(ctx, root, state, int64(links.F_COST_NODE)), int64(0))


@njit_inner(types.boolean(CTX, int64))
def _is_left_out(ctx, node):
    """Whether a trie node is in one of the parts that were left out, which are in the order of the trie."""
    parts = t.left_out(ctx)
    low, high = int64(0), used(ctx, t.LEFT_OUT)
    while low < high:
        middle = (low + high) // 2
        if parts[middle].begin <= node:
            low = middle + 1
        else:
            high = middle
    return low > 0 and node < parts[low - 1].end


@njit_inner(RESULT2)
def _state_at(ctx, state, node):
    """The state after the bytes of a trie node, with OPEN added if it is an open one; 0 if it is dead, or < 0."""
    class_of = t.byte_classes(ctx)
    data = t.token_bytes(ctx)
    path = path_to(ctx, node)
    first = t.token_starts(ctx)[path >> 32]
    here = state
    last = first + (path & 0xFFFFFFFF) - 1
    for k in range(first, last + 1):
        byte_class = class_of[data[k]]
        there = t.transitions(ctx)[here * ctx[CLASSES] + byte_class]
        here = there if there >= 0 else far_call(ctx, links.F_STEP, here, byte_class)
        if here <= 0:
            break
        if here >= OPEN and k < last:
            # The walk comes this way from the node where that is.
            return int64(0)
    return here


@njit_inner(RESULT1)
def begin_listing(ctx, budget):
    """Empty what the costs of tokens are written to; ``budget`` is -1 if nothing may be left out.  0 or FAIL."""
    reset_costs(ctx)
    set_used(ctx, t.OPEN_NODES, 0)
    set_used(ctx, t.LEFT_OUT, 0)
    if not room(ctx, t.TOKEN_COSTS, 32 * ctx[N_WORDS]):
        return int64(FAIL)
    seen = t.scratch_mask(ctx)
    for i in range(ctx[N_WORDS]):
        seen[i] = 0
    walk = t.cost_walk(ctx)[0]
    walk.budget, walk.open_budget, walk.count, walk.needed = budget, budget, 0, -1
    walk.patience, walk.earley_set = _ANY_NUMBER, -1
    return int64(0)


@njit_inner(RESULT1)
def _cost_beyond(ctx, state):
    """Note the tokens that go beyond a lexeme, in the parts of the trie that were left out; 0 or a status."""
    begin_boundaries(ctx, t.states(ctx)[state].offset, t.states(ctx)[state].count)
    node = next_boundary(ctx)
    while node >= 0:
        if _is_left_out(ctx, node):
            # The boundary says what comes after one lexeme; others may go on.
            here = _state_at(ctx, state, node)
            status = min(here, int64(0))
            if here >= OPEN and state_kinds(ctx, here - OPEN) & IS_HARD:
                status = _leave_open(ctx, node)
            elif here > 0:
                status = _cost_below(ctx, node, here)
            if status < 0:
                return status
        node = next_boundary(ctx)
    return node if node < NO_MORE else int64(0)


@njit_entry(int64(CTX, int64, int64, int64[::1]))
def cost_tokens(ctx, state, most, needed):
    """Find out how many tokens finish the text after each token that is allowed.

    Parameters
    ----------
    ctx : int64[...]
    state : int
        Its lexer masks are made here if they are not known.
    most : int
        How many there may be; tokens that surely need no more can be left out.  Or ALL, or CROSSINGS_ONLY less a
        budget: tokens that depend on the text and surely need no more than that are noted with what is sure.
    needed : int64[1]
        Output: the most that a token that was left out needs, or one of which no more is known than what is sure; or
        -1 if there is none.

    Returns
    -------
    n, FAIL, LIMIT, UNMADE or IN_GROUPS.  TOKEN_COSTS then begins with the ``n`` tokens that were looked at, each
    with its count (NEVER if none is known), in any order.  What the text decides is not among them, nor left out: the
    tokens at and below the nodes in OPEN_NODES.
    """
    # The mask may have been forgotten since it was written, and the lexer masks with it.  What makes one uses
    # SCRATCH_MASK.
    reset_costs(ctx)
    offset = t.states(ctx)[state].offset
    for i in range(offset, offset + t.states(ctx)[state].count):
        status = far_call(ctx, links.F_LEXER_MASK, t.configurations(ctx)[i].lexer_state, 0)
        if status < 0:
            return status
    if begin_listing(ctx, max(most, int64(ALL))) < 0:
        return int64(FAIL)
    for i in range(len(t.empty_tokens(ctx))):
        status = _note_state(ctx, t.empty_tokens(ctx)[i], state)
        if status < 0:
            return status
    bound = _inside(ctx, state)
    if bound < 0:
        return bound
    walk = t.cost_walk(ctx)[0]
    if bound <= most or most <= CROSSINGS_ONLY:
        if most >= 0:
            walk.needed = bound
        else:
            walk.open_budget = CROSSINGS_ONLY - most
        status = _leave_out(ctx, int64(0), len(t.trie_nodes(ctx)))
    else:
        if most >= 0 and t.states(ctx)[state].count == 1:
            if t.lexer_masks(ctx)[t.configurations(ctx)[offset].lexer_state].dense != NO_DENSE:
                if bound < NEVER:
                    return int64(IN_GROUPS)
                walk.patience = _MANY
        status = _cost_below(ctx, int64(-1), state)
    if status == 0 and used(ctx, t.LEFT_OUT) > 0:
        status = _cost_beyond(ctx, state)
    needed[0] = walk.needed
    return status if status < 0 else walk.count


@njit_entry(RESULT2)
def cost_below(ctx, state, node):
    """Find out how many tokens finish the text after each token at or below a trie node that leads to a state.

    The result is that of :func:`cost_tokens`, where nothing is left out.
    """
    if begin_listing(ctx, int64(ALL)) < 0:
        return int64(FAIL)
    if t.node_tokens(ctx)[node] >= 0:
        status = _note_state(ctx, t.node_tokens(ctx)[node], state)
        if status < 0:
            return status
    status = _cost_below(ctx, node, state)
    return status if status < 0 else t.cost_walk(ctx)[0].count


@njit_entry(int64(CTX, int64))
def group_tokens(ctx, lexer_state):
    """Group the tokens that stay within the lexemes of a lexer state by the lexer state that they lead to.

    Of a state with one configuration all tokens of a group lead to one state, as long as no lexeme can end on the way.

    Returns
    -------
    n, FAIL, LIMIT; or NO_GROUPS if a lexeme can end on the way.  TOKEN_COSTS then begins with the ``n`` tokens, each
    with its group; SEARCH_WAYS has a way to each group, whose step is one of its tokens.
    """
    if begin_listing(ctx, int64(ALL)) < 0:
        return int64(FAIL)
    set_used(ctx, t.SEARCH_WAYS, 0)
    nodes = t.trie_nodes(ctx)
    sizes = t.subtree_sizes(ctx)
    tokens = t.node_tokens(ctx)
    stack = t.walk_stack(ctx)
    class_of = t.byte_classes(ctx)
    trans = t.lexer_transitions(ctx)
    lex = t.lexer_states(ctx)
    classes = uint64(ctx[CLASSES])
    stack[0] = lexer_state
    n = int64(0)
    p = uint64(0)
    while p < uint64(len(nodes)):
        node = uint64(nodes[p])
        depth = node >> _SHIFT
        here = uint64(stack[depth])
        byte_class = uint64(class_of[node & _BYTE])
        there = trans[here * classes + byte_class]
        if there < 0:
            there = far_call(ctx, links.F_LEXER_STEP, int64(here), int64(byte_class))
            if there < 0:
                return there
        if there == 0:
            p += uint64(sizes[p])
            continue
        if depth > uint64(0) and lex[int64(here)].accept:
            return int64(NO_GROUPS)
        if tokens[p] >= 0:
            if note_way(ctx, t.SEARCH_HEAP, there, int64(0), int64(-1), tokens[p]) == FAIL:
                return int64(FAIL)
            group = t.search_places(ctx)[there]
            if group >= _MOST_GROUPS:
                return int64(NO_GROUPS)
            n = note_token(ctx, tokens[p], group, n)
        stack[depth + uint64(1)] = there
        p += uint64(1)
    return n


@njit_entry(types.void(types.int32[:, ::1], int64, int32[::1]))
def forbid_tokens(out, index, tokens):
    """Clear the bits of tokens (int32[n]) in row ``index`` of a mask."""
    row = out[index]
    for token in tokens:
        row[token >> 5] &= ~(int32(1) << (token & int32(31)))


@njit_entry(types.void(CTX, int64, types.int32[:, ::1], int64, int32[::1]))
def allow_only(ctx, state, out, index, tokens):
    """Write the mask of nothing but tokens (int32[n]), and of the end tokens if ``state`` accepts."""
    row = out[index]
    for i in range(ctx[N_WORDS]):
        row[i] = 0
    for token in tokens:
        row[token >> 5] |= int32(1) << (token & int32(31))
    if t.states(ctx)[state].accepts:
        for i in range(len(t.eos_tokens(ctx))):
            token = int32(t.eos_tokens(ctx)[i])
            row[token >> 5] |= int32(1) << (token & int32(31))
