r"""The EBNF front-end: grammars in XGrammar's notation become an IR.

It is GBNF (:mod:`constrain.grammar.gbnf`) with some differences: a rule goes on until the next one begins, names may
hold ``_``, there are more escapes, and

    root ::= Regex("[0-9]{5}") | Substring("one", " two")       # a regex; some of the pieces in a row
    call ::= TagDispatch(("<call>", body), excludes=("<end>"))  # free text with tags, and what follows each
    turn ::= Token(5, 7) | TokenTagDispatch((9, body), excludes=(4))    # the same with tokens, by their ids
    head[lazy] ::= [a-z]* "!"                                   # ends where it first can
    word[excludes=("ab", "c")] ::= [a-z]*                       # holds none of these
    key  ::= "a" (= "b")                                        # look-ahead: a hint about what follows, no rule

Regexes are read as XGrammar does: ``.`` matches line ends unless ``flags`` says otherwise, and case is that of ASCII.
With ``byte_mode=true`` they are about bytes, which need not be UTF-8.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, TypeAlias

from constrain.errors import GrammarError
from constrain.grammar.free_text import TextsThrough, reached, shortest_beginning, text_without
from constrain.grammar.gbnf import ESCAPES, AnyToken, GbnfReader, Item, Text
from constrain.grammar.ir import GrammarIR, Symbol
from constrain.grammar.json_schema.lexical.strings import EVERY_WAY
from constrain.grammar.languages.quotation import quotation
from constrain.grammar.languages.regular import Regular, byte_set, complement, concat, intersect, literal, repeat, union
from constrain.grammar.languages.substrings import ANY_BYTES, occurs_in
from constrain.grammar.languages.utf8 import ALL, encode, negate, normalize
from constrain.grammar.lark.attributes import (
    COUNTS,
    Attribute,
    least_tokens,
    most_characters,
    note_attributes,
    number_of,
    read_attributes,
    says_where_it_ends,
)
from constrain.grammar.lark.first_ends import first_ends
from constrain.grammar.lark.max_chars import over_after
from constrain.grammar.lark.source import Source
from constrain.grammar.lark.tree import Lines, Token
from constrain.grammar.least_tokens import write_least
from constrain.grammar.regex import regex_code_points
from constrain.grammar.regex.single_bytes import byte_language
from constrain.grammar.regular_rules import NotRegularError, RegularRules
from constrain.grammar.tokens import Named, any_tokens, token_set

_Value: TypeAlias = "str | int | bool | Symbol | tuple[Any, ...]"

_MACROS = ("Regex", "Substring", "TagDispatch", "Token", "ExcludeToken", "TokenTagDispatch")
_SPACE = r"(?:[ \t\r\n]|#[^\r\n]*(?![^\r\n]))*"
# A string in them may hold a bracket.
_ATTRIBUTES = re.compile(r'\[(?:"(?:\\[^\n]|[^"\\\n])*"|[^\]"\n])*\]')
_RULE_BEGINS = re.compile(rf"[A-Za-z0-9_.-]+{_SPACE}(?:{_ATTRIBUTES.pattern}{_SPACE})?::=")
_EXCLUDES = re.compile(r"\bexcludes[ \t]*=[ \t]*(?=\()")
_LENGTHS = dict.fromkeys(("json_string_min_length", "json_string_max_length"), "characters")
_HIDDEN = dict.fromkeys(("capture_hidden_suffix_bytes", "capture_hidden_stop_bytes"), "bytes")
_MACRO = re.compile(r"[ \t]*\(")
_OPTION = re.compile(r"([A-Za-z_]\w*)\s*=(?!=)")
_NAME = re.compile(r"[A-Za-z_][\w.-]*")
_DOTTED_NAME = re.compile(r"\.+[A-Za-z0-9_-]")
_HEX_DIGITS = re.compile("[0-9A-Fa-f]+")
_INTEGER = re.compile(r"\d{1,9}(?![\w.])")
# What stands in a JSON string as it is.
_PLAIN = encode(negate(normalize([(0, 0x1F), (ord('"'), ord('"')), (ord("\\"), ord("\\"))])))


@dataclass(frozen=True)
class _Ended:
    """What a rule says of where it ends, and of what it does not hold; ``at`` is its place."""

    attributes: tuple[Attribute, ...]
    excludes: tuple[str, ...]
    at: int

    @property
    def is_lazy(self) -> bool:
        return any(each.name == "lazy" for each in self.attributes)

    @property
    def shown(self) -> str:
        names = (each.name for each in self.attributes if says_where_it_ends((each,)) or each.name in _LENGTHS)
        return next(names, "min_tokens" if least_tokens(self.attributes) and not self.excludes else "excludes")

    @property
    def has_length(self) -> bool:
        return _has_length(self.attributes)


def _has_length(attributes: tuple[Attribute, ...]) -> bool:
    return any(each.name in _LENGTHS for each in attributes)


def _strings_of(attributes: tuple[Attribute, ...]) -> Regular:
    """The strings of JSON whose value has a length that attributes give."""
    low, high = (number_of(attributes, name) for name in _LENGTHS)
    return concat(literal('"'), repeat(EVERY_WAY.points(ALL), low or 0, high), literal('"'))


class _Rule(str):
    """The name of a rule, as an argument of a macro."""

    offset: int


def from_ebnf(text: str, *, start: str = "root") -> GrammarIR:
    """The IR of a grammar in XGrammar's EBNF.

    Raises
    ------
    GrammarError
        For a syntax error, a rule that is undefined or defined twice, or something that is not supported; with line
        and column.
    """
    return _EbnfReader(text).grammar(start)


class _EbnfReader(GbnfReader):
    names = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")
    escapes = ESCAPES | {
        "0": "\0",
        "a": "\a",
        "b": "\b",
        "f": "\f",
        "v": "\v",
        "e": "\x1b",
        **{char: char for char in "'/?^.*+(){}|$&~<>!=:;,@#%` "},
    }
    lines_end_rules = False
    any_class = True
    no_most = "-1"

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._attributes: tuple[Attribute, ...] = ()
        self._excludes: tuple[str, ...] = ()
        self._ended_rules: dict[Symbol, tuple[Symbol, _Ended]] = {}

    # -- rules -----------------------------------------------------------------------------------

    def _ends_here(self) -> bool:
        return _RULE_BEGINS.match(self._text, self._at) is not None

    def _name_begins_with_dot(self) -> bool:
        return _DOTTED_NAME.match(self._text, self._at) is not None

    def _hex_digits(self, kind: str) -> int:
        r"""As in XGrammar, ``\x`` takes all digits that follow, and one is enough; most mean two."""
        if kind != "x":
            return super()._hex_digits(kind)
        digits = _HEX_DIGITS.match(self._text, self._at)
        if digits is None:
            return 1
        if len(digits[0]) > 2:
            line, column = self._place(self._at - 2)
            self._builder.warnings.append(
                f"line {line}, column {column}: \\x{digits[0][:8]} is one character, as in XGrammar; write "
                f"\\u00{digits[0][:2]} where only two digits are meant"
            )
        return len(digits[0])

    def _read_attributes(self) -> None:
        self._attributes = self._excludes = ()
        if self._peek() != "[":
            return
        found = _ATTRIBUTES.match(self._text, self._at)
        if found is None:
            raise self._error("these attributes are never closed", self._at)
        text = self._without_excludes(found[0])
        if text.strip("[] \t"):
            token = Token("ATTRIBUTES", text, Lines(self._text), found.start())
            self._attributes = read_attributes(token, Source("", None), {**COUNTS, **_LENGTHS, **_HIDDEN})
        self._at = found.end()
        self._skip_space(newlines=True)

    def _without_excludes(self, text: str) -> str:
        """Attributes without ``excludes=("a", "b")``, which is kept, and with all others where they are."""
        begin, found = self._at, _EXCLUDES.search(text)
        if found is None:
            return text
        self._at += found.end()
        strings = self._strings(self._value("[excludes]", begin), "[excludes]", begin + found.start())
        if not strings or "" in strings:
            raise self._error("[excludes] takes strings that are not empty", begin + found.start())
        self._excludes = tuple(strings)
        others, rest = text[: found.start()].rstrip(" \t,"), text[self._at - begin :]
        ahead = len(text) - len(rest.lstrip(" \t,"))
        return (others + "," * (len(others) > 1 and text[ahead] != "]")).ljust(ahead) + text[ahead:]

    def _add_rule(self, left: Symbol, alternatives: list[list[Item]]) -> None:
        name = self._builder.name_of(left)
        at = self._defined_at[name]
        parts = self._hidden_end(at)
        note_attributes(self._builder, left, self._attributes, name, lambda reason: self._error(reason, at), *parts)
        least = least_tokens(self._attributes)
        if not (says_where_it_ends(self._attributes) or self._excludes or _has_length(self._attributes) or least):
            super()._add_rule(left, alternatives)
            return
        if any(attribute.name in ("stop", "suffix") for attribute in self._attributes):
            raise self._error(
                "[stop] and [suffix] are not supported in EBNF; put the end behind a [lazy] rule", self._at
            )
        texts = [items[0] if len(items) == 1 else None for items in alternatives]
        languages = [text.language for text in texts if isinstance(text, Text)]
        empty = [literal("") for items in alternatives if not items]
        rule = _Ended(self._attributes, self._excludes, at)
        if len(languages) + len(empty) == len(alternatives):
            self._write(left, self._ended(rule, union(*languages, *empty)), rule)
            return
        body = self._builder.nonterminal(name)
        super()._add_rule(body, alternatives)
        self._ended_rules[left] = body, rule

    def _hidden_end(self, at: int) -> tuple[Regular | None, Regular | None]:
        """Of a rule that leaves bytes at its end out of its capture: what stands before them, any bytes, and those."""
        hidden = [attribute for attribute in self._attributes if attribute.name in _HIDDEN]
        if not hidden:
            return None, None
        for attribute in self._attributes:
            if attribute.name in COUNTS or attribute in hidden[1:]:
                raise self._error(f"[{hidden[0].name}] beside [{attribute.name}] is not supported", at)
        count = int(str(hidden[0].value))
        return ANY_BYTES, repeat(byte_set(range(256)), count, count)

    def _ended(self, rule: _Ended, language: Regular) -> Regular:
        """The language of a rule with attributes that say where it ends, or what it does not hold."""
        ended = first_ends(language) if rule.is_lazy else language
        if rule.excludes:
            ended = intersect(ended, complement(occurs_in(rule.excludes)))
        most = most_characters(rule.attributes)
        if most is not None:
            ended = over_after(ended, most, lambda reason: self._error(reason, rule.at))
        return intersect(ended, _strings_of(rule.attributes)) if rule.has_length else ended

    def _before_finishing(self) -> None:
        """Give rules that are made of others, and say where they end or what they do not hold, their languages."""
        if not self._ended_rules:
            return
        rules = RegularRules(
            self._builder,
            {left: body for left, (body, _) in self._ended_rules.items()},
            lambda left, language: self._ended(self._ended_rules[left][1], language),
        )
        for left, (_, rule) in self._ended_rules.items():
            if (rule.is_lazy or rule.has_length) and rules.refers_to_itself(left):
                raise self._error(f"a [{rule.shown}] rule cannot be part of itself", rule.at)
            try:
                language = rules.language(left)
            except NotRegularError as error:
                raise self._error(f"[{rule.shown}] on a rule that is made of others: {error}", rule.at) from None
            self._write(left, language, rule)

    def _write(self, left: Symbol, language: Regular, rule: _Ended) -> None:
        """Give a rule its language, and the number of tokens that it takes at least."""
        least = least_tokens(rule.attributes)
        write_least(self._builder, left, language, least, lambda reason: self._error(reason, rule.at))

    def _look_ahead(self) -> bool:
        """Read ``(= ...)`` if it is next; it says what follows the rule, which the rules say already."""
        found = re.compile(r"\(\s*=").match(self._text, self._at)
        if found is None:
            return False
        begin = self._at
        self._at = found.end()
        self._skip_space(newlines=True)
        # Read like a group, of which nothing is kept.
        self._alternatives()
        if self._peek() != ")":
            raise self._error('this "(=" is never closed', begin)
        self._at += 1
        line, column = self._place(begin)
        self._builder.warnings.append(f"line {line}, column {column}: look-ahead (=...) has no effect")
        return True

    # -- macros ----------------------------------------------------------------------------------

    def _named(self, name: str, begin: int) -> Item:
        opening = _MACRO.match(self._text, self._at)
        if opening is None or name not in _MACROS:
            return super()._named(name, begin)
        self._at = opening.end()
        arguments, options = self._arguments(name, begin)
        if name == "Regex":
            return self._regex(arguments, options, begin)
        if name == "Substring":
            return self._substring(arguments, options, begin)
        if name == "TagDispatch":
            return self._tag_dispatch(arguments, options, begin)
        if name == "TokenTagDispatch":
            return self._token_dispatch(arguments, options, begin)
        self._check_options(name, options, (), begin)
        parts = self._ids(arguments, name, begin)
        if name == "ExcludeToken":
            return AnyToken(tuple(parts), begin)
        if not parts:
            raise self._error("Token() needs the id of a token", begin)
        return self._builder.token(token_set(parts, **self._at_place(begin)))

    def _arguments(self, name: str, begin: int) -> tuple[list[_Value], dict[str, _Value]]:
        """What stands between the parentheses of a macro: values, and those that have names."""
        values: list[_Value] = []
        options: dict[str, _Value] = {}
        self._skip_space(newlines=True)
        while self._peek() != ")":
            option = _OPTION.match(self._text, self._at)
            if option is not None:
                self._at = option.end()
                self._skip_space(newlines=True)
                if option[1] in options:
                    raise self._error(f"{name}: {option[1]} is there twice", self._at)
                options[option[1]] = self._value(name, begin)
            elif options:
                raise self._error(f"{name}: a value without a name behind one with a name", self._at)
            else:
                values.append(self._value(name, begin))
            self._next_value(name, begin)
        self._at += 1
        return values, options

    def _next_value(self, name: str, begin: int) -> None:
        """Go on to the next value, or to the closing parenthesis."""
        self._skip_space(newlines=True)
        if self._peek() == ",":
            self._at += 1
            self._skip_space(newlines=True)
        elif not self._peek():
            raise self._error(f"the parentheses of this {name} are never closed", begin)
        elif self._peek() != ")":
            raise self._unexpected('"," or ")"')

    def _value(self, name: str, begin: int) -> _Value:
        char = self._peek()
        if char == '"':
            return self._string()
        if char == "(":
            self._at += 1
            self._skip_space(newlines=True)
            inner: list[_Value] = []
            while self._peek() != ")":
                inner.append(self._value(name, begin))
                self._next_value(name, begin)
            self._at += 1
            return tuple(inner)
        number = _INTEGER.match(self._text, self._at)
        if number is not None:
            self._at = number.end()
            return int(number[0])
        word = _NAME.match(self._text, self._at)
        if word is None:
            raise self._unexpected(f"a value for {name}")
        rule = _Rule(word[0])
        rule.offset = self._at
        self._at = word.end()
        return rule if rule not in ("true", "false") else rule == "true"

    def _check_options(self, name: str, options: dict[str, _Value], known: tuple[str, ...], begin: int) -> None:
        for option in options:
            if option not in known:
                raise self._error(f"{name}: there is no option {option!r}", begin)

    def _flag(self, name: str, options: dict[str, _Value], option: str, default: bool, begin: int) -> bool:
        value = options.get(option, default)
        if not isinstance(value, bool):
            raise self._error(f"{name}: {option} is true or false", begin)
        return value

    def _rule_symbol(self, value: _Value, name: str, begin: int) -> Symbol:
        if not isinstance(value, _Rule):
            raise self._error(f"{name}: the second of each pair is the name of a rule", begin)
        self._used_at.setdefault(str(value), value.offset)
        return self._symbol_of(str(value))

    def _regex(self, arguments: list[_Value], options: dict[str, _Value], begin: int) -> Item:
        self._check_options("Regex", options, ("json_string", "flags", "byte_mode"), begin)
        if len(arguments) != 1 or not isinstance(arguments[0], str) or isinstance(arguments[0], _Rule):
            raise self._error("Regex() takes one string", begin)
        flags = options.get("flags", "s")
        if not isinstance(flags, str) or isinstance(flags, _Rule) or set(flags) - set("isu"):
            raise self._error('Regex: flags is a string of "i", "s" and "u"', begin)
        pattern = arguments[0]
        if self._flag("Regex", options, "byte_mode", False, begin):
            if "flags" in options or self._flag("Regex", options, "json_string", False, begin):
                raise self._error("Regex: byte_mode does not go with flags and json_string", begin)
            return Text(self._byte_regex(pattern, begin), 10, 10)
        if pattern.startswith("(?i)"):
            pattern, flags = pattern[4:], flags + "i"
        try:
            language = regex_code_points(pattern, flags="".join({*flags, "a"} - {"u"}), dialect="ecma")
        except GrammarError as error:
            raise self._error(f"in the regex: {error.reason}", begin) from None
        if self._flag("Regex", options, "json_string", False, begin):
            language = intersect(language, repeat(_PLAIN))
        return Text(language, 10, 10)

    def _byte_regex(self, pattern: str, begin: int) -> Regular:
        try:
            return byte_language(pattern, "s")
        except GrammarError as error:
            raise self._error(f"in the regex: {error.reason}", begin) from None

    def _substring(self, arguments: list[_Value], options: dict[str, _Value], begin: int) -> Item:
        self._check_options("Substring", options, (), begin)
        pieces = self._strings(tuple(arguments), "Substring", begin)
        try:
            return Text(quotation(pieces), 10, 10)
        except GrammarError as error:
            raise self._error(f"Substring: {error}", begin) from None

    def _strings(self, values: _Value, name: str, begin: int) -> list[str]:
        values = values if isinstance(values, tuple) else (values,)
        strings = [value for value in values if isinstance(value, str) and not isinstance(value, _Rule)]
        if len(strings) != len(values):
            raise self._error(f"{name}: strings are expected", begin)
        return strings

    def _ids(self, values: _Value | list[_Value], name: str, begin: int) -> list[Named]:
        if isinstance(values, list):
            values = tuple(values)
        values = values if isinstance(values, tuple) else (values,)
        ids: list[Named] = []
        for value in values:
            if isinstance(value, bool) or not isinstance(value, int):
                raise self._error(f"{name}: ids of tokens are expected", begin)
            ids.append((value, value))
        return ids

    def _pairs(self, arguments: list[_Value], name: str, begin: int) -> list[tuple[_Value, Symbol]]:
        pairs: list[tuple[_Value, Symbol]] = []
        for value in arguments:
            if not isinstance(value, tuple) or len(value) != 2:
                raise self._error(f"{name}: pairs of a trigger and a rule are expected", begin)
            pairs.append((value[0], self._rule_symbol(value[1], name, begin)))
        return pairs

    def _tag_dispatch(self, arguments: list[_Value], options: dict[str, _Value], begin: int) -> Item:
        """Text up to the first trigger, then the trigger's rule; then again, or the end."""
        name = "TagDispatch"
        self._check_options(name, options, ("loop_after_dispatch", "excludes"), begin)
        pairs: list[tuple[str, Symbol]] = []
        for trigger, rule in self._pairs(arguments, name, begin):
            (text,) = self._strings(trigger, name, begin)
            pairs.append((text, rule))
        known = frozenset(text for text, _ in pairs)
        lengths = sorted(set(map(len, known)))
        if "" in known:
            raise self._error(f"{name}: a trigger is empty", begin)
        rules: dict[str, list[Symbol]] = {}
        for text, rule in pairs:
            # Where a trigger begins with another, what is left of it is what may follow that.
            first = shortest_beginning(text, known, lengths) or text
            rest = [self._builder.lexeme(literal(text[len(first) :]), repr(text))] if text != first else []
            rules.setdefault(first, []).append(self._builder.sequence((*rest, rule)))
        alive = reached(tuple(rules))
        for text in rules:
            if text not in alive:
                raise self._error(f"{name}: within {text!r} another trigger comes to its end", begin)
        excludes = tuple(self._strings(options.get("excludes", ()), name, begin))
        if "" in excludes:
            raise self._error(f"{name}: an empty string is excluded, which occurs in every text", begin)
        for text in known:
            if text in excludes:
                raise self._error(f"{name}: {text!r} is a trigger and excluded", begin)
        triggers = tuple(rules)
        texts = TextsThrough(self._builder, triggers, excludes)
        tags = [
            (texts.write((trigger,), repr(trigger)), rule) for trigger, following in rules.items() for rule in following
        ]
        last = self._builder.lexeme(text_without((*triggers, *excludes)), "text")
        return self._dispatch(tags, last, self._flag(name, options, "loop_after_dispatch", True, begin))

    def _token_dispatch(self, arguments: list[_Value], options: dict[str, _Value], begin: int) -> Item:
        """Any tokens up to one that is a trigger, then the trigger's rule; then again, or the end."""
        name = "TokenTagDispatch"
        self._check_options(name, options, ("loop_after_dispatch", "excludes"), begin)
        place = self._at_place(begin)
        pairs = [
            (trigger, rule)
            for triggers, rule in self._pairs(arguments, name, begin)
            for trigger in self._ids(triggers, name, begin)
        ]
        others = self._ids(options.get("excludes", ()), name, begin)
        if both := [trigger for trigger, _ in pairs if trigger in others]:
            raise self._error(f"{name}: token {both[0][0]} is a trigger and excluded", begin)
        excluded = [*(trigger for trigger, _ in pairs), *others]
        between = any_tokens(excluded, **place)
        last = self._builder.token(between, "text")
        tags = [
            (self._builder.sequence((last, self._builder.token(token_set([trigger], **place)))), rule)
            for trigger, rule in pairs
        ]
        return self._dispatch(tags, last, self._flag(name, options, "loop_after_dispatch", True, begin))

    def _dispatch(self, tags: list[tuple[Symbol, Symbol]], last: Symbol, loops: bool) -> Item:
        if not tags:
            return last
        if not loops:
            return self._builder.choice([(last,), *tags])
        return self._builder.sequence((self._builder.star(self._builder.choice(tags)), last))
