"""A-labels: labels of host names in Punycode (RFC 3492), such as ``xn--bcher-kva``, and what they stand for (RFC 5891).

An A-label is valid if it decodes to a U-label (:mod:`~.labels`).  Whether what was written of one can still become
valid is known far from the end of its 63 octets: what is there can always be taken for the ASCII part of some label.
Near the end ways on are tried: those, and each digit, which finds one but for labels that would need more to be put
right.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from string import ascii_lowercase, digits
from typing import NamedTuple

from constrain.grammar.json_schema.lexical.idn.labels import is_u_label, kind_of

PREFIX = "xn--"
MAX_LABEL = 63

OCTETS = "-" + digits + ascii_lowercase
"""What may stand behind the prefix, but for capitals, which mean the same."""

ROOM = 12
"""With room for so many octets more, whatever was written can become an A-label.

A letter ends an ASCII part that ends with a hyphen, and a hyphen divides it from the rest; three digits put a ``ß``
where it is needed, at the beginning or between two hyphens, and two digits each another one.
"""

_BASE, _LEAST, _MOST, _SKEW, _DAMP, _BIAS, _FIRST = 36, 1, 26, 38, 700, 72, 0x80

# How many more digits are tried, each of them; at the beginning of a label so many as the first number takes.
_TRIED, _TRIED_FIRST = 1, 3


class _Decoder(NamedTuple):
    """After some digits; see section 6.2 of RFC 3492."""

    characters: tuple[str, ...]
    point: int
    inserted: int
    bias: int
    before: int
    """``inserted`` before the number that is being read."""
    weight: int
    position: int

    @property
    def is_whole(self) -> bool:
        """Whether no number is being read."""
        return self.weight == 1

    def after(self, digit: int) -> _Decoder | None:
        """The state after a digit (0 to 35); None if no label has what comes out."""
        index = self.inserted + digit * self.weight
        size = len(self.characters) + 1
        point = self.point + index // size
        if point > 0x10FFFF:
            return None
        threshold = min(max(self.position - self.bias, _LEAST), _MOST)
        if digit >= threshold:
            weight = self.weight * (_BASE - threshold)
            return self._replace(inserted=index, weight=weight, position=self.position + _BASE)
        if kind_of(point) is None:
            return None
        bias = _adapted(index - self.before, size, self.before == 0)
        index %= size
        characters = (*self.characters[:index], chr(point), *self.characters[index:])
        return _Decoder(characters, point, index + 1, bias, index + 1, 1, _BASE)


_DIGITS = {octet: value for value, octet in enumerate(ascii_lowercase + digits)}


@lru_cache(maxsize=10_000)
def _decode(text: str) -> _Decoder | None:
    """What Punycode (in small letters) stands for so far; None if it is not Punycode, nor will be by more digits."""
    basic, hyphen, rest = text.rpartition("-")
    if hyphen and not basic:
        return None
    if rest:
        before = _decode(text[:-1])
        return None if before is None else before.after(_DIGITS[rest[-1]])
    return _Decoder(tuple(basic), _FIRST, 0, _BIAS, 0, 1, _BASE)


def _adapted(delta: int, size: int, is_first: bool) -> int:
    delta = delta // _DAMP if is_first else delta // 2
    delta += delta // size
    steps = 0
    while delta > ((_BASE - _LEAST) * _MOST) // 2:
        delta //= _BASE - _LEAST
        steps += _BASE
    return steps + (_BASE - _LEAST + 1) * delta // (delta + _SKEW)


@lru_cache(maxsize=10_000)
def _is_label(characters: tuple[str, ...]) -> bool:
    label = "".join(characters)
    if label.isascii() or not unicodedata.is_normalized("NFC", label):
        return False
    return is_u_label(label, False) or is_u_label(label, True)


def is_valid(tail: str) -> bool:
    """Whether an A-label is valid, given what stands behind its prefix, in small letters."""
    if not tail or len(tail) > MAX_LABEL - len(PREFIX):
        return False
    decoded = _decode(tail)
    return decoded is not None and decoded.is_whole and _is_label(decoded.characters)


@lru_cache(maxsize=10_000)
def next_octets(tail: str, room: int) -> str:
    """The octets with which an A-label may go on that has ``room`` for so many more."""
    if room > ROOM:
        return OCTETS
    return "".join(octet for octet in OCTETS if room > 0 and _can_be_completed(tail + octet, room - 1))


@lru_cache(maxsize=50_000)
def _can_be_completed(tail: str, room: int) -> bool:
    if is_valid(tail) or _missing(tail) <= room:
        return True
    part, hyphen, rest = tail.rpartition("-")
    if hyphen and _missing(part) <= len(rest) + 1 + room:
        # The digits of a label that was in view when the hyphen was written.
        if any(whole.startswith(tail) and len(whole) <= len(tail) + room for whole in _completions(part)):
            return True
    decoded = _decode(tail)
    return decoded is not None and _can_be_continued(
        decoded, min(room, _TRIED if len(tail) > _TRIED_FIRST else _TRIED_FIRST)
    )


def _can_be_continued(decoded: _Decoder, room: int) -> bool:
    """Whether some more digits make an A-label."""
    for digit in range(_BASE) if room else ():
        then = decoded.after(digit)
        if then is not None and ((then.is_whole and _is_label(then.characters)) or _can_be_continued(then, room - 1)):
            return True
    return False


def _missing(part: str) -> int:
    """How many octets are missing to an A-label, if what is there is taken for its ASCII part."""
    # It only matters where there are hyphens that must not be there.
    shape = "".join("-" if character == "-" else "a" for character in part)
    return _missing_of(shape[:4], shape[-1:], len(part))


@lru_cache(maxsize=2048)
def _missing_of(begin: str, end: str, size: int) -> int:
    part = begin + "a" * (size - len(begin) - 1) + end if size > len(begin) else begin
    return min((len(whole) - size for whole in _completions(part)), default=MAX_LABEL)


@lru_cache(maxsize=1000)
def _completions(part: str) -> list[str]:
    """A-labels with an ASCII part, and ``ß`` where it may be needed."""
    found: list[str] = []
    for ascii_part in (part, part + "a"):
        begin, third = "ß" + ascii_part, ascii_part[:2] + "ß" + ascii_part[2:]
        labels = (ascii_part + "ß", begin, begin + "ß", third, third + "ß", "ß" + third, "ß" + third + "ß")
        found += map(encode, labels)
    return [whole for whole in found if is_valid(whole)]


def encode(label: str) -> str:
    """The Punycode of a label."""
    return label.encode("punycode").decode("ascii")
