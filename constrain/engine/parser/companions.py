"""What may read tokens beside the states, in the same call of a kernel, and what such a call returns.

A condition (conditions/protocol.py) that follows a text needs every token.  A second call would make each token a third
slower, so the kernel that takes a token (configurations.py) hands it on to another one.  The *companion* is an array
that begins with the address of that kernel and is its memory.  Nothing here knows what it makes of the token.

The result of a kernel that takes a token or bytes is a state and a *word* above it:

- NOTE_BITS: what the companion notes of the place that is reached; if it is not 0, the mask there is less than what the
  grammar allows;
- MARK_ENDED: a lexeme with a mark (:attr:`constrain.grammar.ir.GrammarIR.distinct_keys`) ended within the bytes;
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
"""The mark is stored as the bit 2 (automata/lexemes.py)."""

ASKS = MARK_ENDED = 1 << 10
NOTE_BITS = ASKS - 1
UNREAD = 1 << 11
COMPANION_SHIFT = 12

STATE_BITS = (1 << WORD_SHIFT) - 1
"""The state in a result, which :func:`unpack` takes apart; for calls that every token takes."""

WITHOUT_QUESTION = ASKS << WORD_SHIFT
"""A result below this is a state, or a status; conditions need not be asked."""


def unpack(result: int) -> tuple[int, int]:
    """The state and the word of a result that is no status."""
    return result & STATE_BITS, result >> WORD_SHIFT


def pack(state: int, word: int) -> int:
    """The result that :func:`unpack` takes apart."""
    return state | word << WORD_SHIFT


NO_COMPANION: Int64Array = np.array([0, 0])
"""One that reads nothing; a token comes to its word, and to the marks that ended in it."""

ALWAYS_ASKS: Int64Array = np.array([0, UNREAD])
"""For those whose conditions have to be asked about each token."""
