"""Tokenizers of other libraries given to load_tokenizer and to vocabularies, and vocabularies as wide as a model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tokenizers

import constrain
from constrain.errors import ConstrainError, TokenizerError
from constrain.tokenizers.adapters.hugging_face import HuggingFaceTokenizer

WORDS = {"yes": 0, "no": 1, "</s>": 2, "<|im_end|>": 3}


@pytest.fixture
def library() -> Any:
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(WORDS, unk_token="</s>"))
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.add_special_tokens(["</s>", "<|im_end|>"])
    return tokenizer


@pytest.fixture
def fast(library: Any) -> Any:
    transformers = pytest.importorskip("transformers")
    return transformers.PreTrainedTokenizerFast(tokenizer_object=library, eos_token="</s>")


def allowed(vocabulary: constrain.Vocabulary, text: str = "") -> list[int]:
    compiled = constrain.GrammarCompiler(vocabulary).compile(constrain.Grammar.from_choices(["yes", "no"]))
    matcher = constrain.Matcher(compiled)
    assert matcher.accept_bytes(text.encode())
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    matcher.fill_next_token_bitmask(mask)
    found: list[int] = np.flatnonzero(np.unpackbits(mask[0].view(np.uint8), bitorder="little")).tolist()
    return found


def test_load_tokenizer_takes_them(library: Any, fast: Any) -> None:
    for given in (library, fast):
        tokenizer = constrain.load_tokenizer(given)
        assert isinstance(tokenizer, HuggingFaceTokenizer)
        assert tokenizer.encode("yes").ids == [0]
        assert constrain.load_tokenizer(tokenizer) is tokenizer
    assert constrain.load_tokenizer(fast).eos_ids == (2,)
    assert constrain.load_tokenizer(fast, eos_ids=[3, 2]).eos_ids == (2, 3)
    assert constrain.load_tokenizer(fast, chat_template="{{ messages[0].content }}").chat_template is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"folder": "x"}, "folder= is for files and names"),
        ({"encoding": "cl100k_base"}, "encoding= is for files and names"),
        ({"download": True}, "download= is for files and names"),
        ({"revision": "main"}, "revision= is for files and names"),
        ({"eos_ids": [4]}, "eos_ids=4 is out of range, the tokenizer has 4 tokens"),
        ({"eos_ids": [-1]}, "eos_ids=-1 is out of range"),
        ({"eos_ids": ["a"]}, "a token id must be an integer"),
    ],
)
def test_options_that_make_no_sense(library: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(TokenizerError, match=message) as caught:
        constrain.load_tokenizer(library, **options)
    assert "\n" not in str(caught.value)


def test_what_is_loaded_is_not_changed(library: Any) -> None:
    tokenizer = constrain.load_tokenizer(library)
    for options in ({"eos_ids": [1]}, {"chat_template": "{{ messages }}"}):
        with pytest.raises(TokenizerError, match="loaded already"):
            constrain.load_tokenizer(tokenizer, **options)


@pytest.mark.parametrize("size", [None, 4, 5, 31, 32, 33, 100])
def test_vocabularies_as_wide_as_the_model(fast: Any, size: int | None) -> None:
    vocabulary = constrain.Vocabulary.from_huggingface(fast, size)
    assert vocabulary.size == (size or 4)
    assert vocabulary.eos_ids == (2,)
    assert allowed(vocabulary) == [0, 1]
    assert allowed(vocabulary, "yes") == [2]
    assert set(range(4, vocabulary.size)) <= set(vocabulary.special_ids)
    adapted = constrain.load_tokenizer(fast)
    for other in (
        constrain.Vocabulary.from_huggingface(adapted, size=size),
        constrain.Vocabulary.from_tokenizer(adapted, size=size),
    ):
        assert (other.tokens, other.special_ids) == (vocabulary.tokens, vocabulary.special_ids)


def test_ends_beyond_the_tokenizer(library: Any) -> None:
    """Some models end a text with an id that their tokenizer lacks."""
    vocabulary = constrain.Vocabulary.from_huggingface(library, 40, eos_ids=[3, 39])
    assert allowed(vocabulary, "no") == [3, 39]
    with pytest.raises(ConstrainError, match="eos_ids: 40 is out of range"):
        constrain.Vocabulary.from_huggingface(library, 40, eos_ids=[40])


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (3, "size 3 is too small: the tokenizer has 4 tokens"),
        (0, "size 0 is too small"),
        (-1, "size -1 is too small"),
        ("8", "size must be a number of tokens, not '8'"),
        (8.0, "size must be a number of tokens"),
        (True, "size must be a number of tokens"),
        (1 << 40, "size 1099511627776 is too large"),
    ],
)
def test_wrong_sizes(library: Any, size: Any, message: str) -> None:
    with pytest.raises(ConstrainError, match=message) as caught:
        constrain.Vocabulary.from_huggingface(library, size)
    assert "\n" not in str(caught.value)


def test_what_is_no_tokenizer(library: Any) -> None:
    for wrong in ("gpt2", None, object(), {}):
        with pytest.raises(TokenizerError, match="no adapter for"):
            constrain.Vocabulary.from_huggingface(wrong)
    with pytest.raises(ConstrainError, match=r"not Tokenizer: .* Vocabulary\.from_huggingface"):
        constrain.Vocabulary.from_tokenizer(library)
