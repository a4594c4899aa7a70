"""Masks for drafts: what may come before and behind each token that a speculative decoder proposes.

A draft is some tokens for one sequence, in a row or as a tree.  Where the grammar knows all of it (the states behind
the tokens, and their masks), one kernel call does all drafts of a batch.  The others are followed by forks of their
matchers, so that no matcher moves, whatever happens.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from constrain.engine.compiled_grammar import CompiledGrammar
from constrain.engine.conditions.unique_keys.unique_keys import UniqueKeys
from constrain.engine.masks.batches import Int64Array, by_grammar, check_matchers, hold_locks, run_jobs
from constrain.engine.masks.known_batches import write_known_drafts
from constrain.engine.matcher import Matcher
from constrain.engine.parser.companions import NO_COMPANION
from constrain.engine.vocabulary.bitmasks import Bitmask
from constrain.engine.vocabulary.mask_rows import MaskRows, check_bitmask
from constrain.errors import ConstrainError

_NO_COMPANION_AT: int = NO_COMPANION.__array_interface__["data"][0]


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
    """
    sequences = list(matchers)
    check_matchers(sequences, threads)
    batch = _Drafts(sequences, drafts, parents)
    if not sequences:
        return []
    rows, out = batch.check_rows(mask, first_rows)
    if out.is_direct:
        return batch.fill(rows, out.array, threads)
    lengths = [1 + len(draft) for draft in batch.drafts]
    firsts = np.cumsum(lengths) - lengths
    places = np.concatenate([np.arange(row, row + length) for row, length in zip(rows.tolist(), lengths, strict=True)])
    # What a row was is what it is again if its mask cannot be made.
    apart = out.get(places.tolist(), sequences[0]._words)
    try:
        return batch.fill(firsts.astype(np.int64), apart, threads)
    finally:
        out.put(places.tolist(), apart)


class _Drafts:
    """The drafts of a batch, looked at."""

    def __init__(
        self, matchers: list[Matcher], drafts: Sequence[Sequence[int]], parents: Sequence[Sequence[int]] | None
    ) -> None:
        self.matchers = matchers
        self.grammars = [matcher.compiled for matcher in matchers]
        self.drafts = [_integers(draft, f"draft {place}") for place, draft in enumerate(drafts)]
        if len(self.drafts) != len(matchers):
            raise ConstrainError(f"there are {len(self.drafts)} drafts for {len(matchers)} matchers")
        lengths = [len(draft) for draft in self.drafts]
        self.starts = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=self.starts[1:])
        self.tokens = np.concatenate([np.empty(0, np.int64), *self.drafts])
        size = matchers[0]._size if matchers else 0
        outside = self.tokens[(self.tokens < 0) | (self.tokens >= size)]
        if len(outside):
            raise ConstrainError(f"token id {outside[0]} is out of range, the vocabulary has {size} tokens")
        self.is_tree = parents is not None
        self.parents = self._chains(lengths) if parents is None else self._trees(lengths, parents)

    def _chains(self, lengths: list[int]) -> Int64Array:
        return np.arange(len(self.tokens)) - np.repeat(self.starts[:-1], lengths) - 1

    def _trees(self, lengths: list[int], parents: Sequence[Sequence[int]]) -> Int64Array:
        trees = [_integers(tree, f"parents of draft {place}") for place, tree in enumerate(parents)]
        if [len(tree) for tree in trees] != lengths:
            raise ConstrainError("parents must have one number for each token of each draft")
        flat = np.concatenate([np.empty(0, np.int64), *trees])
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
        else:
            rows = _integers(first_rows, "first_rows")
            if len(rows) != len(lengths):
                raise ConstrainError(f"first_rows must be one integer for each of the {len(lengths)} drafts")
        if (rows < 0).any() or (rows + lengths > height).any():
            raise ConstrainError(f"the drafts need rows that the mask does not have: it has {height}")
        order = np.argsort(rows)
        if (rows[order][:-1] + lengths[order][:-1] > rows[order][1:]).any():
            raise ConstrainError("first_rows lets two drafts have the same row")
        return rows, out

    def fill(self, rows: Int64Array, out: Bitmask, threads: int) -> list[int]:
        """Write all rows of a mask that kernels can write to; returns how many tokens of each draft are legal."""
        counts = np.zeros(len(self.matchers), np.int64)
        missing = hold_locks(self.grammars, lambda busy: self._fill_known(rows, out, counts, busy))

        def follow(positions: list[int]) -> None:
            for position in positions:
                counts[position] = self._follow(position, out, int(rows[position]))

        run_jobs([partial(follow, positions) for positions in by_grammar(self.grammars, missing)], threads)
        return counts.tolist()  # type: ignore[no-any-return]

    def _fill_known(self, rows: Int64Array, out: Bitmask, counts: Int64Array, busy: set[CompiledGrammar]) -> list[int]:
        """Write what is known, under the locks of all grammars that are not busy; the positions of the others."""
        kept: list[Any] = []
        companions = [self._companion(matcher, kept, busy) for matcher in self.matchers]
        chosen = [position for position, companion in enumerate(companions) if companion]
        waiting = [position for position, companion in enumerate(companions) if not companion]
        if not chosen:
            return waiting
        # Grammars with tokens as terminals are not among them, so that kinds are those of the vocabulary.
        kinds = self.matchers[chosen[0]].compiled.vocabulary.kinds
        same = all(self.grammars[position].vocabulary.kinds is kinds for position in chosen)
        if not same:
            return list(range(len(self.matchers)))
        tokens, parents, starts = self.tokens, self.parents, self.starts
        if waiting:
            lengths = np.diff(starts)
            is_chosen = np.repeat([bool(companion) for companion in companions], lengths)
            tokens, parents = tokens[is_chosen], parents[is_chosen]
            starts = np.zeros(len(chosen) + 1, np.int64)
            np.cumsum(lengths[chosen], out=starts[1:])
        found, legal = np.empty(len(chosen), np.int64), np.empty(len(chosen), np.int64)
        count = write_known_drafts(
            np.array([self.grammars[position].context_address for position in chosen], np.int64),
            np.array([self.matchers[position]._state for position in chosen], np.int64),
            np.array([companions[position] for position in chosen], np.int64),
            *(starts, tokens, kinds[tokens], parents, rows[chosen], out),
            *(np.empty(len(tokens), np.int64), legal, found),
        )
        counts[chosen] = legal
        return [chosen[place] for place in found[:count].tolist()] + waiting

    def _companion(self, matcher: Matcher, kept: list[Any], busy: set[CompiledGrammar]) -> int:
        """The address of a companion for a draft, which may be changed; 0 if the draft has to be followed otherwise.

        What has to live as long is put to ``kept``.
        """
        compiled = matcher.compiled
        if matcher._note or matcher._asks_always or compiled.spelled_ids or (busy and compiled in busy):
            return 0
        if matcher._companion is NO_COMPANION:
            return _NO_COMPANION_AT
        # It belongs to one path.
        if self.is_tree or len(matcher._conditions) != 1:
            return 0
        condition = matcher._conditions[0]
        keys = condition.keys_ahead() if isinstance(condition, UniqueKeys) else None
        if keys is None:
            return 0
        kept.append(keys)
        return int(keys.memory.__array_interface__["data"][0])

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


def _integers(values: Sequence[int], what: str) -> Int64Array:
    array = np.asarray(values)
    if array.ndim == 1 and not len(array):
        return np.empty(0, np.int64)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise ConstrainError(f"{what} must be integers, one after the other")
    return array.astype(np.int64)
