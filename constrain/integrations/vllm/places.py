"""Where constrain stands in vLLM: in the place of XGrammar's back end, which ``auto`` and ``xgrammar`` both mean.

vLLM has no registry of back ends.  Names of its modules are bound to constrain's classes.  Methods of its manager of
structured outputs are wrapped, and so is the one that checks requests.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

from vllm.logger import init_logger

from constrain.errors import ConstrainError
from constrain.integrations.vllm import in_time
from constrain.integrations.vllm.backend import ConstrainBackend
from constrain.integrations.vllm.validation import check_request
from constrain.integrations.vllm.versions import Places
from constrain.version import __version__

# A name below "vllm" is in the log that vLLM sets up.
logger = init_logger("vllm.constrain")

PLACE = "xgrammar"
"""The back end whose place is taken."""

_taken: list[Places] = []


def take_places() -> None:
    """Take them, once in a process.

    Raises
    ------
    ConstrainError
        If this version of vLLM is not known.
    """
    if _taken:
        return
    places = Places()
    places.manager_module.XgrammarBackend = ConstrainBackend  # type: ignore[attr-defined]
    places.xgrammar_module.XgrammarBackend = ConstrainBackend  # type: ignore[attr-defined]
    _wrap_validation(places)
    _wrap_manager(places.manager)
    _taken.append(places)
    logger.info("constrain %s makes the structured outputs of vLLM %s", __version__, places.version)


def _wrap_validation(places: Places) -> None:
    # vLLM's own checks of a request come first; then it calls this for the back end "xgrammar", with no way around.
    places.xgrammar_module.validate_xgrammar_grammar = lambda params: None  # type: ignore[attr-defined]
    original = places.params._validate_structured_outputs

    @functools.wraps(original)
    def validate(self: Any, model_config: Any, config: Any, tokenizer: Any) -> None:
        if config is None or self.structured_outputs is None:
            return
        check_backend(config.backend)
        original(self, model_config, dataclasses.replace(config, backend=PLACE), tokenizer)
        check_request(self, model_config, config, tokenizer)

    places.params._validate_structured_outputs = validate


def check_backend(name: str) -> None:
    """Raise ConstrainError if another back end was asked for than the one whose place is taken."""
    if name not in ("auto", PLACE):
        raise ConstrainError(
            f"CONSTRAIN_VLLM=1 takes the place of the back ends 'auto' and {PLACE!r}, but the server was started with "
            f"{name!r}: leave one of the two away"
        )


def _wrap_manager(manager: Any) -> None:
    init, grammar_bitmask = manager.__init__, manager.grammar_bitmask
    create_grammar, validate_tokens, accept_tokens = (
        manager._create_grammar,
        manager.validate_tokens,
        manager.accept_tokens,
    )

    @functools.wraps(init)
    def checked_init(self: Any, vllm_config: Any) -> None:
        check_backend(vllm_config.structured_outputs_config.backend)
        init(self, vllm_config)

    @functools.wraps(create_grammar)
    def create(self: Any, request: Any) -> Any:
        try:
            return in_time.create_grammar(self, request)
        except Exception:
            logger.exception("request %s: its grammar cannot be made", request.request_id)
            raise

    @functools.wraps(validate_tokens)
    def validate(self: Any, request: Any, spec_tokens: list[int]) -> list[int]:
        in_time.before_tokens(self, request, spec_tokens)
        return validate_tokens(self, request, spec_tokens)  # type: ignore[no-any-return]

    @functools.wraps(grammar_bitmask)
    def bitmask(
        self: Any,
        requests: dict[str, Any],
        structured_output_request_ids: list[str],
        scheduled_spec_decode_tokens: dict[str, list[int]],
    ) -> Any:
        ids, drafts = structured_output_request_ids, scheduled_spec_decode_tokens
        thinking = in_time.begin_texts(self, requests, drafts, ids)
        ahead = in_time.read_drafts_ahead(self, requests, drafts, ids, thinking) if drafts else []
        try:
            mask = grammar_bitmask(self, requests, ids, drafts)
        finally:
            for grammar in ahead:
                grammar.ahead = None
        if thinking:
            in_time.mask_thinking(self, requests, drafts, ids, thinking, mask)
        return mask

    @functools.wraps(accept_tokens)
    def accept(self: Any, request: Any, new_token_ids: list[int]) -> bool:
        in_time.before_tokens(self, request, ())
        return accept_tokens(self, request, new_token_ids)  # type: ignore[no-any-return]

    manager.__init__ = checked_init
    manager._create_grammar = create
    manager.validate_tokens = validate
    manager.grammar_bitmask = bitmask
    manager.accept_tokens = accept
