"""The matcher for split patterns: a backtracking machine over the instructions of splitting/instructions.py.

Backtracking could take exponential time on a pattern made for it, so the steps are counted, and past a number
that grows with the text's length the search gives up.  Patterns of real tokenizers stay far below.
"""

from __future__ import annotations

import numpy as np

from constrain.kernels.jit import ENTRY, INNER, njit
from constrain.tokenizers.splitting.common import char_at
from constrain.tokenizers.splitting.instructions import (
    AT,
    AT_BEGIN,
    AT_END,
    AT_LAST,
    AT_LINE_BEGIN,
    AT_LINE_END,
    AT_WORD,
    ATOMIC,
    BEHIND,
    END_LOOK,
    FORK,
    FORK_LAZY,
    JUMP,
    LOOK,
    MATCH,
    RUN,
    SET,
)

ISOLATED, REMOVED, MERGED_WITH_PREVIOUS, MERGED_WITH_NEXT, CONTIGUOUS = range(5)

TOO_MANY_STEPS = -2
"""Result of :func:`split_stage` where the pattern needs more than its steps."""

_STEPS_FOR_A_BYTE = 100
_STEPS_FOR_NOTHING = 1_000_000
_LARGEST_STACK = 1 << 24

_FORK_FRAME, _RUN_FRAME, _ATOMIC_FRAME, _LOOK_FRAME, _NOT_FRAME = range(5)


@njit("int64(uint8[::1], uint8[::1], int64, int64)", **INNER)
def _class_before(data, classes, begin, pos):  # type: ignore[no-untyped-def]
    """The class of the character that ends at ``pos``, or -1 at ``begin``."""
    if pos <= begin:
        return -1
    pos -= 1
    while pos > begin and (data[pos] & 0xC0) == 0x80:
        pos -= 1
    return char_at(data, classes, pos)[0]


@njit("boolean(uint8[::1], uint8[::1], uint64, int64, int64, int64, int64)", **INNER)
def _holds(data, classes, word, begin, end, pos, assertion):  # type: ignore[no-untyped-def]
    """Whether an assertion holds at ``pos`` of the text ``data[begin:end]``."""
    if assertion == AT_BEGIN:
        return pos == begin
    if assertion == AT_END:
        return pos == end
    if assertion == AT_LAST:
        return pos == end or (pos == end - 1 and data[pos] == 0x0A)
    if assertion == AT_LINE_BEGIN:
        return pos == begin or data[pos - 1] == 0x0A
    if assertion == AT_LINE_END:
        return pos == end or data[pos] == 0x0A
    before = _class_before(data, classes, begin, pos)
    left = before >= 0 and (word >> np.uint64(before)) & np.uint64(1) != 0
    right = pos < end and (word >> np.uint64(char_at(data, classes, pos)[0])) & np.uint64(1) != 0
    return (left != right) == (assertion == AT_WORD)


@njit(
    "Tuple((int64, int64, int64[:, ::1]))"
    "(uint8[::1], uint8[::1], int32[:, ::1], uint64[::1], int64, int64, int64, int64[:, ::1], int64)",
    **INNER,
)
def _match(data, classes, code, sets, begin, end, start, stack, steps):  # type: ignore[no-untyped-def]
    """The end of the match at ``start`` in ``data[begin:end]`` (-1: none), the steps left, and the stack.

    stack : int64[n, 4], frames ``kind, instruction, position, first position``; replaced where it is too small.
    """
    one = np.uint64(1)
    word = sets[sets.size - 1]
    depth = 0
    at = 0
    pos = start
    while True:
        steps -= 1
        if steps < 0:
            return TOO_MANY_STEPS, steps, stack
        if depth >= stack.shape[0]:
            if depth >= _LARGEST_STACK:
                return TOO_MANY_STEPS, steps, stack
            wider = np.empty((2 * stack.shape[0], 4), dtype=np.int64)
            for i in range(depth):
                for j in range(4):
                    wider[i, j] = stack[i, j]
            stack = wider
        op = code[at, 0]
        fine = True
        if op == SET:
            fine = False
            if pos < end:
                kind, after = char_at(data, classes, pos)
                if (sets[code[at, 1]] >> np.uint64(kind)) & one:
                    pos = after
                    at += 1
                    fine = True
        elif op == RUN:
            members = sets[code[at, 1]]
            least = code[at, 2]
            most = code[at, 3]
            count = 0
            first = pos
            while pos < end and count != most:
                kind, after = char_at(data, classes, pos)
                if not (members >> np.uint64(kind)) & one:
                    break
                pos = after
                count += 1
                if count == least:
                    first = pos
            steps -= count >> 3
            fine = count >= least
            at += 1
            if fine and pos > first:
                stack[depth, 0] = _RUN_FRAME
                stack[depth, 1] = at
                stack[depth, 2] = pos
                stack[depth, 3] = first
                depth += 1
        elif op == FORK:
            possible = True
            if code[at, 3] >= 0:
                possible = False
                if pos < end:
                    kind, after = char_at(data, classes, pos)
                    possible = (sets[code[at, 3]] >> np.uint64(kind)) & one != 0
            if possible:
                stack[depth, 0] = _FORK_FRAME
                stack[depth, 1] = code[at, 2]
                stack[depth, 2] = pos
                depth += 1
                at += 1
            else:
                at = code[at, 2]
        elif op == FORK_LAZY:
            stack[depth, 0] = _FORK_FRAME
            stack[depth, 1] = at + 1
            stack[depth, 2] = pos
            depth += 1
            at = code[at, 2]
        elif op == JUMP:
            at = code[at, 1]
        elif op == MATCH:
            return pos, steps, stack
        elif op == AT:
            fine = _holds(data, classes, word, begin, end, pos, code[at, 1])
            at += 1
        elif op == BEHIND:
            kind = _class_before(data, classes, begin, pos)
            inside = kind >= 0 and (sets[code[at, 1]] >> np.uint64(kind)) & one != 0
            fine = inside != (code[at, 2] != 0)
            at += 1
        elif op == ATOMIC or op == LOOK:
            stack[depth, 0] = _ATOMIC_FRAME
            if op == LOOK:
                stack[depth, 0] = _NOT_FRAME if code[at, 2] else _LOOK_FRAME
            stack[depth, 1] = code[at, 1]
            stack[depth, 2] = pos
            depth += 1
            at += 1
        else:  # END_ATOMIC, END_LOOK: drop what could be tried again inside
            depth -= 1
            while stack[depth, 0] == _FORK_FRAME or stack[depth, 0] == _RUN_FRAME:
                depth -= 1
            at = stack[depth, 1]
            if op == END_LOOK:
                pos = stack[depth, 2]
                fine = stack[depth, 0] == _LOOK_FRAME
        while not fine:
            if depth == 0:
                return -1, steps, stack
            top = stack[depth - 1, 0]
            if top == _RUN_FRAME:
                pos = stack[depth - 1, 2] - 1
                while (data[pos] & 0xC0) == 0x80:
                    pos -= 1
                at = stack[depth - 1, 1]
                if pos > stack[depth - 1, 3]:
                    stack[depth - 1, 2] = pos
                else:
                    depth -= 1
                fine = True
            else:
                depth -= 1
                at = stack[depth, 1]
                pos = stack[depth, 2]
                fine = top == _FORK_FRAME or top == _NOT_FRAME


@njit("int64(int32[::1], boolean[::1], int64, int64, boolean, boolean, boolean, int64)", **INNER)
def _put(ends, keeps, count, end, hit, previous, fresh, behavior):  # type: ignore[no-untyped-def]
    """Add a part (a match or what lies between two) to the pieces; returns their number.

    previous : whether the part before was a match; fresh : there is none before in the same text.
    """
    joined = False
    if not fresh:
        if behavior == MERGED_WITH_PREVIOUS:
            joined = hit and not previous
        elif behavior == MERGED_WITH_NEXT:
            joined = previous and not hit
        elif behavior == CONTIGUOUS:
            joined = hit == previous
    if joined:
        count -= 1
    ends[count] = end
    keeps[count] = not (hit and behavior == REMOVED)
    return count + 1


@njit(
    "int64(uint8[::1], int32[::1], boolean[::1], uint8[::1], int32[:, ::1], uint64[::1], int64, boolean,"
    " int32[::1], boolean[::1])",
    **ENTRY,
)
def split_stage(data, ends, keeps, classes, code, sets, behavior, invert, new_ends, new_keeps):  # type: ignore[no-untyped-def]
    """Cut every piece that is kept once more.

    data  : uint8[n], well-formed UTF-8
    ends  : int32[p], the end of each piece;  keeps : bool[p], whether it is still there
    classes, code, sets : the pattern, see :class:`constrain.tokenizers.splitting.programs.SplitProgram`
    behavior : what becomes of a match; invert : of what lies between matches instead
    new_ends, new_keeps : int32[n], bool[n] (output)

    Returns the number of pieces, or TOO_MANY_STEPS.
    """
    steps = np.int64(_STEPS_FOR_A_BYTE * data.size + _STEPS_FOR_NOTHING)
    stack = np.empty((256, 4), dtype=np.int64)
    # The pattern \s+$ and its like.
    tail_only = code[0, 0] == RUN and code[0, 2] <= 1 and code[0, 3] < 0
    tail_only = tail_only and code[1, 0] == AT and code[1, 1] == AT_END and code[2, 0] == MATCH
    count = 0
    begin = 0
    for piece in range(ends.size):
        end = ends[piece]
        if not keeps[piece]:
            new_ends[count] = end
            new_keeps[count] = False
            count += 1
            begin = end
            continue
        done = begin
        pos = begin
        fresh = True
        previous = False
        while pos < end:
            found, steps, stack = _match(data, classes, code, sets, begin, end, pos, stack, steps)
            if found == TOO_MANY_STEPS:
                return TOO_MANY_STEPS
            if found < 0 and tail_only:
                # A run that does not reach the end from here does not reach it from a later place in the run either.
                while pos < end and (sets[code[0, 1]] >> np.uint64(char_at(data, classes, pos)[0])) & np.uint64(1):
                    pos = char_at(data, classes, pos)[1]
                if pos == end:
                    break
            if found < 0 or (found == pos and pos == done):
                pos += 1
                while pos < end and (data[pos] & 0xC0) == 0x80:
                    pos += 1
                continue
            if pos > done:
                count = _put(new_ends, new_keeps, count, pos, invert, previous, fresh, behavior)
                fresh = False
                previous = invert
            if found > pos:
                count = _put(new_ends, new_keeps, count, found, not invert, previous, fresh, behavior)
                fresh = False
                previous = not invert
                pos = found
            done = pos
        if done < end:
            count = _put(new_ends, new_keeps, count, end, invert, previous, fresh, behavior)
        begin = end
    return count
