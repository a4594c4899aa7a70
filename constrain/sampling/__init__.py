"""From logits and a mask to one token."""

from constrain.sampling.sampler import Sampler

__all__ = ["Sampler"]
