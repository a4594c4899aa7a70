r"""The GBNF front-end: grammars in llama.cpp's notation become an IR.

    root  ::= "[" (item ("," item)*)? "]"     # rules; a line end closes a rule, except inside
    item  ::= [0-9]+ |                        # parentheses and after "|"
              "\"" [^"\x00-\x1F]* "\""

Literals and character classes mean code points.  What belongs together without a rule in between,
such as ``"\"" [^"]* "\""``, becomes one lexeme; the language is the same as if every character
were one.  Unlike llama.cpp, left recursion is fine here, and a rule defined twice is an error.

Tokens are ``<think>``, ``<[123]>`` and, repeated with ``*`` or ``+``, ``!<[123]>``: any token but that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias, TypedDict

from constrain.errors import ConstrainError, GrammarError
from constrain.grammar.ir import GrammarBuilder, GrammarIR, Symbol
from constrain.grammar.languages.regular import Regular, concat, literal, nested_counts, repeat, union
from constrain.grammar.languages.utf8 import ANY_CHAR, encode, negate, normalize
from constrain.grammar.tokens import Named, any_tokens, token_set
from constrain.limits import spend

MAX_REPEAT = 1_000_000
"""The largest number in ``{n,m}``: far above what a generation can reach."""

# Beyond these, parts are not put together into one lexeme but left to rules: regular languages are
# walked recursively, and counted repetitions of counted repetitions make large automata.
_MAX_DEPTH = 40
_MAX_CHARS = 20_000

ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "[": "[", "]": "]", "-": "-"}
_HEX_ESCAPES = {"x": 2, "u": 4, "U": 8}
_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")
_DIGITS = frozenset("0123456789")
# Characters of a string that stand for themselves; lone surrogates are no text.
_PLAIN_CHARS = re.compile(r'[^"\\\ud800-\udfff]+')
_NO_LEAST = re.compile(r",[ \t]*(?P<most>\d*)[ \t]*\}")
_ADVICE = {
    "_": "; the name of a rule has letters, digits and '-'; Grammar.from_ebnf takes '_' too",
    "'": "; a literal stands in double quotes",
}
"""What to do about a character that other notations have."""
_TOKEN = re.compile(r"<(?:\[(?P<id>\d{1,9})\]|[^<>\s\[][^<>\s]*)>")


@dataclass(frozen=True)
class Text:
    """An expression without rules in it.

    Attributes
    ----------
    language : Regular
    depth : int
        Depth of the language's tree.
    chars : int
        Characters after repetitions are written out, roughly: the size of an automaton for it.
    repeated : tuple of Text, int and int or None, optional
        What it repeats, and how often, if it is a repetition.
    """

    language: Regular
    depth: int = 1
    chars: int = 1
    repeated: tuple[Text, int, int | None] | None = None


@dataclass(frozen=True)
class AnyToken:
    """Any token but some: a piece of text, or a special token; ``offset`` is its place."""

    excluded: tuple[Named, ...]
    offset: int


Item: TypeAlias = "Text | Symbol | AnyToken"


class _PlaceNames(TypedDict):
    line: int
    column: int


@dataclass
class _Group:
    """Alternatives that are being read, those of a rule or of a pair of parentheses."""

    begin: int
    alternatives: list[list[Item]] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    can_repeat: bool = False


def from_gbnf(text: str, *, start: str = "root") -> GrammarIR:
    """The IR of a grammar in GBNF.

    Raises
    ------
    GrammarError
        For a syntax error, a rule that is undefined or defined twice, a reference to a token, or a
        count above :data:`MAX_REPEAT`; with line and column.
    """
    return GbnfReader(text).grammar(start)


class GbnfReader:
    """One pass over the text, building as it goes; groups are kept on a stack, not by recursion.

    Attributes
    ----------
    names : frozenset of str
        The characters of names.
    escapes : dict of str to str
        What stands behind a backslash, and what it means.
    lines_end_rules : bool
        Whether a rule ends with its line, outside of parentheses and elsewhere than after ``::=`` and ``|``.
    any_class : bool
        Whether ``[^]`` is any character.
    no_most : str
        What may stand for the most where there is none, beside nothing.
    """

    names = _NAME
    escapes = ESCAPES
    lines_end_rules = True
    any_class = False
    no_most = ""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._builder = GrammarBuilder()
        self._rules: dict[str, Symbol] = {}
        self._used_at: dict[str, int] = {}
        self._defined_at: dict[str, int] = {}

    def grammar(self, start: str) -> GrammarIR:
        self._skip_space(newlines=True)
        while self._at < len(self._text):
            self._rule()
        for name, used_at in self._used_at.items():
            if name not in self._defined_at:
                raise self._error(f'the rule "{name}" is not defined', used_at)
        if start not in self._defined_at:
            known = ", ".join(list(self._defined_at)[:8]) or "no rules"
            raise self._error(f'the start rule "{start}" is not defined (defined are: {known})', 0)
        self._before_finishing()
        return self._builder.finish(self._rules[start], (), partial(_late_error, self._text, self._defined_at))

    def _before_finishing(self) -> None:
        """What is to be done when all rules are there."""

    def _rule(self) -> None:
        begin = self._at
        name = self._name("a rule name")
        if name in self._defined_at:
            line, _ = self._place(self._defined_at[name])
            raise self._error(f'the rule "{name}" is defined twice (first in line {line})', begin)
        self._defined_at[name] = begin
        self._skip_space(newlines=not self.lines_end_rules)
        self._read_attributes()
        if not self._text.startswith("::=", self._at):
            raise self._unexpected('"::="')
        self._at += 3
        self._skip_space(newlines=True)
        left = self._symbol_of(name)
        self._add_rule(left, self._alternatives())
        if self._text.startswith("::=", self._at):
            raise self._error(
                f'the name before this "::=" belongs to the rule "{name}", which goes on over line ends after "::=" '
                'and after "|"; write "" for an empty alternative',
                self._at,
            )
        over = self._ends_here() if not self.lines_end_rules else self._peek() in "\r\n"
        if self._at < len(self._text) and not over:
            raise self._unexpected('a literal, "[", "(", ".", a rule name, a repetition, "|" or the end of the line')
        self._skip_space(newlines=True)
        if self.lines_end_rules and self._peek() and self._peek() in '|"[(.*+?{<!':
            raise self._error('a rule goes on in the next line only after "|" or inside parentheses', self._at)

    def _read_attributes(self) -> None:
        """Read what stands between the name of a rule and ``::=``."""
        if self._peek() == "[":
            raise self._error("attributes of rules, as [lazy] and [capture], are not supported in GBNF", self._at)

    def _add_rule(self, left: Symbol, alternatives: list[list[Item]]) -> None:
        for alternative in alternatives:
            self._builder.add(left, [self._to_symbol(item) for item in alternative])

    def _ends_here(self) -> bool:
        """Whether another rule begins here, where rules do not end with their line."""
        return False

    def _name_begins_with_dot(self) -> bool:
        """Whether the dot that is next is the first character of a name."""
        return False

    def _look_ahead(self) -> bool:
        """Read what says something of the text behind a rule, if it is next."""
        return False

    def _named(self, name: str, begin: int) -> Item:
        """What a name stands for."""
        self._used_at.setdefault(name, begin)
        return self._symbol_of(name)

    def _alternatives(self) -> list[list[Item]]:
        """The alternatives of a rule, up to what cannot belong to them."""
        groups = [_Group(self._at)]
        while True:
            spend()
            group = groups[-1]
            nested = len(groups) > 1
            char = self._peek()
            if char == "|":
                group.alternatives.append(_merged(group.items))
                group.items, group.can_repeat = [], False
                self._at += 1
                self._skip_space(newlines=True)
                continue
            if char == "(" and self._look_ahead():
                self._skip_space(newlines=nested or not self.lines_end_rules)
                continue
            if char == "(":
                groups.append(_Group(self._at))
                self._at += 1
                self._skip_space(newlines=True)
                continue
            if char and char in "*+?{":
                self._repetition(group, nested)
                continue
            if char == ")" and nested:
                groups.pop()
                group.alternatives.append(_merged(group.items))
                item = self._closed(group.alternatives)
                group = groups[-1]
                self._at += 1
            elif char == '"':
                item = self._literal()
            elif char == "[":
                item = self._class()
            elif char == "." and not self._name_begins_with_dot():
                item = Text(ANY_CHAR)
                self._at += 1
            elif char in self.names and not (char and len(groups) == 1 and self._ends_here()):
                begin = self._at
                item = self._named(self._name("a rule name"), begin)
            elif char == "<" or self._text.startswith("!<", self._at):
                item = self._token()
            elif nested:
                if not char:
                    raise self._error('this "(" is never closed', group.begin)
                raise self._unexpected('a literal, "[", "(", ".", a rule name, a repetition, "|" or ")"')
            else:
                group.alternatives.append(_merged(group.items))
                return group.alternatives
            group.items.append(item)
            group.can_repeat = True
            self._skip_space(newlines=len(groups) > 1 or not self.lines_end_rules)

    def _closed(self, alternatives: list[list[Item]]) -> Item:
        """What a pair of parentheses stands for."""
        if len(alternatives) == 1 and len(alternatives[0]) == 1 and isinstance(alternatives[0][0], AnyToken):
            return alternatives[0][0]
        texts: list[Text] = []
        for items in alternatives:
            if not items:
                texts.append(Text(literal(b""), 1, 0))
            elif len(items) == 1 and isinstance(items[0], Text):
                texts.append(items[0])
        if len(texts) == len(alternatives):
            joined = _joined(texts, union(*(text.language for text in texts)))
            if joined is not None:
                return joined
        return self._builder.choice([[self._to_symbol(item) for item in items] for items in alternatives])

    def _repetition(self, group: _Group, nested: bool) -> None:
        begin = self._at
        operator = self._text[begin]
        if not group.can_repeat:
            raise self._error(f"there is nothing before {operator!r} that it could repeat", begin)
        self._at += 1
        if operator == "{":
            low, high = self._counts(nested)
        else:
            low, high = (1 if operator == "+" else 0), (1 if operator == "?" else None)
        if high is not None and high < low:
            raise self._error(f"the counts {{{low},{high}}} are in the wrong order", begin)
        item = group.items[-1]
        if isinstance(item, AnyToken):
            group.items[-1] = self._any_tokens(item, low, high)
            self._skip_space(newlines=nested or not self.lines_end_rules)
            return
        if isinstance(item, Text):
            item, low, high = _counted_once(item, low, high)
            chars = item.chars * max(low if high is None else high, 1)
            if item.depth < _MAX_DEPTH and chars <= _MAX_CHARS:
                language = repeat(item.language, low, high)
                group.items[-1] = Text(language, item.depth + 1, chars, (item, low, high) if high != 0 else None)
                self._skip_space(newlines=nested or not self.lines_end_rules)
                return
        group.items[-1] = self._builder.repeat(self._to_symbol(item), low, high)
        self._skip_space(newlines=nested or not self.lines_end_rules)

    def _counts(self, nested: bool) -> tuple[int, int | None]:
        self._skip_space(newlines=nested)
        low = self._count()
        high: int | None = low
        self._skip_space(newlines=nested)
        if self._peek() == ",":
            self._at += 1
            self._skip_space(newlines=nested)
            high = self._count() if self._peek() in _DIGITS else None
            if high is None and self._text.startswith(self.no_most, self._at):
                self._at += len(self.no_most)
            self._skip_space(newlines=nested)
        if self._peek() != "}":
            raise self._unexpected('"," or "}"')
        self._at += 1
        return low, high

    def _count(self) -> int:
        begin = self._at
        while self._peek() in _DIGITS:
            self._at += 1
        digits = self._text[begin : self._at].lstrip("0") or "0"
        if self._at == begin:
            raise self._unexpected("a number", self._advice_on_counts(begin))
        if len(digits) > len(str(MAX_REPEAT)) or int(digits) > MAX_REPEAT:
            raise self._error(f"the count is above the limit of {MAX_REPEAT}", begin)
        return int(digits)

    # -- tokens --------------------------------------------------------------------------------

    def _token(self) -> Item:
        """``<name>``, ``<[id]>``, and either with ``!`` before it."""
        begin = self._at
        negated = self._peek() == "!"
        found = _TOKEN.match(self._text, begin + negated)
        if found is None:
            raise self._error("a token looks like <think> or <[1000]>", begin)
        self._at = found.end()
        number = found["id"]
        part: Named = (int(number), int(number)) if number else found[0]
        if negated:
            return AnyToken((part,), begin)
        return self._builder.token(token_set([part], **self._at_place(begin)), found[0])

    def _at_place(self, offset: int) -> _PlaceNames:
        line, column = self._place(offset)
        return {"line": line, "column": column}

    # -- what stands for text ----------------------------------------------------------------------

    def _literal(self) -> Text:
        text = self._string()
        return Text(literal(text), 1, len(text))

    def _string(self) -> str:
        begin = self._at
        self._at += 1
        parts: list[str] = []
        while self._peek() != '"':
            plain = _PLAIN_CHARS.match(self._text, self._at)
            if plain is None:
                parts.append(self._char("string", begin))
            else:
                self._at = plain.end()
                parts.append(plain[0])
                spend(len(plain[0]))
        self._at += 1
        return "".join(parts)

    def _class(self) -> Text:
        begin = self._at
        self._at += 1
        negated = self._peek() == "^"
        self._at += negated
        ranges: list[tuple[int, int]] = []
        while self._peek() != "]":
            place = self._at
            first = last = self._char("character class", begin)
            if self._peek() == "-" and self._peek(1) != "]":
                self._at += 1
                last = self._char("character class", begin)
            if first > last:
                raise self._error(f"the range {first!r}-{last!r} is in the wrong order", place)
            ranges.append((ord(first), ord(last)))
        self._at += 1
        if not ranges and not (negated and self.any_class):
            raise self._error("a character class without characters", begin)
        points = normalize(ranges)
        return Text(encode(negate(points) if negated else points))

    def _char(self, what: str, begin: int) -> str:
        """The next character of a literal or class, with escapes read."""
        spend()
        char = self._peek()
        if not char or (char == "\\" and not self._peek(1)):
            raise self._error(f"the {what} that begins here is never closed", begin)
        self._at += 1
        if char != "\\":
            if 0xD800 <= ord(char) <= 0xDFFF:
                raise self._error("a lone surrogate is not text", self._at - 1)
            return char
        kind = self._peek()
        self._at += 1
        if kind in self.escapes:
            return self.escapes[kind]
        if kind not in _HEX_ESCAPES:
            raise self._error(f"unknown escape {chr(92)}{kind}", self._at - 2)
        count = self._hex_digits(kind)
        digits = self._text[self._at : self._at + count]
        if len(digits) < count or not all(digit in "0123456789abcdefABCDEF" for digit in digits):
            raise self._error(
                f"\\{kind} must be followed by {count} hexadecimal digit{'s' * (count > 1)}", self._at - 2
            )
        point = int(digits, 16)
        if point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
            raise self._error(f"\\{kind}{digits[:8]} is not a character", self._at - 2)
        self._at += count
        return chr(point)

    def _hex_digits(self, kind: str) -> int:
        """How many hexadecimal digits an escape takes; the reader is at the first."""
        return _HEX_ESCAPES[kind]

    # -- the text --------------------------------------------------------------------------------

    def _peek(self, ahead: int = 0) -> str:
        """The next character, or the empty string at the end."""
        return self._text[self._at + ahead : self._at + ahead + 1]

    def _skip_space(self, newlines: bool) -> None:
        skipped = " \t\r\n" if newlines else " \t"
        while char := self._peek():
            if char == "#":
                while self._peek() not in ("", "\r", "\n"):
                    self._at += 1
            elif char in skipped:
                self._at += 1
            else:
                return

    def _name(self, expected: str) -> str:
        begin = self._at
        while self._peek() and self._peek() in self.names:
            self._at += 1
        if self._at == begin:
            raise self._unexpected(expected)
        return self._text[begin : self._at]

    def _symbol_of(self, name: str) -> Symbol:
        if name not in self._rules:
            self._rules[name] = self._builder.nonterminal(name)
        return self._rules[name]

    def _any_tokens(self, item: AnyToken, low: int, high: int | None) -> Symbol:
        if low > 1:
            raise self._error(f"at least {low} tokens cannot be asked for: a text may be cut into fewer", item.offset)
        language = any_tokens(item.excluded, low, **self._at_place(item.offset))
        if high is None:
            return self._builder.token(language)
        if high == 0:
            return self._builder.choice([()])
        return self._builder.limited_token(language, high, lambda reason: self._error(reason, item.offset))

    def _to_symbol(self, item: Item) -> Symbol:
        if isinstance(item, AnyToken):
            return self._any_tokens(item, 1, 1)
        return self._builder.lexeme(item.language) if isinstance(item, Text) else item

    def _place(self, offset: int) -> tuple[int, int]:
        return _place(self._text, offset)

    def _error(self, reason: str, offset: int) -> GrammarError:
        return _error(self._text, reason, offset)

    def _advice_on_counts(self, at: int) -> str:
        """How to write ``{,n}``, which other notations have."""
        open_count = _NO_LEAST.match(self._text, at)
        if open_count is None:
            return ""
        most = open_count["most"]
        return f"; at most {most} is {{0,{most}}}" if most else "; any number of times is *"

    def _unexpected(self, expected: str, advice: str = "") -> GrammarError:
        char = self._peek()
        found = "end of the grammar" if not char else "end of line" if char in "\r\n" else repr(char)
        return self._error(f"unexpected {found}, expected {expected}{advice or _ADVICE.get(char, '')}", self._at)


def _place(text: str, offset: int) -> tuple[int, int]:
    """Line and column of an offset, both from 1."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def _error(text: str, reason: str, offset: int) -> GrammarError:
    line, column = _place(text, offset)
    return GrammarError(reason, line=line, column=column)


def _late_error(text: str, defined_at: dict[str, int], reason: str, place: str) -> ConstrainError:
    """An error about a rule that is found when the grammar is compiled.

    An IR holds this function, so that it keeps no reader: that may not be pickled, and holds all that was read.
    """
    if place not in defined_at:
        return GrammarError(f"{place}: {reason}" if place else reason)
    return _error(text, f'the rule "{place}": {reason}', defined_at[place])


def _counted_once(item: Text, low: int, high: int | None) -> tuple[Text, int, int | None]:
    """What is repeated, and how often, if the repetition of a repetition is one repetition."""
    counts = nested_counts(*item.repeated[1:], low, high) if item.repeated and high != 0 else None
    return (item.repeated[0], *counts) if item.repeated and counts else (item, low, high)


def _joined(texts: Sequence[Text], language: Regular) -> Text | None:
    """``language``, made of ``texts``, if it is small enough for one lexeme."""
    if len(texts) == 1:
        return texts[0]
    depth = max(text.depth for text in texts) + 1
    chars = sum(text.chars for text in texts)
    return Text(language, depth, chars) if depth <= _MAX_DEPTH and chars <= _MAX_CHARS else None


def _merged(items: list[Item]) -> list[Item]:
    """An alternative with everything between two rules put together."""
    merged: list[Item] = []
    run: list[Text] = []
    for item in [*items, None]:
        if isinstance(item, Text):
            run.append(item)
            continue
        if run:
            joined = _joined(run, concat(*(text.language for text in run)))
            merged.extend(run if joined is None else [joined])
            run = []
        if item is not None:
            merged.append(item)
    return merged
