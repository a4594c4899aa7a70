"""The encodings that rank files are for: how text is cut, and which special tokens there are."""

from __future__ import annotations

from dataclasses import dataclass

from constrain.tokenizers.formats.gguf_splits import stages_of
from constrain.tokenizers.splitting.stages import Stage


@dataclass(frozen=True)
class RankEncoding:
    """What is known about an encoding besides its ranks.

    Attributes
    ----------
    split : str or sequence of stages
        How text is cut: a name of :mod:`constrain.tokenizers.splitting.patterns`, or stages such as
        ``RegexStage(r"\\p{N}{1,3}")``.
    ranks : int
        How many ranks a whole file has.
    special : dict of str to int
        Special tokens with their ids.
    eos : tuple of str
        Those that end a generation; the first also ends a text.
    bos : str or None
        The one that begins a text.
    file : str or None
        The name of the encoding whose rank file it shares.
    """

    split: str | tuple[Stage, ...]
    ranks: int
    special: dict[str, int]
    eos: tuple[str, ...]
    bos: str | None = None
    file: str | None = None


def _llama3_special() -> dict[str, int]:
    names = ["<|begin_of_text|>", "<|end_of_text|>"]
    names += [f"<|reserved_special_token_{i}|>" for i in range(4)]
    names += ["<|start_header_id|>", "<|end_header_id|>", "<|reserved_special_token_4|>", "<|eot_id|>"]
    names += [f"<|reserved_special_token_{i}|>" for i in range(5, 251)]
    return {name: 128000 + i for i, name in enumerate(names)}


def _qwen_special() -> dict[str, int]:
    names = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *(f"<|extra_{i}|>" for i in range(205))]
    return {name: 151643 + i for i, name in enumerate(names)}


def _harmony_special() -> dict[str, int]:
    named = {
        "<|startoftext|>": 199998,
        "<|endoftext|>": 199999,
        "<|return|>": 200002,
        "<|constrain|>": 200003,
        "<|channel|>": 200005,
        "<|start|>": 200006,
        "<|end|>": 200007,
        "<|message|>": 200008,
        "<|call|>": 200012,
        "<|endofprompt|>": 200018,
    }
    free = sorted(set(range(200000, 201088)) - set(named.values()))
    return named | {f"<|reserved_{token_id}|>": token_id for token_id in free}


def _glm4_special() -> dict[str, int]:
    names = ["<|endoftext|>", "[MASK]", "[gMASK]", "[sMASK]", "<sop>", "<eop>", "<|system|>", "<|user|>"]
    return {name: 151329 + i for i, name in enumerate([*names, "<|assistant|>", "<|observation|>"])}


_KIMI_SPECIAL = {
    "[BOS]": 163584,
    "[EOS]": 163585,
    "<|im_end|>": 163586,
    "<|im_user|>": 163587,
    "<|im_assistant|>": 163588,
    "<|start_header_id|>": 163590,
    "<|end_header_id|>": 163591,
    "[EOT]": 163593,
    "<|im_system|>": 163594,
    "<|im_middle|>": 163601,
    "[UNK]": 163838,
    "[PAD]": 163839,
}
_LLAMA4_SPECIAL = {"<|begin_of_text|>": 200000, "<|end_of_text|>": 200001, "<|eom|>": 200007, "<|eot|>": 200008}

ENCODINGS: dict[str, RankEncoding] = {
    "r50k_base": RankEncoding("gpt2", 50256, {"<|endoftext|>": 50256}, ("<|endoftext|>",)),
    "gpt2": RankEncoding("gpt2", 50256, {"<|endoftext|>": 50256}, ("<|endoftext|>",), file="r50k_base"),
    "p50k_base": RankEncoding("gpt2", 50280, {"<|endoftext|>": 50256}, ("<|endoftext|>",)),
    "p50k_edit": RankEncoding(
        "gpt2",
        50280,
        {"<|endoftext|>": 50256, "<|fim_prefix|>": 50281, "<|fim_middle|>": 50282, "<|fim_suffix|>": 50283},
        ("<|endoftext|>",),
        file="p50k_base",
    ),
    "qwen": RankEncoding("qwen2", 151643, _qwen_special(), ("<|endoftext|>", "<|im_end|>")),
    "cl100k_base": RankEncoding(
        "cl100k",
        100256,
        {
            "<|endoftext|>": 100257,
            "<|fim_prefix|>": 100258,
            "<|fim_middle|>": 100259,
            "<|fim_suffix|>": 100260,
            "<|endofprompt|>": 100276,
        },
        ("<|endoftext|>",),
    ),
    "o200k_base": RankEncoding(
        "o200k", 199998, {"<|endoftext|>": 199999, "<|endofprompt|>": 200018}, ("<|endoftext|>",)
    ),
    "o200k_harmony": RankEncoding(
        "o200k", 199998, _harmony_special(), ("<|return|>", "<|call|>", "<|endoftext|>"), file="o200k_base"
    ),
    "glm4": RankEncoding("llama3", 151329, _glm4_special(), ("<|endoftext|>", "<|user|>", "<|observation|>")),
    "kimi-k2": RankEncoding(stages_of("kimi-k2"), 163584, _KIMI_SPECIAL, ("[EOS]", "<|im_end|>"), "[BOS]"),
    "llama4": RankEncoding(
        "o200k", 200000, _LLAMA4_SPECIAL, ("<|end_of_text|>", "<|eom|>", "<|eot|>"), "<|begin_of_text|>"
    ),
    "llama3": RankEncoding("llama3", 128000, _llama3_special(), ("<|end_of_text|>", "<|eot_id|>"), "<|begin_of_text|>"),
}
"""The encodings that a rank file can be opened with, by name; others may be added."""
