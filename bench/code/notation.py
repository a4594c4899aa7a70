r"""The plain part of Lark's notation, written as GBNF.

In GBNF there is no ``%ignore``: white space stands after every terminal of a rule, and at the beginning.  What is read:
rules and terminals of strings (also ``"..."i``), regexes, names, ``( )``, ``[ ]``, ``|``, ``? * +``, and ``%ignore``.
A terminal names no other terminal.  Regexes are of characters, classes, groups, ``|`` and quantifiers.

    sum: NUMBER ("+" NUMBER)*          root   ::= ws sum
    NUMBER: /[0-9]+/                   sum    ::= NUMBER ws ("+" ws NUMBER ws)*
    %ignore / +/                       NUMBER ::= [0-9]+
                                       ws     ::= (" "+)*
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

SPACE = "ws"

_TOKEN = re.compile(
    r"""(?P<blank>[ \t]+|//[^\n]*)
      | (?P<line>\n)
      | (?P<string>"(?:[^"\\\n]|\\.)*"i?)
      | (?P<regex>/(?:[^/\\\n]|\\.)+/)
      | (?P<ignore>%ignore)
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<sign>[:|()\[\]?*+])""",
    re.VERBOSE,
)

# Characters that stand for themselves in a regex, and need a backslash in a class of GBNF.
_IN_CLASS = {"[": r"\[", '"': r"\""}
_ESCAPED = {"n": r"\n", "r": r"\r", "t": r"\t", "\\": r"\\", "]": r"\]", "[": r"\[", "-": r"\-"}


class NotPlain(ValueError):
    """Something in a grammar that this module does not read; the message says what and where."""


@dataclass
class _Definition:
    name: str
    tokens: list[tuple[str, str]] = field(default_factory=list)

    @property
    def is_terminal(self) -> bool:
        return self.name.strip("_").isupper()


def to_gbnf(text: str) -> str:
    """A Lark grammar as GBNF, with the same language.

    Raises
    ------
    NotPlain
        If the grammar uses more of Lark's notation than this module reads.
    """
    definitions, ignored = _read(text)
    terminals = {each.name for each in definitions if each.is_terminal}
    space = f" {SPACE}" if ignored else ""
    lines = [f"root ::={space} start"]
    for each in definitions:
        if each.name in ignored:
            continue
        alternatives = _body(each.tokens, terminals, "" if each.is_terminal else space)
        lines.append(f"{_name(each.name)} ::= " + " |\n    ".join(alternatives))
    if ignored:
        bodies = {each.name: _body(each.tokens, terminals, "") for each in definitions}
        lines.append(f"{SPACE} ::= (" + " | ".join(_once(part) for name in ignored for part in bodies[name]) + ")*")
    return "\n".join(lines) + "\n"


def with_blanks(text: str, blanks: str, others: dict[str, str]) -> str:
    """Rules in Lark's notation with an optional terminal after each string and terminal.

    Parameters
    ----------
    text : str
        Rules only.
    blanks : str
        The terminal.
    others : dict of str to str
        Strings, with their quotes, that are followed by another one.  Names that begin with ``_`` are followed by none.
    """
    out = []
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise _not_plain(text, at)
        at = found.end()
        value = found.group()
        out.append(value)
        if found.lastgroup == "string" or (found.lastgroup == "name" and value.isupper() and value[0] != "_"):
            item = f"{value} [{others.get(value, blanks)}]"
            quantified = text[at : at + 1] in ("?", "*", "+") and at < len(text)
            out[-1] = f"({item})" if quantified else item
    return "".join(out)


def _not_plain(text: str, at: int) -> NotPlain:
    line = text.count("\n", 0, at) + 1
    return NotPlain(f"line {line}: {text[at : at + 20]!r}")


def _read(text: str) -> tuple[list[_Definition], list[str]]:
    """The definitions, and the names of the terminals that are ignored."""
    tokens = list(_tokens(text))
    definitions: list[_Definition] = []
    ignored: list[str] = []
    at = 0
    while at < len(tokens):
        kind, value = tokens[at]
        if kind == "line":
            at += 1
        elif kind == "ignore":
            ignored.append(tokens[at + 1][1])
            at += 2
        elif kind == "name" and at + 1 < len(tokens) and tokens[at + 1][1] == ":":
            definitions.append(_Definition(value))
            at += 2
        elif definitions:
            definitions[-1].tokens.append((kind, value))
            at += 1
        else:
            raise NotPlain(f"{value!r} before the first definition")
    return definitions, ignored


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise _not_plain(text, at)
        at = found.end()
        if found.lastgroup not in (None, "blank"):
            yield str(found.lastgroup), found.group()


def _body(tokens: list[tuple[str, str]], terminals: set[str], space: str) -> list[str]:
    """The alternatives of a definition."""
    alternatives = [""]
    depth = 0
    # What the quantifier after the present item stands behind.
    brackets: list[str] = []
    for at, (kind, value) in enumerate(tokens):
        quantified = at + 1 < len(tokens) and tokens[at + 1][1] in ("?", "*", "+")
        if kind == "sign" and value in "([":
            brackets.append(value)
            item, depth = "(", depth + 1
        elif kind == "sign" and value in ")]":
            brackets.pop()
            item, depth = ")" if value == ")" else ")?", depth - 1
        elif kind == "sign" and value in "?*+":
            alternatives[-1] += value
            continue
        elif value == "|" and not depth:
            alternatives.append("")
            continue
        elif value == "|":
            item = "|"
        elif kind == "name":
            item = _name(value)
            if value in terminals:
                item += space
                item = f"({item})" if quantified and space else item
        elif kind == "string":
            item = _string(value)
            item = f"({item}{space})" if quantified else item + space
        else:
            item = _regex(value[1:-1])
            item = f"({item}){space}" if space else item
            item = f"({item})" if quantified else item
        alternatives[-1] += ("" if alternatives[-1].endswith("(") or item[0] == ")" else " ") + item
    return [each.strip() for each in alternatives]


def _name(name: str) -> str:
    # GBNF has no underscores in names.
    return name.strip("_").replace("_", "-")


def _once(body: str) -> str:
    """A body of white space without its last ``+``: it is repeated anyway, and should be so in one way only."""
    return body[:-1] if re.fullmatch(r"\[(?:[^\]\\]|\\.)*\]\+", body) else body


def _string(text: str) -> str:
    if not text.endswith("i"):
        return text
    letters = text[1:-2]
    return " ".join(f"[{c.lower()}{c.upper()}]" if c.isalpha() else f'"{c}"' for c in letters)


def _regex(text: str) -> str:
    """A regex as a sequence of GBNF."""
    parts: list[str] = []
    at = 0
    while at < len(text):
        character = text[at]
        if character == "[":
            end = _class_end(text, at)
            parts.append(f"[{_class(text[at + 1 : end])}]")
            at = end
        elif text.startswith("(?:", at):
            parts.append("(")
            at += 2
        elif text.startswith("(?", at) or character in "^$":
            raise NotPlain(f"{text[at : at + 3]!r} in the regex {text!r}")
        elif character in "()|":
            parts.append(character)
        elif character in "?*+":
            parts[-1] += character
        elif character == "{":
            end = text.index("}", at)
            parts[-1] += text[at : end + 1]
            at = end
        elif character == ".":
            parts.append(r"[^\n]")
        else:
            if character == "\\":
                at += 1
                character = text[at]
                if character.isalnum() and character not in "nrt":
                    raise NotPlain(f"'\\{character}' in the regex {text!r}")
                character = {"n": r"\n", "r": r"\r", "t": r"\t", "\\": "\\\\"}.get(character, character)
            character = {'"': r"\""}.get(character, character)
            parts.append(f'"{character}"')
        at += 1
    # Characters in a row are one string.
    return re.sub(r'(?<!\\)" "(?=[^"]+"(?![?*+{]))', "", " ".join(parts))


def _class_end(text: str, at: int) -> int:
    at += 2
    while text[at] != "]":
        at += 2 if text[at] == "\\" else 1
    return at


def _class(text: str) -> str:
    out = []
    at = 0
    while at < len(text):
        character = text[at]
        if character == "\\":
            at += 1
            out.append(_ESCAPED.get(text[at], text[at]))
        else:
            out.append(_IN_CLASS.get(character, character))
        at += 1
    return "".join(out)
