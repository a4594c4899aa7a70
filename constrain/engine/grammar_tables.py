"""GrammarTables: all that is known of a grammar for one vocabulary, filled in as kernels ask.

Kernels return a status where a table has to grow, a rule has to be made or too much work was done; here they are run
until they return a result.  Before tables grow past their limit, what no text is at is forgotten
(parser/compaction.py), and where that is not enough, what is alive is planted into new tables (parser/transplant.py).
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from threading import get_ident
from typing import Any, TypeVar

import numpy as np

from constrain import limits
from constrain.arguments import check_bytes
from constrain.engine.automata.prelude import prelude_for
from constrain.engine.history import STEPS_KEPT, Link, LinksKept, Place
from constrain.engine.loading import load_grammar, too_long
from constrain.engine.masks import accelerators as fast
from constrain.engine.masks import state_masks  # noqa: F401 (through pointers, which tables get as they are made)
from constrain.engine.parser import configurations as states
from constrain.engine.parser.compaction import compact
from constrain.engine.parser.configurations import ENDED, LOST, NO_MASK
from constrain.engine.parser.rules_on_demand import UnfoldedRules
from constrain.engine.parser.transplant import Transplant
from constrain.engine.reentry import call_out
from constrain.engine.storage import schemas as t
from constrain.engine.storage.header import BUDGET, INNER_BLANKS, LONGEST, MOST_ELEMENTS, N_WORDS
from constrain.engine.storage.statuses import FAIL, LIMIT, UNMADE
from constrain.engine.storage.tables import EMPTY, NO_TABLES, Beginning, Tables, TablesFullError, beginning
from constrain.engine.vocabulary.bitmasks import words_for
from constrain.engine.vocabulary.vocabulary import Vocabulary
from constrain.forking import renew_in_child
from constrain.grammar.ir import GrammarIR
from constrain.grammar.languages.regular import Regular

Kept = TypeVar("Kept")

DEFAULT_LIMIT_BYTES = 1 << 30
DEFAULT_MASK_LIMIT_BYTES = 128 << 20

# Tables of Earley sets and states may take this much before those that no text is at are looked for.
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

MASK_SLOTS = (t.DENSE_MASKS, t.TOKEN_LISTS, t.BOUNDARIES, t.SOURCE_NODES)


def _mask_capacities(words: int) -> tuple[tuple[int, int], ...]:
    """How many elements the tables of masks have room for at first; ``words`` are those of a mask."""
    return (t.DENSE_MASKS, 8 * words), (t.TOKEN_LISTS, 16 * words), (t.BOUNDARIES, 4096), (t.SOURCE_NODES, 256)


@lru_cache(maxsize=64)
def _beginning(words: int, longest: int, inner_blanks: int) -> Beginning:
    """What all grammars of a vocabulary begin with: words of a mask, bytes of the longest token, blanks within one."""
    stacks = (t.SCRATCH_MASK, words), (t.WALK_STACK, longest + 2), (t.WIDE_STACK, longest + 2)
    header = (BUDGET, _WORK_PER_CALL), (N_WORDS, words), (LONGEST, longest), (INNER_BLANKS, inner_blanks)
    return beginning((*stacks, *_mask_capacities(words)), header)


class GrammarTables:
    """The tables of a grammar for a vocabulary, and the lock that guards them; for parameters see CompiledGrammar.

    Attributes
    ----------
    ctx : int64[...]
        What kernels get: the header of the tables; NO_TABLES after an exception that leaves them in doubt.
    cursors : set of Place
        All that hold the number of a state.
    generation : int
        Raised when states get new numbers.
    tables_made : int
        Raised when all else does too.
    spelled_ids : frozenset of int
        The tokens that stand for themselves, if the grammar names some (vocabulary/token_spellings.py).
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
        limit_bytes = check_bytes("limit_bytes", limit_bytes)
        mask_limit_bytes = check_bytes("mask_limit_bytes", mask_limit_bytes)
        self.accelerators = fast.names_in_use(accelerators)
        if ir.parse_table is not None:
            # They know nothing of guards and of the lexer's order (automata/longest_match.py).
            self.accelerators = ()
        self.ir = ir
        self.vocabulary = vocabulary
        self.spelled_ids = vocabulary.spelled_ids
        # More than that does not fit into a table (MOST_ELEMENTS).
        self.mask_limit_bytes = min(mask_limit_bytes, 4 * MOST_ELEMENTS)
        # One that knows its owner: where every token takes it, it is taken within `try`, which takes half the time that
        # `with` does, and may be interrupted before.
        self.lock: Any = threading.RLock()
        self.cursors: weakref.WeakSet[Place] = weakref.WeakSet()
        # What adds to new tables.
        self._table_makers: list[Callable[[Any], None]] = []
        self._kept: dict[Callable[[Any], Any], Any] = {}
        self.ctx = NO_TABLES
        self.generation = -1
        self.tables_made = 0
        self._collect_above = _COLLECT_BYTES
        self._words = words_for(vocabulary.size)
        self._limit_bytes = limit_bytes
        # Where a table doubles there should be room for it.
        self._compact_above = limit_bytes // 2
        self._start_over_above = min(_START_OVER_BYTES, limit_bytes // 2)
        renew_in_child(self)
        self.begin()

    def _renew_after_fork(self) -> None:
        """Nobody will release a lock that another thread held, or finish what it was doing."""
        if self.lock.acquire(blocking=False):
            self.lock.release()
        else:
            self.ctx = NO_TABLES
            self.lock = threading.RLock()

    # -- what others keep here -----------------------------------------------------------------

    def kept(self, make: Callable[[Any], Kept]) -> Kept:
        """What is the same for all texts of the grammar, for those that work on them: ``make(self)``, once.

        The caller holds the lock.
        """
        if make not in self._kept:
            self._kept[make] = make(self)
        found: Kept = self._kept[make]
        return found

    def extend_tables(self, make: Callable[[Any], None]) -> None:
        """Have ``make(self)`` add to the tables, now and whenever there are new ones.  The caller holds the lock."""
        if make not in self._table_makers:
            make(self)
            self._table_makers.append(make)

    # -- beginning ---------------------------------------------------------------------------

    def begin(self) -> None:
        """Make the tables and the start state.

        Whoever holds a number of earlier ones has to find another one, in the generation that begins here.
        """
        self.ctx = NO_TABLES
        for place in list(self.cursors) if self.tables_made else ():
            if place._state > 0:
                place._state = LOST
        self.generation += 1
        self.tables_made += 1
        self.start_state = 0
        # Scratch memory, and of which thread; it is kept, since the next thread may have the number of one that ended.
        self.thread = 0
        self._scratch: Any = None
        self.unfolded: UnfoldedRules | None = None
        longest = self.vocabulary.trie.depth
        stock = None if self.ir.stock is None else prelude_for(self.ir.stock, longest)
        snapshot = EMPTY if stock is None else stock.snapshot
        without = fast.links_without(self.accelerators)
        begin = _beginning(self._words, longest, self.vocabulary.inner_blanks)
        tables = Tables(self._limit_bytes, self.vocabulary.shared_tables, snapshot, without, begin)
        self._tables, self.ctx, self.context_address = tables, tables.ctx, tables.context_address
        try:
            self.unfolded = call_out(
                self, load_grammar, tables, self._run, self.ir, stock, self.vocabulary.longest_behind
            )
            self.start_state = self._run(states.make_start_state)
            for make in self._table_makers:
                make(self)
        except BaseException:
            # A refusal leaves the tables of a grammar as they are, and these are no whole ones.
            self.ctx = NO_TABLES
            raise

    def _allocate_masks(self) -> None:
        for slot, capacity in _mask_capacities(self._words):
            self._tables.allocate(slot, capacity)

    # -- running kernels ---------------------------------------------------------------------

    def _run(self, kernel: Callable[..., int], *args: Any) -> int:
        return self._repeat(lambda: kernel(self.ctx, *args))

    def run_at(self, place: Any, kernel: Callable[..., int], *args: Any) -> int:
        """Run a kernel at a place's state, growing tables as it asks.  The caller holds the lock.

        The state may have another number afterwards, and so may all others but the result.

        Raises
        ------
        LimitError
            If the tables would grow past ``limit_bytes``, or a pattern takes too long to follow.
        """
        # Kernels do not check numbers.
        assert place._state >= 0
        return self._repeat(lambda: kernel(self.ctx, place._state, *args))

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
                assert self.unfolded is not None
                self.unfolded.unfold()
            elif result == LIMIT:
                raise too_long()
            else:
                return result

    def share_scratch(self) -> None:
        """Let kernels use the work space that the vocabulary has for this thread.  The caller holds the lock."""
        if get_ident() == self.thread:
            return
        address, size, self._scratch = self.vocabulary.scratch()
        self._tables.share(t.FOUND_TOKENS, address, size)
        self.thread = get_ident()

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
            and slot in t.BY_SET_OR_STATE
            and tables.bytes_of((*t.BY_SET_OR_STATE, slot)) > self._collect_above
        ):
            used = {each: tables.used(each) for each in t.BY_SET_OR_STATE}
            before = tables.bytes_used(t.BY_SET_OR_STATE)
            self._collect(STEPS_KEPT, keeps_masks=self.ir.parse_table is not None)
            if self.ir.parse_table is not None and 2 * tables.bytes_used(t.BY_SET_OR_STATE) > before:
                self._collect(STEPS_KEPT)
            tables.want(slot, extra)
            after = tables.bytes_used(t.BY_SET_OR_STATE)
            collected = _SOME
            # As often as it pays: when as much again has been added as there is now.
            if 2 * after <= before:
                tables.keep_room(used)
                self._collect_above = max(self._collect_above, 2 * after)
            else:
                # Most of it is still needed.  Tables have more room than that, which is not to be taken for more of it.
                self._collect_above = max(self._collect_above, 2 * tables.bytes_of(t.BY_SET_OR_STATE))
            if not tables.is_crowded(slot, extra):
                return collected
        try:
            tables.grow()
        except TablesFullError:
            if collected == _ALL:
                raise
            self._collect(0)
            collected = _ALL
            # Not as much as before: what other tables need, too, has to come from what was given up.
            tables.want(slot, extra)
            # First as much room as pays, then as much as there is.
            for spare in (1, _LITTLE):
                tables.shrink(t.BY_SET_OR_STATE, spare)
                with contextlib.suppress(TablesFullError):
                    tables.grow()
                    return collected
            raise
        return collected

    @contextlib.contextmanager
    def keeping_numbers(self) -> Iterator[None]:
        """Forget nothing meanwhile, but where memory ends: for what reads a text again and holds its Earley sets.

        Afterwards as much again may be added, so that a text is not read again for each of its steps.
        """
        before, self._collect_above = self._collect_above, self._limit_bytes
        try:
            yield
        finally:
            # Within such a time nothing was forgotten before either.
            if before != self._limit_bytes:
                self._collect_above = max(before, 2 * self._tables.bytes_used(t.BY_SET_OR_STATE))

    def _collect(self, steps: int, *, keeps_masks: bool = False) -> None:
        """Forget what no cursor is at, or has been at in its last ``steps`` steps; all others get new numbers.

        ``keeps_masks``: states whose masks are known stay too.  The stacks of an LALR parser come back, while most
        stacks were made for tokens that a mask has looked at and no text has taken.
        """
        cursors = [cursor for cursor in self.cursors if cursor._state != LOST]
        links = LinksKept(cursors, self.generation, steps)
        live = np.zeros(self._tables.used(t.STATE_HASHES), np.uint8)
        live[self.start_state] = 1
        if keeps_masks:
            live[self._tables.array(t.STATE_MASKS)["dense"][: len(live)] != NO_MASK] = 1
        live[[cursor._state for cursor in cursors if cursor._state > 0]] = 1
        live[links.states()] = 1
        numbers = np.empty(len(live), np.int32)
        compact(self.ctx, live, numbers, np.empty(self._tables.used(t.EARLEY_SET_HASHES), np.int32))
        self.start_state = int(numbers[self.start_state])
        self.generation += 1
        done: dict[int, Link] = {}
        for cursor in cursors:
            if cursor._state > 0:
                cursor._state = int(numbers[cursor._state])
            links.renumber(cursor, self.generation, numbers, done)

    def compact_if_due(self) -> None:
        """Give up expressions and lexer states that no place needs, if there are too many.  The caller holds the lock.

        Lexer states get other numbers, as states do.  After a TablesFullError all places are lost.
        """
        if self.is_large and self.can_compact:
            self.compact()

    @property
    def is_large(self) -> bool:
        """Whether the tables take as much memory that some of it should be given up."""
        return self._tables.nbytes > self._compact_above

    @property
    def can_compact(self) -> bool:
        """Whether :meth:`compact` is possible.

        Rules that were made for texts cannot be given up while texts stay; and the stacks of an LALR parser name accept
        sets, which get other numbers.
        """
        return self.unfolded is None and self.ir.parse_table is None

    def compact(self) -> None:
        """Keep of all tables what places are at, and were at in their last steps, and nothing else."""
        places = [place for place in self.cursors if place._state != LOST]
        links = LinksKept(places, self.generation, STEPS_KEPT)
        at = {place: place._state for place in places}
        alive = sorted({state for state in (*at.values(), *links.states()) if state > 0})
        try:
            alive_parts = Transplant(self._tables, alive)
        except TablesFullError:
            self._compact_above = self._limit_bytes  # nor will it be less
            return
        self.begin()
        start_state, self.start_state = self.start_state, 0  # so that nothing is collected meanwhile
        try:
            numbers = alive_parts.plant(self._run, self._tables)
        except TablesFullError:
            # Places are lost now, and have to read their texts again.
            self.begin()
            raise
        self.start_state = start_state
        numbers |= {state: state for state in (0, ENDED)}
        done: dict[int, Link] = {}
        for place, state in at.items():
            place._state = numbers[state]
            links.renumber(place, self.generation, numbers, done)
        self._compact_above = max(self._limit_bytes // 2, (self._tables.nbytes + self._limit_bytes) // 2)

    @property
    def is_worn(self) -> bool:
        """Whether rules that were made for texts, and what belongs to them, take more than pays to keep."""
        # Every call asks, so what costs nothing comes first: rules are a part of all tables.
        most = self._start_over_above
        return self.unfolded is not None and self._tables.nbytes > most and self._bytes_of_rules() > most

    def note_start_over(self) -> None:
        """The tables were begun anew since they were worn; how soon that may be so again."""
        # As often as it pays.
        self._start_over_above = max(self._start_over_above, 2 * self._bytes_of_rules())

    def _bytes_of_rules(self) -> int:
        """Memory of what is never forgotten but by starting over."""
        return self._tables.nbytes - self.mask_bytes - self._tables.bytes_of(t.BY_SET_OR_STATE)

    @property
    def limit_bytes(self) -> int:
        """What the tables may take, in bytes."""
        return self._tables.limit_bytes

    @property
    def bytes_of_texts(self) -> int:
        """Memory of what was found out about texts, in bytes; what no text needs may be forgotten."""
        return self._tables.bytes_used(t.BY_SET_OR_STATE)

    @property
    def mask_bytes(self) -> int:
        """Memory of the remembered masks, in bytes."""
        tables = self._tables
        return sum(tables.get(slot).nbytes for slot in MASK_SLOTS)

    @property
    def nbytes(self) -> int:
        """Memory of all tables, in bytes (without the vocabulary's, which are shared)."""
        return self._tables.bytes_in_memory

    # -- what is in it -----------------------------------------------------------------------

    def accepts(self, place: Place) -> bool:
        """Whether a place's text is a sentence.  The caller holds the lock."""
        return bool(states.accepts(self.ctx, place._state))

    def only_lexer_state(self, place: Place) -> int | None:
        """The lexer state of a place, if it has one configuration.  The caller holds the lock."""
        record = self._tables.array(t.STATES)[place._state]
        if record["count"] != 1:
            return None
        return int(self._tables.array(t.CONFIGURATIONS)[record["offset"]]["lexer_state"])

    def lexeme(self, index: int) -> tuple[str, Regular]:
        """The name and the language of a lexeme: one of the grammar's, or beyond them one that was made for a text."""
        known = len(self.ir.lexemes)
        if index < known:
            return self.ir.lexeme_names[index], self.ir.lexemes[index]
        assert self.unfolded is not None
        return self.unfolded.lexeme(index - known)
