"""Small tokenizers whose models make special tokens out of plain pieces, if nobody keeps them from that."""

from __future__ import annotations


def added(token_id, content, **flags):
    usual = {"special": True, "lstrip": False, "rstrip": False, "single_word": False, "normalized": False}
    return {"id": token_id, "content": content, **usual, **flags}


WORDS = [
    "<s>",
    "</s>",
    "<unk>",
    "<|end|>",
    "[SEP]",
    "a",
    "b",
    "c",
    "<",
    ">",
    "|",
    "/",
    "s",
    "e",
    "n",
    "d",
    "##a",
    "▁",
    "▁a",
]
SPECIAL = ("<s>", "</s>", "<unk>", "<|end|>", "[SEP]")
CLOSED = {"type": "WordLevel", "vocab": {word: i for i, word in enumerate(WORDS)}, "unk_token": "<unk>"}
MODELS = {
    "word level": {"model": CLOSED, "pre_tokenizer": {"type": "WhitespaceSplit"}},
    "word piece": {
        "model": {
            **CLOSED,
            "type": "WordPiece",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
        },
        "pre_tokenizer": {"type": "WhitespaceSplit"},
    },
    "unigram": {
        "model": {"type": "Unigram", "unk_id": 2, "vocab": [[word, -1.0 - i / 8] for i, word in enumerate(WORDS)]},
        "pre_tokenizer": None,
    },
    "bpe": {
        "model": {
            "type": "BPE",
            "vocab": {word: i for i, word in enumerate([*WORDS, "<s", "▁b"])},
            "merges": [["<", "s"], ["<s", ">"], ["▁", "a"], ["▁", "b"]],
            "unk_token": "<unk>",
        },
        "pre_tokenizer": None,
    },
}


def content_of(name, **flags):
    return {
        "version": "1.0",
        "added_tokens": [
            added(WORDS.index(name), name, normalized=name == "<|end|>", rstrip=name == "[SEP]", **flags)
            for name in SPECIAL
        ],
        "normalizer": None,
        "post_processor": None,
        "decoder": None,
        "truncation": None,
        "padding": None,
        **MODELS[name],
    }
