"""``%regex {"substring_words": "..."}``: the parts of a text, cut between given pieces."""

from __future__ import annotations

import re
from typing import Any

from constrain.errors import GrammarError
from constrain.grammar.languages.quotation import quotation, quotation_of_characters
from constrain.grammar.languages.regular import Regular
from constrain.grammar.lark.blocks import BlockToken
from constrain.grammar.lark.source import Source, place_of
from constrain.grammar.lark.tree import Token

_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
_KINDS = ("substring_chunks", "substring_words", "substring_chars")


def regex_block(token: Token, source: Source) -> Regular:
    """The language of a ``%regex`` block.

    Raises
    ------
    GrammarError
        If the block is missing or says something else.
    """
    kind, given = _content(token, source)
    try:
        return quotation_of_characters(given) if kind == "substring_chars" else quotation(_pieces(kind, given))
    except GrammarError as error:
        raise source.error(f"%regex: {error}", place_of(token)) from None


def quoted_pieces(token: Token, source: Source) -> list[str]:
    """The pieces of which a ``%regex`` block lets some in a row be quoted; raises what :func:`regex_block` does."""
    regex_block(token, source)
    return _pieces(*_content(token, source))


def _content(token: Token, source: Source) -> tuple[str, Any]:
    """The kind of a ``%regex`` block, and the string or the list of strings that it holds."""
    place = place_of(token)
    if not isinstance(token, BlockToken):
        raise source.error('%regex needs a JSON object, as in %regex {"substring_words": "some text"}', place)
    value = token.block.value(source, place)
    if not isinstance(value, dict) or len(value) != 1 or next(iter(value)) not in _KINDS:
        raise source.error(f"%regex takes a JSON object with one of {', '.join(_KINDS)}, and nothing else", place)
    ((kind, given),) = value.items()
    if kind == "substring_chunks":
        if not isinstance(given, list) or not all(isinstance(piece, str) for piece in given):
            raise source.error(f"%regex: {kind} takes a list of strings", place)
    elif not isinstance(given, str):
        raise source.error(f"%regex: {kind} takes a string", place)
    return kind, given


def _pieces(kind: str, given: Any) -> list[str]:
    """What may be quoted from a text or a list of pieces, piece by piece."""
    return _WORDS.findall(given) if kind == "substring_words" else list(given)
