"""The arguments of a call in Python, read back as JSON values: what :func:`ast.literal_eval` makes of them."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Sequence
from typing import Any

from constrain.grammar.json_numbers import read_number

_DOUBTS = re.compile(
    r"""(?P<prefix>[A-Za-z]{0,2})(?P<quote>\"""|'''|"|')(?P<body>(?:\\.|(?!(?P=quote))[^\\])*)"""
    r"(?:(?P<end>(?P=quote))|\\?\Z)"
    r"|(?P<comment>#[^\r\n]*)"
    r"|(?<![\w.])0+(?=[0-9])",
    re.DOTALL,
)
"""A string, the whole rest of the text where it has no end, a comment, or the zeros before a number: ``07``."""
_LINE_END = re.compile(rb"\r\n?|\n")
_ESCAPE = re.compile(r"\\(?:(?P<octal>[4-7][0-7]{2})|(?P<sign>.))|(?P<control>[\n\r\0])", re.DOTALL)
_KNOWN_ESCAPES = "\n\r\\'\"abfnrtvxuUN01234567"
_WORDS = {"true": True, "false": False, "null": None}
"""Templates that print an object as JSON write these in past calls, which a model may copy."""


def read_call(text: str) -> dict[str, Any]:
    """The arguments by name, from their parentheses.

    Raises
    ------
    ValueError
        If they are none, or have values that JSON does not have; also if Python cannot read them, as they are nested
        some hundred levels deep, or have an integer of more than 4,300 digits.
    """
    source = "f" + _DOUBTS.sub(_without_doubts, text.strip())
    try:
        lines = _LINE_END.split(source.encode())
        call = ast.parse(source, mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
            raise ValueError("it is no call with names of arguments alone")
        found: dict[str, Any] = {}
        for each in call.keywords:
            if each.arg is None or each.arg in found:
                raise ValueError("an argument has no name, or comes twice")
            found[each.arg] = _value(each.value, lines)
        return found
    except (SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError(f"it is no call in Python: {error}") from None


def read_literal(text: str) -> Any:
    """The value of a list, tuple, set or dictionary of Python.

    Raises ValueError as :func:`read_call` does.
    """
    source = _DOUBTS.sub(_without_doubts, text.strip())
    try:
        lines = _LINE_END.split(source.encode())
        node = ast.parse(source, mode="eval").body
        if not isinstance(node, (ast.List, ast.Tuple, ast.Set, ast.Dict)):
            raise ValueError("it is no list and no dictionary")
        return _value(node, lines)
    except (SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError(f"it is no value of Python: {error}") from None


def _without_doubts(part: re.Match[str]) -> str:
    """What Python refuses or warns of, written as it takes it.

    The zeros before a number are left out.  In a string the backslash is doubled that stands before no sign of an
    escape (``"\\d"``), and what does not stand in a string of one line as it is, such as a line end, is escaped.
    """
    prefix, quote, body, end, comment = part.group("prefix", "quote", "body", "end", "comment")
    if quote is None:
        return comment or ""
    if end is None or "r" in prefix.lower():
        return part.group()
    signs = "\r\0" if len(quote) > 1 else "\n\r\0"

    def sure(found: re.Match[str]) -> str:
        octal, sign, control = found.group("octal", "sign", "control")
        if octal is not None:
            return f"\\u{int(octal, 8):04x}"
        if control is not None:
            return f"\\x{ord(control):02x}" if control in signs else control
        return found.group() if sign in _KNOWN_ESCAPES else f"\\\\{sign}"

    return f"{prefix}{quote}{_ESCAPE.sub(sure, body)}{quote}"


def _value(node: ast.expr, lines: Sequence[bytes]) -> Any:
    """The value of a node, whose places are in bytes of the lines."""
    if isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, (str, int, float))):
        if isinstance(node.value, float) and math.isinf(node.value):
            return read_number(lines[node.lineno - 1][node.col_offset : node.end_col_offset].decode())
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
        number = _value(node.operand, lines)
        if isinstance(number, (int, float)) and not isinstance(number, bool):
            if isinstance(node.op, ast.USub):
                return -number
            if isinstance(node.op, ast.UAdd):
                return number
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return [_value(item, lines) for item in node.elts]
    if isinstance(node, ast.Dict):
        return {_name(key): _value(value, lines) for key, value in zip(node.keys, node.values, strict=True)}
    if isinstance(node, ast.Name) and node.id in _WORDS:
        return _WORDS[node.id]
    raise ValueError(f"{type(node).__name__} is no value of JSON")


def _name(key: ast.expr | None) -> str:
    if isinstance(key, ast.Constant) and isinstance(key.value, str):
        return key.value
    raise ValueError("a key of a dictionary is no string")
