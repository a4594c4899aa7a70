"""Keys and values that are forgotten by attention, so that a cache stays below a number of tokens.

Which ones: those that the last tokens of the text look at least, layer by layer and head by head, as in Li et al.,
"SnapKV: LLM knows what you are looking for before generation" (2024).  SnapKV does so once, behind the prompt; here it
is done whenever the cache is full, so that long answers stay below the limit too.

Keys have their positions in them already, so what is left need not be computed again; only the positions of later
tokens have to be said.
"""

# mypy: allow-untyped-calls
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

OBSERVED = 16
"""How many of the last tokens say what is looked at, at most; they stay themselves."""

_POOL = 7
"""What stands beside an important token counts with it (SnapKV's pooling); an odd number of tokens."""


@dataclass(frozen=True)
class Room:
    """What a cache may hold.

    Attributes
    ----------
    most : int
        The most tokens; when there are more, some are forgotten.
    left : int
        How many are left then.
    protected : int
        The first tokens, which stay.
    """

    most: int
    left: int
    protected: int

    @property
    def observed(self) -> int:
        """How many last tokens say what is looked at."""
        return min(OBSERVED, self.left - self.protected)


def forget(cache: Any, attentions: Sequence[Any], room: Room) -> None:
    """Keep ``room.left`` tokens in each layer of a cache of one text.

    Parameters
    ----------
    cache : transformers.Cache
        Whose layers have keys and values [1, heads, tokens, size].
    attentions : sequence of tensors
        For each layer [1, query heads, observed tokens, tokens], as ``output_attentions`` gives them.
    """
    for layer, attention in zip(cache.layers, attentions, strict=True):
        kept = kept_places(attention[0], layer.keys.shape[1], room)
        index = kept[None, :, :, None].expand(1, -1, -1, layer.keys.shape[-1])
        layer.keys = layer.keys.gather(2, index).contiguous()
        values = kept[None, :, :, None].expand(1, -1, -1, layer.values.shape[-1])
        layer.values = layer.values.gather(2, values).contiguous()


def kept_places(attention: Any, heads: int, room: Room) -> Any:
    """Which tokens stay: int64[heads, room.left], in their order.

    ``attention``: float[query heads, observed tokens, tokens]; heads that share keys have one opinion.
    """
    queries, _, length = attention.shape
    observed, protected = room.observed, room.protected
    looked_at = attention.float().sum(dim=1).reshape(heads, queries // heads, length).sum(dim=1)
    pooled = torch.nn.functional.max_pool1d(looked_at[:, None], _POOL, stride=1, padding=_POOL // 2)[:, 0]
    pooled[:, :protected] = torch.inf
    pooled[:, length - observed :] = torch.inf
    return pooled.topk(room.left, dim=-1).indices.sort(dim=-1).values
