"""Reading a pattern: text to tree, with the place of everything that can be refused.

One loop with a stack of open groups, so that no pattern can exhaust Python's recursion.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, get_args

from constrain.errors import GrammarError
from constrain.grammar.languages.utf8 import ALL, CodePoints, negate
from constrain.grammar.regex import charsets, classes
from constrain.grammar.regex.nested_sets import read_nested_set
from constrain.grammar.regex.nodes import NIL, After, Before, Chars, Node, alt, chars, look, rep, seq
from constrain.grammar.regex.references import MAX_TEXTS, Capture, Reference, resolved, texts_of
from constrain.limits import spend

Dialect = Literal["python", "ecma", "rust"]
"""Whose syntax a pattern has: that of Python's ``re``, of ECMAScript, or of Rust's ``regex``."""

DIALECTS: tuple[str, ...] = get_args(Dialect)

MAX_LENGTH = 200_000
"""Characters in a pattern."""

# Trees are walked recursively, here and by everything that reads a Regular; a level costs up to three frames.
MAX_DEPTH = 100
"""Groups inside groups."""

MAX_REPEAT = 1_000_000
"""The largest number in ``{n,m}``."""

MAX_ASSERTIONS = 250
"""Anchors, word boundaries and look-arounds in a pattern."""

_FLAGS = {
    "i": charsets.FOLD,
    "s": charsets.DOTALL,
    "m": charsets.MULTILINE,
    "x": charsets.VERBOSE,
    "a": charsets.ASCII,
    "u": 0,
}
_SPECIAL = frozenset("\\[(){}.*+?|^$")
_BRACES = re.compile(r"\{([0-9]*)(,?)([0-9]*)\}")
_INLINE_FLAGS = re.compile(r"\(\?([a-zA-Z]*)(?:(-)([a-zA-Z]*))?([:)])")
_GROUP_NAME = re.compile(r"\(\?P?<([^>)]*)>")

_REFERENCE = r"\\([1-9][0-9]%s)|\\k<([^>)]+)>|\(\?P=([^)]+)\)"
_REFERENCES = {True: re.compile(_REFERENCE % "*"), False: re.compile(_REFERENCE % "?")}
"""By whether it is ECMAScript: in Python the number of a group has two digits at most."""

# What a quantifier may follow.
_NONE, _ATOM, _QUANTIFIED, _ANCHOR = range(4)


def parse(pattern: str, flags: str, dialect: str, *, ascii_case: bool = False) -> Node:
    """The tree of ``pattern``; with ``ascii_case`` the flag ``i`` is about the letters of ASCII alone.

    Raises
    ------
    GrammarError
        The pattern or the flags are invalid or not supported.
    """
    if not isinstance(pattern, str):
        raise TypeError(f"a pattern is a str, not {type(pattern).__name__}")
    if dialect not in DIALECTS:
        raise ValueError(f"dialect must be {' or '.join(map(repr, DIALECTS))}, not {dialect!r}")
    if len(pattern) > MAX_LENGTH:
        raise GrammarError(f"the pattern has {len(pattern)} characters; the limit is {MAX_LENGTH}")
    bits = charsets.ASCII_CASE * ascii_case | charsets.ECMA_CASE * (dialect == "ecma")
    bits |= charsets.RUST * (dialect == "rust")
    for flag in flags:
        if flag not in _FLAGS:
            raise GrammarError(f"unknown regex flag {flag!r}; there are {', '.join(_FLAGS)}")
        bits |= _FLAGS[flag]
    if "a" in flags and "u" in flags:
        raise GrammarError("the regex flags 'a' and 'u' exclude each other")
    return _Parser(pattern, bits, dialect == "ecma").parse()


class _Group:
    """An open group: what came before it, and what to make of it when it closes."""

    __slots__ = ("alternatives", "at", "flags", "items", "keys", "kind")

    def __init__(
        self, kind: str, at: int, items: list[Node], alternatives: list[Node], flags: int, keys: tuple[str, ...]
    ) -> None:
        self.kind = kind
        # The number and the name that references have for it.
        self.keys = keys
        self.at = at
        self.items = items
        self.alternatives = alternatives
        self.flags = flags


@lru_cache(maxsize=4096)
def _char(point: int, flags: int) -> Node:
    points: CodePoints = ((point, point),)
    return Chars(charsets.in_any_case(points, flags))


class _Parser(charsets.Source):
    def __init__(self, text: str, flags: int, ecma: bool) -> None:
        super().__init__(text, flags, ecma)
        self.items: list[Node] = []
        self.alternatives: list[Node] = []
        self.groups: list[_Group] = []
        self.names: set[str] = set()
        self.captures = 0
        # By their numbers and names.
        self.captured: dict[str, Capture] = {}
        # How many combinations of texts the back-references make.
        self.ways = 1
        self.assertions = 0
        self.last = _NONE
        # There greed is a flag, nothing is possessive, and more assertions are escapes.
        self.is_rust = bool(flags & charsets.RUST)
        self.read_set = read_nested_set if self.is_rust else charsets.read_set
        self.known_flags = {**_FLAGS, "U": 0} if self.is_rust else _FLAGS

    def parse(self) -> Node:
        text, size = self.text, len(self.text)
        while self.at < size:
            spend()
            self.skip_blanks()
            char = text[self.at : self.at + 1]
            if not char:
                break
            if char not in _SPECIAL:
                self.at += 1
                self.items.append(_char(ord(char), self.flags & charsets.CASE))
                self.last = _ATOM
            elif char == "[":
                self._atom(chars(self.read_set(self)))
            elif char == "\\":
                self._escape()
            elif char == "(":
                self._open()
            elif char == ")":
                self._close()
            elif char == "|":
                self.at += 1
                self.alternatives.append(resolved(self.items))
                self.items = []
                self.last = _NONE
            elif char == ".":
                self.at += 1
                self._atom(Chars(ALL if self.flags & charsets.DOTALL else negate(self._newlines())))
            elif char == "^" or char == "$":
                self._anchor(char, 1)
            else:
                self._quantifier(char)
        if self.groups:
            self.fail("this ( is never closed with )", self.groups[-1].at)
        return alt([*self.alternatives, resolved(self.items)])

    def _atom(self, node: Node) -> None:
        self.items.append(node)
        self.last = _ATOM

    def _newlines(self) -> CodePoints:
        return classes.ECMA_NEWLINE if self.ecma else classes.NEWLINE

    # -- assertions ------------------------------------------------------------------------

    def _count_assertion(self, at: int) -> None:
        self.assertions += 1
        if self.assertions > MAX_ASSERTIONS:
            self.fail(f"more than {MAX_ASSERTIONS} anchors, boundaries and look-arounds in one pattern", at)

    def _anchor(self, name: str, length: int) -> None:
        at = self.at
        self._count_assertion(at)
        self.at += length
        lines = self._newlines() if self.flags & charsets.MULTILINE else ()
        if name == "^":
            node: Node = Before(lines, True, at)
        elif name == "$":
            node = After(lines, True, at)
        elif name == "A":
            node = Before((), True, at)
        elif name in "Zz":
            node = After((), True, at)
        else:
            word = charsets.named_class("w", self.ecma, self.flags)
            other = negate(word)
            # A word character on one side only (\b), or on both sides or neither (\B).
            right = (word, other) if name == "B" else (other, word)
            node = alt(
                seq((Before(left, left is other, at), After(points, points is other, at)))
                for left, points in zip((word, other), right, strict=True)
            )
        self.items.append(node)
        self.last = _ANCHOR

    def _escape(self) -> None:
        at, text = self.at, self.text
        letter = text[at + 1 : at + 2]
        if self.is_rust and (letter == "<" or letter == ">" or text.startswith("b{", at + 1)):
            escape = f"\\{letter}" if letter != "b" else "\\b{...}"
            self.fail(f"{escape} is a boundary that is not supported; write \\b, beside a look-around", at)
        if letter and letter in "AbBZz":
            self._anchor(letter, 2)
            return
        if letter == "k" and text.startswith("<", at + 2):
            self._refer()
            return
        if letter and letter in "123456789" and (self.ecma or not _is_octal(text[at + 1 : at + 4])):
            self._refer()
            return
        found = charsets.read_escape(self, in_set=False)
        if isinstance(found, int):
            self._atom(_char(found, self.flags & charsets.CASE))
        else:
            self._atom(chars(found))

    # -- groups ----------------------------------------------------------------------------

    def _open(self) -> None:
        at, text = self.at, self.text
        if len(self.groups) >= MAX_DEPTH:
            self.fail(f"groups are nested more than {MAX_DEPTH} deep", at)
        opening = text[at : at + 4]
        if not opening.startswith("(?"):
            self._push("group", at, 1, captures=True)
        elif opening.startswith("(?:"):
            self._push("group", at, 3)
        elif opening.startswith(("(?=", "(?!")):
            self._push("look" + opening[2], at, 3)
        elif opening.startswith(("(?<=", "(?<!")):
            self._push("look" + opening[2:], at, 4)
        elif opening.startswith("(?>"):
            self._push("atomic", at, 3)
        elif opening.startswith("(?#"):
            end = text.find(")", at)
            if end < 0:
                self.fail("this comment is never closed with )", at)
            self.at = end + 1
        elif opening.startswith("(?P="):
            self._refer()
        elif opening.startswith("(?("):
            self.fail("conditional groups are not supported", at)
        elif opening.startswith(("(?P<", "(?<")):
            self._named(at)
        else:
            self._inline_flags(at)

    def _refer(self) -> None:
        """Read a back-reference, to a group that is an item of the same sequence."""
        at = self.at
        if self.is_rust:
            self.fail("Rust's regex has no back-references", at)
        match = _REFERENCES[self.ecma].match(self.text, at)
        if match is None:
            self.fail("this is no back-reference; write \\1, \\k<name> or (?P=name)", at)
        number, name = match[1], match[2] or match[3]
        # A name is no number: \k<1> refers to nothing.
        capture = self.captured.get(number or name) if number or not name.isdigit() else None
        if capture is None:
            self.fail(f"no group {number or repr(name)} ends before this back-reference", at)
        # A group that is repeated is another item, or it is NIL all the same.
        if capture.items is not self.items or self.items[capture.place] is not capture.node or capture.node is NIL:
            self.fail(
                "back-references are supported only to a group without a quantifier beside them, "
                "in the same alternative and the same parentheses",
                at,
            )
        # ECMAScript reads it from its end, where the group has not matched yet, and Python has none there.
        if any(group.kind.startswith("look<") for group in self.groups):
            self.fail("back-references are not supported in a look-behind", at)
        # A reference matches its text in any case.
        if self.flags & charsets.FOLD:
            self.fail("back-references are not supported with the flag i", at)
        if capture.reference is None:
            texts = texts_of(capture.node)
            if texts is None:
                self.fail(
                    f"back-references are not regular, and supported only to a group that has at most {MAX_TEXTS} "
                    "texts, whatever stands around it",
                    at,
                )
            self.ways *= len(texts)
            if self.ways > MAX_TEXTS:
                self.fail(
                    f"the groups of the back-references so far have {self.ways} combinations of texts; "
                    f"the limit is {MAX_TEXTS}",
                    at,
                )
            capture.reference = Reference(capture.place, texts)
        self.at = match.end()
        self._atom(capture.reference)

    def _push(self, kind: str, at: int, length: int, captures: bool = False, name: str = "") -> None:
        if kind.startswith("look"):
            self._count_assertion(at)
        self.captures += captures
        keys = tuple(filter(None, (str(self.captures), name))) if captures else ()
        self.groups.append(_Group(kind, at, self.items, self.alternatives, self.flags, keys))
        self.items, self.alternatives = [], []
        self.last = _NONE
        self.at = at + length

    def _named(self, at: int) -> None:
        match = _GROUP_NAME.match(self.text, at)
        if match is None:
            self.fail("a group name must end in >", at)
        name = match[1]
        if not name.isidentifier():
            self.fail(f"{name!r} is not a name for a group", at)
        if name in self.names:
            self.fail(f"the group name {name!r} is used twice", at)
        self.names.add(name)
        self._push("group", at, len(match[0]), captures=True, name=name)

    def _inline_flags(self, at: int) -> None:
        match = _INLINE_FLAGS.match(self.text, at)
        if match is None:
            self.fail(f"unknown kind of group {self.text[at : at + 4]!r}", at)
        on, minus, off, end = match.groups()
        for offset, letter in enumerate(on + (off or "")):
            if letter not in self.known_flags:
                place = at + 2 + offset + (minus is not None and offset >= len(on))
                self.fail(f"unknown flag {letter!r}; there are {', '.join(self.known_flags)}", place)
        if ("a" in on and "u" in on) or "a" in (off or "") or "u" in (off or ""):
            self.fail("the flags 'a' and 'u' exclude each other and cannot be switched off", at)
        if not on and not off:
            self.fail("flags are missing here", at)
        flags = self.flags & ~charsets.ASCII if "u" in on else self.flags
        for letter in on:
            flags |= self.known_flags[letter]
        for letter in off or "":
            if letter in on:
                self.fail(f"the flag {letter!r} is switched both on and off", at)
            flags &= ~self.known_flags[letter]
        if end == ":":
            self._push("group", at, len(match[0]))
        elif self.groups or self.items or self.alternatives:
            self.fail(f"flags for the whole pattern must come first; here write (?{match[0][2:-1]}:...)", at)
        elif minus:
            self.fail("flags for the whole pattern cannot be switched off", at)
        else:
            self.at = match.end()
        self.flags = flags

    def _close(self) -> None:
        at = self.at
        if not self.groups:
            self.fail("this ) closes nothing; for the character itself write \\)", at)
        group = self.groups.pop()
        node = alt([*self.alternatives, resolved(self.items)])
        self.items, self.alternatives, self.flags = group.items, group.alternatives, group.flags
        self.at = at + 1
        if group.kind.startswith("look"):
            node = look(node, "<" not in group.kind, group.kind.endswith("!"), group.at)
        elif group.kind == "atomic" and node.low != node.high:
            self.fail("an atomic group is supported only if all its matches have the same length", group.at)
        if group.keys:
            self.captured.update(dict.fromkeys(group.keys, Capture(self.items, node)))
        self._atom(node)

    # -- quantifiers ---------------------------------------------------------------------------

    def _quantifier(self, char: str) -> None:
        at, text = self.at, self.text
        least, most = 0, None
        length = 1
        if char in "{}":
            match = _BRACES.match(text, at)
            if match is None or match[0] == "{}" or (self.ecma and match[0] == "{,}"):
                self.at += 1
                self._atom(_char(ord(char), 0))
                return
            if self.ecma and not match[1]:
                self.fail(f"{match[0]} has no lower bound; write {{0{match[0][1:]}", at)
            length = len(match[0])
            least = self._bound(match[1] or "0", at)
            most = self._bound(match[3], at) if match[3] else None if match[2] else least
            if most is not None and most < least:
                self.fail(f"the bounds of {match[0]} are in the wrong order", at)
        elif char == "+":
            least = 1
        elif char == "?":
            most = 1
        if self.last == _NONE:
            self.fail(f"there is nothing to repeat before {text[at : at + length]}", at)
        if self.last == _ANCHOR:
            self.fail(f"{text[at : at + length]} would repeat an anchor, which has no length", at)
        if self.last == _QUANTIFIED:
            self.fail(f"{text[at : at + length]} follows another quantifier; group what it is to repeat", at)
        self.at = at + length
        item = self.items.pop()
        if isinstance(item, Reference):
            self.fail("a quantifier behind a back-reference is not supported", at)
        follower = text[self.at : self.at + 1]
        if follower == "+" and not self.ecma and not self.is_rust:
            self.at += 1
            self.items.append(self._possessive(item, least, most, at))
        else:
            # A lazy quantifier prefers other matches but allows the same ones.
            self.at += follower == "?"
            self.items.append(rep(item, least, most, at))
        self.last = _QUANTIFIED

    def _bound(self, digits: str, at: int) -> int:
        digits = digits.lstrip("0")
        if len(digits) > 9 or int(digits or "0") > MAX_REPEAT:
            self.fail(f"a repetition may be at most {MAX_REPEAT} times", at)
        return int(digits or "0")

    def _possessive(self, item: Node, least: int, most: int | None, at: int) -> Node:
        """What never gives back: as many as there are, so what follows is not another one."""
        # From one place all matches of such an item end at the same place, whatever it asserts on the way.
        if item.low != item.high:
            self.fail("a possessive quantifier is supported only on an item of fixed length", at)
        if least == most or item.high == 0:
            return rep(item, least, most, at)
        self._count_assertion(at)
        no_more = look(item, ahead=True, negated=True, at=at)
        if most is None:
            return seq((rep(item, least, None, at), no_more))
        return alt((seq((rep(item, least, most - 1, at), no_more)), rep(item, most, most, at)))


def _is_octal(digits: str) -> bool:
    return len(digits) == 3 and all(digit in "01234567" for digit in digits)
