"""What is measured: our tokenizers, each beside the library that defines its ids."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench.figures import data_folder

_CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
_CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_O200K = (
    rf"[^\r\n\p{{L}}\p{{N}}]?[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}]*[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}]+{_CONTRACTION}"
    rf"|[^\r\n\p{{L}}\p{{N}}]?[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}]+[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}]*{_CONTRACTION}"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Subject:
    """One tokenizer.

    ``encode`` gives ids, ``decode`` text; ``stream()`` begins a stream and gives its step, ``stop(strings)`` one that
    ends at stop strings.
    """

    kind: str
    name: str
    encode: Callable[[str], Sequence[int]]
    decode: Callable[[Sequence[int]], str]
    batch: Callable[[list[str]], Any]
    load: Callable[[], Any]
    stream: Callable[[], Callable[[int], Any]] | None = None
    stop: Callable[[list[str]], Callable[[int], Any]] | None = None


def ids_of(subject: Subject, text: str) -> list[int]:
    """The ids of a text as a list."""
    return list(subject.encode(text))


def _ours(kind: str, path: Path) -> Subject:
    from constrain.tokenizers import DecodeStream, StopSequenceDecoder, load_tokenizer

    tokenizer = load_tokenizer(path)
    return Subject(
        kind,
        "constrain",
        lambda text: tokenizer.encode(text).ids,
        tokenizer.decode,
        tokenizer.encode_batch,
        lambda: load_tokenizer(path, cache=False),
        lambda: DecodeStream(tokenizer).step,
        lambda strings: StopSequenceDecoder(tokenizer, stop_strings=strings).step,
    )


def byte_level() -> list[Subject]:
    """cl100k and o200k beside tiktoken, and Llama 3 beside Hugging Face's library."""
    import tiktoken
    from tiktoken.load import load_tiktoken_bpe

    folder = data_folder() / "vocab"
    subjects = []
    for name, pattern in (("cl100k", _CL100K), ("o200k", _O200K)):
        ranks = folder / f"{name}_base.tiktoken"

        def load_tiktoken(ranks: Path = ranks, name: str = name, pattern: str = pattern) -> Any:
            mergeable = load_tiktoken_bpe(str(ranks))
            return tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=mergeable, special_tokens={})

        fast = load_tiktoken()
        subjects += [
            _ours(name, ranks),
            Subject(
                name,
                "tiktoken",
                fast.encode_ordinary,
                fast.decode,
                partial(fast.encode_ordinary_batch, num_threads=1),
                load_tiktoken,
            ),
        ]
    path = Path(tempfile.mkdtemp()) / "tokenizer.json"
    path.write_bytes(gzip.decompress((folder / "llama3-tokenizer.json.gz").read_bytes()))
    return [*subjects, *of_file(path, "llama3")]


def of_file(path: Path, kind: str | None = None) -> list[Subject]:
    """A ``tokenizer.json`` beside Hugging Face's library; ``kind``: its name in the tables."""
    import tokenizers

    kind = path.resolve().parent.name[:13] if kind is None else kind
    hugging = tokenizers.Tokenizer.from_file(str(path))
    return [
        _ours(kind, path),
        Subject(
            kind,
            "tokenizers",
            lambda text: hugging.encode(text, add_special_tokens=False).ids,
            hugging.decode,
            hugging.encode_batch,
            lambda: tokenizers.Tokenizer.from_file(str(path)),
            lambda: partial(tokenizers.decoders.DecodeStream([], False).step, hugging),
        ),
    ]


def sentencepiece() -> list[Subject]:
    """Llama 2's BPE and a Unigram model trained on the spot, beside the sentencepiece package."""
    import sentencepiece as reference

    from bench.tokenizers.texts import mixed

    folder = Path(tempfile.mkdtemp())
    (folder / "corpus.txt").write_text(mixed(400_000), encoding="utf-8")
    reference.SentencePieceTrainer.train(
        input=str(folder / "corpus.txt"), model_prefix=str(folder / "unigram"), vocab_size=8000,
        model_type="unigram", minloglevel=2, num_threads=1, hard_vocab_limit=False,
    )  # fmt: skip
    subjects = []
    for kind, path in (
        ("llama2 (BPE)", data_folder() / "vocab" / "llama2.spm.model"),
        ("unigram", folder / "unigram.model"),
    ):
        processor = reference.SentencePieceProcessor(model_file=str(path))
        subjects += [
            _ours(kind, path),
            Subject(
                kind,
                "sentencepiece",
                processor.encode,
                processor.decode,
                partial(processor.encode, num_threads=1),
                lambda path=path: reference.SentencePieceProcessor(model_file=str(path)),
            ),
        ]
    return subjects
