"""The matcher: accepting, refusing, rolling back, forking, ending - against a list of what was accepted."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from naive import NaiveRecognizer, allowed_tokens, forced_bytes, tokens_of
from strategies import Tokens, viable_grammars, vocabularies, words

import constrain
from constrain.grammar.ir import GrammarBuilder, GrammarIR
from constrain.grammar.languages.regular import EMPTY, literal, repeat, union

EOS = None
"""In the model: the step that ended the generation."""


def compile_ir(ir: GrammarIR, vocabulary: Tokens) -> constrain.CompiledGrammar:
    compiler = constrain.GrammarCompiler(constrain.Vocabulary(**vocabulary.as_arguments()))
    return compiler.compile(constrain.Grammar(ir))


def current_mask(matcher: constrain.Matcher, size: int) -> set[int]:
    mask = constrain.allocate_token_bitmask(1, size)
    mask[:] = -1
    matcher.fill_next_token_bitmask(mask, 0)
    return tokens_of(mask[0], size)


class MatcherMachine(RuleBasedStateMachine):
    """The model is the list of accepted steps; every answer follows from the bytes in it."""

    matcher: constrain.Matcher

    @initialize(ir=viable_grammars(), vocabulary=vocabularies(complete=True))
    def begin(self, ir: GrammarIR, vocabulary: Tokens) -> None:
        self.vocabulary = vocabulary
        self.size = len(vocabulary.tokens)
        self.naive = NaiveRecognizer(ir)
        self.matcher = constrain.Matcher(compile_ir(ir, vocabulary))
        self.steps: list[bytes | None] = []
        self.others: list[tuple[constrain.Matcher, list[bytes | None]]] = []

    def said(self) -> bytes:
        return b"".join(step for step in self.steps if step is not None)

    def has_ended(self) -> bool:
        return bool(self.steps) and self.steps[-1] is EOS

    def allowed(self) -> set[int]:
        if self.has_ended():
            return set()
        data = self.said()
        assert self.naive.push_bytes(data)
        result = allowed_tokens(self.naive, self.vocabulary)
        self.naive.pop(len(data))
        return result

    @rule(choice=st.integers(0, 99))
    def accept_allowed_token(self, choice: int) -> None:
        onward = sorted(self.allowed().difference(self.vocabulary.eos_ids))
        if onward:
            token = onward[choice % len(onward)]
            assert self.matcher.accept_token(token) is True
            self.steps.append(self.vocabulary.tokens[token])

    @rule(choice=st.integers(0, 99))
    def accept_forbidden_token(self, choice: int) -> None:
        forbidden = sorted(set(range(self.size)) - self.allowed())
        if forbidden:
            assert self.matcher.accept_token(forbidden[choice % len(forbidden)]) is False

    @rule(choice=st.integers(0, 99))
    def accept_eos(self, choice: int) -> None:
        token = self.vocabulary.eos_ids[choice % len(self.vocabulary.eos_ids)]
        fits = token in self.allowed()
        assert self.matcher.accept_token(token) is fits
        if fits:
            self.steps.append(EOS)

    @precondition(lambda self: not self.has_ended())
    @rule(data=words(4))
    def accept_bytes(self, data: bytes) -> None:
        fits = self.naive.is_viable_prefix(self.said() + data)
        assert self.matcher.accept_bytes(data) is fits
        if fits:
            self.steps.append(data)

    @precondition(lambda self: self.has_ended())
    @rule(data=words(4).filter(bool))
    def accept_bytes_after_the_end(self, data: bytes) -> None:
        assert self.matcher.accept_bytes(data) is False

    @rule(count=st.integers(0, 4))
    def rollback(self, count: int) -> None:
        if count > len(self.steps):
            with pytest.raises(constrain.ConstrainError):
                self.matcher.rollback(count)
        else:
            self.matcher.rollback(count)
            del self.steps[len(self.steps) - count :]

    @rule()
    def reset(self) -> None:
        self.matcher.reset()
        self.steps = []

    @rule()
    def fork(self) -> None:
        self.others.append((self.matcher, self.steps))
        self.matcher = self.matcher.fork()
        self.steps = list(self.steps)

    @precondition(lambda self: self.others)
    @rule(choice=st.integers(0, 9))
    def go_on_with_another(self, choice: int) -> None:
        index = choice % len(self.others)
        self.others[index], (self.matcher, self.steps) = (self.matcher, self.steps), self.others[index]

    @invariant()
    def answers_follow_from_the_bytes(self) -> None:
        assert current_mask(self.matcher, self.size) == self.allowed()
        assert self.matcher.is_terminated() is self.has_ended()
        if not self.has_ended():
            data = self.said()
            assert self.matcher.is_accepting() is self.naive.accepts(data)
            assert self.naive.push_bytes(data)
            assert self.matcher.forced_bytes() == forced_bytes(self.naive)
            self.naive.pop(len(data))


MatcherMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=20)
TestMatcherMachine = MatcherMachine.TestCase


# -- plain cases -------------------------------------------------------------------------------

TOKENS = Tokens([b"a", b"b", b"ab", b"c", b"", b"</s>", b"<pad>"], [5], [6])


def matcher_of(*texts: str) -> constrain.Matcher:
    builder = GrammarBuilder()
    return constrain.Matcher(compile_ir(builder.finish(builder.lexeme(union(*map(literal, texts)))), TOKENS))


def test_after_the_end_nothing_is_allowed() -> None:
    matcher = matcher_of("ab")
    assert matcher.accept_token(2)
    assert matcher.is_accepting()
    assert not matcher.is_terminated()
    assert matcher.accept_token(5)
    assert matcher.is_terminated()
    assert current_mask(matcher, 7) == set()
    assert not any(matcher.accept_token(token) for token in range(7))
    assert matcher.forced_bytes() == b""
    matcher.rollback(1)
    assert not matcher.is_terminated()
    assert current_mask(matcher, 7) == {4, 5}
    assert matcher.accept_token(5)
    matcher.reset()
    assert not matcher.is_terminated()
    assert current_mask(matcher, 7) == {0, 2, 4}
    with pytest.raises(constrain.ConstrainError):
        matcher.rollback(1)


def test_eos_too_early_is_refused() -> None:
    matcher = matcher_of("ab")
    assert matcher.accept_token(5) is False
    assert not matcher.is_terminated()
    assert matcher.accept_token(0)
    assert matcher.accept_token(5) is False
    assert current_mask(matcher, 7) == {1, 4}


@pytest.mark.parametrize("token", [-1, 7, 8, 1 << 31, 1 << 70, -(1 << 70)])
def test_token_id_out_of_range(token: int) -> None:
    matcher = matcher_of("ab")
    assert matcher.accept_token(0)
    with pytest.raises(constrain.ConstrainError, match=str(token)):
        matcher.accept_token(token)
    assert current_mask(matcher, 7) == {1, 4}


@pytest.mark.parametrize("count", [-1, 3])
def test_rollback_out_of_range(count: int) -> None:
    matcher = matcher_of("abc")
    assert matcher.accept_token(0)
    assert matcher.accept_bytes(b"b")
    with pytest.raises(constrain.ConstrainError):
        matcher.rollback(count)
    assert current_mask(matcher, 7) == {3, 4}
    matcher.rollback(2)
    assert current_mask(matcher, 7) == {0, 2, 4}


def test_refused_token_leaves_no_trace() -> None:
    matcher = matcher_of("abab", "abc")
    assert matcher.accept_token(0)
    assert not matcher.accept_token(2), "its first byte fits no more than its second"
    assert matcher.accept_token(1)
    assert not matcher.accept_bytes(b"abb"), "two of its bytes fit"
    assert current_mask(matcher, 7) == {0, 2, 3, 4}
    matcher.rollback(2)
    with pytest.raises(constrain.ConstrainError):
        matcher.rollback(1)


def test_fork_goes_its_own_way() -> None:
    matcher = matcher_of("abab", "abc")
    assert matcher.accept_token(2)
    fork = matcher.fork()
    assert fork.accept_token(3)
    assert fork.accept_token(5)
    assert matcher.accept_token(0)
    assert current_mask(matcher, 7) == {1, 4}
    assert fork.is_terminated()
    fork.rollback(3)
    assert current_mask(fork, 7) == {0, 2, 4}
    assert current_mask(matcher, 7) == {1, 4}
    matcher.reset()
    assert fork.accept_token(0)
    assert current_mask(fork, 7) == {1, 4}


@pytest.mark.parametrize(
    ("texts", "said", "forced"),
    [
        (["abc"], b"", b"abc"),
        (["abc"], b"ab", b"c"),
        (["abc"], b"abc", b""),
        (["abc", "abd"], b"", b"ab"),
        (["ab", "abc"], b"", b"ab"),
        (["ab", "abc"], b"ab", b""),
        (["", "abc"], b"", b""),
        (["é", "è"], b"", b"\xc3"),
        (["a", "b"], b"", b""),
    ],
)
def test_forced_bytes(texts: list[str], said: bytes, forced: bytes) -> None:
    matcher = matcher_of(*texts)
    assert matcher.accept_bytes(said)
    assert matcher.forced_bytes() == forced
    assert matcher.forced_bytes() == forced, "asking changes nothing"
    assert matcher.is_accepting() is (said.decode() in texts)


def test_forced_bytes_of_a_long_string() -> None:
    matcher = matcher_of("ab" * 5_000 + "c", "ab" * 5_000 + "d")
    assert matcher.forced_bytes() == b"ab" * 5_000


@settings(max_examples=50)
@given(viable_grammars(), st.lists(st.integers(0, 99), min_size=3, max_size=6))
def test_forced_bytes_of_random_grammars(ir: GrammarIR, walk: list[int]) -> None:
    naive = NaiveRecognizer(ir)
    matcher = constrain.Matcher(compile_ir(ir, TOKENS))
    for choice in walk:
        assert matcher.forced_bytes() == forced_bytes(naive)
        following = naive.next_bytes()
        if not following:
            break
        byte = following[choice % len(following)]
        assert matcher.accept_bytes(bytes((byte,)))
        assert naive.push(byte)


# -- compiling ---------------------------------------------------------------------------------


def endless() -> GrammarIR:
    builder = GrammarBuilder()
    start = builder.nonterminal("start")
    builder.add(start, (builder.lexeme(literal("a")), start))
    return builder.finish(start)


def nothing() -> GrammarIR:
    builder = GrammarBuilder()
    return builder.finish(builder.lexeme(EMPTY))


def no_production() -> GrammarIR:
    builder = GrammarBuilder()
    return builder.finish(builder.nonterminal("start"))


@pytest.mark.parametrize("grammar", [endless, nothing, no_production], ids=lambda grammar: grammar.__name__)
def test_empty_language_is_an_error(grammar: Any) -> None:
    with pytest.raises(constrain.GrammarError):
        compile_ir(grammar(), TOKENS)


def test_empty_language_is_reported_in_the_front_ends_terms() -> None:
    builder = GrammarBuilder()
    ir = builder.finish(
        builder.lexeme(EMPTY), make_error=lambda reason, place: constrain.SchemaError(reason, "#/properties/x")
    )
    with pytest.raises(constrain.SchemaError, match="#/properties/x"):
        compile_ir(ir, TOKENS)


def test_only_the_empty_string() -> None:
    matcher = matcher_of("")
    assert matcher.is_accepting()
    assert current_mask(matcher, 7) == {4, 5}
    assert matcher.accept_token(5)
    assert matcher.is_terminated()


def test_tokens_that_cannot_say_it() -> None:
    """The contract is about bytes: a mask may be empty of tokens where the vocabulary lacks what is needed."""
    matcher = matcher_of("xyz")
    assert current_mask(matcher, 7) == {4}
    assert matcher.accept_bytes(b"xyz")
    assert current_mask(matcher, 7) == {4, 5}


def test_many_steps_and_back() -> None:
    builder = GrammarBuilder()
    matcher = constrain.Matcher(compile_ir(builder.finish(builder.star(builder.lexeme(literal("ab")))), TOKENS))
    for _ in range(3_000):
        assert matcher.accept_token(0)
        assert matcher.accept_token(1)
    assert matcher.accept_token(0)
    assert current_mask(matcher, 7) == {1, 4}
    matcher.rollback(6_001)
    assert current_mask(matcher, 7) == {0, 2, 4, 5}
    with pytest.raises(constrain.ConstrainError):
        matcher.rollback(1)


def test_same_grammar_is_compiled_once() -> None:
    compiler = constrain.GrammarCompiler(constrain.Vocabulary(**TOKENS.as_arguments()))
    builder = GrammarBuilder()
    grammar = constrain.Grammar(builder.finish(builder.lexeme(literal("ab"))))
    assert compiler.compile(grammar) is compiler.compile(grammar)


def test_cache_is_bounded_in_bytes() -> None:
    """What was thrown out still works, and comes back equal."""
    limit = 1 << 20
    compiler = constrain.GrammarCompiler(constrain.Vocabulary(**TOKENS.as_arguments()), cache_limit_bytes=limit)
    builder = GrammarBuilder()
    first = constrain.Grammar(builder.finish(builder.lexeme(literal("abc"))))
    compiled = compiler.compile(first)
    matcher = constrain.Matcher(compiled)
    for count in range(2, 60):
        builder = GrammarBuilder()
        other = constrain.Grammar(builder.finish(builder.lexeme(repeat(literal("ab"), count, count + 1_000))))
        used = constrain.Matcher(compiler.compile(other))
        assert used.accept_bytes(b"ab" * count)
        assert used.is_accepting()
    assert compiler.compile(first) is not compiled
    assert matcher.accept_bytes(b"ab")
    assert current_mask(matcher, 7) == {3, 4}
