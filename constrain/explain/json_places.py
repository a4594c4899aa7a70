"""A JSON text as values that know where they stand, also where the text breaks off."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

_BLANKS = re.compile(r"[ \t\n\r]*")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![0-9.eE+-])")
_WORD = re.compile(r"(?:true|false|null)(?![A-Za-z])")
# A string, number or word that the text breaks off in.
_BEGUN = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*\\?|-?[0-9.eE+-]*|[a-z]{1,5}')
_KINDS = {"t": "boolean", "f": "boolean", "n": "null"}

# Deeper texts are not looked into.
_DEPTH = 100


@dataclass
class Value:
    """A value of a JSON text.

    Attributes
    ----------
    kind : str
        ``object``, ``array``, ``string``, ``number``, ``boolean`` or ``null``.
    begin, end : int
        Where it begins, and where it is over or could not be read on, in characters.
    text : str
        As it is written, without white space between tokens; of a value that is not whole, only its beginning.
    is_whole : bool
        Whether its end has been read.
    members : list of (str, int, Value)
        Of an object: keys, where they begin, and values.
    items : list of Value
        Of an array.
    """

    kind: str
    begin: int
    text: str = ""
    is_whole: bool = True
    end: int = -1
    members: list[tuple[str, int, Value]] = field(default_factory=list)
    items: list[Value] = field(default_factory=list)

    def content(self) -> Any:
        """The value itself, where it is whole and no container."""
        return json.loads(self.text)


@dataclass(frozen=True)
class Document:
    """What could be read of a text.

    Attributes
    ----------
    value : Value or None
        None if not even its kind is known.
    ends : bool
        Whether the text ended before the value did, or with it; False if something else stands there.
    """

    value: Value | None
    ends: bool


class _Stop(Exception):
    """Nothing can be read from some place on."""


def read_json(text: str) -> Document:
    """Read a JSON text as far as it is one."""
    reader = _Reader(text)
    try:
        value = reader.value(0)
    except _Stop:
        return Document(reader.root, reader.breaks_off())
    return Document(value, reader.is_at_end())


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self.root: Value | None = None

    def is_at_end(self) -> bool:
        """Whether only white space is left."""
        return self._blanks() == len(self._text)

    def breaks_off(self) -> bool:
        """Whether only the beginning of a string, number or word is left."""
        return _BEGUN.fullmatch(self._text, self._blanks()) is not None

    def _blanks(self) -> int:
        found = _BLANKS.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return self._at

    def _token(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        if found is None:
            raise _Stop
        self._at = found.end()
        return found[0]

    def _next(self, wanted: str) -> str:
        """One of some characters, after white space."""
        at = self._blanks()
        if self._text[at : at + 1] not in wanted or at == len(self._text):
            raise _Stop
        self._at += 1
        return self._text[at]

    def value(self, depth: int) -> Value:
        """A value; containers that are not whole are kept in what they stand in before reading stops."""
        begin = self._blanks()
        first = self._text[begin : begin + 1]
        if first in ("{", "[") and first and depth < _DEPTH:
            return self._container(
                Value("object" if first == "{" else "array", begin, first, is_whole=False, end=len(self._text)), depth
            )
        if first == '"':
            kind, token = "string", self._token(_STRING)
        elif first in _KINDS:
            kind, token = _KINDS[first], self._token(_WORD)
        else:
            kind, token = "number", self._token(_NUMBER)
        return Value(kind, begin, token, end=self._at)

    def _container(self, value: Value, depth: int) -> Value:
        if depth == 0:
            self.root = value
        self._at += 1
        close = "}" if value.kind == "object" else "]"
        parts: list[str] = []
        sign = ""
        if self._text[self._blanks() : self._at + 1] != close:
            while sign != close:
                parts.append(self._member(value, depth) if close == "}" else self._item(value, depth))
                sign = self._next("," + close)
        else:
            self._at += 1
        value.text = value.text + ",".join(parts) + close
        value.is_whole, value.end = True, self._at
        return value

    def _member(self, value: Value, depth: int) -> str:
        place = self._blanks()
        key = self._token(_STRING)
        self._next(":")
        inner = self._inner(depth)
        # Before its end is known, so that what is in it can be looked at even if the text breaks off there.
        name: str = json.loads(key) if "\\" in key else key[1:-1]
        value.members.append((name, place, inner))
        self._finish(inner, depth)
        return f"{key}:{inner.text}"

    def _item(self, value: Value, depth: int) -> str:
        inner = self._inner(depth)
        value.items.append(inner)
        self._finish(inner, depth)
        return inner.text

    def _inner(self, depth: int) -> Value:
        """A scalar, or a container of which nothing has been read yet."""
        begin = self._blanks()
        first = self._text[begin : begin + 1]
        if first in ("{", "[") and first:
            if depth + 1 >= _DEPTH:
                raise _Stop
            return Value("object" if first == "{" else "array", begin, first, is_whole=False, end=len(self._text))
        return self.value(depth + 1)

    def _finish(self, value: Value, depth: int) -> None:
        if not value.is_whole:
            self._container(value, depth + 1)
