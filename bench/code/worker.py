"""The process of one engine: one grammar, and a program that comes in parts."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter, perf_counter_ns, thread_time_ns

from bench.code.engines import CANDIDATES
from bench.maskbench import engines, memory
from bench.maskbench.engines.base import Engine, Session
from bench.maskbench.jobs import Instance, Job, Kind, Ready, Run
from bench.maskbench.runner import Worker
from bench.maskbench.token_list import read_table
from bench.maskbench.worker import describe, measure, overhead, run

# Both notations, so that nothing is loaded or compiled for the first time while a grammar is.
_WARM_UP = {
    Kind.LARK: 'start: ("a" | NAME start)*\nNAME: /[a-z]+/\n%ignore " "\n',
    Kind.GBNF: 'root ::= ("a" | name root)*\nname ::= [a-z]+\n',
}


@dataclass(frozen=True)
class Compile:
    """Compile a grammar, and begin a text."""

    kind: Kind
    grammar: str


@dataclass(frozen=True)
class Restart:
    """Begin another text with the same compiled grammar."""


@dataclass(frozen=True)
class Part:
    """Go on with these tokens for at most ``limit`` seconds, all by the processor's clock or by the wall's."""

    tokens: list[int]
    limit: float
    of_processor: bool = False


@dataclass(frozen=True)
class Compiled:
    """Nanoseconds from the grammar's text to the first mask; or -1 and why there is none."""

    nanoseconds: int
    message: str = ""


@dataclass(frozen=True)
class Done:
    """What became of a part.

    Attributes
    ----------
    run : Run
        ``accepted`` says that every token was allowed, not that the text may end.
    late : bool
        Whether the time was up before the end of the part.
    fault : str
        What the engine says of a token that it does not allow.
    can_end : bool
        Whether the text may end now.
    table_bytes : int or None
        What the compiled grammar takes now.
    peak_memory : int
        Of the process, until now; bytes.
    """

    run: Run
    late: bool
    fault: str
    can_end: bool
    table_bytes: int | None
    peak_memory: int


@dataclass(frozen=True)
class Lost:
    """The process has ended, or was ended for taking too long."""

    message: str


class _Unfinished(Session):
    """A session in the middle of its text: that the text cannot end here is no fault."""

    def __init__(self, session: Session) -> None:
        self.fill, self.accept, self.mark = session.fill, session.accept, session.mark

    def restart(self) -> None:
        raise AssertionError("a part does not begin anew")

    def can_end(self) -> bool:
        return True


class Player(Worker):
    """The process of one engine for one language."""

    def __init__(self, name: str, vocabulary: Path, target: Callable[..., None] | None = None) -> None:
        super().__init__(name, vocabulary, target or serve)
        self.lost = ""

    def ask(self, message: Compile | Restart | Part, limit: float) -> Compiled | Done | Lost:
        """Have something done within ``limit`` seconds; a process that is late is ended, for good."""
        if self.lost:
            return Lost(self.lost)
        try:
            self._connection.send(message)
            if self._connection.poll(limit):
                answer: Compiled | Done = self._connection.recv()
                return answer
            self.kill()
            self.lost = f"not done after {limit:g} s"
        except (EOFError, ConnectionError):
            self.kill()
            self.lost = f"the process ended with exit code {self._process.exitcode}"
        return Lost(self.lost)


def serve(connection: Connection, name: str, vocabulary: Path) -> None:
    """Answer messages from ``connection`` until it closes; the first message is a :class:`Ready`."""
    # The parent decides when to stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    memory.limit()
    # Engines write warnings there.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    try:
        began = perf_counter()
        candidate = CANDIDATES[name]
        engine = engines.make(candidate.engine, **candidate.options)
        imported = memory.peak()
        engine.load(read_table(vocabulary))
        loaded = memory.peak()
        measure(engine, Job("warm-up", candidate.kind, _WARM_UP[candidate.kind], []))
    except BaseException as error:  # a panic in Rust is one
        connection.send(Ready(error=describe(error)))
        return
    # Nothing is collected while the clock runs.
    gc.disable()
    connection.send(Ready(engine.version, imported, loaded, perf_counter() - began, overhead()))
    session: Session | None = None
    seen: set[int] = set()
    while True:
        try:
            message = connection.recv()
        except EOFError:
            return
        gc.collect()
        if isinstance(message, Compile):
            seen.clear()
            session, answer = _compile(engine, message)
            connection.send(answer)
        elif session is None:
            raise AssertionError("no grammar is compiled")
        elif isinstance(message, Restart):
            session.restart()
            connection.send(Compiled(0))
        else:
            connection.send(_part(engine, session, message, seen))


def _compile(engine: Engine, message: Compile) -> tuple[Session | None, Compiled]:
    began = perf_counter_ns()
    try:
        session = engine.compile(message.kind, message.grammar)
        session.fill()
    except BaseException as error:  # a panic in Rust is one
        return None, Compiled(-1, describe(error))
    return session, Compiled(perf_counter_ns() - began)


def _part(engine: Engine, session: Session, message: Part, seen: set[int]) -> Done:
    clock = thread_time_ns if message.of_processor else perf_counter_ns
    deadline = clock() + 1e9 * message.limit
    done = run(engine.words, _Unfinished(session), Instance(message.tokens, True), seen, deadline, clock)
    late = not done.accepted and not done.error and clock() > deadline
    fault = "" if done.accepted or late else session.fault()
    return Done(done, late, fault, bool(session.can_end()), session.table_bytes(), memory.peak())
