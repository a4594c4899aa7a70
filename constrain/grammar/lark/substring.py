"""``%regex {"substring_words": "..."}``: the parts of a text, cut between given pieces."""

from __future__ import annotations

import re
from operator import methodcaller
from typing import Any

from constrain.errors import GrammarError
from constrain.grammar.lark.blocks import BlockToken
from constrain.grammar.lark.source import Source, place_of
from constrain.grammar.lark.tree import Token
from constrain.grammar.quotation import quotation, quotation_of_characters
from constrain.grammar.regular import Regular

_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
_KINDS = ("substring_chunks", "substring_words", "substring_chars")


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
    try:
        language = _language(kind, given)
    except GrammarError as error:
        raise source.error(f"%regex: {error}", place) from None
    if language is None:
        wanted = "a list of strings" if kind == "substring_chunks" else "a string"
        raise source.error(f"%regex: {kind} takes {wanted}", place)
    return language


def _language(kind: str, given: Any) -> Regular | None:
    """What may be quoted from a text or a list of pieces; None if it is neither."""
    if kind == "substring_chunks":
        is_list = isinstance(given, list) and all(isinstance(piece, str) for piece in given)
        return quotation(given) if is_list else None
    if not isinstance(given, str):
        return None
    if kind == "substring_chars":
        return quotation_of_characters(given)
    return quotation(map(methodcaller("group"), _WORDS.finditer(given)), given)
