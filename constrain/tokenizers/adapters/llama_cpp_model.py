"""The ``llama-cpp-python`` library: the tokenizer in a ``llama_cpp.Llama``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from constrain.errors import TokenizerError
from constrain.tokenizers.adapters.table import TableTokenizer
from constrain.tokenizers.arguments import utf8_of
from constrain.tokenizers.base import Encoding
from constrain.tokenizers.byte_alphabet import text_to_bytes
from constrain.tokenizers.chat.templates import gguf_chat_template
from constrain.tokenizers.ready_encoding import offsets_of_bytes, ready_encoding
from constrain.tokenizers.special_text import Reading, cut_at_tokens
from constrain.tokenizers.special_tokens import SpecialTokens

_SPACE = "▁"
_EOS_KEYS = ("eos", "eot", "eom")


class LlamaCppTokenizer(TableTokenizer):
    """The tokenizer of a ``llama_cpp.Llama``; ``vocab_only=True`` is enough for it.

    Parameters
    ----------
    llama : llama_cpp.Llama
        The adapter keeps it, and can be pickled only if ``llama`` can.
    eos_ids : ids, optional
        By default the ids of end of text, turn and message in the file's metadata, and ``token_eos()``.

    Raises
    ------
    TokenizerError
        A token has no bytes that this library gives exactly.
    """

    def __init__(self, llama: Any, eos_ids: Iterable[int] | None = None) -> None:
        self._llama = llama
        metadata = getattr(llama, "metadata", None) or {}
        self._kind = str(metadata.get("tokenizer.ggml.model", "llama"))
        adds_space = str(metadata.get("tokenizer.ggml.add_space_prefix", "true")).lower() == "true"
        self._adds_space = adds_space and self._kind in ("llama", "t5")
        size = int(llama.n_vocab())
        found = {"bos": int(llama.token_bos()), "eos": int(llama.token_eos())}
        for role, key in (
            ("unk", "unknown"),
            ("pad", "padding"),
            ("sep", "seperator"),
            ("cls", "cls"),
            ("mask", "mask"),
        ):
            found[role] = int(metadata.get(f"tokenizer.ggml.{key}_token_id", -1))
        named: Any = {role: token_id for role, token_id in found.items() if 0 <= token_id < size}
        roles = SpecialTokens(**named)
        special = set(named.values())
        data: list[bytes | None] = []
        spellings: list[str | None] = []
        for token_id in range(size):
            piece = bytes(llama.detokenize([token_id], special=False)) if token_id not in special else b""
            shown = piece or bytes(llama.detokenize([token_id], special=True))
            text = self._text(token_id)
            if not piece and shown:
                special.add(token_id)
            elif not shown and text and token_id not in special:
                piece = shown = self._bytes_of(token_id, text)
            data.append(piece or None)
            spellings.append(text if text is not None else shown.decode("utf-8", "replace"))
        if eos_ids is None:
            ends = {int(metadata.get(f"tokenizer.ggml.{key}_token_id", -1)) for key in _EOS_KEYS} | {found["eos"]}
            eos_ids = [token_id for token_id in ends if 0 <= token_id < size]
        super().__init__(data, spellings, special, roles, eos_ids)
        self.chat_template = gguf_chat_template(metadata)

    def _encode_as_usual(self, text: str, add_special_tokens: bool) -> Encoding:
        data = utf8_of(text)
        ids: list[int] = list(self._llama.tokenize(data, add_bos=add_special_tokens, special=True))
        return self._encoding_of(text, data, ids, add_special_tokens)

    def read_text(self, text: str, add_special_tokens: bool, reading: Reading) -> Encoding:
        data = utf8_of(text)
        ids: list[int] = []
        # The library cuts a text at special tokens too, and encodes what is between them by itself.
        for begin, end, token_id in cut_at_tokens(text, reading, self.spelled_special_tokens()):
            piece = text[begin:end].encode()
            ids += self._llama.tokenize(piece, add_bos=False, special=False) if token_id is None else [token_id]
        if add_special_tokens:
            # What the file asks for around a text is around an empty one too.
            around = list(self._llama.tokenize(b"", add_bos=True, special=False))
            before = around[:1] if around[:1] == [self.special_tokens.bos] else []
            ids = [*before, *ids, *around[len(before) :]]
        return self._encoding_of(text, data, ids, add_special_tokens)

    def _encoding_of(self, text: str, data: bytes, ids: list[int], add_special_tokens: bool) -> Encoding:
        # The library adds the tokens that the file asks for: a beginning in front of the text, an end behind it.
        before = int(add_special_tokens and ids[:1] == [self.special_tokens.bos])
        after = int(
            add_special_tokens and len(ids) > before and ids[-1] in (self.special_tokens.eos, self.special_tokens.sep)
        )
        if after and data.endswith((self.id_to_token(ids[-1]) or "").encode() or b"\0"):
            after = 0
        inside = ids[before : len(ids) - after]

        def offsets() -> list[tuple[int, int]]:
            lengths = [len(self._output_bytes(token_id, skip_special_tokens=False)) for token_id in inside]
            if sum(lengths) == len(data) + 1 and lengths:  # a space in front, which is not in the text
                lengths[0] -= 1
            return [(0, 0)] * before + offsets_of_bytes(text, lengths) + [(0, 0)] * after

        mask = [1] * before + [0] * len(inside) + [1] * after
        return ready_encoding(ids, [self._spellings[token_id] or "" for token_id in ids], offsets, mask)

    def _at_start(self, token_id: int, data: bytes, first: bool) -> bytes:
        # SentencePiece puts a space in front of a text; the byte <0x20> is another token.
        begins_word = token_id not in self.special_ids and (self._spellings[token_id] or "").startswith((_SPACE, " "))
        return data.removeprefix(b" ") if first and begins_word and self._adds_space else data

    def _text(self, token_id: int) -> str | None:
        """A token as the file has it; newer and older versions of the library keep the function elsewhere."""
        function = getattr(getattr(self._llama, "_model", None), "token_get_text", None)
        return None if function is None else str(function(token_id))

    def _bytes_of(self, token_id: int, text: str) -> bytes:
        # Some versions of the library lose a token of more than 32 bytes.
        if self._kind == "gpt2":
            return text_to_bytes(text)
        if self._kind in ("llama", "t5"):
            return text.replace(_SPACE, " ").encode()
        raise TokenizerError(f"llama_cpp gives no bytes for token {token_id}, {text!r}")
