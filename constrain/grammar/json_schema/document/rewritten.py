"""Conventions of other engines for schemas, written into the schema, so that all other rules know one meaning.

XGrammar's: an object that says which members it has, has no others; JSON Schema says the opposite.
lm-format-enforcer's: an array that does not say how long it may be is of limited length.
"""

from __future__ import annotations

from typing import Any

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


def closed(schema: Any, *, is_decided: bool = False) -> Any:
    """The schema in which members that it does not name are forbidden, where it says nothing about them.

    Parameters
    ----------
    schema : JSON value
        A schema; what is none comes back as it is.
    is_decided : bool
        Whether a schema around it speaks of the same object, and has decided about its members.
    """
    if not isinstance(schema, dict) or _WORDS.isdisjoint(schema):
        return schema
    result = dict(schema)
    speaks = any(isinstance(schema.get(word), dict) for word in _NAMERS)
    says = any(word in schema for word in _OPENERS)
    all_of = schema.get("allOf")
    joined = [each for each in all_of if isinstance(each, dict)] if isinstance(all_of, list) else []
    joins = any(word in each for each in joined for word in _NAMERS)
    has_others = any(word in schema for word in (*_LISTS_IN_PLACE, *_IN_PLACE, "dependentSchemas"))
    closes = (speaks or joins) and not says and not is_decided
    if closes:
        result["unevaluatedProperties" if has_others else "additionalProperties"] = False
    decided = is_decided or speaks or says or joins
    for word, value in schema.items():
        if word in _LISTS_IN_PLACE and isinstance(value, list):
            result[word] = [closed(each, is_decided=decided) for each in value]
        elif word in ("if", "then", "else"):
            result[word] = closed(value, is_decided=True)
        elif word == "dependentSchemas" and isinstance(value, dict):
            result[word] = {name: closed(each, is_decided=True) for name, each in value.items()}
        elif word in _SINGLE_OR_CONTAINS and isinstance(value, dict):
            result[word] = closed(value)
        elif word in (*_SINGLE_OR_CONTAINS, "prefixItems") and isinstance(value, list):
            result[word] = [closed(each) for each in value]
        elif word in _BY_NAME and isinstance(value, dict):
            result[word] = {name: closed(each) for name, each in value.items()}
    # What is required is named, too.
    unnamed = _required_alone([schema, *joined]) if closes else {}
    if unnamed and not has_others:
        result["properties"] = {**schema.get("properties", {}), **unnamed}
    elif unnamed and isinstance(result.get("allOf", []), list):
        result["allOf"] = [*result.get("allOf", []), {"properties": unnamed}]
    return result


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
