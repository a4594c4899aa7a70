"""Arguments in the XML of a style, read back as JSON values."""

from __future__ import annotations

import json
from typing import Any

from constrain.grammar.structural_tags.styles import XmlStyle
from constrain.tools.json_scanner import JsonScanner

_SPACE = " \t\r\n"


class NotYet(Exception):
    """The text ends before the arguments do."""


def read_arguments(text: str, at: int, style: XmlStyle, end: str, schema: Any) -> tuple[dict[str, Any], int]:
    """The arguments that begin at a place, and the place behind them.

    Parameters
    ----------
    text : str
    at : int
    style : XmlStyle
        One that writes arrays and objects as JSON.
    end : str
        What stands behind the arguments, without the white space before it.
    schema : JSON value
        The schema of the arguments, which tells ``"3"`` from 3 where the style does not; None if it is not known.

    Raises
    ------
    NotYet
        If more text is needed.
    ValueError
        If no arguments stand there.
    """
    found: dict[str, Any] = {}
    while True:
        at = _skip_space(text, at)
        if text.startswith(end, at):
            return found, at
        at = _expect(text, at, style.before_key, end)
        head, mark, tail = style.after_key.partition(style.gap_at) if style.gap_at else (style.after_key, "", "")
        stop = text.find(head, at)
        if stop < 0:
            raise NotYet
        name, at = text[at:stop], stop + len(head)
        if mark:
            at = _expect(text, _skip_space(text, at), mark + tail)
        at, kinds = _opening(text, at, style)
        begin = at
        if "string" not in kinds:
            value_at = _skip_space(text, at)
            if text[value_at : value_at + 1] in ("{", "["):
                # A string in it may hold the end.
                begin = JsonScanner(value_at).end(text)
                if begin < 0:
                    raise NotYet
        stop = text.find(style.end, begin)
        if stop < 0:
            raise NotYet
        if name in found:
            raise ValueError(f"{name!r} comes twice")
        found[name] = _value(text[at:stop], kinds, style, _schema_of(schema, name), schema)
        at = stop + len(style.end)


def _skip_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _expect(text: str, at: int, *marks: str) -> int:
    """The place behind the first mark, which must stand at a place, unless the beginning of any stands at the end."""
    if text.startswith(marks[0], at):
        return at + len(marks[0])
    if any(mark.startswith(text[at:]) for mark in marks):
        raise NotYet
    raise ValueError(f"{marks[0]!r} does not stand at {at}")


def _opening(text: str, at: int, style: XmlStyle) -> tuple[int, set[str]]:
    """The place behind the opening of a value, and the kinds that it may have."""
    openings: dict[str, set[str]] = {}
    for kind, opening in style.openings.items():
        openings.setdefault(opening, set()).add(kind)
    if style.free_integer:
        openings.setdefault(style.free_integer, set()).add("number")
    # "" is the beginning of all, so it comes last.
    for opening in sorted(openings, key=len, reverse=True):
        if text.startswith(opening, at):
            return at + len(opening), openings[opening]
    if any(opening.startswith(text[at:]) for opening in openings):
        raise NotYet
    raise ValueError(f"no kind of value stands at {at}")


def _value(text: str, kinds: set[str], style: XmlStyle, schema: Any, root: Any) -> Any:
    """A value: a string as it is, or JSON."""
    string = text
    if style.string_lines:
        string = string.removeprefix("\n").removesuffix("\n")
    if kinds == {"string"}:
        return string
    try:
        value = json.loads(text)
    except ValueError:
        value = string
    if "string" not in kinds:
        return value
    return string if isinstance(value, str) or not allows(schema, value, root) else value


def _schema_of(schema: Any, name: str) -> Any:
    """The schema of an argument; True if nothing is known of it."""
    if not isinstance(schema, dict):
        return True
    properties = schema.get("properties")
    if isinstance(properties, dict) and name in properties:
        return properties[name]
    for word in ("allOf", "anyOf", "oneOf"):
        for each in schema.get(word, ()):
            found = _schema_of(each, name)
            if found is not True:
                return found
    return schema.get("additionalProperties", True)


_TYPES: dict[str, Any] = {
    "boolean": bool,
    "null": type(None),
    "object": dict,
    "array": list,
    "string": str,
}


def allows(schema: Any, value: Any, root: Any) -> bool:
    """Whether a schema may allow a value: what it says of types and listed values, and no more."""
    if not isinstance(schema, dict):
        return schema is not False
    reference = schema.get("$ref")
    if isinstance(reference, str) and not allows(_resolve(reference, root), value, root):
        return False
    kinds = schema.get("type")
    if kinds is not None and not any(_has_type(value, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds)):
        return False
    if "enum" in schema and not any(_same(value, each) for each in schema["enum"]):
        return False
    if "const" in schema and not _same(value, schema["const"]):
        return False
    for word in ("anyOf", "oneOf"):
        if word in schema and not any(allows(each, value, root) for each in schema[word]):
            return False
    return all(allows(each, value, root) for each in schema.get("allOf", ()))


def _has_type(value: Any, kind: str) -> bool:
    if kind in ("number", "integer"):
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return is_number and (kind == "number" or value == int(value))
    return isinstance(value, _TYPES.get(kind, ()))


def _same(left: Any, right: Any) -> bool:
    return type(left) is type(right) and bool(left == right)


def _resolve(reference: str, root: Any) -> Any:
    """The schema that a reference within a document names; True if it is not found."""
    place = root
    if not reference.startswith("#"):
        return True
    for part in reference[1:].split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(place, dict) or part not in place:
            return True
        place = place[part]
    return place
