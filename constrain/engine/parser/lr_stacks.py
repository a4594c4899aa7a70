"""Stacks of an LALR parser, in place of Earley sets: for grammars that are read as Lark's own parser reads them.

Which lexemes Lark's contextual lexer looks for depends on the state of its LALR parser, and so does what becomes of
conflicts.  So the parser is run as it is, by the table that Lark has made.  A stack takes the place of an Earley set,
and is interned as one:

* Its first item is (parser state, set of the stack below).  Numbers of parser states take the place of dots.
* The stack at which a lexeme begins has a second item: the number of parser states plus an accept set, which lists the
  lexemes that the lexer looks for there.  Those that lead the parser to an error have an odd number (longest_match.py):
  an LALR state may have an action for a terminal that only other stacks with this state can use.

So the core of a stack says which lexemes may begin, as for any Earley set, and all else is as it was.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata import longest_match  # noqa: F401 (through pointers)
from constrain.engine.storage.access import room, set_used, used
from constrain.engine.storage.header import RESULT0, RESULT2, RESULT3
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import (
    F_ACCEPT_SET,
    F_CONTEXT_STATE,
    F_EARLEY_SET,
    F_LEXER_LIVES,
    F_LEXER_STATE,
    F_SHIFT,
    far_call,
    far_entry,
)
from constrain.engine.storage.schemas import (
    KERNEL_ITEMS,
    PARSE_ACTIONS,
    PARSE_CONTEXTS,
    PARSE_GOTOS,
    WORK_LIST,
    WORK_STACK,
    accept_members,
    accept_sets,
    context_lexemes,
    earley_items,
    earley_sets,
    kernel_items,
    lexeme_roles,
    lexemes,
    parse_actions,
    parse_contexts,
    parse_ends,
    parse_gotos,
    parse_rules,
    work_list,
    work_stack,
)
from constrain.engine.storage.statuses import FAIL, LIMIT
from constrain.kernels.language import int64

_MOST_REDUCTIONS = 1_000_000
_LOW = 0x7FFFFFFF


@njit_inner(RESULT2)
def _drive(ctx, below, column):
    """Run the parser on one terminal, until it shifts it, or for the end of the text has come to its last state.

    The states of the stack are those in WORK_LIST, and below them the set ``below``; so they are afterwards.

    Returns ``below << 32 | state + 1``, the state being the one that the terminal leads to; ``... | 0`` for an error;
    FAIL; or LIMIT where the parser reduces for ever.
    """
    states = used(ctx, PARSE_CONTEXTS)
    columns = used(ctx, PARSE_ACTIONS) // states
    nonterminals = used(ctx, PARSE_GOTOS) // states
    for _ in range(_MOST_REDUCTIONS):
        top = used(ctx, WORK_LIST)
        if not room(ctx, WORK_LIST, 1):
            return int64(FAIL)
        stack = work_list(ctx)
        state = int64(stack[top - 1])
        action = parse_actions(ctx)[state * columns + column]
        if action >= 0:
            return below << 32 | action
        rule = parse_rules(ctx)[-1 - action]
        length = rule.length
        inside = min(length, top)
        top -= inside
        for _pop in range(length - inside):
            below = int64(earley_items(ctx)[earley_sets(ctx)[below].offset].origin)
        if top == 0:
            # What is on top has to be in the list.
            stack[0] = earley_items(ctx)[earley_sets(ctx)[below].offset].dot
            below = int64(earley_items(ctx)[earley_sets(ctx)[below].offset].origin)
            top = int64(1)
            if not room(ctx, WORK_LIST, 2):
                return int64(FAIL)
            stack = work_list(ctx)
        stack[top] = parse_gotos(ctx)[stack[top - 1] * nonterminals + rule.left]
        set_used(ctx, WORK_LIST, top + 1)
        if column == columns - 1 and stack[top] == parse_ends(ctx)[1]:
            return below << 32 | (int64(stack[top]) + 1)
    return int64(LIMIT)


@njit_inner(RESULT3)
def _probe(ctx, state, below, column):
    """The state + 1 to which a terminal leads the parser, with ``state`` on top of a set; 0 for an error."""
    set_used(ctx, WORK_LIST, 0)
    if not room(ctx, WORK_LIST, 2):
        return int64(FAIL)
    work_list(ctx)[0] = state
    set_used(ctx, WORK_LIST, 1)
    result = _drive(ctx, below, column)
    return result if result < 0 else result & _LOW


@njit_inner(RESULT3)
def _push(ctx, state, below, begins):
    """The set of the stack with a state on top of ``below``; with ``begins`` also what the lexer looks for there."""
    states = used(ctx, PARSE_CONTEXTS)
    accepts = int64(0)
    looks_for = int64(0)
    if begins:
        first, count = parse_contexts(ctx)[state].first, parse_contexts(ctx)[state].count
        if not room(ctx, WORK_STACK, count):
            return int64(FAIL)
        base = used(ctx, WORK_STACK)
        set_used(ctx, WORK_STACK, base + count)
        for i in range(count):
            lexeme = int64(context_lexemes(ctx)[first + i])
            column = int64(lexeme_roles(ctx)[lexeme].column)
            leads = int64(1) if column < 0 else _probe(ctx, state, below, column)
            if leads < 0:
                return leads
            work_stack(ctx)[base + i] = lexeme + (leads == 0)
        set_used(ctx, WORK_STACK, base)
        looks_for = far_call(ctx, F_ACCEPT_SET, base, count)
        if looks_for < 0:
            return looks_for
        accepts = _probe(ctx, state, below, used(ctx, PARSE_ACTIONS) // states - 1)
        if accepts < 0:
            return accepts
    set_used(ctx, KERNEL_ITEMS, 0)
    if not room(ctx, KERNEL_ITEMS, 2):
        return int64(FAIL)
    kernel_items(ctx)[0] = state << 32 | below
    kernel_items(ctx)[1] = (states + looks_for) << 32
    return far_call(ctx, F_EARLEY_SET, int64(2 if begins else 1), int64(accepts != 0))


@njit_inner(RESULT0)
def first_stack(ctx):
    """Earley set 0: the stack of the parser's first state."""
    return _push(ctx, int64(parse_ends(ctx)[0]), int64(0), int64(1))


@njit_inner(RESULT2)
def shift(ctx, earley_set, accept):
    """The stack behind the lexeme of an accept set; an ignored one leaves the stack as it is."""
    lexeme = accept_members(ctx)[accept_sets(ctx)[accept].offset]
    column = int64(lexeme_roles(ctx)[lexeme].column)
    if column < 0:
        return earley_set
    item = earley_items(ctx)[earley_sets(ctx)[earley_set].offset]
    state, below = int64(item.dot), int64(item.origin)
    set_used(ctx, WORK_LIST, 0)
    if not room(ctx, WORK_LIST, 2):
        return int64(FAIL)
    work_list(ctx)[0] = state
    set_used(ctx, WORK_LIST, 1)
    result = _drive(ctx, below, column)
    if result < 0:
        return result
    below, state = result >> 32, (result & _LOW) - 1
    for i in range(used(ctx, WORK_LIST)):
        below = _push(ctx, int64(work_list(ctx)[i]), below, int64(0))
        if below < 0:
            return below
    return _push(ctx, state, below, int64(1))


far_entry(F_SHIFT, shift)


@njit_inner(RESULT2)
def context_state(ctx, base, count):
    """The lexer state of what the lexer looks for at a stack, whose sorted dots are staged; 0 if nothing can come."""
    states = used(ctx, PARSE_CONTEXTS)
    if count < 2:
        return int64(0)
    looks_for = accept_sets(ctx)[work_stack(ctx)[base + count - 1] - states]
    begin, members = looks_for.offset, looks_for.count
    if not room(ctx, WORK_STACK, 2 * members):
        return int64(FAIL)
    start = used(ctx, WORK_STACK)
    tmp = work_stack(ctx)
    for i in range(members):
        lexeme = accept_members(ctx)[begin + i]
        tmp[start + 2 * i] = lexeme
        tmp[start + 2 * i + 1] = lexemes(ctx)[lexeme].expression
    set_used(ctx, WORK_STACK, start + 2 * members)
    state = far_call(ctx, F_LEXER_STATE, start, members)
    set_used(ctx, WORK_STACK, start)
    if state <= 0:
        return state
    live = far_call(ctx, F_LEXER_LIVES, state, 0)
    return state if live > 0 else live


far_entry(F_CONTEXT_STATE, context_state)
