"""Texts that are complete within ``max_tokens``: what vLLM's manager of structured outputs does besides.

A back end of vLLM is not told how many tokens a request gets, nor how many of them went into thinking.  The functions
here stand around the manager's own and tell it.

Thinking is not constrained by a grammar, but the tokens that end a request are forbidden in it, since there would be no
text.  It is ended, by a mask with nothing but the token that ends it, when what is left of the limit is just what that
token, the shortest text and its end take.  The text gets what thinking has left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from vllm.logger import init_logger
from vllm.v1.structured_output.utils import strip_speculative_padding

from constrain.engine.matcher import Matcher
from constrain.engine.vocabulary.bitmasks import allow, forbid
from constrain.errors import ConstrainError
from constrain.integrations.vllm.backend import ConstrainGrammar
from constrain.integrations.vllm.requests import json_options
from constrain.integrations.vllm.versions import end_of_thinking, first_rows, limit_of

# A name below "vllm" is in the log that vLLM sets up.
logger = init_logger("vllm.constrain")


def create_grammar(manager: Any, request: Any) -> ConstrainGrammar:
    """The grammar of a request, with its limit; called in a thread of the manager's.

    Raises
    ------
    ConstrainError
        If what is asked for cannot be enforced, or the limit is too small for the end of thinking and any text.
    """
    structured = request.structured_output_request
    kind, spec = structured.structured_output_key
    limit = limit_of(request, manager.vllm_config.model_config.max_model_len)
    grammar: ConstrainGrammar = manager.backend.compile_grammar(
        kind,
        spec,
        stop_token_ids=request.sampling_params.all_stop_token_ids,
        limit=limit,
        options=json_options(structured.params, manager.vllm_config.structured_outputs_config),
    )
    if limit is not None and manager._get_constraint_bounds(request, ()).constraint_start > 0:
        grammar.end_of_thinking = end_of_thinking(structured.reasoner, manager.tokenizer)
        if not grammar.end_of_thinking:
            _warn_of_reasoner(type(structured.reasoner).__name__)
        grammar.shortest = Matcher(grammar.compiled.grammar).tokens_to_finish()
        needed = len(grammar.end_of_thinking) + grammar.shortest
        if needed > limit:
            raise ConstrainError(
                f"max_tokens is {limit}, but the end of thinking and the shortest text take {needed} tokens"
            )
    return grammar


_warned: set[str] = set()


def _warn_of_reasoner(name: str) -> None:
    if name not in _warned:
        _warned.add(name)
        logger.warning(
            "%s does not say which token ends thinking: it cannot be ended in time, so that a text after long thinking "
            "may be cut by max_tokens",
            name,
        )


def _thinking_grammar(manager: Any, request: Any) -> ConstrainGrammar | None:
    """The grammar of a request whose text has not begun, where its tokens so far may be thinking."""
    structured = request.structured_output_request
    if manager.reasoner_cls is None or structured is None:
        return None
    grammar = structured.grammar
    return grammar if isinstance(grammar, ConstrainGrammar) and not grammar.has_begun else None


def before_tokens(manager: Any, request: Any, drafts: Sequence[int]) -> None:
    """Say how many tokens there are when the next ones are given to the grammar: those of the request, and drafts."""
    grammar = _thinking_grammar(manager, request)
    if grammar is not None:
        grammar.tokens_at_end = request.num_output_tokens + len(strip_speculative_padding(list(drafts)))


class Thinking(NamedTuple):
    """How much of a request's drafts is thinking.

    Attributes
    ----------
    drafts : int
        So many of its drafts, from the first on, are no text; more than there are where all of them are thinking.
    rows : int
        So many of its masks, from the first on.
    """

    drafts: int
    rows: int


def begin_texts(
    manager: Any, requests: dict[str, Any], drafts: dict[str, list[int]], ids: list[str]
) -> dict[str, Thinking]:
    """Let texts that may begin now begin in what is left; the requests that are thinking."""
    thinking = {}
    for request_id in ids:
        request = requests[request_id]
        grammar = _thinking_grammar(manager, request)
        if grammar is None:
            continue
        tokens = strip_speculative_padding(drafts.get(request_id, []))
        bounds = manager._get_constraint_bounds(request, tokens)
        if bounds.grammar_start <= len(tokens):
            grammar.begin(request.num_output_tokens + bounds.grammar_start)
        # The manager gives drafts one at a time; where they begin has just been said.
        grammar.tokens_at_end = None
        if bounds.constraint_start > 0:
            rows = min(bounds.constraint_start, len(tokens) + 1)
            thinking[request_id] = Thinking(bounds.grammar_start, rows)
    return thinking


def read_drafts_ahead(
    manager: Any,
    requests: dict[str, Any],
    drafts: dict[str, list[int]],
    ids: list[str],
    thinking: dict[str, Thinking],
) -> list[ConstrainGrammar]:
    """Make all masks of the drafts of a step in one call, and tell the grammars of it, which are returned.

    None where that cannot be done in one call.
    """
    grammars, given = [], []
    for request_id in ids:
        tokens = strip_speculative_padding(drafts.get(request_id, []))
        if request_id in thinking:
            tokens = tokens[thinking[request_id].drafts :]
        grammar = requests[request_id].structured_output_request.grammar
        if tokens and isinstance(grammar, ConstrainGrammar) and grammar.failure is None and not grammar.is_terminated():
            grammars.append(grammar)
            given.append(grammar.known_tokens(tokens))
    if grammars:
        try:
            found = manager.backend.draft_masks.read_ahead([grammar.matcher for grammar in grammars], given)
        except ConstrainError:
            # One takes too much time or memory; the manager, which asks them one by one, finds out which.
            return []
        for grammar, ahead in zip(grammars, found, strict=True):
            grammar.ahead = ahead
    return grammars


def mask_thinking(
    manager: Any,
    requests: dict[str, Any],
    drafts: dict[str, list[int]],
    ids: list[str],
    thinking: dict[str, Thinking],
    mask: NDArray[np.int32],
) -> None:
    """Forbid the end of a request in its thinking; leave only the end of thinking where there is no time for more.

    Parameters
    ----------
    thinking : dict of Thinking
        By request.
    mask : int32[rows, words]
        Changed in place.
    """
    begins = first_rows(len(mask), ids, drafts, manager.vllm_config.num_speculative_tokens)
    for request_id, begin in zip(ids, begins, strict=True):
        if request_id in thinking:
            rows = mask[begin : begin + thinking[request_id].rows]
            _mask_thinking_of(requests[request_id], drafts.get(request_id, []), rows)


def _mask_thinking_of(request: Any, drafts: list[int], rows: NDArray[np.int32]) -> None:
    grammar: ConstrainGrammar = request.structured_output_request.grammar
    end = grammar.end_of_thinking
    # One for the token that ends the text.
    needed = len(end) + grammar.shortest + 1
    left = None if grammar.limit is None or not end else grammar.limit - request.num_output_tokens
    before = request.output_token_ids[-len(end) :] if end else []
    for number, row in enumerate(rows):
        if left is not None and left - number <= needed:
            row[:] = 0
            allow(row, end[_begun([*before, *drafts[:number]], end)])
        else:
            for token in request.sampling_params.all_stop_token_ids:
                if token not in end:
                    forbid(row, token)


def _begun(said: Sequence[int], end: tuple[int, ...]) -> int:
    """How many tokens of ``end`` the last ones that were said are."""
    return max(count for count in range(len(end)) if tuple(said[len(said) - count :]) == end[:count])
