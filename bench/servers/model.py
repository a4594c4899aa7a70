"""A Llama of two layers with random weights and Llama-3's tokenizer, as a folder that a serving engine opens.

Its texts make no sense: every token is about as likely as any other, which is the hardest case for a grammar.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

SPECIAL_TOKENS = 256
THINK, END_OF_THINKING = "<think>", "</think>"
TURN_END = "<|eot_id|>"
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<|start_header_id|>{{ m['role'] }}<|end_header_id|>\n\n"
    "{{ m['content'] }}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
CONTEXT = 2048


def special_tokens() -> list[str]:
    """Llama-3's special tokens in the order of their ids; two reserved ones are those of thinking instead."""
    named = {
        0: "<|begin_of_text|>",
        1: "<|end_of_text|>",
        4: "<|finetune_right_pad_id|>",
        6: "<|start_header_id|>",
        7: "<|end_header_id|>",
        8: "<|eom_id|>",
        9: TURN_END,
        10: "<|python_tag|>",
        11: THINK,
        12: END_OF_THINKING,
    }
    return [named.get(number, f"<|reserved_special_token_{number}|>") for number in range(SPECIAL_TOKENS)]


def write_model(folder: Path, data: Path, *, seed: int = 0) -> Path:
    """Write the model; ``data`` is the folder that ``python -m bench.fetch_data`` fills.

    Raises
    ------
    FileNotFoundError
        If it has no vocabulary.
    ImportError
        Without torch, transformers and tokenizers.
    """
    import torch
    from tokenizers import Tokenizer
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    text = gzip.decompress((data / "vocab" / "llama3-tokenizer.json.gz").read_bytes()).decode()
    tokenizer = Tokenizer.from_str(text)
    for name in special_tokens():
        # As in the models that think, these two are text and no special tokens; a server's reasoning parser reads them.
        (tokenizer.add_tokens if name in (THINK, END_OF_THINKING) else tokenizer.add_special_tokens)([name])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<|begin_of_text|>",
        eos_token=TURN_END,
        chat_template=CHAT_TEMPLATE,
        model_max_length=CONTEXT,
    )
    fast.save_pretrained(folder)
    config = LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        bos_token_id=fast.convert_tokens_to_ids("<|begin_of_text|>"),
        eos_token_id=[fast.convert_tokens_to_ids(name) for name in ("<|end_of_text|>", TURN_END)],
    )
    torch.manual_seed(seed)
    LlamaForCausalLM(config).save_pretrained(folder)
    # What engines read besides the tokenizer's own file.
    generation = folder / "generation_config.json"
    settings = json.loads(generation.read_text()) if generation.exists() else {}
    settings.update(bos_token_id=config.bos_token_id, eos_token_id=config.eos_token_id)
    generation.write_text(json.dumps(settings))
    return folder
