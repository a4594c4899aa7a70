"""The formats of the specification as regular languages."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

from constrain.grammar.json_schema.lexical.formats.patterns import FORMATS
from constrain.grammar.regex import regex_code_points
from constrain.grammar.regular import Regular
from constrain.grammar.utf8 import CodePoints


@lru_cache(maxsize=128)
def format_language(name: str, encode_char: Callable[[CodePoints], Regular]) -> Regular:
    """The strings of a format, with the characters written as ``encode_char`` says."""
    return FORMATS[name](partial(regex_code_points, encode_char=encode_char))
