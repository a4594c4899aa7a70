"""A request is looked at before it comes to the engine: what cannot be enforced is refused there, with the reason."""

from __future__ import annotations

from typing import Any

from vllm.v1.structured_output.request import get_structured_output_key

from constrain.errors import ConstrainError
from constrain.integrations.request_matcher import matcher_within
from constrain.integrations.vllm.backend import compile_request, compilers_of, request_deadline
from constrain.integrations.vllm.requests import json_options
from constrain.integrations.vllm.versions import validation_error

_REFUSED = {
    "min_tokens": "a text may have to end before",
    "ignore_eos": "a text would go on after its end",
    "allowed_token_ids": "they may leave no token where the grammar needs another",
    "bad_words": "they may leave no token where the grammar needs one of them",
}
"""Parameters of a request that work against its grammar, and how."""


def check_request(params: Any, model_config: Any, config: Any, tokenizer: Any) -> None:
    """Compile what a request asks for, so that the engine will not fail.

    Parameters
    ----------
    params : vllm.SamplingParams
        With ``structured_outputs``.
    model_config, config : vllm.config.ModelConfig, vllm.config.StructuredOutputsConfig
    tokenizer
        The model's.

    Raises
    ------
    vllm.exceptions.VLLMValidationError
        With the reason.
    """
    for name, reason in _REFUSED.items():
        if getattr(params, name):
            raise validation_error(f"{name} cannot be combined with structured outputs: {reason}")
    kind, spec = get_structured_output_key(params.structured_outputs)
    try:
        compilers = compilers_of(tokenizer, model_config.get_vocab_size(), model_config)
        # The model's own end tokens are not among them in all versions; in the engine they are.
        stops = {*compilers.vocabulary.eos_ids, *(params.stop_token_ids or ())}
        options, deadline = json_options(params.structured_outputs, config), request_deadline()
        compiled = compile_request(compilers, kind.name, spec, options, stops, deadline)
        matcher_within(compiled.grammar, params.max_tokens, time_limit=deadline)
    except ConstrainError as error:
        raise validation_error(str(error)) from error
