"""The llama.cpp backend against the same weights in PyTorch."""

from __future__ import annotations

import re

import numpy as np
import pytest

pytest.importorskip("llama_cpp", reason="the extra 'llama-cpp' is not installed")
pytest.importorskip("gguf", reason="the package 'gguf' is not installed")
torch = pytest.importorskip("torch", reason="the extra 'transformers' is not installed")
pytest.importorskip("transformers", reason="the extra 'transformers' is not installed")

from backends.taking_turns import check_that_threads_take_turns  # noqa: E402
from tiny_models import BOS, CONTEXT, EOS, ROWS, write_folder, write_gguf  # noqa: E402

from constrain import Grammar, GrammarCompiler  # noqa: E402
from constrain.backends import BackendOptions, load_backend  # noqa: E402
from constrain.backends.llama_cpp import LlamaCppBackend  # noqa: E402
from constrain.errors import ConstrainError  # noqa: E402
from constrain.generation import generate, generate_batch  # noqa: E402
from constrain.sampling import Sampler  # noqa: E402

LENGTHS = (5, 6, 7, 20, 20, 41, 19, 3, 12, 1)
IDS = [BOS, *np.random.default_rng(0).integers(3, 279, 100).tolist()]


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    return load_backend(write_folder(tmp_path_factory.mktemp("model")))


@pytest.fixture(scope="module")
def gguf(judge, tmp_path_factory):
    weights = {name: tensor.numpy() for name, tensor in judge._model.state_dict().items()}
    return write_gguf(tmp_path_factory.mktemp("gguf") / "model.gguf", weights)


@pytest.fixture(scope="module")
def exact(gguf):
    return load_backend(gguf, options=BackendOptions(kv_type="f32"))


def test_what_it_knows(exact):
    assert (exact.name, exact.vocab_size, exact.max_seq_len) == ("llama-cpp", ROWS, CONTEXT)
    assert exact.tokenizer.eos_ids == (EOS,)
    assert not exact.can_batch


def test_the_same_logits_as_the_same_weights_elsewhere(exact, judge):
    for length in LENGTHS:
        assert np.allclose(exact.logits(IDS[:length]), judge.logits(IDS[:length]), atol=1e-3)
    other = [*IDS[:4], 200, 201]
    assert np.allclose(exact.logits(other), judge.logits(other), atol=1e-3)
    assert np.allclose(exact.logits([]), judge.logits([BOS]), atol=1e-3)


def test_types_of_keys_and_values(gguf, judge):
    errors = {}
    for kv_type in ("f16", "q8", "q4"):
        backend = load_backend(gguf, options=BackendOptions(kv_type=kv_type))
        errors[kv_type] = max(
            np.abs(backend.logits(IDS[:length]) - judge.logits(IDS[:length])).max() for length in LENGTHS
        )
    assert 1e-4 < errors["f16"] < errors["q8"] < errors["q4"]
    assert errors["q8"] < 2


def test_lengths(gguf):
    backend = load_backend(gguf, options=BackendOptions(max_seq_len=40))
    assert backend.max_seq_len == 40
    with pytest.raises(ConstrainError, match="41 tokens do not fit into the model's context of 40"):
        backend.logits(IDS[:41])
    with pytest.raises(ConstrainError, match=f"max_seq_len is 999, but the model was made for at most {CONTEXT}"):
        load_backend(gguf, options=BackendOptions(max_seq_len=999))


def test_a_context_shift_keeps_what_is_left(gguf, judge, monkeypatch):
    options = BackendOptions(
        eviction_policy="sliding", protected_prefix=4, eviction_window=28, max_seq_len=32, kv_type="f32"
    )
    backend = load_backend(gguf, options=options)
    assert backend.max_seq_len is None
    evaluated = []
    evaluate = backend._llama.eval
    monkeypatch.setattr(backend._llama, "eval", lambda tokens: (evaluated.append(len(tokens)), evaluate(tokens)))
    for length in range(1, 90):
        row = backend.logits(IDS[:length])
        if length <= 32:
            assert np.allclose(row, judge.logits(IDS[:length]), atol=1e-3)
        assert np.isfinite(row).all()
    # Nothing was computed twice: keys and values move, and the positions are counted anew.
    assert evaluated == [1] * 89
    # In a model of one layer it would be what a fresh start gives; the second layer has seen what is forgotten.
    seen = backend._window.visible(IDS[:89])
    fresh, shifted = judge.logits(list(seen)), backend.logits(IDS[:89])
    assert np.corrcoef(fresh, shifted)[0, 1] > 0.7


def test_generation(exact, judge):
    compiled = GrammarCompiler(exact.vocabulary).compile(Grammar.from_regex("(yes|no), name [a-e]{5,20}"))
    theirs = GrammarCompiler(judge.vocabulary).compile(Grammar.from_regex("(yes|no), name [a-e]{5,20}"))
    for seed in range(3):
        texts = set()
        for backend, grammar in ((exact, compiled), (judge, theirs)):
            generation = generate(backend, backend.tokenizer, grammar, prompt="name", sampler=Sampler(0, seed=seed))
            list(generation)
            texts.add(generation.text)
        assert len(texts) == 1
        assert re.fullmatch("(yes|no), name [a-e]{5,20}", texts.pop())


def test_a_batch_is_made_row_by_row(exact):
    compiled = GrammarCompiler(exact.vocabulary).compile(Grammar.from_regex("[a-e]{5,20}"))
    batch = generate_batch(exact, exact.tokenizer, compiled, ["name", "no"], sampler=Sampler(seed=1))
    rows = [row for row, _ in batch]
    assert rows == sorted(rows)
    assert all(re.fullmatch("[a-e]{5,20}", text) for text in batch.texts)


def test_threads_take_turns(exact, judge):
    check_that_threads_take_turns(exact, judge.logits, IDS)


def test_a_model_that_is_closed(gguf, exact):
    backend = load_backend(gguf)
    assert backend.logits(IDS).shape == (ROWS,)
    for _ in range(2):
        backend.close()
        with pytest.raises(ConstrainError, match="the model is closed"):
            backend.logits(IDS)


@pytest.mark.parametrize("token", [ROWS, -1, 2**31, 2**40])
def test_tokens_that_there_are_not(exact, judge, token):
    with pytest.raises(ConstrainError, match=r"llama\.cpp cannot go on"):
        exact.logits([*IDS[:5], token])
    assert np.allclose(exact.logits(IDS[:7]), judge.logits(IDS[:7]), atol=1e-3)


def test_a_folder_with_one_file(gguf):
    assert load_backend(gguf.parent).name == "llama-cpp"
    assert load_backend(gguf.parent, "llama-cpp").vocab_size == ROWS


def test_files_that_are_none(gguf, tmp_path):
    with pytest.raises(ConstrainError, match=r"no \.gguf file in this folder"):
        load_backend(tmp_path, "llama-cpp")
    for name in ("a", "b"):
        (tmp_path / f"{name}.gguf").write_bytes(b"GGUF")
    with pytest.raises(ConstrainError, match=r"several \.gguf files"):
        load_backend(tmp_path)
    with pytest.raises(ConstrainError, match="No such file"):
        LlamaCppBackend(tmp_path / "missing")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(ConstrainError, match="text: not a GGUF file"):
        load_backend(tmp_path / "text")
    (tmp_path / "cut.gguf").write_bytes(gguf.read_bytes()[:-5000])
    with pytest.raises(ConstrainError, match=r"cut\.gguf: "):
        load_backend(tmp_path / "cut.gguf")
