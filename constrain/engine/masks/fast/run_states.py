"""Run states: the lexer states that are under way at a trie node of a run, as one number (lexical_runs.py).

A run goes on from many trie nodes that lie in each other, so several lexer states are under way at once: one for each
place above at which a lexeme may have begun, each once.  A run state is an interned, sorted set of them.  What it is
after a byte is worked out once, so that a node costs the walk one look into a table: the subset construction (Rabin and
Scott, 1959), as far as walks get.  State 0 is the empty set.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata.lexer_states import leads_on, step_lexer
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import bucket_room, room, set_used, used
from constrain.engine.storage.hashing import find, has_room, hash_staged, insert, is_staged, keep_staged
from constrain.engine.storage.header import CLASSES, RESULT0, RESULT1, RESULT2
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_ACCEPT_SET, far_call
from constrain.engine.storage.statuses import FAIL
from constrain.kernels.language import int64


@njit_inner(RESULT2)
def _union(ctx, accept, other):
    """The accept set with the lexemes of both; or FAIL."""
    if accept == 0 or accept == other:
        return other
    i, j = int64(t.accept_sets(ctx)[accept].offset), int64(t.accept_sets(ctx)[other].offset)
    i_end, j_end = i + t.accept_sets(ctx)[accept].count, j + t.accept_sets(ctx)[other].count
    base = used(ctx, t.WORK_STACK)
    if not room(ctx, t.WORK_STACK, i_end - i + j_end - j):
        return int64(FAIL)
    members = t.accept_members(ctx)
    staged = t.work_stack(ctx)
    n = base
    while i < i_end or j < j_end:
        if j == j_end or (i < i_end and members[i] <= members[j]):
            member = members[i]
            j += int64(j < j_end and members[j] == member)
            i += 1
        else:
            member = members[j]
            j += 1
        staged[n] = member
        n += 1
    return far_call(ctx, F_ACCEPT_SET, base, n - base)


@njit_inner(RESULT1)
def _intern(ctx, base):
    """The run state of the sorted lexer states from ``WORK_STACK[base]`` on, which are dropped; or FAIL."""
    count = used(ctx, t.WORK_STACK) - base
    code = hash_staged(ctx, 0, base, count)
    state = find(ctx, t.RUN_STATE_HASHES, t.RUN_STATE_BUCKETS, code, -1)
    while state >= 0:
        record = t.run_states(ctx)[state]
        if record.count == count and is_staged(ctx, t.RUN_STATE_MEMBERS, record.members, base, count):
            set_used(ctx, t.WORK_STACK, base)
            return state
        state = find(ctx, t.RUN_STATE_HASHES, t.RUN_STATE_BUCKETS, code, state)
    classes = ctx[CLASSES]
    if not has_room(ctx, t.RUN_STATE_HASHES, t.RUN_STATE_BUCKETS) or not room(ctx, t.RUN_STATES, 1):
        return int64(FAIL)
    if not room(ctx, t.RUN_STATE_MEMBERS, count) or not room(ctx, t.RUN_STEPS, classes):
        return int64(FAIL)
    accept, goes_on = int64(0), int64(0)
    for i in range(base, base + count):
        record = t.lexer_states(ctx)[t.work_stack(ctx)[i]]
        goes_on |= int64(record.goes_on != 0)
        if record.accept:
            accept = _union(ctx, accept, int64(record.accept))
            if accept < 0:
                return int64(FAIL)
    state = used(ctx, t.RUN_STATE_HASHES)
    t.run_states(ctx)[state] = used(ctx, t.RUN_STATE_MEMBERS), count, accept, goes_on
    keep_staged(ctx, t.RUN_STATE_MEMBERS, base, count)
    for i in range(state * classes, (state + 1) * classes):
        t.run_steps(ctx)[i] = -1 if count else 0
    set_used(ctx, t.RUN_STEPS, (state + 1) * classes)
    set_used(ctx, t.RUN_STATES, state + 1)
    set_used(ctx, t.WORK_STACK, base)
    return insert(ctx, t.RUN_STATE_HASHES, t.RUN_STATE_BUCKETS, code)


@njit_inner(RESULT2)
def _stage(ctx, base, lexer_state):
    """Add a lexer state to the sorted ones from ``WORK_STACK[base]`` on, once; 0 or FAIL."""
    if not room(ctx, t.WORK_STACK, 1):
        return int64(FAIL)
    staged = t.work_stack(ctx)
    end = used(ctx, t.WORK_STACK)
    i = end
    while i > base and staged[i - 1] > lexer_state:
        i -= 1
    if i > base and staged[i - 1] == lexer_state:
        return int64(0)
    for k in range(end, i, -1):
        staged[k] = staged[k - 1]
    staged[i] = lexer_state
    set_used(ctx, t.WORK_STACK, end + 1)
    return int64(0)


@njit_inner(RESULT0)
def run_states_fit(ctx):
    """1 if there is room for what a usual grammar needs, and state 0 is there; or FAIL."""
    if used(ctx, t.RUN_STATES):
        return int64(1)
    for slot in (t.RUN_STATES, t.RUN_STATE_HASHES, t.RUN_STATE_MEMBERS):
        if not room(ctx, slot, 1 << 8):
            return int64(FAIL)
    if not room(ctx, t.RUN_STEPS, ctx[CLASSES] << 8) or not bucket_room(ctx, t.RUN_STATE_BUCKETS, 1 << 8):
        return int64(FAIL)
    return int64(FAIL) if _intern(ctx, used(ctx, t.WORK_STACK)) < 0 else int64(1)


@njit_inner(RESULT2)
def with_lexer_state(ctx, run_state, lexer_state):
    """What goes on in a run state, and a lexer state beside it; or FAIL."""
    base = used(ctx, t.WORK_STACK)
    first = int64(t.run_states(ctx)[run_state].members)
    status = _stage(ctx, base, lexer_state)
    for i in range(first, first + t.run_states(ctx)[run_state].count):
        member = int64(t.run_state_members(ctx)[i])
        if status == 0 and t.lexer_states(ctx)[member].goes_on:
            status = _stage(ctx, base, member)
    return status if status < 0 else _intern(ctx, base)


@njit_inner(RESULT2)
def run_leads_on(ctx, run_state, byte_class):
    """1 if a byte of the class leads on and that is plain without the run state it leads to; else 0."""
    first = int64(t.run_states(ctx)[run_state].members)
    for i in range(first, first + t.run_states(ctx)[run_state].count):
        if leads_on(ctx, int64(t.run_state_members(ctx)[i]), byte_class):
            return int64(1)
    return int64(0)


@njit_inner(RESULT2)
def run_step(ctx, run_state, byte_class):
    """The run state after one byte of the class, computed once per (state, class); FAIL or LIMIT if < 0."""
    base = used(ctx, t.WORK_STACK)
    first = int64(t.run_states(ctx)[run_state].members)
    for i in range(first, first + t.run_states(ctx)[run_state].count):
        there = step_lexer(ctx, int64(t.run_state_members(ctx)[i]), byte_class)
        if there < 0:
            return there
        if there > 0 and _stage(ctx, base, there) < 0:
            return int64(FAIL)
    successor = _intern(ctx, base)
    if successor >= 0:
        t.run_steps(ctx)[run_state * ctx[CLASSES] + byte_class] = successor
    return successor
