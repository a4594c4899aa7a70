"""Earley rows, interned: what the parser expects next, as one integer.

An item is a dot (a place in a production) and an origin (the row where the production began).  A
row is the set of its *kernel* items: those reached by scanning a lexeme or completing a rule, with
something left to come.  A row is interned by that content, and origins are row ids, so two places
in the input with the same unfinished rules around them are the same row.

What follows from a kernel by prediction depends on its dots alone, not on the origins, so that part
is worked out once per set of dots, the row's *core* (the LR(0) half of Aycock and Horspool,
"Practical Earley Parsing", 2002; nullable nonterminals are stepped over as they do).

Completing rule A in row r yields the same items every time, so it is remembered per (r, A).  For a
right-recursive rule the remembered set is the one item at the end of the chain, which is what Leo's
transitive items are for (Leo, 1991): a right-recursive list costs constant work per element.

In an ambiguous grammar a row may have an item for each earlier row, and a completion in each of those adds as many: the
cube of the text's length.  So a row also keeps the origins of a dot as a set of bits where they are many.  Completions
then add 64 origins at a time, and none where all between the least and the greatest are there already, as they are when
every part of a text can be read as the same thing.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from numba import int64, types

from constrain.engine.automata.expressions import RESULT0, RESULT1, RESULT2
from constrain.engine.storage.access import bucket_room, i32, i64, room, set_used, used
from constrain.engine.storage.bits import count_bits, lowest_bit
from constrain.engine.storage.hashing import finish_hash, map_get, map_put, mix, sort_keys
from constrain.engine.storage.header import CTX, EPOCH, N_IGNORE, START_NT
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_CORE, F_LEXER_STATE, F_ROW, F_SCAN, far_call, far_entry
from constrain.engine.storage.schemas import (
    COMPLETION_ITEMS,
    COMPLETION_MEMO,
    COMPLETION_STAMPS,
    CORE_BUCKETS,
    CORE_DOTS,
    CORE_GROUPS,
    CORE_HASHES,
    CORE_KINDS,
    CORE_SCANS,
    CORE_WAITS,
    CORES,
    EARLEY_ITEMS,
    EARLEY_SET_BUCKETS,
    EARLEY_SET_HASHES,
    EARLEY_SETS,
    KERNEL_ITEMS,
    KERNEL_PLACES,
    KERNEL_SLOTS,
    NEW_SETS,
    NEW_WORDS,
    ORIGIN_SETS,
    ORIGIN_SETS_AT,
    PREDICTED,
    SCAN_KEYS,
    SCAN_VALUES,
    SET_OF_DOT,
    STATE_WORK,
    SYMBOLS,
    UNMADE_BRANCHES,
    WORK_LIST,
    WORK_STACK,
    accept_members,
    accept_sets,
    branch_dots,
    branches,
    completion_items,
    completion_memo,
    completion_stamps,
    core_buckets,
    core_dots,
    core_groups,
    core_hashes,
    core_kinds,
    core_scans,
    core_waits,
    cores,
    dot_left,
    earley_items,
    earley_set_buckets,
    earley_set_hashes,
    earley_sets,
    ignored,
    kernel_items,
    kernel_places,
    kernel_slots,
    lexemes,
    new_sets,
    new_words,
    nullable,
    nullable_rest,
    origin_sets,
    origin_sets_at,
    predicted,
    rule_starts,
    rules,
    set_of_dot,
    symbols,
    unmade_branches,
    work_list,
    work_stack,
)
from constrain.engine.storage.statuses import FAIL, UNMADE

END = 1 << 30
"""In SYMBOLS: the end of a production.  Other values: a nonterminal (>= 0), ``~lexeme`` (< 0), or BRANCH + a branch."""

BRANCH = 1 << 28
"""The same number as in the IR (automata/programs.py sees to that)."""

# Fields of a branch's record: its dots in BRANCH_DOTS, and how many (-1: not made yet); the rule that it is part of;
# its kind, and so in CORE_KINDS those of all branches in a core.
BRANCH_FIRST, BRANCH_COUNT, BRANCH_LEFT, BRANCH_KIND = range(4)

# Fields of a lexeme's record: its expression; whether it matches the empty string; whether it
# matches anything else.
LEXEME_NODE, LEXEME_NULLABLE, LEXEME_CONSUMES = range(3)
# Fields of a core's record.
(CORE_OFFSET, CORE_COUNT, CORE_INIT, CORE_SCAN, CORE_SCAN_COUNT, CORE_GROUP, CORE_GROUP_COUNT) = range(7)
# Fields of a row's record.
ROW_CORE, ROW_OFFSET, ROW_COUNT, ROW_ACCEPTS, ROW_DONE = range(5)

LEXEME_MARKS = 2, 4
"""In LEXEME_CONSUMES, beside 1: the marks of a lexeme (see :attr:`constrain.grammar.ir.GrammarIR.marks`)."""

MARK_SHIFT = 2
MARKED_ENDS = sum(LEXEME_MARKS) << MARK_SHIFT
"""In CORE_KINDS, beside the kinds of branches: the marks of lexemes that end where a row with this core begins."""

SELF = -1
"""In CORE_SCANS and CORE_WAITS: the item was predicted in the row itself.  Other values: the position of its dot."""

# A completion whose result is larger than this is worked out anew each time, so that memory stays
# linear where the number of items is not.
_MEMO_LIMIT = 64

_TOO_MANY = -2
"""In COMPLETION_MEMO: the result is larger than that.  Others: its place in COMPLETION_ITEMS, or -1 if not known."""

_MANY_ORIGINS = 16
"""From so many origins on those of a dot may be kept as a set, if it has no more words than origins."""

_MANY_ITEMS = 64
"""So many items of a row under way are put in order by sets rather than by sorting."""

# Fields of a set's record in ORIGIN_SETS, one for each dot of the row's core, and of the size of a cache line: where
# its words begin; how many there are (0: no set is kept); the word of the 64 lowest rows; the least and the greatest
# origin; whether all between are in it; where the items with this dot begin, and how many there are.
SET_BEGIN, SET_WORDS, SET_FIRST, SET_LEAST, SET_GREATEST, SET_IS_FULL, SET_ITEMS, SET_COUNT = range(8)
SET_FIELDS = 8
# Fields of the record of a set that is under way, in NEW_SETS: its dot; where its words begin in NEW_WORDS, the first
# of which is that of row 0; the first of them that is used, and behind the last; origins between which all are in it.
NEW_DOT, NEW_BEGIN, NEW_LOW, NEW_HIGH, NEW_FULL_FROM, NEW_FULL_TO = range(6)


LAST_EPOCH = (1 << 31) - 1
"""The marks of PREDICTED and COMPLETION_STAMPS are int32."""


@njit_inner(types.void(CTX))
def _begin_epoch(ctx):
    """Make the marks of PREDICTED and COMPLETION_STAMPS void: they hold if they are the number of the epoch."""
    if ctx[EPOCH] > LAST_EPOCH >> 1:
        # Numbers are used again.  Not only at the last: within an epoch of a row each of its completions has its own.
        for slot in (PREDICTED, COMPLETION_STAMPS):
            marks = i32(ctx, slot)
            for i in range(len(marks)):
                marks[i] = 0
        ctx[EPOCH] = 0
    ctx[EPOCH] += 1


@njit_inner(types.boolean(CTX, int64))
def _is_skippable(ctx, symbol):
    """Whether a symbol (not END) derives the empty string."""
    if symbol < 0:
        return lexemes(ctx)[~symbol].is_nullable != 0
    return nullable(ctx)[symbol] != 0


@njit_inner(RESULT2)
def _emit(ctx, dot, source):
    """Note item (dot, source), and those behind nullable symbols, in KERNEL_ITEMS as (symbol, item) keys; predict."""
    while True:
        symbol = symbols(ctx)[dot]
        if symbol >= BRANCH:
            if symbol == END:
                return int64(0)
            # What a branch goes on with takes the place of the item: it began where the item did.
            if not room(ctx, WORK_LIST, 2):
                return int64(FAIL)
            top = used(ctx, WORK_LIST)
            work_list(ctx)[top] = source
            work_list(ctx)[top + 1] = ~(symbol - BRANCH)
            set_used(ctx, WORK_LIST, top + 2)
            return int64(0)
        if symbol >= 0:
            marks = predicted(ctx)
            if marks[symbol] != ctx[EPOCH]:
                if not room(ctx, WORK_LIST, 1):
                    return int64(FAIL)
                marks[symbol] = ctx[EPOCH]
                work_list(ctx)[used(ctx, WORK_LIST)] = symbol
                set_used(ctx, WORK_LIST, used(ctx, WORK_LIST) + 1)
        if symbol >= 0 or lexemes(ctx)[~symbol].consumes:
            if not room(ctx, KERNEL_ITEMS, 1) or not room(ctx, WORK_STACK, 2):
                return int64(FAIL)
            n = used(ctx, KERNEL_ITEMS)
            tmp = work_stack(ctx)
            item = used(ctx, WORK_STACK)
            tmp[item] = dot + 1
            tmp[item + 1] = source
            set_used(ctx, WORK_STACK, item + 2)
            kernel_items(ctx)[n] = (symbol + END) << 32 | item
            set_used(ctx, KERNEL_ITEMS, n + 1)
        if not _is_skippable(ctx, symbol):
            return int64(0)
        dot += 1


@njit_inner(RESULT2)
def _make_core(ctx, base, count):
    """The core with the ``count`` sorted dots at ``WORK_STACK[base]``; its closure is worked out here, once."""
    tmp = work_stack(ctx)
    code = int64(0)
    for i in range(count):
        code = mix(code, tmp[base + i])
    code = finish_hash(code)
    buckets = core_buckets(ctx)
    records = cores(ctx)
    dots = core_dots(ctx)
    mask = len(buckets) - 1
    bucket = code & mask
    while buckets[bucket] >= 0:
        core = buckets[bucket]
        if records[core].count == count:
            offset = records[core].offset
            same = True
            for i in range(count):
                if dots[offset + i] != tmp[base + i]:
                    same = False
                    break
            if same:
                return core
        bucket = (bucket + 1) & mask
    core = used(ctx, CORE_HASHES)
    if not room(ctx, CORES, 7) or not room(ctx, CORE_HASHES, 1) or not room(ctx, CORE_DOTS, count):
        return int64(FAIL)
    if not room(ctx, CORE_KINDS, 1):
        return int64(FAIL)
    if not bucket_room(ctx, CORE_BUCKETS, core):
        return int64(FAIL)

    _begin_epoch(ctx)
    set_used(ctx, KERNEL_ITEMS, 0)
    set_used(ctx, WORK_LIST, 0)
    set_used(ctx, UNMADE_BRANCHES, 0)
    kinds = int64(0)
    for i in range(count):
        dot = tmp[base + i]
        if dot > 0:
            symbol = symbols(ctx)[dot - 1]
            if symbol < 0:
                kinds |= (lexemes(ctx)[~symbol].consumes << MARK_SHIFT) & MARKED_ENDS
        if _emit(ctx, dot, i) < 0:
            return int64(FAIL)
    while used(ctx, WORK_LIST) > 0:
        rule = work_list(ctx)[used(ctx, WORK_LIST) - 1]
        set_used(ctx, WORK_LIST, used(ctx, WORK_LIST) - 1)
        if rule < 0:
            source = work_list(ctx)[used(ctx, WORK_LIST) - 1]
            set_used(ctx, WORK_LIST, used(ctx, WORK_LIST) - 1)
            first = branches(ctx)[~rule].first
            n_dots = branches(ctx)[~rule].count
            kinds |= branches(ctx)[~rule].kind
            if n_dots < 0:
                if not room(ctx, UNMADE_BRANCHES, 1):
                    return int64(FAIL)
                unmade_branches(ctx)[used(ctx, UNMADE_BRANCHES)] = ~rule
                set_used(ctx, UNMADE_BRANCHES, used(ctx, UNMADE_BRANCHES) + 1)
            for i in range(first, first + n_dots):
                if _emit(ctx, branch_dots(ctx)[i], source) < 0:
                    return int64(FAIL)
            continue
        for i in range(rules(ctx)[rule], rules(ctx)[rule + 1]):
            if _emit(ctx, rule_starts(ctx)[i], SELF) < 0:
                return int64(FAIL)

    if used(ctx, UNMADE_BRANCHES) > 0:
        return int64(UNMADE)
    total = used(ctx, KERNEL_ITEMS)
    keys = i64(ctx, KERNEL_ITEMS)
    sort_keys(keys, total)
    if not room(ctx, CORE_SCANS, 3 * total) or not room(ctx, CORE_WAITS, 2 * total):
        return int64(FAIL)
    if not room(ctx, CORE_GROUPS, 3 * total):
        return int64(FAIL)
    if not room(ctx, WORK_STACK, 2 * total + 2 * ctx[N_IGNORE]):
        return int64(FAIL)
    tmp = work_stack(ctx)
    scans = core_scans(ctx)
    groups = i32(ctx, CORE_GROUPS)
    waits = core_waits(ctx)
    first_scan = used(ctx, CORE_SCANS) // 3
    first_group = used(ctx, CORE_GROUPS) // 3
    scan, group, wait = first_scan, first_group, used(ctx, CORE_WAITS) // 2
    last = int64(-1)
    for i in range(total):
        symbol = (keys[i] >> 32) - END
        item = keys[i] & 0x7FFFFFFF
        if symbol < 0:
            # Lexemes are sorted by ~lexeme, that is downwards; store them upwards.
            scans[scan].lexeme = ~symbol
            scans[scan].dot = tmp[item]
            scans[scan].source = tmp[item + 1]
            scan += 1
        else:
            if symbol != last:
                groups[3 * group] = symbol
                groups[3 * group + 1] = wait
                groups[3 * group + 2] = 0
                group += 1
                last = symbol
            waits[wait].dot = tmp[item]
            waits[wait].source = tmp[item + 1]
            groups[3 * group - 1] += 1
            wait += 1
    # The initial lexer state: the lexemes that are expected, and the ignored ones.
    start = used(ctx, WORK_STACK)
    all_lexemes = lexemes(ctx)
    all_ignored = ignored(ctx)
    n = 0
    i = scan - 1
    j = 0
    while i >= first_scan or j < ctx[N_IGNORE]:
        if j == ctx[N_IGNORE] or (i >= first_scan and scans[i].lexeme <= all_ignored[j]):
            lexeme = scans[i].lexeme
            i -= 1
        else:
            lexeme = all_ignored[j]
            j += 1
        if n == 0 or tmp[start + 2 * n - 2] != lexeme:
            tmp[start + 2 * n] = lexeme
            tmp[start + 2 * n + 1] = all_lexemes[lexeme].expression
            n += 1
    set_used(ctx, WORK_STACK, start + 2 * n)
    init = far_call(ctx, F_LEXER_STATE, start, n)
    if init < 0:
        return init
    offset = used(ctx, CORE_DOTS)
    for i in range(count):
        dots[offset + i] = tmp[base + i]
    set_used(ctx, CORE_DOTS, offset + count)
    set_used(ctx, CORE_SCANS, 3 * scan)
    set_used(ctx, CORE_GROUPS, 3 * group)
    set_used(ctx, CORE_WAITS, 2 * wait)
    records[core].offset = offset
    records[core].count = count
    records[core].initial = init
    records[core].scans = first_scan
    records[core].scan_count = scan - first_scan
    records[core].groups = first_group
    records[core].group_count = group - first_group
    set_used(ctx, CORES, 7 * core + 7)
    core_kinds(ctx)[core] = kinds
    set_used(ctx, CORE_KINDS, core + 1)
    core_hashes(ctx)[core] = code
    set_used(ctx, CORE_HASHES, core + 1)
    buckets[bucket] = core
    return core


far_entry(F_CORE, _make_core)


@njit_inner(RESULT2)
def _unique(ctx, begin, end):
    """Drop what occurs more than once in KERNEL_ITEMS[begin:end]; returns the end of what is left, or FAIL.

    A hash table that needs no clearing: a slot is in use if it names a key that names the slot
    (sparse sets; Briggs and Torczon, 1993).  Ambiguous grammars come upon the same item dozens of times.
    """
    size = int64(16)
    while size < 2 * (end - begin):
        size *= 2
    if not room(ctx, KERNEL_SLOTS, size) or not room(ctx, KERNEL_PLACES, end - begin):
        return int64(FAIL)
    keys = kernel_items(ctx)
    slots = kernel_slots(ctx)
    places = kernel_places(ctx)
    count = int64(0)
    for i in range(begin, end):
        key = keys[i]
        slot = finish_hash(mix(0, key)) & (size - 1)
        while True:
            known = slots[slot]
            if known < 0 or known >= count or places[known] != slot:
                slots[slot] = count
                places[count] = slot
                keys[begin + count] = key
                count += 1
                break
            if keys[begin + known] == key:
                break
            slot = (slot + 1) & (size - 1)
    return begin + count


@njit_inner(int64(CTX, int64, int64, int64))
def make_origin_sets(ctx, offset, count, dots):
    """The place in ORIGIN_SETS of the sets of a row with the sorted items ``EARLEY_ITEMS[offset:][:count]``.

    ``dots`` is how many different ones they have.  Returns -1 if no dot has many origins; FAIL if there is no room.
    """
    if count < _MANY_ORIGINS:
        return int64(-1)
    pool = i32(ctx, EARLEY_ITEMS)
    place = used(ctx, ORIGIN_SETS)
    begin = place + SET_FIELDS * dots
    for fills in range(2):
        total = int64(0)
        i = offset
        for source in range(dots):
            first = i
            while i < offset + count and pool[2 * i] == pool[2 * first]:
                i += 1
            least, greatest = int64(pool[2 * first + 1]), int64(pool[2 * i - 1])
            words = (greatest >> 6) - (least >> 6) + 1
            if i - first < _MANY_ORIGINS or words > i - first:
                words = int64(0)
            if fills:
                sets = origin_sets(ctx)
                record = place + SET_FIELDS * source
                sets[record + SET_BEGIN] = begin + total
                sets[record + SET_WORDS] = words
                sets[record + SET_FIRST] = least >> 6
                sets[record + SET_LEAST] = least
                sets[record + SET_GREATEST] = greatest
                sets[record + SET_IS_FULL] = int64(greatest - least + 1 == i - first)
                sets[record + SET_ITEMS] = first
                sets[record + SET_COUNT] = i - first
                for j in range(begin + total, begin + total + words):
                    sets[j] = 0
                if words:
                    shift = begin + total - (least >> 6)
                    for j in range(first, i):
                        origin = int64(pool[2 * j + 1])
                        sets[shift + (origin >> 6)] |= int64(1) << (origin & 63)
            total += words
        if total == 0:
            return int64(-1)
        total = (total + SET_FIELDS - 1) // SET_FIELDS * SET_FIELDS
        if not room(ctx, ORIGIN_SETS, SET_FIELDS * dots + total):
            return int64(FAIL)
        if fills:
            set_used(ctx, ORIGIN_SETS, begin + total)
    return place


@njit_inner(RESULT2)
def make_row(ctx, items, accepts):
    """The row with the kernel items in KERNEL_ITEMS[:items], as keys ``dot << 32 | origin``, in any order.

    ``accepts`` is 1 if the whole input so far is a sentence.  Returns the row's id or FAIL.
    """
    keys = i64(ctx, KERNEL_ITEMS)
    n = int64(1)
    while n < items and keys[n - 1] < keys[n]:
        n += 1
    if n < items:
        n = _unique(ctx, int64(0), items)
        if n < 0:
            return n
        sort_keys(keys, n)
    n = min(n, items)
    code = accepts
    for i in range(n):
        code = mix(code, keys[i])
    code = finish_hash(code)
    buckets = earley_set_buckets(ctx)
    records = earley_sets(ctx)
    pool = earley_items(ctx)
    mask = len(buckets) - 1
    bucket = code & mask
    while buckets[bucket] >= 0:
        row = buckets[bucket]
        if records[row].count == n and records[row].accepts == accepts:
            offset = records[row].offset
            same = True
            for i in range(n):
                if pool[offset + i].dot != keys[i] >> 32 or pool[offset + i].origin != keys[i] & 0x7FFFFFFF:
                    same = False
                    break
            if same:
                return row
        bucket = (bucket + 1) & mask
    row = used(ctx, EARLEY_SET_HASHES)
    if not room(ctx, EARLEY_SETS, 5) or not room(ctx, EARLEY_SET_HASHES, 1) or not room(ctx, EARLEY_ITEMS, 2 * n):
        return int64(FAIL)
    if (
        not bucket_room(ctx, EARLEY_SET_BUCKETS, row)
        or not room(ctx, WORK_STACK, n)
        or not room(ctx, ORIGIN_SETS_AT, 1)
    ):
        return int64(FAIL)
    # The items go to their final place first: making the core reuses KERNEL_ITEMS.
    offset = used(ctx, EARLEY_ITEMS) // 2
    base = used(ctx, WORK_STACK)
    tmp = work_stack(ctx)
    dots = int64(0)
    for i in range(n):
        dot = keys[i] >> 32
        pool[offset + i].dot = dot
        pool[offset + i].origin = keys[i] & 0x7FFFFFFF
        if dots == 0 or tmp[base + dots - 1] != dot:
            tmp[base + dots] = dot
            dots += 1
    set_used(ctx, WORK_STACK, base + dots)
    core = far_call(ctx, F_CORE, base, dots)
    set_used(ctx, WORK_STACK, base)
    if core < 0:
        return core
    groups = cores(ctx)[core].group_count
    if not room(ctx, COMPLETION_STAMPS, groups) or not room(ctx, COMPLETION_MEMO, groups):
        return int64(FAIL)
    sets = make_origin_sets(ctx, offset, n, dots)
    if sets < -1:
        return sets
    origin_sets_at(ctx)[row] = sets
    set_used(ctx, ORIGIN_SETS_AT, row + 1)
    done = used(ctx, COMPLETION_MEMO)
    for i in range(done, done + groups):
        completion_memo(ctx)[i] = -1
        completion_stamps(ctx)[i] = 0
    set_used(ctx, COMPLETION_MEMO, done + groups)
    set_used(ctx, COMPLETION_STAMPS, done + groups)
    set_used(ctx, EARLEY_ITEMS, 2 * (offset + n))
    records[row].core = core
    records[row].offset = offset
    records[row].count = n
    records[row].accepts = accepts
    records[row].completions = done
    set_used(ctx, EARLEY_SETS, 5 * row + 5)
    earley_set_hashes(ctx)[row] = code
    set_used(ctx, EARLEY_SET_HASHES, row + 1)
    buckets[bucket] = row
    return row


far_entry(F_ROW, make_row)


@njit_inner(int64(CTX, int64, int64, int64))
def _complete(ctx, rule, origin, epoch):
    """Ask for rule ``rule``, begun in row ``origin``, to be completed: put it on WORK_LIST once per epoch.

    Returns 1 if it is the start rule (the input is a sentence), else 0, or FAIL.
    """
    if rule == ctx[START_NT]:
        return int64(1)
    core = earley_sets(ctx)[origin].core
    groups = core_groups(ctx)
    first = cores(ctx)[core].groups
    low = first
    high = first + cores(ctx)[core].group_count
    while high - low > 1:
        middle = (low + high) // 2
        if groups[middle].symbol <= rule:
            low = middle
        else:
            high = middle
    slot = earley_sets(ctx)[origin].completions + low - first
    stamps = completion_stamps(ctx)
    if stamps[slot] == epoch:
        return int64(0)
    if not room(ctx, WORK_LIST, 3):
        return int64(FAIL)
    stamps[slot] = epoch
    work = work_list(ctx)
    top = used(ctx, WORK_LIST)
    work[top] = origin
    work[top + 1] = low
    work[top + 2] = slot
    set_used(ctx, WORK_LIST, top + 3)
    return int64(0)


@njit_inner(int64(CTX, int64, int64, int64, int64))
def _advance(ctx, dot, source, row, epoch):
    """Add the items with this dot that (row, source) stands for; complete those that are or may be at their end."""
    symbol = symbols(ctx)[dot]
    ends = nullable_rest(ctx)[dot] != 0
    rule = dot_left(ctx)[dot]
    begin, stop = int64(0), int64(1)
    old = int64(0)
    only = row
    if source != SELF:
        only = int64(-1)
        core = earley_sets(ctx)[row].core
        begin = earley_sets(ctx)[row].offset
        stop = begin + earley_sets(ctx)[row].count
        old = core_dots(ctx)[cores(ctx)[core].offset + source]
        record = origin_sets_at(ctx)[row]
        if record >= 0:
            sets = origin_sets(ctx)
            record += SET_FIELDS * source
            begin = sets[record + SET_ITEMS]
            stop = begin + sets[record + SET_COUNT]
            if stop - begin == 1:
                # The items of many rows do not fit into a processor's cache.
                only = sets[record + SET_LEAST]
        elif stop - begin == cores(ctx)[core].count:
            begin += source
            stop = begin + 1
        else:
            pool = earley_items(ctx)
            while pool[begin].dot != old:
                begin += 1
    accepts = int64(0)
    for i in range(begin, stop):
        origin = only
        if origin < 0:
            pool = earley_items(ctx)
            if pool[i].dot != old:
                break
            origin = pool[i].origin
        if symbol != END:
            n = used(ctx, KERNEL_ITEMS)
            if not room(ctx, KERNEL_ITEMS, 1):
                return int64(FAIL)
            kernel_items(ctx)[n] = dot << 32 | origin
            set_used(ctx, KERNEL_ITEMS, n + 1)
        if ends:
            status = _complete(ctx, rule, origin, epoch)
            if status < 0:
                return status
            accepts |= status
    return accepts


@njit_inner(RESULT2)
def _origin_set(ctx, row, source):
    """The place in ORIGIN_SETS of the record of the origins that (row, source) stands for, or -1."""
    if source == SELF:
        return int64(-1)
    place = origin_sets_at(ctx)[row]
    if place < 0:
        return int64(-1)
    place += SET_FIELDS * source
    return place if origin_sets(ctx)[place + SET_WORDS] else int64(-1)


@njit_inner(RESULT2)
def _new_set(ctx, dot, may_make):
    """The place in NEW_SETS of a dot's origins in the row under way; FAIL if there is no room.

    If there is none, it is made, or without ``may_make`` -1.  SET_OF_DOT needs no clearing (sparse sets, as in
    _unique).
    """
    if not room(ctx, SET_OF_DOT, used(ctx, SYMBOLS)):
        return int64(FAIL)
    records = new_sets(ctx)
    end = used(ctx, NEW_SETS)
    known = set_of_dot(ctx)[dot]
    if 0 <= known < end and known % 6 == 0 and records[known + NEW_DOT] == dot:
        return known
    if not may_make:
        return int64(-1)
    words = (used(ctx, EARLEY_SET_HASHES) >> 6) + 1
    if not room(ctx, NEW_SETS, 6) or not room(ctx, NEW_WORDS, words):
        return int64(FAIL)
    begin = used(ctx, NEW_WORDS)
    new = new_words(ctx)
    for i in range(begin, begin + words):
        new[i] = 0
    set_used(ctx, NEW_WORDS, begin + words)
    records[end + NEW_DOT] = dot
    records[end + NEW_BEGIN] = begin
    records[end + NEW_LOW] = words
    records[end + NEW_HIGH] = 0
    records[end + NEW_FULL_FROM] = 1
    records[end + NEW_FULL_TO] = 0
    set_used(ctx, NEW_SETS, end + 6)
    set_of_dot(ctx)[dot] = end
    return end


@njit_inner(int64(CTX, int64, int64, int64))
def _add_set(ctx, dot, place, epoch):
    """Add the items with this dot for all origins of a set; complete them as _advance does, unless ``epoch`` is < 0.

    Those that are in the row under way already were completed when they were added, or with the row that all of its
    items were taken from.
    """
    new_set = _new_set(ctx, dot, int64(1))
    if new_set < 0:
        return new_set
    sets = origin_sets(ctx)
    records = new_sets(ctx)
    least, greatest = sets[place + SET_LEAST], sets[place + SET_GREATEST]
    full_from, full_to = records[new_set + NEW_FULL_FROM], records[new_set + NEW_FULL_TO]
    if full_from <= least and greatest <= full_to:
        return int64(0)
    ends = epoch >= 0 and nullable_rest(ctx)[dot] != 0
    rule = dot_left(ctx)[dot]
    begin, first = sets[place + SET_BEGIN], sets[place + SET_FIRST]
    end = first + sets[place + SET_WORDS]
    words = new_words(ctx)
    to = records[new_set + NEW_BEGIN]
    accepts = int64(0)
    for word in range(first, end):
        bits = sets[begin + word - first] & ~words[to + word]
        words[to + word] |= bits
        while ends and bits:
            bit = lowest_bit(bits)
            status = _complete(ctx, rule, 64 * word + bit, epoch)
            if status < 0:
                return status
            accepts |= status
            bits ^= int64(1) << bit
    records[new_set + NEW_LOW] = min(records[new_set + NEW_LOW], first)
    records[new_set + NEW_HIGH] = max(records[new_set + NEW_HIGH], end)
    if sets[place + SET_IS_FULL]:
        if least <= full_to + 1 and full_from <= greatest + 1 and full_from <= full_to:
            records[new_set + NEW_FULL_FROM] = min(full_from, least)
            records[new_set + NEW_FULL_TO] = max(full_to, greatest)
        elif greatest - least > full_to - full_from:
            records[new_set + NEW_FULL_FROM] = least
            records[new_set + NEW_FULL_TO] = greatest
    return accepts


@njit_inner(RESULT1)
def _gather_sets(ctx, items):
    """Put the items of NEW_SETS among those in KERNEL_ITEMS[:items], all of them in order; returns how many, or FAIL.

    As long as that takes no more than a few words for each item, items become sets, which need not be sorted.
    """
    keys = i64(ctx, KERNEL_ITEMS)
    records = new_sets(ctx)
    words = new_words(ctx)
    spare = used(ctx, NEW_WORDS) + 4 * items - (used(ctx, EARLEY_SET_HASHES) >> 6)
    rest = int64(0)
    for i in range(items):
        dot, origin = keys[i] >> 32, keys[i] & 0x7FFFFFFF
        known = _new_set(ctx, dot, used(ctx, NEW_WORDS) < spare)
        if known == FAIL:
            return known
        if known >= 0:
            word = origin >> 6
            words[records[known + NEW_BEGIN] + word] |= int64(1) << (origin & 63)
            records[known + NEW_LOW] = min(records[known + NEW_LOW], word)
            records[known + NEW_HIGH] = max(records[known + NEW_HIGH], word + 1)
        else:
            keys[rest] = keys[i]
            rest += 1
    end = used(ctx, NEW_SETS)
    rest = _unique(ctx, int64(0), rest)
    if rest < 0:
        return rest
    sort_keys(keys, rest)
    count = int64(rest)
    dots = int64(0)
    set_used(ctx, KERNEL_ITEMS, rest)
    if not room(ctx, KERNEL_ITEMS, end // 6):
        return int64(FAIL)
    for record in range(0, end, 6):
        dot = records[record + NEW_DOT]
        if symbols(ctx)[dot] != END:
            keys[rest + dots] = dot << 32 | record
            dots += 1
            begin = records[record + NEW_BEGIN]
            for word in range(begin + records[record + NEW_LOW], begin + records[record + NEW_HIGH]):
                count += count_bits(words[word])
    sort_keys(keys[rest:], dots)
    # The result is made behind what there is, and then moved.
    out = rest + dots
    if not room(ctx, KERNEL_ITEMS, dots + count):
        return int64(FAIL)
    taken = int64(0)
    for j in range(dots):
        dot, record = keys[rest + j] >> 32, keys[rest + j] & 0x7FFFFFFF
        while taken < rest and keys[taken] >> 32 < dot:
            keys[out] = keys[taken]
            out += 1
            taken += 1
        begin = records[record + NEW_BEGIN]
        for word in range(records[record + NEW_LOW], records[record + NEW_HIGH]):
            bits = words[begin + word]
            key = dot << 32 | 64 * word
            while bits:
                bit = lowest_bit(bits)
                keys[out] = key + bit
                out += 1
                bits ^= int64(1) << bit
    while taken < rest:
        keys[out] = keys[taken]
        out += 1
        taken += 1
    for i in range(count):
        keys[i] = keys[rest + dots + i]
    set_used(ctx, KERNEL_ITEMS, count)
    return count


@njit_inner(RESULT1)
def _add_memo(ctx, memo):
    """Add what is remembered of a completion to KERNEL_ITEMS; returns its accept bit or FAIL."""
    items = completion_items(ctx)
    count = items[memo]
    if not room(ctx, KERNEL_ITEMS, count):
        return int64(FAIL)
    n = used(ctx, KERNEL_ITEMS)
    keys = kernel_items(ctx)
    for i in range(count):
        keys[n + i] = items[memo + 2 + 2 * i] << 32 | items[memo + 3 + 2 * i]
    set_used(ctx, KERNEL_ITEMS, n + count)
    return items[memo + 1]


@njit_inner(RESULT2)
def _follow_completions(ctx, epoch, accepts):
    """Do all that WORK_LIST asks for, and what that leads to.  Returns the accept bit or FAIL."""
    while used(ctx, WORK_LIST) > 0:
        top = used(ctx, WORK_LIST) - 3
        work = work_list(ctx)
        origin, group, slot = work[top], work[top + 1], work[top + 2]
        set_used(ctx, WORK_LIST, top)
        memo = completion_memo(ctx)[slot]
        if memo >= 0:
            known = _add_memo(ctx, memo)
            if known < 0:
                return known
            accepts |= known
            continue
        waits = core_groups(ctx)[group].waits
        for i in range(waits, waits + core_groups(ctx)[group].count):
            dot, source = core_waits(ctx)[i].dot, core_waits(ctx)[i].source
            place = _origin_set(ctx, origin, source)
            if place >= 0:
                status = _add_set(ctx, dot, place, epoch)
            else:
                status = _advance(ctx, dot, source, origin, epoch)
            if status < 0:
                return status
            accepts |= status
    return accepts


@njit_inner(RESULT2)
def _complete_alone(ctx, slot, epoch):
    """Do the one completion that WORK_LIST asks for, all that it leads to, and remember the result.

    Returns the accept bit or FAIL; 2 if the result is too large to be remembered, and then it is not in KERNEL_ITEMS.
    """
    accepts = int64(0)
    own_items = used(ctx, KERNEL_ITEMS)
    steps = 0
    while used(ctx, WORK_LIST) > 0:
        top = used(ctx, WORK_LIST) - 3
        work = work_list(ctx)
        origin, group, at = work[top], work[top + 1], work[top + 2]
        set_used(ctx, WORK_LIST, top)
        memo = completion_memo(ctx)[at]
        if memo >= 0:
            known = _add_memo(ctx, memo)
            if known < 0:
                return known
            accepts |= known
            continue
        steps += 1
        waits = core_groups(ctx)[group].waits
        for i in range(waits, waits + core_groups(ctx)[group].count):
            dot, source = core_waits(ctx)[i].dot, core_waits(ctx)[i].source
            if memo == _TOO_MANY or _origin_set(ctx, origin, source) >= 0:
                completion_memo(ctx)[slot] = _TOO_MANY
                set_used(ctx, KERNEL_ITEMS, own_items)
                set_used(ctx, WORK_LIST, 0)
                return int64(2)
            status = _advance(ctx, dot, source, origin, epoch)
            if status < 0:
                return status
            accepts |= status
    if steps > 1:
        end = _unique(ctx, own_items, used(ctx, KERNEL_ITEMS))
        if end < 0:
            return end
        set_used(ctx, KERNEL_ITEMS, end)
        keys = kernel_items(ctx)
        count = end - own_items
        if count > _MEMO_LIMIT:
            completion_memo(ctx)[slot] = _TOO_MANY
        else:
            if not room(ctx, COMPLETION_ITEMS, 2 + 2 * count):
                return int64(FAIL)
            memo = used(ctx, COMPLETION_ITEMS)
            items = completion_items(ctx)
            items[memo] = count
            items[memo + 1] = accepts
            for i in range(count):
                items[memo + 2 + 2 * i] = keys[own_items + i] >> 32
                items[memo + 3 + 2 * i] = keys[own_items + i] & 0x7FFFFFFF
            set_used(ctx, COMPLETION_ITEMS, memo + 2 + 2 * count)
            completion_memo(ctx)[slot] = memo
    return accepts


@njit_inner(int64(CTX, int64, int64, int64, int64))
def _advance_and_complete(ctx, dot, source, row, epoch):
    """Like _advance, and then everything that the completions lead to.  Returns the accept bit or FAIL.

    ``epoch`` is that of the row under way: what has been completed in it is not completed again.
    """
    set_used(ctx, WORK_LIST, 0)
    place = _origin_set(ctx, row, source)
    if place >= 0:
        accepts = _add_set(ctx, dot, place, epoch)
        return accepts if accepts < 0 else _follow_completions(ctx, epoch, accepts)
    ctx[EPOCH] += 1
    own_epoch = ctx[EPOCH]
    accepts = _advance(ctx, dot, source, row, own_epoch)
    if accepts < 0:
        return accepts
    work = work_list(ctx)
    asked = used(ctx, WORK_LIST)
    # A memo is kept for a single first completion: the usual case, and the one that chains.
    if asked == 3:
        origin, group, slot = work[0], work[1], work[2]
        if completion_memo(ctx)[slot] != _TOO_MANY:
            found = _complete_alone(ctx, slot, own_epoch)
            if found != 2:
                return found if found < 0 else accepts | found
            work = work_list(ctx)
            work[0], work[1], work[2] = origin, group, slot
    stamps = completion_stamps(ctx)
    kept = int64(0)
    for i in range(0, asked, 3):
        slot = work[i + 2]
        if stamps[slot] != epoch:
            stamps[slot] = epoch
            for j in range(3):
                work[kept + j] = work[i + j]
            kept += 3
    set_used(ctx, WORK_LIST, kept)
    return _follow_completions(ctx, epoch, accepts)


@njit_inner(RESULT1)
def _add_row(ctx, row):
    """Add all items of a row to those under way; returns 0 or FAIL."""
    begin = earley_sets(ctx)[row].offset
    items = earley_sets(ctx)[row].count
    core = earley_sets(ctx)[row].core
    record = origin_sets_at(ctx)[row]
    if not room(ctx, KERNEL_ITEMS, items):
        return int64(FAIL)
    n = used(ctx, KERNEL_ITEMS)
    pool = earley_items(ctx)
    keys = kernel_items(ctx)
    parts = int64(1) if record < 0 else cores(ctx)[core].count
    for source in range(parts):
        if record >= 0:
            sets = origin_sets(ctx)
            place = record + SET_FIELDS * source
            if sets[place + SET_WORDS]:
                dot = core_dots(ctx)[cores(ctx)[core].offset + source]
                if _add_set(ctx, dot, place, int64(-1)) < 0:
                    return int64(FAIL)
                continue
            begin, items = sets[place + SET_ITEMS], sets[place + SET_COUNT]
        for i in range(begin, begin + items):
            keys[n] = pool[i].dot << 32 | pool[i].origin
            n += 1
    set_used(ctx, KERNEL_ITEMS, n)
    return int64(0)


@njit_inner(int64(CTX, int64, int64, int64))
def _scan_into_kernel(ctx, row, accept_set, epoch):
    """Add to KERNEL_ITEMS what the row becomes after any one of the lexemes; returns the accept bit or FAIL."""
    core = earley_sets(ctx)[row].core
    first = cores(ctx)[core].scans
    count = cores(ctx)[core].scan_count
    offset = accept_sets(ctx)[accept_set].offset
    accepts = int64(0)
    for k in range(offset, offset + accept_sets(ctx)[accept_set].count):
        lexeme = accept_members(ctx)[k]
        all_ignored = ignored(ctx)
        for i in range(ctx[N_IGNORE]):
            if all_ignored[i] == lexeme:
                # An ignored lexeme leaves the row as it is.
                if _add_row(ctx, row) < 0:
                    return int64(FAIL)
                accepts |= earley_sets(ctx)[row].accepts
        # Scans are sorted by falling lexeme number.
        low, high = first, first + count
        scans = core_scans(ctx)
        while low < high:
            middle = (low + high) // 2
            if scans[middle].lexeme > lexeme:
                low = middle + 1
            else:
                high = middle
        while low < first + count and core_scans(ctx)[low].lexeme == lexeme:
            scans = core_scans(ctx)
            dot, source = scans[low].dot, scans[low].source
            status = _advance_and_complete(ctx, dot, source, row, epoch)
            if status < 0:
                return status
            accepts |= status
            low += 1
    return accepts


@njit_inner(RESULT2)
def scan(ctx, offset, count):
    """The row after a lexeme: STATE_WORK[offset:][:count] are (row, accept set) as ``row << 32 | accept_set``.

    One pair is the usual case, and remembered.  Several arise where lexemes that began at different
    places end at the same byte; their items then form one row, as in Earley's algorithm.
    """
    pairs = i64(ctx, STATE_WORK)[offset:]
    if count == 1:
        known = map_get(ctx, SCAN_KEYS, SCAN_VALUES, pairs[0])
        if known >= 0:
            return known
    set_used(ctx, KERNEL_ITEMS, 0)
    set_used(ctx, NEW_SETS, 0)
    set_used(ctx, NEW_WORDS, 0)
    _begin_epoch(ctx)
    epoch = ctx[EPOCH]
    accepts = int64(0)
    for i in range(count):
        status = _scan_into_kernel(ctx, pairs[i] >> 32, pairs[i] & 0x7FFFFFFF, epoch)
        if status < 0:
            return status
        accepts |= status
    items = used(ctx, KERNEL_ITEMS)
    if (used(ctx, NEW_SETS) > 0 or items >= _MANY_ITEMS) and _gather_sets(ctx, items) < 0:
        return int64(FAIL)
    row = far_call(ctx, F_ROW, used(ctx, KERNEL_ITEMS), accepts)
    if row >= 0 and count == 1 and map_put(ctx, SCAN_KEYS, SCAN_VALUES, pairs[0], row) < 0:
        return int64(FAIL)
    return row


far_entry(F_SCAN, scan)


@njit_inner(RESULT2)
def is_within(ctx, row, other):
    """Whether all items of a row are in another one, and it accepts only if that does."""
    if earley_sets(ctx)[row].accepts > earley_sets(ctx)[other].accepts:
        return int64(0)
    pool = earley_items(ctx)
    i = earley_sets(ctx)[row].offset
    end = i + earley_sets(ctx)[row].count
    j = earley_sets(ctx)[other].offset
    stop = j + earley_sets(ctx)[other].count
    while i < end:
        dot, origin = pool[i].dot, pool[i].origin
        while j < stop and (pool[j].dot < dot or (pool[j].dot == dot and pool[j].origin < origin)):
            j += 1
        if j == stop or pool[j].dot != dot or pool[j].origin != origin:
            return int64(0)
        i += 1
        j += 1
    return int64(1)


@njit_inner(RESULT0)
def make_start_row(ctx):
    """Row 0: the start rule, nothing read.  The start rule's only production begins at dot 0."""
    set_used(ctx, KERNEL_ITEMS, 0)
    if not room(ctx, KERNEL_ITEMS, 1):
        return int64(FAIL)
    kernel_items(ctx)[0] = 0
    return far_call(ctx, F_ROW, int64(1), nullable(ctx)[ctx[START_NT]])
