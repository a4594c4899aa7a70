"""Reading the parts of a pattern that stand for one character: escapes and ``[...]`` sets."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import NoReturn

from constrain.errors import GrammarError
from constrain.grammar.languages.utf8 import LAST, CodePoints, negate, normalize
from constrain.grammar.regex import classes

FOLD, DOTALL, MULTILINE, VERBOSE, ASCII, ASCII_CASE, ECMA_CASE, RUST = 1, 2, 4, 8, 16, 32, 64, 128
"""The flags i, s, m, x and a; what the flag i is about where it is not Python's; and that the dialect is Rust's."""

CASE = FOLD | ASCII | ASCII_CASE | ECMA_CASE
"""All that :func:`in_any_case` looks at."""

_CONTROL = {"f": 0x0C, "n": 0x0A, "r": 0x0D, "t": 0x09, "v": 0x0B}
_HEX = frozenset("0123456789abcdefABCDEF")
_OCTAL = frozenset("01234567")


def in_any_case(points: CodePoints, flags: int) -> CodePoints:
    """``points``, and with the flag i those that differ from them only in case."""
    if not flags & FOLD:
        return points
    without = classes.TURKIC if flags & ECMA_CASE else frozenset[int]()
    return classes.fold(points, bool(flags & (ASCII | ASCII_CASE)), without)


@lru_cache(maxsize=256)
def named_class(letter: str, ecma: bool, flags: int) -> CodePoints:
    """The set of ``\\d \\D \\w \\W \\s \\S``, by its letter; the flag i adds to it in ECMAScript but not in Python."""
    lower = letter.lower()
    if ecma:
        points = {"d": classes.DIGIT, "w": classes.WORD, "s": classes.ECMA_SPACE}[lower]
    elif flags & ASCII:
        points = {"d": classes.DIGIT, "w": classes.WORD, "s": classes.SPACE}[lower]
    elif flags & RUST:
        points = classes.rust_class(lower)
    else:
        points = classes.perl_class(lower)
    if ecma:
        points = in_any_case(points, flags)
    return negate(points) if letter.isupper() else points


_POSIX_CLASS = re.compile(r"\[:\^?([a-z]+):\]")
_INSTEAD = {
    "alnum": "A-Za-z0-9",
    "alpha": "A-Za-z or \\p{L}",
    "ascii": "\\x00-\\x7f",
    "blank": "\\t and a blank",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9 or \\d",
    "graph": "!-~",
    "lower": "a-z or \\p{Ll}",
    "print": "a blank and !-~",
    "punct": "!-/:-@\\[-`{-~ or \\p{P}",
    "space": "\\s",
    "upper": "A-Z or \\p{Lu}",
    "word": "\\w",
    "xdigit": "0-9A-Fa-f",
}


_BLANK = frozenset(" \t\n\r\v\f")


@lru_cache(maxsize=1)
def _rust_blanks() -> frozenset[str]:
    return frozenset(chr(point) for first, last in classes.rust_class("s") for point in range(first, last + 1))


class Source:
    """The text of a pattern and a position in it.

    Attributes
    ----------
    text : str
    at : int
        Offset of the next character that has not been read.
    ecma : bool
        The dialect is ECMAScript's, not Python's.
    flags : int
        The flags in force here.
    """

    def __init__(self, text: str, flags: int, ecma: bool) -> None:
        self.text = text
        self.at = 0
        self.flags = flags
        self.ecma = ecma
        self._blank = _rust_blanks() if flags & RUST else _BLANK

    def skip_blanks(self) -> None:
        """With the flag x, go on to where neither white space nor a comment stands."""
        while self.flags & VERBOSE and self.at < len(self.text):
            char = self.text[self.at]
            if char == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end + 1
            elif char in self._blank:
                self.at += 1
            else:
                return

    def fail(self, reason: str, at: int) -> NoReturn:
        """Raise a GrammarError that names the place of offset ``at``."""
        raise error_at(self.text, reason, at)

    def hex_digits(self, count: int, at: int) -> int:
        """The value of the next ``count`` hexadecimal digits, which must be there; ``at`` is where the escape began."""
        digits = self.text[self.at : self.at + count]
        if len(digits) < count or not _HEX.issuperset(digits):
            self.fail(f"incomplete escape {self.text[at : self.at]!r}: {count} hexadecimal digits must follow", at)
        self.at += count
        return int(digits, 16)

    def braced(self, at: int) -> str:
        """What stands between ``{`` and ``}`` here."""
        end = self.text.find("}", self.at)
        if not self.text.startswith("{", self.at) or end < 0:
            self.fail(f"{self.text[at : self.at]!r} must be followed by a name or number in braces", at)
        inside = self.text[self.at + 1 : end]
        self.at = end + 1
        return inside


def error_at(text: str, reason: str, at: int) -> GrammarError:
    """The error for offset ``at`` in the pattern ``text``."""
    return GrammarError(reason, line=text.count("\n", 0, at) + 1, column=at - text.rfind("\n", 0, at))


def read_escape(source: Source, in_set: bool) -> int | CodePoints:
    """Read an escape that stands for a character (its code point) or for one out of several (a set).

    ``source`` stands on the backslash.  Assertions and references have been dealt with before.
    """
    at = source.at
    if at + 1 >= len(source.text):
        source.fail("the pattern ends in a backslash", at)
    letter = source.text[at + 1]
    source.at = at + 2
    if letter in _CONTROL:
        return _CONTROL[letter]
    if letter in "dDwWsS":
        return named_class(letter, source.ecma, source.flags)
    if letter in "pP":
        return _property(source, letter, at)
    if letter in "xuU" and source.text.startswith("{", source.at) and (letter == "u" or not source.ecma):
        return _braced_number(source, at)
    if letter == "x":
        return source.hex_digits(2, at)
    if letter == "u":
        return _unicode_escape(source, at)
    if letter == "c":
        follower = source.text[source.at : source.at + 1]
        if not (follower.isascii() and follower.isalpha()):
            source.fail("\\c must be followed by a letter from A to Z", at)
        source.at += 1
        return ord(follower) & 31
    if letter == "b" and in_set:
        return 0x08
    if letter.isascii() and letter.isdigit():
        return _octal(source, letter, in_set, at)
    if letter == "a" and not source.ecma:
        return 0x07
    if letter == "e" and not source.ecma:
        return 0x1B
    if letter == "U" and not source.ecma:
        point = source.hex_digits(8, at)
        if point > LAST:
            source.fail(f"there is no code point beyond U+{LAST:X}", at)
        return point
    if letter == "N" and not source.ecma:
        name = source.braced(at)
        try:
            return ord(unicodedata.lookup(name))
        except (KeyError, TypeError):
            source.fail(f"there is no character named {name!r}", at)
    if letter.isascii() and letter.isalpha():
        where = "inside a set" if in_set else "here"
        source.fail(f"unknown escape \\{letter} {where}; for the letter itself leave out the backslash", at)
    return ord(letter)


def _property(source: Source, letter: str, at: int) -> CodePoints:
    if source.text.startswith("{", source.at):
        name = source.braced(at)
    else:
        name = source.text[source.at : source.at + 1]
        source.at += 1
        if not name.isalpha():
            source.fail(f"\\{letter} must be followed by a property, as in \\{letter}{{Lu}} or \\{letter}L", at)
    try:
        points = classes.property_class(name)
    except KeyError as unknown:
        source.fail(unknown.args[0], at)
    points = in_any_case(points, source.flags)
    return negate(points) if letter == "P" else points


def _braced_number(source: Source, at: int) -> int:
    """The code point of ``{1F600}``, which stands here."""
    escape = source.text[at : source.at]
    digits = source.braced(at)
    if not digits or not _HEX.issuperset(digits):
        source.fail(f"{escape}{{...}} takes hexadecimal digits", at)
    digits = digits.lstrip("0") or "0"
    if len(digits) > 6 or int(digits, 16) > LAST:
        source.fail(f"there is no code point beyond U+{LAST:X}", at)
    return int(digits, 16)


def _unicode_escape(source: Source, at: int) -> int:
    if not source.ecma:
        return source.hex_digits(4, at)
    high = source.hex_digits(4, at)
    if 0xD800 <= high <= 0xDBFF and source.text.startswith("\\u", source.at):
        digits = source.text[source.at + 2 : source.at + 6]
        if len(digits) == 4 and _HEX.issuperset(digits) and 0xDC00 <= int(digits, 16) <= 0xDFFF:
            source.at += 6
            return 0x10000 + ((high - 0xD800) << 10) + (int(digits, 16) - 0xDC00)
    return high


def _octal(source: Source, digit: str, in_set: bool, at: int) -> int:
    text, start = source.text, source.at - 1
    if source.ecma:
        if digit != "0" or text[source.at : source.at + 1].isdigit():
            source.fail(f"\\{digit} is not a character; write \\0 for U+0000 and \\xHH for others", at)
        return 0
    end = start
    while end < min(start + 3, len(text)) and text[end] in _OCTAL:
        end += 1
    # Outside a set, digits that are not 0.. or three octal digits would be a reference to a group.
    if end == start or (not in_set and digit != "0" and end - start < 3):
        source.fail(f"\\{digit} is not a character; write \\0 or three octal digits, or \\xHH", at)
    source.at = end
    point = int(text[start:end], 8)
    if point > 0o377:
        source.fail(f"octal escape \\{text[start:end]} is larger than \\377", at)
    return point


def posix_class(text: str, at: int) -> str | None:
    """What is wrong with a ``[:upper:]`` at a place in a set; None if there is none.

    To POSIX it is a class; here and in Python and ECMAScript it is a colon and five letters, which nobody means.
    """
    found = _POSIX_CLASS.match(text, at)
    if found is None or found[1] not in _INSTEAD:
        return None
    return f"{found[0]} in a set stands for its letters, not for a class; write {_INSTEAD[found[1]]}"


def find_posix_class(pattern: str) -> str | None:
    """What :func:`posix_class` says about the first set of a valid ECMAScript pattern that it says anything about."""
    if "[:" not in pattern:
        return None
    in_set = False
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "[" and in_set:
            reason = posix_class(pattern, at)
            if reason is not None:
                return reason
        elif char in "[]":
            in_set = char == "["
        at += 2 if char == "\\" else 1
    return None


def read_set(source: Source) -> CodePoints:
    """Read a ``[...]``; ``source`` stands on the opening bracket."""
    text, at = source.text, source.at
    source.at = at + 1
    negated = text.startswith("^", source.at)
    source.at += negated
    spans: list[tuple[int, int]] = []
    sets: list[tuple[int, int]] = []
    # In Python a bracket that comes first is a member; in ECMAScript [] and [^] are complete.
    first = not source.ecma
    while True:
        if source.at >= len(text):
            source.fail("this [ is never closed with ]", at)
        if text[source.at] == "]" and not first:
            source.at += 1
            break
        first = False
        begin = source.at
        reason = None if source.ecma else posix_class(text, begin)
        if reason is not None:
            source.fail(reason, begin)
        low = read_member(source)
        follower = text[source.at : source.at + 2]
        if follower[:1] != "-" or follower == "-]" or follower == "-":
            if isinstance(low, int):
                spans.append((low, low))
            else:
                sets += low
            continue
        source.at += 1
        high = read_member(source)
        if isinstance(low, int) and isinstance(high, int):
            if low > high:
                source.fail(f"the range {text[begin : source.at]} is in the wrong order", begin)
            spans.append((low, high))
        elif source.ecma:
            spans.append((0x2D, 0x2D))
            for member in (low, high):
                if isinstance(member, int):
                    spans.append((member, member))
                else:
                    sets += member
        else:
            source.fail(f"{text[begin : source.at]} is not a range of characters; write \\- for a hyphen", begin)
    points = in_any_case(normalize(spans), source.flags)
    if sets:
        # These have seen to case themselves.
        points = normalize((*points, *sets))
    return negate(points) if negated else points


def read_member(source: Source) -> int | CodePoints:
    """Read a character of a set, or an escape in it."""
    char = source.text[source.at]
    if char == "\\":
        return read_escape(source, in_set=True)
    source.at += 1
    return ord(char)
