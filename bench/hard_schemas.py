"""Schemas that are small and hard: random ones of the kinds that have been slow, and those that were found so.

What is hard is that a text can be read in several ways for long: patterns that may begin anywhere, of which exactly one
must hold; counts within counts; values that must differ; keys that several rules speak of.  Nothing here knows how the
engine reads a schema.
"""

from __future__ import annotations

import random
from typing import Any

Schema = dict[str, Any]

_WORDS = ("customer", "maker", "operator", "admin", "designer", "user", "a", "ab", "e", "x-", "id", "0", "colour")
_CLASSES = ("[a-z]", "[A-Za-z0-9_]", r"\d", r"\w", r"\S", "[^,]", ".", "[ab]", r"[\w.-]", "[0-9a-f]")
_FORMATS = ("date-time", "date", "email", "uri", "hostname", "ipv4", "ipv6", "uuid", "duration", "regex")
_NUMBERS = (1, 2, 3, 7, 10, 0.01, 0.1, 0.5, 1.5, 97, 360, 1000)


def _unanchored(choose: random.Random) -> str:
    return choose.choice(_WORDS)


def _words_in_order(choose: random.Random) -> str:
    return ".*".join(choose.sample(_WORDS, choose.randint(2, 3)))


def _counted(choose: random.Random) -> str:
    low = choose.choice((0, 1, 2, 8))
    return f"^{choose.choice(_CLASSES)}{{{low},{low + choose.choice((0, 1, 5, 30, 200, 2000))}}}$"


def _counts_in_counts(choose: random.Random) -> str:
    inner = f"{choose.choice(_CLASSES)}{{1,{choose.choice((2, 5, 20))}}}"
    return f"^({inner}{choose.choice((' ', ',', '-', '.', ''))}){{0,{choose.choice((3, 9, 40))}}}{inner}$"


def _late_choice(choose: random.Random) -> str:
    """What was so many characters before the end decides."""
    return f"{choose.choice('abx')}{choose.choice(_CLASSES)}{{{choose.choice((1, 3, 6, 10))}}}$"


def _alternatives(choose: random.Random) -> str:
    return f"^({'|'.join(choose.sample(_WORDS, 4))}){choose.choice(('', '+', '*', '{2,5}'))}$"


def _look_ahead(choose: random.Random) -> str:
    return f"^(?={choose.choice(('.*[0-9]', '.*[a-z]'))})(?!{choose.choice(_WORDS)}).{{4,{choose.choice((8, 60))}}}$"


def _pattern(choose: random.Random) -> str:
    kinds = (
        *(_unanchored, _words_in_order, _counted, _counts_in_counts, _late_choice, _alternatives, _look_ahead),
        _unanchored,
    )
    return choose.choice(kinds)(choose)


def _string(choose: random.Random) -> Schema:
    made: Schema = {"type": "string"}
    kind = choose.random()
    if kind < 0.5:
        made["pattern"] = _pattern(choose)
    elif kind < 0.65:
        made["format"] = choose.choice(_FORMATS)
    elif kind < 0.75:
        made["enum"] = choose.sample(_WORDS, choose.randint(1, 8))
    if choose.random() < 0.3:
        made["maxLength"] = choose.choice((1, 5, 20, 64, 255, 4096, 100_000))
    if choose.random() < 0.2:
        made["minLength"] = choose.choice((1, 2, 5, 20))
    return made


def _number(choose: random.Random) -> Schema:
    made: Schema = {"type": choose.choice(("number", "integer"))}
    if choose.random() < 0.5:
        made["multipleOf"] = choose.choice(_NUMBERS)
    if choose.random() < 0.5:
        made["minimum"] = choose.choice((-1000, -1.5, 0, 1))
    if choose.random() < 0.5:
        made["maximum"] = choose.choice((2, 100, 86_399, 65_535, 1e9))
    return made


def _scalar(choose: random.Random) -> Schema:
    return _number(choose) if choose.random() < 0.25 else _string(choose)


def _branches(choose: random.Random) -> Schema:
    keyword = choose.choice(("oneOf", "oneOf", "anyOf", "allOf"))
    kind = choose.random()
    if kind < 0.5:
        return {"type": "string", keyword: [{"pattern": _pattern(choose)} for _ in range(choose.randint(2, 6))]}
    if kind < 0.8:
        return {keyword: [_string(choose) for _ in range(choose.randint(2, 5))]}
    return {keyword: [_object(choose, 0) for _ in range(choose.randint(2, 4))]}


def _negated(choose: random.Random) -> Schema:
    kind = choose.random()
    if kind < 0.4:
        return {"type": "string", "not": {"pattern": _pattern(choose)}}
    if kind < 0.6:
        return {"not": {"anyOf": [_scalar(choose) for _ in range(choose.randint(1, 3))]}}
    inner: Schema = {"patternProperties": {_pattern(choose): _scalar(choose)}}
    if choose.random() < 0.5:
        inner["multipleOf"] = choose.choice(_NUMBERS)
    return {"not": inner, "allOf": [{"type": choose.choice(("object", "array"))}, {"minProperties": 1}]}


def _array(choose: random.Random, depth: int) -> Schema:
    made: Schema = {"type": "array", "items": _any(choose, depth - 1)}
    if choose.random() < 0.6:
        made["uniqueItems"] = True
    if choose.random() < 0.3:
        made["minItems"] = choose.choice((1, 2, 5, 20))
    if choose.random() < 0.3:
        made["maxItems"] = made.get("minItems", 0) + choose.choice((1, 5, 100, 5000))
    if choose.random() < 0.2:
        made["contains"] = _scalar(choose)
    if choose.random() < 0.1:
        made["prefixItems"] = [_any(choose, depth - 1) for _ in range(choose.randint(1, 3))]
    return made


def _object(choose: random.Random, depth: int) -> Schema:
    keys = choose.sample(_WORDS, choose.randint(1, 5))
    made: Schema = {"type": "object", "properties": {key: _any(choose, depth - 1) for key in keys}}
    if choose.random() < 0.5:
        made["required"] = choose.sample(keys, choose.randint(1, len(keys)))
    if choose.random() < 0.4:
        made["additionalProperties"] = choose.choice((False, _scalar(choose)))
    if choose.random() < 0.4:
        made["patternProperties"] = {_pattern(choose): _scalar(choose) for _ in range(choose.randint(1, 3))}
    if choose.random() < 0.2:
        made["propertyNames"] = {"pattern": _pattern(choose)}
    if choose.random() < 0.2:
        made["minProperties"] = choose.choice((1, 2, 5))
    if choose.random() < 0.2:
        made["maxProperties"] = made.get("minProperties", len(keys)) + choose.choice((0, 1, 5))
    if choose.random() < 0.15:
        made["dependentSchemas"] = {keys[0]: {"required": choose.sample(_WORDS, 2)}}
    if choose.random() < 0.15:
        made["if"] = {"properties": {keys[0]: {"const": "a"}}}
        made["then"] = {"required": choose.sample(_WORDS, 1)}
    if choose.random() < 0.15:
        made["unevaluatedProperties"] = False
    return made


def _any(choose: random.Random, depth: int) -> Schema:
    kinds = [_scalar, _scalar, _branches, _negated]
    if depth > 0 and choose.random() < 0.5:
        return choose.choice((_array, _object))(choose, depth)
    return choose.choice(kinds)(choose)


def schema(seed: int) -> Schema:
    """The schema of a seed; it may be one that nothing satisfies, or that is refused."""
    choose = random.Random(seed)
    return choose.choice((_array, _object))(choose, 2)


def _one_of_patterns(*patterns: str) -> Schema:
    return {"type": "string", "oneOf": [{"pattern": pattern} for pattern in patterns]}


_SCALARS: Schema = {"type": ["string", "number", "boolean", "null"]}
_POINT: Schema = {
    "type": "object",
    "properties": {"x": {"type": "number"}, "y": {"type": "number"}},
    "required": ["x", "y"],
}

FOUND: dict[str, Schema] = {
    "one of five words": {
        "type": "array",
        "items": _one_of_patterns("customer", "maker", "operator", "admin", "designer"),
    },
    "one of five words, unique": {
        "type": "array",
        "uniqueItems": True,
        "items": _one_of_patterns("customer", "maker", "operator", "admin", "designer"),
    },
    "unique scalars": {"type": "array", "uniqueItems": True, "items": _SCALARS},
    "unique strings of a pattern": {
        "type": "array",
        "uniqueItems": True,
        "items": {"type": "string", "pattern": "^[a-z]+(-[a-z]+)*$"},
    },
    "unique words": {
        "type": "array",
        "uniqueItems": True,
        "minItems": 3,
        "items": {"enum": [f"{first}{second}" for first in "abcdef" for second in "ghijkl"]},
    },
    "unique points": {"type": "array", "uniqueItems": True, "items": _POINT},
    "unique arrays": {
        "type": "array",
        "uniqueItems": True,
        "items": {"type": "array", "items": _SCALARS, "minItems": 1},
    },
    "unique integers": {
        "type": "array",
        "uniqueItems": True,
        "minItems": 2,
        "items": {"type": "integer", "minimum": 0, "maximum": 65_535},
    },
    "one of nine formats": {
        "oneOf": [
            {"type": "string", "format": name}
            for name in ("date", "date-time", "time", "email", "uri", "uuid", "ipv4", "ipv6", "hostname")
        ]
    },
    "two patterns of a length": {
        "type": "string",
        "maxLength": 2048,
        "allOf": [
            {"pattern": "arn:aws[a-z-]*:kms:[^:]*:[0-9]{12}:(key|alias)/[A-Za-z0-9_-]{1,256}"},
            {"pattern": "^[a-zA-Z0-9:/_.-]*arn[a-z:]*$"},
        ],
    },
    "letters and numbers": {"type": "string", "pattern": "|".join(rf"\p{{L}}{number}" for number in range(1000))},
    "not of patterned properties": {
        "not": {"patternProperties": {"^a": {"type": "string"}, "b$": {"type": "integer"}}, "multipleOf": 3},
        "allOf": [{"minProperties": 1}, {"propertyNames": {"maxLength": 5}}],
    },
    "multiples and patterned properties": {
        "not": {"patternProperties": {"[0-9]": {"multipleOf": 0.7}}, "multipleOf": 0.3},
        "allOf": [{"type": ["object", "number"]}, {"multipleOf": 0.1}],
    },
}
"""By what is hard about them."""
