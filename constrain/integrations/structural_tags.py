"""Structural tags as grammars: the one place from which the servers' back ends ask for them."""

from __future__ import annotations

from constrain.errors import ConstrainError
from constrain.grammar.grammar import Grammar
from constrain.limits import Deadline


def structural_tag_grammar(tag: str, *, time_limit: float | Deadline | None = None) -> Grammar:
    """The texts of a structural tag, JSON text in XGrammar's format.

    Raises
    ------
    ConstrainError
        Always: structural tags are not supported yet.
    """
    raise ConstrainError("structural tags are not supported by constrain yet: use a JSON schema, a regex or a grammar")
