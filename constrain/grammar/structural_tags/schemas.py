"""Schemas as parts of structural tags, in JSON or in the style of a model."""

from __future__ import annotations

from functools import lru_cache

from constrain.errors import SchemaError
from constrain.grammar.embedding import EmbeddingBuilder
from constrain.grammar.ir import Symbol
from constrain.grammar.json_schema.document.rewritten import closed
from constrain.grammar.json_schema.embedded import embed_schema, placed
from constrain.grammar.json_schema.lexical.layout import Layout, any_space_layout, layout_for
from constrain.grammar.json_schema.lexical.notation import notation_without
from constrain.grammar.json_schema.lexical.words import describe as describe_json
from constrain.grammar.json_schema.rules.rules import RuleWriter
from constrain.grammar.structural_tags.argument_values import ArgumentWriter, space_up_to
from constrain.grammar.structural_tags.formats import JsonSchema
from constrain.grammar.structural_tags.python_calls import call_layout, write_call
from constrain.grammar.structural_tags.styles import CALLS, JSON, STYLES
from constrain.grammar.words import Progress, Words, by_name

MOST_SPACE = 2
"""White space between arguments where it is what programs write."""


def write_schema(builder: EmbeddingBuilder, format: JsonSchema) -> Symbol:
    """The symbol of the values that are valid for the schema of a format."""
    schema = closed(format.schema) if format.is_closed else format.schema

    def write(writer: RuleWriter) -> Symbol:
        if format.style == JSON:
            return writer.write_root()
        if format.style in CALLS:
            return write_call(writer, format.tool)
        space = space_up_to(MOST_SPACE if format.is_flexible else format.max_whitespace)
        return ArgumentWriter(writer, format.style, space, format.excludes, format.tokens).write_root()

    place = format.pointer + format.keyword
    try:
        return embed_schema(builder, schema, _layout_of(format), write, any_order=format.any_order, place=place)
    except SchemaError as error:
        raise SchemaError(placed(error.reason, place), place + error.pointer[1:]) from None


def _layout_of(format: JsonSchema) -> Layout:
    if format.style in CALLS:
        return call_layout(format.style)
    style = STYLES.get(format.style)
    if style is None:
        return _layout(format.max_whitespace, format.excludes, format.is_flexible)
    # Who reads the XML looks for the end of a value, and not into its JSON; there the end can be written otherwise.
    whitespace = 0 if style.separator else format.max_whitespace
    return _layout(whitespace, (*format.excludes, style.end), format.is_flexible)


def describe_part(progress: Progress) -> Words:
    """In words, what may come: values of a schema as in JSON, other parts by their names."""
    # Values have the pointers of their schemas for names.
    return describe_json(progress) if progress.name.startswith("#") else by_name(progress)


@lru_cache(maxsize=64)
def _layout(max_whitespace: int | None, excludes: tuple[str, ...], is_flexible: bool) -> Layout:
    notation = notation_without(excludes)
    if max_whitespace is None and not is_flexible:
        return any_space_layout(notation)
    return layout_for("flexible", max_whitespace, None, None, notation)
