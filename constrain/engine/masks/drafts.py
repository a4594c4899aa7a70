"""Masks for drafts: what may come before and behind each token that a speculative decoder proposes.

A draft is some tokens for one sequence, in a row or as a tree.  Where the grammar knows all of it (the states behind
the tokens, and their masks), one kernel call does all drafts of a batch.  The others are followed by forks of their
matchers, so that no matcher moves, whatever happens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from constrain.engine.compiled_grammar import CompiledGrammar
from constrain.engine.conditions.budget.budget import Budget
from constrain.engine.conditions.unique_keys.object_keys import copies_of
from constrain.engine.conditions.unique_keys.unique_keys import UniqueKeys
from constrain.engine.cursor import NO_COMPANION_AT
from constrain.engine.masks.batches import by_grammar, hold_locks, run_jobs
from constrain.engine.masks.known_batches import write_known_drafts
from constrain.engine.masks.members import Int64Array, Members, list_matchers, members_of
from constrain.engine.matcher import Matcher
from constrain.engine.parser.companions import NO_COMPANION
from constrain.engine.vocabulary.bitmasks import Bitmask
from constrain.engine.vocabulary.mask_rows import MaskRows, check_bitmask
from constrain.errors import ConstrainError

_LARGEST = np.uint64(np.iinfo(np.int64).max)


def fill_draft_bitmasks(
    matchers: Sequence[Matcher],
    drafts: Sequence[Sequence[int]],
    parents: Sequence[Sequence[int]] | None,
    mask: Any,
    *,
    first_rows: Sequence[int] | None = None,
    threads: int = 1,
) -> list[int]:
    """Write the masks before and behind each token of a draft, for all sequences; no matcher moves.

    The draft of a matcher takes one row more than it has tokens: the first is for the place where the matcher is, and
    row ``1 + i`` behind it for the place behind token ``i``.  Behind a token that is not legal, or ends the text, no
    token is allowed.  So token ``i`` is legal if its bit is in the row of the token before it.

    Parameters
    ----------
    matchers : sequence of Matcher
        Of one grammar or of several, for vocabularies of one size.
    drafts : sequence of sequences of int
        The tokens of each draft; it may have none.
    parents : sequence of sequences of int, optional
        For drafts that are trees: for each token the one before it, by its place in the draft, which is a smaller one,
        or -1 where it follows the text itself.  None: each draft is a chain.
    mask : int32[rows, ceil(vocab_size / 32)]
        As for :func:`constrain.fill_next_token_bitmask_batch`.
    first_rows : sequence of int, optional
        The first row of each draft; by default they follow each other.  Other rows stay as they are.
    threads : int
        How many threads may work on what is not known, the calling one included.

    Returns
    -------
    list of int
        For each draft how many of its tokens are legal: those that the grammar allows, together with all before them.
        Of a chain these are the first so many.

    Raises
    ------
    ConstrainError
        If a token is out of range, or something does not fit together; nothing is written then.
    LimitError
        As for one matcher.  The rows of other drafts are written.

    Notes
    -----
    Rows in which no token is allowed cannot be sampled from: an engine leaves them out, or cuts its drafts to what is
    legal first.  No matcher of the batch may be used by another thread meanwhile; their compiled grammars may.
    """
    sequences = list_matchers(matchers)
    batch = _Drafts(sequences, members_of(sequences, threads), drafts, parents)
    if not sequences:
        return []
    rows, out = batch.check_rows(mask, first_rows)
    if out.is_direct:
        return batch.fill(rows, out.array, threads)
    lengths = np.diff(batch.starts) + 1
    firsts = np.cumsum(lengths) - lengths
    places = np.repeat(rows - firsts, lengths) + np.arange(lengths.sum())
    # What a row was is what it is again if its mask cannot be made.
    apart = out.get(places.tolist(), sequences[0]._words)
    try:
        return batch.fill(firsts, apart, threads)
    finally:
        out.put(places.tolist(), apart)


class _Drafts:
    """The drafts of a batch, looked at."""

    def __init__(
        self,
        matchers: list[Matcher],
        members: Members,
        drafts: Sequence[Sequence[int]],
        parents: Sequence[Sequence[int]] | None,
    ) -> None:
        self.matchers, self.members = matchers, members
        lengths, self.tokens = _together(drafts, "draft")
        if len(lengths) != len(matchers):
            raise ConstrainError(f"there are {len(lengths)} drafts for {len(matchers)} matchers")
        self.starts = _starts(lengths)
        size = matchers[0]._size if matchers else 0
        # Negative ones are large without a sign.
        outside = self.tokens[self.tokens.view(np.uint64) >= size]
        if len(outside):
            raise ConstrainError(f"token id {outside[0]} is out of range, the vocabulary has {size} tokens")
        self.is_tree = parents is not None
        self.parents = self._chains(lengths) if parents is None else self._trees(lengths, parents)

    def _chains(self, lengths: list[int]) -> Int64Array:
        return np.arange(len(self.tokens)) - np.repeat(self.starts[:-1], lengths) - 1

    def _trees(self, lengths: list[int], parents: Sequence[Sequence[int]]) -> Int64Array:
        counts, flat = _together(parents, "parents of draft")
        if counts != lengths:
            raise ConstrainError("parents must have one number for each token of each draft")
        wrong = np.flatnonzero((flat < -1) | (flat > self._chains(lengths)))
        if len(wrong):
            raise ConstrainError(f"parents: {flat[wrong[0]]} is neither -1 nor the place of a token before")
        return flat

    def check_rows(self, mask: Any, first_rows: Sequence[int] | None) -> tuple[Int64Array, MaskRows]:
        """The first row of each draft, and the mask."""
        out = check_bitmask(mask, 0, self.matchers[0]._words)
        lengths = np.diff(self.starts) + 1
        height = int(out.array.shape[0])
        if first_rows is None:
            rows = self.starts[:-1] + np.arange(len(lengths))
            if len(self.tokens) + len(lengths) > height:
                raise ConstrainError(f"the drafts need rows that the mask does not have: it has {height}")
            return rows, out
        rows = _integers(first_rows, "first_rows")
        if len(rows) != len(lengths):
            raise ConstrainError(f"first_rows must be one integer for each of the {len(lengths)} drafts")
        if (rows < 0).any() or (rows > height - lengths).any():
            raise ConstrainError(f"the drafts need rows that the mask does not have: it has {height}")
        order = np.argsort(rows)
        if (rows[order][:-1] + lengths[order][:-1] > rows[order][1:]).any():
            raise ConstrainError("first_rows lets two drafts have the same row")
        return rows, out

    def fill(self, rows: Int64Array, out: Bitmask, threads: int) -> list[int]:
        """Write all rows of a mask that kernels can write to; returns how many tokens of each draft are legal."""
        counts = np.zeros(len(self.matchers), np.int64)
        missing = hold_locks(self.members.distinct, lambda busy: self._fill_known(rows, out, counts, busy))

        def follow(positions: list[int]) -> None:
            for position in positions:
                counts[position] = self._follow(position, out, int(rows[position]))

        run_jobs([partial(follow, positions) for positions in by_grammar(self.members.grammars, missing)], threads)
        return counts.tolist()  # type: ignore[no-any-return]

    def _fill_known(self, rows: Int64Array, out: Bitmask, counts: Int64Array, busy: set[CompiledGrammar]) -> list[int]:
        """Write what is known, under the locks of all grammars that are not busy; the positions of the others."""
        grammars, matchers = self.members.grammars, self.matchers
        places = range(len(matchers))
        chosen = [place for place in places if grammars[place] not in busy and self._is_plain(matchers[place])]
        if not chosen:
            return list(places)
        tokens, parents, starts, contexts = self.tokens, self.parents, self.starts, self.members.contexts(busy)
        if len(chosen) < len(places):
            grammars, matchers = [grammars[place] for place in chosen], [matchers[place] for place in chosen]
            contexts = contexts[chosen]
            lengths = np.diff(starts)
            is_chosen = np.zeros(len(lengths), bool)
            is_chosen[chosen] = True
            tokens, parents = tokens[np.repeat(is_chosen, lengths)], parents[np.repeat(is_chosen, lengths)]
            starts, rows = _starts(lengths[chosen]), rows[chosen]
        # Grammars with tokens as terminals are not among them, so that kinds are those of the vocabulary.
        kinds = grammars[0].vocabulary.kinds
        if not all(grammar.vocabulary.kinds is kinds for grammar in set(grammars)):
            return list(places)
        count = len(chosen)
        companions, _copies = _companions_of(matchers)
        found, legal, reached = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(len(tokens), np.int64)
        n_missing = write_known_drafts(
            *(contexts, np.fromiter([matcher._state for matcher in matchers], np.int64, count)),
            *(companions, starts, tokens, kinds[tokens], parents, rows, out, reached, legal, found),
        )
        counts[chosen] = legal
        missing = set(found[:n_missing].tolist())
        missing.update(
            place
            for place, matcher in enumerate(matchers)
            if matcher._asking and not _is_ample(matcher, reached[starts[place] : starts[place + 1]])
        )
        if not missing and count == len(places):
            return []
        done = {chosen[place] for place in range(count) if place not in missing}
        return [place for place in places if place not in done]

    def _is_plain(self, matcher: Matcher) -> bool:
        """Whether a kernel can follow a draft of a matcher: nobody else has to be asked about tokens and masks."""
        if not (matcher._note or matcher._asking) and matcher._unasked_companion is NO_COMPANION:
            return not matcher.compiled.spelled_ids
        if matcher.compiled.spelled_ids or (matcher._note and not matcher._has_plain_mask()):
            return False
        if not matcher._is_unasked():
            return False
        if matcher._unasked_companion is NO_COMPANION:
            return True
        # A copy of the memory of keys can read a draft on.  It belongs to one path; a budget stands before it.
        last = matcher._conditions[-1]
        if self.is_tree or len(matcher._conditions) - matcher._has_budget != 1 or not isinstance(last, UniqueKeys):
            return False
        return last.keys is not None and last.keys.is_small

    def _follow(self, position: int, out: Bitmask, row: int) -> int:
        """Write the rows of one draft with forks of its matcher; how many of its tokens are legal."""
        matcher = self.matchers[position]
        begin, end = self.starts[position : position + 2].tolist()
        parents = self.parents[begin:end].tolist()
        last_child = {parent: place for place, parent in enumerate(parents)}
        matcher.fill_next_token_bitmask(out, row)
        places = {-1: matcher.fork()}
        count = 0
        for place, token in enumerate(self.tokens[begin:end].tolist()):
            parent = parents[place]
            before = places.get(parent)
            there = before
            if before is not None and last_child[parent] != place:
                there = before.fork()
            if there is not None and there.accept_token(token):
                places[place] = there
                there.fill_next_token_bitmask(out, row + 1 + place)
                count += 1
            else:
                out[row + 1 + place] = 0
        return count


def _starts(lengths: Int64Array | list[int]) -> Int64Array:
    """Where pieces of so many elements begin that follow each other, and where the last ends: int64[n + 1]."""
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


def _companions_of(matchers: list[Matcher]) -> tuple[Int64Array, Int64Array | None]:
    """The address of what may read a draft along for each matcher (int64[n]), and the copies that this is."""
    companions = np.full(len(matchers), NO_COMPANION_AT, np.int64)
    places = [place for place, matcher in enumerate(matchers) if matcher._unasked_companion is not NO_COMPANION]
    if not places:
        return companions, None
    copies, companions[places] = copies_of([matchers[place]._conditions[-1].keys for place in places])  # type: ignore[attr-defined]
    return companions, copies


def _is_ample(matcher: Matcher, reached: Int64Array) -> bool:
    """Whether a budget makes no difference at any of the states that a draft has reached."""
    budget: Budget = matcher._conditions[0]  # type: ignore[assignment]
    # No path of the draft is longer than it is.
    steps = matcher._steps + len(reached)
    return all(budget.is_ample(matcher.compiled, state, steps) for state in reached.tolist() if state > 0)


def _together(parts: Sequence[Sequence[int]], what: str) -> tuple[list[int], Int64Array]:
    """The lengths of some sequences of integers, and all of these one after the other."""
    try:
        # Numbers of several arrays become a list faster than one by one.
        lists = [part.tolist() if isinstance(part, np.ndarray) else part for part in parts]
        lengths = [len(part) for part in lists]
        flat = np.array(list(chain.from_iterable(lists)) or np.empty(0, np.int64))
    except (TypeError, ValueError):
        if not isinstance(parts, Iterable):
            raise ConstrainError(f"{what}s must be lists of integers, not {parts!r}") from None
        flat = np.empty(0)
    if flat.ndim == 1 and np.issubdtype(flat.dtype, np.integer):
        return lengths, _as_int64(flat)
    for place, part in enumerate(parts):
        _integers(part, f"{what} {place}")
    raise ConstrainError(f"{what}s must be integers")


def _integers(values: Sequence[int], what: str) -> Int64Array:
    try:
        array = np.asarray(values)
    except ValueError:
        array = np.empty(0, object)
    if array.ndim == 1 and not len(array) and array.dtype != object:
        return np.empty(0, np.int64)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise ConstrainError(f"{what} must be integers, one after the other")
    return _as_int64(array)


def _as_int64(array: NDArray[np.integer]) -> Int64Array:
    """Integers of any kind; those beyond int64 become its largest, which is no token, place or row either."""
    return (np.minimum(array, _LARGEST) if array.dtype == np.uint64 else array).astype(np.int64)
