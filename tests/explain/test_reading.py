"""How far a text can be read, and where in it that is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import constrain
from constrain.engine.expectations import in_words
from constrain.explain import read_text
from constrain.explain.places import place_in_text

COMPILER = constrain.GrammarCompiler(constrain.Vocabulary([b"a"]))


def read(pattern, text, **options):
    return read_text(COMPILER.compile(constrain.Grammar.from_regex(pattern)), text.encode(), **options)


def test_a_valid_text():
    reading = read("[a-z]+", "abc")
    assert (reading.length, reading.refused, reading.complete) == (3, False, True)
    assert (reading.expected, reading.forced) == ([], b"")


def test_a_text_that_is_only_a_beginning():
    reading = read("abcdef[0-9]", "abc")
    assert (reading.length, reading.refused, reading.complete, reading.forced) == (3, False, False, b"def")
    assert in_words(reading.expected) == "'def'"


@given(good=st.integers(0, 40_000), bad=st.integers(1, 40_000))
def test_the_first_byte_that_cannot_follow_is_found(good, bad):
    read_so_far = []
    reading = read("a*", "a" * good + "b" * bad, on_read=read_so_far.append)
    assert (reading.length, reading.refused, reading.complete) == (good, True, False)
    assert sum(read_so_far) == good


@pytest.mark.parametrize(
    ("data", "offset", "line", "column", "shown", "indent", "character"),
    [
        (b"", 0, 1, 1, "", 0, ""),
        (b"abc", 1, 1, 2, "abc", 1, "'b'"),
        (b"ab\ncd\nef", 4, 2, 2, "cd", 1, "'d'"),
        (b"ab\ncd", 5, 2, 3, "cd", 2, ""),
        (b"ab\n", 2, 1, 3, "ab", 2, "'\\n'"),
        (b"ab\n", 3, 2, 1, "", 0, ""),
        ("a\té!".encode(), 4, 1, 4, "a    é!", 6, "'!'"),
        ("日本!".encode(), 6, 1, 3, "日本!", 4, "'!'"),
        ("日本!".encode(), 5, 1, 2, "日本!", 2, "'本'"),
        ("e\u0301x".encode(), 3, 1, 3, "e\u0301x", 1, "'x'"),
        (b"a\x1b[31mb\r", 7, 1, 8, "a\\x1b[31mb\\r", 10, "'\\r'"),
        (b"a\xff\xfeb", 1, 1, 2, "a\\xff\\xfeb", 1, "byte 0xff"),
        (b"a\xff\xfeb", 3, 1, 4, "a\\xff\\xfeb", 9, "'b'"),
        (b"\x80\x80\x80", 2, 1, 3, "\\x80\\x80\\x80", 8, "byte 0x80"),
    ],
)
def test_places(data, offset, line, column, shown, indent, character):
    place = place_in_text(data, offset)
    assert (place.line, place.column, place.shown, place.indent, place.character) == (
        line,
        column,
        shown,
        indent,
        character,
    )


def test_long_lines_are_cut_around_the_place():
    place = place_in_text(b"x" * 5000 + b"!" + b"y" * 5000, 5000, 30)
    assert place.shown == "…" + "x" * 20 + "!" + "y" * 9 + "…"
    assert place.shown[place.indent] == "!"
    assert place.column == 5001


@given(data=st.binary(max_size=60), offset=st.integers(0, 60), width=st.integers(9, 40))
def test_what_is_shown_can_be_printed(data, offset, width):
    place = place_in_text(data, min(offset, len(data)), width)
    assert place.shown == "" or place.shown.replace("…", "").isprintable()
    assert place.line == 1 + data[: min(offset, len(data))].count(b"\n")
    assert len(place.shown) <= 2 * width
