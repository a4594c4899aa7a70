"""Reads ``tokenizer.json``: byte-level BPE here, the other models by formats/json_pieces.py.

Every part of the file that changes encoding or decoding is either read or refused by name.
``truncation`` and ``padding`` are about batches for training: ``encode`` never cuts or pads a text.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

from constrain.collection import without_collection
from constrain.errors import TokenizerError
from constrain.tokenizers.added_tokens import AddedToken
from constrain.tokenizers.base import Tokenizer
from constrain.tokenizers.byte_alphabet import bytes_to_text, text_to_bytes, tokens_as_bytes
from constrain.tokenizers.file_errors import errors_of
from constrain.tokenizers.formats.json_parts import MODELS, parts_of, parts_of_file, type_of
from constrain.tokenizers.formats.json_pieces import is_text, pieces_of_json, vocabulary_of
from constrain.tokenizers.formats.json_post_processors import around_text, pair_template
from constrain.tokenizers.formats.json_pre_tokenizers import PreTokenizer, read_pre_tokenizer
from constrain.tokenizers.models.byte_level_bpe import ByteLevelBPE, ByteLevelOptions
from constrain.tokenizers.models.merge_ids import Merges, Pairs, ids_of_merges, is_merge, read_json_with_merges
from constrain.tokenizers.models.piece_tokenizer import PieceTokenizer
from constrain.tokenizers.normalizing.normal_forms import NormalForm
from constrain.tokenizers.special_tokens import SpecialTokens, find_eos_ids, read_roles
from constrain.tokenizers.splitting.patterns import SplitPattern

_UNUSUAL = ("byte_fallback", "fuse_unk", "continuing_subword_prefix", "end_of_word_suffix")
_BYTES_OF_TEXT = bytes_to_text(bytes(byte for byte in range(256) if byte not in (0xC0, 0xC1, *range(0xF5, 0x100))))
"""The bytes that well-formed UTF-8 has, in the byte-level alphabet."""


def load_tokenizer_json(path: Path, eos_ids: tuple[int, ...] | None = None) -> Tokenizer:
    """Read the file, and the configuration files beside it for the roles of its special tokens."""
    with errors_of(path):
        return parse_tokenizer_json(path.read_bytes(), path.parent, eos_ids)


def parse_tokenizer_json(data: bytes, folder: Path | None = None, eos_ids: tuple[int, ...] | None = None) -> Tokenizer:
    """The tokenizer in the content of a ``tokenizer.json``; ``folder`` holds further configuration files."""
    return _parse(data, folder, eos_ids)


@without_collection
def _parse(data: bytes, folder: Path | None, eos_ids: tuple[int, ...] | None) -> Tokenizer:
    try:
        content = read_json_with_merges(data)
    except RecursionError:
        raise TokenizerError("nested too deeply") from None
    except ValueError as error:
        raise TokenizerError(f"not JSON: {error}") from None
    if not isinstance(content, dict) or not isinstance(content.get("model"), dict):
        raise TokenizerError('a JSON object with a "model" was expected')
    model = content["model"]
    _check_model(model)
    added = _added_tokens(content.get("added_tokens"))
    pre = read_pre_tokenizer(content.get("pre_tokenizer"))
    vocab = vocabulary_of(model)
    _check_added_ids(added, vocab)
    ids = {token.content: token.id for token in added}

    def to_id(name: str) -> int | None:
        return ids.get(name, vocab.get(name))

    around = around_text(content.get("post_processor"), to_id)
    roles = read_roles(folder, (token.id for token in added if token.special), to_id)
    eos = find_eos_ids(folder, roles, to_id) if eos_ids is None else eos_ids
    roles = _with_first_eos(roles, eos)
    tokenizer: ByteLevelBPE | PieceTokenizer
    if _is_usual_byte_level(content, pre):
        tokens, foreign = _tokens(vocab, set(ids))
        merges = _merges(model.get("merges"), vocab)
        usual = _byte_level_options(content, pre, around)
        tokenizer = ByteLevelBPE(tokens, merges, added, usual, roles, eos, foreign=foreign)
    else:
        pieces, vocabulary, options = pieces_of_json(content, added, around, _merges)
        tokenizer = PieceTokenizer(pieces, vocabulary, options, roles, eos)
        tokenizer.file_parts = parts_of_file(content, (token.id for token in added if token.content not in vocab))
    tokenizer.pair_template = pair_template(content.get("post_processor"), to_id)
    _check_template_ids(tokenizer)
    return tokenizer


def _byte_level_options(
    content: dict[str, Any], pre: PreTokenizer, around: tuple[tuple[int, ...], tuple[int, ...]]
) -> ByteLevelOptions:
    before, after = around
    return ByteLevelOptions(
        split=pre.stages[0] if len(pre.stages) == 1 and isinstance(pre.stages[0], SplitPattern) else tuple(pre.stages),
        whole_piece=bool(content["model"].get("ignore_merges")),
        normal_form=_normal_form(content.get("normalizer")),
        added_in_alphabet=True,
        add_prefix_space=pre.prefix,
        before=before,
        after=after,
    )


def _check_template_ids(tokenizer: ByteLevelBPE | PieceTokenizer) -> None:
    """What is put around texts has to be tokens: nothing else can be decoded."""
    in_pairs = (ids for ids, _ in tokenizer.pair_template or () if isinstance(ids, tuple))
    for token_id in {*chain(*tokenizer.around, *in_pairs)}:
        if not 0 <= token_id < tokenizer.vocab_size or tokenizer.id_to_token(token_id) is None:
            raise TokenizerError(f"post_processor: id {token_id} is not in the vocabulary")


def _with_first_eos(roles: SpecialTokens, eos_ids: tuple[int, ...]) -> SpecialTokens:
    """Without a role ``eos`` in the files, the first of the ids that end a text has that role."""
    if roles.eos is not None or not eos_ids:
        return roles
    others = tuple(token_id for token_id in roles.additional if token_id != eos_ids[0])
    return SpecialTokens(**{**roles.roles(), "eos": eos_ids[0]}, additional=others)


def _check_model(model: dict[str, Any]) -> None:
    kind = type_of({"type": "BPE", **model})
    if kind not in ("BPE", "Unigram", "WordPiece", "WordLevel"):
        raise TokenizerError(f"model {kind} is not supported; supported are {MODELS}")
    if kind == "BPE" and model.get("dropout"):
        raise TokenizerError(f'"dropout": {model["dropout"]!r} is not supported in a BPE model')


def _added_tokens(entries: Any) -> list[AddedToken]:
    if entries is None:
        return []
    added: dict[int, AddedToken] = {}
    contents: set[str] = set()
    for entry in entries if isinstance(entries, list) else [entries]:
        token_id, text = (entry.get("id"), entry.get("content")) if isinstance(entry, dict) else (None, None)
        if not isinstance(token_id, int) or isinstance(token_id, bool) or not isinstance(text, str):
            raise TokenizerError(f"added token {entry!r} has no id or no content")
        if not is_text(text):
            raise TokenizerError(f"added token {text!r} (id {token_id}) has a lone surrogate, which has no UTF-8")
        if token_id in added or text in contents:
            raise TokenizerError(f"added token {text!r} (id {token_id}) is there twice")
        contents.add(text)
        flags = {key: bool(entry.get(key)) for key in ("special", "lstrip", "rstrip", "single_word", "normalized")}
        added[token_id] = AddedToken(token_id, text, **flags)
    return list(added.values())


def _check_added_ids(added: list[AddedToken], vocab: dict[str, int]) -> None:
    """An added token may be in the vocabulary too, but under the same id and alone."""
    contents = dict(zip(vocab.values(), vocab.keys(), strict=True))
    for token in added:
        if vocab.get(token.content, token.id) != token.id or contents.get(token.id, token.content) != token.content:
            raise TokenizerError(f"added token {token.content!r} (id {token.id}) contradicts the vocabulary")


def _tokens(vocab: dict[str, int], added: set[str]) -> tuple[dict[int, bytes], dict[int, bytes]]:
    """The bytes of the tokens that merging reaches, and of the others."""
    # An added token may be listed in the vocabulary too.  There it is bytes like the others, or out of reach.
    tokens, foreign = tokens_as_bytes({token_id: token for token, token_id in vocab.items() if token not in added})
    for token in added & vocab.keys():
        with suppress(TokenizerError):
            tokens[vocab[token]] = text_to_bytes(token)
    return tokens, foreign


def _merges(entries: Any, vocab: dict[str, int]) -> Merges:
    """Merges are ``"left right"`` in older files, ``["left", "right"]`` in newer ones."""
    if not isinstance(entries, list | Pairs):
        raise TokenizerError('"merges" must be a list')
    pairs = entries
    if isinstance(entries, list):
        pairs = [entry.split(" ") if isinstance(entry, str) else entry for entry in entries]
    try:
        return ids_of_merges(pairs, vocab)
    except (TypeError, ValueError):
        wrong = next((i for i in range(len(pairs)) if not is_merge(pairs[i], vocab)), 0)
        raise TokenizerError(f"merge {wrong}, {entries[wrong]!r}, is not a pair of tokens that make a token") from None


def _normal_form(entry: Any) -> NormalForm | None:
    """The form of a normalizer that is one, or nothing."""
    forms: dict[str, NormalForm] = {"NFC": "NFC", "NFD": "NFD", "NFKC": "NFKC", "NFKD": "NFKD"}
    parts = parts_of(entry, "normalizers")
    return forms[type_of(parts[0])] if len(parts) == 1 else None


def _is_usual_byte_level(content: dict[str, Any], pre: PreTokenizer) -> bool:
    """Whether the file is of the usual kind, for which there are kernels: all symbols are bytes, and have tokens."""
    model = content["model"]
    normalizers = list(map(type_of, parts_of(content.get("normalizer"), "normalizers")))
    vocab = model.get("vocab")
    return (
        pre.byte_level
        and not pre.unusual
        and model.get("type", "BPE") == "BPE"
        and not any(model.get(key) for key in _UNUSUAL)
        and (not normalizers or (len(normalizers) == 1 and normalizers[0] in ("NFC", "NFD", "NFKC", "NFKD")))
        and type_of(content.get("decoder")) == "ByteLevel"
        and (not isinstance(vocab, dict) or all(char in vocab for char in _BYTES_OF_TEXT))
    )
