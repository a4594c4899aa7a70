"""Several sequences of different lengths in one cache of ``transformers``.

In each call every row brings as many new tokens as it has, at least one; rows with fewer are filled up on the left.
What is filled up stays in the cache as a hole that nothing looks at: the attention mask is 0 there, and positions
count real tokens only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from constrain.backends.transformers_cache import CacheMaker


class BatchCache:
    """What is remembered of the rows of a batch.

    Attributes
    ----------
    cache : transformers.Cache or None
        Keys and values of the rows; made by the first :meth:`prepare`.
    """

    def __init__(self, caches: CacheMaker, check_tokens: Callable[[list[int]], None]) -> None:
        self._caches = caches
        self._check_tokens = check_tokens
        self.forget()

    def forget(self) -> None:
        self.cache: Any = None
        self._cached: dict[int, list[int]] = {}
        self._mask: Any = None

    def prepare(self, contexts: Mapping[int, list[int]], torch: Any, device: Any) -> dict[str, Any]:
        """The arguments of the model's next call, besides the cache; it answers for these rows in this order.

        Parameters
        ----------
        contexts : mapping of int to list of int
            The rows that are running, with everything so far.  Rows that were there before go on where their
            cache ends; if one does not, all begin anew.
        """
        self._keep_only(contexts, torch, device)
        new = {row: ids[len(self._cached.get(row, ())) :] for row, ids in contexts.items()}
        for tokens in new.values():
            self._check_tokens(tokens)
        width = max(map(len, new.values()))
        ids = torch.zeros((len(new), width), dtype=torch.long)
        real = torch.zeros((len(new), width), dtype=torch.long)
        for place, tokens in enumerate(new.values()):
            ids[place, width - len(tokens) :] = torch.tensor(tokens)
            real[place, width - len(tokens) :] = 1
        real = real.to(device)
        if self.cache is None:
            self.cache, self._mask = self._caches.make(), real
        else:
            self._mask = torch.cat([self._mask, real], dim=1)
        self._cached = {row: list(tokens) for row, tokens in contexts.items()}
        positions = (self._mask.cumsum(dim=1) - 1).clamp(min=0)[:, -width:]
        return {
            "input_ids": ids.to(device),
            "attention_mask": self._mask,
            "position_ids": positions,
        }

    def _keep_only(self, contexts: Mapping[int, list[int]], torch: Any, device: Any) -> None:
        """Drop the rows that are over, or everything if some row does not go on where it was."""
        for row, ids in contexts.items():
            known = self._cached.get(row)
            if known is None or len(ids) <= len(known) or ids[: len(known)] != known:
                self.forget()
                return
        if len(contexts) < len(self._cached):
            places = [place for place, row in enumerate(self._cached) if row in contexts]
            indices = torch.tensor(places, device=device)
            self.cache.batch_select_indices(indices)
            self._mask = self._mask[indices]
            self._cached = {row: self._cached[row] for row in self._cached if row in contexts}
        if list(contexts) != list(self._cached):
            self.forget()
