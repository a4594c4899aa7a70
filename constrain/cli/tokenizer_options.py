"""The options that name a tokenizer and a model, shared by the commands that show tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import click

from constrain.cli.argument_types import FILE
from constrain.cli.grammar_options import errors_in
from constrain.cli.sections import option

if TYPE_CHECKING:
    from constrain import Vocabulary
    from constrain.tokenizers.base import Tokenizer

DEMO = "demo"
TOKENS = "Tokens"

_TOKENIZER = option(
    "--tokenizer",
    section=TOKENS,
    metavar="PATH",
    type=FILE,
    help=f"A tokenizer.json, GGUF, .model or .tiktoken file, or a model folder.  [default: {DEMO}, the built-in one]",
)
_MODEL = option(
    "--model",
    "-m",
    section=TOKENS,
    metavar="PATH",
    type=FILE,
    help=f"Order tokens by what a model says: a transformers folder, a GGUF file, or {DEMO}.",
)


class Model(Protocol):
    """What orders tokens."""

    def logits(self, ids: Any) -> Any:
        """float[vocab_size] for the token after ``ids``."""


class Tokens(NamedTuple):
    """What a command knows of tokens."""

    tokenizer: Tokenizer
    vocabulary: Vocabulary
    model: Model | None


def tokenizer_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the option ``--tokenizer``."""
    return _TOKENIZER(function)


def model_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the option ``--model``."""
    return _MODEL(function)


def check_model(tokenizer: str | None, model: str | None) -> None:
    """Refuse a model beside a tokenizer that is not its own."""
    if model is not None and tokenizer is not None:
        raise click.UsageError("--model brings its own tokenizer: leave --tokenizer out")


def load(tokenizer: str | None) -> Tokenizer:
    """The tokenizer that was asked for."""
    if tokenizer in (None, DEMO):
        from constrain import demo

        return demo.load()[0]
    from constrain import load_tokenizer

    return load_tokenizer(tokenizer)


def load_tokens(tokenizer: str | None, model: str | None) -> Tokens:
    """The tokenizer, its vocabulary, and the model if one was asked for."""
    if model is not None:
        from constrain.backends import load_backend

        backend = load_backend(None if model == DEMO else model)
        return Tokens(backend.tokenizer, backend.vocabulary, backend)
    from constrain import Vocabulary

    loaded = load(tokenizer)
    with errors_in(tokenizer or DEMO):
        return Tokens(loaded, Vocabulary.from_tokenizer(loaded), None)
