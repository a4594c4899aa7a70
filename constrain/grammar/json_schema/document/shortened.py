"""lm-format-enforcer's convention for schemas: an array that does not say how long it may be is of limited length.

The limit is written into the schema, so that all other rules know one meaning.
"""

from __future__ import annotations

from typing import Any

_ABOUT_ITEMS = ("items", "prefixItems", "additionalItems", "unevaluatedItems", "contains", "minItems", "uniqueItems")
# What applies to the same array.
_LISTS_IN_PLACE = ("allOf", "anyOf", "oneOf")
_IN_PLACE = ("then", "else")
# Where other values' schemas stand: one, a list, or by name.
_SINGLE = ("items", "additionalItems", "additionalProperties", "unevaluatedItems", "unevaluatedProperties")
_BY_NAME = ("properties", "patternProperties", "$defs", "definitions")


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
        elif word in _IN_PLACE:
            result[word] = shortened(value, most, is_decided=decided)
        elif word in _SINGLE and isinstance(value, dict):
            result[word] = shortened(value, most)
        elif word in (*_SINGLE, "prefixItems") and isinstance(value, list):
            result[word] = [shortened(each, most) for each in value]
        elif word in _BY_NAME and isinstance(value, dict):
            result[word] = {name: shortened(each, most) for name, each in value.items()}
    return result
