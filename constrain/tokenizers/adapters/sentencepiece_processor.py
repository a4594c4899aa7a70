"""The ``sentencepiece`` library: a ``SentencePieceProcessor``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from constrain.errors import TokenizerError
from constrain.tokenizers.adapters.table import TableTokenizer
from constrain.tokenizers.arguments import utf8_of
from constrain.tokenizers.base import Encoding
from constrain.tokenizers.ready_encoding import ready_encoding
from constrain.tokenizers.special_text import Reading, cut_at_tokens
from constrain.tokenizers.special_tokens import SpecialTokens

_SPACE = "▁"
_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


class SentencePieceTokenizer(TableTokenizer):
    """A ``sentencepiece.SentencePieceProcessor``.

    Control symbols and the unknown piece are special tokens.  The library never finds them in a text, so their names in
    a text are plain text, unlike with other tokenizers, unless the caller asks for special tokens; then the stretches
    between them are encoded one by one.  Where nothing is skipped, they decode to their names.

    Parameters
    ----------
    processor : SentencePieceProcessor
    add_bos, add_eos : bool
        What ``add_special_tokens=True`` puts around a text; a ``.model`` file does not say.
    eos_ids : ids, optional
        By default the processor's ``</s>``.
    """

    def __init__(
        self, processor: Any, add_bos: bool = True, add_eos: bool = False, eos_ids: Iterable[int] | None = None
    ) -> None:
        self._processor = processor
        size = processor.get_piece_size()
        if size == 0:
            raise TokenizerError("the processor has no model: load one first")
        spellings = [processor.id_to_piece(i) for i in range(size)]
        special = {i for i in range(size) if processor.is_control(i) or processor.is_unknown(i)}
        data = [None if processor.is_unused(i) else self._bytes_of(i, text) for i, text in enumerate(spellings)]
        found = {"bos": processor.bos_id(), "eos": processor.eos_id(), "pad": processor.pad_id()}
        roles = SpecialTokens(unk=processor.unk_id(), **{role: i for role, i in found.items() if i >= 0})
        self._add_bos = add_bos and roles.bos is not None
        self._add_eos = add_eos and roles.eos is not None
        if eos_ids is None:
            eos_ids = () if roles.eos is None else (roles.eos,)
        super().__init__(data, spellings, special, roles, eos_ids)
        # The library does not tell the settings of the model, so they are found out by what they do.
        normal = [i for i, text in enumerate(spellings) if data[i] is not None and not processor.is_byte(i)]
        word = next((i for i in normal if len(spellings[i]) > 1 and spellings[i][0] == _SPACE != spellings[i][1]), None)
        space = processor.piece_to_id(_SPACE)
        self._drops_one = word is not None and not processor.decode([word]).startswith(" ")
        self._drops_all = (
            word is not None and spellings[space] == _SPACE and not processor.decode([space, word]).startswith(" ")
        )

    def _encode_as_usual(self, text: str, add_special_tokens: bool) -> Encoding:
        return self.read_text(text, add_special_tokens, Reading(self.special_ids))

    def read_text(self, text: str, add_special_tokens: bool, reading: Reading) -> Encoding:
        utf8_of(text)
        parts = cut_at_tokens(text, reading, self.spelled_special_tokens())
        ids: list[int] = []
        for begin, end, token_id in parts:
            ids += self._processor.encode(text[begin:end], out_type=int) if token_id is None else [token_id]
        before = [self._processor.bos_id()] if add_special_tokens and self._add_bos else []
        after = [self._processor.eos_id()] if add_special_tokens and self._add_eos else []
        mask = [1] * len(before) + [0] * len(ids) + [1] * len(after)
        whole = [*before, *ids, *after]

        def offsets() -> list[tuple[int, int]]:
            spans: list[tuple[int, int]] = []
            for begin, end, token_id in parts:
                inner = self._offsets(text[begin:end]) if token_id is None else [(0, end - begin)]
                spans += [(begin + first, begin + last) for first, last in inner]
            return [(0, 0)] * len(before) + spans + [(0, 0)] * len(after)

        return ready_encoding(whole, [self._spellings[token_id] or "" for token_id in whole], offsets, mask)

    def _offsets(self, text: str) -> list[tuple[int, int]]:
        if not hasattr(self._processor, "encode_as_offset_mapping"):
            raise TokenizerError("offsets need sentencepiece 0.2.3 or later")
        spans: list[tuple[int, int]] = list(self._processor.encode_as_offset_mapping(text)["offsets"])
        pieces = self._processor.encode(text, out_type=str)
        # The library gives a character that is spread over several bytes to the last of them.
        for i in range(len(spans) - 2, -1, -1):
            if spans[i][0] == spans[i][1] == spans[i + 1][0] and _BYTE_PIECE.fullmatch(pieces[i]):
                spans[i] = spans[i + 1]
        return spans

    def _bytes_of(self, token_id: int, piece: str) -> bytes:
        if self._processor.is_byte(token_id):
            match = _BYTE_PIECE.fullmatch(piece)
            if match is None:
                raise TokenizerError(f"byte piece {piece!r} (id {token_id}) does not say which byte it is")
            return bytes((int(match[1], 16),))
        return piece.replace(_SPACE, " ").encode()

    def _at_start(self, token_id: int, data: bytes, first: bool) -> bytes:
        if token_id in self.special_ids or self._processor.is_byte(token_id):
            return data
        if not (self._drops_all or (first and self._drops_one)):
            return data
        return data.removeprefix(b" ")
