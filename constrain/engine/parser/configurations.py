"""Recognizer states: all ways to read the input so far, as one integer.

A state is an interned, sorted set of configurations, and whether the input so far is a sentence.  A configuration
is a pair (Earley set, lexer state): the Earley set in which the lexemes under way began, and how far they are.
State 0 has no configuration and does not accept: there the input is no prefix of any sentence.

A step over a byte moves each configuration's lexer state.  Where lexemes can end, the Earley sets that follow are
merged into one, and a configuration begins there; the old configuration stays if its lexemes can also go on.
Each step is computed once per (state, byte class).
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.parser import cores as earley_cores  # noqa: F401 (through pointers)
from constrain.engine.parser import scan  # noqa: F401 (through pointers)
from constrain.engine.parser.companions import KERNEL, MARKS_SHIFT, WORD, WORD_SHIFT
from constrain.engine.parser.cores import MARK_SHIFT, MARKED_ENDS
from constrain.engine.parser.earley_sets import is_within, make_start_set
from constrain.engine.parser.lr_stacks import first_stack
from constrain.engine.parser.rules import BRANCH, END
from constrain.engine.storage import links
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import i64, room, set_used, used
from constrain.engine.storage.hashing import find, finish_hash, has_room, insert, mix, sort_keys
from constrain.engine.storage.header import (
    CLASSES,
    COUNTS_BEGINS,
    CTX,
    N_IGNORE,
    OPEN,
    OPEN_AT,
    OPEN_STATE,
    RESULT0,
    RESULT1,
    RESULT2,
)
from constrain.engine.storage.jit import njit_entry, njit_inner
from constrain.engine.storage.links import far_call, far_entry
from constrain.engine.storage.statuses import FAIL, NO_STATE, STOPPED
from constrain.kernels.language import int32, int64, types, uint64

ENDED = -1
"""The state after an end token.  Not a state of the grammar: nothing is allowed in it."""

LOST = -2
"""In place of a state that has to be found again."""

NO_MASK, IN_ROOTS = -2, -3
"""In ``dense`` of STATE_MASKS: the mask of this state has not been computed yet; its list is one of ROOTS."""

_FEW_CONFIGURATIONS = 4
"""So many configurations that go on are not looked at for whether they are needed."""

# Kinds of branches (``kind`` in BRANCHES), as sets of bits: how the text goes on depends on what it was; for a mask too
# (the rules that are there do not stand in for what is not known); it is not even known whether it goes on.
IS_OPEN, IS_HARD, IS_UNSURE = 1, 2, 4
_BRANCH_KINDS = 7


@njit_inner(types.void(CTX))
def reset_work(ctx):
    """Empty the work stacks; whatever an interrupted kernel left there is void."""
    set_used(ctx, t.WORK_STACK, 0)
    set_used(ctx, t.WORK_LIST, 0)
    set_used(ctx, t.KERNEL_ITEMS, 0)
    set_used(ctx, t.LIVENESS_STACK, 0)
    set_used(ctx, t.STATE_WORK, 0)


@njit_inner(types.boolean(CTX, int64, int64))
def _has_configurations(ctx, state, count):
    """Whether the configurations of a state are STATE_WORK[:count]."""
    if t.states(ctx)[state].count != count:
        return False
    pool, offset, keys = t.configurations(ctx), t.states(ctx)[state].offset, t.state_work(ctx)
    for i in range(count):
        if pool[offset + i].earley_set != keys[i] >> 32 or pool[offset + i].lexer_state != keys[i] & 0x7FFFFFFF:
            return False
    return True


@njit_inner(RESULT2)
def intern_state(ctx, count, accepts):
    """The state with the configurations STATE_WORK[:count], as keys ``earley_set << 32 | lexer state`` in any order."""
    keys = i64(ctx, t.STATE_WORK)
    sort_keys(keys, count)
    n = int64(0)
    code = accepts
    for i in range(count):
        if n == 0 or keys[n - 1] != keys[i]:
            keys[n] = keys[i]
            code = mix(code, keys[n])
            n += 1
    code = finish_hash(code)
    records = t.states(ctx)
    state = find(ctx, t.STATE_HASHES, t.STATE_BUCKETS, code, -1)
    while state >= 0:
        if records[state].accepts == accepts and _has_configurations(ctx, state, n):
            return state
        state = find(ctx, t.STATE_HASHES, t.STATE_BUCKETS, code, state)
    state = used(ctx, t.STATE_HASHES)
    pool = t.configurations(ctx)
    classes = ctx[CLASSES]
    if (
        not has_room(ctx, t.STATE_HASHES, t.STATE_BUCKETS)
        or not room(ctx, t.STATES, 1)
        or not room(ctx, t.STATE_MARKS, 1)
    ):
        return int64(FAIL)
    if not room(ctx, t.CONFIGURATIONS, n) or not room(ctx, t.STATE_MASKS, 1):
        return int64(FAIL)
    if not room(ctx, t.TRANSITIONS, classes):
        return int64(FAIL)
    offset = used(ctx, t.CONFIGURATIONS)
    for j in range(n):
        pool[offset + j] = keys[j] >> 32, keys[j] & 0x7FFFFFFF
    set_used(ctx, t.CONFIGURATIONS, offset + n)
    records[state] = offset, n, accepts
    set_used(ctx, t.STATES, state + 1)
    trans = t.transitions(ctx)
    lexer_trans = t.lexer_transitions(ctx)
    # Unsigned and without a branch: the loops take whole registers then.
    begin, width = uint64(state * classes), uint64(classes)
    for j in range(width):
        trans[begin + j] = 0
    for k in range(n):
        place = uint64((keys[k] & 0x7FFFFFFF) * classes)
        for j in range(width):
            trans[begin + j] |= -int32(lexer_trans[place + j] != 0)
    set_used(ctx, t.TRANSITIONS, (state + 1) * classes)
    t.state_marks(ctx)[state] = 0
    set_used(ctx, t.STATE_MARKS, state + 1)
    t.state_masks(ctx)[state].dense = NO_MASK
    set_used(ctx, t.STATE_MASKS, state + 1)
    return insert(ctx, t.STATE_HASHES, t.STATE_BUCKETS, code)


@njit_inner(RESULT1)
def set_kinds(ctx, earley_set):
    """The kinds of the branches in an Earley set."""
    return t.core_kinds(ctx)[t.earley_sets(ctx)[earley_set].core] & _BRANCH_KINDS


@njit_inner(RESULT1)
def state_kinds(ctx, state):
    """The kinds of the branches in the Earley sets of a state's configurations."""
    offset = t.states(ctx)[state].offset
    kinds = int64(0)
    for i in range(offset, offset + t.states(ctx)[state].count):
        kinds |= set_kinds(ctx, t.configurations(ctx)[i].earley_set)
    return kinds


@njit_inner(RESULT2)
def state_of_set(ctx, earley_set, lexer_state):
    """The state with the one configuration (Earley set, lexer state); with none if the lexer state is dead (0)."""
    if not room(ctx, t.STATE_WORK, 1):
        return int64(FAIL)
    t.state_work(ctx)[0] = earley_set << 32 | lexer_state
    return intern_state(ctx, int64(1 if lexer_state or set_kinds(ctx, earley_set) else 0), int64(0))


far_entry(links.F_STATE_OF_SET, state_of_set)


@njit_inner(RESULT1)
def state_at_set(ctx, earley_set):
    """The state in which an Earley set is all there is: its lexemes begin, and the text may end if it accepts."""
    start = t.cores(ctx)[t.earley_sets(ctx)[earley_set].core].initial
    if not room(ctx, t.STATE_WORK, 1):
        return int64(FAIL)
    t.state_work(ctx)[0] = earley_set << 32 | start
    return intern_state(ctx, int64(1 if start else 0), t.earley_sets(ctx)[earley_set].accepts)


@njit_inner(RESULT1)
def first_groups(ctx, state):
    """The groups of the bytes (vocabulary/trie.py) with which a state may go on: bit ``g`` for group ``g``."""
    groups = t.class_groups(ctx)
    trans = t.transitions(ctx)
    classes = uint64(ctx[CLASSES])
    begin = uint64(state) * classes
    result = int64(0)
    for j in range(classes):
        # Without a branch: the loop takes whole registers then.
        result |= groups[j] & -int64(trans[begin + j] != 0)
    return result


@njit_inner(RESULT1)
def _is_ignored(ctx, lexer_state):
    """Whether a lexer state has no other lexemes than ignored ones."""
    offset, ignored = t.lexer_states(ctx)[lexer_state].offset, t.ignored(ctx)
    found = int64(0)
    for i in range(t.lexer_states(ctx)[lexer_state].count):
        for j in range(ctx[N_IGNORE]):
            found += int64(ignored[j] == t.lexer_members(ctx)[offset + 2 * i])
    return int64(found == t.lexer_states(ctx)[lexer_state].count)


@njit_inner(RESULT1)
def _drop_needless(ctx, count):
    """Drop configurations in STATE_WORK[:count] that allow nothing beside that with the latest set; returns the rest.

    They are those in the same lexer state whose Earley set is within the latest.  With an ignored lexeme that matches
    any text each Earley set is within the next, and a text would have as many configurations as bytes.

    Where it counts when a lexeme began, only ignored ones are dropped: the latest set is the one made last, not always
    the one that begins last.
    """
    work = t.state_work(ctx)
    latest = work[0]
    for i in range(1, count):
        latest = max(latest, work[i])
    if ctx[COUNTS_BEGINS] and not _is_ignored(ctx, latest & 0x7FFFFFFF):
        return count
    kept = int64(0)
    for i in range(count):
        configuration = work[i]
        if (
            configuration != latest
            and (configuration ^ latest) & 0x7FFFFFFF == 0
            and is_within(ctx, configuration >> 32, latest >> 32)
        ):
            continue
        work[kept] = configuration
        kept += 1
    return kept


@njit_inner(RESULT2)
def step(ctx, state, byte_class):
    """The state after one byte of the class, with OPEN added if it is an open one.  < 0: FAIL, LIMIT or UNMADE.

    A state is open if a lexeme ends with the byte and the Earley set behind it holds a branch that depends on the text.
    Going on from there as it is, is a guess.  Transitions to open states are kept as numbers below -1.
    """
    place = state * ctx[CLASSES] + byte_class
    known = t.transitions(ctx)[place]
    if known >= 0:
        return known
    if known < -1:
        return OPEN - known - 2
    offset = t.states(ctx)[state].offset
    count = t.states(ctx)[state].count
    # Configurations that go on are kept at the front of the work list, ends of lexemes behind them.
    if not room(ctx, t.STATE_WORK, 2 * count + 1):
        return int64(FAIL)
    kept = int64(0)
    ended = int64(0)
    for i in range(offset, offset + count):
        earley_set = t.configurations(ctx)[i].earley_set
        lexer_state = t.configurations(ctx)[i].lexer_state
        known = t.lexer_transitions(ctx)[lexer_state * ctx[CLASSES] + byte_class]
        lexer_state = known if known >= 0 else far_call(ctx, links.F_LEXER_STEP, lexer_state, byte_class)
        if lexer_state < 0:
            return lexer_state
        if lexer_state == 0:
            continue
        lex = t.lexer_states(ctx)
        work = t.state_work(ctx)
        if lex[lexer_state].goes_on:
            work[kept] = earley_set << 32 | lexer_state
            kept += 1
        if lex[lexer_state].accept:
            work[count + 1 + ended] = earley_set << 32 | lex[lexer_state].accept
            ended += 1
    if kept + ended == 0:
        t.transitions(ctx)[place] = 0
        return int64(0)
    if count == 1 and ended == 0 and not t.states(ctx)[state].accepts:
        if t.state_work(ctx)[0] & 0x7FFFFFFF == t.configurations(ctx)[offset].lexer_state:
            t.transitions(ctx)[place] = state
            return state
    if kept > _FEW_CONFIGURATIONS:
        kept = _drop_needless(ctx, kept)
    accepts = int64(0)
    kinds = int64(0)
    marks = int64(0)
    if ended:
        earley_set = far_call(ctx, links.F_SCAN, count + 1, ended)
        if earley_set < 0:
            return earley_set
        accepts = t.earley_sets(ctx)[earley_set].accepts
        core = t.earley_sets(ctx)[earley_set].core
        start = t.cores(ctx)[core].initial
        if used(ctx, t.PARSE_CONTEXTS):
            start = far_call(ctx, links.F_GUARDED, start, t.state_work(ctx)[count + 1] & 0x7FFFFFFF)
            if start < 0:
                return start
        kinds = set_kinds(ctx, earley_set)
        marks = t.core_kinds(ctx)[core] & MARKED_ENDS
        if start or kinds:
            t.state_work(ctx)[kept] = earley_set << 32 | start
            kept += 1
    successor = intern_state(ctx, kept, accepts)
    if successor >= 0 and marks:
        t.state_marks(ctx)[successor] |= marks >> MARK_SHIFT
    if successor >= 0 and kinds:
        t.transitions(ctx)[place] = -successor - 2
        return OPEN + successor
    if successor >= 0:
        t.transitions(ctx)[place] = successor
    return successor


far_entry(links.F_STEP, step)


@njit_entry(RESULT0)
def make_start_state(ctx):
    """Create the dead states (0), of the lexer and of the recognizer, and the start state."""
    reset_work(ctx)
    if used(ctx, t.LEXER_STATE_HASHES) == 0 and far_call(ctx, links.F_LEXER_STATE, 0, 0) < 0:
        return int64(FAIL)
    if used(ctx, t.STATE_HASHES) == 0 and intern_state(ctx, int64(0), int64(0)) < 0:
        return int64(FAIL)
    earley_set = first_stack(ctx) if used(ctx, t.PARSE_CONTEXTS) else make_start_set(ctx)
    return earley_set if earley_set < 0 else state_at_set(ctx, earley_set)


@njit_inner(RESULT2)
def _stop(ctx, state, count):
    """Stop at an open state, ``count`` bytes from where the kernel began."""
    ctx[OPEN_STATE] = state - OPEN
    ctx[OPEN_AT] = count
    return int64(STOPPED)


@njit_entry(RESULT2)
def push_byte(ctx, state, byte):
    """The state after ``byte``; 0 if the input is then no prefix of a sentence."""
    reset_work(ctx)
    state = far_call(ctx, links.F_STEP, state, t.byte_classes(ctx)[byte])
    return _stop(ctx, state, int64(1)) if state >= OPEN else state


@njit_entry(int64(CTX, int64, int64, CTX))
def push_token(ctx, state, token, companion):
    """The state after the bytes of a token; 0 if it is not allowed.

    Parameters
    ----------
    ctx : int64[...]
    state, token : int
    companion : int64[...]
        What reads the token beside the states (companions.py).

    Returns
    -------
    The state and, above it, a word (companions.unpack).  Or FAIL and its like, or NO_STATE, and nothing was read.
    """
    if uint64(state) >= uint64(used(ctx, t.STATE_HASHES)):
        return int64(NO_STATE)
    reset_work(ctx)
    marks = int64(0)
    starts = t.token_starts(ctx)
    data = t.token_bytes(ctx)
    class_of = t.byte_classes(ctx)
    classes = ctx[CLASSES]
    for i in range(starts[token], starts[token + 1]):
        byte_class = class_of[data[i]]
        known = t.transitions(ctx)[state * classes + byte_class]
        state = known if known >= 0 else far_call(ctx, links.F_STEP, state, byte_class)
        if state <= 0:
            return state
        if state >= OPEN:
            return _stop(ctx, state, i + 1 - starts[token])
        marks |= t.state_marks(ctx)[state]
    address = companion[KERNEL]
    if address == 0:
        return state | companion[WORD] << WORD_SHIFT | marks << MARKS_SHIFT
    return state | links.read_along(ctx, address, companion, token, marks << (MARKS_SHIFT - WORD_SHIFT)) << WORD_SHIFT


@njit_entry(int64(CTX, int64, types.Array(types.uint8, 1, "C", readonly=True)))
def push_bytes(ctx, state, data):
    """The state after ``data`` (uint8[n]), and above it a word (companions.unpack); 0 if no sentence begins so."""
    reset_work(ctx)
    marks = int64(0)
    class_of = t.byte_classes(ctx)
    for i in range(len(data)):
        state = far_call(ctx, links.F_STEP, state, class_of[data[i]])
        if state <= 0:
            return state
        if state >= OPEN:
            return _stop(ctx, state, i + 1)
        marks |= t.state_marks(ctx)[state]
    return state | marks << MARKS_SHIFT


@njit_entry(int64(CTX, int64, types.int32[::1]))
def open_dots(ctx, state, out):
    """Write the dots at open branches in a state to ``out`` (int32[n]); returns how many there are.

    There may be more than fit into ``out``, and some more than once.
    """
    count = 0
    offset = t.states(ctx)[state].offset
    for i in range(offset, offset + t.states(ctx)[state].count):
        earley_set = t.configurations(ctx)[i].earley_set
        if not set_kinds(ctx, earley_set):
            continue
        begin = t.earley_sets(ctx)[earley_set].offset
        for j in range(begin, begin + t.earley_sets(ctx)[earley_set].count):
            dot = t.earley_items(ctx)[j].dot
            symbol = t.symbols(ctx)[dot]
            if BRANCH <= symbol < END and t.branches(ctx)[symbol - BRANCH].kind:
                if count < len(out):
                    out[count] = dot
                count += 1
    return count


@njit_entry(int64(CTX, int64, types.int32[::1], types.int32[::1]))
def close_state(ctx, state, dots, others):
    """The state with ``others[i]`` (or nothing, if < 0) in place of the dot ``dots[i]`` wherever an Earley set is open.

    ``dots`` (int32[n]) are sorted.
    """
    reset_work(ctx)
    count = t.states(ctx)[state].count
    if not room(ctx, t.STATE_WORK, count + 1):
        return int64(FAIL)
    offset = t.states(ctx)[state].offset
    kept = int64(0)
    for i in range(offset, offset + count):
        earley_set = t.configurations(ctx)[i].earley_set
        lexer_state = t.configurations(ctx)[i].lexer_state
        if set_kinds(ctx, earley_set):
            begin = t.earley_sets(ctx)[earley_set].offset
            items = t.earley_sets(ctx)[earley_set].count
            set_used(ctx, t.KERNEL_ITEMS, 0)
            if not room(ctx, t.KERNEL_ITEMS, items):
                return int64(FAIL)
            keys = t.kernel_items(ctx)
            pool = t.earley_items(ctx)
            for j in range(items):
                dot = pool[begin + j].dot
                low, high = int64(0), int64(len(dots))
                while low < high:
                    middle = (low + high) // 2
                    if dots[middle] < dot:
                        low = middle + 1
                    else:
                        high = middle
                if low < len(dots) and dots[low] == dot:
                    dot = int64(others[low])
                if dot >= 0:
                    keys[used(ctx, t.KERNEL_ITEMS)] = dot << 32 | pool[begin + j].origin
                    set_used(ctx, t.KERNEL_ITEMS, used(ctx, t.KERNEL_ITEMS) + 1)
            accepts = t.earley_sets(ctx)[earley_set].accepts
            # What is ignored may follow where the text may end, though nothing else does.
            if used(ctx, t.KERNEL_ITEMS) == 0 and not accepts:
                continue
            earley_set = far_call(ctx, links.F_EARLEY_SET, used(ctx, t.KERNEL_ITEMS), accepts)
            if earley_set < 0:
                return earley_set
            # The Earley set has just begun: nothing of a lexeme has been read.
            lexer_state = t.cores(ctx)[t.earley_sets(ctx)[earley_set].core].initial
            if not lexer_state:
                continue
        t.state_work(ctx)[kept] = earley_set << 32 | lexer_state
        kept += 1
    return intern_state(ctx, kept, t.states(ctx)[state].accepts)


@njit_entry(int64(CTX, int64[::1]))
def set_behind_lexemes(ctx, pairs):
    """The Earley set behind lexemes that end at one place; or FAIL and its like.

    ``pairs`` (int64[n], at least one): where each began and which can end, ``earley_set << 32 | accept set``.
    """
    reset_work(ctx)
    if not room(ctx, t.STATE_WORK, len(pairs)):
        return int64(FAIL)
    for i in range(len(pairs)):
        i64(ctx, t.STATE_WORK)[i] = pairs[i]
    return far_call(ctx, links.F_SCAN, 0, len(pairs))


@njit_entry(int64(CTX, int64))
def accepts(ctx, state):
    """Whether the input so far is a sentence (1 or 0)."""
    return t.states(ctx)[state].accepts


@njit_entry(int64(CTX, int64, types.uint8[::1]))
def forced(ctx, state, out):
    """Write the bytes that every continuation begins with to ``out``; returns how many, or FAIL, LIMIT or UNMADE.

    Stops at a state that accepts, at one with a choice, when ``out`` is full, and behind a byte that leads to an open
    state: ``ctx[OPEN_AT]`` is 1 then, and 0 otherwise.
    """
    reset_work(ctx)
    class_of = t.byte_classes(ctx)
    size = t.class_sizes(ctx)
    ctx[OPEN_AT] = 0
    for n in range(len(out)):
        if t.states(ctx)[state].accepts:
            return n
        only = int64(-1)
        successor = int64(0)
        choice = False
        for byte in range(256):
            byte_class = class_of[byte]
            target = far_call(ctx, links.F_STEP, state, byte_class)
            if target < 0:
                return target
            if target == 0:
                continue
            if only >= 0 or size[byte_class] > 1:
                choice = True
                break
            only = int64(byte)
            successor = target
        if choice or only < 0:
            return n
        out[n] = only
        if successor >= OPEN:
            ctx[OPEN_AT] = 1
            return n + 1
        state = successor
    return len(out)
