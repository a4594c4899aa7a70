"""What the values in ``enum`` and ``const`` must be before anything is made of them."""

from __future__ import annotations

from typing import Any

from constrain.errors import LimitError, SchemaError
from constrain.limits import spend

MAX_VALUE_DEPTH = 2000
"""How deep a value may be nested."""

MAX_VALUES = 2_000_000
"""How many values an ``enum`` may hold together, those in arrays and objects counted wherever they stand."""

_OPEN = (0, 0)


def check_values(values: list[Any] | tuple[Any, ...], pointer: str) -> None:
    """Raise SchemaError or LimitError for values that are no JSON text, or too large a one.

    Python's lists and dicts may hold themselves; and they may hold one object in many places, so that a few of them
    stand for more text than there is memory.
    """
    if not any(isinstance(value, (list, tuple, dict)) for value in values):
        return
    # By identity, for each array or object: how deep it is nested, and how many values it holds.
    sizes: dict[int, tuple[int, int]] = {}
    todo: list[Any] = [values]
    while todo:
        spend()
        value = todo[-1]
        known = sizes.get(id(value))
        if known is not None and known is not _OPEN:
            todo.pop()
            continue
        inner = [
            one
            for one in (value.values() if isinstance(value, dict) else value)
            if isinstance(one, (list, tuple, dict)) and one
        ]
        if known is None:
            sizes[id(value)] = _OPEN
            for one in inner:
                found = sizes.get(id(one))
                if found is _OPEN:
                    raise SchemaError("a value holds itself: no JSON text has it", pointer)
                if found is None:
                    todo.append(one)
            continue
        depth, size = 1, len(value)
        for one in inner:
            found = sizes.get(id(one), _OPEN)
            depth, size = max(depth, found[0] + 1), size + found[1]
        if depth > MAX_VALUE_DEPTH + 1:
            raise SchemaError(f"a value is nested more than {MAX_VALUE_DEPTH} levels deep", pointer)
        if size > MAX_VALUES:
            raise LimitError(f"more than {MAX_VALUES:,} values, those in arrays and objects counted", pointer)
        sizes[id(value)] = (depth, size)
        todo.pop()
