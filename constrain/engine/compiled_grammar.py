"""CompiledGrammar: a grammar made ready for one vocabulary."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from constrain.engine.conditions.of_grammar import prepare_conditions
from constrain.engine.grammar_tables import DEFAULT_LIMIT_BYTES, DEFAULT_MASK_LIMIT_BYTES, GrammarTables
from constrain.engine.recognizer import Recognizer
from constrain.engine.storage.schemas import EARLEY_SET_HASHES, EXPRESSION_HASHES, LEXER_STATE_HASHES, STATE_HASHES
from constrain.engine.token_terminals import settle_tokens
from constrain.engine.vocabulary.vocabulary import Vocabulary
from constrain.grammar.ir import GrammarIR


class CompiledGrammar(GrammarTables):
    """A grammar bound to a vocabulary; shared by any number of matchers, from any thread.

    It starts nearly empty and is filled in as matchers ask: automata, rows, states and masks are
    each made once and then shared.  One lock guards all of it; kernels run without the GIL.

    Parameters
    ----------
    ir : GrammarIR
    vocabulary : Vocabulary
    limit_bytes : int
        Tables may not grow past this; :class:`constrain.errors.LimitError` then.  Rows and states that
        no matcher is at are forgotten long before, so a long text does not bring that about; a grammar
        may, whose patterns alone have too many states.
    mask_limit_bytes : int
        When the remembered masks take more than this, all of them are dropped and computed again
        as needed.  Results do not change.  More than 8 GiB is taken as 8 GiB.
    accelerators : collection of str, optional
        The names of the accelerators to use (``constrain.engine.masks.accelerators.NAMES``); masks are the same with
        any of them.  ``()`` is the plain engine; the default is all of them, or with the environment variable
        ``CONSTRAIN_PLAIN=1`` none.

    Raises
    ------
    ValueError
        If there is no accelerator of a name.
    ConstrainError
        The grammar's own error (``ir.make_error``) if its language is empty, or if it names a token that the
        vocabulary does not have.

    Attributes
    ----------
    ir, vocabulary
        As given, but where the grammar has tokens as terminals: then they are settled for the vocabulary, which is
        replaced by a view of it in which special tokens are spelled (vocabulary/token_spellings.py).
    """

    def __init__(
        self,
        ir: GrammarIR,
        vocabulary: Vocabulary,
        *,
        limit_bytes: int = DEFAULT_LIMIT_BYTES,
        mask_limit_bytes: int = DEFAULT_MASK_LIMIT_BYTES,
        accelerators: Collection[str] | None = None,
    ) -> None:
        ir, vocabulary = settle_tokens(ir, vocabulary)
        super().__init__(
            ir, vocabulary, limit_bytes=limit_bytes, mask_limit_bytes=mask_limit_bytes, accelerators=accelerators
        )
        prepare_conditions(ir, vocabulary)

    def recognizer(self) -> Recognizer:
        """A recognizer at the start of the grammar."""
        return Recognizer(self)

    def statistics(self) -> dict[str, int]:
        """How many expression nodes, lexer states, rows and recognizer states exist so far, and bytes."""
        counts = {
            "nodes": EXPRESSION_HASHES,
            "lexer_states": LEXER_STATE_HASHES,
            "rows": EARLEY_SET_HASHES,
            "states": STATE_HASHES,
        }
        result = {name: self._tables.used(slot) for name, slot in counts.items()}
        return {**result, "mask_bytes": self.mask_bytes, "nbytes": self.nbytes}

    def __reduce__(self) -> Any:
        raise TypeError(
            "a CompiledGrammar cannot be copied or pickled, since its tables belong to this process: threads share it, "
            "and another process compiles the grammar itself (a Grammar and a GrammarCompiler can be pickled)"
        )

    def __repr__(self) -> str:
        counts = self.statistics()
        tokens = self.vocabulary.size
        return f"<CompiledGrammar: {tokens:,} tokens, {counts['states']:,} states, {counts['nbytes']:,} bytes>"
