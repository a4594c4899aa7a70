"""Which lines of a schema speak of which part of a JSON text, for showing both side by side."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from constrain.explain.json_places import Value, read_json

_MOST_BYTES = 1 << 20
_DEPTH = 60
_REFERENCES = 20


@dataclass(frozen=True)
class Span:
    """That a part of a text is what a part of the schema speaks of.

    Attributes
    ----------
    begin, end : int
        The part of the text, in bytes: a member with its key, or an item.
    pointer : str
        The part of the schema, as a JSON pointer in URI fragment form.
    """

    begin: int
    end: int
    pointer: str


def lines_of(schema_text: str) -> dict[str, tuple[int, int]]:
    """The first and last line, from 0, of every value in a schema's text, by JSON pointer in URI fragment form."""
    found: dict[str, tuple[int, int]] = {}

    def visit(value: Value, begin: int, pointer: str) -> None:
        found[pointer] = schema_text.count("\n", 0, begin), schema_text.count("\n", 0, value.end)
        for name, place, inner in value.members:
            visit(inner, place, f"{pointer}/{_token(name)}")
        for index, inner in enumerate(value.items):
            visit(inner, inner.begin, f"{pointer}/{index}")

    document = read_json(schema_text)
    if document.value is not None:
        visit(document.value, document.value.begin, "#")
    return found


def spans_of(schema_text: str, data: bytes) -> list[Span]:
    """Which part of a schema speaks of which part of a text, outer parts first.

    Nothing if either is no JSON, or the text has more than a megabyte.

    Members and items are followed, and references within the schema; where a schema has alternatives, the place
    of the alternatives is what speaks of it.
    """
    if len(data) > _MOST_BYTES:
        return []
    try:
        schema, text = json.loads(schema_text), data.decode()
    except (ValueError, RecursionError):
        return []
    value = read_json(text).value
    if value is None:
        return []
    offset = range(len(text) + 1) if text.isascii() else list(accumulate((len(c.encode()) for c in text), initial=0))
    return [
        Span(offset[begin], offset[end], pointer) for begin, end, pointer in _visit(schema, schema, "#", value, 0, 0)
    ]


def _visit(
    root: Any, schema: Any, pointer: str, value: Value, begin: int, depth: int
) -> Iterator[tuple[int, int, str]]:
    schema, pointer = _behind_references(root, schema, pointer)
    yield begin, value.end, pointer
    if not isinstance(schema, dict) or depth > _DEPTH:
        return
    for name, place, inner in value.members:
        for keyword, part in (("properties", schema.get("properties")), ("", schema.get("additionalProperties"))):
            below = part.get(name) if keyword and isinstance(part, dict) else None if keyword else part
            if below is not None:
                where = f"{pointer}/properties/{_token(name)}" if keyword else f"{pointer}/additionalProperties"
                yield from _visit(root, below, where, inner, place, depth + 1)
                break
    prefix, rest = schema.get("prefixItems"), schema.get("items")
    if isinstance(rest, list):
        prefix, rest = rest, schema.get("additionalItems")
    names = ("items", "additionalItems") if isinstance(schema.get("items"), list) else ("prefixItems", "items")
    first = prefix if isinstance(prefix, list) else []
    for index, inner in enumerate(value.items):
        if index < len(first):
            yield from _visit(root, first[index], f"{pointer}/{names[0]}/{index}", inner, inner.begin, depth + 1)
        elif rest is not None:
            yield from _visit(root, rest, f"{pointer}/{names[1]}", inner, inner.begin, depth + 1)


def _behind_references(root: Any, schema: Any, pointer: str) -> tuple[Any, str]:
    """What a schema that is a reference within the document leads to, and its place."""
    for _ in range(_REFERENCES):
        reference = schema.get("$ref") if isinstance(schema, dict) else None
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            break
        found = root
        for token in reference.split("/")[1:]:
            name = token.replace("~1", "/").replace("~0", "~")
            found = found.get(name) if isinstance(found, dict) else None
        if not isinstance(found, dict):
            break
        schema, pointer = found, reference
    return schema, pointer


def _token(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
