"""Which schemas of a document say the same in the same words."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

# What says where a schema stands, or depends on it.
_PLACED = frozenset(("$schema", "$id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef"))

_MAX_DEPTH = 100


class Contents:
    """Numbers JSON values by what they hold, in its order: equal numbers mean copies.

    It is for schemas of one resource, since references of copies then lead to the same place.  A value that is nested
    deeply has no number, and neither has one that holds a schema with a name of its own.
    """

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        # By identity: the values belong to a document, which is held as long as this is.
        self._known: dict[int, int | None] = {}

    def number(self, value: Any, depth: int = 0) -> int | None:
        """The number of a value; None if it has none."""
        if isinstance(value, (dict, list)):
            key = id(value)
            if key in self._known:
                return self._known[key]
            number = None if depth > _MAX_DEPTH else self._of_parts(value, depth + 1)
            self._known[key] = number
            return number
        # Of what is equal as a number, the notation may matter.
        content = type(value), repr(value) if isinstance(value, (float, Decimal)) else value
        try:
            return self._numbers.setdefault(content, len(self._numbers))
        except TypeError:  # no JSON value
            return None

    def _of_parts(self, value: dict[str, Any] | list[Any], depth: int) -> int | None:
        parts: list[object] = [type(value)]
        if isinstance(value, dict):
            if not _PLACED.isdisjoint(value) or type(value.get("id")) is str:
                return None
            parts += value
            values: Any = value.values()
        else:
            values = value
        for each in values:
            # Most values are strings, and those need no number.
            number = each if type(each) is str else self.number(each, depth)
            if number is None:
                return None
            parts.append(number)
        return self._numbers.setdefault(tuple(parts), len(self._numbers))
