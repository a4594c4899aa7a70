"""The notation of grammars, token by token: Lark's own, and what llguidance and XGrammar have added to it.

name[lazy, suffix="<end>"]: ...      attributes of a rule
name::_ : a name::incr(_) %if lt(_, 6)      a rule with a number, and a condition on it
a{2,5}   a & b   ~a                  counts; intersection and complement in terminals
<|eot_id|>   <[128009]>              tokens
%json {...}   %structural_tag {...}   %regex {...}   %lark {...}      other notations inside (:mod:`.blocks`)
%llguidance {...}                    options
"""

from __future__ import annotations

import re

from constrain.grammar.lark.blocks import SPECIAL, BlockToken, read_block
from constrain.grammar.lark.source import Source
from constrain.grammar.lark.tree import Lines, Token
from constrain.limits import spend

NEW_LINE, OR_ON_NEW_LINE = "_NL", "_NL_OR"
"""Types of tokens: the end of a line with all blank lines behind it; the same with a ``|`` at its end."""

# In these patterns, no group that repeats stands for one ordinary character: `re` keeps some 400 bytes for each round
# of such a group, so a long string would take hundreds of times its size.

# A string, a regex, or anything else but a closing bracket: so attributes are told from the optional parts of a rule.
_IN_BRACKETS = r'[^\]\[\n"/]*(?:(?:"[^"\\\n]*(?:\\.[^"\\\n]*)*"|/(?=[^/])[^/\\\n]*(?:\\.[^/\\\n]*)*/)[^\]\[\n"/]*)*'

_TOKENS = {
    # Names may hold "-", which no other notation does.
    "RULE": r"_?[a-z][_a-z0-9]*(?:-(?!>)[_a-z0-9]*)*",
    "TERMINAL": r"_?[A-Z][_A-Z0-9]*(?:-(?!>)[_A-Z0-9]*)*",
    "SKIPPED": r"\s*(?://|\#)[^\n]*|\\[ ]*\n",
    OR_ON_NEW_LINE: r"\r?\n\s*\|",
    NEW_LINE: r"\r?\n\s*",
    "ATTRIBUTES": rf"\[{_IN_BRACKETS}\](?=[ \t]*(?:::[ \t]*_[ \t]*)?(?:\.[ \t]*[+-]?\d+[ \t]*)?:)",
    "PARAMETER": r"::[ \t]*(?:\w+[ \t]*\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)|\w+)",
    "COUNTS": r"\{[ \t]*(?:\d+[ \t]*(?:,[ \t]*\d*)?|,[ \t]*\d+)[ \t]*\}",
    "MARK": r"[|()\[\]{}:,&]|\.\.?|->",
    "STRING": r'"[^"\\\n]*(?:\\[^\n][^"\\\n]*)*"i?',
    "REGEXP": r"/(?!/)[^/\\]*(?:\\[\s\S][^/\\]*)*/[imslux]*",
    "NUMBER": r"[+-]?\d+",
    "RULE_MODIFIERS": r"(?:!|![?]?|[?]!?)(?=[_a-z])",
    "OP": r"[+*]|[?](?![a-z_])",
    # Before what can be negated it is "not", else it counts.
    "_NOT": r"~(?=[ \t]*[\"/(A-Z_~])",
    "TILDE": "~",
    "BLOCK": r"%(?:json|structural_tag|regex|lark)\b",
    "OPTIONS": r"%(?:llguidance|grammar_options)\b",
    "CONDITION": r"%if\b[^\n|#/]*(?:/(?!/)[^\n|#/]*)*",
    "STATEMENT": "%(?:ignore|override|declare|extend|import)",
    "SPECIAL": SPECIAL.pattern,
    "REFERENCE": r"@\w[\w-]*",
}
_TOKEN = re.compile(
    rf"(?:{'|'.join(f'(?P<{kind}>{pattern})' for kind, pattern in _TOKENS.items())}|[ \t]|(?P<OTHER>.))[ \t]*"
)

_SURROGATE = re.compile("[\ud800-\udfff]")

_MANY = 256


def tokens_of_text(text: str, source: Source) -> list[Token]:
    """The tokens of a grammar.  The last one ends a line; marks and statements are their own types.

    Raises
    ------
    GrammarError
        For a string, regex or block that is not closed, and for a lone surrogate.  Any other character that begins no
        token is one of the type OTHER, and the last one but for the end of the line.
    """
    lines = Lines(text)
    if not text.isascii() and (surrogate := _SURROGATE.search(text)):
        raise source.error("a lone surrogate is not text", lines.place(surrogate.start()))
    found: list[Token] = []
    make = str.__new__
    at, size = 0, len(text)
    while at < size:
        begin, at = at, size
        for match in _TOKEN.finditer(text, begin):
            kind = match.lastgroup
            if kind is None or kind == "SKIPPED":
                continue
            # As Token() does, in half the time: this is the longest loop of all.
            token = make(Token, match[kind])
            token.type = kind
            token.offset = match.start()
            token._lines = lines
            if kind in ("MARK", "STATEMENT"):
                token.type = str(token)
            elif kind == "REGEXP":
                _check_lines(token, source)
            elif kind == "OTHER":
                _check_closed(token, source)
            elif kind in ("BLOCK", "OPTIONS"):
                block = read_block(text, token.offset, source, token.place)
                if block is not None:
                    found.append(BlockToken.of(kind, block, text, lines))
                    at = block.end
                    break
            found.append(token)
            if kind == "OTHER":
                # Nothing behind it is read: looking for a comment at each of many such characters takes long.
                break
            if not len(found) % _MANY:
                spend(_MANY)
    found.append(Token(NEW_LINE, "", lines, size))
    return found


def _check_lines(token: Token, source: Source) -> None:
    if "\n" in token and "x" not in token[token.rindex("/") :]:
        raise source.error(
            "the regex that begins here is not closed on its line (only the flag x allows line ends in it)", token
        )


def _check_closed(token: Token, source: Source) -> None:
    if token == '"':
        raise source.error("the string that begins here is not closed on its line", token)
    if token == "/":
        raise source.error("the regex that begins here is not closed", token)
