"""Arrows point downwards: the folders that all else stands on import nothing from above, and nothing in circles."""

from __future__ import annotations

import ast
from pathlib import Path

import constrain.engine

ENGINE = Path(constrain.engine.__file__).parent
LAYERS = ("storage", "automata", "parser")


def imports(path: Path) -> list[str]:
    """The modules of the engine that a file imports, as paths below it."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("constrain.engine"):
            module = node.module.removeprefix("constrain.engine").removeprefix(".")
            found += [f"{module}.{alias.name}" for alias in node.names] + [module]
        elif isinstance(node, ast.Import):
            names = (alias.name for alias in node.names)
            found += [name.removeprefix("constrain.engine.") for name in names if name.startswith("constrain.engine.")]
    return [module.replace(".", "/") for module in found]


def test_layers_import_nothing_from_above() -> None:
    upward = set()
    for height, layer in enumerate(LAYERS):
        for path in (ENGINE / layer).glob("*.py"):
            for module in imports(path):
                folder = module.split("/")[0]
                if folder not in LAYERS[: height + 1]:
                    upward.add((f"{layer}/{path.name}", folder))
    assert not upward


def test_files_of_a_layer_import_each_other_in_no_circle() -> None:
    files = {f"{layer}/{path.stem}": path for layer in LAYERS for path in (ENGINE / layer).glob("*.py")}
    left = {name: {module for module in imports(path) if module in files} - {name} for name, path in files.items()}
    assert any(left.values())
    while bottom := {name for name, below in left.items() if not below & left.keys()}:
        left = {name: below for name, below in left.items() if name not in bottom}
    assert not left
