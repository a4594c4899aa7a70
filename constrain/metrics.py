"""Prometheus metrics of grammars, masks and drafts; off until :func:`enable` is called (docs/serving.md).

Tokenizers have their own, in :mod:`constrain.tokenizers.metrics`; both are switched on and off in the same way
(:mod:`constrain.instruments`).
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from time import perf_counter
from typing import Any

import numpy as np

from constrain.engine.compiler import GrammarCompiler
from constrain.engine.masks import batches, drafts
from constrain.engine.matcher import Matcher
from constrain.engine.vocabulary import applying
from constrain.errors import ConstrainError
from constrain.grammar.grammar import Grammar
from constrain.instruments import SECONDS, Instruments, Switch

_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_SHARES = (1e-6, 1e-4, 1e-3, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97, 0.99, 0.999, 1.0)
_KINDS = (
    "json_schema",
    "regex",
    "lark",
    "llguidance",
    "gbnf",
    "ebnf",
    "structural_tag",
    "tools",
    "choices",
    "pydantic",
)


_Tell = Callable[[tuple[Any, ...], Any, float], None]
"""Notes a call: its arguments, what it has returned, and the seconds."""


def enable(registry: Any = None, *, kept_mass: bool = False) -> None:
    """Measure from now on; calling it again does nothing.

    Parameters
    ----------
    registry : prometheus_client.CollectorRegistry, optional
        By default the one that ``prometheus_client`` has.
    kept_mass : bool
        Whether :func:`constrain.apply_token_bitmask_inplace` measures how much of the model's probability is on tokens
        that are allowed.  That takes an exponential for each logit, and for logits on a GPU waits for it.

    Raises
    ------
    ConstrainError
        If ``prometheus_client`` is not installed, or metrics go to another registry already.
    """
    _switch.enable(registry, kept_mass=kept_mass)


def disable() -> None:
    """Stop measuring, and take the metrics out of their registry."""
    _switch.disable()


class _Metrics(Instruments):
    """The metrics, and the functions that they measure; where one of these calls another, only the outer one counts."""

    def __init__(self, library: Any, registry: Any, *, kept_mass: bool) -> None:
        super().__init__(library, registry)
        self._calls = threading.local()
        self._compilers: weakref.WeakSet[GrammarCompiler] = weakref.WeakSet()
        self._measures_mass = kept_mass
        self.read_seconds = self.histogram(
            "constrain_read_seconds", "Reading a grammar, by its notation.", SECONDS, "kind"
        )
        self.compile_seconds = self.histogram(
            "constrain_compile_seconds", "Compiling a grammar that was not kept.", SECONDS
        )
        self.lookups = self.counter("constrain_grammar_lookups", "Grammars asked for, by what came of it.", "result")
        self.errors = self.counter(
            "constrain_grammar_errors", "Grammars that could not be had, by what they failed in.", "operation", "error"
        )
        self.kept = self.gauge("constrain_grammars_kept", "Compiled grammars in the caches of compilers.")
        self.kept_bytes = self.gauge("constrain_grammars_kept_bytes", "Their memory.")
        self.mask_seconds = self.histogram("constrain_mask_seconds", "One mask by itself.", SECONDS)
        self.batch_seconds = self.histogram("constrain_batch_seconds", "The masks of one batch.", SECONDS)
        self.batch_size = self.histogram("constrain_batch_size", "Sequences of a batch.", _SIZES)
        self.masks = self.counter(
            "constrain_batch_masks", "Masks of batches: known before, or made for the batch.", "state"
        )
        self.draft_seconds = self.histogram("constrain_draft_seconds", "The masks of one batch's drafts.", SECONDS)
        self.draft_tokens = self.counter(
            "constrain_draft_tokens", "Tokens of drafts, by whether they are legal.", "legal"
        )
        self.forced_tokens = self.counter("constrain_forced_tokens", "Tokens that grammars have drafted.")
        self.forced_bytes = self.counter("constrain_forced_bytes", "Bytes that had to come next, where somebody asked.")
        self.kept_mass = self.histogram(
            "constrain_kept_mass",
            "Share of the model's probability on allowed tokens, for each step of a sequence.",
            _SHARES,
        )

    def install(self) -> None:
        for kind in _KINDS:
            name = f"from_{kind}"
            self.replace(Grammar, name, classmethod(self._reading(kind, vars(Grammar)[name].__func__)))
        self._around(GrammarCompiler, "compile", self._compiling)
        self._around(GrammarCompiler, "submit", self._submitting)
        self._around(GrammarCompiler, "load", self._loading)
        self._around(GrammarCompiler, "_keep", self._keeping)
        # Nobody asked for the grammar and the masks of this one.
        self._measure(GrammarCompiler, "_share_usual_masks")
        self._measure(Matcher, "fill_next_token_bitmask", lambda _, __, seconds: self.mask_seconds.observe(seconds))
        self._measure(batches, "_write", self._tell_of_batch)
        self._around(batches, "_fill_known", self._known)
        # These run in other threads too.
        self._measure(batches, "_fill")
        self._measure(drafts._Drafts, "_follow")
        self._measure(drafts._Drafts, "fill", self._tell_of_drafts)
        self._measure(Matcher, "forced_tokens", lambda _, tokens, __: self.forced_tokens.inc(len(tokens)))
        self._measure(Matcher, "forced_bytes", lambda _, data, __: self.forced_bytes.inc(len(data)))
        if self._measures_mass:
            self._around(applying, "_apply_mask", self._applying)

    def _around(self, owner: Any, name: str, around: Callable[[Any], Any]) -> None:
        original = vars(owner)[name]
        self.replace(owner, name, wraps(original)(around(original)))

    def _measure(self, owner: Any, name: str, tell: _Tell | None = None) -> None:
        """Tell of each call; without ``tell`` of none, nor of those within it."""

        def around(original: Any) -> Any:
            def measured(*args: Any, **options: Any) -> Any:
                result, seconds = self._outermost(lambda: original(*args, **options))
                if tell is not None and seconds >= 0:
                    tell(args, result, seconds)
                return result

            return measured

        self._around(owner, name, around)

    def _outermost(self, call: Callable[[], Any]) -> tuple[Any, float]:
        """What a call returns, and the seconds that it takes; -1 within another one."""
        if getattr(self._calls, "busy", False):
            return call(), -1.0
        self._calls.busy = True
        begin = perf_counter()
        try:
            result = call()
        finally:
            self._calls.busy = False
        return result, perf_counter() - begin

    # -- grammars ----------------------------------------------------------------------------------

    @contextmanager
    def _counted(self, stage: str) -> Iterator[None]:
        """Count an error of a stage."""
        try:
            yield
        except ConstrainError as error:
            self.errors.labels(stage, type(error).__name__).inc()
            raise

    def _reading(self, kind: str, original: Any) -> Any:
        @wraps(original)
        def read(cls: type[Grammar], *args: Any, **options: Any) -> Grammar:
            with self._counted("read"):
                grammar, seconds = self._outermost(lambda: original(cls, *args, **options))
            if seconds >= 0:
                self.read_seconds.labels(kind).observe(seconds)
            return grammar  # type: ignore[no-any-return]

        return read

    def _compiling(self, original: Any) -> Any:
        def compile_(compiler: GrammarCompiler, *args: Any, **options: Any) -> Any:
            self._calls.was_new = False
            begin = perf_counter()
            with self._counted("compile"):
                compiled = original(compiler, *args, **options)
            if self._calls.was_new:
                self.compile_seconds.observe(perf_counter() - begin)
            self.lookups.labels("compiled" if self._calls.was_new else "kept").inc()
            return compiled

        return compile_

    def _submitting(self, original: Any) -> Any:
        def submit(compiler: GrammarCompiler, grammar: Grammar, **options: Any) -> Any:
            # What is not there is counted where it is compiled.
            is_known = compiler._known(grammar, "submit()") is not None
            future = original(compiler, grammar, **options)
            if is_known:
                self.lookups.labels("kept").inc()
            return future

        return submit

    def _loading(self, original: Any) -> Any:
        def load(compiler: GrammarCompiler, *args: Any, **options: Any) -> Any:
            with self._counted("load"):
                compiled = original(compiler, *args, **options)
            self.lookups.labels("loaded").inc()
            return compiled

        return load

    def _keeping(self, original: Any) -> Any:
        def keep(compiler: GrammarCompiler, *args: Any) -> Any:
            compiled = original(compiler, *args)
            self._calls.was_new = True
            self._compilers.add(compiler)
            compilers = list(self._compilers)
            self.kept.set(sum(len(each._cache) for each in compilers))
            self.kept_bytes.set(sum(each._cache.nbytes for each in compilers))
            return compiled

        return keep

    # -- masks ---------------------------------------------------------------------------------------

    def _tell_of_batch(self, args: tuple[Any, ...], result: None, seconds: float) -> None:
        self.batch_seconds.observe(seconds)
        self.batch_size.observe(len(args[0]))

    def _known(self, original: Any) -> Any:
        def fill_known(contexts: Any, *args: Any) -> Any:
            missing = original(contexts, *args)
            self.masks.labels("known").inc(len(contexts) - len(missing))
            self.masks.labels("new").inc(len(missing))
            return missing

        return fill_known

    def _tell_of_drafts(self, args: tuple[Any, ...], counts: list[int], seconds: float) -> None:
        legal = sum(counts)
        self.draft_seconds.observe(seconds)
        self.draft_tokens.labels("yes").inc(legal)
        self.draft_tokens.labels("no").inc(len(args[0].tokens) - legal)

    def _applying(self, original: Any) -> Any:
        def apply(logits: Any, mask: Any, indices: Any) -> None:
            if getattr(self._calls, "busy", False):
                # Row by row, within another call.
                original(logits, mask, indices)
                return
            weights = _weights(logits)
            self._outermost(lambda: original(logits, mask, indices))
            shares = _shares(weights, logits)
            for share in shares if indices is None else [shares[row] for row in indices]:
                # There is none where no logit is a number, or all are infinite.
                if share == share:
                    self.kept_mass.observe(share)

        return apply


def _weights(logits: Any) -> Any:
    """Numbers in proportion to the probabilities: float[..., vocabulary]."""
    if isinstance(logits, np.ndarray):
        numbers = logits.astype(np.float32)
        with np.errstate(invalid="ignore"):
            weights: Any = np.exp(numbers - numbers.max(axis=-1, keepdims=True))
        return weights
    numbers = logits.detach().float()
    return (numbers - numbers.amax(dim=-1, keepdim=True)).exp()


def _shares(weights: Any, masked: Any) -> list[float]:
    """How much of the weights is where logits are not -inf, row by row."""
    if isinstance(masked, np.ndarray):
        with np.errstate(invalid="ignore"):
            kept = np.where(masked > -np.inf, weights, 0).sum(axis=-1) / weights.sum(axis=-1)
        return np.atleast_1d(kept).tolist()  # type: ignore[no-any-return]
    torch = import_module("torch")
    kept = torch.where(masked.detach() > -torch.inf, weights, 0.0).sum(dim=-1) / weights.sum(dim=-1)
    return kept.reshape(-1).tolist()  # type: ignore[no-any-return]


_switch = Switch(_Metrics)
