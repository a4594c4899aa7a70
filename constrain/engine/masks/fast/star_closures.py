"""Closures: the tokens that stay inside a repetition, and splits that are made from them.

Inside a JSON string a state may repeat a character without end, and so every token that is made of whole or begun
characters is allowed, whether the string is plain, has a least length, has to match a pattern somewhere or is any
key but twenty.  Let a member of the state begin with a repetition ``C{low,}``.  A token that is the beginning of
some ``C C ... C`` can be completed to enough of them, and then by the rest of the member; so it is allowed.  The
set of those tokens is the *closure* of C.  It depends on C and the vocabulary alone, and grammars share it.

What is left are the tokens that leave the closure.  They begin with one of the nodes of the trie on its
*border*: the node is not inside, its parent is.  A border has some thousand nodes, few of which a given state can
go on with.  The closure keeps them, with the nodes above them, as a small trie of its own, over which the state is
run.  Lexemes that end inside the closure end with certain bytes, and are looked for among the nodes with those.

With an upper bound, ``C{low,high}``, tokens with more than ``high`` repetitions are taken away again
(fast/repetitions.py).  Where their number does not tell all, the mask is relative to that without the bound
(fast/relative_masks.py).
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata.expressions import (
    CONCAT,
    INTERSECT,
    LITERAL,
    LOOP_FLAG,
    NOT,
    REPEAT,
    UNION,
    make_concat,
    make_repeat,
)
from constrain.engine.automata.lexer_states import CLOSURE, NO_DENSE, NOT_SPLIT
from constrain.engine.automata.liveness import is_live
from constrain.engine.automata.summaries import LONG
from constrain.engine.masks.boundaries import next_node
from constrain.engine.masks.fast import relative_masks  # noqa: F401 (its walk over borders is called through a link)
from constrain.engine.masks.fast.relaxations import relaxed_state
from constrain.engine.masks.fast.repetitions import (
    allow_up_to,
    bound_tells,
    counted_place,
    forbid_beyond,
    more_repetitions,
)
from constrain.engine.masks.lexer_masks import (
    FIRST_SHARED,
    add_dense,
    allow_found,
    allow_listed,
    clear_scratch,
    keep_dense,
    keep_lexer_mask,
    list_found,
    take_dense,
    with_same_bytes,
)
from constrain.engine.parser.followed import any_is_followed, find_followed, is_followed
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import push, push_pair, room, set_used, used
from constrain.engine.storage.bits import count_bits, lowest_bit
from constrain.engine.storage.header import (
    CLASSES,
    CTX,
    LIST_END,
    LONGEST,
    LOOP_NODE,
    N_WORDS,
    RESULT1,
    RESULT2,
    RESULT3,
)
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import (
    F_ALONG_WORDS,
    F_BORDER,
    F_BOUNDED,
    F_BY_SUCCESSOR,
    F_ENDS,
    F_FILL,
    F_FIND_CLOSURE,
    F_FORBID,
    F_LEXER_MASK,
    F_LEXER_STATE,
    F_LEXER_STEP,
    F_OFFER,
    F_REPETITION,
    F_SELF_LOOP,
    F_SHARED_MASK,
    F_STAR_CLOSURE,
    far_call,
    far_entry,
)
from constrain.engine.storage.statuses import FAIL, NOT_MINE, UNSORTED
from constrain.engine.vocabulary.trie import CHILD_OF_WIDE, DEPTH_SHIFT, LARGE, WIDE
from constrain.kernels.language import int32, int64, types, uint64

_SHIFT, _BYTE, _LARGE, _LEAD = uint64(DEPTH_SHIFT), uint64(255), uint64(LARGE), uint64(0xC0)
_FLAGS = WIDE | CHILD_OF_WIDE | LARGE
# In place of the most repetitions: any number; any number, but some prefixes are forbidden.
_UNBOUNDED, _PARTLY = 0xFFFFFFFF, 0xFFFFFFFE
# After so many nodes of the trie at which something may be forbidden, a walk is cheaper.
_MOST_FORBIDDEN = 8192
# Fewer repetitions than this rule out so many tokens that a walk is cheaper than trying them.
_LEAST_HIGH = 10
# Closures of few bytes (white space, digits) are as quickly walked.
_LEAST_BYTES = 16
# More trie nodes than this at which a lexeme might end inside are not worth trying.
_MOST_ENDS = 2048
_USUAL_BORDER = 8192
# A repetition has fewer states, or it is not looked into.
_MOST_BEGUN = 32
_MOST_ALTERNATIVES = 4096


@njit_inner(RESULT1)
def _repetition(ctx, node):
    """The repetition that a node is: ``node << 1``, or -1.

    Of the intersection of an unbounded one with complements, the repetition.  If what is forbidden is finite, any
    prefix of the repetition goes on in infinitely many ways, of which finitely many are forbidden.  Else some
    prefixes may be forbidden, and 1 is added.
    """
    nodes = t.expressions(ctx)
    if nodes[node].kind == REPEAT:
        return node << 1
    if nodes[node].kind != INTERSECT:
        return int64(-1)
    pool = t.children(ctx)
    found, partly = int64(-1), int64(0)
    for i in range(nodes[node].first, nodes[node].first + nodes[node].second):
        part = pool[i]
        kind = nodes[part].kind
        if kind == REPEAT and nodes[part].third < 0 and found < 0:
            found = part
        elif kind != NOT:
            return int64(-1)
        elif nodes[nodes[part].first].flags & LOOP_FLAG:
            partly = int64(1)
    return found << 1 | partly if found >= 0 else int64(-1)


@njit_inner(RESULT2)
def _starts_with(ctx, node, start):
    """Whether a node is ``start`` or a sequence of that and more (1 or 0)."""
    nodes = t.expressions(ctx)
    while node != start and nodes[node].kind == CONCAT:
        if nodes[start].kind != CONCAT:
            return int64(nodes[node].first == start)
        if nodes[node].first != nodes[start].first:
            return int64(0)
        node, start = nodes[node].second, nodes[start].second
    return int64(node == start)


@njit_inner(RESULT2)
def _is_complemented(ctx, lexer_state, node):
    """Whether what an intersection forbids is allowed by another member of the state, all but finitely much (1 or 0).

    So it is with the keys of an object that match a pattern, and the additional ones, which do not.
    """
    nodes = t.expressions(ctx)
    pool = t.children(ctx)
    first, count = nodes[node].first, nodes[node].second
    forbidden = int64(-1)
    for i in range(first, first + count):
        if nodes[pool[i]].kind == NOT:
            inner = nodes[pool[i]].first
            if nodes[inner].flags & LOOP_FLAG:
                if forbidden >= 0:
                    return int64(0)
                forbidden = inner
    members = t.lexer_members(ctx)
    offset = t.lexer_states(ctx)[lexer_state].offset
    for i in range(offset, offset + 2 * t.lexer_states(ctx)[lexer_state].count, 2):
        member = members[i + 1]
        if _starts_with(ctx, member, forbidden):
            return int64(1)
        if nodes[member].kind == CONCAT:
            member = nodes[member].first
        if nodes[member].kind != INTERSECT or member == node:
            continue
        # The other member asks for what is forbidden here, and for nothing that is not asked for here.
        asks, same = False, True
        for j in range(nodes[member].first, nodes[member].first + nodes[member].second):
            if pool[j] == forbidden:
                asks = True
                continue
            found = False
            for k in range(first, first + count):
                found = found or pool[k] == pool[j]
            same = same and found
        if asks and same:
            return int64(1)
    return int64(0)


@njit_inner(RESULT2)
def _loop_of(ctx, lexer_state, _unused):
    """The repetition that most tokens stay in: ``star << 32 | most repetitions``, -1 if there is none, or FAIL.

    ``star`` is the node of ``C*``.  LOOP_NODE is the repetition, or its intersection with what is forbidden.
    """
    count = t.lexer_states(ctx)[lexer_state].count
    offset = t.lexer_states(ctx)[lexer_state].offset
    item, most = int64(-1), int64(-1)
    bottom = used(ctx, t.WORK_STACK)
    if not room(ctx, t.WORK_STACK, count):
        return int64(FAIL)
    for i in range(count):
        t.work_stack(ctx)[bottom + i] = t.lexer_members(ctx)[offset + 2 * i + 1]
    set_used(ctx, t.WORK_STACK, bottom + count)
    looked_at = 0
    while used(ctx, t.WORK_STACK) > bottom and looked_at < _MOST_ALTERNATIVES:
        looked_at += 1
        top = used(ctx, t.WORK_STACK) - 1
        set_used(ctx, t.WORK_STACK, top)
        node = t.work_stack(ctx)[top]
        nodes = t.expressions(ctx)
        # A sequence that is alive is so in all its parts, an alternative of several may not be.
        while nodes[node].kind == CONCAT:
            node = nodes[node].first
        if nodes[node].kind == UNION:
            first, alternatives = nodes[node].first, nodes[node].second
            for j in range(alternatives):
                part = t.children(ctx)[first + j]
                if t.expressions(ctx)[part].kind == LITERAL:
                    continue
                live = is_live(ctx, part)
                if live < 0:
                    return live
                if live and not push(ctx, t.WORK_STACK, part):
                    return int64(FAIL)
            continue
        repetition = _repetition(ctx, node)
        if repetition >= 0:
            partly = repetition & 1
            repetition >>= 1
            if partly and _is_complemented(ctx, lexer_state, node):
                partly = int64(0)
            high = t.expressions(ctx)[repetition].third
            high = _UNBOUNDED - partly if high < 0 else high
            if high > most:
                item, most = t.expressions(ctx)[repetition].first, high
                ctx[LOOP_NODE] = node
    set_used(ctx, t.WORK_STACK, bottom)
    if most < 1:
        return int64(-1)
    begins = t.first_bytes(ctx)
    width = int64(0)
    for word in range(4):
        width += count_bits(begins[item, word])
    if width < _LEAST_BYTES:
        return int64(-1)
    star = make_repeat(ctx, item, int64(0), int64(-1), int64(0))
    return star << 32 | most if star >= 0 else star


@njit_inner(RESULT2)
def _last_bytes(ctx, lexer_state, word):
    """A quarter of the set of bytes with which a lexeme can end that anything may follow."""
    count = t.lexer_states(ctx)[lexer_state].count
    offset = t.lexer_states(ctx)[lexer_state].offset
    pool = t.lexer_members(ctx)
    ends = t.last_bytes(ctx)
    bits = int64(0)
    for i in range(offset, offset + 2 * count, 2):
        if is_followed(ctx, pool[i]):
            bits |= ends[pool[i + 1], word]
    return bits


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
    far_call(ctx, F_SELF_LOOP, int64(-1), int64(0))
    looping = int64(-1)
    # As in splits.walk: unsigned, and without a branch on whether a token ends.
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
                there = far_call(ctx, F_LEXER_STEP, int64(here), int64(byte_class))
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
                pairs[out].node = int64(node) & ~_FLAGS
                pairs[out].accept = p
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
                taken = far_call(ctx, F_SELF_LOOP, state << 32 | wide[p], int64(n))
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
    """Keep the closure that a lexer state stands for where a split would be; returns 0, FAIL or LIMIT."""
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
        far_call(ctx, F_OFFER, closure, 1)
    keep_lexer_mask(ctx, closure, dense, used(ctx, t.TOKEN_LISTS), first)
    return int64(0)


@njit_inner(RESULT2)
def _closure_of(ctx, star, _unused):
    """The lexer state that stands for the closure of ``star``, which has been found; FAIL or LIMIT."""
    base = used(ctx, t.WORK_STACK)
    if not push_pair(ctx, t.WORK_STACK, CLOSURE, star):
        return int64(FAIL)
    closure = far_call(ctx, F_LEXER_STATE, base, 1)
    set_used(ctx, t.WORK_STACK, base)
    if closure < 0 or t.lexer_masks(ctx)[closure].dense != NOT_SPLIT:
        return closure
    status = far_call(ctx, F_SHARED_MASK, closure, 0)
    if status == NOT_MINE:
        status = _find_closure(ctx, closure)
    return closure if status >= 0 else status


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
    begins = t.first_bytes(ctx)
    w0, w1, w2, w3 = int64(0), int64(0), int64(0), int64(0)
    relaxed = 0
    for i in range(count):
        pool = t.lexer_members(ctx)
        node = pool[offset + 2 * i + 1]
        nodes = t.expressions(ctx)
        head, tail = node, int64(-1)
        if nodes[node].kind == CONCAT:
            head, tail = nodes[node].first, nodes[node].second
        repetition = _repetition(ctx, head) if nodes[head].kind == INTERSECT else int64(-1)
        if repetition < 0 or repetition & 1 or nodes[head].second != 2:
            w0, w1 = w0 | begins[node, 0], w1 | begins[node, 1]
            w2, w3 = w2 | begins[node, 2], w3 | begins[node, 3]
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
                w0, w1 = w0 | begins[part, 0], w1 | begins[part, 1]
                w2, w3 = w2 | begins[part, 2], w3 | begins[part, 3]
        relaxed_node = repetition
        if tail >= 0:
            relaxed_node = make_concat(ctx, repetition, tail)
            if relaxed_node < 0:
                return relaxed_node
        t.work_stack(ctx)[base + 2 * relaxed] = pool[offset + 2 * i]
        t.work_stack(ctx)[base + 2 * relaxed + 1] = relaxed_node
        relaxed += 1
    set_used(ctx, t.WORK_STACK, base + 2 * relaxed)
    source = far_call(ctx, F_LEXER_STATE, base, relaxed) if relaxed else int64(0)
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
            target = trans[source * classes + byte_class]
            if target < 0:
                target = far_call(ctx, F_LEXER_STEP, source, byte_class)
                if target < 0:
                    return target
            trans[lexer_state * classes + byte_class] = target
    return source


@njit_inner(RESULT2)
def _after_token(ctx, token_and_length, state):
    """The lexer state after the first bytes of a token (``token << 32 | how many``); FAIL or LIMIT if < 0."""
    start = t.token_starts(ctx)[token_and_length >> 32]
    data = t.token_bytes(ctx)
    class_of = t.byte_classes(ctx)
    trans = t.lexer_transitions(ctx)
    classes = ctx[CLASSES]
    for i in range(start, start + (token_and_length & 0xFFFFFFFF)):
        byte_class = class_of[data[i]]
        there = trans[state * classes + byte_class]
        if there < 0:
            there = far_call(ctx, F_LEXER_STEP, state, byte_class)
        if there <= 0:
            return there
        state = there
    return state


@njit_inner(RESULT2)
def _inside_nodes(ctx, closure, byte):
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
        inside = _after_token(ctx, _path_to(ctx, p), closure)
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


@njit_inner(RESULT1)
def _path_to(ctx, p):
    """The path to a trie node, as :func:`_after_token` takes it."""
    tokens = t.node_tokens(ctx)
    # The first node from here on that ends a token is below this one, or this one.
    q = p
    while tokens[q] < 0:
        q += 1
    return tokens[q] << 32 | ((t.trie_nodes(ctx)[p] >> DEPTH_SHIFT) + 1)


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
    """Append the crossing at a trie node, if a lexeme of the state can end there and it is inside the closure."""
    path = _path_to(ctx, p)
    there = _after_token(ctx, path, lexer_state)
    if there < 0:
        return there
    accept = t.lexer_states(ctx)[there].accept
    if accept == 0 or not any_is_followed(ctx, accept):
        return int64(0)
    # Outside, below the border, it has been found already.
    inside = _after_token(ctx, path, closure)
    if inside <= 0:
        return inside
    if not room(ctx, t.BOUNDARIES, 1):
        return int64(FAIL)
    end = used(ctx, t.BOUNDARIES)
    t.boundaries(ctx)[end].node = p
    t.boundaries(ctx)[end].accept = accept
    set_used(ctx, t.BOUNDARIES, end + 1)
    return int64(0)


@njit_inner(RESULT2)
def _necessary_byte(ctx, lexer_state, star):
    """A byte that all strings of a state have, lexemes aside that nothing follows; -1 if none is known.

    Best is one that no repetition of the closure of ``star`` begins with, and then one that is rare in the trie.
    """
    count = t.lexer_states(ctx)[lexer_state].count
    offset = t.lexer_states(ctx)[lexer_state].offset
    pool = t.lexer_members(ctx)
    must = t.necessary_bytes(ctx)
    starts = t.byte_starts(ctx)
    best, rarest = int64(-1), int64(1 << 40)
    for word in range(4):
        bits = int64(-1)
        for i in range(offset, offset + 2 * count, 2):
            if is_followed(ctx, pool[i]):
                bits &= must[pool[i + 1], word]
        begins = t.first_bytes(ctx)[star, word]
        while bits:
            byte = 64 * word + lowest_bit(bits)
            nodes = int64(starts[byte + 1] - starts[byte]) + (int64(1) << 32) * ((begins >> (byte & 63)) & 1)
            bits &= bits - 1
            if nodes < rarest:
                best, rarest = byte, nodes
    return best


@njit_inner(RESULT2)
def _ends_inside(ctx, lexer_state, closure):
    """Append the crossings at nodes inside the closure; returns 0, FAIL or LIMIT."""
    sizes, nodes = t.subtree_sizes(ctx), t.trie_nodes(ctx)
    # No lexeme ends before its shortest string does.
    least = _least_depth(ctx, lexer_state)
    star = t.lexer_members(ctx)[t.lexer_states(ctx)[closure].offset + 1]
    necessary = _necessary_byte(ctx, lexer_state, star)
    if necessary >= 0:
        record = _inside_nodes(ctx, closure, necessary)
        if record < 0:
            return record
        w0, w1 = _last_bytes(ctx, lexer_state, 0), _last_bytes(ctx, lexer_state, 1)
        w2, w3 = _last_bytes(ctx, lexer_state, 2), _last_bytes(ctx, lexer_state, 3)
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
        bits = _last_bytes(ctx, lexer_state, word)
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


@njit_inner(RESULT3)
def _crossings_within(ctx, lexer_state, runner, high):
    """Append the crossings of ``runner``, the state without its bound, that the state has; returns 0, FAIL or LIMIT.

    Up to ``high`` bytes the two cannot be told apart.
    """
    begin = t.lexer_masks(ctx)[runner].boundaries
    count = t.lexer_masks(ctx)[runner].boundary_count
    if not room(ctx, t.BOUNDARIES, count):
        return int64(FAIL)
    pairs = t.boundaries(ctx)
    end = used(ctx, t.BOUNDARIES)
    for i in range(begin, begin + count):
        crossing, accept = pairs[i].node, pairs[i].accept
        p = next_node(ctx, crossing, int64(0))
        while p >= 0:
            length = (t.trie_nodes(ctx)[p] >> DEPTH_SHIFT) + 1
            own = accept
            if length > high:
                there = _after_token(ctx, _path_to(ctx, p), lexer_state)
                if there < 0:
                    return there
                own = t.lexer_states(ctx)[there].accept
            if own != 0:
                if end + 1 > len(pairs):
                    room(ctx, t.BOUNDARIES, 4 * (end + 1 - used(ctx, t.BOUNDARIES)))
                    return int64(FAIL)
                pairs[end].node = p
                pairs[end].accept = own
                end += 1
            p = next_node(ctx, crossing, p + 1)
    set_used(ctx, t.BOUNDARIES, end)
    return int64(0)


@njit_inner(RESULT3)
def _bounded_split(ctx, lexer_state, closure, place_and_high):
    """Split a state whose bound rules out just the tokens of the closure with too many repetitions.

    Outside the closure, its split is that of the state without the bound, which serves for the next character too.
    Returns 1, FAIL or LIMIT.
    """
    place, high = place_and_high >> 32, place_and_high & 0xFFFFFFFF
    runner = relaxed_state(ctx, lexer_state, high)
    if runner < 0 or runner == lexer_state:
        return int64(NOT_MINE) if runner >= 0 else runner
    status = far_call(ctx, F_LEXER_MASK, runner, 0)
    if status < 0:
        return status
    words = ctx[N_WORDS]
    if not room(ctx, t.DENSE_MASKS, words):
        return int64(FAIL)
    first_crossing = used(ctx, t.BOUNDARIES)
    status = _crossings_within(ctx, lexer_state, runner, high)
    if status < 0:
        return status

    record = t.lexer_masks(ctx)
    scratch = t.scratch_mask(ctx)
    clear_scratch(ctx)
    if record[runner].dense != NO_DENSE:
        add_dense(ctx, record[runner].dense)
    allow_listed(ctx, record[runner].tokens, record[runner].token_count)
    if 2 * more_repetitions(ctx, place, high) > more_repetitions(ctx, place, int64(0)):
        take_dense(ctx, record[closure].dense)
        allow_up_to(ctx, place, high)
    else:
        forbid_beyond(ctx, place, high)
    # Of the tokens in the closure all is known now.
    inside = t.shared_dense(ctx)
    first_word = (FIRST_SHARED - record[closure].dense) * words
    by_length = t.tokens_by_length(ctx)
    token_start = t.token_starts(ctx)
    for i in range(len(by_length)):
        token = by_length[i]
        length = token_start[token + 1] - token_start[token]
        if length <= high:
            break
        if ((scratch[token >> 5] & ~inside[first_word + (token >> 5)]) >> (token & 31)) & 1:
            there = _after_token(ctx, token << 32 | length, lexer_state)
            if there < 0:
                return there
            if there == 0:
                scratch[token >> 5] &= ~(int32(1) << int32(token & 31))
    keep_lexer_mask(ctx, lexer_state, keep_dense(ctx), used(ctx, t.TOKEN_LISTS), first_crossing)
    if high < _LEAST_HIGH:
        far_call(ctx, F_OFFER, lexer_state, 0)
    return int64(1)


@njit_inner(RESULT2)
def _covers(ctx, lexer_state, inside):
    """Whether a member of a state is what is left of a closure, a lexer state, and something behind it (1 or 0)."""
    pool = t.lexer_members(ctx)
    rest = pool[t.lexer_states(ctx)[inside].offset + 1]
    offset = t.lexer_states(ctx)[lexer_state].offset
    for i in range(offset, offset + 2 * t.lexer_states(ctx)[lexer_state].count, 2):
        if _starts_with(ctx, pool[i + 1], rest):
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
            there = far_call(ctx, F_LEXER_STEP, state, byte_class)
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
            if nodes[pool[i]].kind == NOT:
                bits &= t.necessary_bytes(ctx)[nodes[pool[i]].first, word]
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


@njit_inner(RESULT3)
def _forbid_below(ctx, p, stop, whole):
    """Take from the scratch mask what a state forbids of the tokens in a closure from trie node ``p`` up to ``stop``.

    WALK_STACK has the state before ``p``, WIDE_STACK the closure, ``whole`` is its repetition.  Returns how many nodes
    were visited, FAIL or LIMIT.
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
        outer = far_call(ctx, F_LEXER_STEP, inside[depth], byte_class)
        if outer < 0:
            return outer
        if outer == 0:
            p += sizes[p]
            continue
        there = far_call(ctx, F_LEXER_STEP, stack[depth], byte_class)
        if there < 0:
            return there
        if there == 0:
            for q in range(p, p + sizes[p]):
                token = tokens[q]
                while token >= 0:
                    scratch[token >> 5] &= ~(int32(1) << int32(token & 31))
                    token = same[token] if len(same) else int64(-1)
            p += sizes[p]
            continue
        covered = _covers(ctx, there, outer)
        if not covered:
            loop = far_call(ctx, F_REPETITION, there, 0)
            if loop < -1:
                return loop
            covered = int64(loop == whole)
        if covered:
            p += sizes[p]
            continue
        stack[depth + 1], inside[depth + 1] = there, outer
        p += 1
    return visits


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
    whole = far_call(ctx, F_REPETITION, closure, 0)
    if whole < 0:
        return whole
    stack, inside = t.walk_stack(ctx), t.wide_stack(ctx)
    stack[0], inside[0] = lexer_state, closure
    if byte < 0:
        visits = _forbid_below(ctx, int64(0), int64(len(t.trie_nodes(ctx))), whole)
        return visits if visits < 0 else int64(visits > _MOST_FORBIDDEN)
    record = _inside_nodes(ctx, closure, byte)
    if record < 0:
        return record
    sizes, visits, done = t.subtree_sizes(ctx), int64(0), int64(0)
    first = t.closure_bytes(ctx)[record + 2]
    for i in range(first, first + t.closure_bytes(ctx)[record + 3]):
        top = int64(t.closure_nodes(ctx)[i])
        if top < done:
            continue
        done = top + sizes[top]
        # What leads there: no byte of it is forbidden.
        path = _path_to(ctx, top)
        place, depth = t.token_starts(ctx)[path >> 32], (path & 0xFFFFFFFF) - 1
        for above in range(depth):
            byte_class = t.byte_classes(ctx)[t.token_bytes(ctx)[place + above]]
            stack[above + 1] = far_call(ctx, F_LEXER_STEP, stack[above], byte_class)
            inside[above + 1] = far_call(ctx, F_LEXER_STEP, inside[above], byte_class)
            if stack[above + 1] < 0 or inside[above + 1] < 0:
                return min(int64(stack[above + 1]), int64(inside[above + 1]))
        visited = _forbid_below(ctx, top, done, whole)
        visits += visited
        if visited < 0 or visits > _MOST_FORBIDDEN:
            return min(visited, int64(1))
    return int64(0)


@njit_inner(RESULT2)
def closure_split(ctx, lexer_state, _unused):
    """Split a state by the closure of a repetition in it; returns 1, NOT_MINE if there is no fit one, FAIL or LIMIT."""
    loop = far_call(ctx, F_REPETITION, lexer_state, 0)
    if loop < 0:
        return int64(NOT_MINE) if loop == -1 else loop
    high = loop & 0xFFFFFFFF
    if high == _PARTLY:
        status = far_call(ctx, F_BY_SUCCESSOR, lexer_state, 0)
        if status != NOT_MINE:
            return status
    if find_followed(ctx) < 0:
        return int64(FAIL)
    if _necessary_byte(ctx, lexer_state, loop >> 32) < 0:
        starts = t.byte_starts(ctx)
        ends = int64(0)
        for word in range(4):
            bits = _last_bytes(ctx, lexer_state, word)
            while bits:
                byte = 64 * word + lowest_bit(bits)
                ends += starts[byte + 1] - starts[byte]
                bits &= bits - 1
        if ends > _MOST_ENDS:
            return int64(NOT_MINE)
    bounded = high < ctx[LONGEST]
    counts = bounded and bound_tells(ctx, lexer_state, t.expressions(ctx)[loop >> 32].first) != 0
    if high < _LEAST_HIGH and not counts:
        return int64(NOT_MINE)
    closure = far_call(ctx, F_FIND_CLOSURE, loop >> 32, 0)
    if closure < 0:
        return closure
    dense = t.lexer_masks(ctx)[closure].dense
    if dense == NO_DENSE:
        return int64(NOT_MINE)
    if counts:
        place = counted_place(ctx, closure, high)
        if place >= 0:
            return _bounded_split(ctx, lexer_state, closure, place << 32 | high)
        if place == UNSORTED:
            far_call(ctx, F_OFFER, closure, 0)
    if bounded:
        return far_call(ctx, F_BOUNDED, lexer_state, 0)
    near = far_call(ctx, F_FILL, lexer_state, 0)
    if near < 0:
        return near
    if near > 0 and near != lexer_state and high == _UNBOUNDED:
        status = far_call(ctx, F_ALONG_WORDS, lexer_state, closure << 32 | near)
        if status != NOT_MINE:
            return status
    words = ctx[N_WORDS]
    if not room(ctx, t.DENSE_MASKS, words) or not room(ctx, t.TOKEN_LISTS, words // 8):
        return int64(FAIL)

    first_crossing = used(ctx, t.BOUNDARIES)
    n = far_call(ctx, F_BORDER, lexer_state, closure)
    if n < 0:
        return n
    status = far_call(ctx, F_ENDS, lexer_state, closure)
    if status < 0:
        return status

    own = high == _PARTLY or n > words // 8
    if own:
        clear_scratch(ctx)
        add_dense(ctx, dense)
    if high == _PARTLY:
        status = far_call(ctx, F_FORBID, lexer_state, closure)
        if status != 0:
            set_used(ctx, t.BOUNDARIES, first_crossing)
            return int64(NOT_MINE) if status == 1 else status
    first = used(ctx, t.TOKEN_LISTS)
    if own:
        allow_found(ctx, n)
        dense = keep_dense(ctx)
    else:
        first = list_found(ctx, n)
    keep_lexer_mask(ctx, lexer_state, dense, first, first_crossing)
    # One at a time: the closure itself serves more grammars.
    if high == _UNBOUNDED:
        far_call(ctx, F_OFFER, lexer_state, 0)
    return int64(1)


far_entry(F_REPETITION, _loop_of)
far_entry(F_FIND_CLOSURE, _closure_of)
far_entry(F_FILL, _fill_transitions)
far_entry(F_ENDS, _ends_inside)
far_entry(F_FORBID, _forbid)
far_entry(F_STAR_CLOSURE, closure_split)
