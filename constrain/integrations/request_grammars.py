"""What requests to servers give as text, as grammars: the one place from which the servers' back ends ask for them."""

from __future__ import annotations

from typing import Any

from constrain.errors import ConstrainError
from constrain.grammar.grammar import Grammar
from constrain.grammar.json_schema.document.document import parse
from constrain.limits import Deadline

_PARTS = ("format", "content", "elements", "tags", "rules", "structures")
"""Where a structural tag has other formats."""

_SCHEMAS = ("json_schema", "schema")


def ebnf_or_lark_grammar(text: str, *, time_limit: float | Deadline | None = None) -> Grammar:
    """The texts of a grammar in EBNF, in which ``::=`` defines a rule, or in Lark's notation, which has no such sign.

    Raises
    ------
    ConstrainError
        If the grammar is wrong or not supported, with the place of what is.
    """
    if any("::=" in line.split("#")[0].split("//")[0] for line in text.splitlines()):
        return Grammar.from_ebnf(text, time_limit=time_limit)
    return Grammar.from_lark(text, time_limit=time_limit)


def structural_tag_grammar(tag: str, *, time_limit: float | Deadline | None = None) -> Grammar:
    """The texts of a structural tag, JSON text in XGrammar's format.

    A schema that is null, as servers write it for a tool without parameters, is any value.

    Raises
    ------
    ConstrainError
        If the tag is wrong or not supported, with the JSON pointer of what is.
    """
    return Grammar.from_structural_tag(_without_null_schemas(tag), time_limit=time_limit)


def _without_null_schemas(tag: str) -> Any:
    """A structural tag, read, with empty schemas in the place of null; the text itself if there is none."""
    if "null" not in tag:
        return tag
    try:
        # Numbers stay what they are.
        whole = parse(tag)
    except ConstrainError:
        # The reader says what is wrong.
        return tag
    is_changed = False
    todo: list[Any] = [whole]
    while todo:
        part = todo.pop()
        if isinstance(part, list):
            todo += part
        elif isinstance(part, dict):
            todo += [part[name] for name in _PARTS if name in part]
            for name in _SCHEMAS:
                if name in part and part[name] is None:
                    part[name] = {}
                    is_changed = True
    return whole if is_changed else tag
