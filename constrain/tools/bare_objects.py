"""Arguments that are an object with bare names, and strings as they are between two marks, read as JSON values."""

from __future__ import annotations

import json
import re
from typing import Any

from constrain.grammar.structural_tags.styles import ArgumentStyle
from constrain.tools.json_values import read_json

_WORDS = {"None": "null", "True": "true", "False": "false"}
"""Templates that print a value as Python does write these in past calls, which a model may copy."""


def read_bare_object(text: str, style: ArgumentStyle) -> Any:
    """The value of an object or array in a style with a separator.

    Raises
    ------
    ValueError
        If it is none.
    """
    quote, reserved = re.escape(style.end), re.escape(style.reserved)
    # What no mark stands in is a name or a word; it is taken whole in either case, so that each character is read once.
    parts = f"{quote}(.*?){quote}|((?:(?!{quote})[^{reserved}])+)({re.escape(style.after_key)})?"
    return read_json(re.sub(parts, _as_json, text, flags=re.DOTALL))


def _as_json(part: re.Match[str]) -> str:
    string, word, after_key = part.groups()
    if string is not None:
        return json.dumps(string)
    return _WORDS.get(word.strip(), word) if after_key is None else json.dumps(word.strip()) + ":"
