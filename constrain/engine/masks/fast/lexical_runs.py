"""Lexical runs: what a lexer state reads from where lexemes have ended, whatever the parser makes of it.

A *source* is a set of trie nodes: the children of those at which lexemes of some accept set end.  A *run* is what a
lexer state makes of a source when it begins with the bytes of its nodes: the tokens that end inside its lexemes, and
where these end, by accept set, which again are sources.  For the whole trie that is a lexer mask (lexer_masks.py).

Where a lexeme can end at each letter, the subtrees of a source's nodes lie in each other.  So a run is one walk, and at
each node there are as many lexer states as places above at which the lexeme under way may have begun (run_states.py):
few, since those that have come to the same state are one.  Which of them a lexeme that ends here is of makes no
difference: they all began with the same expectations, and what follows is the same.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata.lexer_states import NO_DENSE
from constrain.engine.masks.boundaries import next_node
from constrain.engine.masks.fast.run_states import run_leads_on, run_states_fit, run_step, with_lexer_state
from constrain.engine.masks.lexer_masks import (
    allow_found,
    clear_scratch,
    keep_dense,
    list_found,
    place_of_dense,
    with_same_bytes,
)
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import bucket_room, i64, room, set_used, take, used
from constrain.engine.storage.bits import count_bits, lowest_bit
from constrain.engine.storage.hashing import (
    find,
    has_room,
    hash_staged,
    insert,
    is_staged,
    keep_staged,
    map_get,
    map_put,
    sort_keys,
)
from constrain.engine.storage.header import CLASSES, CTX, N_WORDS, RESULT0, RESULT1, RESULT2, RESULT3
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_LEXER_MASK, far_call
from constrain.engine.storage.statuses import FAIL
from constrain.engine.vocabulary.trie import DEPTH_SHIFT
from constrain.kernels.language import int64, types

MANY = 64
"""What is read from a source with so many trie nodes is kept by lexeme."""

_MANY_ENDS = 16
"""Where less than one of so many trie nodes is an end, to look at all nodes takes longer than what the ends lead to."""

_LEAST_ALLOWED = 24
"""Of 32 tokens, in a text in which all but some are allowed, such as a comment."""

_PAIR = 1 << 62
"""In RUN_KEYS: added to ``source << 31 | source``, whether the one is part of the other."""

_NEVER = 1 << 40
"""Instead of a trie node: there is none left."""

_NODE = 0x7FFFFFFF
"""The low bits of a key in ENDS_FOUND, ``accept set << 32 | trie node``."""


@njit_inner(RESULT0)
def _index_nodes(ctx):
    """Write NODES_BY_GROUP, and CHILDREN_FOUND for :func:`_keep_ends`: 1, or FAIL."""
    n = len(t.trie_nodes(ctx))
    words = n + 63 >> 6
    if not room(ctx, t.NODES_BY_GROUP, 64 * words) or not room(ctx, t.CHILDREN_FOUND, words + (words + 63 >> 6)):
        return int64(FAIL)
    table = t.nodes_by_group(ctx)
    for i in range(64 * words):
        table[i] = 0
    for node in range(n):
        group = t.byte_group(ctx)[t.trie_nodes(ctx)[node] & 255]
        table[group * words + (node >> 6)] |= int64(1) << (node & 63)
    set_used(ctx, t.NODES_BY_GROUP, 64 * words)
    for i in range(words + (words + 63 >> 6)):
        t.children_found(ctx)[i] = 0
    return int64(1)


@njit_inner(RESULT1)
def _nodes_of(ctx, entry):
    """The trie nodes of an entry of SOURCE_NODES, as bits."""
    table = t.source_nodes(ctx)
    return table[3 * entry + 1] & 0xFFFFFFFF | table[3 * entry + 2] << 32


@njit_inner(types.UniTuple(int64, 3)(CTX, int64, int64, int64, int64))
def _next_start(ctx, entry, last, bits, groups):
    """The next trie node of a source whose byte is in one of the groups; _NEVER, if there is none.

    ``bits`` are those of the nodes of an entry of SOURCE_NODES that are still to come, before those of the entries up
    to ``last``.  The entry and bits behind the node are returned with it.
    """
    table = t.nodes_by_group(ctx)
    words = len(t.trie_nodes(ctx)) + 63 >> 6
    while bits == 0:
        if entry == last:
            return int64(_NEVER), entry, bits
        entry += 1
        word = t.source_nodes(ctx)[3 * entry]
        left = groups
        while left:
            bits |= table[lowest_bit(left) * words + word]
            left &= left - 1
        bits &= _nodes_of(ctx, entry)
    return t.source_nodes(ctx)[3 * entry] << 6 | lowest_bit(bits), entry, bits & bits - 1


@njit_inner(types.boolean(CTX, int64, int64))
def _nodes_are_part(ctx, source, other):
    first, i = int64(t.sources(ctx)[source].nodes), int64(t.sources(ctx)[other].nodes)
    end = i + t.sources(ctx)[other].entries
    table = t.source_nodes(ctx)
    for entry in range(first, first + t.sources(ctx)[source].entries):
        while i < end and table[3 * i] < table[3 * entry]:
            i += 1
        if i == end or table[3 * i] != table[3 * entry] or _nodes_of(ctx, entry) & ~_nodes_of(ctx, i):
            return False
    return True


@njit_inner(RESULT2)
def is_part_of(ctx, source, other):
    """1 if all trie nodes of a source are nodes of another one, else 0, or FAIL."""
    if source == other:
        return int64(1)
    if t.sources(ctx)[source].count > t.sources(ctx)[other].count:
        return int64(0)
    key = _PAIR | source << 31 | other
    known = map_get(ctx, t.RUN_KEYS, t.RUN_VALUES, key)
    if known >= 0:
        return known
    if not bucket_room(ctx, t.RUN_KEYS, used(ctx, t.RUN_KEYS)):
        return int64(FAIL)
    is_part = int64(_nodes_are_part(ctx, source, other))
    return is_part if map_put(ctx, t.RUN_KEYS, t.RUN_VALUES, key, is_part) == 0 else int64(FAIL)


@njit_inner(RESULT3)
def _intern_source(ctx, base, count, depth):
    """The source with the entries from ``WORK_STACK[base]`` on: ``count`` nodes, the least of their depths; or FAIL."""
    numbers = used(ctx, t.WORK_STACK) - base
    code = hash_staged(ctx, 0, base, numbers)
    source = find(ctx, t.SOURCE_HASHES, t.SOURCE_BUCKETS, code, -1)
    while source >= 0:
        record = t.sources(ctx)[source]
        if 3 * record.entries == numbers and is_staged(ctx, t.SOURCE_NODES, 3 * record.nodes, base, numbers):
            return source
        source = find(ctx, t.SOURCE_HASHES, t.SOURCE_BUCKETS, code, source)
    if not room(ctx, t.SOURCES, 1) or not has_room(ctx, t.SOURCE_HASHES, t.SOURCE_BUCKETS):
        return int64(FAIL)
    if not room(ctx, t.SOURCE_NODES, numbers):
        return int64(FAIL)
    source = used(ctx, t.SOURCES)
    t.sources(ctx)[source] = used(ctx, t.SOURCE_NODES) // 3, numbers // 3, count, depth
    keep_staged(ctx, t.SOURCE_NODES, base, numbers)
    set_used(ctx, t.SOURCES, source + 1)
    return insert(ctx, t.SOURCE_HASHES, t.SOURCE_BUCKETS, code)


@njit_inner(RESULT1)
def _stage_children(ctx, base):
    """Move CHILDREN_FOUND to the work stack, as entries of SOURCE_NODES; how many nodes these are."""
    found = t.children_found(ctx)
    words = len(t.trie_nodes(ctx)) + 63 >> 6
    n, top = int64(0), base
    for i in range(words, words + (words + 63 >> 6)):
        while found[i]:
            word = (i - words << 6) + lowest_bit(found[i])
            bits = found[word]
            t.work_stack(ctx)[top] = word
            t.work_stack(ctx)[top + 1] = bits
            t.work_stack(ctx)[top + 2] = bits >> 32
            top += 3
            n += count_bits(bits)
            found[word] = 0
            found[i] &= found[i] - 1
    set_used(ctx, t.WORK_STACK, top)
    return n


@njit_inner(RESULT1)
def _find_holes(ctx, dense):
    """Push on WORK_STACK, as bits, which trie nodes lead to tokens that a dense mask lacks; where they are, or FAIL.

    -1 if that is too many to be worth it: what follows an identifier is read once for all identifiers that end there.
    """
    table, first = place_of_dense(ctx, dense)
    allowed = t.dense_words(ctx, table)
    n_allowed = int64(0)
    for i in range(first, first + ctx[N_WORDS]):
        n_allowed += count_bits(int64(allowed[i]) & 0xFFFFFFFF)
    if n_allowed < ctx[N_WORDS] * _LEAST_ALLOWED:
        return int64(-1)
    nodes, tokens, path = t.trie_nodes(ctx), t.node_tokens(ctx), t.walk_stack(ctx)
    words = int64(len(nodes) + 31 >> 5)
    base = take(ctx, t.WORK_STACK, words)
    if base < 0:
        return base
    holes = t.work_stack(ctx)
    for i in range(base, base + words):
        holes[i] = 0
    for p in range(len(nodes)):
        depth = nodes[p] >> DEPTH_SHIFT
        path[depth] = p
        token = tokens[p]
        if token >= 0 and not (allowed[first + (token >> 5)] >> (token & 31)) & 1:
            while depth >= 0 and not (holes[base + (path[depth] >> 5)] >> (path[depth] & 31)) & 1:
                holes[base + (path[depth] >> 5)] |= int64(1) << (path[depth] & 31)
                depth -= 1
    return base


@njit_inner(types.boolean(CTX, int64, int64))
def _has_hole(ctx, holes, node):
    """Whether a trie node leads to a token that the run lacks, by what :func:`_find_holes` has pushed (-1: nothing)."""
    return holes < 0 or (t.work_stack(ctx)[holes + (node >> 5)] >> (node & 31)) & 1 != 0


@njit_inner(RESULT2)
def _keep_ends(ctx, count, holes):
    """Append the ``count`` ENDS_FOUND, by accept set in the order in which these first come, to RUN_ENDS; 0 or FAIL.

    Sources are without nodes that lead to tokens of the run only (:func:`_has_hole`): whatever is read from there, the
    run has it.  There is room on the work stack.
    """
    base = used(ctx, t.WORK_STACK)
    ends, found = t.ends_found(ctx), t.children_found(ctx)
    nodes, sizes = t.trie_nodes(ctx), t.subtree_sizes(ctx)
    words = len(nodes) + 63 >> 6
    while count > 0:
        accept = ends[0] >> 32
        left, depth = int64(0), int64(_NODE)
        for i in range(count):
            key = ends[i]
            if key >> 32 != accept:
                ends[left] = key
                left += 1
                continue
            node = key & _NODE
            if not _has_hole(ctx, holes, node):
                continue
            depth = min(depth, nodes[node] >> DEPTH_SHIFT)
            child = node + 1
            while child < node + sizes[node]:
                if _has_hole(ctx, holes, child):
                    found[child >> 6] |= int64(1) << (child & 63)
                    found[words + (child >> 12)] |= int64(1) << (child >> 6 & 63)
                child += sizes[child]
        count = left
        n = _stage_children(ctx, base)
        if n == 0:
            continue
        source = _intern_source(ctx, base, n, depth)
        set_used(ctx, t.WORK_STACK, base)
        place = take(ctx, t.RUN_ENDS, int64(1)) if source >= 0 else source
        if place < 0:
            return place
        t.run_ends(ctx)[place] = accept, source
    return int64(0)


@njit_inner(RESULT1)
def _groups_of(ctx, lexer_state):
    """The groups of the bytes (vocabulary/trie.py) with which a lexer state may go on: bit ``g`` for group ``g``."""
    groups = t.class_groups(ctx)
    classes = ctx[CLASSES]
    result = int64(0)
    for j in range(classes):
        if t.lexer_transitions(ctx)[lexer_state * classes + j] != 0:
            result |= groups[j]
    return result


@njit_inner(RESULT3)
def _note_end(ctx, n, accept, node):
    """Note in ENDS_FOUND, behind ``n`` others, that lexemes end at a trie node; how many there are then, or FAIL."""
    if n == len(t.ends_found(ctx)):
        room(ctx, t.ENDS_FOUND, 2 * n)
        return int64(FAIL)
    t.ends_found(ctx)[n] = accept << 32 | node
    return n + 1


@njit_inner(RESULT2)
def _walk_source(ctx, source, state):
    """Walk the subtrees of all nodes of a source with a lexer state that begins there.

    Tokens and ends are in FOUND_TOKENS and ENDS_FOUND; WALK_STACK[0] is how many tokens there are.  Returns how many
    ends; FAIL or LIMIT if < 0.

    Subtrees in which nothing is under way are *regions*: only nodes of the source are looked for there.  The trie is
    one, and there are regions in the subtrees of these nodes.
    """
    if not room(ctx, t.RUN_REGIONS, 2 * len(t.walk_stack(ctx))) or not room(ctx, t.ENDS_FOUND, 64):
        return int64(FAIL)
    begun = with_lexer_state(ctx, int64(0), state)
    if begun < 0:
        return int64(FAIL)
    nodes = t.trie_nodes(ctx)
    sizes = t.subtree_sizes(ctx)
    tokens = t.node_tokens(ctx)
    class_of = t.byte_classes(ctx)
    classes = ctx[CLASSES]
    steps = t.run_steps(ctx)
    records = t.run_states(ctx)
    # By the depth of a node: the run state at its parent.
    stack = t.walk_stack(ctx)
    # Of the regions that the place is in, but for the last: the ends of what is under way there, and of the region.
    regions = t.run_regions(ctx)
    found = t.found_tokens(ctx)
    groups = _groups_of(ctx, state)
    n_ends, n_tokens, n_regions = int64(0), int64(0), int64(0)
    p, end, region_end = int64(0), int64(0), int64(len(nodes))
    # A run state, and what it is where a lexeme begins as well: mostly the same as the last time.
    last, last_begun = int64(-1), int64(-1)
    entry = int64(t.sources(ctx)[source].nodes) - 1
    last_entry = entry + t.sources(ctx)[source].entries
    start, entry, bits = _next_start(ctx, entry, last_entry, int64(0), groups)
    while True:
        if p == end:
            if start < region_end:
                p, end = start, start + sizes[start]
                stack[nodes[p] >> DEPTH_SHIFT] = 0
            elif n_regions == 0:
                break
            else:
                n_regions -= 1
                p, end, region_end = region_end, regions[2 * n_regions], regions[2 * n_regions + 1]
                continue
        node, size = nodes[p], sizes[p]
        depth = node >> DEPTH_SHIFT
        byte_class = class_of[node & 255]
        here = stack[depth]
        if p == start:
            if here == 0:
                here = begun
            elif here == last:
                here = last_begun
            else:
                last = here
                here = last_begun = with_lexer_state(ctx, here, state)
                if here < 0:
                    return int64(FAIL)
            start, entry, bits = _next_start(ctx, entry, last_entry, bits, groups)
        there = steps[here * classes + byte_class]
        if there < 0:
            if size == 1 and run_leads_on(ctx, here, byte_class):
                token = tokens[p]
                found[n_tokens] = token
                n_tokens += int64(token >= 0)
                p += 1
                continue
            there = run_step(ctx, here, byte_class)
            if there < 0:
                return there
        if there:
            token = tokens[p]
            found[n_tokens] = token
            n_tokens += int64(token >= 0)
            accept = records[there].accept
            if accept and size > 1:
                n_ends = _note_end(ctx, n_ends, accept, p)
                if n_ends < 0:
                    return int64(FAIL)
        if records[there].goes_on:
            stack[depth + 1] = there
            p += 1
        elif start < p + size:
            regions[2 * n_regions], regions[2 * n_regions + 1] = end, region_end
            n_regions += 1
            region_end, end = p + size, p
        else:
            p += size
    stack[0] = n_tokens
    return n_ends


@njit_inner(RESULT1)
def _expand_boundaries(ctx, lexer_state):
    """Write the boundaries of a lexer mask to ENDS_FOUND, each trie node by itself, sorted; how many, or FAIL."""
    mask = t.lexer_masks(ctx)[lexer_state]
    n = int64(0)
    for i in range(mask.boundaries, mask.boundaries + mask.boundary_count):
        top, accept = int64(t.boundaries(ctx)[i].node), int64(t.boundaries(ctx)[i].accept)
        node = next_node(ctx, top, int64(0))
        while node >= 0:
            n = _note_end(ctx, n, node, accept)
            if n < 0:
                return int64(FAIL)
            node = next_node(ctx, top, node + 1)
    found = i64(ctx, t.ENDS_FOUND)
    sort_keys(found, n)
    for i in range(n):
        found[i] = (found[i] & _NODE) << 32 | found[i] >> 32
    return n


@njit_inner(types.boolean(CTX))
def _ends_fit(ctx):
    """Whether there is room for the entries of any source, on the work stack, beside holes, and in SOURCE_NODES."""
    words = len(t.trie_nodes(ctx)) + 63 >> 6
    return room(ctx, t.WORK_STACK, 5 * words) and room(ctx, t.SOURCE_NODES, 3 * words)


@njit_inner(RESULT3)
def _keep_run(ctx, key, run, n_ends):
    """Keep a run, whose tokens are in RUNS, under a key; which it is, or FAIL."""
    first, base, holes = used(ctx, t.RUN_ENDS), used(ctx, t.WORK_STACK), int64(-1)
    if _MANY_ENDS * n_ends >= len(t.trie_nodes(ctx)) and t.runs(ctx)[run].dense != NO_DENSE:
        holes = _find_holes(ctx, int64(t.runs(ctx)[run].dense))
    status = holes if holes < -1 else _keep_ends(ctx, n_ends, holes)
    set_used(ctx, t.WORK_STACK, base)
    if status < 0:
        set_used(ctx, t.RUN_ENDS, first)
        return int64(FAIL)
    t.runs(ctx)[run].ends = first
    t.runs(ctx)[run].end_count = used(ctx, t.RUN_ENDS) - first
    set_used(ctx, t.RUNS, run + 1)
    return run if map_put(ctx, t.RUN_KEYS, t.RUN_VALUES, key, run) == 0 else int64(FAIL)


@njit_inner(RESULT1)
def first_run(ctx, lexer_state):
    """The run of a lexer state from the top of the trie; FAIL or LIMIT if < 0."""
    known = map_get(ctx, t.RUN_KEYS, t.RUN_VALUES, lexer_state)
    if known >= 0:
        return known
    status = far_call(ctx, F_LEXER_MASK, lexer_state, 0)
    if status < 0:
        return status
    if not room(ctx, t.RUNS, 1) or not bucket_room(ctx, t.RUN_KEYS, used(ctx, t.RUN_KEYS)) or not _ends_fit(ctx):
        return int64(FAIL)
    n_ends = _expand_boundaries(ctx, lexer_state)
    if n_ends < 0:
        return int64(FAIL)
    run = used(ctx, t.RUNS)
    t.runs(ctx)[run].dense = t.lexer_masks(ctx)[lexer_state].dense
    t.runs(ctx)[run].tokens = t.lexer_masks(ctx)[lexer_state].tokens
    t.runs(ctx)[run].token_count = t.lexer_masks(ctx)[lexer_state].token_count
    return _keep_run(ctx, lexer_state, run, n_ends)


@njit_inner(RESULT2)
def run_from(ctx, source, lexer_state):
    """The run of a lexer state from a source; FAIL or LIMIT if < 0."""
    key = source + 1 << 32 | lexer_state
    known = map_get(ctx, t.RUN_KEYS, t.RUN_VALUES, key)
    if known >= 0:
        return known
    words = ctx[N_WORDS]
    if not room(ctx, t.RUNS, 1) or not bucket_room(ctx, t.RUN_KEYS, used(ctx, t.RUN_KEYS)):
        return int64(FAIL)
    if not room(ctx, t.DENSE_MASKS, words) or not room(ctx, t.TOKEN_LISTS, words // 8):
        return int64(FAIL)
    n_ends = _walk_source(ctx, source, lexer_state)
    if n_ends < 0:
        return n_ends
    n_tokens = with_same_bytes(ctx, int64(t.walk_stack(ctx)[0]))
    # Room for what the ends need is asked for before anything is kept: what is kept twice is kept for good.
    if not _ends_fit(ctx):
        return int64(FAIL)
    run = used(ctx, t.RUNS)
    first = used(ctx, t.TOKEN_LISTS)
    t.runs(ctx)[run].dense = NO_DENSE
    if n_tokens > words // 8:
        clear_scratch(ctx)
        allow_found(ctx, n_tokens)
        t.runs(ctx)[run].dense = keep_dense(ctx)
        n_tokens = int64(0)
    else:
        list_found(ctx, n_tokens)
    t.runs(ctx)[run].tokens = first
    t.runs(ctx)[run].token_count = n_tokens
    kept = _keep_run(ctx, key, run, n_ends)
    if kept < 0:
        set_used(ctx, t.TOKEN_LISTS, first)
        if t.runs(ctx)[run].dense != NO_DENSE:
            set_used(ctx, t.DENSE_MASKS, used(ctx, t.DENSE_MASKS) - words)
    return kept


@njit_inner(RESULT0)
def has_space(ctx):
    """1 if there is room for what a usual grammar needs; or FAIL: what fills a table begins anew."""
    if used(ctx, t.RUNS):
        return int64(1)
    if used(ctx, t.NODES_BY_GROUP) == 0 and _index_nodes(ctx) < 0:
        return int64(FAIL)
    # An identifier can end at half of all trie nodes.
    if not room(ctx, t.ENDS_FOUND, len(t.trie_nodes(ctx)) // 2) or not _ends_fit(ctx):
        return int64(FAIL)
    for slot in (t.SOURCES, t.RUNS, t.RUN_ENDS):
        if not room(ctx, slot, 1 << 12):
            return int64(FAIL)
    for slot in (t.RUN_KEYS, t.SOURCE_BUCKETS):
        if not bucket_room(ctx, slot, 1 << 12):
            return int64(FAIL)
    return run_states_fit(ctx)
