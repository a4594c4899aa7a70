"""Schemas as parts of structural tags, in JSON or in the style of a model."""

from __future__ import annotations

from functools import lru_cache

from constrain.errors import SchemaError
from constrain.grammar.embedding import EmbeddingBuilder
from constrain.grammar.ir import Symbol
from constrain.grammar.json_schema.embedded import embed_schema
from constrain.grammar.json_schema.lexical.layout import Layout, any_space_layout, layout_for
from constrain.grammar.json_schema.lexical.notation import USUAL_NOTATION
from constrain.grammar.structural_tags.closed import closed
from constrain.grammar.structural_tags.formats import JsonSchema


def write_schema(builder: EmbeddingBuilder, format: JsonSchema) -> Symbol:
    """The symbol of the values that are valid for the schema of a format."""
    pointer = f"{format.pointer}/json_schema"
    try:
        return embed_schema(builder, closed(format.schema), _layout(format.max_whitespace), any_order=format.any_order)
    except SchemaError as error:
        raise SchemaError(error.reason, pointer + error.pointer[1:]) from None


@lru_cache(maxsize=16)
def _layout(max_whitespace: int | None) -> Layout:
    if max_whitespace is None:
        return any_space_layout(USUAL_NOTATION)
    return layout_for("flexible", max_whitespace, None, None, USUAL_NOTATION)
