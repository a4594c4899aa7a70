"""The jitted part of the sampler."""
