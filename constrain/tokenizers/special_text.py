"""Which special tokens are read out of a text, and which stay the text that spells them.

A special token is an instruction to the model: whose turn it is, where a turn ends.  Text from a stranger must not give
such instructions.  So whoever encodes a text says which special tokens it may hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from constrain.errors import TokenizerError
from constrain.tokenizers.added_tokens import longest_of

Special = Literal["all", "none"] | Iterable[str] | None
"""``"all"``, ``"none"`` or the names of the special tokens that are read; None: as the library of the file does it."""

Disallowed = Literal["raise", "text"]
"""What becomes of the text of a special token that is not read: an error, or text."""


class Reading(NamedTuple):
    """Which tokens are read out of one text.

    Attributes
    ----------
    refused : frozenset of int
        Tokens that no text becomes.
    guarded : frozenset of int
        Tokens that only trusted text becomes.
    trusted : bytes
        For each character of the text whether it is trusted: 1 or 0.
    """

    refused: frozenset[int] = frozenset()
    guarded: frozenset[int] = frozenset()
    trusted: bytes = b""

    def permits(self, token_id: int, begin: int, end: int) -> bool:
        """Whether the characters from ``begin`` to ``end``, which spell a token, become that token."""
        if token_id in self.refused:
            return False
        return token_id not in self.guarded or self.trusted.find(0, begin, end) < 0

    @property
    def unreachable(self) -> frozenset[int]:
        """Tokens that a model must not make out of the pieces of a text."""
        return self.refused | self.guarded


def reading_of(
    special: Special,
    disallowed: Any,
    text: str,
    names: Mapping[str, int],
    special_ids: frozenset[int],
) -> Reading:
    """What the arguments of ``encode`` mean for a text.

    Parameters
    ----------
    special, disallowed
        See :meth:`constrain.tokenizers.base.Encoder.encode`.
    names : mapping of str to int
        The special tokens that a text can spell.
    special_ids : frozenset of int
        All special tokens.

    Raises :class:`TokenizerError` for an argument that makes no sense, and for a text that ``disallowed="raise"``
    forbids.
    """
    if disallowed not in ("raise", "text"):
        raise TokenizerError(f'disallowed= must be "raise" or "text", not {disallowed!r}')
    allowed = allowed_ids(special, names)
    refused = special_ids - allowed
    if disallowed == "raise":
        forbidden = frozenset(name for name, token_id in names.items() if token_id in refused and name)
        found = search_any(forbidden, text)
        if found is not None:
            raise TokenizerError(
                f"the text has the special token {found.group()!r} at character {found.start()}, which special= does"
                ' not name; disallowed="text" encodes it as text'
            )
    return Reading(refused)


def allowed_ids(special: Special, names: Mapping[str, int]) -> frozenset[int]:
    """The tokens that ``special`` names, of all that it could."""
    if special == "all":
        return frozenset(names.values())
    if special == "none":
        return frozenset()
    if isinstance(special, str | bytes) or not isinstance(special, Iterable):
        raise TokenizerError(f'special= must be "all", "none" or the names of special tokens, not {special!r}')
    ids = set()
    for name in special:
        if not isinstance(name, str) or name not in names:
            raise TokenizerError(f"{name!r} is named, which is no special token of this tokenizer")
        ids.add(names[name])
    return frozenset(ids)


def search_any(names: frozenset[str], text: str, begin: int = 0) -> re.Match[str] | None:
    """The first of these names in a text from ``begin`` on, the longest at its place."""
    return _pattern(names).search(text, begin) if names else None


@lru_cache(maxsize=16)
def _pattern(names: frozenset[str]) -> re.Pattern[str]:
    return re.compile(longest_of(names))


def first_refused(text: str, reading: Reading, names: Mapping[str, int]) -> str | None:
    """The first token that a text spells where ``reading`` does not permit it; None if there is none."""
    known = frozenset(name for name in names if name)
    place = 0
    while (found := search_any(known, text, place)) is not None:
        if not reading.permits(names[found.group()], *found.span()):
            return found.group()
        place = found.start() + 1
    return None


def cut_at_tokens(text: str, reading: Reading, names: Mapping[str, int]) -> list[tuple[int, int, int | None]]:
    """``(begin, end, id)`` for each stretch of a text; the id is None for text between the tokens that are read.

    Leftmost first, and longest first at one place, among the tokens that ``reading`` permits.
    """
    parts: list[tuple[int, int, int | None]] = []
    known = frozenset(name for name in names if name)
    done = place = 0
    while (found := search_any(known, text, place)) is not None:
        begin, longest = found.span()
        for end in range(longest, begin, -1):
            token_id = names.get(text[begin:end])
            if token_id is not None and reading.permits(token_id, begin, end):
                if done < begin:
                    parts.append((done, begin, None))
                parts.append((begin, end, token_id))
                done = place = end
                break
        else:
            place = begin + 1
    if done < len(text):
        parts.append((done, len(text), None))
    return parts
