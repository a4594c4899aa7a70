"""What it costs at least to finish a text, from any row and any state; costs are those of budget/expression_costs.py.

For the rules of a grammar: Knuth's generalisation of Dijkstra's algorithm ("A generalization of
Dijkstra's algorithm", 1977), once per compiled grammar.  For a row: what comes after a rule that is
complete is the rest of a rule that waits for it, and then what comes after that one.  So

    up(row, A) = the least of  rest(item behind A) + up(origin of that item, its left-hand side)

over the items that wait for A in the row, which is worked out once per row and nonterminal.  For a
state the least over the lexemes that are under way in its threads, of what finishes the lexeme,
then the rule that it is in, then what is up from there.

All of this is exact: the state after the byte that is noted as a state's next one costs less by just that byte.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np
from numba import int64, types

from constrain.engine.conditions.budget.expression_costs import (
    COST_FIELDS,
    LEAST_ON,
    NEVER,
    NEXT_BYTE,
    UNKNOWN,
    WORST,
    better_byte,
    capped,
    choose_class_bytes,
)
from constrain.engine.parser.configurations import set_kinds
from constrain.engine.parser.cores import (
    CORE_COUNT,
    CORE_GROUP,
    CORE_GROUP_COUNT,
    CORE_INIT,
    CORE_OFFSET,
    CORE_SCAN,
    CORE_SCAN_COUNT,
    SELF,
)
from constrain.engine.parser.earley_sets import ROW_ACCEPTS, ROW_CORE, ROW_COUNT, ROW_DONE, ROW_OFFSET
from constrain.engine.parser.rules import BRANCH, END
from constrain.engine.storage.access import i32, i64, room, set_used, used
from constrain.engine.storage.header import CTX, N_IGNORE, RESULT1, RESULT2, START_NT
from constrain.engine.storage.jit import njit_allocating, njit_entry, njit_inner
from constrain.engine.storage.links import F_NODE_COST, F_STATE_COST, far_call, far_entry
from constrain.engine.storage.schemas import (
    AFTER_COSTS,
    COMPLETION_MEMO,
    CORE_SCANS,
    CORES,
    COST_RESULT,
    COST_STACK,
    EARLEY_SET_COSTS,
    EARLEY_SET_HASHES,
    EARLEY_SETS,
    EXPRESSION_COSTS,
    LEXEMES,
    STATE_COSTS,
    STATE_HASHES,
    UP_COSTS,
    after_costs,
    configurations,
    core_dots,
    core_groups,
    core_scans,
    core_waits,
    cost_stack,
    dot_left,
    earley_items,
    earley_set_costs,
    earley_sets,
    expression_costs,
    ignored,
    lexemes,
    lexer_members,
    lexer_states,
    rest_costs,
    rule_starts,
    rules,
    states,
    symbols,
    up_costs,
)
from constrain.engine.storage.statuses import FAIL

STATE_FIELDS = 5
STATE_LEAST, STATE_BYTE, STATE_WORST, STATE_TOKENS, STATE_TOKEN = range(STATE_FIELDS)
"""Fields of a state's costs: the least cost of finishing; the byte that begins that; the most that finishing costs
after any bytes that stay within the lexemes, or NEVER; how many tokens the completion takes, and the first of them
(budget/completions.py)."""


@njit_allocating(int64(CTX))
def cost_grammar(ctx):
    """Fill REST_COSTS, which has room for every dot: the least cost from each dot to the end of its production.

    For dots at branches, which are alone in their production, it is there already.  Returns 0, FAIL or LIMIT.
    """
    choose_class_bytes(ctx)
    all_lexemes = lexemes(ctx)
    n_lexemes = used(ctx, LEXEMES)
    set_used(ctx, COST_STACK, 0)
    lexeme_cost = np.empty(n_lexemes, np.int64)
    for lexeme in range(n_lexemes):
        node = all_lexemes[lexeme].expression
        status = far_call(ctx, F_NODE_COST, node, 0)
        if status < 0:
            return status
        lexeme_cost[lexeme] = expression_costs(ctx)[node].least

    all_symbols = symbols(ctx)
    all_rules = rules(ctx)
    starts = rule_starts(ctx)
    n_rules = ctx[START_NT]
    n_productions = all_rules[n_rules]
    cost = np.full(n_rules, NEVER, np.int64)
    final = np.zeros(n_rules, np.uint8)
    total = np.zeros(n_productions, np.int64)
    missing = np.zeros(n_productions, np.int64)
    # Where each nonterminal occurs: productions, grouped by nonterminal.
    heads = np.zeros(n_rules + 2, np.int64)
    for p in range(n_productions):
        dot = starts[p]
        while all_symbols[dot] != END:
            if all_symbols[dot] >= BRANCH:
                total[p] = capped(ctx, total[p], np.int64(rest_costs(ctx)[dot]))
            elif all_symbols[dot] >= 0:
                heads[all_symbols[dot] + 2] += 1
                missing[p] += 1
            else:
                total[p] = capped(ctx, total[p], lexeme_cost[~all_symbols[dot]])
            dot += 1
    for rule in range(n_rules):
        heads[rule + 2] += heads[rule + 1]
    where = np.empty(heads[n_rules + 1], np.int64)
    for p in range(n_productions):
        dot = starts[p]
        while all_symbols[dot] != END:
            if 0 <= all_symbols[dot] < BRANCH:
                where[heads[all_symbols[dot] + 1]] = p
                heads[all_symbols[dot] + 1] += 1
            dot += 1
    # A binary heap of (cost, nonterminal); each production enters it at most once.
    heap = np.empty(n_productions + 1, np.int64)
    n = 0
    done = np.int64(-1)
    ready = 0
    while True:
        # First all productions without nonterminals, then those that the last final one completes.
        stop = n_productions if done < 0 else heads[done + 1]
        while ready < stop:
            p = ready if done < 0 else where[ready]
            ready += 1
            if done >= 0:
                total[p] = capped(ctx, total[p], cost[done])
                missing[p] -= 1
            if missing[p]:
                continue
            left = dot_left(ctx)[starts[p]]
            if not final[left] and total[p] < cost[left]:
                cost[left] = total[p]
                key = total[p] << 32 | np.int64(left)
                i = n
                n += 1
                while i > 0 and heap[(i - 1) // 2] > key:
                    heap[i] = heap[(i - 1) // 2]
                    i = (i - 1) // 2
                heap[i] = key
        done = np.int64(-1)
        while n > 0 and done < 0:
            if not final[heap[0] & 0xFFFFFFFF]:
                done = heap[0] & 0xFFFFFFFF
            n -= 1
            last = heap[n]
            i = 0
            while 2 * i + 1 < n:
                child = 2 * i + 1
                if child + 1 < n and heap[child + 1] < heap[child]:
                    child += 1
                if heap[child] >= last:
                    break
                heap[i] = heap[child]
                i = child
            heap[i] = last
        if done < 0:
            break
        final[done] = 1
        ready = heads[done]

    rest = rest_costs(ctx)
    for p in range(-1, n_productions):
        first = np.int64(0) if p < 0 else np.int64(starts[p])
        dot = first
        while all_symbols[dot] != END:
            dot += 1
        rest[dot] = 0
        while dot > first:
            dot -= 1
            symbol = all_symbols[dot]
            if symbol >= BRANCH:
                continue
            rest[dot] = capped(ctx, np.int64(rest[dot + 1]), cost[symbol] if symbol >= 0 else lexeme_cost[~symbol])
    return np.int64(0)


@njit_entry(RESULT1)
def lexeme_cost(ctx, lexeme):
    """The least cost of a lexeme; FAIL or LIMIT if < 0."""
    set_used(ctx, COST_STACK, 0)
    node = lexemes(ctx)[lexeme].expression
    status = far_call(ctx, F_NODE_COST, node, 0)
    return status if status < 0 else expression_costs(ctx)[node].least


@njit_inner(RESULT2)
def _up_place(ctx, row, rule):
    """Where UP_COSTS has what comes after ``rule`` that began in ``row``; -1 if that is the end of the text."""
    if rule == ctx[START_NT]:
        return int64(-1)
    core = 7 * earley_sets(ctx)[row].core
    first = int64(i32(ctx, CORES)[core + CORE_GROUP])
    low, high = first, first + int64(i32(ctx, CORES)[core + CORE_GROUP_COUNT])
    groups = core_groups(ctx)
    while high - low > 1:
        middle = (low + high) // 2
        if groups[middle].symbol <= rule:
            low = middle
        else:
            high = middle
    return earley_sets(ctx)[row].completions + low - first


@njit_inner(RESULT2)
def _up(ctx, row, dot):
    """The cost that is left when the production of a dot, begun in ``row``, is complete."""
    place = _up_place(ctx, row, dot_left(ctx)[dot])
    return int64(0) if place < 0 else up_costs(ctx)[place]


@njit_inner(int64(CTX, int64, int64, int64))
def _behind(ctx, row, dot, source):
    """The least cost from a dot on, of the items that (row, source) stands for in CORE_SCANS or CORE_WAITS."""
    rest = rest_costs(ctx)[dot]
    if source == SELF:
        return capped(ctx, rest, _up(ctx, row, dot))
    core = 7 * earley_sets(ctx)[row].core
    items = earley_items(ctx)
    begin = earley_sets(ctx)[row].offset
    stop = begin + earley_sets(ctx)[row].count
    old = core_dots(ctx)[i32(ctx, CORES)[core + CORE_OFFSET] + source]
    if stop - begin == i32(ctx, CORES)[core + CORE_COUNT]:
        begin += source
    best = int64(NEVER)
    while begin < stop:
        if items[begin].dot == old:
            best = min(best, _up(ctx, items[begin].origin, dot))
        elif items[begin].dot > old:
            break
        begin += 1
    return capped(ctx, rest, best)


@njit_inner(types.void(CTX, int64))
def _cost_row(ctx, row):
    """Work out what the costs of a row are; those of the rows that its items began in are known."""
    record = 5 * row
    core = 7 * int64(i32(ctx, EARLEY_SETS)[record + ROW_CORE])
    items = earley_items(ctx)
    ups = up_costs(ctx)
    groups = core_groups(ctx)
    waits = core_waits(ctx)
    first = int64(i32(ctx, CORES)[core + CORE_GROUP])
    count = int64(i32(ctx, CORES)[core + CORE_GROUP_COUNT])
    place = int64(i32(ctx, EARLEY_SETS)[record + ROW_DONE])
    # What waits in the row's own items, then what was predicted within the row, to the fixed point.  The sweeps go
    # up and down in turn, since rules tend to be numbered in one of the two orders.
    for g in range(count):
        best = int64(NEVER)
        begin = groups[first + g].waits
        for wait in range(begin, begin + groups[first + g].count):
            if waits[wait].source != SELF:
                best = min(best, _behind(ctx, row, waits[wait].dot, waits[wait].source))
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
                    best = min(best, _behind(ctx, row, waits[wait].dot, int64(SELF)))
            if best < ups[place + g]:
                ups[place + g] = best
                changed = True
        upwards = not upwards
    best = int64(NEVER)
    if i32(ctx, EARLEY_SETS)[record + ROW_ACCEPTS]:
        best = int64(0)
    else:
        begin = int64(i32(ctx, EARLEY_SETS)[record + ROW_OFFSET])
        for i in range(begin, begin + int64(i32(ctx, EARLEY_SETS)[record + ROW_COUNT])):
            dot = items[i].dot
            here = capped(ctx, rest_costs(ctx)[dot], _up(ctx, items[i].origin, dot))
            best = min(best, here)
    earley_set_costs(ctx)[2 * row] = best


@njit_inner(RESULT1)
def _row_cost(ctx, row):
    """Make the costs of a row known, and of those below it; returns 0 or FAIL."""
    known = used(ctx, EARLEY_SET_COSTS)
    if 2 * row < known and earley_set_costs(ctx)[2 * row] != UNKNOWN:
        return int64(0)
    rows, places = 2 * used(ctx, EARLEY_SET_HASHES), used(ctx, COMPLETION_MEMO)
    if not room(ctx, EARLEY_SET_COSTS, rows - known) or not room(ctx, UP_COSTS, places - used(ctx, UP_COSTS)):
        return int64(FAIL)
    costs = earley_set_costs(ctx)
    for i in range(known, rows):
        costs[i] = UNKNOWN
    set_used(ctx, EARLEY_SET_COSTS, rows)
    set_used(ctx, UP_COSTS, places)
    # Origins are older rows, so this ends; it needs a stack of its own, since nesting has no limit.
    bottom = used(ctx, COST_STACK)
    if not room(ctx, COST_STACK, 1):
        return int64(FAIL)
    cost_stack(ctx)[bottom] = row
    set_used(ctx, COST_STACK, bottom + 1)
    while used(ctx, COST_STACK) > bottom:
        top = used(ctx, COST_STACK)
        here = cost_stack(ctx)[top - 1]
        if costs[2 * here] == UNKNOWN:
            begin = earley_sets(ctx)[here].offset
            for i in range(begin, begin + earley_sets(ctx)[here].count):
                origin = earley_items(ctx)[i].origin
                if origin != here and costs[2 * origin] == UNKNOWN:
                    if not room(ctx, COST_STACK, 1):
                        return int64(FAIL)
                    cost_stack(ctx)[used(ctx, COST_STACK)] = origin
                    set_used(ctx, COST_STACK, used(ctx, COST_STACK) + 1)
            if used(ctx, COST_STACK) > top:
                continue
            _cost_row(ctx, here)
        set_used(ctx, COST_STACK, top - 1)
    return int64(0)


@njit_inner(RESULT1)
def _costs_after_lexemes(ctx, row):
    """Where AFTER_COSTS has what is left behind each scan of a row, whose costs are known; FAIL if there is no room."""
    place = earley_set_costs(ctx)[2 * row + 1]
    if place != UNKNOWN:
        return place
    core = 7 * earley_sets(ctx)[row].core
    first = int64(i32(ctx, CORES)[core + CORE_SCAN])
    count = int64(i32(ctx, CORES)[core + CORE_SCAN_COUNT])
    if not room(ctx, AFTER_COSTS, count):
        return int64(FAIL)
    place = used(ctx, AFTER_COSTS)
    scans = i32(ctx, CORE_SCANS)
    for i in range(count):
        scan = 3 * (first + i)
        after_costs(ctx)[place + i] = _behind(ctx, row, int64(scans[scan + 1]), int64(scans[scan + 2]))
    set_used(ctx, AFTER_COSTS, place + count)
    earley_set_costs(ctx)[2 * row + 1] = place
    return place


@njit_inner(int64(CTX, int64, int64, int64[::1]))
def cost_members(ctx, row, lexer_state, result):
    """The least cost of finishing from the thread (row, lexer state), and the most that its tokens can lead to.

    ``result`` is int64[3]: the least cost, the byte that begins it, and the most that finishing costs after any
    bytes that stay within the lexemes; it is NEVER if that is not known.  Returns 0, FAIL or LIMIT.
    """
    result[0], result[1], result[2] = NEVER, -1, 0
    if _row_cost(ctx, row) < 0:
        return int64(FAIL)
    core = 7 * earley_sets(ctx)[row].core
    if set_kinds(ctx, row) and lexer_state == i32(ctx, CORES)[core + CORE_INIT]:
        # What comes next depends on the text; what that costs at most is known, and not with which byte it begins.
        result[0], result[2] = earley_set_costs(ctx)[2 * row], NEVER
        return int64(0)
    after = _costs_after_lexemes(ctx, row)
    if after < 0:
        return after
    first = int64(i32(ctx, CORES)[core + CORE_SCAN])
    # Members are sorted by lexeme, scans by falling lexeme: both are gone through once.
    scan = first + int64(i32(ctx, CORES)[core + CORE_SCAN_COUNT]) - 1
    begin = lexer_states(ctx)[lexer_state].offset
    for member in range(begin, begin + 2 * lexer_states(ctx)[lexer_state].count, 2):
        lexeme, node = lexer_members(ctx)[member], lexer_members(ctx)[member + 1]
        record = COST_FIELDS * node
        if node >= used(ctx, EXPRESSION_COSTS) or i32(ctx, EXPRESSION_COSTS)[record + LEAST_ON] == UNKNOWN:
            status = far_call(ctx, F_NODE_COST, node, 0)
            if status < 0:
                return status
        behind = int64(NEVER)
        for i in range(ctx[N_IGNORE]):
            if ignored(ctx)[i] == lexeme:
                behind = earley_set_costs(ctx)[2 * row]
        scans = core_scans(ctx)
        while scan >= first and scans[scan].lexeme < lexeme:
            scan -= 1
        while scan >= first and scans[scan].lexeme == lexeme:
            behind = min(behind, after_costs(ctx)[after + scan - first])
            scan -= 1
        costs = i32(ctx, EXPRESSION_COSTS)
        result[2] = max(result[2], capped(ctx, behind, int64(costs[record + WORST])))
        cost = capped(ctx, behind, int64(costs[record + LEAST_ON]))
        if cost <= result[0] and cost < NEVER:
            byte = int64(costs[record + NEXT_BYTE])
            result[1] = byte if cost < result[0] else better_byte(ctx, result[1], byte)
            result[0] = cost
    return int64(0)


@njit_inner(RESULT2)
def state_cost(ctx, state, _unused):
    """Make the least cost of finishing from a state known, and the byte that begins it; returns 0, FAIL or LIMIT."""
    known = used(ctx, STATE_COSTS)
    if state >= known:
        total = used(ctx, STATE_HASHES)
        if not room(ctx, STATE_COSTS, total - known):
            return int64(FAIL)
        table = i32(ctx, STATE_COSTS)
        for i in range(STATE_FIELDS * known, STATE_FIELDS * total):
            table[i] = UNKNOWN
        set_used(ctx, STATE_COSTS, total)
    record = STATE_FIELDS * state
    if i32(ctx, STATE_COSTS)[record + STATE_LEAST] != UNKNOWN:
        return int64(0)
    best, best_byte, worst = int64(NEVER), int64(-1), int64(0)
    result = i64(ctx, COST_RESULT)
    offset = states(ctx)[state].offset
    for i in range(offset, offset + states(ctx)[state].count):
        row = configurations(ctx)[i].earley_set
        status = cost_members(ctx, row, configurations(ctx)[i].lexer_state, result)
        if status < 0:
            return status
        worst = max(worst, result[2])
        if result[0] < best or (result[0] == best and result[0] < NEVER and best_byte >= 0 and result[1] >= 0):
            best_byte = result[1] if result[0] < best else better_byte(ctx, best_byte, result[1])
            best = result[0]
    if states(ctx)[state].accepts:
        best, best_byte = int64(0), int64(-1)
    table = i32(ctx, STATE_COSTS)
    table[record + STATE_LEAST] = best
    table[record + STATE_BYTE] = best_byte
    table[record + STATE_WORST] = worst
    return int64(0)


far_entry(F_STATE_COST, state_cost)
