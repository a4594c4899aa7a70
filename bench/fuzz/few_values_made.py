"""Random JSON Schemas that so few values satisfy that all of them can be written down.

Each schema comes with *candidates*: a list that holds all of its values, and others.  A schema is made of a shape,
whose candidates are put together of those of its parts, and of restrictions, which can be anything: they take values
away.  Nothing here knows which.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from typing import Any

MOST = 1500
"""Candidates of one schema at most."""

# No 0: it is also written -0.
ATOMS = (None, True, False, 1, 1.0, 2, 12, "", "a", "b", "ab", 'q"', "é", "a\\", "😀")
_KEYS = ("a", "b", "ab", "é", "", 'q"')
# Patterns of few strings, with these.
_CLASSES: dict[str, tuple[str, ...]] = {
    "^[ab]$": ("a", "b"),
    "^a?b?$": ("", "a", "b", "ab"),
    "^(a|bc)$": ("a", "bc"),
    "^ab{0,2}$": ("a", "ab", "abb"),
    "^k[12]?$": ("k", "k1", "k2"),
    "^[aé]{1,2}$": ("a", "é", "aa", "aé", "éa", "éé"),
    "^line[1-3]$": ("line1", "line2", "line3"),
}


_IMPOSSIBLE: tuple[Any, ...] = (
    False,
    {"enum": [1], "const": 2},
    {"type": "array", "items": False, "minItems": 1},
    {"type": "array", "items": {"enum": [1, 1.0]}, "uniqueItems": True, "minItems": 2},
    {"type": "array", "prefixItems": [{"const": 1}, {"const": 1.0}], "uniqueItems": True, "minItems": 2},
    {"type": "array", "items": {"const": 1}, "contains": {"const": 1}, "maxContains": 1, "minItems": 2},
    {"type": "array", "contains": {"const": 1}, "minContains": 2, "maxItems": 1},
    {"type": "array", "not": {"uniqueItems": True}, "maxItems": 1},
    {"type": "object", "propertyNames": {"pattern": "^[ab]$"}, "minProperties": 3},
    {"type": "object", "propertyNames": {"const": "a"}, "not": {"propertyNames": {"const": "a"}}},
    {"type": "object", "required": ["a"], "dependentSchemas": {"a": {"maxProperties": 0}}},
    {"type": "integer", "multipleOf": 7, "minimum": 1, "maximum": 6},
    {"type": "string", "pattern": "^a", "maxLength": 0},
)


class TooMany(Exception):
    """There are more candidates than can be written down."""


def _distinct(values: list[Any]) -> list[Any]:
    found = list({json.dumps(each): each for each in values}.values())
    if len(found) > MOST:
        raise TooMany
    return found


def _atoms(rng: random.Random) -> tuple[dict[str, Any], list[Any]]:
    what = rng.randrange(7)
    if what == 0:
        low, count = rng.choice(((-2, 2), (1, 1), (1, 2), (1, 4), (9, 3)))
        return {"type": "integer", "minimum": low, "maximum": low + count - 1}, list(range(low, low + count))
    if what == 1:
        pattern = rng.choice([*_CLASSES])
        return {"type": "string", "pattern": pattern}, list(_CLASSES[pattern])
    if what == 2:
        return {"type": "boolean"}, [False, True]
    if what == 3:
        value = rng.choice((*ATOMS, [], {}, [1], [[]], {"a": 1}, {"a": [1, {"b": None}]}))
        return {"const": value}, [value]
    values = rng.sample(ATOMS, rng.randint(1, 4))
    if rng.random() < 0.2:
        values += rng.sample(([], {}, [1], [1.0], [[]], {"a": 1}, {"a": 1.0}, {"b": [1]}, [1, "a"]), 2)
    return {"enum": values}, values


def _array(rng: random.Random, depth: int) -> tuple[dict[str, Any], list[Any]]:
    made: dict[str, Any] = {"type": "array"}
    prefixes = []
    if rng.random() < 0.3:
        parts = [shape(rng, depth - 1) for _ in range(rng.randint(1, 2))]
        made["prefixItems"] = [part for part, _ in parts]
        prefixes = [values for _, values in parts]
    items, values = shape(rng, depth - 1)
    most = rng.choice((1, 2, 2, 3, 3, 4))
    made["maxItems"] = most
    if prefixes and rng.random() < 0.3:
        made["items"] = False
        del made["maxItems"]
        most = len(prefixes)
    else:
        made["items" if rng.random() < 0.8 else "unevaluatedItems"] = items
    if rng.random() < 0.6:
        made["uniqueItems"] = True
    if rng.random() < 0.5:
        made["minItems"] = rng.randint(1, most)
    found: list[Any] = []
    for count in range(made.get("minItems", 0), most + 1):
        places = [prefixes[index] if index < len(prefixes) else values for index in range(count)]
        size = 1
        for place in places:
            size *= len(place)
        if size > MOST:
            raise TooMany
        found += map(list, itertools.product(*places))
    return made, _distinct(found)


def _object(rng: random.Random, depth: int) -> tuple[dict[str, Any], list[Any]]:
    made: dict[str, Any] = {"type": "object", "additionalProperties": False}
    every: dict[str, list[Any]] = {}

    def add(keys: tuple[str, ...] | list[str]) -> dict[str, Any]:
        schema, values = shape(rng, depth - 1)
        if rng.random() < 0.1:
            # No value at all.
            schema = rng.choice(_IMPOSSIBLE)
        for key in keys:
            every[key] = [*every.get(key, []), *values]
        return schema

    what = rng.randrange(3)
    if what == 0 or rng.random() < 0.4:
        made["properties"] = {key: add([key]) for key in rng.sample(_KEYS, rng.randint(1, 2))}
        made["required"] = [key for key in made["properties"] if rng.random() < 0.4]
    if what == 1 or rng.random() < 0.2:
        patterns = rng.sample([*_CLASSES], rng.choice((1, 1, 2)))
        made["patternProperties"] = {pattern: add(_CLASSES[pattern]) for pattern in patterns}
    if what == 2:
        keys = rng.sample(_KEYS, rng.randint(1, 3))
        pattern = rng.choice([*_CLASSES])
        made["propertyNames"] = rng.choice(({"enum": keys}, {"pattern": pattern}))
        made["additionalProperties"] = add(keys if "enum" in made["propertyNames"] else _CLASSES[pattern])
    if rng.random() < 0.5:
        made["minProperties"] = rng.randint(1, 3)
    if rng.random() < 0.4:
        made["maxProperties"] = rng.randint(1, 3)
    found: list[dict[str, Any]] = [{}]
    for key, values in every.items():
        found += [{**each, key: value} for each in found for value in _distinct(values)]
        if len(found) > MOST:
            raise TooMany
    return made, _distinct(found)


def restriction(rng: random.Random, values: list[Any], depth: int) -> Any:
    """Any schema: of these values it may allow some."""
    if depth <= 0 or rng.random() < 0.15:
        what = rng.randrange(5)
        if what == 0:
            return {"type": rng.choice(("array", "object", "string", "integer", "number", "null"))}
        if what == 1:
            return {"enum": _distinct(rng.choices([*values, *ATOMS], k=3))}
        return (
            {"const": rng.choice(values or [1])},
            {rng.choice(("minItems", "maxItems", "minProperties", "maxProperties", "maxLength")): rng.randrange(3)},
            {"pattern": rng.choice([*_CLASSES])},
        )[what - 2]

    def inner() -> Any:
        return restriction(rng, _parts(values) or values, depth - 1)

    def same() -> Any:
        return restriction(rng, values, depth - 1)

    what = rng.choice(_RESTRICTIONS)
    key = rng.choice(_KEYS)
    if what == "contains":
        made = {"contains": inner()}
        if rng.random() < 0.5:
            made["minContains"] = rng.randrange(3)
        if rng.random() < 0.5:
            made["maxContains"] = rng.randint(max(1, made.get("minContains", 1)), 3)
        return made
    if what == "not":
        return {"not": same()}
    if what == "if":
        return {"if": same(), **{name: same() for name in ("then", "else") if rng.random() < 0.7}}
    if what in ("oneOf", "anyOf", "allOf"):
        return {what: [same() for _ in range(rng.randint(1, 2))]}
    if what in ("dependentSchemas", "properties"):
        return {what: {key: inner() if what == "properties" else same()}}
    if what == "patternProperties":
        return {what: {rng.choice([*_CLASSES]): inner()}}
    if what == "prefixItems":
        return {what: [inner() for _ in range(rng.randint(1, 2))]}
    return {
        "required": {"required": [key]},
        "dependentRequired": {"dependentRequired": {key: [rng.choice(_KEYS)]}},
        "uniqueItems": {"uniqueItems": True},
        "propertyNames": {
            "propertyNames": rng.choice(({"maxLength": 1}, {"not": {"const": key}}, {"pattern": "^[ab]"}))
        },
    }.get(what) or {what: inner()}


_RESTRICTIONS = (
    *("contains", "contains", "not", "if", "oneOf", "anyOf", "allOf", "dependentSchemas", "properties", "items"),
    *("patternProperties", "prefixItems", "required", "dependentRequired", "uniqueItems", "propertyNames"),
    *("unevaluatedItems", "unevaluatedProperties", "additionalProperties"),
)


# Beside others, these allow more: keys and items that the others count out.
_WIDENING = ("properties", "patternProperties", "prefixItems", "items", "additionalProperties")


def _parts(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values[:200]:
        found += value if isinstance(value, list) else value.values() if isinstance(value, dict) else ()
    return list({json.dumps(each): each for each in found}.values())


def shape(rng: random.Random, depth: int) -> tuple[dict[str, Any], list[Any]]:
    """A schema, and a list that holds all its values.  Raises TooMany."""
    if depth <= 0 or rng.random() < 0.2:
        return _atoms(rng)
    what = rng.random()
    if what < 0.15:
        parts = [shape(rng, depth - 1) for _ in range(rng.randint(2, 3))]
        return {rng.choice(("anyOf", "oneOf")): [part for part, _ in parts]}, _distinct(
            [v for _, vs in parts for v in vs]
        )
    made, values = (_array if what < 0.6 else _object)(rng, depth)
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        more = restriction(rng, values, rng.choice((0, 1, 2)))
        if set(more) & {*made, *_WIDENING} or "unevaluatedItems" in made:
            is_apart = "unevaluatedItems" in made or rng.random() < 0.5
            made = {"allOf": [made, more]} if is_apart else {**made, "allOf": [*made.get("allOf", []), more]}
        else:
            made |= more
        if "unevaluatedProperties" in more and made.get("additionalProperties") is False:
            # Something has to be left: what may stand here is what the candidates have.
            del made["additionalProperties"]
            made["propertyNames"] = {"enum": sorted({key for value in values for key in value})}
            # What it says may be little, and the values few all the same.
            listed = {"enum": _parts(values) or [None]}
            made["unevaluatedProperties"] = {"allOf": [made["unevaluatedProperties"], listed]}
    return made, values


def schema(rng: random.Random, depth: int = 3) -> tuple[dict[str, Any], list[Any]]:
    """A schema of the 2020-12 draft, and a list that holds all its values; there may be none."""
    while True:
        try:
            made, values = shape(rng, depth)
        except TooMany:
            continue
        if isinstance(made, dict) and len(values) > 1:
            return made, values


def orders(value: Any) -> Iterator[Any]:
    """A value with its members in every order; ``1.0`` is also written ``1``."""
    if isinstance(value, list):
        yield from map(list, itertools.product(*(list(orders(each)) for each in value)))
    elif isinstance(value, dict):
        for keys in itertools.permutations(value):
            yield from (
                dict(zip(keys, members, strict=True))
                for members in itertools.product(*(list(orders(value[key])) for key in keys))
            )
    else:
        yield value
        if isinstance(value, float) and value.is_integer():
            yield int(value)
