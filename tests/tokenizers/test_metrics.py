"""Metrics count what happens while they are on, and leave no trace when they are off."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from constrain.errors import ConstrainError, TokenizerError
from constrain.tokenizers import ByteLevelBPE, DecodeStream, StopSequenceDecoder, Tokenizer, load_tokenizer, metrics
from constrain.tokenizers.mock import MockTokenizer

prometheus_client = pytest.importorskip("prometheus_client")


@pytest.fixture
def registry():
    registry = prometheus_client.CollectorRegistry()
    metrics.enable(registry)
    yield registry
    metrics.disable()


def value(registry, name, tokenizer="MockTokenizer", **labels):
    return registry.get_sample_value(f"constrain_{name}", {"tokenizer": tokenizer, **labels}) or 0


def test_encode_and_decode(registry):
    tokenizer = MockTokenizer()
    ids = tokenizer.encode("Hello the").ids
    tokenizer.encode_batch(["ab", "c"])
    assert value(registry, "encode_seconds_count") == 3
    assert value(registry, "encode_seconds_sum") > 0
    assert value(registry, "encode_tokens_sum") == len(ids) + 3
    assert value(registry, "encode_characters_sum") == 9 + 3
    assert tokenizer.decode(iter(ids)) == "Hello the"
    assert tokenizer.decode_bytes(ids) == b"Hello the"
    assert value(registry, "decode_seconds_count") == 2, "decode calls decode_bytes, which does not count"
    assert value(registry, "decode_tokens_sum") == 2 * len(ids)
    assert value(registry, "decode_characters_sum") == 9


def test_streams_and_stops(registry):
    tokenizer = MockTokenizer()
    DecodeStream(tokenizer).step_batch([0xC3, 0xA4, ord("a")])
    assert value(registry, "stream_step_seconds_count") == 3
    assert value(registry, "stream_characters_total") == 2
    assert value(registry, "stream_incomplete_utf8_total") == 1
    assert value(registry, "decode_seconds_count") == 0
    StopSequenceDecoder(tokenizer, stop_strings=["ab"]).step_batch(b"xaby")
    assert value(registry, "stop_step_seconds_count") == 4
    for output, count in (("Text", 1), ("Held", 1), ("Stopped", 2), ("StoppedWithText", 0)):
        assert value(registry, "stop_outputs_total", output=output) == count
    assert value(registry, "stream_step_seconds_count") == 3


def test_errors_and_loading(registry, small_json, tmp_path):
    tokenizer = MockTokenizer()
    for wrong in (lambda: tokenizer.encode("\ud800"), lambda: tokenizer.decode([10**6])):
        with pytest.raises(TokenizerError):
            wrong()
    with pytest.raises(TokenizerError):
        DecodeStream(tokenizer).step(10**6)
    for operation in ("encode", "decode", "stream"):
        assert value(registry, "tokenizer_errors_total", operation=operation, error="TokenizerError") == 1
    (tmp_path / "tokenizer.json").write_text(json.dumps(small_json))
    load_tokenizer(tmp_path).encode("x")
    assert value(registry, "load_seconds_count", "ByteLevelBPE") == 1
    assert value(registry, "vocabulary_size", "ByteLevelBPE") == 401
    assert value(registry, "encode_seconds_count", "ByteLevelBPE") == 1
    with pytest.raises(TokenizerError):
        load_tokenizer(tmp_path / "missing")
    assert value(registry, "tokenizer_errors_total", "unknown", operation="load", error="TokenizerError") == 1


def test_classes_made_later_are_measured_once(registry):
    class Later(MockTokenizer):
        def encode(self, text, add_special_tokens=False):
            return super().encode(text, add_special_tokens)

    Later().encode("x")
    assert value(registry, "encode_seconds_count", "Later") == 1
    Later().decode([65])
    assert value(registry, "decode_seconds_count", "Later") == 1


def test_off_is_as_if_it_had_never_been_on():
    def methods():
        kinds = (Tokenizer, ByteLevelBPE, MockTokenizer, DecodeStream, StopSequenceDecoder)
        return [vars(kind).get(name) for kind in kinds for name in ("encode", "decode", "decode_bytes", "step")]

    before, registry = methods(), prometheus_client.CollectorRegistry()
    metrics.enable(registry)
    metrics.enable(registry)
    assert methods() != before
    with pytest.raises(ConstrainError, match="another registry"):
        metrics.enable(prometheus_client.CollectorRegistry())
    metrics.disable()
    metrics.disable()
    assert methods() == before
    assert "__init_subclass__" not in vars(Tokenizer)
    assert list(registry.collect()) == []


def test_without_the_library_it_says_what_to_install():
    code = (
        "import sys; sys.modules['prometheus_client'] = None; from constrain.tokenizers.metrics import enable; enable()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'constrain-llm[metrics]'" in done.stderr.splitlines()[-1]


def test_importing_tokenizers_does_not_import_the_library():
    code = (
        "import sys, constrain.tokenizers.metrics; print('prometheus_client' in sys.modules, 'jinja2' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_several_names_at_once():
    registry = prometheus_client.CollectorRegistry()
    metrics.enable(registry, names=("vllm", "constrain"))
    try:
        MockTokenizer().encode("ab")
        assert registry.get_sample_value("vllm_tokenizer_tokens_per_encode_sum") == 2
        assert value(registry, "encode_tokens_sum") == 2
    finally:
        metrics.disable()
    assert list(registry.collect()) == []


def test_what_routers_count(small_json, tmp_path):
    registry = prometheus_client.CollectorRegistry()
    (tmp_path / "tokenizer.json").write_text(json.dumps(small_json))

    def found(name, **labels):
        return registry.get_sample_value(f"sgl_tokenizer_{name}", labels) or 0

    metrics.enable(registry, names="sgl")
    try:
        load_tokenizer(tmp_path)
        with pytest.raises(TokenizerError):
            load_tokenizer(tmp_path / "missing")
        assert found("factory_loads_total", file_type="json") == 1
        assert found("factory_load_duration_seconds_count") == 1
        assert found("factory_errors_total", error_type="TokenizerError") == 1
        assert found("vocab_size", tokenizer_type="ByteLevelBPE") == 401
        tokenizer = MockTokenizer()
        ids = tokenizer.encode("Hello the").ids
        assert len(tokenizer.encode_batch(["ab", "c"])) == 2
        with pytest.raises(TokenizerError):
            tokenizer.encode("\ud800")
        assert found("encode_requests_total", tokenizer_type="MockTokenizer") == 3
        assert found("encode_duration_seconds_count") == 3
        assert found("encode_batch_duration_seconds_count", batch_size="2") == 1
        assert found("tokens_per_encode_sum") == len(ids) + 3
        assert found("chars_per_encode_sum") == 12
        assert found("encode_errors_total", error_type="TokenizerError") == 1
        tokenizer.decode(ids)
        with pytest.raises(TokenizerError):
            tokenizer.decode([10**6])
        assert found("decode_requests_total", tokenizer_type="MockTokenizer") == 1
        assert found("decode_duration_seconds_count") == 1
        assert found("tokens_per_decode_sum") == len(ids)
        assert found("decode_errors_total", error_type="TokenizerError") == 1
        DecodeStream(tokenizer).step_batch([0xC3, 0xA4, ord("a")])
        assert found("stream_tokens_total") == found("stream_step_duration_seconds_count") == 3
        assert found("stream_incomplete_utf8_total") == 1
        StopSequenceDecoder(tokenizer, stop_strings=["ab"]).step_batch(b"xaby")
        StopSequenceDecoder(tokenizer, stop_tokens=[66], visible_stop_tokens=[67]).step_batch(b"xB")
        StopSequenceDecoder(tokenizer, stop_tokens=[66], visible_stop_tokens=[67]).step_batch(b"xCC")
        assert found("stop_sequences_detected_total", type="string") == 1
        assert found("stop_sequences_detected_total", type="token") == 2
        assert found("partial_matches_total") == 1
        assert found("stop_detection_duration_seconds_count") == 9
        assert not any(metric.name.startswith("constrain") for metric in registry.collect())
    finally:
        metrics.disable()
    assert list(registry.collect()) == []
    for wrong in ("sglang", (), ("sgl", "other")):
        with pytest.raises(ConstrainError, match="names must be some of constrain, sgl, vllm"):
            metrics.enable(registry, names=wrong)
