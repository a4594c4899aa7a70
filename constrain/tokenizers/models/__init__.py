"""From the bytes of a piece to ids: byte-level BPE, BPE over characters, Unigram, WordPiece, WordLevel.

A model whose kernels only some vocabularies need is imported when this package is first asked for it, as
``models.Unigram``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from constrain.tokenizers.models.spelled_bpe import SpelledBPE
    from constrain.tokenizers.models.symbol_bpe import SymbolBPE
    from constrain.tokenizers.models.unigram import Unigram
    from constrain.tokenizers.models.word_level import WordLevel
    from constrain.tokenizers.models.wordpiece import WordPiece

# To load the kernels of a model takes 8 to 40 ms, to compile them 0.4 to 2 s (measured).  The trie that all of them use
# adds 21 ms and 1.7 s.
_MODULES = {
    "SpelledBPE": "spelled_bpe",
    "SymbolBPE": "symbol_bpe",
    "Unigram": "unigram",
    "WordLevel": "word_level",
    "WordPiece": "wordpiece",
}

__all__ = ["SpelledBPE", "SymbolBPE", "Unigram", "WordLevel", "WordPiece"]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    model = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    return model
