"""What lexemes of nearly every schema are made of, for the engine to have ready (see :attr:`~...ir.GrammarIR.stock`).

A stock is copied whole, so the formats that have large expressions are in stocks of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from constrain.grammar.json_schema.lexical.layout import layout_for
from constrain.grammar.json_schema.lexical.notation import USUAL_NOTATION
from constrain.grammar.json_schema.lexical.strings import ASCII_CHARACTERS, EVERY_WAY
from constrain.grammar.json_schema.lexical.texts import Format, spelled
from constrain.grammar.languages.regular import Regular, Word


def plain_stock() -> tuple[Regular, ...]:
    """The tokens of JSON with white space before them, and each printable ASCII character in its spellings."""
    # The same object as the front-end's: lru_cache tells calls apart by how they are written.
    layout = layout_for("flexible", None, None, None, USUAL_NOTATION)
    return (
        *layout.usual_values,
        *layout.any_keys,
        *(layout.open_object, layout.close_object, layout.open_array, layout.close_array, layout.comma),
        Word(ASCII_CHARACTERS, b""),
    )


def stock_with_times() -> tuple[Regular, ...]:
    """The plain one, and the formats of dates and times."""
    return (*plain_stock(), spelled(Format("date-time"), EVERY_WAY), spelled(Format("date"), EVERY_WAY))


def stock_with_addresses() -> tuple[Regular, ...]:
    """The plain one, and the usual formats of addresses."""
    return (*plain_stock(), spelled(Format("uri"), EVERY_WAY), spelled(Format("email"), EVERY_WAY))


def stock_for(formats: Collection[str]) -> Callable[[], tuple[Regular, ...]]:
    """The stock of a schema with these formats."""
    if "date-time" in formats:
        return stock_with_times
    return stock_with_addresses if "uri" in formats or "email" in formats else plain_stock
