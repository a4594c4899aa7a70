"""From grammar text to Lark's tree of it, with errors in one line.

The tree comes from the parser that Lark itself reads grammars with, with some additions
(:mod:`.notation`).  Two things are checked before it runs, because its token patterns backtrack exponentially
or quadratically there: strings and regexes that are never closed, and very long runs of blank
lines.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import cast

from lark import Token, Tree, UnexpectedInput, UnexpectedToken

from constrain.grammar.lark.blocks import Block, BlockToken, blanked, read_block
from constrain.grammar.lark.notation import SPECIAL, grammar_parser
from constrain.grammar.lark.source import Node, Source
from constrain.limits import spend

_MAX_BLANK_LINES = 5_000

_BLANK_LINES = re.compile(rf"(?:\r?\n){{{_MAX_BLANK_LINES + 1}}}")
_PLAIN = re.compile(r'[^"/#%<]+|[%<]')
_COMMENT = re.compile(r"(?:#|//)[^\n]*")
_STRING = re.compile(r'"(?:[^"\\\n]|\\[^\n])*"')
_REGEXP = re.compile(r"/(?:[^/\\]|\\.)*/(?P<flags>[imslux]*)", re.DOTALL)

# Names of the tokens of Lark's notation, as a reader of an error message would call them.
_TOKEN_NAMES = {
    "_LPAR": '"("',
    "_RPAR": '")"',
    "_LBRA": '"["',
    "_RBRA": '"]"',
    "_LBRACE": '"{"',
    "_RBRACE": '"}"',
    "OP": '"*", "+", "?"',
    "_COLON": '":"',
    "_COMMA": '","',
    "_OR": '"|"',
    "_DOT": '"."',
    "_DOTDOT": '".."',
    "TILDE": '"~"',
    "RULE_MODIFIERS": '"?" or "!"',
    "RULE": "a rule name",
    "TERMINAL": "a terminal name",
    "STRING": "a string",
    "REGEXP": "a regex",
    "_NL": "the end of the line",
    "_TO": '"->"',
    "_IGNORE": "%ignore",
    "_OVERRIDE": "%override",
    "_DECLARE": "%declare",
    "_EXTEND": "%extend",
    "_IMPORT": "%import",
    "NUMBER": "a number",
    "COUNTS": '"{2,5}"',
    "_AND": '"&"',
    "SPECIAL": "a token",
    "BLOCK": "%json",
}


def read(text: str, source: Source) -> Node:
    """The statements of a grammar, as the children of one tree.

    Raises
    ------
    GrammarError
        If the text is not in Lark's notation.
    """
    blocks = _check_tokens(text, source)
    # Lark's notation wants a line end after every statement, the last one too.
    parsed = blanked(text, blocks) + "\n"
    lines = _Lines(text)
    try:
        tree = _parsed(parsed)
    except UnexpectedInput as error:
        found = _found(error.token) if isinstance(error, UnexpectedToken) else repr(getattr(error, "char", ""))
        offset = error.pos_in_stream
        place = (error.line, error.column) if offset is None or not blocks else lines.place(offset)
        raise source.error(f"unexpected {found}{_expected_after(parsed[: offset or 0])}", place) from None
    if blocks:
        _put_back(tree, blocks, lines)
    return tree


class _Lines:
    """Where the lines of a text begin."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(found.end() for found in re.finditer("\n", text))]

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both from 1."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1


def _put_back(tree: Node, blocks: list[Block], lines: _Lines) -> None:
    """Give keywords their blocks again, and all tokens the places that they have in the text."""
    by_end = {block.end: block for block in blocks}
    ends = sorted(by_end)
    todo = [tree]
    while todo:
        node = todo.pop()
        for index, child in enumerate(node.children):
            if isinstance(child, Tree):
                todo.append(child)
                continue
            offset = child.start_pos or 0
            child.line, child.column = lines.place(offset)
            if child.type in ("BLOCK", "OPTIONS"):
                following = bisect_right(ends, offset)
                block = by_end[ends[following]] if following < len(ends) else None
                if block is not None and block.keyword == offset:
                    token = BlockToken.new_borrow_pos(child.type, str(child), child)
                    token.block = block
                    node.children[index] = token


def _parsed(text: str) -> Node:
    """Lark's tree, token by token, so that a limit on time is seen meanwhile."""
    parser = grammar_parser().parse_interactive(text, "start")
    last: Token | None = None
    for last in parser.iter_parse():  # noqa: B007
        spend(20)
    return cast(Node, parser.feed_eof(last))


def _expected_after(text: str) -> str:
    """What could have followed ``text``, as the end of a message.

    The parser that failed has already acted on the token it then could not use, so it is asked anew.
    """
    try:
        parser = grammar_parser().parse_interactive(text, "start")
        parser.exhaust_lexer()
        names = sorted({_TOKEN_NAMES[name] for name in parser.accepts() if name in _TOKEN_NAMES})
    except UnexpectedInput:
        return ""
    if len(names) > 1:
        return f", expected {', '.join(names[:-1])} or {names[-1]}"
    return f", expected {names[0]}" if names else ""


def _found(token: Token) -> str:
    if token.type in ("_NL", "$END"):
        return "end of line"
    return "'|'" if token.type == "_NL_OR" else repr(str(token))


def _check_tokens(text: str, source: Source) -> list[Block]:
    """Look for what would take the parser long, and for what has to be cut out before it runs."""

    def place(offset: int) -> tuple[int, int]:
        return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)

    if blank := _BLANK_LINES.search(text):
        raise source.error(f"more than {_MAX_BLANK_LINES} blank lines in a row", place(blank.start()))
    if surrogate := re.search("[\ud800-\udfff]", text):
        raise source.error("a lone surrogate is not text", place(surrogate.start()))
    blocks: list[Block] = []
    offset = 0
    while offset < len(text):
        spend()
        char = text[offset]
        if char == "%" and (block := read_block(text, offset, source, place(offset))) is not None:
            blocks.append(block)
            offset = block.end
            continue
        if char == '"':
            token = _STRING.match(text, offset)
            if token is None:
                raise source.error("the string that begins here is not closed on its line", place(offset))
        elif char == "#" or text.startswith("//", offset):
            token = _COMMENT.match(text, offset)
        elif char == "/":
            token = _REGEXP.match(text, offset)
            if token is None:
                raise source.error("the regex that begins here is not closed", place(offset))
            if "\n" in token.group() and "x" not in token.group("flags"):
                raise source.error(
                    "the regex that begins here is not closed on its line (only the flag x allows line ends in it)",
                    place(offset),
                )
        else:
            # A token may have a slash in its name, which begins no regex.
            token = SPECIAL.match(text, offset) or _PLAIN.match(text, offset)
        assert token is not None
        offset = token.end()
    return blocks
