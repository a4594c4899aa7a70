"""A JSON Schema in a file, by its path."""

from __future__ import annotations

import json
from pathlib import Path, PurePath
from typing import Any

import pytest

from constrain import Grammar
from constrain.errors import GrammarError, SchemaError

SCHEMA = {"type": "object", "properties": {"größe": {"type": "integer"}}, "required": ["größe"]}


def test_a_path_is_read(tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    for mark in ("", "\ufeff"):
        file.write_text(mark + json.dumps(SCHEMA, ensure_ascii=False), encoding="utf-8")
        for path in (file, PurePath(file)):
            assert Grammar.from_json_schema(path).ir == Grammar.from_json_schema(SCHEMA).ir
    file.write_text("true")
    assert (
        Grammar.from_json_schema(file, whitespace="compact").ir
        == Grammar.from_json_schema(True, whitespace="compact").ir
    )


def test_the_key_is_what_is_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    file.write_text("true")
    before = Grammar.from_json_schema(file).key
    assert Grammar.from_json_schema(file).key == before == Grammar.from_json_schema("true").key
    file.write_text("{}")
    assert Grammar.from_json_schema(file).key != before


class Odd:
    """A path of bytes."""

    def __fspath__(self) -> bytes:
        return b"a"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (Path("no/such.json"), "cannot read 'no/such.json': No such file"),
        (Path(), "cannot read '.': Is a directory"),
        (Path("a\0b"), "cannot read .*null byte"),
        (Odd(), "cannot read b'a': "),
    ],
)
def test_files_that_cannot_be_read(path: Any, message: str) -> None:
    with pytest.raises(GrammarError, match=message) as caught:
        Grammar.from_json_schema(path)
    assert "\n" not in str(caught.value)


def test_files_that_are_no_text_or_no_schema(tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    file.write_bytes(b"{\xff}")
    with pytest.raises(GrammarError, match=r"schema\.json' is not UTF-8 text \(byte 1\)"):
        Grammar.from_json_schema(file)
    file.write_text("{")
    with pytest.raises(SchemaError):
        Grammar.from_json_schema(file)


@pytest.mark.parametrize("name", ["person.schema.json", "grammars/x.json", "C:\\\\schemas\\\\a b.json", "~/ä.json"])
def test_the_name_of_a_file_is_no_schema(name: str) -> None:
    with pytest.raises(SchemaError, match=r"is no JSON; if it is the name of a file, give pathlib\.Path\("):
        Grammar.from_json_schema(name)


@pytest.mark.parametrize("given", [int, dict, list[int], dict[str, int]])
def test_a_type_is_no_schema(given: Any) -> None:
    with pytest.raises(SchemaError, match=r"is a Python type and no schema: for those there is Grammar\.from_pydantic"):
        Grammar.from_json_schema(given)
