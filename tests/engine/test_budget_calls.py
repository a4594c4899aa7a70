"""Budgets and everything else that a matcher does: going back, forks, batches, bytes, errors, forgetting."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import NaiveRecognizer, tokens_of
from naive_completion import Completer
from strategies import viable_grammars, words

import constrain
from constrain.engine.conditions.budget import budget as budget_module
from constrain.engine.conditions.budget import completions_with_keys, rule_budget
from constrain.engine.conditions.budget.completions_with_keys import without_repeated_keys
from constrain.grammar.ir import GrammarBuilder, GrammarIR
from constrain.grammar.languages.regular import byte_range, literal, repeat
from tests.masks import mask_of

BYTES = [bytes((byte,)) for byte in range(256)]
ENDS = [b"</s>"]


def compile_with(grammar: GrammarIR | constrain.Grammar, tokens: list[bytes]) -> constrain.CompiledGrammar:
    vocabulary = constrain.Vocabulary([*tokens, *ENDS], eos_ids=[len(tokens)])
    grammar = grammar if isinstance(grammar, constrain.Grammar) else constrain.Grammar(grammar)
    return constrain.GrammarCompiler(vocabulary).compile(grammar)


@settings(max_examples=60)
@given(ir=viable_grammars(), texts=st.lists(words(4), min_size=1, max_size=4))
def test_with_single_bytes_the_completion_is_the_shortest_string(ir: GrammarIR, texts: list[bytes]) -> None:
    compiled = compile_with(ir, BYTES)
    for text in [b"", *texts]:
        naive = NaiveRecognizer(ir)
        matcher = constrain.Matcher(compiled)
        if naive.push_bytes(text):
            assert matcher.accept_bytes(text)
            assert matcher.tokens_to_finish() == len(Completer(naive).shortest())
            completion = bytes(matcher.completion())
            assert naive.push_bytes(completion)
            assert naive.is_accepting()


@pytest.mark.parametrize("seed", range(12))
def test_an_ample_budget_is_as_one_that_is_asked(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Masks, steps and what is left, from many tokens down to none."""
    choose = random.Random(seed)
    schemas: list[Any] = [
        {"type": "array", "items": {"enum": ["ab", 1, []]}},
        {"type": "object", "additionalProperties": {"enum": [1, {}]}},
        {"type": "object", "properties": {"a": {"$ref": "#"}, "b": {"type": "string"}}, "required": ["b"]},
    ]
    grammar = constrain.Grammar.from_json_schema(schemas[seed % 3], whitespace="compact")
    text = [bytes([byte]) for byte in range(32, 127)]
    compiled = compile_with(grammar, [*text, b'{"', b'":', b'",', b'","', b'"}', b"ab", b"[["])
    matchers = [constrain.Matcher(compiled, choose.randrange(140, 260)) for _ in range(3)]
    was_ample = False
    while matchers:
        twins = [matcher.fork() for matcher in matchers]
        allowed = [mask_of(matcher) for matcher in matchers]
        batch = constrain.allocate_token_bitmask(len(matchers), compiled.vocabulary.size)
        constrain.fill_next_token_bitmask_batch(matchers, batch)
        was_ample = was_ample or any(matcher._has_plain_mask() for matcher in matchers)
        # Braces and brackets more often than characters, and ends as late as possible.
        tokens = [
            choose.choice(sorted(each - {compiled.vocabulary.eos_ids[0]} or each, key=lambda _: choose.random())[:3])
            for each in allowed
        ]
        wrong = [choose.randrange(compiled.vocabulary.size) for _ in matchers]
        with monkeypatch.context() as patch:
            patch.setattr(budget_module.Budget, "is_ample", lambda *args: False)
            assert [mask_of(twin) for twin in twins] == allowed
            assert [tokens_of(row, compiled.vocabulary.size) for row in batch] == allowed
            assert [twin.fork().accept_token(token) for twin, token in zip(twins, wrong, strict=True)] == [
                token in each for token, each in zip(wrong, allowed, strict=True)
            ]
            assert all(twin.accept_token(token) for twin, token in zip(twins, tokens, strict=True))
        assert [matcher.fork().accept_token(token) for matcher, token in zip(matchers, wrong, strict=True)] == [
            token in each for token, each in zip(wrong, allowed, strict=True)
        ]
        if choose.random() < 0.5:
            assert all(constrain.accept_token_batch(matchers, tokens))
        else:
            assert all(matcher.accept_token(token) for matcher, token in zip(matchers, tokens, strict=True))
        for matcher, twin in zip(matchers, twins, strict=True):
            assert (matcher.steps, matcher.tokens_left) == (twin.steps, twin.tokens_left)
            assert matcher._note & budget_module.NOTE
        if choose.random() < 0.1:
            back = choose.randrange(1 + min(matcher.steps for matcher in matchers) // 2)
            left = [matcher.tokens_left for matcher in matchers]
            for matcher, before in zip(matchers, left, strict=True):
                if not matcher.is_terminated():
                    assert before is not None
                    matcher.rollback(back)
                    assert matcher.tokens_left == before + back
        matchers = [matcher for matcher in matchers if not matcher.is_terminated()]
    assert was_ample
    little = constrain.Matcher(compiled, 20)
    assert mask_of(little)
    assert not little._has_plain_mask()


PAIRS = [b"[", b"]", b"7", b",", b"[[", b"]]", b"],[", b"7]", b"[7", b"77", b" ", b"  "]


def nested() -> constrain.CompiledGrammar:
    """Lists of lists of numbers, with blanks to ignore."""
    builder = GrammarBuilder()
    value = builder.nonterminal("value")
    builder.add(value, (builder.lexeme(repeat(byte_range(0x30, 0x39), 1, 3)),))
    items = builder.sequence((value, builder.star(builder.sequence((builder.lexeme(literal(",")), value)))))
    builder.add(value, (builder.lexeme(literal("[")), items, builder.lexeme(literal("]"))))
    return compile_with(builder.finish(value, ignore=[builder.lexeme(literal(" "))]), PAIRS)


@settings(max_examples=60)
@given(st.data())
def test_any_order_of_calls(data: st.DataObject) -> None:
    """Each matcher against a new one that took the same steps."""
    compiled = nested()
    most = data.draw(st.integers(1, 12))
    pairs: list[tuple[constrain.Matcher, list[Any]]] = [(constrain.Matcher(compiled, max_tokens=most), [])]
    choose = random.Random(data.draw(st.integers(0, 2**32)))
    for _ in range(data.draw(st.integers(10, 40))):
        matcher, steps = choose.choice(pairs)
        action = choose.choice(["token", "token", "token", "token", "bytes", "back", "fork", "reset", "end", "forget"])
        if action == "token":
            allowed = sorted(mask_of(matcher) - {len(PAIRS)})
            if allowed:
                steps.append(choose.choice(allowed))
                assert matcher.accept_token(steps[-1])
        elif action == "bytes":
            piece = bytes(choose.choices(b"[],7 ", k=choose.randrange(4)))
            tokens = choose.choice([None, None, 0, 1, 2])
            if matcher.accept_bytes(piece, tokens):
                steps.append((piece, tokens))
        elif action == "back":
            count = choose.randrange(len(steps) + 1)
            matcher.rollback(count)
            del steps[len(steps) - count :]
        elif action == "fork" and len(pairs) < 4:
            pairs.append((matcher.fork(), list(steps)))
        elif action == "reset":
            matcher.reset()
            steps.clear()
        elif action == "end":
            if matcher.accept_token(len(PAIRS)):
                steps.append(len(PAIRS))
        elif action == "forget":
            with compiled.lock:
                compiled._collect(0)
        for one, taken in pairs:
            fresh = constrain.Matcher(compiled, max_tokens=most)
            for step in taken:
                assert fresh.accept_bytes(*step) if isinstance(step, tuple) else fresh.accept_token(step)
            assert mask_of(one) == mask_of(fresh)
            assert one.tokens_left == fresh.tokens_left
            assert one.tokens_left is not None
            assert one.tokens_left >= 0
            assert one.completion() == fresh.completion()
            assert one.tokens_to_finish() <= one.tokens_left
            assert mask_of(one) or one.is_terminated()


def test_a_batch_keeps_to_budgets() -> None:
    compiled = nested()
    matchers = [constrain.Matcher(compiled, max_tokens=most) for most in (None, 1, 2, 3, None, 9)]
    for matcher in matchers:
        mask_of(matcher)
    for _ in range(3):
        mask = constrain.allocate_token_bitmask(len(matchers), len(PAIRS) + 1)
        mask[:] = -1
        constrain.fill_next_token_bitmask_batch(matchers, mask, threads=2)
        found = [tokens_of(row, len(PAIRS) + 1) for row in mask]
        assert found == [mask_of(matcher) for matcher in matchers]
        assert found[1] < found[0]
        for matcher in matchers[2:]:
            if matcher.tokens_left != 0:
                assert matcher.accept_token(min(mask_of(matcher)))


def test_when_the_budget_is_used_up_only_an_end_token_is_allowed() -> None:
    matcher = constrain.Matcher(nested(), max_tokens=1)
    assert mask_of(matcher) == {2, 9}
    assert matcher.accept_token(9)
    assert (matcher.max_tokens, matcher.tokens_left) == (1, 0)
    assert mask_of(matcher) == {len(PAIRS)}
    assert not matcher.accept_token(2)
    assert not matcher.accept_bytes(b"7")
    assert matcher.accept_bytes(b"")
    assert matcher.accept_token(len(PAIRS))
    assert mask_of(matcher) == set()
    assert (matcher.tokens_to_finish(), matcher.completion()) == (0, [])
    matcher.rollback(3)
    assert matcher.tokens_left == 1
    assert mask_of(matcher) == {2, 9}


def test_bytes_count_as_the_fewest_tokens_or_as_is_said() -> None:
    matcher = constrain.Matcher(nested(), max_tokens=6)
    assert matcher.accept_bytes(b"[[77],[7")
    assert matcher.tokens_left == 2  # "[[", "77", "],[", "7"
    matcher.rollback()
    assert matcher.tokens_left == 6
    assert not matcher.accept_bytes(b"[[77],[7", tokens=6)
    assert matcher.accept_bytes(b"[[77],[7", tokens=5)
    assert matcher.tokens_left == 1
    assert matcher.completion() == [5]
    other = constrain.Matcher(nested(), max_tokens=6)
    assert not other.accept_bytes(b"8")  # no token has it
    assert other.accept_bytes(b"8", tokens=1)
    with pytest.raises(constrain.ConstrainError, match="tokens must be"):
        other.accept_bytes(b"8", tokens=-1)


def test_bytes_that_spell_the_plan_are_taken_as_its_tokens_are() -> None:
    grammar = constrain.Grammar.from_json_schema({"type": "object", "required": ["c"]}, whitespace="compact")
    compiled = compile_with(grammar, [*BYTES, b'{"', b'":'])
    least = constrain.Matcher(compiled).tokens_to_finish()
    matcher = constrain.Matcher(compiled, max_tokens=least)
    for token in constrain.Matcher(compiled).completion():
        assert token in mask_of(matcher)
        assert not matcher.fork().accept_bytes(compiled.vocabulary.tokens[token], tokens=2)
        assert matcher.accept_bytes(compiled.vocabulary.tokens[token], tokens=1)
    assert matcher.is_accepting()
    assert matcher.tokens_left == 0


def test_bytes_leave_enough_for_keys_that_differ() -> None:
    """After bytes at any price the text can be completed, or they are refused."""
    schema = {
        "type": "object",
        "minProperties": 2,
        "propertyNames": {"pattern": "^(a{5}|b{40})$"},
        "additionalProperties": {"const": 1},
    }
    grammar = constrain.Grammar.from_json_schema(schema, whitespace="compact", spelling="canonical")
    compiled = compile_with(grammar, BYTES)
    least = constrain.Matcher(compiled).tokens_to_finish()
    assert least == len('{"aaaaa":1,"":1}') + 40
    for most, price in itertools.product((least, least + 3, least + 50), (1, 2, 4, 5, 54, 55)):
        matcher = constrain.Matcher(compiled, max_tokens=most)
        assert matcher.accept_bytes(b"{", tokens=price) == (most - price >= least - 1)
        assert matcher.tokens_to_finish() <= matcher.tokens_left  # type: ignore[operator]
    matcher = constrain.Matcher(compiled, max_tokens=least)
    assert matcher.accept_bytes(b'{"aaaaa":1,"')
    assert not matcher.fork().accept_bytes(b"aaaaa")
    assert not matcher.fork().accept_bytes(b"b", tokens=2)
    assert matcher.accept_bytes(b"b" * 40 + b'":1}')
    assert matcher.is_accepting()


def test_where_a_search_alone_knows_the_way() -> None:
    """The shortest string cannot be spelled; the matcher keeps to the plan until it has other ways."""
    compiled = compile_with(constrain.Grammar.from_regex("(de|ab+c(xy)*)"), [b"d", b"a", b"bbb", b"c", b"xy", b"bb"])
    assert constrain.Matcher(compiled).completion() in ([1, 2, 3], [1, 5, 3])
    with pytest.raises(constrain.ConstrainError, match="shortest text of the grammar that is known takes 3 tokens"):
        constrain.Matcher(compiled, max_tokens=2)
    matcher = constrain.Matcher(compiled, max_tokens=3)
    assert mask_of(matcher) == {1}
    assert not matcher.accept_token(0)
    assert matcher.accept_token(1)
    assert mask_of(matcher) == {2, 5}
    assert matcher.accept_token(5)
    assert mask_of(matcher) == {3}
    matcher.rollback(2)
    assert matcher.accept_token(1)
    assert matcher.accept_token(2)
    assert matcher.accept_token(3)
    assert matcher.is_accepting()


def test_large_vocabularies_keep_to_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no search is made for each token, a plan that was found at the start is enough for the end."""
    monkeypatch.setattr(rule_budget, "_SMALL", 0)
    compiled = compile_with(constrain.Grammar.from_regex("(de|ab+c(xy)*)"), [b"d", b"a", b"bbb", b"c", b"xy", b"bb"])
    for seed in range(20):
        choose = random.Random(seed)
        matcher = constrain.Matcher(compiled, max_tokens=3 + seed % 4)
        twin = matcher.fork()
        while not matcher.is_accepting():
            token = choose.choice(sorted(mask_of(matcher)))
            assert matcher.accept_token(token)
            if choose.random() < 0.3:
                back = choose.randrange(matcher.steps + 1)
                matcher.rollback(back)
        assert matcher.tokens_left is not None
        assert matcher.tokens_left >= 0
        assert mask_of(twin) == {1}


def test_wrong_budgets() -> None:
    compiled = nested()
    for wrong in (-1, 1.5, "7"):
        with pytest.raises(constrain.ConstrainError, match="max_tokens must be"):
            constrain.Matcher(compiled, max_tokens=wrong)  # type: ignore[arg-type]
    with pytest.raises(constrain.ConstrainError, match="takes 1 token"):
        constrain.Matcher(compiled, max_tokens=0)
    assert constrain.Matcher(compiled, max_tokens=np.int64(3)).tokens_left == 3
    assert (constrain.Matcher(compiled).max_tokens, constrain.Matcher(compiled).tokens_left) == (None, None)


def test_texts_that_the_vocabulary_cannot_spell() -> None:
    compiled = compile_with(constrain.Grammar.from_regex("(abc)+"), [b"ab", b"a"])
    with pytest.raises(constrain.ConstrainError, match="no text of the grammar was found"):
        constrain.Matcher(compiled, max_tokens=100)
    matcher = constrain.Matcher(compiled)
    assert matcher.accept_token(0)
    with pytest.raises(constrain.ConstrainError, match="no way to complete the text"):
        matcher.completion()


def test_long_completions_take_bounded_time_and_memory() -> None:
    """A least length of a million is not walked through."""
    tokens = [*BYTES, b"a" * 64]
    compiled = compile_with(constrain.Grammar.from_regex("[ab]{1000000}"), tokens)
    with pytest.raises(constrain.ConstrainError, match="takes 1000000 tokens"):
        constrain.Matcher(compiled, max_tokens=1000)
    matcher = constrain.Matcher(compiled, max_tokens=1_000_001)
    assert matcher.accept_token(97)
    assert matcher.accept_token(256)
    assert not matcher.accept_token(99)
    assert matcher.tokens_left == 999_999
    assert compiled.nbytes < 32 << 20
    # A completion that can be walked through is cut into tokens.
    shorter = compile_with(constrain.Grammar.from_regex("[ab]{6400}"), tokens)
    assert constrain.Matcher(shorter, max_tokens=100).completion() == [256] * 100


def test_deep_nesting_and_long_chains_of_rules() -> None:
    builder = GrammarBuilder()
    value = builder.nonterminal("value")
    builder.add(value, (builder.lexeme(literal("[")), value, builder.lexeme(literal("]"))))
    # Rules that each are just the next one, numbered both ways.
    for step in (1, -1):
        chain = [builder.nonterminal(f"chain{step}{index}") for index in range(300)][::step]
        for one, other in itertools.pairwise(chain):
            builder.add(one, (other,))
        builder.add(value, (chain[0],))
        builder.add(chain[-1], (builder.lexeme(literal("x" if step > 0 else "yy")),))
    compiled = compile_with(builder.finish(value), BYTES)
    matcher = constrain.Matcher(compiled, max_tokens=2001)
    for _ in range(1000):
        assert matcher.accept_token(0x5B)
    assert mask_of(matcher) == {ord("x")}
    assert matcher.tokens_to_finish() == 1001


def test_forgetting_states_changes_nothing() -> None:
    tight, roomy = nested(), nested()
    choose = random.Random(5)
    for most in (1, 5, 40, 300):
        pair = [constrain.Matcher(compiled, max_tokens=most) for compiled in (tight, roomy)]
        while pair[0].tokens_left:
            with tight.lock:
                tight._collect(choose.choice([0, 1, 4]))
            allowed = mask_of(pair[0])
            assert allowed == mask_of(pair[1])
            onward = sorted(allowed - {len(PAIRS)})
            if not onward:
                break
            token = choose.choice(onward)
            back = choose.randrange(1 + min(30, pair[0].steps)) if choose.random() < 0.05 else 0
            for matcher in pair:
                assert matcher.accept_token(token)
                matcher.rollback(back)
        assert pair[0].is_accepting()
    assert tight.generation > 100
    assert roomy.generation == 0


SEVERAL_KEYS: list[dict[str, Any]] = [
    {"type": "object", "minProperties": 2},
    {"properties": {"x": {"minProperties": 2}}},
    {"anyOf": [{"minProperties": 2}]},
    {"type": "array", "items": {"type": "object", "minProperties": 2, "additionalProperties": {"type": "integer"}}},
    {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": {"enum": [1, 23]}}},
    {"type": "object", "minProperties": 7, "additionalProperties": {"type": "null"}},
]


@pytest.mark.parametrize("schema", SEVERAL_KEYS, ids=str)
def test_where_keys_must_differ_masks_hold_what_is_accepted(schema: dict[str, Any]) -> None:
    """Under small budgets and larger ones, at every place of random texts, which are all completed."""
    tokens = [*BYTES, b"[1,2]", b"true", b"{}", b'"a"', b'":', b'","', b'":null', b'"b":1,']
    compiled = compile_with(constrain.Grammar.from_json_schema(schema, whitespace="compact"), tokens)
    likely = {token for token, text in enumerate(tokens) if text.strip(b'"{}[]:,abnul123 tre') == b""}
    least = constrain.Matcher(compiled).tokens_to_finish()
    choose = random.Random(str(schema))
    for most in [least, least + 1, least + 2, *(choose.randint(least, 2 * least + 80) for _ in range(2))]:
        matcher = constrain.Matcher(compiled, max_tokens=most)
        text = b""
        while not matcher.is_terminated():
            mask = mask_of(matcher)
            if choose.random() < 0.2 or matcher.tokens_left is None or matcher.tokens_left < 5:
                assert mask == {token for token in range(len(tokens) + 1) if matcher.fork().accept_token(token)}
            assert matcher.tokens_to_finish() <= matcher.tokens_left  # type: ignore[operator]
            token = choose.choice(sorted(mask & likely) or sorted(mask))
            assert matcher.accept_token(token)
            text += b"" if matcher.is_terminated() else tokens[token]
        found = json.loads(text, object_pairs_hook=_without_repeats)
        assert jsonschema.Draft202012Validator(schema).is_valid(found)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


def test_a_very_long_completion() -> None:
    """Longer than those that are cut into tokens beforehand."""
    compiled = compile_with(constrain.Grammar.from_regex("a{40000}"), [b"a" * length for length in (1, 2, 3, 16)])
    shortest = constrain.Matcher(compiled).completion()
    matcher = constrain.Matcher(compiled, max_tokens=len(shortest))
    assert matcher.completion() == shortest
    for place, token in enumerate(shortest):
        if place % 5000 == 0:
            assert token in mask_of(matcher)
            assert matcher.tokens_to_finish() == len(shortest) - place
        assert matcher.accept_token(token)
    assert mask_of(matcher) == {4}
    with pytest.raises(constrain.ConstrainError, match=f"takes {len(shortest)} tokens"):
        constrain.Matcher(compiled, max_tokens=len(shortest) - 1)


def test_a_limit_is_an_error_and_no_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is met while the completion behind some bytes is spelled out."""
    grammar = constrain.Grammar.from_json_schema({"type": "object", "minProperties": 2}, whitespace="compact")
    matcher = constrain.Matcher(compile_with(grammar, BYTES), max_tokens=40)
    assert matcher.accept_bytes(b'{"a":1')

    def fail(compiled: Any, place: Any, keys: Any) -> list[int] | None:
        if place is matcher:
            return without_repeated_keys(compiled, place, keys)
        raise constrain.LimitError("a pattern takes too long to follow")

    with monkeypatch.context() as patch:
        patch.setattr(completions_with_keys, "without_repeated_keys", fail)
        with pytest.raises(constrain.LimitError):
            matcher.accept_bytes(b',"b":2}')
    assert matcher.accept_bytes(b',"b":2}')
    assert matcher.is_accepting()


def test_what_is_planned_is_allowed_to_its_end() -> None:
    """Also behind a token from which the completion that is known, a longer one, would do too."""
    filled = {"type": "array", "items": {"const": 0}, "minItems": 1}
    schema = {"type": "array", "items": True, "contains": filled, "minContains": 3}
    compiled = compile_with(constrain.Grammar.from_json_schema(schema), [*BYTES, b"[0,0]", b", ", b",[", b"]]"])
    shortest = constrain.Matcher(compiled).tokens_to_finish()
    planned = []
    for most in range(shortest, shortest + 6):
        matcher = constrain.Matcher(compiled, max_tokens=most)
        completion = matcher.completion()
        planned.append(len(completion))
        for token in completion:
            assert token in mask_of(matcher)
            assert matcher.accept_token(token)
        assert matcher.is_accepting()
    assert planned[0] == shortest
