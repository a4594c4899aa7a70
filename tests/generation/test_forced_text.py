"""Forced tokens: those that the tokenizer makes of the finished text, and the model is not asked for them."""

from __future__ import annotations

import json
import pickle
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_models import tokenizer_json

from constrain import ConstrainError, Grammar, GrammarCompiler, Matcher, Vocabulary, allocate_token_bitmask, demo
from constrain.generation import generate
from constrain.sampling import Sampler
from constrain.tokenizers.formats.tokenizer_json import parse_tokenizer_json
from constrain.tokenizers.mock import MockTokenizer

TOKENIZERS = {
    "byte level": lambda: demo.load()[0],
    "sentencepiece": lambda: parse_tokenizer_json(json.dumps(tokenizer_json()).encode()),
    "longest match": MockTokenizer,
}


class Noise:
    """A model without a preference, that counts how often it is asked."""

    def __init__(self, size):
        self.size = size
        self.asked = 0

    def logits(self, ids):
        self.asked += 1
        return np.zeros(self.size, np.float32)


@pytest.fixture(scope="module", params=TOKENIZERS)
def tokenizer(request):
    return TOKENIZERS[request.param]()


@pytest.fixture(scope="module")
def compiler(tokenizer):
    return GrammarCompiler(Vocabulary.from_tokenizer(tokenizer))


def own_tokens(tokenizer, text):
    """Pairs of place and token as the tokenizer reads a text that something precedes."""
    begin = 0
    ids = tokenizer.encode(text).ids
    if tokenizer.decode_bytes(ids) != text.encode():
        ids = tokenizer.encode("\n" + text).ids
        begin = -len(tokenizer.decode_bytes(ids)) + len(text.encode())
    spans = set()
    for token in ids:
        spans.add((begin, token))
        begin += len(tokenizer.token_bytes(token))
    assert begin == len(text.encode())
    return spans


def check(tokenizer, compiler, grammar, seed, max_tokens=400):
    model = Noise(tokenizer.vocab_size)
    generation = generate(
        model, tokenizer, compiler.compile(grammar), sampler=Sampler(1.0, 0, 1.0, seed), max_tokens=max_tokens
    )
    steps = list(generation)
    assert generation.statistics.finish_reason == "complete"
    own = own_tokens(tokenizer, generation.text)
    place = 0
    for step in steps:
        if step.forced:
            assert (place, step.token_id) in own, (generation.text, place, step)
        place += len(tokenizer.token_bytes(step.token_id))
    statistics = generation.statistics
    assert statistics.forced_tokens == sum(step.forced for step in steps)
    assert statistics.forced_share == statistics.forced_tokens / max(1, statistics.tokens)
    free = statistics.tokens - statistics.forced_tokens
    # Once more at the end, where the end is one of several things that can follow.
    assert free <= model.asked <= free + 1
    return generation


def test_a_text_without_any_choice_needs_no_model(tokenizer, compiler):
    text = 'The name is "no", yes and no; \n  {"name": [1, 2.5, -30]} é€😀.'
    generation = check(tokenizer, compiler, Grammar.from_choices([text]), 0)
    assert generation.text == text
    assert generation.statistics.forced_tokens == generation.statistics.tokens
    assert generation.statistics.model_seconds == 0


def test_a_common_beginning_is_forced_as_far_as_it_is_certain(tokenizer, compiler):
    generation = check(tokenizer, compiler, Grammar.from_choices(["the name is no", "the name is yes"]), 0)
    assert 0 < generation.statistics.forced_tokens < generation.statistics.tokens


WORDS = st.sampled_from(
    ["name", " no", " yes", '{"', '": ', '", "', "the", " and", "\n", "  ", "1", "23", "é", "日本", "-", "ab", "}", ","]
)


# Of regexes, one after the other.
PATTERNS = st.lists(
    st.one_of(
        WORDS.map(re.escape),
        st.sampled_from(['[^"]{0,3}"', "[a-z]{1,6} ", "[0-9]{1,4}", "(a|ab|abc)", "( |\n){0,3}"]),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=60)
@given(
    PATTERNS,
    st.integers(0, 1000),
)
def test_forced_tokens_are_the_tokenizers_own(parts, seed):
    for name in TOKENIZERS:
        tokenizer, compiler = _kept(name)
        generation = check(tokenizer, compiler, Grammar.from_regex("".join(parts)), seed)
        assert re.fullmatch("".join(parts), generation.text)


@settings(max_examples=60)
@given(
    PATTERNS,
    st.integers(0, 1000),
    st.sampled_from(["", "the name", "a\n", '"x":']),
)
def test_drafts_of_a_matcher_are_the_tokenizers_own(parts, seed, prompt):
    """Whatever text of the grammar follows, the tokens that were forced in it are those of the tokenizer."""
    choose = np.random.default_rng(seed)
    for name in TOKENIZERS:
        tokenizer, compiler = _kept(name)
        matcher = Matcher(compiler.compile(Grammar.from_regex("".join(parts))))
        mask = allocate_token_bitmask(1, tokenizer.vocab_size)
        before = tokenizer.encode(prompt).ids
        text, forced = [], []
        while not matcher.is_terminated():
            draft = matcher.forced_tokens(before + text)
            place, steps = matcher.steps, matcher.steps
            assert matcher.validate_tokens(draft) == len(draft)
            assert matcher.steps == steps
            if draft and choose.random() < 0.8:
                forced += range(place, place + len(draft))
                text += draft
                assert matcher.accept_tokens(draft)
                continue
            matcher.fill_next_token_bitmask(mask)
            allowed = np.flatnonzero(np.unpackbits(mask[0].view(np.uint8), bitorder="little"))
            token = int(choose.choice(allowed))
            assert matcher.accept_token(token)
            if not matcher.is_terminated():
                text.append(token)
        written = b"".join(tokenizer.token_bytes(token) for token in text).decode()
        if tokenizer.decode_bytes(before) != prompt.encode():
            continue
        own = own_tokens(tokenizer, prompt + written)
        begin = len(prompt.encode())
        for place, token in enumerate(text):
            assert place not in forced or (begin, token) in own, (written, place)
            begin += len(tokenizer.token_bytes(token))


def test_drafts_of_special_tokens_budgets_and_unknown_tokenizers():
    tokens = [bytes((byte,)) for byte in range(128)] + [b"ab", b"</s>", b""]
    end, mark = len(tokens) - 2, len(tokens) - 1
    bare = Vocabulary(tokens, eos_ids=[end], special_ids=[mark], names={mark: "<x>"})
    mock = MockTokenizer(tokens[:-2])
    compiled = GrammarCompiler(bare).compile(Grammar.from_lark('start: "abab" <x> "ab" /[0-9]/'))
    matcher = Matcher(compiled)
    with pytest.raises(ConstrainError, match="give tokenizer="):
        matcher.forced_tokens()
    with pytest.raises(ConstrainError, match="token id 500 is out of range"):
        matcher.forced_tokens([500], tokenizer=mock)
    ab = tokens.index(b"ab")
    assert matcher.forced_tokens(tokenizer=mock) == [ab, ab]
    assert matcher.accept_tokens([ab, ab])
    assert matcher.forced_tokens(tokenizer=mock) == [mark]
    assert matcher.accept_token(mark)
    assert matcher.forced_tokens(tokenizer=mock) == matcher.forced_tokens([ab, ab, mark], tokenizer=mock) == [ab]
    assert matcher.accept_tokens([ab, ord("1")])
    assert matcher.forced_tokens(tokenizer=mock) == []
    assert matcher.accept_token(end)
    assert matcher.forced_tokens(tokenizer=mock) == []
    # Two tokens are left, and the tokenizer would take three.
    pieces = MockTokenizer([bytes((byte,)) for byte in range(128)])
    within = Matcher(GrammarCompiler(bare).compile(Grammar.from_choices(["aba"])), 2)
    assert within.forced_tokens(tokenizer=pieces) == []
    assert Matcher(within.compiled, 3).forced_tokens(tokenizer=pieces) == [97, 98, 97]


def test_a_vocabulary_knows_its_tokenizer():
    tokenizer, compiler = _kept("byte level")
    matcher = Matcher(compiler.compile(Grammar.from_json_schema({"const": "hello there"}, spelling="canonical")))
    assert matcher.compiled.vocabulary.tokenizer is tokenizer
    assert tokenizer.decode_bytes(matcher.forced_tokens()) == b'"hello there"'
    assert pickle.loads(pickle.dumps(matcher.compiled.vocabulary)).tokenizer is None


_made = {}


def _kept(name):
    if name not in _made:
        tokenizer = TOKENIZERS[name]()
        _made[name] = tokenizer, GrammarCompiler(Vocabulary.from_tokenizer(tokenizer))
    return _made[name]


def test_what_follows_can_change_a_forced_token():
    tokenizer = MockTokenizer([bytes((byte,)) for byte in range(256)] + [b'":', b'":-', b"ab"])
    compiler = GrammarCompiler(Vocabulary.from_tokenizer(tokenizer))
    assert tokenizer.encode('x":-1').tokens[1] == '":-'
    free = generate(
        Noise(tokenizer.vocab_size),
        tokenizer,
        compiler.compile(Grammar.from_regex('x":(-1|2)')),
        sampler=Sampler(seed=1),
    )
    assert [step.token_id for step in free if step.forced][:1] == [ord("x")]
    assert 256 not in [step.token_id for step in free if step.forced]
    sure = generate(Noise(tokenizer.vocab_size), tokenizer, compiler.compile(Grammar.from_regex('x":(1|2)')))
    assert [step.token_id for step in sure if step.forced][:2] == [ord("x"), 256]


def test_forced_tokens_count_against_the_budget():
    tokenizer, compiler = _kept("longest match")
    text = "".join(f"{number}," for number in range(300))
    generation = check(tokenizer, compiler, Grammar.from_regex(re.escape(text) + "x?"), 0, max_tokens=3000)
    assert generation.text.startswith(text)
    assert generation.statistics.forced_tokens >= len(text) - 2


@pytest.mark.parametrize("options", [{}, {"max_tokens": 4}, {"stop_token_ids": [97]}], ids=["plain", "budget", "stop"])
def test_what_may_follow_is_more_than_the_next_single_bytes(options):
    """Behind a quote in a token of its own there is no "a": the budget is too small for it, or it ends texts."""
    pieces = [bytes((byte,)) for byte in range(128)] + [b'"a', b"</s>"]
    compiled = GrammarCompiler(Vocabulary(pieces, eos_ids=[129])).compile(Grammar.from_regex('"(abcd|e)'))
    matcher = Matcher(compiled, **options)
    assert matcher.forced_bytes() == b'"'
    assert matcher.forced_tokens(tokenizer=MockTokenizer(pieces[:-1])) == []
    assert matcher.accept_tokens([128, ord("b"), ord("c"), ord("d")])


def test_the_beginnings_of_characters_that_a_budget_has_no_room_for():
    """Four bytes take four tokens, unless the last two are one; then some first byte may follow, and no second one."""
    pieces = [bytes((byte,)) for byte in range(256)] + [b"\x98\x80", b"</s>"]
    compiled = GrammarCompiler(Vocabulary(pieces, eos_ids=[257])).compile(Grammar.from_regex('",[^,]'))
    assert Matcher(compiled, 5).forced_tokens(tokenizer=MockTokenizer(pieces[:-1])) == [ord('"'), ord(",")]


def test_a_tokenizer_that_changes_the_text_forces_nothing():
    class Lower(MockTokenizer):
        def encode(self, text, add_special_tokens=False):
            return super().encode(text.lower(), add_special_tokens)

    tokenizer = Lower()
    compiler = GrammarCompiler(Vocabulary.from_tokenizer(tokenizer))
    generation = generate(Noise(tokenizer.vocab_size), tokenizer, compiler.compile(Grammar.from_choices(["ABC"])))
    assert "".join(step.text for step in generation) == "ABC"
    assert generation.statistics.forced_tokens == 0


def test_bytes_that_are_no_text_force_nothing():
    tokenizer = MockTokenizer()
    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    from constrain.engine.forced_tokens import ForcedTokens
    from constrain.engine.matcher import Matcher

    matcher = Matcher(GrammarCompiler(vocabulary).compile(Grammar.from_choices(["abc"])))
    forced = ForcedTokens(vocabulary, tokenizer)
    assert forced.next(b"\xff", b"abc", matcher) == []
    assert forced.next(b"", b"abc", matcher) == [97, 98, 99]
