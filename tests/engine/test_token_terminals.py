"""Tokens as terminals: masks, acceptance and errors, beside a twin in which tokens are letters of their own."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from naive import NaiveRecognizer, tokens_of
from strategies import ALPHABET, Tokens, viable_grammars, vocabularies, walks

import constrain
from constrain.engine.vocabulary.token_spellings import SpelledVocabulary
from constrain.grammar.grammar import Grammar
from constrain.grammar.ir import GrammarBuilder, GrammarIR
from constrain.grammar.languages.derivatives import bytes_in
from constrain.grammar.languages.regular import Regular, byte_set, complement, concat, intersect, literal, repeat, union
from constrain.grammar.languages.utf8 import ANY_TEXT
from constrain.grammar.tokens import (
    MARK,
    TEXT_BYTE,
    any_tokens,
    spell_any,
    spelled_token,
    spelling,
    token_set,
)

# In the twin a token is one byte that stands in no text: neither in UTF-8 nor in the alphabet of the strategies.
_LETTERS = range(0xF5, 0xFF)
_SPECIAL, _ENDS = 3, 2


@dataclasses.dataclass(frozen=True)
class Twin:
    """A vocabulary, and the letters that stand for its spelled tokens in the twin."""

    vocabulary: constrain.Vocabulary
    letters: dict[int, int]
    unused: int

    def data(self, token: int) -> bytes | None:
        """What a token is in the twin; None if it can never be said."""
        if token in self.letters:
            return bytes((self.letters[token],))
        data = self.vocabulary.tokens[token]
        return None if token == self.unused or 0xFF in data else data


def _twin(text: Tokens, named: list[int]) -> Twin:
    """A vocabulary of text tokens, special ones, one that is not used, and one with the byte 0xFF."""
    tokens = [*text.tokens, *(f"<{n}>".encode() for n in range(_SPECIAL + _ENDS)), b"", b"a\xff"]
    first = len(text.tokens)
    special = [*range(first, first + _SPECIAL), first + _SPECIAL + _ENDS]
    ends = range(first + _SPECIAL, first + _SPECIAL + _ENDS)
    vocabulary = constrain.Vocabulary(tokens, eos_ids=ends, special_ids=special)
    spelled = [*range(first, first + _SPECIAL + _ENDS), *named]
    return Twin(vocabulary, dict(zip(spelled, _LETTERS, strict=False)), special[-1])


@st.composite
def _cases(draw: st.DrawFn) -> tuple[GrammarIR, GrammarIR, Twin]:
    """A grammar with tokens, its twin without, and the vocabulary."""
    ir = draw(viable_grammars())
    text = draw(vocabularies())
    count = len(text.tokens)
    plain = [token for token in range(count) if token not in {*text.eos_ids, *text.special_ids} and text.tokens[token]]
    twin_of_text = Tokens(tuple(text.tokens), (), ())
    first_special = count
    in_text = repeat(byte_set(ALPHABET))
    lexemes: list[Regular] = [intersect(in_text, lexeme) for lexeme in ir.lexemes]
    sets: dict[int, tuple[list[int], bool, bool]] = {}
    for index in range(len(lexemes)):
        if index in ir.ignore or not draw(st.booleans()):
            continue
        ids = draw(st.lists(st.integers(first_special, first_special + _SPECIAL + _ENDS - 1), max_size=3, unique=True))
        if plain and draw(st.integers(0, 3)) == 0:
            ids.append(draw(st.sampled_from(plain)))
        excluded, loop = draw(st.booleans()), draw(st.integers(0, 3)) == 0
        assume(ids or excluded)
        sets[index] = ids, excluded, loop
    assume(sets)
    named = sorted({token for ids, _, _ in sets.values() for token in ids if token < count})
    twin = _twin(twin_of_text, named[: len(_LETTERS) - _SPECIAL - _ENDS])
    assume(len(named) <= len(_LETTERS) - _SPECIAL - _ENDS)
    ours, theirs = list(lexemes), list(lexemes)
    special = {*range(first_special, first_special + _SPECIAL), *named}
    for index, (ids, excluded, loop) in sets.items():
        parts: list[Any] = [(token, token) if token % 2 or token < count else f"<{token - count}>" for token in ids]
        meant = special - set(ids) if excluded else ids
        letters = byte_set(twin.letters[token] for token in meant)
        if loop and excluded:
            found = any_tokens(parts)
            assert found is not None
            ours[index] = found
            theirs[index] = repeat(union(byte_set(range(_LETTERS[0])), letters))
        elif loop:
            ours[index] = concat(literal(b"a"), repeat(token_set(parts), 1, 2))
            theirs[index] = concat(literal(b"a"), repeat(letters, 1, 2))
        else:
            ours[index], theirs[index] = token_set(parts, excluded=excluded), letters
    tokens = tuple(sorted(sets))
    return (
        dataclasses.replace(ir, lexemes=tuple(ours), token_lexemes=tokens),
        dataclasses.replace(ir, lexemes=tuple(theirs)),
        twin,
    )


def _mask(matcher: constrain.Matcher) -> set[int]:
    size = matcher.compiled.vocabulary.size
    mask = constrain.allocate_token_bitmask(1, size)
    matcher.fill_next_token_bitmask(mask)
    return tokens_of(mask[0], size)


def _allowed(naive: NaiveRecognizer, twin: Twin) -> set[int]:
    allowed = set()
    for token in range(twin.vocabulary.size):
        data = twin.data(token)
        fits = data is not None and naive.is_viable_prefix(data)
        if fits or (token in twin.vocabulary.eos_ids and naive.is_accepting()):
            allowed.add(token)
    return allowed


@pytest.mark.parametrize("accelerators", [None, ()], ids=["fast", "plain"])
@settings(max_examples=50)
@given(case=_cases(), walk=walks())
def test_masks_of_random_grammars_with_tokens(
    case: tuple[GrammarIR, GrammarIR, Twin], walk: list[int], accelerators: Any
) -> None:
    ir, plain, twin = case
    naive = NaiveRecognizer(plain)
    if not naive.is_viable:
        with pytest.raises(constrain.ConstrainError, match="matches no text"):
            constrain.CompiledGrammar(ir, twin.vocabulary)
        return
    compiled = constrain.CompiledGrammar(ir, twin.vocabulary, accelerators=accelerators)
    matcher = constrain.Matcher(compiled)
    history: list[set[int]] = []
    for choice in [*walk[:12], 0]:
        expected = _allowed(naive, twin)
        assert _mask(matcher) == expected
        assert matcher.is_accepting() == naive.is_accepting()
        assert not matcher.accept_bytes(b"\xff")
        for token in sorted(set(range(twin.vocabulary.size)) - expected)[:3]:
            assert not matcher.accept_token(token)
        history.append(expected)
        if not expected:
            break
        token = sorted(expected)[choice % len(expected)]
        data = twin.data(token)
        assert matcher.accept_token(token)
        assert data is not None
        if token not in twin.vocabulary.eos_ids:
            assert naive.push_bytes(data)
            assert not matcher.is_terminated()
            continue
        goes_on = naive.push_bytes(data)
        assert matcher.is_terminated() == (not goes_on or not naive.next_bytes())
        if matcher.is_terminated():
            assert _mask(matcher) == set()
            matcher.rollback(1)
            break
    while matcher.steps:
        matcher.rollback(1)
        history = history[: matcher.steps + 1]
        assert _mask(matcher) == history[-1]


def _grammar(*parts: Regular) -> Grammar:
    """One lexeme after the other; those with tokens are known by their class."""
    builder = GrammarBuilder()
    start = builder.nonterminal("start")
    symbols = []
    for part in parts:
        holds_tokens = not bytes_in(part) >> MARK & 1 and "TokenSet" in repr(part)
        symbols.append(builder.token(part) if holds_tokens else builder.lexeme(part))
    builder.add(start, symbols)
    return Grammar(builder.finish(start))


@pytest.fixture(scope="module")
def vocabulary() -> constrain.Vocabulary:
    """Letters, three special tokens of which one has no name, an end token, and a token that is called like it."""
    tokens = [b"a", b"b", b"c", b"<", b"x", b">", b"<x>", b"", b"", b"", b"<eos>", b"</think>", b"\xff\x00"]
    return constrain.Vocabulary(tokens, eos_ids=[10], special_ids=[7, 8, 9], names={7: "<x>", 8: "<|tool|>"})


def _matcher(vocabulary: constrain.Vocabulary, *parts: Regular, **options: Any) -> constrain.Matcher:
    return constrain.Matcher(constrain.GrammarCompiler(vocabulary).compile(_grammar(*parts)), **options)


def test_a_name_is_that_of_the_special_token_and_not_of_text(vocabulary: constrain.Vocabulary) -> None:
    matcher = _matcher(vocabulary, token_set(["<x>"]), repeat(byte_set(b"<x>")))
    assert _mask(matcher) == {7}
    assert matcher.forced_special_token() == 7
    assert matcher.forced_bytes() == b""
    assert [str(each) for each in matcher.expected()] == ["<x>"]
    assert not matcher.accept_token(6)
    assert matcher.accept_token(7)
    assert _mask(matcher) == {3, 4, 5, 6, 10}
    assert not matcher.accept_token(7)
    assert matcher.accept_token(6)


def test_an_ordinary_token_that_is_named_is_no_text(vocabulary: constrain.Vocabulary) -> None:
    text = repeat(byte_set(b"</think>abc"))
    matcher = _matcher(vocabulary, text, token_set(["</think>"]), literal(b"a"))
    assert _mask(matcher) == {0, 1, 2, 3, 5, 11}
    assert matcher.accept_token(11)
    assert _mask(matcher) == {0}
    # Elsewhere it is.
    assert 11 in _mask(_matcher(vocabulary, text, token_set(["<x>"])))


def test_complements_are_of_special_tokens_that_are_used(vocabulary: constrain.Vocabulary) -> None:
    assert _mask(_matcher(vocabulary, token_set(["<x>"], excluded=True))) == {8}
    assert _mask(_matcher(vocabulary, token_set([], excluded=True))) == {7, 8}
    assert _mask(_matcher(vocabulary, token_set([(7, 9)]))) == {7, 8, 9}


def test_any_tokens_but_some(vocabulary: constrain.Vocabulary) -> None:
    loop = any_tokens(["<x>", (2, 2)])
    matcher = _matcher(vocabulary, loop, token_set(["<x>"]))
    assert _mask(matcher) == {0, 1, 3, 4, 5, 6, 7, 8, 11}


def test_an_end_token_that_the_grammar_names(vocabulary: constrain.Vocabulary) -> None:
    matcher = _matcher(vocabulary, literal(b"a"), token_set(["<eos>"]))
    assert not matcher.accept_token(10)
    assert matcher.accept_token(0)
    assert _mask(matcher) == {10}
    assert not matcher.is_accepting()
    assert matcher.completion() == [10]
    assert matcher.accept_token(10)
    assert matcher.is_terminated()
    assert _mask(matcher) == set()
    matcher.rollback()
    assert _mask(matcher) == {10}
    # Where something may follow, it is a part of the text.
    matcher = _matcher(vocabulary, literal(b"a"), repeat(concat(token_set(["<eos>"]), literal(b"b"))))
    assert matcher.accept_token(0)
    assert matcher.is_accepting()
    assert matcher.accept_token(10)
    assert not matcher.is_terminated()
    assert _mask(matcher) == {1}
    assert matcher.accept_token(1)
    assert _mask(matcher) == {10}


def test_budgets_and_completions_count_tokens(vocabulary: constrain.Vocabulary) -> None:
    parts = repeat(byte_set(b"abc")), token_set(["<|tool|>"]), literal(b"ab"), token_set(["<x>"])
    assert _matcher(vocabulary, *parts).completion() == [8, 0, 1, 7]
    matcher = _matcher(vocabulary, *parts, max_tokens=5)
    assert matcher.accept_token(2)
    assert _mask(matcher) == {8}
    with pytest.raises(constrain.ConstrainError, match="takes 4 tokens"):
        _matcher(vocabulary, *parts, max_tokens=3)


def test_bytes_do_not_spell_tokens(vocabulary: constrain.Vocabulary) -> None:
    grammar = _grammar(token_set(["<x>"]))
    compiled = constrain.GrammarCompiler(vocabulary).compile(grammar)
    assert not constrain.Matcher(compiled).accept_bytes(spelling(7))
    assert not compiled.recognizer().try_push_byte(0xFF)


def test_names_that_are_not_there(vocabulary: constrain.Vocabulary) -> None:
    compiler = constrain.GrammarCompiler(vocabulary)
    with pytest.raises(constrain.GrammarError, match=r'line 3, column 5: .* no token "<y>"; near it are <x>') as error:
        compiler.compile(_grammar(token_set(["<y>"], line=3, column=5)))
    assert (error.value.line, error.value.column) == (3, 5)
    with pytest.raises(constrain.GrammarError, match=r"special tokens are <x>, <\|tool\|>, <eos>"):
        compiler.compile(_grammar(token_set(["nothing of the kind"])))
    with pytest.raises(constrain.GrammarError, match="no token 13: the vocabulary has 13 tokens"):
        compiler.compile(_grammar(token_set([(12, 13)])))
    twice = constrain.Vocabulary([b"ab", b"ab"])
    with pytest.raises(constrain.GrammarError, match='several tokens are called "ab": 0, 1'):
        constrain.GrammarCompiler(twice).compile(_grammar(token_set(["ab"])))
    with pytest.raises(constrain.GrammarError, match="wrong order"):
        token_set([(3, 2)])
    with pytest.raises(constrain.GrammarError, match="no token 16777216"):
        token_set([(3, 1 << 24)])


def test_bytes_that_are_no_text_are_refused_beside_tokens(vocabulary: constrain.Vocabulary) -> None:
    compiler = constrain.GrammarCompiler(vocabulary)
    assert compiler.compile(_grammar(literal(b"\xff")))
    with pytest.raises(constrain.GrammarError, match="may hold the byte 0xff"):
        compiler.compile(_grammar(token_set(["<x>"]), complement(literal(b"a"))))
    with pytest.raises(constrain.GrammarError, match="may hold the byte 0xff"):
        compiler.compile(_grammar(token_set(["<x>"]), union(literal(b"a\xff"), literal(b"b"))))
    text = intersect(ANY_TEXT, complement(literal(b"a")))
    assert compiler.compile(_grammar(token_set(["<x>"]), text))


def test_names_of_a_vocabulary() -> None:
    made = constrain.Vocabulary([b"a", b"</s>", b"", b"\xff"], eos_ids=[1], special_ids=[2, 3])
    assert made.names == {1: "</s>"}
    named = constrain.Vocabulary([b"a", b"</s>", b""], eos_ids=[1], special_ids=[2], names={2: "<p>", 1: "<end>"})
    assert named.names == {1: "<end>", 2: "<p>"}
    assert [named.shown(token) for token in range(3)] == [b"a", b"</s>", b"<p>"]
    assert pickle.loads(pickle.dumps(named)).names == named.names
    with pytest.raises(constrain.ConstrainError, match="token 0 is not special"):
        constrain.Vocabulary([b"a"], names={0: "<a>"})
    with pytest.raises(constrain.ConstrainError, match="must be a text"):
        constrain.Vocabulary([b"a"], special_ids=[0], names={0: ""})


def test_a_view_is_made_once_and_can_be_pickled(vocabulary: constrain.Vocabulary) -> None:
    compiler = constrain.GrammarCompiler(vocabulary)
    first = compiler.compile(_grammar(token_set(["<x>"])))
    second = compiler.compile(_grammar(token_set(["<|tool|>"])))
    assert first.vocabulary is second.vocabulary
    assert compiler.compile(_grammar(literal(b"a"))).vocabulary is vocabulary
    view = pickle.loads(pickle.dumps(first.vocabulary))
    assert isinstance(view, SpelledVocabulary)
    assert view.tokens == first.vocabulary.tokens
    assert view.spelled_ids == first.vocabulary.spelled_ids == {7, 8, 9, 10}
    assert "4 spelled" in repr(view)


@given(ids=st.sets(st.integers(0, 70000), max_size=40), start=st.integers(0, 70000), length=st.integers(0, 1500))
def test_spellings_of_sets(ids: set[int], start: int, length: int) -> None:
    ids |= set(range(start, start + length))
    language = spell_any(ids)
    compiled = constrain.CompiledGrammar(_grammar(union(language, literal(b"x"))).ir, constrain.Vocabulary([b"x"]))
    for token in {*sorted(ids)[:20], start - 1, start + length, 5, 256, 65536, *sorted(ids)[-20:]} - {-1}:
        place = compiled.recognizer()
        assert all(place.try_push_byte(byte) for byte in spelling(token)) == (token in ids)
        assert spelled_token(spelling(token) + b"more") == token
    assert spelled_token(b"a") is None
    assert not bytes_in(TEXT_BYTE) >> MARK & 1


def test_stop_tokens_of_a_matcher(vocabulary: constrain.Vocabulary) -> None:
    parts = repeat(byte_set(b"ab")), literal(b"c")
    matcher = _matcher(vocabulary, *parts, stop_token_ids=[1, 9])
    assert _mask(matcher) == {0, 2}
    assert not matcher.accept_token(1)
    assert not matcher.accept_token(9)
    assert matcher.accept_token(0)
    twin = matcher.fork()
    assert twin.accept_token(2)
    assert _mask(twin) == {1, 9}
    assert not twin.accept_token(10)
    assert twin.accept_token(1)
    assert twin.is_terminated()
    twin.rollback(2)
    assert _mask(twin) == _mask(matcher) == {0, 2}
    batch = constrain.allocate_token_bitmask(2, vocabulary.size)
    other = _matcher(vocabulary, *parts)
    constrain.fill_next_token_bitmask_batch([matcher, other], batch)
    assert tokens_of(batch[0], vocabulary.size) == {0, 2}
    assert tokens_of(batch[1], vocabulary.size) == {0, 1, 2}
    assert _mask(_matcher(vocabulary, literal(b""), stop_token_ids=[])) == set()
    with pytest.raises(constrain.ConstrainError, match="out of range"):
        _matcher(vocabulary, *parts, stop_token_ids=[13])


def test_stop_tokens_beside_tokens_that_the_grammar_names(vocabulary: constrain.Vocabulary) -> None:
    parts = literal(b"a"), repeat(concat(token_set(["<eos>"]), literal(b"b")))
    matcher = _matcher(vocabulary, *parts, stop_token_ids=[7], max_tokens=7)
    assert matcher.accept_token(0)
    assert _mask(matcher) == {7, 10}
    assert matcher.accept_token(10)
    assert _mask(matcher) == {1}
    assert matcher.accept_token(1)
    assert matcher.accept_token(7)
    assert matcher.is_terminated()


def test_stop_tokens_beside_unique_keys() -> None:
    tokens = [*(bytes((byte,)) for byte in range(128)), b"</s>", b"<stop>"]
    vocabulary = constrain.Vocabulary(tokens, eos_ids=[128], special_ids=[129])
    schema = {"type": "object", "additionalProperties": {"type": "boolean"}}
    compiled = constrain.GrammarCompiler(vocabulary).compile(Grammar.from_json_schema(schema))
    matcher = constrain.Matcher(compiled, stop_token_ids=[129])
    for byte in b'{"a":true,"a':
        assert matcher.accept_token(byte)
        assert not {128, 129} & _mask(matcher)
    assert ord('"') not in _mask(matcher)
    for byte in b'b":true}':
        assert matcher.accept_token(byte)
    assert {128, 129} & _mask(matcher) == {129}


def test_a_lazy_rule_may_end_with_a_token(vocabulary: constrain.Vocabulary) -> None:
    """No text holds the token, so it is where the rule first can end."""
    token = min(vocabulary.special_ids)
    grammar = constrain.Grammar.from_lark(f"""
        start: tool* TEXT
        tool: head "x" "c"
        head[lazy]: TEXT <[{token}]>
        TEXT: /[ab]*/
    """)
    compiled = constrain.CompiledGrammar(grammar.ir, vocabulary)

    def accepts(*parts: bytes | int) -> bool:
        matcher = constrain.Matcher(compiled)
        return (
            all(matcher.accept_bytes(part) if isinstance(part, bytes) else matcher.accept_token(part) for part in parts)
            and matcher.is_accepting()
        )

    assert accepts(b"ab")
    assert accepts(b"ab", token, b"xcb", token, b"xc")
    assert not accepts(b"ab", token)
    assert not accepts(b"ab", token, b"b")


@pytest.mark.parametrize("most", range(2, 8))
@pytest.mark.parametrize("grammar", ["start: /a{2,3}/ (<[256]> /b{5}/)?", 'start: "a"* (<[256]> /[a-z]{4,}/)?'])
def test_a_text_may_end_within_a_budget_that_is_too_small_for_what_an_end_token_begins(grammar, most):
    tokens = [*(bytes((byte,)) for byte in range(256)), b"</s>"]
    vocabulary = constrain.Vocabulary(tokens, eos_ids=[256])
    compiled = constrain.GrammarCompiler(vocabulary).compile(constrain.Grammar.from_lark(grammar))
    matcher = constrain.Matcher(compiled, max_tokens=most)
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    while True:
        matcher.fill_next_token_bitmask(mask)
        assert bool(mask[0, 8] & 1) == matcher.fork().accept_token(256)
        if not matcher.accept_token(ord("a")):
            break
