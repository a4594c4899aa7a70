"""Stacks of an LALR parser, in place of Earley sets: for grammars that are read as Lark's own parser reads them.

Which lexemes Lark's contextual lexer looks for depends on the state of its LALR parser, and so does what becomes of
conflicts.  So the parser is run as it is, by the table that Lark has made.  A stack takes the place of an Earley set,
and is interned as one:

* Its first item is (parser state, set of the stack below).  Numbers of parser states take the place of dots.
* The stack at which a lexeme begins has a second item: the number of parser states plus an accept set, which lists the
  lexemes that the lexer looks for there.  Those that lead the parser to an error have an odd number (longest_match.py):
  an LALR state may have an action for a terminal that only other stacks with this state can use.
* The origin of that item is the indentation (indentations.py).  Where it does not matter that is 0.

So the core of a stack says which lexemes may begin, as for any Earley set, and all else is as it was.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata import longest_match  # noqa: F401 (through pointers)
from constrain.engine.parser.indentations import (
    CLOSES,
    DEEPER,
    NEWLINE,
    OPENS,
    closed_levels,
    in_brackets,
    level_count,
    opened,
)
from constrain.engine.parser.indentations import below as level_below
from constrain.engine.storage import links
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import room, set_used, take, used
from constrain.engine.storage.header import CTX, RESULT0, RESULT1, RESULT2, RESULT3
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import far_call, far_entry
from constrain.engine.storage.statuses import BETWEEN_LEVELS, FAIL, LIMIT
from constrain.kernels.language import int64

_MOST_REDUCTIONS = 1_000_000
_LOW = 0x7FFFFFFF
_LEFT_OUT = 2


@njit_inner(RESULT2)
def _drive(ctx, below, column):
    """Run the parser on one terminal, until it shifts it, or for the end of the text has come to its last state.

    The states of the stack are those in WORK_LIST, and below them the set ``below``; so they are afterwards.

    Returns ``below << 32 | state + 1``, the state being the one that the terminal leads to; ``... | 0`` for an error;
    FAIL; or LIMIT where the parser reduces for ever.
    """
    states = used(ctx, t.PARSE_CONTEXTS)
    columns = used(ctx, t.PARSE_ACTIONS) // states
    nonterminals = used(ctx, t.PARSE_GOTOS) // states
    for _ in range(_MOST_REDUCTIONS):
        top = used(ctx, t.WORK_LIST)
        if not room(ctx, t.WORK_LIST, 1):
            return int64(FAIL)
        stack = t.work_list(ctx)
        state = int64(stack[top - 1])
        action = t.parse_actions(ctx)[state * columns + column]
        if action >= 0:
            return below << 32 | action
        rule = t.parse_rules(ctx)[-1 - action]
        length = rule.length
        inside = min(length, top)
        top -= inside
        for _pop in range(length - inside):
            below = int64(t.earley_items(ctx)[t.earley_sets(ctx)[below].offset].origin)
        if top == 0:
            # What is on top has to be in the list.
            stack[0] = t.earley_items(ctx)[t.earley_sets(ctx)[below].offset].dot
            below = int64(t.earley_items(ctx)[t.earley_sets(ctx)[below].offset].origin)
            top = int64(1)
            if not room(ctx, t.WORK_LIST, 2):
                return int64(FAIL)
            stack = t.work_list(ctx)
        stack[top] = t.parse_gotos(ctx)[stack[top - 1] * nonterminals + rule.left]
        set_used(ctx, t.WORK_LIST, top + 1)
        if column == columns - 1 and stack[top] == t.parse_ends(ctx)[1]:
            return below << 32 | (int64(stack[top]) + 1)
    return int64(LIMIT)


@njit_inner(RESULT1)
def _put(ctx, state):
    """Put a state of the parser on WORK_LIST; 0 or FAIL."""
    top = take(ctx, t.WORK_LIST, int64(1))
    if top < 0:
        return top
    t.work_list(ctx)[top] = state
    return int64(0)


@njit_inner(RESULT3)
def _probe(ctx, state, below, column):
    """The state + 1 to which a terminal leads the parser, with ``state`` on top of a set; 0 for an error."""
    set_used(ctx, t.WORK_LIST, 0)
    if _put(ctx, state) < 0:
        return int64(FAIL)
    result = _drive(ctx, below, column)
    return result if result < 0 else result & _LOW


@njit_inner(RESULT3)
def _drive_line(ctx, below, lexeme, closed):
    """Run the parser on the end of a line, and on what the indenter makes of it: so many levels closed, or one opened.

    Otherwise as :func:`_drive`.
    """
    result = _drive(ctx, below, int64(t.lexeme_roles(ctx)[lexeme].column))
    column = int64(t.parse_ends(ctx)[2 if closed == DEEPER else 3])
    for _ in range(1 if closed == DEEPER else closed):
        if result < 0 or result & _LOW == 0:
            return result
        if _put(ctx, (result & _LOW) - 1) < 0:
            return int64(FAIL)
        result = _drive(ctx, result >> 32, column)
    return result


@njit_inner(RESULT3)
def _probe_end(ctx, state, below, levels):
    """1 if the text may end with ``state`` on top of a set and so many levels open, which the indenter closes; or 0."""
    set_used(ctx, t.WORK_LIST, 0)
    if _put(ctx, state) < 0:
        return int64(FAIL)
    for _ in range(levels):
        result = _drive(ctx, below, int64(t.parse_ends(ctx)[3]))
        if result < 0 or result & _LOW == 0:
            return min(result, 0)
        if _put(ctx, (result & _LOW) - 1) < 0:
            return int64(FAIL)
        below = result >> 32
    result = _drive(ctx, below, used(ctx, t.PARSE_ACTIONS) // used(ctx, t.PARSE_CONTEXTS) - 1)
    return result if result < 0 else int64(result & _LOW != 0)


@njit_inner(RESULT2)
def _stack(ctx, state, below):
    """The set of the stack with a state on top of ``below``, at which no lexeme begins."""
    set_used(ctx, t.KERNEL_ITEMS, 0)
    if not room(ctx, t.KERNEL_ITEMS, 1):
        return int64(FAIL)
    t.kernel_items(ctx)[0] = state << 32 | below
    return far_call(ctx, links.F_EARLEY_SET, int64(1), int64(0))


@njit_inner(RESULT1)
def _stack_of_list(ctx, below):
    """The set of the stack with the states of WORK_LIST on top of ``below``."""
    for i in range(used(ctx, t.WORK_LIST)):
        below = _stack(ctx, int64(t.work_list(ctx)[i]), below)
        if below < 0:
            return below
    return below


@njit_inner(int64(CTX, int64, int64, int64, int64, int64))
def _line_leads(ctx, state, below, lexeme, closed, levels):
    """1 if a line may end with a lexeme and something can follow, or the text can end there; else 0.

    So many levels are closed (or one is opened) by it, and then ``levels`` are open.
    """
    set_used(ctx, t.WORK_LIST, 0)
    if _put(ctx, state) < 0:
        return int64(FAIL)
    result = _drive_line(ctx, below, lexeme, closed)
    if result < 0 or result & _LOW == 0:
        return result if result < 0 else int64(0)
    below = _stack_of_list(ctx, result >> 32)
    if below < 0:
        return below
    state = (result & _LOW) - 1
    first, count = t.parse_contexts(ctx)[state].first, t.parse_contexts(ctx)[state].count
    for i in range(count):
        role = t.lexeme_roles(ctx)[t.context_lexemes(ctx)[first + i]]
        column, line = int64(role.column), int64(role.line)
        if column >= 0 and (line == 0 or line == OPENS):
            leads = _probe(ctx, state, below, column)
            if leads != 0:
                return leads if leads < 0 else int64(1)
    return _probe_end(ctx, state, below, levels)


@njit_inner(int64(CTX, int64, int64, int64, int64))
def _leads(ctx, state, below, lexeme, indentation):
    """Whether the parser can use a lexeme: 1, 0, or _LEFT_OUT for the end of a line that another lexeme stands for."""
    column, line = int64(t.lexeme_roles(ctx)[lexeme].column), int64(t.lexeme_roles(ctx)[lexeme].line)
    if line == NEWLINE:
        return in_brackets(ctx, indentation)
    if line == CLOSES and not in_brackets(ctx, indentation):
        return int64(0)
    if line > 0:
        if in_brackets(ctx, indentation):
            return int64(_LEFT_OUT)
        closed = closed_levels(ctx, indentation, line - 1)
        if closed == BETWEEN_LEVELS:
            return int64(_LEFT_OUT)
        levels = level_count(ctx, indentation) - closed
        leads = _line_leads(ctx, state, below, lexeme, closed, levels)
        return leads if leads != 0 else int64(_LEFT_OUT)
    if column < 0:
        return int64(1)
    leads = _probe(ctx, state, below, column)
    return leads if leads < 0 else int64(leads != 0)


@njit_inner(RESULT3)
def _push(ctx, state, below, indentation):
    """The set of the stack with a state on top of ``below``, and with what the lexer looks for there."""
    states = used(ctx, t.PARSE_CONTEXTS)
    first, count = t.parse_contexts(ctx)[state].first, t.parse_contexts(ctx)[state].count
    base = take(ctx, t.WORK_STACK, count)
    if base < 0:
        return base
    members = int64(0)
    deeper = int64(-1)
    for i in range(count):
        lexeme = int64(t.context_lexemes(ctx)[first + i])
        line = int64(t.lexeme_roles(ctx)[lexeme].line)
        # A line may be deeper at any column, or at none.
        is_deeper = line > 0 and not in_brackets(ctx, indentation)
        is_deeper = is_deeper and closed_levels(ctx, indentation, line - 1) == DEEPER
        leads = deeper if is_deeper and deeper >= 0 else _leads(ctx, state, below, lexeme, indentation)
        if leads < 0:
            return leads
        if is_deeper:
            deeper = leads
        if leads != _LEFT_OUT:
            t.work_stack(ctx)[base + members] = lexeme + (leads == 0)
            members += 1
    set_used(ctx, t.WORK_STACK, base)
    looks_for = far_call(ctx, links.F_ACCEPT_SET, base, members)
    if looks_for < 0:
        return looks_for
    accepts = _probe_end(ctx, state, below, level_count(ctx, indentation))
    if accepts < 0:
        return accepts
    set_used(ctx, t.KERNEL_ITEMS, 0)
    if not room(ctx, t.KERNEL_ITEMS, 2):
        return int64(FAIL)
    t.kernel_items(ctx)[0] = state << 32 | below
    t.kernel_items(ctx)[1] = (states + looks_for) << 32 | indentation
    return far_call(ctx, links.F_EARLEY_SET, int64(2), accepts)


@njit_inner(RESULT0)
def first_stack(ctx):
    """The stack of the parser's first state; Earley set 0 is what is below it."""
    state = int64(t.parse_ends(ctx)[0])
    bottom = _stack(ctx, state, int64(0))
    return bottom if bottom < 0 else _push(ctx, state, int64(0), int64(0))


@njit_inner(RESULT2)
def shift(ctx, earley_set, accept):
    """The stack behind the lexeme of an accept set; an ignored one leaves the stack as it is."""
    lexeme = int64(t.accept_members(ctx)[t.accept_sets(ctx)[accept].offset])
    column, line = int64(t.lexeme_roles(ctx)[lexeme].column), int64(t.lexeme_roles(ctx)[lexeme].line)
    if column < 0:
        return earley_set
    offset = t.earley_sets(ctx)[earley_set].offset
    state, below = int64(t.earley_items(ctx)[offset].dot), int64(t.earley_items(ctx)[offset].origin)
    indentation = int64(t.earley_items(ctx)[offset + 1].origin)
    set_used(ctx, t.WORK_LIST, 0)
    if _put(ctx, state) < 0:
        return int64(FAIL)
    closed = closed_levels(ctx, indentation, line - 1) if line > 0 else int64(0)
    result = _drive_line(ctx, below, lexeme, closed)
    if result < 0:
        return result
    state = (result & _LOW) - 1
    below = _stack_of_list(ctx, result >> 32)
    if below < 0:
        return below
    if line == OPENS or closed == DEEPER:
        indentation = opened(ctx, indentation, line - 1 if closed == DEEPER else int64(0))
        if indentation < 0:
            return indentation
    for _ in range(1 if line == CLOSES else closed):
        indentation = level_below(ctx, indentation)
    return _push(ctx, state, below, indentation)


far_entry(links.F_SHIFT, shift)


@njit_inner(RESULT2)
def context_state(ctx, base, count):
    """The lexer state of what the lexer looks for at a stack, whose sorted dots are staged; 0 if nothing can come."""
    states = used(ctx, t.PARSE_CONTEXTS)
    if count < 2:
        return int64(0)
    looks_for = t.accept_sets(ctx)[t.work_stack(ctx)[base + count - 1] - states]
    begin, members = looks_for.offset, looks_for.count
    if not room(ctx, t.WORK_STACK, 2 * members):
        return int64(FAIL)
    start = used(ctx, t.WORK_STACK)
    tmp = t.work_stack(ctx)
    for i in range(members):
        lexeme = t.accept_members(ctx)[begin + i]
        tmp[start + 2 * i] = lexeme
        tmp[start + 2 * i + 1] = t.lexemes(ctx)[lexeme].expression
    set_used(ctx, t.WORK_STACK, start + 2 * members)
    state = far_call(ctx, links.F_LEXER_STATE, start, members)
    set_used(ctx, t.WORK_STACK, start)
    if state <= 0:
        return state
    live = far_call(ctx, links.F_LEXER_LIVES, state, 0)
    return state if live > 0 else live


far_entry(links.F_CONTEXT_STATE, context_state)
