"""Byte-level BPE from GGUF metadata (``tokenizer.ggml.model`` is ``gpt2``)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from constrain.errors import TokenizerError
from constrain.tokenizers.byte_alphabet import tokens_as_bytes
from constrain.tokenizers.formats.gguf_splits import BEGIN_BY_DEFAULT, WHOLE_PIECES, stages_of
from constrain.tokenizers.formats.gguf_vocabulary import NORMAL, GGUFVocabulary
from constrain.tokenizers.models.byte_level_bpe import ByteLevelBPE, ByteLevelOptions
from constrain.tokenizers.models.merge_ids import Merges, Pairs, ids_of_merges, is_merge
from constrain.tokenizers.splitting.patterns import SplitPattern


def byte_level_of_gguf(vocabulary: GGUFVocabulary, eos_ids: tuple[int, ...] | None = None) -> ByteLevelBPE:
    """The tokenizer; a ``pre`` name that is not known is a :class:`TokenizerError` that lists the known ones."""
    stages = stages_of(vocabulary.pre)
    normal = np.flatnonzero(vocabulary.types == NORMAL).tolist()
    tokens, foreign = tokens_as_bytes({i: vocabulary.tokens[i] for i in normal})
    roles = vocabulary.special_tokens()
    before, after = vocabulary.begin_and_end(roles, vocabulary.pre in BEGIN_BY_DEFAULT, False)
    options = ByteLevelOptions(
        split=stages[0] if len(stages) == 1 and isinstance(stages[0], SplitPattern) else stages,
        whole_piece=vocabulary.pre in WHOLE_PIECES,
        before=before,
        after=after,
    )
    # Files of Kimi K2 may leave out the merges: its ids are ranks.
    merges = None if vocabulary.pre == "kimi-k2" and not vocabulary.has("merges") else merges_of_gguf(vocabulary)
    ends = vocabulary.end_ids(roles) if eos_ids is None else eos_ids
    added, size = vocabulary.added_tokens(), len(vocabulary.tokens)
    return ByteLevelBPE(tokens, merges, added, options, roles, ends, size, foreign)


def merges_of_gguf(vocabulary: GGUFVocabulary) -> Merges:
    """Merges as ids; one that names no tokens is a :class:`TokenizerError`."""
    merges, ids = vocabulary.merges(), vocabulary.ids
    try:
        return ids_of_merges(Pairs.of_texts(merges), ids)
    except ValueError:
        return ids_of_merges([_pair(place, merge, ids) for place, merge in enumerate(merges)], ids)


def _pair(place: int, merge: str, ids: Mapping[str, int]) -> tuple[str, str]:
    # A token may begin with a space where the vocabulary is not written in the byte-level alphabet.
    cut = merge.find(" ", 1)
    first, second = merge[:cut], merge[cut + 1 :]
    if first not in ids or second not in ids:
        # Converters write a space within a token as the byte-level alphabet does, since a space divides the pair.
        first, second = first.replace("\u0120", " "), second.replace("\u0120", " ")
    if not is_merge((first, second), ids):
        raise TokenizerError(f"GGUF: merge {place}, {merge!r}, is not a pair of tokens that make a token")
    return first, second
