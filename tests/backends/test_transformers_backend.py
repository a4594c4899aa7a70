"""The transformers backend against the model itself: caches that grow, are cut, and hold several rows."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra 'transformers' is not installed")
transformers = pytest.importorskip("transformers", reason="the extra 'transformers' is not installed")

from backends.taking_turns import check_that_threads_take_turns  # noqa: E402
from tiny_models import BOS, CONTEXT, EOS, ROWS, write_folder  # noqa: E402

from constrain import Grammar, GrammarCompiler  # noqa: E402
from constrain.backends import BackendOptions, load_backend  # noqa: E402
from constrain.backends.transformers import TransformersBackend  # noqa: E402
from constrain.backends.window import Window  # noqa: E402
from constrain.errors import ConstrainError  # noqa: E402
from constrain.generation import generate, generate_batch  # noqa: E402
from constrain.sampling import Sampler  # noqa: E402

# Cuts, growth, the same again, and a start from nothing.
LENGTHS = (5, 6, 7, 20, 20, 41, 19, 3, 12, 1)
IDS = [BOS, *np.random.default_rng(0).integers(3, 279, 100).tolist()]


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def backend(folder):
    return load_backend(folder)


def reference(model, ids):
    """The model's own answer, without a cache."""
    with torch.inference_mode():
        rows = torch.tensor([list(ids)], device=model.device)
        return model(rows, use_cache=False).logits[0, -1].float().cpu().numpy()


def make(backend, **options):
    return TransformersBackend(backend._model, backend.tokenizer, BackendOptions(**options))


def test_objects_of_transformers(backend, folder):
    """A tokenizer of transformers will do; a path is no model."""
    own = transformers.AutoTokenizer.from_pretrained(folder)
    made = TransformersBackend(backend._model, own)
    assert made.tokenizer.encode("yes").ids == own("yes", add_special_tokens=False).input_ids
    assert np.array_equal(made.logits([BOS]), backend.logits([BOS]))
    with pytest.raises(ConstrainError, match=r"model must be a transformers model, not str: load_backend\(path\)"):
        TransformersBackend(str(folder), own)


@pytest.mark.parametrize("options", [{}, {"eviction_policy": "sliding", "eviction_window": 12, "max_seq_len": 14}])
def test_threads_take_turns(backend, options):
    shared, judge = make(backend, **options), make(backend, **options)
    check_that_threads_take_turns(shared, judge.logits, IDS)


def test_what_it_knows(backend):
    assert (backend.name, backend.vocab_size, backend.max_seq_len) == ("transformers", ROWS, CONTEXT)
    assert backend.tokenizer.vocab_size < ROWS
    assert backend.tokenizer.eos_ids == (EOS,)
    assert backend.can_batch


def test_going_on_going_back_and_starting_anew(backend):
    for length in LENGTHS:
        assert np.allclose(backend.logits(IDS[:length]), reference(backend._model, IDS[:length]), atol=1e-4)
    other = [*IDS[:4], 200, 201]
    assert np.allclose(backend.logits(other), reference(backend._model, other), atol=1e-4)


def test_only_what_is_new_is_computed(backend, monkeypatch):
    widths = []
    forward = backend._model.forward

    def counted(*args, **arguments):
        widths.append(arguments["input_ids"].shape[1])
        return forward(*args, **arguments)

    backend.close()
    monkeypatch.setattr(backend._model, "forward", counted)
    for ids in (IDS[:10], IDS[:11], IDS[:15], IDS[:15], IDS[:8], [*IDS[:6], 9, 9]):
        backend.logits(ids)
    assert widths == [10, 1, 4, 1, 1, 2]


def test_an_empty_context_begins_with_the_token_that_begins_a_text(backend):
    assert np.allclose(backend.logits([]), reference(backend._model, [BOS]), atol=1e-4)


def test_a_token_that_the_model_has_not(backend):
    for unknown in (ROWS, -1):
        with pytest.raises(ConstrainError, match=f"the model cannot go on: of its {ROWS} tokens none has id {unknown}"):
            backend.logits([BOS, unknown])
        with pytest.raises(ConstrainError, match="the model cannot go on: "):
            backend.logits_batch([IDS[:4], [BOS, unknown, 7]])
        with pytest.raises(ConstrainError, match="the model cannot go on: "):
            backend.prompt_logits([BOS, unknown])
        assert np.allclose(backend.logits_batch([IDS[:5]])[0], reference(backend._model, IDS[:5]), atol=1e-4)
    assert np.allclose(backend.logits(IDS[:5]), reference(backend._model, IDS[:5]), atol=1e-4)


def test_types_of_keys_and_values(backend):
    exact = make(backend, kv_type="f32")
    half = make(backend, kv_type="f16")
    differences = []
    for length in LENGTHS:
        wanted = reference(backend._model, IDS[:length])
        assert np.allclose(exact.logits(IDS[:length]), wanted, atol=1e-4)
        differences.append(np.abs(half.logits(IDS[:length]) - wanted).max())
    assert 1e-4 < max(differences) < 0.2
    assert half._cache.layers[0].keys.dtype == torch.float16


def test_quantized_keys_and_values(backend):
    pytest.importorskip("hqq", reason="the package 'hqq' is not installed")
    errors = {}
    for kv_type in ("q8", "q4"):
        quantized = make(backend, kv_type=kv_type)
        differences = [
            np.abs(quantized.logits(IDS[:length]) - reference(backend._model, IDS[:length])).max() for length in LENGTHS
        ]
        errors[kv_type] = max(differences)
        assert not quantized.can_batch
    assert 1e-4 < errors["q8"] < errors["q4"] < 10


def test_without_a_quantizer_an_error_says_what_to_install(backend, monkeypatch):
    monkeypatch.setattr("transformers.utils.is_hqq_available", lambda: False)
    monkeypatch.setattr("transformers.utils.is_optimum_quanto_available", lambda: False)
    with pytest.raises(
        ConstrainError, match=r"kv_type q8 .* needs a quantizer: pip install hqq; the llama-cpp backend"
    ):
        make(backend, kv_type="q8")


def test_lengths(backend):
    assert make(backend, max_seq_len=9).max_seq_len == 9
    with pytest.raises(ConstrainError, match="10 tokens do not fit into the model's context of 9"):
        make(backend, max_seq_len=9).logits(IDS[:10])
    with pytest.raises(
        ConstrainError, match=f"max_seq_len is 999, but the model was made for at most {CONTEXT} tokens"
    ):
        make(backend, max_seq_len=999)


@pytest.mark.parametrize("protected", [0, 3])
def test_a_sliding_window_is_the_model_on_what_is_left(backend, protected):
    sliding = make(
        backend, eviction_policy="sliding", protected_prefix=protected, eviction_window=12, max_seq_len=protected + 12
    )
    assert sliding.max_seq_len is None
    window = Window(protected, 12)
    for length in range(1, 60):
        wanted = reference(backend._model, window.visible(IDS[:length]))
        assert np.allclose(sliding.logits(IDS[:length]), wanted, atol=1e-4)


def test_rows_of_different_lengths_together(backend):
    rng = np.random.default_rng(1)
    contexts = [IDS[:3], IDS[:9], IDS[:1], [7, 8, 9, 10]]
    for turn in range(9):
        answer = backend.logits_batch(contexts)
        assert answer.shape == (4, ROWS)
        for row, context in enumerate(contexts):
            if context is None:
                assert not answer[row].any()
            else:
                assert np.allclose(answer[row], reference(backend._model, context), atol=1e-4), (turn, row)
        contexts = [
            None if context is None else [*context, *rng.integers(3, 279, rng.integers(1, 4)).tolist()]
            for context in contexts
        ]
        if turn in (2, 5):
            contexts[1 if turn == 2 else 3] = None
        if turn == 7:
            # A row that does not go on where it was.
            contexts[0] = [BOS, 50]
    assert backend.logits_batch([None, None]).shape == (2, ROWS)


def test_a_window_of_attention_is_not_batched(backend):
    torch.manual_seed(0)
    config = transformers.MistralConfig(
        vocab_size=ROWS,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=CONTEXT,
        sliding_window=6,
        initializer_range=0.3,
    )
    model = transformers.MistralForCausalLM(config).eval()
    mistral = TransformersBackend(model, backend.tokenizer)
    assert not mistral.can_batch
    for length in LENGTHS:
        assert np.allclose(mistral.logits(IDS[:length]), reference(model, IDS[:length]), atol=1e-4)


def test_a_model_with_learned_positions(backend):
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=ROWS, n_positions=CONTEXT, n_embd=32, n_layer=2, n_head=2, bos_token_id=BOS, eos_token_id=EOS
    )
    model = transformers.GPT2LMHeadModel(config).eval()
    gpt = TransformersBackend(model, backend.tokenizer)
    for length in LENGTHS:
        assert np.allclose(gpt.logits(IDS[:length]), reference(model, IDS[:length]), atol=1e-4)
    contexts = [IDS[:3], IDS[:9]]
    for _ in range(3):
        answer = gpt.logits_batch(contexts)
        for row, context in enumerate(contexts):
            assert np.allclose(answer[row], reference(model, context), atol=1e-4)
        contexts = [[*contexts[0], 5, 6], [*contexts[1], 7]]


@pytest.mark.parametrize("name", ["Mamba", "Lfm2", "Qwen3Next"])
def test_models_with_a_recurrent_state(backend, name):
    if not hasattr(transformers, f"{name}Config"):
        pytest.skip(f"this transformers has no {name}")
    torch.manual_seed(0)
    sizes = {"vocab_size": ROWS, "hidden_size": 32, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 32}
    if name == "Mamba":
        sizes["state_size"] = 4
    elif name == "Lfm2":
        sizes |= {**heads, "layer_types": ["conv", "full_attention"]}
    else:
        sizes |= {
            **heads,
            "layer_types": ["linear_attention", "full_attention"],
            "head_dim": 16,
            "linear_num_value_heads": 2,
            "linear_num_key_heads": 1,
            "linear_key_head_dim": 16,
            "linear_value_head_dim": 16,
            "num_experts": 2,
            "num_experts_per_tok": 1,
            "moe_intermediate_size": 16,
            "shared_expert_intermediate_size": 16,
        }
    config = getattr(transformers, f"{name}Config")(**sizes, bos_token_id=BOS, eos_token_id=EOS, pad_token_id=0)
    model = getattr(transformers, f"{name}ForCausalLM")(config).eval()
    recurrent = TransformersBackend(model, backend.tokenizer)
    assert not recurrent.can_batch
    for length in LENGTHS:
        assert np.allclose(recurrent.logits(IDS[:length]), reference(model, IDS[:length]), atol=1e-3)


# -- generation ----------------------------------------------------------------------------------


def test_generation_and_batch_agree(backend):
    compiler = GrammarCompiler(backend.vocabulary)
    patterns = ["[a-e]{8,20}", "(yes|no) name", "[0-9]{3,5}"]
    grammars = [compiler.compile(Grammar.from_regex(pattern)) for pattern in patterns]
    prompts = ["name", "a much longer prompt", "b"]
    sampler = Sampler(1.0, 0, 1.0, seed=4, repetition_penalty=1.1)
    batch = generate_batch(backend, backend.tokenizer, grammars, prompts, sampler=sampler, max_tokens=40)
    list(batch)
    for row, pattern in enumerate(patterns):
        assert re.fullmatch(pattern, batch.texts[row])
        alone = generate(
            backend, backend.tokenizer, grammars[row], prompt=prompts[row], sampler=sampler.for_row(row), max_tokens=40
        )
        list(alone)
        assert alone.token_ids == batch.token_ids[row]


# -- folders that are wrong ----------------------------------------------------------------------


def test_a_folder_that_is_none(tmp_path):
    with pytest.raises(ConstrainError, match=f"{tmp_path}: no config.json in this folder"):
        load_backend(tmp_path)
    with pytest.raises(ConstrainError, match="not a model folder"):
        load_backend(Path(__file__), "transformers")


def test_weights_that_are_not_there(folder, tmp_path):
    for file in folder.iterdir():
        if file.suffix == ".json":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    with pytest.raises(ConstrainError, match=str(tmp_path)) as error:
        load_backend(tmp_path)
    assert "\n" not in str(error.value)


def test_weights_of_a_smaller_model(folder, tmp_path):
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = json.loads((tmp_path / "config.json").read_text())
    config["num_hidden_layers"] = 3
    config.pop("layer_types", None)
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ConstrainError, match=r"the folder has no weights for model\.layers\.2"):
        load_backend(tmp_path)


def test_weights_that_are_damaged(folder, tmp_path):
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    weights = next(tmp_path.glob("*.safetensors"))
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(ConstrainError, match=str(tmp_path)):
        load_backend(tmp_path)


def test_a_tokenizer_with_more_tokens_than_the_model(backend):
    from constrain.tokenizers.mock import MockTokenizer

    large = MockTokenizer(special_tokens=[f"<{i}>" for i in range(ROWS)])
    with pytest.raises(ConstrainError, match=f"logits for {ROWS} tokens, but the tokenizer has {large.vocab_size}"):
        TransformersBackend(backend._model, large)


def evicting(backend, **options):
    return make(backend, eviction_policy="attention", **options)


def test_nothing_is_forgotten_where_there_is_room(backend):
    roomy = evicting(backend, max_kv_size=100)
    for length in LENGTHS:
        assert np.allclose(roomy.logits(IDS[:length]), reference(backend._model, IDS[:length]), atol=1e-4)
    said = roomy.kv_statistics()
    assert (said.tokens, said.kept, said.dropped, said.evictions) == (1, 1, 0, 0)
    assert backend.kv_statistics() is None


@pytest.mark.parametrize("protected", [0, 3])
def test_what_is_looked_at_least_is_forgotten(backend, protected):
    """Keys and values that are kept are those of their token at its own place; the first and the last ones stay."""
    small = evicting(backend, max_kv_size=24, protected_prefix=protected)
    for length in (10, 24, 25, 26, 31, 32, 60, 61):
        small.logits(IDS[:length])
        said = small.kv_statistics()
        held = small._cache.get_seq_length()
        assert said.kept == held <= 24
        assert said.tokens == length == said.kept + said.dropped
        assert (said.evictions > 0) == (length > 24)
        assert said.size == sum(layer.keys.nbytes + layer.values.nbytes for layer in small._cache.layers)
        assert said.size <= said.largest
    backend.close()
    backend.logits(IDS[:61])
    whole = backend._cache
    for ours, full in zip(small._cache.layers[:1], whole.layers[:1], strict=True):
        # The keys of the first layer depend on token and position alone, so each that is kept is one of them.
        for head in range(ours.keys.shape[1]):
            near = torch.cdist(ours.keys[0, head], full.keys[0, head], compute_mode="donot_use_mm_for_euclid_dist")
            assert near.min(dim=1).values.max() < 1e-3
            places = near.argmin(dim=1).tolist()
            assert places == sorted(set(places))
            assert places[:protected] == list(range(protected))
            assert places[-4:] == [57, 58, 59, 60]


def test_going_back_before_what_was_forgotten_begins_anew(backend):
    small = evicting(backend, max_kv_size=24)
    first = small.logits(IDS[:40])
    for length in (41, 42, 41):
        small.logits(IDS[:length])
    assert small.kv_statistics().evictions == 1
    assert np.allclose(small.logits(IDS[:20]), reference(backend._model, IDS[:20]), atol=1e-4)
    assert small.kv_statistics().dropped == 0
    assert np.allclose(small.logits(IDS[:40]), first, atol=1e-4)


def test_a_bound_on_memory(backend):
    model = backend._model.config
    token = 2 * model.num_hidden_layers * model.num_key_value_heads * model.head_dim * 4
    small = evicting(backend, max_kv_bytes=30 * token + 5)
    small.logits(IDS[:50])
    assert small.kv_statistics().size <= 30 * token < small.kv_statistics().largest
    half = evicting(backend, max_kv_bytes=30 * token, kv_type="f16")
    half.logits(IDS[:59])
    assert half.kv_statistics().kept == 59
    sliding = make(backend, eviction_policy="sliding", max_kv_bytes=30 * token, protected_prefix=2)
    assert sliding._window == Window(2, 28)
    sliding.logits(IDS[:50])
    said = sliding.kv_statistics()
    assert (said.tokens, said.kept, said.dropped, said.evictions) == (50, 22, 28, 1)


def test_the_most_attended_stay():
    from constrain.backends.transformers_eviction import Room, kept_places

    attention = torch.full((2, 16, 60), 0.01)
    attention[:, :, 20] = 1.0
    attention[1, :, 40] = 0.5
    room = Room(60, 30, 2)
    (places,) = kept_places(attention, 1, room)
    assert places.tolist()[:2] == [0, 1]
    assert set(range(17, 24)) <= set(places.tolist())  # with what stands beside it
    assert set(places.tolist()[-16:]) == set(range(44, 60))
    both = kept_places(attention, 2, room)
    assert 40 in both[1].tolist()
    assert both.shape == (2, 30)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_kv_size": 9, "protected_prefix": 4}, "room for 9 tokens; with a protected prefix of 4 at least 12"),
        ({}, "needs a max_kv_size"),
        ({"max_kv_size": 9, "max_kv_bytes": 9}, "exclude each other"),
        ({"max_kv_size": 30, "eviction_window": 9}, "exclude each other"),
        ({"max_kv_size": 1}, "at least 2"),
    ],
)
def test_what_cannot_be_forgotten(backend, options, words):
    with pytest.raises(ConstrainError, match=words):
        evicting(backend, **options)
