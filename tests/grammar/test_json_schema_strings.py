"""Spellings of characters, compared with what the json module reads."""

from __future__ import annotations

import itertools
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_regular import matches

from constrain.grammar.json_schema.lexical.strings import EVERY_WAY, is_text
from constrain.grammar.languages.regular import Regular
from constrain.grammar.languages.utf8 import LAST, normalize


class Language:
    """A regular language, asked with ``in``."""

    def __init__(self, language: Regular) -> None:
        self.language = language

    def __contains__(self, text: str) -> bool:
        return matches(self.language, text.encode())


def spellings(character: str) -> list[str]:
    """Every way to write a character, case of the hexadecimal digits aside."""
    units = character.encode("utf-16-be").hex(" ", 2).split()
    escaped = "".join("\\u" + unit for unit in units)
    ways = [escaped, "".join("\\u" + unit.upper() for unit in units)]
    short = {'"': '\\"', "\\": "\\\\", "/": "\\/", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    if character in short:
        ways.append(short[character])
    if character >= " " and character not in '"\\':
        ways.append(character)
    assert all(json.loads(f'"{way}"') == character for way in ways)
    return ways


characters = st.characters(exclude_categories=["Cs"])
edges = [0, 0x1F, 0x20, 0x22, 0x2F, 0x5C, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x103FF, 0x10400]
points = st.sampled_from([*edges, 0x10FC00, LAST]) | st.integers(0, LAST)


@pytest.mark.parametrize("point", [*edges, 0x1F600, 0x10FBFF, 0x10FC00, LAST])
def test_every_spelling_of_one_character(point: int) -> None:
    character = chr(point)
    language = Language(EVERY_WAY.text(character))
    for way in spellings(character):
        assert way in language
        assert way in Language(EVERY_WAY.character)
    for other in (point - 1, point + 1):
        if 0 <= other <= LAST and not 0xD800 <= other <= 0xDFFF:
            assert not any(way in language for way in spellings(chr(other)))


@given(st.lists(st.tuples(points, points), max_size=5), st.lists(points, min_size=1, max_size=8))
def test_sets_of_characters(pairs: list[tuple[int, int]], probes: list[int]) -> None:
    ranges = normalize((min(pair), max(pair)) for pair in pairs)
    language = Language(EVERY_WAY.points(ranges))
    ends = [point for pair in ranges for end in pair for point in (end - 1, end, end + 1)]
    for point in [*probes, *ends]:
        if 0 <= point <= LAST and not 0xD800 <= point <= 0xDFFF:
            expected = any(first <= point <= last for first, last in ranges)
            assert all((way in language) == expected for way in spellings(chr(point)))


@pytest.mark.parametrize(
    "text",
    [
        "\\ud800",
        "\\udc00",
        "\\uD83D",
        "\\ude00\\ud83d",
        "\\ud83d\\u0041",
        "\\u12",
        "\\x41",
        "\\U0001F600",
        "\n",
        '"',
        "\\",
    ],
)
def test_what_is_no_character(text: str) -> None:
    assert text not in Language(EVERY_WAY.character)


@given(st.lists(st.text(characters, max_size=5), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_sets_of_texts(texts: list[str], source: random.Random) -> None:
    language = Language(EVERY_WAY.any_of(tuple(texts)))
    for text in texts:
        assert "".join(source.choice(spellings(character)) for character in text) in language
        for changed in (text + "x", text[:-1], "x" + text):
            assert (json.dumps(changed)[1:-1] in language) == (changed in texts)


def test_a_pair_is_one_character() -> None:
    language = Language(EVERY_WAY.character)
    assert "\\uD83D\\uDE00" in language
    assert "\\uD83D\\uDE00a" not in language


def test_lone_surrogates_are_no_text() -> None:
    assert is_text("a\N{GRINNING FACE}")
    assert not is_text("a\ud83d")


def test_short_texts_of_escapes_are_read_as_json_reads_them() -> None:
    language = Language(EVERY_WAY.character)
    for text in map("".join, itertools.product('\\"u0dD8c /n', repeat=4)):
        try:
            read = json.loads(f'"{text}"')
        except json.JSONDecodeError:
            read = None
        expected = read is not None and len(read) == 1 and is_text(read)
        assert (text in language) == expected, text
