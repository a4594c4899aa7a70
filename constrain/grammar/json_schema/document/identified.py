"""Finding the schemas of a document that have a URI or a name of their own.

Done for a whole document at once, but only when a reference asks for such a schema: most documents have none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from constrain.grammar.json_schema.document.document import Document, Resource, escape
from constrain.grammar.json_schema.document.drafts import (
    NAMED,
    NAMED_OR_NAMES,
    ONE,
    ONE_OR_SEVERAL,
    SEVERAL,
    SUBSCHEMAS,
)


def subschemas(document: Document, root: Resource) -> Iterator[tuple[dict[str, Any], str, Resource]]:
    """Every schema object in a document, with its pointer and the resource it belongs to.

    Only what keywords hold are schemas: an ``$id`` in an enum or under an unknown keyword names nothing.
    """
    todo = [(root.schema, root.pointer, root)]
    seen: set[int] = set()
    while todo:
        schema, pointer, resource = todo.pop()
        if not isinstance(schema, dict) or id(schema) in seen:
            continue
        seen.add(id(schema))
        if isinstance(schema.get("$schema"), str) or isinstance(schema.get(resource.dialect.id_keyword), str):
            resource = document.own_resource(schema, pointer, resource)
        yield schema, pointer, resource
        for keyword, value in schema.items():
            holds = SUBSCHEMAS.get(keyword)
            if isinstance(value, dict):
                if holds in (NAMED, NAMED_OR_NAMES):
                    todo += [
                        (one, f"{pointer}/{keyword}/{escape(name)}", resource)
                        for name, one in value.items()
                        if isinstance(name, str)
                    ]
                elif holds in (ONE, ONE_OR_SEVERAL):
                    todo.append((value, f"{pointer}/{keyword}", resource))
            elif isinstance(value, (list, tuple)) and holds in (SEVERAL, ONE_OR_SEVERAL):
                todo += [(one, f"{pointer}/{keyword}/{index}", resource) for index, one in enumerate(value)]
