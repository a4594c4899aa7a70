"""Tokens that are looked for in the text before anything else: special ones, and words added later.

The rules are those of ``tokenizer.json``: leftmost first, longest first at one place; ``lstrip``
and ``rstrip`` swallow white space beside the token; ``single_word`` wants no word character beside
it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_WHITE_SPACE = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))


@dataclass(frozen=True)
class AddedToken:
    """One added token; ``special`` ones stand for no text."""

    id: int
    content: str
    special: bool = False
    lstrip: bool = False
    rstrip: bool = False
    single_word: bool = False
    normalized: bool = False


class AddedTokenFinder:
    """Cuts text at the added tokens in it."""

    def __init__(self, tokens: Sequence[AddedToken], normalize: Callable[[str], str] = str) -> None:
        """``normalize`` is applied to the tokens; the text to split has been normalized already."""
        self._by_content = {normalize(token.content): token for token in tokens if token.content}
        longest_first = sorted(self._by_content, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def split(self, text: str) -> list[tuple[int, int, AddedToken | None]]:
        """``(begin, end, token)`` for each stretch of ``text``; ``token`` is None for text in between."""
        if self._pattern is None:
            return [(0, len(text), None)] if text else []
        parts: list[tuple[int, int, AddedToken | None]] = []
        done = 0
        for match in self._pattern.finditer(text):
            begin, end = match.span()
            token = self._by_content[match.group()]
            if token.single_word and (_is_word(text[begin - 1 : begin]) or _is_word(text[end : end + 1])):
                continue
            if token.lstrip:
                while begin > done and text[begin - 1] in _WHITE_SPACE:
                    begin -= 1
            if token.rstrip:
                while end < len(text) and text[end] in _WHITE_SPACE:
                    end += 1
            if done < begin:
                parts.append((done, begin, None))
            parts.append((begin, end, token))
            done = end
        if done < len(text):
            parts.append((done, len(text), None))
        return parts


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def any_finder(tokens: Sequence[AddedToken]) -> tuple[str, Callable[[str], object]]:
    """Tells quickly that a text has no added token: it has none if the string is not in it, or the function, called
    with it, returns None.

    What single tokens ask for is left out: where one may be, the text has to be split properly.
    """
    contents = [token.content for token in tokens if token.content]
    if not contents:
        return "\ud800", lambda text: None  # in no text that can be encoded
    common = contents[0]
    for content in contents:
        while not content.startswith(common):
            common = common[:-1]
    return common, re.compile("|".join(map(re.escape, contents))).search
