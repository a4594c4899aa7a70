"""What can be asked of which backend, the window that slides, and the choice of a backend by its path."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from constrain.backends import Backend, BackendOptions, CallableBackend, load_backend
from constrain.backends.base import common_prefix
from constrain.backends.demo import DemoBackend
from constrain.backends.factory import choose_backend
from constrain.backends.window import Window, window_of
from constrain.errors import ConstrainError
from constrain.generation import generate
from constrain.tokenizers.mock import MockTokenizer

SLIDING = {"eviction_policy": "sliding"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kv_type": "q5"}, "kv_type must be one of f32, f16, q8, q4, not 'q5'"),
        ({"max_seq_len": 1}, "max_seq_len must be at least 2, not 1"),
        ({"eviction_policy": "lru"}, "eviction_policy must be one of none, sliding, attention, not 'lru'"),
        ({"eviction_window": 1, **SLIDING}, "eviction_window must be at least 2"),
        ({"protected_prefix": -1, **SLIDING}, "protected_prefix must be 0 or more"),
        ({"eviction_window": 8}, "eviction_window is for eviction_policy 'sliding'"),
        ({"protected_prefix": 8}, "protected_prefix is for eviction_policy 'sliding'"),
    ],
)
def test_values_out_of_range(options, message):
    with pytest.raises(ConstrainError, match=message):
        BackendOptions(**options)


def test_what_a_backend_has_not():
    with pytest.raises(ConstrainError, match="the demo backend has no kv_type; transformers and llama-cpp have"):
        DemoBackend(BackendOptions(kv_type="f16"))
    with pytest.raises(ConstrainError, match="the callable backend has no eviction_policy"):
        CallableBackend(lambda ids: [], MockTokenizer(), BackendOptions(**SLIDING))


@given(st.lists(st.integers(0, 3), max_size=30), st.lists(st.integers(0, 3), max_size=30), st.integers(0, 30))
def test_common_prefix(first, second, shared):
    second = first[:shared] + second
    expected = 0
    while expected < min(len(first), len(second)) and first[expected] == second[expected]:
        expected += 1
    assert common_prefix(first, second) == common_prefix(second, first) == expected


@given(st.integers(0, 10), st.integers(2, 20), st.integers(0, 200))
def test_window(protected, size, length):
    window = Window(protected, size)
    ids = list(range(length))
    seen = list(window.visible(ids))
    if length <= protected + size:
        assert seen == ids
    else:
        assert seen[:protected] == ids[:protected]
        kept = len(seen) - protected
        assert seen[protected:] == ids[-kept:]
        assert size // 2 <= kept <= size
    assert len(seen) == length - window.evicted(length)


def test_a_window_only_grows_for_half_its_size():
    window = Window(3, 10)
    changes = [n for n in range(1, 60) if window.evicted(n) != window.evicted(n - 1)]
    assert changes[0] == 14
    assert {later - earlier for earlier, later in pairwise(changes)} == {5}


def test_windows_that_do_not_fit():
    assert window_of(BackendOptions(), 10) is None
    assert window_of(BackendOptions(**SLIDING, protected_prefix=4), 10) == Window(4, 6)
    with pytest.raises(
        ConstrainError, match=r"a protected prefix of 4 tokens and a window of 7 do not fit .* 10 tokens"
    ):
        window_of(BackendOptions(**SLIDING, protected_prefix=4, eviction_window=7), 10)
    with pytest.raises(ConstrainError, match="do not fit"):
        window_of(BackendOptions(**SLIDING, protected_prefix=9), 10)
    with pytest.raises(
        ConstrainError, match="has room for 20 tokens; with a protected prefix of 30 at least 32 are needed"
    ):
        window_of(BackendOptions(**SLIDING, protected_prefix=30, max_kv_size=20), 100)
    with pytest.raises(ConstrainError, match="needs an eviction_window"):
        window_of(BackendOptions(**SLIDING), None)


def test_choice_by_path(tmp_path):
    (tmp_path / "hf").mkdir()
    (tmp_path / "hf" / "config.json").touch()
    (tmp_path / "hf" / "model.gguf").touch()
    (tmp_path / "gg").mkdir()
    (tmp_path / "gg" / "model.gguf").touch()
    assert choose_backend(None) == "demo"
    assert choose_backend(tmp_path / "hf") == "transformers"
    assert choose_backend(tmp_path / "gg") == "llama-cpp"
    assert choose_backend(tmp_path / "gg" / "model.gguf") == "llama-cpp"
    assert choose_backend(tmp_path / "hf", "llama-cpp") == "llama-cpp"
    assert choose_backend(tmp_path) == "transformers"
    for path, name, message in (
        (None, "transformers", "needs the path of a model"),
        (tmp_path, "demo", "takes no path"),
        (None, "vllm", "there is no backend 'vllm'; there are auto, demo"),
        (tmp_path / "missing", "auto", "missing: no such file or folder"),
        (tmp_path / ("x" * 5000), "auto", "xxx: File name too long"),
    ):
        with pytest.raises(ConstrainError, match=message):
            choose_backend(path, name)


def test_the_demo_backend():
    backend = load_backend()
    assert isinstance(backend, Backend)
    assert backend.max_seq_len is None
    assert backend.logits([]).shape == (backend.vocab_size,) == (backend.tokenizer.vocab_size,)
    assert backend.vocabulary.size == backend.vocab_size
    assert backend.vocabulary is backend.vocabulary
    with pytest.raises(NotImplementedError, match="one sequence at a time"):
        backend.logits_batch([[1]])


def test_a_function_as_a_backend():
    tokenizer = MockTokenizer()
    backend = CallableBackend(
        lambda ids: [float(token == 97 + len(ids)) for token in range(tokenizer.vocab_size)],
        tokenizer,
        BackendOptions(max_seq_len=5),
    )
    generation = generate(backend, tokenizer, None, prompt=[0])
    assert backend.logits((1, 2)).argmax() == 99
    assert len(list(generation)) == 4
    assert generation.statistics.finish_reason == "length"


@pytest.mark.parametrize("answer", [np.zeros(3), np.zeros((1, 274)), 0.0])
def test_a_function_with_another_answer(answer):
    with pytest.raises(ConstrainError, match="the model has logits of shape"):
        CallableBackend(lambda ids: answer, MockTokenizer()).logits([])


def test_something_that_is_no_function():
    with pytest.raises(ConstrainError, match="a function is needed, not int"):
        CallableBackend(3, MockTokenizer())


def test_a_function_beside_a_tokenizer_of_another_library():
    tokenizers = pytest.importorskip("tokenizers", reason="the extra 'tokenizers' is not installed")
    loaded = tokenizers.Tokenizer(tokenizers.models.WordLevel({"yes": 0, "no": 1, "</s>": 2}, unk_token="</s>"))
    backend = CallableBackend(lambda ids: [0.0, 1.0, 2.0], loaded)
    assert (backend.vocab_size, backend.tokenizer.token_to_id("no")) == (3, 1)


def test_names_of_the_package():
    import constrain.backends as package

    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        package.nothing  # noqa: B018
