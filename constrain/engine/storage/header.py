"""The header of a compiled grammar's memory: ``ctx``, one int64 array that every kernel gets.

It begins with scalars that kernels share, then the addresses of kernels (links.py), then three words for each table
(schemas.py): the address of its data, its capacity, and how much of it is in use.
"""

from __future__ import annotations

from constrain.kernels.language import int64

CTX = int64[::1]

RESULT0 = int64(CTX)
RESULT1 = int64(CTX, int64)
RESULT2 = int64(CTX, int64, int64)
RESULT3 = int64(CTX, int64, int64, int64)
RESULT4 = int64(CTX, int64, int64, int64, int64)
"""Signatures of kernels that return a result or a status (statuses.py)."""

OPEN = 1 << 40
"""Added to a state that a step leads to, if how it goes on depends on the text (see parser/configurations.py)."""

MOST_ELEMENTS = (1 << 31) - 1
"""No table may have more: records and packed results hold places in tables as 31 bits."""

HEADER = 80

FIRST_LINK = 24
# Scalars that kernels share, by position in the header.
(
    NEED_SLOT,
    NEED_SIZE,
    CLASSES,
    EPOCH,
    START_NT,
    N_IGNORE,
    N_WORDS,
    LIST_END,
    LIST_LIMIT,
    NEW_MASK,
    LONGEST,
    BUDGET,
    OPEN_STATE,
    OPEN_AT,
    INNER_BLANKS,
    AGREED_BYTES,
    WALKS,
    LONG_WALKS,
    NODES_WALKED,
    LOOP_NODE,
    COUNTS_BEGINS,
    NEVER_OPEN,
) = range(22)
# WALKS, LONG_WALKS, NODES_WALKED: how many masks were made by walks; by long ones; how many trie nodes the walks for
# a mask went over (fast/core_masks.py).
# LOOP_NODE: the repetition that was last looked for in a lexer state, or what restricts it
# (fast/leading_repetitions.py).
# COUNTS_BEGINS: it matters where each lexeme began, beside what may follow (conditions/limited_rules).
# NEVER_OPEN: rules are made as the text is read, but what they are depends on nothing but the state (IS_OPEN).
