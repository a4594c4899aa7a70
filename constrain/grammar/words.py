"""What a lexeme is called in front of a person, and what of it is still to come.

A front-end gives its lexemes names, and the engine knows how far each has been read.  A *describer* makes words of
both; :func:`by_name` is that of a grammar whose lexemes have names of their own, :func:`by_language` that of one whose
lexemes have not.  A front-end with words of its own (JSON Schema) has its own describer.

Everything here is for messages: it is bounded, and where a language is too involved to be put in words, it names the
characters that may come next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from constrain.grammar.languages.derivatives import has_empty_string
from constrain.grammar.languages.quotation import Quotation
from constrain.grammar.languages.regular import ByteSet, Complement, Concat, Intersect, Literal, Regular, Repeat, Union

# At most so many strings are listed, of so many bytes, and so many parts of an expression looked at.
_WORDS, _LONGEST, _PARTS = 8, 60, 300
_PRINTABLE = range(0x20, 0x7F)
_ASCII = (1 << 128) - 1
# Bytes that begin a character beyond ASCII, and those that only continue one.
_LEADING = sum(1 << byte for byte in range(0xC2, 0xF5))


class Words(NamedTuple):
    """How to say what may come: one of ``texts``, which are of one ``kind`` (empty if there is no word for it)."""

    kind: str
    texts: tuple[str, ...]


class Progress(NamedTuple):
    """A lexeme that may begin or go on at some place.

    Attributes
    ----------
    name : str
        What the front-end calls it; may be empty.
    lexeme : Regular
        All of it, as the front-end built it.
    rest : Regular or None
        What of it may still come; None where that is too large to search.
    begun : bool
        Whether some of it has been read, blanks in front of it aside.
    first : int
        The bytes that may come next, a set of 256 bits.
    """

    name: str
    lexeme: Regular
    rest: Regular | None
    begun: bool
    first: int


Describer = Callable[[Progress], Words]


def by_name(progress: Progress) -> Words:
    """The lexeme's own name, if it has one; once it has begun, what may come next of it as well."""
    if not progress.name:
        return by_language(progress)
    if not progress.begun:
        return Words("", (progress.name,))
    return Words("", (f"{next_words(progress)} (more of {progress.name})",))


def by_language(progress: Progress) -> Words:
    """What may come next, as strings or characters."""
    words = _more(progress.rest) if progress.rest else []
    return Words("", tuple(map(quote, words)) or (next_words(progress),))


def next_words(progress: Progress) -> str:
    """The strings that may come next, if they are few; else what they begin with."""
    if progress.rest is None:
        return characters(progress.first)
    words = _more(progress.rest)
    if words:
        return either(map(quote, words))
    strings, bits = _beginnings(progress.rest, progress.first)
    by_first: dict[int, list[bytes]] = {}
    for data in strings:
        by_first.setdefault(data[0], []).append(data)
    if len(by_first) > _WORDS:
        bits |= sum(1 << byte for byte in by_first)
    parts = [quote(_common_beginning(some)) for byte, some in by_first.items() if not bits >> byte & 1]
    return either([*parts, *_character_words(bits)] if bits else parts) or characters(progress.first)


def _more(rest: Regular) -> list[bytes]:
    """What may still come of a lexeme, if it is few strings; without the empty one, which is no word for its end."""
    return [data for data in few_strings(rest) if data]


def either(words: Iterable[str]) -> str:
    """``a``, ``a or b``, ``a, b or c``; each once."""
    once = list(dict.fromkeys(words))
    return once[0] if len(once) == 1 else f"{', '.join(once[:-1])} or {once[-1]}" if once else ""


def quote(data: bytes) -> str:
    """Some text between quotes, what cannot be printed escaped, and cut where it is long."""
    cut = data[:_LONGEST]
    try:
        text = cut.decode()
    except UnicodeDecodeError as error:
        if error.start == 0:
            return "byte" + "s" * (len(cut) > 1) + "".join(f" 0x{byte:02x}" for byte in cut[:4])
        text = cut[: error.start].decode()
        if error.reason != "unexpected end of data" and len(data) <= _LONGEST:
            return ascii(cut)[1:]
    return repr(text) + ("..." if len(data) > _LONGEST else "")


def printable(text: str) -> str:
    """A text with escapes for what cannot be printed, which a terminal might obey."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _common_beginning(strings: list[bytes]) -> bytes:
    low, high = min(strings), max(strings)
    same = next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))
    return low[:same]


def characters(bits: int) -> str:
    """A set of bytes as the characters that they are, or that they begin."""
    return either(_character_words(bits))


def _character_words(bits: int) -> list[str]:
    beyond = bits & ~_ASCII
    inside = [byte for byte in range(128) if bits >> byte & 1]
    missing = [byte for byte in _PRINTABLE if not bits >> byte & 1]
    if not inside:
        return ["a character beyond ASCII" if beyond & _LEADING else "the rest of a character"]
    if len(missing) <= 8 and beyond & _LEADING:
        return ["any character" + (" but " + either(repr(chr(byte)) for byte in missing) if missing else "")]
    if len(inside) <= 3:
        parts = [repr(chr(byte)) for byte in inside]
    else:
        parts = ["[" + "".join(_ranges(inside)) + "]"]
    return [*parts, "a character beyond ASCII"] if beyond else parts


def _ranges(members: list[int]) -> Iterable[str]:
    begin = 0
    for i in range(1, len(members) + 1):
        if i < len(members) and members[i] == members[i - 1] + 1:
            continue
        run = members[begin:i]
        yield from map(_in_class, run if len(run) < 3 else (run[0], None, run[-1]))
        begin = i


def _in_class(byte: int | None) -> str:
    if byte is None:
        return "-"
    return "\\" + chr(byte) if chr(byte) in "[]\\-^" else repr(chr(byte))[1:-1]


def few_strings(language: Regular, most: int = _WORDS) -> list[bytes]:
    """All strings of a language if there are at most ``most``, and no long ones; else none at all."""
    budget = [_PARTS]

    def strings(node: Regular) -> list[bytes] | None:
        budget[0] -= 1
        if budget[0] < 0:
            return None
        if isinstance(node, Literal):
            return [node.data]
        if isinstance(node, ByteSet):
            members = [bytes((byte,)) for byte in range(256) if node.bits >> byte & 1]
            return members if len(members) <= most else None
        if isinstance(node, Quotation) and node.is_long:
            return None
        if isinstance(node, Union):
            found: dict[bytes, None] = {}
            for part in node.parts:
                some = strings(part)
                if some is None or len(found) + len(some) > 2 * most:
                    return None
                found.update(dict.fromkeys(some))
            return list(found) if len(found) <= most else None
        if isinstance(node, Concat):
            return product(node.parts)
        if isinstance(node, Repeat) and node.high is not None and node.high <= _LONGEST:
            counts = [product((node.item,) * count) for count in range(node.low, node.high + 1)]
            flat = {string: None for some in counts if some is not None for string in some}
            return list(flat) if None not in counts and len(flat) <= most else None
        return None

    def product(parts: tuple[Regular, ...]) -> list[bytes] | None:
        result = [b""]
        for part in parts:
            some = strings(part)
            if some is None or len(some) * len(result) > most:
                return None
            result = [left + right for left in result for right in some]
            if len(result[0]) > 4 * _LONGEST:
                return None
        return result

    return strings(language) or []


def _beginnings(language: Regular, first: int) -> tuple[list[bytes], int]:
    """What the strings of a language begin with: literals, and a set of bytes."""
    literals: dict[bytes, None] = {}
    bits = 0
    stack = [language]
    for _ in range(_PARTS):
        if not stack:
            return list(literals), bits
        node = stack.pop()
        if isinstance(node, Literal):
            if len(node.data) > 1:
                literals[node.data] = None
            elif node.data:
                bits |= 1 << node.data[0]
        elif isinstance(node, ByteSet):
            bits |= node.bits
        elif isinstance(node, Quotation) and node.is_long:
            return [], first
        elif isinstance(node, Union):
            stack.extend(reversed(node.parts))
        elif isinstance(node, Concat):
            until = next((i for i, part in enumerate(node.parts) if not has_empty_string(part)), len(node.parts) - 1)
            stack.extend(reversed(node.parts[: until + 1]))
        elif isinstance(node, Repeat):
            stack.append(node.item)
        elif isinstance(node, (Intersect, Complement)):
            return [], first
    return [], first
