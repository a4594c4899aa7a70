"""Worlds of few values: all of them, how each is written, and what a schema may assert about them.

A leaf is what a schema asserts by itself; ``inner`` makes the schema of a part of the value.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Schema = dict[str, Any]
Leaf = Callable[[random.Random, Callable[[], Any]], Schema]

_NAMES = ("a", "b", "c")
_SCALARS = (0, 1, "x")


@dataclass(frozen=True)
class World:
    """Some values, and what is said of them.

    Attributes
    ----------
    values : tuple
        The values, as JSON texts; each in the spellings that it has.  Of the valid ones the first must be accepted.
    leaf : callable
        Makes an assertion.
    names : tuple
        What may stand before an applicator for some members.
    deep : bool
        Whether the parts of values are described by schemas as deep as those of the values themselves.
    """

    values: tuple[tuple[str, ...], ...]
    leaf: Leaf
    names: tuple[str, ...] = _NAMES
    deep: bool = False


def _spelled(values: list[Any]) -> tuple[tuple[str, ...], ...]:
    return tuple((json.dumps(value),) for value in values)


def _objects(names: tuple[str, ...], members: tuple[Any, ...], most: int) -> list[Any]:
    found = []
    for count in range(most + 1):
        for some in itertools.combinations(names, count):
            found += [dict(zip(some, each, strict=True)) for each in itertools.product(members, repeat=count)]
    return found


def _arrays(items: tuple[Any, ...], most: int) -> list[Any]:
    return [list(each) for count in range(most + 1) for each in itertools.product(items, repeat=count)]


def member(rng: random.Random) -> Any:
    """The schema of a member or an item."""
    return rng.choice((True, {"const": 0}, {"const": "x"}, {"enum": [0, 1]}, {"type": "integer"}, {"type": "string"}))


# -- objects and arrays of few members ---------------------------------------------------------------

_PLAIN = [*_SCALARS, None, {"d": 1}, {"a": 0, "d": "x"}, [[]], [{}], {"a": {"a": 1}}]
_PLAIN += [*_objects(_NAMES, _SCALARS, 3), *_arrays(_SCALARS, 3)]


def _plain_leaf(rng: random.Random, inner: Callable[[], Any]) -> Schema:
    names = rng.sample(_NAMES, 2)
    makes: tuple[Callable[[], Schema], ...] = (
        lambda: {"properties": {names[0]: inner()}},
        lambda: {"required": names[:1]},
        lambda: {"properties": {names[0]: {"const": rng.choice(_SCALARS)}}, "required": names[:1]},
        lambda: {"properties": {name: inner() for name in names}, "additionalProperties": inner()},
        lambda: {"properties": {names[0]: True}, "additionalProperties": rng.random() < 0.5},
        lambda: {"patternProperties": {rng.choice(("^[ab]$", "^a", "c$")): inner()}},
        lambda: {"propertyNames": {"enum": names}},
        lambda: {"dependentRequired": {names[0]: names[1:]}},
        lambda: {rng.choice(("minProperties", "maxProperties", "minItems", "maxItems")): rng.randrange(3)},
        lambda: {"type": rng.choice(("object", "object", "array", "integer"))},
        lambda: {"prefixItems": [inner()], "items": inner()},
        lambda: {rng.choice(("items", "contains")): inner()},
        lambda: {"prefixItems": [inner(), inner()]},
        lambda: {"enum": rng.sample(_PLAIN, 3)},
    )
    return rng.choice(makes)()


# -- objects within objects, and what refers to another place ----------------------------------------

_WITHIN = (0, "x", {}, {"a": 0}, {"b": "x"}, {"a": "x", "b": 0}, [], [0], [{"a": 0}])
_NESTED = [*_objects(("a", "b"), _WITHIN, 2), *_arrays(_WITHIN, 1), 0, {"a": {"a": {"a": 0}}}, [{"a": {"a": 0}}]]
_NESTED += [{"c": each} for each in _WITHIN]
_PLACES = ("#", "#/$defs/0", "#/$defs/1", "#here", "tree")


def _nested_leaf(rng: random.Random, inner: Callable[[], Any]) -> Schema:
    names = rng.sample(("a", "b"), 2)

    def part() -> Any:
        return {"$ref": rng.choice(_PLACES)} if rng.random() < 0.3 else inner()

    makes: tuple[Callable[[], Schema], ...] = (
        lambda: {"properties": {names[0]: part()}},
        lambda: {"properties": {names[0]: part()}, "required": names[:1]},
        lambda: {"properties": {name: part() for name in names}, "additionalProperties": part()},
        lambda: {"properties": {names[0]: {"$dynamicRef": "tree#node"}}},
        lambda: {"patternProperties": {rng.choice(("^[ab]$", "^a", "[bc]")): part()}},
        lambda: {"propertyNames": {"enum": names}},
        lambda: {"dependentRequired": {names[0]: names[1:]}},
        lambda: {"additionalProperties": part()},
        lambda: {rng.choice(("minProperties", "maxProperties")): rng.randrange(3)},
        lambda: {"type": rng.choice(("object", "object", "array", "integer", "string"))},
        lambda: {rng.choice(("items", "contains")): part()},
        lambda: {"enum": rng.sample(_NESTED, 3)},
    )
    return rng.choice(makes)()


# -- arrays ------------------------------------------------------------------------------------------

_ARRAYS: list[Any] = [
    *_arrays(_SCALARS, 4),
    *_arrays((0, True, None, 1.0, "1"), 2),
    *_arrays(([], [0], {"a": 0}, 0), 2),
]
_ARRAYS += [[0, [0], [0]], [[0, 0]], [[0, 0], 1], [[1], [1.0]], {}, 0]


def _array_leaf(rng: random.Random, inner: Callable[[], Any]) -> Schema:
    makes: tuple[Callable[[], Schema], ...] = (
        lambda: {"prefixItems": [inner() for _ in range(rng.randint(1, 3))]},
        lambda: {"prefixItems": [inner()], "items": inner()},
        lambda: {"items": inner()},
        lambda: {"items": inner(), "type": "array"},
        lambda: {"contains": inner(), "minContains": rng.randrange(4)},
        lambda: {"contains": inner(), "maxContains": rng.randrange(4)},
        lambda: {"contains": inner(), "minContains": rng.randrange(3), "maxContains": rng.randrange(1, 4)},
        lambda: {"contains": inner()},
        lambda: {"uniqueItems": True},
        lambda: {"minItems": rng.randrange(4)},
        lambda: {"maxItems": rng.randrange(5)},
        lambda: {"minItems": rng.randrange(3), "maxItems": rng.randrange(2, 5)},
        lambda: {"type": rng.choice(("array", "array", "integer"))},
        lambda: {"enum": rng.sample(_ARRAYS, 3)},
    )
    return rng.choice(makes)()


# -- strings, and keys -------------------------------------------------------------------------------

_WORDS = ["".join(each) for count in range(5) for each in itertools.product("ab0", repeat=count)]
_WORDS += ["".join(each) for each in itertools.product("ab", repeat=5)]
_WORDS += [
    "2024-02-29",
    "2023-02-29",
    "0000-00-00",
    "1.2.3.4",
    "1.2.3.256",
    "01.2.3.4",
    "a.b",
    "a-b",
    "-a",
    "a-",
    "a..b",
]
_WORDS += [
    "123e4567-e89b-12d3-a456-426614174000",
    "123e4567e89b12d3a456426614174000",
    "12:00:00Z",
    "é",
    "é" * 3,
    "😀",
    "\n",
]
_WORDS += ["P1D", "a@b", "::1", "a" * 63, "a" * 64, "~", "/~0", "(", "[a", "a+", "\\d", "a\nb", 'a"b', "A", "aB"]
_PATTERNS = (
    *(
        "^a",
        "b$",
        "ab",
        "^[ab]*$",
        "a|b",
        "^(a|bb)+$",
        "^.{2,3}$",
        "a{2}",
        "^(?!a)",
        "^(?=.*b)",
        "^(?!.*aa).*$",
        "(ab)+0",
    ),
    *(
        "^a|b$",
        "0?1*",
        "^$",
        "a.b",
        "^[^a]",
        "[0-9]{2}",
        "^(ab?){1,2}$",
        r"\d",
        r"\w$",
        "^(?=a)(?!ab)",
        "(?<!a)b$",
        r"\bb",
    ),
    *("^(a|ab)(0|b0)?$", "a*?b", "^(?:a{1,2}b){1,2}$", r"^\S*$", "^(?:[^a]|a(?!a))*$"),
)
_FORMATS = ("date", "ipv4", "uuid", "hostname", "ipv6", "email", "json-pointer", "time", "date-time", "duration", "uri")


def _string_leaf(rng: random.Random, inner: Callable[[], Any]) -> Schema:
    makes: tuple[Callable[[], Schema], ...] = (
        *[lambda: {"pattern": rng.choice(_PATTERNS)}] * 4,
        lambda: {"format": rng.choice(_FORMATS)},
        lambda: {"minLength": rng.randrange(6)},
        lambda: {"maxLength": rng.randrange(6)},
        lambda: {"minLength": rng.randrange(3), "maxLength": rng.randrange(2, 6)},
        lambda: {"enum": rng.sample(_WORDS, rng.randint(1, 4))},
        lambda: {"const": rng.choice(_WORDS)},
        lambda: {"type": rng.choice(("string", "string", "integer"))},
    )
    return rng.choice(makes)()


_KEYS = ["".join(each) for count in range(4) for each in itertools.product("ab", repeat=count)]
_KEYED: list[Any] = [{}, 0, *({key: value} for key in _KEYS for value in (0, "x"))]
_KEYED += [dict(zip(keys, (0, "x"), strict=True)) for keys in itertools.combinations(_KEYS, 2)]
_KEYED += [dict.fromkeys(keys, 0) for keys in itertools.combinations(_KEYS[:7], 3)]


def _key_leaf(rng: random.Random, inner: Callable[[], Any]) -> Schema:
    def names() -> Any:
        made = _string_leaf(rng, inner)
        if rng.random() < 0.4:
            word = rng.choice(("not", "anyOf", "oneOf"))
            made[word] = (
                _string_leaf(rng, inner) if word == "not" else [_string_leaf(rng, inner), _string_leaf(rng, inner)]
            )
        return made

    key = rng.choice(_KEYS)
    makes: tuple[Callable[[], Schema], ...] = (
        *[lambda: {"propertyNames": names()}] * 2,
        *[lambda: {"patternProperties": {rng.choice(_PATTERNS): inner() for _ in range(rng.randint(1, 2))}}] * 2,
        lambda: {"patternProperties": {rng.choice(_PATTERNS): inner()}, "additionalProperties": inner()},
        lambda: {"patternProperties": {rng.choice(_PATTERNS): True}, "additionalProperties": False},
        lambda: {"properties": {key: inner()}, "additionalProperties": inner()},
        lambda: {"required": [key]},
        lambda: {"properties": {key: inner()}},
        lambda: {"dependentRequired": {key: [rng.choice(_KEYS)]}},
        lambda: {rng.choice(("minProperties", "maxProperties")): rng.randrange(4)},
        lambda: {"type": rng.choice(("object", "object", "integer"))},
        lambda: {"enum": rng.sample(_KEYED, 3)},
    )
    return rng.choice(makes)()


# -- numbers -----------------------------------------------------------------------------------------

_NUMBERS: tuple[tuple[str, ...], ...] = (
    *(("0", "0.0", "-0", "-0.0", "0e0", "0e5", "0.00"), ("1", "1.0", "10e-1", "1e0", "0.1e1", "1.00", "1E0", "1e+00")),
    *(("-1", "-1.0", "-10e-1"), ("0.5", "0.50", "5e-1", "50e-2"), ("-0.5", "-5e-1"), ("100", "1e2", "100.0", "1.0e2")),
    *(("0.1", "1e-1", "0.10"), ("0.3", "3e-1"), ("0.25", "25e-2"), ("1.5", "15e-1", "1.50"), ("2.5",), ("3.75",)),
    *(
        (str(each), f"{each}.0", f"{each}e0")
        for each in (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15, 20, 25, 30, 60, -2, -6)
    ),
    *(("0.0000001", "1e-07", "1e-7"), ("100000000000000000000", "1e+20", "1e20"), ("0.75",), ("-1.5",), ("0.001",)),
    *(("12.5",), ("0.6",), ("0.7",), ("99",), ("101",), ("1000",), ("true",), ('"1"',), ("10000000000000001",)),
)
_BOUNDS = (-2, -1, -0.5, 0, 0.25, 0.5, 1, 1.5, 2, 3, 5, 10, 99, 100, 1e2, 1e20)
_DIVISORS = (1, 2, 3, 4, 5, 6, 10, 0.5, 0.25, 0.1, 1.5, 2.5, 0.3, 100, 1e-7)


def _number_leaf(rng: random.Random, inner: Callable[[], Any]) -> Schema:
    makes: tuple[Callable[[], Schema], ...] = (
        *[lambda: {"multipleOf": rng.choice(_DIVISORS)}] * 3,
        lambda: {rng.choice(("minimum", "exclusiveMinimum")): rng.choice(_BOUNDS)},
        lambda: {rng.choice(("maximum", "exclusiveMaximum")): rng.choice(_BOUNDS)},
        lambda: {"minimum": rng.choice(_BOUNDS[:6]), "exclusiveMaximum": rng.choice(_BOUNDS[6:])},
        lambda: {"type": rng.choice(("integer", "integer", "number", "string"))},
        lambda: {"enum": rng.sample(_BOUNDS, rng.randint(1, 4))},
        lambda: {"const": rng.choice(_BOUNDS)},
    )
    return rng.choice(makes)()


WORLDS = {
    "objects": World(_spelled(_PLAIN), _plain_leaf),
    "nested": World(_spelled(_NESTED), _nested_leaf, ("a", "b"), deep=True),
    "arrays": World(_spelled(_ARRAYS), _array_leaf, (), deep=True),
    "strings": World(_spelled(_WORDS), _string_leaf, ()),
    "keys": World(_spelled(_KEYED), _key_leaf, tuple(_KEYS)),
    "numbers": World(_NUMBERS, _number_leaf, ()),
}
"""The worlds by name."""
