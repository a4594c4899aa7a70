"""What a kind of campaign is, and what it reports."""

from __future__ import annotations

import mmap
import os
import random
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

Counts = Counter[str]
"""How many checks of which sort were made: "masks", "faults", "interrupts", "walks", ..."""

T = TypeVar("T")


class Difference(Exception):
    """The engine and a judge disagree, or the engine broke a promise.

    Parameters
    ----------
    what : str
        One line: what is wrong.
    case : str
        The smallest case known, as text that a reader can turn into a test.
    """

    def __init__(self, what: str, case: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.case = case


class Budget:
    """How long one case may go on.

    A case with a fixed number of checks does not ask: only then is it the same each time.  A case that has no end of
    its own stops when :meth:`is_over`.

    Parameters
    ----------
    deadline : float, optional
        In seconds of ``time.monotonic``; none means that a case runs to its own end.
    """

    def __init__(self, deadline: float | None = None) -> None:
        self._deadline = deadline

    def is_over(self) -> bool:
        return self._deadline is not None and time.monotonic() >= self._deadline


@dataclass(frozen=True)
class Kind:
    """A kind of campaign.

    Attributes
    ----------
    name : str
        As in ``--kind``.
    judge : str
        One line: what is judged by what.
    run : callable
        ``run(rng, budget)`` makes and judges one case, and returns what it has counted.  All randomness comes from
        ``rng``, so that a case's number repeats it.  It raises :class:`Difference`.
    ci_cases : int
        How many cases ``--ci`` runs.
    ci_least : dict
        How many checks of each sort those cases make at least.
    needs : callable
        Why this kind cannot run here, or an empty string.
    """

    name: str
    judge: str
    run: Callable[[random.Random, Budget], Counts]
    ci_cases: int
    ci_least: dict[str, int]
    needs: Callable[[], str] = lambda: ""


is_careful = False
"""Whether this is the second run of a case that went wrong, which looks for the smallest case."""


def smallest(
    steps: Sequence[T], check: Callable[[list[T]], str], wrong: str, seconds: float = 40.0
) -> tuple[list[T], str]:
    """Fewer of these steps with which something is still wrong, and what is; all of them in a first run.

    Larger pieces are left out first, then single steps, until none can be left out, or the time is over.
    """
    best = list(steps)
    if not is_careful:
        return best, wrong
    deadline = time.monotonic() + seconds
    size = max(1, len(best) // 2)
    while True:
        found = False
        begin = 0
        while begin < len(best) and time.monotonic() < deadline:
            shorter = best[:begin] + best[begin + size :]
            what = check(shorter)
            if what:
                best, wrong, found = shorter, what, True
            else:
                begin += size
        if time.monotonic() >= deadline or (size == 1 and not found):
            return best, wrong
        size = max(1, size // 2)


check_hangs_after = 120
"""Seconds; a part of what the whole case has (campaign.py), so that it can be made smaller even if it hangs."""

_note = mmap.mmap(-1, 4096)


def note(text: str) -> None:
    """Leave word of what is done, for the case that the process crashes in it."""
    _note[:] = text.encode()[:4096].ljust(4096, b"\0")


def isolated(check: Callable[[], str]) -> str:
    """What ``check`` says is wrong; in a careful run it is asked in a forked process, whose crash is an answer too."""
    if not is_careful:
        return check()
    note("")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        # By the system, which ends a kernel as well; the parent's watch is not there in a child.
        signal.alarm(check_hangs_after)
        try:
            os.close(reading)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            try:
                said = check()
            except BaseException:
                said = traceback.format_exc()
            os.write(writing, said.encode()[:60_000])
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    noted = _note[:].rstrip(bytes(1)).decode()
    if said or status == 0:
        return said
    how = "hangs" if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM else f"crashes (status {status})"
    return f"the process {how} {noted}"
