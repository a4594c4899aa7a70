"""Masks by core: what is the same for all states with the same cores is made once.

In a program every place has a stack of unfinished rules of its own, so its states and masks never come again.  But a
token looks at little of that stack.  A mask is put together of *parts*.  A part is what a core allows below some trie
nodes, its *source*: the nodes at which a lexer state ends with an accept set.  It is made by a walk with the stand-in
of the core (parser/stand_ins.py), and holds the tokens that are found.  Where rules end in the walk that began before,
the part has *exits*: which rule, by which dot of the core, and the trie nodes at which it ends, again a source.

Behind an exit is the part of another core at its source: the core of what follows where the rule is completed in what
the item truly began in.  After ``f(a[i`` an item that ends with ``]`` leads to one that ends with ``)``, and so on.

The *root* of a core and lexer state is made of the parts for all lexemes that can end within a token.  Exits to what
began in the core's own set are followed at once; the others are exits of the root.  So the mask of a state is the roots
of its configurations, and the parts behind their exits.

Parts and roots hold trie nodes, tokens, cores and lexer states, no states and no Earley sets.  They belong to the
grammar, not to the text, and stay when states are forgotten.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata.lexer_states import NO_DENSE
from constrain.engine.masks.boundaries import goes_on, next_node
from constrain.engine.masks.boundary_walks import set_after, state_from_set
from constrain.engine.masks.lexer_masks import clear_scratch, keep_dense
from constrain.engine.masks.token_walks import LIST, MARK, walk_tokens
from constrain.engine.parser.configurations import IN_PARTS, first_groups
from constrain.engine.parser.rules import END
from constrain.engine.parser.stand_ins import (
    is_undecided,
    is_unknown,
    place_of_unknown,
    set_behind,
    split_ends,
    stand_in,
)
from constrain.engine.storage.access import bucket_room, room, set_used, used
from constrain.engine.storage.hashing import (
    find,
    finish_hash,
    has_room,
    hash_staged,
    insert,
    is_staged,
    keep_staged,
    map_get,
    map_put,
    mix,
)
from constrain.engine.storage.header import (
    CTX,
    LIST_END,
    LIST_LIMIT,
    LONG_WALKS,
    N_WORDS,
    NODES_WALKED,
    RECURRING_CORES,
    RESULT0,
    RESULT1,
    RESULT2,
    RESULT3,
    WALKS,
)
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_LEXER_MASK, F_MASK_BY_CORE, far_call, far_entry
from constrain.engine.storage.schemas import (
    ACCEPTS_FOUND,
    ASKED,
    BOUNDARIES,
    BRANCHES,
    COMPLETION_ITEMS,
    DENSE_MASKS,
    EARLEY_ITEMS,
    EXITS,
    EXITS_FOUND,
    PART_KEYS,
    PART_VALUES,
    PARTS,
    PARTS_FOUND,
    ROOT_KEYS,
    ROOT_VALUES,
    ROOTS,
    SOURCE_BUCKETS,
    SOURCE_HASHES,
    SOURCE_KEYS,
    SOURCE_NODES,
    SOURCE_VALUES,
    SOURCES,
    TOKEN_LISTS,
    UNDECIDED_NODES,
    WORK_STACK,
    accepts_found,
    asked,
    boundaries,
    child_groups,
    configurations,
    core_dots,
    cores,
    dot_left,
    earley_items,
    earley_sets,
    exits,
    exits_found,
    lexer_masks,
    parts,
    parts_found,
    roots,
    source_nodes,
    sources,
    state_masks,
    states,
    symbols,
    token_lists,
    undecided_nodes,
    work_stack,
)
from constrain.engine.storage.statuses import FAIL, NOT_MINE
from constrain.kernels.language import int64, types

_FIRST_SEEN = -2
"""In ROOT_VALUES, in place of a root: ``_FIRST_SEEN - Earley set``, as a state with the core and lexer state had it.

That is a hint: when states are forgotten, it stays as it is.
"""

_NEVER = -(1 << 40)
"""In ``ctx[RECURRING_CORES]``: masks are not made by core."""

_MOST_ASKED = 1 << 12
"""Where more parts are asked for, masks are made state by state, in this grammar for good."""

_ENOUGH = 4
"""So many cores came again, with another Earley set, before masks are made by core at once."""

_LONG_WALK = 32
"""Walks for a mask that make so many Earley sets, or go over as many trie nodes as take as long, are long."""

_PATIENCE = 400_000
"""After so many trie nodes no further part is made for a mask.  It is made by walks then, and what was made stays."""


# -- parts ---------------------------------------------------------------------------------------


@njit_inner(RESULT2)
def _source_of(ctx, lexer_state, accept):
    """The source that is the boundaries of a lexer state with an accept set; or FAIL."""
    key = lexer_state << 32 | accept
    known = map_get(ctx, SOURCE_KEYS, SOURCE_VALUES, key)
    if known >= 0:
        return known
    if not room(ctx, SOURCES, 1) or not has_room(ctx, SOURCE_HASHES, SOURCE_BUCKETS):
        return int64(FAIL)
    source = used(ctx, SOURCES)
    if map_put(ctx, SOURCE_KEYS, SOURCE_VALUES, key, source) < 0:
        return int64(FAIL)
    sources(ctx)[source].lexer_state = lexer_state
    sources(ctx)[source].accept = accept
    sources(ctx)[source].count = 0
    set_used(ctx, SOURCES, source + 1)
    return insert(ctx, SOURCE_HASHES, SOURCE_BUCKETS, finish_hash(mix(0, key)))


@njit_inner(RESULT2)
def _source_of_nodes(ctx, base, count):
    """The source that is the ``count`` trie nodes from ``WORK_STACK[base]`` on; or FAIL."""
    code = hash_staged(ctx, 0, base, count)
    source = find(ctx, SOURCE_HASHES, SOURCE_BUCKETS, code, -1)
    while source >= 0:
        record = sources(ctx)[source]
        if record.count == count and is_staged(ctx, SOURCE_NODES, record.nodes, base, count):
            return source
        source = find(ctx, SOURCE_HASHES, SOURCE_BUCKETS, code, source)
    if not room(ctx, SOURCES, 1) or not has_room(ctx, SOURCE_HASHES, SOURCE_BUCKETS):
        return int64(FAIL)
    if not room(ctx, SOURCE_NODES, count):
        return int64(FAIL)
    source = used(ctx, SOURCES)
    sources(ctx)[source].lexer_state = 0
    sources(ctx)[source].accept = 0
    sources(ctx)[source].nodes = used(ctx, SOURCE_NODES)
    sources(ctx)[source].count = count
    keep_staged(ctx, SOURCE_NODES, base, count)
    set_used(ctx, SOURCES, source + 1)
    return insert(ctx, SOURCE_HASHES, SOURCE_BUCKETS, code)


@njit_inner(int64(CTX, int64, int64, int64))
def _walk_source(ctx, source, state, visitor):
    """Follow the tokens below the nodes of a source from a state on; 0, FAIL or LIMIT."""
    accept = sources(ctx)[source].accept
    groups = first_groups(ctx, state)
    if accept == 0:
        begin = sources(ctx)[source].nodes
        for i in range(begin, begin + sources(ctx)[source].count):
            node = source_nodes(ctx)[i]
            if child_groups(ctx)[node] & groups:
                status = walk_tokens(ctx, node, state, visitor)
                if status < 0:
                    return status
                ctx[NODES_WALKED] += 1 + status
        return int64(0)
    mask = lexer_masks(ctx)[sources(ctx)[source].lexer_state]
    for boundary in range(mask.boundaries, mask.boundaries + mask.boundary_count):
        if boundaries(ctx)[boundary].accept != accept:
            continue
        top = boundaries(ctx)[boundary].node
        node = next_node(ctx, top, int64(0)) if goes_on(ctx, top, groups) else int64(-1)
        while node >= 0:
            if child_groups(ctx)[node] & groups:
                status = walk_tokens(ctx, node, state, visitor)
                if status < 0:
                    return status
                ctx[NODES_WALKED] += 1 + status
            node = next_node(ctx, top, node + 1)
    return int64(0)


@njit_inner(RESULT0)
def _keep_exits(ctx):
    """Append exits for the UNDECIDED_NODES, one for each dot and rule; how many, or FAIL."""
    total = used(ctx, UNDECIDED_NODES)
    base = used(ctx, WORK_STACK)
    if not room(ctx, WORK_STACK, total):
        return int64(FAIL)
    first = used(ctx, EXITS)
    done = int64(0)
    # There are few kinds and may be many nodes.
    while done < total:
        item, rule = undecided_nodes(ctx)[done].item, undecided_nodes(ctx)[done].rule
        count = int64(0)
        kept = done
        for i in range(done, total):
            found = undecided_nodes(ctx)[i]
            node = found.node
            if found.item == item and found.rule == rule:
                work_stack(ctx)[base + count] = node
                count += 1
            else:
                undecided_nodes(ctx)[kept].item = found.item
                undecided_nodes(ctx)[kept].rule = found.rule
                undecided_nodes(ctx)[kept].node = node
                kept += 1
        total = kept
        source = _source_of_nodes(ctx, base, count)
        if source < 0 or not room(ctx, EXITS, 1):
            return int64(FAIL)
        place = used(ctx, EXITS)
        exits(ctx)[place].item = item
        exits(ctx)[place].rule = rule
        exits(ctx)[place].source = source
        set_used(ctx, EXITS, place + 1)
    return used(ctx, EXITS) - first


@njit_inner(RESULT2)
def _make_part(ctx, source, core):
    """Make the part of a source and a core by a walk; FAIL or LIMIT if < 0."""
    words = ctx[N_WORDS]
    if not room(ctx, PARTS, 1) or not room(ctx, DENSE_MASKS, words) or not room(ctx, TOKEN_LISTS, words // 4):
        return int64(FAIL)
    state = stand_in(ctx, core)
    if state >= 0:
        state = state_from_set(ctx, state, 0)
    if state < 0:
        return state
    first = used(ctx, TOKEN_LISTS)
    visitor = int64(LIST)
    while True:
        # As in compute_mask: a long list is worth more as a dense mask.
        ctx[LIST_END] = first
        ctx[LIST_LIMIT] = first + words // 4
        set_used(ctx, UNDECIDED_NODES, 0)
        status = _walk_source(ctx, source, state, visitor)
        if status < 0:
            return status
        if ctx[LIST_END] <= ctx[LIST_LIMIT] or visitor == MARK:
            break
        visitor = int64(MARK)
        clear_scratch(ctx)
    listed = ctx[LIST_END] - first
    dense = int64(NO_DENSE)
    first_exit = used(ctx, EXITS)
    count = _keep_exits(ctx)
    if count < 0:
        set_used(ctx, EXITS, first_exit)
        return int64(FAIL)
    if ctx[LIST_END] > ctx[LIST_LIMIT]:
        dense = keep_dense(ctx)
        listed = int64(0)
    set_used(ctx, TOKEN_LISTS, first + listed)
    part = used(ctx, PARTS)
    parts(ctx)[part].dense = dense
    parts(ctx)[part].tokens = first
    parts(ctx)[part].token_count = listed
    parts(ctx)[part].exits = first_exit
    parts(ctx)[part].exit_count = count
    set_used(ctx, PARTS, part + 1)
    return part


@njit_inner(RESULT2)
def _part_of(ctx, source, core):
    """The part of a source and a core; FAIL, LIMIT or NOT_MINE if < 0."""
    key = source + 1 << 32 | core
    part = map_get(ctx, PART_KEYS, PART_VALUES, key)
    if part >= 0:
        return part
    if ctx[NODES_WALKED] > _PATIENCE:
        return int64(NOT_MINE)
    if not bucket_room(ctx, PART_KEYS, used(ctx, PART_KEYS)):
        return int64(FAIL)
    part = _make_part(ctx, source, core)
    return part if part < 0 or map_put(ctx, PART_KEYS, PART_VALUES, key, part) == 0 else int64(FAIL)


@njit_inner(RESULT1)
def _inside_part(ctx, lexer_state):
    """The part with the tokens that stay inside the lexemes of a lexer state, whose mask is known; or FAIL."""
    part = map_get(ctx, PART_KEYS, PART_VALUES, lexer_state)
    if part >= 0:
        return part
    part = used(ctx, PARTS)
    if not room(ctx, PARTS, 1) or map_put(ctx, PART_KEYS, PART_VALUES, lexer_state, part) < 0:
        return int64(FAIL)
    parts(ctx)[part].dense = lexer_masks(ctx)[lexer_state].dense
    parts(ctx)[part].tokens = lexer_masks(ctx)[lexer_state].tokens
    parts(ctx)[part].token_count = lexer_masks(ctx)[lexer_state].token_count
    parts(ctx)[part].exit_count = 0
    set_used(ctx, PARTS, part + 1)
    return part


@njit_inner(RESULT1)
def _add_part(ctx, part):
    """Note a part in PARTS_FOUND, if it allows anything; 0 or FAIL."""
    if parts(ctx)[part].dense == NO_DENSE and parts(ctx)[part].token_count == 0:
        return int64(0)
    if not room(ctx, PARTS_FOUND, 1):
        return int64(FAIL)
    n = used(ctx, PARTS_FOUND)
    parts_found(ctx)[n] = part
    set_used(ctx, PARTS_FOUND, n + 1)
    return int64(0)


@njit_inner(RESULT0)
def _keep_parts(ctx):
    """Append PARTS_FOUND to the token lists; where they begin, or FAIL."""
    count = used(ctx, PARTS_FOUND)
    if not room(ctx, TOKEN_LISTS, count):
        return int64(FAIL)
    first = used(ctx, TOKEN_LISTS)
    for i in range(count):
        token_lists(ctx)[first + i] = parts_found(ctx)[i]
    set_used(ctx, TOKEN_LISTS, first + count)
    return first


# -- exits ---------------------------------------------------------------------------------------


@njit_inner(RESULT2)
def _ask(ctx, earley_set, source):
    """Ask for what an Earley set allows below a source, once; 0, FAIL or NOT_MINE."""
    n = used(ctx, ASKED)
    for i in range(n):
        if asked(ctx)[i].earley_set == earley_set and asked(ctx)[i].source == source:
            return int64(0)
    if n == _MOST_ASKED:
        ctx[RECURRING_CORES] = _NEVER
        return int64(NOT_MINE)
    if not room(ctx, ASKED, 1):
        return int64(FAIL)
    asked(ctx)[n].earley_set = earley_set
    asked(ctx)[n].source = source
    set_used(ctx, ASKED, n + 1)
    return int64(0)


@njit_inner(RESULT3)
def _note_exit(ctx, item, rule, source):
    """Note an exit of the root under way, once; 0 or FAIL."""
    n = used(ctx, EXITS_FOUND)
    for i in range(n):
        found = exits_found(ctx)[i]
        if found.item == item and found.rule == rule and found.source == source:
            return int64(0)
    if not room(ctx, EXITS_FOUND, 1):
        return int64(FAIL)
    exits_found(ctx)[n].item = item
    exits_found(ctx)[n].rule = rule
    exits_found(ctx)[n].source = source
    set_used(ctx, EXITS_FOUND, n + 1)
    return int64(0)


@njit_inner(RESULT2)
def _ask_split(ctx, earley_set, source):
    """As _ask, for a set that may be undecided: its items at the ends of rules are exits of the root."""
    if not is_undecided(ctx, earley_set):
        return _ask(ctx, earley_set, source)
    offset = earley_sets(ctx)[earley_set].offset
    for i in range(offset, offset + earley_sets(ctx)[earley_set].count):
        item = earley_items(ctx)[i]
        if symbols(ctx)[item.dot] == END:
            place, rule = place_of_unknown(ctx, item.origin), dot_left(ctx)[item.dot]
            if _note_exit(ctx, place, rule, source) < 0:
                return int64(FAIL)
    rest = split_ends(ctx, earley_set, 0)
    return rest if rest < 0 else _ask(ctx, rest, source)


@njit_inner(RESULT3)
def _leave(ctx, earley_set, exit_from, source):
    """Ask for what is behind an exit, ``item << 32 | rule``, of what an Earley set allows; as _ask."""
    item, rule = exit_from >> 32, exit_from & 0x7FFFFFFF
    dot = core_dots(ctx)[cores(ctx)[earley_sets(ctx)[earley_set].core].offset + item]
    at = earley_sets(ctx)[earley_set].offset
    end = at + earley_sets(ctx)[earley_set].count
    while at < end and earley_items(ctx)[at].dot < dot:
        at += 1
    while at < end and earley_items(ctx)[at].dot == dot:
        origin = earley_items(ctx)[at].origin
        at += 1
        if is_unknown(ctx, origin):
            if _note_exit(ctx, place_of_unknown(ctx, origin), rule, source) < 0:
                return int64(FAIL)
            continue
        behind = set_behind(ctx, rule, origin)
        status = behind if behind < 0 else _ask_split(ctx, behind, source)
        if status < 0:
            return status
    return int64(0)


@njit_inner(RESULT0)
def _follow_exits(ctx):
    """Note the parts for all that ASKED asks for, and what is behind their exits; 0, FAIL, LIMIT or NOT_MINE."""
    i = int64(0)
    while i < used(ctx, ASKED):
        earley_set, source = asked(ctx)[i].earley_set, asked(ctx)[i].source
        i += 1
        part = _part_of(ctx, source, earley_sets(ctx)[earley_set].core)
        if part < 0:
            return part
        if _add_part(ctx, part) < 0:
            return int64(FAIL)
        first = parts(ctx)[part].exits
        for j in range(first, first + parts(ctx)[part].exit_count):
            found = exits(ctx)[j]
            status = _leave(ctx, earley_set, found.item << 32 | found.rule, found.source)
            if status < 0:
                return status
    return int64(0)


# -- roots ---------------------------------------------------------------------------------------


@njit_inner(RESULT1)
def _find_accepts(ctx, lexer_state):
    """Write the accept sets of the boundaries of a lexer state to ACCEPTS_FOUND, each once; 0 or FAIL."""
    mask = lexer_masks(ctx)[lexer_state]
    set_used(ctx, ACCEPTS_FOUND, 0)
    last = int64(-1)
    for boundary in range(mask.boundaries, mask.boundaries + mask.boundary_count):
        accept = boundaries(ctx)[boundary].accept
        if accept == last:
            continue
        last = accept
        n = used(ctx, ACCEPTS_FOUND)
        i = int64(0)
        while i < n and accepts_found(ctx)[i] != accept:
            i += 1
        if i == n:
            if not room(ctx, ACCEPTS_FOUND, 1):
                return int64(FAIL)
            accepts_found(ctx)[n] = accept
            set_used(ctx, ACCEPTS_FOUND, n + 1)
    return int64(0)


@njit_inner(RESULT0)
def _keep_root(ctx):
    """Keep the root under way, PARTS_FOUND and EXITS_FOUND; which it is, or FAIL."""
    count = used(ctx, EXITS_FOUND)
    if not room(ctx, EXITS, count) or not room(ctx, ROOTS, 1):
        return int64(FAIL)
    first = _keep_parts(ctx)
    if first < 0:
        return int64(FAIL)
    place = used(ctx, EXITS)
    for i in range(count):
        found = exits_found(ctx)[i]
        exits(ctx)[place + i].item = found.item
        exits(ctx)[place + i].rule = found.rule
        exits(ctx)[place + i].source = found.source
    set_used(ctx, EXITS, place + count)
    root = used(ctx, ROOTS)
    roots(ctx)[root].parts = first
    roots(ctx)[root].part_count = used(ctx, PARTS_FOUND)
    roots(ctx)[root].exits = place
    roots(ctx)[root].exit_count = count
    set_used(ctx, ROOTS, root + 1)
    return root


@njit_inner(types.void(CTX))
def _begin_asking(ctx):
    """Nothing has been asked for, and nothing found."""
    set_used(ctx, PARTS_FOUND, 0)
    set_used(ctx, EXITS_FOUND, 0)
    set_used(ctx, ASKED, 0)


@njit_inner(RESULT2)
def _make_root(ctx, core, lexer_state):
    """Make the root of a core and a lexer state; FAIL, LIMIT or NOT_MINE if < 0."""
    status = far_call(ctx, F_LEXER_MASK, lexer_state, 0)
    if status < 0:
        return status
    if _find_accepts(ctx, lexer_state) < 0:
        return int64(FAIL)
    earley_set = stand_in(ctx, core)
    if earley_set < 0:
        return int64(FAIL)
    _begin_asking(ctx)
    part = _inside_part(ctx, lexer_state)
    if part < 0 or _add_part(ctx, part) < 0:
        return int64(FAIL)
    for i in range(used(ctx, ACCEPTS_FOUND)):
        accept = accepts_found(ctx)[i]
        after = set_after(ctx, earley_set, accept)
        source = _source_of(ctx, lexer_state, accept)
        if after < 0 or source < 0:
            return after if after < 0 else int64(FAIL)
        status = _ask_split(ctx, after, source)
        if status < 0:
            return status
    status = _follow_exits(ctx)
    return status if status < 0 else _keep_root(ctx)


@njit_inner(RESULT1)
def _root_key(ctx, configuration):
    """The key of the root of a configuration."""
    record = configurations(ctx)[configuration]
    return earley_sets(ctx)[record.earley_set].core << 32 | record.lexer_state


@njit_inner(RESULT1)
def _is_worth_it(ctx, state):
    """Whether the mask of a state is to be made by core (1 or 0).

    Where walks are short, or each core comes with one Earley set only, parts cost more than they save.  A core is worth
    it when it comes again after a long walk; all of them are where most walks are long, and many cores come again.
    """
    if ctx[RECURRING_CORES] >= _ENOUGH and 2 * ctx[LONG_WALKS] >= ctx[WALKS]:
        return int64(1)
    offset = states(ctx)[state].offset
    for i in range(offset, offset + states(ctx)[state].count):
        known = map_get(ctx, ROOT_KEYS, ROOT_VALUES, _root_key(ctx, i))
        if known == -1 or known == _FIRST_SEEN - configurations(ctx)[i].earley_set:
            return int64(0)
    return int64(ctx[RECURRING_CORES] >= 0)


@njit_inner(RESULT2)
def _note_walk(ctx, state, cost):
    """Note what walks for the mask of a state cost, in Earley sets; 0 or FAIL."""
    ctx[WALKS] += 1
    if cost < _LONG_WALK:
        return int64(0)
    ctx[LONG_WALKS] += 1
    offset = states(ctx)[state].offset
    for i in range(offset, offset + states(ctx)[state].count):
        key, earley_set = _root_key(ctx, i), configurations(ctx)[i].earley_set
        known = map_get(ctx, ROOT_KEYS, ROOT_VALUES, key)
        if known >= 0:
            continue
        if known != -1 and known != _FIRST_SEEN - earley_set:
            ctx[RECURRING_CORES] += 1
        if map_put(ctx, ROOT_KEYS, ROOT_VALUES, key, _FIRST_SEEN - earley_set) < 0:
            return int64(FAIL)
    return int64(0)


@njit_inner(RESULT1)
def _root_of(ctx, configuration):
    """The root of a configuration; FAIL, LIMIT or NOT_MINE if < 0."""
    key = _root_key(ctx, configuration)
    known = map_get(ctx, ROOT_KEYS, ROOT_VALUES, key)
    if known >= 0:
        return known
    if not bucket_room(ctx, ROOT_KEYS, used(ctx, ROOT_KEYS)):
        return int64(FAIL)
    root = _make_root(ctx, key >> 32, key & 0x7FFFFFFF)
    return root if root < 0 or map_put(ctx, ROOT_KEYS, ROOT_VALUES, key, root) == 0 else int64(FAIL)


@njit_inner(RESULT0)
def _has_space(ctx):
    """1 if there is room for what a usual grammar needs; or FAIL: a walk that fills a table begins anew."""
    if used(ctx, ROOTS):
        return int64(1)
    if not room(ctx, UNDECIDED_NODES, 1 << 15) or not room(ctx, WORK_STACK, 1 << 15):
        return int64(FAIL)
    if not room(ctx, SOURCE_NODES, 1 << 15) or not room(ctx, BOUNDARIES, 1 << 14):
        return int64(FAIL)
    if not room(ctx, EARLEY_ITEMS, 1 << 15) or not room(ctx, ASKED, 1 << 10) or not room(ctx, EXITS_FOUND, 1 << 10):
        return int64(FAIL)
    for slot in (PARTS, SOURCES, EXITS, ROOTS, COMPLETION_ITEMS):
        if not room(ctx, slot, 1 << 12):
            return int64(FAIL)
    for slot in (PART_KEYS, SOURCE_KEYS, ROOT_KEYS, SOURCE_BUCKETS):
        if not bucket_room(ctx, slot, 1 << 12):
            return int64(FAIL)
    return int64(1)


@njit_inner(RESULT2)
def mask_by_core(ctx, state, walked):
    """Make the mask of a state by the cores of its configurations; 0, or NOT_MINE, FAIL or LIMIT.

    If ``walked`` is not 0, the mask was made by walks that took as long as making ``walked - 1`` Earley sets does.
    """
    if used(ctx, BRANCHES):
        return int64(NOT_MINE)
    if walked:
        return _note_walk(ctx, state, walked - 1)
    if _is_worth_it(ctx, state) == 0:
        return int64(NOT_MINE)
    ctx[NODES_WALKED] = 0
    if _has_space(ctx) < 0:
        return int64(FAIL)
    offset, count = states(ctx)[state].offset, states(ctx)[state].count
    for i in range(offset, offset + count):
        root = _root_of(ctx, i)
        if root < 0:
            return root
    _begin_asking(ctx)
    if not room(ctx, PARTS_FOUND, count):
        return int64(FAIL)
    for i in range(offset, offset + count):
        earley_set = configurations(ctx)[i].earley_set
        root = _root_of(ctx, i)
        parts_found(ctx)[used(ctx, PARTS_FOUND)] = ~root
        set_used(ctx, PARTS_FOUND, used(ctx, PARTS_FOUND) + 1)
        first = roots(ctx)[root].exits
        for j in range(first, first + roots(ctx)[root].exit_count):
            found = exits(ctx)[j]
            status = _leave(ctx, earley_set, found.item << 32 | found.rule, found.source)
            if status < 0:
                return status
    status = _follow_exits(ctx)
    if status < 0:
        return status
    first = _keep_parts(ctx)
    if first < 0:
        return int64(FAIL)
    masks = state_masks(ctx)
    masks[state].dense = IN_PARTS
    masks[state].tokens = first
    masks[state].token_count = used(ctx, PARTS_FOUND)
    masks[state].inside_count = 0
    return int64(0)


far_entry(F_MASK_BY_CORE, mask_by_core)
