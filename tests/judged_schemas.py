"""The engine's verdicts on instances of a schema, beside those of the ``jsonschema`` package."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import assume

import constrain
from constrain.errors import LimitError, SchemaError

VOCABULARY = constrain.Vocabulary([bytes((byte,)) for byte in range(256)])


def assert_judged_alike(schema: Any, validator: Any, instances: list[Any]) -> None:
    """The engine says of each instance what the validator says; a schema that is refused as empty has no valid one.

    A hypothesis example whose schema is beyond a limit, or not supported, is dropped.
    """
    expected = [validator.is_valid(instance) for instance in instances]
    try:
        grammar = constrain.Grammar.from_json_schema(schema, property_order="any")
        compiled: constrain.CompiledGrammar | None = constrain.CompiledGrammar(grammar.ir, VOCABULARY)
    except LimitError:
        assume(False)
    except SchemaError as error:
        assume("not supported" not in error.reason)
        compiled = None
    for instance, is_valid in zip(instances, expected, strict=True):
        text = json.dumps(instance)
        if compiled is None:
            assert not is_valid, text
            continue
        matcher = constrain.Matcher(compiled)
        accepted = matcher.accept_bytes(text.encode()) and matcher.is_accepting()
        assert accepted == is_valid, text
