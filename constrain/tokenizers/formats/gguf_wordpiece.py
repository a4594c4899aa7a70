"""WordPiece from GGUF metadata (``tokenizer.ggml.model`` is ``bert``).

The converter writes U+2581 in front of tokens that begin a word, instead of ``##`` in front of the others.
"""

from __future__ import annotations

import numpy as np

from constrain.errors import TokenizerError
from constrain.tokenizers import models
from constrain.tokenizers.formats.gguf_vocabulary import NORMAL, GGUFVocabulary
from constrain.tokenizers.models.piece_model import MARKER
from constrain.tokenizers.models.piece_tokenizer import PieceOptions, PieceTokenizer, PieceVocabulary
from constrain.tokenizers.normalizing.bert_text import BERT_STAGES, BertText

_DEFAULTS = {"unk": 100, "cls": 101, "sep": 102, "mask": 103, "pad": 0}


def wordpiece_of_gguf(vocabulary: GGUFVocabulary, eos_ids: tuple[int, ...] | None = None) -> PieceTokenizer:
    """The tokenizer; text is lowered and loses its accents unless the file says otherwise."""
    roles = vocabulary.special_tokens(_DEFAULTS)
    if roles.unk is None:
        raise TokenizerError("GGUF: a WordPiece vocabulary without an unknown token")
    texts = {i: text for i, text in enumerate(vocabulary.tokens) if vocabulary.types[i] == NORMAL}
    lowercase = vocabulary.flag("normalizer.lowercase", True)
    strip = vocabulary.flag("normalizer.strip_accents", lowercase)
    begin = roles.cls if roles.cls is not None else roles.bos
    end = roles.sep if roles.sep is not None else roles.eos
    options = PieceOptions(
        steps=(BertText(strip_accents=strip, lowercase=lowercase),),
        stages=BERT_STAGES,
        before=(begin,) if begin is not None and vocabulary.flag("add_bos_token", True) else (),
        after=(end,) if end is not None and vocabulary.flag("add_sep_token", True) else (),
        strip_leading_space=True,
    )
    data = {i: text.replace(MARKER, " ").encode() for i, text in texts.items()}
    named = dict(enumerate(vocabulary.tokens))
    unused = np.flatnonzero(vocabulary.types != NORMAL).tolist()
    special = frozenset(i for i in unused if i in (roles.additional or ())) | frozenset(roles.roles().values())
    pieces = PieceVocabulary(named, data, vocabulary.added_tokens(), special, len(vocabulary.tokens))
    model = models.WordPiece(texts, roles.unk, MARKER, marks_begin=True)
    ends = vocabulary.end_ids(roles) if eos_ids is None else eos_ids
    return PieceTokenizer(model, pieces, options, roles, ends)
