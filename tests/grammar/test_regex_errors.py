"""What is refused, where the error points, and that hostile patterns cost little."""

from __future__ import annotations

import contextlib

import pytest
from processor_time import processor_time

import constrain
from constrain.errors import GrammarError
from constrain.grammar.regex import from_regex, regex_code_points, regex_language
from constrain.grammar.regex.parser import MAX_DEPTH, MAX_LENGTH

# The pattern, the column of the fault, and part of the reason.
CASES = [
    ("ab(cd", 3, "never closed"),
    ("ab)cd", 3, "closes nothing"),
    ("ab[cd", 3, "never closed"),
    ("[]", 1, "never closed"),
    ("a(?#b", 2, "never closed"),
    ("*a", 1, "nothing to repeat"),
    ("a|+b", 3, "nothing to repeat"),
    ("(?:?a)", 4, "nothing to repeat"),
    ("ab**", 4, "another quantifier"),
    ("ab{2}{3}", 6, "another quantifier"),
    ("ab+??", 5, "another quantifier"),
    ("a^*", 3, "repeat an anchor"),
    (r"a\b+", 4, "repeat an anchor"),
    ("ab{3,2}", 3, "wrong order"),
    ("ab{1000001}", 3, "at most 1000000"),
    ("ab{" + "9" * 5000 + "}", 3, "at most 1000000"),
    ("a[z-b]", 3, "wrong order"),
    (r"a[b-\d]", 3, "not a range"),
    (r"a[\d-b]", 3, "not a range"),
    (r"ab\q", 3, "unknown escape"),
    (r"ab[\A]", 4, "unknown escape"),
    ("ab\\", 3, "ends in a backslash"),
    (r"ab\x1", 3, "2 hexadecimal digits"),
    (r"ab\u12g4", 3, "4 hexadecimal digits"),
    (r"ab\U00110000", 3, "beyond U+10FFFF"),
    (r"ab\N{NO SUCH NAME}", 3, "no character named"),
    (r"ab\N", 3, "in braces"),
    (r"ab\400", 3, "larger than"),
    (r"[\8]", 2, "not a character"),
    (r"(a+)\1", 5, "back-references"),
    (r"(?P<n>a*)(?P=n)", 10, "back-references"),
    (r"(?<n>a+)\k<n>", 9, "back-references"),
    (r"(.)\1", 4, "back-references"),
    (r"(a)?\1", 5, "a group without a quantifier"),
    (r"(){0}\1", 6, "a group without a quantifier"),
    (r"(a|b)\1*", 8, "a quantifier behind a back-reference"),
    (r"(?:(a)|b)\1", 10, "in the same alternative"),
    (r"(a)|\1", 5, "in the same alternative"),
    (r"(a\1)", 3, "no group 1 ends before"),
    (r"\1(a)", 1, "no group 1 ends before"),
    (r"(a)\2", 4, "no group 2 ends before"),
    (r"(?P<n>a)(?P=m)", 9, "no group 'm' ends before"),
    (r"(a)\k<1>", 4, "no group '1' ends before"),
    (r"(?<n>a)\k<n", 8, "no back-reference; write"),
    (r"(?<n>a)\k<>", 8, "no back-reference; write"),
    (r"(?P<n>a)(?P=)", 9, "no back-reference; write"),
    (r"(?i)(a)\1", 8, "with the flag i"),
    (r"([a-z])([a-z])\1\2", 17, "have 676 combinations of texts"),
    (r"(?=(a))\1", 8, "the same parentheses"),
    (r"(a|ab)(?:-\1|b)", 11, "the same parentheses"),
    (r"(?i:(a|b))\1", 11, "the same parentheses"),
    (r"a+(?<=(a)\1)", 10, "in a look-behind"),
    ("(a)(?(1)b|c)", 4, "conditional"),
    ("ab(?>a|bc)", 3, "atomic"),
    ("a(?:b|cd)*+", 10, "possessive"),
    ("(?P<1>a)", 1, "not a name"),
    ("(?P<n>a)(?<n>b)", 9, "used twice"),
    ("(?P<n", 1, "must end in >"),
    ("(?q)", 3, "unknown flag 'q'"),
    ("(?i-q:a)", 5, "unknown flag 'q'"),
    ("a(?i)b", 2, "write (?i:...)"),
    ("(?-i)a", 1, "cannot be switched off"),
    ("(?i-i:a)", 1, "both on and off"),
    ("(?au:a)", 1, "exclude each other"),
    ("(?:)(?+a)", 5, "unknown kind of group"),
    (r"ab\p{InGreek}", 3, "ranges"),
    (r"ab\p{Script=Greekish}", 3, r"unknown script 'Greekish'; did you mean 'greek'"),
    (r"ab\p{sc=Zzyzx}", 3, "unknown script 'Zzyzx'"),
    (r"ab\p{Greeks}", 3, "unknown property"),
    (r"ab\p{scx=Greek}", 3, r"Script_Extensions are not known; write \p{Script=Greek}"),
    (r"ab\p{Age=3}", 3, "unknown property"),
    (r"ab\p", 3, "followed by a property"),
    (r"ab\p{Lu", 3, "in braces"),
    (r"ab\d(?:ab(?=abc)|b)*", 10, "look-ahead reaches beyond"),
    (r"b(?:\w(?<=abc))+", 7, "look-behind reaches back"),
    ("a\nb(c\nd", 2, "never closed"),
]


@pytest.mark.parametrize(("pattern", "column", "reason"), CASES)
def test_the_place_and_the_reason(pattern: str, column: int, reason: str) -> None:
    with pytest.raises(GrammarError) as caught:
        from_regex(pattern)
    error = caught.value
    assert reason in error.reason
    assert (error.line, error.column) == (1 + ("\n" in pattern), column)
    assert str(error) == f"line {error.line}, column {error.column}: {error.reason}"
    assert "\n" not in str(error)


def test_back_references_are_not_written_out_without_a_limit() -> None:
    # The group and the reference are parts, too.
    assert from_regex("([a-j])" + "x" * 19_998 + r"\1")
    for longer in ("xx", "(?:x|yz)", "(?=x|yz)x", "(?:xy)*"):
        with pytest.raises(
            GrammarError, match=r"^the pattern has 2\d{5} parts when its back-references are written out"
        ):
            from_regex("([a-j])" + "x" * 19_997 + longer + r"\1")


def test_look_aheads_of_many_alternatives() -> None:
    # What none of them lets begin are 3 ** 12 combinations.
    words = ["|".join("." * (1 + 3 * place + i) + "a" for i in range(3)) for place in range(12)]
    with processor_time() as spent, pytest.raises(GrammarError, match="look-ahead reaches beyond"):
        from_regex("(?:" + "|".join(f"(?!{word})." for word in words) + ")*x")
    assert spent.seconds < 10


@pytest.mark.parametrize(
    ("pattern", "column", "reason"),
    [
        (r"a\1", 2, "no group 1 ends before"),
        (r"(a)\10", 4, "no group 10 ends before"),
        # There it matches before its group does, and so nothing.
        (r"a+(?<=(a)\1)", 10, "in a look-behind"),
        (r"a\01", 2, "U+0000"),
        (r"[\1]", 2, "not a character"),
        (r"a\u{110000}", 2, "beyond U+10FFFF"),
        (r"a\u{}", 2, "hexadecimal"),
        (r"a\c1", 2, "letter from A to Z"),
        ("a{,5}", 2, "write {0,5}"),
        (r"a\U00000061", 2, "unknown escape"),
        (r"a\N{DIGIT ONE}", 2, "unknown escape"),
        ("a*+", 3, "another quantifier"),
    ],
)
def test_ecma_has_its_own_errors(pattern: str, column: int, reason: str) -> None:
    with pytest.raises(GrammarError, match="line 1") as caught:
        regex_code_points(pattern, dialect="ecma")
    assert reason in caught.value.reason
    assert caught.value.column == column


def test_arguments() -> None:
    with pytest.raises(GrammarError, match="unknown regex flag 'z'"):
        regex_language("a", flags="iz")
    with pytest.raises(GrammarError, match="exclude each other"):
        regex_language("a", flags="au")
    with pytest.raises(TypeError, match="not bytes"):
        regex_language(b"a")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="dialect"):
        regex_code_points("a", dialect="perl")  # type: ignore[arg-type]


def test_the_limit_on_nesting_is_named() -> None:
    regex_language("(" * MAX_DEPTH + "a" + ")" * MAX_DEPTH)
    regex_language("(?:x" * MAX_DEPTH + "a" + ")*y" * MAX_DEPTH)
    with pytest.raises(GrammarError, match=f"nested more than {MAX_DEPTH} deep") as caught:
        regex_language("(" * 100_000)
    assert caught.value.column == MAX_DEPTH + 1


HOSTILE = {
    "brackets": "[" * MAX_LENGTH,
    "braces": "{" * MAX_LENGTH,
    "comments": "(?#" * 60_000,
    "nested stars": "(?:" * MAX_DEPTH + "a?" + ")*" * MAX_DEPTH,
    "nested counts": "(?:" * MAX_DEPTH + "a" + "){1000000}" * MAX_DEPTH,
    "wide alternatives": "|".join(f"w{number}" for number in range(20_000)),
    "empty alternatives": "(?:|a)" * 15_000,
    "nullable items": "a?" * 40_000,
    "nullable items before a boundary": "a?" * 20_000 + r"\b",
    "word classes": r"\wx|" * 30_000,
    "boundaries": r"\ba?" * 200,
    "optional boundaries": r"(?:\b|a)" * 200,
    "nested boundaries": "(?:" * 50 + r"\ba?" + ")*b?" * 50,
    "counted boundaries": r"(?:a|\b){1000}",
    "look-aheads": "(?=.*a)a?" * 200,
    "optional look-aheads": "(?:(?=.*a)|b)" * 100,
    "nested look-aheads": "(?=.*" * 90 + "a" + ")" * 90,
    "look-behinds": "".join(f".(?<=[{chr(97 + number)}])" for number in range(26)),
    "guards": "(?:(?!" + "|".join(f"w{number}" for number in range(60)) + ").)*x",
    "many boundaries": r"\b" * 100_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_patterns_cost_bounded_time(name: str) -> None:
    with processor_time() as spent:
        for anchored in (True, False):
            with contextlib.suppress(GrammarError):
                regex_language(HOSTILE[name], flags="a", anchored=anchored)
    assert spent.seconds < 20


def test_a_pattern_that_is_too_long() -> None:
    with pytest.raises(GrammarError, match=f"the limit is {MAX_LENGTH}"):
        regex_language("a" * (MAX_LENGTH + 1))


@pytest.mark.parametrize("pattern", [r"^\+(?=\d)", "(?<=x)a", "a$b"])
def test_a_pattern_without_a_text_says_what_look_around_finds(pattern: str) -> None:
    compiler = constrain.GrammarCompiler(constrain.Vocabulary([b"a", b""], eos_ids=[1]))
    with pytest.raises(GrammarError, match="no text: it is for a whole text, so look-around finds nothing before"):
        compiler.compile(constrain.Grammar.from_regex(pattern))


def test_a_posix_class_is_valid_ecmascript_and_a_warning() -> None:
    assert constrain.Grammar.from_regex("[[:upper:]]", dialect="ecma").warnings == (
        "[:upper:] in a set stands for its letters, not for a class; write A-Z or \\p{Lu}",
    )
    assert not constrain.Grammar.from_regex(r"\[[:a]", dialect="ecma").warnings
    assert not constrain.Grammar.from_regex("[[:upper:]]", dialect="rust").warnings
