"""vLLM's own manager of structured outputs and requests, in a loop that does what its scheduler does.

The model is a random choice among the tokens that the mask allows.
"""

from __future__ import annotations

import json
from random import Random
from types import SimpleNamespace
from typing import Any

from servers.small_tokenizer import small_tokenizer
from tiny_models import ROWS
from vllm import SamplingParams
from vllm.sampling_params import StructuredOutputsParams
from vllm.v1 import structured_output
from vllm.v1.core.sched.utils import check_stop
from vllm.v1.request import Request, RequestStatus

from constrain.engine.vocabulary.bitmasks import is_allowed
from constrain.engine.vocabulary.vocabulary import Vocabulary

TOKENIZER = small_tokenizer()
VOCABULARY = Vocabulary.from_huggingface(TOKENIZER, size=ROWS)
MODEL = SimpleNamespace(
    skip_tokenizer_init=False,
    max_model_len=200,
    is_diffusion=False,
    get_vocab_size=lambda: ROWS,
    try_get_generation_config=dict,
)


def config(backend: str = "auto", drafts: int = 0, *, disable_any_whitespace: bool = False) -> Any:
    """As much of a ``VllmConfig`` as the manager reads."""
    return SimpleNamespace(
        model_config=MODEL,
        parallel_config=SimpleNamespace(distributed_executor_backend=None),
        scheduler_config=SimpleNamespace(max_num_seqs=8),
        num_speculative_tokens=drafts,
        structured_outputs_config=SimpleNamespace(
            backend=backend,
            reasoning_parser="",
            reasoning_parser_plugin="",
            enable_in_reasoning=False,
            disable_any_whitespace=disable_any_whitespace,
        ),
    )


def make_manager(monkeypatch: Any, settings: Any, reasoner: Any = None) -> Any:
    """A ``StructuredOutputManager``; ``reasoner`` is the class of a reasoning parser."""
    monkeypatch.setattr(structured_output, "cached_tokenizer_from_config", lambda model_config: TOKENIZER)
    manager = structured_output.StructuredOutputManager(settings)
    manager.reasoner_cls = reasoner
    return manager


def make_request(max_tokens: int, *, prompt: int = 3, stops: tuple[int, ...] = (), **asked: Any) -> Any:
    """A request as it is in the engine; ``asked`` goes to ``StructuredOutputsParams``."""
    structured = StructuredOutputsParams(**asked)
    structured._backend = "xgrammar"
    params = SamplingParams(max_tokens=max_tokens, structured_outputs=structured, stop_token_ids=list(stops))
    params.update_from_generation_config({}, TOKENIZER.eos_token_id)
    return Request("r", [5] * prompt, params, None)


def compile_request(manager: Any, request: Any) -> Any:
    """The request's grammar, once it is compiled; an exception if it cannot be."""
    manager.grammar_init(request)
    request.structured_output_request._grammar.exception(60)
    return request.structured_output_request.grammar


def rows_of(mask: Any, count: int) -> list[Any]:
    return [mask[row].copy() for row in range(count)]


def run(manager: Any, request: Any, random: Random, *, drafts: int = 0) -> list[int]:
    """Generate until vLLM would stop; the tokens."""
    most = manager.vllm_config.num_speculative_tokens
    proposed: list[int] = []
    while True:
        mask = manager.grammar_bitmask({"r": request}, ["r"], {"r": proposed} if proposed else {})
        # Without drafts newer versions have the rows of the most drafts nevertheless.
        assert len(mask) in (1 + len(proposed), 1 + most)
        new = []
        for row in range(len(proposed) + 1):
            allowed = [token for token in range(ROWS) if is_allowed(mask[row], token)]
            assert allowed
            wanted = proposed[row] if row < len(proposed) else None
            token = wanted if wanted in allowed and random.random() < 0.8 else random.choice(allowed)
            new.append(token)
            if token != wanted:
                break
        for count, token in enumerate(new, 1):
            request.append_output_token_ids(token)
            if check_stop(request, MODEL.max_model_len):
                del new[count:]
                break
        assert manager.accept_tokens(request, new)
        if RequestStatus.is_finished(request.status):
            return list(request.output_token_ids)
        proposed = []
        if drafts:
            count = random.randrange(drafts + 1)
            proposed = manager.validate_tokens(request, [random.choice(PROPOSED) for _ in range(count)])


def text_of(tokens: list[int]) -> str:
    return b"".join(VOCABULARY.tokens[token] for token in tokens).decode()


def id_of(text: str) -> int:
    return int(TOKENIZER.convert_tokens_to_ids(text))


# What drafts are made of: letters, the end, and the end of thinking.
PROPOSED = [*(VOCABULARY.tokens.index(letter.encode()) for letter in "abcdeno"), id_of("</think>"), id_of("</s>")]


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
