"""A cache of ``transformers`` whose keys and values are kept in another type than the model computes in."""

# mypy: allow-untyped-calls, allow-subclassing-any
from __future__ import annotations

from functools import partial
from typing import Any

import torch
from transformers.cache_utils import Cache

from constrain.errors import ConstrainError

try:
    from transformers.cache_utils import DynamicLayer
except ImportError as error:
    raise ConstrainError("kv_type needs a newer transformers: pip install -U 'transformers>=4.56'") from error


class CastLayer(DynamicLayer):
    """Keys and values of one layer, [batch, heads, tokens, size], converted when they come in and when they go out."""

    def __init__(self, stored: torch.dtype) -> None:
        super().__init__()
        self._stored = stored

    def update(self, key_states: Any, value_states: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        keys, values = super().update(key_states.to(self._stored), value_states.to(self._stored), *args, **kwargs)
        return keys.to(key_states.dtype), values.to(value_states.dtype)


def cast_cache(stored: torch.dtype) -> Any:
    """An empty cache that keeps everything as ``stored``."""
    make_layer: Any = partial(CastLayer, stored)
    return Cache(layer_class_to_replicate=make_layer)
