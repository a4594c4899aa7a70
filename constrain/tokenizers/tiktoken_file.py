"""Reads ``.tiktoken`` rank files: one token in base 64 and its rank on each line.

Such a file has neither a split pattern nor special tokens; they belong to an *encoding*, which is
known by name.  The name is taken from the file name, else from the number of ranks.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path

from constrain.errors import TokenizerError
from constrain.tokenizers.added_tokens import AddedToken
from constrain.tokenizers.base import SpecialTokens
from constrain.tokenizers.byte_level_bpe import ByteLevelBPE, ByteLevelOptions
from constrain.tokenizers.split_patterns import by_name


@dataclass(frozen=True)
class RankEncoding:
    """What is known about an encoding besides its ranks; the first special token in ``eos`` ends a text."""

    split: str
    ranks: int
    special: dict[str, int]
    eos: tuple[str, ...]
    bos: str | None = None


def _llama3_special() -> dict[str, int]:
    names = ["<|begin_of_text|>", "<|end_of_text|>"]
    names += [f"<|reserved_special_token_{i}|>" for i in range(4)]
    names += ["<|start_header_id|>", "<|end_header_id|>", "<|reserved_special_token_4|>", "<|eot_id|>"]
    names += [f"<|reserved_special_token_{i}|>" for i in range(5, 251)]
    return {name: 128000 + i for i, name in enumerate(names)}


def _qwen_special() -> dict[str, int]:
    names = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *(f"<|extra_{i}|>" for i in range(205))]
    return {name: 151643 + i for i, name in enumerate(names)}


ENCODINGS: dict[str, RankEncoding] = {
    "r50k_base": RankEncoding("gpt2", 50256, {"<|endoftext|>": 50256}, ("<|endoftext|>",)),
    "p50k_base": RankEncoding("gpt2", 50280, {"<|endoftext|>": 50256}, ("<|endoftext|>",)),
    "p50k_edit": RankEncoding(
        "gpt2",
        50280,
        {"<|endoftext|>": 50256, "<|fim_prefix|>": 50281, "<|fim_middle|>": 50282, "<|fim_suffix|>": 50283},
        ("<|endoftext|>",),
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
    "llama3": RankEncoding("llama3", 128000, _llama3_special(), ("<|end_of_text|>", "<|eot_id|>"), "<|begin_of_text|>"),
}
"""The encodings that a rank file can be opened with, by name."""


def load_tiktoken_file(path: Path, encoding: str | None = None, eos_ids: tuple[int, ...] | None = None) -> ByteLevelBPE:
    """Read a rank file; ``encoding`` is one of :data:`ENCODINGS` where the file cannot tell."""
    try:
        ranks = parse_ranks(path.read_bytes())
    except TokenizerError as error:
        raise TokenizerError(f"{path}: {error}") from None
    except OSError as error:
        raise TokenizerError(f"{path}: {error.strerror}") from None
    if encoding is None:
        encoding = _guess(path, len(ranks))
    if encoding not in ENCODINGS:
        raise TokenizerError(f"unknown encoding {encoding!r}; known ones: {', '.join(ENCODINGS)}")
    try:
        return tokenizer_from_ranks(ranks, ENCODINGS[encoding], eos_ids)
    except TokenizerError as error:
        raise TokenizerError(f"{path}: {error}") from None


def tokenizer_from_ranks(
    ranks: dict[int, bytes], known: RankEncoding, eos_ids: tuple[int, ...] | None = None
) -> ByteLevelBPE:
    """The tokenizer of a list of ranks with the split pattern and special tokens of an encoding."""
    taken = [name for name, token_id in known.special.items() if token_id in ranks]
    if taken:
        raise TokenizerError(f"the id of {taken[0]} is a rank of this file: it belongs to another encoding")
    eos = tuple(known.special[name] for name in known.eos) if eos_ids is None else eos_ids
    bos = None if known.bos is None else known.special[known.bos]
    others = set(known.special.values()) - {bos, *eos[:1]}
    return ByteLevelBPE(
        ranks,
        None,
        [AddedToken(token_id, name, special=True) for name, token_id in known.special.items()],
        ByteLevelOptions(split=by_name(known.split), whole_piece=True, before=() if bos is None else (bos,)),
        SpecialTokens(bos=bos, eos=eos[0] if eos else None, additional=tuple(sorted(others))),
        eos,
    )


def parse_ranks(data: bytes) -> dict[int, bytes]:
    """The bytes of each token by rank, from the content of a rank file."""
    ranks: dict[int, bytes] = {}
    for number, line in enumerate(data.splitlines(), 1):
        if not line:
            continue
        try:
            token, rank = line.split()
            index = int(rank)
            if index in ranks:
                raise TokenizerError(f"line {number}: rank {index} is there twice")
            ranks[index] = base64.b64decode(token, validate=True)
        except TokenizerError:
            raise
        except ValueError:
            raise TokenizerError(f"line {number} is not a token in base 64 and its rank") from None
    if not ranks:
        raise TokenizerError("there are no ranks in this file")
    return ranks


def _guess(path: Path, count: int) -> str:
    for name in ENCODINGS:
        if name in path.stem:
            return name
    for name, known in ENCODINGS.items():
        if known.ranks == count:
            return name
    raise TokenizerError(
        f"{path}: neither the file name nor its {count} ranks tell which encoding this is;"
        f" give encoding= one of {', '.join(ENCODINGS)}"
    )
