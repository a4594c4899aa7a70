"""The table of an LALR parser, and what its lexer looks for: how some grammars say which texts are theirs.

Without a table a text is in the language if some way to split it into lexemes fits the rules.  With one, a lexer splits
the text before the parser sees it, as in Lark: in each state of the parser it looks for some lexemes, takes the first
in its order that matches, and of that the longest match.
"""

from __future__ import annotations

from typing import NamedTuple

IGNORED = -1
ANY_LINE, OPENS, CLOSES = -1, -2, -3


class TableLexeme(NamedTuple):
    """What a lexeme is to the lexer and the parser.

    Attributes
    ----------
    rank : int
        Its place in the order in which the lexer tries terminals.  Two lexemes may share one, if they are parts of one
        regex: the first of them that matches the text as far as the regex matches is meant.
    column : int
        The column of its terminal in the parser's actions; IGNORED if the parser does not see it.
    line : int
        What it is to the indenter: ``1 + column`` for the end of a line whose next line begins at that column, outside
        of brackets; ANY_LINE for the end of any line, which is ignored within brackets and refused elsewhere; OPENS and
        CLOSES for brackets; 0 for all others.
    """

    rank: int
    column: int
    line: int = 0


class ParseTable(NamedTuple):
    """An LALR(1) table and its contextual lexer.

    In the lexemes of the IR each lexeme stands twice, as ``2 * i`` and ``2 * i + 1``: to be read, and to be refused.
    One more stands at their end, which has no text.

    Attributes
    ----------
    lexemes : tuple of TableLexeme
        Sorted by rank.
    contexts : tuple of tuple of int
        By state: the lexemes that the lexer looks for, sorted.
    actions : tuple of int
        By state and terminal (the end of the text is the last): ``state + 1`` to shift; ``-1 - rule`` to reduce; 0.
    gotos : tuple of int
        By state and nonterminal: the next state; 0 where there is none.
    rules : tuple of (int, int)
        The nonterminal of a rule, and how many symbols it has.
    first, last : int
        The state in which a text begins, and the one in which it has ended.
    indentation : (int, int)
        The columns of what the indenter makes of a deeper line, and of each level that is closed; -1 without one.
    """

    lexemes: tuple[TableLexeme, ...]
    contexts: tuple[tuple[int, ...], ...]
    actions: tuple[int, ...]
    gotos: tuple[int, ...]
    rules: tuple[tuple[int, int], ...]
    first: int
    last: int
    indentation: tuple[int, int] = (-1, -1)

    @property
    def columns(self) -> int:
        """How many terminals the actions of a state tell apart, with the end of the text."""
        return len(self.actions) // len(self.contexts)

    def goto(self, state: int, nonterminal: int) -> int:
        """The state behind a nonterminal, which can stand there: a rule that was begun in the state can end."""
        nonterminals = len(self.gotos) // len(self.contexts)
        return self.gotos[state * nonterminals + nonterminal]

    def is_read(self, lexeme: int) -> bool:
        """Whether a lexeme of the IR is one that the parser reads: neither refused nor a guard."""
        return lexeme % 2 == 0 and lexeme < 2 * len(self.lexemes)
