"""What vLLM's requests ask for, as grammars."""

from __future__ import annotations

import json
from collections.abc import Callable

from constrain.errors import ConstrainError
from constrain.grammar.grammar import Grammar
from constrain.integrations.request_grammars import ebnf_or_lark_grammar, structural_tag_grammar
from constrain.limits import Deadline


def _json(spec: str, is_compact: bool, deadline: Deadline) -> Grammar:
    # As text: read by Python's json, numbers would be rounded.
    return Grammar.from_json_schema(spec, whitespace="compact" if is_compact else "flexible", time_limit=deadline)


def _choice(spec: str, is_compact: bool, deadline: Deadline) -> Grammar:
    return Grammar.from_choices(json.loads(spec), time_limit=deadline)


_MAKERS: dict[str, Callable[[str, bool, Deadline], Grammar]] = {
    "JSON": _json,
    "JSON_OBJECT": lambda spec, is_compact, deadline: _json('{"type": "object"}', is_compact, deadline),
    "REGEX": lambda spec, is_compact, deadline: Grammar.from_regex(spec, time_limit=deadline),
    "CHOICE": _choice,
    "GRAMMAR": lambda spec, is_compact, deadline: ebnf_or_lark_grammar(spec, time_limit=deadline),
    "STRUCTURAL_TAG": lambda spec, is_compact, deadline: structural_tag_grammar(spec, time_limit=deadline),
}


def grammar_of(kind: str, spec: str, *, is_compact: bool, deadline: Deadline) -> Grammar:
    """The grammar that a request asks for.

    Parameters
    ----------
    kind : str
        The name of vLLM's ``StructuredOutputOptions``: JSON, JSON_OBJECT, REGEX, CHOICE, GRAMMAR or STRUCTURAL_TAG.
    spec : str
        What vLLM keeps of it: the schema as JSON text, the pattern, the choices as JSON text, the grammar.
    is_compact : bool
        Whether JSON is written without white space (``disable_any_whitespace``).
    deadline : Deadline

    Raises
    ------
    ConstrainError
        If it cannot be enforced, with the reason.
    """
    make = _MAKERS.get(kind)
    if make is None:
        raise ConstrainError(f"structured outputs of the kind {kind} are not known to constrain")
    return make(spec, is_compact, deadline)
