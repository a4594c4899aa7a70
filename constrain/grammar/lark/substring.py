"""``%regex {"substring_words": "..."}``: the parts of a text, cut between given pieces."""

from __future__ import annotations

import re
from typing import Any

from constrain.grammar.lark.blocks import BlockToken
from constrain.grammar.lark.source import Source, place_of
from constrain.grammar.lark.tree import Token
from constrain.grammar.regular import EPSILON, Regular, concat, literal, union

_KINDS = ("substring_chunks", "substring_words", "substring_chars")

MOST_PIECES = 2_000
"""Of a text: the language of its parts is as deep as there are pieces, and that is put together step by step."""


def regex_block(token: Token, source: Source) -> Regular:
    """The language of a ``%regex`` block.

    Raises
    ------
    GrammarError
        If the block is missing or says something else.
    """
    place = place_of(token)
    if not isinstance(token, BlockToken):
        raise source.error('%regex needs a JSON object, as in %regex {"substring_words": "some text"}', place)
    value = token.block.value(source, place)
    if not isinstance(value, dict) or len(value) != 1 or next(iter(value)) not in _KINDS:
        raise source.error(f"%regex takes a JSON object with one of {', '.join(_KINDS)}, and nothing else", place)
    ((kind, given),) = value.items()
    pieces = _pieces(kind, given)
    if pieces is None:
        wanted = "a list of strings" if kind == "substring_chunks" else "a string"
        raise source.error(f"%regex: {kind} takes {wanted}", place)
    pieces = [piece for piece in pieces if piece]
    if len(pieces) > MOST_PIECES:
        raise source.error(f"%regex: a text of more than {MOST_PIECES:,} pieces ({len(pieces):,})", place)
    return parts_of(pieces)


def _pieces(kind: str, given: Any) -> list[str] | None:
    if kind == "substring_chunks":
        return given if isinstance(given, list) and all(isinstance(piece, str) for piece in given) else None
    if not isinstance(given, str):
        return None
    return list(given) if kind == "substring_chars" else re.findall(r"\w+|\s+|[^\w\s]", given)


def parts_of(pieces: list[str]) -> Regular:
    """Some pieces in a row, from any of them on, as many as one likes; or nothing."""
    # tails[i]: what may follow where piece i is next.
    tail: Regular = EPSILON
    tails: list[Regular] = []
    for piece in reversed(pieces):
        tail = union(EPSILON, concat(literal(piece), tail))
        tails.append(tail)
    return union(EPSILON, *tails)
