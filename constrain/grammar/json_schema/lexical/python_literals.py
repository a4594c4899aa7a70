"""How Python writes JSON values: ``{"a": [True, None, 'it\\'s']}``.

Strings stand in double or single quotes.  What may be escaped is what Python's own ``repr`` and people escape; octal
numbers and names of characters are other spellings of the same, which no model needs.  Numbers are those of JSON, which
Python reads as well.
"""

from __future__ import annotations

import ast
import json
import re
from functools import lru_cache

from constrain.grammar.json_schema.lexical.layout import Layout
from constrain.grammar.json_schema.lexical.notation import Notation
from constrain.grammar.json_schema.lexical.strings import Spelling, hexadecimal
from constrain.grammar.languages.regular import Regular, byte_set, concat, literal, repeat, union
from constrain.grammar.languages.utf8 import ALL, SURROGATES, CodePoints, common, encode, holds, negate, normalize

_SHORT_ESCAPES = {ord("\a"): "a", ord("\b"): "b", ord("\f"): "f", ord("\n"): "n", ord("\r"): "r", ord("\t"): "t"}
_SHORT_ESCAPES |= {ord("\v"): "v", **{ord(mark): mark for mark in "\\'\""}}

# Letter, digits, and the highest code point that they can give.
_NUMBERED = (("x", 2, 0xFF), ("u", 4, 0xFFFF), ("U", 8, 0x10FFFF))

_TOKENS = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|True|False|None""", re.DOTALL)
_WORDS = {"True": "true", "False": "false", "None": "null"}


class PythonSpelling(Spelling):
    """Text between two quotes of one kind; the other kind may stand in it as it is."""

    def __init__(self, quote: str) -> None:
        self._raw: CodePoints = negate(normalize([(0x00, 0x1F), (ord(quote), ord(quote)), (0x5C, 0x5C)]))
        self._either_case = True
        self._characters: dict[str, Regular] = {}
        self.character = self.points(ALL)
        self.body = repeat(self.character)

    @lru_cache(maxsize=4096)  # noqa: B019 (there are two, and they live as long as the module)
    def points(self, points: CodePoints) -> Regular:
        """One character out of a code point set."""
        shorts = [escape for point, escape in _SHORT_ESCAPES.items() if holds(points, point)]
        # Half a pair of surrogates is no text, and Python makes no character of two.
        known = common(points, negate(SURROGATES))
        return union(
            encode(common(points, self._raw)),
            concat(literal("\\"), byte_set("".join(shorts).encode())),
            *(
                concat(literal(f"\\{letter}"), hexadecimal(common(known, ((0, last),)), digits, True))
                for letter, digits, last in _NUMBERED
            ),
        )


class PythonNotation(Notation):
    """Python's strings.

    Parameters
    ----------
    words : (str, str, str)
        How None, True and False are written.
    """

    def __init__(self, words: tuple[str, str, str]) -> None:
        super().__init__(is_canonical=False, ensure_ascii=False, is_plain=False)
        self.write_strings_in(tuple((literal(quote), PythonSpelling(quote)) for quote in "\"'"))
        self.null, self.true, self.false = map(literal, words)
        self.boolean = union(self.true, self.false)


class PythonLayout(Layout):
    """White space in Python's literals, and how they are read back."""

    is_json = False

    def as_json(self, value: bytes) -> bytes:
        """The JSON of a value as it is written."""
        return _TOKENS.sub(_token_as_json, value.decode()).encode()


def _token_as_json(token: re.Match[str]) -> str:
    text = token.group()
    return _WORDS.get(text) or json.dumps(ast.literal_eval(text))
