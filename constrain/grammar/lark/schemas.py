"""``%json {...}`` and ``%structural_tag {...}``: the values of a JSON Schema, and tags, within a grammar."""

from __future__ import annotations

from typing import Any

from constrain.errors import SchemaError
from constrain.grammar.embedding import EmbeddingBuilder, MakeStock
from constrain.grammar.ir import Symbol
from constrain.grammar.json_schema.document.document import parse
from constrain.grammar.json_schema.embedded import embed_schema
from constrain.grammar.json_schema.lexical.layout import any_space_layout
from constrain.grammar.json_schema.lexical.notation import USUAL_NOTATION
from constrain.grammar.json_schema.lexical.prelude import stock_for
from constrain.grammar.lark.blocks import BlockToken
from constrain.grammar.lark.source import Source
from constrain.grammar.structural_tags.writer import WriteLark, embed_structural_tag


def schema_symbol(builder: EmbeddingBuilder, token: BlockToken, source: Source) -> Symbol:
    """The symbol of the values of the schema in a block.

    Raises
    ------
    GrammarError
        For a fault in the schema, with its JSON pointer.
    """
    try:
        return values_symbol(builder, parse(token.block.text))
    except SchemaError as error:
        raise source.error(f"in the schema, at {error.pointer}: {error.reason}", token) from None


def values_symbol(builder: EmbeddingBuilder, schema: dict[str, Any] | bool) -> Symbol:
    """The symbol of the values of a schema; raises SchemaError for a fault in it."""
    return embed_schema(builder, schema, any_space_layout(USUAL_NOTATION))


def tag_symbol(builder: EmbeddingBuilder, token: BlockToken, source: Source, write_lark: WriteLark) -> Symbol:
    """The symbol of the texts of the structural tag in a block, which may have grammars of Lark inside in turn.

    Raises
    ------
    GrammarError
        For a fault in the tag, with its JSON pointer.
    """
    try:
        return embed_structural_tag(builder, token.block.text, write_lark)
    except SchemaError as error:
        raise source.error(f"in the structural tag, at {error.pointer}: {error.reason}", token) from None


def stock_of(builder: EmbeddingBuilder) -> MakeStock:
    """What the lexemes of schemas are read behind."""
    return stock_for(builder.formats)
