"""Builds tokenizers from SentencePiece models, without the ``sentencepiece`` package."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from constrain.errors import TokenizerError
from constrain.tokenizers import models
from constrain.tokenizers.added_tokens import AddedToken
from constrain.tokenizers.file_errors import errors_of
from constrain.tokenizers.formats import sentencepiece_proto as proto
from constrain.tokenizers.models.piece_model import MARKER, UNKNOWN_PENALTY, PieceModel, byte_of_token, byte_tokens
from constrain.tokenizers.models.piece_tokenizer import PieceOptions, PieceTokenizer, PieceVocabulary
from constrain.tokenizers.normalizing.charsmap import Charsmap, SpaceOptions
from constrain.tokenizers.special_tokens import SpecialTokens, find_eos_ids
from constrain.tokenizers.splitting.stages import RegexStage

_LARGEST_FILE = 2**30


def load_sentencepiece_file(path: Path, eos_ids: tuple[int, ...] | None = None) -> PieceTokenizer:
    """Read a ``.model`` file.

    As in the ``sentencepiece`` package, control symbols in a text are text; user-defined symbols are found.
    """
    with errors_of(path):
        if path.stat().st_size > _LARGEST_FILE:
            raise TokenizerError(f"larger than {_LARGEST_FILE >> 20} MiB")
        return tokenizer_of_model(proto.parse_model(path.read_bytes()), path.parent, eos_ids)


def tokenizer_of_model(
    model: proto.SentencePieceModel, folder: Path | None = None, eos_ids: tuple[int, ...] | None = None
) -> PieceTokenizer:
    """The tokenizer of a model; ``folder`` holds files that say which tokens end a generation."""
    texts = dict(enumerate(model.pieces))
    kinds = model.kinds
    if len(set(model.pieces)) != len(model.pieces) or "" in model.pieces:
        raise TokenizerError("SentencePiece model: a piece is empty or there twice")
    fixed = {text: i for i, text in texts.items() if kinds[i] == proto.USER_DEFINED}
    space = MARKER if model.escape_whitespaces else " "
    steps = Charsmap(
        model.charsmap,
        SpaceOptions(model.add_dummy_prefix, model.remove_extra_whitespaces, model.escape_whitespaces, model.as_suffix),
        tuple(fixed),
    )
    special = frozenset(i for i, kind in enumerate(kinds) if kind in (proto.CONTROL, proto.UNKNOWN))
    roles = _roles(model, special)
    # The package never encodes to an unused piece, but decodes it.
    unused = {i: text.replace(space, " ").encode() for i, text in texts.items() if kinds[i] == proto.UNUSED}
    # The package never finds control symbols in a text.  Who asks for special tokens wants them.
    silent = [AddedToken(i, texts[i], special=True) for i in sorted(special)]
    data = piece_bytes(texts, kinds, space)
    vocabulary = PieceVocabulary(texts, data, special_ids=special, shown=unused, silent=silent)
    options = PieceOptions(
        steps=(steps,),
        stages=(RegexStage(f"{space}[^{space}]*|[^{space}]+"),) if model.kind == proto.WORD else (),
        before=() if roles.bos is None else (roles.bos,),
        strip_leading_space=model.add_dummy_prefix or model.remove_extra_whitespaces,
        shown_unknown=kinds.index(proto.UNKNOWN) if proto.UNKNOWN in kinds else -1,
    )
    ids = {text: i for i, text in texts.items()}
    ends = find_eos_ids(folder, roles, ids.get) if eos_ids is None else eos_ids
    return PieceTokenizer(_model(model, texts, fixed), vocabulary, options, roles, ends)


def piece_bytes(texts: dict[int, str], kinds: list[int], space: str = MARKER) -> dict[int, bytes]:
    """What each piece adds to a text; a byte piece that names no byte is a :class:`TokenizerError`."""
    data = {}
    for token_id, text in texts.items():
        kind = kinds[token_id]
        if kind == proto.BYTE:
            byte = byte_of_token(text)
            if byte is None:
                raise TokenizerError(f"byte token {text!r} (id {token_id}) names no byte")
            data[token_id] = bytes((byte,))
        elif kind in (proto.NORMAL, proto.USER_DEFINED):
            data[token_id] = text.replace(space, " ").encode()
    return data


def _model(model: proto.SentencePieceModel, texts: dict[int, str], fixed: dict[str, int]) -> PieceModel:
    kinds, scores = model.kinds, np.array(model.scores, dtype=np.float32)
    unknown = [i for i, kind in enumerate(kinds) if kind == proto.UNKNOWN]
    if len(unknown) != 1:
        raise TokenizerError(f"SentencePiece model: {len(unknown)} unknown pieces, there must be one")
    byte_ids = None
    if model.byte_fallback:
        byte_ids = byte_tokens({text: i for i, text in texts.items() if kinds[i] == proto.BYTE})
        if byte_ids is None:
            raise TokenizerError("SentencePiece model: byte_fallback without a token for every byte")
    tokens = {i: text for i, text in texts.items() if kinds[i] in (proto.NORMAL, proto.USER_DEFINED)}
    if model.kind in (proto.BPE, proto.CHAR):
        if proto.UNUSED in kinds:
            raise TokenizerError("SentencePiece model: unused pieces are not supported in a BPE or char model")
        nothing = np.empty(0, dtype=np.int64)
        merges = (nothing, nothing, nothing) if model.kind == proto.CHAR else None
        return models.SymbolBPE(tokens, merges, scores, unk=unknown[0], byte_ids=byte_ids, fixed=fixed)
    if model.kind == proto.WORD:
        if model.byte_fallback:
            raise TokenizerError("SentencePiece model: byte_fallback is not supported in a word model")
        return models.WordLevel(tokens, unknown[0], fuse=True)
    if model.kind != proto.UNIGRAM:
        raise TokenizerError(
            f"SentencePiece model of type {model.kind} is not supported; supported are Unigram, BPE, word and char"
        )
    normal = scores[[i for i, kind in enumerate(kinds) if kind == proto.NORMAL]]
    lowest = normal.min() if len(normal) else np.float32(0)
    # In single precision, as the reference works this out.
    unknown_score = float(lowest - np.float32(UNKNOWN_PENALTY))
    exact = scores.astype(np.float64)
    for text, token_id in fixed.items():
        # A higher score than its characters can have by themselves; a longer token that overlaps it may still win.
        exact[token_id] = np.float32(0.1 * (len(text.encode()) - 1))
    return models.Unigram(tokens, exact, unk=unknown[0], unknown_score=unknown_score, byte_ids=byte_ids, single=True)


def _roles(model: proto.SentencePieceModel, special: frozenset[int]) -> SpecialTokens:
    named = {"bos": model.bos_id, "eos": model.eos_id, "unk": model.unk_id, "pad": model.pad_id}
    roles = {role: token_id for role, token_id in named.items() if token_id in special}
    return SpecialTokens(additional=tuple(sorted(special - set(roles.values()))), **roles)
