"""Ordinary tokens that are stop tokens of a matcher: no text, neither for masks nor for budgets nor in completions."""

from __future__ import annotations

import gc
import pickle
import random
import weakref
from itertools import product

import pytest
from masks import mask_of

import constrain
from constrain.grammar.grammar import Grammar

ALPHABET = "abc"


def _matcher(
    pattern: str, tokens: list[bytes], stops: list[int], max_tokens: int | None = None, eos: int | None = None
) -> constrain.Matcher:
    vocabulary = constrain.Vocabulary(tokens, eos_ids=[len(tokens) - 1 if eos is None else eos])
    compiled = constrain.GrammarCompiler(vocabulary).compile(Grammar.from_regex(pattern))
    return constrain.Matcher(compiled, max_tokens, stop_token_ids=stops)


def test_a_stop_token_is_in_no_completion() -> None:
    tokens = [*(bytes((byte,)) for byte in range(128)), b"</s>"]
    assert _matcher("b(a|cd)", tokens, [128]).completion() == [*b"ba"]
    matcher = _matcher("b(a|cd)", tokens, [ord("a")])
    assert matcher.completion() == [*b"bcd"]
    assert matcher.accept_tokens(b"bc")
    assert matcher.completion() == [ord("d")]
    assert matcher.accept_token(ord("d"))
    assert mask_of(matcher) == {ord("a")}
    assert matcher.accept_token(ord("a"))
    assert matcher.is_terminated()


def test_a_budget_does_not_count_on_stop_tokens() -> None:
    """``abab`` is two tokens, but with the stop token ``ab`` it is four."""
    tokens = [b"a", b"b", b"ab", b"</s>"]
    assert _matcher("(ab)*", tokens, [3], 2).accept_tokens([2, 0]) is False
    assert _matcher("abab", tokens, [3], 2).completion() == [2, 2]
    with pytest.raises(constrain.ConstrainError, match="takes 4 tokens"):
        _matcher("abab", tokens, [2], 3)
    matcher = _matcher("abab", tokens, [2, 3], 4)
    for token in [0, 1, 0, 1]:
        assert mask_of(matcher) == {token}
        assert not matcher.accept_token(2)
        assert matcher.accept_token(token)
    assert mask_of(matcher) == {2, 3}


def test_without_the_stop_token_no_text_can_be_spelled() -> None:
    with pytest.raises(constrain.ConstrainError, match="no text of the grammar was found"):
        _matcher("[ab]+a", [b"a", b"b", b"</s>"], [0], 5)
    with pytest.raises(constrain.ConstrainError, match="no way to complete"):
        _matcher("[ab]+a", [b"a", b"b", b"</s>"], [0]).completion()


def _fewest(texts: set[str], tokens: dict[int, str], prefix: str, most: int) -> int:
    """How many of the tokens make a text of what is there, breadth first; more than ``most`` if as many do not."""
    level = {prefix}
    for count in range(most + 1):
        if level & texts:
            return count
        level = {text + token for text in level for token in tokens.values()}
        level = {text for text in level if any(each.startswith(text) for each in texts)}
    return most + 1


def test_masks_under_a_budget_against_every_text() -> None:
    """Random sets of texts, tokens, stop tokens and budgets; each token of each mask on each way."""
    rng = random.Random(8)
    all_texts = ["".join(letters) for length in range(1, 5) for letters in product(ALPHABET, repeat=length)]
    refused = 0
    for _ in range(60):
        texts = set(rng.sample(all_texts, rng.randint(1, 6)))
        pieces = [*ALPHABET, *rng.sample([each for each in all_texts if 1 < len(each) < 4], 4)]
        stops = sorted(rng.sample(range(len(pieces)), rng.randint(1, 3)))
        if rng.random() < 0.5:
            stops.append(len(pieces))
        tokens = {token: piece for token, piece in enumerate(pieces) if token not in stops}
        most = rng.randint(0, 5)
        encoded = [*(piece.encode() for piece in pieces), b"</s>"]
        pattern = "|".join(sorted(texts))
        needed = _fewest(texts, tokens, "", most)
        if needed > most:
            refused += 1
            with pytest.raises(constrain.ConstrainError):
                _matcher(pattern, encoded, stops, most)
            continue
        matcher, text = _matcher(pattern, encoded, stops, most), ""
        assert needed <= len(matcher.completion()) <= most
        for left in range(most, -1, -1):
            expected = set(stops) if text in texts else set()
            if left:
                expected |= {t for t, piece in tokens.items() if _fewest(texts, tokens, text + piece, left - 1) < left}
            assert mask_of(matcher) == expected, (texts, tokens, stops, most, text)
            for token in range(len(encoded)):
                assert matcher.fork().accept_token(token) == (token in expected)
            onward = sorted(expected - set(stops))
            if not onward:
                break
            token = rng.choice(onward)
            assert matcher.accept_token(token)
            text += pieces[token]
        assert text in texts or onward
    assert refused > 5


def test_a_pickle_and_a_fork_end_as_the_matcher_does() -> None:
    matcher = _matcher("(ab)*c", [b"a", b"b", b"ab", b"c", b"</s>"], [2], 7)
    compiled = matcher._given
    assert compiled.ending_with([2]) is matcher.compiled is matcher.fork().compiled
    assert compiled.ending_with([4]) is compiled
    assert matcher.accept_tokens([0, 1])
    twin = pickle.loads(pickle.dumps(matcher))
    for each in (twin, matcher.fork()):
        assert mask_of(each) == {0, 3}
        assert each.completion() == [3]
        assert each.tokens_left == 5
    matcher.reset()
    assert mask_of(matcher) == {0, 3}


def test_a_grammar_names_what_it_names_without_the_stop_token() -> None:
    """A stop token that the grammar names is a part of the text where the grammar has it, and ends it elsewhere."""
    vocabulary = constrain.Vocabulary([b"a", b"b", b"aa", b"</s>"], eos_ids=[3])
    grammar = Grammar.from_lark('start: "a" <[1]> "aa"')
    compiled = constrain.GrammarCompiler(vocabulary).compile(grammar)
    matcher = constrain.Matcher(compiled, 4, stop_token_ids=[1, 2])
    for token in [0, 1, 0, 0]:
        assert mask_of(matcher) == {token}
        assert matcher.accept_token(token)
    assert mask_of(matcher) == {1, 2}
    assert matcher.accept_token(1)
    assert matcher.is_terminated()


def test_grammars_for_other_stop_tokens_are_kept_with_few_vocabularies() -> None:
    """A server's requests may name any tokens; what is kept for them has an end."""
    given = _matcher("[a-z]*", [bytes([97 + place]) for place in range(20)] + [b"</s>"], [0])._given
    found = [weakref.ref(given.ending_with([token])) for token in range(20)]
    gc.collect()
    assert sum(each() is not None for each in found) == len(given.vocabulary.views) < 8
    latest = given.ending_with([19])
    assert latest is found[-1]()
    vocabulary = latest.vocabulary
    del given, latest
    gc.collect()
    assert not vocabulary.twins
    assert found[-1]() is None
