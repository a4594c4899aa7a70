"""``%json {...}`` and ``%structural_tag {...}``: the values of a JSON Schema, and tags, within a grammar."""

from __future__ import annotations

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
from constrain.grammar.structural_tags.reader import read_structural_tag
from constrain.grammar.structural_tags.writer import WriteLark, Writer


def schema_symbol(builder: EmbeddingBuilder, token: BlockToken, source: Source) -> Symbol:
    """The symbol of the values of the schema in a block.

    Raises
    ------
    GrammarError
        For a fault in the schema, with its JSON pointer.
    """
    try:
        return embed_schema(builder, parse(token.block.text), any_space_layout(USUAL_NOTATION))
    except SchemaError as error:
        raise source.error(f"in the schema, at {error.pointer}: {error.reason}", token) from None


def tag_symbol(builder: EmbeddingBuilder, token: BlockToken, source: Source, write_lark: WriteLark) -> Symbol:
    """The symbol of the texts of the structural tag in a block, which may have grammars of Lark inside in turn.

    Raises
    ------
    GrammarError
        For a fault in the tag, with its JSON pointer.
    """
    try:
        return Writer(builder, write_lark).write(read_structural_tag(token.block.text))
    except SchemaError as error:
        raise source.error(f"in the structural tag, at {error.pointer}: {error.reason}", token) from None


def stock_of(builder: EmbeddingBuilder) -> MakeStock:
    """What the lexemes of schemas are read behind."""
    return stock_for(builder.formats)
