"""A search for some strings of a language gives strings of it, and comes to an end where many patterns meet."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import regulars

from constrain.grammar.json_schema.lexical.texts import (
    Length,
    Pattern,
    Text,
    every,
    is_surely_empty,
    plain,
    some,
    without,
)
from constrain.grammar.json_schema.normal.few_values import few_words
from constrain.grammar.json_schema.normal.word_search import find_words
from constrain.grammar.languages.derivatives import Automaton, byte_classes, fixed_end
from constrain.grammar.languages.regular import Literal, Regular, concat, intersect
from constrain.grammar.regex import regex_language

# Of five patterns just the second: 7 s by all short strings one after the other.
HARD = every(
    Pattern(r"^[\w.-]{1,2001}$"),
    *map(without, map(Pattern, ("admin", "^([ab]{1,2}){0,9}[ab]{1,2}$", r"^(\w{1,20}-){0,40}\w{1,20}$", "^[ab]{9}$"))),
)
# Its shortest string is long, and all beginnings of it are alike.
LONG = every(Pattern("a.*designer.*operator"), Pattern("^.{60,200}$"), without(Pattern("0")), Pattern("[0-9]"))

TEXTS: list[Text] = [
    HARD,
    LONG,
    Pattern("^a{3,5}$"),
    Pattern("^(|b)$"),
    Pattern("^é[日本]{2}$"),
    every(Pattern("^[ab]*$"), without(Pattern("aa")), Length(4, 9)),
    without(Pattern("^$")),
]


@pytest.mark.parametrize("text", TEXTS, ids=str)
@pytest.mark.parametrize("most", [1, 2, 7])
def test_what_is_found_is_in_the_language(text: Text, most: int) -> None:
    language = plain(text)
    automaton = Automaton(language)
    found = find_words(language, most, 3000)
    all_words = None if text in (HARD, LONG) else automaton.first_words(most, 3000)
    if found is None:
        assert all_words is not None
        assert len(all_words) < most
    else:
        assert len(found) == len(set(found)) == most
        assert all(map(automaton.matches, found))
        # They end between characters.
        assert all(word.decode().encode() == word for word in found)
        assert all_words is None or len(all_words) == most


@pytest.mark.parametrize("source", ["^a(?!.)b$", "^(?=b)a$"])
def test_nothing_is_found_where_nothing_is(source: str) -> None:
    assert find_words(plain(Pattern(source)), 1, 3000) is None
    assert few_words(Pattern(source), 1) == []


def test_a_search_ends_after_its_steps() -> None:
    assert find_words(plain(LONG), 1, 3) is None
    # An end that is met by several bytes is several words.
    found = find_words(plain(Pattern("^[a-z]$")), 26, 100)
    assert sorted(found or ()) == [bytes((byte,)) for byte in range(ord("a"), ord("z") + 1)]
    assert find_words(plain(Pattern("^[a-z]$")), 27, 100) is None


def test_few_words_of_hard_sets() -> None:
    for text in (HARD, LONG):
        words = few_words(text, 3)
        automaton = Automaton(plain(text))
        assert len(set(words)) == 3
        assert all(automaton.matches(word.encode()) for word in words)


def test_all_strings_are_found_where_some_beginnings_lead_nowhere() -> None:
    # Beginnings without an end are endlessly long: that nothing can follow them is to be seen.
    ends, letters = Pattern("b$"), Pattern("^[ab]$")
    apart = every(some(ends, letters), without(ends), without(letters))
    assert few_words(apart, 2) == []
    assert sorted(few_words(some(apart, Pattern("^[yz]?x$")), 4)) == ["x", "yx", "zx"]
    # Those that are found are the shortest still.
    assert few_words(some(apart, Pattern("^a+$")), 3) == ["a", "aa", "aaa"]


@pytest.mark.parametrize(
    "source",
    [
        # Thirty long words: one of them is followed to its end.
        "|".join(f"{i:02}" * 16 for i in range(30)),
        # A short word beside one that goes on for ever so long.
        "a{1000}|bc",
    ],
)
def test_a_language_is_known_not_to_be_empty_before_all_its_states_are_made(source: str) -> None:
    automaton = Automaton(regex_language(source))
    assert automaton.is_empty(90 * len(byte_classes(automaton.language))) is False


def test_a_language_is_empty_if_no_state_is_an_end() -> None:
    automaton = Automaton(intersect(regex_language("(aa)+b"), regex_language("a(aa)*b")))
    assert automaton.is_empty(1000) is True
    assert automaton.is_empty(5) is None


@given(regulars(), st.binary())
def test_what_all_strings_end_with(language: Regular, more: bytes) -> None:
    end = fixed_end(language)
    words = Automaton(language).first_words(20, 2000) or []
    assert all(word.endswith(end) for word in words)
    assert fixed_end(concat(language, Literal(more))).endswith(more) or not words


@pytest.mark.parametrize(
    ("left", "right", "do"),
    [
        ("^(.*)artifacts$", "^(.*)cache$", True),
        ("^(.*)cache$", "^(.*)file$", True),
        ("^(.*)background_script$", "^(.*)script$", False),
        ("^(.*)(ab)+$", "^(.*)cb$", True),
        ("^(.*)(ab)*$", "^(.*)cb$", False),
        ("ab$", "b$", False),
    ],
)
def test_patterns_with_different_ends_exclude_each_other(left: str, right: str, do: bool) -> None:
    assert is_surely_empty(every(Pattern(left), Pattern(right))) == do
