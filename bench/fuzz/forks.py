"""Kind "forks": a process is forked while other threads work in a grammar; the child must be able to work in it."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
import warnings

import constrain
from bench.fuzz import scripts, seams
from bench.fuzz.protocol import Budget, Counts, Difference, Kind

_WAIT = 10
_FORKS = 20


class _Busy(threading.Thread):
    """Plays a script in a shared grammar, again and again."""

    def __init__(self, case: scripts.Case, reference: scripts.Reference, compiled: constrain.CompiledGrammar) -> None:
        super().__init__(daemon=True)
        self.case = case
        self.reference = reference
        self.compiled = compiled
        self.wrong = ""
        self.is_over = False

    def run(self) -> None:
        try:
            while not self.is_over and not self.wrong:
                run = scripts.Run(self.case, self.reference)
                run.compiled = self.compiled
                self.wrong = _play(run)
        except BaseException as error:
            self.wrong = f"{type(error).__name__}: {error}"


def _play(run: scripts.Run) -> str:
    for number, step in enumerate(run.case.steps):
        call = run.prepare(step)
        if call is not None:
            wrong = run.finish(step, call[0](*call[1]))
            if wrong:
                return f"step {number} {step}: {wrong}"
    return run.wrong()


def _child(run: scripts.Run, compiler: constrain.GrammarCompiler) -> str:
    """What a child finds wrong: with the matchers that it was left, with new ones, with a grammar of its own."""
    wrong = run.wrong()
    if wrong:
        return f"a matcher from before the fork: {wrong}"
    again = scripts.Run(run.case, run.reference)
    again.compiled = run.compiled
    wrong = _play(again)
    if wrong:
        return f"a new matcher: {wrong}"
    other = scripts.Run(run.case, run.reference)
    other.compiled = compiler.compile(run.case.source.grammar())
    wrong = _play(other)
    return f"a new grammar: {wrong}" if wrong else ""


def _fork(run: scripts.Run, compiler: constrain.GrammarCompiler) -> str:
    """Fork, and have the child work; what is wrong."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            # Its default action needs nothing of Python: it ends what hangs.
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(_WAIT)
            os.write(writing, _child(run, compiler).encode()[:4000])
        except BaseException as error:
            os.write(writing, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        wrong = pipe.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    if status:
        return "the child hangs" if os.WTERMSIG(status) == signal.SIGALRM else f"the child crashes (status {status})"
    return wrong


def run(rng: random.Random, budget: Budget) -> Counts:
    warnings.simplefilter("ignore", DeprecationWarning)
    counts: Counts = Counts()
    source = rng.choice(scripts.SOURCES)
    vocabulary = scripts.VOCABULARIES["small"]()
    references = [scripts.Reference(source, vocabulary) for _ in range(3)]
    cases = [scripts.random_case(rng, reference, source, "small", 30) for reference in references]
    compiler = constrain.GrammarCompiler(vocabulary)
    with seams.small_tables() if rng.random() < 0.5 else seams.nothing():
        ours = scripts.Run(cases[0], references[0])
        ours.compiled = compiler.compile(source.grammar())
        wrong = _play(ours)
        if wrong:
            raise Difference(f"before the fork: {wrong}", str(cases[0]))
        busy = [_Busy(cases[i], references[i], ours.compiled) for i in (1, 2)]
        for thread in busy:
            thread.start()
        try:
            for _ in range(_FORKS):
                time.sleep(rng.uniform(0, 2e-3))
                wrong = _fork(ours, compiler) or ours.wrong()
                counts["forks"] += 1
                if wrong:
                    raise Difference(f"{wrong}, while two threads work in the grammar", str(cases[0]))
        finally:
            for thread in busy:
                thread.is_over = True
            for thread in busy:
                thread.join(_WAIT)
    for thread in busy:
        if thread.wrong:
            raise Difference(f"a thread that works while others fork: {thread.wrong}", str(thread.case))
    counts["masks"] += ours.masks
    return counts


KIND = Kind(
    "forks",
    "in the child of a fork, matchers of before and new ones by fresh ones",
    run,
    4,
    {"forks": 80},
    lambda: "" if hasattr(os, "fork") else "this system has no fork",
)
