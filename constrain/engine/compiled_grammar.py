"""CompiledGrammar: a grammar made ready for one vocabulary."""

from __future__ import annotations

import contextlib
import threading
import weakref
from array import array
from collections.abc import Callable, Collection
from itertools import chain
from threading import get_ident
from typing import TYPE_CHECKING, Any

import numpy as np

from constrain import limits
from constrain.engine.automata.byte_classes import make_byte_classes
from constrain.engine.automata.lexemes import LEXEME_IS_KEY, LEXEME_IS_LIMITED, describe_lexemes
from constrain.engine.automata.operations import build_expressions
from constrain.engine.automata.prelude import Prelude, prelude_for
from constrain.engine.automata.programs import LexemeProgram, as_int32
from constrain.engine.conditions.unique_keys.memory import NO_KEYS
from constrain.engine.conditions.unique_keys.quote_tokens import QuoteTokens, quote_tokens
from constrain.engine.history import STEPS_KEPT, Link, LinksKept, Place, Traveller, find_again
from constrain.engine.masks import accelerators as fast
from constrain.engine.masks import state_masks as masks
from constrain.engine.masks.state_masks import write_mask
from constrain.engine.parser import configurations as states
from constrain.engine.parser.configurations import ENDED, LOST, push_token
from constrain.engine.parser.rules import explain_empty, flatten_rules, rule_arrays
from constrain.engine.parser.rules_on_demand import UnfoldedRules
from constrain.engine.recognizer import Recognizer
from constrain.engine.storage.header import (
    BUDGET,
    INNER_BLANKS,
    KEYS_SHIFT,
    KEYS_UNREAD,
    LONGEST,
    MOST_ELEMENTS,
    N_IGNORE,
    N_WORDS,
    NEED_SLOT,
    NEW_MASK,
    OPEN_AT,
    OPEN_STATE,
)
from constrain.engine.storage.jit import without_dispatch
from constrain.engine.storage.schemas import (
    BOUNDARIES,
    BRANCHES,
    BY_ROW_OR_STATE,
    BYTE_SETS,
    CHILDREN,
    DENSE_MASKS,
    DOT_LEFT,
    EARLEY_SET_HASHES,
    END_LENGTHS,
    EXPRESSION_BUCKETS,
    EXPRESSION_HASHES,
    EXPRESSION_PRINTS,
    EXPRESSIONS,
    FIRST_BYTES,
    FOUND_TOKENS,
    IGNORED,
    LAST_BYTES,
    LEXEMES,
    LEXER_STATE_HASHES,
    LITERAL_BYTES,
    LIVENESS,
    NECESSARY_BYTES,
    NEW_EXPRESSIONS,
    NULLABLE,
    NULLABLE_REST,
    OPEN_NODES,
    PREDICTED,
    RULE_STARTS,
    RULES,
    SCRATCH_MASK,
    SHORTEST_LENGTHS,
    STATE_HASHES,
    STATE_KEYS,
    SYMBOLS,
    TOKEN_LISTS,
    WALK_STACK,
    WIDE_STACK,
)
from constrain.engine.storage.statuses import FAIL, LIMIT, REPEATED_KEY, STOPPED, UNMADE
from constrain.engine.storage.tables import EMPTY, NO_TABLES, Tables, TablesFullError
from constrain.engine.vocabulary.bitmasks import Bitmask, allow, words_for
from constrain.engine.vocabulary.trie import DEPTH_SHIFT
from constrain.engine.vocabulary.vocabulary import Vocabulary
from constrain.errors import LimitError
from constrain.forking import renew_in_child
from constrain.grammar.ir import GrammarIR
from constrain.grammar.regular import Regular

if TYPE_CHECKING:
    from constrain.engine.conditions.unique_keys.limited_keys import LimitedKeys

DEFAULT_LIMIT_BYTES = 1 << 30
DEFAULT_MASK_LIMIT_BYTES = 128 << 20

# Tables of rows and states may take this much before those that no text is at are looked for.
_COLLECT_BYTES = 32 << 20

# Unfolded rules, and what belongs to them, may take this much before they are dropped and made anew.
_START_OVER_BYTES = 128 << 20

# Where memory is scarce, tables are made smaller until they have room for one more in so many elements.
_LITTLE = 16

# What has been collected to make room for a call of a kernel.
_NOTHING, _SOME, _ALL = range(3)

# New expression nodes, and parts of unions, that one call may go through before it gives up: some
# seconds of work, where a byte of an ordinary grammar takes a handful.
_WORK_PER_CALL = 10_000_000

# Where time is limited a call gets a part of that at first, and twice as much each time it comes back for more.
_WORK_AT_FIRST = 500_000

# Tables with an element for each expression.
_EXPRESSION_TABLES = (
    EXPRESSIONS,
    EXPRESSION_PRINTS,
    FIRST_BYTES,
    LAST_BYTES,
    NECESSARY_BYTES,
    SHORTEST_LENGTHS,
    END_LENGTHS,
    LIVENESS,
    EXPRESSION_HASHES,
)

# The calls that every token takes.
push_token_unchecked = without_dispatch(push_token)
write_mask_unchecked = without_dispatch(write_mask)

Int64Array = np.ndarray[Any, np.dtype[np.int64]]

_MASK_SLOTS = (DENSE_MASKS, TOKEN_LISTS, BOUNDARIES)

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
        The grammar's own error (``ir.make_error``) if its language is empty.
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
        self.accelerators = fast.names_in_use(accelerators)
        self.ir = ir
        self.vocabulary = vocabulary
        # More than that does not fit into a table (MOST_ELEMENTS).
        self.mask_limit_bytes = min(mask_limit_bytes, 4 * MOST_ELEMENTS)
        # One that knows its owner: where every token takes it, it is taken within `try`, which takes half the time that
        # `with` does, and may be interrupted before.
        self.lock: Any = threading.RLock()
        self.cursors: weakref.WeakSet[Place] = weakref.WeakSet()
        # What adds to new tables: those of costs, once a matcher has a budget.
        self.table_makers: list[Callable[[CompiledGrammar], None]] = []
        # The tables, or NO_TABLES after an exception that leaves them in doubt.
        self.ctx = NO_TABLES
        # Raised when states get new numbers; and when all else does too.
        self.generation = -1
        self.tables_made = 0
        self._collect_above = _COLLECT_BYTES
        self._words = words_for(vocabulary.size)
        self._limit_bytes = limit_bytes
        # Where a table doubles there should be room for it.
        self._compact_above = limit_bytes // 2
        self._start_over_above = min(_START_OVER_BYTES, limit_bytes // 2)
        self._limited_keys: LimitedKeys | None = None
        renew_in_child(self)
        if ir.distinct_keys:
            # Before there are tables, which have the addresses of its kernels.
            import constrain.engine.conditions.unique_keys.unique_keys
        self._begin()
        if ir.limited_keys:
            # Few grammars need these, and they take some time, which is better taken here than for a mask.
            import constrain.engine.conditions.unique_keys.exhaustion
            import constrain.engine.conditions.unique_keys.limited_keys  # noqa: F401

            _ = self.quote_tokens().to_limited_keys

    @property
    def has_distinct_keys(self) -> bool:
        """Whether an object could have a key twice by the rules alone."""
        return bool(self.ir.distinct_keys)

    @property
    def limited_keys(self) -> LimitedKeys | None:
        """What is known of keys that may run out; None if there are none.  The caller holds the lock."""
        if self._limited_keys is None and self.ir.limited_keys:
            from constrain.engine.conditions.unique_keys.limited_keys import LimitedKeys

            self._limited_keys = LimitedKeys(self)
        return self._limited_keys

    def quote_tokens(self) -> QuoteTokens:
        """The tokens of the vocabulary that hold a quote."""
        return quote_tokens(self.vocabulary)

    # -- loading -----------------------------------------------------------------------------

    def _begin(self) -> None:
        """Make the tables and the start state.

        Whoever holds a number of earlier ones has to find another one, in the generation that begins here.
        """
        self.ctx = NO_TABLES
        for place in list(self.cursors):
            if place._state > 0:
                place._state = LOST
        self.generation += 1
        self.tables_made += 1
        self.start_state = 0
        # Scratch memory, and of which thread; it is kept, since the next thread may have the number of one that ended.
        self.thread = 0
        self._scratch: Any = None
        self._unfolded: UnfoldedRules | None = None
        longest = self.vocabulary.trie.depth
        stock = None if self.ir.stock is None else prelude_for(self.ir.stock, longest)
        snapshot = EMPTY if stock is None else stock.snapshot
        without = fast.links_without(self.accelerators)
        tables = Tables(self._limit_bytes, self.vocabulary.shared_tables, snapshot, without)
        for slot, size in ((SCRATCH_MASK, self._words), (WALK_STACK, longest + 2), (WIDE_STACK, longest + 2)):
            tables.allocate(slot, size)
        ctx = tables.ctx
        ctx[BUDGET] = _WORK_PER_CALL
        ctx[N_WORDS] = self._words
        ctx[LONGEST] = longest
        ctx[INNER_BLANKS] = self.vocabulary.inner_blanks
        self._tables, self.ctx, self.context_address = tables, ctx, tables.context_address
        self._allocate_masks()
        self._load_grammar(self.ir, stock)
        self.start_state = self._run(states.make_start_state)
        for make in self.table_makers:
            make(self)

    def _load_grammar(self, ir: GrammarIR, stock: Prelude | None) -> None:
        tables, ctx = self._tables, self.ctx
        lexemes = LexemeProgram(ir.lexemes, None if stock is None else stock.program)
        if lexemes.counts and "counted_masks" in self.accelerators:
            # Two seconds to compile, and few grammars need it.
            fast.load("counted_masks")
            tables.link()
        registers = np.zeros(lexemes.registers + 1, np.int32)
        if stock is not None:
            registers[: lexemes.first] = stock.registers
        tables.put(LITERAL_BYTES, lexemes.literals)
        tables.put(BYTE_SETS, lexemes.sets)
        n_nodes = tables.used(EXPRESSION_HASHES) + 2 * len(lexemes.code) // 3
        if n_nodes > NEW_EXPRESSIONS:
            # A kernel that runs out of room begins again, which would be some sixty times for a large grammar.
            for slot in _EXPRESSION_TABLES:
                tables.reserve(slot, n_nodes)
            tables.reserve(EXPRESSION_BUCKETS, 2 * n_nodes)
            tables.reserve(CHILDREN, n_nodes // 4)
        self._run(build_expressions, lexemes.code, registers)
        n_lexemes = len(ir.lexemes)
        roots = registers[lexemes.first : lexemes.first + n_lexemes]
        make_byte_classes(ctx, roots, ir.makes_lexemes)
        tables.allocate(LEXEMES, n_lexemes, n_lexemes)
        self._run(describe_lexemes, roots, 0)
        if ir.distinct_keys:
            tables.get(LEXEMES)["consumes"][list(ir.distinct_keys)] |= LEXEME_IS_KEY
            tables.get(LEXEMES)["consumes"][list(chain(*ir.limited_keys))] |= LEXEME_IS_LIMITED

        left, offsets, symbols = rule_arrays(ir)
        unfolded = as_int32(array("i", ir.unfolded))
        tables.allocate(BRANCHES, len(unfolded))
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
        if not flatten_rules(ctx, left, offsets, symbols, productive, ir.start, unfolded):
            records = tables.get(LEXEMES)
            usable = [bool(nullable or consumes) for _, nullable, consumes in records.tolist()]
            reason, place = explain_empty(ir, productive, usable)
            raise ir.make_error(f"the grammar matches no text: {reason}", place)
        if ir.ignore:
            consumes = tables.get(LEXEMES)["consumes"]
            ignored = sorted({index for index in ir.ignore if consumes[index]})
            tables.put(IGNORED, np.array(ignored, np.int32))
            ctx[N_IGNORE] = len(ignored)
        if ir.make_unfolding is not None:
            self._unfolded = UnfoldedRules(ir, tables, self._run, lexemes, registers, productive)

    def _allocate_masks(self) -> None:
        for slot, size in ((DENSE_MASKS, 8 * self._words), (TOKEN_LISTS, 16 * self._words), (BOUNDARIES, 4096)):
            self._tables.allocate(slot, size)

    # -- after an exception ------------------------------------------------------------------

    def _renew_after_fork(self) -> None:
        """Nobody will release a lock that another thread held, or finish what it was doing."""
        if self.lock.acquire(blocking=False):
            self.lock.release()
        else:
            self.ctx = NO_TABLES
            self.lock = threading.RLock()

    def make_ready(self) -> None:
        """Have tables, and not too many: what a call begins with (transaction.py).  The caller holds the lock."""
        if self.ctx is NO_TABLES:
            self._begin()
        elif self._unfolded is not None and self._bytes_of_rules() > self._start_over_above:
            # Rows and states that no text is at are forgotten otherwise, but rules, expressions and lexer states never.
            self._start_over()
        else:
            with contextlib.suppress(TablesFullError):  # there are new tables
                self.compact_if_due()

    def compact_if_due(self) -> None:
        """Give up expressions and lexer states that no place needs, if there are too many.  The caller holds the lock.

        Lexer states get other numbers, as states do.  After a TablesFullError all places are lost.
        """
        if self._tables.nbytes > self._compact_above and self.can_compact:
            self.compact()

    @property
    def can_compact(self) -> bool:
        """Whether :meth:`compact` is possible: rules that were made for texts cannot be given up while texts stay."""
        return self._unfolded is None

    def find(self, place: Place) -> None:
        """Let a place have its state, if it has lost it.  The caller holds the lock, and there are tables."""
        if place._state != LOST:
            return
        try:
            find_again(self, place)
        except TablesFullError:
            # A text that has been read once can be read again, though tables may grow in other steps now.
            self._begin()
            self._tables.limit_bytes = 2 * self._limit_bytes
            find_again(self, place)
            self._tables.limit_bytes = self._limit_bytes

    # -- running kernels ---------------------------------------------------------------------

    def _run(self, kernel: Callable[..., int], *args: Any) -> int:
        return self._repeat(lambda: kernel(self.ctx, *args))

    def run_at(self, cursor: Any, kernel: Callable[..., int], *args: Any) -> int:
        """Run a kernel at a cursor's state, growing tables as it asks.  The caller holds the lock.

        The state may have another number afterwards, and so may all others but the result.

        Raises
        ------
        LimitError
            If the tables would grow past ``limit_bytes``, or a pattern takes too long to follow.
        """
        # Kernels do not check numbers.
        assert cursor._state >= 0
        return self._repeat(lambda: kernel(self.ctx, cursor._state, *args))

    def _repeat(self, attempt: Callable[[], int]) -> int:
        fresh = False
        work = _WORK_PER_CALL
        if limits.has_deadline():
            limits.check()
            work = self.ctx[BUDGET] = _WORK_AT_FIRST
        # Collecting twice for one call would be for what the call itself has added, and will add again.
        collected = _NOTHING
        while True:
            result = attempt()
            if result == FAIL:
                collected = self._make_room(collected)
            elif result == LIMIT and not fresh:
                # What earlier calls used of the budget is not this call's fault.
                limits.check()
                self.ctx[BUDGET] = work
                fresh = work == _WORK_PER_CALL
                work = min(2 * work, _WORK_PER_CALL)
            elif result == UNMADE:
                assert self._unfolded is not None
                self._unfolded.unfold()
            elif result == LIMIT:
                raise LimitError(
                    "a pattern takes too long to follow: it counts within counts, or intersects or excludes patterns "
                    "with very many states; simplify it"
                )
            else:
                return result

    def write_mask(self, cursor: Place, out: Bitmask, index: int) -> None:
        """Write the mask of a cursor's state into row ``index`` of ``out``, computing it if it is not known.

        Nothing is checked here: ``out`` is as bitmasks.check_bitmask returns it, and ``index`` an int.  The caller
        holds the lock.
        """
        if get_ident() != self.thread:
            self.share_scratch()
        result = write_mask_unchecked(self.ctx, cursor._state, out, index)
        if result:
            self.finish_mask(result, cursor, out, index)

    def finish_mask(self, result: int, cursor: Place, out: Bitmask, index: int) -> None:
        """Do what is left to do when the kernel of that name has not written all of a mask; it returned ``result``.

        The caller holds the lock.
        """
        if result < 0:
            slot = int(self.ctx[NEED_SLOT])
            if (
                result == FAIL
                and slot in _MASK_SLOTS
                and self.mask_bytes + self._tables.array(slot).nbytes > self.mask_limit_bytes
            ):
                masks.forget_masks(self.ctx)
                self._allocate_masks()
            result = self.run_at(cursor, write_mask, out, index)
        open_nodes = self._tables.get(OPEN_NODES).tolist() if result & 2 else []
        if result & 1:
            fast.publish(self.vocabulary, self._run, int(self.ctx[NEW_MASK]))
            self.ctx[NEW_MASK] = -1
        if open_nodes:
            self._add_open_tokens(cursor, open_nodes, out, index)

    def share_scratch(self) -> None:
        """Let kernels use the work space that the vocabulary has for this thread."""
        address, size, self._scratch = self.vocabulary.scratch()
        self._tables.share(FOUND_TOKENS, address, size)
        self.thread = get_ident()

    def _add_open_tokens(self, cursor: Place, nodes: list[int], out: Bitmask, index: int) -> None:
        """Add the tokens to a mask that depend on the text: those at or below some trie nodes."""
        vocabulary, trie = self.vocabulary, self.vocabulary.trie
        todo = [(cursor, 0, node) for node in nodes]
        for place, done, node in todo:
            here = leaf = int(trie.token[node])
            place_of_leaf = node
            while leaf < 0:
                place_of_leaf += 1
                leaf = int(trie.token[place_of_leaf])
            count = (int(trie.node[node]) >> DEPTH_SHIFT) + 1
            ahead = Traveller(self, place._state, place._parent)
            ahead.read(vocabulary.tokens[leaf][done:count])
            if ahead._state == 0:
                continue
            while here >= 0:
                allow(out[index], here)
                here = int(trie.same[here]) if len(trie.same) else -1
            if trie.size[node] > 1:
                self.run_at(ahead, masks.add_below, node, out, index)
                todo += [(ahead, count, further) for further in self._tables.get(OPEN_NODES).tolist()]

    def forced_bytes(self, cursor: Place) -> bytes:
        """The bytes that every continuation of a cursor's text begins with.  The caller holds the lock."""
        out = np.empty(_FORCED_LIMIT, np.uint8)
        count = self.run_at(cursor, states.forced, out)
        place = cursor
        begin = 0
        while self.ctx[OPEN_AT] and count < _FORCED_LIMIT:
            ahead = Traveller(self, place._state, place._parent)
            ahead.read(out[begin:count].tobytes())
            place, begin = ahead, count
            count += self.run_at(place, states.forced, out[begin:])
        return out[:count].tobytes()

    def push_token(self, cursor: Place, token: int, memory: Int64Array) -> int:
        """What the kernel of that name gives, grown as it asks, and without stops; 0 if the token is not allowed.

        The caller holds the lock.
        """
        result: int = push_token_unchecked(self.ctx, cursor._state, token, memory)
        if result >= 0 or result == REPEATED_KEY:
            return result
        result = self.run_at(cursor, push_token, token, memory)
        if result != STOPPED:
            return result
        traveller = Traveller(self, cursor._state, cursor._parent)
        traveller.read(self.vocabulary.tokens[token])
        unread = 0 if memory is NO_KEYS else KEYS_UNREAD
        return traveller._state and traveller._state | traveller.key_ended | unread

    # -- what depends on the text -------------------------------------------------------------

    def lexeme(self, index: int) -> tuple[str, Regular]:
        """The name and the language of a lexeme: one of the grammar's, or beyond them one that was made for a text."""
        known = len(self.ir.lexemes)
        if index < known:
            return self.ir.lexeme_names[index], self.ir.lexemes[index]
        assert self._unfolded is not None
        return self._unfolded.lexeme(index - known)

    def stopped_at(self) -> tuple[int, int, int]:
        """The open state at which the last kernel stopped, how many bytes it had read, and KEY_ENDED and such."""
        state = int(self.ctx[OPEN_STATE])
        return state, int(self.ctx[OPEN_AT]), int(self._tables.array(STATE_KEYS)[state]) << KEYS_SHIFT

    def close(self, place: Place, text: Callable[[int], bytes]) -> int:
        """The state that a place's open state is after its text; ``text(n)`` are its last ``n`` bytes at least."""
        assert self._unfolded is not None
        dots = np.empty(64, np.int32)
        count = states.open_dots(self.ctx, place._state, dots)
        if count > len(dots):
            dots = np.empty(count, np.int32)
            states.open_dots(self.ctx, place._state, dots)
        pairs = self._unfolded.close(sorted(set(dots[:count].tolist())), text)
        return self.run_at(place, states.close_state, *pairs)

    def _start_over(self) -> None:
        """Drop all rules that were unfolded, and with them all tables; texts are read again."""
        places = [place for place in self.cursors if place._state > 0]
        self._begin()
        try:
            for place in places:
                self.find(place)
        except TablesFullError:
            # Those that have not been found are, when they are used.
            self._begin()
        # As often as it pays.
        self._start_over_above = max(self._start_over_above, 2 * self._bytes_of_rules())

    def compact(self) -> None:
        """Keep of all tables what places are at, and were at in their last steps, and nothing else."""
        from constrain.engine.parser.transplant import Transplant  # for grammars at their limit

        places = [place for place in self.cursors if place._state != LOST]
        links = LinksKept(places, self.generation, STEPS_KEPT)
        at = {place: place._state for place in places}
        alive = sorted({state for state in (*at.values(), *links.states()) if state > 0})
        try:
            alive_parts = Transplant(self._tables, alive)
        except TablesFullError:
            self._compact_above = self._limit_bytes  # nor will it be less
            return
        self._begin()
        start_state, self.start_state = self.start_state, 0  # so that nothing is collected meanwhile
        try:
            numbers = alive_parts.plant(self._run, self._tables)
        except TablesFullError:
            # Places are lost now, and have to read their texts again.
            self._begin()
            raise
        self.start_state = start_state
        numbers |= {state: state for state in (0, ENDED)}
        done: dict[int, Link] = {}
        for place, state in at.items():
            place._state = numbers[state]
            links.renumber(place, self.generation, numbers, done)
        self._compact_above = max(self._limit_bytes // 2, (self._tables.nbytes + self._limit_bytes) // 2)

    def _bytes_of_rules(self) -> int:
        """Memory of what is never forgotten but by starting over."""
        return self._tables.nbytes - self.mask_bytes - self._tables.bytes_of(BY_ROW_OR_STATE)

    def accepts(self, cursor: Place) -> bool:
        """Whether a cursor's text is a sentence.  The caller holds the lock."""
        return bool(states.accepts(self.ctx, cursor._state))

    # -- memory ------------------------------------------------------------------------------

    def _make_room(self, collected: int) -> int:
        """Make room in the table that the last kernel found too small; takes and returns what was collected for it."""
        tables = self._tables
        slot, extra = tables.wanted()
        if not self.start_state:
            collected = _ALL  # there is nothing to compact yet
        # Before it doubles: is there more in these tables than may be?
        if (
            collected == _NOTHING
            and slot in BY_ROW_OR_STATE
            and tables.bytes_of((*BY_ROW_OR_STATE, slot)) > self._collect_above
        ):
            self._collect(STEPS_KEPT)
            collected = _SOME
            # As often as it pays: when as much again has been added as there is now.
            self._collect_above = max(self._collect_above, 2 * tables.bytes_used(BY_ROW_OR_STATE))
            if not tables.is_crowded(slot, extra):
                return collected
        try:
            tables.grow()
        except TablesFullError:
            if collected == _ALL:
                raise
            self._collect(0)
            collected = _ALL
            # First as much room as pays, then as much as there is.
            for spare in (1, _LITTLE):
                tables.shrink(BY_ROW_OR_STATE, spare)
                with contextlib.suppress(TablesFullError):
                    tables.grow()
                    return collected
            raise
        return collected

    def _collect(self, steps: int) -> None:
        """Forget what no cursor is at, or has been at in its last ``steps`` steps; all others get new numbers."""
        from constrain.engine.parser.compaction import compact

        cursors = [cursor for cursor in self.cursors if cursor._state != LOST]
        links = LinksKept(cursors, self.generation, steps)
        live = np.zeros(self._tables.used(STATE_HASHES), np.uint8)
        live[self.start_state] = 1
        live[[cursor._state for cursor in cursors if cursor._state > 0]] = 1
        live[links.states()] = 1
        numbers = np.empty(len(live), np.int32)
        compact(self.ctx, live, numbers, np.empty(self._tables.used(EARLEY_SET_HASHES), np.int32))
        self.start_state = int(numbers[self.start_state])
        self.generation += 1
        done: dict[int, Link] = {}
        for cursor in cursors:
            if cursor._state > 0:
                cursor._state = int(numbers[cursor._state])
            links.renumber(cursor, self.generation, numbers, done)

    # -- what is in it -----------------------------------------------------------------------

    def recognizer(self) -> Recognizer:
        """A recognizer at the start of the grammar."""
        return Recognizer(self)

    @property
    def mask_bytes(self) -> int:
        """Memory of the remembered masks, in bytes."""
        tables = self._tables
        return sum(tables.get(slot).nbytes for slot in _MASK_SLOTS)

    @property
    def nbytes(self) -> int:
        """Memory of all tables, in bytes (without the vocabulary's, which are shared)."""
        return self._tables.nbytes

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
