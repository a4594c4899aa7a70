"""A text token by token, each step compared with what the engine says on its own."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import constrain
from constrain import demo
from constrain.explain import trace as trace_module
from constrain.explain.allowed import allowed_tokens, probabilities, rank
from constrain.explain.page import _texts, page
from constrain.explain.trace import Step, reach, tokens_of_text, trace_text

TOKENIZER, MODEL = demo.load()
VOCABULARY = constrain.Vocabulary.from_tokenizer(TOKENIZER)
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "ok": {"const": "certainly"}},
    "required": ["name"],
    "additionalProperties": False,
}


def compiled(grammar=None):
    grammar = grammar or constrain.Grammar.from_json_schema(SCHEMA, whitespace="compact")
    return constrain.GrammarCompiler(VOCABULARY).compile(grammar)


def trace(text, grammar=None, **options):
    return trace_text(compiled(grammar), TOKENIZER, text if isinstance(text, bytes) else text.encode(), **options)


def test_a_valid_text():
    text = '{"name":"Zoë","ok":"certainly"}'
    walk = trace(text)
    assert (walk.valid, walk.refused, walk.read, walk.unread) == (True, False, len(text.encode()), b"")
    assert [step.token for step in walk.steps] == TOKENIZER.encode(text).ids
    assert b"".join(step.data for step in walk.steps) == text.encode()
    matcher = constrain.Matcher(compiled())
    for step in walk.steps:
        assert step.before.allowed == len(allowed_tokens(matcher))
        assert step.before.forced == matcher.forced_bytes()
        assert step.before.complete == matcher.is_accepting()
        assert step.accepted
        assert step.before.mask_seconds > 0
        assert step.forced == (step.before.allowed == 1 or matcher.forced_bytes().startswith(step.data))
        assert matcher.accept_token(step.token)
    assert walk.end.complete
    assert walk.end.expected == "end of text"
    assert walk.steps[0].before.expected == "'{'"
    assert walk.steps[0].before.rules == ("#",)
    assert walk.steps[0].before.forced == b'{"'  # any letter may be an escape
    assert [step.forced for step in walk.steps].count(True) > 4


def test_a_text_that_breaks_the_grammar_within_a_token():
    walk = trace('{"name":"x","oxygen"')
    assert (walk.valid, walk.refused) == (False, True)
    assert walk.read == len('{"name":"x","o')
    assert not walk.steps[-1].accepted
    assert b"x" in walk.steps[-1].data
    assert walk.end.expected == 'the rest of a property name ("ok")'
    assert b"".join(step.data for step in walk.steps) + walk.unread == b'{"name":"x","oxygen"'


def test_a_text_that_is_not_finished():
    for text in ("", '{"name":"x'):
        walk = trace(text)
        assert (walk.valid, walk.refused, walk.unread, walk.end.complete) == (False, False, b"", False)


def test_at_most_so_many_steps():
    seen = []
    walk = trace('{"name":"' + "x y " * 100, most=7, on_step=lambda: seen.append(1))
    assert len(walk.steps) == len(seen) == 7
    assert not walk.valid
    assert walk.unread


def test_of_a_long_text_only_the_beginning_is_tokenized(monkeypatch):
    monkeypatch.setattr(trace_module, "_FURTHER_BYTES", 1)
    longest = max(map(len, VOCABULARY.tokens))
    assert reach(VOCABULARY, 3) == 3 * longest + 1
    text = "añ ñb" * 100
    whole = trace(text, constrain.Grammar.from_regex("[añb ]*"), most=1000)
    assert whole.valid
    for most in range(1, 12):
        walk = trace(text, constrain.Grammar.from_regex("[añb ]*"), most=most)
        assert [step.token for step in walk.steps] == [step.token for step in whole.steps[:most]]
        assert walk.own_tokens
        assert b"".join(step.data for step in walk.steps) + walk.unread == text.encode()
    # A byte that is no text counts where it is reached, and nowhere else.
    assert trace(b"a" * 1000 + b"\xff", constrain.Grammar.from_regex("a*"), most=2).own_tokens
    assert not trace(b"a" * longest + b"\xff", constrain.Grammar.from_regex("a*"), most=2).own_tokens


def test_a_model_ranks_what_is_allowed():
    walk = trace("the cat", constrain.Grammar.from_regex("the (cat|dog|[a-z]{9})"), model=MODEL, best=3)
    step = walk.steps[-1]
    assert [len(each.before.best) <= 3 for each in walk.steps] == [True] * len(walk.steps)
    assert 0 < step.probability <= 1
    likelihoods = [each.probability for each in step.before.best]
    assert likelihoods == sorted(likelihoods, reverse=True)
    # The same by hand.
    matcher = constrain.Matcher(compiled(constrain.Grammar.from_regex("the (cat|dog|[a-z]{9})")))
    for each in walk.steps[:-1]:
        matcher.accept_token(each.token)
    ids = allowed_tokens(matcher)
    logits = MODEL.logits([each.token for each in walk.steps[:-1]]).astype(np.float64)[ids]
    share = np.exp(logits) / np.exp(logits).sum()
    assert step.probability == pytest.approx(share[list(ids).index(step.token)])


@settings(max_examples=60)
@given(text=st.text(max_size=20) | st.sampled_from(["<|endoftext|>", "a<|endoftext|>b"]))
def test_tokens_add_up_to_the_text(text):
    tokens, own = tokens_of_text(VOCABULARY, TOKENIZER, text.encode())
    assert b"".join(VOCABULARY.tokens[token] for token in tokens) == text.encode()
    assert own == ("<|endoftext|>" not in text)


def test_bytes_that_are_no_text():
    walk = trace(b"a\xff\xfe", constrain.Grammar.from_regex("a"))
    assert (walk.own_tokens, walk.refused, walk.read) == (False, True, 1)


@pytest.mark.parametrize("text", ["ab", " ab", "b a", "", " "])
def test_a_space_that_the_tokenizer_puts_in_front_is_left_out(text):
    # As a SentencePiece model of the tokens ▁a, ▁, a, b.
    tokens = [b" a", b" ", b"a", b"b"]

    class Tokenizer:
        strips_leading_space = True

        def encode(self, text):
            pieces = re.findall(" a| |a|b", " " + text if text else "")
            return SimpleNamespace(ids=[tokens.index(piece.encode()) for piece in pieces])

    ids, own = tokens_of_text(constrain.Vocabulary(tokens), Tokenizer(), text.encode())
    assert own
    assert b"".join(tokens[token] for token in ids) == text.encode()


def test_a_byte_without_a_token():
    vocabulary = constrain.Vocabulary([b"a", b"ab"])
    assert tokens_of_text(vocabulary, TOKENIZER, b"aab")[0] == [0, 1]
    with pytest.raises(constrain.ConstrainError, match=r"byte 1 of the text \(0x63\) is in no token"):
        tokens_of_text(vocabulary, TOKENIZER, b"ac")


def test_probabilities_refuse_logits_that_do_not_fit():
    ids = np.array([1, 5])
    assert [each.id for each in rank(ids, probabilities(ids, [0, 1, 0, 0, 0, 3.0]), 9)] == [5, 1]
    assert [(each.id, each.probability) for each in rank(ids, None, 1)] == [(1, None)]
    assert probabilities(ids, [9, 1, 9, 9, 9, 1.0, 9]).tolist() == [0.5, 0.5]
    assert probabilities(ids[:0], [1.0]).tolist() == []
    with pytest.raises(constrain.ConstrainError, match="too few"):
        probabilities(ids, [1.0, 2.0])
    with pytest.raises(constrain.ConstrainError, match="rules out"):
        probabilities(ids, [-np.inf] * 6)


@given(text=st.text(max_size=12), cuts=st.lists(st.integers(0, 40), max_size=6))
def test_every_character_is_shown_once(text, cuts):
    data = text.encode()
    borders = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    place = trace("").end
    pieces = [data[a:b] for a, b in pairwise(borders)]
    steps = [Step(0, piece, place, True, False, None) for piece in pieces]
    shown = "".join(part for each in _texts(steps) for part, escaped in each if not (escaped and part == "\u00b7"))
    unescaped = text if all(c.isprintable() or c in "\n\t" for c in text) else None
    assert unescaped is None or shown == unescaped


def test_the_page_stands_on_its_own():
    walk = trace('{"name":"</script><!--"')
    text = page(walk, VOCABULARY, title="<t>", verdict="v", facts="f", rules_name="r")
    assert text.count("<script") == text.count("</script>") == 2
    assert "<!--" not in text
    assert "<title>&lt;t&gt;</title>" in text
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    content = json.loads(text.split('id="data">')[1].split("</script>")[0])
    assert content["title"] == "<t>"
    assert len(content["steps"]) == len(walk.steps)
    assert content["phrases"][content["steps"][0]["before"]["expected"]] == "'{'"
