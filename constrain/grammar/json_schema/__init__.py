"""Front-end: JSON Schema.

The way of a schema: :mod:`~.document` finds places in it and follows references; :mod:`~.normal.keywords` reads the
keywords of one place; :mod:`~.normal.normalize` (with :mod:`~.normal.intersect` and :mod:`~.normal.values`) turns that
into :mod:`~.normal.nodes`, one per JSON type; :mod:`~.rules` writes nodes as rules over the lexemes of
:mod:`~.lexical.layout`, which are spelled by :mod:`~.lexical.strings` and :mod:`~.lexical.numbers`.
"""

from constrain.grammar.json_schema.front_end import from_json_schema

__all__ = ["from_json_schema"]
