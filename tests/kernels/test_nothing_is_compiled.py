"""Behind the imports nothing is compiled: no request waits for a compiler."""

from __future__ import annotations

import gzip
import importlib
import itertools
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizer_json_files
from tokenizer_texts import PIECES

import constrain
from constrain.kernels.digests import files_with_kernels
from constrain.kernels.library import loaded
from constrain.sampling import Sampler

PACKAGE = Path(constrain.__file__).parent
KINDS = ("llama_like", "mistral_like", "gemma_like", "t5_like", "bert_like", "words_like")
SCHEMAS: list[Any] = [
    {"type": "object", "properties": {"a": {"type": "string", "maxLength": 7}}, "minProperties": 2},
    {"type": "object", "propertyNames": {"pattern": "^[ab]{1,2}$"}, "minProperties": 3, "additionalProperties": {}},
    {"type": "array", "items": {"enum": [1, 2, "x"]}, "uniqueItems": True, "minItems": 2},
    {"type": "string", "pattern": "^(\\S+\\s+){3,40}\\S+$"},
    {"type": "string", "format": "date-time"},
    {"type": "number", "multipleOf": 0.25, "minimum": -3, "exclusiveMaximum": 1000},
    {"anyOf": [{"type": "integer"}, {"$ref": "#"}, {"type": "array", "items": {"$ref": "#"}}]},
    {"not": {"type": "string"}},
]


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Names of functions that numba compiles meanwhile, behind the imports of all that has kernels."""
    for file in files_with_kernels(PACKAGE):
        importlib.import_module(".".join(Path(file).relative_to(PACKAGE.parent).with_suffix("").parts))
    names: list[str] = []
    if loaded is not None:
        # Then numba is not even there, unless a test has imported it.
        before = "numba" in sys.modules
        yield names
        assert before or "numba" not in sys.modules
        return
    event: Any = importlib.import_module("numba.core.event")

    class Listener(event.Listener):  # type: ignore[misc, unused-ignore]
        def on_start(self, event: Any) -> None:
            names.append(str(event.data["dispatcher"]))

        def on_end(self, event: Any) -> None: ...

    listener = Listener()
    event.register("numba:compile", listener)
    yield names
    event.unregister("numba:compile", listener)


def _walk(compiler: constrain.GrammarCompiler, schema: Any, steps: int = 40, **options: Any) -> None:
    try:
        compiled = compiler.compile(constrain.Grammar.from_json_schema(schema, **options))
    except constrain.ConstrainError:
        return
    rng = random.Random(5)
    for max_tokens in (None, 60):
        try:
            matcher = constrain.Matcher(compiled, max_tokens)
        except constrain.ConstrainError:  # too little for any text
            continue
        mask = constrain.allocate_token_bitmask(1, compiler.vocabulary.size)
        for _ in range(steps):
            matcher.fill_next_token_bitmask(mask)
            allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
            if not len(allowed) or not matcher.accept_token(int(rng.choice(allowed))):
                break
            if matcher.is_terminated():
                break
        matcher.forced_bytes()
        matcher.rollback(1)


def test_grammars(compiled: list[str]) -> None:
    tokens = [bytes([byte]) for byte in range(256)] + [b'{"', b'":', b'", "', b"true", b"123"] + [b"</s>"]
    compiler = constrain.GrammarCompiler(constrain.Vocabulary(tokens, eos_ids=[len(tokens) - 1]))
    for schema in SCHEMAS:
        for order in ("schema", "any"):
            _walk(compiler, schema, property_order=order)
    assert compiled == []


def test_a_thousand_schemas(compiled: list[str], data_folder: Path) -> None:
    path = data_folder / "maskbench-dev.jsonl.gz"
    if not path.exists():
        pytest.skip("there are no schemas")
    tokens = [bytes([byte]) for byte in range(256)] + [b"</s>"]
    compiler = constrain.GrammarCompiler(constrain.Vocabulary(tokens, eos_ids=[256]), cache_limit_bytes=0)
    with gzip.open(path, "rt", errors="surrogatepass") as file:
        for line in itertools.islice(file, 1000):
            if len(line) < 20_000:
                _walk(compiler, json.loads(line)["schema"], steps=8)
    assert compiled == []


@pytest.mark.parametrize("kind", KINDS)
def test_tokenizers(compiled: list[str], kind: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(getattr(tokenizer_json_files, kind)()))
    tokenizer = constrain.load_tokenizer(path)
    for text in PIECES:
        assert isinstance(tokenizer.decode(tokenizer.encode(text).ids), str)
    long_text = " ".join(PIECES) * 20
    tokenizer.decode(tokenizer.encode(long_text).ids)
    tokenizer.encode_batch([*PIECES, long_text])
    assert compiled == []


def test_samplers(compiled: list[str]) -> None:
    logits = np.random.default_rng(3).normal(size=320).astype(np.float32)
    mask = constrain.allocate_token_bitmask(1, 320)
    mask[:] = 0x55555555
    options: dict[str, tuple[Any, ...]] = {
        "temperature": (0, 0.7),
        "top_k": (0, 5),
        "top_p": (1.0, 0.5),
        "min_p": (0.0, 0.1),
        "typical": (1.0, 0.9),
        "repetition_penalty": (1.0, 1.2),
        "frequency_penalty": (0.0, 0.3),
        "logit_bias": (None, {3: 1.0}),
    }
    for values in itertools.product(*options.values()):
        sampler = Sampler(seed=1, **dict(zip(options, values, strict=True)))
        for allowed in (None, mask):
            sampler.sample(logits.copy(), allowed, [3, 4, 3])
            sampler.sample_with_log_probabilities(logits.copy(), allowed)
        sampler.sample_batch(np.stack([logits, logits]))
    assert compiled == []
