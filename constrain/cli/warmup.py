"""``constrain warmup``: fill the caches of this machine, ahead of time."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from constrain.cli.first_run import announce_compilation
from constrain.cli.grammar_options import errors_in
from constrain.cli.progress import Progress
from constrain.cli.sections import SectionCommand
from constrain.cli.tokenizer_options import load, tokenizer_option

if TYPE_CHECKING:
    from constrain.tokenizers.base import Tokenizer

# Importing a module compiles its kernels.
_PACKAGES = ("constrain.engine", "constrain.sampling", "constrain.tokenizers")


@click.command(cls=SectionCommand, short_help="Fill the caches now rather than in the first run.")
@tokenizer_option
def warmup(tokenizer: str | None) -> None:
    """Compile the kernels now rather than in the first run, for an image or a test machine.

    With --tokenizer the tables of its vocabulary are made as well. All is kept in numba's cache; where that is,
    NUMBA_CACHE_DIR can say.
    """
    start = perf_counter()
    announce_compilation()
    # What can be wrong with it is said at once.
    loaded = None if tokenizer is None else load(tokenizer)

    modules = [
        module.name
        for package in _PACKAGES
        for module in pkgutil.walk_packages(import_module(package).__path__, f"{package}.")
        if _has_kernels(module)
    ]
    with Progress("compiling", len(modules) + 2) as progress:
        for module in modules:
            import_module(module)
            progress.advance()
        _generate()
        progress.advance()
        if loaded is not None:
            with errors_in(str(tokenizer)):
                _read_vocabulary(loaded)
        progress.advance()
    click.echo(f"constrain: kernels are ready ({perf_counter() - start:.1f} s)", err=True)


def _has_kernels(module: pkgutil.ModuleInfo) -> bool:
    """Whether it is a file with kernels; others may need packages that are not there."""
    found: Any = module.module_finder.find_spec(module.name, None)
    return not module.ispkg and b"njit" in Path(found.origin).read_bytes()


def _generate() -> None:
    """Go through all that the command line does to make a text."""
    from constrain import Grammar, GrammarCompiler, Vocabulary, demo
    from constrain.generation import generate
    from constrain.sampling import Sampler

    tokenizer, model = demo.load()
    compiler = GrammarCompiler(Vocabulary.from_tokenizer(tokenizer))
    schema = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 9}}, "required": ["a"]}
    for grammar in (Grammar.from_json_schema(schema), Grammar.from_choices(["yes", "no"])):
        for _ in generate(model, tokenizer, compiler.compile(grammar), max_tokens=32, sampler=Sampler(seed=0)):
            pass


def _read_vocabulary(tokenizer: Tokenizer) -> None:
    """Have the tables of a vocabulary made, which are kept on disk."""
    from constrain import GrammarCompiler, Vocabulary

    GrammarCompiler(Vocabulary.from_tokenizer(tokenizer))
