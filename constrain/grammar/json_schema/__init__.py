"""Front-end: JSON Schema.

The way of a schema: :mod:`~.document` finds places in it and follows references; :mod:`~.keywords` reads the keywords
of one place; :mod:`~.normalize` (with :mod:`~.intersect` and :mod:`~.values`) turns that into
:mod:`~.nodes`, one per JSON type; :mod:`~.rules` writes nodes as rules over the lexemes of :mod:`~.layout`, which
are spelled by :mod:`~.strings` and :mod:`~.numbers`.
"""

from constrain.grammar.json_schema.front_end import from_json_schema

__all__ = ["from_json_schema"]
