"""What a call begins with: tables, and not too many, and the place that it is about.

After an exception a grammar may be without tables, and a place without its state (transaction.py).  The way back is the
text, which the links of a place spell.
"""

from __future__ import annotations

import contextlib

from constrain.engine.grammar_tables import GrammarTables
from constrain.engine.history import Place
from constrain.engine.parser.configurations import LOST
from constrain.engine.storage.tables import NO_TABLES, TablesFullError
from constrain.engine.traveller import read_again


def make_ready(compiled: GrammarTables) -> None:
    """Have tables, and not too many.  The caller holds the lock."""
    if compiled.ctx is NO_TABLES:
        compiled.begin()
    elif compiled.is_worn:
        # Sets and states that no text is at are forgotten otherwise, but rules, expressions and lexer states never.
        _start_over(compiled)
    elif compiled.is_large:
        with contextlib.suppress(TablesFullError):  # there are new tables
            compiled.compact_if_due()


def find(compiled: GrammarTables, place: Place) -> None:
    """Let a place have its state, if it has lost it.  The caller holds the lock, and there are tables."""
    if place._state != LOST:
        return
    try:
        _find_again(compiled, place)
    except TablesFullError:
        # A text that has been read once can be read again, though tables may grow in other steps now.
        compiled.begin()
        tables = compiled._tables
        limit_bytes = tables.limit_bytes
        tables.limit_bytes = 2 * limit_bytes
        try:
            _find_again(compiled, place)
        finally:
            compiled._tables.limit_bytes = limit_bytes


def _find_again(compiled: GrammarTables, place: Place) -> None:
    if place._parent is None:
        place._state = compiled.start_state
        return
    found = read_again(compiled, place._parent)
    place._parent = found._parent
    place._state = found._state


def _start_over(compiled: GrammarTables) -> None:
    """Drop all rules that were unfolded, and with them all tables; texts are read again."""
    places = [place for place in compiled.cursors if place._state > 0]
    compiled.begin()
    try:
        for place in places:
            find(compiled, place)
    except TablesFullError:
        # Those that have not been found are, when they are used.
        compiled.begin()
    compiled.note_start_over()
