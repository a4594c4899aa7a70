"""What lexemes of nearly every schema are made of, for the engine to have ready."""

from __future__ import annotations

from constrain.grammar.json_schema.layout import layout_for
from constrain.grammar.json_schema.strings import ASCII_CHARACTERS
from constrain.grammar.regular import Regular


def stock() -> tuple[Regular, ...]:
    """The tokens of JSON with any white space before them, and each printable ASCII character in its spellings."""
    # The same object as the front-end's: lru_cache tells calls apart by how they are written.
    layout = layout_for("flexible", 256, None, None)
    return (
        *layout.usual_values,
        *layout.any_keys,
        *(layout.open_object, layout.close_object, layout.open_array, layout.close_array, layout.comma),
        *ASCII_CHARACTERS.values(),
    )
