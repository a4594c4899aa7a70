"""A finite set of strings as one regular language, to which strings are added one by one: a persistent radix tree.

The language is that of :mod:`~constrain.grammar.languages.prefix_tree`.  A tree with one string more, or less, shares
all languages with the one before, as the same objects, but for those on the path of the string.  So its hash and its
compilation take the time of that path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from constrain.grammar.languages.prefix_tree import common_length
from constrain.grammar.languages.regular import EMPTY, EPSILON, Regular, concat, union_of_distinct

Spell = Callable[[str], Regular]

# Languages are compared by recursion.  "a", "aa", "aaa", ... would make a tree that is too deep for it.
_MAX_HEIGHT = 64


class GrowingTree:
    """An immutable set of strings.

    Parameters
    ----------
    spell : callable (str) -> Regular
        The language of a piece of text, as for :func:`~constrain.grammar.languages.prefix_tree.prefix_tree`.
    texts : iterable of str
    """

    __slots__ = ("_root", "_spell", "size")

    def __init__(self, spell: Spell, texts: Iterable[str] = ()) -> None:
        distinct = sorted(set(texts))
        self._spell = spell
        self._root = _tree(distinct, 0, 0) if distinct else _NOTHING
        self.size = len(distinct)
        """How many strings it holds."""

    def plus(self, text: str) -> GrowingTree:
        """The tree with a string more, which must be new."""
        return self._with(_plus(self._root, text, 0), self.size + 1)

    def minus(self, text: str) -> GrowingTree:
        """The tree without a string, which must be there."""
        return self._with(_minus(self._root, text) or _NOTHING, self.size - 1)

    def __contains__(self, text: str) -> bool:
        node: _Node | None = self._root
        while node is not None and text.startswith(node.label):
            text = text[len(node.label) :]
            if not text:
                return node.ends
            node = node.branches.get(text if node.is_flat else text[0])
        return False

    def __iter__(self) -> Iterator[str]:
        return _texts(self._root)

    @property
    def language(self) -> Regular:
        """Exactly these strings."""
        return _language(self._root, self._spell)

    def _with(self, root: _Node, size: int) -> GrowingTree:
        tree = GrowingTree(self._spell)
        tree._root, tree.size = root, size
        return tree


class _Node:
    """The strings that begin with ``label``, and end there if it ``ends``, or go on with one of the branches.

    Branches are found by their first character.  In a flat node they have no branches of their own, and are found by
    their whole label.
    """

    __slots__ = ("branches", "ends", "height", "is_flat", "label", "language")

    def __init__(self, label: str, ends: bool, branches: dict[str, _Node], is_flat: bool = False) -> None:
        self.label = label
        self.ends = ends
        self.branches = branches
        self.is_flat = is_flat
        self.height: int = 1 + max([branch.height for branch in branches.values()], default=0)
        self.language: Regular | None = None


_NOTHING = _Node("", False, {})


def _texts(node: _Node) -> Iterator[str]:
    """The strings of a node, with its label."""
    stack = [("", node)]
    while stack:
        before, node = stack.pop()
        before += node.label
        if node.ends:
            yield before
        stack += [(before, branch) for branch in node.branches.values()]


def _tree(texts: list[str], start: int, depth: int) -> _Node:
    """The node of some strings (sorted, and one at least), without the first ``start`` characters."""
    stop = common_length(texts[0], texts[-1], start)
    ends = len(texts[0]) == stop
    branches: dict[str, list[str]] = {}
    is_flat = depth + 2 >= _MAX_HEIGHT
    for text in texts[ends:]:
        branches.setdefault(text[stop:] if is_flat else text[stop], []).append(text)
    label = texts[0][start:stop]
    return _Node(label, ends, {key: _tree(some, stop, depth + 1) for key, some in branches.items()}, is_flat)


def _plus(node: _Node, text: str, depth: int) -> _Node:
    """A node with a string more, which is given with the label of the node."""
    if node is _NOTHING:
        return _Node(text, True, {})
    label = node.label
    shared = common_length(label, text, 0)
    if shared < len(label):
        rest = _Node(label[shared:], node.ends, node.branches, node.is_flat)
        node = _Node(label[:shared], False, {label[shared]: rest})
    rest_of_text = text[shared:]
    if not rest_of_text:
        return _leveled(_Node(node.label, True, node.branches, node.is_flat), depth)
    key = rest_of_text if node.is_flat else rest_of_text[0]
    known = node.branches.get(key)
    branch = _Node(rest_of_text, True, {}) if known is None else _plus(known, rest_of_text, depth + 1)
    return _leveled(_Node(node.label, node.ends, {**node.branches, key: branch}, node.is_flat), depth)


def _leveled(node: _Node, depth: int) -> _Node:
    """The node, made flat if it is too high."""
    if depth + node.height <= _MAX_HEIGHT:
        return node
    texts = [text[len(node.label) :] for text in _texts(node)]
    return _Node(node.label, node.ends, {text: _Node(text, True, {}) for text in texts if text}, True)


def _minus(node: _Node, text: str) -> _Node | None:
    """A node without a string that it has; None if none is left."""
    text = text[len(node.label) :]
    if not text:
        ends, branches = False, node.branches
    else:
        key = text if node.is_flat else text[0]
        ends, branches = node.ends, node.branches.copy()
        branch = _minus(branches[key], text)
        if branch is None:
            del branches[key]
        else:
            branches[key] = branch
    if not ends and len(branches) <= 1:
        for only in branches.values():
            return _Node(node.label + only.label, only.ends, only.branches, only.is_flat)
        return None
    return _Node(node.label, ends, branches, node.is_flat)


def _language(node: _Node, spell: Spell) -> Regular:
    if node.language is None:
        if node is _NOTHING:
            return EMPTY
        parts = [_language(branch, spell) for branch in node.branches.values()]
        rest = union_of_distinct([EPSILON, *parts] if node.ends else parts)
        node.language = concat(spell(node.label), rest)
    return node.language
