"""The schema document: places in it, the draft each is written in, and where ``$ref`` leads.

Nothing here knows what a keyword asserts.  A place is looked at when something leads there, so the parts of a large
document that nothing refers to cost nothing.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NoReturn
from urllib.parse import quote, unquote, urljoin

from constrain.errors import SchemaError
from constrain.grammar.json_schema.places import Handle, Place
from constrain.grammar.json_schema.vocabulary import (
    ANNOTATIONS,
    DIALECTS,
    UNDECLARED,
    UNSUPPORTED_DIALECTS,
    Dialect,
)

MAX_DEPTH = 500
"""How deep schemas may be nested.  Every pointer names the whole way, so cost is quadratic in this."""


class Resource:
    """A schema with its own base URI, within which ``#/...`` is resolved."""

    __slots__ = ("dialect", "document", "pointer", "schema", "uri")

    def __init__(self, document: Document, schema: Any, pointer: str, uri: str, dialect: Dialect) -> None:
        self.document = document
        self.schema = schema
        self.pointer = pointer
        self.uri = uri
        self.dialect = dialect


class Constant:
    """A part of a value in ``enum`` or ``const``, standing where a schema could: the schema of just that value."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Location(Place):
    """One schema in the document.  The same schema is the same object, whichever way it was reached."""

    __slots__ = ("depth", "resource", "schema")

    def __init__(self, schema: dict[str, Any] | bool | Constant, pointer: str, resource: Resource, depth: int) -> None:
        self.schema = schema
        self.pointer = pointer
        self.resource = resource
        self.depth = depth
        self.handle = () if schema is True else (self,)
        self.negation = () if schema is False else None

    def child(self, schema: Any, *path: str) -> Handle:
        """The handle of a subschema, found under ``path`` (``$ref`` is followed where it stands alone)."""
        if schema is True:
            return ()
        document = self.resource.document
        known = document.locations.get(id(schema))
        if known is None:
            known = document.locate(schema, self.pointer_to(*path), self.resource, self.depth + 1)
        return document.follow(known) if isinstance(schema, dict) and "$ref" in schema else known.handle

    def beside(self, schema: Constant | bool, *path: str) -> Handle:
        """A schema that does not stand in the document, but says what stands at ``path``."""
        return Location(schema, self.pointer_to(*path), self.resource, self.depth).handle

    def pointer_to(self, *path: str) -> str:
        """The pointer of what is under ``path``."""
        return self.pointer + "".join("/" + escape(token) for token in path)

    def fail(self, reason: str, *path: str) -> NoReturn:
        """Raise SchemaError for this place, or for what is under ``path``."""
        raise SchemaError(reason, self.pointer_to(*path))

    def target(self) -> Handle:
        """Where this schema's ``$ref`` leads."""
        return self.resource.document.resolve(self)


@dataclass(frozen=True)
class Options:
    """What the caller said about how to read a schema: see :func:`~.front_end.from_json_schema`."""

    asserts_formats: bool = True
    is_lenient: bool = False
    registry: Any = None


class Document:
    """A whole schema document, held while a grammar is made from it."""

    def __init__(self, schema: Any, options: Options | None = None) -> None:
        self.warnings: list[str] = []
        options = options or Options()
        self.asserts_formats = options.asserts_formats
        self._is_lenient = options.is_lenient
        # By identity: a dict that is used in two places of a Python schema (or in itself) is one schema.
        self.locations: dict[int, Location] = {}
        self._resources: dict[int, Resource] = {}
        self.root = self.locate(schema, "#", Resource(self, schema, "#", "", UNDECLARED), 0)

    def locate(self, schema: Any, pointer: str, resource: Resource, depth: int) -> Location:
        """The place of a schema that is seen for the first time."""
        if isinstance(schema, dict):
            if "$schema" in schema or resource.dialect.id_keyword in schema:
                resource = self._own_resource(schema, pointer, resource)
        elif type(schema) is not bool:
            raise SchemaError(f"a schema must be an object or a boolean, not {type_name(schema)}", pointer)
        if depth > MAX_DEPTH:
            raise SchemaError(f"schemas are nested more than {MAX_DEPTH} levels deep", shorten(pointer))
        location = Location(schema, pointer, resource, depth)
        if isinstance(schema, dict):
            self.locations[id(schema)] = location
        return location

    def _own_resource(self, schema: dict[str, Any], pointer: str, parent: Resource) -> Resource:
        """The resource a schema opens with ``$id``, or the draft it declares; ``parent`` if neither."""
        known = self._resources.get(id(schema))
        if known is not None:
            return known
        dialect = parent.dialect
        if "$schema" in schema:
            dialect = self._dialect(schema["$schema"], pointer, parent.dialect)
        uri, root, base = parent.uri, parent.schema, parent.pointer
        # What is a resource inside a document is for the document's draft to say; the parts of a bundle
        # may be written in another.
        outer = dialect if schema is parent.schema else parent.dialect
        id_keyword = outer.id_keyword
        identifier = schema.get(id_keyword)
        if identifier is not None and not (outer.ref_hides_siblings and "$ref" in schema):
            if not isinstance(identifier, str):
                reason = f"{id_keyword} must be a string, not {type_name(identifier)}"
                raise SchemaError(reason, f"{pointer}/{id_keyword}")
            # In older drafts a mere fragment names a place, it opens no resource.
            if not identifier.startswith("#"):
                uri = _join(parent.uri, identifier.partition("#")[0], f"{pointer}/{id_keyword}")
                root, base = schema, pointer
        resource = Resource(self, root, base, uri, dialect)
        self._resources[id(schema)] = resource
        return resource

    def _dialect(self, declared: Any, pointer: str, default: Dialect) -> Dialect:
        if not isinstance(declared, str):
            raise SchemaError(f"$schema must be a string, not {type_name(declared)}", pointer + "/$schema")
        name = declared.partition("://")[2].rstrip("#")
        if name in UNSUPPORTED_DIALECTS:
            raise SchemaError(f"$schema {declared!r} is not supported: draft 4 is the oldest", pointer + "/$schema")
        dialect = DIALECTS.get(name)
        if dialect is None:
            self.warnings.append(f"at {pointer}/$schema: {declared!r} is unknown and read as {default.name}")
            return default
        return dialect

    def refuse(self, reason: str, pointer: str) -> None:
        """Raise SchemaError for what cannot be enforced; take note of it if the caller is lenient."""
        if not self._is_lenient:
            raise SchemaError(reason, pointer)
        self.warnings.append(f"at {pointer}: {reason}: it is not enforced")

    # -- references ----------------------------------------------------------------------------

    def follow(self, location: Location) -> Handle:
        """The schema that a ``$ref`` without anything to assert beside it stands for."""
        start = location
        seen = {id(location)}
        while isinstance(location.schema, dict) and "$ref" in location.schema and _stands_alone(location):
            handle = self.resolve(location)
            if not handle:
                return handle
            location = handle[0]
            if id(location) in seen:
                start.fail("$ref leads back to itself: it says nothing about the value", "$ref")
            seen.add(id(location))
        return location.handle

    def resolve(self, location: Location) -> Handle:
        """The place that ``location``'s ``$ref`` names."""
        assert isinstance(location.schema, dict)
        reference = location.schema["$ref"]
        if not isinstance(reference, str):
            location.fail(f"$ref must be a string, not {type_name(reference)}", "$ref")
        uri, _, fragment = reference.partition("#")
        resource = location.resource
        if uri:
            resource = self._find_resource(location, uri, reference)
        try:
            fragment = unquote(fragment, errors="strict")
        except UnicodeDecodeError:
            location.fail(f"$ref {reference!r} is not a URI: its escapes are not UTF-8", "$ref")
        if fragment and not fragment.startswith("/"):
            location.fail(f"$ref {reference!r} names an anchor: only JSON pointers are supported", "$ref")
        return self._walk(resource, fragment, location)

    def _find_resource(self, location: Location, uri: str, reference: str) -> Resource:
        absolute = _join(location.resource.uri, uri, location.pointer + "/$ref")
        for resource in (location.resource, self.root.resource):
            if resource.uri and absolute == resource.uri:
                return resource
        location.fail(f"$ref {reference!r} leads to another document: remote references are not fetched", "$ref")

    def _walk(self, resource: Resource, fragment: str, source: Location) -> Handle:
        schema, pointer = resource.schema, resource.pointer
        tokens = fragment.split("/")[1:]
        for token in tokens:
            token = token.replace("~1", "/").replace("~0", "~")
            try:
                schema = schema[token] if isinstance(schema, dict) else schema[_array_index(token, schema)]
            except (KeyError, IndexError):
                source.fail(f"$ref {'#' + fragment!r} leads nowhere", "$ref")
            pointer = f"{pointer}/{escape(token)}"
            # On the way there may be objects that are no schemas, such as one of properties named "$id".
            if isinstance(schema, dict) and any(
                isinstance(schema.get(keyword), str) for keyword in ("$schema", resource.dialect.id_keyword)
            ):
                resource = self._own_resource(schema, pointer, resource)
        if schema is True:
            return ()
        known = self.locations.get(id(schema))
        return (known or self.locate(schema, pointer, resource, len(tokens))).handle


def _array_index(token: str, array: Any) -> int:
    """What a token of a JSON pointer means in an array; KeyError if it means nothing."""
    if isinstance(array, (list, tuple)) and _ARRAY_INDEX.fullmatch(token):
        return int(token)
    raise KeyError(token)


_ARRAY_INDEX = re.compile("0|[1-9][0-9]{0,8}")


def _stands_alone(location: Location) -> bool:
    schema = location.schema
    assert isinstance(schema, dict)
    return (
        len(schema) == 1
        or location.resource.dialect.ref_hides_siblings
        or ANNOTATIONS.issuperset(schema.keys() - {"$ref"})
    )


def _join(base: str, uri: str, pointer: str) -> str:
    try:
        return urljoin(base, uri)
    except ValueError as error:
        raise SchemaError(f"{uri!r} is not a URI: {error}", pointer) from None


def escape(token: str) -> str:
    """One step of a JSON pointer in URI fragment form (RFC 6901, section 6)."""
    if token.isalnum() and token.isascii():
        return token
    return quote(token.replace("~", "~0").replace("/", "~1"), safe="!$&'()*+,;=:@-._~?/", errors="replace")


def shorten(pointer: str) -> str:
    """A pointer that may be thousands of steps long, for a message."""
    return pointer if len(pointer) <= 200 else pointer[:100] + "..." + pointer[-97:]


_TYPE_NAMES = {
    type(None): "null",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    Decimal: "a number",
    str: "a string",
    list: "an array",
    dict: "an object",
}


def type_name(value: Any) -> str:
    """The JSON type of a Python value, for messages."""
    return _TYPE_NAMES.get(type(value), f"the Python type {type(value).__name__}")


def parse(text: str | bytes) -> Any:
    """Read schema text (bytes are UTF-8).

    Numbers with a fraction or an exponent become Decimal, so that they are exact.  A key that is repeated in
    an object counts with its last value, as in :mod:`json`.
    Raises SchemaError with line and column for what is not JSON.
    """
    try:
        text = text.decode("utf-8-sig") if isinstance(text, bytes) else text.removeprefix("\ufeff")
        return json.loads(text, parse_float=Decimal, parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise SchemaError(f"the schema text is not UTF-8: byte {error.start} cannot be read") from None
    except json.JSONDecodeError as error:
        raise SchemaError(f"invalid JSON at line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise SchemaError(f"the JSON text is nested too deeply: schemas may be {MAX_DEPTH} levels deep") from None
    except (ValueError, ArithmeticError) as error:
        raise SchemaError(f"invalid JSON: {error}") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")
