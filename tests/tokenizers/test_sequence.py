"""A sequence's text is always the decoding of its ids."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from constrain.tokenizers import Sequence
from constrain.tokenizers.mock import MockTokenizer

TOKENIZER = MockTokenizer()
PARTS = st.lists(st.one_of(st.text(max_size=5), st.integers(0, TOKENIZER.vocab_size - 1)), max_size=10)


@given(PARTS, st.booleans())
def test_text_is_the_decoding(parts, skip):
    sequence, ids = Sequence(TOKENIZER, skip_special_tokens=skip), []
    for part in parts:
        if isinstance(part, str):
            new = sequence.append_text(part)
            assert new == TOKENIZER.encode(part).ids
            ids += new
        else:
            before = sequence.text
            added = sequence.append_token(part)
            assert sequence.text.startswith(before.removesuffix("\ufffd")) or added.startswith("\ufffd")
            ids.append(part)
        assert sequence.text == TOKENIZER.decode(ids, skip)
        assert sequence.ids == tuple(ids)
        assert len(sequence) == len(ids)
    assert Sequence(TOKENIZER, ids, skip).text == sequence.text


def test_special_tokens_show_by_default():
    sequence = Sequence(TOKENIZER)
    assert sequence.append_text("Hello", add_special_tokens=True) == TOKENIZER.encode("<s>Hello").ids
    assert sequence.text == "<s>Hello"
    assert Sequence(TOKENIZER, sequence.ids, skip_special_tokens=True).text == "Hello"
