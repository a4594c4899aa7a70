"""Steps of normalization: text to text, and for offsets, where each character came from.

Each step works on one stretch of text between added tokens.  SentencePiece's own normalization is in
:mod:`constrain.tokenizers.normalizing.charsmap`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from constrain.errors import TokenizerError
from constrain.tokenizers.byte_alphabet import bytes_to_text
from constrain.tokenizers.normalizing.normal_forms import NormalForm, Spans, normalize, normalize_aligned
from constrain.tokenizers.splitting.stages import RegexStage, split_in_stages

_GROWTH, _FREE = 256, 10_000_000
"""All steps together may make so many characters of each of a text, and so many more."""


def _check_made(made: int, text: str) -> None:
    """Refuse steps that double a text again and again."""
    if made > _GROWTH * len(text) + _FREE:
        raise TokenizerError(f"the normalizer makes more than {_GROWTH} characters of each of this text")


class TextStep(ABC):
    """One step."""

    @abstractmethod
    def apply(self, text: str, first: bool) -> str:
        """The result; ``first``: the stretch is at the beginning of the text."""

    @abstractmethod
    def align(self, text: str, first: bool) -> tuple[str, Spans]:
        """The same, and where each character came from."""


@dataclass(frozen=True)
class Form(TextStep):
    """A Unicode normalization form."""

    form: NormalForm

    def apply(self, text: str, first: bool) -> str:
        return normalize(self.form, text)

    def align(self, text: str, first: bool) -> tuple[str, Spans]:
        return normalize_aligned(self.form, text)


@dataclass(frozen=True)
class Prepend(TextStep):
    """Puts something in front of a stretch that is not empty.

    ``when``: "always", or "first" (in front of the first stretch only); ``unless_there``: not if it is there already.
    """

    content: str
    when: Literal["always", "first"] = "always"
    unless_there: bool = False

    def apply(self, text: str, first: bool) -> str:
        if not text or (self.when == "first" and not first) or (self.unless_there and text.startswith(self.content)):
            return text
        return self.content + text

    def align(self, text: str, first: bool) -> tuple[str, Spans]:
        result = self.apply(text, first)
        added = len(result) - len(text)
        # What is put in front comes from the character behind it, as in the reference.
        return result, [(0, 1)] * added + [(i, i + 1) for i in range(len(text))]


@dataclass(frozen=True)
class ByteAlphabet(TextStep):
    """Writes each byte as its character in the byte-level alphabet (byte_alphabet.py)."""

    def apply(self, text: str, first: bool) -> str:
        return bytes_to_text(text.encode())

    def align(self, text: str, first: bool) -> tuple[str, Spans]:
        spans = [(place, place + 1) for place, char in enumerate(text) for _ in char.encode()]
        return self.apply(text, first), spans


@dataclass(frozen=True)
class Steps(TextStep):
    """Several steps one after the other."""

    steps: tuple[TextStep, ...]

    def apply(self, text: str, first: bool) -> str:
        return apply_steps(self.steps, text, first)

    def align(self, text: str, first: bool) -> tuple[str, Spans]:
        return align_steps(self.steps, text, first)


@dataclass(frozen=True)
class Replace(TextStep):
    """Replaces a string wherever it stands.  What it becomes comes from the last character, as in the reference."""

    old: str
    new: str

    def apply(self, text: str, first: bool) -> str:
        if not self.old:
            return text
        _check_made(text.count(self.old) * len(self.new), text)
        return text.replace(self.old, self.new)

    def align(self, text: str, first: bool) -> tuple[str, Spans]:
        replaced = self.apply(text, first)
        spans: Spans = []
        place = 0
        while place < len(text):
            if self.old and text.startswith(self.old, place):
                place += len(self.old)
                spans += [(place - 1, place)] * len(self.new)
            else:
                spans.append((place, place + 1))
                place += 1
        return replaced, spans


@dataclass(frozen=True)
class ReplaceRegex(TextStep):
    """Replaces the matches of a regex (the dialect of :mod:`constrain.tokenizers.splitting.regex`)."""

    regex: str
    new: str

    def apply(self, text: str, first: bool) -> str:
        parts = self._parts(text)
        _check_made(sum(hit for _, hit in parts) * len(self.new), text)
        return "".join(self.new if hit else part for part, hit in parts)

    def align(self, text: str, first: bool) -> tuple[str, Spans]:
        replaced = self.apply(text, first)
        spans: Spans = []
        place = 0
        for part, hit in self._parts(text):
            after = place + len(part)
            spans += [(after - 1, after)] * len(self.new) if hit else [(i, i + 1) for i in range(place, after)]
            place = after
        return replaced, spans

    def _parts(self, text: str) -> list[tuple[str, bool]]:
        data = np.frombuffer(bytearray(text.encode("utf-8")), dtype=np.uint8)
        # The bytes that a split at the matches would leave over; neighbouring matches are told apart by its ends.
        kept = split_in_stages(data, [RegexStage(self.regex, "Removed", oniguruma=True)])
        if kept.origin is None:
            return [(text, False)] if text else []
        whole = split_in_stages(data, [RegexStage(self.regex, "Isolated", oniguruma=True)])
        left = np.zeros(len(data), dtype=np.bool_)
        left[kept.origin] = True
        raw = data.tobytes()
        begins = [0, *whole.ends.tolist()[:-1]]
        return [
            (raw[begin:end].decode(), not left[begin]) for begin, end in zip(begins, whole.ends.tolist(), strict=True)
        ]


@dataclass(frozen=True)
class Strip(TextStep):
    """Removes white space at the ends."""

    left: bool = True
    right: bool = True

    def apply(self, text: str, first: bool) -> str:
        begin, end = self._bounds(text)
        return text[begin:end]

    def align(self, text: str, first: bool) -> tuple[str, Spans]:
        begin, end = self._bounds(text)
        return text[begin:end], [(i, i + 1) for i in range(begin, end)]

    def _bounds(self, text: str) -> tuple[int, int]:
        begin, end = 0, len(text)
        while self.left and begin < end and is_white_space(text[begin]):
            begin += 1
        while self.right and begin < end and is_white_space(text[end - 1]):
            end -= 1
        return begin, end


@dataclass(frozen=True)
class MarkWords(TextStep):
    """Removes white space and puts a marker in front of each word that has none."""

    marker: str

    def apply(self, text: str, first: bool) -> str:
        return self.align(text, first)[0]

    def align(self, text: str, first: bool) -> tuple[str, Spans]:
        out: list[str] = []
        spans: Spans = []
        inside = False
        for place, char in enumerate(text):
            if is_white_space(char):
                inside = False
                continue
            if not inside and char != self.marker:
                out.append(self.marker)
                spans.append((place, place))
            inside = True
            out.append(char)
            spans.append((place, place + 1))
        return "".join(out), spans


class CharTable(TextStep):
    """Replaces single characters; :meth:`replacement` says by what, and is asked once for each."""

    def __init__(self) -> None:
        self._known = _Known(self)

    @abstractmethod
    def replacement(self, char: str) -> str:
        """What a character becomes."""

    def apply(self, text: str, first: bool) -> str:
        return text.translate(self._known)

    def align(self, text: str, first: bool) -> tuple[str, Spans]:
        parts = [self._known[ord(char)] for char in text]
        spans = [(place, place + 1) for place, part in enumerate(parts) for _ in part]
        return "".join(parts), spans

    def __reduce__(self) -> tuple[type[CharTable], tuple[object, ...]]:
        return type(self), self._arguments()

    def _arguments(self) -> tuple[object, ...]:
        return ()


class _Known(dict[int, str]):
    def __init__(self, table: CharTable) -> None:
        self._table = table

    def __missing__(self, code: int) -> str:
        result = self[code] = self._table.replacement(chr(code))
        return result


def apply_steps(steps: Sequence[TextStep], text: str, first: bool) -> str:
    """All steps one after the other."""
    whole, made = text, 0
    for step in steps:
        text = step.apply(text, first)
        made += len(text)
        _check_made(made, whole)
    return text


def align_steps(steps: Sequence[TextStep], text: str, first: bool) -> tuple[str, Spans]:
    """The same, and for each character of the result the characters of ``text``."""
    spans: Spans = [(i, i + 1) for i in range(len(text))]
    whole, made = text, 0
    for step in steps:
        text, inner = step.align(text, first)
        made += len(text)
        _check_made(made, whole)
        last = spans[-1][1] if spans else 0
        spans = [
            (spans[begin][0] if begin < len(spans) else last, spans[end - 1][1])
            if end > begin
            else ((spans[begin][0],) * 2 if begin < len(spans) else (last, last))
            for begin, end in inner
        ]
    return text, spans


def is_white_space(char: str) -> bool:
    """Whether a character has the property White_Space, which differs from ``str.isspace`` in U+001C to U+001F."""
    return char.isspace() and char not in "\x1c\x1d\x1e\x1f"
