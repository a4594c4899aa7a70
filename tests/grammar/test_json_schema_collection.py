"""The garbage collector is left as it was found."""

from __future__ import annotations

import gc
import threading

import pytest

import constrain
from constrain.collection import paused_collection
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

    def other() -> None:
        with paused_collection():
            inside.set()
            leave.wait(10)

    with paused_collection():
        thread = threading.Thread(target=other)
        thread.start()
        assert inside.wait(10)
        assert not gc.isenabled()
    assert not gc.isenabled()
    leave.set()
    thread.join()
    assert gc.isenabled()
