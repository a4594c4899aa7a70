"""How a Lark grammar is read: what the caller chooses, and what ``%llguidance {...}`` in the grammar says."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from constrain.grammar.lark.blocks import BlockToken
from constrain.grammar.lark.source import Source, place_of
from constrain.grammar.lark.tree import Token, Tree
from constrain.grammar.regex.parser import Dialect


@dataclass(frozen=True)
class Conventions:
    """What a grammar means beside its rules.

    Attributes
    ----------
    ascii_case : bool
        Whether the flag ``i`` is about the letters of ASCII alone.
    json_strings : bool
        Whether strings have the escapes of JSON, ``\\/`` and ``\\b``, and ``\\\\"`` in a regex is a backslash and a
        quote, as in llguidance.
    dialect : "python" or "rust"
        Whose syntax regexes have.
    is_bytes : bool
        Whether regexes are about bytes, which need not be UTF-8.
    ignores_first : bool
        Whether what ``%ignore`` names may stand before the first terminal.
    ignores_once : bool
        Whether it may stand only once between two terminals.
    splits_freely : bool
        Whether the grammar asks for terminals that may end before the longest match, as they do with ``lexing="any"``.
    """

    ascii_case: bool = False
    json_strings: bool = False
    dialect: Dialect = "python"
    is_bytes: bool = False
    ignores_first: bool = True
    ignores_once: bool = False
    splits_freely: bool = False


# What says nothing about the texts of a grammar, or is as it is here, by the values that may be given.
_KNOWN: dict[str, tuple[Any, ...]] = {
    "no_forcing": (True, False),
    "lexer_backtracking": (True, False),
    "allow_initial_skip": (True, False),
    "allow_invalid_utf8": (True, False),
    "ignore_once": (True, False),
    "skip_repetition": ("repeat", "once"),
}


def read_options(token: Token | Tree, source: Source, conventions: Conventions) -> Conventions:
    """The conventions with what a block says.

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
    is_once = options.get("ignore_once", conventions.ignores_once)
    if "skip_repetition" in options:
        is_once = options["skip_repetition"] == "once"
    return replace(
        conventions,
        is_bytes=options.get("allow_invalid_utf8", conventions.is_bytes),
        ignores_first=options.get("allow_initial_skip", conventions.ignores_first),
        ignores_once=is_once,
        splits_freely=options.get("lexer_backtracking", conventions.splits_freely),
    )
