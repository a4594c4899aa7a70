"""Stop sequences against a twin that looks at the whole text after every token."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from processor_time import processor_time

from constrain.errors import ConstrainError
from constrain.tokenizers import DecodeStream, Held, Stopped, StoppedWithText, StopSequenceDecoder, Text
from constrain.tokenizers.mock import MockTokenizer
from constrain.tokenizers.streaming.stop_matcher import StopMatcher

TOKENIZER = MockTokenizer([b"a", b"b", b"ab", b"ba", b"aab", b"bb\xc3", b"\xc3", b"\xa4", b"\xa4a", b"c"])
BOS, EOS, PAD = (TOKENIZER.token_to_id(name) for name in ("<s>", "</s>", "<pad>"))
STRINGS = st.text(alphabet="abcä\ufffd", min_size=1, max_size=4)
IDS = st.lists(st.integers(0, TOKENIZER.vocab_size - 1), max_size=12)


def naive_outputs(ids, hidden_tokens, hidden, visible_tokens, visible, skip):
    """The outputs for each id and for the flush."""
    stream, text, shown, outputs = DecodeStream(TOKENIZER, skip_special_tokens=skip), "", 0, []
    strings = [*hidden, *visible]
    stopped = False

    def give(new, final):
        nonlocal text, shown, stopped
        text += new
        for end in range(1, len(text) + 1):
            matches = [s for s in strings if text[:end].endswith(s)]
            if matches:
                longest = max(matches, key=len)
                end -= 0 if longest in visible else len(longest)
                stopped = True
                return Stopped() if end == shown else StoppedWithText(text[shown:end])
        starts = range(shown, len(text))
        end = (
            len(text) if final else next((i for i in starts if any(s.startswith(text[i:]) for s in strings)), len(text))
        )
        out, shown = text[shown:end], end
        return Text(out) if out else Held()

    for token_id in ids:
        if stopped:
            outputs.append(Stopped())
        elif token_id in hidden_tokens or token_id in visible_tokens:
            new = ""
            if token_id in visible_tokens:
                if token_id in TOKENIZER.special_ids:
                    new = (stream.flush() or "") + TOKENIZER.id_to_token(token_id)
                else:
                    new = stream.step(token_id) or ""
            out = give(new + (stream.flush() or ""), True)
            stopped = True
            outputs.append(StoppedWithText(out.text) if isinstance(out, (Text, StoppedWithText)) else Stopped())
        else:
            outputs.append(give(stream.step(token_id) or "", False))
    if stopped:
        outputs.append(Stopped())
    else:
        out = give(stream.flush() or "", True)
        outputs.append(Text("") if isinstance(out, Held) else out)
    return outputs


@given(
    IDS,
    st.sets(STRINGS, max_size=4),
    st.sets(STRINGS, max_size=3),
    st.sets(st.integers(4, TOKENIZER.vocab_size - 1), max_size=2),
    st.sets(st.integers(7, TOKENIZER.vocab_size - 1), max_size=2),
    st.booleans(),
)
@example([2, 0, 1], {"abab", "ba"}, {"b\ufffd"}, set(), {BOS}, True)
@example([6, BOS], {"a"}, {"\ufffd<s"}, set(), {BOS}, True)
def test_outputs_equal_those_of_the_twin(ids, hidden, visible, tokens, visible_tokens, skip):
    visible, visible_tokens = visible - hidden, visible_tokens - tokens
    decoder = StopSequenceDecoder(TOKENIZER, tokens, hidden, visible_tokens, visible, skip_special_tokens=skip)
    expected = naive_outputs(ids, tokens, hidden, visible_tokens, visible, skip)
    assert [*decoder.step_batch(ids), decoder.flush()] == expected
    assert decoder.is_stopped
    decoder.reset()
    assert not decoder.is_stopped
    assert [*map(decoder.step, ids), decoder.flush()] == expected


@given(st.lists(st.text(alphabet="ab", min_size=1, max_size=6), max_size=5), st.lists(st.text("abx", max_size=5)))
def test_pending_is_the_longest_end_that_begins_a_string(strings, parts):
    matcher, text = StopMatcher(strings), ""
    for part in parts:
        if matcher.feed(part) is not None:
            break
        text += part
        assert not any(string in text for string in strings)
        ends = [n for n in range(len(text) + 1) if any(s.startswith(text[len(text) - n :]) for s in strings)]
        assert matcher.pending == max(ends, default=0)


def test_hidden_and_visible():
    tokenizer = MockTokenizer()

    def run(text, **stops):
        decoder = StopSequenceDecoder(tokenizer, **stops)
        return [decoder.step(token_id) for token_id in tokenizer.encode(text).ids]

    held = [Text("x"), Held(), Held()]
    assert run("xend", stop_strings=["end"]) == [*held, Stopped()]
    assert run("xend", visible_stop_strings=["end"]) == [*held, StoppedWithText("end")]
    assert run("xenz", stop_strings=["end"]) == [*held, Text("enz")]
    assert run("x the", stop_strings=["he"]) == [Text("x"), StoppedWithText(" t")]
    eos = tokenizer.special_tokens.eos
    assert run("xen</s>x", stop_strings=["end"], stop_tokens=[eos]) == [*held, StoppedWithText("en"), Stopped()]
    assert run("x</s>", visible_stop_tokens=[eos]) == [Text("x"), StoppedWithText("</s>")]
    assert run("x</s>", stop_tokens=[eos]) == [Text("x"), Stopped()]
    # Which of two: the one that is complete first, then the longer one.
    assert run("abc", stop_strings=["abc", "b"]) == [Held(), StoppedWithText("a"), Stopped()]
    assert run("abc", stop_strings=["c"], visible_stop_strings=["bc"])[1:] == [Held(), StoppedWithText("bc")]


def test_the_prompt_is_not_searched():
    tokenizer = MockTokenizer()
    decoder = StopSequenceDecoder(tokenizer, stop_strings=["ab"], prompt_ids=[ord("a")])
    assert decoder.step(ord("b")) == Text("b")
    decoder = StopSequenceDecoder(tokenizer, stop_strings=["ä!"], prompt_ids=[0xC3])
    assert decoder.step(0xA4) == Held(), "a character that began in the prompt"
    assert decoder.step(ord("!")) == Stopped()


@pytest.mark.parametrize(
    ("stops", "message"),
    [
        ({"stop_strings": [""]}, "at least one character"),
        ({"visible_stop_strings": [""]}, "at least one character"),
        ({"stop_strings": "abc"}, r"\['abc'\]"),
        ({"stop_strings": ["a"], "visible_stop_strings": ["a"]}, "'a' is a hidden and a visible"),
        ({"stop_tokens": [3], "visible_stop_tokens": [3]}, "3 is a hidden and a visible"),
        ({"stop_tokens": [10**6]}, "1000000 is out of range"),
        ({"stop_tokens": [-1]}, "-1 is out of range"),
    ],
)
def test_stops_that_make_no_sense(stops, message):
    with pytest.raises(ConstrainError, match=message):
        StopSequenceDecoder(TOKENIZER, **stops)


def seconds(strings, ids):
    decoder = StopSequenceDecoder(MockTokenizer(), stop_strings=strings)
    with processor_time() as spent:
        assert not any(isinstance(out, (Stopped, StoppedWithText)) for out in decoder.step_batch(ids))
    return spent.seconds


def test_many_strings_cost_the_same_as_one():
    ids = MockTokenizer().encode("some text and no stop " * 400).ids
    one = min(seconds(["stopped"], ids) for _ in range(3))
    many = min(seconds([f"s{n}" for n in range(1000)], ids) for _ in range(3))
    assert many < 3 * one + 0.05


def test_one_long_string_is_not_quadratic():
    ids = [ord("a")] * 60_000
    assert seconds(["a" * 50_000 + "b"], ids) < 3, "0.1 s when alone on the machine"
