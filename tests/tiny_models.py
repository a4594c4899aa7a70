"""Tiny models with random weights, written to disk as real ones are: a folder of transformers, and a GGUF file.

Both hold the same weights, and a vocabulary of bytes and a few longer tokens in SentencePiece's manner.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

LAYERS, WIDTH, INNER, HEADS, KV_HEADS, CONTEXT = 2, 64, 96, 2, 1, 256
WORDS = [
    "▁",
    "a",
    "b",
    "c",
    "d",
    "e",
    "n",
    "m",
    "o",
    "s",
    "y",
    "▁a",
    "ab",
    "na",
    "name",
    "▁yes",
    "▁no",
    "no",
    "ye",
    "yes",
]
SPECIAL = ["<unk>", "<s>", "</s>"]
PIECES = [*SPECIAL, *[f"<0x{byte:02X}>" for byte in range(256)], *WORDS]
# Models round their size up.
ROWS = 288
BOS, EOS = 1, 2
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)


def tokenizer_json() -> dict[str, Any]:
    """A ``tokenizer.json`` as those of Llama 2."""
    vocabulary = {piece: index for index, piece in enumerate(PIECES)}
    merges = []
    for piece in WORDS:
        for cut in range(1, len(piece)):
            left, right = piece[:cut], piece[cut:]
            if left in vocabulary and right in vocabulary:
                merges.append(f"{left} {right}")
    # Shorter results first, as if they had been learned in that order.
    merges.sort(key=len)
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": index, "content": content, **special} for index, content in enumerate(SPECIAL)],
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                {"type": "Prepend", "prepend": "▁"},
                {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
            ],
        },
        "pre_tokenizer": None,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [BOS], "tokens": ["<s>"]}},
        },
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0},
            ],
        },
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": "<unk>",
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": True,
            "byte_fallback": True,
            "vocab": vocabulary,
            "merges": merges,
        },
    }


def small_llama(width: int, *, pad: int, eos: int) -> Any:
    """A Llama with logits for ``width`` tokens, in memory; needs torch and transformers."""
    import torch
    import transformers

    torch.manual_seed(0)
    torch.set_num_threads(1)
    config = transformers.LlamaConfig(
        vocab_size=width,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        bos_token_id=None,
        pad_token_id=pad,
        eos_token_id=eos,
        # Wide enough that the model has strong opinions, and the mask has to overrule them.
        initializer_range=0.5,
    )
    return transformers.LlamaForCausalLM(config).eval()


def write_folder(folder: Path, *, chat: bool = False, seed: int = 0) -> Path:
    """A folder for ``transformers``; needs torch and transformers."""
    import torch
    import transformers

    transformers.utils.logging.disable_progress_bar()
    torch.manual_seed(seed)
    config = transformers.LlamaConfig(
        vocab_size=ROWS,
        hidden_size=WIDTH,
        intermediate_size=INNER,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=KV_HEADS,
        max_position_embeddings=CONTEXT,
        bos_token_id=BOS,
        eos_token_id=EOS,
        pad_token_id=0,
        # Wide enough that the model has strong opinions.
        initializer_range=0.3,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer_json()), encoding="utf-8")
    settings: dict[str, Any] = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    if chat:
        settings["chat_template"] = CHAT_TEMPLATE
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return folder


def write_gguf(path: Path, weights: dict[str, np.ndarray[Any, Any]], *, chat: bool = False) -> Path:
    """A GGUF file with the weights of such a folder's model; needs the package ``gguf``."""
    import gguf

    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(ROWS)
    kinds = gguf.TokenType
    pieces = [*PIECES, *[f"<unused{index}>" for index in range(ROWS - len(PIECES))]]
    types = [kinds.UNKNOWN, kinds.CONTROL, kinds.CONTROL, *[kinds.BYTE] * 256, *[kinds.NORMAL] * len(WORDS)]
    types += [kinds.UNUSED] * (ROWS - len(PIECES))
    # Longer pieces have the better score.
    scores = [0.0] * (3 + 256) + [float(len(word)) - 100 for word in WORDS] + [-1000.0] * (ROWS - len(PIECES))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(pieces)
    writer.add_token_scores(scores)
    writer.add_token_types(types)
    writer.add_bos_token_id(BOS)
    writer.add_eos_token_id(EOS)
    writer.add_unk_token_id(0)
    if chat:
        writer.add_chat_template(CHAT_TEMPLATE)
    for name, array in weights.items():
        writer.add_tensor(_gguf_name(name), _for_gguf(name, array.astype(np.float32)))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _gguf_name(name: str) -> str:
    name = name.removeprefix("model.")
    for old, new in (
        ("embed_tokens", "token_embd"),
        ("lm_head", "output"),
        ("layers.", "blk."),
        ("self_attn.", "attn_"),
        ("q_proj", "q"),
        ("k_proj", "k"),
        ("v_proj", "v"),
        ("o_proj", "output"),
        ("mlp.", "ffn_"),
        ("gate_proj", "gate"),
        ("up_proj", "up"),
        ("down_proj", "down"),
        ("input_layernorm", "attn_norm"),
        ("post_attention_layernorm", "ffn_norm"),
    ):
        name = name.replace(old, new)
    return "output_norm.weight" if name == "norm.weight" else name


def _for_gguf(name: str, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """llama.cpp rotates neighbouring numbers of a head, transformers numbers half a head apart."""
    heads = HEADS if "q_proj" in name else KV_HEADS if "k_proj" in name else 0
    if not heads:
        return array
    half = array.shape[0] // heads // 2
    return np.ascontiguousarray(array.reshape(heads, 2, half, -1).swapaxes(1, 2).reshape(array.shape))
