"""No file of the package imports itself by way of others, and hardly anything is imported inside a function.

An import under ``TYPE_CHECKING`` is no import; one inside a function is.  That a module loads the ``__init__`` of its
package is not counted, nor are names that ``constrain/__init__.py`` looks up when they are asked for.
"""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]

# Packages that are not installed with this one.
OPTIONAL = {
    *(
        "huggingface_hub",
        "llama_cpp",
        "prometheus_client",
        "pydantic",
        "regex",
        "sentencepiece",
        "tiktoken",
        "tokenizers",
    ),
    *("torch", "transformers"),
}

# Places with imports inside functions, by the beginning of the importing module's name, and why.  The engine has none:
# kernels that are imported late are compiled in the middle of a request.
LATE = {
    "constrain.__main__": "Ctrl-C while the command is loaded ends it in one line",
    "constrain.engine.vocabulary.vocabulary": "one method takes the tokenizers of others",
    "constrain.cli.": "20 ms for `constrain --help`, 1.3 s with the engine",
    "constrain.sampling": "options can be checked without numpy",
    "constrain.backends.": "each needs an optional dependency",
    "constrain.grammar.grammar": "one front-end of many, each of up to 0.1 s",
    "constrain.grammar.pydantic.front_end": "what writes the schema is a class of pydantic's, an optional dependency",
    "constrain.grammar.lark.rules": "Lark itself for its own lexing, and JSON Schema for %json: 0.1 s each",
    "constrain.tokenizers.": "optional dependencies, and what takes long to load: see tests/tokenizers/test_imports.py",
}


class Import(NamedTuple):
    """That one module imports another; ``is_late`` if inside a function."""

    by: str
    of: str
    is_late: bool


def _modules() -> dict[str, Path]:
    found = {}
    for path in sorted((ROOT / "constrain").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = _modules()


def _imports(by: str, node: ast.AST, is_late: bool = False) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield Import(by, alias.name, is_late)
    elif isinstance(node, ast.ImportFrom):
        assert node.module is not None, f"{by} has a relative import"
        for alias in node.names:
            full = f"{node.module}.{alias.name}"
            yield Import(by, full if full in MODULES else node.module, is_late)
    is_late = is_late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    children = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        children = list(node.orelse)
    for child in children:
        yield from _imports(by, child, is_late)


@functools.cache
def imports() -> list[Import]:
    """All of the package; not worked out while tests are collected, which each worker does."""
    return [each for name, path in MODULES.items() for each in _imports(name, ast.parse(path.read_text()))]


def _circles() -> list[set[str]]:
    """The largest sets of modules that all import each other, directly or by way of others."""
    graph: dict[str, set[str]] = {name: set() for name in MODULES}
    for each in imports():
        if each.of in MODULES:
            graph[each.by].add(each.of)
    reached = {}
    for name in MODULES:
        todo, found = [name], set[str]()
        while todo:
            new = graph[todo.pop()] - found
            found |= new
            todo += new
        reached[name] = found
    circles = {frozenset(other for other in reached[name] if name in reached[other]) for name in MODULES}
    return [set(circle) for circle in circles if circle]


def test_the_graph_is_that_of_the_package() -> None:
    pairs = {each[:2] for each in imports()}
    assert ("constrain.engine.matcher", "constrain.engine.cursor") in pairs
    assert Import("constrain.sampling", "constrain.sampling.sampler", True) in imports()
    assert len(MODULES) > 200
    assert len(pairs) > 1000


def test_no_import_circles() -> None:
    assert [sorted(circle) for circle in _circles()] == []


def test_a_circle_is_found() -> None:
    upward = Import("constrain.engine.history", "constrain.engine.matcher", True)
    imports().append(upward)
    try:
        assert any({upward.by, upward.of, "constrain.engine.cursor"} <= circle for circle in _circles())
    finally:
        imports().remove(upward)


def test_nothing_is_imported_inside_functions() -> None:
    late = {each[:2] for each in imports() if each.is_late and each.of.split(".")[0] not in OPTIONAL}
    assert {pair for pair in late if not pair[0].startswith(tuple(LATE))} == set()


def test_tables_get_pointers_to_all_kernels_but_those_imported_late() -> None:
    """A kernel that is called through a pointer has to be imported before the first tables are made."""
    code = (
        "import constrain.engine.grammar_tables\n"
        "from constrain.engine.storage import links\n"
        "print(*(name for name in vars(links) if name.startswith('F_') and not links.addresses[getattr(links, name)]))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    # Budgets, whose tables are linked again; a companion, which has the address itself.
    late = {
        "F_NODE_COST",
        "F_STATE_COST",
        "F_TOKENS",
        "F_COST_NODE",
        "F_PATH_NODE",
        "F_REACHED_NODE",
        "F_READ_ALONG",
    }
    assert set(said.stdout.split()) == late
