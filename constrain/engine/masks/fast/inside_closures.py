"""Where lexemes end inside a closure: the boundaries of a state among tokens that it allows anyway.

No walk over the tokens of the closure is made.  A lexeme ends with certain bytes, and often it holds a byte that is
rare in the trie; only the nodes with those are tried.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata import expressions as e
from constrain.engine.automata.lexer_states import step_lexer
from constrain.engine.automata.summaries import LONG
from constrain.engine.masks.boundaries import path_to
from constrain.engine.parser.followed import any_is_followed, is_followed
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import room, set_used, take, used
from constrain.engine.storage.bits import lowest_bit
from constrain.engine.storage.header import RESULT1, RESULT2, RESULT3
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_ENDS, far_entry
from constrain.engine.storage.statuses import FAIL
from constrain.engine.vocabulary.trie import DEPTH_SHIFT
from constrain.kernels.language import int64


@njit_inner(RESULT2)
def after_token(ctx, token_and_length, state):
    """The lexer state after the first bytes of a token (``token << 32 | how many``); FAIL or LIMIT if < 0."""
    start = t.token_starts(ctx)[token_and_length >> 32]
    data = t.token_bytes(ctx)
    class_of = t.byte_classes(ctx)
    for i in range(start, start + (token_and_length & 0xFFFFFFFF)):
        state = step_lexer(ctx, state, class_of[data[i]])
        if state <= 0:
            break
    return state


@njit_inner(RESULT2)
def nodes_inside(ctx, closure, byte):
    """The trie nodes with a byte inside a closure, upwards; their place in CLOSURE_BYTES or FAIL.

    They are looked for once for each byte that lexemes, or what is forbidden in them, cannot do without.
    """
    records = t.closure_bytes(ctx)
    for record in range(0, used(ctx, t.CLOSURE_BYTES), 4):
        if records[record] == closure and records[record + 1] == byte:
            return record
    begin, end = t.byte_starts(ctx)[byte], t.byte_starts(ctx)[byte + 1]
    if not room(ctx, t.CLOSURE_BYTES, 4) or not room(ctx, t.CLOSURE_NODES, end - begin):
        return int64(FAIL)
    out = used(ctx, t.CLOSURE_NODES)
    first = out
    for i in range(begin, end):
        p = t.nodes_by_byte(ctx)[i]
        inside = after_token(ctx, path_to(ctx, p), closure)
        if inside < 0:
            return inside
        if inside:
            t.closure_nodes(ctx)[out] = p
            out += 1
    record = used(ctx, t.CLOSURE_BYTES)
    records[record], records[record + 1] = closure, byte
    records[record + 2], records[record + 3] = first, out - first
    set_used(ctx, t.CLOSURE_BYTES, record + 4)
    set_used(ctx, t.CLOSURE_NODES, out)
    return record


@njit_inner(RESULT2)
def last_bytes(ctx, lexer_state, word):
    """A quarter of the set of bytes with which a lexeme can end that anything may follow."""
    count = t.lexer_states(ctx)[lexer_state].count
    offset = t.lexer_states(ctx)[lexer_state].offset
    pool = t.lexer_members(ctx)
    bits = int64(0)
    for i in range(offset, offset + 2 * count, 2):
        if is_followed(ctx, pool[i]):
            bits |= e.last_bytes(ctx, int64(pool[i + 1]), word)
    return bits


@njit_inner(RESULT2)
def necessary_byte(ctx, lexer_state, star):
    """A byte that all strings of a state have, lexemes aside that nothing follows; -1 if none is known.

    Best is one that no repetition of the closure of ``star`` begins with, and then one that is rare in the trie.
    """
    count = t.lexer_states(ctx)[lexer_state].count
    offset = t.lexer_states(ctx)[lexer_state].offset
    pool = t.lexer_members(ctx)
    starts = t.byte_starts(ctx)
    best, rarest = int64(-1), int64(1 << 40)
    for word in range(4):
        bits = int64(-1)
        for i in range(offset, offset + 2 * count, 2):
            if is_followed(ctx, pool[i]):
                bits &= e.necessary_bytes(ctx, int64(pool[i + 1]), word)
        begins = e.first_bytes(ctx, star, word)
        while bits:
            byte = 64 * word + lowest_bit(bits)
            nodes = int64(starts[byte + 1] - starts[byte]) + (int64(1) << 32) * ((begins >> (byte & 63)) & 1)
            bits &= bits - 1
            if nodes < rarest:
                best, rarest = byte, nodes
    return best


@njit_inner(RESULT1)
def _least_depth(ctx, lexer_state):
    """The depth of the least deep trie nodes at which a lexeme can end that anything may follow."""
    offset = t.lexer_states(ctx)[lexer_state].offset
    members = t.lexer_members(ctx)
    least = int64(LONG)
    for i in range(offset, offset + 2 * t.lexer_states(ctx)[lexer_state].count, 2):
        if is_followed(ctx, members[i]):
            least = min(least, int64(t.shortest_lengths(ctx)[members[i + 1]]))
    return least - 1


@njit_inner(RESULT3)
def _end_inside(ctx, lexer_state, closure, p):
    """Append the boundary at a trie node, if a lexeme of the state can end there and it is inside the closure."""
    path = path_to(ctx, p)
    there = after_token(ctx, path, lexer_state)
    if there < 0:
        return there
    accept = t.lexer_states(ctx)[there].accept
    if accept == 0 or not any_is_followed(ctx, accept):
        return int64(0)
    # Outside, below the border, it has been found already.
    inside = after_token(ctx, path, closure)
    if inside <= 0:
        return inside
    end = take(ctx, t.BOUNDARIES, int64(1))
    if end < 0:
        return end
    t.boundaries(ctx)[end] = p, accept
    return int64(0)


@njit_inner(RESULT2)
def _ends_inside(ctx, lexer_state, closure):
    """Append the boundaries at nodes inside the closure; returns 0, FAIL or LIMIT."""
    sizes, nodes = t.subtree_sizes(ctx), t.trie_nodes(ctx)
    # No lexeme ends before its shortest string does.
    least = _least_depth(ctx, lexer_state)
    star = t.lexer_members(ctx)[t.lexer_states(ctx)[closure].offset + 1]
    necessary = necessary_byte(ctx, lexer_state, star)
    if necessary >= 0:
        record = nodes_inside(ctx, closure, necessary)
        if record < 0:
            return record
        w0, w1 = last_bytes(ctx, lexer_state, 0), last_bytes(ctx, lexer_state, 1)
        w2, w3 = last_bytes(ctx, lexer_state, 2), last_bytes(ctx, lexer_state, 3)
        first = t.closure_bytes(ctx)[record + 2]
        done = int64(0)
        for i in range(first, first + t.closure_bytes(ctx)[record + 3]):
            top = t.closure_nodes(ctx)[i]
            for p in range(max(top, done), top + sizes[top]):
                byte = nodes[p] & 255
                word = w0 if byte < 64 else (w1 if byte < 128 else (w2 if byte < 192 else w3))
                if sizes[p] > 1 and (word >> (byte & 63)) & 1 and nodes[p] >> DEPTH_SHIFT >= least:
                    status = _end_inside(ctx, lexer_state, closure, p)
                    if status < 0:
                        return status
            done = max(done, top + sizes[top])
        return int64(0)
    by_byte = t.nodes_by_byte(ctx)
    starts = t.byte_starts(ctx)
    for word in range(4):
        bits = last_bytes(ctx, lexer_state, word)
        while bits:
            byte = 64 * word + lowest_bit(bits)
            bits &= bits - 1
            for i in range(starts[byte], starts[byte + 1]):
                p = by_byte[i]
                if sizes[p] > 1 and nodes[p] >> DEPTH_SHIFT >= least:
                    status = _end_inside(ctx, lexer_state, closure, p)
                    if status < 0:
                        return status
    return int64(0)


far_entry(F_ENDS, _ends_inside)
