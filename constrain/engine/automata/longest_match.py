"""The longest match: lexer states of a grammar whose texts a lexer splits before a parser reads them.

Lark's lexer tries the terminals that the parser can use, in a fixed order, and takes the first that matches, as far as
it matches.  So where a lexeme could end, it has ended only if what follows does not make a longer or a more important
lexeme of it.  A lexer state says so with three means:

* Lexemes are numbered in the lexer's order (``rank`` in LEXEME_ROLES).  When one can end, those behind it in the order
  are dropped: whatever follows, the lexer will not take them.
* A lexeme that the lexer would take and the parser would refuse is a member too.  It has the odd number behind that of
  the lexeme.  Where it is the first that can end, no lexeme ends.
* Where a lexeme ends, what is left of all members becomes a *guard* of the lexer state that begins behind it: a member
  with the number of LEXEME_ROLES.  A guard that can end is a longer match, and the state is dead.  With ``1.`` and
  ``..`` among the terminals, ``1..2`` is three lexemes: behind ``1``, the guard of ``1.`` survives one byte only.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata.expressions import ALIVE, DEAD, UNKNOWN, VISITED, first_bytes, is_nullable
from constrain.engine.automata.lexer_states import GUARD_BIT, next_lexer_state
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import push, push_pair, room, set_used, used
from constrain.engine.storage.header import CLASSES, CTX, RESULT1, RESULT2
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_GUARDED, F_LEXER_LIVES, F_LEXER_STATE, F_SETTLE, far_call, far_entry
from constrain.engine.storage.statuses import FAIL, LIMIT
from constrain.kernels.language import int64, types

_NO_LIMIT = 1 << 40
_MOST_STATES = 100_000
"""Lexer states that a search for the end of a lexeme goes through."""


@njit_inner(RESULT2)
def settle(ctx, base, count):
    """Leave of ``count`` members at ``WORK_STACK[base]`` those that the lexer still considers; how many these are.

    Guards are sorted, and no two are the same.  0 if a guard can end, or if only refused lexemes are left.
    """
    tmp = t.work_stack(ctx)
    guard = used(ctx, t.LEXEME_ROLES)
    last = int64(_NO_LIMIT)
    for i in range(base, base + 2 * count, 2):
        if tmp[i] == guard:
            if is_nullable(ctx, tmp[i + 1]):
                return int64(0)
        elif last == _NO_LIMIT and is_nullable(ctx, tmp[i + 1]):
            last = int64(t.lexeme_roles(ctx)[tmp[i]].rank)
    kept = base
    usable = False
    for i in range(base, base + 2 * count, 2):
        lexeme, expression = tmp[i], tmp[i + 1]
        if lexeme != guard:
            if t.lexeme_roles(ctx)[lexeme].rank > last:
                continue
            usable = usable or not lexeme & 1
            tmp[kept], tmp[kept + 1] = lexeme, expression
            kept += 2
            continue
        place = kept
        while place > base and tmp[place - 2] == guard and tmp[place - 1] > expression:
            place -= 2
        if place > base and tmp[place - 2] == guard and tmp[place - 1] == expression:
            continue
        for k in range(kept, place, -2):
            tmp[k], tmp[k + 1] = tmp[k - 2], tmp[k - 1]
        tmp[place], tmp[place + 1] = guard, expression
        kept += 2
    return (kept - base) // 2 if usable else int64(0)


far_entry(F_SETTLE, settle)


@njit_inner(RESULT1)
def _ends_plainly(ctx, state):
    """1 if a lexeme can end in a lexer state, or the first in order can surely end later; 0 if that is not plain."""
    record = t.lexer_states(ctx)[state]
    if record.accept:
        return int64(1)
    guard = used(ctx, t.LEXEME_ROLES)
    pool = t.lexer_members(ctx)
    last = record.offset + 2 * record.count - 2
    if record.count == 0 or pool[last] == guard:
        return int64(0)
    rank = t.lexeme_roles(ctx)[pool[record.offset]].rank
    for i in range(record.offset, last + 2, 2):
        if t.lexeme_roles(ctx)[pool[i]].rank != rank:
            break
        if pool[i] & 1:
            return int64(0)
    return int64(1)


@njit_inner(types.void(CTX, int64, int64, int64))
def _note_verdicts(ctx, bottom, path, status):
    """Note what a search has found out in LEXER_LIVES, and empty its stacks down to where it began.

    ``WORK_STACK[bottom:]`` was visited, ``LIVENESS_STACK[path:]`` is the path that it ended with.  If the status is 1
    all on that path is alive.  Only an exhausted search, 0, proves that what it visited is dead.
    """
    live = t.lexer_lives(ctx)
    verdict = DEAD if status == 0 else UNKNOWN
    for i in range(bottom, used(ctx, t.WORK_STACK)):
        if live[t.work_stack(ctx)[i]] == VISITED:
            live[t.work_stack(ctx)[i]] = verdict
    if status == 1:
        for i in range(path, used(ctx, t.LIVENESS_STACK), 2):
            live[t.liveness_stack(ctx)[i]] = ALIVE
    set_used(ctx, t.WORK_STACK, bottom)
    set_used(ctx, t.LIVENESS_STACK, path)


@njit_inner(RESULT2)
def search_end(ctx, state, _unused):
    """1 if a lexeme that the parser can use may end in a lexer state or behind it, 0 if none can; FAIL or LIMIT."""
    known = t.lexer_lives(ctx)[state]
    if known == ALIVE or known == DEAD:
        return int64(known == ALIVE)
    if _ends_plainly(ctx, state):
        t.lexer_lives(ctx)[state] = ALIVE
        return int64(1)
    # Depth first.  Visited states are kept on the work stack; the path, as (state, next class), on the liveness stack.
    bottom, path = used(ctx, t.WORK_STACK), used(ctx, t.LIVENESS_STACK)
    classes = ctx[CLASSES]
    if not push(ctx, t.WORK_STACK, state) or not push_pair(ctx, t.LIVENESS_STACK, state, int64(0)):
        return int64(FAIL)
    t.lexer_lives(ctx)[state] = VISITED
    status = int64(0)
    while used(ctx, t.LIVENESS_STACK) > path and status == 0:
        top = used(ctx, t.LIVENESS_STACK)
        here, byte_class = int64(t.liveness_stack(ctx)[top - 2]), int64(t.liveness_stack(ctx)[top - 1])
        if byte_class == classes:
            set_used(ctx, t.LIVENESS_STACK, top - 2)
            continue
        t.liveness_stack(ctx)[top - 1] = byte_class + 1
        successor = int64(t.lexer_transitions(ctx)[here * classes + byte_class])
        if successor < 0:
            successor = next_lexer_state(ctx, here, byte_class)
        if successor < 0:
            status = successor
            break
        if successor == 0:
            continue
        known = t.lexer_lives(ctx)[successor]
        if known == ALIVE or (known == UNKNOWN and _ends_plainly(ctx, successor)):
            status = int64(1)
        elif known == UNKNOWN:
            if used(ctx, t.WORK_STACK) - bottom > _MOST_STATES:
                status = int64(LIMIT)
            elif push(ctx, t.WORK_STACK, successor) and push_pair(ctx, t.LIVENESS_STACK, successor, int64(0)):
                t.lexer_lives(ctx)[successor] = VISITED
            else:
                status = int64(FAIL)
    _note_verdicts(ctx, bottom, path, status)
    return status


far_entry(F_LEXER_LIVES, search_end)


@njit_inner(RESULT2)
def guarded(ctx, initial, accept):
    """The lexer state behind the lexeme of an accept set, where lexemes begin as in ``initial``; 0 if none can end.

    The guards of the accept set become members, but for those that the first byte of any lexeme kills.
    """
    offset, count = t.accept_sets(ctx)[accept].offset, t.accept_sets(ctx)[accept].count
    if initial == 0 or count < 2:
        return initial
    members = 2 * t.lexer_states(ctx)[initial].count
    if not room(ctx, t.WORK_STACK, members + 2 * count):
        return int64(FAIL)
    base = used(ctx, t.WORK_STACK)
    tmp = t.work_stack(ctx)
    pool, first = t.lexer_members(ctx), t.lexer_states(ctx)[initial].offset
    for i in range(members):
        tmp[base + i] = pool[first + i]
    end = base + members
    begins = t.lexer_first_bytes(ctx)
    for i in range(offset + 1, offset + count):
        expression = t.accept_members(ctx)[i] & ~GUARD_BIT
        common = int64(0)
        for quarter in range(4):
            common |= begins[initial, quarter] & first_bytes(ctx, int64(expression), quarter)
        if common:
            tmp[end] = used(ctx, t.LEXEME_ROLES)
            tmp[end + 1] = expression
            end += 2
    if end == base + members:
        return initial
    set_used(ctx, t.WORK_STACK, end)
    state = far_call(ctx, F_LEXER_STATE, base, (end - base) // 2)
    set_used(ctx, t.WORK_STACK, base)
    if state <= 0:
        return state
    live = far_call(ctx, F_LEXER_LIVES, state, 0)
    return state if live > 0 else live


far_entry(F_GUARDED, guarded)
