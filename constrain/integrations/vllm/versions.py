"""What differs between versions of vLLM; the rest of this package is the same for all of them.

Tested: 0.32.0 (its CPU wheel, run) and 0.33.0 (its classes, from the wheel).
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, NoReturn

from constrain.errors import ConstrainError

MANAGER_METHODS = {
    "_create_grammar": ["self", "request"],
    "_get_constraint_bounds": ["self", "request", "spec_tokens", "spec_tokens_committed"],
    "validate_tokens": ["self", "request", "spec_tokens"],
    "grammar_bitmask": ["self", "requests", "structured_output_request_ids", "scheduled_spec_decode_tokens"],
    "accept_tokens": ["self", "request", "new_token_ids"],
}
"""The methods of ``StructuredOutputManager`` that are wrapped or called, with their parameters."""


class Places:
    """The modules and classes of vLLM in which constrain takes a place.

    Raises
    ------
    ConstrainError
        If one of them is not there, or a method has other parameters: this version of vLLM is not known.
    """

    def __init__(self) -> None:
        self.version: str = import_module("vllm").__version__
        self.manager_module = self._module("vllm.v1.structured_output")
        self.xgrammar_module = self._module("vllm.v1.structured_output.backend_xgrammar")
        self.manager: Any = self._get(self.manager_module, "StructuredOutputManager")
        self.params: Any = self._get(self._module("vllm.sampling_params"), "SamplingParams")
        self._get(self.manager_module, "XgrammarBackend")
        self._get(self.xgrammar_module, "XgrammarBackend")
        self._get(self.xgrammar_module, "validate_xgrammar_grammar")
        self._get(self.params, "_validate_structured_outputs")
        for name, expected in MANAGER_METHODS.items():
            found = list(inspect.signature(inspect.unwrap(self._get(self.manager, name))).parameters)
            if found != expected:
                self._refuse(f"StructuredOutputManager.{name} takes {', '.join(found)}")

    def _module(self, name: str) -> ModuleType:
        try:
            return import_module(name)
        except ImportError as error:
            self._refuse(str(error))

    def _get(self, owner: Any, name: str) -> Any:
        if not hasattr(owner, name):
            self._refuse(f"{owner.__name__} has no {name}")
        return getattr(owner, name)

    def _refuse(self, reason: str) -> NoReturn:
        raise ConstrainError(
            f"constrain does not know this version of vLLM, {self.version}: {reason}; it knows 0.32 and 0.33 "
            "(without CONSTRAIN_VLLM=1 vLLM's own back ends are used)"
        )


def first_rows(
    mask_rows: int, request_ids: Sequence[str], drafts: Mapping[str, Sequence[int]], most_drafts: int
) -> list[int]:
    """The row of the mask at which each request begins.

    Up to 0.32 a request has a row for each of its drafts and one more, and requests follow each other without gaps.
    From 0.33 on each has as many rows as the most drafts need.

    Parameters
    ----------
    mask_rows : int
        How many rows the mask has that the manager made.
    request_ids, drafts
        The requests of the mask in their order, and the draft tokens of those that have some.
    most_drafts : int
        How many drafts a request has at most.
    """
    if mask_rows == len(request_ids) * (1 + most_drafts):
        # Without gaps this can only be if each request has all of its drafts: then both are the same.
        return [number * (1 + most_drafts) for number in range(len(request_ids))]
    rows, row = [], 0
    for request_id in request_ids:
        rows.append(row)
        row += 1 + len(drafts.get(request_id, ()))
    return rows


def validation_error(message: str) -> Exception:
    """The exception that vLLM answers with status 400."""
    kind: Any = import_module("vllm.exceptions").VLLMValidationError
    return kind(message)  # type: ignore[no-any-return]


def limit_of(request: Any, max_model_len: int) -> int | None:
    """How many tokens a request gets at most; None where it is cut on purpose, to go on in another engine.

    The engine that prefills for another one is asked for one token only (``do_remote_decode``).
    """
    transfer = request.kv_transfer_params
    if transfer and transfer.get("do_remote_decode"):
        return None
    return min(int(request.max_tokens), max_model_len - int(request.num_prompt_tokens))


def end_tokens_of(model_config: Any) -> set[int]:
    """The end tokens that a model names beside its tokenizer's, by which each of its requests ends too."""
    named = model_config.try_get_generation_config().get("eos_token_id")
    ends = [] if named is None else [named] if isinstance(named, int) else named
    return {int(token) for token in ends if 0 <= token < model_config.get_vocab_size()}


def end_of_thinking(reasoner: Any, tokenizer: Any) -> tuple[int, ...]:
    """The tokens that end a request's thinking; none where its reasoning parser does not say."""
    token = getattr(reasoner, "end_token_id", None)
    if isinstance(token, int):
        return (token,)
    text = reasoner.reasoning_end_str
    return tuple(tokenizer.encode(text, add_special_tokens=False)) if text else ()
