"""``from_structural_tag``: JSON in, grammar out."""

from __future__ import annotations

from typing import Any

from constrain.collection import without_collection
from constrain.errors import ConstrainError, SchemaError
from constrain.grammar.ir import GrammarIR
from constrain.grammar.lark.rules import write_lark
from constrain.grammar.structural_tags.reader import read_structural_tag
from constrain.grammar.structural_tags.writer import grammar_of


@without_collection
def from_structural_tag(tag: Any, *, lenient: bool = False) -> GrammarIR:
    """The grammar of the texts that a structural tag describes.

    Parameters
    ----------
    tag : str, bytes, dict or pydantic model
        As for XGrammar 0.2.9, ``{"type": "structural_tag", "format": ...}``; a format alone; or the older form with
        ``structures`` and ``triggers``.  Objects of a schema that name their members have no others, unless the schema
        says so, which is XGrammar's convention.
    lenient : bool
        Whether what is not supported in a schema is left out, with a warning.

    Raises
    ------
    SchemaError
        With the JSON pointer of what is wrong or not supported.
    LimitError
        If a schema is too large for one of the limits that the message names.
    """
    if not isinstance(lenient, bool):
        raise ConstrainError(f"lenient must be a boolean, not {lenient!r}")
    try:
        return grammar_of(read_structural_tag(tag), write_lark, is_lenient=lenient)
    except RecursionError:
        raise SchemaError("the structural tag is nested too deeply") from None
