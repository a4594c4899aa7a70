"""A back end of ``outlines``: logits processors for its models of transformers and llama.cpp.

::

    backend = ConstrainBackend(model, max_tokens=200)
    generator = Generator(model, processor=backend.get_json_schema_logits_processor(schema))
    generator("...", max_new_tokens=200)

``outlines`` chooses among its own back ends by a fixed list of names; a generator takes any processor.
"""

from __future__ import annotations

from typing import Any

from outlines.backends.base import BaseBackend
from outlines.models import LlamaCpp, Transformers
from outlines.processors.base_logits_processor import OutlinesLogitsProcessor

from constrain.engine.compiled_grammar import CompiledGrammar
from constrain.engine.compiler import GrammarCompiler
from constrain.engine.vocabulary.vocabulary import Vocabulary
from constrain.errors import ConstrainError
from constrain.grammar.grammar import Grammar
from constrain.integrations.follower import Follower
from constrain.integrations.transformers import ConstrainLogitsProcessor, end_tokens_of


class ConstrainProcessor(OutlinesLogitsProcessor):  # type: ignore[misc, unused-ignore]
    """The processor of llama.cpp's logits, numpy arrays; ``outlines`` resets it before each generation.

    Parameters
    ----------
    compiled : CompiledGrammar
    max_tokens : int, optional
        How many tokens the model makes at most, so that the text is complete by then.

    Raises
    ------
    ConstrainError
        If ``max_tokens`` are too few for any text.
    """

    def __init__(self, compiled: CompiledGrammar, *, max_tokens: int | None = None) -> None:
        super().__init__("numpy")
        # llama-cpp-python prints what is raised within a generation, and goes on.
        Follower(compiled, max_tokens=max_tokens)
        self._compiled, self._max_tokens = compiled, max_tokens
        self._followers: list[Follower] = []

    def reset(self) -> None:
        """Begin anew with the next call."""
        self._followers = []

    def process_logits(self, input_ids: Any, logits: Any) -> Any:
        """The logits, float[rows, vocabulary], with -inf for what may not come next after int[rows, width].

        Raises
        ------
        ConstrainError
            If a sequence is not what the grammar allows.
        """
        if not self._followers:
            self._followers = [Follower(self._compiled, max_tokens=self._max_tokens) for _ in input_ids]
        for follower, ids, row in zip(self._followers, input_ids, logits, strict=True):
            follower.apply(ids, row)
        return logits


class ConstrainBackend(BaseBackend):  # type: ignore[misc, unused-ignore]
    """Makes the processors of one model.

    Parameters
    ----------
    model : outlines.models.Transformers or outlines.models.LlamaCpp
    max_tokens : int, optional
        How many tokens a generation makes at most (``max_new_tokens`` of transformers, ``max_tokens`` of llama.cpp), so
        that each text is complete by then.

    Raises
    ------
    ConstrainError
        If it is a model of another library, or its tokens have no exact bytes.
    """

    def __init__(self, model: Any, *, max_tokens: int | None = None) -> None:
        self._max_tokens = max_tokens
        self._is_torch = isinstance(model, Transformers)
        if self._is_torch:
            size = int(model.model.get_output_embeddings().weight.shape[0])
            # A generation ends with what the model's settings name, whatever the tokenizer does.
            ends = sorted(end_tokens_of(model.model)) or None
            vocabulary = Vocabulary.from_huggingface(model.hf_tokenizer, size=size, eos_ids=ends)
        elif isinstance(model, LlamaCpp):
            vocabulary = Vocabulary.from_huggingface(model.model)
        else:
            raise ConstrainError(
                f"constrain's back end of outlines is for Transformers and LlamaCpp, not {type(model).__name__}"
            )
        self._compiler = GrammarCompiler(vocabulary)

    def _processor(self, grammar: Grammar) -> ConstrainLogitsProcessor | ConstrainProcessor:
        compiled = self._compiler.compile(grammar)
        if self._is_torch:
            return ConstrainLogitsProcessor(compiled, max_new_tokens=self._max_tokens)
        return ConstrainProcessor(compiled, max_tokens=self._max_tokens)

    def get_json_schema_logits_processor(self, json_schema: str, whitespace_pattern: str | None = None) -> Any:
        """The processor for a JSON Schema, as JSON text.

        Raises
        ------
        ConstrainError
            If it cannot be enforced, or ``whitespace_pattern`` matches no white space of JSON.
        """
        return self._processor(Grammar.from_json_schema(json_schema, whitespace_pattern=whitespace_pattern))

    def get_regex_logits_processor(self, regex: str) -> Any:
        """The processor for a regular expression that the whole text matches."""
        return self._processor(Grammar.from_regex(regex))

    def get_cfg_logits_processor(self, grammar: str) -> Any:
        """The processor for a Lark grammar."""
        return self._processor(Grammar.from_lark(grammar))
