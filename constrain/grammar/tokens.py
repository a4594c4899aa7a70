"""Tokens as terminals: a special token stands in a grammar for itself, not for any text.

A grammar is a language over bytes, and a special token has no bytes that a text could hold.  Here it gets some: the
token with id ``t`` is *spelled* as the byte 0xFF, which no UTF-8 text holds, and three bytes of ``t``, the highest
first.  A set of tokens is then a small regular language, and everything behind it works as for text.  Token 128009,
0x01F409, is spelled ``ff 01 f4 09``.

A grammar is made before the vocabulary is known, so it names tokens (:class:`TokenSet`).  Which ids these are is
settled when the grammar is compiled (``constrain/engine/token_terminals.py``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from constrain.errors import GrammarError, SchemaError
from constrain.grammar.languages.quotation import Quotation
from constrain.grammar.languages.regular import (
    EMPTY,
    ByteSet,
    Concat,
    Literal,
    Regular,
    Repeat,
    Union,
    byte_set,
    concat,
    repeat,
    union,
)

MARK = 0xFF
"""The byte that a spelled token begins with, and that no text holds."""

MARK_BYTE = bytes((MARK,))

GATE = 0xFE
"""The byte of a gate (least_tokens.py), which no UTF-8 text holds either."""

MARKED_BYTES = 4
"""The bytes of a spelled token."""

MOST_ID = (1 << 24) - 1
"""The largest id that can be spelled."""

Named: TypeAlias = "str | tuple[int, int]"
"""Some tokens: a name (``<|eot_id|>``), or the first and the last id of a range."""

TEXT_BYTE: Regular = byte_set(range(MARK))
"""Any byte that a text may hold, in a grammar with tokens."""


class TokenSet(Regular):
    """One token out of a set: a leaf of a lexeme, beside the kinds of :mod:`constrain.grammar.languages.regular`.

    Attributes
    ----------
    parts : tuple of Named
    excluded : bool
        Whether it is the special tokens that are *not* in ``parts``.  The tokens that end a text are never among them.
    line, column : int or None
        The place in the source of the grammar, for messages; it is no part of the content.
    pointer : str or None
        The same where the source is JSON: a JSON pointer.
    """

    __slots__ = ("column", "excluded", "line", "parts", "pointer")

    def __init__(
        self,
        parts: tuple[Named, ...],
        excluded: bool = False,
        line: int | None = None,
        column: int | None = None,
        pointer: str | None = None,
    ) -> None:
        self.parts = parts
        self.excluded = excluded
        self.line = line
        self.column = column
        self.pointer = pointer

    def _key(self) -> tuple[Any, ...]:
        return self.parts, self.excluded

    def error(self, reason: str) -> GrammarError:
        """An error at the place of the set."""
        if self.pointer is not None:
            return SchemaError(reason, self.pointer)
        return GrammarError(reason, line=self.line, column=self.column)

    def __str__(self) -> str:
        names = [part for part in self.parts if isinstance(part, str)]
        ids = ",".join(_range_text(*part) for part in self.parts if not isinstance(part, str))
        if self.excluded:
            listed = ", ".join([*names, *([f"<[{ids}]>"] if ids else [])])
            return f"any special token but {listed}" if listed else "any special token"
        return " or ".join([*names, *([f"<[{ids}]>"] if ids else [])])


def _range_text(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def token_set(
    parts: Iterable[Named],
    *,
    excluded: bool = False,
    line: int | None = None,
    column: int | None = None,
    pointer: str | None = None,
) -> Regular:
    """One token out of some, for :meth:`~constrain.grammar.ir.GrammarBuilder.token`.

    Parameters
    ----------
    parts : iterable of str or (int, int)
        Names of tokens, and ranges of ids, both ends included.
    excluded : bool
        Whether all special tokens are meant that are not in ``parts``, without those that end a text.
    line, column : int, optional
        The place in the source, for the error about a name that the vocabulary does not have.
    pointer : str, optional
        The same as a JSON pointer; errors are SchemaErrors then.

    Raises
    ------
    GrammarError
        If a range is in the wrong order, or an id is beyond 16,777,215.
    """
    listed = tuple(dict.fromkeys(parts))
    found = TokenSet(listed, excluded, line, column, pointer)
    for part in listed:
        if isinstance(part, str):
            continue
        first, last = part
        if first > last:
            raise found.error(f"the range of tokens {first}-{last} is in the wrong order")
        if first < 0 or last > MOST_ID:
            raise found.error(f"there is no token {first if first < 0 else last}: ids go from 0 to {MOST_ID:,}")
    return found


def any_tokens(
    excluded: Iterable[Named] = (),
    low: int = 0,
    *,
    line: int | None = None,
    column: int | None = None,
    pointer: str | None = None,
) -> Regular:
    """Any tokens but some, in a row: text of any bytes and special tokens; with ``low`` 1 at least one of these.

    Text is bytes, which may be cut into tokens in many ways.  So "at least three tokens" cannot be said.  At most so
    many are a limit on a rule (:mod:`constrain.grammar.token_limits`).
    """
    others = token_set(excluded, excluded=True, line=line, column=column, pointer=pointer)
    return repeat(union(TEXT_BYTE, others), low, None)


def spelling(token: int) -> bytes:
    """The bytes that spell a token."""
    return bytes((MARK, token >> 16, token >> 8 & 255, token & 255))


def spelled_token(data: bytes) -> int | None:
    """The token that some bytes begin with the spelling of; None if they do not."""
    return int.from_bytes(data[1:4], "big") if len(data) >= 4 and data[0] == MARK else None


def spell_any(tokens: Iterable[int]) -> Regular:
    """The spellings of some tokens, as a language: for each two high bytes, a set of low ones."""
    lows: dict[int, int] = {}
    for token in tokens:
        lows[token >> 8] = lows.get(token >> 8, 0) | 1 << (token & 255)
    # Equal sets of low bytes are one: a range of ids is some whole pages, and a part of one at either end.
    highs: dict[tuple[int, int], int] = {}
    for high, bits in lows.items():
        highs[high >> 8, bits] = highs.get((high >> 8, bits), 0) | 1 << (high & 255)
    pages: dict[int, list[Regular]] = {}
    for (first, low_bits), high_bits in highs.items():
        pages.setdefault(first, []).append(concat(_byte(high_bits), _byte(low_bits)))
    spelled = union(*(concat(Literal(bytes((first,))), union(*page)) for first, page in pages.items()))
    return EMPTY if spelled is EMPTY else concat(Literal(MARK_BYTE), spelled)


def _byte(bits: int) -> Regular:
    return Literal(bytes((bits.bit_length() - 1,))) if bits.bit_count() == 1 else ByteSet(bits)


def token_sets(language: Regular) -> list[TokenSet]:
    """The token sets in a lexeme, in the order of the source; those of one object once."""
    found: dict[int, TokenSet] = {}
    seen: set[int] = set()
    todo = [language]
    while todo:
        node = todo.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, TokenSet):
            found[id(node)] = node
        else:
            todo.extend(reversed(node.inner))
    return list(found.values())


def replace_token_sets(language: Regular, by: dict[TokenSet, Regular]) -> Regular:
    """A lexeme with its token sets replaced by languages; its parts are concatenations, unions and repetitions."""
    if isinstance(language, TokenSet):
        return by[language]
    if isinstance(language, Concat):
        return concat(*(replace_token_sets(part, by) for part in language.parts))
    if isinstance(language, Union) and not isinstance(language, Quotation):
        return union(*(replace_token_sets(part, by) for part in language.parts))
    if isinstance(language, Repeat):
        return repeat(replace_token_sets(language.item, by), language.low, language.high)
    return language
