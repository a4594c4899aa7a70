"""The Unicode normalization forms as ``tokenizers`` has them, and where each character comes from.

That library has an older Unicode than Python: newer characters stay as they are.  So the tables are our own
(:mod:`constrain.tokenizers.normalizing.normalization_data`), and the same under every Python.

Offsets are those of that library, too.  A composed character comes from the first of its parts alone.  Everything that
a character decomposes into comes from that character.
"""

from __future__ import annotations

import re
import zlib
from base64 import b85decode
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal
from unicodedata import is_normalized

from constrain.tokenizers.normalizing.normalization_data import CLASSES, DECOMPOSITIONS

NormalForm = Literal["NFC", "NFD", "NFKC", "NFKD"]
FORMS: tuple[NormalForm, ...] = ("NFC", "NFD", "NFKC", "NFKD")

Spans = list[tuple[int, int]]
"""For each character of the result the characters of the source, as begin and end."""

_REMEMBERED = 10_000
"""Stretches of text whose normal form a table keeps."""

# Hangul syllables: a leading consonant, a vowel and perhaps a trailing consonant (The Unicode Standard, section 3.12).
_SYLLABLES, _LEADING, _VOWELS, _TRAILING = 0xAC00, 0x1100, 0x1161, 0x11A7
_VOWEL_COUNT, _TRAILING_COUNT = 21, 28
_FIRST_HANGUL, _LAST_HANGUL = chr(_SYLLABLES), chr(_SYLLABLES + 11171)


def normalize(form: NormalForm, text: str) -> str:
    """The text in a normal form."""
    # Unicode never changes the normal form of a character that is assigned, and Python's tables are newer.  So a text
    # that is normal for Python is normal here.
    return text if text.isascii() or is_normalized(form, text) else _table(form).normalize(text)


def normalize_aligned(form: NormalForm, text: str) -> tuple[str, Spans]:
    """:func:`normalize`, and where each character comes from."""
    if text.isascii() or is_normalized(form, text):
        return text, [(i, i + 1) for i in range(len(text))]
    return _table(form).normalize_aligned(text)


class NormalFormTable:
    """One form.  A text is changed only around characters that decompose, that are marks, or that compose with what is
    before them: each run of these, with the character before it where the form composes, is normalized alone.
    """

    def __init__(self, form: NormalForm) -> None:
        self._composes = form in ("NFC", "NFKC")
        canonical, compatible, pairs = _decompositions()
        self._parts: Mapping[str, str] = {**canonical, **compatible} if form in ("NFKC", "NFKD") else canonical
        self._classes = _classes()
        self._pairs = pairs
        active = self._classes.keys() | self._parts.keys()
        if self._composes:
            # A character that becomes itself again is only part of a run behind which something follows that composes.
            active = active - {
                char for char, parts in self._parts.items() if len(parts) > 1 and self._composed_again(char)
            }
            seconds = {second for _, second in pairs}
            active |= seconds | {char for char, parts in self._parts.items() if parts[0] in seconds}
            active |= {chr(code) for code in range(_VOWELS, _VOWELS + _VOWEL_COUNT)}
            active |= {chr(code) for code in range(_TRAILING + 1, _TRAILING + _TRAILING_COUNT)}
        else:
            active = active | set(map(chr, range(_SYLLABLES, _SYLLABLES + 11172)))
        members = _ranges(active)
        self._run = re.compile(f".?[{members}]+" if self._composes else f"[{members}]+", re.DOTALL)
        self._known: dict[str, str] = {}

    def normalize(self, text: str) -> str:
        """The text in the form."""
        return self._run.sub(self._replacement, text)

    def normalize_aligned(self, text: str) -> tuple[str, Spans]:
        """The same, and where each character comes from."""
        parts: list[str] = []
        spans: Spans = []
        done = 0
        for match in self._run.finditer(text):
            begin, end = match.span()
            parts.append(text[done:begin])
            spans += [(i, i + 1) for i in range(done, begin)]
            place = begin
            for char, change in self._characters(match.group()):
                parts.append(char)
                if change > 0:  # it shares the place of the one before it
                    spans.append((place - 1, place) if place else (0, 0))
                else:
                    spans.append((place, place + 1))
                    place += 1 - change
            done = end
        parts.append(text[done:])
        spans += [(i, i + 1) for i in range(done, len(text))]
        return "".join(parts), spans

    def _replacement(self, match: re.Match[str]) -> str:
        run = match.group()
        result = self._known.get(run)
        if result is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            result = self._known[run] = "".join(char for char, _ in self._characters(run))
        return result

    def _characters(self, run: str) -> list[tuple[str, int]]:
        """The characters of the normal form, each with what it adds to the number of characters (-1: two became it)."""
        ordered = self._decomposed(run)
        return self._recomposed(ordered) if self._composes else ordered

    def _decomposed(self, run: str) -> list[tuple[str, int]]:
        """What the characters become, marks in the order of their classes."""
        found: list[tuple[str, int]] = []
        pending: list[tuple[int, str, int]] = []
        for whole in run:
            for place, char in enumerate(self._parts_of(whole)):
                number = self._classes.get(char, 0)
                if number == 0:
                    found += [(mark, change) for _, mark, change in sorted(pending, key=_class_of_entry)]
                    pending.clear()
                    found.append((char, int(place > 0)))
                else:
                    pending.append((number, char, int(place > 0)))
        return found + [(mark, change) for _, mark, change in sorted(pending, key=_class_of_entry)]

    def _recomposed(self, ordered: list[tuple[str, int]]) -> list[tuple[str, int]]:
        """Each character joined to the last one that is no mark, where they compose and nothing is in between."""
        found: list[tuple[str, int]] = []
        base = -1  # its place in ``found``
        last = -1  # the class of what stands behind it, -1 for nothing
        for char, change in ordered:
            number = self._classes.get(char, 0)
            joined = self._joined(found[base][0], char) if base >= 0 and last < number else None
            if joined is not None:
                found[base] = (joined, found[base][1] + change - 1)
                continue
            found.append((char, change))
            if number == 0:
                base, last = len(found) - 1, -1
            else:
                last = number
        return found

    def _parts_of(self, char: str) -> str:
        parts = self._parts.get(char)
        if parts is not None:
            return parts
        if not _FIRST_HANGUL <= char <= _LAST_HANGUL:
            return char
        syllable, trailing = divmod(ord(char) - _SYLLABLES, _TRAILING_COUNT)
        leading, vowel = divmod(syllable, _VOWEL_COUNT)
        return chr(_LEADING + leading) + chr(_VOWELS + vowel) + (chr(_TRAILING + trailing) if trailing else "")

    def _joined(self, first: str, second: str) -> str | None:
        found = self._pairs.get((first, second))
        if found is not None:
            return found
        left, right = ord(first), ord(second)
        if 0 <= left - _LEADING < 19 and 0 <= right - _VOWELS < _VOWEL_COUNT:
            return chr(_SYLLABLES + ((left - _LEADING) * _VOWEL_COUNT + right - _VOWELS) * _TRAILING_COUNT)
        is_open = _FIRST_HANGUL <= first <= _LAST_HANGUL and (left - _SYLLABLES) % _TRAILING_COUNT == 0
        if is_open and 0 < right - _TRAILING < _TRAILING_COUNT:
            return chr(left + right - _TRAILING)
        return None

    def _composed_again(self, char: str) -> bool:
        return "".join(part for part, _ in self._recomposed(self._decomposed(char))) == char


def _class_of_entry(entry: tuple[int, str, int]) -> int:
    return entry[0]


@lru_cache(maxsize=4)
def _table(form: NormalForm) -> NormalFormTable:
    return NormalFormTable(form)


@lru_cache(maxsize=1)
def _decompositions() -> tuple[dict[str, str], dict[str, str], dict[tuple[str, str], str]]:
    """What characters become canonically and for compatibility, and what two characters compose to."""
    canonical: dict[str, str] = {}
    compatible: dict[str, str] = {}
    composing: list[str] = []
    for item in _items(DECOMPOSITIONS):
        char, kind, parts = item[0], item[1], item[2:]
        (compatible if kind == "K" else canonical)[char] = parts
        if kind == "C":
            composing.append(char)
    # The pair of a character is its last part and what composes to the others, which has fewer parts.
    whole = {canonical[char]: char for char in composing}
    pairs = {}
    for char in composing:
        first, second = canonical[char][:-1], canonical[char][-1]
        pairs[whole.get(first, first), second] = char
    return canonical, compatible, pairs


@lru_cache(maxsize=1)
def _classes() -> dict[str, int]:
    """The combining class of each mark."""
    return {char: ord(item[0]) for item in _items(CLASSES) for char in item[1:]}


def _items(packed: str) -> list[str]:
    return zlib.decompress(b85decode(packed)).decode().split("\0")[:-1]


def _ranges(chars: set[str]) -> str:
    """The inside of a regex's class."""
    codes = sorted(map(ord, chars))
    begins = [code for code, before in zip(codes, [-2, *codes], strict=False) if code != before + 1]
    ends = [code for code, after in zip(codes, [*codes[1:], -2], strict=True) if code + 1 != after]
    return "".join(f"\\U{begin:08x}-\\U{end:08x}" for begin, end in zip(begins, ends, strict=True))
