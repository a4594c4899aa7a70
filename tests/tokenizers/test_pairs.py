"""Two texts in one list of ids, against Hugging Face's library."""

from __future__ import annotations

import json

import pytest
import tokenizers
from tokenizer_json_files import bert_like, byte_level

from constrain.errors import TokenizerError
from constrain.tokenizers.formats.tokenizer_json import parse_tokenizer_json
from constrain.tokenizers.mock import MockTokenizer
from constrain.tokenizers.pairs import encode_pair
from constrain.tokenizers.state_arrays import from_arrays, to_arrays

TEXTS = [
    ("the quick fox", "jumps over"),
    ("", "the"),
    ("the", ""),
    ("a b c d e f g", "h"),
    ("h", "a b c d e f g h i j"),
]
TEMPLATE = {
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [
        {"SpecialToken": {"id": "[CLS]", "type_id": 2}},
        {"Sequence": {"id": "B", "type_id": 1}},
        {"SpecialToken": {"id": "[SEP]", "type_id": 3}},
        {"Sequence": {"id": "A", "type_id": 0}},
    ],
    "special_tokens": {
        "[CLS]": {"id": "[CLS]", "ids": [1, 1], "tokens": ["[CLS]", "[CLS]"]},
        "[SEP]": {"id": "[SEP]", "ids": [2], "tokens": ["[SEP]"]},
    },
}
BERT = {"type": "BertProcessing", "cls": ["[CLS]", 1], "sep": ["[SEP]", 2]}
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True}
PROCESSORS = {
    "none": None,
    "bert": BERT,
    "roberta": {**BERT, "type": "RobertaProcessing", "trim_offsets": False, "add_prefix_space": False},
    "template": TEMPLATE,
    "sequence": {"type": "Sequence", "processors": [BYTES, TEMPLATE]},
    "bytes": BYTES,
}


@pytest.mark.parametrize("name", PROCESSORS)
def test_equal_to_tokenizers(name):
    content = {**bert_like(), "post_processor": PROCESSORS[name]}
    reference = tokenizers.Tokenizer.from_str(json.dumps(content))
    ours = parse_tokenizer_json(json.dumps(content).encode())
    for tokenizer in (ours, from_arrays(to_arrays(ours))):
        for first, second in TEXTS:
            for around in (False, True):
                expected = reference.encode(first, second, add_special_tokens=around)
                found = encode_pair(tokenizer, first, second, around)
                assert found.ids == expected.ids
                assert found.type_ids == expected.type_ids
                assert found.attention_mask == expected.attention_mask
                given = [index for index, mask in zip(expected.sequence_ids, expected.special_tokens_mask, strict=True)
                         if not mask]  # fmt: skip
                assert [index for index in found.sequence_ids if index is not None] == given


@pytest.mark.parametrize("strategy", ["longest_first", "only_first", "only_second"])
def test_cut_as_by_tokenizers(strategy):
    content = {**bert_like(), "post_processor": BERT}
    reference = tokenizers.Tokenizer.from_str(json.dumps(content))
    ours = parse_tokenizer_json(json.dumps(content).encode())
    for first, second in TEXTS:
        for most in range(4, 24):
            reference.enable_truncation(most, strategy=strategy)
            try:
                expected = reference.encode(first, second).ids
            except Exception:  # the library raises plain Exception
                expected = None
            try:
                found = encode_pair(ours, first, second, max_length=most, truncation=strategy).ids
            except TokenizerError:
                found = None
            if expected is not None:
                assert found == expected, (first, second, most)
            if found is not None:
                assert len(found) <= most


def test_bytes_too_and_what_is_refused():
    content = byte_level(tokenizers.pre_tokenizers.Digits())
    ours = parse_tokenizer_json(json.dumps(content).encode())
    reference = tokenizers.Tokenizer.from_str(json.dumps(content))
    expected = reference.encode("the 12", "end")
    found = encode_pair(ours, "the 12", "end")
    assert (found.ids, found.type_ids) == (expected.ids, expected.type_ids)
    with pytest.raises(TokenizerError, match="MockTokenizer do not say how two texts are put together"):
        encode_pair(MockTokenizer(), "a", "b")
    assert encode_pair(MockTokenizer(), "a", "b", False).sequence_ids == [0, 1]
    bert = parse_tokenizer_json(json.dumps({**bert_like(), "post_processor": BERT}).encode())
    with pytest.raises(TokenizerError, match="3 tokens are added"):
        encode_pair(bert, "a", "b", max_length=2)
    with pytest.raises(TokenizerError, match="truncation must be"):
        encode_pair(bert, "a a a a", "b", max_length=5, truncation="middle")
    with pytest.raises(TokenizerError, match="the other text alone"):
        encode_pair(bert, "a", "b b b b b", max_length=5, truncation="only_first")
