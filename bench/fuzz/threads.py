"""Kind "threads": threads share a grammar whose limits are tiny; each is compared with a grammar of its own."""

from __future__ import annotations

import random
import sys
import threading
import traceback
from typing import Any

import constrain
from bench.fuzz import scripts, seams
from bench.fuzz.protocol import Budget, Counts, Difference, Kind
from constrain.errors import LimitError

_THREADS = 4
_WAIT = 120.0


class _Worker(threading.Thread):
    """Plays a script in a grammar that others share."""

    def __init__(self, case: scripts.Case, reference: scripts.Reference, compiled: constrain.CompiledGrammar) -> None:
        super().__init__(daemon=True)
        self.wrong = ""
        self.counts: Counts = Counts()
        self._run = scripts.Run(case, reference)
        self._run.compiled = compiled

    def run(self) -> None:
        try:
            self.wrong = self._play()
        except BaseException:
            self.wrong = traceback.format_exc()

    def _play(self) -> str:
        run = self._run
        for number, step in enumerate(run.case.steps):
            call = run.prepare(step)
            if call is None:
                continue
            self.counts["steps"] += 1
            try:
                wrong = run.finish(step, call[0](*call[1]))
            except LimitError:
                self.counts["LimitErrors"] += 1
                if step[0] == "begin":
                    run.matchers.append(None)
                    run.places.append(None)
                continue
            if wrong:
                return f"step {number} {step}: {wrong}\n{run.case}"
        self.counts["masks"] += run.masks
        return ""


def run(rng: random.Random, budget: Budget) -> Counts:
    source = rng.choice(scripts.SOURCES)
    name = rng.choice(("small", "small", "large"))
    vocabulary = scripts.VOCABULARIES[name]()
    references = [scripts.Reference(source, vocabulary) for _ in range(_THREADS)]
    cases = [scripts.random_case(rng, reference, source, name, rng.choice((60, 300))) for reference in references]
    least = constrain.CompiledGrammar(references[0].ir, vocabulary)._tables.nbytes
    limits: dict[str, Any] = {
        "limit_bytes": least + rng.choice((1 << 12, 1 << 15, 1 << 18, 1 << 24)),
        "mask_limit_bytes": rng.choice((0, 2000, 50_000, 1 << 24)),
    }
    counts: Counts = Counts()
    interval = sys.getswitchinterval()
    with seams.small_tables() if rng.random() < 0.6 else seams.nothing():
        try:
            compiled = constrain.CompiledGrammar(references[0].ir, vocabulary, **limits)
        except LimitError:
            counts["refused"] += 1
            return counts
        workers = [_Worker(case, reference, compiled) for case, reference in zip(cases, references, strict=True)]
        sys.setswitchinterval(rng.choice((1e-6, 1e-5, 1e-4)))
        try:
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join(_WAIT)
        finally:
            sys.setswitchinterval(interval)
    for worker in workers:
        if worker.is_alive():
            raise Difference("a thread does not come to an end", f"grammar = {source}\nlimits = {limits}")
        if worker.wrong:
            raise Difference(worker.wrong, f"limits = {limits}, {_THREADS} threads share the grammar")
        counts.update(worker.counts)
    return counts


KIND = Kind("threads", "threads that share a grammar by a grammar of each thread's own", run, 20, {"masks": 1000})
