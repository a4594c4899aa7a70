"""Byte-level BPE: GPT-2, Llama 3, Qwen and most vocabularies since.

Text is cut at added tokens, normalized if the file says so, cut into pieces by a split pattern, and
the bytes of each piece are merged pair by pair.  Every byte is a token, so any text can be encoded
and ``decode(encode(text)) == text`` wherever there is no normalizer.

Vocabularies that spell characters by their place in a word, and other unusual ones, are for
:mod:`constrain.tokenizers.models.spelled_bpe`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from constrain.errors import TokenizerError
from constrain.tokenizers.added_tokens import AddedToken, AddedTokenFinder, Permits, moved
from constrain.tokenizers.arguments import check_token_ids, checked_text, utf8_of
from constrain.tokenizers.base import Encoding, EncodingSource
from constrain.tokenizers.byte_alphabet import alphabet_bytes, bytes_to_text, text_to_bytes
from constrain.tokenizers.models import bpe_kernels
from constrain.tokenizers.models.bpe_tables import (
    merge_table,
    merges_in,
    merges_without,
    pairs_of_ranks,
    slots_without,
    token_slots,
)
from constrain.tokenizers.models.byte_level_kernels import encode_short, encode_staged
from constrain.tokenizers.models.merge_ids import Merges
from constrain.tokenizers.normalizing.normal_forms import NormalForm, Spans, normalize, normalize_aligned
from constrain.tokenizers.short.frames import words_of
from constrain.tokenizers.short.pieces import end_piece
from constrain.tokenizers.short.texts import SHORT_LENGTH, ShortKernel, ShortTextTokenizer
from constrain.tokenizers.special_text import Reading
from constrain.tokenizers.special_tokens import SpecialTokens
from constrain.tokenizers.splitting.machine import split_stage
from constrain.tokenizers.splitting.patterns import SplitPattern
from constrain.tokenizers.splitting.stages import Pieces, RegexStage, Stage, split_in_stages
from constrain.tokenizers.splitting.unicode_classes import class_table

_LONGEST_RANKED_TOKEN = 1024


@dataclass(frozen=True)
class ByteLevelOptions:
    """What a byte-level vocabulary says besides its tokens.

    Attributes
    ----------
    split : SplitPattern or sequence of stages
        How text is cut before merging; several stages cut one after the other.
    whole_piece : bool
        A piece that is a token becomes that token whatever the merges say (``ignore_merges``).
    normal_form : str or None
        Unicode normalization of the text.
    add_prefix_space : bool
        A text that does not begin with a space gets one.
    before, after : tuple of int
        The ids that ``add_special_tokens=True`` puts around a text.
    added_in_alphabet : bool
        Added tokens that are written in the byte-level alphabet are decoded to bytes, like the others; else to their
        text.
    """

    split: SplitPattern | tuple[Stage, ...]
    whole_piece: bool = False
    normal_form: NormalForm | None = None
    add_prefix_space: bool = False
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    added_in_alphabet: bool = False


class ByteLevelBPE(ShortTextTokenizer):
    """A byte-level BPE tokenizer.

    Parameters
    ----------
    tokens : dict of int to bytes
        The vocabulary that merging can reach, by id.  No two ids may have the same bytes.
    merges : (left, right, merged) or None
        Three int64 arrays of ids, lowest rank first.  ``None`` means that ids are ranks: any two
        tokens that make a token together are merged, lowest id first.
    added : sequence of AddedToken
        Tokens found in the text before anything else.
    options, special_tokens, eos_ids :
        See :class:`ByteLevelOptions` and :class:`constrain.tokenizers.base.Tokenizer`.
    size : int
        The least ``vocab_size``, where a model has more ids than tokens.
    foreign : dict of int to bytes, optional
        Tokens that encoding never gives, by id.

    Raises :class:`TokenizerError` if the vocabulary makes no sense.
    """

    def __init__(
        self,
        tokens: dict[int, bytes],
        merges: Merges | None,
        added: Sequence[AddedToken],
        options: ByteLevelOptions,
        special_tokens: SpecialTokens,
        eos_ids: Sequence[int] = (),
        size: int = 0,
        foreign: Mapping[int, bytes] = MappingProxyType({}),
    ) -> None:
        if not tokens:
            raise TokenizerError("the vocabulary is empty")
        ids = [*tokens, *foreign, *(token.id for token in added)]
        check_token_ids(ids)
        self.vocab_size = max(max(ids) + 1, size)
        self.options = options
        self.added_tokens = tuple(added)
        self.special_tokens = special_tokens
        self.special_ids = frozenset(token.id for token in added if token.special)
        for token_id in eos_ids:
            self._check_id(token_id)
        self.eos_ids = tuple(sorted(set(eos_ids)))

        self._name_added_tokens()

        self._bytes = [None] * self.vocab_size
        for token_id, data in tokens.items():
            self._bytes[token_id] = data
        self._fill_tables(tokens, merges)
        self.around = (options.before, options.after)
        self._prepare_short(self._has_short_texts())
        for token_id, data in foreign.items():
            self._bytes[token_id] = data
        self._foreign = frozenset(foreign)
        self._set_added_bytes()

    def _name_added_tokens(self) -> None:
        # A token that is looked for in normalized text is spelled as the normalizer changes it; token_to_id knows both.
        self._added_texts = {
            token.id: self._normalize(token.content) if token.normalized else token.content
            for token in self.added_tokens
        }
        self._added_ids = {text: token_id for token_id, text in self._added_texts.items()}
        self._added_ids |= {token.content: token.id for token in self.added_tokens}
        self._make_finders()

    def _set_added_bytes(self) -> None:
        to_bytes = alphabet_bytes if self.options.added_in_alphabet else str.encode
        self._added_bytes = {token_id: to_bytes(text) for token_id, text in self._added_texts.items()}
        for token_id, data in self._added_bytes.items():
            self._bytes[token_id] = None if token_id in self.special_ids else data

    @property
    def _reads_normalized(self) -> bool:
        return True

    def _take_further(self, new: Sequence[AddedToken], old_size: int) -> None:
        self._name_added_tokens()
        self._set_added_bytes()
        self._prepare_short(self._has_short_texts())

    def _has_short_texts(self) -> bool:
        """Whether a kernel does all that short texts need."""
        options = self.options
        # Text in ASCII stays as it is; but a token that is looked for in what becomes of a text may be another there.
        self.only_ascii = options.normal_form is not None
        spelled = self._added_texts
        same = not self.only_ascii or all(token.content == spelled[token.id] for token in self.added_tokens)
        in_kernels = isinstance(options.split, SplitPattern) or all(map(_keeps_all, options.split))
        return in_kernels and same and not options.add_prefix_space

    def model_tokens(self) -> dict[int, bytes]:
        """The tokens that merging reaches, by id."""
        starts, blob = self._starts.tolist(), self._blob.tobytes()
        return {token_id: blob[begin:end] for token_id, (begin, end) in enumerate(pairwise(starts)) if end > begin}

    def foreign_tokens(self) -> dict[int, str]:
        """The tokens that encoding never gives, by id."""
        ids = sorted(self._foreign - self._added_texts.keys())
        return {token_id: (self._bytes[token_id] or b"").decode() for token_id in ids}

    def merges(self) -> npt.NDArray[np.int64]:
        """The left and the right token of each merge, lowest rank first: int64[merges, 2]."""
        return merges_in(self._keys, self._values)

    def _make_finders(self) -> None:
        raw = [token for token in self.added_tokens if not token.normalized]
        self._find_raw = AddedTokenFinder(raw)
        normalized = [token for token in self.added_tokens if token.normalized]
        self._find_normalized = AddedTokenFinder(normalized, self._normalize)

    def _fill_tables(self, tokens: dict[int, bytes], merges: Merges | None) -> None:
        """The arrays of :mod:`constrain.tokenizers.models.bpe_kernels`."""
        lengths = np.zeros(self.vocab_size + 1, dtype=np.int64)
        lengths[1:] = [0 if data is None else len(data) for data in self._bytes]
        if lengths.sum() >= 2**31:
            raise TokenizerError("the vocabulary has more than 2 GiB of text")
        self._starts = np.cumsum(lengths).astype(np.int32)
        self._blob = np.frombuffer(bytearray(b"".join(filter(None, self._bytes))), dtype=np.uint8)
        ids = np.fromiter((i for i in sorted(tokens) if tokens[i]), dtype=np.int32)
        self._slots, twice = token_slots(self._blob, self._starts, ids)
        if twice >= 0:
            raise TokenizerError(f"tokens {tokens[twice]!r} is in the vocabulary twice, the second time as id {twice}")
        self._byte_ids = np.full(256, -1, dtype=np.int32)
        for token_id in ids[np.diff(self._starts)[ids] == 1].tolist():
            self._byte_ids[tokens[token_id][0]] = token_id
        self._direct = np.zeros(self.vocab_size, dtype=np.uint8)

        if merges is None:
            keys, values = self._merges_of_ranks(ids)
        else:
            left, right, merged = merges
            keys = left << 32 | right
            values = np.arange(len(keys), dtype=np.int64) << 32 | merged
        self._keys, self._values = merge_table(keys, values)

    def _merges_of_ranks(self, ids: npt.NDArray[np.int32]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        # Each token is tried at every cut, so its length has to be bounded.
        longest = int(np.diff(self._starts).max())
        if longest > _LONGEST_RANKED_TOKEN:
            raise TokenizerError(f"a token has {longest} bytes; the limit is {_LONGEST_RANKED_TOKEN}")
        return pairs_of_ranks(self._blob, self._starts, ids, self._slots)

    def tables(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays of :func:`~constrain.tokenizers.models.bpe_kernels.encode_pieces` that say what tokens there are,
        by the names of its arguments."""
        return {
            "byte_ids": self._byte_ids,
            "blob": self._blob,
            "starts": self._starts,
            "slots": self._slots,
            "direct": self._direct,
            "keys": self._keys,
            "values": self._values,
        }

    def _shown_bytes(self, token_id: int) -> bytes | None:
        return self._added_bytes.get(token_id)

    def token_to_id(self, token: str) -> int | None:
        if checked_text(token, "a token") in self._added_ids:
            return self._added_ids[token]
        try:
            data = text_to_bytes(token)
        except TokenizerError:
            return next((i for i in self._foreign if self.id_to_token(i) == token), None)
        return self._index().get(data)

    def _index(self) -> dict[bytes, int]:
        """Ids by bytes."""
        if "_known_ids" not in self.__dict__:
            others = self._added_texts.keys() | self._foreign
            self._known_ids = {data: i for i, data in enumerate(self._bytes) if data is not None and i not in others}
        return self._known_ids

    def id_to_token(self, token_id: int) -> str | None:
        self._check_id(token_id)
        if token_id in self._added_texts:
            return self._added_texts[token_id]
        data = self._bytes[token_id]
        if token_id in self._foreign and data is not None:
            return data.decode()
        return None if data is None else bytes_to_text(data)

    def _short_kernel(self) -> tuple[Sequence[Any], ShortKernel]:
        split = self.options.split
        text, ends, out = (np.zeros(4 * SHORT_LENGTH, dtype=dtype) for dtype in (np.uint8, np.int32, np.int32))
        encode = {"data": text, "ends": ends, "whole": self.options.whole_piece, "out": out, **self.tables()}
        steps: list[tuple[Any, dict[str, Any]]]
        if isinstance(split, SplitPattern):
            scanner, option = split.scanner()
            scan = {"data": text, "classes": class_table(), "option": option, "ends": ends}
            steps = [(scanner, scan), (bpe_kernels.encode_pieces, encode)]
            words, kernel = [], encode_short
        else:
            other_ends, keeps = np.zeros_like(ends), np.ones(len(ends), dtype=np.bool_)
            # The stages write to one array and the other in turn, the last one to that which the model reads.
            in_turn = [ends, other_ends] if len(split) % 2 == 0 else [other_ends, ends]
            steps = [(end_piece, {"length": 0, "ends": in_turn[0]}), (bpe_kernels.encode_pieces, encode)]
            for place, stage in enumerate(split):
                assert isinstance(stage, RegexStage)
                new_ends = in_turn[(place + 1) % 2]
                given = {"data": text, "ends": in_turn[place % 2], "keeps": keeps, **stage.arguments()}
                steps.append((split_stage, {**given, "new_ends": new_ends, "new_keeps": keeps}))
            words, kernel = [len(split)], encode_staged
        words += [word for called, given in steps for word in words_of(called, given)]
        kept = [value for _, given in steps for value in given.values()]
        return kept, (memoryview(text.data), kernel, np.array(words, dtype=np.int64), memoryview(out.data))

    def source_of(self, text: str, add_special_tokens: bool) -> EncodingSource:
        return self._encode_long(text, add_special_tokens)._known_source()

    def _remove_tokens(self, ids: frozenset[int]) -> None:
        gone = np.fromiter(ids, dtype=np.int64, count=len(ids))
        self._slots = slots_without(self._blob, self._starts, self._slots, gone)
        self._keys, self._values = merges_without(self._keys, self._values, gone)
        self._direct = np.zeros(self.vocab_size, dtype=np.uint8)

    def _encode_long(self, text: str, add_special_tokens: bool, reading: Reading | None = None) -> Encoding:
        ids: list[int] = []
        segments: list[_Segment] = []
        before = self.options.before if add_special_tokens else ()
        after = self.options.after if add_special_tokens else ()
        if before:
            ids += before
            segments.append(_Segment(0, 0, len(before), "outside", ""))
        for begin, end, token in self._find_raw.split(text, None if reading is None else reading.permits):
            if token is not None:
                ids.append(token.id)
                segments.append(_Segment(begin, end, 1, "added", ""))
            else:
                self._encode_stretch(text, begin, end, ids, segments, reading)
        if after:
            ids += after
            segments.append(_Segment(0, 0, len(after), "outside", ""))
        return Encoding(ids, _Source(self, text, segments))

    def _encode_stretch(
        self,
        text: str,
        begin: int,
        end: int,
        ids: list[int],
        segments: list[_Segment],
        reading: Reading | None,
    ) -> None:
        """Text without any raw added token: normalize, cut at the other added tokens, merge."""
        form = self.options.normal_form
        whole = text if end - begin == len(text) else text[begin:end]
        normal = self._normalize(whole)
        changed = normal != whole
        to_input: Spans | None = None
        permits: Permits | None = None
        if reading is not None:
            to_input = normalize_aligned(form, whole)[1] if changed and form is not None else None
            permits = moved(reading.permits, begin, to_input)
        parts = self._find_normalized.split(normal, permits)
        # Only where normalization changed something do the places have to be mapped back.
        if to_input is None and changed and form is not None and len(parts) > 1:
            to_input = normalize_aligned(form, whole)[1]
        for first, last, token in parts:
            outer_first, outer_last = begin + first, begin + last
            if changed:
                outer_first, outer_last = begin, end
                if to_input is not None and len(parts) > 1:
                    outer_first, outer_last = begin + to_input[first][0], begin + to_input[last - 1][1]
            if token is not None:
                ids.append(token.id)
                segments.append(_Segment(outer_first, outer_last, 1, "added", ""))
                continue
            part = normal[first:last]
            if self.options.add_prefix_space and not part.startswith(" "):
                part = " " + part
            new = self._encode_plain(part, begin)
            if reading is not None and not reading.unreachable.isdisjoint(new):
                new = self._without(reading.unreachable)._encode_plain(part, begin)
            ids += new
            same = not changed and not self.options.add_prefix_space
            segments.append(_Segment(outer_first, outer_last, len(new), "same" if same else "changed", part))

    def _normalize(self, text: str) -> str:
        form = self.options.normal_form
        return text if form is None else normalize(form, text)

    def _encode_plain(self, text: str, offset: int) -> list[int]:
        data = np.frombuffer(bytearray(utf8_of(text, offset)), dtype=np.uint8)
        if len(data) >= 2**31:
            raise TokenizerError("the text has more than 2 GiB")
        pieces = self._split(data)
        data = pieces.data
        out = np.empty(len(data), dtype=np.int32)
        count = bpe_kernels.encode_pieces(
            data,
            pieces.ends,
            self.options.whole_piece,
            self._byte_ids,
            self._blob,
            self._starts,
            self._slots,
            self._direct,
            self._keys,
            self._values,
            out,
        )
        if count < 0:
            byte = bpe_kernels.NO_TOKEN - count
            raise TokenizerError(f"the vocabulary has no token for the byte 0x{byte:02X}, so this text has no encoding")
        ids: list[int] = out[:count].tolist()
        return ids

    def origin(self, data: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64] | None:
        """Where each byte that is encoded was before a split removed some; None if none does."""
        return None if isinstance(self.options.split, SplitPattern) else self._split(data).origin

    def _split(self, data: npt.NDArray[np.uint8]) -> Pieces:
        split = self.options.split
        return Pieces(data, split.ends(data)) if isinstance(split, SplitPattern) else split_in_stages(data, split)


def _keeps_all(stage: Stage) -> bool:
    """Whether a stage is cut by the machine for regexes, and removes nothing."""
    return isinstance(stage, RegexStage) and stage.behavior != "Removed"


class _Segment(NamedTuple):
    """A stretch of the input and the number of ids it became.

    ``kind`` is "outside" (not from the input), "added", "same" (``text`` is ``input[begin:end]``)
    or "changed" (``text`` is what a normalizer or a prefix made of it).
    """

    begin: int
    end: int
    ids: int
    kind: Literal["outside", "added", "same", "changed"]
    text: str


class _Source(EncodingSource):
    """Works out tokens and offsets from the segments."""

    def __init__(self, tokenizer: ByteLevelBPE, text: str, segments: list[_Segment]) -> None:
        self._tokenizer = tokenizer
        self._text = text
        self._segments = segments

    def tokens(self, ids: Sequence[int]) -> list[str]:
        return [self._tokenizer.id_to_token(token_id) or "" for token_id in ids]

    def special_tokens_mask(self, ids: Sequence[int]) -> list[int]:
        return [int(segment.kind == "outside") for segment in self._segments for _ in range(segment.ids)]

    def offsets(self, ids: Sequence[int]) -> list[tuple[int, int]]:
        out: list[tuple[int, int]] = []
        for segment in self._segments:
            if segment.kind in ("outside", "added"):
                out += [(segment.begin, segment.end)] * segment.ids
                continue
            spans = self._character_spans(segment.text, ids[len(out) : len(out) + segment.ids])
            if segment.kind == "same":
                out += [(segment.begin + begin, segment.begin + end) for begin, end in spans]
            else:
                to_input = self._map_back(segment)
                out += [
                    (segment.begin + to_input[begin][0], segment.begin + to_input[end - 1][1]) for begin, end in spans
                ]
        return out

    def _character_spans(self, text: str, ids: Sequence[int]) -> list[tuple[int, int]]:
        """The characters of ``text`` that each token covers."""
        data = np.frombuffer(bytearray(text.encode("utf-8")), dtype=np.uint8)
        character = np.cumsum((data & 0xC0) != 0x80) - 1
        ends = np.cumsum([len(self._tokenizer.token_bytes(token_id) or b"") for token_id in ids], dtype=np.int64)
        begins, lasts = np.concatenate(([0], ends[:-1])).astype(np.int64), ends - 1
        origin = self._tokenizer.origin(data)
        if not len(ids):
            return []
        if origin is not None:
            begins, lasts = origin[begins], origin[lasts]
        return list(zip(character[begins].tolist(), (character[lasts] + 1).tolist(), strict=True))

    def _map_back(self, segment: _Segment) -> list[tuple[int, int]]:
        """For each character of ``segment.text`` the characters of the input, from ``segment.begin``."""
        original = self._text[segment.begin : segment.end]
        options = self._tokenizer.options
        form = options.normal_form
        spans = [(i, i + 1) for i in range(len(original))] if form is None else normalize_aligned(form, original)[1]
        # A space in front comes from the character behind it, as in the reference.
        return spans if len(segment.text) == len(spans) else [spans[0], *spans]
