"""From grammar text to Lark's tree of it, with errors in one line.

The tree comes from the parser Lark itself reads grammars with, so the notation is Lark's to the
letter.  Two things are checked before it runs, because its token patterns backtrack exponentially
or quadratically there: strings and regexes that are never closed, and very long runs of blank
lines.
"""

from __future__ import annotations

import re
from typing import Any, cast

from lark import Token, UnexpectedInput, UnexpectedToken, load_grammar

from constrain.errors import ConstrainError
from constrain.grammar.lark.source import Node, Source
from constrain.limits import spend

_MAX_BLANK_LINES = 5_000

_BLANK_LINES = re.compile(rf"(?:\r?\n){{{_MAX_BLANK_LINES + 1}}}")
_PLAIN = re.compile(r'[^"/#]+')
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
}


def read(text: str, source: Source) -> Node:
    """The statements of a grammar, as the children of one tree.

    Raises
    ------
    GrammarError
        If the text is not in Lark's notation.
    """
    _check_tokens(text, source)
    try:
        # Lark's notation wants a line end after every statement, the last one too.
        return _parsed(text + "\n")
    except UnexpectedInput as error:
        found = _found(error.token) if isinstance(error, UnexpectedToken) else repr(getattr(error, "char", ""))
        reason = f"unexpected {found}{_expected_after(text[: error.pos_in_stream or 0])}"
        raise source.error(reason, (error.line, error.column)) from None


def _parsed(text: str) -> Node:
    """Lark's tree, token by token, so that a limit on time is seen meanwhile."""
    parser = _grammar_parser().parse_interactive(text, "start")
    last: Token | None = None
    for last in parser.iter_parse():  # noqa: B007
        spend(20)
    return cast(Node, parser.feed_eof(last))


def _grammar_parser() -> Any:
    try:
        return cast(Any, load_grammar)._get_parser()
    except AttributeError:
        raise ConstrainError(
            "this version of lark has no parser for grammars where it is expected (known to work: lark 1.2 and 1.3)"
        ) from None


def _expected_after(text: str) -> str:
    """What could have followed ``text``, as the end of a message.

    The parser that failed has already acted on the token it then could not use, so it is asked anew.
    """
    try:
        parser = _grammar_parser().parse_interactive(text, "start")
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


def _check_tokens(text: str, source: Source) -> None:
    def place(offset: int) -> tuple[int, int]:
        return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)

    if blank := _BLANK_LINES.search(text):
        raise source.error(f"more than {_MAX_BLANK_LINES} blank lines in a row", place(blank.start()))
    if surrogate := re.search("[\ud800-\udfff]", text):
        raise source.error("a lone surrogate is not text", place(surrogate.start()))
    offset = 0
    while offset < len(text):
        spend()
        char = text[offset]
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
            token = _PLAIN.match(text, offset)
        assert token is not None
        offset = token.end()
