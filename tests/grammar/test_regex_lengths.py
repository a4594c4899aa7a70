"""Bounds on the length of a pattern's matches, against trying every short text."""

from __future__ import annotations

import itertools
import re

import pytest

from constrain.grammar.languages.derivatives import Automaton
from constrain.grammar.languages.regular import Intersect, Regular
from constrain.grammar.regex import regex_of_length

BOUNDS = [(low, high) for low in range(5) for high in (None, 0, 1, 2, 3, 5) if high is None or low <= high]
TEXTS = ["".join(letters) for length in range(7) for letters in itertools.product("ab", repeat=length)]


@pytest.mark.parametrize(
    "pattern",
    ["^[ab]+$", "^a[ab]*$", "^a([ab]*b)?$", "^(ab)+$", "^a{2,5}b$", "^a?b?$", "^$|^a+$", "^(aab){1,3}$"],
)
def test_bounded_patterns_match_what_is_as_long(pattern: str) -> None:
    bounded = 0
    for low, high in BOUNDS:
        language = regex_of_length(pattern, low, high)
        if language is None:
            continue
        bounded += 1
        automaton = Automaton(language)
        for text in TEXTS:
            fits = low <= len(text) and (high is None or len(text) <= high)
            wanted = fits and re.search(pattern.replace("$", r"\Z"), text) is not None
            assert automaton.matches(text.encode()) == wanted, (low, high, text)
    assert bounded >= 3


@pytest.mark.parametrize("pattern", ["^[a-z][a-z0-9-]*$", "^([a-z]{2}-)?x$", "^[a-z]([-a-z0-9]*[a-z0-9])?$"])
def test_bounds_need_no_intersection(pattern: str) -> None:
    language = regex_of_length(pattern, 1, 63)
    assert language is not None
    assert not any(isinstance(part, Intersect) for part in _parts(language))


@pytest.mark.parametrize("pattern", ["a", "^a*b*$", "^(a|bb)*$", "^(?!ab)[ab]*$"])
def test_what_varies_in_two_places_is_left_to_an_intersection(pattern: str) -> None:
    assert regex_of_length(pattern, 1, 4) is None


def _parts(language: Regular) -> list[Regular]:
    inner = getattr(language, "parts", ()) or ([language.item] if hasattr(language, "item") else [])
    return [language, *(part for each in inner for part in _parts(each))]
