"""How expressions are built: a postfix program (programs.py) is run."""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata import derivatives, liveness, set_operations, summaries  # noqa: F401 (through pointers)
from constrain.engine.automata import expressions as e
from constrain.engine.automata.expressions import intern_expression, make_concat, make_literal, make_not, make_repeat
from constrain.engine.automata.quotations import make_quotation
from constrain.engine.storage.access import room, set_used, used
from constrain.engine.storage.header import CTX
from constrain.engine.storage.jit import njit_entry
from constrain.engine.storage.links import F_SET_OPERATION, far_call
from constrain.engine.storage.schemas import EXPRESSION_HASHES, WORK_STACK, literal_bytes, work_stack
from constrain.engine.storage.statuses import FAIL
from constrain.kernels.language import int64, types

(
    *(OP_EMPTY, OP_LITERAL, OP_SET, OP_CONCAT, OP_UNION, OP_INTERSECT, OP_NOT, OP_REPEAT, OP_STORE, OP_KEEP, OP_FIT),
    OP_WORD,
    OP_QUOTATION,
    OP_COUNT,
) = range(14)
"""Operations of the postfix program that programs.py writes for the lexemes; ``~register`` loads a register."""


@njit_entry(int64(CTX, types.int32[::1], types.int32[::1]))
def build_expressions(ctx, program, registers):
    """Run a postfix program and leave the values it ends with in the registers; returns 0 or FAIL.

    ``program`` is int32: an operation and its operands (LITERAL offset length; SET index; CONCAT,
    UNION, INTERSECT, FIT count; REPEAT and COUNT low high; QUOTATION low high depth; WORD register offset length, which
    puts letters before the value on the stack, each byte ``b`` the value of ``register + b``; STORE and KEEP register,
    of which the second leaves the value on the stack; ``~register`` to load it).
    """
    set_used(ctx, WORK_STACK, 0)
    if used(ctx, EXPRESSION_HASHES) == 0:
        for kind in range(3):
            flags = (e.NULLABLE_FLAG if kind > e.EMPTY else 0) | (e.LOOP_FLAG if kind == e.ALL else 0)
            expression = intern_expression(ctx, kind | flags, 0, 0, 0)
            if expression < 0:
                return expression
    pc = 0
    while pc < len(program):
        if not room(ctx, WORK_STACK, 1):
            return int64(FAIL)
        op = program[pc]
        top = used(ctx, WORK_STACK)
        if op < 0:
            work_stack(ctx)[top] = registers[~op]
            set_used(ctx, WORK_STACK, top + 1)
            pc += 1
            continue
        if op == OP_STORE or op == OP_KEEP:
            registers[program[pc + 1]] = work_stack(ctx)[top - 1]
            set_used(ctx, WORK_STACK, top - 1 if op == OP_STORE else top)
            pc += 2
            continue
        if op == OP_EMPTY:
            expression = int64(e.EMPTY)
            pc += 1
        elif op == OP_LITERAL:
            expression = make_literal(ctx, int64(program[pc + 1]), int64(program[pc + 2]))
            pc += 3
        elif op == OP_SET:
            expression = intern_expression(ctx, e.SET, int64(program[pc + 1]), 0, 0)
            pc += 2
        elif op == OP_QUOTATION:
            expression = make_quotation(ctx, int64(program[pc + 1]), int64(program[pc + 2]), int64(program[pc + 3]))
            pc += 4
        elif op == OP_NOT:
            expression = make_not(ctx, work_stack(ctx)[top - 1])
            top -= 1
            pc += 1
        elif op == OP_REPEAT or op == OP_COUNT:
            counts = int64(e.COUNTS_FLAG if op == OP_COUNT else 0)
            low, high = int64(program[pc + 1]), int64(program[pc + 2])
            expression = make_repeat(ctx, work_stack(ctx)[top - 1], low, high, counts)
            top -= 1
            pc += 3
        elif op == OP_CONCAT:
            count = int64(program[pc + 1])
            expression = work_stack(ctx)[top - 1]
            for i in range(top - 2, top - count - 1, -1):
                expression = make_concat(ctx, work_stack(ctx)[i], expression)
                if expression < 0:
                    return expression
            top -= count
            pc += 2
        elif op == OP_WORD:
            expression = work_stack(ctx)[top - 1]
            for i in range(program[pc + 2] + program[pc + 3] - 1, program[pc + 2] - 1, -1):
                letter = registers[program[pc + 1] + literal_bytes(ctx)[i]]
                expression = make_concat(ctx, letter, expression)
                if expression < 0:
                    return expression
            top -= 1
            pc += 4
        else:
            top -= int64(program[pc + 1])
            fits = e.FITS_FLAG if op == OP_FIT else 0
            expression = far_call(ctx, F_SET_OPERATION, e.UNION if op == OP_UNION else e.INTERSECT | fits, top)
            pc += 2
        if expression < 0:
            return expression
        work_stack(ctx)[top] = expression
        set_used(ctx, WORK_STACK, top + 1)
    return int64(0)
