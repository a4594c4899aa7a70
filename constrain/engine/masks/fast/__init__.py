"""Shorter ways to the masks of the plain walk; each gives the same tokens and boundaries, or says "not mine"."""
