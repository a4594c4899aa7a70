"""Free text as lexemes: up to the first of some strings, or without any of them.

"No trigger occurs in it" is a regular language, so that a token may hold the end of a text and the beginning of a tag,
and a trigger may be spread over any number of tokens.
"""

from __future__ import annotations

from functools import lru_cache

from constrain.grammar.prefix_tree import prefix_tree
from constrain.grammar.regular import Regular, complement, concat, intersect, repeat
from constrain.grammar.substrings import ANY_BYTES, MORE_BYTES, occurs_in
from constrain.grammar.utf8 import ANY_CHAR


@lru_cache(maxsize=256)
def text_without(excludes: tuple[str, ...], max_chars: int | None = None) -> Regular:
    """Every text in which none of some strings occurs."""
    text = repeat(ANY_CHAR, 0, max_chars)
    if not excludes:
        return text
    return intersect(text, complement(occurs_in(excludes)))


@lru_cache(maxsize=1024)
def text_through(
    end: tuple[str, ...], stops: tuple[str, ...], excludes: tuple[str, ...], max_chars: int | None = None
) -> Regular:
    """Every text with one of ``end`` behind it, in which no other of ``stops`` comes to its end before.

    Parameters
    ----------
    end, stops : tuple of str
        ``end`` are some of ``stops``.  With ``aba`` for both, ``ab`` is a text, but ``ababa`` is none with its end:
        ``aba`` came before.
    excludes : tuple of str
        What does not occur in the text; the end may hold it.
    """
    whole = concat(text_without(excludes, max_chars), prefix_tree(end))
    return intersect(whole, complement(concat(ANY_BYTES, prefix_tree(stops), MORE_BYTES)))


def is_reached(stop: str, stops: tuple[str, ...]) -> bool:
    """Whether none of ``stops`` comes to its end within ``stop``, which could then never be read."""
    return not any(other in stop[:-1] for other in stops)
