"""JSON values as a text has them: read, and brought into a form in which equal values are equal.

``1``, ``1.0`` and ``10e-1`` are one number, ``"a"`` and ``"\\u0061"`` one string, and the order of an object's
members means nothing.  True is not 1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

from constrain.errors import LimitError
from constrain.grammar.json_schema.lexical.strings import find_at_end, string_before

_NUMBER = re.compile(r"(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([-+]?[0-9]+))?")
_SPACE = b" \t\n\r"

# An exponent of so many digits is no number that a computer could write down.
_EXPONENT_DIGITS = 4000


class Number(NamedTuple):
    """A number, exactly: ``digits`` (without zeros at either end; none for zero) times ten to the ``exponent``."""

    is_negative: bool
    digits: str
    exponent: int


class Instance(NamedTuple):
    """A JSON value that can be compared and hashed.

    ``content`` is None, a bool, a Number, a string, a tuple of instances, or a frozenset of (name, instance).
    """

    kind: str
    content: Any


def number(text: str) -> Number:
    """The number that a JSON number spells."""
    match = _NUMBER.fullmatch(text)
    assert match is not None
    sign, whole, fraction, exponent = match.groups(default="")
    if len(exponent) > _EXPONENT_DIGITS:
        raise LimitError(f"an exponent of more than {_EXPONENT_DIGITS} digits, where numbers have to be compared")
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return Number(False, "", 0)
    least = digits.rstrip("0")
    return Number(sign == "-", least, int(exponent or "0") - len(fraction) + len(digits) - len(least))


@lru_cache(maxsize=1 << 14)
def decimal(value: Number) -> Decimal | None:
    """The same as a Decimal; None if it is out of reach."""
    if abs(value.exponent) > 10_000 or len(value.digits) > 10_000:
        return None
    return Decimal((int(value.is_negative), tuple(map(int, value.digits)) or (0,), value.exponent))


def text_length(value: Instance) -> int:
    """About how many characters the shortest text of a value has."""
    if isinstance(value.content, Number):
        return len(value.content.digits) + abs(value.content.exponent)
    if isinstance(value.content, tuple):
        return 2 + sum(1 + text_length(item) for item in value.content)
    if isinstance(value.content, frozenset):
        return 2 + sum(4 + len(name) + text_length(member) for name, member in value.content)
    return len(str(value.content)) + 2 * isinstance(value.content, str)


def instance(text: bytes) -> Instance:
    """The value of a JSON text.  Raises LimitError if it is nested too deeply."""
    try:
        return _plain(json.loads(text, parse_int=number, parse_float=number, object_pairs_hook=_Members))
    except RecursionError:
        raise LimitError("a value that has to be compared with others is nested too deeply") from None


class _Members(dict[str, Any]):
    pass


def _plain(value: Any) -> Instance:
    if value is None:
        return Instance("null", None)
    if isinstance(value, bool):
        return Instance("boolean", value)
    if isinstance(value, Number):
        return Instance("number", value)
    if isinstance(value, str):
        return Instance("string", value)
    if isinstance(value, list):
        return Instance("array", tuple(map(_plain, value)))
    return Instance("object", frozenset((name, _plain(member)) for name, member in value.items()))


def last_value(text: Callable[[int], bytes]) -> bytes:
    """The value before the last character of a text that is not white space: a comma between two items.

    It is written as JSON or Python writes it.  ``text(n)`` are the last ``n`` bytes of the text, or more.  It is read
    backwards, from outside of any string, so a quote ends a string, and the quote that begins it is the last one of its
    kind without a backslash of its own.
    """
    return find_at_end(text, _find_value, "a value and a comma")


def _find_value(data: bytes) -> bytes | None:
    """The same in the last bytes of a text; None if the value may have begun before them."""
    end = len(data.rstrip(_SPACE)) - 1
    end = len(data[: max(end, 0)].rstrip(_SPACE))
    place = end
    depth = 0
    while place > 0:
        byte = data[place - 1]
        if byte in b"\"'":
            begin = string_before(data, place - 1)
            if begin < 0:
                return None
            place = begin
            if depth == 0:
                return data[place:end]
        elif byte in b"]}":
            depth += 1
            place -= 1
        elif byte in b"[{" and depth > 0:
            depth -= 1
            place -= 1
            if depth == 0:
                return data[place:end]
        elif depth == 0 and byte not in b"-+.0123456789aeEfFlnNorstTu":
            return data[place:end]
        else:
            place -= 1
    return None
