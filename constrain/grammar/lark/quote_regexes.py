"""``%regex`` blocks as regexes, for Lark's own lexer, which does not know them.

A quote is the longest one that there is.  So all quotes are written out as a tree of characters, in which a regex has
one way to go on, and goes on as long as it can.
"""

from __future__ import annotations

import re

from constrain.errors import GrammarError
from constrain.grammar.lark.blocks import BlockToken
from constrain.grammar.lark.notation import tokens_of_text
from constrain.grammar.lark.source import Source
from constrain.grammar.lark.substring import quoted_pieces
from constrain.limits import spend

_MOST_CHARACTERS = 2_000
_MOST_PIECES = 100
"""Regexes are nested as deep as a quote has pieces."""


def with_regexes_of_quotes(text: str, source: Source) -> str:
    """A grammar with a regex in the place of each ``%regex`` block.

    Raises
    ------
    GrammarError
        If there is too much to quote, or a block of another notation.
    """
    if "%" not in text:
        return text
    found: list[str] = []
    at = 0
    for token in tokens_of_text(text, source):
        if not isinstance(token, BlockToken):
            continue
        if token.block.kind != "regex":
            raise source.error(f'%{token.block.kind} is for lexing="any": Lark\'s parser does not know it', token)
        try:
            # Two slashes would begin a comment.
            regex = _regex_of_quotes(quoted_pieces(token, source)) or "(?:)"
        except GrammarError as error:
            raise source.error(error.reason, token) from None
        found += [text[at : token.block.keyword], f"/{regex}/"]
        at = token.block.end
    return "".join([*found, text[at:]])


class _Node(dict[str, "_Node"]):
    """The quotes that go on with each character; ``ends`` says whether one ends here."""

    ends = False


def _regex_of_quotes(pieces: list[str]) -> str:
    root = _Node()
    root.ends = True
    count = 0
    for begin in range(len(pieces)):
        node = root
        for piece in pieces[begin:]:
            for char in piece:
                spend()
                if char not in node:
                    count += 1
                    if count > _MOST_CHARACTERS or len(pieces) > _MOST_PIECES:
                        raise GrammarError(
                            f'%regex: with lexing="longest" a text may have {_MOST_PIECES} pieces, and all that can be '
                            f'quoted {_MOST_CHARACTERS:,} characters, written out; shorten it, or use lexing="any"'
                        )
                    node[char] = _Node()
                node = node[char]
            node.ends = True
    return _written(root)


def _written(node: _Node) -> str:
    """The regex of a tree."""
    text = ""
    # What does not branch is written in a row.
    while len(node) == 1 and not node.ends:
        ((char, node),) = node.items()
        text += _escaped(char)
    ways = "|".join(_escaped(char) + _written(after) for char, after in node.items())
    return text + (f"(?:{ways})" + "?" * node.ends if ways else "")


def _escaped(char: str) -> str:
    """A character of a regex in Lark's notation, which escapes some characters before ``re`` does."""
    if char == "\0":
        return r"[\0]"
    if char in "/\n\r\t\f":
        return {"/": r"\/", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\f": r"\f"}[char]
    return f"[{re.escape(char)}]" if char in '\\"' else re.escape(char)
