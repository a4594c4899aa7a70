"""What it costs at least to finish a text, from any Earley set and any state.

Costs are those of budget/expression_costs.py.  For the rules of a grammar: Knuth's generalisation of Dijkstra's
algorithm ("A generalization of Dijkstra's algorithm", 1977), once per compiled grammar.  For an Earley set: what comes
after a rule that is complete is the rest of a rule that waits for it, and then what comes after that one.  So

    up(set, A) = the least of  rest(item behind A) + up(origin of that item, its left-hand side)

over the items that wait for A in the set, which is worked out once per set and nonterminal.  For a state it is the
least over the lexemes that are under way in its configurations, of what finishes the lexeme, then the rule that it is
in, then what is up from there.

All of this is exact: the state after the byte that is noted as a state's next one costs less by just that byte.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np

from constrain.engine.conditions.budget.expression_costs import NEVER, UNKNOWN, better_byte, capped
from constrain.engine.parser.completion import completions_of, group_of
from constrain.engine.parser.configurations import set_kinds
from constrain.engine.parser.cores import SELF
from constrain.engine.parser.rules import BRANCH, END
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import push, room, set_used, used
from constrain.engine.storage.header import CTX, N_IGNORE, RESULT1, RESULT2, RESULT3, START_NT
from constrain.engine.storage.heaps import heap_pop, heap_push
from constrain.engine.storage.jit import njit_allocating, njit_entry, njit_inner
from constrain.engine.storage.links import F_NODE_COST, F_STATE_COST, far_call, far_entry
from constrain.engine.storage.statuses import FAIL
from constrain.kernels.language import int64, types

_I64 = types.int64[::1]

# In the lower half of a key of the heap of nonterminals.
_NONTERMINAL = 0xFFFFFFFF


@njit_inner(int64(CTX, _I64))
def _cost_lexemes(ctx, lexeme_costs):
    """Write the least cost of each lexeme; returns 0, FAIL or LIMIT."""
    set_used(ctx, t.COST_STACK, 0)
    for lexeme in range(len(lexeme_costs)):
        expression = t.lexemes(ctx)[lexeme].expression
        status = far_call(ctx, F_NODE_COST, expression, 0)
        if status < 0:
            return status
        lexeme_costs[lexeme] = t.expression_costs(ctx)[expression].least
    return int64(0)


@njit_inner(types.void(CTX, _I64, _I64, _I64, _I64))
def _sum_lexemes(ctx, lexeme_costs, total, missing, uses):
    """What the lexemes and branches of each production cost, how many nonterminals it has, and the uses of these.

    The uses of nonterminal ``A`` are counted, and the counts added up, so that ``uses[A + 1]`` is where they begin.
    """
    all_symbols, starts = t.symbols(ctx), t.rule_starts(ctx)
    for p in range(len(total)):
        dot = starts[p]
        while all_symbols[dot] != END:
            symbol = all_symbols[dot]
            if symbol >= BRANCH:
                total[p] = capped(total[p], t.rest_costs(ctx)[dot])
            elif symbol >= 0:
                uses[symbol + 2] += 1
                missing[p] += 1
            else:
                total[p] = capped(total[p], lexeme_costs[~symbol])
            dot += 1
    for i in range(2, len(uses)):
        uses[i] += uses[i - 1]


@njit_inner(types.void(CTX, _I64, _I64))
def _list_uses(ctx, uses, users):
    """List the productions in which each nonterminal occurs: ``users[uses[A]:uses[A + 1]]`` for nonterminal ``A``."""
    all_symbols, starts = t.symbols(ctx), t.rule_starts(ctx)
    for p in range(t.rules(ctx)[ctx[START_NT]]):
        dot = starts[p]
        while all_symbols[dot] != END:
            symbol = all_symbols[dot]
            if 0 <= symbol < BRANCH:
                users[uses[symbol + 1]] = p
                uses[symbol + 1] += 1
            dot += 1


@njit_allocating(int64(CTX, _I64, _I64), inner=True)
def _cost_nonterminals(ctx, lexeme_costs, cost):
    """Write the least cost of each nonterminal, those of the lexemes being known; returns 0 or FAIL.

    ``cost`` is NEVER for all of them at first.  A production enters the heap at most once, when the last of its
    nonterminals is final, under the least cost of its left-hand side.
    """
    n_productions = t.rules(ctx)[len(cost)]
    final = np.zeros(len(cost), np.uint8)
    total = np.zeros(n_productions, np.int64)
    missing = np.zeros(n_productions, np.int64)
    uses = np.zeros(len(cost) + 2, np.int64)
    _sum_lexemes(ctx, lexeme_costs, total, missing, uses)
    users = np.empty(uses[len(cost) + 1], np.int64)
    _list_uses(ctx, uses, users)
    set_used(ctx, t.SEARCH_HEAP, 0)
    done = np.int64(-1)
    ready = np.int64(0)
    while True:
        # First all productions without nonterminals, then those that the last final one completes.
        stop = n_productions if done < 0 else uses[done + 1]
        while ready < stop:
            p = ready if done < 0 else users[ready]
            ready += 1
            if done >= 0:
                total[p] = capped(total[p], cost[done])
                missing[p] -= 1
            if missing[p]:
                continue
            left = t.dot_left(ctx)[t.rule_starts(ctx)[p]]
            if not final[left] and total[p] < cost[left]:
                cost[left] = total[p]
                if heap_push(ctx, t.SEARCH_HEAP, total[p] << 32 | left) < 0:
                    return np.int64(FAIL)
        done = np.int64(-1)
        while used(ctx, t.SEARCH_HEAP) > 0 and done < 0:
            nonterminal = heap_pop(ctx, t.SEARCH_HEAP) & _NONTERMINAL
            if not final[nonterminal]:
                done = nonterminal
        if done < 0:
            return np.int64(0)
        final[done] = 1
        ready = uses[done]


@njit_allocating(int64(CTX))
def cost_grammar(ctx):
    """Fill REST_COSTS, which has room for every dot: the least cost from each dot to the end of its production.

    For dots at branches, which are alone in their production, it is there already.  Returns 0, FAIL or LIMIT.
    """
    lexeme_costs = np.empty(used(ctx, t.LEXEMES), np.int64)
    status = _cost_lexemes(ctx, lexeme_costs)
    if status < 0:
        return status
    cost = np.full(ctx[START_NT], NEVER, np.int64)
    status = _cost_nonterminals(ctx, lexeme_costs, cost)
    if status < 0:
        return status
    all_symbols, rest = t.symbols(ctx), t.rest_costs(ctx)
    # The first of all dots are those of the start, which is no production of a nonterminal.
    for p in range(-1, t.rules(ctx)[ctx[START_NT]]):
        first = np.int64(0) if p < 0 else t.rule_starts(ctx)[p]
        dot = first
        while all_symbols[dot] != END:
            dot += 1
        rest[dot] = 0
        while dot > first:
            dot -= 1
            symbol = all_symbols[dot]
            if symbol < BRANCH:
                rest[dot] = capped(rest[dot + 1], cost[symbol] if symbol >= 0 else lexeme_costs[~symbol])
    return np.int64(0)


@njit_entry(RESULT1)
def expression_cost_of(ctx, expression):
    """The least cost of an expression; FAIL or LIMIT if < 0."""
    set_used(ctx, t.COST_STACK, 0)
    status = far_call(ctx, F_NODE_COST, expression, 0)
    return status if status < 0 else t.expression_costs(ctx)[expression].least


@njit_inner(RESULT2)
def _up_place(ctx, earley_set, rule):
    """Where UP_COSTS has what comes after ``rule`` that began in an Earley set; -1 if that is the end of the text."""
    if rule == ctx[START_NT]:
        return int64(-1)
    core = t.earley_sets(ctx)[earley_set].core
    return t.earley_sets(ctx)[earley_set].completions + group_of(ctx, core, rule) - t.cores(ctx)[core].groups


@njit_inner(RESULT2)
def _up(ctx, earley_set, dot):
    """The cost that is left when the production of a dot, begun in an Earley set, is complete."""
    place = _up_place(ctx, earley_set, t.dot_left(ctx)[dot])
    return int64(0) if place < 0 else t.up_costs(ctx)[place]


@njit_inner(RESULT3)
def _behind(ctx, earley_set, dot, source):
    """The least cost from a dot on, of the items that (set, source) stands for in CORE_SCANS or CORE_WAITS."""
    rest = t.rest_costs(ctx)[dot]
    if source == SELF:
        return capped(rest, _up(ctx, earley_set, dot))
    here = t.earley_sets(ctx)[earley_set]
    core = t.cores(ctx)[here.core]
    items = t.earley_items(ctx)
    begin = here.offset
    stop = begin + here.count
    old = t.core_dots(ctx)[core.offset + source]
    if here.count == core.count:
        begin += source
    best = int64(NEVER)
    while begin < stop:
        if items[begin].dot == old:
            best = min(best, _up(ctx, items[begin].origin, dot))
        elif items[begin].dot > old:
            break
        begin += 1
    return capped(rest, best)


@njit_inner(types.void(CTX, int64))
def _cost_ups(ctx, earley_set):
    """Work out what comes after each rule that begins in an Earley set; the costs of its items' origins are known."""
    here = t.earley_sets(ctx)[earley_set]
    first, count = t.cores(ctx)[here.core].groups, t.cores(ctx)[here.core].group_count
    place = here.completions
    ups, groups, waits = t.up_costs(ctx), t.core_groups(ctx), t.core_waits(ctx)
    # What waits in the set's own items, then what was predicted within the set, to the fixed point.  The sweeps go
    # up and down in turn, since rules tend to be numbered in one of the two orders.
    for g in range(count):
        best = int64(NEVER)
        begin = groups[first + g].waits
        for wait in range(begin, begin + groups[first + g].count):
            if waits[wait].source != SELF:
                best = min(best, _behind(ctx, earley_set, waits[wait].dot, waits[wait].source))
        ups[place + g] = best
    changed = True
    upwards = True
    while changed:
        changed = False
        for k in range(count):
            g = k if upwards else count - 1 - k
            best = ups[place + g]
            begin = groups[first + g].waits
            for wait in range(begin, begin + groups[first + g].count):
                if waits[wait].source == SELF:
                    best = min(best, _behind(ctx, earley_set, waits[wait].dot, int64(SELF)))
            if best < ups[place + g]:
                ups[place + g] = best
                changed = True
        upwards = not upwards


@njit_inner(types.void(CTX, int64))
def _cost_set(ctx, earley_set):
    """Work out what the costs of an Earley set are; those of the sets that its items began in are known."""
    _cost_ups(ctx, earley_set)
    here = t.earley_sets(ctx)[earley_set]
    items = t.earley_items(ctx)
    best = int64(0) if here.accepts else int64(NEVER)
    if not here.accepts:
        begin = here.offset
        for i in range(begin, begin + here.count):
            dot = items[i].dot
            best = min(best, capped(t.rest_costs(ctx)[dot], _up(ctx, items[i].origin, dot)))
    t.earley_set_costs(ctx)[earley_set].least = best


@njit_inner(RESULT1)
def _set_cost(ctx, earley_set):
    """Make the costs of an Earley set known, and of those that its items began in; returns 0 or FAIL."""
    known = used(ctx, t.EARLEY_SET_COSTS)
    costs = t.earley_set_costs(ctx)
    if earley_set < known and costs[earley_set].least != UNKNOWN:
        return int64(0)
    total = used(ctx, t.EARLEY_SET_HASHES)
    if not room(ctx, t.EARLEY_SET_COSTS, total - known):
        return int64(FAIL)
    for i in range(known, total):
        costs[i] = UNKNOWN, UNKNOWN
    set_used(ctx, t.EARLEY_SET_COSTS, total)
    # Origins are older sets, so this ends; it needs a stack of its own, since nesting has no limit.
    bottom = used(ctx, t.COST_STACK)
    if not push(ctx, t.COST_STACK, earley_set):
        return int64(FAIL)
    while used(ctx, t.COST_STACK) > bottom:
        top = used(ctx, t.COST_STACK)
        here = t.cost_stack(ctx)[top - 1]
        if costs[here].least == UNKNOWN:
            begin = t.earley_sets(ctx)[here].offset
            for i in range(begin, begin + t.earley_sets(ctx)[here].count):
                origin = t.earley_items(ctx)[i].origin
                if origin != here and costs[origin].least == UNKNOWN and not push(ctx, t.COST_STACK, origin):
                    return int64(FAIL)
            if used(ctx, t.COST_STACK) > top:
                continue
            if completions_of(ctx, here) < 0:
                return int64(FAIL)
            places = used(ctx, t.COMPLETION_MEMO)
            if not room(ctx, t.UP_COSTS, places - used(ctx, t.UP_COSTS)):
                return int64(FAIL)
            set_used(ctx, t.UP_COSTS, places)
            _cost_set(ctx, here)
        set_used(ctx, t.COST_STACK, top - 1)
    return int64(0)


@njit_inner(RESULT1)
def _costs_after_lexemes(ctx, earley_set):
    """Where AFTER_COSTS has what is left behind each scan of an Earley set, whose costs are known; or FAIL."""
    place = t.earley_set_costs(ctx)[earley_set].after
    if place != UNKNOWN:
        return place
    core = t.cores(ctx)[t.earley_sets(ctx)[earley_set].core]
    first, count = core.scans, core.scan_count
    if not room(ctx, t.AFTER_COSTS, count):
        return int64(FAIL)
    place = used(ctx, t.AFTER_COSTS)
    scans = t.core_scans(ctx)
    for i in range(count):
        t.after_costs(ctx)[place + i] = _behind(ctx, earley_set, scans[first + i].dot, scans[first + i].source)
    set_used(ctx, t.AFTER_COSTS, place + count)
    t.earley_set_costs(ctx)[earley_set].after = place
    return place


@njit_inner(RESULT3)
def _cost_configuration(ctx, earley_set, lexer_state, above):
    """Write the costs of a configuration to COST_RESULT; returns 0, FAIL or LIMIT.

    They are: the least cost of finishing that is more than ``above``; the byte that begins that; and the most that
    finishing costs after any bytes that stay within the lexemes, NEVER if that is not known.
    """
    result = t.cost_result(ctx)[0]
    result.least, result.byte, result.worst = NEVER, -1, 0
    if _set_cost(ctx, earley_set) < 0:
        return int64(FAIL)
    core = t.cores(ctx)[t.earley_sets(ctx)[earley_set].core]
    if set_kinds(ctx, earley_set) and lexer_state == core.initial:
        # What comes next depends on the text; what that costs at most is known, and not with which byte it begins.
        least = t.earley_set_costs(ctx)[earley_set].least
        result.least, result.worst = least if least > above else int64(NEVER), NEVER
        return int64(0)
    after = _costs_after_lexemes(ctx, earley_set)
    if after < 0:
        return after
    first = core.scans
    # Members are sorted by lexeme, scans by falling lexeme: both are gone through once.
    scan = first + core.scan_count - 1
    scans = t.core_scans(ctx)
    begin = t.lexer_states(ctx)[lexer_state].offset
    for member in range(begin, begin + 2 * t.lexer_states(ctx)[lexer_state].count, 2):
        lexeme, expression = t.lexer_members(ctx)[member], t.lexer_members(ctx)[member + 1]
        is_known = expression < used(ctx, t.EXPRESSION_COSTS)
        if not is_known or t.expression_costs(ctx)[expression].least_on == UNKNOWN:
            status = far_call(ctx, F_NODE_COST, expression, 0)
            if status < 0:
                return status
        behind = int64(NEVER)
        for i in range(ctx[N_IGNORE]):
            if t.ignored(ctx)[i] == lexeme:
                behind = t.earley_set_costs(ctx)[earley_set].least
        while scan >= first and scans[scan].lexeme < lexeme:
            scan -= 1
        while scan >= first and scans[scan].lexeme == lexeme:
            behind = min(behind, t.after_costs(ctx)[after + scan - first])
            scan -= 1
        costs = t.expression_costs(ctx)[expression]
        result.worst = max(result.worst, capped(behind, costs.worst))
        cost = capped(behind, costs.least_on)
        if above < cost <= result.least and cost < NEVER:
            result.byte = costs.next_byte if cost < result.least else better_byte(ctx, result.byte, costs.next_byte)
            result.least = cost
    return int64(0)


@njit_inner(RESULT2)
def _cost_configurations(ctx, state, above):
    """Write the costs of a state, the least of which is more than ``above``; returns 0, FAIL or LIMIT."""
    costs = t.state_costs(ctx)
    best, best_byte, worst = int64(NEVER), int64(-1), int64(0)
    result = t.cost_result(ctx)[0]
    offset = t.states(ctx)[state].offset
    for i in range(offset, offset + t.states(ctx)[state].count):
        status = _cost_configuration(
            ctx, t.configurations(ctx)[i].earley_set, t.configurations(ctx)[i].lexer_state, above
        )
        if status < 0:
            return status
        worst = max(worst, result.worst)
        if result.least < best or (result.least == best and best < NEVER and best_byte >= 0 and result.byte >= 0):
            best_byte = result.byte if result.least < best else better_byte(ctx, best_byte, result.byte)
            best = result.least
    if t.states(ctx)[state].accepts:
        best, best_byte = int64(0), int64(-1)
    costs[state].least = best
    costs[state].byte = best_byte
    costs[state].worst = worst
    return int64(0)


@njit_inner(RESULT2)
def state_cost(ctx, state, _unused):
    """Make the least cost of finishing from a state known, and the byte that begins it; returns 0, FAIL or LIMIT."""
    known = used(ctx, t.STATE_COSTS)
    costs = t.state_costs(ctx)
    if state >= known:
        total = used(ctx, t.STATE_HASHES)
        if not room(ctx, t.STATE_COSTS, total - known):
            return int64(FAIL)
        for i in range(known, total):
            costs[i].least = UNKNOWN
            costs[i].tokens = UNKNOWN
        set_used(ctx, t.STATE_COSTS, total)
    if costs[state].least != UNKNOWN:
        return int64(0)
    return _cost_configurations(ctx, state, int64(-1))


far_entry(F_STATE_COST, state_cost)


@njit_inner(RESULT1)
def raise_state_cost(ctx, state):
    """Let a state whose costs are known cost more, with another byte, as that one leads in a circle; or FAIL, LIMIT.

    That is so where the rules that the text decided on cost more than those that stood in for them.
    """
    return _cost_configurations(ctx, state, int64(t.state_costs(ctx)[state].least))
