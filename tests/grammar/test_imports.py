"""The files of the front-ends import each other in one direction, and so do the folders of JSON Schema."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

import constrain

PACKAGE = "constrain.grammar"
FOLDER = Path(constrain.__file__).parent / "grammar"
JSON_SCHEMA = f"{PACKAGE}.json_schema"


def modules() -> dict[str, Path]:
    """The files of the package by their names."""
    found = {}
    for path in sorted(FOLDER.rglob("*.py")):
        parts = path.relative_to(FOLDER).with_suffix("").parts
        found[".".join([PACKAGE, *(part for part in parts if part != "__init__")])] = path
    return found


def imports(files: Mapping[str, Path]) -> dict[str, set[str]]:
    """What each file imports of the others, also inside functions."""
    found: dict[str, set[str]] = {}
    for name, path in files.items():
        here = found[name] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                here |= {each.name for each in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0
                module = node.module or ""
                inner = {f"{module}.{each.name}" for each in node.names}
                here |= inner & files.keys() or {module}
        here &= files.keys()
    return found


def circle(arrows: Mapping[str, set[str]]) -> list[str]:
    """The names that are left once those are taken away, again and again, that lead nowhere."""
    left = {name: inner - {name} for name, inner in arrows.items()}
    while True:
        ends = {name for name, inner in left.items() if not inner & left.keys()}
        if not ends:
            return sorted(left)
        left = {name: inner for name, inner in left.items() if name not in ends}


def test_circles_are_found() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == ["a", "b", "c"]
    assert circle({"a": {"b"}, "b": {"c"}, "c": set()}) == []


def test_files_import_each_other_in_one_direction() -> None:
    arrows = imports(modules())
    assert sum(map(len, arrows.values())) > 200
    assert circle(arrows) == []


def test_folders_of_json_schema_import_each_other_in_one_direction() -> None:
    def folder(name: str) -> str:
        return name[len(JSON_SCHEMA) + 1 :].split(".")[0]

    arrows: dict[str, set[str]] = {}
    for name, inner in imports(modules()).items():
        if name.startswith(f"{JSON_SCHEMA}."):
            arrows.setdefault(folder(name), set()).update(
                folder(each) for each in inner if each.startswith(f"{JSON_SCHEMA}.")
            )
    assert {"document", "lexical", "normal", "writing", "text_dependent", "rules"} <= arrows.keys()
    assert circle(arrows) == []
