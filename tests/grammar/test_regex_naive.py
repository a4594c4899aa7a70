"""The naive matcher itself, against the definition of each kind of node on all short strings."""

from __future__ import annotations

import itertools
from functools import cache

from hypothesis import given
from hypothesis import strategies as st
from naive_regular import derivative, is_viable_prefix, matches, nullable

from constrain.grammar.languages.regular import (
    EMPTY,
    ByteSet,
    Complement,
    Concat,
    Intersect,
    Literal,
    Regular,
    Repeat,
    Union,
    byte_set,
)

LENGTH = 4
STRINGS = [bytes(letters) for n in range(LENGTH + 1) for letters in itertools.product(b"ab", repeat=n)]


@cache
def members(regular: Regular) -> frozenset[bytes]:
    """The strings up to LENGTH over a and b that are in the language, by set operations alone."""
    if isinstance(regular, Literal):
        return frozenset({regular.data} & set(STRINGS))
    if isinstance(regular, ByteSet):
        return frozenset(text for text in STRINGS if len(text) == 1 and regular.bits >> text[0] & 1)
    if isinstance(regular, Union):
        return frozenset().union(*map(members, regular.parts))
    if isinstance(regular, Intersect):
        return frozenset(STRINGS).intersection(*map(members, regular.parts))
    if isinstance(regular, Complement):
        return frozenset(STRINGS) - members(regular.item)
    if isinstance(regular, Concat):
        found = frozenset({b""})
        for part in regular.parts:
            found = joined(found, members(part))
        return found
    if isinstance(regular, Repeat):
        found = result = frozenset({b""})
        if regular.low:
            result = frozenset()
        # More repetitions than LENGTH beyond the least add nothing new that is short enough.
        for count in range(1, min(regular.high or 99, regular.low + LENGTH + 1) + 1):
            found = joined(found, members(regular.item))
            if count >= regular.low:
                result |= found
        return result if regular.high != 0 else frozenset({b""})
    return frozenset()


def joined(left: frozenset[bytes], right: frozenset[bytes]) -> frozenset[bytes]:
    return frozenset(a + b for a in left for b in right if len(a + b) <= LENGTH)


LEAVES = st.sampled_from([EMPTY, Literal(b""), Literal(b"a"), Literal(b"ab"), byte_set(b"ab"), byte_set(b"b")])
REGULARS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(lambda *parts: Concat(parts), inner, inner),
        st.builds(lambda *parts: Union(parts), inner, inner),
        st.builds(lambda *parts: Intersect(parts), inner, inner),
        st.builds(Complement, inner),
        st.builds(
            lambda item, low, more: Repeat(item, low, None if more is None else low + more),
            inner,
            st.integers(0, 3),
            st.none() | st.integers(0, 3),
        ),
    ),
    max_leaves=6,
)


@given(REGULARS)
def test_matches_is_membership(regular: Regular) -> None:
    assert {text for text in STRINGS if matches(regular, text)} == members(regular)


@given(REGULARS)
def test_a_derivative_takes_one_byte_off(regular: Regular) -> None:
    then = derivative(regular, ord("a"))
    for text in STRINGS:
        assert matches(then, text) == matches(regular, b"a" + text)
    assert nullable(then) == matches(regular, b"a")


@given(REGULARS)
def test_viable_prefixes_lead_to_a_match(regular: Regular) -> None:
    inside = members(regular)
    for prefix in STRINGS:
        if any(text.startswith(prefix) for text in inside):
            assert is_viable_prefix(regular, prefix)


def test_prefixes_that_are_not_viable() -> None:
    language = Concat((Repeat(Literal(b"ab"), 1, 2), Literal(b"c")))
    viable = [b"", b"a", b"ab", b"aba", b"abab", b"abc", b"ababc"]
    assert [is_viable_prefix(language, prefix) for prefix in viable] == [True] * len(viable)
    for prefix in (b"b", b"aa", b"ababa", b"abcc", b"ac"):
        assert not is_viable_prefix(language, prefix)
    assert not is_viable_prefix(Intersect((Literal(b"a"), Literal(b"b"))), b"")
    assert is_viable_prefix(Complement(Literal(b"a")), b"a")
