"""What metrics of tokenizers are called: this package's own names, or those that routers in front of servers have.

The routers of SGLang and vLLM have metrics of their own tokenizers, of the same names but for the beginning: dashboards
and alarms that were made for them take ours.  Sources: ``sgl-router/src/metrics.rs`` of SGLang, and the same file of
vLLM's router, which began as a copy.
"""

from __future__ import annotations

from typing import Any, Protocol

from constrain.instruments import SECONDS, Instruments

_COUNTS = (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 1_000_000)


class Names(Protocol):
    """Where what was measured is written to; ``kind`` is the class of the tokenizer, and times are seconds."""

    def loaded(self, kind: str, file_type: str, size: int, seconds: float) -> None:
        """A tokenizer with so many ids was opened."""

    def encoded(self, kind: str, characters: int | None, tokens: int, seconds: float) -> None:
        """A text was encoded."""

    def encoded_batch(self, texts: int, seconds: float) -> None:
        """A batch was encoded, whose texts are told of one by one as well."""

    def decoded(self, kind: str, tokens: int | None, characters: int | None, seconds: float) -> None:
        """A list of ids was decoded; to bytes where ``characters`` is None."""

    def streamed(self, kind: str, characters: int, within_character: bool, seconds: float) -> None:
        """A stream took a token."""

    def looked_for_stops(self, kind: str, output: str, stop: str | None, held: bool, seconds: float) -> None:
        """A stop sequence decoder took a token; ``stop``: "token" or "string" where that was met just now."""

    def failed(self, kind: str, operation: str, error: str) -> None:
        """Something raised an error: "load", "encode", "decode", "stream" or "stop"."""


class OwnNames:
    """``constrain_encode_seconds`` and so on, with the class of the tokenizer as a label."""

    def __init__(self, instruments: Instruments) -> None:
        def histogram(name: str, text: str, buckets: tuple[float, ...]) -> Any:
            return instruments.histogram(f"constrain_{name}", text, buckets, "tokenizer")

        def counter(name: str, text: str, *labels: str) -> Any:
            return instruments.counter(f"constrain_{name}", text, "tokenizer", *labels)

        about = "Ids of the tokenizer that was opened last."
        self._vocabulary = instruments.gauge("constrain_vocabulary_size", about, "tokenizer", of_processes="max")
        self._load_seconds = histogram("load_seconds", "Opening a tokenizer.", SECONDS)
        self._encode_seconds = histogram("encode_seconds", "Encoding one text.", SECONDS)
        self._encode_tokens = histogram("encode_tokens", "Tokens of an encoded text.", _COUNTS)
        self._encode_characters = histogram("encode_characters", "Characters of an encoded text.", _COUNTS)
        self._decode_seconds = histogram("decode_seconds", "Decoding one list of ids.", SECONDS)
        self._decode_tokens = histogram("decode_tokens", "Tokens of a decoded list.", _COUNTS)
        self._decode_characters = histogram("decode_characters", "Characters of a decoded text.", _COUNTS)
        self._stream_seconds = histogram("stream_step_seconds", "One step of a decoding stream.", SECONDS)
        self._stream_characters = counter("stream_characters", "Characters given out by decoding streams.")
        self._incomplete = counter("stream_incomplete_utf8", "Steps of streams that end within a character.")
        self._stop_seconds = histogram("stop_step_seconds", "One step of a stop sequence decoder.", SECONDS)
        self._stop_outputs = counter("stop_outputs", "Steps of stop sequence decoders, by what they return.", "output")
        self._errors = counter("tokenizer_errors", "Errors, by what raised them.", "operation", "error")

    def loaded(self, kind: str, file_type: str, size: int, seconds: float) -> None:
        self._load_seconds.labels(kind).observe(seconds)
        self._vocabulary.labels(kind).set(size)

    def encoded(self, kind: str, characters: int | None, tokens: int, seconds: float) -> None:
        self._encode_seconds.labels(kind).observe(seconds)
        self._encode_tokens.labels(kind).observe(tokens)
        if characters is not None:
            self._encode_characters.labels(kind).observe(characters)

    def encoded_batch(self, texts: int, seconds: float) -> None:
        pass  # its texts say all

    def decoded(self, kind: str, tokens: int | None, characters: int | None, seconds: float) -> None:
        self._decode_seconds.labels(kind).observe(seconds)
        if tokens is not None:
            self._decode_tokens.labels(kind).observe(tokens)
        if characters is not None:
            self._decode_characters.labels(kind).observe(characters)

    def streamed(self, kind: str, characters: int, within_character: bool, seconds: float) -> None:
        self._stream_seconds.labels(kind).observe(seconds)
        self._stream_characters.labels(kind).inc(characters)
        if within_character:
            self._incomplete.labels(kind).inc()

    def looked_for_stops(self, kind: str, output: str, stop: str | None, held: bool, seconds: float) -> None:
        self._stop_seconds.labels(kind).observe(seconds)
        self._stop_outputs.labels(kind, output).inc()

    def failed(self, kind: str, operation: str, error: str) -> None:
        self._errors.labels(kind, operation, error).inc()


class RouterNames:
    """``sgl_tokenizer_encode_duration_seconds`` and so on, with the labels that the routers give them.

    Parameters
    ----------
    instruments : Instruments
    router : str
        ``"sgl"`` or ``"vllm"``.
    """

    def __init__(self, instruments: Instruments, router: str) -> None:
        def histogram(name: str, text: str, *labels: str, buckets: tuple[float, ...] = SECONDS) -> Any:
            return instruments.histogram(f"{router}_tokenizer_{name}", text, buckets, *labels)

        def counter(name: str, text: str, *labels: str) -> Any:
            return instruments.counter(f"{router}_tokenizer_{name}", text, *labels)

        self._encode_seconds = histogram("encode_duration_seconds", "Encoding one text.")
        self._batch_seconds = histogram("encode_batch_duration_seconds", "Encoding several texts.", "batch_size")
        self._encode_requests = counter("encode_requests", "Texts encoded.", "tokenizer_type")
        self._encode_errors = counter("encode_errors", "Errors of encoding.", "error_type")
        self._encode_tokens = histogram("tokens_per_encode", "Tokens of an encoded text.", buckets=_COUNTS)
        self._encode_characters = histogram("chars_per_encode", "Characters of an encoded text.", buckets=_COUNTS)
        self._decode_seconds = histogram("decode_duration_seconds", "Decoding one list of ids.")
        self._decode_requests = counter("decode_requests", "Lists of ids decoded.", "tokenizer_type")
        self._decode_errors = counter("decode_errors", "Errors of decoding and of streams.", "error_type")
        self._decode_tokens = histogram("tokens_per_decode", "Tokens of a decoded list.", buckets=_COUNTS)
        self._stops = counter("stop_sequences_detected", "Stops that were met.", "type")
        self._held = counter("partial_matches", "Steps that hold back what may become a stop string.")
        self._stop_seconds = histogram("stop_detection_duration_seconds", "One step of a stop sequence decoder.")
        self._stream_tokens = counter("stream_tokens", "Tokens of decoding streams.")
        self._incomplete = counter("stream_incomplete_utf8", "Steps of streams that end within a character.")
        self._stream_seconds = histogram("stream_step_duration_seconds", "One step of a decoding stream.")
        self._loads = counter("factory_loads", "Tokenizers opened.", "file_type")
        self._load_errors = counter("factory_errors", "Errors of opening.", "error_type")
        self._load_seconds = histogram("factory_load_duration_seconds", "Opening a tokenizer.")
        about = "Ids of the tokenizer that was opened last."
        self._vocabulary = instruments.gauge(
            f"{router}_tokenizer_vocab_size", about, "tokenizer_type", of_processes="max"
        )

    def loaded(self, kind: str, file_type: str, size: int, seconds: float) -> None:
        self._loads.labels(file_type).inc()
        self._load_seconds.observe(seconds)
        self._vocabulary.labels(kind).set(size)

    def encoded(self, kind: str, characters: int | None, tokens: int, seconds: float) -> None:
        self._encode_requests.labels(kind).inc()
        self._encode_seconds.observe(seconds)
        self._encode_tokens.observe(tokens)
        if characters is not None:
            self._encode_characters.observe(characters)

    def encoded_batch(self, texts: int, seconds: float) -> None:
        self._batch_seconds.labels(str(texts)).observe(seconds)

    def decoded(self, kind: str, tokens: int | None, characters: int | None, seconds: float) -> None:
        self._decode_requests.labels(kind).inc()
        self._decode_seconds.observe(seconds)
        if tokens is not None:
            self._decode_tokens.observe(tokens)

    def streamed(self, kind: str, characters: int, within_character: bool, seconds: float) -> None:
        self._stream_tokens.inc()
        self._stream_seconds.observe(seconds)
        if within_character:
            self._incomplete.inc()

    def looked_for_stops(self, kind: str, output: str, stop: str | None, held: bool, seconds: float) -> None:
        self._stop_seconds.observe(seconds)
        if stop is not None:
            self._stops.labels(stop).inc()
        if held:
            self._held.inc()

    def failed(self, kind: str, operation: str, error: str) -> None:
        errors = {"load": self._load_errors, "encode": self._encode_errors}.get(operation, self._decode_errors)
        errors.labels(error).inc()
