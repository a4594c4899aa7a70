"""Random JSON Schemas of things that must differ, with few ways to: keys of small classes, items, counted members.

They have what random schemas (:mod:`.schemas_made`) seldom have together: unique items beside ``contains``,
``unevaluatedItems``, conditions and references that lead back; objects whose keys run out.
"""

from __future__ import annotations

import random
from typing import Any

from bench.fuzz import few_values_made

_KEYS = ("a", "b", "ab", "é", "", 'q"')
# Small classes, larger ones, and such with a narrow part.
_CLASSES = (
    *("^[ab]$", "^a?b?$", "^(a|bc)$", "^k[12]?$", "^[aé]{1,2}$", "^[a-z]$", "^[a-c]{1,3}$", "^[a-z]{1,20}$", "^x"),
    *("^(a|b[a-z]*)$", '^"?a$', "^\\\\?$"),
)
_NUMBERS = (1, 1.0, 100, 1e2, 0, 0.0, -0.0, 0.5, 1e20, 10**20, 12)


def schema(rng: random.Random) -> dict[str, Any]:
    """A schema of the 2020-12 draft."""
    names = ["x", "y"][: rng.choice((0, 0, 1, 2))]
    made = _array(rng, 3, names) if rng.random() < 0.7 else _object(rng, 3, names)
    if names:
        made["$defs"] = {name: _item(rng, 2, names) for name in names}
    if rng.random() < 0.1:
        # Of itself, by a dynamic reference.
        made = {"$dynamicAnchor": "node", **made}
        made.setdefault("$defs", {})["z"] = _array(rng, 1, [])
        made["$defs"]["z"]["items"] = {"$dynamicRef": "#node"}
        made = {**made, "items": {"anyOf": [{"$ref": "#/$defs/z"}, {"type": "boolean"}]}}
    return made


def arguments(rng: random.Random) -> dict[str, Any]:
    """A schema of objects whose members are such things."""
    made = _object(rng, 3, [])
    made["properties"] = {**made.get("properties", {}), "list": _array(rng, 2, [])}
    return made


def _item(rng: random.Random, depth: int, names: list[str]) -> Any:
    what = rng.randrange(12 if depth > 0 else 7)
    if what == 0:
        return {"type": "string", "pattern": rng.choice(_CLASSES)}
    if what == 1:
        return {"type": "string", "maxLength": rng.choice((0, 1, 2, 9))} if rng.random() < 0.7 else {"type": "string"}
    if what == 2:
        low = rng.choice((-2, 0, 8))
        return rng.choice(
            (
                {"type": "integer", "minimum": low, "maximum": low + rng.randrange(5)},
                {
                    "type": "number",
                    "minimum": 0,
                    "maximum": rng.choice((1, 3)),
                    "multipleOf": rng.choice((0.5, 0.25, 1)),
                },
                {"type": "integer"},
                {"type": "number"},
                {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
            )
        )
    if what == 3:
        return rng.choice(({"type": "boolean"}, {"type": ["boolean", "null"]}, {"const": rng.choice(_NUMBERS)}))
    if what in (4, 5):
        values = [*rng.sample(few_values_made.ATOMS, 2), rng.choice(_NUMBERS)]
        deep = ([], {}, [1], [1.0, "a"], {"a": 1}, {"a": [1, {"b": None}], "b": 1e2}, [[1], [1.0]], {"": ""})
        return {"enum": values[: rng.randint(1, 3)] + rng.sample(deep, rng.choice((0, 1, 2)))}
    if what == 6:
        return {"$ref": f"#/$defs/{rng.choice(names)}"} if names else {"type": "null"}
    if what == 7:
        return {rng.choice(("anyOf", "oneOf")): [_item(rng, depth - 1, names) for _ in range(2)]}
    return (_array if what < 10 else _object)(rng, depth - 1, names)


def _restricted(made: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    values: list[Any] = [*few_values_made.ATOMS, [1], ["a", "b"], {"a": 1}, {"a": 1, "b": "a"}, [{"a": 1}], {"k1": []}]
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        more = few_values_made.restriction(rng, rng.sample(values, 8), rng.choice((1, 1, 2)))
        if set(more) & set(made):
            made.setdefault("allOf", []).append(more)
        else:
            made |= more
    return made


def _array(rng: random.Random, depth: int, names: list[str]) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "array"}
    if rng.random() < 0.85:
        made["items" if rng.random() < 0.85 else "unevaluatedItems"] = _item(rng, depth, names)
    if rng.random() < 0.2:
        made["prefixItems"] = [_item(rng, depth - 1, names) for _ in range(rng.randint(1, 2))]
    if rng.random() < 0.7:
        made["uniqueItems"] = True
    if rng.random() < 0.5:
        made["minItems"] = rng.choice((1, 2, 3, 4, 6))
    if rng.random() < 0.3:
        made["maxItems"] = made.get("minItems", 1) + rng.randrange(4)
    return _restricted(made, rng)


def _object(rng: random.Random, depth: int, names: list[str]) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "object"}
    if rng.random() < 0.5:
        made["properties"] = {key: _item(rng, depth, names) for key in rng.sample(_KEYS, rng.randint(1, 3))}
        made["required"] = [key for key in made["properties"] if rng.random() < 0.4]
    if rng.random() < 0.5:
        made["patternProperties"] = {
            pattern: _item(rng, depth, names) for pattern in rng.sample(_CLASSES, rng.choice((1, 1, 2)))
        }
    if rng.random() < 0.35:
        made["propertyNames"] = rng.choice(
            ({"enum": rng.sample(_KEYS, rng.randint(1, 4))}, {"pattern": rng.choice(_CLASSES)}, {"maxLength": 1})
        )
    if rng.random() < 0.7:
        made[rng.choice(("additionalProperties", "additionalProperties", "unevaluatedProperties"))] = (
            False if rng.random() < 0.6 else _item(rng, depth - 1, names)
        )
    if rng.random() < 0.5:
        made["minProperties"] = rng.randint(1, 4)
    if rng.random() < 0.4:
        made["maxProperties"] = rng.randint(1, 4)
    return _restricted(made, rng)
