"""``constrain warmup``: fill the caches of this machine, ahead of time."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from constrain.cache_folder import writable_cache_folder
from constrain.cli.first_run import announce_compilation
from constrain.cli.grammar_options import errors_in
from constrain.cli.progress import Progress
from constrain.cli.sections import SectionCommand
from constrain.cli.tokenizer_options import load, tokenizer_option

if TYPE_CHECKING:
    from constrain.tokenizers.base import Tokenizer

_PACKAGE = Path(__file__).resolve().parents[1]


@click.command(cls=SectionCommand, short_help="Fill the caches now rather than in the first run.")
@tokenizer_option
@click.option("--native", is_flag=True, help="Compile for this processor alone; needs a C compiler.")
def warmup(tokenizer: str | None, native: bool) -> None:
    """Compile the kernels now rather than in the first run, for an image or a test machine.

    Where the installation brought machine code along, nothing is left to compile, but --native has it made for this
    very processor. With --tokenizer the tables of its vocabulary are made as well. CONSTRAIN_CACHE_DIR can say where
    all that is kept.
    """
    start = perf_counter()
    if native:
        _compile_natively()
    announce_compilation()
    # What can be wrong with it is said at once.
    loaded = None if tokenizer is None else load(tokenizer)

    digests: Any = import_module("constrain.kernels.digests")
    modules = [
        ".".join(Path(file).relative_to(_PACKAGE.parent).with_suffix("").parts)
        for file in digests.files_with_kernels(_PACKAGE)
    ]
    with Progress("compiling", len(modules) + 1, unit="files") as progress:
        for module in modules:
            progress.begin(module)
            import_module(module)
            progress.advance()
        if loaded is not None:
            with errors_in(str(tokenizer)):
                _read_vocabulary(loaded)
        progress.advance()
    click.echo(f"constrain: kernels are ready ({perf_counter() - start:.1f} s)", err=True)


def _compile_natively() -> None:
    """Make the library for this processor."""
    folder = writable_cache_folder()
    if folder is None:
        raise click.ClickException("no cache folder can be written; CONSTRAIN_CACHE_DIR can name one")
    build: Any = import_module("constrain.kernels.build")
    bar: Progress | None = None
    counted = 0

    def advance(done: int, total: int) -> None:
        nonlocal bar, counted
        bar = bar or Progress("compiling for this processor", total).__enter__()
        bar.advance(done - counted)
        counted = done

    try:
        path = build.build_native(folder, progress=advance)
    except RuntimeError as error:
        raise click.ClickException(f"cannot compile for this processor: {error}") from None
    finally:
        if bar is not None:
            bar.__exit__(None, None, None)
    click.echo(f"constrain: made {path}", err=True)


def _read_vocabulary(tokenizer: Tokenizer) -> None:
    """Have the tables of a vocabulary made, which are kept on disk."""
    from constrain import GrammarCompiler, Vocabulary

    GrammarCompiler(Vocabulary.from_tokenizer(tokenizer))
