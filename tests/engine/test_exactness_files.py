"""The mask contract on the grammars and schemas in ``grammars/``, on three vocabularies.

On a toy vocabulary every mask is compared with the naive recogniser.  On the embedded one and on
Llama-3's the reference is the brute force with the engine's own recogniser (which other tests
compare with the naive one), plus the naive recogniser on a sample of the tokens.
"""

from __future__ import annotations

import base64
import functools
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from naive import NaiveRecognizer, allowed_tokens
from naive_completion import Completer

import constrain

FOLDER = Path(__file__).resolve().parents[2] / "grammars"
FILES = sorted(path for path in FOLDER.rglob("*") if path.suffix in (".json", ".lark", ".gbnf"))
CLOSERS = b'"}])'

TOY_TOKENS = [bytes((byte,)) for byte in range(256)]
TOY_TOKENS += [
    b'"',
    b'",',
    b'":',
    b'": ',
    b"{}",
    b"[]",
    b'{"',
    b'{ "',
    b"]}",
    b"}]",
    b'"}',
    b'", "',
    b'":"',
    b"\n  ",
    b" ",
]
TOY_TOKENS += [
    b"true",
    b"false",
    b"null",
    b"tr",
    b"12",
    b"-1",
    b"0.5",
    b"e+1",
    b"\\n",
    b'\\"',
    b"\\u00",
    b"a",
    b"id",
    b"name",
]
TOY_TOKENS += [
    "é".encode(),
    "é".encode()[:1],
    "日本".encode(),
    "日".encode()[1:] + b'"',
    b"\xff",
    b"",
    b"select",
    b"(a",
]


@dataclass(frozen=True)
class Case:
    """A vocabulary, and its ordinary tokens in the order of their bytes."""

    tokens: list[bytes]
    eos_ids: list[int]
    special_ids: list[int]
    ordered: list[int]
    compiler: constrain.GrammarCompiler

    @staticmethod
    def of(vocabulary: constrain.Vocabulary, special_ids: list[int]) -> Case:
        tokens, eos_ids = list(vocabulary.tokens), list(vocabulary.eos_ids)
        hidden = {*eos_ids, *special_ids}
        ordered = sorted((token for token in range(len(tokens)) if token not in hidden), key=tokens.__getitem__)
        return Case(tokens, eos_ids, special_ids, ordered, constrain.GrammarCompiler(vocabulary))


@functools.cache
def load_grammar(path: Path) -> constrain.Grammar:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".lark":
        return constrain.Grammar.from_lark(text)
    if path.suffix == ".gbnf":
        return constrain.Grammar.from_gbnf(text)
    return constrain.Grammar.from_json_schema(text)


@pytest.fixture(scope="module")
def toy() -> Case:
    tokens = [*TOY_TOKENS, b"</s>", b"<s>"]
    eos, special = len(tokens) - 2, len(tokens) - 1
    return Case.of(constrain.Vocabulary(tokens, eos_ids=[eos], special_ids=[special]), [special])


@pytest.fixture(scope="module")
def embedded() -> Case:
    demo = pytest.importorskip("constrain.demo")
    vocabulary = constrain.Vocabulary.from_tokenizer(demo.load()[0])
    return Case.of(vocabulary, list(vocabulary.special_ids))


@pytest.fixture(scope="module")
def llama3(data_folder: Path) -> Case:
    path = data_folder / "vocab" / "llama3.tiktoken"
    if not path.is_file():
        pytest.skip(f"no {path}")
    tokens = [base64.b64decode(line.split()[0]) for line in path.read_bytes().splitlines() if line]
    special = list(range(len(tokens), len(tokens) + 256))
    tokens += [b"<|special %d|>" % token for token in special]
    eos = [128_001, 128_009]
    return Case.of(constrain.Vocabulary(tokens, eos_ids=eos, special_ids=special), special)


def engine_mask(matcher: constrain.Matcher, size: int) -> set[int]:
    mask = constrain.allocate_token_bitmask(1, size)
    matcher.fill_next_token_bitmask(mask, 0)
    bits = np.unpackbits(mask[0].view(np.uint8), bitorder="little")[:size]
    return set(np.flatnonzero(bits).tolist())


def brute_force(recognizer: constrain.Recognizer, case: Case) -> set[int]:
    """Every token, byte by byte, where the recogniser stands; a prefix shared with the token before is kept."""
    allowed = set(case.eos_ids) if recognizer.is_accepting() else set()
    pushed = b""
    refused: bytes | None = None
    for token in case.ordered:
        data = case.tokens[token]
        if refused is not None and data.startswith(refused):
            continue
        shared = 0
        while shared < len(pushed) and pushed[shared : shared + 1] == data[shared : shared + 1]:
            shared += 1
        recognizer.pop_bytes(len(pushed) - shared)
        pushed, refused = pushed[:shared], None
        for byte in data[shared:]:
            if not recognizer.try_push_byte(byte):
                refused = pushed + bytes((byte,))
                break
            pushed += bytes((byte,))
        if refused is None:
            allowed.add(token)
    recognizer.pop_bytes(len(pushed))
    return allowed


def next_token(case: Case, allowed: set[int], random: Random) -> int | None:
    """Now and then any token, else a short one of structure: most of Llama-3's never end a string."""
    onward = sorted(allowed.difference(case.eos_ids))
    if not onward:
        return None
    structure = [token for token in onward if len(case.tokens[token]) <= 4 and set(case.tokens[token]) & set(CLOSERS)]
    if structure and random.random() < 0.4:
        return random.choice(structure)
    short = [token for token in onward if len(case.tokens[token]) <= 2]
    return random.choice(short if short and random.random() < 0.5 else onward)


def compare(path: Path, case: Case, counter: Any, *, masks: int, steps: int, sample: int | None) -> None:
    """Compare ``masks`` of the masks along a random walk; ``sample`` tokens (None: all) with the naive recogniser."""
    random = Random(f"{path.name} {len(case.tokens)}")
    grammar = load_grammar(path)
    compiled = case.compiler.compile(grammar)
    matcher, recognizer, naive = constrain.Matcher(compiled), compiled.recognizer(), NaiveRecognizer(grammar.ir)
    chosen = {0, *random.sample(range(1, steps), min(masks, steps) - 1)}
    said = b""
    for step in range(steps):
        allowed = engine_mask(matcher, len(case.tokens))
        if step in chosen:
            assert allowed == brute_force(recognizer, case), said
            assert naive.is_accepting() == matcher.is_accepting(), said
            ids = range(len(case.tokens)) if sample is None else random.sample(range(len(case.tokens)), sample)
            if sample is not None:
                ids = [*ids, *random.sample(sorted(allowed), min(sample, len(allowed)))]
            assert allowed & set(ids) == allowed_tokens(naive, case, ids), said
            counter.add()
        token = next_token(case, allowed, random)
        if token is None:
            matcher.reset()
            recognizer.pop_bytes(len(said))
            naive.pop(len(said))
            said = b""
            continue
        assert matcher.accept_token(token)
        data = case.tokens[token]
        assert all(recognizer.try_push_byte(byte) for byte in data)
        assert naive.push_bytes(data)
        said += data


def ids(path: Path) -> str:
    return str(path.relative_to(FOLDER))


def test_there_are_grammars() -> None:
    assert FILES


@pytest.mark.parametrize("path", FILES, ids=ids)
def test_toy_vocabulary(path: Path, toy: Case, masks_compared: Any) -> None:
    compare(path, toy, masks_compared, masks=40, steps=60, sample=None)


@pytest.mark.parametrize("path", FILES, ids=ids)
def test_embedded_vocabulary(path: Path, embedded: Case, masks_compared: Any) -> None:
    compare(path, embedded, masks_compared, masks=6, steps=40, sample=200)


@pytest.mark.parametrize("path", FILES, ids=ids)
def test_llama3_vocabulary(path: Path, llama3: Case, masks_compared: Any) -> None:
    compare(path, llama3, masks_compared, masks=2, steps=30, sample=100)


@pytest.mark.parametrize("path", FILES, ids=ids)
@pytest.mark.parametrize("seed", range(3))
def test_a_walk_can_be_finished(path: Path, toy: Case, seed: int) -> None:
    """From anywhere on a random walk, the shortest way to the end is open, and EOS after it."""
    random = Random(seed)
    grammar = load_grammar(path)
    matcher, naive = constrain.Matcher(toy.compiler.compile(grammar)), NaiveRecognizer(grammar.ir)
    completer = Completer(naive)
    for _ in range(30):
        allowed = engine_mask(matcher, len(toy.tokens))
        end = completer.shortest()
        assert matcher.accept_bytes(end), end
        assert matcher.is_accepting(), end
        assert matcher.accept_token(toy.eos_ids[0])
        matcher.rollback(2)
        token = next_token(toy, allowed, random)
        if token is None:
            break
        assert matcher.accept_token(token)
        assert naive.push_bytes(toy.tokens[token])
