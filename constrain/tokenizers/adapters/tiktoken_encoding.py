"""The ``tiktoken`` library: a ``tiktoken.Encoding``, with tokens as text in both directions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from constrain.tokenizers.adapters.table import TableTokenizer, check_size, well_known_eos
from constrain.tokenizers.arguments import utf8_of
from constrain.tokenizers.base import Encoding
from constrain.tokenizers.byte_alphabet import bytes_to_text
from constrain.tokenizers.ready_encoding import offsets_of_bytes, ready_encoding
from constrain.tokenizers.special_text import Reading, cut_at_tokens
from constrain.tokenizers.special_tokens import SpecialTokens


class TiktokenTokenizer(TableTokenizer):
    """A ``tiktoken.Encoding``.

    Tokens are spelled in GPT-2's byte alphabet (``"Ġthe"``), special tokens as they are.  tiktoken
    encodes a lone surrogate as U+FFFD; here it is an error as everywhere.

    Parameters
    ----------
    encoding : tiktoken.Encoding
    eos_ids : ids, optional
        By default the tokens with a well-known name.
    """

    def __init__(self, encoding: Any, eos_ids: Iterable[int] | None = None) -> None:
        self._encoding = encoding
        special = {encoding.encode_single_token(name): name for name in encoding.special_tokens_set}
        check_size(encoding.n_vocab)
        data: list[bytes | None] = []
        for token_id in range(encoding.n_vocab):
            try:
                data.append(encoding.decode_single_token_bytes(token_id))
            except KeyError:  # there are gaps before the special tokens
                data.append(None)
        spellings = [
            special[i] if i in special else None if token is None else bytes_to_text(token)
            for i, token in enumerate(data)
        ]
        if eos_ids is None:
            eos_ids = [i for i in well_known_eos(spellings) if i in special]
        ends = sorted(set(eos_ids))
        super().__init__(data, spellings, special, SpecialTokens(eos=ends[0] if ends else None), ends)

    def _encode_as_usual(self, text: str, add_special_tokens: bool) -> Encoding:
        return self.read_text(text, add_special_tokens, Reading())

    def read_text(self, text: str, add_special_tokens: bool, reading: Reading) -> Encoding:
        # An encoding says nothing about tokens around a text, so add_special_tokens adds none.
        utf8_of(text)
        ids: list[int] = []
        # The library cuts a text at special tokens too, and encodes what is between them by itself.
        for begin, end, token_id in cut_at_tokens(text, reading, self.spelled_special_tokens()):
            ids += self._encoding.encode_ordinary(text[begin:end]) if token_id is None else [token_id]

        def offsets() -> list[tuple[int, int]]:
            return offsets_of_bytes(text, [len(self._encoding.decode_single_token_bytes(token_id)) for token_id in ids])

        return ready_encoding(ids, [self._spellings[token_id] or "" for token_id in ids], offsets, [0] * len(ids))
