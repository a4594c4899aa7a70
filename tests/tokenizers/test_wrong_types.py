"""Every public method refuses a wrong type with one line of a ConstrainError, and takes what is nearly the same."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import tiktoken
import tokenizers
from tokenizer_json_files import bert_like, byte_level, split, t5_like

from constrain.errors import ConstrainError, TokenizerError
from constrain.tokenizers import DecodeStream, Sequence, StopSequenceDecoder, load_tokenizer, save_tokenizer_json
from constrain.tokenizers.adapters import adapt
from constrain.tokenizers.batches import padded_batch
from constrain.tokenizers.formats.tokenizer_json import parse_tokenizer_json
from constrain.tokenizers.mock import MockTokenizer
from constrain.tokenizers.pairs import encode_pair

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


def of_json(content):
    return parse_tokenizer_json(json.dumps(content).encode())


def tiktoken_adapter():
    ranks = {bytes([byte]): byte for byte in range(256)}
    return adapt(tiktoken.Encoding("x", pat_str=r"\S+|\s+", mergeable_ranks=ranks, special_tokens={"<e>": 256}))


KINDS = {
    "byte level": lambda: of_json(byte_level(split("x"))),
    "byte level, one kernel": lambda: of_json(byte_level(tokenizers.pre_tokenizers.ByteLevel())),
    "pieces": lambda: of_json(t5_like()),
    "words": lambda: of_json(bert_like()),
    "mock": MockTokenizer,
    "tokenizers": lambda: adapt(tokenizers.Tokenizer.from_str(json.dumps(t5_like()))),
    "tiktoken": tiktoken_adapter,
}


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request):
    return KINDS[request.param]()


def shown(value: object) -> str:
    """A name for the test of a value that is the same in every process."""
    return re.sub(r" at 0x\w+", "", repr(value))[:40]


NO_TEXT = (None, 5, 1.5, b"ab", ["ab"], ("a", "b"), {"a": 1}, object(), np.array(["a"]))
NO_ID = (None, 1.5, 1.0, "1", b"1", [1], np.float32(1), np.array([1.0]), torch.tensor(1.0), object())
NO_IDS = (
    *(None, 5, 1.5, "ab", "1", object(), [1.5], [None], ["1"], [[1]], (1, 1.0), {1.5}, np.array([1.0]), np.array(1)),
    *(np.array([[1]]), torch.tensor([1.5]), torch.tensor(1), [1] * 200 + [1.5], [1] * 200 + ["a"], np.ones(200)),
)
NO_TEXTS = (None, 5, "ab", b"ab", [None], ["a", 5], ["a", b"b"], object())


def refused(call, *arguments, **options):
    with pytest.raises(ConstrainError) as caught:
        call(*arguments, **options)
    message = str(caught.value)
    assert message
    assert "\n" not in message
    assert len(message) < 300


@pytest.mark.parametrize("text", NO_TEXT, ids=shown)
def test_texts(tokenizer, text):
    refused(tokenizer.encode, text)
    refused(tokenizer.encode, text, add_special_tokens=True)
    refused(tokenizer.token_to_id, text)
    refused(Sequence(tokenizer).append_text, text)


@pytest.mark.parametrize("texts", NO_TEXTS, ids=shown)
def test_several_texts(tokenizer, texts):
    refused(tokenizer.encode_batch, texts)
    refused(StopSequenceDecoder, tokenizer, stop_strings=texts)
    refused(StopSequenceDecoder, tokenizer, visible_stop_strings=texts)


@pytest.mark.parametrize("token_id", NO_ID, ids=shown)
def test_an_id(tokenizer, token_id):
    refused(tokenizer.token_bytes, token_id)
    refused(tokenizer.id_to_token, token_id)
    stream, stops, sequence = DecodeStream(tokenizer), StopSequenceDecoder(tokenizer), Sequence(tokenizer)
    stream.step(1)
    for call in (stream.step, stops.step, sequence.append_token):
        refused(call, token_id)


@pytest.mark.parametrize("ids", NO_IDS, ids=shown)
def test_several_ids(tokenizer, ids):
    for skip in (True, False):
        refused(tokenizer.decode, ids, skip)
        refused(tokenizer.decode_bytes, ids, skip)
    refused(DecodeStream, tokenizer, ids)
    refused(DecodeStream(tokenizer).step_batch, ids)
    refused(StopSequenceDecoder(tokenizer).step_batch, ids)
    refused(StopSequenceDecoder, tokenizer, stop_tokens=ids)
    refused(StopSequenceDecoder, tokenizer, visible_stop_tokens=ids)
    refused(StopSequenceDecoder, tokenizer, prompt_ids=ids)
    refused(Sequence, tokenizer, ids)


def test_ids_without_a_token(tokenizer):
    for ids in ([-1], [10**6], [2**70], [0] * 200 + [-1], [0] * 200 + [2**70], np.array([-1]), torch.tensor([-1])):
        refused(tokenizer.decode, ids)
    for token_id in (-1, 10**6, 2**70):
        refused(tokenizer.token_bytes, token_id)
        refused(tokenizer.id_to_token, token_id)


def test_ids_of_other_libraries(tokenizer):
    ids = tokenizer.encode("the").ids
    text = tokenizer.decode(ids)
    for same in (tuple(ids), iter(ids), np.array(ids), np.array(ids, dtype=np.uint16), torch.tensor(ids)):
        assert tokenizer.decode(same) == text
    many = tokenizer.decode(ids * 200)
    for same in (np.array(ids * 200, dtype=np.int32), torch.tensor(ids * 200), iter(ids * 200)):
        assert tokenizer.decode(same) == many
    assert tokenizer.token_bytes(np.int64(ids[0])) == tokenizer.token_bytes(ids[0])
    stream = DecodeStream(tokenizer)
    assert "".join(stream.step_batch(torch.tensor(ids))) == text
    assert tokenizer.encode(np.str_("the")).ids == ids


def test_tokens_to_be_added(tokenizer):
    for texts in ([""], ["x", "x"], ["\ud800"], [5], "x", None):
        refused(tokenizer.with_added_tokens, texts)
    for name in ("special", "lstrip", "rstrip", "single_word", "normalized"):
        for value in (1, "yes", "none"):
            refused(tokenizer.with_added_tokens, ["x"], **{name: value})


def test_pairs_and_batches(tokenizer):
    for other in (None, 5, "tokenizer.json"):
        refused(encode_pair, other, "a", "b")
    for encodings in (tokenizer.encode("a"), None, 5):
        refused(padded_batch, encodings, pad_id=0)


def test_where_a_tokenizer_cannot_be_written(tokenizer):
    for path in ("", "/", ".", None, 5):
        refused(save_tokenizer_json, tokenizer, path)


def test_a_tokenizer_with_a_lone_surrogate_cannot_be_written(tmp_path):
    content = t5_like()
    content["normalizer"] = {"type": "Replace", "pattern": {"String": "\ud800"}, "content": ""}
    tokenizer = of_json(content)
    refused(save_tokenizer_json, tokenizer, tmp_path / "tokenizer.json")
    assert not list(tmp_path.iterdir())


def test_chats(tokenizer):
    tokenizer.chat_template = "{{ messages|length }}"
    chat = [{"role": "user", "content": "x"}]
    for messages in (None, 5, "ab", {}, {"role": "user"}, [], [None], ["x"], [{"role": object()}]):
        refused(tokenizer.apply_chat_template, messages)
    for value in (5, "ab", {"a": 1}, [5], [object()]):
        refused(tokenizer.apply_chat_template, chat, tools=value)
    for value in (5, "ab", {"a": 1}, [object()]):
        refused(tokenizer.apply_chat_template, chat, documents=value)
    refused(tokenizer.apply_chat_template, chat, template=5)
    refused(tokenizer.apply_chat_template, chat, extra=object())
    for template in (5, ["x"], {"default": 5}, b"x"):
        tokenizer.chat_template = template
        refused(tokenizer.apply_chat_template, chat)


def test_load_tokenizer(tmp_path, small_json):
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(small_json))
    for wrong in (None, 5, b"tokenizer.json", ["tokenizer.json"], object()):
        refused(load_tokenizer, wrong)
        if wrong is not None:
            refused(load_tokenizer, path, chat_template=wrong)
            refused(load_tokenizer, "gpt-4o", folder=wrong)
            refused(load_tokenizer, "some/model", revision=wrong)
            refused(load_tokenizer, path, encoding=wrong)
    for wrong in (5, "ab", [1.5], [None], [-1], [10**6]):
        refused(load_tokenizer, path, eos_ids=wrong)
    for wrong in (None, 5, "x", [1]):
        refused(adapt, wrong)


def test_a_float_is_never_rounded_to_an_id(tokenizer):
    with pytest.raises(TokenizerError, match=r"a token id must be an integer, not float 1\.5"):
        tokenizer.decode([1.5])
    with pytest.raises(TokenizerError, match=r"texts must be a list of str, not str 'ab'"):
        tokenizer.encode_batch("ab")
    with pytest.raises(TokenizerError, match="a text must be a str, not None"):
        tokenizer.encode(None)
