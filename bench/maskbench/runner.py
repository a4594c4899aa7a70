"""Workers, and the loop that gives each job to one engine after the other."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from time import perf_counter

from bench.maskbench import memory
from bench.maskbench.jobs import Job, Outcome, Ready, Status
from bench.maskbench.worker import serve

# The first start on a machine compiles this engine's kernels.
START_LIMIT_SECONDS = 300.0

# An engine that is late but alive gives up by itself, and keeps what it has measured.
_GRACE_SECONDS = 0.5

# Started anew, not forked: a worker has only what its own engine needs.
_CONTEXT = multiprocessing.get_context("spawn")


class WorkerFailed(Exception):
    """An engine did not start."""


class Worker:
    """The process of one engine; killed when a job takes too long, and started anew when the next one comes.

    Parameters
    ----------
    name : str
        Of the engine.
    vocabulary : Path
        A tiktoken rank file, or a saved list of tokens.
    target : callable
        What the process runs: ``target(connection, name, vocabulary)``.
    """

    def __init__(
        self, name: str, vocabulary: Path, target: Callable[..., None] = serve, start_limit: float = START_LIMIT_SECONDS
    ) -> None:
        self.name = name
        self.ready = Ready()
        self.starts = 0
        self.spent = 0.0
        self._vocabulary = vocabulary
        self._target = target
        self._start_limit = start_limit
        self._waiting = False
        self._start()

    def _start(self) -> None:
        self._connection, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(
            target=self._target, args=(theirs, self.name, self._vocabulary), name=f"maskbench {self.name}", daemon=True
        )
        self._process.start()
        # Only the worker holds its end then, so that its death is the end of the pipe.
        theirs.close()
        self._waiting = True
        self.starts += 1

    def wait(self) -> None:
        """Wait until the worker is ready for a job.

        Raises
        ------
        WorkerFailed
            If it does not start.
        """
        if not self._process.is_alive() and not self._waiting:
            self._start()
        if not self._waiting:
            return
        try:
            if not self._connection.poll(self._start_limit):
                raise WorkerFailed(f"{self.name} was not ready after {self._start_limit:.0f} s")
            ready: Ready = self._connection.recv()
        except EOFError:
            self._process.join()
            raise WorkerFailed(f"{self.name} did not start (exit code {self._process.exitcode})") from None
        if ready.error:
            raise WorkerFailed(f"{self.name} did not start: {ready.error}")
        self._waiting = False
        if self.starts == 1:
            self.ready = ready

    def run(self, job: Job, limit: float) -> Outcome:
        """Have a job done within ``limit`` seconds; starting up, where that is needed, is not counted.

        ``spent`` adds up the seconds of all jobs.
        """
        try:
            self.wait()
        except WorkerFailed as error:
            self.kill()
            return Outcome(Status.CRASH, message=str(error))
        began = perf_counter()
        try:
            return self._run(job, limit)
        finally:
            self.spent += perf_counter() - began

    def _run(self, job: Job, limit: float) -> Outcome:
        try:
            self._connection.send((job, limit))
            if not self._connection.poll(limit + _GRACE_SECONDS):
                peak = memory.peak(self._process.pid)
                self.kill()
                return Outcome(Status.TIMEOUT, message=f"not done after {limit:g} s", peak_memory=peak)
            outcome: Outcome = self._connection.recv()
        except (EOFError, ConnectionError):
            self.kill()
            return Outcome(Status.CRASH, message=f"the process ended with exit code {self._process.exitcode}")
        return outcome

    def kill(self) -> None:
        """End the process now."""
        # Without effect on one that has ended by itself, whose exit code stays what it was.
        if self._process.is_alive():
            self._process.kill()
        self._process.join()
        self._connection.close()
        self._waiting = False


def alternate(
    workers: Sequence[Worker],
    jobs: Iterable[Job],
    limit: float,
    *,
    deadline: float = float("inf"),
    budget: float = float("inf"),
    progress: Callable[[Job, str], None] = lambda job, name: None,
) -> dict[str, dict[str, Outcome]]:
    """Give every job to every worker, one at a time, each job beginning with another worker.

    Parameters
    ----------
    limit : float
        Seconds for one worker and one job.
    deadline : float
        A value of ``time.perf_counter()`` after which no further job is begun.
    budget : float
        Seconds for one worker in all, start-ups not counted.  One that has used them up is left out of
        further jobs, so that an engine that needs seconds for a schema does not keep the others from
        seeing many.
    progress : callable
        Called before each single run with the job and the worker's name.

    Returns
    -------
    dict of dict of Outcome
        By job id, then by worker name.
    """
    outcomes: dict[str, dict[str, Outcome]] = {}
    spent_before = {worker.name: worker.spent for worker in workers}
    for turn, job in enumerate(jobs):
        if perf_counter() > deadline:
            break
        first = turn % len(workers)
        of_job = {}
        for worker in (*workers[first:], *workers[:first]):
            progress(job, worker.name)
            if worker.spent - spent_before[worker.name] <= budget:
                of_job[worker.name] = worker.run(job, limit)
        if not of_job:
            break
        outcomes[job.id] = {worker.name: of_job[worker.name] for worker in workers if worker.name in of_job}
    return outcomes
