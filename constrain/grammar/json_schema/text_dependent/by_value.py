"""Values that lists have at one place, or objects under one name, each with what those that have it go on with."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

from constrain.grammar.json_schema.normal.instances import Instance
from constrain.grammar.json_schema.text_dependent.persistent import PersistentMap, PersistentSet

Rests = PersistentSet[Any]
"""What arrays or objects have beside what is written already."""

SCALARS = frozenset(("null", "boolean", "number", "string"))


class ByValue(NamedTuple):
    """Immutable; a version with one more is made in the time of a look-up.  By default that of no lists or objects."""

    size: int = 0
    """How many there are."""
    rests: PersistentMap[Instance, Rests] = PersistentMap()
    """What those go on with that have a value."""
    values: PersistentSet[Instance] = PersistentSet()
    """The values."""
    ways: PersistentMap[tuple[Rests, Hashable], PersistentSet[Instance]] = PersistentMap()
    """The values behind which the same is left, scalars of one kind together: n objects of one member are one way."""

    def changed(self, value: Instance, rest: Hashable, is_added: bool) -> ByValue:
        """With one more that has a value and then ``rest``, or one less."""
        old = self.rests.get(value)
        if old is None:
            old = PersistentSet()
        new = old.plus(rest) if is_added else old.minus(rest)
        kind: Hashable = value.kind if value.kind in SCALARS else value
        rests, values, ways = self.rests, self.values, self.ways
        if old:
            here = ways.get((old, kind))
            assert here is not None
            here = here.minus(value)
            ways = ways.plus((old, kind), here) if here else ways.minus((old, kind))
        else:
            values = values.plus(value)
        if new:
            here = ways.get((new, kind))
            ways = ways.plus((new, kind), (PersistentSet() if here is None else here).plus(value))
            rests = rests.plus(value, new)
        else:
            values = values.minus(value)
            rests = rests.minus(value)
        return ByValue(self.size + (1 if is_added else -1), rests, values, ways)
