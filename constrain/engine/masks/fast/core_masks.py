"""Masks by core: what is the same for all states with the same cores is made once.

In a program every place has a stack of unfinished rules of its own, so its states and masks never come again.  But a
token looks at little of that stack.  What it reads is lexemes, and which trie nodes these end at has nothing to do with
the parser: that is in *runs* (lexical_runs.py).  A mask is put together of runs.

A *root* is what a core makes of a lexer state, or of a *source*, the trie nodes at which lexemes have ended: the runs
for all lexemes that can follow each other within a token.  It is made with the stand-in of the core
(parser/stand_ins.py).  Where rules end that began before, the root has *exits*: which rule, by which dot of the core,
and the source at which it ends.

Behind an exit is the root of another core at this source: the core of what follows where the rule is completed in what
the item truly began in.  After ``f(a[i`` an item that ends with ``]`` leads to one that ends with ``)``, and so on.  So
the mask of a state is the roots of its configurations, and the roots behind their exits.

Runs and roots hold trie nodes, tokens, cores and lexer states, no states and no Earley sets.  They belong to the
grammar, not to the text, and stay when states are forgotten.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata.lexer_states import NO_DENSE
from constrain.engine.masks.fast.lexical_runs import MANY, first_run, has_space, is_part_of, run_from
from constrain.engine.masks.lexer_masks import add_dense, clear_scratch, keep_dense
from constrain.engine.parser.configurations import IN_ROOTS
from constrain.engine.parser.rules import END
from constrain.engine.parser.stand_ins import (
    is_covered,
    is_undecided,
    place_of_unknown,
    set_behind,
    stand_in,
    without_ends,
)
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import bucket_room, push, push_pair, room, set_used, take, used
from constrain.engine.storage.hashing import map_get, map_put
from constrain.engine.storage.header import CTX, LONG_WALKS, N_WORDS, RESULT0, RESULT1, RESULT2, RESULT3, WALKS
from constrain.engine.storage.heaps import heap_pop, heap_push
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_LEXER_STATE, F_MASK_BY_CORE, F_SCAN, far_call, far_entry
from constrain.engine.storage.statuses import FAIL, NOT_MINE
from constrain.kernels.language import int64

_NEVER = -(1 << 40)
"""In ``ctx[LONG_WALKS]``: masks are not made by core."""

_MOST_ASKED, _MOST_ARRIVALS = 1 << 12, 1 << 16
"""Where more is asked for at once, masks are made state by state, in this grammar for good."""

_ENOUGH = 2
"""So many walks were long before masks are made by core, if a quarter of all were."""

_LONG_WALK = 32
"""Walks for a mask that make so many Earley sets, or go over as many trie nodes as take as long, are long."""

_AT_SOURCE = 1 << 31
"""In a root's key, ``core << 32 | lexer state``: added to a source, in place of a lexer state."""

_SOURCE = _AT_SOURCE - 1

_BITS_OF_SOURCE, _BITS_OF_ARRIVAL = 31, 16
_DEEPEST = (1 << 15) - 1
"""A key in the queue of arrivals is ``(depth << 31 | source) << 16 | arrival``."""


# -- roots ---------------------------------------------------------------------------------------


@njit_inner(RESULT3)
def _arrive(ctx, earley_set, accept, source):
    """Note that lexemes of an accept set, which began in an Earley set, end at a source; 0, FAIL or NOT_MINE."""
    depth = int64(t.sources(ctx)[source].depth)
    if used(ctx, t.ARRIVALS) == _MOST_ARRIVALS or depth > _DEEPEST:
        ctx[LONG_WALKS] = _NEVER
        return int64(NOT_MINE)
    n = take(ctx, t.ARRIVALS, int64(1))
    if n < 0:
        return n
    t.arrivals(ctx)[n] = earley_set, accept
    return heap_push(ctx, t.ARRIVAL_QUEUE, (depth << _BITS_OF_SOURCE | source) << _BITS_OF_ARRIVAL | n)


@njit_inner(RESULT3)
def _note_exit(ctx, item, rule, source):
    """Note an exit of the root under way, once; 0 or FAIL."""
    for i in range(used(ctx, t.EXITS_FOUND)):
        found = t.exits_found(ctx)[i]
        if found.item == item and found.rule == rule and found.source == source:
            return int64(0)
    n = take(ctx, t.EXITS_FOUND, int64(1))
    if n < 0:
        return n
    t.exits_found(ctx)[n] = item, rule, source
    return int64(0)


@njit_inner(RESULT2)
def _add_run(ctx, earley_set, run):
    """Note a run that begins in an Earley set, and what its lexemes arrive at; as _arrive."""
    has_tokens = t.runs(ctx)[run].dense != NO_DENSE or t.runs(ctx)[run].token_count != 0
    if has_tokens and not push(ctx, t.RUNS_FOUND, run):
        return int64(FAIL)
    first = t.runs(ctx)[run].ends
    for i in range(first, first + t.runs(ctx)[run].end_count):
        end = t.run_ends(ctx)[i]
        status = _arrive(ctx, earley_set, end.accept, int64(end.source))
        if status < 0:
            return status
    return int64(0)


@njit_inner(RESULT3)
def _read(ctx, earley_set, source, lexer_state):
    """Add what a lexer state that began in an Earley set reads from a source, or from the top of the trie (-1).

    Where that is much it is done lexeme by lexeme.  States with other lexemes beside these have it in common.
    """
    offset, count = t.lexer_states(ctx)[lexer_state].offset, t.lexer_states(ctx)[lexer_state].count
    if source >= 0 and t.sources(ctx)[source].count < MANY:
        count = int64(1)
    for i in range(count):
        begins = lexer_state
        if count > 1:
            base = used(ctx, t.WORK_STACK)
            members = t.lexer_members(ctx)
            if not push_pair(ctx, t.WORK_STACK, members[offset + 2 * i], members[offset + 2 * i + 1]):
                return int64(FAIL)
            begins = far_call(ctx, F_LEXER_STATE, base, 1)
            set_used(ctx, t.WORK_STACK, base)
            if begins < 0:
                return begins
        status = first_run(ctx, begins) if source < 0 else run_from(ctx, source, begins)
        if status >= 0:
            status = _add_run(ctx, earley_set, status)
        if status < 0:
            return status
    return int64(0)


@njit_inner(RESULT2)
def _go_on(ctx, earley_set, source):
    """Add the run of an Earley set from a source.  Of an undecided one, the ends of rules are exits; as _arrive."""
    if is_undecided(ctx, earley_set):
        offset = t.earley_sets(ctx)[earley_set].offset
        for i in range(offset, offset + t.earley_sets(ctx)[earley_set].count):
            item = t.earley_items(ctx)[i]
            if t.symbols(ctx)[item.dot] == END:
                place, rule = place_of_unknown(ctx, item.origin), t.dot_left(ctx)[item.dot]
                if _note_exit(ctx, place, rule, source) < 0:
                    return int64(FAIL)
        earley_set = without_ends(ctx, earley_set)
        if earley_set < 0:
            return int64(FAIL)
    begins = int64(t.cores(ctx)[t.earley_sets(ctx)[earley_set].core].initial)
    return _read(ctx, earley_set, source, begins) if begins else int64(0)


@njit_inner(RESULT0)
def _keep_tokens(ctx):
    """Append the tokens of RUNS_FOUND to the token lists, but for those with dense masks, each once; how many.

    There is room.  The dense masks are left in the scratch mask.
    """
    clear_scratch(ctx)
    for i in range(used(ctx, t.RUNS_FOUND)):
        if t.runs(ctx)[t.runs_found(ctx)[i]].dense != NO_DENSE:
            add_dense(ctx, t.runs(ctx)[t.runs_found(ctx)[i]].dense)
    lists, scratch = t.token_lists(ctx), t.scratch_mask(ctx)
    first = used(ctx, t.TOKEN_LISTS)
    n = first
    for i in range(used(ctx, t.RUNS_FOUND)):
        run = t.runs(ctx)[t.runs_found(ctx)[i]]
        for j in range(run.tokens, run.tokens + run.token_count):
            token = lists[j]
            if not (scratch[token >> 5] >> (token & 31)) & 1:
                scratch[token >> 5] |= 1 << (token & 31)
                lists[n] = token
                n += 1
    set_used(ctx, t.TOKEN_LISTS, n)
    return n - first


@njit_inner(RESULT0)
def _keep_root(ctx):
    """Keep the root under way, RUNS_FOUND and EXITS_FOUND; which it is, or FAIL."""
    n_exits, n_runs, words = used(ctx, t.EXITS_FOUND), used(ctx, t.RUNS_FOUND), ctx[N_WORDS]
    n_tokens = int64(0)
    for i in range(n_runs):
        n_tokens += t.runs(ctx)[t.runs_found(ctx)[i]].token_count
    if not room(ctx, t.EXITS, n_exits) or not room(ctx, t.ROOTS, 1) or not room(ctx, t.TOKEN_LISTS, n_runs + n_tokens):
        return int64(FAIL)
    if not room(ctx, t.DENSE_MASKS, words):
        return int64(FAIL)
    root, tokens, dense = used(ctx, t.ROOTS), used(ctx, t.TOKEN_LISTS), int64(NO_DENSE)
    n_tokens = _keep_tokens(ctx)
    if n_tokens > words // 2:
        # One mask is smaller than the list, and sooner added than the list and several masks.
        set_used(ctx, t.TOKEN_LISTS, tokens)
        dense = keep_dense(ctx)
        n_tokens, n_runs = int64(0), int64(0)
    first = used(ctx, t.TOKEN_LISTS)
    n = first
    for i in range(n_runs):
        if t.runs(ctx)[t.runs_found(ctx)[i]].dense != NO_DENSE:
            t.token_lists(ctx)[n] = t.runs_found(ctx)[i]
            n += 1
    set_used(ctx, t.TOKEN_LISTS, n)
    place = used(ctx, t.EXITS)
    for i in range(n_exits):
        t.exits(ctx)[place + i] = t.exits_found(ctx)[i]
    set_used(ctx, t.EXITS, place + n_exits)
    t.roots(ctx)[root] = dense, tokens, n_tokens, first, n - first, place, n_exits
    set_used(ctx, t.ROOTS, root + 1)
    return root


@njit_inner(int64(CTX, int64, int64, int64, int64))
def _adds_nothing(ctx, earley_set, source, other, other_source):
    """1 if an Earley set at a source is known to allow no more than another one at another; 0 or FAIL."""
    if t.earley_sets(ctx)[earley_set].core != t.earley_sets(ctx)[other].core:
        return int64(0)
    status = is_part_of(ctx, source, other_source)
    return status if status <= 0 else is_covered(ctx, earley_set, other)


@njit_inner(RESULT3)
def _is_new(ctx, base, earley_set, source):
    """1 if an Earley set adds anything at a source to what is at WORK_STACK[base:], to which it is added; 0 or FAIL.

    Where a name may follow a name, ``ab`` is one name or two, ``abc`` up to three, and so on, each with a source of
    half of the trie.  What follows two names is what follows three.  Where there are few nodes, reading from them takes
    no longer than finding out.
    """
    if t.sources(ctx)[source].count < MANY:
        return int64(1)
    for i in range(base, used(ctx, t.WORK_STACK), 2):
        status = _adds_nothing(ctx, earley_set, source, int64(t.work_stack(ctx)[i]), int64(t.work_stack(ctx)[i + 1]))
        if status:
            return min(status, int64(0))
    return int64(1 if push_pair(ctx, t.WORK_STACK, earley_set, source) else FAIL)


@njit_inner(RESULT1)
def _find_runs(ctx, key):
    """Write the runs and exits of the root with a key to RUNS_FOUND and EXITS_FOUND; FAIL, LIMIT or NOT_MINE if < 0."""
    earley_set = stand_in(ctx, key >> 32)
    if earley_set < 0:
        return int64(FAIL)
    base = used(ctx, t.WORK_STACK)
    for slot in (t.RUNS_FOUND, t.EXITS_FOUND, t.ARRIVALS, t.ARRIVAL_QUEUE):
        set_used(ctx, slot, 0)
    if key & _AT_SOURCE:
        status = _go_on(ctx, earley_set, key & _SOURCE)
    else:
        status = _read(ctx, earley_set, int64(-1), key & _SOURCE)
    while status >= 0 and used(ctx, t.ARRIVAL_QUEUE):
        source = t.heap_keys(ctx, t.ARRIVAL_QUEUE)[0] >> _BITS_OF_ARRIVAL & _SOURCE
        # All that arrives there has done so: from a source lexemes lead to deeper ones only.  As in Earley's algorithm
        # it makes one set, however many ways there are to split what was read.
        n = int64(0)
        while (
            used(ctx, t.ARRIVAL_QUEUE) and t.heap_keys(ctx, t.ARRIVAL_QUEUE)[0] >> _BITS_OF_ARRIVAL & _SOURCE == source
        ):
            if not room(ctx, t.STATE_WORK, n + 1):
                return int64(FAIL)
            arrival = t.arrivals(ctx)[heap_pop(ctx, t.ARRIVAL_QUEUE) & _MOST_ARRIVALS - 1]
            t.state_work(ctx)[n] = arrival.earley_set << 32 | arrival.accept
            n += 1
        status = far_call(ctx, F_SCAN, 0, n)
        if status >= 0:
            earley_set = status
            status = _is_new(ctx, base, earley_set, source)
            if status > 0:
                status = _go_on(ctx, earley_set, source)
    return status


@njit_inner(RESULT1)
def _make_root(ctx, key):
    """Make the root with a key; FAIL, LIMIT or NOT_MINE if < 0."""
    base = used(ctx, t.WORK_STACK)
    status = _find_runs(ctx, key)
    set_used(ctx, t.WORK_STACK, base)
    return status if status < 0 else _keep_root(ctx)


@njit_inner(RESULT1)
def _root_of(ctx, key):
    """The root with a key; FAIL, LIMIT or NOT_MINE if < 0."""
    known = map_get(ctx, t.ROOT_KEYS, t.ROOT_VALUES, key)
    if known >= 0:
        return known
    if not bucket_room(ctx, t.ROOT_KEYS, used(ctx, t.ROOT_KEYS)):
        return int64(FAIL)
    root = _make_root(ctx, key)
    return root if root < 0 or map_put(ctx, t.ROOT_KEYS, t.ROOT_VALUES, key, root) == 0 else int64(FAIL)


@njit_inner(RESULT1)
def _root_key(ctx, configuration):
    """The key of the root of a configuration."""
    record = t.configurations(ctx)[configuration]
    return t.earley_sets(ctx)[record.earley_set].core << 32 | record.lexer_state


# -- masks ---------------------------------------------------------------------------------------


@njit_inner(RESULT0)
def _has_space(ctx):
    """1 if there is room for what a usual grammar needs; or FAIL: what fills a table begins anew."""
    if used(ctx, t.ROOTS):
        return int64(1)
    for slot in (
        t.EARLEY_ITEMS,
        t.EXITS,
        t.ROOTS,
        t.ROOTS_FOUND,
        t.RUNS_FOUND,
        t.EXITS_FOUND,
        t.ASKED,
        t.COMPLETION_ITEMS,
    ):
        if not room(ctx, slot, 1 << 12):
            return int64(FAIL)
    return int64(FAIL) if not bucket_room(ctx, t.ROOT_KEYS, 1 << 12) else has_space(ctx)


@njit_inner(RESULT2)
def _ask(ctx, earley_set, source):
    """Ask for what an Earley set allows below a source, once; 0, FAIL or NOT_MINE."""
    n = used(ctx, t.ASKED)
    for i in range(n):
        if t.asked(ctx)[i].earley_set == earley_set and t.asked(ctx)[i].source == source:
            return int64(0)
    for i in range(n if t.sources(ctx)[source].count >= MANY else 0):
        status = _adds_nothing(
            ctx, earley_set, source, int64(t.asked(ctx)[i].earley_set), int64(t.asked(ctx)[i].source)
        )
        if status:
            return min(status, int64(0))
    if n == _MOST_ASKED:
        ctx[LONG_WALKS] = _NEVER
        return int64(NOT_MINE)
    n = take(ctx, t.ASKED, int64(1))
    if n < 0:
        return n
    t.asked(ctx)[n] = earley_set, source
    return int64(0)


@njit_inner(RESULT3)
def _leave(ctx, earley_set, exit_from, source):
    """Ask for what is behind an exit, ``item << 32 | rule``, of what an Earley set allows; as _ask."""
    item, rule = exit_from >> 32, exit_from & 0x7FFFFFFF
    dot = t.core_dots(ctx)[t.cores(ctx)[t.earley_sets(ctx)[earley_set].core].offset + item]
    at = int64(t.earley_sets(ctx)[earley_set].offset)
    end = at + t.earley_sets(ctx)[earley_set].count
    while at < end and t.earley_items(ctx)[at].dot < dot:
        at += 1
    while at < end and t.earley_items(ctx)[at].dot == dot:
        behind = set_behind(ctx, rule, int64(t.earley_items(ctx)[at].origin))
        at += 1
        status = behind if behind < 0 else _ask(ctx, behind, source)
        if status < 0:
            return status
    return int64(0)


@njit_inner(RESULT2)
def _add_root(ctx, earley_set, key):
    """Add the root with a key to the mask under way, and ask for what is behind its exits; as _ask."""
    root = _root_of(ctx, key)
    if root < 0:
        return root
    if not push(ctx, t.ROOTS_FOUND, root):
        return int64(FAIL)
    first = t.roots(ctx)[root].exits
    for i in range(first, first + t.roots(ctx)[root].exit_count):
        found = t.exits(ctx)[i]
        item, rule, source = int64(found.item), int64(found.rule), int64(found.source)
        status = _leave(ctx, earley_set, item << 32 | rule, source)
        if status < 0:
            return status
    return int64(0)


@njit_inner(RESULT1)
def _find_roots(ctx, state):
    """Write the roots that the mask of a state is made of to ROOTS_FOUND; 0, FAIL, LIMIT or NOT_MINE."""
    set_used(ctx, t.ROOTS_FOUND, 0)
    set_used(ctx, t.ASKED, 0)
    offset = t.states(ctx)[state].offset
    for i in range(offset, offset + t.states(ctx)[state].count):
        status = _add_root(ctx, int64(t.configurations(ctx)[i].earley_set), _root_key(ctx, i))
        if status < 0:
            return status
    i = int64(0)
    while i < used(ctx, t.ASKED):
        earley_set, source = int64(t.asked(ctx)[i].earley_set), int64(t.asked(ctx)[i].source)
        i += 1
        status = _add_root(ctx, earley_set, t.earley_sets(ctx)[earley_set].core << 32 | _AT_SOURCE | source)
        if status < 0:
            return status
    return int64(0)


@njit_inner(RESULT2)
def mask_by_core(ctx, state, walked):
    """Make the mask of a state by the cores of its configurations; 0, or NOT_MINE, FAIL or LIMIT.

    If ``walked`` is not 0, the mask was made by walks that took as long as making ``walked - 1`` Earley sets does.
    """
    if used(ctx, t.BRANCHES):
        return int64(NOT_MINE)
    if walked:
        ctx[WALKS] += 1
        ctx[LONG_WALKS] += int64(walked > _LONG_WALK)
        return int64(0)
    # Where walks are short, as in nearly all JSON Schemas, roots cost more than they save.
    if ctx[LONG_WALKS] < max(_ENOUGH, ctx[WALKS] // 4):
        return int64(NOT_MINE)
    status = _has_space(ctx)
    if status >= 0:
        status = _find_roots(ctx, state)
    if status < 0:
        return status
    count = used(ctx, t.ROOTS_FOUND)
    first = take(ctx, t.TOKEN_LISTS, count)
    if first < 0:
        return first
    for i in range(count):
        t.token_lists(ctx)[first + i] = t.roots_found(ctx)[i]
    t.state_masks(ctx)[state] = IN_ROOTS, first, count, 0, 0
    return int64(0)


far_entry(F_MASK_BY_CORE, mask_by_core)
