"""Byte strings in which others occur."""

from __future__ import annotations

from functools import lru_cache

from constrain.grammar.languages.prefix_tree import prefix_tree
from constrain.grammar.languages.regular import Regular, byte_range, concat, repeat

ANY_BYTES = repeat(byte_range(0, 255))
"""Every byte string."""
MORE_BYTES = repeat(byte_range(0, 255), 1)
"""Every byte string but the empty one."""


@lru_cache(maxsize=256)
def occurs_in(some: tuple[str, ...]) -> Regular:
    """Every byte string in which one of some strings occurs."""
    return concat(ANY_BYTES, prefix_tree(some), ANY_BYTES)
