"""Which conditions a grammar brings for each of its texts, beside those that a matcher is asked for."""

from __future__ import annotations

from constrain.engine.conditions.protocol import Condition
from constrain.engine.conditions.unique_keys import unique_keys
from constrain.engine.grammar_tables import GrammarTables
from constrain.engine.vocabulary.vocabulary import Vocabulary
from constrain.grammar.ir import GrammarIR


def prepare_conditions(ir: GrammarIR, vocabulary: Vocabulary) -> None:
    """Work out what the conditions of a grammar need: better when it is compiled than within a mask."""
    if ir.distinct_keys:
        unique_keys.prepare(ir, vocabulary)


def conditions_of(compiled: GrammarTables) -> tuple[Condition, ...]:
    """The conditions of a cursor that begins.  The caller holds the lock of the compiled grammar."""
    return (unique_keys.UniqueKeys(compiled),) if compiled.ir.distinct_keys else ()
