"""Structural tags as grammars: the one place from which the servers' back ends ask for them."""

from __future__ import annotations

from constrain.grammar.grammar import Grammar
from constrain.limits import Deadline


def structural_tag_grammar(tag: str, *, time_limit: float | Deadline | None = None) -> Grammar:
    """The texts of a structural tag, JSON text in XGrammar's format.

    Raises
    ------
    ConstrainError
        If the tag is wrong or not supported, with the JSON pointer of what is.
    """
    return Grammar.from_structural_tag(tag, time_limit=time_limit)
