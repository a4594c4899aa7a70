"""Statuses: what a kernel returns in place of a result.

A result is 0 or more, so a status is negative.  All of them are in one enumeration: a caller that does not expect a
status of its callee hands it on to its own caller, who must not take it for another one.
"""

from __future__ import annotations

from enum import IntEnum, unique


@unique
class Status(IntEnum):
    """All statuses.  Kernels use the plain numbers of the same names below."""

    NONE = -1
    """There is nothing of what was looked for."""
    FAIL = -2
    """A table has to grow first; ``ctx[NEED_SLOT]`` and ``ctx[NEED_SIZE]`` say which and how far (tables.py)."""
    LIMIT = -3
    """Something was given up because it is larger than its limit."""
    UNMADE = -4
    """The kernel came upon branches without rules; they are in UNMADE_BRANCHES (parser/cores.py)."""
    STOPPED = -5
    """The text led to an open state, ``ctx[OPEN_STATE]``, with its byte ``ctx[OPEN_AT]`` (parser/configurations.py)."""
    REPEATED_KEY = -6
    """A key comes again in an object that has it (unique_keys/reading.py)."""
    NOT_MINE = -7
    """An accelerator does nothing for what it was asked (masks/accelerators.py)."""
    NO_STATE = -8
    """The kernel was given a number that no state has: its place is lost (transaction.py)."""
    BAD_MASK = -9
    """The mask has not the row, or not the words, that the kernel is to write (masks/state_masks.py)."""
    KEYS_FULL = -10
    """A table of the keys of a text is too small, and nothing was read (unique_keys/reading.py)."""
    UNSORTED = -12
    """The tokens of a closure have not been sorted by repetitions, but they may be (fast/repetitions.py)."""
    IN_GROUPS = -13
    """The tokens that stay within the lexemes had better be gone through in groups (budget/masks.py)."""
    NO_GROUPS = -14
    """Tokens cannot be grouped, since a lexeme can end within them (budget/masks.py)."""
    BETWEEN_LEVELS = -15
    """A line begins at none of the columns of open levels (parser/indentations.py)."""


# numba compiles plain numbers in less time than members of an enumeration.
FAIL = Status.FAIL.value
LIMIT = Status.LIMIT.value
UNMADE = Status.UNMADE.value
STOPPED = Status.STOPPED.value
REPEATED_KEY = Status.REPEATED_KEY.value
NOT_MINE = Status.NOT_MINE.value
NO_STATE = Status.NO_STATE.value
BAD_MASK = Status.BAD_MASK.value
KEYS_FULL = Status.KEYS_FULL.value
UNSORTED = Status.UNSORTED.value
IN_GROUPS = Status.IN_GROUPS.value
NO_GROUPS = Status.NO_GROUPS.value
BETWEEN_LEVELS = Status.BETWEEN_LEVELS.value
