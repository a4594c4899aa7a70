"""Rules that are made as a text comes to them give the same masks as when all of them are there at the start."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from masks import mask_of
from naive import NaiveRecognizer, allowed_tokens

import constrain
from constrain.engine import grammar_tables as tables_module
from constrain.grammar.ir import BRANCH, BY_KEYS, BY_RULES, BY_TEXT, GrammarBuilder, GrammarIR, Symbol
from constrain.grammar.languages.regular import Regular, byte_set, concat, literal, repeat, union

TOKENS = [b"a", b"b", b"c", b"ab", b"bc", b"ca", b"abc", b"cab", b"aabb", b"cc", b"</s>"]
EOS = len(TOKENS) - 1
VOCABULARY = constrain.Vocabulary(TOKENS, eos_ids=[EOS])
LEXEMES: list[Regular] = [
    literal("a"),
    literal("bc"),
    repeat(byte_set(b"ab"), 1, None),
    union(literal("c"), literal("cab")),
    concat(literal("a"), repeat(literal("b"), 0, 2)),
]

Edges = tuple[tuple[tuple[int, ...], int], ...]
"""The ways out of a state: what is read, as positions in a list of symbols, and the state then; -1 is the end."""


class Machine:
    """An unfolding of finite automata, whose states get a new branch each time they are reached."""

    decided_by = BY_RULES

    lexemes: tuple[Regular, ...] = ()
    lexeme_names: tuple[str, ...] = ()
    nonterminals: tuple[int, ...] = ()

    def __init__(self, automata: list[list[Edges]], symbols: list[Symbol], unfolded: list[Symbol]) -> None:
        self.lefts = list(unfolded)
        self.kinds = [0] * len(unfolded)
        self._automata = automata
        self._symbols = symbols
        self._states = [(index, 0) for index in range(len(automata))]
        self._known: dict[tuple[int, int], int] = {}

    def close(self, branch: int, text: Any) -> int:
        raise AssertionError

    def unfold(self, branch: int) -> list[tuple[Symbol, ...]] | int:
        known = self._known.setdefault(self._states[branch], branch)
        if known != branch:
            return known
        index, state = self._states[branch]
        rights: list[tuple[Symbol, ...]] = []
        for read, target in self._automata[index][state]:
            right = tuple(self._symbols[position] for position in read)
            if target >= 0:
                right += (BRANCH + len(self._states),)
                self._states.append((index, target))
                self.lefts.append(self.lefts[branch])
                self.kinds.append(0)
            rights.append(right)
        return rights


@st.composite
def _grammars(draw: st.DrawFn) -> GrammarIR:
    """One or two automata over lexemes and over each other, in a few rules."""
    builder = GrammarBuilder()
    lexemes = [builder.lexeme(language) for language in LEXEMES]
    count = draw(st.integers(1, 2))
    unfolded = [builder.nonterminal() for _ in range(count)]
    extra = builder.nonterminal()
    builder.add(extra, draw(st.sampled_from([(), (lexemes[0],), (lexemes[3],)])))
    builder.add(extra, (extra, lexemes[1]))
    symbols = [*lexemes, *unfolded, extra]
    automata = []
    for index in range(count):
        size = draw(st.integers(1, 4))
        states = []
        for state in range(size):
            edges = draw(
                st.lists(
                    st.tuples(
                        st.tuples(
                            # The first must not be empty, and something must come to an end.
                            st.integers(0, len(lexemes) - 1),
                            *[st.integers(0, len(symbols) - 1)] * draw(st.integers(0, 1)),
                        ),
                        st.integers(-1, size - 1),
                    ),
                    max_size=2,
                )
            )
            states.append((*edges, ((draw(st.integers(0, len(lexemes) - 1)),), -1 if state % 2 else state - 1)))
        automata.append(states)
        builder.add(unfolded[index], (lexemes[0],))
    start = builder.nonterminal()
    for _ in range(draw(st.integers(1, 2))):
        places = draw(st.lists(st.integers(0, len(symbols) - 1), min_size=1, max_size=2))
        builder.add(start, [symbols[place] for place in places])
    builder.add(start, (unfolded[0],))
    return builder.finish(start, unfolded=unfolded, make_unfolding=lambda *_: Machine(automata, symbols, unfolded))


@settings(max_examples=150)
@given(ir=_grammars(), walks=st.lists(st.lists(st.integers(0, 1000), max_size=10), min_size=1, max_size=3))
def test_masks_of_grammars_that_unfold(masks_compared: Any, ir: GrammarIR, walks: list[list[int]]) -> None:
    compiled = constrain.CompiledGrammar(ir, VOCABULARY)
    vocabulary = _Tokens()
    for walk in walks:
        naive = NaiveRecognizer(ir)
        matcher = constrain.Matcher(compiled)
        for choice in walk:
            expected = allowed_tokens(naive, vocabulary)
            assert mask_of(matcher) == expected
            masks_compared.add()
            onward = sorted(expected - {EOS})
            if not onward:
                break
            token = onward[choice % len(onward)]
            assert matcher.accept_token(token)
            assert naive.push_bytes(TOKENS[token])


class _Tokens:
    tokens, eos_ids, special_ids = TOKENS, [EOS], []


def _counting(limit: int) -> GrammarIR:
    """``a`` exactly ``limit`` times, one branch for each."""
    builder = GrammarBuilder()
    letter = builder.lexeme(literal("a"))
    count = builder.nonterminal()
    builder.add(count, (letter,))
    automaton = [(((0,), state + 1 if state + 1 < limit else -1),) for state in range(limit)]
    return builder.finish(count, unfolded=[count], make_unfolding=lambda *_: Machine([automaton], [letter], [count]))


def test_long_unfolding() -> None:
    compiled = constrain.CompiledGrammar(_counting(5000), VOCABULARY)
    matcher = constrain.Matcher(compiled)
    assert matcher.accept_bytes(b"a" * 4999)
    assert not matcher.is_accepting()
    assert mask_of(matcher) == {0}
    assert matcher.accept_bytes(b"a")
    assert mask_of(matcher) == {EOS}
    matcher.rollback(2)
    assert not matcher.accept_bytes(b"a" * 5001)
    assert matcher.forced_bytes() == b"a" * 5000


def test_unfolding_within_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables_module, "_COLLECT_BYTES", 0)
    compiled = constrain.CompiledGrammar(_counting(2000), VOCABULARY)
    matcher = constrain.Matcher(compiled)
    for _ in range(1500):
        assert matcher.accept_token(0)
    matcher.rollback(1400)
    assert matcher.forced_bytes() == b"a" * 1900


def test_what_is_unfolded_may_not_be_empty() -> None:
    builder = GrammarBuilder()
    rule = builder.nonterminal()
    builder.add(rule, ())
    ir = builder.finish(rule, unfolded=[rule], make_unfolding=lambda *_: Machine([[()]], [], [rule]))
    with pytest.raises(ValueError, match="empty string"):
        constrain.CompiledGrammar(ir, VOCABULARY)


def test_what_derives_nothing_is_not_unfolded() -> None:
    builder = GrammarBuilder()
    letter = builder.lexeme(literal("a"))
    rule, start = builder.nonterminal(), builder.nonterminal()
    builder.add(rule, (letter, rule))
    builder.add(start, (rule,))
    builder.add(start, (letter,))

    def fail(*_: Any) -> Machine:
        return Machine([], [], [rule])

    compiled = constrain.CompiledGrammar(builder.finish(start, unfolded=[rule], make_unfolding=fail), VOCABULARY)
    assert constrain.Matcher(compiled).forced_bytes() == b"a"


def test_calls_do_not_count_the_memory_of_rules_while_there_is_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call asks whether there are too many rules; to add up all tables takes thirty times as long as the call."""
    vocabulary = constrain.Vocabulary([bytes((byte,)) for byte in range(256)])
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
    grammar = constrain.Grammar.from_json_schema(schema, property_order="any")
    matcher = constrain.Matcher(constrain.CompiledGrammar(grammar.ir, vocabulary))
    asked = 0
    bytes_of_rules = tables_module.GrammarTables._bytes_of_rules

    def counted(self: tables_module.GrammarTables) -> int:
        nonlocal asked
        asked += 1
        return bytes_of_rules(self)

    monkeypatch.setattr(tables_module.GrammarTables, "_bytes_of_rules", counted)
    assert matcher.accept_bytes(b'{"b": 1, "a": 2}')
    assert matcher.is_accepting()
    matcher.rollback()
    assert not asked
    matcher.compiled._start_over_above = 1
    assert not matcher.is_accepting()
    assert asked
    assert matcher.accept_bytes(b'{"b": 1, "a": 2}')
    assert matcher.is_accepting()


_SCARCE: dict[str, Any] = {"type": "object", "patternProperties": {"^[a-z]{3}$": True}, "additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "decided_by"),
    [
        ({"type": "object", "properties": {"a": True, "b": True}}, BY_RULES),
        (_SCARCE, BY_KEYS),
        ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, BY_TEXT),
        ({"type": "array", "items": _SCARCE, "uniqueItems": True}, BY_TEXT),
    ],
)
def test_what_decides_how_a_text_goes_on(schema: dict[str, Any], decided_by: int) -> None:
    grammar = constrain.Grammar.from_json_schema(schema, property_order="any")
    unfolded = constrain.GrammarCompiler(VOCABULARY).compile(grammar).unfolded
    assert unfolded is not None
    assert unfolded.unfolding.decided_by == decided_by
