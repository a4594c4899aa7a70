"""A budget for what a text begins with, such as the thoughts of a model, inside the budget of the whole.

The region has a grammar of its own: what it may be, and any text behind it.  A matcher of that grammar, with the
region's budget, goes along until the region has come to its end.  Until then a token is allowed if both allow it.  What
may follow does not depend on what the region holds, so there is a way on that suits both.

Worked example: thoughts of at most 5 tokens.  After four tokens that matcher allows ``</think>`` alone, and tokens that
hold it and more; of these the grammar of the whole takes out what cannot follow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from constrain.engine.compiled_grammar import CompiledGrammar
from constrain.engine.conditions.budget.cost_tables import prepare
from constrain.engine.conditions.budget.known_completions import fewest_tokens
from constrain.engine.conditions.protocol import Walk
from constrain.engine.history import Place
from constrain.engine.parser.companions import ALWAYS_ASKS, NO_COMPANION, Int64Array
from constrain.engine.vocabulary.bitmasks import Bitmask, allow, is_allowed
from constrain.errors import ConstrainError
from constrain.grammar.ir import FirstRegion


class RegionMatcher(Protocol):
    """What is asked of the matcher that goes along (matcher.py), which stands above this file."""

    @property
    def compiled(self) -> Any: ...
    @property
    def steps(self) -> int: ...
    def text(self, steps: int) -> bytes: ...
    def accept_token(self, token_id: int) -> bool: ...
    def accept_bytes(self, data: bytes) -> bool: ...
    def is_accepting(self) -> bool: ...
    def fill_next_token_bitmask(self, mask: Any) -> None: ...
    def rollback(self, count: int) -> None: ...
    def fork(self) -> Any: ...
    def tokens_to_finish(self) -> int: ...


def tokens_for_region(
    first: FirstRegion,
    region: CompiledGrammar,
    max_tokens: int | None,
    whole_without_budget: Callable[[], RegionMatcher],
) -> int:
    """How many tokens a region may take, so that the shortest rest has room in the budget of the whole.

    Parameters
    ----------
    first : FirstRegion
    region : CompiledGrammar
        Its grammar.
    max_tokens : int or None
        The budget of the whole.
    whole_without_budget : callable
        A new matcher of the whole, at its beginning.

    Raises
    ------
    ConstrainError
        If there is no room for the region.
    """
    with region.lock:
        prepare(region)
        shortest = fewest_tokens(region, first.shortest)
    if shortest is None:
        raise ConstrainError(f"{first.option}: the tokens of the vocabulary cannot spell {first.shortest!r}")
    needed, most = len(shortest), first.tokens
    if needed > most:
        raise ConstrainError(f"{first.option} is too few: what it limits takes {needed} tokens at least")
    if max_tokens is None:
        return most
    behind = whole_without_budget()
    if not behind.accept_bytes(first.shortest):
        raise AssertionError(f"the grammar does not begin with {first.shortest!r}")
    most = min(most, max_tokens - behind.tokens_to_finish())
    if needed > most:
        raise ConstrainError(
            f"max_tokens={max_tokens} is too few: {first.option} needs {needed} tokens at least, and the rest "
            f"{max_tokens - most}"
        )
    return most


class FirstRegionBudget:
    """The condition (conditions/protocol.py) that a text begins with a region of so many tokens at most.

    Parameters
    ----------
    matcher : RegionMatcher
        At the beginning, with the budget of the region.

    Attributes
    ----------
    asks_always : bool
        Whether the region is not over yet.
    """

    def __init__(self, matcher: RegionMatcher) -> None:
        self.asks_always = True
        self._matcher = matcher
        # Whether a copy has the same matcher: it is forked before it moves.
        self._is_shared = False
        # How many steps of the text count; the matcher may have taken more.
        self._steps = 0
        self._over_at: int | None = None

    @property
    def note(self) -> int:
        """1 until the region is over."""
        return int(self.asks_always)

    @property
    def companion(self) -> Int64Array:
        """Nothing reads along behind the region."""
        return ALWAYS_ASKS if self.asks_always else NO_COMPANION

    def _here(self) -> RegionMatcher:
        """The matcher, behind the steps that count, free to move."""
        if self._is_shared:
            self._matcher, self._is_shared = self._matcher.fork(), False
        ahead = self._matcher.steps - self._steps
        if ahead:
            self._matcher.rollback(ahead)
        return self._matcher

    def push(self, cursor: Walk, step: int | bytes, behind: Place, word: int) -> bool:
        """Let the matcher go along; False if the region could not come to its end in its budget."""
        if self._over_at is not None:
            return True
        matcher = self._here()
        if isinstance(step, bytes):
            is_taken = matcher.accept_bytes(step) or matcher.accept_bytes(self._up_to_end(matcher, step))
        else:
            is_taken = matcher.accept_token(step)
        if is_taken:
            self._steps = matcher.steps
            if matcher.is_accepting():
                self._over_at, self.asks_always = self._steps, False
        return is_taken

    @staticmethod
    def _up_to_end(matcher: RegionMatcher, data: bytes) -> bytes:
        """The bytes up to the end of the region: what is behind it costs it nothing."""
        place = matcher.compiled.recognizer()
        for byte in matcher.text(matcher.steps):
            place.try_push_byte(byte)
        for count, byte in enumerate(data, 1):
            if place.try_push_byte(byte) and place.is_accepting():
                return data[:count]
        return data

    def restrict(self, cursor: Any, out: Bitmask, index: int) -> None:
        """Leave what both matchers allow; a text that may end has no region that is under way."""
        if self._over_at is not None:
            return
        row = out[index]
        ends = [token for token in cursor.compiled.vocabulary.eos_ids if is_allowed(row, token)]
        own = np.zeros((1, len(row)), np.int32)
        self._here().fill_next_token_bitmask(own)
        row &= own[0]
        for token in ends:
            allow(row, token)

    def rewind(self, steps: int) -> None:
        """Be as after the first ``steps`` steps; the matcher goes back when it is needed."""
        self._steps = min(self._steps, steps)
        if self._over_at is not None and self._over_at > steps:
            self._over_at, self.asks_always = None, True

    def copy(self) -> FirstRegionBudget:
        """One that goes its own way from here on."""
        twin = FirstRegionBudget.__new__(FirstRegionBudget)
        self._is_shared = True
        twin.__dict__.update(self.__dict__)
        return twin
