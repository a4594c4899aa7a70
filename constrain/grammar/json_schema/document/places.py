"""Places: what a schema is made of before anyone looks inside.

A place is a schema of the document, or a combination of others that is worked out when it is needed: the complement
of a conjunction, or a choice among several.  A :data:`Handle` is a conjunction of places, so that to intersect
two schemas is to put two handles together, which keeps recursive schemas lazy.
"""

from __future__ import annotations

from constrain.limits import spend

Handle = tuple["Place", ...]
"""A conjunction of places: a value must be valid for all of them.  The empty one allows everything."""


class Place:
    """Something that allows some values.  ``pointer`` says where it comes from."""

    __slots__ = ("negation", "pointer")

    pointer: str
    negation: Handle | None
    """The complement, once someone has asked for it: the same object every time, so that it is worked out once.

    Of a place that allows nothing it is there from the beginning, and empty.
    """

    @property
    def handle(self) -> Handle:
        """It alone.  A place that kept its handle would be cyclic garbage when nobody needs it any more."""
        return (self,)


class Never(Place):
    """Allows nothing."""

    __slots__ = ("reason",)

    def __init__(self, pointer: str, reason: str) -> None:
        self.pointer = pointer
        self.reason = reason
        self.negation = ()


class Negation(Place):
    """Allows what ``item`` does not."""

    __slots__ = ("item",)

    def __init__(self, item: Handle) -> None:
        self.pointer = item[0].pointer
        self.item = item
        self.negation = item


class Either(Place):
    """Allows what any of ``options`` does."""

    __slots__ = ("options",)

    def __init__(self, options: tuple[Handle, ...]) -> None:
        self.pointer = next((option[0].pointer for option in options if option), "#")
        self.options = options
        self.negation = None


def negate(handle: Handle) -> Handle:
    """What ``handle`` does not allow."""
    if len(handle) == 1:
        place = handle[0]
        if place.negation is None:
            place.negation = Negation(handle).handle
        return place.negation
    if not handle:
        return Never("#", "nothing is outside of what allows everything").handle
    return Negation(handle).handle


def either(*options: Handle) -> Handle:
    """What any of ``options`` allows."""
    if not all(options):
        return ()
    distinct = tuple(dict.fromkeys(options))
    return distinct[0] if len(distinct) == 1 else Either(distinct).handle


# More places are looked up in a set.
_MANY = 16


def conjunction(left: Handle, right: Handle) -> Handle:
    """Both handles in one; a schema counts once, and beside its complement nothing is left."""
    if not left or left == right:
        return right
    if not right:
        return left
    spend(1 + (len(left) + len(right)) // 8)
    if left[0].negation == ():
        return left
    known = left if len(left) + len(right) <= _MANY else set(left)
    new: list[Place] = []
    for place in right:
        if place in known:
            continue
        opposite = place.negation
        if opposite == ():
            return place.handle
        if opposite and len(opposite) == 1 and opposite[0] in known:
            return Never(place.pointer, "it is excluded by a complement of itself").handle
        new.append(place)
    if not new:
        return left
    return (*left, *new)
