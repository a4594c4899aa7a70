"""What vLLM's requests ask for, as grammars."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from constrain.errors import ConstrainError
from constrain.grammar.grammar import Grammar
from constrain.integrations.request_grammars import ebnf_or_lark_grammar, structural_tag_grammar
from constrain.limits import Deadline


class JsonOptions(NamedTuple):
    """How a request's JSON is written.

    Attributes
    ----------
    is_compact : bool
        Without white space.
    whitespace_pattern : str, optional
        What stands before each token but the first.
    is_closed : bool
        Whether objects whose schema names members have no others.
    """

    is_compact: bool = False
    whitespace_pattern: str | None = None
    is_closed: bool = False


def json_options(params: Any, config: Any) -> JsonOptions:
    """What a request (``vllm.sampling_params.StructuredOutputsParams``) and the server's configuration say of it."""
    return JsonOptions(
        bool(config.disable_any_whitespace or params.disable_any_whitespace),
        params.whitespace_pattern,
        bool(params.disable_additional_properties),
    )


def _json(spec: str, options: JsonOptions, deadline: Deadline) -> Grammar:
    return Grammar.from_json_schema(
        # As text: read by Python's json, numbers would be rounded.
        spec,
        whitespace="compact" if options.is_compact else "flexible",
        whitespace_pattern=options.whitespace_pattern,
        additional_properties=not options.is_closed,
        time_limit=deadline,
    )


_OF_JSON: dict[str, Callable[[str, JsonOptions, Deadline], Grammar]] = {
    "JSON": _json,
    "JSON_OBJECT": lambda spec, options, deadline: _json('{"type": "object"}', options, deadline),
}

_OF_TEXT: dict[str, Callable[[str, Deadline], Grammar]] = {
    "REGEX": lambda spec, deadline: Grammar.from_regex(spec, time_limit=deadline),
    "CHOICE": lambda spec, deadline: Grammar.from_choices(json.loads(spec), time_limit=deadline),
    "GRAMMAR": lambda spec, deadline: ebnf_or_lark_grammar(spec, time_limit=deadline),
    "STRUCTURAL_TAG": lambda spec, deadline: structural_tag_grammar(spec, time_limit=deadline),
}


def grammar_of(kind: str, spec: str, *, options: JsonOptions, deadline: Deadline) -> Grammar:
    """The grammar that a request asks for.

    Parameters
    ----------
    kind : str
        The name of vLLM's ``StructuredOutputOptions``: JSON, JSON_OBJECT, REGEX, CHOICE, GRAMMAR or STRUCTURAL_TAG.
    spec : str
        What vLLM keeps of it: the schema as JSON text, the pattern, the choices as JSON text, the grammar.
    options : JsonOptions
        For ``JSON`` and ``JSON_OBJECT``.
    deadline : Deadline

    Raises
    ------
    ConstrainError
        If it cannot be enforced, with the reason.
    """
    if kind in _OF_JSON:
        return _OF_JSON[kind](spec, options, deadline)
    if kind not in _OF_TEXT:
        raise ConstrainError(f"structured outputs of the kind {kind} are not known to constrain")
    if options.whitespace_pattern is not None or options.is_closed:
        raise ConstrainError("whitespace_pattern and disable_additional_properties are for JSON Schemas alone")
    return _OF_TEXT[kind](spec, deadline)
