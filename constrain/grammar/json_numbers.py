"""Numbers of JSON texts as values of Python."""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation

_MAX_DIGITS = 4300
"""Of an integer, as Python reads it."""


def read_number(text: str) -> float | int:
    """A number with a fraction or an exponent: beyond a float it is an integer, as infinity cannot be written in JSON.

    One of more than 4,300 digits, which Python could not write either, is infinity all the same.
    """
    value = float(text)
    if math.isfinite(value):
        return value
    try:
        number = Decimal(text)
    except InvalidOperation:
        # Its exponent has more than eighteen digits.
        return value
    return int(number) if number.adjusted() < _MAX_DIGITS else value
