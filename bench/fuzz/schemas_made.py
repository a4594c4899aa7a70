"""Random JSON Schemas, random instances, and instances that are nearly what a schema asks for.

Nothing here knows how the engine reads a schema.  Instances are made from the keywords as the specification describes
them, and are only guesses: validators say which are valid.
"""

from __future__ import annotations

import json
import random
from typing import Any

_KEYS = ("a", "b", "c", "ab", "k1", "é", 'q"', "")
_STRINGS = ("", "a", "b", "ab", "abc", "aab", "bc1", "é", "😀", 'q"', "\\", "a b", "2024-02-29", "k1", "x" * 9, "\n")
_NUMBERS = (0, 1, -1, 2, 3, 7, 10, 100, -25, 0.5, 1.5, -0.25, 1e3, 12345678901, 0.1, 1e-5, 1e16, 1e20)
# Simple enough to mean the same in ECMA-262 and in Python.
_PATTERNS = ("^a", "b$", "^[ab]*$", "^(a|bc)+$", "[0-9]", "^k[0-9]{1,2}$", "a.b", "^.{2,3}$", "^x?y*$")
# What patterns are made of; some of them count, as lengths beside a pattern do.
_PARTS = (
    ".",
    "[ab]*",
    "[0-9]",
    "x{0,40}",
    ".{0,30}",
    "[^,]{1,20}",
    "ab",
    "(ab|c)?",
    ".*",
    "(x.){0,9}",
    "[ab]{2}",
    "x+",
)
_FORMATS = ("date", "ipv4", "uuid", "date-time")


def value(rng: random.Random, depth: int = 2) -> Any:
    """Any JSON value."""
    kind = rng.randrange(8 if depth else 6)
    if kind == 6:
        return [value(rng, depth - 1) for _ in range(rng.randrange(4))]
    if kind == 7:
        return {rng.choice(_KEYS): value(rng, depth - 1) for _ in range(rng.randrange(4))}
    return (None, rng.random() < 0.5, rng.choice(_NUMBERS), rng.choice(_STRINGS), rng.choice(_NUMBERS), "a")[kind]


def schema(rng: random.Random, depth: int = 3) -> Any:
    """A schema of the 2020-12 draft; it may be one that nothing satisfies."""
    if rng.random() < 0.04:
        return rng.random() < 0.8
    made: dict[str, Any] = {}
    kinds = ["string", "number", "integer", "boolean", "null"] + ["array", "object"] * (2 if depth else 0)
    kind = rng.choice(kinds)
    if rng.random() < 0.85:
        made["type"] = kind if rng.random() < 0.8 else rng.sample(kinds[:5] + kinds[-2:], 2)
        if isinstance(made["type"], list):
            made["type"] = sorted(set(made["type"]))
    for add in ([_OF_KIND[kind]] if kind in _OF_KIND else []) + ([_of_any] if rng.random() < 0.25 else []):
        add(made, rng, depth)
    return made


def _of_any(made: dict[str, Any], rng: random.Random, depth: int) -> None:
    what = rng.choice(("enum", "const", "anyOf", "allOf", "oneOf", "not", "if"))
    if what == "enum":
        values = {json.dumps(each): each for each in (value(rng) for _ in range(rng.randint(1, 5)))}
        made["enum"] = list(values.values())
    elif what == "const":
        made["const"] = value(rng)
    elif depth:
        if what == "not":
            made["not"] = schema(rng, 0)
        elif what == "if":
            made["if"], made["then"], made["else"] = (schema(rng, 0) for _ in range(3))
        else:
            made[what] = [schema(rng, depth - 1) for _ in range(rng.randint(1, 3))]


def pattern(rng: random.Random) -> str:
    """A pattern."""
    if rng.random() < 0.5:
        return rng.choice(_PATTERNS)
    return f"^{''.join(rng.choices(_PARTS, k=rng.randint(1, 4)))}$"


def _of_string(made: dict[str, Any], rng: random.Random, depth: int) -> None:
    most = rng.choice((8, 8, 60))
    if rng.random() < 0.3:
        made["minLength"] = rng.randrange(most // 2)
    if rng.random() < 0.4:
        made["maxLength"] = rng.randrange(most)
    if rng.random() < 0.3:
        made["pattern"] = pattern(rng)
    elif rng.random() < 0.1:
        made["format"] = rng.choice(_FORMATS)


def _of_number(made: dict[str, Any], rng: random.Random, depth: int) -> None:
    for name in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
        if rng.random() < 0.25:
            made[name] = rng.choice(_NUMBERS)
    if rng.random() < 0.25:
        made["multipleOf"] = rng.choice((1, 2, 3, 5, 0.5, 0.25, 10))


def _of_array(made: dict[str, Any], rng: random.Random, depth: int) -> None:
    if rng.random() < 0.6:
        made["items"] = schema(rng, depth - 1)
    if rng.random() < 0.3:
        made["prefixItems"] = [schema(rng, depth - 1) for _ in range(rng.randint(1, 3))]
    if rng.random() < 0.3:
        made["minItems"] = rng.randrange(4)
    if rng.random() < 0.4:
        made["maxItems"] = rng.randrange(5)
    if rng.random() < 0.15:
        made["contains"] = schema(rng, 0)
        if rng.random() < 0.4:
            made["minContains"] = rng.randrange(3)
    if rng.random() < 0.2:
        made["uniqueItems"] = True


def _of_object(made: dict[str, Any], rng: random.Random, depth: int) -> None:
    keys = rng.sample(_KEYS, rng.randrange(5))
    if keys:
        made["properties"] = {key: schema(rng, depth - 1) for key in keys}
    if rng.random() < 0.5:
        made["required"] = [key for key in _KEYS if key in keys and rng.random() < 0.5]
        if rng.random() < 0.2:
            made["required"] += [key for key in _KEYS if key not in keys and rng.random() < 0.2]
    if rng.random() < 0.5:
        made["additionalProperties"] = rng.choice((False, False, True, schema(rng, 0)))
    if rng.random() < 0.15:
        made["patternProperties"] = {rng.choice(_PATTERNS): schema(rng, 0)}
    if rng.random() < 0.1:
        made["propertyNames"] = rng.choice(({"maxLength": 2}, {"pattern": "^[abk]"}, {"enum": ["a", "b", "c"]}))
    if rng.random() < 0.2:
        made["minProperties"] = rng.randrange(4)
    if rng.random() < 0.2:
        made["maxProperties"] = rng.randrange(5)
    if keys and rng.random() < 0.1:
        made["dependentRequired"] = {rng.choice(keys): [rng.choice(_KEYS)]}


_OF_KIND = {
    "string": _of_string,
    "number": _of_number,
    "integer": _of_number,
    "array": _of_array,
    "object": _of_object,
}


def instance(rng: random.Random, made: Any, depth: int = 4) -> Any:
    """A guess at an instance."""
    if not isinstance(made, dict) or rng.random() < 0.08 or depth == 0:
        return value(rng)
    if "const" in made:
        return made["const"]
    if "enum" in made:
        return rng.choice(made["enum"])
    for name in ("anyOf", "oneOf", "allOf"):
        if name in made and rng.random() < 0.5:
            chosen = rng.choice(made[name])
            if isinstance(chosen, dict):
                return instance(rng, {**{key: each for key, each in made.items() if key != name}, **chosen}, depth - 1)
    kinds = made.get("type", None)
    kind = rng.choice(kinds) if isinstance(kinds, list) else kinds or rng.choice([*_OF_KIND, "null"])
    if kind == "string":
        low, high = made.get("minLength", 0), made.get("maxLength", 6)
        if "pattern" in made or "format" in made or rng.random() < 0.3:
            if rng.random() < 0.5:
                return "".join(rng.choice("abx01") for _ in range(rng.randint(low, max(low, min(high, low + 6)))))
            return rng.choice((*_STRINGS, "k12", "192.168.0.1", "b", "a", "bca", "yy", "xy", "00:00"))
        return "".join(rng.choice("abcé😀k1") for _ in range(rng.randint(low, max(low, high))))
    if kind in ("number", "integer"):
        near = [made[name] for name in made if name.startswith(("min", "max", "excl")) and "mum" in name.lower()]
        base = rng.choice([*near, 0, 1, 5]) + rng.choice((0, 0, 1, -1, 0.5, -0.5, 2, 7))
        step = made.get("multipleOf")
        if step and rng.random() < 0.8:
            base = round(base / step) * step
        return int(base) if kind == "integer" or (base == int(base) and rng.random() < 0.5) else base
    if kind == "array":
        prefix = made.get("prefixItems", [])
        low = made.get("minItems", 0)
        count = rng.randint(low, max(low, made.get("maxItems", low + 3)))
        items = [
            instance(rng, prefix[i] if i < len(prefix) else made.get("items", {}), depth - 1) for i in range(count)
        ]
        if "contains" in made and items:
            items[rng.randrange(len(items))] = instance(rng, made["contains"], depth - 1)
        return items
    if kind == "object":
        keys = list(dict.fromkeys(made.get("required", [])))
        keys += [key for key in made.get("properties", {}) if key not in keys and rng.random() < 0.5]
        if rng.random() < 0.3 or len(keys) < made.get("minProperties", 0):
            keys += [key for key in rng.sample((*_KEYS, "k2", "aa"), 3) if key not in keys]
        if "maxProperties" in made and rng.random() < 0.7:
            keys = keys[: made["maxProperties"]]
        parts = made.get("properties", {})
        rest = made.get("additionalProperties", {})
        return {key: instance(rng, parts.get(key, rest), depth - 1) for key in keys}
    return rng.random() < 0.5 if kind == "boolean" else None
