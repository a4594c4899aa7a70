"""Makes the embedded tokenizer and language model.

    python -m tools.demo_model.train --wordnet FOLDER --jargon FILE --out FOLDER

``--wordnet`` is the folder with ``data.noun`` and its companions (Debian package ``wordnet-base``),
``--jargon`` the Jargon File as plain text, packed or not (Debian package ``jargon-text``).  The same
sources and options give the same files.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from random import Random

import numpy as np
import numpy.typing as npt

from constrain.demo.ngram import DemoModel
from constrain.tokenizers.base import Tokenizer
from constrain.tokenizers.formats.tokenizer_json import parse_tokenizer_json
from constrain.tokenizers.splitting.patterns import by_name
from tools.demo_model.bpe_training import learn_merges, tokenizer_json
from tools.demo_model.ngram_training import count_ngrams, estimate, pack, prune
from tools.demo_model.prose import jargon_file, paragraphs
from tools.demo_model.records import documents
from tools.demo_model.wordnet import read_wordnet, words_of

END_OF_TEXT = "<|endoftext|>"
_HELD_OUT_EVERY = 200
_QUOTES = re.compile(rb'^ ?"[^"]*|"[^"]*|[^"]+')


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tools.demo_model.train", description="Make the embedded demo model."
    )
    parser.add_argument("--wordnet", type=Path, required=True, help="folder with WordNet's data.* files")
    parser.add_argument("--jargon", type=Path, help="the Jargon File as text (.txt or .txt.gz)")
    parser.add_argument("--out", type=Path, required=True, help="folder to write tokenizer.json and model.npz to")
    parser.add_argument("--common", type=int, default=10, help="a word must occur in so many glosses to be used")
    parser.add_argument("--records", type=int, default=60_000, help="number of JSON documents to make up")
    parser.add_argument("--vocab-size", type=int, default=12287, help="tokens, without the end of text")
    parser.add_argument("--order", type=int, default=5, help="longest n-gram")
    parser.add_argument("--ngrams", type=int, default=2_000_000, help="n-grams to keep")
    parser.add_argument("--discount", type=float, default=0.6, help="scales the discounts of orders above 2")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)

    begin = time.perf_counter()

    def say(text: str) -> None:
        print(f"{time.perf_counter() - begin:6.1f} s  {text}", file=sys.stderr, flush=True)

    rng = Random(options.seed)
    synsets = read_wordnet(options.wordnet, options.common)
    texts = list(paragraphs(synsets, rng))
    if options.jargon is not None:
        with tempfile.TemporaryDirectory() as folder:
            known = {word.lower() for text in texts for word in words_of(text)}
            texts += jargon_file(_unpacked(options.jargon, Path(folder)), known)
    prose_count = len(texts)
    texts += documents(synsets, options.records, rng)
    say(
        f"{prose_count} texts and {options.records} JSON documents, {sum(map(len, texts)) / 1e6:.1f} million characters"
    )

    training = [text for i, text in enumerate(texts) if i % _HELD_OUT_EVERY]
    tokens, merges = learn_merges(count_pieces(training), options.vocab_size)
    content = json.dumps(tokenizer_json(tokens, merges, END_OF_TEXT), ensure_ascii=False, separators=(",", ":"))
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "tokenizer.json").write_text(content, "utf-8")
    tokenizer = parse_tokenizer_json(content.encode("utf-8"))
    say(f"{tokenizer.vocab_size} tokens")

    boundary = tokenizer.eos_ids[0]
    rng.shuffle(training)
    stream = encode_all(tokenizer, training, boundary)
    say(f"{len(stream) / 1e6:.2f} million tokens to learn from")
    orders = count_ngrams(stream, tokenizer.vocab_size, boundary, options.order)
    estimate(orders, tokenizer.vocab_size, boundary, options.discount)
    say("n-grams of each order: " + ", ".join(str(len(order.word)) for order in orders))
    arrays = pack(orders, prune(orders, options.ngrams))
    packed = io.BytesIO()
    np.savez_compressed(packed, order=np.array(options.order), **arrays)  # type: ignore[arg-type]
    (options.out / "model.npz").write_bytes(packed.getvalue())
    size = sum((options.out / name).stat().st_size for name in ("tokenizer.json", "model.npz"))
    say(f"kept {len(arrays['costs'])}; both files together {size / 1e6:.2f} MB")

    packed.seek(0)
    model = DemoModel(packed, boundary)
    for name, held_out in (
        ("prose", texts[:prose_count:_HELD_OUT_EVERY]),
        ("JSON", texts[prose_count::_HELD_OUT_EVERY]),
    ):
        say(f"held-out {name}: {bits_per_byte(model, tokenizer, held_out[:400], boundary):.3f} bits per byte")


def count_pieces(texts: Iterable[str]) -> dict[bytes, int]:
    """How often each piece occurs that the split pattern makes of the texts.

    Pieces are also cut in front of a quotation mark: no token then reaches across the beginning or
    the end of a JSON string, whatever surrounds it.
    """
    split = by_name("gpt2")
    counts: Counter[bytes] = Counter()
    for text in texts:
        data = bytearray(text.encode("utf-8"))
        begin = 0
        for end in split.ends(np.frombuffer(data, dtype=np.uint8)).tolist():
            for part in _QUOTES.findall(data[begin:end]):
                counts[bytes(part)] += 1
            begin = end
    return counts


def encode_all(tokenizer: Tokenizer, texts: Iterable[str], boundary: int) -> npt.NDArray[np.int64]:
    """All texts as one int64 array, with ``boundary`` before and after each."""
    parts: list[int] = [boundary]
    for text in texts:
        parts += tokenizer.encode(text).ids
        parts.append(boundary)
    return np.array(parts, dtype=np.int64)


def bits_per_byte(model: DemoModel, tokenizer: Tokenizer, texts: Iterable[str], boundary: int) -> float:
    """Cross-entropy of the model on texts, their ends included."""
    nats = 0.0
    size = 0
    for text in texts:
        ids = [*tokenizer.encode(text).ids, boundary]
        size += len(text.encode("utf-8"))
        for place, token_id in enumerate(ids):
            nats -= float(model.logits(ids[:place])[token_id])
    return nats / size / float(np.log(2))


def _unpacked(path: Path, folder: Path) -> Path:
    if path.suffix != ".gz":
        return path
    unpacked = folder / path.stem
    unpacked.write_bytes(gzip.decompress(path.read_bytes()))
    return unpacked


if __name__ == "__main__":
    main()
