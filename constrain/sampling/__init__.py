"""From logits and a mask to one token.

The classes are loaded on first use, since they load kernels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain.uninterrupted import load_numpy

if TYPE_CHECKING:
    from constrain.sampling.sampler import Sample, Sampler

__all__ = ["Sample", "Sampler"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        load_numpy()
        from constrain.sampling import sampler

        return getattr(sampler, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
