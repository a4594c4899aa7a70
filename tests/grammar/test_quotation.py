"""Verbatim text: any contiguous run of pieces, and nothing else, whoever looks at it."""

from __future__ import annotations

import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_regular import matches
from strategies import quotations

from constrain import Grammar, GrammarError, LimitError
from constrain.grammar.languages.derivatives import Automaton, byte_classes, example, has_empty_string
from constrain.grammar.languages.quotation import MOST_BYTES, MOST_PARTS, Quotation, quotation, quotation_of_characters
from constrain.grammar.languages.regular import EPSILON, Regular, Union, concat, literal, union
from constrain.grammar.words import few_strings

PIECES = st.lists(st.sampled_from(["a", "b", "ab", "aa", "é", "", "ü", "€a"]), max_size=8)


def runs(pieces: list[str]) -> set[bytes]:
    """The naive twin: every contiguous run of pieces, and the empty one."""
    count = len(pieces)
    return {"".join(pieces[i:j]).encode() for i in range(count + 1) for j in range(i, count + 1)}


def beginnings(strings: set[bytes]) -> set[bytes]:
    """Everything that one of some strings begins with."""
    return {string[:length] for string in strings for length in range(len(string) + 1)}


@given(PIECES)
def test_its_strings_are_the_runs_of_pieces(pieces: list[str]) -> None:
    language, expected = quotation(pieces), runs(pieces)
    automaton = Automaton(language)
    for begun in beginnings(expected):
        assert automaton.matches(begun) == (begun in expected)
        for byte in set("".join(pieces).encode()):
            longer = begun + bytes((byte,))
            assert automaton.matches(longer) == (longer in expected)
    assert set(few_strings(language, 1000)) == expected


@given(PIECES)
def test_written_out_it_is_the_same_language(pieces: list[str]) -> None:
    language, expected = quotation(pieces), runs(pieces)
    whole = Union(language.parts) if isinstance(language, Quotation) else language
    for text in beginnings(expected):
        assert matches(whole, text) == (text in expected)


@given(quotations(), st.binary(max_size=4))
def test_what_is_left_is_written_out_in_the_same_way(language: Regular, text: bytes) -> None:
    whole = union(*language.parts) if isinstance(language, Quotation) else language
    assert Automaton(language).matches(text) == matches(whole, text)
    assert has_empty_string(language) == matches(whole, b"")
    shortest = example(language)
    assert shortest is None or matches(whole, shortest)


@given(st.text(st.sampled_from("ab€é\0"), max_size=9))
def test_characters_are_pieces(text: str) -> None:
    assert quotation_of_characters(text) == quotation(text)


def test_nothing_to_quote() -> None:
    assert quotation([]) == quotation(["", ""]) == quotation_of_characters("") == EPSILON


def test_it_is_compared_by_content() -> None:
    one, other = quotation(["ab", "c"]), quotation(iter(["ab", "", "c"]))
    assert one == other
    assert hash(one) == hash(other)
    assert one != quotation(["a", "bc"])
    assert pickle.loads(pickle.dumps(one)) == one
    # It stays one node among others.
    assert union(one, literal("x"), other) == union(one, literal("x"))
    assert one in union(one, literal("x")).parts  # type: ignore[attr-defined]


def test_a_long_text_is_never_written_out() -> None:
    language = quotation(["a", "b"] * MOST_PARTS)
    automaton = Automaton(concat(literal("<"), language, literal(">")))
    assert automaton.matches(b"<" + b"ab" * 500 + b">")
    assert not automaton.matches(b"<aab>")
    assert few_strings(language) == []
    assert byte_classes(language)[:2] == [b"a", b"b"]
    with pytest.raises(LimitError, match=r"4,000 pieces of a text to be quoted from .* takes up to 2,000"):
        language.parts  # noqa: B018


def test_what_cannot_be_quoted_is_an_error_with_its_place() -> None:
    for text, message in (
        ('start: %regex {"substring_chars": "a\\ud800"}', r"%regex: '\\ud800' is half of a surrogate pair"),
        ('start: %regex {"substring_words": "a\\ud800"}', r"%regex: '\\ud800' is half of a surrogate pair"),
        ('start: %regex {"substring_chunks": ["\\ud83d", "\\ude00"]}', r"%regex: '\\ud83d' is half"),
        (f'start: %regex {{"substring_words": "{"x" * (MOST_BYTES + 1)}"}}', r"4,194,305 bytes; up to 4,194,304 can"),
    ):
        with pytest.raises(GrammarError, match=message) as caught:
            Grammar.from_lark(text)
        assert str(caught.value).startswith("line 1, column 8: ")


@pytest.mark.parametrize("kind", ["substring_words", "substring_chars", "substring_chunks"])
def test_a_grammar_is_read_twice(kind: str) -> None:
    words = [f"w{i} " for i in range(9_000)]
    text = f"start: %regex {json.dumps({kind: words if kind == 'substring_chunks' else ''.join(words)})}"
    assert Grammar.from_lark(text).ir.lexemes == Grammar.from_lark(text).ir.lexemes
