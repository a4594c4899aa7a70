"""Split patterns by regex: against Hugging Face's engine, against the hand-written scanners, and hostile ones."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import tokenizers
from hypothesis import given, settings
from processor_time import processor_time
from tokenizer_texts import TEXTS

from constrain.errors import TokenizerError
from constrain.tokenizers.splitting import unicode_classes as uc
from constrain.tokenizers.splitting.patterns import _NAMES, by_name
from constrain.tokenizers.splitting.programs import compile_split
from constrain.tokenizers.splitting.stages import BEHAVIORS, RegexStage, split_in_stages
from constrain.unicode_categories import CATEGORIES, category_table

PATTERNS = [
    r"\w+|[^\w\s]+", r"\p{N}{1,3}", r"\s+$", r"(?=(\d{3})+(?!\d))", r"\d{1,3}(?=(?:\d{3})*\b)", r"(?<=a)b|.c",
    r"[^\r\n\p{L}\p{N}]?((?=[\p{L}])([^a-z]))*((?=[\p{L}])([^A-Z]))+|\s", r"(?>a+)ab|\w", r" ?[^(\s|.,!?…。]+",
    r"[\p{P}\$\+<=>\^~\|`]+", r"\b\w|x\B", r"^\s|x$", r"(?i:the|s)+?", r"l{2,}|o{1}|[a-e&&[^b]]++", r"\p{Han}+|\P{L}",
    r"(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+", r"\x41|[\x{61}-c]", "[一-龥぀-ゟ]+",
]  # fmt: skip


def pieces(text, *stages):
    cut = split_in_stages(np.frombuffer(bytearray(text.encode()), dtype=np.uint8), stages)
    data = bytes(cut.data)
    return [data[begin:end].decode() for begin, end in pairwise([0, *cut.ends.tolist()])]


@pytest.mark.parametrize("regex", PATTERNS)
def test_equal_to_tokenizers(regex):
    names = ("isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous")
    pairs = [
        (
            RegexStage(regex, behavior, invert, oniguruma=True),
            tokenizers.pre_tokenizers.Split(tokenizers.Regex(regex), name, invert),
        )
        for behavior, name in zip(BEHAVIORS, names, strict=True)
        for invert in (False, True)
        # There the reference keeps empty matches apart.
        if not (regex.startswith("(?=") and name == "contiguous")
    ]

    @settings(max_examples=40)
    @given(TEXTS)
    def check(text):
        for stage, reference in pairs:
            assert pieces(text, stage) == [part for part, _ in reference.pre_tokenize_str(text)]

    check()


@pytest.mark.parametrize(
    ("regex", "text"),
    [
        (r"\p{L}{1,2}+", "abcde f"),
        (r"a{2}?b", "b aab ab"),
        (r"a{1,2}?b?", "aab"),
        (r"(?:.{1,2}+x{2}+)", "aaxxxxa"),
        ("(?i)\u03c3|\u017f|\u00b5|k|\u00c5", "\u03c2\u03a3 sS \u03bc K\u212a \u212b\u00e5"),
        (r"(?i)[\p{Nl}]b|[a-z&&[^B]]", "\u2170B\u2160bKb\u212a\u017f"),
        (r"(?i)\p{Ll}|[^s]", "aA \u017fSs"),
        ("(?i)\ua7cb\u10d50|\u2c2f", "\u0264\u0010d70 \u2c5f"),
        (r"\p{Word}|[^\p{Word}]x", "\u00bdx \u200d"),
    ],
)
def test_what_oniguruma_reads_in_its_own_way(regex, text):
    stage = RegexStage(regex, "Removed", True, oniguruma=True)
    reference = tokenizers.pre_tokenizers.Split(tokenizers.Regex(regex), "removed", True)
    assert pieces(text, stage) == [part for part, _ in reference.pre_tokenize_str(text)]


@pytest.mark.parametrize(
    "regex", ["(?i)ss", "(?i)a(?:s)t", "(?i)\u00df", "(?i)[\u00d0-\u00ff]", "(?i)i\u0307", "(?i:f)i|(?i:fi)"]
)
def test_characters_that_are_several_in_another_case(regex):
    with pytest.raises(TokenizerError, match=r"in another case (are|is) not supported"):
        RegexStage(regex, oniguruma=True).check()
    RegexStage(regex).check()


def test_what_rust_reads_in_its_own_way():
    def matches(regex, text):
        return pieces(text, RegexStage(regex, "Removed", True))

    assert matches("a{1,2}+a", "aa aaa") == ["aaa"]
    assert matches("ba{2}?", "b baa") == ["baa"]
    assert matches(r"(?i)\p{Ll}|\u00df", "A\u1e9ess") == ["A", "\u1e9e", "s", "s"]
    same = [
        regex
        for regex in ("a{2}", "^a", "a{2}+", "(?i:ss)", "(?i:'s)", r"\p{Word}")
        if RegexStage(regex).is_same_in_oniguruma()
    ]
    assert same == ["a{2}", "(?i:'s)"]


def test_scanners_equal_their_regexes():
    @settings(max_examples=150)
    @given(TEXTS)
    def check(text):
        for regex, name in _NAMES.items():
            assert pieces(text, RegexStage(regex)) == pieces(text, by_name(name))

    check()


def test_stages_see_one_piece_at_a_time():
    assert pieces("a1  b", RegexStage(r"\d"), RegexStage(r"\s+(?!\S)")) == ["a", "1", " ", " b"]
    assert pieces("a1  b", RegexStage(r"\s", "Removed"), by_name("gpt2")) == ["a", "1", "b"]
    origin = split_in_stages(np.frombuffer(b"a b", dtype=np.uint8).copy(), [RegexStage(" ", "Removed")]).origin
    assert origin is not None
    assert origin.tolist() == [0, 2]
    assert pieces("", RegexStage("a")) == []


@pytest.mark.parametrize(
    ("regex", "words"),
    [
        ("a(b", "character 3: a group is not closed"),
        ("ab)", r"character 2: unmatched \)"),
        ("*a", "nothing to repeat"),
        ("(a*)*", "may be empty"),
        (r"(?=a)*", "may be empty"),
        (r"\1", r"escape \\1 is not supported"),
        (r"\p{Greek}", "property 'Greek' is not supported"),
        ("(?<=ab)c", "lookbehind is supported over one character"),
        ("(?<name>a)", r"group \(\?<"),
        ("[a", "ends too early"),
        ("[z-a]", "a range without an end"),
        ("a{3,2}", "wrong way round"),
        ("a{99999}", "at most 1000"),
        ("a{99999999999999999999}", "at most 1000"),
        ("a{,}", "at most 1000"),
        ("a{x}", "begins no repeat"),
        ("[[:alpha:]]", "POSIX"),
        (r"\x{110000}", "no code point"),
        ("\\", "ends too early"),
        ("(" * 5000, "nested too deeply"),
        ("[" * 5000, "nested too deeply"),
        ("((((a{1000}b){1000})c){1000})d", "too large"),
        ("|".join(map(chr, range(0x100, 0x180))), "too many"),
    ],
)
def test_what_is_not_supported_is_named(regex, words):
    with processor_time() as spent, pytest.raises(TokenizerError, match=words):
        compile_split(regex)
    assert spent.seconds < 5


def test_exponential_patterns_give_up():
    with processor_time() as spent, pytest.raises(TokenizerError, match="too many steps"):
        pieces("a" * 100, RegexStage("(a|a)+b|(?:a+)+c"))
    assert spent.seconds < 2


@pytest.mark.parametrize("unit", [" ", "a", "\n", "1", "é", " \n"])
def test_long_runs_are_not_quadratic(unit):
    text = unit * (1_000_000 // len(unit.encode())) + "x"
    for regex in (*_NAMES, r"\s+$", r"\s?\p{L}+", r"\p{N}{1,3}", r"\w+|[^\w\s]+"):
        stage = RegexStage(regex)
        pieces("a", stage)
        with processor_time() as spent:
            data = np.frombuffer(bytearray(text.encode()), dtype=np.uint8)
            split_in_stages(data, [stage])
        assert spent.seconds < 1, regex


def test_categories_agree_with_classes():
    categories, classes = category_table(), uc.class_table()
    numbers = {name: number for number, name in enumerate(CATEGORIES)}
    for name, kind in (("Lu", uc.UPPER), ("Ll", uc.LOWER), ("Lt", uc.TITLE), ("Lm", uc.MODIFIER)):
        assert np.array_equal(categories == numbers[name], classes == kind)
    for initial, kind in (("M", uc.MARK), ("N", uc.NUMBER), ("P", uc.PUNCTUATION), ("S", uc.SYMBOL)):
        members = np.isin(categories, [number for name, number in numbers.items() if name[0] == initial])
        assert np.array_equal(members, classes == kind)


def test_long_patterns_take_a_set_for_each_character_once():
    with pytest.raises(TokenizerError, match="too large"):
        compile_split("|".join(f"ab{number}" for number in range(50_000)))
    with pytest.raises(TokenizerError, match="more than 128 different characters"):
        compile_split("".join(map(chr, range(0x4E00, 0x4F00))))


def test_messages_show_the_beginning_of_a_long_pattern():
    with pytest.raises(TokenizerError) as error:
        compile_split("(" * 20_000)
    assert len(str(error.value)) < 400
