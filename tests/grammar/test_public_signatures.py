"""Public options are keyword parameters with types, and say what they mean."""

from __future__ import annotations

import inspect
import subprocess
import sys
import typing
from pathlib import Path
from typing import Any

import pytest

import constrain
from constrain.grammar import schema_options

FOLDER = Path(constrain.__file__).parents[1]
TAKE_OPTIONS: list[Any] = [constrain.Grammar.from_json_schema, constrain.Grammar.from_pydantic]
PUBLIC: list[Any] = [
    *(constrain.Grammar, constrain.GrammarCompiler, constrain.CompiledGrammar, constrain.Matcher),
    constrain.Vocabulary,
]


@pytest.mark.parametrize("function", TAKE_OPTIONS, ids=lambda function: function.__qualname__)
def test_options_are_parameters(function: Any) -> None:
    parameters = inspect.signature(function).parameters
    reference = inspect.signature(constrain.Grammar.from_json_schema).parameters
    names = list(typing.get_type_hints(schema_options.SchemaOptions))
    assert [name for name in parameters if name in names] == names
    for name in names:
        assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert parameters[name] == reference[name]
    assert not any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
    with pytest.raises(TypeError, match="whitspace"):
        function({}, whitspace="compact")


@pytest.mark.parametrize("function", TAKE_OPTIONS, ids=lambda function: function.__qualname__)
def test_help_says_what_options_mean(function: Any) -> None:
    text = inspect.getdoc(function)
    assert text is not None
    assert "{options}" not in text
    lines = text.splitlines()
    for name in typing.get_type_hints(schema_options.SchemaOptions):
        (place,) = (index for index, line in enumerate(lines) if line.startswith(f"{name} : "))
        assert lines[place + 1].startswith("    ")


@pytest.mark.parametrize("kind", PUBLIC, ids=lambda kind: kind.__name__)
def test_public_methods_take_no_other_keywords(kind: Any) -> None:
    methods = [member for name, member in inspect.getmembers(kind) if not name.startswith("_") and callable(member)]
    for method in [kind, *methods]:
        kinds = {each.kind for each in inspect.signature(method).parameters.values()}
        assert inspect.Parameter.VAR_KEYWORD not in kinds, method


def test_a_typo_is_a_fault_of_types(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    file = tmp_path / "typo.py"
    file.write_text(
        "import constrain\n"
        "constrain.Grammar.from_json_schema({}, whitespace='compact')\n"
        "constrain.Grammar.from_json_schema({}, whitspace='compact')\n"
        "constrain.Grammar.from_pydantic(int, whitespace='tight')\n"
        "constrain.Grammar.from_pydantic(int, lenient=True, max_whitspace=1)\n"
    )
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--follow-imports=silent", str(file)]
    found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=FOLDER)
    lines = [line.split(":")[1] for line in found.stdout.splitlines() if ": error:" in line]
    assert lines == ["3", "4", "5"], found.stdout
