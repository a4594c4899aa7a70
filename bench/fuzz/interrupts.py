"""Kind "interrupts": a KeyboardInterrupt at every point of a call at which CPython lets one come through.

A signal handler written in Python does not run when the signal arrives, but at the interpreter's next check: after a
call of a C function, when a function is entered, at a jump backwards.  So for each such instruction of the engine (and
of what it calls of the standard library) a script is played once, and exactly there a signal is raised: the interpreter
itself then delivers it, at the very place where a real one would come through.  Nothing of that is imitated but the
moment.  Beside this, signals of a timer arrive at random.

After an interrupt each matcher must be where it was before the call, with the mask of a fresh one; a thread of its own
must get every lock; the call is made again, and the script goes on to its end.
"""

from __future__ import annotations

import ctypes
import dis
import functools
import os
import queue
import random
import signal
import sys
import threading
from typing import Any

import constrain
from bench.fuzz import scripts, seams
from bench.fuzz.protocol import Budget, Counts, Difference, Kind, isolated, note, smallest

# Where the frames are in which interrupts arrive.
_PLACES = ("/constrain/", "/weakref.py", "/_weakrefset.py", "/threading.py", "/contextlib.py", "/functools.py")

# The instructions that end in a check, or lead to one: behind a return comes that of the caller's call.
_CHECKED = {
    code
    for name, code in dis.opmap.items()
    if name.startswith(("CALL", "RETURN", "JUMP_BACKWARD", "YIELD")) and "INTRINSIC" not in name
}

# In long scripts not every point: so many, drawn at random.
_MOST = 300
_WAIT = 1.0


class _Trip:
    """``-trip`` raises the signal without a check on the way: that of a call would come first."""

    __neg__ = ctypes.pythonapi.PyErr_SetInterrupt


class Interrupter:
    """Traces a call; at the n-th instruction that ends in a check it raises SIGINT, and lets go.

    Attributes
    ----------
    count : int
        How many such instructions there were.
    where : str
        The place in the source at which it was raised.
    """

    def __init__(self) -> None:
        self.count = 0
        self.where = ""
        self._target = 0
        self._codes: dict[Any, dict[int, int]] = {}

    def call(self, function: Any, arguments: tuple[Any, ...], target: int) -> Any:
        """Call a function, and interrupt it at point ``target`` (0: nowhere)."""
        self.count, self.where, self._target = 0, "", target
        sys.settrace(self._enter)
        try:
            return function(*arguments)
        finally:
            sys.settrace(None)

    def _enter(self, frame: Any, event: str, _argument: Any) -> Any:
        if not any(place in frame.f_code.co_filename for place in _PLACES):
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return self._step

    def _step(self, frame: Any, event: str, _argument: Any) -> Any:
        if event != "opcode" or frame.f_code.co_code[frame.f_lasti] not in _CHECKED:
            return self._step
        self.count += 1
        if self.count != self._target:
            return self._step
        code = frame.f_code
        self.where = f"{code.co_filename.rsplit('/constrain/')[-1]}:{frame.f_lineno} in {code.co_qualname}"
        note(f"after an interrupt at {self.where}")
        trip = _Trip()
        sys.settrace(None)
        -trip  # noqa: B018
        return None


class Locksmith:
    """A thread that finds out whether another thread can work."""

    def __init__(self) -> None:
        self._todo: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        while True:
            for lock in self._todo.get():
                if lock.acquire(timeout=_WAIT):
                    lock.release()
                else:
                    self._done.put("a lock is held for ever")
                    break
            else:
                self._done.put("")

    def wrong(self, compiled: constrain.CompiledGrammar | None, vocabulary: constrain.Vocabulary) -> str:
        """What keeps another thread from working; an empty string if nothing does."""
        owners = [vocabulary] if compiled is None else [compiled, vocabulary]
        locks = [each for owner in owners for each in vars(owner).values() if hasattr(each, "acquire")]
        self._todo.put(locks)
        return self._done.get()


@functools.cache
def _locksmith_of(_process: int) -> Locksmith:
    return Locksmith()


def _wrong_locks(run: scripts.Run) -> str:
    return _locksmith_of(os.getpid()).wrong(run.compiled, run.reference.vocabulary)


def _after(run: scripts.Run) -> str:
    """What is wrong after an interrupt."""
    return _wrong_locks(run) or run.wrong()


def play(
    case: scripts.Case,
    reference: scripts.Reference,
    counts: Counts,
    at: tuple[int, int],
    points: dict[int, int] | None = None,
) -> str:
    """Play a script with an interrupt in step ``at[0]`` (-1 is the compile) at point ``at[1]``.

    What is wrong, or an empty string.  ``points``, if given, is where the number of points of each step is put.
    """
    run = scripts.Run(case, reference)
    for number, step in enumerate([("compile",), *case.steps], -1):
        call = (run.compile, ()) if number < 0 else run.prepare(step)
        if call is None:
            continue
        where = f"step {number} {step}"
        interrupter = Interrupter() if number == at[0] or points is not None else None
        returned = False
        result = None
        try:
            if interrupter is None:
                result = call[0](*call[1])
            else:
                result = interrupter.call(call[0], call[1], at[1])
            returned = True
        except KeyboardInterrupt as error:
            assert interrupter is not None
            counts["interrupts"] += 1
            where += f", after an interrupt at {interrupter.where}"
            if not _is_in_engine(error) and number >= 0:
                # It came when the call was done, and only its result is lost.  Where matchers should be is known
                # from the script; only a new matcher is lost with the result.
                counts["interrupts behind the call"] += 1
                if step[0] in ("begin", "fork", "copy"):
                    result = call[0](*call[1])
                elif step[0] in ("fill", "batch", "expected"):
                    call[0](*call[1])
                elif step[0] not in ("rollback", "reset", "drop"):
                    result = _result_known(run, step)
            else:
                wrong = _after(run)
                if wrong:
                    return f"{where}: {wrong}"
                try:
                    result = call[0](*call[1])
                except Exception as second:
                    return f"{where}: then, in the same call again, {type(second).__name__}: {second}"
        except Exception as error:
            where += f", after an interrupt at {interrupter.where}" if interrupter is not None else ""
            return f"{where}: {type(error).__name__}: {error}"
        if returned and interrupter is not None and interrupter.where:
            # A destructor or the callback of a weak reference has it: Python can only report it.
            counts["interrupts that ended in a callback"] += 1
            where += f", after an interrupt at {interrupter.where} that ended in a callback"
            wrong = _wrong_locks(run)
            if wrong:
                return f"{where}: {wrong}"
        if points is not None and interrupter is not None:
            points[number] = interrupter.count
        if number >= 0:
            wrong = run.finish(step, result)
            if wrong:
                return f"{where}: {wrong}"
        if number == at[0]:
            wrong = run.wrong()
            if wrong:
                return f"{where}, and the call made: {wrong}"
    counts["masks"] += run.masks
    wrong = _after(run)
    return f"at the end: {wrong}" if wrong else ""


def _is_in_engine(error: BaseException) -> bool:
    traceback = error.__traceback__
    while traceback is not None:
        if any(place in traceback.tb_frame.f_code.co_filename for place in _PLACES):
            return True
        traceback = traceback.tb_next
    return False


def _result_known(run: scripts.Run, step: scripts.Step) -> Any:
    place = run.places[step[1]]
    assert place is not None
    if step[0] in scripts.QUESTIONS:
        return run.reference.answer(place, step)
    return None if step[0] == "completion" else run.reference.takes(place, step[2])


def _handler(_signal: int, _frame: Any) -> None:
    raise KeyboardInterrupt


def _sweep(
    case: scripts.Case, reference: scripts.Reference, rng: random.Random | None, is_small: bool, counts: Counts
) -> str:
    """Interrupt a script at one point after the other; of many, at some (at all without an ``rng``)."""
    points: dict[int, int] = {}
    with seams.small_tables() if is_small else seams.nothing():
        wrong = play(case, reference, Counts(), (-2, 0), points)
        if wrong:
            return f"without an interrupt: {wrong}"
        todo = [(step, point) for step, most in points.items() for point in range(1, most + 1)]
        if rng is not None and len(todo) > _MOST:
            todo = rng.sample(todo, _MOST)
        for at in todo:
            wrong = isolated(lambda at=at: play(case, reference, counts, at))  # type: ignore[misc]
            if wrong:
                return f"point {at[1]} of {points[at[0]]}: {wrong}"
    return ""


def _timed(case: scripts.Case, reference: scripts.Reference, rng: random.Random, is_small: bool, counts: Counts) -> str:
    """Signals of a timer at random moments."""
    with seams.small_tables() if is_small else seams.nothing():
        for _ in range(10):
            wrong = _play_timed(case, reference, rng, counts)
            if wrong:
                return wrong
    return ""


class _Alarm:
    """A timer whose signal is a KeyboardInterrupt only while it is armed."""

    def __init__(self) -> None:
        self.is_armed = False

    def ring(self, _signal: int, _frame: Any) -> None:
        if self.is_armed:
            self.is_armed = False
            raise KeyboardInterrupt


def _play_timed(case: scripts.Case, reference: scripts.Reference, rng: random.Random, counts: Counts) -> str:
    run = scripts.Run(case, reference)
    run.compile()
    alarm = _Alarm()
    before = signal.signal(signal.SIGALRM, alarm.ring)
    try:
        for number, step in enumerate(case.steps):
            call = run.prepare(step)
            if call is None:
                continue
            delay = rng.choice((rng.uniform(3e-6, 3e-5), rng.uniform(1e-5, 1e-4), rng.uniform(5e-5, 1e-3)))
            result = None
            failed = done = False
            try:
                try:
                    alarm.is_armed = True
                    signal.setitimer(signal.ITIMER_REAL, delay)
                    result = call[0](*call[1])
                    done = True
                finally:
                    alarm.is_armed = False
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt as error:
                counts["interrupts"] += 1
                failed = _is_in_engine(error)
            except Exception as error:
                return f"step {number} {step}: {type(error).__name__}: {error} (a timer's signal)"
            if failed:
                wrong = _after(run)
                if wrong:
                    return f"step {number} {step}, after a timer's signal: {wrong}"
                result = call[0](*call[1])
            elif not done:
                result, wrong = _made_up(run, step, call)
            wrong = run.finish(step, result)
            if wrong:
                return f"step {number} {step}, after a timer's signal: {wrong}"
    finally:
        signal.signal(signal.SIGALRM, before)
    counts["masks"] += run.masks
    return run.wrong()


def _made_up(run: scripts.Run, step: scripts.Step, call: Any) -> tuple[Any, str]:
    """The result of a call that was interrupted outside of the engine: before it, or behind it."""
    if step[0] in ("begin", "fork", "copy", "fill", "batch", "completion", "forced", "expected"):
        return call[0](*call[1]), ""
    if step[0] == "drop":
        return call[0](*call[1]), ""
    matcher = run.matchers[step[1]]
    place = run.places[step[1]]
    assert matcher is not None
    assert place is not None
    is_done = matcher.steps != len(place.path)
    if step[0] in ("rollback", "reset"):
        return (None if is_done else call[0](*call[1])), ""
    return (True if is_done else call[0](*call[1])), ""


def run(rng: random.Random, budget: Budget) -> Counts:
    counts: Counts = Counts()
    before = signal.signal(signal.SIGINT, _handler)
    unraisable = sys.unraisablehook
    sys.unraisablehook = lambda _: None
    try:
        source = rng.choice(scripts.SOURCES)
        vocabulary = rng.choice(("small", "small", "small", "large"))
        reference = scripts.Reference(source, scripts.VOCABULARIES[vocabulary]())
        case = scripts.random_case(rng, reference, source, vocabulary, rng.choice((6, 15, 30)))
        is_small = rng.random() < 0.6
        wrong = _sweep(case, reference, rng, is_small, counts)
        if wrong:
            steps, wrong = smallest(
                case.steps,
                lambda steps: _sweep(case.with_steps(steps), reference, random.Random(1), is_small, Counts()),
                wrong,
            )
            raise Difference(wrong, f"{case.with_steps(steps)}\nsmall tables: {is_small}")
        wrong = _timed(case, reference, rng, is_small, counts)
        if wrong:
            raise Difference(wrong, f"{case}\nsmall tables: {is_small}")
    finally:
        signal.signal(signal.SIGINT, before)
        sys.unraisablehook = unraisable
    return counts


KIND = Kind(
    "interrupts",
    "after each KeyboardInterrupt all matchers by fresh ones, and all locks by another thread",
    run,
    5,
    {"interrupts": 800, "masks": 1000},
)
