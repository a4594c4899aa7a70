"""Character classes and case, over every code point, against ``re`` and ``unicodedata``."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

import pytest
from naive_regular import matches

from constrain.grammar.languages.utf8 import ALL, LAST, CodePoints, negate
from constrain.grammar.regex import classes, regex_language
from constrain.grammar.regex.nodes import NOTHING, Chars
from constrain.grammar.regex.parser import parse
from constrain.unicode_categories import CATEGORIES
from constrain.unicode_scripts import SCRIPTS

EVERY = [chr(point) for point in range(LAST + 1)]


def points_of(pattern: str, flags: str = "", dialect: str = "python") -> CodePoints:
    """The set that a pattern of one character stands for."""
    node = parse(pattern, flags, dialect)
    assert isinstance(node, Chars)
    return node.points


def expand(points: CodePoints) -> set[int]:
    return {point for first, last in points for point in range(first, last + 1)}


@lru_cache(maxsize=1)
def every_text() -> str:
    return "".join(EVERY)


def by_re(pattern: str, flags: str = "") -> set[int]:
    found = re.finditer(f"(?{flags})(?:{pattern})" if flags else pattern, every_text())
    return {match.start() for match in found}


@pytest.mark.parametrize(
    "pattern", [r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", ".", r"[\d\s]", r"[^\w.]", "[^a-zé-\U0001f600]"]
)
@pytest.mark.parametrize("flags", ["", "a"])
def test_classes_are_those_of_re(pattern: str, flags: str) -> None:
    assert expand(points_of(pattern, flags)) == by_re(pattern, flags)


def test_perl_classes_are_what_str_says() -> None:
    assert expand(points_of(r"\d")) == {ord(char) for char in EVERY if char.isdecimal()}
    assert expand(points_of(r"\w")) == {ord(char) for char in EVERY if char.isalnum() or char == "_"}
    assert expand(points_of(r"\s")) == {ord(char) for char in EVERY if char.isspace()}


def test_general_categories_are_those_of_unicodedata() -> None:
    by_category = {category: expand(points_of(rf"\p{{{category}}}")) for category in CATEGORIES}
    assert sum(map(len, by_category.values())) == len(EVERY)
    # But for what one of the two versions of Unicode does not know, one character has another category since.
    unknown = by_category["Cn"]
    differing = {
        char
        for char in EVERY
        if (category := unicodedata.category(char)) != "Cn"
        and ord(char) not in by_category[category]
        and ord(char) not in unknown
    }
    assert differing <= {"\U0001171e"}
    for letter in "LMNPSZC":
        members = set().union(*(found for category, found in by_category.items() if category[0] == letter))
        assert expand(points_of(rf"\p{letter}")) == expand(points_of(rf"\p{{{letter}}}")) == members
        assert points_of(rf"\P{letter}") == negate(points_of(rf"\p{letter}"))
    assert expand(points_of(r"\p{LC}")) == by_category["Lu"] | by_category["Ll"] | by_category["Lt"]
    assert points_of(r"\p{Assigned}") == points_of(r"\P{Cn}")


def assigned_here_and_there() -> set[int]:
    """Python's Unicode may be an older one, or a newer one."""
    return {ord(char) for char in EVERY if unicodedata.category(char) != "Cn"} - expand(points_of(r"\p{Cn}"))


def test_characters_of_identifiers_are_those_of_str() -> None:
    starts, others = expand(points_of(r"\p{XID_Start}")), expand(points_of(r"\p{XID_Continue}"))
    known = assigned_here_and_there()
    assert starts & known == {point for point in known if chr(point).isidentifier()} - {ord("_")}
    # These got the property after they were assigned.
    known -= {0x200C, 0x200D, 0x30FB, 0xFF65}
    assert others & known == {point for point in known if f"_{chr(point)}".isidentifier()}
    assert points_of(r"\P{XIDS}") == negate(points_of(r"\p{xid start}"))


def test_characters_of_identifiers_that_normal_forms_change() -> None:
    starts, others = expand(points_of(r"\p{ID_Start}")), expand(points_of(r"\p{ID_Continue}"))
    stable, stable_others = expand(points_of(r"\p{XID_Start}")), expand(points_of(r"\p{XID_Continue}"))
    assert stable < starts < others
    assert stable < stable_others < others
    # By definition, what begins or goes on only before it is in form NFKC.
    changed = {point for point in starts if not unicodedata.normalize("NFKC", chr(point)).isidentifier()}
    known = assigned_here_and_there()
    assert changed & known == (starts - stable) & known
    assert points_of(r"\p{IDS}") == points_of(r"\p{id start}")
    assert points_of(r"\P{IDC}") == negate(points_of(r"\p{idc}"))


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("Uppercase_Letter", "Lu"),
        ("uppercase letter", "Lu"),
        ("gc=Lu", "Lu"),
        ("General_Category=Decimal_Number", "Nd"),
        ("Letter", "L"),
        ("punct", "P"),
        ("Space_Separator", "Zs"),
    ],
)
def test_long_names(name: str, short: str) -> None:
    assert points_of(rf"\p{{{name}}}") == points_of(rf"\p{{{short}}}")


def test_named_sets_of_everything() -> None:
    assert points_of(r"\p{Any}") == ALL
    assert points_of(r"\p{ASCII}") == ((0, 0x7F),)
    assert parse(r"\P{Any}", "", "python") is NOTHING


def test_every_long_name_is_a_category() -> None:
    for short in classes._LONG_NAMES.values():
        assert points_of(rf"\p{{{short}}}")


def test_case_is_that_of_re_for_every_character() -> None:
    variants, cased = classes._case_variants()
    letters = "".join(map(chr, sorted(variants)))
    for members in set(variants.values()):
        found = re.findall(chr(members[0]), letters, re.IGNORECASE)
        assert sorted(map(ord, found)) == list(members), f"U+{members[0]:04X}"
    assert all(point in members for point, members in variants.items())
    # Whatever is not listed as having a case has none in re either.
    inside = expand(cased)
    assert all(char.lower() == char.upper() == char for char in EVERY if ord(char) not in inside)


@pytest.mark.parametrize(
    "pattern",
    ["[a-z]", "[^a-z]", "[K-S]", "[à-ö]", "[Α-Ω]", "[ſ]", "[İ]", "[^ı]", r"[\w]", r"[^\W]", "[ǅ]", "[Ꭰ-Ᏼ]", "[^ß]"],
)
@pytest.mark.parametrize("flags", ["i", "ia"])
def test_sets_ignoring_case_are_those_of_re(pattern: str, flags: str) -> None:
    assert expand(points_of(pattern, flags)) == by_re(pattern, flags)


@pytest.mark.parametrize(
    ("pattern", "others"), [("i", "I"), ("[A-I]", "a-i"), ("[\u0131k]", "K\u212a"), ("\u0130", "")]
)
def test_letters_without_a_case_in_ecmascript(pattern: str, others: str) -> None:
    """By Unicode's CaseFolding.txt, U+0130 and U+0131 are other letters than i outside of Turkish."""
    expected = expand(points_of(f"[{pattern.strip('[]')}{others}]"))
    assert expand(points_of(pattern, "i", "ecma")) == expected
    assert points_of(f"[^{pattern.strip('[]')}]", "i", "ecma") == negate(points_of(pattern, "i", "ecma"))


def test_properties_ignoring_case_hold_all_variants() -> None:
    assert expand(points_of(r"\p{Lu}", "i")) >= expand(points_of(r"\p{Lu}")) | {ord("a"), 0xE9, 0x17F}
    assert points_of(r"\P{Lu}", "i") == negate(points_of(r"\p{Lu}", "i"))


def test_ecma_classes() -> None:
    assert expand(points_of(r"\d", dialect="ecma")) == set(range(0x30, 0x3A))
    assert expand(points_of(r"\w", dialect="ecma")) == {point for point in range(128) if chr(point).isalnum()} | {0x5F}
    spaces = {ord(char) for char in EVERY if unicodedata.category(char) == "Zs"} | {
        9,
        10,
        11,
        12,
        13,
        0xFEFF,
        0x2028,
        0x2029,
    }
    assert expand(points_of(r"\s", dialect="ecma")) == spaces
    assert expand(points_of(".", dialect="ecma")) == set(range(LAST + 1)) - {10, 13, 0x2028, 0x2029}


def test_a_lone_surrogate_has_no_utf8_so_it_matches_nothing() -> None:
    regular = regex_language(r"[\ud800-\udfff]|a\ud800?")
    assert matches(regular, b"a")
    assert not matches(regular, b"\xed\xa0\x80")
    assert not matches(regular, b"a\xed\xa0\x80")


def test_scripts_are_those_of_the_package_regex() -> None:
    """It may be of a newer Unicode."""
    package = pytest.importorskip("regex")
    assigned = expand(points_of(r"\p{Assigned}"))
    for name in SCRIPTS.keys() - {"unknown", "zzzz"}:
        found = {
            point
            for match in package.finditer(rf"\p{{Script={name}}}+", every_text())
            for point in range(*match.span())
        }
        assert expand(points_of(rf"\p{{Script={name}}}")) == found & assigned, name


def test_every_code_point_has_one_script() -> None:
    by_number = {number: expand(points_of(rf"\p{{sc={name}}}")) for name, number in SCRIPTS.items()}
    assert sum(map(len, by_number.values())) == LAST + 1
    assert expand(points_of(r"\p{Unknown}")) == expand(points_of(r"[\p{Cn}\p{Co}\p{Cs}]"))


@pytest.mark.parametrize("name", ["Greek", "greek", "Grek", "sc=Greek", "Script=Grek", "script = GREEK"])
@pytest.mark.parametrize("dialect", ["python", "ecma", "rust"])
def test_names_of_scripts(name: str, dialect: str) -> None:
    points = points_of(rf"\p{{{name}}}", dialect=dialect)
    assert {0x370, 0x3B1, 0x1FFE} <= expand(points)
    assert not {0x61, 0x37E, 0x378} & expand(points)
    assert points_of(rf"\P{{{name}}}", dialect=dialect) == negate(points)


def test_scripts_whose_names_have_words() -> None:
    for name in ("Old_Italic", "Script=Ital", "olditalic"):
        assert points_of(rf"\p{{{name}}}") == ((0x10300, 0x10323), (0x1032D, 0x1032F))
