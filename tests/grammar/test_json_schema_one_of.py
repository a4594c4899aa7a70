"""``oneOf`` of objects that one property tells apart."""

import sys
from typing import Any

import constrain
from constrain.grammar.json_schema.normal.intersect import intersect_nodes


def intersections(kinds: list[Any]) -> int:
    """How often schemas are intersected for a ``oneOf`` of objects with these for the last required name."""
    sizes = {name: {"type": "integer"} for name in ("left", "top", "width", "height", "depth")}
    schema = {
        "oneOf": [
            {
                "type": "object",
                "properties": {**sizes, "kind": kind, f"more {index}": {"type": "string"}},
                "required": [*sizes, "kind"],
            }
            for index, kind in enumerate(kinds)
        ]
    }
    calls = 0

    def count(frame: Any, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event == "call" and frame.f_code is intersect_nodes.__code__

    sys.setprofile(count)
    try:
        constrain.Grammar.from_json_schema(schema)
    finally:
        sys.setprofile(None)
    return calls


def test_the_name_that_tells_them_apart_may_be_any() -> None:
    assert intersections([{"const": f"kind {index}"} for index in range(24)]) == 0
    assert intersections([{"type": "string"}, {"type": "integer"}]) > 0
