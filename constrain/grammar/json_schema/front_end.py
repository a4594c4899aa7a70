"""``from_json_schema``: options in, grammar out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from constrain.collection import without_collection
from constrain.errors import ConstrainError, SchemaError
from constrain.grammar.embedding import EmbeddingBuilder
from constrain.grammar.ir import GrammarIR, Symbol
from constrain.grammar.json_schema.conventions import NO_CONVENTIONS, Conventions, take_conventions
from constrain.grammar.json_schema.document.document import MAX_DEPTH, Document, Options, parse
from constrain.grammar.json_schema.document.references import References, with_scope_if_needed
from constrain.grammar.json_schema.document.rewritten import closed, shortened
from constrain.grammar.json_schema.embedded import write_document
from constrain.grammar.json_schema.lexical.layout import Layout
from constrain.grammar.json_schema.lexical.notation import notation_for
from constrain.grammar.json_schema.normal.nodes import describe
from constrain.grammar.json_schema.rules.rules import RuleWriter
from constrain.grammar.json_schema.spaces import layout_of_options, space_around
from constrain.grammar.languages.regular import Regular
from constrain.grammar.schema_options import (
    Formats,
    Numbers,
    Patterns,
    PropertyOrder,
    SchemaOptions,
    Spellings,
    UnicodeEscapes,
    WhiteSpace,
    check_choice,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

_CHOICES = (
    ("whitespace", get_args(WhiteSpace)),
    ("numbers", get_args(Numbers)),
    ("spelling", get_args(Spellings)),
    ("property_order", get_args(PropertyOrder)),
    ("formats", get_args(Formats)),
    ("patterns", get_args(Patterns)),
    ("unicode_escapes", get_args(UnicodeEscapes)),
)


class _Reading(NamedTuple):
    """What the options ask for."""

    layout: Layout
    options: Options
    around: Regular | None
    """The white space around the whole text."""
    any_order: bool
    max_work: int
    is_closed: bool
    most_items: int | None


@lru_cache(maxsize=64, typed=True)
def _reading(
    conventions: Conventions,
    whitespace: Any = "flexible",
    max_whitespace: Any = None,
    indent: Any = None,
    separators: Any = None,
    ensure_ascii: Any = False,
    numbers: Any = "any",
    spelling: Any = "any",
    property_order: Any = "schema",
    formats: Any = "assert",
    lenient: Any = False,
    max_work: Any = 100_000,
    whitespace_pattern: Any = None,
    separator_patterns: Any = None,
    surrounding_whitespace: Any = False,
    unicode_escapes: Any = "any",
    additional_properties: Any = True,
    patterns: Any = "search",
    coerce_one_of: Any = False,
    max_array_length: Any = None,
) -> _Reading:
    """Check the options of ``from_json_schema``; they are nearly always the same, and so are known by their values."""
    for check, value in zip(
        _CHOICES, (whitespace, numbers, spelling, property_order, formats, patterns, unicode_escapes), strict=True
    ):
        check_choice(*check, value)
    for name, flag in (
        ("ensure_ascii", ensure_ascii),
        ("surrounding_whitespace", surrounding_whitespace),
        ("additional_properties", additional_properties),
        ("coerce_one_of", coerce_one_of),
    ):
        if type(flag) is not bool:
            raise ConstrainError(f"{name} must be a boolean, not {flag!r}")
    if type(max_work) is not int or max_work < 1:
        raise ConstrainError(f"max_work must be a positive integer, not {max_work!r}")
    if max_array_length is not None and (type(max_array_length) is not int or max_array_length < 0):
        raise ConstrainError(f"max_array_length must be a number of items, not {max_array_length!r}")
    if not isinstance(lenient, (bool, int)):
        raise ConstrainError(f"lenient must be a boolean, not {describe(lenient)}")
    numbered = conventions.unicode_escapes or unicode_escapes
    if ensure_ascii and numbered != "any":
        raise ConstrainError(
            "ensure_ascii goes with unicode_escapes='any' only: all beyond ASCII is written as \\uXXXX"
        )
    notation = notation_for(spelling == "canonical", ensure_ascii, numbers == "plain", numbered, conventions.escapes)
    layout = conventions.layout(notation) or layout_of_options(
        notation, whitespace, max_whitespace, indent, separators, whitespace_pattern, separator_patterns
    )
    options = Options(
        asserts_formats=formats == "assert",
        is_lenient=bool(lenient) or conventions.is_lenient,
        matches_in_full=patterns == "full",
        coerces_one_of=coerce_one_of or conventions.coerces_one_of,
        unwritable=layout.notation.spelling.unwritable,
    )
    return _Reading(
        layout,
        options,
        space_around(layout) if surrounding_whitespace else None,
        property_order == "any",
        max_work,
        not additional_properties,
        max_array_length,
    )


@without_collection
def from_json_schema(schema: dict[str, Any] | bool | str | bytes, **options: Unpack[SchemaOptions]) -> GrammarIR:
    """The grammar of the JSON texts that are valid for a schema.

    Parameters
    ----------
    schema : dict, bool, str or bytes
        The schema, or its JSON text (bytes are UTF-8).  ``$schema`` says which draft it is written in: 4, 6, 7,
        2019-09 or 2020-12 (the default).  Numbers in a text are taken exactly; a float in a dict is what it is
        printed as.
    options
        Those of :meth:`constrain.Grammar.from_json_schema`.

    Returns
    -------
    GrammarIR
        Its ``warnings`` name keywords that have no effect because the draft does not know them.

    Raises
    ------
    SchemaError
        If the text is not JSON or the schema not valid, if it uses a keyword that is not supported, or if nothing
        satisfies it; with a JSON pointer to the part at fault.
    LimitError
        If the schema is too large for ``max_work`` or one of the limits that the message names.
    ConstrainError
        If an option has a value that it cannot have.
    """
    with _too_deep():
        asked, schema, references = _ask(schema, options)

        def read(keeps_scope: bool) -> GrammarIR:
            document = Document(schema, asked.options, keeps_scope, references)
            grammar = RuleWriter(document, asked.layout, asked.any_order, asked.max_work).write(asked.around)
            if not grammar.makes_lexemes:
                # Rules that look into the schema while a text is read make lexemes.
                document.forget()
            return grammar

        return with_scope_if_needed(read)


@without_collection
def embed_json_schema(whole: EmbeddingBuilder, schema: str | bytes, options: SchemaOptions) -> Symbol:
    """The symbol of what :func:`from_json_schema` makes a grammar of, as a part of a longer text.

    Raises
    ------
    SchemaError, LimitError
        As there.
    """
    with _too_deep():
        asked, read_schema, references = _ask(schema, options)

        def read(keeps_scope: bool) -> Symbol:
            document = Document(read_schema, asked.options, keeps_scope, references)
            writer = RuleWriter(document, asked.layout, asked.any_order, asked.max_work, whole)
            start = write_document(whole, document, writer, RuleWriter.write_root)
            if asked.around is None:
                return start
            space = whole.optional(whole.lexeme(asked.around, "white space"))
            return whole.sequence((space, start, space))

        return with_scope_if_needed(read)


@contextmanager
def _too_deep() -> Iterator[None]:
    try:
        yield
    except RecursionError:
        raise SchemaError(f"the schema is nested too deeply: schemas may be {MAX_DEPTH} levels deep") from None


def _ask(
    schema: dict[str, Any] | bool | str | bytes, options: SchemaOptions
) -> tuple[_Reading, dict[str, Any] | bool, Callable[[Document], References]]:
    """What options and schema ask for, the schema as it is to be read then, and what follows its references."""
    values: dict[str, Any] = {**options}
    registry = values.pop("registry", None)
    if registry is not None and not hasattr(registry, "get_or_retrieve"):
        raise ConstrainError(f"registry must have get_or_retrieve, which {type(registry).__name__} has not")

    def reading(conventions: Conventions) -> _Reading:
        try:
            return _reading(conventions, **values)
        except TypeError:  # a value that cannot be hashed
            return _reading.__wrapped__(conventions, **values)

    # What is wrong with the options is told first, whatever the schema says.
    asked = reading(NO_CONVENTIONS)
    read, conventions = take_conventions(parse(schema) if isinstance(schema, (str, bytes)) else schema)
    if conventions is not NO_CONVENTIONS:
        asked = reading(conventions)
    if asked.is_closed:
        read = closed(read)
    if asked.most_items is not None:
        read = shortened(read, asked.most_items)
    return asked, read, lambda document: References(document, registry)
