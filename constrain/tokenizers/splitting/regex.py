"""Reads the regexes that tokenizer files split text with.

The dialect is what those files use: alternation, groups (capturing or not, atomic, ``(?i:...)``), greedy,
lazy and possessive repeats, classes with ``\\p{..} \\s \\d \\w`` and ``&&``, lookahead, lookbehind over one
character, and the anchors ``^ $ \\A \\z \\Z \\b \\B``.  Anything else, and a repeat of something that may be empty, is
a :class:`TokenizerError` that names it and its place.

There are two readings.  Oniguruma's is that of ``tokenizer.json``; the other one is that of Rust's ``fancy-regex``, in
which rank files and GGUF files have their patterns.  They differ in this:

* ``^`` and ``$`` hold at every line's ends, or at those of the text;
* ``x{1,2}+`` and ``x{2}?`` are ``(?:x{1,2})+`` and ``(?:x{2})?``, or a possessive and a lazy repeat;
* where case is ignored ``\\u00df`` is ``ss``, which is refused here, or is one character like the others;
* a property alone has the same members where case is ignored, or those in other cases too;
* ``\\p{Word}`` is ``\\w``, or the word characters of Unicode.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from constrain.errors import TokenizerError
from constrain.tokenizers.splitting import instructions as vm
from constrain.tokenizers.splitting.case_folding import add_other_cases, folded, several, texts_of_several
from constrain.tokenizers.splitting.character_properties import members_of_category, word_members
from constrain.unicode_categories import SPACES, members_of_ranges

Members = npt.NDArray[np.bool_]
"""bool[0x110000]: a set of code points."""

Node = tuple[Any, ...]
"""("set", members) | ("seq", [nodes]) | ("alt", [nodes]) | ("repeat", node, least, most, kind)
| ("look", node, ahead, negative) | ("atomic", node) | ("at", assertion)"""

_DEEPEST = 100
_LARGEST_COUNT = 1000
_ESCAPES = {"n": 0x0A, "r": 0x0D, "t": 0x09, "f": 0x0C, "v": 0x0B, "a": 0x07, "e": 0x1B, "0": 0}


_MOST_LITERALS = 128


def parse_split(regex: str, oniguruma: bool = False) -> Node:
    """The tree of a pattern, in one of the two readings."""
    return _Parser(regex, oniguruma).parse()


def may_be_empty(node: Node) -> bool:
    """Whether a node can match without taking a character."""
    kind = node[0]
    if kind == "set":
        return False
    if kind == "seq":
        return all(map(may_be_empty, node[1]))
    if kind == "alt":
        return any(map(may_be_empty, node[1]))
    if kind == "repeat":
        return node[2] == 0 or may_be_empty(node[1])
    return may_be_empty(node[1]) if kind == "atomic" else True


class _Parser:
    def __init__(self, regex: str, oniguruma: bool) -> None:
        self._regex = regex
        self._pos = 0
        self._depth = 0
        self._ignore_case = False
        self._oniguruma = oniguruma
        self._word = ""
        """The characters side by side, in folded case, up to this place; as many as can be one in another case."""
        self._literals: dict[tuple[int, bool], Members] = {}

    def parse(self) -> Node:
        node = self._alternatives()
        if self._pos < len(self._regex):
            raise self._error("unmatched )")
        return node

    def _error(self, what: str) -> TokenizerError:
        return TokenizerError(f"split pattern {self._regex[:200]!r}, character {self._pos}: {what}")

    def _peek(self, text: str) -> bool:
        return self._regex.startswith(text, self._pos)

    def _take(self, text: str) -> bool:
        if self._peek(text):
            self._pos += len(text)
            return True
        return False

    def _next(self) -> str:
        if self._pos >= len(self._regex):
            raise self._error("the pattern ends too early")
        self._pos += 1
        return self._regex[self._pos - 1]

    def _alternatives(self) -> Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._error("nested too deeply")
        branches = [self._sequence()]
        while self._take("|"):
            self._word = ""
            branches.append(self._sequence())
        self._depth -= 1
        return branches[0] if len(branches) == 1 else ("alt", branches)

    def _sequence(self) -> Node:
        nodes: list[Node] = []
        while self._pos < len(self._regex) and not self._peek("|") and not self._peek(")"):
            atom = self._atom()
            nodes.append(self._repeated(atom))
            if nodes[-1] is not atom or atom[0] in ("look", "at", "atomic"):
                self._word = ""
        return nodes[0] if len(nodes) == 1 else ("seq", nodes)

    def _repeated(self, node: Node) -> Node:
        while True:
            start = self._pos
            if self._take("*"):
                least, most = 0, -1
            elif self._take("+"):
                least, most = 1, -1
            elif self._take("?"):
                least, most = 0, 1
            elif self._peek("{"):
                bounds = self._bounds()
                if bounds is None:
                    return node
                least, most = bounds
            else:
                return node
            if self._oniguruma and self._regex[self._pos - 1] == "}":
                # A + behind the braces repeats the whole once more, and so does a ? behind a single count.
                kind = "lazy" if "," in self._regex[start : self._pos] and self._take("?") else "greedy"
            else:
                kind = "possessive" if self._take("+") else "lazy" if self._take("?") else "greedy"
            if node[0] in ("look", "at") or (most != 1 and may_be_empty(node)):
                self._pos = start
                raise self._error("a repeat of something that may be empty is not supported")
            node = ("repeat", node, least, most, kind)

    def _bounds(self) -> tuple[int, int] | None:
        end = self._regex.find("}", self._pos)
        parts = self._regex[self._pos + 1 : max(end, 0)].split(",")
        if end < 0 or len(parts) > 2 or not all(part.isascii() and (part.isdigit() or not part) for part in parts):
            raise self._error("{ that begins no repeat is not supported")
        if not any(parts) or any(len(part) > 6 or int(part or 0) > _LARGEST_COUNT for part in parts):
            raise self._error(f"a repeat count must be at most {_LARGEST_COUNT}")
        least = int(parts[0] or 0)
        most = least if len(parts) == 1 else int(parts[1]) if parts[1] else -1
        if 0 <= most < least:
            raise self._error("a repeat with its bounds the wrong way round")
        self._pos = end + 1
        return least, most

    def _atom(self) -> Node:
        char = self._next()
        if char == "(":
            return self._group()
        if char == "[":
            return ("set", self._outermost_class())
        if char == ".":
            return ("set", ~members_of_ranges(((0x0A, 0x0A),)))
        if char == "^":
            return ("at", vm.AT_LINE_BEGIN if self._oniguruma else vm.AT_BEGIN)
        if char == "$":
            return ("at", vm.AT_LINE_END if self._oniguruma else vm.AT_END)
        if char == "\\":
            self._word = self._word if self._regex[self._pos : self._pos + 1] in "xu" else ""
            anchors = {"A": vm.AT_BEGIN, "z": vm.AT_END, "Z": vm.AT_LAST, "b": vm.AT_WORD, "B": vm.AT_NO_WORD}
            if self._regex[self._pos : self._pos + 1] in anchors:
                return ("at", anchors[self._next()])
            return ("set", self._escape(alone=True))
        if char in "*+?":
            self._pos -= 1
            raise self._error(f"nothing to repeat in front of {char}")
        return ("set", self._lone_literal(ord(char)))

    def _group(self) -> Node:
        before = self._ignore_case
        kind: tuple[Any, ...] = ()
        if self._take("?"):
            if self._take("i:"):
                self._ignore_case = True
            elif self._take("i)"):
                # The option holds up to the end of the enclosing group.
                self._ignore_case = True
                return self._alternatives()
            elif self._take("="):
                kind = ("look", True, False)
            elif self._take("!"):
                kind = ("look", True, True)
            elif self._take("<="):
                kind = ("look", False, False)
            elif self._take("<!"):
                kind = ("look", False, True)
            elif self._take(">"):
                kind = ("atomic",)
            elif not self._take(":"):
                raise self._error(f"group (?{self._regex[self._pos : self._pos + 1]} is not supported")
        node = self._alternatives()
        if not self._take(")"):
            raise self._error("a group is not closed")
        self._ignore_case = before
        if not kind:
            return node
        if kind[0] == "atomic":
            return ("atomic", node)
        if not kind[1] and node[0] != "set":
            raise self._error("lookbehind is supported over one character only")
        return ("look", node, kind[1], kind[2])

    def _outermost_class(self) -> Members:
        begin = self._pos
        members = self._class()
        if self._oniguruma and self._ignore_case:
            negated = self._regex[begin] == "^"
            members = ~members if negated else members
            if not negated and members[[*several()]].any():
                raise self._error("a class with a character that is several in another case is not supported")
            add_other_cases(members)
            members = ~members if negated else members
        self._word = ""
        return members

    def _class(self) -> Members:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._error("nested too deeply")
        negated = self._take("^")
        members = np.zeros(0x110000, dtype=np.bool_)
        other: Members | None = None
        first = True
        while first or not self._peek("]"):
            first = False
            if self._take("&&"):
                self._add_cases_in_class(members)
                other = members if other is None else other & members
                members = np.zeros(0x110000, dtype=np.bool_)
                first = not self._peek("]")
                continue
            if self._peek("[:"):
                raise self._error("a POSIX class is not supported")
            if self._take("["):
                members |= self._class()
                continue
            low, single = self._class_member()
            if single is None:
                members |= low
            elif self._peek("-") and not self._peek("-]"):
                self._pos += 1
                _, high = self._class_member()
                if high is None or high < single:
                    raise self._error("a range without an end")
                members |= members_of_ranges(((single, high),))
            else:
                members |= low
        self._pos += 1
        self._add_cases_in_class(members)
        if other is not None:
            members = members & other
        self._depth -= 1
        return ~members if negated else members

    def _class_member(self) -> tuple[Members, int | None]:
        """A member of a class and, if it is a single character, that."""
        char = self._next()
        if char != "\\":
            return members_of_ranges(((ord(char), ord(char)),)), ord(char)
        start = self._pos
        code = self._code_point()
        if code is not None:
            return members_of_ranges(((code, code),)), code
        self._pos = start
        return self._escape(alone=False), None

    def _code_point(self) -> int | None:
        """The character of an escape that means one; None, with the place anywhere, if it means a set."""
        char = self._next()
        if char in _ESCAPES:
            return _ESCAPES[char]
        if char in "xu":
            if char == "x" and self._take("{"):
                end = self._regex.find("}", self._pos)
                digits, self._pos = self._regex[self._pos : max(end, 0)], end + 1
            else:
                length = 2 if char == "x" else 4
                digits = self._regex[self._pos : self._pos + length]
                self._pos += length
            try:
                code = int(digits, 16)
            except ValueError:
                code = -1
            if not 0 <= code < 0x110000 or len(digits) > 8:
                raise self._error("an escape that is no code point")
            return code
        return None if char.isalnum() else ord(char)

    def _escape(self, alone: bool) -> Members:
        start = self._pos
        code = self._code_point()
        if code is not None:
            return self._lone_literal(code) if alone else members_of_ranges(((code, code),))
        self._pos = start
        char = self._next()
        if char in "pP":
            return self._property(char == "P", alone)
        simple = {"s": members_of_ranges(SPACES), "d": members_of_category("Nd"), "w": word_members(alone)}
        members = simple.get(char.lower())
        if members is None:
            self._pos -= 1
            raise self._error(f"escape \\{char} is not supported")
        return ~members if char.isupper() else members

    def _property(self, negated: bool, alone: bool) -> Members:
        if self._take("{"):
            end = self._regex.find("}", self._pos)
            name = self._regex[self._pos : max(end, 0)]
            if name.startswith("^"):
                name, negated = name[1:], not negated
            place, self._pos = self._pos, end + 1
        else:
            place = self._pos
            name = self._next()
        members = self._members_of(name, alone)
        if members is None:
            self._pos = place
            raise self._error(f"property {name!r} is not supported")
        return ~members if negated else members

    def _members_of(self, name: str, alone: bool) -> Members | None:
        if self._oniguruma:
            return word_members(alone) if name == "Word" else members_of_category(name)
        members = members_of_category(name)
        if members is not None and alone:
            self._add_cases_in_class(members)
        return members

    def _add_cases_in_class(self, members: Members) -> None:
        """Add the members in other cases; Oniguruma does so for the outermost class as a whole."""
        if self._ignore_case and not self._oniguruma:
            add_other_cases(members)

    def _lone_literal(self, code: int) -> Members:
        """The same set each time: it takes a megabyte."""
        self._read_on(chr(code))
        key = code, self._ignore_case
        if key not in self._literals:
            if len(self._literals) >= _MOST_LITERALS:
                raise self._error(f"more than {_MOST_LITERALS} different characters, which is not supported,")
            members = members_of_ranges(((code, code),))
            if self._ignore_case:
                add_other_cases(members)
            members.flags.writeable = False
            self._literals[key] = members
        return self._literals[key]

    def _read_on(self, char: str) -> None:
        """Refuse characters that are fewer, or more, in another case, where that matters."""
        if not self._ignore_case or not self._oniguruma:
            self._word = ""
            return
        self._word = self._word[-2:] + (folded(char) if len(char.casefold()) == 1 else char.casefold())
        if any(text in self._word for text in texts_of_several()):
            raise self._error(f"characters that are {self._word!r} in another case are not supported")
