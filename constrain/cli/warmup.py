"""``constrain warmup``: compile what the other commands need, ahead of time."""

from __future__ import annotations

from importlib import import_module
from time import perf_counter

import click

from constrain.cli.first_run import announce_compilation


@click.command(short_help="Compile the kernels now rather than in the first run.")
def warmup() -> None:
    """Compile the kernels now rather than in the first run, for an image or a test machine.

    They are kept in numba's cache; where that is, NUMBA_CACHE_DIR can say.
    """
    start = perf_counter()
    announce_compilation()

    from constrain import Grammar, GrammarCompiler, Vocabulary, demo
    from constrain.generation import generate
    from constrain.sampling import Sampler

    import_module("constrain.engine.collect")  # compiled when first needed, else: after a very long text
    import_module("constrain.engine.batch")
    tokenizer, model = demo.load()
    compiler = GrammarCompiler(Vocabulary.from_tokenizer(tokenizer))
    schema = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 9}}, "required": ["a"]}
    for grammar in (Grammar.from_json_schema(schema), Grammar.from_choices(["yes", "no"])):
        for _ in generate(model, tokenizer, compiler.compile(grammar), max_tokens=32, sampler=Sampler(seed=0)):
            pass
    click.echo(f"constrain: kernels are ready ({perf_counter() - start:.1f} s)", err=True)
