"""Finds the first of many strings in a text that arrives in pieces.

The automaton of Aho and Corasick ("Efficient string matching", 1975): a trie of the strings, and for
each node the longest proper suffix of its text that is also a node.  The node after a character is
then the longest end of the text that some string begins with, so its depth is exactly the number of
characters that may still become a match, whatever the number of strings.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable


class StopMatcher:
    """Looks for the earliest end of any string; of several that end there, for the longest.

    Parameters
    ----------
    strings : strings
        None of them empty.

    Attributes
    ----------
    pending : int
        How many characters at the end of the text so far may be the beginning of a match.
    """

    def __init__(self, strings: Iterable[str]) -> None:
        self._children: list[dict[str, int]] = [{}]
        self._depth = [0]
        self._match = [""]
        for string in strings:
            if not string:
                raise ValueError("an empty string is everywhere")
            node = 0
            for character in string:
                node = self._child(node, character)
            self._match[node] = string
        self._link_suffixes()
        first = "".join(self._children[0])
        self._first = re.compile(f"[{re.escape(first)}]") if first else None
        self._node = 0

    @property
    def pending(self) -> int:
        return self._depth[self._node]

    def reset(self) -> None:
        """Forget the text so far."""
        self._node = 0

    def feed(self, text: str) -> tuple[int, str] | None:
        """Go on with ``text``; ``(end, string)`` for a match that ends at ``text[:end]``, which ends the search.

        Amortised constant work per character.
        """
        if self._first is None:
            return None
        node, place = self._node, 0
        while place < len(text):
            if node == 0:
                # Most text has nothing to do with any string: pass over it at the speed of the regex engine.
                found = self._first.search(text, place)
                if found is None:
                    break
                place = found.start()
            character = text[place]
            while node and character not in self._children[node]:
                node = self._suffix[node]
            node = self._children[node].get(character, 0)
            place += 1
            if self._match[node]:
                self._node = 0
                return place, self._match[node]
        self._node = node
        return None

    def _child(self, node: int, character: str) -> int:
        child = self._children[node].get(character)
        if child is None:
            child = self._children[node][character] = len(self._children)
            self._children.append({})
            self._depth.append(self._depth[node] + 1)
            self._match.append("")
        return child

    def _link_suffixes(self) -> None:
        self._suffix = [0] * len(self._children)
        queue = deque(self._children[0].values())
        while queue:
            node = queue.popleft()
            for character, child in self._children[node].items():
                suffix = self._suffix[node]
                while suffix and character not in self._children[suffix]:
                    suffix = self._suffix[suffix]
                self._suffix[child] = self._children[suffix].get(character, 0)
                # The string of the node itself is longer than any string that ends within it.
                self._match[child] = self._match[child] or self._match[self._suffix[child]]
                queue.append(child)
