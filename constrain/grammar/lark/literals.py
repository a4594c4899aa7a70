r"""Strings, regexes and ranges of Lark's notation, and how their escapes are read.

Lark evaluates ``\n \t \r \f \xHH \uHHHH \UHHHHHHHH`` in strings *and* regexes before anything else
sees them, and keeps a backslash before any other character.  That is done here with a table of
offsets, so that an error inside a regex can be placed in the grammar.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from constrain.errors import GrammarError
from constrain.grammar.languages.regular import Regular, literal
from constrain.grammar.languages.utf8 import encode
from constrain.grammar.lark.source import Node, Source
from constrain.grammar.lark.tree import Token
from constrain.grammar.regex import regex_language
from constrain.grammar.regex.parser import Dialect
from constrain.grammar.regex.single_bytes import byte_language

_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
_PAIR = re.compile(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_OF_JSON = {"\\/": "/", "\\b": "\b"}
_CONTROL = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}

# Look-around and anchors: what they mean depends on the text around them.
_ASSERTION = re.compile(r"\\[bBAZz]|\(\?<?[=!]|\^|\$")
_LAZY = re.compile(r"[*+?}]\?")
_REGEX_UNIT = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?<?[=!]|(?:[*+?]|\{\d*,?\d*\})\??|.", re.DOTALL)


class Pattern(NamedTuple):
    """A string or regex after its escapes were read.

    Attributes
    ----------
    text : str
        The string, or the regex in Python's notation.
    is_regex : bool
    flags : str
        The letters after the closing delimiter, without ``u`` (it is how regexes work anyway).
    offsets : sequence of int
        For each character of ``text`` and for its end: offset from the token's first character.
    token : Token
    warnings : tuple of str
    """

    text: str
    is_regex: bool
    flags: str
    offsets: Sequence[int]
    token: Token
    warnings: tuple[str, ...] = ()

    @property
    def has_assertion(self) -> bool:
        """Whether the pattern contains look-around, an anchor or a word boundary."""
        return (
            self.is_regex
            and _ASSERTION.search(self.text) is not None
            and any(_ASSERTION.fullmatch(unit) for unit in _REGEX_UNIT.findall(self.text))
        )

    @property
    def is_lazy(self) -> bool:
        """Whether a quantifier is followed by ``?``, which has no meaning without a longest match."""
        return (
            self.is_regex
            and _LAZY.search(self.text) is not None
            and any(len(unit) > 1 and unit[0] in "*+?{" and unit[-1] == "?" for unit in _REGEX_UNIT.findall(self.text))
        )

    def to_regex(self) -> str:
        """The same language as a group in Python's regex notation."""
        inner = self.text if self.is_regex else re.escape(self.text)
        # A comment of the flag x would swallow the closing parenthesis.
        return f"(?{self.flags}:{inner}\n)" if "x" in self.flags else f"(?{self.flags}:{inner})"


def read_pattern(token: Token, source: Source, *, is_json: bool = False, is_bytes: bool = False) -> Pattern:
    r"""Evaluate a STRING or REGEXP token of Lark's notation.

    Parameters
    ----------
    token : Token
    source : Source
    is_json : bool
        Whether it is read as llguidance does: a string has the escapes of JSON as well, and ``\\"`` in a regex is a
        backslash and a quote.
    is_bytes : bool
        Whether a regex is one over bytes, for which ``\xHH`` stays what it is.

    Raises
    ------
    GrammarError
        For a bad escape, a code point that does not exist, or a flag that is not supported.
    """
    raw = str(token)
    close = max(raw.rfind('"'), raw.rfind("/"))
    is_regex = token.type == "REGEXP"
    flags = raw[close + 1 :]
    if flags:
        if "l" in flags:
            raise source.error("the regex flag l (locale) is not supported", token)
        flags = "".join(sorted(set(flags) - {"u"}))
    if "\\" not in raw:
        return Pattern(raw[1:close], is_regex, flags, range(1, close + 1), token)
    text: list[str] = []
    offsets: list[int] = []
    warnings: list[str] = []
    at = 1
    while at < close:
        if is_bytes and is_regex and raw.startswith("\\x", at):
            value, length = "\\x", 2
        else:
            value, length = _unit(raw, at, close, token, source, is_regex=is_regex)
        if is_json and not is_regex:
            value = _OF_JSON.get(value, value)
        if is_regex and not is_json and value == "\\\\" and raw.startswith('"', at + 2) and at + 2 < close:
            value = "\\"
            warnings.append(
                'Lark reads \\\\" in a regex as \\", which matches a quote alone; '
                'write \\\\\\" for a backslash and a quote'
            )
        elif not is_regex and value == "\\\\":
            value = "\\"
        text.extend(value)
        offsets.extend([at] * len(value))
        at += length
    return Pattern("".join(text), is_regex, flags, (*offsets, close), token, tuple(warnings))


def _unit(raw: str, at: int, close: int, token: Token, source: Source, *, is_regex: bool) -> tuple[str, int]:
    """One character or escape of a token: what it stands for, and its length."""
    if raw[at] != "\\":
        return raw[at], 1
    kind = raw[at + 1]
    if kind in _CONTROL:
        return _CONTROL[kind], 2
    if kind == '"':
        return '"', 2
    if kind not in _HEX_DIGITS or (is_regex and raw.startswith("{", at + 2)):
        return "\\" + kind, 2
    pair = _PAIR.match(raw, at, close)
    if pair is not None:
        # One character, as JSON writes those beyond U+FFFF.
        return bytes.fromhex(pair[1] + pair[2]).decode("utf-16-be"), len(pair[0])
    count = _HEX_DIGITS[kind]
    digits = raw[at + 2 : min(at + 2 + count, close)]
    if not re.fullmatch(f"[0-9a-fA-F]{{{count}}}", digits):
        raise source.error(f"\\{kind} must be followed by {count} hexadecimal digits", token_place(token, at))
    point = int(digits, 16)
    if point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
        raise source.error(f"\\{kind}{digits} is not a character", token_place(token, at))
    return chr(point), 2 + count


def token_place(token: Token, offset: int) -> tuple[int, int]:
    """Line and column of a character of a token."""
    before = str(token)[:offset]
    line, column = token.place
    newlines = before.count("\n")
    return (line + newlines, offset - before.rfind("\n")) if newlines else (line, column + offset)


def pattern_language(
    pattern: Pattern,
    source: Source,
    *,
    ascii_case: bool = False,
    is_bytes: bool = False,
    dialect: Dialect = "python",
) -> Regular:
    """The language of a string or regex on its own.

    Parameters
    ----------
    pattern : Pattern
    source : Source
    ascii_case : bool
        As in :func:`~..regex.regex_language`.
    is_bytes : bool
        Whether it is one over bytes.
    dialect : "python" or "rust"
        Whose syntax a regex has.

    Raises
    ------
    GrammarError
        If the regex is invalid or not supported, at its place in the grammar.
    """
    if not pattern.is_regex and not pattern.flags:
        return literal(pattern.text)
    text = pattern.text if pattern.is_regex else re.escape(pattern.text)
    try:
        if is_bytes and pattern.is_regex:
            return byte_language(text, pattern.flags, dialect)
        return regex_language(text, flags=pattern.flags, ascii_case=ascii_case or is_bytes, dialect=dialect)
    except GrammarError as error:
        at = 0
        if error.line is not None and error.column is not None and pattern.is_regex:
            lines = text.split("\n")
            offset = sum(len(line) + 1 for line in lines[: error.line - 1]) + error.column - 1
            at = pattern.offsets[min(max(offset, 0), len(text))]
        raise source.error(f"in the regex: {error.reason}", token_place(pattern.token, at)) from None


def range_language(node: Node, source: Source) -> Regular:
    """The language of ``"a".."z"``.

    Raises
    ------
    GrammarError
        If an end is not a single character, has a flag, or the ends are in the wrong order.
    """
    ends: list[str] = []
    for token in node.children:
        assert isinstance(token, Token)
        pattern = read_pattern(token, source)
        if pattern.flags:
            raise source.error("the ends of a range cannot have flags", token)
        if len(pattern.text) != 1:
            raise source.error(f"the ends of a range must be single characters, not {token}", token)
        ends.append(pattern.text)
    first, last = ends
    if first > last:
        raise source.error(f"the range {node.children[0]}..{node.children[1]} is in the wrong order", node)
    return encode(((ord(first), ord(last)),))
