"""JSON as calls have it: none of the words that Python's own JSON adds."""

from __future__ import annotations

import json
from typing import Any

from constrain.grammar.json_numbers import read_number


def read_json(text: str) -> Any:
    """The value of a JSON text.

    Raises
    ------
    ValueError
        If it is no JSON: ``NaN`` and ``Infinity`` are none.  Also if Python cannot read it, as it is nested some
        hundred levels deep, or has an integer of more than 4,300 digits.
    """
    try:
        return json.loads(text, parse_float=read_number, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def read_json_arguments(text: str) -> Any:
    """The arguments of a call: an object or array, which some models write as JSON in a string.

    Raises ValueError if it is none.
    """
    value = read_json(text)
    if isinstance(value, str):
        value = read_json(value)
        if not isinstance(value, dict):
            raise ValueError("the string holds no object")
    return value


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")
