"""From logits and a mask to one token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from constrain.sampling.sampler import Sampler

__all__ = ["Sampler"]


def __getattr__(name: str) -> Any:
    # On first use, since it loads kernels.
    if name == "Sampler":
        from constrain.sampling.sampler import Sampler

        return Sampler
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
