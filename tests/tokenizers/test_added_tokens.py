"""The search for added tokens: one regex for all of them, however many there are."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st
from processor_time import processor_time

from constrain.tokenizers.added_tokens import AddedToken, AddedTokenFinder, any_finder, longest_of

CONTENTS = st.lists(st.text("ab^]-\\\n[<\u2581", min_size=1, max_size=6), min_size=1, max_size=12)


def naive(contents):
    return "|".join(map(re.escape, sorted(set(contents), key=len, reverse=True)))


@settings(max_examples=500)
@given(CONTENTS, st.text("ab^]-\\\n[<\u2581", max_size=30))
def test_same_matches_as_an_alternation(contents, text):
    found = [match.span() for match in re.finditer(longest_of(contents), text)]
    assert found == [match.span() for match in re.finditer(naive(contents), text)]
    common, find_any = any_finder([AddedToken(i, content) for i, content in enumerate(contents)])
    assert (common in text and find_any(text) is not None) == bool(found)


def test_long_runs_and_many_tokens():
    runs = ["\n" * i for i in range(1, 500)] + [f"<unused{i}>" for i in range(6_000)] + ["\u2581" * 3]
    with processor_time() as spent:
        finder = AddedTokenFinder([AddedToken(i, content) for i, content in enumerate(runs)])
    assert spent.seconds < 10
    text = "a\n" * 20_000 + "<unused5999>" + "\n" * 700 + "\u2581" * 7 + "<unused6000>"
    with processor_time() as spent:
        parts = finder.split(text)
    assert spent.seconds < 10
    ids = [token.id for _, _, token in parts if token is not None]
    assert ids == [0] * 20_000 + [499 + 5999, 498, 200, 6499, 6499]
    assert "".join(text[begin:end] for begin, end, _ in parts) == text
