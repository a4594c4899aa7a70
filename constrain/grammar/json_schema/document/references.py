"""Where ``$ref``, ``$dynamicRef`` and ``$recursiveRef`` lead."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from typing import Any, TypeVar
from urllib.parse import unquote

from constrain.grammar.json_schema.document.document import Document, Location, Resource, escape, join, type_name
from constrain.grammar.json_schema.document.drafts import (
    ANNOTATIONS,
    NAMED,
    NAMED_OR_NAMES,
    ONE,
    ONE_OR_SEVERAL,
    SEVERAL,
    SUBSCHEMAS,
)
from constrain.grammar.json_schema.document.metaschemas import metaschema
from constrain.grammar.json_schema.document.places import Handle
from constrain.grammar.json_schema.document.rewritten import definition_of_copy

Result = TypeVar("Result")

_MOST_COMPARED = 200
"""Names, and letters of a name, that one which is not there is compared with."""


class ScopeNeeded(Exception):
    """A reference depends on the way that led to it, which was not kept."""


def with_scope_if_needed(read: Callable[[bool], Result]) -> Result:
    """What ``read`` returns, which is told whether to keep the way to each place.

    That costs time and memory, and few schemas have a reference that depends on it.
    """
    try:
        return read(False)
    except ScopeNeeded:
        return read(True)


class References:
    """Follows the references of one document."""

    def __init__(self, document: Document, registry: Any) -> None:
        self._document = document
        self._registry = registry
        self._by_uri: dict[str, Resource] = {}
        # By the root of the resource and the name.
        self._anchors: dict[tuple[int, str], tuple[Any, str, Resource]] = {}
        # By the root of the resource the names of its dynamic anchors.
        self._dynamic: dict[int, set[str]] = {}
        # Further schemas of the same name or URI, with the pointer of one of them.
        self._doubles: dict[tuple[int, str] | str, str] = {}
        self._indexed: set[int] = set()
        # What was found for a $ref in a resource, where the way to it does not matter.
        self._resolved: dict[tuple[Resource, str], Handle] = {}

    def follow(self, location: Location) -> Handle:
        """The schema that a ``$ref`` without anything to assert beside it stands for."""
        start = location
        seen = {id(location)}
        while isinstance(location.schema, dict) and "$ref" in location.schema and _stands_alone(location):
            handle = self.resolve(location)
            if not handle:
                return handle
            place = handle[0]
            assert isinstance(place, Location)
            location = place
            if id(location) in seen:
                start.fail("$ref leads back to itself: it says nothing about the value", "$ref")
            seen.add(id(location))
        return location.handle

    def resolve(self, location: Location) -> Handle:
        """The place that ``location``'s ``$ref`` names."""
        assert isinstance(location.schema, dict)
        reference = location.schema["$ref"]
        key = location.resource, reference
        if location.scope is None and type(reference) is str and key in self._resolved:
            return self._resolved[key]
        resource, fragment = self._split(location, "$ref")
        if not fragment or fragment.startswith("/"):
            found = self._walk(resource, fragment, location, "$ref")
        else:
            found = self._place(*self._anchor(resource, fragment, location, "$ref"), location)
        if location.scope is None:
            self._resolved[key] = found
        return found

    def resolve_dynamic(self, location: Location) -> Handle:
        """The place of a ``$dynamicRef``: among the dynamic anchors of that name, the outermost on the way here."""
        resource, fragment = self._split(location, "$dynamicRef")
        if not fragment or fragment.startswith("/"):
            return self._walk(resource, fragment, location, "$dynamicRef")
        found = self._anchor(resource, fragment, location, "$dynamicRef")
        if fragment in self._dynamic.get(id(resource.schema), ()):
            for outer in self._scope(location):
                if fragment in self._dynamic.get(id(outer.schema), ()):
                    key = (id(outer.schema), fragment)
                    found = self._only(key, self._anchors[key], location, "$dynamicRef")
                    break
        return self._place(*found, location)

    def resolve_recursive(self, location: Location) -> Handle:
        """The place of a ``$recursiveRef``: the outermost resource on the way here that is a recursive anchor."""
        assert isinstance(location.schema, dict)
        if location.schema["$recursiveRef"] != "#":
            location.fail("$recursiveRef must be '#'", "$recursiveRef")
        resource = location.resource
        if _is_recursive_anchor(resource):
            resource = next(outer for outer in self._scope(location) if _is_recursive_anchor(outer))
        return self._place(resource.schema, resource.pointer, resource, location)

    def counts_in(self, scope: tuple[Resource, ...], resource: Resource) -> bool:
        """Whether a resource that is entered has an anchor that none of those on the way to it has.

        Of anchors of one name the outermost counts, so without one it makes no difference that it was entered.
        """
        if _is_recursive_anchor(resource) and not any(map(_is_recursive_anchor, scope)):
            return True
        for each in (resource, *scope):
            self._index(each)
        known = set[str]().union(*(self._dynamic.get(id(outer.schema), ()) for outer in scope))
        return not known.issuperset(self._dynamic.get(id(resource.schema), ()))

    def metaschema(self, uri: str) -> Any:
        """The document that ``$schema`` names; None if there is no registry, or none that has it."""
        if self._registry is None:
            return None
        try:
            return self._registry.get_or_retrieve(uri.rstrip("#")).value.contents
        except LookupError:
            return None

    def _scope(self, location: Location) -> Iterator[Resource]:
        if location.scope is None:
            raise ScopeNeeded
        for resource in location.scope:
            self._index(resource)
            yield resource

    def _split(self, location: Location, keyword: str) -> tuple[Resource, str]:
        """The resource and the fragment of a reference."""
        assert isinstance(location.schema, dict)
        reference = location.schema[keyword]
        if not isinstance(reference, str):
            location.fail(f"{keyword} must be a string, not {type_name(reference)}", keyword)
        uri, _, fragment = reference.partition("#")
        resource = location.resource
        if uri:
            resource = self._find_resource(location, uri, keyword)
        try:
            return resource, unquote(fragment, errors="strict")
        except UnicodeDecodeError:
            location.fail(f"{keyword} {reference!r} is not a URI: its escapes are not UTF-8", keyword)

    def _find_resource(self, location: Location, uri: str, keyword: str) -> Resource:
        absolute = join(location.resource.uri, uri, f"{location.pointer}/{keyword}")
        root = self._document.root.resource
        for resource in (location.resource, root):
            if resource.uri and absolute == resource.uri:
                return resource
        self._index(root)
        found = self._by_uri.get(absolute)
        if found is None:
            return self._retrieve(absolute, location, keyword)
        self._only(absolute, (found.schema, found.pointer, found), location, keyword)
        return found

    def _retrieve(self, uri: str, location: Location, keyword: str) -> Resource:
        contents = self._contents(uri, location, keyword)
        dialect = self._document.root.resource.dialect
        resource = Resource(self._document, contents, f"{uri}#", uri, dialect)
        self._by_uri[uri] = resource
        if isinstance(contents, dict):
            resource = self._by_uri[uri] = self._document.own_resource(contents, resource.pointer, resource)
            self._index(resource)
        return resource

    def _contents(self, uri: str, location: Location, keyword: str) -> Any:
        """Another document.  Those of the drafts are known; a registry may have others in their place."""
        if self._registry is not None:
            try:
                return self._registry.get_or_retrieve(uri).value.contents
            except LookupError:
                pass
        known = metaschema(uri)
        if known is not None:
            return known
        assert isinstance(location.schema, dict)
        reference = f"{keyword} {location.schema[keyword]!r}"
        if self._registry is not None:
            location.fail(f"{reference} leads to a remote document that is not in the registry", keyword)
        location.fail(
            f"{reference} leads to another document: remote references are looked up in a registry, and none was given"
            " (a place in this one begins with '#')",
            keyword,
        )

    def _index(self, root: Resource) -> None:
        if id(root.schema) in self._indexed:
            return
        for schema, pointer, resource in _subschemas(self._document, root):
            if resource.schema is schema:
                known = self._by_uri.setdefault(resource.uri, resource)
                self._note_double(resource.uri, known.schema, schema, pointer)
                self._indexed.add(id(schema))
            for keyword in ("$anchor", "$dynamicAnchor"):
                name = schema.get(keyword)
                if isinstance(name, str) and keyword in resource.dialect.words:
                    self._add_anchor(name, schema, pointer, resource)
                    if keyword == "$dynamicAnchor":
                        self._dynamic.setdefault(id(resource.schema), set()).add(name)
            # In older drafts an id that is a mere fragment names a place.
            name = schema.get(resource.dialect.id_keyword)
            if isinstance(name, str) and "#" in name and not (resource.dialect.ref_hides_siblings and "$ref" in schema):
                name = name.partition("#")[2]
                if name:
                    self._add_anchor(name, schema, pointer, resource)

    def _add_anchor(self, name: str, schema: Any, pointer: str, resource: Resource) -> None:
        key = (id(resource.schema), name)
        known, *_ = self._anchors.setdefault(key, (schema, pointer, resource))
        self._note_double(key, known, schema, pointer)

    def _note_double(self, key: tuple[int, str] | str, known: Any, schema: Any, pointer: str) -> None:
        """Note what a name stands for as well; a copy of the same schema does no harm, and tools make some."""
        if known is not schema and key not in self._doubles and repr(known) != repr(schema):
            self._doubles[key] = pointer

    def _only(
        self, key: tuple[int, str] | str, found: tuple[Any, str, Resource], source: Location, keyword: str
    ) -> tuple[Any, str, Resource]:
        """What was found, if no other schema has the same name."""
        if key in self._doubles:
            assert isinstance(source.schema, dict)
            reference = f"{keyword} {source.schema[keyword]!r}"
            source.fail(f"{reference} may be either of two schemas: {found[1]} or {self._doubles[key]}", keyword)
        return found

    def _anchor(self, resource: Resource, name: str, source: Location, keyword: str) -> tuple[Any, str, Resource]:
        self._index(self._document.root.resource)
        self._index(resource)
        key = (id(resource.schema), name)
        found = self._anchors.get(key)
        if found is None:
            assert isinstance(source.schema, dict)
            source.fail(f"{keyword} {source.schema[keyword]!r} names an anchor that does not exist", keyword)
        return self._only(key, found, source, keyword)

    def _walk(self, resource: Resource, fragment: str, source: Location, keyword: str) -> Handle:
        schema, pointer = resource.schema, resource.pointer
        for token in fragment.split("/")[1:]:
            token = token.replace("~1", "/").replace("~0", "~")
            try:
                schema = schema[token] if isinstance(schema, dict) else schema[_array_index(token, schema)]
            except (KeyError, IndexError):
                names = [name for name in schema if isinstance(name, str)] if isinstance(schema, dict) else []
                near = get_close_matches(token[:_MOST_COMPARED], names[:_MOST_COMPARED], 1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                source.fail(
                    f"{keyword} {'#' + fragment!r} leads nowhere: there is no {token!r} at {pointer}{hint}", keyword
                )
            pointer = definition_of_copy(token) or f"{pointer}/{escape(token)}"
            # On the way there may be objects that are no schemas, such as one of properties named "$id".
            if isinstance(schema, dict) and any(
                isinstance(schema.get(keyword), str) for keyword in ("$schema", resource.dialect.id_keyword)
            ):
                resource = self._document.own_resource(schema, pointer, resource)
        return self._place(schema, pointer, resource, source)

    def _place(self, schema: Any, pointer: str, resource: Resource, source: Location) -> Handle:
        if schema is True:
            return ()
        return self._document.place(schema, pointer, resource, pointer.count("/"), source.scope).handle


def _is_recursive_anchor(resource: Resource) -> bool:
    return isinstance(resource.schema, dict) and resource.schema.get("$recursiveAnchor") is True


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


# -- schemas with a URI or a name of their own ---------------------------------------------------------

# They are found for a whole document at once, but only when a reference asks for such a schema: most documents have
# none.


def _subschemas(document: Document, root: Resource) -> Iterator[tuple[dict[str, Any], str, Resource]]:
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
