"""Where a piece of grammar text came from, so that every error can name its place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from constrain.errors import GrammarError
from constrain.grammar.lark.tree import Token, Tree
from constrain.limits import spend

Node: TypeAlias = Tree

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


@dataclass(frozen=True)
class Source:
    """One grammar text.

    Attributes
    ----------
    name : str
        File name for messages; empty for the text the caller handed over.
    folder : Path or None
        Where relative imports of this text are looked up; None if there is no such place.
    root : Path or None
        Where other imports are looked up before the grammars that come with Lark, as in Lark's ``import_paths``.
    """

    name: str
    folder: Path | None
    root: Path | None = None

    def error(self, reason: str, at: Node | Token | tuple[int, int] | None = None) -> GrammarError:
        """An error at a token, at the first token of a tree, or at a (line, column)."""
        line, column = at if isinstance(at, tuple) else place_of(at)
        reason = one_line(reason)
        if self.name:
            reason = f"{reason} (in {self.name})"
        return GrammarError(reason, line=line, column=column)


def one_line(text: str) -> str:
    """A text with its control characters and line ends escaped, for a message: terminals may hold them as they are."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def place_of(node: Node | Token | None) -> tuple[int, int]:
    """Line and column, from 1, where a token or tree begins."""
    if isinstance(node, Token):
        return node.place
    first = None if node is None else next(tokens_of(node), None)
    return (1, 1) if first is None else place_of(first)


def tokens_of(tree: Node) -> Iterator[Token]:
    """All tokens of a tree in the order of the text; without recursion, as a tree may be deep."""
    stack: list[Node | Token] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, Token):
            yield node
        else:
            stack.extend(reversed(node.children))


def subtrees_of(tree: Node) -> Iterator[Node]:
    """All subtrees in the order of the text, the tree itself first; without recursion."""
    stack: list[Node | Token] = [tree]
    while stack:
        node = stack.pop()
        if type(node) is Tree:
            spend()
            yield node
            stack += node.children[::-1]
