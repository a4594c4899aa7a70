"""Strings added to a tree, and taken out of it, one by one."""

import sys
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from constrain.grammar.languages.growing_tree import GrowingTree
from constrain.grammar.languages.regular import EMPTY, Concat, Empty, Literal, Regular, Union, literal

TEXTS = st.text("ab", max_size=4) | st.integers(0, 200).map(lambda size: "a" * size)


def strings(language: Regular) -> set[bytes]:
    """All strings of a language without repetitions; each must be there in one way only."""
    if isinstance(language, Empty):
        return set()
    if isinstance(language, Literal):
        return {language.data}
    found = {b""}
    if isinstance(language, Concat):
        for part in language.parts:
            found = {before + after for before in found for after in strings(part)}
        return found
    assert isinstance(language, Union)
    parts = [strings(part) for part in language.parts]
    found = set().union(*parts)
    assert len(found) == sum(map(len, parts))
    return found


@given(st.sets(TEXTS), st.lists(TEXTS))
def test_a_tree_has_what_was_put_into_it(begin: set[str], changes: list[str]) -> None:
    tree, expected = GrowingTree(literal, begin), set(begin)
    for text in changes:
        assert (text in tree) == (text in expected)
        tree = tree.minus(text) if text in expected else tree.plus(text)
        expected ^= {text}
        assert tree.size == len(expected)
    assert set(tree) == expected
    assert strings(tree.language) == {text.encode() for text in expected}


def test_trees_are_not_changed() -> None:
    tree = GrowingTree(literal, ["ab", "ac"])
    assert strings(tree.plus("abc").language) == {b"ab", b"ac", b"abc"}
    assert strings(tree.minus("ab").language) == {b"ac"}
    assert strings(tree.language) == {b"ab", b"ac"}
    assert GrowingTree(literal).language is EMPTY


def test_a_string_more_makes_few_new_languages() -> None:
    def parts(language: Any) -> dict[int, Regular]:
        found, todo = {}, [language]
        while todo:
            each = todo.pop()
            if id(each) not in found:
                found[id(each)] = each
                todo += getattr(each, "parts", ())
        return found

    tree = GrowingTree(literal, map(str, range(10_000)))
    known = parts(tree.language)
    new = [part for number, part in parts(tree.plus("123456").language).items() if number not in known]
    assert len(new) < 20 < 10_000 < len(known)


def test_what_begins_with_each_other_is_not_nested_deeply() -> None:
    for sizes in (range(2000), range(2000, 0, -1)):
        tree = GrowingTree(literal)
        for size in sizes:
            tree = tree.plus("a" * size)
        limit = sys.getrecursionlimit()
        try:
            sys.setrecursionlimit(500)
            assert hash(tree.language) != hash(EMPTY)
        finally:
            sys.setrecursionlimit(limit)
