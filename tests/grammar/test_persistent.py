"""Immutable maps and sets against those of Python."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from constrain.grammar.json_schema.text_dependent.persistent import PersistentMap, PersistentSet


class Key:
    """A key that shares its hash, or the low bits of it, with others."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __hash__(self) -> int:
        return (self.number % 5) << (60 if self.number % 2 else 0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and self.number == other.number


NUMBERS = st.lists(st.integers(0, 30))


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 2))))
def test_maps(changes: list[tuple[int, int]]) -> None:
    found: PersistentMap[Key, int] = PersistentMap()
    expected: dict[Key, int] = {}
    for number, value in changes:
        key = Key(number)
        assert found.get(key) == expected.get(key)
        assert (key in found) == (key in expected)
        if value == 0 and key in expected:
            del expected[key]
            found = found.minus(key)
        else:
            expected[key] = value
            found = found.plus(key, value)
        assert len(found) == len(expected)
    assert dict(found.items()) == expected
    again: PersistentMap[Key, int] = PersistentMap()
    for key in sorted(expected, key=lambda key: key.number):
        again = again.plus(key, expected[key])
    assert found == again
    for key in expected:
        assert found != again.minus(key)
        assert found != again.plus(key, -1)


@given(NUMBERS)
def test_sets(changes: list[int]) -> None:
    found: PersistentSet[Any] = PersistentSet()
    expected: set[Any] = set()
    for number in changes:
        found = found.minus(Key(number)) if number in expected else found.plus(Key(number))
        expected ^= {number}
        assert {key.number for key in found} == expected
        assert not expected or found.any_element().number in expected
        assert found.minus(Key(-1)) is found
        assert all(found.plus(Key(each)) is found for each in expected)
    again = PersistentSet.of(Key(number) for number in sorted(expected, reverse=True))
    assert found == again
    assert hash(found) == hash(again)
    assert bool(found) == bool(expected)


@given(NUMBERS)
def test_what_follows_from_a_set(changes: list[int]) -> None:
    steps: list[int] = []

    def add(total: int, number: int, is_added: bool) -> int:
        steps.append(number)
        return total + number if is_added else total - number

    found: PersistentSet[int] = PersistentSet()
    expected: set[int] = set()
    for number in changes:
        found = found.minus(number) if number in expected else found.plus(number)
        expected ^= {number}
        # One step from one set to the next.
        steps.clear()
        assert found.derived(int, add) == sum(expected)
        assert steps == [number]
    steps.clear()
    assert found.derived(int, add) == sum(expected)
    assert not steps
