"""Stars that absorb what they hold: the language stays what ``re`` says it is, and derivatives come to an end."""

from __future__ import annotations

import itertools
import re

import pytest

import constrain

LETTERS = constrain.Vocabulary([b"a", b"b", b"c", b"-", b"aab", b"ab-", b"</s>"], eos_ids=[6])

PATTERNS = [
    # Derivatives of the star hold the star beside sequences that end in it.
    r"(?:[ab]{0,3}a)*",
    r"a(?:[ab-]{0,5}[ab])?",
    r"(?:[ab]{0,4}a|b{1,3}c)*",
    r"(?:.{0,3}a)*",
    r"c(?:a{0,3}b{0,3}c)*",
    r"(?:(?:a|ab){0,3}b)*",
    r"(?:a[ab]{0,6}|b)*",
    # What comes before the star is not a sequence of what it repeats.
    r"(?:a{0,3}b)*|b{0,5}(?:a{0,3}b)*",
    r"(?:aab)*|[ab]{0,3}(?:aab)*",
    r"(?:ab|a)*|(?:ba){0,3}(?:ab|a)*",
]


def compile_regex(pattern: str) -> constrain.CompiledGrammar:
    return constrain.CompiledGrammar(constrain.Grammar.from_regex(pattern).ir, LETTERS)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_star_absorbs_no_more_than_it_holds(pattern: str) -> None:
    compiled = compile_regex(pattern)
    texts = ["".join(letters) for size in range(7) for letters in itertools.product("abc-", repeat=size)]
    matching = {text for text in texts if re.fullmatch(pattern, text)}
    for text in texts:
        matcher = constrain.Matcher(compiled)
        accepted = matcher.accept_bytes(text.encode()) and matcher.is_accepting()
        assert accepted == (text in matching), text


@pytest.mark.parametrize("pattern", PATTERNS)
def test_derivatives_of_stars_stay_few(pattern: str) -> None:
    compiled = compile_regex(pattern)
    matcher = constrain.Matcher(compiled)
    mask = constrain.allocate_token_bitmask(1, LETTERS.size)
    for letter in "acabaabab" * 20:
        matcher.fill_next_token_bitmask(mask)
        matcher.accept_bytes(letter.encode())
    assert compiled.statistics()["nodes"] < 300


@pytest.mark.parametrize(("most", "fits"), [(2, False), (3, True)])
def test_a_label_of_a_host_name(most: int, fits: bool) -> None:
    compiled = compile_regex(f"[a-z](?:[a-z-]{{0,{most}}}[a-z])?")
    matcher = constrain.Matcher(compiled)
    assert matcher.accept_bytes(b"a")
    mask = constrain.allocate_token_bitmask(1, LETTERS.size)
    matcher.fill_next_token_bitmask(mask)
    # Behind a token that ends with a hyphen a letter has to come.
    assert bool(mask[0, 0] >> 5 & 1) == fits
    assert mask[0, 0] | 1 << 5 == 0b1111111
