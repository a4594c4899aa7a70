"""Cores: what a set of dots predicts, whatever their origins are.

The core of an Earley set is the set of its kernel items' dots (the LR(0) half of Aycock and Horspool, "Practical Earley
Parsing", 2002; nullable nonterminals are stepped over as they do).  It decides which lexemes may follow and which items
wait for which nonterminal, and that is worked out once.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata.lexemes import LEXEME_MARK
from constrain.engine.parser.rules import BRANCH, END
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import i32, i64, push, push_pair, room, set_used, take, used
from constrain.engine.storage.hashing import find, has_room, hash_staged, insert, is_staged, keep_staged, sort_keys
from constrain.engine.storage.header import CTX, EPOCH, N_IGNORE, RESULT0, RESULT1, RESULT2
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_CONTEXT_STATE, F_CORE, F_LEXER_STATE, far_call, far_entry
from constrain.engine.storage.statuses import FAIL, UNMADE
from constrain.kernels.language import int64, types

MARK_SHIFT = 2
MARKED_ENDS = LEXEME_MARK << MARK_SHIFT
"""In CORE_KINDS, beside the kinds of branches: the marks of lexemes that end where a set with this core begins."""

IS_UNDECIDED = 32
"""In CORE_KINDS: an item is at the end of its rule, which began in an unknown set (stand_ins.py)."""

SELF = -1
"""In CORE_SCANS and CORE_WAITS: the item was predicted in the set itself.  Other values: the position of its dot."""


LAST_EPOCH = (1 << 31) - 1
"""The marks of PREDICTED and COMPLETION_STAMPS are int32."""


@njit_inner(types.void(CTX))
def begin_epoch(ctx):
    """Make the marks of PREDICTED and COMPLETION_STAMPS void: they hold if they are the number of the epoch."""
    if ctx[EPOCH] > LAST_EPOCH >> 1:
        # Numbers are used again.  Not only at the last: within the epoch of a set each of its completions has its own.
        for slot in (t.PREDICTED, t.COMPLETION_STAMPS):
            marks = i32(ctx, slot)
            for i in range(len(marks)):
                marks[i] = 0
        ctx[EPOCH] = 0
    ctx[EPOCH] += 1


@njit_inner(types.boolean(CTX, int64))
def _is_skippable(ctx, symbol):
    """Whether a symbol (not END) derives the empty string."""
    if symbol < 0:
        return t.lexemes(ctx)[~symbol].is_nullable != 0
    return t.nullable(ctx)[symbol] != 0


@njit_inner(RESULT2)
def _emit(ctx, dot, source):
    """Note item (dot, source), and those behind nullable symbols, in KERNEL_ITEMS as (symbol, item) keys; predict."""
    while True:
        symbol = t.symbols(ctx)[dot]
        if symbol >= BRANCH:
            if symbol == END:
                return int64(0)
            # What a branch goes on with takes the place of the item: it began where the item did.
            top = take(ctx, t.WORK_LIST, int64(2))
            if top < 0:
                return top
            t.work_list(ctx)[top] = source
            t.work_list(ctx)[top + 1] = ~(symbol - BRANCH)
            return int64(0)
        if symbol >= 0:
            marks = t.predicted(ctx)
            if marks[symbol] != ctx[EPOCH]:
                top = take(ctx, t.WORK_LIST, int64(1))
                if top < 0:
                    return top
                marks[symbol] = ctx[EPOCH]
                t.work_list(ctx)[top] = symbol
        if symbol >= 0 or t.lexemes(ctx)[~symbol].consumes:
            n, item = take(ctx, t.KERNEL_ITEMS, int64(1)), used(ctx, t.WORK_STACK)
            if n < 0 or not push_pair(ctx, t.WORK_STACK, dot + 1, source):
                return int64(FAIL)
            t.kernel_items(ctx)[n] = (symbol + END) << 32 | item
        if not _is_skippable(ctx, symbol):
            return int64(0)
        dot += 1


@njit_inner(RESULT2)
def _predict(ctx, base, count):
    """Note the items of the core with the ``count`` dots at ``WORK_STACK[base]`` in KERNEL_ITEMS, see _emit.

    Returns the kinds of the branches in it (see CORE_KINDS), FAIL, or UNMADE.
    """
    begin_epoch(ctx)
    set_used(ctx, t.KERNEL_ITEMS, 0)
    set_used(ctx, t.WORK_LIST, 0)
    set_used(ctx, t.UNMADE_BRANCHES, 0)
    kinds = int64(0)
    for i in range(count):
        dot = t.work_stack(ctx)[base + i]
        if dot > 0:
            symbol = t.symbols(ctx)[dot - 1]
            if symbol < 0:
                kinds |= (t.lexemes(ctx)[~symbol].consumes << MARK_SHIFT) & MARKED_ENDS
        if t.symbols(ctx)[dot] == END:
            kinds |= IS_UNDECIDED
        if _emit(ctx, dot, i) < 0:
            return int64(FAIL)
    while used(ctx, t.WORK_LIST) > 0:
        rule = t.work_list(ctx)[used(ctx, t.WORK_LIST) - 1]
        set_used(ctx, t.WORK_LIST, used(ctx, t.WORK_LIST) - 1)
        if rule < 0:
            source = t.work_list(ctx)[used(ctx, t.WORK_LIST) - 1]
            set_used(ctx, t.WORK_LIST, used(ctx, t.WORK_LIST) - 1)
            branch = t.branches(ctx)[~rule]
            kinds |= branch.kind
            if branch.count < 0 and not push(ctx, t.UNMADE_BRANCHES, ~rule):
                return int64(FAIL)
            for i in range(branch.first, branch.first + branch.count):
                if _emit(ctx, t.branch_dots(ctx)[i], source) < 0:
                    return int64(FAIL)
            continue
        for i in range(t.rules(ctx)[rule], t.rules(ctx)[rule + 1]):
            if _emit(ctx, t.rule_starts(ctx)[i], SELF) < 0:
                return int64(FAIL)
    return kinds if used(ctx, t.UNMADE_BRANCHES) == 0 else int64(UNMADE)


@njit_inner(RESULT0)
def _write_items(ctx):
    """Append what _predict noted to CORE_SCANS, and by symbol to CORE_GROUPS and CORE_WAITS; returns 0 or FAIL."""
    total = used(ctx, t.KERNEL_ITEMS)
    keys = i64(ctx, t.KERNEL_ITEMS)
    sort_keys(keys, total)
    if not room(ctx, t.CORE_SCANS, total) or not room(ctx, t.CORE_WAITS, total):
        return int64(FAIL)
    if not room(ctx, t.CORE_GROUPS, total):
        return int64(FAIL)
    items = t.work_stack(ctx)
    scans = t.core_scans(ctx)
    groups = t.core_groups(ctx)
    waits = t.core_waits(ctx)
    scan, group, wait = used(ctx, t.CORE_SCANS), used(ctx, t.CORE_GROUPS), used(ctx, t.CORE_WAITS)
    last = int64(-1)
    for i in range(total):
        symbol = (keys[i] >> 32) - END
        item = keys[i] & 0x7FFFFFFF
        if symbol < 0:
            # Lexemes are sorted by ~lexeme, that is downwards.
            scans[scan] = ~symbol, items[item], items[item + 1]
            scan += 1
            continue
        if symbol != last:
            groups[group] = symbol, wait, 0
            group += 1
            last = symbol
        waits[wait] = items[item], items[item + 1]
        groups[group - 1].count += 1
        wait += 1
    set_used(ctx, t.CORE_SCANS, scan)
    set_used(ctx, t.CORE_GROUPS, group)
    set_used(ctx, t.CORE_WAITS, wait)
    return int64(0)


@njit_inner(RESULT1)
def _initial_state(ctx, first_scan):
    """The lexer state of the lexemes in CORE_SCANS from ``first_scan`` on, and of the ignored ones; or FAIL, LIMIT."""
    scans = t.core_scans(ctx)
    all_lexemes = t.lexemes(ctx)
    all_ignored = t.ignored(ctx)
    i, j = used(ctx, t.CORE_SCANS) - 1, 0
    if not room(ctx, t.WORK_STACK, 2 * (i + 1 - first_scan + ctx[N_IGNORE])):
        return int64(FAIL)
    start = used(ctx, t.WORK_STACK)
    staged = t.work_stack(ctx)
    n = 0
    while i >= first_scan or j < ctx[N_IGNORE]:
        if j == ctx[N_IGNORE] or (i >= first_scan and scans[i].lexeme <= all_ignored[j]):
            lexeme = scans[i].lexeme
            i -= 1
        else:
            lexeme = all_ignored[j]
            j += 1
        if n == 0 or staged[start + 2 * n - 2] != lexeme:
            staged[start + 2 * n] = lexeme
            staged[start + 2 * n + 1] = all_lexemes[lexeme].expression
            n += 1
    set_used(ctx, t.WORK_STACK, start + 2 * n)
    return far_call(ctx, F_LEXER_STATE, start, n)


@njit_inner(RESULT2)
def make_core(ctx, base, count):
    """The core with the ``count`` sorted dots at ``WORK_STACK[base]``; its closure is worked out here, once."""
    code = hash_staged(ctx, 0, base, count)
    records = t.cores(ctx)
    core = find(ctx, t.CORE_HASHES, t.CORE_BUCKETS, code, -1)
    while core >= 0:
        if records[core].count == count and is_staged(ctx, t.CORE_DOTS, records[core].offset, base, count):
            return core
        core = find(ctx, t.CORE_HASHES, t.CORE_BUCKETS, code, core)
    if not has_room(ctx, t.CORE_HASHES, t.CORE_BUCKETS) or not room(ctx, t.CORES, 1) or not room(ctx, t.CORE_KINDS, 1):
        return int64(FAIL)
    if not room(ctx, t.CORE_DOTS, count):
        return int64(FAIL)
    by_table = used(ctx, t.PARSE_CONTEXTS) > 0
    set_used(ctx, t.KERNEL_ITEMS, 0)
    kinds = int64(0) if by_table else _predict(ctx, base, count)
    if kinds < 0:
        return kinds
    first_scan, first_group, first_wait = used(ctx, t.CORE_SCANS), used(ctx, t.CORE_GROUPS), used(ctx, t.CORE_WAITS)
    if _write_items(ctx) < 0:
        return int64(FAIL)
    initial = far_call(ctx, F_CONTEXT_STATE, base, count) if by_table else _initial_state(ctx, first_scan)
    if initial < 0:
        set_used(ctx, t.CORE_SCANS, first_scan)
        set_used(ctx, t.CORE_GROUPS, first_group)
        set_used(ctx, t.CORE_WAITS, first_wait)
        return initial
    core = used(ctx, t.CORE_HASHES)
    n_scans, n_groups = used(ctx, t.CORE_SCANS) - first_scan, used(ctx, t.CORE_GROUPS) - first_group
    records[core] = used(ctx, t.CORE_DOTS), count, initial, first_scan, n_scans, first_group, n_groups
    set_used(ctx, t.CORES, core + 1)
    t.core_kinds(ctx)[core] = kinds
    set_used(ctx, t.CORE_KINDS, core + 1)
    keep_staged(ctx, t.CORE_DOTS, base, count)
    return insert(ctx, t.CORE_HASHES, t.CORE_BUCKETS, code)


far_entry(F_CORE, make_core)
