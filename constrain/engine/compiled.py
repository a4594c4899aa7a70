"""CompiledGrammar: a grammar made ready for one vocabulary."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from constrain.engine import masks, nodes, program, states
from constrain.engine.bitmask import Bitmask, words_for
from constrain.engine.masks import write_mask
from constrain.engine.recognizer import Recognizer
from constrain.engine.states import push_token
from constrain.engine.tables import (
    BUDGET,
    BYTES,
    CROSSINGS,
    DENSE,
    DOT_LEFT,
    FAIL,
    FOUND,
    IGNORE,
    LEX_HASH,
    LEXEMES,
    LIMIT,
    LONGEST,
    N_IGNORE,
    N_WORDS,
    NEW_SPLIT,
    NODE_HASH,
    NULLABLE,
    NULLABLE_REST,
    PREDICTED,
    ROW_HASH,
    RULE_STARTS,
    RULES,
    SCRATCH,
    SETS,
    STACK,
    STATE_HASH,
    SYMBOLS,
    TOKEN_LISTS,
    TWIN_STACK,
    Tables,
)
from constrain.engine.vocabulary import Vocabulary
from constrain.errors import LimitError
from constrain.grammar.ir import GrammarIR

DEFAULT_LIMIT_BYTES = 1 << 30
DEFAULT_MASK_LIMIT_BYTES = 128 << 20

# New expression nodes, and parts of unions, that one call may go through before it gives up: some
# seconds of work, where a byte of an ordinary grammar takes a handful.
_WORK_PER_CALL = 10_000_000

# A longer run of forced bytes is returned in pieces of this size.
_FORCED_LIMIT = 1 << 16


class CompiledGrammar:
    """A grammar bound to a vocabulary; shared by any number of matchers, from any thread.

    It starts nearly empty and is filled in as matchers ask: automata, rows, states and masks are
    each made once and then shared.  One lock guards all of it; kernels run without the GIL.

    Parameters
    ----------
    ir : GrammarIR
    vocabulary : Vocabulary
    limit_bytes : int
        Tables may not grow past this; :class:`constrain.errors.LimitError` then.
    mask_limit_bytes : int
        When the remembered masks take more than this, all of them are dropped and computed again
        as needed.  Results do not change.

    Raises
    ------
    ConstrainError
        The grammar's own error (``ir.make_error``) if its language is empty.
    """

    def __init__(
        self,
        ir: GrammarIR,
        vocabulary: Vocabulary,
        *,
        limit_bytes: int = DEFAULT_LIMIT_BYTES,
        mask_limit_bytes: int = DEFAULT_MASK_LIMIT_BYTES,
    ) -> None:
        self.ir = ir
        self.vocabulary = vocabulary
        self.mask_limit_bytes = mask_limit_bytes
        self.lock = threading.Lock()
        self._words = words_for(vocabulary.size)
        self._tables = Tables(limit_bytes)
        self._ctx = self._tables.ctx
        self.context_address = self._ctx.ctypes.data
        self._ctx[BUDGET] = _WORK_PER_CALL
        self._load_vocabulary(vocabulary)
        self._load_grammar(ir)
        self.start_state = self.run(states.make_start_state)

    # -- loading -----------------------------------------------------------------------------

    def _load_grammar(self, ir: GrammarIR) -> None:
        tables, ctx = self._tables, self._ctx
        lexemes = program.LexemeProgram(ir.lexemes)
        tables.put(BYTES, lexemes.literals)
        tables.put(SETS, lexemes.sets)
        registers = np.zeros(lexemes.registers + 1, np.int32)
        self.run(nodes.build_nodes, lexemes.code, registers)
        program.make_byte_classes(ctx)
        n_lexemes = len(ir.lexemes)
        tables.put(LEXEMES, np.zeros(3 * n_lexemes, np.int32))
        self.run(program.describe_lexemes, registers, n_lexemes)

        left, offsets, symbols = program.rule_arrays(ir)
        n_rules = len(ir.nonterminal_names)
        n_dots = len(symbols) + len(left) + 2
        for slot, size in (
            (SYMBOLS, n_dots),
            (DOT_LEFT, n_dots),
            (NULLABLE_REST, n_dots),
            (RULES, n_rules + 2),
            (RULE_STARTS, len(left) + 1),
            (NULLABLE, n_rules + 1),
            (PREDICTED, n_rules + 1),
        ):
            tables.allocate(slot, size)
        productive = np.zeros(n_rules, np.uint8)
        if not program.flatten_rules(ctx, left, offsets, symbols, productive, ir.start):
            records = tables.get(LEXEMES).reshape(-1, 3)
            usable = [bool(nullable or consumes) for _, nullable, consumes in records.tolist()]
            reason, place = program.explain_empty(ir, productive, usable)
            raise ir.make_error(f"the grammar matches no text: {reason}", place)
        consumes = tables.get(LEXEMES)[2::3]
        ignored = sorted({index for index in ir.ignore if consumes[index]})
        tables.put(IGNORE, np.array(ignored, np.int32))
        ctx[N_IGNORE] = len(ignored)

    def _load_vocabulary(self, vocabulary: Vocabulary) -> None:
        tables = self._tables
        for slot, address, size in vocabulary.shared_tables():
            tables.share(slot, address, size)
        self._ctx[N_WORDS] = self._words
        self._ctx[LONGEST] = vocabulary.trie.depth
        tables.allocate(SCRATCH, self._words)
        tables.allocate(STACK, vocabulary.trie.depth + 2)
        tables.allocate(TWIN_STACK, vocabulary.trie.depth + 2)
        self._allocate_masks()

    def _allocate_masks(self) -> None:
        for slot, words in ((DENSE, 8 * self._words), (TOKEN_LISTS, 4 * self._words), (CROSSINGS, 2048)):
            self._tables.allocate(slot, words)

    # -- running kernels ---------------------------------------------------------------------

    def run(self, kernel: Callable[..., int], *args: Any) -> int:
        """Run a kernel under the lock, growing tables as it asks.

        Raises
        ------
        LimitError
            If the tables would grow past ``limit_bytes``, or a pattern takes too long to follow.
        """
        with self.lock:
            return self._run(kernel, *args)

    def _run(self, kernel: Callable[..., int], *args: Any) -> int:
        fresh = False
        while True:
            result = kernel(self._ctx, *args)
            if result == FAIL:
                self._tables.grow()
            elif result == LIMIT and not fresh:
                # What earlier calls used of the budget is not this call's fault.
                self._ctx[BUDGET] = _WORK_PER_CALL
                fresh = True
            elif result == LIMIT:
                raise LimitError(
                    "a pattern takes too long to follow: it counts within counts, or intersects or excludes patterns "
                    "with very many states; simplify it"
                )
            else:
                return result

    def write_mask(self, state: int, out: Bitmask, index: int) -> None:
        """Write the mask of ``state`` into row ``index`` of ``out``, computing it if it is not known."""
        # Under one lock throughout: another thread may drop the masks in between.
        with self.lock:
            if write_mask(self._ctx, state, out, index) == 0:
                return
            if self.mask_bytes > self.mask_limit_bytes:
                masks.forget_masks(self._ctx)
                self._allocate_masks()
            self._tables.share(FOUND, *self.vocabulary.scratch())
            self._ctx[NEW_SPLIT] = -1
            self._run(masks.compute_mask, state)
            if self._ctx[NEW_SPLIT] >= 0:
                self.vocabulary.publish(self._ctx, int(self._ctx[NEW_SPLIT]))
            write_mask(self._ctx, state, out, index)

    def forced_bytes(self, state: int) -> bytes:
        """The bytes that every continuation of ``state`` begins with."""
        out = np.empty(_FORCED_LIMIT, np.uint8)
        count = self.run(states.forced, state, out)
        return out[:count].tobytes()

    def push_token(self, state: int, token: int) -> int:
        """The state after a token's bytes; 0 if it is not allowed."""
        with self.lock:
            result: int = push_token(self._ctx, state, token)
            return result if result >= 0 else self._run(push_token, state, token)

    # -- what is in it -----------------------------------------------------------------------

    def recognizer(self) -> Recognizer:
        """A recognizer at the start of the grammar."""
        return Recognizer(self)

    @property
    def mask_bytes(self) -> int:
        """Memory of the remembered masks, in bytes."""
        tables = self._tables
        return sum(tables.get(slot).nbytes for slot in (DENSE, TOKEN_LISTS, CROSSINGS))

    @property
    def nbytes(self) -> int:
        """Memory of all tables, in bytes (without the vocabulary's, which are shared)."""
        return self._tables.nbytes

    def statistics(self) -> dict[str, int]:
        """How many expression nodes, lexer states, rows and recognizer states exist so far, and bytes."""
        counts = {
            "nodes": NODE_HASH,
            "lexer_states": LEX_HASH,
            "rows": ROW_HASH,
            "states": STATE_HASH,
        }
        result = {name: self._tables.used(slot) for name, slot in counts.items()}
        return {**result, "mask_bytes": self.mask_bytes, "nbytes": self.nbytes}

    def __repr__(self) -> str:
        counts = self.statistics()
        return f"CompiledGrammar(rows={counts['rows']}, states={counts['states']}, nbytes={counts['nbytes']})"
