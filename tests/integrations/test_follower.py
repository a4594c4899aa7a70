"""Follower: what it is told, call by call, against a matcher that is told the same token by token."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import constrain
from constrain.integrations.follower import Follower

TOKENS = [b"</s>", b"a", b"b", b"ab", b"<", b">"]
VOCABULARY = constrain.Vocabulary(TOKENS, eos_ids=[0])
COMPILED = constrain.GrammarCompiler(VOCABULARY).compile(constrain.Grammar.from_regex("<(ab|b)*>"))


def expected_bits(ids):
    matcher = constrain.Matcher(COMPILED)
    for token in ids:
        assert matcher.accept_token(token)
    mask = constrain.allocate_token_bitmask(1, VOCABULARY.size)
    matcher.fill_next_token_bitmask(mask)
    return [bool(mask[0, 0] >> i & 1) for i in range(len(TOKENS))]


@given(prompt=st.lists(st.integers(0, 5), max_size=4), told=st.booleans(), draws=st.lists(st.integers(0, 99)))
def test_it_follows(prompt, told, draws):
    follower = Follower(COMPILED, prompt_tokens=len(prompt) if told else None)
    generated: list[int] = []
    for draw in [*draws, 0]:
        allowed = follower.allowed(np.array(prompt + generated, np.int64), 8)
        assert allowed.tolist() == [*expected_bits(generated), False, False]
        choices = np.flatnonzero(allowed)
        generated.append(int(choices[draw % len(choices)]))
        if generated[-1] == 0:
            break


def test_apply():
    follower = Follower(COMPILED)
    logits = np.zeros(6, np.float32)
    assert follower.apply([1, 2], logits) is logits
    assert logits.tolist() == [-np.inf] * 4 + [0, -np.inf]
    rows = np.zeros((1, 8), np.float32)
    follower.apply([1, 2, 4], rows)
    assert np.isfinite(rows[0]).nonzero()[0].tolist() == [1, 2, 3, 5]


def test_apply_to_a_tensor():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    logits = torch.zeros(6)
    Follower(COMPILED, prompt_tokens=0).apply([], logits)
    assert logits.isfinite().tolist() == [False] * 4 + [True, False]


@pytest.mark.parametrize("make", [list, np.array])
def test_a_batch_is_an_error(make):
    """Its length does not change, so nothing of what is generated would be seen."""
    with pytest.raises(constrain.ConstrainError, match="one sequence"):
        Follower(COMPILED).mask(make([[1, 2]]))
    with pytest.raises(constrain.ConstrainError, match="not of 2 rows"):
        Follower(COMPILED).apply([1], np.zeros((2, 6), np.float32))


def test_logits_for_fewer_tokens_are_an_error():
    """The end token may be one of those that are missing."""
    for call in (lambda f: f.apply([1], np.zeros(5, np.float32)), lambda f: f.allowed([1], 5)):
        with pytest.raises(constrain.ConstrainError, match="logits for 5 tokens, but the vocabulary has 6"):
            call(Follower(COMPILED))


@pytest.mark.parametrize("wrong", [[4, 1, 4], [4, 1, 9], [4, -1]])
def test_an_error_changes_nothing(wrong):
    follower = Follower(COMPILED, prompt_tokens=0)
    with pytest.raises(constrain.ConstrainError):
        follower.mask(wrong)
    assert follower.matcher.steps == 0
    assert follower.allowed([], 6).tolist() == expected_bits([])
    assert follower.allowed([4, 2], 6).tolist() == expected_bits([4, 2])


def test_after_the_end_anything_goes():
    follower = Follower(COMPILED, prompt_tokens=0)
    assert follower.mask([4, 5, 0]) is None
    logits = np.zeros(6, np.float32)
    assert follower.apply([4, 5, 0, 3, 3], logits).tolist() == [0] * 6
    assert follower.allowed([4, 5, 0, 3, 3], 7).all()
    assert follower.matcher.is_terminated()


def test_what_is_refused():
    follower = Follower(COMPILED, prompt_tokens=0)
    follower.mask([4])
    with pytest.raises(constrain.ConstrainError, match="generated token 1 has the id 4"):
        follower.mask([4, 4])
    follower = Follower(COMPILED)
    follower.mask([1, 1])
    with pytest.raises(constrain.ConstrainError, match="there were 2 ids and now there are 1"):
        follower.mask([1])
    with pytest.raises(constrain.ConstrainError, match="prompt_tokens must be 0 or more, not -1"):
        Follower(COMPILED, prompt_tokens=-1)
    with pytest.raises(constrain.ConstrainError, match=r"prompt_tokens must be an integer, not float 1\.5"):
        Follower(COMPILED, prompt_tokens=1.5)
    with pytest.raises(TypeError, match=r"Follower\(\) takes a CompiledGrammar, not Grammar"):
        Follower(constrain.Grammar.from_regex("a"))
    endless = constrain.GrammarCompiler(constrain.Vocabulary([b"a"])).compile(constrain.Grammar.from_regex("a"))
    with pytest.raises(constrain.ConstrainError, match="no end token"):
        Follower(endless)


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_other_ids_in_place_of_those_before_are_refused(kind):
    """As where beams are reordered.  The mask was that of the ids that are gone."""
    follower = Follower(COMPILED, prompt_tokens=1)
    first, second = 1, 2
    follower.mask(kind([3, 4, first]))
    with pytest.raises(constrain.ConstrainError, match=f"generated token 1 was {first} and now it is {second}"):
        follower.mask(kind([3, 4, second, first]))
    assert follower.mask(kind([3, 4, first])) is not None


def test_a_limit_of_tokens_is_kept() -> None:
    tokens = [b"[", b"]", b'"', b",", b"a", b"b", b"</s>"]
    vocabulary = constrain.Vocabulary(tokens, eos_ids=[6])
    schema = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
    grammar = constrain.Grammar.from_json_schema(schema, whitespace="compact")
    compiled = constrain.GrammarCompiler(vocabulary).compile(grammar)
    follower = Follower(compiled, prompt_tokens=0, max_tokens=5)
    ids: list[int] = []
    while not follower.matcher.is_accepting():
        allowed = np.flatnonzero(follower.allowed(ids, len(tokens)))
        ids.append(int(allowed[-1]))
        follower.mask(ids)
    assert b"".join(tokens[token] for token in ids) == b'["b"]'


def test_a_fork_goes_its_own_way() -> None:
    follower = Follower(COMPILED, 0)
    follower.mask([4])
    other = follower.fork()
    mask = follower.mask([4])
    before = mask.copy()
    assert (other.mask([4, 1]) != before).any()
    # The mask of the first one, and its place, are as they were.
    assert (mask == before).all()
    assert (follower.mask([4, 5]) != before).any()
    assert not other.matcher.is_accepting()
    assert follower.matcher.is_accepting()


@pytest.mark.parametrize("shape", [(8,), (1, 8)])
def test_an_error_leaves_nothing_but_the_end(shape):
    """llama-cpp-python prints what its processors raise, and goes on with the logits as they are."""
    follower = Follower(COMPILED, prompt_tokens=0)
    follower.apply([], np.zeros(shape, np.float32))
    assert follower.error is None
    logits = np.zeros(shape, np.float32)
    with pytest.raises(constrain.ConstrainError, match="which the grammar does not allow there") as raised:
        follower.apply([COMPILED.vocabulary.eos_ids[0]], logits)
    assert follower.error is raised.value
    assert np.flatnonzero(np.isfinite(logits.reshape(-1))).tolist() == list(COMPILED.vocabulary.eos_ids)
