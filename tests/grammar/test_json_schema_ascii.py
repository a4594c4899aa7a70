"""``ensure_ascii``: characters beyond ASCII only as escapes, everything else as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest
from naive import NaiveRecognizer

import constrain
from constrain.errors import ConstrainError
from constrain.grammar.json_schema import from_json_schema


def accepts(schema: Any, text: str, **options: Any) -> bool:
    return NaiveRecognizer(from_json_schema(schema, **options)).accepts(text.encode())


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"enum": ["é", "ab"]},
        {"pattern": "^[à-ÿ]"},
        {"type": "string", "minLength": 1, "not": {"const": "e"}},
        {"type": "string", "format": "iri"},
        {},
    ],
)
def test_only_escapes_stand_for_what_is_not_ascii(schema: Any) -> None:
    recognizer = NaiveRecognizer(from_json_schema(schema, ensure_ascii=True))
    free = NaiveRecognizer(from_json_schema(schema))
    for value in ("é", "\U0001f600", "aé", "ab", "http://é/", "e", ""):
        escaped, raw = json.dumps(value), json.dumps(value, ensure_ascii=False)
        assert recognizer.accepts(escaped.encode()) == free.accepts(raw.encode())
        assert recognizer.accepts(raw.encode()) == (raw.isascii() and free.accepts(raw.encode()))


def test_keys_too() -> None:
    schema = {"type": "object", "properties": {"é": {"type": "integer"}}, "required": ["é"]}
    assert accepts(schema, '{"\\u00e9": 1, "\\u00E8": 2}', ensure_ascii=True)
    assert not accepts(schema, '{"é": 1}', ensure_ascii=True)
    assert not accepts(schema, '{"\\u00e9": 1, "è": 2}', ensure_ascii=True)
    assert not accepts(schema, '{"\\u00e9": 1, "\\u00e9": 2}', ensure_ascii=True)
    assert accepts(schema, '{"é": 1, "è": 2}')


def test_it_must_be_a_boolean() -> None:
    with pytest.raises(ConstrainError, match="ensure_ascii"):
        constrain.Grammar.from_json_schema({}, ensure_ascii=1)
