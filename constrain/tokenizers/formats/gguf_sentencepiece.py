"""Vocabularies of characters from GGUF metadata: BPE by scores (``llama``), by merges (``gemma4``), Unigram (``t5``).

Control, unknown and user-defined tokens are found in the text first, and the stretches between them are
normalized one by one, as in the ``tokenizer.json`` of the same models.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from constrain.errors import TokenizerError
from constrain.tokenizers import models
from constrain.tokenizers.formats.gguf_byte_level import merges_of_gguf
from constrain.tokenizers.formats.gguf_vocabulary import (
    BYTE,
    CONTROL,
    NORMAL,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    GGUFVocabulary,
)
from constrain.tokenizers.formats.sentencepiece_file import piece_bytes
from constrain.tokenizers.models import whole_pieces
from constrain.tokenizers.models.piece_model import (
    UNKNOWN_PENALTY,
    PieceModel,
    byte_tokens,
)
from constrain.tokenizers.models.piece_tokenizer import PieceOptions, PieceTokenizer, PieceVocabulary
from constrain.tokenizers.normalizing.bert_text import Lowercase
from constrain.tokenizers.normalizing.charsmap import Charsmap, SpaceOptions
from constrain.tokenizers.normalizing.text_steps import TextStep
from constrain.tokenizers.special_tokens import SpecialTokens
from constrain.tokenizers.splitting.stages import RegexStage


def sentencepiece_of_gguf(vocabulary: GGUFVocabulary, eos_ids: tuple[int, ...] | None = None) -> PieceTokenizer:
    """SentencePiece's BPE, ranked by scores."""
    roles = vocabulary.special_tokens({"bos": 1, "eos": 2, "unk": 0})
    byte_ids = _byte_ids(vocabulary)
    unk = -1 if roles.unk is None else roles.unk
    model = models.SymbolBPE(_normal(vocabulary), scores=vocabulary.scores, unk=unk, byte_ids=byte_ids)
    prefix = vocabulary.flag("add_space_prefix", True)
    steps = _space_steps(prefix)
    before, after = vocabulary.begin_and_end(roles, True, False)
    options = PieceOptions(steps=steps, before=before, after=after, strip_leading_space=prefix)
    return _tokenizer(vocabulary, model, options, roles, eos_ids)


def merged_sentencepiece_of_gguf(vocabulary: GGUFVocabulary, eos_ids: tuple[int, ...] | None = None) -> PieceTokenizer:
    """BPE over characters by merges, without splits but at newlines."""
    gemma = vocabulary.pre != "sarvam-moe"
    roles = vocabulary.special_tokens()
    prefix = vocabulary.flag("add_space_prefix", False)
    before, after = vocabulary.begin_and_end(roles, False, False)
    if gemma and roles.bos is not None:
        before = (roles.bos,)  # even where the file says otherwise: converters got it wrong
    options = PieceOptions(
        steps=_space_steps(prefix),
        stages=(RegexStage(r"[^\n]+|\n+"),),
        before=before,
        after=after,
        strip_leading_space=prefix,
    )
    model = _merged(vocabulary, roles, whole_pieces.NEWLINES if gemma else whole_pieces.NEVER)
    return _tokenizer(vocabulary, model, options, roles, eos_ids)


def merged_words_of_gguf(vocabulary: GGUFVocabulary, eos_ids: tuple[int, ...] | None = None) -> PieceTokenizer:
    """BPE over the characters of words by merges; white space is lost."""
    roles = vocabulary.special_tokens()
    before, after = vocabulary.begin_and_end(roles, False, False)
    lowercase = vocabulary.flag("normalizer.lowercase", False)
    options = PieceOptions(
        steps=(Lowercase(),) if lowercase else (),
        stages=(RegexStage(r"\s", "Removed"),),
        before=before,
        after=after,
    )
    return _tokenizer(vocabulary, _merged(vocabulary, roles, whole_pieces.NEVER), options, roles, eos_ids)


def _merged(vocabulary: GGUFVocabulary, roles: SpecialTokens, whole: int) -> PieceModel:
    left, right, merged = merges_of_gguf(vocabulary)
    byte_ids = _byte_ids(vocabulary)
    tokens = _normal(vocabulary)
    used = np.concatenate((left, right, merged))
    for token_id in np.setdiff1d(used, np.fromiter(tokens, dtype=np.int64, count=len(tokens))).tolist():
        tokens[token_id] = vocabulary.tokens[token_id]  # merging reaches it whatever its type
    unk = -1 if roles.unk is None else roles.unk
    return models.SymbolBPE(tokens, (left, right, merged), unk=unk, byte_ids=byte_ids, whole=whole)


def unigram_of_gguf(vocabulary: GGUFVocabulary, eos_ids: tuple[int, ...] | None = None) -> PieceTokenizer:
    """Unigram with SentencePiece's normalization."""
    roles = vocabulary.special_tokens({"eos": 1, "unk": 2, "pad": 0})
    if roles.unk is None:
        raise TokenizerError("GGUF: a Unigram vocabulary without an unknown token")
    tokens = _normal(vocabulary)
    scores = vocabulary.scores
    lowest = scores[list(tokens)].min() if tokens else np.float32(0)
    # llama.cpp matches unused pieces too, and user-defined ones where normalization makes one; these have score 0.
    # The penalty of unknown characters depends on the normal pieces alone.
    tokens |= _of_type(vocabulary, UNUSED) | _of_type(vocabulary, USER_DEFINED)
    model = models.Unigram(
        tokens,
        np.where(vocabulary.types == USER_DEFINED, 0.0, scores.astype(np.float64)),
        unk=roles.unk,
        unknown_score=float(lowest - np.float32(UNKNOWN_PENALTY)),
    )
    # llama.cpp writes a space in front of every word where it removes extra ones.
    remove_extra = vocabulary.flag("remove_extra_whitespaces", False)
    prefix = vocabulary.flag("add_space_prefix", False) or remove_extra
    spaces = SpaceOptions(
        add_dummy_prefix=prefix,
        remove_extra=remove_extra,
        escape=vocabulary.flag("escape_whitespaces", True),
        as_suffix=vocabulary.flag("treat_whitespace_as_suffix", False),
    )
    before, after = vocabulary.begin_and_end(roles, False, True)
    steps = (Charsmap(vocabulary.charsmap(), spaces),)
    options = PieceOptions(steps=steps, before=before, after=after, strip_leading_space=prefix)
    return _tokenizer(vocabulary, model, options, roles, eos_ids)


def _space_steps(prefix: bool) -> tuple[TextStep, ...]:
    return (Charsmap(b"", SpaceOptions(prefix, remove_extra=False)),)


def _byte_ids(vocabulary: GGUFVocabulary) -> npt.NDArray[np.int32] | None:
    """The tokens of bytes.  If a file marks none, and has tokens with all 256 names, these become byte tokens."""
    if not (vocabulary.types == BYTE).any():
        named = byte_tokens(vocabulary.ids)
        if named is not None and (named >= 0).all() and (vocabulary.types[named] == NORMAL).all():
            vocabulary.types[named] = BYTE
    return byte_tokens({text: i for text, i in vocabulary.ids.items() if vocabulary.types[i] == BYTE})


def _normal(vocabulary: GGUFVocabulary) -> dict[int, str]:
    """The tokens that text can become.  Of equal tokens the first counts; only a model can generate the others."""
    return _of_type(vocabulary, NORMAL)


def _of_type(vocabulary: GGUFVocabulary, kind: int) -> dict[int, str]:
    found = np.flatnonzero(vocabulary.types == kind).tolist()
    ids = vocabulary.ids
    return {i: vocabulary.tokens[i] for i in found if ids[vocabulary.tokens[i]] == i and vocabulary.tokens[i]}


def _tokenizer(
    vocabulary: GGUFVocabulary,
    model: PieceModel,
    options: PieceOptions,
    roles: SpecialTokens,
    eos_ids: tuple[int, ...] | None,
) -> PieceTokenizer:
    texts = dict(enumerate(vocabulary.tokens))
    special = frozenset(np.flatnonzero(np.isin(vocabulary.types, (UNKNOWN, CONTROL))).tolist())
    kinds = vocabulary.types.tolist()
    data = piece_bytes(texts, kinds)
    added = vocabulary.added_tokens()
    for token in added:
        data.pop(token.id, None)  # llama.cpp writes its content as it is
    # An unused piece is never generated and adds nothing to a text, but Unigram can meet its text.
    shown = {i: b"" for i in texts if kinds[i] == UNUSED}
    pieces = PieceVocabulary(texts, data, added, special, len(texts), shown)
    ends = vocabulary.end_ids(roles) if eos_ids is None else eos_ids
    return PieceTokenizer(model, pieces, options, roles, ends)
