"""What a structural tag consists of: formats, each with the JSON pointer of its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Token = int | str
"""A token by its id or its text."""


@dataclass(frozen=True)
class Format:
    """A part of a text."""

    pointer: str


@dataclass(frozen=True)
class ConstString(Format):
    """Just this string."""

    value: str


@dataclass(frozen=True)
class JsonSchema(Format):
    """A value that is valid for a schema, written as JSON or in the style of some model.

    ``is_closed``: objects that name members have no others, unless the schema says so.  ``is_flexible``: white space
    is what people and programs write, rather than any.  ``keyword``: where the schema stands, behind the pointer.
    ``tokens``: special tokens around values.  ``tool``: whose arguments they are, where they are written as Python.
    """

    schema: dict[str, Any] | bool
    style: str = "json"
    any_order: bool = False
    max_whitespace: int | None = None
    excludes: tuple[str, ...] = ()
    is_closed: bool = True
    is_flexible: bool = False
    keyword: str = "/json_schema"
    tokens: tuple[str, ...] = ()
    tool: str = ""


@dataclass(frozen=True)
class AnyText(Format):
    """Text in which none of ``excludes`` occurs; within a tag it goes on to the tag's first end."""

    excludes: tuple[str, ...] = ()
    max_tokens: int | None = None
    max_chars: int | None = None


@dataclass(frozen=True)
class GrammarText(Format):
    """Texts of a grammar in EBNF, whose start is ``root``, or in Lark's notation, whose start is ``start``."""

    grammar: str
    syntax: str = "ebnf"


@dataclass(frozen=True)
class Regex(Format):
    """Texts that a pattern matches as a whole."""

    pattern: str


@dataclass(frozen=True)
class Sequence(Format):
    """One after the other."""

    elements: tuple[Format, ...]


@dataclass(frozen=True)
class Or(Format):
    """Any of some."""

    elements: tuple[Format, ...]


@dataclass(frozen=True)
class Repeated(Format):
    """``low`` to ``high`` times; ``high`` None for no bound: ``optional``, ``plus``, ``star`` and ``repeat``."""

    content: Format
    low: int
    high: int | None


@dataclass(frozen=True)
class TokenOnce(Format):
    """One token."""

    token: Token


@dataclass(frozen=True)
class ExcludeToken(Format):
    """One token that is none of some."""

    tokens: tuple[Token, ...]


@dataclass(frozen=True)
class AnyTokens(Format):
    """Any number of tokens that are none of some."""

    exclude: tuple[Token, ...]
    max_tokens: int | None = None


@dataclass(frozen=True)
class Tag(Format):
    """``begin``, the content, and one of ``ends``."""

    begin: str | TokenOnce
    content: Format
    ends: tuple[str, ...] | TokenOnce


@dataclass(frozen=True)
class TriggeredTags(Format):
    """Text in which each of some strings must begin a tag.

    ``at_least_one``: it begins with a tag.  ``stop_after_first``: it ends with the first one.
    """

    triggers: tuple[str, ...]
    tags: tuple[Tag, ...]
    at_least_one: bool = False
    stop_after_first: bool = False
    excludes: tuple[str, ...] = ()


@dataclass(frozen=True)
class TokenTriggeredTags(Format):
    """The same with tokens."""

    triggers: tuple[Token, ...]
    tags: tuple[Tag, ...]
    exclude: tuple[Token, ...] = ()
    at_least_one: bool = False
    stop_after_first: bool = False


@dataclass(frozen=True)
class TagsWithSeparator(Format):
    """Tags with a string between them, and nothing else."""

    tags: tuple[Tag, ...]
    separator: str
    at_least_one: bool = False
    stop_after_first: bool = False


@dataclass(frozen=True)
class Dispatch(Format):
    """Text in which each of some strings must be followed by a format of its own; without ``loop``, one and the end."""

    rules: tuple[tuple[str, Format], ...]
    loop: bool = True
    excludes: tuple[str, ...] = ()


@dataclass(frozen=True)
class TokenDispatch(Format):
    """The same with tokens."""

    rules: tuple[tuple[Token, Format], ...]
    loop: bool = True
    exclude: tuple[Token, ...] = ()
