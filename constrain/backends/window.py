"""A context that slides: the oldest tokens behind a protected prefix are forgotten, many at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from constrain.backends.options import BackendOptions
from constrain.errors import ConstrainError

_LEAST = 2
"""Tokens of a window: half of it is forgotten at once."""


@dataclass(frozen=True)
class Window:
    """Which tokens of a long text a model still sees.

    Up to ``protected + size`` tokens it sees all.  Of more, it sees the first ``protected`` and the last ones, at
    least half of ``size`` and at most ``size``: half a window is forgotten at once, so that in between the text
    only grows at its end and a cache of keys and values stays valid.  What is seen depends on the length alone.
    """

    protected: int
    size: int

    def evicted(self, length: int) -> int:
        """How many tokens behind the prefix a text of this length has lost."""
        excess = length - self.protected - self.size
        if excess <= 0:
            return 0
        step = max(1, self.size // 2)
        return -(-excess // step) * step

    def visible(self, ids: Sequence[int]) -> Sequence[int]:
        """The tokens that are seen."""
        lost = self.evicted(len(ids))
        return [*ids[: self.protected], *ids[self.protected + lost :]] if lost else ids


def window_of(options: BackendOptions, limit: int | None, bytes_per_token: float | None = None) -> Window | None:
    """The window that the options ask for in a context of ``limit`` tokens; None if they ask for none.

    ``bytes_per_token``: the size of a token's keys and values, if it is known.

    Raises
    ------
    ConstrainError
        Prefix and window do not fit into the context, or there is no size at all.
    """
    if options.eviction_policy != "sliding":
        return None
    size = options.eviction_window
    most = options.most_tokens(bytes_per_token)
    if most is not None:
        size = most - options.protected_prefix
        if size < _LEAST:
            prefix = options.protected_prefix
            raise ConstrainError(
                f"max_kv_size has room for {most} tokens; with a protected prefix of {prefix} at least"
                f" {prefix + _LEAST} are needed"
            )
    if size is None:
        if limit is None:
            raise ConstrainError(
                "eviction_policy 'sliding' needs an eviction_window, as the model has no limit of its own"
            )
        size = limit - options.protected_prefix
    if size < _LEAST or (limit is not None and options.protected_prefix + size > limit):
        raise ConstrainError(
            f"a protected prefix of {options.protected_prefix} tokens and a window of {size} do not fit into a context"
            f" of {limit} tokens"
        )
    return Window(options.protected_prefix, size)
