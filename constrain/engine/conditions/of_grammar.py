"""Which conditions a grammar brings for each of its texts, beside those that a matcher is asked for."""

from __future__ import annotations

from constrain.engine.conditions.protocol import Condition
from constrain.engine.conditions.unique_keys import unique_keys
from constrain.engine.grammar_tables import GrammarTables


def conditions_of(compiled: GrammarTables) -> tuple[Condition, ...]:
    """The conditions of a cursor that begins.  The caller holds the lock of the compiled grammar."""
    return (unique_keys.UniqueKeys(compiled),) if compiled.ir.distinct_keys else ()
