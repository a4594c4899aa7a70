"""The ``tokenizers`` library: any ``tokenizers.Tokenizer`` whose decoder has exact bytes.

A byte-level decoder says what bytes a token is.  For the others (SentencePiece's pieces, Metaspace,
WordPiece, or none) the library's own decoder is asked what the token adds behind another one, and
tokens like ``<0x0A>`` are bytes where the decoder has a byte fallback.  Decoders for which what a
token adds depends on what follows it (BPEDecoder, CTC) are refused.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from constrain.errors import TokenizerError
from constrain.tokenizers.adapters.table import TableTokenizer, check_size, well_known_eos
from constrain.tokenizers.arguments import checked_text, utf8_of
from constrain.tokenizers.base import Encoding
from constrain.tokenizers.byte_alphabet import alphabet_bytes
from constrain.tokenizers.ready_encoding import ready_encoding
from constrain.tokenizers.special_text import Reading, cut_at_tokens
from constrain.tokenizers.special_tokens import SpecialTokens

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_ANCHOR = "a"
_PIECEWISE = ("ByteFallback", "Fuse", "Metaspace", "Replace", "Strip", "WordPiece")


class HuggingFaceTokenizer(TableTokenizer):
    """A ``tokenizers.Tokenizer``.

    Ids, tokens and offsets are the library's.  ``token_bytes`` is what the token adds to a text that has
    begun: for SentencePiece's and WordPiece's a word begins with its space.

    Parameters
    ----------
    tokenizer : tokenizers.Tokenizer
        It is copied; its settings for truncation and padding are left behind.
    special_tokens : SpecialTokens, optional
        Roles of special tokens, which the library does not know.
    eos_ids : ids, optional
        By default the role ``eos``, else the tokens with a well-known name.

    Raises
    ------
    TokenizerError
        The decoder is none that is supported, or the tokenizer cannot be written to JSON.
    """

    def __init__(
        self, tokenizer: Any, special_tokens: SpecialTokens | None = None, eos_ids: Iterable[int] | None = None
    ) -> None:
        try:
            content = tokenizer.to_str()
        except Exception as error:  # parts that are written in Python have no JSON
            raise TokenizerError(f"this tokenizer cannot be copied: {error}") from None
        self._library_tokenizer = type(tokenizer).from_str(content)
        self._library_tokenizer.no_truncation()
        self._library_tokenizer.no_padding()
        settings = json.loads(content)
        vocabulary: dict[str, int] = tokenizer.get_vocab(with_added_tokens=True)
        if not vocabulary:
            raise TokenizerError("the vocabulary is empty")
        check_size(max(vocabulary.values()) + 1)
        spellings: list[str | None] = [None] * (max(vocabulary.values()) + 1)
        for token_id in vocabulary.values():
            # The library may spell, and decode, an added token as the normalizer changes it.
            spellings[token_id] = tokenizer.id_to_token(token_id)
        added = {int(entry["id"]): entry for entry in settings.get("added_tokens") or ()}
        self._added = {str(entry["content"]): token_id for token_id, entry in added.items()}
        self._secret = secrets.token_hex(8)
        self._copy: tuple[frozenset[int], Any] | None = None
        special = {token_id for token_id, entry in added.items() if entry.get("special")}
        unknown = settings["model"].get("unk_token")
        if settings["model"].get("type") == "Unigram" and settings["model"].get("unk_id") is not None:
            special.add(int(settings["model"]["unk_id"]))
        elif isinstance(unknown, str) and unknown in vocabulary:
            special.add(vocabulary[unknown])
        self._spell = _Decoder(settings.get("decoder"), tokenizer.decoder)
        data = [None if text is None else self._spell.later(text) for text in spellings]
        roles = SpecialTokens() if special_tokens is None else special_tokens
        if eos_ids is None:
            eos_ids = [roles.eos] if roles.eos is not None else well_known_eos(spellings)
        super().__init__(data, spellings, special, roles, eos_ids)

    def _encode_as_usual(self, text: str, add_special_tokens: bool) -> Encoding:
        found = self._encoded_by(self._library_tokenizer, text, add_special_tokens)
        return ready_encoding(found.ids, found.tokens, found.offsets, found.special_tokens_mask)

    def read_text(self, text: str, add_special_tokens: bool, reading: Reading) -> Encoding:
        checked_text(text)
        names = {name: token_id for name, token_id in self._added.items() if token_id in reading.guarded}
        changed, places = _renamed_text(text, names, reading, self._secret)
        library = self._renamed(reading.unreachable)
        found = self._encoded_by(library, changed, add_special_tokens)
        tokens = [self._spellings[token_id] or "" for token_id in found.ids]
        offsets = found.offsets
        if names:
            offsets = [(places[begin], places[end - 1] + 1 if begin < end else places[begin]) for begin, end in offsets]
        return ready_encoding(found.ids, tokens, offsets, found.special_tokens_mask)

    def spelled_added_tokens(self) -> Mapping[str, int]:
        return self._added

    def _encoded_by(self, library: Any, text: str, add_special_tokens: bool) -> Any:
        utf8_of(text)
        try:
            return library.encode(text, add_special_tokens=add_special_tokens)
        except BaseException as error:
            if not is_of_library(error):
                raise
            raise TokenizerError(f"tokenizers cannot encode this text: {error}") from None

    def _renamed(self, ids: frozenset[int]) -> Any:
        """The tokenizer with other names for some tokens, so that their own names are text; the last is kept."""
        if not ids:
            return self._library_tokenizer
        if self._copy is None or self._copy[0] != ids:
            settings = json.loads(self._library_tokenizer.to_str())
            kind = type(self._library_tokenizer)
            copy = kind.from_str(json.dumps(_with_other_names(settings, ids, self._secret)))
            if any(copy.token_to_id(_other_name(self._secret, token_id)) != token_id for token_id in ids):
                raise TokenizerError("tokenizers gives the special tokens of this file other ids under other names")
            self._copy = (ids, copy)
        return self._copy[1]

    def token_to_id(self, token: str) -> int | None:
        found = super().token_to_id(token)
        if found is None:
            found = self._library_tokenizer.token_to_id(token)
        return found

    def _shown_bytes(self, token_id: int) -> bytes | None:
        text = self._spellings[token_id]
        return None if text is None or token_id not in self.special_ids else self._spell.later(text)

    def _at_start(self, token_id: int, data: bytes, first: bool) -> bytes:
        if self._spell.byte_level:
            return data
        text = self._spellings[token_id]
        return data if text is None or not first else self._spell.first(text)


def is_of_library(error: BaseException) -> bool:
    """Whether the library has failed.  It raises plain Exception, and its panics are not even that."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def _renamed_text(text: str, names: Mapping[str, int], reading: Reading, secret: str) -> tuple[str, list[int]]:
    """The text with the tokens that are read under their other names, and where each character comes from, with the
    end."""
    if not names:
        return text, []
    pieces: list[str] = []
    places: list[int] = []
    for begin, end, token_id in cut_at_tokens(text, reading, names):
        piece = text[begin:end] if token_id is None else _other_name(secret, token_id)
        pieces.append(piece)
        places += range(begin, end) if token_id is None else [begin] * len(piece)
    return "".join(pieces), [*places, len(text)]


def _other_name(secret: str, token_id: int) -> str:
    """A name of a token that nobody outside can spell."""
    return f"\ue000{secret}{token_id:x}\ue001"


def _with_other_names(settings: dict[str, Any], ids: frozenset[int], secret: str) -> dict[str, Any]:
    """The settings of a tokenizer whose tokens ``ids`` are spelled with :func:`_other_name`; no id changes."""
    renamed: dict[str, str] = {}
    for entry in settings.get("added_tokens") or ():
        if entry["id"] in ids:
            renamed[entry["content"]] = entry["content"] = _other_name(secret, entry["id"])
            entry["normalized"] = False
    model = settings["model"]
    vocab = model.get("vocab")
    if isinstance(vocab, dict):
        for name, token_id in list(vocab.items()):
            if token_id in ids:
                renamed[name] = _other_name(secret, token_id)
        model["vocab"] = {renamed.get(name, name): token_id for name, token_id in vocab.items()}
    else:
        for token_id, entry in enumerate(vocab or ()):
            if token_id in ids:
                entry[0] = _other_name(secret, token_id)
    if model.get("unk_token") in renamed:
        model["unk_token"] = renamed[model["unk_token"]]
    if model.get("merges"):
        pairs = (entry.split(" ") if isinstance(entry, str) else entry for entry in model["merges"])
        model["merges"] = [pair for pair in pairs if "".join(pair) not in renamed and renamed.keys().isdisjoint(pair)]
    return settings


class _Decoder:
    """What a token's spelling means, by a decoder of the library."""

    def __init__(self, settings: dict[str, Any] | None, decoder: Any) -> None:
        kinds = {part["type"] for part in _parts(settings)} - {"Sequence"}
        self._decoder = decoder
        self.byte_level = "ByteLevel" in kinds
        self._byte_fallback = "ByteFallback" in kinds
        if self.byte_level:
            unknown = kinds - {"ByteLevel", "Fuse"}
        else:
            unknown = kinds - set(_PIECEWISE)
        for part in _parts(settings):
            if part["type"] == "Strip" and (part.get("stop", 0) or part.get("start", 0) > 1):
                unknown = {"Strip of several characters, or at the end"}
        if unknown:
            names = ", ".join(sorted(unknown))
            raise TokenizerError(
                f"decoder {names} is not supported, since a token alone has no bytes there; supported are ByteLevel, "
                + ", ".join(_PIECEWISE)
                + " and none"
            )
        self._anchor = "" if self.byte_level else self._text([_ANCHOR])

    def later(self, token: str) -> bytes:
        """The bytes that a token adds to a text."""
        if self.byte_level:
            return alphabet_bytes(token)
        fallback = _BYTE_TOKEN.fullmatch(token) if self._byte_fallback else None
        if fallback:
            return bytes((int(fallback[1], 16),))
        return self._text([_ANCHOR, token])[len(self._anchor) :].encode()

    def first(self, token: str) -> bytes:
        """The bytes of a token that begins a text; not for byte-level ones, which are the same everywhere."""
        text = self._text([token])
        if text and self._byte_fallback and _BYTE_TOKEN.fullmatch(token):
            return self.later(token)
        return text.encode()

    def _text(self, tokens: list[str]) -> str:
        if self._decoder is None:
            return " ".join(tokens)
        text: str = self._decoder.decode(tokens)
        return text


def _parts(settings: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    """A decoder's settings and those of the decoders in it."""
    if settings is not None:
        yield settings
        for part in settings.get("decoders", ()):
            yield from _parts(part)
