"""From outcomes to figures: means, percentiles, counts, and ratios of one engine to another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bench.maskbench.jobs import Job, Nanoseconds, Outcome, Status

PERCENTILES = (25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9)

LABELS = ("mean", *(f"p{p:g}" for p in PERCENTILES), "max")
"""The keys of a :func:`distribution`."""

Figures = dict[str, float]


def distribution(times: Nanoseconds) -> Figures:
    """Mean, percentiles and maximum of nanoseconds, in microseconds; empty if there are none."""
    if not len(times):
        return {}
    values = (float(times.mean()), *np.percentile(times, PERCENTILES).tolist(), float(times.max()))
    return {label: value / 1e3 for label, value in zip(LABELS, values, strict=True)}


def concatenate(parts: Iterable[Nanoseconds]) -> Nanoseconds:
    """One array of them all."""
    return np.concatenate([np.zeros(0, np.int64), *parts])


@dataclass(frozen=True)
class Verdicts:
    """How an engine did, in numbers of schemas and instances."""

    schemas: int
    measured: int
    passing: int
    compile_errors: int
    timeouts: int
    crashes: int
    instances: int
    wrongly_rejected: int
    wrongly_accepted: int
    errors: int


Pair = tuple[Job, Outcome]


def verdicts(pairs: Sequence[Pair]) -> Verdicts:
    """Count what an engine made of the jobs.

    ``schemas`` is how many it was given; a schema passes if it compiled and all its instances were
    judged rightly; ``errors`` are instances at which the engine raised something, which counts as
    rejecting them.
    """
    status = [outcome.status for _, outcome in pairs]
    rejected = accepted = passing = instances = errors = 0
    for job, outcome in pairs:
        if outcome.status is not Status.MEASURED:
            continue
        wrong = 0
        for instance, run in zip(job.instances, outcome.runs, strict=True):
            rejected += instance.valid and not run.accepted
            accepted += run.accepted and not instance.valid
            wrong += run.accepted != instance.valid
            errors += bool(run.error)
            instances += 1
        passing += not wrong
    return Verdicts(
        schemas=len(pairs),
        measured=status.count(Status.MEASURED),
        passing=passing,
        compile_errors=status.count(Status.COMPILE_ERROR),
        timeouts=status.count(Status.TIMEOUT),
        crashes=status.count(Status.CRASH),
        instances=instances,
        wrongly_rejected=rejected,
        wrongly_accepted=accepted,
        errors=errors,
    )


def step_times(pairs: Iterable[Pair]) -> Nanoseconds:
    """Of every step that was taken, also where time ran out later."""
    return concatenate(run.steps for _, outcome in pairs for run in outcome.runs)


def undisturbed_times(pairs: Iterable[Pair]) -> Nanoseconds:
    """Those of them that were not interrupted.

    To see how much of the tail is the machine's.  Not for comparing: the longer a step takes, the
    likelier it is interrupted, so the slow ones are missing here.
    """
    return concatenate(run.steps[~run.interrupted] for _, outcome in pairs for run in outcome.runs)


def compile_times(pairs: Iterable[Pair]) -> Nanoseconds:
    """Of every schema that was measured: from its text to the first mask."""
    return np.array([outcome.compile for _, outcome in pairs if outcome.status is Status.MEASURED], np.int64)


def by_visit(pairs: Iterable[Pair]) -> tuple[Nanoseconds, Nanoseconds]:
    """Times of steps with a mask that was new to the grammar, and of the others; of runs that tell."""
    told = [(run.steps, run.first) for _, outcome in pairs for run in outcome.runs if run.first is not None]
    return concatenate(steps[first] for steps, first in told), concatenate(steps[~first] for steps, first in told)


@dataclass(frozen=True)
class Comparison:
    """Two engines on what both did.

    Attributes
    ----------
    schemas : int
        How many both compiled and ran to the end.
    steps : int
        How many steps both took: where one rejects a text earlier, the other's further steps are
        left out.
    ours, theirs : dict of str to Figures
        Under ``"mask"`` and ``"compile"``; microseconds.
    ratios : dict of str to Figures
        Ours as a share of theirs.
    """

    schemas: int
    steps: int
    ours: dict[str, Figures]
    theirs: dict[str, Figures]
    ratios: dict[str, Figures]


def compare(ours: Sequence[Pair], theirs: Sequence[Pair]) -> Comparison:
    """Compare two engines on the jobs that both measured; ids are unique."""
    of_id = {job.id: outcome for job, outcome in theirs if outcome.status is Status.MEASURED}
    both = [(outcome, of_id[job.id]) for job, outcome in ours if outcome.status is Status.MEASURED and job.id in of_id]
    shared = [
        (a.steps[: len(b.steps)], b.steps[: len(a.steps)])
        for mine, other in both
        for a, b in zip(mine.runs, other.runs, strict=True)
    ]
    sides: list[dict[str, Figures]] = []
    for side in (0, 1):
        compiled = np.array([pair[side].compile for pair in both], np.int64)
        sides.append(
            {
                "mask": distribution(concatenate(pair[side] for pair in shared)),
                "compile": distribution(compiled),
            }
        )
    mine, other = sides
    return Comparison(
        schemas=len(both),
        steps=sum(len(a) for a, _ in shared),
        ours=mine,
        theirs=other,
        ratios={
            what: {label: mine[what][label] / max(other[what][label], 1e-3) for label in mine[what]} for what in mine
        },
    )


def slowest(pairs: Iterable[Pair], count: int) -> list[dict[str, object]]:
    """The slowest steps: microseconds, schema, instance and step (both counted from 0), and whether interrupted."""
    found = [
        (int(run.steps[step]), job.id, index, int(step), bool(run.interrupted[step]))
        for job, outcome in pairs
        for index, run in enumerate(outcome.runs)
        for step in np.argsort(run.steps)[-count:]
    ]
    found.sort(reverse=True)
    return [
        {"microseconds": ns / 1e3, "id": name, "instance": index, "step": step, "interrupted": interrupted}
        for ns, name, index, step, interrupted in found[:count]
    ]
