"""Tokens that are looked for in the text before anything else: special ones, and words added later.

The rules are those of ``tokenizer.json``: leftmost first, longest first at one place; ``lstrip``
and ``rstrip`` swallow white space beside the token; ``single_word`` wants no word character beside
it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import groupby

import numpy as np
import numpy.typing as npt

from constrain.tokenizers.splitting.character_properties import members_of_category

_WHITE_SPACE = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))


Permits = Callable[[int, int, int], bool]
"""Whether a token is read from some characters of a text: its id, and where they begin and end."""


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
        spelled = ((normalize(token.content), token) for token in tokens)
        # Of equal ones the first counts.
        self._by_content: dict[str, AddedToken] = {}
        for content, token in spelled:
            if content:
                self._by_content.setdefault(content, token)
        self._contents = frozenset(self._by_content)
        self._lengths = sorted({len(content) for content in self._contents}, reverse=True)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        # Compiled once it is needed, which for thousands of tokens takes a tenth of a second.
        return _compiled(self._contents)

    def split(self, text: str, permits: Permits | None = None) -> list[tuple[int, int, AddedToken | None]]:
        """``(begin, end, token)`` for each stretch of ``text``; ``token`` is None for text in between.

        ``permits``: tokens that it says no to are as if they were not there.
        """
        if not self._by_content:
            return [(0, len(text), None)] if text else []
        parts: list[tuple[int, int, AddedToken | None]] = []
        done = 0
        for begin, end in self._matches(self._pattern, text, permits):
            token = self._by_content[text[begin:end]]
            if token.single_word and (_is_word(text[begin - 1 : begin]) or _is_word(text[end : end + 1])):
                continue
            if token.lstrip:
                begin = max(begin, done)  # the token before may have swallowed white space behind it
                while begin > done and text[begin - 1] in _WHITE_SPACE:
                    begin -= 1
            if token.rstrip:
                while end < len(text) and text[end] in _WHITE_SPACE:
                    end += 1
            if done < begin:
                parts.append((done, begin, None))
            # Without lstrip a token is read even where the one before has swallowed it; the reference does so.
            if begin < end:
                parts.append((begin, end, token))
            done = end
        if done < len(text):
            parts.append((done, len(text), None))
        return parts

    def _matches(self, pattern: re.Pattern[str], text: str, permits: Permits | None) -> Iterator[tuple[int, int]]:
        if permits is None:
            for match in pattern.finditer(text):
                yield match.span()
            return
        place = 0
        while (found := pattern.search(text, place)) is not None:
            begin = found.start()
            place = begin + 1
            for length in self._lengths:
                end = begin + length
                token = self._by_content.get(text[begin:end]) if end <= len(text) else None
                if token is not None and permits(token.id, begin, end):
                    yield begin, end
                    place = end
                    break


def moved(permits: Permits, begin: int, origins: Sequence[tuple[int, int]] | None) -> Permits:
    """The same for a stretch of the text that begins at ``begin``.

    ``origins``: where each character of the normalized stretch comes from, within the stretch; None: it is not changed.
    """

    def permitted(token_id: int, first: int, last: int) -> bool:
        if origins is None:
            return permits(token_id, begin + first, begin + last)
        places = origins[first:last]
        return permits(token_id, begin + min(a for a, _ in places), begin + max(b for _, b in places))

    return permitted


def _is_word(char: str) -> bool:
    return char != "" and bool(_word_characters()[ord(char)])


@cache
def _word_characters() -> npt.NDArray[np.bool_]:
    """bool[0x110000]: what ``\\w`` of UTS 18 is; marks and joiners are, fractions are not."""
    members = members_of_category("Word")
    assert members is not None
    return members


def any_finder(tokens: Sequence[AddedToken]) -> tuple[str, Callable[[str], object]]:
    """A string and a function that tell quickly that a text has no added token.

    A text has none if the string is not in it, or if the function returns None for it.  Otherwise it may have one:
    conditions of single tokens, such as ``single_word``, are not looked at.
    """
    contents = [token.content for token in tokens if token.content]
    if not contents:
        return "\ud800", lambda text: None  # in no text that can be encoded
    common = contents[0]
    for content in contents:
        while not content.startswith(common):
            common = common[:-1]
    known = frozenset(contents)
    if len(known) <= _FEW:
        return common, _compiled(known).search
    search: list[Callable[[str], object]] = []

    def find(text: str) -> object:
        # Kept, since a look-up may compare thousands of tokens.
        if not search:
            search.append(_compiled(known).search)
        return search[0](text)

    return common, find


@lru_cache(maxsize=32)
def _compiled(contents: frozenset[str]) -> re.Pattern[str]:
    # A tokenizer, and each copy of it, asks twice for the same pattern.
    return re.compile(longest_of(contents))


_FEW = 300
"""So many tokens are compiled in a few milliseconds, so they need not wait until they are needed."""

_DEEPEST = 40
"""Groups within groups; the compiler of :mod:`re` is recursive."""


def longest_of(contents: Iterable[str]) -> str:
    """A regex for the longest of some strings, none of them empty, at a place.

    Common beginnings are written once, because alternatives are tried one after the other and a vocabulary may add
    thousands of tokens.  ``a``, ``ab`` and ``ac`` become ``a[bc]?``.
    """
    return _alternatives(sorted(set(contents)), 0, 0)


def _alternatives(contents: Sequence[str], begin: int, depth: int) -> str:
    """For what follows the first ``begin`` characters, which all of the sorted strings have in common."""
    if depth == _DEEPEST:
        rests = sorted((content[begin:] for content in contents), key=len, reverse=True)
        return f"(?:{'|'.join(map(re.escape, rests))})"
    ends = len(contents[0]) == begin
    if ends:
        if len(contents) == 1:
            return ""
        contents = contents[1:]
    singles: list[str] = []
    longer: list[str] = []
    for _, group in groupby(contents, key=lambda content: content[begin]):
        same = list(group)
        if len(same) == 1:
            rest = re.escape(same[0][begin:])
            (singles if len(same[0]) == begin + 1 else longer).append(rest)
            continue
        # The characters up to where they differ, or one of them ends.
        common = _common_length(same[0], same[-1])
        longer.append(re.escape(same[0][begin:common]) + _alternatives(same, common, depth + 1))
    if singles:
        longer.append(singles[0] if len(singles) == 1 else f"[{''.join(singles)}]")
    if len(longer) == 1 and not ends:
        return longer[0]
    optional = "?" if ends else ""
    if len(longer) == 1 and len(singles) > 0:
        return longer[0] + optional
    return f"(?:{'|'.join(longer)}){optional}"


def _common_length(left: str, right: str) -> int:
    """How many characters two strings have in common at the beginning."""
    if right.startswith(left):
        return len(left)
    return next(i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b)
