"""The hooks of docs/integrations.md, run from the page: with the engine where it is installed, else with a stand-in.

A stand-in has the interface that the engine documents, and calls the hook the way the engine does.
"""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import constrain
from constrain import demo

PAGE = Path(__file__).resolve().parents[2] / "docs" / "integrations.md"
TOKENIZER, MODEL = demo.load()
DEMO_FILE = Path(demo.__file__).parent / "tokenizer.json"
SCHEMA = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}


def block(heading):
    """The Python block below a heading of the page."""
    section = PAGE.read_text().split(f"\n## {heading}\n", 1)[1].split("\n## ")[0]
    return re.search(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)[1]


def run(heading, **names):
    namespace = {"__name__": "documented_hook", **names}
    exec(compile(block(heading), f"integrations.md: {heading}", "exec", dont_inherit=True), namespace)
    return namespace


def decoded(ids):
    return TOKENIZER.decode([token for token in ids if token not in TOKENIZER.eos_ids])


def choose(logits):
    return int(np.argmax(np.asarray(logits)))


@pytest.fixture
def stand_in(monkeypatch):
    """Put a module, and the packages it is in, where ``import`` finds them."""

    def put(name, **content):
        for i in range(1, name.count(".") + 2):
            part = ".".join(name.split(".")[:i])
            monkeypatch.setitem(sys.modules, part, types.ModuleType(part))
        vars(sys.modules[name]).update(content)

    return put


def test_llama_cpp_with_a_stand_in(stand_in, monkeypatch, capsys):
    class Processors(list):
        def __call__(self, ids, scores):
            for processor in self:
                scores = processor(ids, scores)
            return scores

    class Llama:
        def __init__(self, model_path, n_ctx, verbose):
            self.scores = np.zeros((4, TOKENIZER.vocab_size), np.single)

        def create_completion(self, prompt, max_tokens, logits_processor):
            ids = np.array(TOKENIZER.encode(prompt).ids, np.intc)
            begin = len(ids)
            for _ in range(max_tokens):
                scores = self.scores[-1, :]
                scores[:] = MODEL.logits(ids)
                scores[:] = logits_processor(ids, scores)
                token = choose(scores)
                if token in TOKENIZER.eos_ids:
                    break
                ids = np.append(ids, np.intc(token))
            return {"choices": [{"text": decoded(ids[begin:])}]}

    stand_in("llama_cpp", Llama=Llama, LogitsProcessorList=Processors)
    monkeypatch.setattr(constrain, "load_tokenizer", lambda path: TOKENIZER)
    run("llama.cpp")
    assert capsys.readouterr().out in ("yes\n", "no\n")


def test_mlx(monkeypatch, capsys):
    pytest.importorskip("mlx.core", reason="MLX is not installed")
    mlx_lm = pytest.importorskip("mlx_lm", reason="mlx-lm is not installed")
    import mlx.core as mx
    from mlx_lm.generate import generate_step
    from mlx_lm.models import llama

    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "intermediate_size": 32, "num_attention_heads": 2}
    arguments = llama.ModelArgs(
        model_type="llama", rms_norm_eps=1e-5, vocab_size=TOKENIZER.vocab_size, tie_word_embeddings=True, **sizes
    )

    def generate(model, tokenizer, prompt, max_tokens, logits_processors):
        found = []
        ids = mx.array(tokenizer.encode(prompt).ids)
        for token, _ in generate_step(ids, model, max_tokens=max_tokens, logits_processors=logits_processors):
            if int(token) in TOKENIZER.eos_ids:
                break
            found.append(int(token))
        return decoded(found)

    # Tokenizers of mlx-lm come from a hub; a tiny model of random weights and the demo's tokenizer do here.
    monkeypatch.setattr(mlx_lm, "load", lambda path: (llama.Model(arguments), TOKENIZER))
    monkeypatch.setattr(mlx_lm, "generate", generate)
    monkeypatch.setattr(constrain, "load_tokenizer", lambda path: TOKENIZER)
    run("MLX")
    assert capsys.readouterr().out in ("yes\n", "no\n")


def test_llama_cpp(tmp_path, monkeypatch, capsys):
    pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
    gguf = pytest.importorskip("gguf", reason="gguf is not installed")
    write_tiny_model(gguf, tmp_path / "model.gguf")
    monkeypatch.chdir(tmp_path)
    for _ in range(3):
        run("llama.cpp")
        assert capsys.readouterr().out in ("yes\n", "no\n")


def write_tiny_model(gguf, path):
    """A llama of random weights whose tokens are the 256 bytes and some letters."""
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *"\u2581yesnox"]
    width, heads, layers, tokens = 32, 2, 1, len(pieces)
    rng = np.random.default_rng(1)
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(64)
    writer.add_embedding_length(width)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(width)
    writer.add_head_count(heads)
    writer.add_head_count_kv(heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(width // heads)
    writer.add_vocab_size(tokens)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(pieces)
    writer.add_token_scores([0.0] * tokens)
    writer.add_token_types([2, 3, 3, *[6] * 256, *[1] * 7])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)

    def add(name, *shape):
        writer.add_tensor(name, rng.normal(0, 0.3, shape).astype(np.float32))

    add("token_embd.weight", tokens, width)
    add("output.weight", tokens, width)
    writer.add_tensor("output_norm.weight", np.ones(width, np.float32))
    for name in ("attn_norm", "ffn_norm"):
        writer.add_tensor(f"blk.0.{name}.weight", np.ones(width, np.float32))
    for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
        add(f"blk.0.{name}.weight", width, width)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
