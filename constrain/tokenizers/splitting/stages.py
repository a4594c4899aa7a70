"""Pre-tokenizers that are sequences of splits, as data: what ``tokenizer.json`` and GGUF files ask for.

Each stage cuts the pieces of the one before, and a pattern sees one piece at a time: its lookahead ends where
the piece ends, as in the reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from constrain.errors import TokenizerError
from constrain.tokenizers.byte_alphabet import CHARACTER_OF_BYTE
from constrain.tokenizers.splitting import machine
from constrain.tokenizers.splitting.patterns import SplitPattern, regex_of
from constrain.tokenizers.splitting.programs import SplitProgram, compile_split

BEHAVIORS = ("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous")
"""What becomes of a match, by the names of ``tokenizer.json``; the place is the number that kernels use."""


@dataclass(frozen=True)
class RegexStage:
    """Cuts at the matches of a regex.

    ``behavior`` is one of :data:`BEHAVIORS`; with ``invert`` it is about what lies between matches.
    ``oniguruma``: the regex is read as in Oniguruma, see :mod:`constrain.tokenizers.splitting.regex`.
    """

    regex: str
    behavior: str = "Isolated"
    invert: bool = False
    oniguruma: bool = False

    def __post_init__(self) -> None:
        if self.behavior not in BEHAVIORS:
            raise TokenizerError(f"split behavior {self.behavior!r} is not supported; known: {', '.join(BEHAVIORS)}")

    def check(self) -> None:
        """Raise :class:`TokenizerError` if the regex is not supported.  Without this check the first use raises it."""
        _program(self.regex, self.oniguruma)

    def is_same_in_oniguruma(self) -> bool:
        """Whether Oniguruma reads the regex as it is read here."""
        if self.oniguruma:
            return True
        try:
            here, there = _program(self.regex, False), _program(self.regex, True)
        except TokenizerError:
            return False
        return all(np.array_equal(*pair) for pair in zip(here.arrays(), there.arrays(), strict=True))

    def arguments(self) -> dict[str, Any]:
        """What :func:`~constrain.tokenizers.splitting.machine.split_stage` asks for about the stage, by name."""
        program = _program(self.regex, self.oniguruma)
        return {
            "classes": program.classes,
            "code": program.code,
            "sets": program.sets,
            "behavior": BEHAVIORS.index(self.behavior),
            "invert": self.invert,
        }


@dataclass(frozen=True)
class ByteAlphabetStage:
    """A stage that sees each byte as its character in the byte-level alphabet."""

    stage: SplitPattern | RegexStage


class Rewriter(Protocol):
    """What changes the text of a piece, such as a :class:`~constrain.tokenizers.normalizing.text_steps.TextStep`."""

    def align(self, text: str, first: bool) -> tuple[str, list[tuple[int, int]]]:
        """The new text, and for each of its characters the characters of the old one that it comes from."""
        ...


@dataclass(frozen=True)
class RewriteStage:
    """Changes the text of each piece, and cuts nothing; for pre-tokenizers that write markers or bytes between splits.

    It is Python for each piece, where the other stages are kernels.
    """

    rewriter: Rewriter


@dataclass(frozen=True)
class LengthStage:
    """Cuts pieces of so many characters."""

    length: int


@dataclass(frozen=True)
class PrefixStage:
    """Puts a blank in front of each piece that does not begin with one, and cuts nothing."""


Stage = SplitPattern | RegexStage | ByteAlphabetStage | RewriteStage | LengthStage | PrefixStage


class Pieces(NamedTuple):
    """Text cut in pieces.

    Attributes
    ----------
    data : uint8[n]
        UTF-8, without what was removed.
    ends : int32[p]
        The end of each piece.
    origin : int64[n] or None
        Where each byte was before something was removed or put in front; None if nothing was.  A blank in front of a
        piece comes from the byte behind it, as in the reference.
    characters : (int64[n], int64[n]) or None
        Where something was rewritten: the first character of the text that each byte comes from, and the one behind
        the last.
    """

    data: npt.NDArray[np.uint8]
    ends: npt.NDArray[np.int32]
    origin: npt.NDArray[np.int64] | None = None
    characters: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None = None


def split_in_stages(data: npt.NDArray[np.uint8], stages: Sequence[Stage], first: int = 1) -> Pieces:
    """Apply the stages one after the other; without any the text is one piece.

    ``first``: how many characters of the text come from the first character of the whole text; some rewriting asks
    whether a piece does.
    """
    ends = np.full(min(1, len(data)), len(data), dtype=np.int32)
    keeps = np.ones(len(ends), dtype=np.bool_)
    characters: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None = None
    source, origin = data, np.arange(len(data))
    for stage in stages:
        if isinstance(stage, RewriteStage):
            if characters is None:
                begins = (np.cumsum((source & 0xC0) != 0x80) - 1)[origin]
                characters = begins, begins + 1
            data, ends, characters = _rewrite(data, ends, keeps, characters, stage.rewriter, first)
            keeps = np.ones(len(ends), dtype=np.bool_)
        elif isinstance(stage, PrefixStage):
            blanks, ends = _places_of_blanks(data, ends, keeps)
            data = np.insert(data, blanks, 0x20)
            if characters is None:
                origin = np.insert(origin, blanks, origin[blanks])
            else:
                begins, behind = characters
                characters = np.insert(begins, blanks, begins[blanks]), np.insert(behind, blanks, behind[blanks])
        elif isinstance(stage, ByteAlphabetStage):
            written, places = _in_byte_alphabet(data)
            ends, keeps = _split(written, places[ends], keeps, stage.stage)
            ends = (np.searchsorted(places, ends)).astype(np.int32)
        else:
            ends, keeps = _split(data, ends, keeps, stage)
    if keeps.all():
        return Pieces(data, ends, None if characters is not None or len(origin) == len(source) else origin, characters)
    lengths = np.diff(ends, prepend=0)
    kept = np.flatnonzero(np.repeat(keeps, lengths))
    kept_ends = np.cumsum(lengths[keeps]).astype(np.int32)
    if characters is not None:
        return Pieces(data[kept], kept_ends, None, (characters[0][kept], characters[1][kept]))
    return Pieces(data[kept], kept_ends, origin[kept])


def _places_of_blanks(
    data: npt.NDArray[np.uint8], ends: npt.NDArray[np.int32], keeps: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Where the pieces begin that get a blank in front, and where all pieces end with these."""
    begins = np.concatenate(([0], ends[:-1])).astype(np.int64)[: len(ends)]
    gets = keeps & (data[begins] != 0x20)
    return begins[gets], (ends + np.cumsum(gets)).astype(np.int32)


def _rewrite(
    data: npt.NDArray[np.uint8],
    ends: npt.NDArray[np.int32],
    keeps: npt.NDArray[np.bool_],
    characters: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]],
    rewriter: Rewriter,
    first: int,
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32], tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """The pieces that are kept with their new text; pieces that become empty are dropped."""
    raw = data.tobytes()
    texts: list[str] = []
    new_ends: list[int] = []
    spans: tuple[list[int], list[int]] = [], []
    length = begin = 0
    for end, keep in zip(ends.tolist(), keeps.tolist(), strict=True):
        if keep:
            old = raw[begin:end].decode()
            at = begin + np.cumsum([0, *(len(char.encode()) for char in old)])
            text, origins = rewriter.align(old, int(characters[0][begin]) < first)
            texts.append(text)
            for char, (left, right) in zip(text, origins, strict=True):
                size = len(char.encode())
                low = int(characters[0][at[left]]) if left < len(old) else int(characters[1][end - 1])
                high = int(characters[1][at[right] - 1]) if right > left else low
                spans[0].extend([low] * size)
                spans[1].extend([high] * size)
                length += size
            if text:
                new_ends.append(length)
        begin = end
    made = np.frombuffer(bytearray("".join(texts).encode()), dtype=np.uint8)
    found = np.array(spans[0], dtype=np.int64), np.array(spans[1], dtype=np.int64)
    return made, np.array(new_ends, dtype=np.int32), found


def _split(
    data: npt.NDArray[np.uint8], ends: npt.NDArray[np.int32], keeps: npt.NDArray[np.bool_], stage: Stage
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
    if isinstance(stage, RegexStage):
        return _split_by_regex(data, ends, keeps, stage)
    if isinstance(stage, LengthStage):
        return _split_by_length(data, ends, keeps, stage.length)
    assert isinstance(stage, SplitPattern)
    if len(ends) == 1 and keeps[0]:
        ends = stage.ends(data)
        return ends, np.ones(len(ends), dtype=np.bool_)
    # A scanner works on a whole text.  For several pieces the regex that it stands for is as good.
    return _split_by_regex(data, ends, keeps, RegexStage(regex_of(stage)))


def _in_byte_alphabet(data: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32]]:
    """The text that the bytes are written as, and the place in it of each byte and of the end."""
    codes = np.array([ord(char) for char in CHARACTER_OF_BYTE], dtype=np.int64)[data]
    places = np.zeros(len(data) + 1, dtype=np.int32)
    np.cumsum(1 + (codes >= 0x80), out=places[1:])
    written = np.empty(int(places[-1]), dtype=np.uint8)
    wide = codes >= 0x80
    written[places[:-1]] = np.where(wide, 0xC0 | codes >> 6, codes)
    written[places[:-1][wide] + 1] = 0x80 | codes[wide] & 0x3F
    return written, places


def _split_by_length(
    data: npt.NDArray[np.uint8], ends: npt.NDArray[np.int32], keeps: npt.NDArray[np.bool_], length: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
    """Every ``length`` characters of a piece that is kept are one, and so is what is left of it."""
    begins = np.append(np.flatnonzero((data & 0xC0) != 0x80), len(data))
    places = np.searchsorted(begins, ends)
    new_ends: list[int] = []
    new_keeps: list[bool] = []
    before = 0
    for end, keep in zip(places.tolist(), keeps.tolist(), strict=True):
        cuts = [*range(before + length, end, length), end] if keep else [end]
        new_ends += begins[cuts].tolist()
        new_keeps += [keep] * len(cuts)
        before = end
    return np.array(new_ends, dtype=np.int32), np.array(new_keeps, dtype=np.bool_)


def _split_by_regex(
    data: npt.NDArray[np.uint8], ends: npt.NDArray[np.int32], keeps: npt.NDArray[np.bool_], stage: RegexStage
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
    new_ends = np.empty(len(data), dtype=np.int32)
    new_keeps = np.empty(len(data), dtype=np.bool_)
    count = machine.split_stage(data, ends, keeps, *stage.arguments().values(), new_ends, new_keeps)
    if count == machine.TOO_MANY_STEPS:
        raise TokenizerError(f"split pattern {stage.regex[:200]!r} takes too many steps on this text")
    return new_ends[:count], new_keeps[:count]


@lru_cache(maxsize=64)
def _program(regex: str, oniguruma: bool) -> SplitProgram:
    return compile_split(regex, oniguruma)
