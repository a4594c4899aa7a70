"""The jitted part of the sampler."""

from constrain.kernel_cache import drop_stale_kernels

drop_stale_kernels(__path__[0])
