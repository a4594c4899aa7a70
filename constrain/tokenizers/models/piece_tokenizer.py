"""Tokenizers that normalize text, cut it in stages and hand the pieces to a model.

All kinds but byte-level BPE: SentencePiece's two, their counterparts in ``tokenizer.json``, and WordPiece.  They share
how a text is cut at added tokens, how ids become bytes, and how offsets are found again afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from constrain.errors import TokenizerError
from constrain.tokenizers.added_tokens import AddedToken, AddedTokenFinder, Permits, moved
from constrain.tokenizers.arguments import check_token_ids, checked_text, utf8_of
from constrain.tokenizers.base import Encoding, EncodingSource
from constrain.tokenizers.models.piece_model import PieceModel
from constrain.tokenizers.normalizing.charsmap import Charsmap
from constrain.tokenizers.normalizing.normal_forms import Spans
from constrain.tokenizers.normalizing.precompiled import Precompiled
from constrain.tokenizers.normalizing.text_steps import Prepend, Steps, TextStep, align_steps, apply_steps
from constrain.tokenizers.short.texts import ShortKernel, ShortTextTokenizer
from constrain.tokenizers.special_text import Reading
from constrain.tokenizers.special_tokens import SpecialTokens
from constrain.tokenizers.splitting.stages import Pieces, RewriteStage, Stage, split_in_stages


@dataclass(frozen=True)
class PieceVocabulary:
    """What ids stand for.

    Attributes
    ----------
    texts : dict of int to str
        Every token as the vocabulary writes it.
    data : dict of int to bytes
        What the tokens that stand for text add to it.
    added : sequence of AddedToken
        Tokens found in a text before anything else.  Those that are not in ``texts`` or ``data`` are spelled, and stand
        for, their content.
    silent : sequence of AddedToken
        Special tokens that are found in a text only where the caller asks for special tokens.
    special_ids : frozenset of int
        Tokens that stand for no text, whether they are found in text or not.
    shown : dict of int to bytes
        What ``decode`` writes for tokens that stand for no text, special ones only where they are not skipped; by
        default a special token is written as it is spelled.
    first_forms : dict of int to bytes
        See :attr:`constrain.tokenizers.base.Tokenizer.first_forms`.
    size : int
        The least ``vocab_size``.
    """

    texts: dict[int, str]
    data: dict[int, bytes]
    added: Sequence[AddedToken] = ()
    special_ids: frozenset[int] = frozenset()
    size: int = 0
    shown: dict[int, bytes] = field(default_factory=dict)
    first_forms: dict[int, bytes] = field(default_factory=dict)
    silent: Sequence[AddedToken] = ()


@dataclass(frozen=True)
class PieceOptions:
    """How text becomes pieces, and what surrounds it.

    Attributes
    ----------
    steps : sequence of TextStep
        Normalization, of each stretch between added tokens.
    piece_steps : sequence of TextStep
        Changes of what is left of a stretch after normalized added tokens are found.
    stages : sequence of stages
        How a normalized stretch is cut in pieces; without any it is one piece.
    before, after : tuple of int
        The ids that ``add_special_tokens=True`` puts around a text.
    strip_leading_space : bool
        ``decode`` leaves out a space at the beginning, because encoding put one there.
    shown_unknown : int
        The unknown token, if an encoding shows the text that it stands for in its place; else -1.
    """

    steps: tuple[TextStep, ...] = ()
    piece_steps: tuple[TextStep, ...] = ()
    stages: tuple[Stage, ...] = ()
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    strip_leading_space: bool = False
    shown_unknown: int = -1


class PieceTokenizer(ShortTextTokenizer):
    """A tokenizer made of a model, a vocabulary and options.

    Attributes
    ----------
    file_parts : str or None
        What a ``tokenizer.json`` has beside tokens and merges, for whoever adds tokens or writes the file; None if the
        tokenizer is from another file.
    """

    file_parts: str | None = None

    def __init__(
        self,
        model: PieceModel,
        vocabulary: PieceVocabulary,
        options: PieceOptions,
        special_tokens: SpecialTokens,
        eos_ids: Sequence[int] = (),
    ) -> None:
        self.model = model
        self.options = options
        self.added_tokens = tuple(vocabulary.added)
        self.silent_tokens = tuple(vocabulary.silent)
        self.special_tokens = special_tokens
        self.special_ids = vocabulary.special_ids | {token.id for token in self.added_tokens if token.special}
        ids = [*vocabulary.texts, *(token.id for token in self.added_tokens)]
        check_token_ids(ids)
        self.vocab_size = max(max(ids) + 1, vocabulary.size)
        for token_id in eos_ids:
            self._check_id(token_id)
        self.eos_ids = tuple(sorted(set(eos_ids)))
        self.strips_leading_space = options.strip_leading_space

        self._texts: list[str | None] = [None] * self.vocab_size
        self._bytes = [None] * self.vocab_size
        for token_id, text in vocabulary.texts.items():
            self._texts[token_id] = text
        for token_id, data in vocabulary.data.items():
            self._bytes[token_id] = data
        for token in self.added_tokens:
            self._texts[token.id] = vocabulary.texts.get(token.id, token.content)
            if token.id not in vocabulary.data:
                self._bytes[token.id] = token.content.encode("utf-8")
        for token_id in self.special_ids:
            self._bytes[token_id] = None
        self._shown = dict(vocabulary.shown)
        self.first_forms = dict(vocabulary.first_forms)
        self.around = (options.before, options.after)
        self._prepare()

    def _prepare(self) -> None:
        """To be called when the added tokens are known."""
        self._make_finders()
        options = self.options
        step = options.steps[0] if len(options.steps) == 1 else None
        # Whether something is done at the beginning of a text only, which normalization may have moved.
        self._asks_for_begin = any(
            isinstance(part, Prepend) and part.when == "first"
            for part in _all_steps(options.piece_steps, options.stages)
        )
        whole = not options.stages and not options.piece_steps and not any(t.normalized for t in self.added_tokens)
        self._only_charsmap = step if whole and isinstance(step, Charsmap) else None
        has_kernel = type(self.model).short is not PieceModel.short
        self._prepare_short(has_kernel and self._only_charsmap is not None)

    @property
    def _reads_normalized(self) -> bool:
        return self.file_parts is not None

    def _take_further(self, new: Sequence[AddedToken], old_size: int) -> None:
        self._texts = [*self._texts, *[None] * (self.vocab_size - old_size)]
        self._shown, self.first_forms = dict(self._shown), dict(self.first_forms)
        decoder = None
        if self.file_parts is not None:
            # Few who read a tokenizer add tokens.
            from constrain.tokenizers.formats.json_decoders import read_decoder

            parts = json.loads(self.file_parts)
            decoder = read_decoder(parts["decoder"])
            parts["outside"] += [token.id for token in new if token.id >= old_size]
            self.file_parts = json.dumps(parts)
        for token in new:
            text = apply_steps(self.options.steps, token.content, False) if token.normalized else token.content
            if not text:
                raise TokenizerError(f"the normalizer leaves nothing of {token.content!r}")
            data = text.encode() if decoder is None else decoder.to_bytes(text)
            self._texts[token.id] = text
            self._bytes[token.id] = None if token.id in self.special_ids else data
            if token.id in self.special_ids:
                self._shown[token.id] = data
            first = None if decoder is None or decoder.first is None else decoder.first_form(text)
            if first is None:
                self.first_forms.pop(token.id, None)
            else:
                self.first_forms[token.id] = first
        self._prepare()

    def _make_finders(self) -> None:
        raw = [token for token in self.added_tokens if not token.normalized]
        self._find_raw = AddedTokenFinder(raw)
        self._find_asked = AddedTokenFinder([*raw, *self.silent_tokens]) if self.silent_tokens else self._find_raw
        self._find_normalized = AddedTokenFinder(
            [token for token in self.added_tokens if token.normalized],
            lambda text: apply_steps(self.options.steps, text, False),
        )

    def _short_kernel(self) -> tuple[Sequence[Any], ShortKernel]:
        assert self._only_charsmap is not None
        found = self.model.short(self._only_charsmap)
        assert found is not None
        return found

    def source_of(self, text: str, add_special_tokens: bool) -> EncodingSource:
        return _Source(self, text, add_special_tokens, None)

    def _remove_tokens(self, ids: frozenset[int]) -> None:
        self.model = self.model.without(np.fromiter(ids, dtype=np.int64, count=len(ids)))

    def _encode_long(self, text: str, add_special_tokens: bool, reading: Reading | None = None) -> Encoding:
        ids: list[int] = []
        for begin, end, token in self._raw_parts(text, reading):
            if token is not None:
                ids.append(token.id)
                continue
            ids += self._reader_of(text, begin, end, reading)._stretch_ids(text, begin, end, reading)
        if add_special_tokens:
            ids = [*self.options.before, *ids, *self.options.after]
        return Encoding(ids, _Source(self, text, add_special_tokens, reading))

    def _reader_of(self, text: str, begin: int, end: int, reading: Reading | None) -> PieceTokenizer:
        """What encodes a stretch: this tokenizer, or a copy without the special tokens that its model makes there."""
        if reading is None or reading.unreachable.isdisjoint(self._stretch_ids(text, begin, end, reading)):
            return self
        copy: PieceTokenizer = self._without(reading.unreachable)
        return copy

    def _raw_parts(self, text: str, reading: Reading | None) -> list[tuple[int, int, AddedToken | None]]:
        return self._find_raw.split(text) if reading is None else self._find_asked.split(text, reading.permits)

    def _stretch_ids(self, text: str, begin: int, end: int, reading: Reading | None) -> list[int]:
        """The ids of text without any raw added token."""
        whole = text if end - begin == len(text) else text[begin:end]
        utf8_of(whole, begin)
        short = self._short_ids(whole)
        if short is not None:
            return short
        ids: list[int] = []
        if self._only_charsmap is not None:
            # Nothing comes between normalization and model, so the bytes need not become text and bytes again.
            data = self._only_charsmap.normalized(whole)
            ends = np.full(min(1, len(data)), len(data), dtype=np.int32)
            ids = np.ascontiguousarray(self.model.encode(data, ends)[:, 0]).tolist()
            return ids
        normal = apply_steps(self.options.steps, whole, begin == 0)
        permits: Permits | None = None
        origins: Spans | None = None
        if normal != whole and (reading is not None or self._asks_for_begin):
            origins = align_steps(self.options.steps, whole, begin == 0)[1]
        if reading is not None:
            permits = moved(reading.permits, begin, origins)
        for first, last, inner in self._find_normalized.split(normal, permits):
            if inner is not None:
                ids.append(inner.id)
            else:
                at_begin = self._from_first(begin, first, origins)
                part = apply_steps(self.options.piece_steps, normal[first:last], at_begin > 0)
                _, tokens = self._encode_normal(part, at_begin)
                ids += np.ascontiguousarray(tokens[:, 0]).tolist()
        return ids

    def tokens_of(self, text: str, reading: Reading | None = None) -> Iterator[tuple[tuple[int, int], bytes | None]]:
        """The characters that each token of ``text`` covers, and if it stands for something unknown, the bytes of that.

        Without special tokens around the text.
        """
        for begin, end, token in self._raw_parts(text, reading):
            if token is not None:
                yield (begin, end), None
                continue
            reader = self._reader_of(text, begin, end, reading)
            normal, origins = align_steps(self.options.steps, text[begin:end], begin == 0)
            permits = None if reading is None else moved(reading.permits, begin, origins)
            for first, last, inner in self._find_normalized.split(normal, permits):
                if inner is not None:
                    yield (begin + origins[first][0], begin + origins[last - 1][1]), None
                    continue
                at_begin = self._from_first(begin, first, origins)
                part, inner_origins = align_steps(self.options.piece_steps, normal[first:last], at_begin > 0)
                pieces, tokens = reader._encode_normal(part, at_begin)
                unknown = self.options.shown_unknown
                for (left, right), (token_id, low, high) in zip(_characters(pieces, part, tokens), tokens, strict=True):
                    outer_first = first + inner_origins[left][0]
                    outer_last = first + max(inner_origins[right - 1][1], inner_origins[left][0] + 1)
                    yield (
                        (begin + origins[min(outer_first, last - 1)][0], begin + origins[min(outer_last, last) - 1][1]),
                        pieces.data[low:high].tobytes() if token_id == unknown else None,
                    )

    def _from_first(self, begin: int, first: int, origins: Spans | None) -> int:
        """How many characters from ``first`` on come from the first character of the text.

        ``origins``: where each character of a normalized stretch that begins at ``begin`` comes from; None: nothing
        moved.
        """
        if begin > 0:
            return 0
        if origins is None:
            return int(first == 0)
        count = next((place for place, span in enumerate(origins[first:]) if span[0] > 0), len(origins) - first)
        # To the reference's Precompiled what follows removed characters comes from the first one.
        moved = first == 0 and any(isinstance(step, Precompiled) for step in self.options.steps[:1])
        return max(count, 1) if moved else count

    def _encode_normal(self, text: str, first: int) -> tuple[Pieces, npt.NDArray[np.int32]]:
        data = np.frombuffer(bytearray(text.encode("utf-8")), dtype=np.uint8)
        if len(data) >= 2**31:
            raise TokenizerError("the text has more than 2 GiB")
        pieces = split_in_stages(data, self.options.stages, first)
        return pieces, self.model.encode(pieces.data, pieces.ends)

    def vocabulary_texts(self) -> dict[int, str]:
        """Tokens as the file of the tokenizer writes them, by id; those that were added, as they were given."""
        texts = {token_id: text for token_id, text in enumerate(self._texts) if text is not None}
        return texts | {token.id: token.content for token in self.added_tokens}

    def _shown_bytes(self, token_id: int) -> bytes | None:
        return self._shown[token_id] if token_id in self._shown else super()._shown_bytes(token_id)

    def token_to_id(self, token: str) -> int | None:
        if "_known_ids" not in self.__dict__:
            pairs = [(text, token_id) for token_id, text in enumerate(self._texts) if text is not None]
            # Added tokens are found by their content, and by what a normalizer makes of it.
            added = {token.content: token.id for token in self.added_tokens}
            self._known_ids = dict(reversed(pairs)) | added
        return self._known_ids.get(checked_text(token, "a token"))

    def id_to_token(self, token_id: int) -> str | None:
        self._check_id(token_id)
        return self._texts[token_id]


def _all_steps(steps: Sequence[TextStep], stages: Sequence[Stage]) -> list[object]:
    """The steps, and those of stages that rewrite text."""
    rewriters = [stage.rewriter for stage in stages if isinstance(stage, RewriteStage)]
    return [*steps, *(step for part in rewriters for step in (part.steps if isinstance(part, Steps) else (part,)))]


class _Source(EncodingSource):
    def __init__(self, tokenizer: PieceTokenizer, text: str, with_special: bool, reading: Reading | None) -> None:
        self._tokenizer = tokenizer
        self._text = text
        self._with_special = with_special
        self._reading = reading

    def _around(self) -> tuple[int, int]:
        options = self._tokenizer.options
        return (len(options.before), len(options.after)) if self._with_special else (0, 0)

    def _tokens(self) -> Iterator[tuple[tuple[int, int], bytes | None]]:
        return self._tokenizer.tokens_of(self._text, self._reading)

    def tokens(self, ids: Sequence[int]) -> list[str]:
        tokens = [self._tokenizer.id_to_token(token_id) or "" for token_id in ids]
        if self._tokenizer.options.shown_unknown in ids:
            for place, (_, unknown) in enumerate(self._tokens(), self._around()[0]):
                if unknown is not None:
                    tokens[place] = unknown.decode()
        return tokens

    def special_tokens_mask(self, ids: Sequence[int]) -> list[int]:
        before, after = self._around()
        return [1] * before + [0] * (len(ids) - before - after) + [1] * after

    def offsets(self, ids: Sequence[int]) -> list[tuple[int, int]]:
        before, after = self._around()
        return [(0, 0)] * before + [span for span, _ in self._tokens()] + [(0, 0)] * after


def _characters(pieces: Pieces, text: str, tokens: npt.NDArray[np.int32]) -> list[tuple[int, int]]:
    """The characters of ``text`` that each token covers."""
    begins, lasts = tokens[:, 1].astype(np.int64), tokens[:, 2].astype(np.int64) - 1
    if pieces.characters is not None:
        firsts, ends = pieces.characters
        return list(zip(firsts[begins].tolist(), ends[lasts].tolist(), strict=True))
    data = np.frombuffer(text.encode("utf-8"), dtype=np.uint8)
    character = np.cumsum((data & 0xC0) != 0x80) - 1
    if pieces.origin is not None:
        begins, lasts = pieces.origin[begins], pieces.origin[lasts]
    return list(zip(character[begins].tolist(), (character[lasts] + 1).tolist(), strict=True))
