"""The process of one engine: it loads the vocabulary once, then measures what it is sent."""

from __future__ import annotations

import gc
import os
import resource
import signal
from array import array
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter, perf_counter_ns

import numpy as np

from bench.maskbench import engines, memory
from bench.maskbench.engines.base import Engine, Session
from bench.maskbench.jobs import Instance, Job, Kind, Outcome, Ready, Run, Status
from bench.maskbench.token_list import read_table

SLOW = 500_000
"""Nanoseconds from which it is worth knowing whether something else had the processor."""

_MESSAGE_LENGTH = 300

_ELSEWHERE_BYTES = 64 << 20

# What is loaded or compiled on first use should not be charged to the first schema.
_WARM_UP = (
    Job("warm-up", Kind.REGEX, "[ab]{0,3}c", []),
    Job("warm-up", Kind.LARK, 'start: "a" | "b" start', []),
    Job("warm-up", Kind.JSON_SCHEMA, '{"type": "boolean"}', []),
)


class Elsewhere:
    """Memory of something else than an engine: to write to it drops what the engine has in the processor's caches."""

    def __init__(self) -> None:
        self._memory = np.zeros(_ELSEWHERE_BYTES >> 3, np.int64)

    def touch(self) -> None:
        """Write to all of it."""
        self._memory += 1


def serve_cold(connection: Connection, name: str, vocabulary: Path) -> None:
    """The same as :func:`serve`, but each grammar is compiled with cold caches."""
    serve(connection, name, vocabulary, Elsewhere().touch)


def serve(connection: Connection, name: str, vocabulary: Path, before: Callable[[], None] | None = None) -> None:
    """Answer jobs from ``connection`` with outcomes until it closes; the first message is a :class:`Ready`.

    ``before`` is called before each job.
    """
    # The parent decides when to stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    memory.limit()
    # Engines write warnings there, in the middle of the progress bar.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    try:
        began = perf_counter()
        engine = engines.make(name)
        imported = memory.peak()
        engine.load(read_table(vocabulary))
        loaded = memory.peak()
        for job in _WARM_UP:
            measure(engine, job)
    except BaseException as error:  # a panic in Rust is one
        connection.send(Ready(error=describe(error)))
        return
    # Nothing is collected while the clock runs.
    gc.disable()
    connection.send(Ready(engine.version, imported, loaded, perf_counter() - began, overhead()))
    while True:
        try:
            job, limit = connection.recv()
        except EOFError:
            return
        gc.collect()
        if before is not None:
            before()
        connection.send(measure(engine, job, limit))


def measure(engine: Engine, job: Job, limit: float = float("inf")) -> Outcome:
    """Compile a job's grammar and run its instances.

    After ``limit`` seconds no further step is begun: what was measured until then is not lost.  The
    parent sees to an engine that does not come back from a single call.
    """
    began = perf_counter_ns()
    deadline = began + 1e9 * limit
    try:
        session = engine.compile(job.kind, job.grammar)
        session.fill()
    except Exception as error:
        return Outcome(Status.COMPILE_ERROR, message=describe(error), peak_memory=memory.peak())
    except BaseException as error:  # a panic in Rust
        return Outcome(Status.CRASH, message=describe(error), peak_memory=memory.peak())
    taken = perf_counter_ns() - began
    # The mask of the beginning is known now.
    seen = {session.mark()} if session.mark else set()
    runs = []
    for instance in job.instances:
        try:
            session.restart()
            runs.append(run(engine.words, session, instance, seen, deadline))
        except BaseException as error:
            return Outcome(Status.CRASH, taken, runs, describe(error), memory.peak())
        if perf_counter_ns() > deadline:
            return Outcome(Status.TIMEOUT, taken, runs, f"not done after {limit:g} s", memory.peak())
    return Outcome(Status.MEASURED, taken, runs, peak_memory=memory.peak())


def run(
    words: memoryview,
    session: Session,
    instance: Instance,
    seen: set[int],
    deadline: float = float("inf"),
    clock: Callable[[], int] = perf_counter_ns,
) -> Run:
    """Run one instance: for each token the mask, the token's bit in it, and accepting it.

    Parameters
    ----------
    words : memoryview of int32
        Where the session's masks are written.
    seen : set of int
        Marks of the places visited so far; those of this instance are added.
    deadline : float
        A value of ``clock()`` after which no step is begun; the text then counts as rejected.
    clock : callable
        Nanoseconds.
    """
    fill, accept, mark = session.fill, session.accept, session.mark
    times: list[int] = []
    marks: list[int] = []
    disturbed: list[int] = []
    switches = _involuntary_switches()
    accepted, error = True, ""
    try:
        for token in instance.tokens:
            if mark is not None:
                marks.append(mark())
            begin = clock()
            fill()
            accepted = bool(words[token >> 5] >> (token & 31) & 1) and accept(token)
            end = clock()
            times.append(end - begin)
            if end - begin > SLOW:
                before, switches = switches, _involuntary_switches()
                if switches > before:
                    disturbed.append(len(times) - 1)
            if not accepted:
                break
            if end > deadline:
                accepted = False
                break
        accepted = accepted and session.can_end()
    except Exception as exception:  # a limit of the engine's, most likely
        accepted, error = False, describe(exception)
    interrupted = np.zeros(len(times), np.bool_)
    interrupted[disturbed] = True
    first = None
    if mark is not None:
        flags = np.zeros(len(times), np.bool_)
        for i, place in enumerate(marks[: len(times)]):
            flags[i] = place not in seen
            seen.add(place)
        first = flags
    return Run(np.array(times, np.int64), interrupted, first, accepted, error)


def _involuntary_switches() -> int:
    """How often this thread has had to leave the processor; 0 where the system does not say."""
    who = getattr(resource, "RUSAGE_THREAD", None)
    return 0 if who is None else resource.getrusage(who).ru_nivcsw


class _Nothing(Session):
    """An engine that takes no time: what is left is the loop's own."""

    def __init__(self) -> None:
        self.fill = int
        self.accept = bool

    def restart(self) -> None:
        return

    def can_end(self) -> bool:
        return True


def overhead() -> float:
    """Nanoseconds of a step in which the engine does nothing: the clock, the look-up, two calls of C functions."""
    everything = memoryview(array("i", [-1]))
    done = run(everything, _Nothing(), Instance([1] * 2000, True), set())
    return float(np.median(done.steps))


def describe(error: BaseException) -> str:
    """An error in one line: its kind and its message."""
    text = " ".join(str(error).split())[:_MESSAGE_LENGTH]
    return text if type(error).__name__ == "NotCompiled" else f"{type(error).__name__}: {text}"
