"""Masks for a whole batch in one call.

Rows whose mask is known, nearly all in a long generation, are written by one kernel call for all
of them.  The others are computed on several threads if asked for: kernels run without the GIL.  A
compiled grammar is entered by one thread at a time, so it is the distinct grammars of a batch that
are shared out among the threads.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import numpy as np

from constrain.engine.compiled_grammar import CompiledGrammar
from constrain.engine.mask_memo import publish_new
from constrain.engine.masks.known_batches import write_masks
from constrain.engine.matcher import Matcher
from constrain.engine.parser.configurations import LOST
from constrain.engine.storage.tables import NO_TABLES, array_address
from constrain.engine.transaction import transact
from constrain.engine.vocabulary.bitmasks import Bitmask
from constrain.engine.vocabulary.mask_rows import MaskRows, check_bitmask
from constrain.errors import ConstrainError
from constrain.forking import call_in_child

Int64Array = np.ndarray[Any, np.dtype[np.int64]]

Result = TypeVar("Result")

_NO_TABLES_AT = array_address(NO_TABLES)


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
    grammars = check_matchers(sequences, threads)
    rows, out = _check_rows(sequences, mask, indices)
    if out.is_direct:
        _write(sequences, grammars, rows, out.array, threads)
        return
    # What a row was is what it is again if its mask cannot be made.
    apart = out.get(rows.tolist(), sequences[0]._words)
    try:
        _write(sequences, grammars, np.arange(len(sequences), dtype=np.int64), apart, threads)
    finally:
        out.put(rows.tolist(), apart)


def _write(
    sequences: list[Matcher], grammars: list[CompiledGrammar], rows: Int64Array, out: Bitmask, threads: int
) -> None:
    """Write the rows of a mask that kernels can write to."""
    missing = hold_locks(grammars, lambda busy: _fill_known(sequences, grammars, rows, out, busy))
    if missing:
        jobs = [
            partial(_fill, [sequences[position] for position in positions], rows[positions], out)
            for positions in by_grammar(grammars, missing)
        ]
        run_jobs(jobs, threads)


def by_grammar(grammars: list[CompiledGrammar], positions: list[int]) -> list[list[int]]:
    """Some positions of a batch, those of one grammar together."""
    jobs: dict[CompiledGrammar, list[int]] = {}
    for position in positions:
        jobs.setdefault(grammars[position], []).append(position)
    # The longest first, so that none is left to one thread at the end.
    return sorted(jobs.values(), key=len, reverse=True)


def list_matchers(matchers: Iterable[Matcher]) -> list[Matcher]:
    """The matchers of a batch.  Raises ConstrainError for what is no batch, such as one of them."""
    try:
        return list(matchers)
    except TypeError:
        raise ConstrainError(f"matchers must be a list of Matcher, not {type(matchers).__name__}") from None


def check_matchers(matchers: list[Matcher], threads: int = 1) -> list[CompiledGrammar]:
    """The grammar of each matcher.

    Raises
    ------
    ConstrainError
        If they are no batch: see :func:`fill_next_token_bitmask_batch`.
    """
    if type(threads) is not int or threads < 1:
        raise ConstrainError(f"threads must be an integer of at least 1, not {threads!r}")
    for kind in set(map(type, matchers)):
        if not issubclass(kind, Matcher):
            wrong = next(position for position, matcher in enumerate(matchers) if type(matcher) is kind)
            raise ConstrainError(f"entry {wrong} of the batch is {kind.__name__}, not a Matcher")
    grammars = [matcher.compiled for matcher in matchers]
    sizes = {grammar.vocabulary.size for grammar in set(grammars)}
    if len(sizes) > 1:
        raise ConstrainError(f"a batch needs one vocabulary: these have sizes {sorted(sizes)}")
    return grammars


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


def hold_locks(grammars: list[CompiledGrammar], call: Callable[[set[CompiledGrammar]], Result]) -> Result:
    """What ``call`` returns under the locks of all these grammars, but for those that are *busy*, which it is given.

    Busy are grammars whose lock another thread has, and those that have no tables at the moment.
    """
    distinct = list(dict.fromkeys(grammars))
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


def _fill_known(
    matchers: list[Matcher],
    grammars: list[CompiledGrammar],
    rows: Int64Array,
    out: Bitmask,
    busy: set[CompiledGrammar],
) -> list[int]:
    """Write the rows that are known, under the locks of grammars that are not ``busy``; the places of the others."""
    return _write_rows(matchers, contexts_of(grammars, busy), rows, out, False)


def _write_rows(
    matchers: list[Matcher], contexts: Int64Array, rows: Int64Array, out: Bitmask, may_make: bool
) -> list[int]:
    """Write rows in one call of a kernel; the places of those that it has not written.

    The caller holds the locks of all grammars whose tables are among ``contexts``.
    """
    states = [matcher._state for matcher in matchers]
    # Masks of a grammar are not those of a matcher whose conditions have a note.
    for place, matcher in enumerate(matchers):
        if matcher._note and contexts[place] != _NO_TABLES_AT and not matcher._has_plain_mask():
            states[place] = LOST
    count = len(matchers)
    found = np.empty(count, np.int64)
    missing = write_masks(contexts, np.fromiter(states, np.int64, count), rows, may_make, out, found)
    return found[:missing].tolist()  # type: ignore[no-any-return]


def contexts_of(grammars: list[CompiledGrammar], busy: set[CompiledGrammar]) -> Int64Array:
    """The address of each grammar's ``ctx``, for kernels: int64[n].  In a busy one no state is known."""
    found = [grammar.context_address for grammar in grammars]
    if busy:
        found = [
            _NO_TABLES_AT if grammar in busy else address for grammar, address in zip(grammars, found, strict=True)
        ]
    return np.fromiter(found, np.int64, len(found))


def _fill(matchers: list[Matcher], rows: Int64Array, out: Bitmask) -> None:
    """Write the masks of some sequences of one grammar, making those that are not known."""
    # One call of a kernel for all, since many are at the same place at first.  What it has not written takes more.
    missing = transact(matchers[0], _make, matchers, rows, out, finds=False)
    run_jobs([partial(matchers[place].fill_next_token_bitmask, out, int(rows[place])) for place in missing], 1)


def _make(matchers: list[Matcher], rows: Int64Array, out: Bitmask) -> list[int]:
    """Write what masks of a grammar can be made without more room; the places of the others.

    The caller holds the lock.
    """
    compiled = matchers[0].compiled
    compiled.share_scratch()
    missing = _write_rows(matchers, contexts_of([compiled] * len(matchers), set()), rows, out, True)
    publish_new(compiled)
    return missing


# -- threads ---------------------------------------------------------------------------------

# Threads are started when they are first needed; jobs beyond this many are done by the threads there are.
_MOST_HELPERS = 64
_pool: ThreadPoolExecutor | None = None
_pool_lock = threading.Lock()


@call_in_child
def _forget_pool() -> None:
    """After a fork the child has no threads."""
    global _pool, _pool_lock
    _pool, _pool_lock = None, threading.Lock()


def _helpers() -> ThreadPoolExecutor:
    """The threads that are kept alive between calls."""
    global _pool
    with _pool_lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(_MOST_HELPERS, thread_name_prefix="constrain")
        return _pool


def run_jobs(jobs: Sequence[Callable[[], None]], threads: int) -> None:
    """Run all jobs on up to ``threads`` threads, this one among them; then raise the first error of any."""
    pending = deque(jobs)
    errors: list[Exception] = []

    def work() -> None:
        while True:
            try:
                job = pending.popleft()
            except IndexError:
                return
            try:
                job()
            except Exception as error:
                errors.append(error)

    helping: list[Future[None]] = []
    try:
        # At the interpreter's end no thread can be started any more; then this one does it all.
        with contextlib.suppress(RuntimeError):
            while len(helping) < min(threads, len(jobs)) - 1:
                helping.append(_helpers().submit(work))
        work()
    finally:
        # After an interrupt too, nothing may write to the caller's mask once this has returned.
        pending.clear()
        for helper in helping:
            if not helper.cancel():
                helper.result()
    if errors:
        raise errors[0]
