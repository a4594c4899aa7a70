"""Prometheus metrics of tokenizers, streams and stop sequences; off until :func:`enable` is called.

Methods do not test whether metrics are on: :func:`enable` replaces them by measuring ones, and :func:`disable` puts
them back.  So metrics cost nothing while they are off, and about three microseconds a call while they are on.  For that
reason they are not on by themselves where ``prometheus_client`` is installed.

Where one measured method calls another, only the outer one counts.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from time import perf_counter
from typing import Any

from constrain.instruments import SECONDS, Instruments, Switch
from constrain.tokenizers.base import Tokenizer

_COUNTS = (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 1_000_000)


def enable(registry: Any = None) -> None:
    """Measure from now on, in ``registry`` (by default the one that ``prometheus_client`` has).

    Every metric has the label ``tokenizer``, the name of the class.  Calling it again does nothing.

    Raises :class:`constrain.ConstrainError` if ``prometheus_client`` is not installed, or if metrics go to
    another registry already.
    """
    _switch.enable(registry)


def disable() -> None:
    """Stop measuring, and take the metrics out of their registry."""
    _switch.disable()


@contextmanager
def loading() -> Iterator[Callable[[Tokenizer], None]]:
    """Measures the opening of a tokenizer; the block calls what it gets with the tokenizer."""
    metrics = _switch.on
    if metrics is None:
        yield lambda tokenizer: None
        return
    begin = perf_counter()
    opened: list[Tokenizer] = []
    try:
        yield opened.append
    except Exception as error:
        metrics.errors.labels("unknown", "load", type(error).__name__).inc()
        raise
    name = type(opened[0]).__name__
    metrics.load_seconds.labels(name).observe(perf_counter() - begin)
    metrics.vocabulary.labels(name).set(opened[0].vocab_size)


class _Metrics(Instruments):
    """The metrics, and the methods that they measure."""

    def __init__(self, library: Any, registry: Any) -> None:
        super().__init__(library, registry)
        self._inside = threading.local()

        def histogram(name: str, text: str, buckets: tuple[float, ...]) -> Any:
            return self.histogram(name, text, buckets, "tokenizer")

        def counter(name: str, text: str, *labels: str) -> Any:
            return self.counter(name, text, "tokenizer", *labels)

        about = "Ids of the tokenizer that was opened last."
        self.vocabulary = self.gauge("vocabulary_size", about, "tokenizer", of_processes="max")
        self.load_seconds = histogram("load_seconds", "Opening a tokenizer.", SECONDS)
        self.encode_seconds = histogram("encode_seconds", "Encoding one text.", SECONDS)
        self.encode_tokens = histogram("encode_tokens", "Tokens of an encoded text.", _COUNTS)
        self.encode_characters = histogram("encode_characters", "Characters of an encoded text.", _COUNTS)
        self.decode_seconds = histogram("decode_seconds", "Decoding one list of ids.", SECONDS)
        self.decode_tokens = histogram("decode_tokens", "Tokens of a decoded list.", _COUNTS)
        self.decode_characters = histogram("decode_characters", "Characters of a decoded text.", _COUNTS)
        self.stream_seconds = histogram("stream_step_seconds", "One step of a decoding stream.", SECONDS)
        self.stream_characters = counter("stream_characters", "Characters given out by decoding streams.")
        self.incomplete = counter("stream_incomplete_utf8", "Steps of streams that end within a character.")
        self.stop_seconds = histogram("stop_step_seconds", "One step of a stop sequence decoder.", SECONDS)
        self.stop_outputs = counter("stop_outputs", "Steps of stop sequence decoders, by what they return.", "output")
        self.errors = counter("tokenizer_errors", "Errors, by what raised them.", "operation", "error")

    def install(self) -> None:
        # Streams take 4 ms to load (measured), and every loaded tokenizer asks here whether metrics are on.
        from constrain.tokenizers.streaming.decode_stream import DecodeStream
        from constrain.tokenizers.streaming.stop_sequences import StopSequenceDecoder

        kinds: list[type] = [Tokenizer]
        for kind in kinds:  # grows while it is gone through
            kinds += kind.__subclasses__()
            self._measure_tokenizer(kind)
        self._measure(DecodeStream, "step", "stream", self._stream_step)
        self._measure(StopSequenceDecoder, "step", "stop", self._stop_step)
        # Tokenizers whose modules are not loaded yet.
        Tokenizer.__init_subclass__ = classmethod(  # type: ignore[assignment]
            lambda kind: self._measure_tokenizer(kind)
        )

    def remove(self) -> None:
        del Tokenizer.__init_subclass__  # the one of object is behind it
        super().remove()

    def _measure_tokenizer(self, kind: type) -> None:
        self._measure(kind, "encode", "encode", self._encode)
        self._measure(kind, "decode", "decode", self._decode)
        self._measure(kind, "decode_bytes", "decode", self._decode)

    def _measure(self, kind: type, name: str, operation: str, record: Callable[..., None]) -> None:
        """Replace a method that ``kind`` itself defines by a measuring one."""
        # Inherited ones are measured where they are defined, and abstract ones are never called.
        owner = next((base for base in kind.__mro__ if name in vars(base)), None)
        if owner is None or self.is_replaced(owner, name):
            return
        function = vars(owner)[name]
        if getattr(function, "__isabstractmethod__", False):
            return
        inside = self._inside

        @wraps(function)
        def measured(self_: Any, *args: Any, **kwargs: Any) -> Any:
            if getattr(inside, "busy", False):
                return function(self_, *args, **kwargs)
            inside.busy = True
            if operation == "decode" and args:
                args = (list(args[0]), *args[1:])  # it may be an iterator, and its length is wanted
            begin = perf_counter()
            try:
                result = function(self_, *args, **kwargs)
            except Exception as error:
                self.errors.labels(_name(self_), operation, type(error).__name__).inc()
                raise
            finally:
                inside.busy = False
            record(self_, args, result, perf_counter() - begin)
            return result

        self.replace(owner, name, measured)

    def _encode(self, tokenizer: Any, args: tuple[Any, ...], result: Any, seconds: float) -> None:
        name = type(tokenizer).__name__
        self.encode_seconds.labels(name).observe(seconds)
        self.encode_tokens.labels(name).observe(len(result.ids))
        if args:
            self.encode_characters.labels(name).observe(len(args[0]))

    def _decode(self, tokenizer: Any, args: tuple[Any, ...], result: str | bytes, seconds: float) -> None:
        name = type(tokenizer).__name__
        self.decode_seconds.labels(name).observe(seconds)
        if args:
            self.decode_tokens.labels(name).observe(len(args[0]))
        if isinstance(result, str):
            self.decode_characters.labels(name).observe(len(result))

    def _stream_step(self, stream: Any, args: tuple[Any, ...], result: str | None, seconds: float) -> None:
        name = _name(stream)
        self.stream_seconds.labels(name).observe(seconds)
        self.stream_characters.labels(name).inc(len(result or ""))
        if stream.incomplete_character:
            self.incomplete.labels(name).inc()

    def _stop_step(self, decoder: Any, args: tuple[Any, ...], result: Any, seconds: float) -> None:
        name = _name(decoder)
        self.stop_seconds.labels(name).observe(seconds)
        self.stop_outputs.labels(name, type(result).__name__).inc()


_switch = Switch(_Metrics)


def _name(measured: Any) -> str:
    """The class of a tokenizer, or of the one that a stream has."""
    return type(getattr(measured, "_tokenizer", measured)).__name__
