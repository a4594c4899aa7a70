"""Constrained decoding: which tokens may come next, exactly, in microseconds.

>>> import constrain
>>> vocabulary = constrain.Vocabulary([b"yes", b"no", b"maybe", b"</s>"], eos_ids=[3])
>>> compiled = constrain.GrammarCompiler(vocabulary).compile(constrain.Grammar.from_choices(["yes", "no"]))
>>> matcher = constrain.Matcher(compiled)
>>> matcher.accept_token(2), matcher.accept_token(0), matcher.is_accepting()
(False, True, True)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from constrain.collection import without_collection
from constrain.errors import ConstrainError, GrammarError, LimitError, SchemaError, TokenizerError
from constrain.limits import Deadline
from constrain.uninterrupted import load_numpy
from constrain.version import __version__

if TYPE_CHECKING:
    from constrain.engine.accepting import accept_token_batch
    from constrain.engine.compiled_grammar import CompiledGrammar
    from constrain.engine.compiler import GrammarCompiler
    from constrain.engine.masks.batches import fill_next_token_bitmask_batch
    from constrain.engine.masks.drafts import fill_draft_bitmasks
    from constrain.engine.matcher import Matcher
    from constrain.engine.recognizer import Recognizer
    from constrain.engine.vocabulary.applying import apply_token_bitmask_inplace
    from constrain.engine.vocabulary.bitmasks import allocate_token_bitmask
    from constrain.engine.vocabulary.vocabulary import Vocabulary
    from constrain.grammar.grammar import Grammar
    from constrain.tokenizers.factory import load_tokenizer

# Loaded on first use, so that `constrain --help` does not wait for numba.
_EXPORTS = {
    "accept_token_batch": "constrain.engine.accepting",
    "allocate_token_bitmask": "constrain.engine.vocabulary.bitmasks",
    "apply_token_bitmask_inplace": "constrain.engine.vocabulary.applying",
    "fill_draft_bitmasks": "constrain.engine.masks.drafts",
    "fill_next_token_bitmask_batch": "constrain.engine.masks.batches",
    "CompiledGrammar": "constrain.engine.compiled_grammar",
    "GrammarCompiler": "constrain.engine.compiler",
    "Matcher": "constrain.engine.matcher",
    "Recognizer": "constrain.engine.recognizer",
    "Vocabulary": "constrain.engine.vocabulary.vocabulary",
    "Grammar": "constrain.grammar.grammar",
    "load_tokenizer": "constrain.tokenizers.factory",
}

__all__ = [
    "CompiledGrammar",
    "ConstrainError",
    "Deadline",
    "Grammar",
    "GrammarCompiler",
    "GrammarError",
    "LimitError",
    "Matcher",
    "Recognizer",
    "SchemaError",
    "TokenizerError",
    "Vocabulary",
    "__version__",
    "accept_token_batch",
    "allocate_token_bitmask",
    "apply_token_bitmask_inplace",
    "fill_draft_bitmasks",
    "fill_next_token_bitmask_batch",
    "load_tokenizer",
]


def __getattr__(name: str) -> Any:
    module = _EXPORTS.get(name)
    if module is None:
        raise AttributeError(f"module 'constrain' has no attribute {name!r}")
    load_numpy()
    value = _load(module, name)
    globals()[name] = value
    return value


@without_collection
def _load(module: str, name: str) -> Any:
    # Modules make no garbage, and the collector would look for it fifty times.
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted(__all__)
