"""The ``tokenizer.ggml.*`` metadata of a GGUF file, checked and with names."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from constrain.errors import TokenizerError
from constrain.tokenizers.added_tokens import AddedToken
from constrain.tokenizers.special_tokens import SpecialTokens

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
"""Token types, the same numbers as in a SentencePiece model."""

END_NAMES = (
    *("<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<end_of_turn>", "<turn|>", "<|endoftext|>"),
    *("<|end_of_text|>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<eos>", "<end_of_utterance>"),
    *("<|flush|>", "<|calls|>", "[e~["),
    "<\uff5cend\u2581of\u2581sentence\uff5c>",
)
"""Control tokens with one of these names end a generation."""

_ROLE_KEYS = {
    "bos": "bos_token_id",
    "eos": "eos_token_id",
    "unk": "unknown_token_id",
    "sep": "seperator_token_id",
    "pad": "padding_token_id",
    "cls": "cls_token_id",
    "mask": "mask_token_id",
}
_END_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")
_FILLER = re.compile(r"\[PAD(\d+)\]")


class GGUFVocabulary:
    """What a GGUF file says about its tokenizer.

    Attributes
    ----------
    model, pre : str
        The kind of vocabulary, and the name of its pre-tokenizer ("default" if there is none).
    tokens : list of str
        By id, as the file writes them.
    types : int32[n]
        Token types.
    """

    def __init__(self, metadata: dict[str, Any]) -> None:
        self._metadata = metadata
        self.model = self._text("model")
        self.pre = self._text("pre", "default")
        raw = self._get("tokens")
        if not isinstance(raw, list) or not raw or not all(isinstance(token, bytes) for token in raw):
            raise TokenizerError("GGUF: tokenizer.ggml.tokens is missing or is no array of strings")
        self.tokens = self._decoded(raw, "tokens")
        types = self._numbers("token_type", np.int32)
        self.types = np.full(len(raw), NORMAL, dtype=np.int32) if types is None else types.copy()
        for place in np.flatnonzero((self.types < NORMAL) | (self.types > BYTE)).tolist():
            kind = self.types[place]
            raise TokenizerError(
                f"GGUF: tokenizer.ggml.token_type[{place}] is {kind}; supported are {NORMAL} to {BYTE}"
            )
        for token_id in np.flatnonzero(self.types == USER_DEFINED).tolist():
            # Converters fill gaps in a vocabulary with tokens of this name.
            filler = _FILLER.fullmatch(self.tokens[token_id])
            if filler and filler[1] == str(token_id):
                self.types[token_id] = UNUSED

    @cached_property
    def scores(self) -> npt.NDArray[np.float32]:
        """float32[n]; an error if the file has none."""
        raw = self._get("scores")
        whole = isinstance(raw, np.ndarray) and raw.dtype == np.int32
        scores: npt.NDArray[Any] | None = self._numbers("scores", np.int32 if whole else np.float32)
        if scores is None:
            raise TokenizerError("GGUF: tokenizer.ggml.scores is missing")
        return scores.astype(np.float32)

    @cached_property
    def ids(self) -> dict[str, int]:
        """Ids by token; of equal tokens the first."""
        return dict(zip(reversed(self.tokens), range(len(self.tokens) - 1, -1, -1), strict=True))

    def merges(self) -> list[str]:
        """``"left right"`` in order of rank; an error if the file has none."""
        raw = self._get("merges")
        if not isinstance(raw, list) or not all(isinstance(merge, bytes) for merge in raw):
            raise TokenizerError("GGUF: tokenizer.ggml.merges is missing or is no array of strings")
        return self._decoded(raw, "merges")

    def has(self, name: str) -> bool:
        """Whether the file says anything about ``tokenizer.ggml.name``."""
        return self._get(name) is not None

    def charsmap(self) -> bytes:
        """The compiled normalization rules, which may be empty."""
        value = self._get("precompiled_charsmap")
        if value is None:
            return b""
        if isinstance(value, np.ndarray) and value.dtype.itemsize == 1:
            return value.tobytes()
        raise TokenizerError("GGUF: tokenizer.ggml.precompiled_charsmap is no array of bytes")

    def flag(self, name: str, default: bool) -> bool:
        """A boolean, such as ``add_space_prefix``."""
        value = self._get(name)
        if value is not None and not isinstance(value, bool):
            raise TokenizerError(f"GGUF: tokenizer.ggml.{name} is no boolean")
        return default if value is None else value

    def token_id(self, name: str) -> int | None:
        """An id, such as ``bos_token_id``; None if it is not there or if there is no such token."""
        value = self._get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise TokenizerError(f"GGUF: tokenizer.ggml.{name} is no id")
        return value if value is not None and 0 <= value < len(self.tokens) else None

    def special_tokens(self, defaults: dict[str, int] | None = None) -> SpecialTokens:
        """Roles from the file, else from ``defaults``; the other control tokens are additional."""
        roles: dict[str, int] = {}
        for role, key in _ROLE_KEYS.items():
            token_id = self.token_id(key)
            if token_id is None and defaults is not None and defaults.get(role, len(self.tokens)) < len(self.tokens):
                token_id = defaults[role]
            if token_id is not None:
                roles[role] = token_id
        others = set(np.flatnonzero(self.types == CONTROL).tolist()) - set(roles.values())
        return SpecialTokens(additional=tuple(sorted(others)), **roles)

    def end_ids(self, roles: SpecialTokens) -> tuple[int, ...]:
        """The ids that end a generation: those that the file names, and control tokens with a well-known name."""
        ends = {token_id for token_id in map(self.token_id, _END_KEYS) if token_id is not None}
        if roles.eos is not None:
            ends.add(roles.eos)
        named = {name: self.ids.get(name) for name in END_NAMES}
        if named["<|return|>"] is not None or named["<|flush|>"] is not None:
            named["<|end|>"] = None  # it ends a message there, not the generation
        ends.update(i for i in named.values() if i is not None and self.types[i] == CONTROL)
        return tuple(sorted(ends))

    def added_tokens(self) -> list[AddedToken]:
        """Control and unknown tokens (special) and user-defined ones (text)."""
        left, right = self._strippers()
        added = []
        for token_id in np.flatnonzero(np.isin(self.types, (UNKNOWN, CONTROL, USER_DEFINED))).tolist():
            text = self.tokens[token_id]
            special = bool(self.types[token_id] != USER_DEFINED)
            added.append(AddedToken(token_id, text, special=special, lstrip=text in left, rstrip=text in right))
        return added

    def begin_and_end(self, roles: SpecialTokens, begin: bool, end: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The ids around a text; ``begin`` and ``end`` where the file does not say."""
        before = (roles.bos,) if self.flag("add_bos_token", begin) and roles.bos is not None else ()
        after = (roles.eos,) if self.flag("add_eos_token", end) and roles.eos is not None else ()
        return before, after

    def _strippers(self) -> tuple[frozenset[str], frozenset[str]]:
        """The tokens that swallow white space before and behind them.

        The format has no flags for single tokens, so they are recognised by name, as in llama.cpp.
        """
        name, architecture = self._label("name").lower(), self._label("architecture")
        if self.pre.startswith(("jina-v2-de", "jina-v2-es", "jina-v2-code")) or architecture in (
            "nomic-bert-moe",
            "jina-bert-v3",
        ):
            return frozenset(("<mask>",)), frozenset()
        if re.search(r"phi-?3", name):
            special = {self.tokens[i] for i in np.flatnonzero(np.isin(self.types, (CONTROL, USER_DEFINED))).tolist()}
            return frozenset(), frozenset(special - {"<unk>", "<s>", "<|endoftext|>"})
        return frozenset(("[MASK]",)) if "modern-bert" in name else frozenset(), frozenset()

    def _label(self, name: str) -> str:
        value = self._metadata.get(f"general.{name}")
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""

    def _get(self, name: str) -> Any:
        return self._metadata.get(f"tokenizer.ggml.{name}")

    def _text(self, name: str, default: str | None = None) -> str:
        value = self._get(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, bytes):
            raise TokenizerError(f"GGUF: tokenizer.ggml.{name} is missing or is no string")
        return value.decode("utf-8", "replace")

    def _numbers(self, name: str, dtype: type[np.generic]) -> Any:
        value = self._get(name)
        if value is None:
            return None
        if not isinstance(value, np.ndarray) or value.dtype != dtype or len(value) != len(self.tokens):
            raise TokenizerError(f"GGUF: tokenizer.ggml.{name} must have one {np.dtype(dtype).name} for each token")
        return value

    def _decoded(self, raw: list[bytes], name: str) -> list[str]:
        try:
            return [item.decode() for item in raw]
        except UnicodeDecodeError:
            bad = next(i for i, item in enumerate(raw) if item.decode("utf-8", "replace").encode() != item)
            raise TokenizerError(f"GGUF: tokenizer.ggml.{name}[{bad}] is not UTF-8") from None
