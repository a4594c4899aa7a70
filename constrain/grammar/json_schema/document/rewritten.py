"""Conventions of other engines for schemas, written into the schema, so that all other rules know one meaning.

XGrammar's: an object that says which members it has, has no others; JSON Schema says the opposite.
lm-format-enforcer's: an array that does not say how long it may be is of limited length.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from constrain.grammar.json_schema.document.document import escape
from constrain.grammar.json_schema.document.drafts import DIALECTS, name_of_dialect

# What applies to the same object or array, and may speak of its parts too.
_LISTS_IN_PLACE = ("allOf", "anyOf", "oneOf")
# Where other values' schemas stand: one, a list, or by name.
_SINGLE = ("items", "additionalItems", "additionalProperties", "unevaluatedItems", "unevaluatedProperties")
_BY_NAME = ("properties", "patternProperties", "$defs", "definitions")

_OPENERS = ("additionalProperties", "unevaluatedProperties", "propertyNames")
_NAMERS = ("properties", "patternProperties")
_IN_PLACE = ("if", "then", "else", "$ref", "$dynamicRef")
_SINGLE_OR_CONTAINS = (*_SINGLE, "contains")
_WORDS = {*_NAMERS, *_LISTS_IN_PLACE, *_IN_PLACE, *_SINGLE_OR_CONTAINS, *_BY_NAME, "prefixItems", "dependentSchemas"}


def closed(schema: Any) -> Any:
    """The schema in which members that an object does not name are forbidden, where it says nothing about them.

    What is no schema comes back as it is.
    """
    return _Closing(schema).written() if isinstance(schema, dict) else schema


class _Closing:
    """Closes the objects of a schema document.

    A definition that is a part of an object that others speak of too must not forbid their members.  Where it is
    referred to as that, a copy of it takes its place which is open itself, and is found under ``$defs``.
    """

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        declared = root.get("$schema")
        dialect = DIALECTS.get(name_of_dialect(declared)) if isinstance(declared, str) else None
        self._ref_hides_siblings = dialect is not None and dialect.ref_hides_siblings
        self._names = root.get("$defs", {})
        self._copied: set[str] = set()
        """References to definitions of which there are copies, or are to be."""
        self._to_copy: list[tuple[str, dict[str, Any]]] = []
        """Such references, with the definitions: these may refer to further ones."""

    def written(self) -> Any:
        result = self._closed(self._root, is_decided=False, is_within=False)
        copies: dict[str, Any] = {}
        while self._to_copy:
            reference, definition = self._to_copy.pop()
            copies[self._name(reference)] = self._closed(definition, is_decided=True, is_within=False)
        return {**result, "$defs": {**result.get("$defs", {}), **copies}} if copies else result

    def _name(self, reference: str) -> str:
        name = reference + _AS_PART
        while name in self._names:
            name += "'"
        return name

    def _closed(self, schema: Any, *, is_decided: bool, is_within: bool) -> Any:
        """A schema of the document.

        Parameters
        ----------
        schema : JSON value
        is_decided : bool
            Whether a schema around it speaks of the same object, and has decided about its members.
        is_within : bool
            Whether it is in a resource of its own (``$id``), in which references mean something else.
        """
        if not isinstance(schema, dict) or _WORDS.isdisjoint(schema):
            return schema
        is_within |= schema is not self._root and _is_resource(schema)
        result = dict(schema)
        if self._ref_hides_siblings and isinstance(schema.get("$ref"), str):
            # All else there is for others to refer to.
            schema = {word: value for word, value in schema.items() if word in ("$ref", "$defs", "definitions")}
        speaks = any(isinstance(schema.get(word), dict) for word in _NAMERS)
        says = any(word in schema for word in _OPENERS)
        all_of = schema.get("allOf")
        joined = [each for each in all_of if isinstance(each, dict)] if isinstance(all_of, list) else []
        # One alone may close itself.
        referred = [self._target(each, is_within) or {} for each in joined] if len(joined) > 1 else []
        joins = any(word in each for each in (*joined, *referred) for word in _NAMERS)
        has_others = any(word in schema for word in (*_LISTS_IN_PLACE, *_IN_PLACE, "dependentSchemas"))
        closes = (speaks or joins) and not says and not is_decided
        if closes:
            result["unevaluatedProperties" if has_others else "additionalProperties"] = False
        decided = is_decided or speaks or says or joins

        def inner(value: Any, *, is_decided: bool = False) -> Any:
            return self._closed(value, is_decided=is_decided, is_within=is_within)

        for word, value in schema.items():
            if word in _LISTS_IN_PLACE and isinstance(value, list):
                result[word] = [inner(each, is_decided=decided) for each in value]
            elif word in ("if", "then", "else"):
                result[word] = inner(value, is_decided=True)
            elif word == "dependentSchemas" and isinstance(value, dict):
                result[word] = {name: inner(each, is_decided=True) for name, each in value.items()}
            elif word in _SINGLE_OR_CONTAINS and isinstance(value, dict):
                result[word] = inner(value)
            elif word in (*_SINGLE_OR_CONTAINS, "prefixItems") and isinstance(value, list):
                result[word] = [inner(each) for each in value]
            elif word in _BY_NAME and isinstance(value, dict):
                result[word] = {name: inner(each) for name, each in value.items()}
            elif word == "$ref" and decided:
                result[word] = self._reference_to_open(schema, is_within)
        # What is required is named, too.
        unnamed = _required_alone([schema, *joined, *referred]) if closes else {}
        if unnamed and not has_others:
            result["properties"] = {**schema.get("properties", {}), **unnamed}
        elif unnamed and isinstance(result.get("allOf", []), list):
            result["allOf"] = [*result.get("allOf", []), {"properties": unnamed}]
        return result

    def _target(self, schema: dict[str, Any], is_within: bool) -> dict[str, Any] | None:
        """The definition that ``$ref`` in a schema leads to, if it is an object schema of this document."""
        reference = schema.get("$ref")
        if is_within or not isinstance(reference, str) or not reference.startswith("#/"):
            return None
        found: Any = self._root
        for step in unquote(reference[2:]).split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, dict) or name not in found:
                return None
            found = found[name]
            if isinstance(found, dict) and _is_resource(found):
                return None
        return found if isinstance(found, dict) else None

    def _reference_to_open(self, schema: dict[str, Any], is_within: bool) -> Any:
        reference = schema["$ref"]
        target = self._target(schema, is_within)
        if target is None or not isinstance(self._names, dict):
            return reference
        if reference not in self._copied:
            self._copied.add(reference)
            self._to_copy.append((reference, target))
        return f"#/$defs/{escape(self._name(reference))}"


def _is_resource(schema: dict[str, Any]) -> bool:
    return any(isinstance(schema.get(word), str) for word in ("$id", "id"))


_AS_PART = " as a part"


def definition_of_copy(name: str) -> str | None:
    """The pointer of the definition of which there is a copy under this name in ``$defs``; None if it is another name.

    For messages: the copy does not stand in the document.
    """
    reference, found, rest = name.rpartition(_AS_PART)
    return reference if found and reference.startswith("#/") and not rest.strip("'") else None


def _required_alone(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    """The members that some schemas of one object require, and none of them describes: any value."""
    named = [each["properties"] for each in schemas if isinstance(each.get("properties"), dict)]
    required = [name for each in schemas if isinstance(each.get("required"), list) for name in each["required"]]
    return {
        name: {} for name in required if isinstance(name, str) and not any(name in properties for properties in named)
    }


_ABOUT_ITEMS = ("items", "prefixItems", "additionalItems", "unevaluatedItems", "contains", "minItems", "uniqueItems")


def shortened(schema: Any, most: int, *, is_decided: bool = False) -> Any:
    """The schema in which arrays have at most so many items, where it speaks of arrays and not of ``maxItems``.

    An array that must have more items than that has as many as it must.

    Parameters
    ----------
    schema : JSON value
        A schema; what is none comes back as it is.
    most : int
    is_decided : bool
        Whether a schema around it speaks of the same array, and has decided about its length.
    """
    if not isinstance(schema, dict):
        return schema
    result = dict(schema)
    types = schema.get("type")
    speaks = types == "array" or (isinstance(types, list) and "array" in types)
    speaks |= any(word in schema for word in _ABOUT_ITEMS)
    all_of = schema.get("allOf")
    says = "maxItems" in schema or (
        isinstance(all_of, list) and any(isinstance(each, dict) and "maxItems" in each for each in all_of)
    )
    if speaks and not says and not is_decided:
        least = schema.get("minItems")
        result["maxItems"] = max(most, least) if isinstance(least, int) else most
    decided = is_decided or speaks or says
    for word, value in schema.items():
        if word in _LISTS_IN_PLACE and isinstance(value, list):
            result[word] = [shortened(each, most, is_decided=decided) for each in value]
        elif word in ("then", "else"):
            result[word] = shortened(value, most, is_decided=decided)
        elif word in _SINGLE and isinstance(value, dict):
            result[word] = shortened(value, most)
        elif word in (*_SINGLE, "prefixItems") and isinstance(value, list):
            result[word] = [shortened(each, most) for each in value]
        elif word in _BY_NAME and isinstance(value, dict):
            result[word] = {name: shortened(each, most) for name, each in value.items()}
    return result
