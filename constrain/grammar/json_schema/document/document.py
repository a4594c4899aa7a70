"""The schema document: places in it, and the draft each is written in.

Nothing here knows what a keyword asserts.  A place is looked at when something leads there, so the parts of a large
document that nothing refers to cost nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple, NoReturn, Protocol
from urllib.parse import quote, urljoin

from constrain.errors import SchemaError
from constrain.grammar.json_schema.document.contents import Contents
from constrain.grammar.json_schema.document.drafts import (
    DIALECTS,
    SUBSCHEMAS,
    UNDECLARED,
    UNSUPPORTED_DIALECTS,
    Dialect,
    UnknownVocabulary,
    dialect_of,
    name_of_dialect,
)
from constrain.grammar.json_schema.document.places import Handle, Place
from constrain.limits import spend

MAX_DEPTH = 500
"""How deep schemas may be nested.  Every pointer names the whole way, so cost is quadratic in this."""


Scope = tuple["Resource", ...] | None
"""The resources on the way to a schema, each at its first entrance; None if no reference depends on it."""


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

    __slots__ = ("depth", "resource", "schema", "scope")

    def __init__(
        self,
        schema: dict[str, Any] | bool | Constant,
        pointer: str,
        resource: Resource,
        depth: int,
        scope: Scope = None,
    ) -> None:
        self.schema = schema
        self.scope = scope
        self.pointer = pointer
        self.resource = resource
        self.depth = depth
        self.negation = () if schema is False else None

    @property
    def handle(self) -> Handle:
        """It alone; the empty handle if it allows everything."""
        return () if self.schema is True else (self,)

    def child(self, schema: Any, *path: str) -> Handle:
        """The handle of a subschema, found under ``path`` (``$ref`` is followed where it stands alone)."""
        if schema is True:
            return ()
        document = self.resource.document
        if self.scope is None:
            known = document.locations.get(id(schema))
            if known is None:
                # Keywords need no escapes, and names are all that may follow.
                pointer = f"{self.pointer}/{path[0]}" if len(path) == 1 else self.pointer_to(*path)
                known = document.locate(schema, pointer, self.resource, self.depth + 1)
        else:
            known = document.place(schema, self.pointer_to(*path), self.resource, self.depth + 1, self.scope)
        return document.references.follow(known) if isinstance(schema, dict) and "$ref" in schema else known.handle

    def children(self, schemas: dict[str, Any], keyword: str) -> dict[str, Handle]:
        """The handles of the subschemas in an object that stands at ``keyword``, by name."""
        if self.scope is not None:
            return {name: self.child(schema, keyword, name) for name, schema in schemas.items()}
        document, resource, depth = self.resource.document, self.resource, self.depth + 1
        known_locations, locate = document.locations, document.locate
        prefix = f"{self.pointer}/{keyword}/"
        handles: dict[str, Handle] = {}
        for name, schema in schemas.items():
            if schema is True:
                handles[name] = ()
                continue
            known = known_locations.get(id(schema))
            if known is None:
                needs_no_escape = name.isascii() and name.isidentifier()
                known = locate(schema, prefix + (name if needs_no_escape else escape(name)), resource, depth)
            if type(schema) is dict and "$ref" in schema:
                handles[name] = document.references.follow(known)
            else:
                handles[name] = known.handle
        return handles

    def at(self, schema: Constant | bool, pointer: str) -> Handle:
        """A schema that does not stand in the document, but says what stands at a pointer."""
        return Location(schema, pointer, self.resource, self.depth).handle

    def pointer_to(self, *path: str) -> str:
        """The pointer of what is under ``path``."""
        return "/".join([self.pointer, *map(escape, path)])

    def fail(self, reason: str, *path: str) -> NoReturn:
        """Raise SchemaError for this place, or for what is under ``path``."""
        raise SchemaError(reason, self.pointer_to(*path))


class Resolver(Protocol):
    """Follows references; see :class:`~.references.References`."""

    def follow(self, location: Location) -> Handle:
        """The schema that a ``$ref`` without anything to assert beside it stands for."""

    def resolve(self, location: Location) -> Handle:
        """The place that ``$ref`` names."""

    def resolve_dynamic(self, location: Location) -> Handle:
        """The place that ``$dynamicRef`` names."""

    def resolve_recursive(self, location: Location) -> Handle:
        """The place that ``$recursiveRef`` names."""

    def counts_in(self, scope: tuple[Resource, ...], resource: Resource) -> bool:
        """Whether it may make a difference to references that a resource is entered on this way."""

    def metaschema(self, uri: str) -> Any:
        """The document that ``$schema`` names; None if it is not at hand."""


class Options(NamedTuple):
    """What the caller said about how to read a schema: see :func:`~..front_end.from_json_schema`."""

    asserts_formats: bool = True
    is_lenient: bool = False
    matches_in_full: bool = False
    coerces_one_of: bool = False
    unwritable: str = ""
    """Characters that no text can hold, as there is no escape for them."""
    way_out: str = "lenient"
    """What leaves out parts that cannot be enforced, for messages."""


_HOLDERS = frozenset(SUBSCHEMAS)


class Document:
    """A whole schema document, held while a grammar is made from it."""

    def __init__(
        self, schema: Any, options: Options, has_scope: bool, resolver: Callable[[Document], Resolver]
    ) -> None:
        self.warnings: list[str] = []
        self.is_loose = False
        self.options = options
        # By identity: a dict that is used in two places of a Python schema (or in itself) is one schema.
        self.locations: dict[int, Location] = {}
        self._scoped: dict[tuple[int, tuple[Resource, ...]], Location] = {}
        self._resources: dict[int, Resource] = {}
        self.contents = Contents()
        # With a scope the way to a schema matters, too.
        self._copies: dict[object, Location] | None = None if has_scope else {}
        self.references = resolver(self)
        resource = Resource(self, schema, "#", "", UNDECLARED)
        self.root = self.place(schema, "#", resource, 0, () if has_scope else None)

    def place(self, schema: Any, pointer: str, resource: Resource, depth: int, scope: Scope) -> Location:
        """The place of a schema that may have been seen before, reached through ``scope``."""
        if scope is None:
            known = self.locations.get(id(schema))
            return self.locate(schema, pointer, resource, depth) if known is None else known
        known = self._scoped.get((id(schema), scope))
        if known is None:
            # One for each order of the resources that lead here, each a tuple of its own.
            spend(10 + len(scope))
            known = self.locate(schema, pointer, resource, depth)
            self.locations.clear()
            own = known.resource
            inner = scope if scope and not self.references.counts_in(scope, own) else (*scope, own)
            known = Location(schema, pointer, own, depth, inner)
            if isinstance(schema, dict):
                self._scoped[id(schema), scope] = known
        return known

    def locate(self, schema: Any, pointer: str, resource: Resource, depth: int) -> Location:
        """The place of a schema that is seen for the first time."""
        is_object = isinstance(schema, dict)
        if is_object:
            if "$schema" in schema or resource.dialect.id_keyword in schema:
                resource = self.own_resource(schema, pointer, resource)
        elif type(schema) is not bool:
            raise SchemaError(f"a schema must be an object or a boolean, not {type_name(schema)}", pointer)
        if depth > MAX_DEPTH:
            raise SchemaError(f"schemas are nested more than {MAX_DEPTH} levels deep", shorten(pointer))
        location = Location(schema, pointer, resource, depth)
        if is_object:
            if depth and self._copies is not None and not _HOLDERS.isdisjoint(schema):
                location = self._first_copy(location, self._copies)
            self.locations[id(schema)] = location
        return location

    def _first_copy(self, location: Location, known: dict[object, Location]) -> Location:
        """The first place of the same resource that holds the same schema, word by word; it stands for all of them.

        Many documents repeat what others refer to, and nothing of a copy is to be worked out again.
        """
        schema, resource = location.schema, location.resource
        assert isinstance(schema, dict)
        # Numbering all that a schema holds takes time: first at a glance.
        properties = schema.get("properties")
        strings = [value for value in schema.values() if type(value) is str]
        alike = resource, *schema, *strings, *(properties if isinstance(properties, dict) else ())
        first = known.setdefault(alike, location)
        if first is location:
            return location
        for each in (first, location):
            number = self.contents.number(each.schema)
            if number is None:
                return location
            first = known.setdefault((number, resource), each)
        return first

    def own_resource(self, schema: dict[str, Any], pointer: str, parent: Resource) -> Resource:
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
                uri = join(parent.uri, identifier.partition("#")[0], f"{pointer}/{id_keyword}")
                root, base = schema, pointer
        resource = Resource(self, root, base, uri, dialect)
        self._resources[id(schema)] = resource
        return resource

    def _dialect(self, declared: Any, pointer: str, default: Dialect) -> Dialect:
        if not isinstance(declared, str):
            raise SchemaError(f"$schema must be a string, not {type_name(declared)}", pointer + "/$schema")
        name = name_of_dialect(declared)
        if name in UNSUPPORTED_DIALECTS:
            raise SchemaError(f"$schema {declared!r} is not supported: draft 4 is the oldest", pointer + "/$schema")
        dialect = DIALECTS.get(name)
        if dialect is None:
            metaschema = self.references.metaschema(declared)
            if metaschema is not None:
                try:
                    return dialect_of(metaschema, default)
                except UnknownVocabulary as error:
                    reason = f"the metaschema {declared!r} demands the vocabulary {error.args[0]!r}, which is unknown"
                    raise SchemaError(reason, pointer + "/$schema") from None
            self.warnings.append(f"at {pointer}/$schema: {declared!r} is unknown and read as {default.name}")
            return default
        return dialect

    def refuse(self, reason: str, pointer: str, outcome: str = "it is not enforced") -> None:
        """Raise SchemaError for what cannot be enforced; if the caller is lenient, take note of it and its outcome."""
        if not self.options.is_lenient:
            raise SchemaError(f"{reason}; {self.options.way_out} leaves it out, with a warning", pointer)
        self.note(f"{reason}: {outcome}", pointer)

    def leave_out(self, reason: str, pointer: str) -> None:
        """The same for what decides which values a schema allows, before others are told from these."""
        self.refuse(reason, pointer)
        self.is_loose = True

    def forget(self) -> None:
        """Let go of the schema when no more is asked of it.

        All that is known of it holds the document, so it would stay until cyclic garbage is looked for.
        """
        for location in (*self.locations.values(), *self._scoped.values()):
            location.negation = None
        self.locations.clear()
        self._scoped.clear()
        self._resources.clear()
        del self.root, self.references

    def note(self, reason: str, pointer: str) -> None:
        """Add a warning, unless it is known."""
        warning = f"at {pointer}: {reason}"
        if warning not in self.warnings:
            self.warnings.append(warning)


def join(base: str, uri: str, pointer: str) -> str:
    """A relative URI reference made absolute (RFC 3986, section 5.2)."""
    try:
        return urljoin(base, uri)
    except ValueError as error:
        raise SchemaError(f"{uri!r} is not a URI: {error}", pointer) from None


_NEEDS_NO_ESCAPE = re.compile(r"[\w.-]*", re.ASCII).fullmatch


def escape(token: str) -> str:
    """One step of a JSON pointer in URI fragment form (RFC 6901, section 6)."""
    if _NEEDS_NO_ESCAPE(token):
        return token
    return quote(token.replace("~", "~0").replace("/", "~1"), safe="!$&'()*+,;=:@-._~?/", errors="replace")


def shorten(text: str) -> str:
    """A pointer, or a reason, that may be thousands of steps long, for a message."""
    return text if len(text) <= 200 else text[:100] + "..." + text[-97:]


def cut(text: str) -> str:
    """What is written of a value, short enough for a message."""
    return text if len(text) <= 60 else text[:57] + "..."


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


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


def _integer(text: str) -> int | Decimal:
    # Python reads integers of more than 4,300 digits only by way of a Decimal; beyond these that takes long, too.
    if len(text) <= 4_000:
        return int(text)
    return int(Decimal(text)) if len(text) <= 20_000 else Decimal(text)


def _fraction(text: str) -> Decimal:
    try:
        return Decimal(text)
    except ArithmeticError:
        raise ValueError(f"the exponent of the number {cut(text)!r} is too large to be read") from None


_DECODER = json.JSONDecoder(parse_int=_integer, parse_float=_fraction, parse_constant=_no_constant)


def parse(text: str | bytes) -> Any:
    """Read schema text (bytes are UTF-8).

    Numbers with a fraction or an exponent become Decimal, so that they are exact.  A key that is repeated in
    an object counts with its last value, as in :mod:`json`.
    Raises SchemaError with line and column for what is not JSON.
    """
    try:
        text = text.decode("utf-8-sig") if isinstance(text, bytes) else text.removeprefix("\ufeff")
        return _DECODER.decode(text)
    except UnicodeDecodeError as error:
        raise SchemaError(f"the schema text is not UTF-8: byte {error.start} cannot be read") from None
    except json.JSONDecodeError as error:
        raise SchemaError(f"invalid JSON at line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise SchemaError(
            f"the JSON text is nested too deeply to be read; schemas may be {MAX_DEPTH} levels deep"
        ) from None
    except ValueError as error:
        raise SchemaError(f"invalid JSON: {error}") from None
