"""Files of the tokenizers import each other in one direction, and at their beginning."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import constrain.tokenizers

ROOT = Path(constrain.tokenizers.__file__).parents[2]
FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in Path(constrain.tokenizers.__file__).parent.rglob("*.py")
}

ON_FIRST_USE = {
    # Optional dependencies, and the client that only a download needs.
    ("constrain.tokenizers.rank_download", "urllib.request"),
    ("constrain.tokenizers.adapters.in_place_of_native", "tokenizers"),
    ("constrain.tokenizers.hub", "huggingface_hub"),
    # What takes long to load, and only some tokenizers need; the files have the figures.
    ("constrain.tokenizers.chat.templates", "constrain.tokenizers.chat.rendering"),
    ("constrain.tokenizers.factory", "constrain.tokenizers.adapters.in_place_of_native"),
    ("constrain.tokenizers.factory", "constrain.tokenizers.formats.gguf_file"),
    ("constrain.tokenizers.factory", "constrain.tokenizers.formats.sentencepiece_file"),
    ("constrain.tokenizers.factory", "constrain.tokenizers.formats.tiktoken_file"),
    ("constrain.tokenizers.factory", "constrain.tokenizers.formats.tokenizer_json"),
    ("constrain.tokenizers.models.piece_tokenizer", "constrain.tokenizers.formats.json_decoders"),
    ("constrain.tokenizers.metrics", "constrain.tokenizers.streaming.decode_stream"),
    ("constrain.tokenizers.metrics", "constrain.tokenizers.streaming.stop_sequences"),
}


def imports_of(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in FILES else node.module


def test_no_circle():
    waiting = {name: {each for each in imports_of(ast.parse(path.read_text())) if each in FILES and each != name}
               for name, path in FILES.items()}  # fmt: skip
    while free := [name for name, needs in waiting.items() if not needs & waiting.keys()]:
        for name in free:
            del waiting[name]
    assert not waiting, f"these import each other, or files that do: {sorted(waiting)}"


def test_imports_within_functions():
    found = {
        (name, imported)
        for name, path in FILES.items()
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.FunctionDef)
        for imported in imports_of(function)
    }
    assert found == ON_FIRST_USE
