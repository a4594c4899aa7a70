"""The drafts' own metaschemas, which a ``$ref`` may lead to without a registry."""

from __future__ import annotations

from typing import Any

import pytest
from finite_texts import verdicts

import constrain
from constrain.errors import SchemaError
from constrain.grammar.json_schema.document.metaschemas import metaschema

OLD = [f"http://json-schema.org/draft-0{number}/schema" for number in (4, 6, 7)]
NEW = [f"https://json-schema.org/draft/{year}/schema" for year in ("2019-09", "2020-12")]
PARTS = [
    *(
        f"https://json-schema.org/draft/2019-09/meta/{name}"
        for name in ("core", "applicator", "validation", "meta-data")
    ),
    *(f"https://json-schema.org/draft/2019-09/meta/{name}" for name in ("format", "content")),
    *(
        f"https://json-schema.org/draft/2020-12/meta/{name}"
        for name in ("core", "applicator", "validation", "meta-data")
    ),
    *(f"https://json-schema.org/draft/2020-12/meta/{name}" for name in ("format-annotation", "content", "unevaluated")),
]
NOTES = {"title", "description", "default", "$comment", "deprecated"}


def _without_notes(schema: Any, is_map: bool = False) -> Any:
    """A schema without annotations; the members of ``properties`` and its like are no keywords."""
    if isinstance(schema, list):
        return sorted((_without_notes(each) for each in schema), key=repr)
    if not isinstance(schema, dict):
        return schema
    return {
        key: _without_notes(value, not is_map and key in ("properties", "definitions", "$defs"))
        for key, value in schema.items()
        if is_map or key not in NOTES
    }


@pytest.mark.parametrize("uri", [*OLD, *NEW, *PARTS])
def test_they_are_as_published(uri: str) -> None:
    published = pytest.importorskip("jsonschema_specifications").REGISTRY
    found = metaschema(uri)
    expected = _without_notes(published.contents(uri))
    order = [keyword for keyword in expected["properties"] if keyword not in ("$anchor", "definitions")]
    assert found is not None
    assert [keyword for keyword in found["properties"] if keyword in order] == order
    # Whether formats are asserted is said otherwise.
    assert {key: value for key, value in _without_notes(found).items() if key != "$vocabulary"} == {
        key: value for key, value in expected.items() if key != "$vocabulary"
    }


@pytest.mark.parametrize("uri", [*(f"{uri}#" for uri in OLD), *NEW, "https://json-schema.org/draft-07/schema#"])
def test_a_reference_to_a_draft(uri: str) -> None:
    schema = {"type": "object", "properties": {"schema": {"$ref": uri}}, "additionalProperties": False}
    right = '{"schema": {"items": {"minLength": 2, "pattern": "^a"}, "type": "array"}}'
    wrong = ['{"schema": {"type": "text"}}', '{"schema": {"minLength": -1}}', '{"schema": {"items": {"not": 1}}}']
    assert verdicts(schema, right, *wrong) == [True, False, False, False]


def test_a_part_of_a_draft() -> None:
    schema = {"$ref": "http://json-schema.org/draft-04/schema#/properties/multipleOf"}
    assert verdicts(schema, "2", "0", '"2"') == [True, False, False]


def test_other_documents_of_the_same_site_are_not_known() -> None:
    for uri in ("http://json-schema.org/geo", "https://json-schema.org/draft/2020-12/meta/none", "urn:x"):
        assert metaschema(uri) is None
        with pytest.raises(SchemaError, match="leads to another document"):
            constrain.Grammar.from_json_schema({"$ref": uri})
