"""Completion: what follows where a rule ends.

Completing rule A in an Earley set yields the same items every time, so it is remembered per set and A.  For a
right-recursive rule the remembered set is the one item at the end of the chain, which is what Leo's transitive items
are for (Leo, 1991): a right-recursive list costs constant work per element.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.parser.cores import SELF
from constrain.engine.parser.kernel_items import drop_repeated
from constrain.engine.parser.origin_sets import add_word, new_set_of, origin_set_of
from constrain.engine.parser.rules import END
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import room, set_used, take, used
from constrain.engine.storage.bits import lowest_bit
from constrain.engine.storage.header import CTX, EPOCH, RESULT1, RESULT2, START_NT
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.statuses import FAIL
from constrain.kernels.language import int64

# A completion whose result is larger than this is worked out anew each time, so that memory stays
# linear where the number of items is not.
_MEMO_LIMIT = 64


_TOO_MANY = -2
"""In COMPLETION_MEMO: the result is larger than that.  Others: its place in COMPLETION_ITEMS, or -1 if not known."""


@njit_inner(RESULT1)
def completions_of(ctx, earley_set):
    """The places of an Earley set in the tables of completions, one for each group of its core, begin here; or FAIL.

    Most sets are made on the way through a token, and no rule that begins in them is ever completed.
    """
    first = t.earley_sets(ctx)[earley_set].completions
    if first >= 0:
        return first
    groups = t.cores(ctx)[t.earley_sets(ctx)[earley_set].core].group_count
    if not room(ctx, t.COMPLETION_STAMPS, groups) or not room(ctx, t.COMPLETION_MEMO, groups):
        return int64(FAIL)
    first = used(ctx, t.COMPLETION_MEMO)
    for i in range(first, first + groups):
        t.completion_memo(ctx)[i] = -1
        t.completion_stamps(ctx)[i] = 0
    set_used(ctx, t.COMPLETION_MEMO, first + groups)
    set_used(ctx, t.COMPLETION_STAMPS, first + groups)
    t.earley_sets(ctx)[earley_set].completions = first
    return first


@njit_inner(RESULT2)
def _add_item(ctx, dot, origin):
    """Append an item to KERNEL_ITEMS; 0 or FAIL."""
    n = take(ctx, t.KERNEL_ITEMS, int64(1))
    if n < 0:
        return n
    t.kernel_items(ctx)[n] = dot << 32 | origin
    return int64(0)


@njit_inner(RESULT2)
def _keep_end(ctx, rule, origin):
    """Add an item at the end of a rule that began in an unknown set (stand_ins.py); 0 or FAIL."""
    # One end stands for those of all productions of the rule.
    dot = t.rule_starts(ctx)[t.rules(ctx)[rule]]
    while t.symbols(ctx)[dot] != END:
        dot += 1
    return _add_item(ctx, dot, origin)


@njit_inner(RESULT2)
def group_of(ctx, core, rule):
    """The group in CORE_GROUPS of what waits for a rule in a core that predicts it."""
    groups = t.core_groups(ctx)
    low = t.cores(ctx)[core].groups
    high = low + t.cores(ctx)[core].group_count
    while high - low > 1:
        middle = (low + high) // 2
        if groups[middle].symbol <= rule:
            low = middle
        else:
            high = middle
    return low


@njit_inner(int64(CTX, int64, int64, int64))
def _complete(ctx, rule, origin, epoch):
    """Ask for rule ``rule``, begun in Earley set ``origin``, to be completed: put it on WORK_LIST once per epoch.

    Returns 1 if it is the start rule (the input is a sentence), else 0, or FAIL.
    """
    if rule == ctx[START_NT]:
        return int64(1)
    core = t.earley_sets(ctx)[origin].core
    if t.cores(ctx)[core].group_count == 0:
        return _keep_end(ctx, rule, origin)
    completions = completions_of(ctx, origin)
    if completions < 0:
        return completions
    group = group_of(ctx, core, rule)
    slot = completions + group - t.cores(ctx)[core].groups
    stamps = t.completion_stamps(ctx)
    if stamps[slot] == epoch:
        return int64(0)
    if not room(ctx, t.WORK_LIST, 3):
        return int64(FAIL)
    stamps[slot] = epoch
    work = t.work_list(ctx)
    top = used(ctx, t.WORK_LIST)
    work[top] = origin
    work[top + 1] = group
    work[top + 2] = slot
    set_used(ctx, t.WORK_LIST, top + 3)
    return int64(0)


@njit_inner(int64(CTX, int64, int64, int64))
def _complete_word(ctx, rule, word, bits):
    """Like _complete for the origins ``bits`` of a word (origin_sets.py): all with the same core are one thing to do.

    On WORK_LIST are then ``~word``, the group in the core, and the bits.
    """
    if rule == ctx[START_NT]:
        return int64(1)
    completed = new_set_of(ctx, used(ctx, t.SYMBOLS) + rule, int64(1))
    if completed < 0:
        return completed
    bits = add_word(ctx, completed, word, bits)
    while bits:
        core = t.earley_sets(ctx)[64 * word + lowest_bit(bits)].core
        others = int64(0)
        rest = bits
        while rest:
            lowest = rest & -rest
            rest ^= lowest
            if t.earley_sets(ctx)[64 * word + lowest_bit(lowest)].core != core:
                others |= lowest
        bits ^= others
        if t.cores(ctx)[core].group_count == 0:
            while bits:
                if _keep_end(ctx, rule, 64 * word + lowest_bit(bits)) < 0:
                    return int64(FAIL)
                bits &= bits - 1
        else:
            if not room(ctx, t.WORK_LIST, 3):
                return int64(FAIL)
            work = t.work_list(ctx)
            top = used(ctx, t.WORK_LIST)
            work[top] = ~word
            work[top + 1] = group_of(ctx, core, rule)
            work[top + 2] = bits
            set_used(ctx, t.WORK_LIST, top + 3)
        bits = others
    return int64(0)


@njit_inner(int64(CTX, int64, int64, int64, int64))
def _advance(ctx, dot, source, earley_set, epoch):
    """Add the items with this dot that a source in a set stands for; complete those that are or may be at their end."""
    symbol = t.symbols(ctx)[dot]
    ends = t.nullable_rest(ctx)[dot] != 0
    rule = t.dot_left(ctx)[dot]
    begin, stop = int64(0), int64(1)
    old = int64(0)
    only = earley_set
    if source != SELF:
        only = int64(-1)
        core = t.earley_sets(ctx)[earley_set].core
        begin = t.earley_sets(ctx)[earley_set].offset
        stop = begin + t.earley_sets(ctx)[earley_set].count
        old = t.core_dots(ctx)[t.cores(ctx)[core].offset + source]
        record = t.origin_sets_at(ctx)[earley_set]
        if record >= 0:
            origins = t.origin_sets(ctx)[record + source]
            begin = origins.items
            stop = begin + origins.count
            if stop - begin == 1:
                # The items of many Earley sets do not fit into a processor's cache.
                only = origins.least
        elif stop - begin == t.cores(ctx)[core].count:
            begin += source
            stop = begin + 1
        else:
            pool = t.earley_items(ctx)
            while pool[begin].dot != old:
                begin += 1
    accepts = int64(0)
    for i in range(begin, stop):
        origin = only
        if origin < 0:
            pool = t.earley_items(ctx)
            if pool[i].dot != old:
                break
            origin = pool[i].origin
        if symbol != END and _add_item(ctx, dot, origin) < 0:
            return int64(FAIL)
        if ends:
            status = _complete(ctx, rule, origin, epoch)
            if status < 0:
                return status
            accepts |= status
    return accepts


@njit_inner(int64(CTX, int64, int64, int64))
def add_set(ctx, dot, place, epoch):
    """Add the items with this dot for all origins of a set; complete them as _advance does, unless ``epoch`` is < 0.

    Those that are in the set under way already were completed when they were added, or with the Earley set that all of
    its items were taken from.
    """
    ends = epoch >= 0 and t.nullable_rest(ctx)[dot] != 0
    rule = t.dot_left(ctx)[dot]
    # At the end of a rule there is no item to be added, only those to be completed.
    at_end = ends and t.symbols(ctx)[dot] == END
    new_set = new_set_of(ctx, used(ctx, t.SYMBOLS) + rule if at_end else dot, int64(1))
    if new_set < 0:
        return new_set
    origins, new = t.origin_sets(ctx)[place], t.new_sets(ctx)[new_set]
    least, greatest = origins.least, origins.greatest
    full_from, full_to = new.full_from, new.full_to
    if full_from <= least and greatest <= full_to:
        return int64(0)
    begin, first, is_full = origins.begin, origins.first, origins.is_full
    accepts = int64(0)
    for word in range(first, first + origins.words):
        bits = t.origin_words(ctx)[begin + word - first]
        if not at_end:
            bits = add_word(ctx, new_set, word, bits)
        if ends and bits:
            status = _complete_word(ctx, rule, word, bits)
            if status < 0:
                return status
            accepts |= status
    if is_full:
        if least <= full_to + 1 and full_from <= greatest + 1 and full_from <= full_to:
            new.full_from, new.full_to = min(full_from, least), max(full_to, greatest)
        elif greatest - least > full_to - full_from:
            new.full_from, new.full_to = least, greatest
    return accepts


@njit_inner(int64(CTX, int64, int64, int64, int64))
def _advance_all(ctx, dot, source, earley_set, epoch):
    """Like _advance; 64 origins at a time where they are kept as a set of bits."""
    place = origin_set_of(ctx, earley_set, source)
    return add_set(ctx, dot, place, epoch) if place >= 0 else _advance(ctx, dot, source, earley_set, epoch)


@njit_inner(int64(CTX, int64, int64, int64))
def _add_predicted(ctx, dot, word, bits):
    """Add the items with this dot for the origins ``bits`` of a word, which predicted it; complete as add_set does."""
    accepts = int64(0)
    if t.symbols(ctx)[dot] != END:
        new_set = new_set_of(ctx, dot, int64(1))
        if new_set < 0:
            return new_set
        bits = add_word(ctx, new_set, word, bits)
    if t.nullable_rest(ctx)[dot] and bits:
        accepts = _complete_word(ctx, t.dot_left(ctx)[dot], word, bits)
    return accepts


@njit_inner(int64(CTX, int64, int64, int64, int64))
def _follow_word(ctx, word, group, bits, epoch):
    """Add what waits in a group for a rule that ended, in the origins ``bits`` of a word.  The accept bit or FAIL."""
    accepts = int64(0)
    waits = t.core_groups(ctx)[group].waits
    for i in range(waits, waits + t.core_groups(ctx)[group].count):
        dot, source = t.core_waits(ctx)[i].dot, t.core_waits(ctx)[i].source
        if source == SELF:
            status = _add_predicted(ctx, dot, word, bits)
            if status < 0:
                return status
            accepts |= status
            continue
        rest = bits
        while rest:
            origin = 64 * word + lowest_bit(rest)
            rest &= rest - 1
            status = _advance_all(ctx, dot, source, origin, epoch)
            if status < 0:
                return status
            accepts |= status
    return accepts


@njit_inner(RESULT1)
def _add_memo(ctx, memo):
    """Add what is remembered of a completion to KERNEL_ITEMS; returns its accept bit or FAIL."""
    items = t.completion_items(ctx)
    count = items[memo]
    n = take(ctx, t.KERNEL_ITEMS, count)
    if n < 0:
        return n
    keys = t.kernel_items(ctx)
    for i in range(count):
        keys[n + i] = items[memo + 2 + 2 * i] << 32 | items[memo + 3 + 2 * i]
    return items[memo + 1]


@njit_inner(RESULT2)
def _follow_completions(ctx, epoch, accepts):
    """Do all that WORK_LIST asks for, and what that leads to.  Returns the accept bit or FAIL."""
    while used(ctx, t.WORK_LIST) > 0:
        top = used(ctx, t.WORK_LIST) - 3
        work = t.work_list(ctx)
        origin, group, slot = work[top], work[top + 1], work[top + 2]
        set_used(ctx, t.WORK_LIST, top)
        if origin < 0:
            status = _follow_word(ctx, ~origin, group, slot, epoch)
            if status < 0:
                return status
            accepts |= status
            continue
        memo = t.completion_memo(ctx)[slot]
        if memo >= 0:
            known = _add_memo(ctx, memo)
            if known < 0:
                return known
            accepts |= known
            continue
        waits = t.core_groups(ctx)[group].waits
        for i in range(waits, waits + t.core_groups(ctx)[group].count):
            dot, source = t.core_waits(ctx)[i].dot, t.core_waits(ctx)[i].source
            status = _advance_all(ctx, dot, source, origin, epoch)
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
    own_items = used(ctx, t.KERNEL_ITEMS)
    steps = 0
    while used(ctx, t.WORK_LIST) > 0:
        top = used(ctx, t.WORK_LIST) - 3
        work = t.work_list(ctx)
        origin, group, at = work[top], work[top + 1], work[top + 2]
        set_used(ctx, t.WORK_LIST, top)
        memo = t.completion_memo(ctx)[at]
        if memo >= 0:
            known = _add_memo(ctx, memo)
            if known < 0:
                return known
            accepts |= known
            continue
        steps += 1
        waits = t.core_groups(ctx)[group].waits
        for i in range(waits, waits + t.core_groups(ctx)[group].count):
            dot, source = t.core_waits(ctx)[i].dot, t.core_waits(ctx)[i].source
            if memo == _TOO_MANY or origin_set_of(ctx, origin, source) >= 0:
                t.completion_memo(ctx)[slot] = _TOO_MANY
                set_used(ctx, t.KERNEL_ITEMS, own_items)
                set_used(ctx, t.WORK_LIST, 0)
                return int64(2)
            status = _advance(ctx, dot, source, origin, epoch)
            if status < 0:
                return status
            accepts |= status
    if steps > 1:
        end = drop_repeated(ctx, own_items, used(ctx, t.KERNEL_ITEMS))
        if end < 0:
            return end
        set_used(ctx, t.KERNEL_ITEMS, end)
        keys = t.kernel_items(ctx)
        count = end - own_items
        if count > _MEMO_LIMIT:
            t.completion_memo(ctx)[slot] = _TOO_MANY
        else:
            if not room(ctx, t.COMPLETION_ITEMS, 2 + 2 * count):
                return int64(FAIL)
            memo = used(ctx, t.COMPLETION_ITEMS)
            items = t.completion_items(ctx)
            items[memo] = count
            items[memo + 1] = accepts
            for i in range(count):
                items[memo + 2 + 2 * i] = keys[own_items + i] >> 32
                items[memo + 3 + 2 * i] = keys[own_items + i] & 0x7FFFFFFF
            set_used(ctx, t.COMPLETION_ITEMS, memo + 2 + 2 * count)
            t.completion_memo(ctx)[slot] = memo
    return accepts


@njit_inner(int64(CTX, int64, int64, int64))
def _complete_asked(ctx, accepts, epoch, own_epoch):
    """Do what WORK_LIST asks for, in ``own_epoch``, and what that leads to, as advance_and_complete."""
    work = t.work_list(ctx)
    asked = used(ctx, t.WORK_LIST)
    # A memo is kept for a single first completion: the usual case, and the one that chains.
    if asked == 3:
        origin, group, slot = work[0], work[1], work[2]
        if t.completion_memo(ctx)[slot] != _TOO_MANY:
            found = _complete_alone(ctx, slot, own_epoch)
            if found != 2:
                return found if found < 0 else accepts | found
            work = t.work_list(ctx)
            work[0], work[1], work[2] = origin, group, slot
    stamps = t.completion_stamps(ctx)
    kept = int64(0)
    for i in range(0, asked, 3):
        slot = work[i + 2]
        if stamps[slot] != epoch:
            stamps[slot] = epoch
            for j in range(3):
                work[kept + j] = work[i + j]
            kept += 3
    set_used(ctx, t.WORK_LIST, kept)
    return _follow_completions(ctx, epoch, accepts)


@njit_inner(int64(CTX, int64, int64, int64, int64))
def advance_and_complete(ctx, dot, source, earley_set, epoch):
    """Like _advance, and then everything that the completions lead to.  Returns the accept bit or FAIL.

    ``epoch`` is that of the Earley set under way: what has been completed in it is not completed again.
    """
    set_used(ctx, t.WORK_LIST, 0)
    place = origin_set_of(ctx, earley_set, source)
    if place >= 0:
        accepts = add_set(ctx, dot, place, epoch)
        return accepts if accepts < 0 else _follow_completions(ctx, epoch, accepts)
    ctx[EPOCH] += 1
    own_epoch = ctx[EPOCH]
    accepts = _advance(ctx, dot, source, earley_set, own_epoch)
    if accepts < 0:
        return accepts
    return _complete_asked(ctx, accepts, epoch, own_epoch)


@njit_inner(RESULT2)
def complete_rule(ctx, rule, origin):
    """Add to KERNEL_ITEMS what follows where a rule ends that began in a set.  Returns the accept bit or FAIL."""
    set_used(ctx, t.WORK_LIST, 0)
    epoch = ctx[EPOCH]
    ctx[EPOCH] += 1
    accepts = _complete(ctx, rule, origin, ctx[EPOCH])
    return accepts if accepts < 0 else _complete_asked(ctx, accepts, epoch, ctx[EPOCH])
