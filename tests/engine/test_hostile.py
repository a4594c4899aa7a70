"""Grammars made to cost much: they stay within bounds, or end in an error that says so."""

from __future__ import annotations

import itertools
import json
import re

import pytest
from finite_texts import verdicts
from masks import by_trying, mask_of

import constrain
from constrain.engine import grammar_tables as tables_module
from constrain.engine.storage.header import BUDGET
from constrain.engine.storage.schemas import CORE_WAITS
from constrain.grammar.ir import GrammarBuilder
from constrain.grammar.json_schema.lexical import texts
from constrain.grammar.json_schema.lexical.strings import EVERY_WAY
from constrain.grammar.languages import regular

LETTERS = constrain.Vocabulary([b"a", b"b", b"!"])


def compile_regex(pattern: str) -> constrain.CompiledGrammar:
    return constrain.CompiledGrammar(constrain.Grammar.from_regex(pattern).ir, LETTERS)


@pytest.mark.parametrize("pattern", ["([ab]{0,400}){0,400}", "(?:[a-z]{1,300}){1,300}!?", "((ab|ba){2,500}){2,500}"])
def test_counters_within_counters_stay_small(pattern: str) -> None:
    compiled = compile_regex(pattern)
    matcher = constrain.Matcher(compiled)
    assert matcher.accept_bytes(b"ab" * 1000)
    # Not the product of the bounds, which is over 90,000 for each byte.
    assert compiled.statistics()["nodes"] < 20_000


@pytest.mark.parametrize("rule", ['"a"?', '"a"? "b"?'])
def test_counted_rules_that_may_be_empty_are_not_stepped_over_in_pairs(rule: str) -> None:
    grammar = constrain.Grammar.from_gbnf(f'root ::= (x "!"?){{0,1000}}\nx ::= y{{0,1000}}\ny ::= {rule}\n')
    compiled = constrain.CompiledGrammar(grammar.ir, LETTERS)
    assert constrain.Matcher(compiled).accept_bytes(b"a" * 20)
    # With 64 of them in one production it was over 2,000 for one nonterminal alone.
    assert compiled._tables.used(CORE_WAITS) < 700


def test_too_much_work_is_an_error_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = compile_regex("a(?=.*b)(?:[ab]{0,20}a){0,20}!")
    matcher = constrain.Matcher(compiled)
    monkeypatch.setattr(tables_module, "_WORK_PER_CALL", 300)
    compiled.ctx[BUDGET] = 0
    with pytest.raises(constrain.LimitError, match="too long to follow"):
        matcher.accept_bytes(b"ab" * 20)
    assert matcher.steps == 0
    monkeypatch.undo()
    assert matcher.accept_bytes(b"ab" * 20)


def test_memory_has_a_limit() -> None:
    builder = GrammarBuilder()
    item = builder.lexeme(regular.literal("a"))
    nested = builder.nonterminal("nested")
    builder.add(nested, [item, nested, builder.lexeme(regular.literal("b"))])
    builder.add(nested, [])
    compiled = constrain.CompiledGrammar(builder.finish(nested), LETTERS, limit_bytes=1_500_000)
    matcher = constrain.Matcher(compiled)
    with pytest.raises(constrain.LimitError, match="raise limit_bytes"):
        matcher.accept_bytes(b"a" * 100_000)
    assert compiled.nbytes <= 1_500_000
    assert matcher.steps == 0


@pytest.mark.parametrize("others", [0, 1])
def test_a_text_that_takes_all_memory_is_soon_given_up(monkeypatch: pytest.MonkeyPatch, others: int) -> None:
    grammar = constrain.Grammar.from_gbnf('root ::= (("a"{0,1000} "b"?){0,1000} "a"?){0,1000}\n')
    compiled = constrain.CompiledGrammar(grammar.ir, LETTERS, limit_bytes=30_000_000)
    matcher, *rest = (constrain.Matcher(compiled) for _ in range(1 + others))
    for other in rest:
        assert other.accept_bytes(b"ab" * 10)
    # Each of them copies all that is alive.
    compactions = []
    compact = type(compiled).compact
    monkeypatch.setattr(type(compiled), "compact", lambda self: compactions.append(compact(self)))
    with pytest.raises(constrain.LimitError, match="raise limit_bytes"):
        matcher.accept_bytes(b"a" * 5_000)
    # What others hold may be what is missing, so then it is tried once more without that.
    assert len(compactions) <= 8 * (1 + others)
    assert matcher.steps == 0
    assert matcher.accept_bytes(b"ab" * 10)
    for other in rest:
        assert mask_of(other) == mask_of(matcher)


def test_expressions_nested_deeply() -> None:
    deep = regular.literal("a")
    for _ in range(5_000):
        deep = regular.complement(regular.intersect(deep, regular.literal("ab")))
    builder = GrammarBuilder()
    compiled = constrain.CompiledGrammar(builder.finish(builder.lexeme(deep)), LETTERS)
    assert constrain.Matcher(compiled).accept_bytes(b"ab!")


@pytest.mark.parametrize("head", [r"(?!;\()", r"(?![^\s,]\()", r"(?!(?=;\())"])
def test_what_a_look_ahead_has_found_is_not_looked_for_again(head: str) -> None:
    """Behind ``;(`` nothing is left, which is known without going through the states of what follows."""
    vocabulary = constrain.Vocabulary([b";", b"(", b"a", b"!"])
    grammar = constrain.Grammar.from_regex(head + r"(?:(?:\W{3,9}){0,12})")
    compiled = constrain.CompiledGrammar(grammar.ir, vocabulary)
    assert not constrain.Matcher(compiled).accept_bytes(b";(")
    assert compiled.statistics()["nodes"] < 4_000


def test_what_a_look_ahead_forbids_is_dead_at_once() -> None:
    # All that goes on from "K\"1x" is forbidden; the sets of Unicode behind it would take too long to look through.
    bodies = {'(?!K"[0-9].)': 'K"1\n;x ', "(?!K.|,)(?=[K;])": "K\n;;x "}
    vocabulary = constrain.Vocabulary([*(bytes((byte,)) for byte in range(256)), b'K"1x', b"Kx", b""], eos_ids=[258])
    for head, text in bodies.items():
        grammar = constrain.Grammar.from_regex(f"{head}(?:(?:a|[^ab]{{2,}});[^\\s,]\\W)")
        compiled = constrain.CompiledGrammar(grammar.ir, vocabulary)
        matcher = constrain.Matcher(compiled)
        assert mask_of(matcher) == by_trying(compiled, b"")
        assert not matcher.accept_bytes(b'K"1x' if '"' in head else b"Kx")
        assert matcher.accept_bytes(text.encode())
        assert matcher.is_accepting()
        assert compiled.statistics()["nodes"] < 10_000


@pytest.mark.parametrize("max_tokens", [None, 300])
def test_a_length_beside_a_pattern_is_not_searched_for_life_and_costs(max_tokens: int | None) -> None:
    pattern = "arn:aws(-[a-z]+)*:kms:[a-z-]+-[0-9]{1}:[0-9]{12}:key/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    vocabulary = constrain.Vocabulary([bytes([byte]) for byte in range(256)] + [b"a" * 9, b"x-" * 20])
    compiled = constrain.CompiledGrammar(
        constrain.Grammar.from_json_schema({"type": "string", "maxLength": 256, "pattern": pattern}).ir, vocabulary
    )
    matcher = constrain.Matcher(compiled, max_tokens=max_tokens)
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    for text in (b'"', b"a", b"rn", b":aws:kms:a-0:000000000000:key/aaaa"):
        assert matcher.accept_bytes(text)
        matcher.fill_next_token_bitmask(mask)
    # The pattern has some hundred derivatives, each with as many lengths as texts have reached; a search for a string
    # of each went through tens of thousands.
    assert compiled.statistics()["nodes"] < 3_000


def test_life_and_costs_beside_a_length_are_exact() -> None:
    vocabulary = constrain.Vocabulary([bytes([byte]) for byte in range(256)] + [b"ab", b"bcc", "\u00e9\u00e9".encode()])
    for most in range(3, 9):
        schema = {"type": "string", "maxLength": most, "pattern": "^[a-c\u00e9]*b[a-c]?c\u00e9*c$"}
        compiled = constrain.CompiledGrammar(
            constrain.Grammar.from_json_schema(schema, spelling="canonical").ir, vocabulary
        )
        for begun in ("", "a", "\u00e9", "\u00e9\u00e9", "ab", "abc", "aaa", "cb\u00e9", "b\u00e9bcc"):
            matcher = constrain.Matcher(compiled, max_tokens=40)
            left = most - len(begun)
            # bcc, what is left of it, or it once more behind an accent.
            fits = left >= 0 and any(
                re.fullmatch(schema["pattern"], begun + "".join(rest))
                for size in range(min(left, 4) + 1)
                for rest in itertools.product("bc\u00e9", repeat=size)
            )
            assert matcher.accept_bytes(b'"' + begun.encode()) == fits, (most, begun)
            if fits:
                text = begun + completion_of(matcher, vocabulary)
                assert re.fullmatch(schema["pattern"], text)
                assert len(text) <= most


def completion_of(matcher: constrain.Matcher, vocabulary: constrain.Vocabulary) -> str:
    """What completes a string, without its closing quote."""
    tokens = matcher.completion()
    assert matcher.tokens_to_finish() == len(tokens)
    return b"".join(vocabulary.tokens[token] for token in tokens).decode().removesuffix('"')


def test_a_least_length_that_the_pattern_has_anyway_says_nothing() -> None:
    # Two bounds beside a pattern take a search for each length.
    pattern = texts.pattern_text("a(b[a-z-]*)?:[0-9]{4}")
    with_least, without = (texts.spelled(texts.every(pattern, texts.Length(low, 20)), EVERY_WAY) for low in (6, 0))
    assert with_least == without


def test_many_alternatives_that_begin_with_one_large_set() -> None:
    vocabulary = constrain.Vocabulary([bytes([byte]) for byte in range(256)])
    pattern = "|".join(rf"\p{{L}}{index}" for index in range(2000)) + "|x|[ab]"
    compiled = constrain.CompiledGrammar(constrain.Grammar.from_regex(pattern).ir, vocabulary)
    for text, ok in (
        ("\u00e917", True),
        ("a", True),
        ("x", True),
        ("\u4e2d1999", True),
        ("a2000", False),
        ("1", False),
    ):
        matcher = constrain.Matcher(compiled)
        assert (matcher.accept_bytes(text.encode()) and matcher.is_accepting()) == ok
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    constrain.Matcher(compiled).fill_next_token_bitmask(mask)
    # Each alternative on its own would be derived by each byte.
    assert compiled.statistics()["nodes"] < 20_000


ARNS = (
    "arn:aws[a-zA-Z-]*:[a-z]+:[a-z0-9-]*:[0-9]{12}:.{1,1011}",
    "arn:aws[a-z-]*:iam::[0-9]{12}:role/.{1,512}",
    "^(arn:aws[a-z-]*:s3:[a-z0-9-]*:[0-9]{12}:accesspoint/)?[a-z0-9.-]{3,63}$",
    r"arn:[^:]*:kms:[^:]*:\d{12}:(key|alias)/[\w-]{1,256}",
    "^[a-zA-Z0-9:/_.-]*arn[a-z:]*$",
)


@pytest.mark.parametrize(("one", "other"), [(0, 1), (0, 3), (0, 4), (1, 3), (3, 4)])
def test_patterns_of_a_length_are_searched_once_for_all_lengths(one: int, other: int) -> None:
    vocabulary = constrain.Vocabulary([bytes([byte]) for byte in range(256)])
    schema = {"type": "string", "maxLength": 2048, "allOf": [{"pattern": ARNS[one]}, {"pattern": ARNS[other]}]}
    compiled = constrain.CompiledGrammar(constrain.Grammar.from_json_schema(schema).ir, vocabulary)
    matcher = constrain.Matcher(compiled)
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    for byte in b'"Some arn:aws:':
        matcher.fill_next_token_bitmask(mask)
        if not matcher.accept_token(byte):
            break
    assert compiled.statistics()["nodes"] < 20_000


def test_nothing_of_any_length_is_nothing_of_a_length() -> None:
    schema = {"type": "string", "maxLength": 2048, "allOf": [{"pattern": ARNS[0]}, {"pattern": ARNS[2]}]}
    with pytest.raises(constrain.SchemaError, match="matches no text"):
        constrain.CompiledGrammar(constrain.Grammar.from_json_schema(schema).ir, LETTERS)


@pytest.mark.parametrize("most", [2, 3, 4, 5])
@pytest.mark.parametrize("patterns", [("ab", "ba"), ("a.b", "^b"), ("aab", "!$"), ("a{2,3}", "b{1,2}a"), ("abba", "b")])
def test_patterns_of_a_length_together(patterns: tuple[str, str], most: int) -> None:
    one, other = patterns
    texts_ = ["".join(letters) for size in range(6) for letters in itertools.product("ab!", repeat=size)]
    for schema, holds in (
        ({"allOf": [{"pattern": one}, {"pattern": other}]}, lambda first, second: first and second),
        ({"oneOf": [{"pattern": one}, {"pattern": other}]}, lambda first, second: first != second),
        ({"not": {"pattern": one}, "pattern": other}, lambda first, second: second and not first),
    ):
        right = [
            text
            for text in texts_
            if len(text) <= most and holds(re.search(one, text) is not None, re.search(other, text) is not None)
        ]
        grammar = {"type": "string", "maxLength": most, **schema}
        if right:
            told = verdicts(grammar, *map(json.dumps, texts_))
            assert [text for text, ok in zip(texts_, told, strict=True) if ok] == right
        else:
            with pytest.raises(constrain.SchemaError):
                verdicts(grammar, '"a"')


def test_what_is_too_long_by_now_is_not_searched_for_each_length() -> None:
    pattern = "arn:(aws[a-z-]*)?:lambda:[a-z]{2}-[a-z]+-[0-9]:[0-9]{12}:mapping:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{12}"
    vocabulary = constrain.Vocabulary([bytes([byte]) for byte in range(256)] + [b"-" * size for size in range(2, 60)])
    schema = {"type": "string", "maxLength": 90, "pattern": pattern}
    compiled = constrain.CompiledGrammar(constrain.Grammar.from_json_schema(schema).ir, vocabulary)
    matcher = constrain.Matcher(compiled)
    assert matcher.accept_bytes(b'"')
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    matcher.fill_next_token_bitmask(mask)
    # arn::lambda:us-e-1:123456789012:mapping:12345678-1234-123456789012 has 66 characters.
    allowed = [size for size in range(2, 60) if mask[0, (254 + size) >> 5] >> ((254 + size) & 31) & 1]
    assert allowed == list(range(2, 90 - 66 + 1))
    assert compiled.statistics()["nodes"] < 6_000
