"""What may read tokens beside the states, in the same call of a kernel, and what such a call returns.

A condition (conditions/protocol.py) that follows a text needs every token.  A second call would make each token a third
slower, so the kernel that takes a token (configurations.py) hands it on to another one.  The *companion* is an array
that begins with the address of that kernel and is its memory.  Nothing here knows what it makes of the token.

The result of a kernel that takes a token or bytes is a state and a *word* above it:

- NOTE_BITS: what the companion notes of the place that is reached; if it is not 0, the mask there is less than what the
  grammar allows;
- bits of marks, one for each of the grammar's (:attr:`constrain.grammar.ir.GrammarIR.marks`): a lexeme with that mark
  ended within the bytes;
- UNREAD: the companion has not read the token;
- bits from COMPANION_SHIFT on that mean something to the companion alone.

A word from ASKS on means that conditions have to be asked whether the step may be taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Int64Array = np.ndarray[Any, np.dtype[np.int64]]

KERNEL, WORD, FIRST_SCALAR = 0, 1, 2
"""A companion begins with the address of its kernel, or 0, and then the word that a token comes to."""

WORD_SHIFT = 32
MARKS_SHIFT = 41
"""Marks are stored as the bits 2 and 4 (earley_sets.py)."""

ASKS = 1 << 10
NOTE_BITS = ASKS - 1
UNREAD = 1 << 12
COMPANION_SHIFT = 13

STATE_BITS = (1 << WORD_SHIFT) - 1
"""The state in a result, which :func:`unpack` takes apart; for calls that every token takes."""

WITHOUT_QUESTION = ASKS << WORD_SHIFT
"""A result below this is a state, or a status; conditions need not be asked."""


def mark_bit(mark: int) -> int:
    """The bit of a mark in a word."""
    return ASKS << mark


def unpack(result: int) -> tuple[int, int]:
    """The state and the word of a result that is no status."""
    return result & STATE_BITS, result >> WORD_SHIFT


def pack(state: int, word: int) -> int:
    """The result that :func:`unpack` takes apart."""
    return state | word << WORD_SHIFT


def without_kernel(word: int) -> Int64Array:
    """A companion that reads nothing; a token comes to a word, and to the marks that ended in it."""
    return np.array([0, word], np.int64)


NO_COMPANION = without_kernel(0)

ALWAYS_ASKS = without_kernel(UNREAD)
"""For those whose conditions have to be asked about each token."""
