"""Masks for a whole batch in one call.

Rows whose mask is known, nearly all in a long generation, are written by one kernel call for all
of them, and so are masks that are quickly made.  The others are made grammar by grammar, so that a
slow mask holds the lock of its own grammar alone.  For a short time the calling thread makes them
by itself: to wake another thread, and to take turns with it for the GIL, takes longer than most
steps need.  What is left then is shared among several threads if asked for: kernels run without the
GIL.
"""

from __future__ import annotations

import contextlib
import math
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

from constrain.engine.compiled_grammar import CompiledGrammar
from constrain.engine.kept_threads import KeptThreads, Work
from constrain.engine.masks.known_batches import ALL, KNOWN, QUICK, write_masks
from constrain.engine.masks.members import NO_TABLES_AT, Int64Array, Members, list_matchers, members_of
from constrain.engine.matcher import Matcher
from constrain.engine.parser.configurations import LOST
from constrain.engine.storage.tables import NO_TABLES
from constrain.engine.vocabulary.bitmasks import Bitmask
from constrain.engine.vocabulary.mask_rows import MaskRows, check_bitmask
from constrain.errors import ConstrainError

Result = TypeVar("Result")

_SECONDS_ALONE = 1e-3
"""How long the calling thread makes masks alone before others help."""


def fill_next_token_bitmask_batch(
    matchers: Sequence[Matcher], mask: Any, *, indices: Sequence[int] | None = None, threads: int = 1
) -> None:
    """Write the set of tokens that may come next for every matcher; as :meth:`Matcher.fill_next_token_bitmask` each.

    Parameters
    ----------
    matchers : sequence of Matcher
        Of one grammar or of several, for vocabularies of one size.
    mask : int32[batch, ceil(vocab_size / 32)]
        As for one matcher: a numpy array or torch tensor, which may be wider or a part of a larger array.
    indices : sequence of int, optional
        The row for each matcher; by default the matcher's position.  Other rows stay as they are.
    threads : int
        How many threads may work on it, the calling one included.  Masks that are new are computed
        by one thread for each distinct compiled grammar, so more threads help with several grammars.

    Raises
    ------
    ConstrainError
        If the mask's dtype or shape is wrong, it is read-only, an index is out of range or there twice, or
        something else than matchers for that vocabulary is given; nothing is written then.
    LimitError
        As for one matcher.  The rows of the others are written.

    Notes
    -----
    No matcher of the batch may be used by another thread meanwhile; their compiled grammars may.
    """
    sequences = list_matchers(matchers)
    if not sequences:
        return
    members = members_of(sequences, threads)
    rows, out = _check_rows(sequences, mask, indices)
    if out.is_direct:
        _write(sequences, members, rows, out.array, threads)
        return
    # What a row was is what it is again if its mask cannot be made.
    apart = out.get(rows.tolist(), sequences[0]._words)
    try:
        _write(sequences, members, np.arange(len(sequences), dtype=np.int64), apart, threads)
    finally:
        out.put(rows.tolist(), apart)


def _write(matchers: list[Matcher], members: Members, rows: Int64Array, out: Bitmask, threads: int) -> None:
    """Write the rows of a mask that kernels can write to."""
    left, new = hold_locks(members.distinct, lambda busy: _write_together(matchers, members.contexts(busy), rows, out))
    # Where none of them is new, all that is left are known masks from which conditions take tokens.
    fill = _fill if new else _write_one_by_one
    jobs = [partial(fill, matchers, positions, rows, out) for positions in by_grammar(members.grammars, left)]
    run_jobs(jobs, threads, seconds_alone=_SECONDS_ALONE)


def by_grammar(grammars: list[CompiledGrammar], positions: list[int]) -> list[list[int]]:
    """Some positions of a batch, those of one grammar together."""
    jobs: dict[CompiledGrammar, list[int]] = {}
    for position in positions:
        jobs.setdefault(grammars[position], []).append(position)
    # The longest first, so that none is left to one thread at the end.
    return sorted(jobs.values(), key=len, reverse=True)


def _check_rows(matchers: list[Matcher], mask: Any, indices: Sequence[int] | None) -> tuple[Int64Array, MaskRows]:
    out = check_bitmask(mask, 0, matchers[0]._words)
    count, height = len(matchers), out.array.shape[0]
    if indices is None:
        if count > height:
            raise ConstrainError(f"the mask has {height} rows for {count} matchers")
        return np.arange(count, dtype=np.int64), out
    rows = np.asarray(indices)
    if rows.shape != (count,) or not np.issubdtype(rows.dtype, np.integer):
        raise ConstrainError(f"indices must be one integer for each of the {count} matchers")
    rows = rows.astype(np.int64)
    outside = rows[(rows < 0) | (rows >= height)]
    if len(outside):
        raise ConstrainError(f"mask row {outside[0]} is out of range, the mask has {height} rows")
    if len(np.unique(rows)) < count:
        raise ConstrainError("indices names a row twice")
    return rows, out


def hold_locks(distinct: list[CompiledGrammar], call: Callable[[set[CompiledGrammar]], Result]) -> Result:
    """What ``call`` returns under the locks of some grammars, but for those that are *busy*, which it is given.

    Busy are grammars whose lock another thread has, and those that have no tables at the moment.
    """
    try:
        try:
            # Without waiting, since waiting while holding other locks could wait for ever.
            busy = {
                grammar for grammar in distinct if not grammar.lock.acquire(blocking=False) or grammar.ctx is NO_TABLES
            }
            return call(busy)
        finally:
            _release(distinct)
    except BaseException:
        # It may have come while locks were released.
        _release(distinct)
        raise


def _release(grammars: list[CompiledGrammar]) -> None:
    for grammar in grammars:
        if grammar.lock._is_owned():
            grammar.lock.release()


def _write_together(
    matchers: list[Matcher], contexts: Int64Array, rows: Int64Array, out: Bitmask
) -> tuple[list[int], bool]:
    """Write what is known, and make the masks that are quickly made.

    The caller holds the locks of all grammars whose tables are among ``contexts``.  Returns the positions of the
    others, and whether there are masks among them that are not known.
    """
    states, restricted = _states_of(matchers, contexts)
    missing = _fill_known(contexts, states, rows, out)
    if len(missing) > restricted:
        missing = missing[_make([matchers[i] for i in missing], contexts[missing], rows[missing], out, QUICK)]
    return missing.tolist(), len(missing) > restricted


def _states_of(matchers: list[Matcher], contexts: Int64Array) -> tuple[Int64Array, int]:
    """The states whose masks are those of the matchers, LOST where conditions take something away; how many these are.

    The caller holds the locks.
    """
    states = [matcher._state for matcher in matchers]
    notes = [matcher._note for matcher in matchers]
    restricted = 0
    if any(notes):
        for place in np.flatnonzero(notes).tolist():
            if contexts[place] != NO_TABLES_AT and not matchers[place]._has_plain_mask():
                states[place] = LOST
                restricted += 1
    return np.fromiter(states, np.int64, len(states)), restricted


def _fill_known(contexts: Int64Array, states: Int64Array, rows: Int64Array, out: Bitmask) -> Int64Array:
    """Write the rows that are known; the positions of the others.  Metrics count these (constrain/metrics.py)."""
    return _write_rows(contexts, states, rows, out, KNOWN)


def _make(matchers: list[Matcher], contexts: Int64Array, rows: Int64Array, out: Bitmask, which: int) -> Int64Array:
    """Write what masks can be made without more room; the positions of the others.  The caller holds the locks."""
    able = {matcher.compiled for matcher, context in zip(matchers, contexts, strict=True) if context != NO_TABLES_AT}
    try:
        for compiled in able:
            compiled.share_scratch()
        return _write_rows(contexts, _states_of(matchers, contexts)[0], rows, out, which)
    except BaseException:
        # As in transaction.py.
        for compiled in able:
            compiled.ctx = NO_TABLES
        raise


def _write_rows(contexts: Int64Array, states: Int64Array, rows: Int64Array, out: Bitmask, which: int) -> Int64Array:
    """Write rows in one call of a kernel; the positions of those that it has not written."""
    found = np.empty(len(states), np.int64)
    return found[: write_masks(contexts, states, rows, which, out, found)]


def _fill(matchers: list[Matcher], positions: list[int], rows: Int64Array, out: Bitmask) -> None:
    """Write the masks of some sequences of one grammar, making those that are not known."""
    compiled = matchers[positions[0]].compiled
    chosen, places = [matchers[position] for position in positions], rows[positions]

    def make(busy: set[CompiledGrammar]) -> list[int]:
        address = NO_TABLES_AT if busy else compiled.context_address
        return _make(chosen, np.full(len(chosen), address), places, out, ALL).tolist()  # type: ignore[no-any-return]

    _write_one_by_one(chosen, hold_locks([compiled], make), places, out)


def _write_one_by_one(matchers: list[Matcher], positions: list[int], rows: Int64Array, out: Bitmask) -> None:
    run_jobs([partial(matchers[place].fill_next_token_bitmask, out, int(rows[place])) for place in positions], 1)


# -- threads ---------------------------------------------------------------------------------

# Jobs beyond this many are done by the threads there are.
_threads = KeptThreads(64, "constrain")


def run_jobs(jobs: Sequence[Callable[[], None]], threads: int, *, seconds_alone: float = 0) -> None:
    """Run all jobs; then raise the first error of any.

    For ``seconds_alone`` this thread begins them alone.  After that up to ``threads`` threads do, this one included.
    """
    pending = deque(jobs)
    errors: list[Exception] = []

    def work(end: float = math.inf) -> None:
        while perf_counter() < end:
            try:
                job = pending.popleft()
            except IndexError:
                return
            try:
                job()
            except Exception as error:
                errors.append(error)

    helping: list[Work] = []
    try:
        work(perf_counter() + seconds_alone)
        most = min(threads, len(pending)) - 1
        # At the interpreter's end no thread can be started any more; then this one does it all.
        with contextlib.suppress(RuntimeError):
            while len(helping) < most:
                helping.append(Work(work))
                _threads.submit(helping[-1])
        work()
    finally:
        # After an interrupt too, nothing may write to the caller's mask once this has returned.
        pending.clear()
        for helper in helping:
            if not helper.cancel():
                helper.wait()
    if errors:
        raise errors[0]
