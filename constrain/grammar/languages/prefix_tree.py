"""A finite set of strings as one regular language in which common beginnings are shared.

A plain union of 100,000 strings makes an automaton that is in 100,000 states at once on its first
byte; a tree is in one.  Ends are shared by nobody: a minimal automaton would be smaller, and
slower to make than it is to explore the part of the tree that a text reaches.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import AnyStr

from constrain.grammar.languages.regular import EMPTY, EPSILON, Concat, Literal, Regular, Union, concat, literal, union
from constrain.limits import spend

# A string that is a prefix of the next, again and again ("a", "aa", "aaa", ...), makes a tree as deep as
# there are strings; whoever reads trees by recursion must not fall for it.  Below this depth there is
# a plain union.
_DEPTH_LIMIT = 64


def prefix_tree(values: Iterable[str], spell: Callable[[str], Regular] = literal) -> Regular:
    """Exactly the strings ``values``.

    ``spell`` gives the language that stands for a piece of text (by default its UTF-8 bytes); it must be such
    that ``spell(a + b)`` is ``spell(a)`` followed by ``spell(b)``, and that different texts have nothing in common.
    """
    distinct = sorted(set(values))
    return _tree(distinct, 0, spell, _DEPTH_LIMIT) if distinct else EMPTY


def _tree(values: Sequence[str], start: int, spell: Callable[[str], Regular], depth: int) -> Regular:
    """The language of what follows the first ``start`` characters, which all ``values`` (sorted) share."""
    spend(len(values))
    if len(values) == 1:
        return spell(values[0][start:])
    if depth == 0 or len({value[start : start + 1] for value in values}) == len(values):
        # Nothing is shared, or too much.
        return _either([spell(value[start:]) for value in values])
    branches: list[Regular] = []
    index = 0
    if len(values[0]) == start:
        branches.append(EPSILON)
        index = 1
    while index < len(values):
        end = index + 1
        first = values[index][start]
        while end < len(values) and values[end][start] == first:
            end += 1
        # Sorted, so what the first and the last have in common, all between them have.
        stop = common_length(values[index], values[end - 1], start + 1)
        tail = _tree(values[index:end], stop, spell, depth - 1)
        branches.append(concat(spell(values[index][start:stop]), tail))
        index = end
    return _either(branches)


def _either(branches: list[Regular]) -> Regular:
    """The union of some languages; these are all different, so there is no need to compare them."""
    return branches[0] if len(branches) == 1 else Union(tuple(branches))


def common_length(left: AnyStr, right: AnyStr, start: int) -> int:
    """How long the common beginning is, given that it is at least ``start``."""
    stop = min(len(left), len(right))
    while start < stop:
        middle = (start + stop + 1) // 2
        if left[start:middle] == right[start:middle]:
            start = middle
        else:
            stop = middle - 1
    return start


class Sequences:
    """Languages as texts: each byte of a literal is a character, and so is each other part of a sequence.

    So what sequences of languages have in common is what their texts have.  Equal parts are the same character.
    """

    def __init__(self) -> None:
        # What is known of an object holds as long as it lives, so it is held.
        self._texts: dict[int, tuple[str, Regular]] = {}
        self._characters: dict[Regular, str] = {}
        self._parts: dict[str, Regular] = {}

    def text(self, language: Regular) -> str:
        """The text of a language."""
        if type(language) is Literal:
            return language.data.decode("latin-1")
        known = self._texts.get(id(language))
        if known is not None:
            return known[0]
        if isinstance(language, Concat):
            text = "".join(map(self.text, language.parts))
        else:
            return self.character(language)
        self._texts[id(language)] = text, language
        return text

    def character(self, language: Regular) -> str:
        """One character for the whole of a language, from now on: quicker where it has no beginning to share."""
        known = self._texts.get(id(language))
        if known is None:
            text = self._characters.setdefault(language, chr(_FIRST_PART + len(self._parts)))
            self._parts.setdefault(text, language)
            known = self._texts[id(language)] = text, language
        return known[0]

    def language(self, text: str) -> Regular:
        """The language of a text."""
        parts: list[Regular] = []
        for run in _RUNS.findall(text):
            if run[0] < _FIRST:
                parts.append(Literal(run.encode("latin-1")))
            else:
                parts += map(self._parts.__getitem__, run)
        return parts[0] if len(parts) == 1 else Concat(tuple(parts)) if parts else EPSILON

    def tree(self, texts: Iterable[str]) -> Regular:
        """The union of the languages of some texts."""
        return prefix_tree(texts, self.language)


_FIRST_PART = 0x100
_FIRST = chr(_FIRST_PART)
# Written with the small range: a class of characters up to U+10FFFF takes 5 ms to compile.
_RUNS = re.compile("[\\x00-\\xff]+|[^\\x00-\\xff]+")


def tree_of(languages: Iterable[Regular]) -> Regular:
    """The union of some languages, with what sequences begin with in common spelled once."""
    flat: list[Regular] = []
    for language in languages:
        flat += language.parts if type(language) is Union else (language,)
    if len(flat) < _FEW:
        return union(*flat)
    sequences = Sequences()
    return sequences.tree([sequences.text(part) for part in flat if part is not EMPTY])


# So many languages are told apart as quickly one by one.
_FEW = 8
