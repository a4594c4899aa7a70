"""Other notations inside a grammar, in braces: ``%json {...}`` and its like."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from constrain.grammar.lark.source import Source
from constrain.grammar.lark.tree import Lines, Token
from constrain.limits import spend

SPECIAL = re.compile(r"<(?:\[[^\]<>\n]*\]|[^<>\s\[][^<>\s]*)>")
"""A token, by its name or its id."""

_BEGIN = re.compile(
    r"%(json(?=[ \t\r\n]+(?:true|false)\b)"
    r"|(?:json|structural_tag|regex|lark|llguidance|grammar_options)(?=[ \t\r\n]*\{))[ \t\r\n]*"
)
_STRING = re.compile(r'"(?:[^"\\\n]|\\[^\n])*"')
_REGEXP = re.compile(r"/(?:[^/\\\n]|\\.)+/")
_COMMENT = re.compile(r"(?:#|//)[^\n]*")


@dataclass(frozen=True)
class Block:
    """What stands in braces.

    Attributes
    ----------
    kind : str
        ``json``, ``structural_tag``, ``regex``, ``lark``, ``llguidance`` or ``grammar_options``.
    text : str
        For ``lark`` without its braces, else with them.
    keyword : int
        Offset of its keyword.
    begin : int
        Offset of ``text``.
    end : int
        Offset behind the braces.
    """

    kind: str
    text: str
    keyword: int
    begin: int
    end: int

    def value(self, source: Source, place: tuple[int, int]) -> Any:
        """The JSON object.

        Raises
        ------
        GrammarError
            If it is none.
        """
        try:
            return json.loads(self.text)
        except (ValueError, RecursionError) as error:
            raise source.error(f"%{self.kind}: {error}", place) from None


class BlockToken(Token):
    """The keyword of a block, with the block."""

    __slots__ = ("block",)

    block: Block

    @classmethod
    def of(cls, kind: str, block: Block, text: str, lines: Lines) -> BlockToken:
        """The token of the keyword that a block begins with."""
        token = cls(kind, text[block.keyword : block.keyword + 1 + len(block.kind)], lines, block.keyword)
        token.block = block
        return token


def read_block(text: str, offset: int, source: Source, place: tuple[int, int]) -> Block | None:
    """The block that begins at an offset; None if none does.

    Raises
    ------
    GrammarError
        If it is not closed, or not JSON where it has to be.
    """
    found = _BEGIN.match(text, offset)
    if found is None:
        return None
    kind, begin = found[1], found.end()
    if kind == "lark":
        end = _closing_brace(text, begin, source, place)
        return Block(kind, text[begin + 1 : end], offset, begin + 1, end + 1)
    try:
        _, end = json.JSONDecoder().raw_decode(text, begin)
    except json.JSONDecodeError as error:
        line = text.count("\n", 0, error.pos) + 1
        column = error.pos - text.rfind("\n", 0, error.pos)
        raise source.error(f"in the JSON of %{kind}: {error.msg}", (line, column)) from None
    except RecursionError:
        raise source.error(f"the JSON of %{kind} is nested too deeply", place) from None
    return Block(kind, text[begin:end], offset, begin, end)


def _closing_brace(text: str, begin: int, source: Source, place: tuple[int, int]) -> int:
    """Where the brace at ``begin`` is closed; braces in strings, regexes and comments do not count."""
    depth, offset = 0, begin
    while offset < len(text):
        spend()
        char = text[offset]
        token = None
        if char == '"':
            token = _STRING.match(text, offset)
        elif char == "#" or text.startswith("//", offset):
            token = _COMMENT.match(text, offset)
        elif char == "/":
            token = _REGEXP.match(text, offset)
        elif char == "<":
            token = SPECIAL.match(text, offset)
        elif char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            if depth == 0:
                return offset
        offset = offset + 1 if token is None else token.end()
    raise source.error('the "{" of this %lark is never closed', place)
