"""A repeated character before which certain strings may not begin: ``(?:(?!-->).)*``.

Such a string may begin inside the repetition and end behind it.  So the repetition is read with an
automaton whose state is the set of forbidden strings that have begun, each with how far it has
come; what follows must then not complete any of them.
"""

from __future__ import annotations

from constrain.grammar.languages.utf8 import CodePoints, common, normalize, partition
from constrain.grammar.regex.automaton import MAX_STATES
from constrain.grammar.regex.nodes import PLAIN, Alt, Chars, Look, Node, Repeat, Seq

Word = tuple[CodePoints, ...]
"""A string of which each character may be any out of a set."""

Pending = frozenset[tuple[Word, int]]
"""The forbidden words that have begun, with the number of their characters seen, from 1 up to all but one."""

_MAX_WORDS = 64

# Of words of several alternatives, most of which may turn out to contradict each other.
_MAX_COMBINATIONS = 4096
_MAX_WORD_LENGTH = 64


def spelled_out(node: Node) -> list[Word] | None:
    """The words that a plain node matches, or None if there are too many or too long ones."""
    if node.tier != PLAIN or node.high is None or node.high > _MAX_WORD_LENGTH:
        return None
    if type(node) is Chars:
        return [(node.points,)]
    if type(node) is Alt:
        found: list[Word] = []
        for item in node.items:
            words = spelled_out(item)
            if words is None or len(found) + len(words) > _MAX_WORDS:
                return None
            found += words
        return found
    if type(node) is Seq:
        whole: list[Word] = [()]
        for item in node.items:
            words = spelled_out(item)
            if words is None or len(whole) * len(words) > _MAX_WORDS:
                return None
            whole = [left + right for left in whole for right in words]
        return whole
    if type(node) is Repeat and node.most is not None:
        words = spelled_out(node.item)
        if words is None:
            return None
        found = []
        longest: list[Word] = [()]
        for count in range(node.most + 1):
            if count >= node.least:
                found += longest
            longest = [left + right for left in longest for right in words]
            if len(found) + len(longest) > _MAX_WORDS:
                return None
        return found
    return None


def forbidden(item: Node) -> list[Word] | None:
    """The words that may not begin at a single character, each with its first character among those that ``item`` is.

    None if ``item`` has other assertions than that, or too many words.  In ``(?:(?!ab)[ac]|(?!a..)a)`` that is ``ab.``.
    """
    branches: list[tuple[CodePoints, list[Word]]] = []
    for part in item.items if type(item) is Alt else (item,):
        *looks, last = part.items if type(part) is Seq else (part,)
        if type(last) is not Chars:
            return None
        words: list[Word] = []
        for each in looks:
            found = spelled_out(each.body) if type(each) is Look and each.ahead and each.negated else None
            if found is None:
                return None
            words += found
        branches.append((last.points, words))
    result: list[Word] = []
    every = normalize(span for points, _ in branches for span in points)
    for group in partition(every, [points for points, _ in branches]):
        # What may not begin is what none of the alternatives with such a character lets begin.
        of_group: list[Word] = [(group,)]
        for points, words in branches:
            if common(points, group):
                of_group = [both for one in of_group for word in words if all(both := _both(one, word))]
                if len(of_group) > _MAX_COMBINATIONS:
                    return None
        result += of_group
        if len(result) > _MAX_WORDS:
            return None
    return result


def _both(one: Word, other: Word) -> Word:
    """What begins with both words."""
    shared = tuple(common(left, right) for left, right in zip(one, other, strict=False))
    return shared + one[len(other) :] + other[len(one) :]


def guard_loop(points: CodePoints, words: list[Word]) -> dict[Pending, dict[Pending, CodePoints]] | None:
    """The automaton of repeated ``points`` inside which none of ``words`` is complete; it starts with nothing pending.

    Returns, for each state, the characters that lead to each other state; None if there are too many states.
    """
    atoms = partition(points, [member for word in words for member in word])
    if len(atoms) * len(words) > 4096:
        return None
    edges: dict[Pending, dict[Pending, CodePoints]] = {}
    todo: list[Pending] = [frozenset()]
    while todo:
        pending = todo.pop()
        if pending in edges:
            continue
        row: dict[Pending, list[tuple[int, int]]] = {}
        for atom in atoms:
            grown = {(word, seen + 1) for word, seen in pending if common(atom, word[seen])}
            grown |= {(word, 1) for word in words if common(atom, word[0])}
            if not any(len(word) == seen for word, seen in grown):
                row.setdefault(frozenset(grown), []).extend(atom)
        edges[pending] = {then: normalize(spans) for then, spans in row.items()}
        todo += edges[pending]
        if len(edges) > MAX_STATES:
            return None
    return edges
