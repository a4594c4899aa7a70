"""Compiling in the background: futures, one compile for equal grammars, cancelling, limits."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from concurrent.futures import CancelledError, wait

import pytest
from forks import child_does
from traced import interrupt, reaches

from constrain import Deadline, Grammar, GrammarCompiler, Vocabulary
from constrain.engine import compile_jobs
from constrain.engine.kept_threads import KeptThreads
from constrain.errors import ConstrainError, LimitError, SchemaError

VOCABULARY = Vocabulary([*(bytes([byte]) for byte in range(32, 127)), b"<end>"], eos_ids=[95])


@pytest.fixture
def compiler():
    return GrammarCompiler(VOCABULARY)


@pytest.fixture
def held(compiler, monkeypatch):
    """Compiles wait until they are let go, or their deadline is brought forward; which grammars were compiled."""
    compiled, go = [], threading.Event()
    original = compiler.compile

    def compile_grammar(grammar, *, time_limit=None):
        compiled.append(grammar)
        while not go.is_set():
            time.sleep(0.005)
            time_limit.check()
        return original(grammar, time_limit=time_limit)

    monkeypatch.setattr(compiler, "compile", compile_grammar)
    yield compiled, go
    go.set()


def wait_for(compiled, count):
    end = time.monotonic() + 60
    while len(compiled) < count:
        assert time.monotonic() < end
        time.sleep(0.002)


def test_it_is_what_compile_gives(compiler):
    grammar = Grammar.from_regex("[ab]+")
    compiled = compiler.submit(grammar).result(60)
    assert compiler.compile(grammar) is compiled
    assert compiler.submit(grammar).result(0) is compiled


def test_equal_grammars_are_compiled_once(compiler, held):
    compiled, go = held
    futures = [compiler.submit(Grammar.from_regex("[ab]+")) for _ in range(20)]
    other = compiler.submit(Grammar.from_regex("[cd]+"))
    go.set()
    results = {id(future.result(60)) for future in futures}
    assert len(results) == 1
    assert id(other.result(60)) not in results
    assert len(compiled) == 2


def test_no_more_are_under_way_than_there_are_threads(compiler, held):
    compiled, go = held
    futures = [compiler.submit(Grammar.from_regex(f"a{{{count}}}")) for count in range(1, 20)]
    wait_for(compiled, compile_jobs.WORKERS)
    assert not wait(futures, 0.1).done
    assert len(compiled) == compile_jobs.WORKERS
    go.set()
    assert not wait(futures, 60).not_done


def test_one_who_cancels_does_not_take_it_from_others(compiler, held):
    compiled, go = held
    grammar = Grammar.from_regex("[ab]+")
    first, second = compiler.submit(grammar), compiler.submit(grammar)
    wait_for(compiled, 1)
    assert first.cancel()
    go.set()
    assert second.result(60) is compiler.submit(grammar).result(60)
    with pytest.raises(CancelledError):
        first.result(0)
    assert not second.cancel()
    assert len(compiled) == 1


def test_the_last_who_cancels_ends_the_compile(compiler, held):
    compiled, _ = held
    grammar = Grammar.from_regex("[ab]+")
    futures = [compiler.submit(grammar) for _ in range(3)]
    wait_for(compiled, 1)
    assert all(future.cancel() for future in futures)
    assert not wait(futures, 60).not_done
    # The next one begins anew.
    compiler.submit(grammar).cancel()
    # A thread is free again, or these would wait for ever.
    others = [compiler.submit(Grammar.from_regex(f"b{{{count}}}")) for count in range(1, compile_jobs.WORKERS + 1)]
    wait_for(compiled, compile_jobs.WORKERS)
    for future in others:
        future.cancel()


def test_what_waits_for_a_thread_can_be_cancelled(compiler, held):
    compiled, go = held
    running = [compiler.submit(Grammar.from_regex(f"a{{{count}}}")) for count in range(1, compile_jobs.WORKERS + 1)]
    wait_for(compiled, compile_jobs.WORKERS)
    waiting = compiler.submit(Grammar.from_regex("[xy]+"))
    assert waiting.cancel()
    assert waiting.cancel()
    assert not wait([waiting], 0).not_done
    go.set()
    assert not wait(running, 60).not_done
    assert compiler.submit(Grammar.from_regex("z")).result(60)
    assert len(compiled) == compile_jobs.WORKERS + 1


def test_limits_and_errors(compiler, held):
    _, go = held
    grammar = Grammar.from_regex("[ab]+")
    with pytest.raises(LimitError, match=r"longer than 0.02 s"):
        compiler.submit(grammar, time_limit=0.02).result(60)
    deadline = Deadline()
    future = compiler.submit(grammar, time_limit=deadline)
    deadline.cancel()
    with pytest.raises(LimitError, match="cancelled"):
        future.result(60)
    go.set()
    with pytest.raises(SchemaError):
        compiler.submit(Grammar.from_json_schema(False)).result(60)
    with pytest.raises(ConstrainError, match="positive"):
        compiler.submit(grammar, time_limit=-1)
    with pytest.raises(TypeError, match=r"submit\(\) takes a Grammar, not str"):
        compiler.submit("[ab]+")


def test_nothing_is_left_of_a_compile_that_no_thread_could_be_started_for(compiler, monkeypatch):
    def start(self):
        raise RuntimeError("can't start new thread")

    grammar = Grammar.from_regex("[ab]+")
    compiled = []
    original = compiler.compile
    monkeypatch.setattr(compiler, "compile", lambda *args, **more: compiled.append(args) or original(*args, **more))
    monkeypatch.setattr(compile_jobs, "_threads", KeptThreads(1, "none yet"))
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            compiler.submit(grammar)
    assert compiler.submit(grammar).result(20)
    assert len(compiled) == 1


def test_an_interrupt_at_any_place_of_a_call_holds_up_none_of_the_next(compiler, monkeypatch):
    """Where the functions begin and end that hand a grammar to a thread: a lock would stay locked for ever."""
    places = 0
    for has_threads in (False, True):
        place = 0
        while True:
            place += 1
            monkeypatch.setattr(compile_jobs, "_threads", KeptThreads(2, "tried"))
            if has_threads:
                assert compiler.submit(Grammar.from_regex(f"b{{{place}}}")).result(20)
            if not is_interrupted(lambda: compiler.submit(Grammar.from_regex("a" * place)), place):  # noqa: B023
                break
            found = []
            asking = threading.Thread(
                target=lambda: found.append(compiler.submit(Grammar.from_regex("c" * place)).result(20)),  # noqa: B023
                daemon=True,
            )
            asking.start()
            asking.join(20)
            assert found, (has_threads, place)
        places += place
    assert places > 15


def is_interrupted(call, place):
    """Whether a call comes to so many beginnings and ends of functions for threads; it is interrupted there.

    The interpreter looks for signals there.  It does not at each line: none comes between the body of a ``with`` and
    the release of its lock.
    """
    try:
        return reaches(
            call,
            place,
            interrupt,
            files=lambda name: name.endswith(("kept_threads.py", "threading.py", "thread.py")),
            counts=lambda _frame, event: event in ("call", "return"),
        )
    except (KeyboardInterrupt, RuntimeError):
        # The latter is what threading.Condition makes of one within its wait.
        return True


def test_it_can_be_awaited(compiler):
    async def ask():
        return await asyncio.gather(*(asyncio.wrap_future(compiler.submit(Grammar.from_regex("a+"))) for _ in range(3)))

    first, *others = asyncio.run(ask())
    assert all(other is first for other in others)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no os.fork here")
def test_a_forked_child_compiles_too(compiler, held):
    compiled, go = held
    future = compiler.submit(Grammar.from_regex("[ab]+"))
    wait_for(compiled, 1)

    def work():
        go.set()
        return compiler.submit(Grammar.from_regex("[ab]+")).result(60)

    assert child_does(work, 60)
    go.set()
    assert future.result(60)
