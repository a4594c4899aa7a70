"""Prometheus metrics of tokenizers, streams and stop sequences; off until :func:`enable` is called.

Methods do not test whether metrics are on: :func:`enable` replaces them by measuring ones, and :func:`disable` puts
them back.  So metrics cost nothing while they are off, and about three microseconds a call while they are on.  For that
reason they are not on by themselves where ``prometheus_client`` is installed.

Where one measured method calls another, only the outer one counts.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from time import perf_counter
from typing import Any

from constrain.errors import ConstrainError
from constrain.instruments import Instruments, Switch
from constrain.tokenizers.base import Encoder, Tokenizer
from constrain.tokenizers.metric_names import Names, OwnNames, RouterNames

_SCHEMES: dict[str, Callable[[Instruments], Names]] = {
    "constrain": OwnNames,
    "sgl": lambda instruments: RouterNames(instruments, "sgl"),
    "vllm": lambda instruments: RouterNames(instruments, "vllm"),
}


def enable(registry: Any = None, *, names: str | Iterable[str] = "constrain") -> None:
    """Measure from now on; calling it again does nothing.

    Parameters
    ----------
    registry : prometheus_client.CollectorRegistry, optional
        By default the one that ``prometheus_client`` has.
    names : str or iterable of str
        What the metrics are called (:mod:`constrain.tokenizers.metric_names`): ``"constrain"``, with the class of the
        tokenizer as the label ``tokenizer``; ``"sgl"`` or ``"vllm"``, as in the routers of SGLang and vLLM; or several.

    Raises
    ------
    ConstrainError
        If ``prometheus_client`` is not installed, metrics go to another registry already, or there are no such names.
    """
    chosen = [names] if isinstance(names, str) else list(names)
    unknown = [name for name in chosen if name not in _SCHEMES]
    if unknown or not chosen:
        raise ConstrainError(f"names must be some of {', '.join(_SCHEMES)}, not {names!r}")
    _switch.enable(registry, names=tuple(dict.fromkeys(chosen)))


def disable() -> None:
    """Stop measuring, and take the metrics out of their registry."""
    _switch.disable()


@contextmanager
def loading() -> Iterator[Callable[[Tokenizer, str], None]]:
    """Measures the opening of a tokenizer; the block calls what it gets with the tokenizer and the kind of its file."""
    metrics = _switch.on
    if metrics is None:
        yield lambda tokenizer, file_type: None
        return
    begin = perf_counter()
    opened: list[tuple[Tokenizer, str]] = []
    try:
        yield lambda tokenizer, file_type: opened.append((tokenizer, file_type))
    except Exception as error:
        for names in metrics.names:
            names.failed("unknown", "load", type(error).__name__)
        raise
    tokenizer, file_type = opened[0]
    for names in metrics.names:
        names.loaded(type(tokenizer).__name__, file_type, tokenizer.vocab_size, perf_counter() - begin)


class _Metrics(Instruments):
    """The metrics, and the methods that they measure."""

    def __init__(self, library: Any, registry: Any, *, names: tuple[str, ...]) -> None:
        super().__init__(library, registry)
        self._inside = threading.local()
        self.names = [_SCHEMES[name](self) for name in names]

    def install(self) -> None:
        # Streams take 4 ms to load (measured), and every loaded tokenizer asks here whether metrics are on.
        from constrain.tokenizers.streaming.decode_stream import DecodeStream
        from constrain.tokenizers.streaming.stop_sequences import StopSequenceDecoder

        kinds: list[type] = [Tokenizer]
        for kind in kinds:  # grows while it is gone through
            kinds += kind.__subclasses__()
            self._measure_tokenizer(kind)
        self.replace(Encoder, "encode_batch", self._batch(Encoder.encode_batch))
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

    def _batch(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def encode_batch(encoder: Any, *args: Any, **kwargs: Any) -> Any:
            begin = perf_counter()
            encodings = original(encoder, *args, **kwargs)
            for names in self.names:
                names.encoded_batch(len(encodings), perf_counter() - begin)
            return encodings

        return encode_batch

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
            was_stopped = operation == "stop" and self_.is_stopped
            begin = perf_counter()
            try:
                result = function(self_, *args, **kwargs)
            except Exception as error:
                for names in self.names:
                    names.failed(_name(self_), operation, type(error).__name__)
                raise
            finally:
                inside.busy = False
            seconds = perf_counter() - begin
            if operation == "stop":
                record(self_, args, result, seconds, was_stopped)
            else:
                record(self_, args, result, seconds)
            return result

        self.replace(owner, name, measured)

    def _encode(self, tokenizer: Any, args: tuple[Any, ...], result: Any, seconds: float) -> None:
        characters = len(args[0]) if args else None
        for names in self.names:
            names.encoded(type(tokenizer).__name__, characters, len(result.ids), seconds)

    def _decode(self, tokenizer: Any, args: tuple[Any, ...], result: str | bytes, seconds: float) -> None:
        tokens = len(args[0]) if args else None
        characters = len(result) if isinstance(result, str) else None
        for names in self.names:
            names.decoded(type(tokenizer).__name__, tokens, characters, seconds)

    def _stream_step(self, stream: Any, args: tuple[Any, ...], result: str | None, seconds: float) -> None:
        for names in self.names:
            names.streamed(_name(stream), len(result or ""), bool(stream.incomplete_character), seconds)

    def _stop_step(self, decoder: Any, args: tuple[Any, ...], result: Any, seconds: float, was_stopped: bool) -> None:
        stop = None
        if decoder.is_stopped and not was_stopped:
            stop = "token" if args and decoder.is_stop_token(args[0]) else "string"
        for names in self.names:
            names.looked_for_stops(_name(decoder), type(result).__name__, stop, decoder.holds_text, seconds)


_switch = Switch(_Metrics)


def _name(measured: Any) -> str:
    """The class of a tokenizer, or of the one that a stream has."""
    return type(getattr(measured, "_tokenizer", measured)).__name__
