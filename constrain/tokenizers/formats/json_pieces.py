"""Builds the tokenizers of ``tokenizer.json`` that are not byte-level BPE."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from constrain.errors import TokenizerError
from constrain.tokenizers import models
from constrain.tokenizers.added_tokens import AddedToken
from constrain.tokenizers.arguments import check_token_ids
from constrain.tokenizers.byte_alphabet import CHARACTER_OF_BYTE
from constrain.tokenizers.formats.json_decoders import read_decoder
from constrain.tokenizers.formats.json_normalizers import steps_of_normalizer
from constrain.tokenizers.formats.json_parts import MODELS, flag_of, type_of
from constrain.tokenizers.formats.json_pre_tokenizers import general_stages, read_pre_tokenizer
from constrain.tokenizers.formats.json_shortcuts import simplified
from constrain.tokenizers.models import whole_pieces
from constrain.tokenizers.models.merge_ids import Pairs
from constrain.tokenizers.models.piece_model import UNKNOWN_PENALTY, PieceModel, byte_tokens
from constrain.tokenizers.models.piece_tokenizer import PieceOptions, PieceVocabulary
from constrain.tokenizers.normalizing.text_steps import apply_steps

Merges = tuple[Any, Any, Any]


def pieces_of_json(
    content: dict[str, Any],
    added: list[AddedToken],
    around: tuple[tuple[int, ...], tuple[int, ...]],
    read_merges: Callable[[Any, dict[str, int]], Merges],
) -> tuple[PieceModel, PieceVocabulary, PieceOptions]:
    """Model, vocabulary and options; ``around``: the ids around a text."""
    model = content["model"]
    ids = vocabulary_of(model)
    pre = read_pre_tokenizer(content.get("pre_tokenizer"))
    general = pre.byte_level or pre.unusual
    decoder = read_decoder(content.get("decoder"))
    parts = general_stages(content.get("pre_tokenizer")) if general else pre.stages
    steps, stages = simplified(steps_of_normalizer(content.get("normalizer")), parts)
    unknown = _unknown(model, ids)
    options = PieceOptions(
        steps=steps,
        piece_steps=() if general else tuple(pre.steps),
        stages=stages,
        before=around[0],
        after=around[1],
        strip_leading_space=decoder.strip_leading_space,
        shown_unknown=unknown if model.get("type") == "Unigram" else -1,
    )
    texts = dict(zip(ids.values(), ids.keys(), strict=True))
    special = frozenset({unknown} - {-1}) | {token.id for token in added if token.special}
    # An added token that is looked for in normalized text is spelled, and decoded, as the normalizer makes it.
    spelled = texts | {
        token.id: apply_steps(options.steps, token.content, False) if token.normalized else token.content
        for token in added
    }
    for token in added:
        if token.normalized and token.content and not spelled[token.id]:
            raise TokenizerError(
                f"added token {token.content!r} (id {token.id}) is not supported: the normalizer leaves nothing of it"
            )
    try:
        data = dict(zip(spelled, decoder.all_to_bytes(list(spelled.values())), strict=True))
        shown = {token_id: data.pop(token_id) for token_id in special}
        firsts = {} if decoder.first is None else {i: decoder.first_form(text) for i, text in spelled.items()}
        first_forms = {token_id: first for token_id, first in firsts.items() if first is not None}
    except UnicodeEncodeError:
        raise TokenizerError("a token has a lone surrogate, which has no UTF-8") from None
    vocabulary = PieceVocabulary(spelled, data, added, special, shown=shown, first_forms=first_forms)
    all_in_bytes = pre.byte_level and not pre.unusual and set(CHARACTER_OF_BYTE) <= ids.keys()
    return _model(model, ids, texts, unknown, all_in_bytes, read_merges), vocabulary, options


def vocabulary_of(model: dict[str, Any]) -> dict[str, int]:
    """Ids by token: an object, or for Unigram a list of tokens and scores."""
    vocab = model.get("vocab")
    if model.get("type") != "Unigram":
        if not isinstance(vocab, dict) or set(map(type, vocab.values())) != {int}:
            raise TokenizerError('"vocab" must be an object from tokens to ids')
        check_token_ids(vocab.values())
        if len(set(vocab.values())) != len(vocab):
            raise TokenizerError("two tokens of the vocabulary have the same id")
        return vocab
    if not isinstance(vocab, list) or not vocab:
        raise TokenizerError('"vocab" must be a list of tokens and scores')
    ids: dict[str, int] = {}
    for token_id, entry in enumerate(vocab):
        if not isinstance(entry, list) or len(entry) != 2 or not isinstance(entry[0], str):
            raise TokenizerError(f'"vocab": entry {token_id} is not a token and its score')
        if not isinstance(entry[1], int | float) or isinstance(entry[1], bool):
            raise TokenizerError(f'"vocab": entry {token_id} is not a token and its score')
        if entry[0] in ids:
            raise TokenizerError(f"token {entry[0]!r} is in the vocabulary twice, the second time as id {token_id}")
        ids[entry[0]] = token_id
    return ids


def _unknown(model: dict[str, Any], ids: dict[str, int]) -> int:
    if model.get("type") == "Unigram":
        unknown = model.get("unk_id")
        if type(unknown) is not int or not 0 <= unknown < len(ids):
            raise TokenizerError('"unk_id" must be the id of a token')
        return unknown
    name = model.get("unk_token")
    if name is None:
        return -1
    if not isinstance(name, str):
        raise TokenizerError('"unk_token" must be a string')
    if name not in ids and model.get("type") == "WordLevel":
        return -1
    if name not in ids:
        raise TokenizerError(f'"unk_token" {name!r} is not in the vocabulary')
    return ids[name]


def _model(
    model: dict[str, Any],
    ids: dict[str, int],
    texts: dict[int, str],
    unknown: int,
    all_in_bytes: bool,
    read_merges: Callable[[Any, dict[str, int]], Merges],
) -> PieceModel:
    """``all_in_bytes``: no piece has a character without a token."""
    kind = model.get("type", "BPE")
    byte_ids = None
    if kind in ("BPE", "Unigram") and flag_of(model, "byte_fallback", False):
        byte_ids = byte_tokens(ids)
        if byte_ids is None:
            raise TokenizerError('"byte_fallback" without a token for every byte')
    if kind == "Unigram":
        scores = _scores(model["vocab"])
        return models.Unigram(
            texts,
            scores,
            unk=unknown,
            unknown_score=float(scores.min()) - UNKNOWN_PENALTY,
            byte_ids=byte_ids,
            whole_spans=True,
        )
    if kind == "WordPiece":
        prefix, most = model.get("continuing_subword_prefix", "##"), model.get("max_input_chars_per_word", 100)
        if unknown < 0 or not is_text(prefix) or type(most) is not int:
            raise TokenizerError("WordPiece: unk_token, continuing_subword_prefix or max_input_chars_per_word is wrong")
        return models.WordPiece(texts, unknown, prefix, min(most, 2**31))
    if kind == "WordLevel":
        return models.WordLevel(texts, unknown)
    if kind != "BPE":
        raise TokenizerError(f"model {type_of(model)} is not supported; supported are {MODELS}")
    whole = whole_pieces.ALWAYS if flag_of(model, "ignore_merges", False) else whole_pieces.NEVER
    tokens = {token_id: text for token_id, text in texts.items() if text}
    fuse = flag_of(model, "fuse_unk", False)
    prefix, suffix = model.get("continuing_subword_prefix") or "", model.get("end_of_word_suffix") or ""
    if not is_text(prefix) or not is_text(suffix):
        raise TokenizerError('"continuing_subword_prefix" and "end_of_word_suffix" must be strings')
    if prefix or suffix or (unknown < 0 and byte_ids is None and not all_in_bytes):
        return models.SpelledBPE(
            tokens,
            _merges_by_pair(model, ids, prefix, read_merges),
            prefix=prefix,
            suffix=suffix,
            unk=unknown,
            fuse=fuse,
            byte_ids=byte_ids,
            whole=whole == whole_pieces.ALWAYS,
        )
    merges = read_merges(model.get("merges"), ids)
    return models.SymbolBPE(tokens, merges, unk=unknown, fuse=fuse, byte_ids=byte_ids, whole=whole)


def is_text(value: Any) -> bool:
    """Whether it is a string that has UTF-8: one with a lone surrogate has none."""
    return isinstance(value, str) and not any("\ud800" <= char <= "\udfff" for char in value)


def _scores(vocab: list[tuple[str, float]]) -> npt.NDArray[np.float64]:
    """Of a Unigram vocabulary; an integer may be larger than any number of double precision."""
    try:
        return np.array([score for _, score in vocab], dtype=np.float64)
    except OverflowError:
        raise TokenizerError("a score is not a finite number") from None


def _merges_by_pair(
    model: dict[str, Any], ids: dict[str, int], prefix: str, read_merges: Callable[[Any, dict[str, int]], Merges]
) -> dict[tuple[int, int], tuple[int, int]]:
    """For each pair its rank and what it becomes: of the second token the prefix is left out."""
    if not prefix:
        columns = [column.tolist() for column in read_merges(model.get("merges"), ids)]
        return {(left, right): (rank, made) for rank, (left, right, made) in enumerate(zip(*columns, strict=True))}
    merges: dict[tuple[int, int], tuple[int, int]] = {}
    entries = model.get("merges")
    if not isinstance(entries, list | Pairs):
        raise TokenizerError('"merges" must be a list')
    for rank in range(len(entries)):
        entry: Any = entries[rank]
        pair = entry.split(" ") if isinstance(entry, str) else entry
        try:
            left, right = pair
            if not right.startswith(prefix):
                raise ValueError(right)
            merges[ids[left], ids[right]] = rank, ids[left + right.removeprefix(prefix)]
        except (KeyError, TypeError, ValueError, AttributeError):
            raise TokenizerError(f"merge {rank}, {pair!r}, is not a pair of tokens that make a token") from None
    return merges
