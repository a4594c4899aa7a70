"""JSON Schemas as parts of a longer text: their rules are written among those of the whole."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from constrain.errors import SchemaError
from constrain.grammar.embedding import EmbeddingBuilder
from constrain.grammar.ir import Symbol
from constrain.grammar.json_schema.conventions import NO_CONVENTIONS, Conventions, take_conventions
from constrain.grammar.json_schema.document.document import MAX_DEPTH, Document, Options
from constrain.grammar.json_schema.document.references import References, with_scope_if_needed
from constrain.grammar.json_schema.lexical.layout import Layout
from constrain.grammar.json_schema.lexical.notation import Notation, notation_for
from constrain.grammar.json_schema.lexical.strings import ALL_ESCAPES
from constrain.grammar.json_schema.normal.metaschema import check_document
from constrain.grammar.json_schema.rules.rules import RuleWriter

_WAY_OUT = '"x-guidance": {"lenient": true} in the schema'
"""What leaves out parts of a schema that are not supported, also where the whole has no option for it."""

_POINTER = re.compile(r"(^at |\((?:at|by) )#(?=[/):])")
"""What a message has before a pointer into the schema, and the beginning of that."""

MAX_WORK = 100_000
"""How many pairs of alternatives of a schema may be combined."""


def embed_schema(
    whole: EmbeddingBuilder,
    schema: dict[str, Any] | bool,
    layout: Layout,
    write: Callable[[RuleWriter], Symbol] = RuleWriter.write_root,
    *,
    any_order: bool = False,
    place: str = "#",
) -> Symbol:
    """The symbol of the JSON values that are valid for a schema.

    ``write`` gives it, with the writer's help; one that has rules of its own for the root leaves nothing queued.
    Warnings name places below ``place``, where the schema stands in the whole; the pointer of an error begins at the
    schema.

    Raises SchemaError and LimitError as :func:`~constrain.grammar.json_schema.front_end.from_json_schema` does.
    """
    schema, conventions = take_conventions(schema)
    if conventions is not NO_CONVENTIONS:
        layout = _layout_of(conventions, layout)
    options = Options(
        is_lenient=conventions.is_lenient or bool(whole.is_lenient),
        coerces_one_of=conventions.coerces_one_of,
        unwritable=layout.notation.spelling.unwritable,
        way_out=_WAY_OUT if whole.is_lenient is None else f"lenient, or {_WAY_OUT},",
    )

    def read(keeps_scope: bool) -> Symbol:
        document = Document(schema, options, keeps_scope, lambda document: References(document, None))
        writer = RuleWriter(document, layout, any_order, MAX_WORK, whole)
        return write_document(whole, document, writer, write, place)

    try:
        return with_scope_if_needed(read)
    except RecursionError:
        raise SchemaError(f"the schema is nested too deeply: schemas may be {MAX_DEPTH} levels deep") from None


def write_document(
    whole: EmbeddingBuilder,
    document: Document,
    writer: RuleWriter,
    write: Callable[[RuleWriter], Symbol],
    place: str = "#",
) -> Symbol:
    """The symbol that ``write`` gives, with all that the whole grammar has to know of the schema's rules."""
    start = write(writer)
    writer.check_satisfiable(start)
    whole.makes_lexemes |= writer.makes_lexemes
    whole.has_schemas = True
    check_document(document)
    # A schema may stand in several places: some tools write the same arguments in more than one way.
    if document.warnings:
        whole.warnings = list(
            dict.fromkeys((*whole.warnings, *(placed(warning, place) for warning in document.warnings)))
        )
    return start


def placed(message: str, place: str) -> str:
    """A message about a schema, with its pointers as they are in the whole."""
    return message if place == "#" else _POINTER.sub(lambda found: found.group(1) + place, message)


def _layout_of(conventions: Conventions, layout: Layout) -> Layout:
    """The layout that a schema asks for, in place of one."""
    notation = layout.notation
    chooses_escapes = conventions.unicode_escapes is not None or conventions.escapes != ALL_ESCAPES
    if not layout.is_json:
        if chooses_escapes or conventions.gap is not None:
            reason = "white space, separators and escapes of JSON cannot be chosen where values are not written as JSON"
            raise SchemaError(reason, "#/x-guidance")
        return layout
    if chooses_escapes:
        if type(notation) is not Notation:
            raise SchemaError("escapes cannot be chosen where some strings must not occur", "#/x-guidance")
        numbered = conventions.unicode_escapes or "any"
        notation = notation_for(notation.is_canonical, False, notation.is_plain, numbered, conventions.escapes)
    return conventions.layout(notation) or layout.written_in(notation)
