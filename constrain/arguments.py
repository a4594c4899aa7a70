"""Whether an argument is a number at all; what is none is refused before anything is done with it."""

from __future__ import annotations

import math
import operator
import reprlib
from numbers import Real
from typing import Any

from constrain.errors import ConstrainError


def check_number(name: str, value: Any) -> None:
    """Raise :class:`ConstrainError` for what is no real number."""
    # A tensor has a __float__ too, but what is one number may be several at the next call.
    if not isinstance(value, Real):
        raise ConstrainError(f"{name} must be a number, not {_named(value)}")


def check_integer(name: str, value: Any) -> int:
    """The value as an int; a float is refused, even without a fraction."""
    try:
        return operator.index(value)
    except TypeError:
        raise ConstrainError(f"{name} must be an integer, not {_named(value)}") from None


def check_bytes(name: str, value: Any) -> int:
    """A number of bytes as an int."""
    check_number(name, value)
    if not 0 <= value < math.inf:
        raise ConstrainError(f"{name} must be at least 0 and finite, not {value!r}")
    return int(value)


def _named(value: Any) -> str:
    return "None" if value is None else f"{type(value).__name__} {reprlib.repr(value)}".replace("\n", " ")
