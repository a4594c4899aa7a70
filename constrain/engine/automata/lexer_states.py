"""Lexer states: which lexemes may be under way, and how far each of them is.

A lexer state is an interned, sorted set of (lexeme, expression).  State 0 is the empty set.
It knows nothing of the parser: the same state serves every Earley set that expects the same lexemes.
There is no longest match.  A state says which lexemes *could* end here (its accept set); the
recognizer then follows both roads, ending and going on.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata import expressions as e
from constrain.engine.automata.derivatives import known_derivative
from constrain.engine.automata.expressions import is_nullable
from constrain.engine.automata.liveness import is_live
from constrain.engine.storage import links
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import push_pair, room, set_used, used
from constrain.engine.storage.bits import count_bits, lowest_bit
from constrain.engine.storage.hashing import find, has_room, hash_staged, insert, is_staged, keep_staged
from constrain.engine.storage.header import CLASSES, CTX, RESULT1, RESULT2, RESULT3
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import far_call, far_entry
from constrain.engine.storage.statuses import FAIL
from constrain.kernels.language import int64, types, uint64

CLOSURE = 0x7FFFFFFF
"""In place of a lexeme: the lexer state stands for a closure (fast/closures.py)."""
NO_DENSE, NOT_SPLIT = -1, -2
"""In ``dense`` of LEXER_MASKS: the tokens are few, all of them in the list; the mask has not been made yet."""

GUARD_BIT = 1 << 30
"""In ACCEPT_MEMBERS: an expression none of whose strings may begin what follows the lexeme (longest_match.py)."""

FREELY = 2
"""In ``goes_on`` of LEXER_STATES: every byte with which a member can go on leads on."""

LEADS_ON = -2
"""In LEXER_TRANSITIONS: the byte leads on, to a state that has not been made; -1 if not even that is known."""

# With fewer bytes than this to begin with, the transitions of a state are written byte by byte.
_FEW_BYTES = 24


@njit_inner(int64(CTX, int64, int64))
def intern_accept_set(ctx, base, count):
    """The accept set with the ``count`` sorted lexemes at ``WORK_STACK[base]``; 0 is the empty one."""
    code = hash_staged(ctx, 0, base, count)
    records = t.accept_sets(ctx)
    known = find(ctx, t.ACCEPT_SET_HASHES, t.ACCEPT_SET_BUCKETS, code, -1)
    while known >= 0:
        if records[known].count == count and is_staged(ctx, t.ACCEPT_MEMBERS, records[known].offset, base, count):
            return known
        known = find(ctx, t.ACCEPT_SET_HASHES, t.ACCEPT_SET_BUCKETS, code, known)
    if not has_room(ctx, t.ACCEPT_SET_HASHES, t.ACCEPT_SET_BUCKETS) or not room(ctx, t.ACCEPT_SETS, 1):
        return int64(FAIL)
    if not room(ctx, t.ACCEPT_MEMBERS, count):
        return int64(FAIL)
    entry = used(ctx, t.ACCEPT_SET_HASHES)
    records[entry] = used(ctx, t.ACCEPT_MEMBERS), count
    keep_staged(ctx, t.ACCEPT_MEMBERS, base, count)
    set_used(ctx, t.ACCEPT_SETS, entry + 1)
    return insert(ctx, t.ACCEPT_SET_HASHES, t.ACCEPT_SET_BUCKETS, code)


@njit_inner(types.void(CTX, int64, int64, int64))
def _begin_transitions(ctx, state, base, count):
    """Set the transitions of a new state that are plain from the first bytes of its members.

    Bytes with which no member can go on lead to the dead state; the others are worked out as needed.
    """
    tmp = t.work_stack(ctx)
    classes = ctx[CLASSES]
    trans = t.lexer_transitions(ctx)
    class_byte = t.class_bytes(ctx)
    begins = t.lexer_first_bytes(ctx)
    n_bytes = int64(0)
    for quarter in range(4):
        bits = int64(0)
        for j in range(count):
            bits |= e.first_bytes(ctx, int64(tmp[base + 2 * j + 1]), quarter)
        begins[state, quarter] = bits
        n_bytes += count_bits(bits)
    set_used(ctx, t.LEXER_FIRST_BYTES, state + 1)
    begin, end = uint64(state * classes), uint64((state + 1) * classes)
    if n_bytes < _FEW_BYTES:
        class_of = t.byte_classes(ctx)
        for k in range(begin, end):
            trans[k] = 0
        for quarter in range(4):
            bits = begins[state, quarter]
            while bits:
                trans[begin + uint64(class_of[64 * quarter + lowest_bit(bits)])] = -1
                bits &= bits - 1
    else:
        for j in range(classes):
            byte = class_byte[j]
            trans[begin + uint64(j)] = -((begins[state, byte >> 6] >> (byte & 63)) & 1)
    set_used(ctx, t.LEXER_TRANSITIONS, (state + 1) * classes)


@njit_inner(types.UniTuple(int64, 3)(CTX, int64, int64, int64))
def _stage_first_match(ctx, base, count, stage):
    """Stage the accept set of the members at ``WORK_STACK[base]``, of which the first that can end is the lexeme.

    Members with an odd number are lexemes that the parser would refuse here.  Behind the lexeme stand, with GUARD_BIT,
    what is left of all members: with more of it, the lexer would not have ended here.

    Returns how many numbers were staged; ``goes_on`` of the state; and how many members are guards.
    """
    tmp = t.work_stack(ctx)
    guard = used(ctx, t.LEXEME_ROLES)
    lexeme = int64(-1)
    goes_on, guards, refused = int64(0), int64(0), int64(0)
    for j in range(count):
        member, expression = tmp[base + 2 * j], tmp[base + 2 * j + 1]
        if member == guard:
            guards += 1
            continue
        if lexeme < 0 and is_nullable(ctx, expression):
            lexeme = int64(member)
        refused += member & 1
        if expression != e.EPSILON and not member & 1:
            goes_on = int64(1)
    if goes_on and guards + refused == 0:
        goes_on = int64(FREELY)
    if lexeme < 0 or lexeme & 1:
        return int64(0), goes_on, guards
    tmp[stage] = lexeme
    n = int64(1)
    for j in range(count):
        member, expression = tmp[base + 2 * j], tmp[base + 2 * j + 1]
        # The end of any line is a member wherever the end of a line at a column is one, and holds all its texts.
        if expression == e.EPSILON or (member < guard and t.lexeme_roles(ctx)[member].line > 0):
            continue
        code = GUARD_BIT | expression
        i = n
        while i > 1 and tmp[stage + i - 1] > code:
            i -= 1
        if i > 1 and tmp[stage + i - 1] == code:
            continue
        for k in range(n, i, -1):
            tmp[stage + k] = tmp[stage + k - 1]
        tmp[stage + i] = code
        n += 1
    return n, goes_on, guards


@njit_inner(int64(CTX, int64, int64))
def intern_lexer_state(ctx, base, count):
    """The lexer state with the ``count`` pairs (lexeme, expression) from ``WORK_STACK[base]`` on, sorted by lexeme."""
    tmp = t.work_stack(ctx)
    code = hash_staged(ctx, 0, base, 2 * count)
    records = t.lexer_states(ctx)
    state = find(ctx, t.LEXER_STATE_HASHES, t.LEXER_STATE_BUCKETS, code, -1)
    while state >= 0:
        if records[state].count == count and is_staged(ctx, t.LEXER_MEMBERS, records[state].offset, base, 2 * count):
            return state
        state = find(ctx, t.LEXER_STATE_HASHES, t.LEXER_STATE_BUCKETS, code, state)
    state = used(ctx, t.LEXER_STATE_HASHES)
    classes = ctx[CLASSES]
    if not has_room(ctx, t.LEXER_STATE_HASHES, t.LEXER_STATE_BUCKETS) or not room(ctx, t.LEXER_STATES, 1):
        return int64(FAIL)
    if not room(ctx, t.LEXER_MEMBERS, 2 * count) or not room(ctx, t.LEXER_FIRST_BYTES, 1):
        return int64(FAIL)
    if not room(ctx, t.LEXER_TRANSITIONS, classes) or not room(ctx, t.LEXER_MASKS, 1):
        return int64(FAIL)
    # The accept set is staged behind the members, which are the top of the work stack.
    if not room(ctx, t.WORK_STACK, count + 1):
        return int64(FAIL)
    guard = used(ctx, t.LEXEME_ROLES)
    if guard and not room(ctx, t.LEXER_LIVES, 1):
        return int64(FAIL)
    tmp = t.work_stack(ctx)
    stage = used(ctx, t.WORK_STACK)
    accepted = 0
    goes_on = 0
    guards = 0
    if guard:
        accepted, goes_on, guards = _stage_first_match(ctx, base, count, stage)
    else:
        for j in range(count):
            expression = tmp[base + 2 * j + 1]
            if is_nullable(ctx, expression):
                tmp[stage + accepted] = tmp[base + 2 * j]
                accepted += 1
            if expression != e.EPSILON:
                goes_on = 1
    accept = intern_accept_set(ctx, stage, accepted)
    if accept < 0:
        return accept
    records[state] = used(ctx, t.LEXER_MEMBERS), count, accept, goes_on
    keep_staged(ctx, t.LEXER_MEMBERS, base, 2 * count)
    set_used(ctx, t.LEXER_STATES, state + 1)
    _begin_transitions(ctx, state, base, count - guards)
    if guard:
        t.lexer_lives(ctx)[state] = e.UNKNOWN
        set_used(ctx, t.LEXER_LIVES, state + 1)
    t.lexer_masks(ctx)[state].dense = NOT_SPLIT
    set_used(ctx, t.LEXER_MASKS, state + 1)
    return insert(ctx, t.LEXER_STATE_HASHES, t.LEXER_STATE_BUCKETS, code)


far_entry(links.F_ACCEPT_SET, intern_accept_set)
far_entry(links.F_LEXER_STATE, intern_lexer_state)


@njit_inner(RESULT2)
def leads_on(ctx, state, byte_class):
    """1 if a byte of the class leads on and that is plain without the state it leads to; else 0.

    For the last byte of a token that is all there is to know.
    """
    place = state * ctx[CLASSES] + byte_class
    trans = t.lexer_transitions(ctx)
    known = trans[place]
    if known != -1:
        return int64(known != 0)
    if used(ctx, t.LEXEME_ROLES) and t.lexer_states(ctx)[state].goes_on != FREELY:
        return int64(0)
    byte = t.class_bytes(ctx)[byte_class]
    word = byte >> 6
    records = t.expressions(ctx)
    pool = t.lexer_members(ctx)
    offset = t.lexer_states(ctx)[state].offset
    for i in range(offset, offset + 2 * t.lexer_states(ctx)[state].count, 2):
        expression = int64(pool[i + 1])
        # Whether anything is left of an intersection or a complement takes its derivative to know.
        if (e.first_bytes(ctx, expression, word) >> (byte & 63)) & 1 and not records[expression].flags & e.COMPLEX_FLAG:
            trans[place] = LEADS_ON
            return int64(1)
    return int64(0)


@njit_inner(RESULT3)
def _members_after(ctx, offset, count, byte):
    """Push on WORK_STACK what ``count`` members, at ``offset``, are after a byte; how many, FAIL, LIMIT."""
    base = used(ctx, t.WORK_STACK)
    for i in range(count):
        pool = t.lexer_members(ctx)
        lexeme = pool[offset + 2 * i]
        before = int64(pool[offset + 2 * i + 1])
        expression = known_derivative(ctx, before, byte)
        if expression < 0:
            expression = far_call(ctx, links.F_DERIVATIVE, before, byte)
            if expression < 0:
                return expression
        if expression == e.EMPTY:
            continue
        live = is_live(ctx, expression)
        if live < 0:
            return live
        if live == 0:
            continue
        if not push_pair(ctx, t.WORK_STACK, lexeme, expression):
            return int64(FAIL)
    return (used(ctx, t.WORK_STACK) - base) // 2


@njit_inner(RESULT2)
def next_lexer_state(ctx, state, byte_class):
    """The lexer state after one byte of the class, alive or not; 0 if no member is left.  FAIL or LIMIT if < 0."""
    byte = t.class_bytes(ctx)[byte_class]
    base = used(ctx, t.WORK_STACK)
    offset = t.lexer_states(ctx)[state].offset
    count = t.lexer_states(ctx)[state].count
    after = _members_after(ctx, offset, count, byte)
    if after > 0 and used(ctx, t.LEXEME_ROLES):
        after = far_call(ctx, links.F_SETTLE, base, after)
    if after <= 0:
        set_used(ctx, t.WORK_STACK, base)
        return after
    successor = state
    pool = t.lexer_members(ctx)
    tmp = t.work_stack(ctx)
    for i in range(2 * count):
        # Sooner seen than looked up: white space leads nowhere else.
        if after != count or tmp[base + i] != pool[offset + i]:
            successor = far_call(ctx, links.F_LEXER_STATE, base, after)
            break
    set_used(ctx, t.WORK_STACK, base)
    return successor


@njit_inner(RESULT2)
def lexer_step(ctx, state, byte_class):
    """The lexer state after one byte of the class; computed once per (state, class).  FAIL or LIMIT if < 0."""
    place = state * ctx[CLASSES] + byte_class
    known = t.lexer_transitions(ctx)[place]
    if known >= 0:
        return known
    successor = next_lexer_state(ctx, state, byte_class)
    if successor > 0 and used(ctx, t.LEXEME_ROLES):
        live = far_call(ctx, links.F_LEXER_LIVES, successor, 0)
        if live <= 0:
            successor = live
    if successor < 0:
        return successor
    t.lexer_transitions(ctx)[place] = successor
    return successor


far_entry(links.F_LEXER_STEP, lexer_step)


@njit_inner(RESULT2)
def step_lexer(ctx, state, byte_class):
    """As :func:`lexer_step`, which is called only where the step is not known."""
    known = int64(t.lexer_transitions(ctx)[state * ctx[CLASSES] + byte_class])
    return known if known >= 0 else far_call(ctx, links.F_LEXER_STEP, state, byte_class)


@njit_inner(RESULT1)
def count_first_bytes(ctx, state):
    """With how many bytes a lexer state may go on."""
    count = int64(0)
    for word in range(4):
        count += count_bits(t.lexer_first_bytes(ctx)[state, word])
    return count


@njit_inner(types.void(CTX))
def forget_lexer_masks(ctx):
    """Forget every lexer mask."""
    masks = t.lexer_masks(ctx)
    for state in range(used(ctx, t.LEXER_STATE_HASHES)):
        masks[state].dense = NOT_SPLIT
