"""``indenter=``: what Lark's ``Indenter`` makes of the ends of lines, between the lexer and the parser.

The end of a line says by its text how far the next line is indented: by the blanks behind its last line break.  So the
terminal of line ends becomes one lexeme for each column, of the texts that indent so far, and one of all its texts,
which within brackets is ignored.  Which of them may come depends on the open levels: the engine looks it up
(``engine/parser/indentations.py``) and gives the parser what the indenter would: the end of the line, and an indent or
dedents.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

from constrain.errors import GrammarError
from constrain.grammar.languages.regular import Regular, concat, intersect, literal, repeat, union
from constrain.grammar.languages.utf8 import ANY_TEXT, LAST, encode

MOST_COLUMNS = 100
"""No line of a statement is indented further."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


@dataclass(frozen=True)
class Indenting:
    """What an indenter says of terminals.

    Attributes
    ----------
    indenter : object
        Lark's, for its parser.
    newline, indent, dedent : str
        The terminal of line ends, and what is made of them.
    opening, closing : frozenset of str
        Brackets.
    tab : int
        The columns of a tab.
    """

    indenter: Any
    newline: str
    indent: str
    dedent: str
    opening: frozenset[str]
    closing: frozenset[str]
    tab: int

    @classmethod
    def of(cls, indenter: Any) -> Indenting:
        """What an ``Indenter`` of Lark, or a class of them, says.

        Raises
        ------
        GrammarError
            If it lacks an attribute, or one is of another type.
        """
        # Lark's own check of it is an assertion.
        tab = getattr(indenter, "tab_len", None)
        if tab is not None and (type(tab) is not int or tab < 1):
            raise GrammarError(f"tab_len of an indenter must be a positive number, not {tab!r}")
        try:
            if isinstance(indenter, type):
                indenter = indenter()
            names = (indenter.NL_type, indenter.INDENT_type, indenter.DEDENT_type)
            brackets = (_names(indenter.OPEN_PAREN_types), _names(indenter.CLOSE_PAREN_types))
            tab = int(indenter.tab_len)
        except (AttributeError, TypeError) as error:
            raise GrammarError(f"indenter must be a lark.indenter.Indenter: {error}") from None
        for method in ("process", "_process", "handle_NL"):
            if getattr(getattr(indenter, method, None), "__module__", "") != "lark.indenter":
                raise GrammarError(f"an indenter with a {method}() of its own is not supported")
        if not all(isinstance(name, str) and _NAME.fullmatch(name) for name in names) or len(set(names)) < 3:
            raise GrammarError("NL_type, INDENT_type and DEDENT_type of an indenter must be three names of terminals")
        return cls(indenter, *names, *brackets, tab)

    @property
    def key(self) -> Hashable:
        """All that a grammar depends on."""
        return self.newline, self.indent, self.dedent, self.opening, self.closing, self.tab

    def line_languages(self, newline: Regular) -> list[Regular]:
        """By column: the line ends behind which the next line begins there, of those of a terminal."""
        other = encode(((0, 8), (11, 31), (33, LAST)))
        blanks: list[Regular] = []
        for column in range(MOST_COLUMNS + 1):
            ways = [literal("")] if column == 0 else [concat(literal(" "), blanks[column - 1])]
            if column >= self.tab:
                ways.append(concat(literal("\t"), blanks[column - self.tab]))
            blanks.append(concat(repeat(other), union(*ways)))
        # All that has no line break: which of it are blanks counts.
        return [intersect(newline, concat(ANY_TEXT, literal("\n"), each)) for each in blanks]


def _names(given: Any) -> frozenset[str]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise GrammarError("OPEN_PAREN_types and CLOSE_PAREN_types of an indenter must be lists of names of terminals")
    names = frozenset(given)
    if not all(isinstance(name, str) for name in names):
        raise GrammarError("OPEN_PAREN_types and CLOSE_PAREN_types of an indenter must be lists of names of terminals")
    return names
