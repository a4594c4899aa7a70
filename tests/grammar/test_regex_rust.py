"""Rust's syntax for regexes: sets within sets, judged by sets of Python."""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Callable

import pytest
from naive_regular import matches

import constrain
from constrain.errors import GrammarError
from constrain.grammar.languages.utf8 import LAST, CodePoints
from constrain.grammar.regex import regex_language
from constrain.grammar.regex.nested_sets import MAX_DEPTH
from constrain.grammar.regex.nodes import NOTHING, Chars
from constrain.grammar.regex.parser import parse

ASCII = frozenset(map(chr, range(128)))
LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")

POSIX: dict[str, Callable[[str], bool]] = {
    "alnum": str.isalnum,
    "alpha": str.isalpha,
    "ascii": str.isascii,
    "blank": lambda char: char in " \t",
    "cntrl": lambda char: unicodedata.category(char) == "Cc",
    "digit": str.isdigit,
    "graph": lambda char: char.isprintable() and char != " ",
    "lower": str.islower,
    "print": str.isprintable,
    "punct": lambda char: char.isprintable() and not char.isalnum() and char != " ",
    "space": lambda char: char in " \t\n\v\f\r",
    "upper": str.isupper,
    "word": lambda char: char.isalnum() or char == "_",
    "xdigit": lambda char: char in "0123456789abcdefABCDEF",
}


def points_of(pattern: str, flags: str = "", dialect: str = "python") -> CodePoints:
    """The set that a pattern of one character stands for."""
    node = parse(pattern, flags, dialect)
    if node is NOTHING:
        return ()
    assert isinstance(node, Chars)
    return node.points


def expand(points: CodePoints) -> set[int]:
    return {point for first, last in points for point in range(first, last + 1)}


def ascii_of(pattern: str, flags: str = "") -> set[str]:
    """The characters of ASCII in a set."""
    return {chr(point) for point in expand(points_of(pattern, flags, "rust")) if point < 128}


@pytest.mark.parametrize(
    ("pattern", "characters"),
    [
        ("[[a-c]x]", "abcx"),
        ("[x[a-c][e[f-g]]]", "xabcefg"),
        ("[a-f&&[^bd]]", "acef"),
        ("[a-f--[bd]]", "acef"),
        (r"[0-9a-c--\d]", "abc"),
        ("[a-d~~c-f]", "abef"),
        ("[a-f&&b-z--d]", "bcef"),
        ("[a-f--b&&a-c]", "ac"),
        ("[ab&&bc]", "b"),
        ("[a&b]", "a&b"),
        ("[a~b]", "a~b"),
        ("[]a]", "]a"),
        ("[-a]", "-a"),
        ("[--a]", "-a"),
        ("[a-]", "a-"),
        (r"[\d-]", "0123456789-"),
        (r"[a\-c]", "a-c"),
        (r"[\[\]\&\&]", "[]&"),
        ("[[:digit:]a]", "0123456789a"),
        ("[[:alpha:]--[c-zC-Z]]", "abAB"),
        ("[:digt]", ":digt"),
        ("[[:nonsense:]]", ":nonse"),
        ("[a&&b]", ""),
        ("[^[^ab]]", "ab"),
        ("[a-z&&[^[b-y]]]", "az"),
        ("[a-cx--[]]x]", "abc"),
    ],
)
def test_sets(pattern: str, characters: str) -> None:
    assert ascii_of(pattern) == set(characters)


def test_white_space_between_signs_is_that_of_unicode_in_sets_and_outside_of_them() -> None:
    assert expand(points_of("[a\x1c\x85 \u2003#]\n]", "x", "rust")) == {ord("a"), 0x1C}
    assert expand(points_of(" \x85\u2003a #b", "x", "rust")) == {ord("a")}
    assert matches(regex_language("a\x1cb", flags="x", dialect="rust"), b"a\x1cb")


@pytest.mark.parametrize("name", POSIX)
def test_posix_classes_are_those_of_ascii(name: str) -> None:
    found = expand(points_of(f"[[:{name}:]]", dialect="rust"))
    assert found == {ord(char) for char in ASCII if POSIX[name](char)}
    assert expand(points_of(f"[[:^{name}:]]", dialect="rust")) == set(range(LAST + 1)) - found


def any_set(rng: random.Random, depth: int) -> tuple[str, frozenset[str]]:
    """A set in brackets, and which letters are in it."""
    negated = rng.random() < 0.3
    text, members = operand(rng, depth)
    for _ in range(rng.randrange(3)):
        operator = rng.choice(("&&", "--", "~~"))
        right, others = operand(rng, depth)
        text += operator + right
        members = {"&&": members & others, "--": members - others, "~~": members ^ others}[operator]
    return ("[^" if negated else "[") + text + "]", LETTERS - members if negated else members


def operand(rng: random.Random, depth: int) -> tuple[str, frozenset[str]]:
    text, members = "", frozenset[str]()
    for _ in range(rng.randint(1, 3)):
        kind = rng.randrange(4 if depth else 3)
        if kind == 0:
            part = rng.choice("abcdeABCDE")
            found = frozenset(part)
        elif kind == 1:
            first, last = sorted(rng.sample("abcdefgh", 2))
            part, found = f"{first}-{last}", frozenset(letter for letter in LETTERS if first <= letter <= last)
        elif kind == 2:
            name = rng.choice(("lower", "upper", "xdigit"))
            part, found = f"[:{name}:]", frozenset(filter(POSIX[name], LETTERS))
        else:
            part, found = any_set(rng, depth - 1)
        text, members = text + part, members | found
    return text, members


@pytest.mark.parametrize("seed", range(200))
def test_random_sets(seed: int) -> None:
    pattern, members = any_set(random.Random(seed), 3)
    assert ascii_of(pattern) & LETTERS == members, pattern


def test_case_is_folded_before_sets_are_combined() -> None:
    assert ascii_of("[a-f&&B-D]", "i") == set("bcdBCD")
    assert ascii_of("[a-f--[B]]", "i") == set("acdefACDEF")
    assert ascii_of("[^[^a]]", "i") == set("aA")
    assert ascii_of("[[:upper:]--Z]", "i") == LETTERS - set("zZ")


def test_white_space_in_a_set_means_nothing_with_the_flag_x() -> None:
    assert ascii_of("[ a - c # d\n && [ ^ b ] ]", "x") == set("ac")
    assert ascii_of(r"[\ a]", "x") == set(" a")
    assert ascii_of("[ a]") == set(" a")


def test_classes_are_those_of_unicode() -> None:
    assert expand(points_of(r"\d", dialect="rust")) == expand(points_of(r"\p{Nd}"))
    word = expand(points_of(r"\w", dialect="rust"))
    assert {0x5F, 0x300, 0x903, 0x20DD, 0x200D, 0x24B6, 0x2160} <= word
    assert not {0x2D, 0xB2, 0x2460, 0x1F600} & word
    assert expand(points_of(r"\W", dialect="rust")) == set(range(LAST + 1)) - word
    space = expand(points_of(r"\s", dialect="rust"))
    assert space == expand(points_of(r"\s")) - {0x1C, 0x1D, 0x1E, 0x1F}


def test_no_quantifier_is_possessive_and_greed_is_a_flag() -> None:
    assert regex_language("(?U)a+b*?", dialect="rust") == regex_language("a+b*")
    with pytest.raises(GrammarError, match="another quantifier"):
        regex_language("a++", dialect="rust")


@pytest.mark.parametrize(
    ("pattern", "column", "reason"),
    [
        ("a[b[c]", 2, "never closed"),
        ("a[b&&[c]", 2, "never closed"),
        ("a[b-", 2, "never closed"),
        ("a[z-b]", 3, "wrong order"),
        (r"a[a-\d]", 3, "not a range"),
        (r"a\<b", 2, "is a boundary that is not supported"),
        (r"a\b{start}b", 2, "is a boundary that is not supported"),
        ("(?q)", 3, "unknown flag 'q'; there are i, s, m, x, a, u, U"),
        ("[" * (MAX_DEPTH + 1), MAX_DEPTH + 1, f"nested more than {MAX_DEPTH} deep"),
    ],
)
def test_errors(pattern: str, column: int, reason: str) -> None:
    with pytest.raises(GrammarError, match=reason) as caught:
        regex_language(pattern, dialect="rust")
    assert (caught.value.line, caught.value.column) == (1, column)


def test_python_reads_sets_as_before() -> None:
    assert matches(regex_language("[[a-c]d]"), b"[d]")
    assert matches(regex_language("[[a-c]d]", dialect="rust"), b"d")


def test_from_regex() -> None:
    grammar = constrain.Grammar.from_regex("[[:alpha:]&&[^xyz]]+", dialect="rust")
    vocabulary = constrain.Vocabulary([bytes([byte]) for byte in range(256)] + [b"</s>"], eos_ids=[256])
    matcher = constrain.Matcher(constrain.GrammarCompiler(vocabulary).compile(grammar))
    assert matcher.accept_bytes(b"Abc")
    assert not matcher.accept_bytes(b"x")
    with pytest.raises(GrammarError, match="dialect must be 'python', 'ecma' or 'rust', not 'perl'"):
        constrain.Grammar.from_regex("a", dialect="perl")  # type: ignore[arg-type]
