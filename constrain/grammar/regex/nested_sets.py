r"""Sets in the syntax of Rust's ``regex``: sets within sets, what two of them have in common, classes of POSIX.

    [[a-f]xyz]        a set within a set: the union of both
    [a-z&&[^aeiou]]   what both have
    [\w--\d]          what the left one has and the right one has not
    [a-g~~d-k]        what one of them has and the other one has not
    [[:alpha:]_]      a class of POSIX, of ASCII alone; [[:^alpha:]] is all else

A union binds tighter than ``&&``, ``--`` and ``~~``, which are taken from left to right.
"""

from __future__ import annotations

import re

from constrain.grammar.languages.utf8 import CodePoints, common, negate, normalize
from constrain.grammar.regex import charsets

MAX_DEPTH = 100
"""Sets inside sets."""

_POSIX_CLASS = re.compile(r"\[:(\^?)([a-z]+):\]")

# The first and the last character of each range.
_POSIX = {
    "alnum": "09AZaz",
    "alpha": "AZaz",
    "ascii": "\x00\x7f",
    "blank": "\t\t  ",
    "cntrl": "\x00\x1f\x7f\x7f",
    "digit": "09",
    "graph": "!~",
    "lower": "az",
    "print": " ~",
    "punct": "!/:@[`{~",
    "space": "\t\r  ",
    "upper": "AZ",
    "word": "09AZ__az",
    "xdigit": "09AFaf",
}


class _Open:
    """A set that is being read.

    Attributes
    ----------
    at : int
        Where it begins.
    negated : bool
    members : list of range
        Of the operand that is being read.
    left, operator : CodePoints and str
        What stands before that operand; the operator is empty for the first one.
    """

    __slots__ = ("at", "left", "members", "negated", "operator")

    def __init__(self, at: int, negated: bool) -> None:
        self.at = at
        self.negated = negated
        self.members: list[tuple[int, int]] = []
        self.left: CodePoints = ()
        self.operator = ""

    def operand(self, flags: int, operator: str = "") -> CodePoints:
        """End an operand; the value of all so far, without the negation."""
        right = charsets.in_any_case(normalize(self.members), flags)
        if self.operator:
            right = _combined(self.left, self.operator, right)
        self.members, self.left, self.operator = [], right, operator
        return right


def read_nested_set(source: charsets.Source) -> CodePoints:
    """Read a ``[...]``; ``source`` stands on the opening bracket."""
    text = source.text
    stack = [_begin(source)]
    while True:
        source.skip_blanks()
        if source.at >= len(text):
            source.fail("this [ is never closed with ]", stack[-1].at)
        char, top = text[source.at], stack[-1]
        posix = _POSIX_CLASS.match(text, source.at) if char == "[" else None
        if posix is not None and posix[2] in _POSIX:
            bounds = iter(map(ord, _POSIX[posix[2]]))
            points: CodePoints = tuple(zip(bounds, bounds, strict=True))
            top.members += negate(points) if posix[1] else points
            source.at = posix.end()
        elif char == "[":
            if len(stack) >= MAX_DEPTH:
                source.fail(f"sets are nested more than {MAX_DEPTH} deep", source.at)
            stack.append(_begin(source))
        elif char == "]":
            source.at += 1
            value = stack.pop().operand(source.flags)
            value = negate(value) if top.negated else value
            if not stack:
                return value
            stack[-1].members += value
        elif text[source.at : source.at + 2] in ("&&", "--", "~~"):
            source.at += 2
            top.operand(source.flags, char)
        else:
            top.members += _range(source)


def _begin(source: charsets.Source) -> _Open:
    """Read an opening bracket and what counts as a character only behind it: hyphens, or a ``]``."""
    at, text = source.at, source.text
    source.at += 1
    source.skip_blanks()
    negated = text.startswith("^", source.at)
    source.at += negated
    found = _Open(at, negated)
    source.skip_blanks()
    while text.startswith("-", source.at):
        source.at += 1
        found.members = [(0x2D, 0x2D)]
        source.skip_blanks()
    if not found.members and text.startswith("]", source.at):
        source.at += 1
        found.members = [(0x5D, 0x5D)]
    return found


def _range(source: charsets.Source) -> CodePoints:
    """Read a character, a range or a class such as ``\\d``."""
    text, begin = source.text, source.at
    low = charsets.read_member(source)
    source.skip_blanks()
    # A hyphen before the end is one, and before another hyphen an operator.
    if not text.startswith("-", source.at) or text.startswith("--", source.at):
        return ((low, low),) if isinstance(low, int) else low
    hyphen = source.at
    source.at += 1
    source.skip_blanks()
    if source.at >= len(text) or text[source.at] == "]":
        source.at = hyphen + 1
        return normalize(((0x2D, 0x2D), *(((low, low),) if isinstance(low, int) else low)))
    high = charsets.read_member(source)
    if not isinstance(low, int) or not isinstance(high, int):
        source.fail(f"{text[begin : source.at]} is not a range of characters; write \\- for a hyphen", begin)
    if low > high:
        source.fail(f"the range {text[begin : source.at]} is in the wrong order", begin)
    return ((low, high),)


def _combined(left: CodePoints, operator: str, right: CodePoints) -> CodePoints:
    if operator == "&":
        return common(left, right)
    if operator == "-":
        return common(left, negate(right))
    return normalize((*common(left, negate(right)), *common(right, negate(left))))
