"""Budgets of grammars with ``lexing="longest"``: each text is complete in time, and masks say what a matcher takes."""

from __future__ import annotations

import random

import lark
import pytest
from lark.indenter import PythonIndenter

import constrain
from bench.fuzz import lexing
from constrain.engine.conditions.budget import stack_budget, stack_completions
from constrain.engine.history import Place
from constrain.engine.parser import configurations
from tests.engine.test_stack_completions import BYTES, JSON, LIST, PYTHON, compiled

END = 256


def allowed(matcher: constrain.Matcher) -> list[int]:
    mask = constrain.allocate_token_bitmask(1, BYTES.size)
    matcher.fill_next_token_bitmask(mask)
    return [token for token in range(BYTES.size) if mask[0, token >> 5] >> (token & 31) & 1]


def generated(grammar: constrain.CompiledGrammar, budget: int, rng: random.Random) -> bytes:
    """A random text within a budget; at each place what the mask says is what is taken, as are all of the grammar's."""
    matcher, free, text = constrain.Matcher(grammar, max_tokens=budget), constrain.Matcher(grammar), b""
    for _ in range(budget + 1):
        tokens = allowed(matcher)
        assert tokens, text
        assert set(tokens) <= set(allowed(free)), text
        for token in {*tokens, *rng.sample(range(BYTES.size), 20)}:
            assert matcher.fork().accept_token(token) == (token in tokens), (text, token)
        if tokens == [END] or (END in tokens and rng.random() < 0.1):
            assert matcher.is_accepting()
            return text
        token = rng.choice([token for token in tokens if token != END])
        assert matcher.accept_token(token)
        assert free.accept_token(token)
        text += bytes([token])
    raise AssertionError(f"{text!r} is not complete in {budget} tokens")


@pytest.mark.parametrize("budget", [3, 4, 5, 8, 20, 80])
def test_texts_are_complete_in_time(budget: int) -> None:
    rng = random.Random(budget)
    for rules in (LIST, JSON):
        grammar = compiled(rules)
        for _ in range(4):
            lark.Lark(rules, parser="lalr").parse(generated(grammar, budget, rng).decode("latin-1"))


@pytest.mark.parametrize("budget", [1, 4, 12, 60])
def test_programs_are_complete_in_time(budget: int) -> None:
    grammar = compiled(PYTHON, start="file_input", indenter=PythonIndenter)
    generated(grammar, budget, random.Random(budget))


@pytest.mark.parametrize("seed", range(20))
def test_random_grammars(seed: int) -> None:
    rng = random.Random(seed)
    try:
        grammar = compiled(lexing.random_grammar(rng))
    except constrain.GrammarError:
        return
    shortest = constrain.Matcher(grammar).tokens_to_finish()
    for budget in (shortest, shortest + 1, shortest + 5):
        generated(grammar, budget, rng)
    if shortest:
        with pytest.raises(constrain.ConstrainError, match="the shortest text of the grammar that is known takes"):
            constrain.Matcher(grammar, max_tokens=shortest - 1)


def test_far_from_the_end_nothing_is_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    grammar = compiled(JSON)
    matcher, free = constrain.Matcher(grammar, max_tokens=1_000), constrain.Matcher(grammar)
    monkeypatch.setattr(stack_budget.StackTokenCosts, "completion", None)
    for token in b'[[{"a": [1, 2':
        assert allowed(matcher) == allowed(free)
        assert matcher.accept_token(token)
        assert free.accept_token(token)


def test_with_more_tokens_left_nothing_depends_on_a_search_that_was_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    grammar = compiled(JSON)
    with monkeypatch.context() as patch:
        patch.setattr(stack_budget.StackTokenCosts, "completion", lambda self, place, most: None)
        assert allowed(constrain.Matcher(grammar, max_tokens=6)) == [ord("0")]
    ample, free = constrain.Matcher(grammar, max_tokens=100), constrain.Matcher(grammar)
    assert all(ample.fork().accept_token(token) for token in allowed(free))
    assert allowed(ample) == allowed(free)


def test_a_search_that_was_given_up_is_not_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stack_completions, "_STEPS_PER_BYTE", 0)
    matcher = constrain.Matcher(compiled(JSON), max_tokens=100)
    assert matcher.accept_bytes(b"[[")
    completions = stack_completions.stack_completions(matcher.compiled)
    for _ in range(2):
        with pytest.raises(stack_completions.SearchLimitError):
            completions.tokens(matcher, 0)
        monkeypatch.setattr(completions, "_search", None)


def test_a_mask_takes_no_more_than_so_many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not looked at is not accepted either."""
    monkeypatch.setattr(stack_budget, "_EFFORT_OF_MASK", 0)
    grammar = compiled(JSON)
    matcher = constrain.Matcher(grammar, max_tokens=6)
    completions = stack_completions.stack_completions(grammar)
    steps = completions.steps
    assert len(allowed(matcher)) == 1
    assert completions.steps == steps
    generated(grammar, 6, random.Random(1))


def test_bytes_cost_what_is_said_and_are_given_back() -> None:
    matcher = constrain.Matcher(compiled(LIST), max_tokens=6)
    assert not matcher.accept_bytes(b"[12", tokens=6)
    assert not matcher.fork().accept_bytes(b"[1,2,3")
    assert matcher.accept_bytes(b"[1", tokens=5)
    assert allowed(matcher) == [ord("]")]
    assert matcher.completion() == [ord("]")]
    matcher.rollback(1)
    assert matcher.accept_bytes(b"[1,")
    assert ord("]") not in allowed(matcher)
    assert matcher.accept_tokens(list(b"2"))
    assert matcher.accept_tokens(list(b"3]"))
    assert matcher.is_accepting()
    assert allowed(matcher) == [END]
    twin = constrain.Matcher(compiled(LIST), max_tokens=4).fork()
    assert twin.accept_bytes(b"[12")
    assert allowed(twin) == [ord("]")]


def test_where_memory_ends_a_search_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forgetting gives all other numbers, in the middle of a search too."""
    original, pushed, each = constrain.CompiledGrammar.run_at, 0, 1_000

    def run_at(self: constrain.CompiledGrammar, place: Place, kernel: object, *arguments: object) -> int:
        nonlocal pushed
        pushed += kernel is configurations.push_byte
        if pushed % each == 1:
            pushed += 1
            self._collect(64)
        return original(self, place, kernel, *arguments)

    monkeypatch.setattr(constrain.CompiledGrammar, "run_at", run_at)
    for seed in range(3):
        grammar = compiled(JSON)
        pushed = 0
        generated(grammar, 12, random.Random(seed))
        assert grammar.generation > 0
    matcher = constrain.Matcher(grammar)
    assert matcher.accept_bytes(b'{"a')
    pushed, each = 0, 2
    with pytest.raises(constrain.LimitError, match="within the limit on memory"):
        matcher.completion()
    pushed, each = 0, 1_000
    assert bytes(matcher.completion()) == b'":0}'


def test_where_memory_ends_in_an_estimate_no_old_numbers_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an estimate needs to know of an expression may be the last that there is room for."""
    matcher = constrain.Matcher(compiled(JSON), max_tokens=100)
    assert matcher.accept_bytes(b'[[{"a')
    completions = stack_completions.stack_completions(matcher.compiled)
    original = constrain.CompiledGrammar._run

    def run(self: constrain.CompiledGrammar, kernel: object, *arguments: object) -> int:
        self._collect(64)
        return original(self, kernel, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(constrain.CompiledGrammar, "_run", run)
        completions._forget()
        with pytest.raises(constrain.LimitError, match="within the limit on memory"):
            completions.estimate(matcher)
    assert completions.estimate(matcher) == len(b'":0}]]')
