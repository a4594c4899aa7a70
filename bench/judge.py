"""The ``jsonschema`` package as a judge of JSON texts, as exact as it can be made.

Numbers are read exactly, patterns are translated from ECMA-262's syntax to Python's, and ``nullable`` is what OpenAPI
says.  What it cannot judge raises :class:`NoVerdict`: a pattern that Python has no word for, a reference that it does
not find, numbers too large to be worked with.
"""

from __future__ import annotations

import copy
import json
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import jsonschema
from jsonschema import validators

_GREATEST_EXPONENT = 5000

# The package's checks of these are not the specification's: Python's regular expressions, and names by IDNA 2003.
UNJUDGED_FORMATS = frozenset(["regex", "idn-hostname"])


class NoVerdict(Exception):
    """The judge cannot say."""


class RepeatedKey(Exception):
    """An object holds a key twice, which no schema sees."""


def _is_integer(checker: Any, value: Any) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, Decimal) and value == value.to_integral_value())


def _is_number(checker: Any, value: Any) -> bool:
    return isinstance(value, (int, Decimal)) and not isinstance(value, bool)


def _multiple_of(validator: Any, divisor: Any, value: Any, schema: Any) -> Any:
    if validator.is_type(value, "number") and Fraction(value) % Fraction(divisor):
        yield jsonschema.ValidationError(f"{value} is not a multiple of {divisor}")


def _exact(draft: Any) -> Any:
    """A draft's validator with exact numbers."""
    checker = draft.TYPE_CHECKER.redefine("number", _is_number)
    if draft is jsonschema.Draft4Validator:
        checker = checker.redefine("integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool))
    else:
        checker = checker.redefine("integer", _is_integer)
    return validators.extend(draft, {"multipleOf": _multiple_of}, type_checker=checker)


_EXACT = {
    draft: _exact(draft)
    for draft in (
        jsonschema.Draft4Validator,
        jsonschema.Draft6Validator,
        jsonschema.Draft7Validator,
        jsonschema.Draft201909Validator,
        jsonschema.Draft202012Validator,
    )
}


class Judge:
    """One schema's judge.

    Parameters
    ----------
    schema : dict or bool
    formats : bool
        Whether formats are checked, where the package can.
    """

    def __init__(self, schema: Any, formats: bool = True) -> None:
        schema = json.loads(json.dumps(schema), parse_float=_number)
        draft = jsonschema.Draft202012Validator
        declared = isinstance(schema, dict) and isinstance(schema.get("$schema"), str)
        if declared:
            draft = validators.validator_for(schema, default=draft)
        elif _has_array_items(schema):
            # Without a declared draft the array form of items is taken too, which the newest draft does not know.
            draft = jsonschema.Draft201909Validator
        checker = None
        if formats:
            checker = _formats(draft.FORMAT_CHECKER)
        if draft not in _EXACT:
            raise NoVerdict("this draft is not one of the judge's")
        self._validator = _EXACT[draft](_translated(schema, not declared), format_checker=checker)

    def verdict(self, text: str) -> str:
        """Why a text is not valid; "" if it is.  Raises NoVerdict where it cannot say, RepeatedKey."""
        try:
            value = json.loads(text, parse_float=_number, parse_int=_integer, object_pairs_hook=_no_repeated_key)
        except ValueError as error:
            return f"not JSON: {error}"
        try:
            error = next(self._validator.iter_errors(value), None)
        except RepeatedKey:
            raise
        except Exception as problem:
            raise NoVerdict(f"{type(problem).__name__}: {problem}") from problem
        if error is None:
            return ""
        return f"{'/'.join(map(str, error.absolute_schema_path))}: {error.message[:200]}"


def _integer(text: str) -> int:
    if len(text) > _GREATEST_EXPONENT // 2:
        raise NoVerdict("an integer of very many digits")
    return int(text)


def _number(text: str) -> Decimal:
    try:
        value = Decimal(text)
    except ArithmeticError:
        raise NoVerdict("a number with a huge exponent") from None
    if value and abs(value.adjusted()) > _GREATEST_EXPONENT:
        raise NoVerdict("a number with a huge exponent")
    return value


def _no_repeated_key(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise RepeatedKey(next(key for key, _ in pairs if sum(key == other for other, _ in pairs) > 1))
    return value


def _formats(checker: jsonschema.FormatChecker) -> jsonschema.FormatChecker:
    """A draft's checks of formats, without those that are known to differ from the specification."""
    found = copy.deepcopy(checker)
    found.checkers = {name: check for name, check in found.checkers.items() if name not in UNJUDGED_FORMATS}
    for name in ("date-time", "time"):
        if name in found.checkers:
            check, errors = found.checkers[name]
            found.checkers[name] = (_with_leap_seconds(check), errors)
    return found


def _with_leap_seconds(check: Any) -> Any:
    # The package knows no second 60, which RFC 3339 allows at the end of a day of UTC: as the second before it.
    def checked(value: Any) -> Any:
        return check(re.sub("([0-9]{2}:[0-9]{2}:)60", r"\g<1>59", value, count=1) if isinstance(value, str) else value)

    return checked


_NAMED = frozenset(["properties", "$defs", "definitions", "dependentSchemas", "dependencies"])
_VALUES = frozenset(["enum", "const", "default", "examples", "example"])


def _has_array_items(schema: Any) -> bool:
    if isinstance(schema, list):
        return any(map(_has_array_items, schema))
    if not isinstance(schema, dict):
        return False
    return isinstance(schema.get("items"), list) or any(map(_has_array_items, schema.values()))


def _translated(schema: Any, openapi: bool) -> Any:
    """The schema with patterns for Python, and without ``nullable``."""

    def inner(value: Any) -> Any:
        return _translated(value, openapi)

    if isinstance(schema, list):
        return list(map(inner, schema))
    if not isinstance(schema, dict):
        return schema
    found: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in _VALUES:
            found[keyword] = value
        elif keyword in _NAMED and isinstance(value, dict):
            found[keyword] = {name: inner(one) for name, one in value.items()}
        elif keyword == "patternProperties" and isinstance(value, dict):
            found[keyword] = {python_pattern(source): inner(one) for source, one in value.items()}
        elif keyword == "pattern" and isinstance(value, str):
            found[keyword] = python_pattern(value)
        else:
            found[keyword] = inner(value)
    if openapi and found.get("nullable") is True and "type" in found:
        types = found["type"] if isinstance(found["type"], list) else [found["type"]]
        found["type"] = [*types, "null"] if "null" not in types else types
    return found


_CLASSES: dict[str, tuple[str, str | None]] = {
    # How each is written outside and inside of brackets; None if there is no way.
    "d": ("[0-9]", "0-9"),
    "D": ("[^0-9]", None),
    "w": ("[A-Za-z0-9_]", "A-Za-z0-9_"),
    "W": ("[^A-Za-z0-9_]", None),
    "s": (r"[\s\ufeff]", r"\s\ufeff"),
    "S": (r"[^\s\ufeff]", None),
}


def python_pattern(source: str) -> str:
    """An ECMA-262 regular expression in Python's syntax, where the differences are in single signs.

    Raises NoVerdict for what Python's does not have.
    """
    out: list[str] = []
    inside = False
    place = 0
    while place < len(source):
        sign = source[place]
        if sign == "\\" and place + 1 < len(source):
            follower = source[place + 1]
            place += 2
            if follower in _CLASSES:
                plain, listed = _CLASSES[follower]
                if inside and listed is None:
                    raise NoVerdict(f"a negated class within brackets: {source}")
                out.append((listed or "") if inside else plain)
            elif follower in "pPcku" and source[place : place + 1] == "{":
                raise NoVerdict(f"Python has no \\{follower}: {source}")
            elif follower in "bBfnrtvux0" or follower.isdigit():
                out.append("\\" + follower)
            else:
                out.append(re.escape(follower))
            continue
        place += 1
        if inside:
            inside = sign != "]"
            # Python warns of what may become set operations.
            out.append("\\" + sign if sign in "[&~|" else sign)
        elif sign == "[":
            inside = True
            if source[place : place + 1] == "]":
                raise NoVerdict(f"an empty class: {source}")
            if source[place : place + 2] == "^]":
                out.append(r"(?s:.)")
                place += 2
                inside = False
            else:
                out.append("[")
                if source[place : place + 1] == "^":
                    out.append("^")
                    place += 1
        elif sign == ".":
            out.append(r"[^\n\r\u2028\u2029]")
        elif sign == "$":
            out.append(r"\Z")
        elif source.startswith("(?<", place - 1) and source[place + 1 : place + 3] not in ("<=", "<!"):
            if source[place + 2 : place + 3] in "=!":
                out.append("(")
            else:
                out.append("(?P<")
                place += 2
        else:
            out.append(sign)
    found = "".join(out)
    try:
        re.compile(found)
    except re.error as error:
        raise NoVerdict(f"Python cannot read the pattern {source}: {error}") from None
    return found
