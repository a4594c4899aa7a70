"""The logits processor in mlx-lm's own loop, with a tiny model of random weights."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytest.importorskip("mlx.core", reason="MLX is not installed")
pytest.importorskip("mlx_lm", reason="mlx-lm is not installed")

import mlx.core as mx
from mlx_lm.generate import generate_step
from mlx_lm.models import llama

import constrain
from constrain.demo import load
from constrain.errors import ConstrainError
from constrain.integrations.mlx_lm import ConstrainLogitsProcessor

TOKENIZER, _ = load()
VOCABULARY = constrain.Vocabulary.from_tokenizer(TOKENIZER)
COMPILER = constrain.GrammarCompiler(VOCABULARY)
PROMPT = mx.array(TOKENIZER.encode("Is water wet? ").ids)


def tiny_model(seed):
    """It has more logits than there are tokens."""
    mx.random.seed(seed)
    return llama.Model(
        llama.ModelArgs(
            model_type="llama",
            rms_norm_eps=1e-5,
            vocab_size=VOCABULARY.size + 3,
            tie_word_embeddings=True,
            hidden_size=32,
            num_hidden_layers=1,
            intermediate_size=32,
            num_attention_heads=2,
        )
    )


def text(model, processor, most):
    """What is generated, and whether it ended by itself."""
    found = []
    for token, _ in generate_step(PROMPT, model, max_tokens=most, logits_processors=[processor]):
        if int(token) in VOCABULARY.eos_ids:
            return TOKENIZER.decode(found), True
        found.append(int(token))
    return TOKENIZER.decode(found), False


def test_texts_are_complete_one_after_the_other():
    schema = {"type": "array", "items": {"type": "string"}, "minItems": 1}
    processor = ConstrainLogitsProcessor(
        COMPILER.compile(constrain.Grammar.from_json_schema(schema)), max_new_tokens=30
    )
    for seed in range(4):
        said, has_ended = text(tiny_model(seed), processor, 31)
        assert has_ended
        assert all(isinstance(item, str) for item in json.loads(said))
        assert processor.follower.matcher.is_terminated() or processor.follower.matcher.is_accepting()


def test_a_generation_that_is_left_and_another_one():
    processor = ConstrainLogitsProcessor(COMPILER.compile(constrain.Grammar.from_regex("[ab]{4,}c")))
    model = tiny_model(1)
    for _ in zip(range(2), generate_step(PROMPT, model, max_tokens=9, logits_processors=[processor]), strict=False):
        pass
    first = processor.follower
    assert first is not None
    said, _ = text(model, processor, 9)
    assert set(said) <= set("abc")
    assert processor.follower is not first
    processor.reset()
    assert processor.follower is None


def test_too_few_tokens():
    with pytest.raises(ConstrainError, match="max_tokens is 1, but the shortest text"):
        ConstrainLogitsProcessor(COMPILER.compile(constrain.Grammar.from_regex("(ab!?){9}")), max_new_tokens=1)


def test_without_the_library_it_says_what_to_install():
    code = "import sys; sys.modules['mlx.core'] = None; import constrain.integrations.mlx_lm"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install mlx-lm" in done.stderr.splitlines()[-1]
