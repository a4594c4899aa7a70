"""``%llguidance {...}``: the options of llguidance's dialect."""

from __future__ import annotations

from typing import Any

from lark import Token, Tree

from constrain.grammar.lark.blocks import BlockToken
from constrain.grammar.lark.source import Source, place_of

# What says nothing about the texts of a grammar, or is as it is here, by the values that may be given.
_KNOWN: dict[str, tuple[Any, ...]] = {
    "no_forcing": (True, False),
    "allow_initial_skip": (True,),
    "allow_invalid_utf8": (False,),
    "skip_repetition": ("repeat",),
}


def check_options(token: Token | Tree[Token], source: Source) -> None:
    """Check that a grammar asks for nothing that is not so here anyway.

    Raises
    ------
    GrammarError
        If the block is missing, or for an option that is not supported.
    """
    if not isinstance(token, BlockToken):
        raise source.error(f"{token} needs a JSON object, as in {token} {{}}", token)
    place = place_of(token)
    options = token.block.value(source, place)
    if not isinstance(options, dict):
        raise source.error(f"{token} takes a JSON object", place)
    for name, value in options.items():
        if name not in _KNOWN:
            raise source.error(f"{token}: the option {name!r} is not supported", place)
        if not any(value is known or (isinstance(value, str) and value == known) for known in _KNOWN[name]):
            raise source.error(f"{token}: {name} = {value!r} is not supported", place)
