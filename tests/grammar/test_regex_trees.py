"""That common patterns become small trees, and other spellings of characters."""

from __future__ import annotations

import json
import re

import pytest
from naive_regular import matches
from processor_time import processor_time

from constrain.grammar.languages import utf8
from constrain.grammar.languages.regular import (
    EMPTY,
    EPSILON,
    Regular,
    byte_range,
    byte_set,
    concat,
    literal,
    optional,
    repeat,
    union,
)
from constrain.grammar.languages.utf8 import ANY_TEXT, CodePoints, common, encode, negate
from constrain.grammar.regex import from_regex, regex_code_points, regex_language

LOWER = byte_range(ord("a"), ord("z"))


@pytest.mark.parametrize(
    ("pattern", "tree"),
    [
        ("abc", literal("abc")),
        ("né", literal("né")),
        ("((((abc))))", literal("abc")),
        ("(?:a)(?:b)(c)", literal("abc")),
        ("[a-z]", LOWER),
        ("a|b|[c-e]", byte_range(ord("a"), ord("e"))),
        ("a|", optional(literal("a"))),
        ("[a-z]+", repeat(LOWER, 1)),
        ("([a-z]*)*", repeat(LOWER)),
        ("a{1000,50000}", repeat(literal("a"), 1000, 50000)),
        ("(?s).*", ANY_TEXT),
        (".", encode(negate(((10, 10),)))),
        ("", EPSILON),
        ("[^\\s\\S]", EMPTY),
    ],
)
def test_small_trees(pattern: str, tree: Regular) -> None:
    assert regex_language(pattern) == tree


@pytest.mark.parametrize(
    ("pattern", "tree"),
    [
        ("^[a-z]+$", repeat(LOWER, 1)),
        ("^$", EPSILON),
        ("^(a|b)$", byte_set(b"ab")),
        ("(^a$)|(^b$)", byte_set(b"ab")),
        ("^a|b$", union(concat(literal("a"), ANY_TEXT), concat(ANY_TEXT, literal("b")))),
        ("^ab", concat(literal("ab"), ANY_TEXT)),
        ("ab$", concat(ANY_TEXT, literal("ab"))),
        ("ab", concat(ANY_TEXT, literal("ab"), ANY_TEXT)),
        ("^ab.*", concat(literal("ab"), ANY_TEXT)),
        ("[0-9]+", concat(ANY_TEXT, byte_range(48, 57), ANY_TEXT)),
        ("", ANY_TEXT),
        ("a*", ANY_TEXT),
        ("^", ANY_TEXT),
        ("a|", ANY_TEXT),
        ("^\\bab\\b$", literal("ab")),
        ("^(?!-)[a-z-]+$", concat(LOWER, repeat(union(byte_set(b"-abcdefghijklmnopqrstuvwxyz"))))),
        ("^[a-z-]+(?<!-)$", concat(repeat(byte_set(b"-abcdefghijklmnopqrstuvwxyz")), LOWER)),
        ("a^", EMPTY),
    ],
)
def test_anchors_leave_nothing_behind(pattern: str, tree: Regular) -> None:
    assert regex_language(pattern, anchored=False) == tree
    assert regex_code_points(pattern, anchored=False, dialect="ecma") == tree


def escaped(points: CodePoints) -> Regular:
    """A code point as it may stand in a JSON string: itself, or as a six-character escape, or both."""
    own = encode(common(points, negate(((0, 0x1F), (0x22, 0x22), (0x5C, 0x5C)))))
    low = [point for first, last in points for point in range(first, min(last, 0x7F) + 1)]
    return union(own, *(literal(f"\\u{point:04x}") for point in low))


@pytest.mark.parametrize(
    "pattern", ['a"b', "(?!a).*", "[^b]+", r"(?:(?!ab).)*", r"\ba\b.?", r"[ab]*(?<!ba)", "(?=.*a)[ab]+"]
)
def test_another_spelling_of_characters(pattern: str) -> None:
    regular = regex_code_points(pattern, encode_char=escaped)
    for text in ["", "a", "b", "ab", "ba", 'a"b', "aab", "bb", 'a"', "é", "aé"]:
        spellings = {json.dumps(text, ensure_ascii=False)[1:-1].replace('\\"', "\\u0022")}
        spellings.add("".join(f"\\u{ord(char):04x}" if char < "\x80" else char for char in text))
        for spelling in spellings:
            assert matches(regular, spelling.encode()) == bool(re.fullmatch(pattern, text)), spelling
        assert not matches(regular, b'"')
        assert not matches(regular, b"\\u006")


def test_many_literals_in_a_row_are_joined_at_once() -> None:
    words = [literal("x" * 2000)] * 20_000
    with processor_time() as spent:
        assert concat(*words) == literal("x" * 40_000_000)
    # A tenth of a second; a join at each of them copies 400 GB.
    assert spent.seconds < 8


def test_from_regex_is_a_grammar_of_one_lexeme() -> None:
    grammar = from_regex("A+", "i")
    assert grammar.lexemes == (repeat(byte_set(b"aA"), 1),)
    assert grammar.productions == ((grammar.start, (-1,)),)
    assert str(grammar.make_error("it matches no text", "start")) == "it matches no text"


def test_any_text_is_the_same_tree_everywhere() -> None:
    assert regex_language("(?s:.*)") == utf8.ANY_TEXT == regex_language(r"[\s\S]*")
