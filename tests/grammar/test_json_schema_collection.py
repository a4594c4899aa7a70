"""The garbage collector is left as it was found."""

from __future__ import annotations

import gc
import linecache
import sys
import threading
from types import FrameType

import pytest
from traced import interrupt, reaches

import constrain
from constrain import collection
from constrain.collection import without_collection
from constrain.errors import SchemaError


def test_it_goes_on_afterwards() -> None:
    assert gc.isenabled()
    constrain.Grammar.from_json_schema({"type": "object"})
    assert gc.isenabled()
    with pytest.raises(SchemaError):
        constrain.Grammar.from_json_schema('{"type": 5}')
    assert gc.isenabled()


def test_it_stays_off_where_it_was() -> None:
    gc.disable()
    try:
        constrain.Grammar.from_json_schema({"type": "object"})
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_the_last_of_several_threads_resumes_it() -> None:
    inside, leave = threading.Event(), threading.Event()

    @without_collection
    def other() -> None:
        inside.set()
        leave.wait(10)

    thread = threading.Thread(target=other)

    @without_collection
    def first() -> None:
        thread.start()
        assert inside.wait(10)
        assert not gc.isenabled()

    first()
    assert not gc.isenabled()
    leave.set()
    thread.join()
    assert gc.isenabled()


@without_collection
def _make_many() -> list[list[int]]:
    return [[index] for index in range(3000)]


@pytest.mark.parametrize("most", [10**9, 0])
def test_many_new_objects_are_not_looked_at_for_nothing(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(collection, "_MANY", 1000)
    monkeypatch.setattr(collection, "_MOST_UNSEEN", most)
    monkeypatch.setattr(collection, "_unseen", 0)
    gc.unfreeze()
    seen: list[str] = []

    def note(phase: str, info: dict[str, int]) -> None:
        seen.append(f"{phase} {info['generation']}")

    gc.callbacks.append(note)
    try:
        made = _make_many()
    finally:
        gc.callbacks.remove(note)
    # Where very many have not been looked at, all are.
    assert [each for each in seen if each.startswith("start")] == ([] if most else ["start 2"])
    assert gc.isenabled()
    assert gc.is_tracked(made[0])
    assert not gc.get_freeze_count()
    # They are found when they are garbage.
    made[0].append(made)  # type: ignore[arg-type]
    made[1].append(made)  # type: ignore[arg-type]
    del made
    assert gc.collect() >= 2


def test_what_is_frozen_stays_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection, "_MANY", 1000)
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        assert len(_make_many()) == 3000
        assert gc.get_freeze_count() >= frozen - 100
        assert gc.isenabled()
    finally:
        gc.unfreeze()


def test_it_goes_on_where_calls_are_nested_too_deeply() -> None:
    @without_collection
    def work() -> None:
        pass

    def deep(n: int) -> None:
        if n:
            deep(n - 1)
        else:
            work()

    ends = set()
    for depth in range(sys.getrecursionlimit()):
        try:
            deep(depth)
            ends.add("done")
        except RecursionError:
            ends.add("too deep")
        assert gc.isenabled(), depth
        assert not collection._pauses, depth
    assert len(ends) == 2


@pytest.mark.parametrize("is_on", [True, False])
def test_a_call_at_any_place_of_another(is_on: bool) -> None:
    """Signal handlers and finalizers may make grammars, too."""

    @without_collection
    def work() -> None:
        assert not gc.isenabled()

    def happens() -> None:
        sys.settrace(None)
        work()

    def play(at: int) -> bool:
        return reaches(work, at, happens, files=collection.__file__.__eq__)

    (gc.enable if is_on else gc.disable)()
    at = 1
    try:
        while play(at):
            assert gc.isenabled() == is_on, at
            assert not collection._pauses, at
            at += 1
    finally:
        gc.enable()
    assert at > 20


@pytest.mark.parametrize("is_on", [True, False])
def test_an_interrupt_at_any_place_leaves_it_as_it_was(is_on: bool) -> None:
    @without_collection
    def outer() -> None:
        inner()

    @without_collection
    def inner() -> None:
        pass

    def counts(frame: FrameType, _event: str) -> bool:
        # No interrupt comes between the end of a block and the release of its lock, a line of its own here.
        return not linecache.getline(collection.__file__, frame.f_lineno).lstrip().startswith("with ")

    def play(at: int) -> bool:
        """Whether there is a place with this number: a line, or the beginning or the end of a function."""
        try:
            return reaches(outer, at, interrupt, files=collection.__file__.__eq__, counts=counts)
        except KeyboardInterrupt:
            return True

    (gc.enable if is_on else gc.disable)()
    at = 1
    try:
        while play(at):
            assert gc.isenabled() == is_on, at
            assert not collection._pauses, at
            assert not collection._lock._is_owned(), at
            at += 1
    finally:
        gc.enable()
    assert at > 50
