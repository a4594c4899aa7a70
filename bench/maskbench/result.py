"""All that a run found, ready to be printed and to be written as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from bench.maskbench import figures
from bench.maskbench.engines import OURS
from bench.maskbench.figures import Comparison, Figures, Pair, Verdicts
from bench.maskbench.jobs import Job, Outcome, Ready, Status
from bench.maskbench.walk import Walk

_SLOWEST = 10


@dataclass(frozen=True)
class EngineResult:
    """One engine on MaskBench's schemas.

    Attributes
    ----------
    mask, compile : Figures
        Mask + accept, and compile + first mask, in microseconds: all that this engine did.
    first_visits, repeats : Figures
        ``mask`` taken apart, where the engine tells them apart.
    undisturbed : Figures
        ``mask`` without the steps that were interrupted by other processes.
    steps, first_count, interrupted : int
        How many steps, and how many of them were first visits, and were interrupted.
    starts : int
        How often its worker was started.
    peak_memory : int
        Bytes.
    """

    ready: Ready
    verdicts: Verdicts
    mask: Figures
    compile: Figures
    first_visits: Figures
    repeats: Figures
    undisturbed: Figures
    steps: int
    first_count: int
    interrupted: int
    starts: int
    peak_memory: int
    slowest: list[dict[str, object]]


@dataclass(frozen=True)
class SubjectResult:
    """One engine on one other grammar."""

    subject: str
    engine: str
    status: Status
    message: str
    accepted: int
    instances: int
    compile: float
    steps: int
    mask: Figures
    first_visits: Figures
    repeats: Figures


@dataclass
class Result:
    """A run.

    Attributes
    ----------
    machine, settings : dict
        For the reader of the JSON.
    absent : list of str
        Engines that are not installed.
    available : int
        Schemas in the file; ``selected`` of them were to be measured.
    """

    machine: dict[str, Any]
    settings: dict[str, Any]
    absent: list[str]
    available: int
    selected: int
    skipped_instances: int = 0
    engines: dict[str, EngineResult] = field(default_factory=dict)
    comparisons: dict[str, Comparison] = field(default_factory=dict)
    subjects: list[SubjectResult] = field(default_factory=list)
    walks: list[Walk] = field(default_factory=list)
    clock_ghz: float | None = None
    records: list[dict[str, Any]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """As what :mod:`json` can write."""
        return asdict(self)


def engine_result(pairs: Sequence[Pair], ready: Ready, starts: int) -> EngineResult:
    """The figures of one engine."""
    steps = figures.step_times(pairs)
    undisturbed = figures.undisturbed_times(pairs)
    first, repeated = figures.by_visit(pairs)
    return EngineResult(
        ready=ready,
        verdicts=figures.verdicts(pairs),
        mask=figures.distribution(steps),
        compile=figures.distribution(figures.compile_times(pairs)),
        first_visits=figures.distribution(first),
        repeats=figures.distribution(repeated),
        undisturbed=figures.distribution(undisturbed),
        steps=len(steps),
        first_count=len(first),
        interrupted=len(steps) - len(undisturbed),
        starts=starts,
        peak_memory=max((outcome.peak_memory for _, outcome in pairs), default=0) or ready.loaded,
        slowest=figures.slowest(pairs, _SLOWEST),
    )


def comparisons(pairs: dict[str, list[Pair]]) -> dict[str, Comparison]:
    """This engine with each of the others; none if it was not run."""
    if OURS not in pairs:
        return {}
    return {name: figures.compare(pairs[OURS], other) for name, other in pairs.items() if name != OURS}


def subject_results(jobs: Sequence[Job], outcomes: dict[str, dict[str, Outcome]]) -> list[SubjectResult]:
    """One entry for each subject and engine."""
    found = []
    for job in jobs:
        for name, outcome in outcomes.get(job.id, {}).items():
            pair = [(job, outcome)]
            first, repeated = figures.by_visit(pair)
            steps = figures.step_times(pair)
            found.append(
                SubjectResult(
                    subject=job.id,
                    engine=name,
                    status=outcome.status,
                    message=outcome.message,
                    accepted=sum(run.accepted for run in outcome.runs),
                    instances=len(job.instances),
                    compile=outcome.compile / 1e3,
                    steps=len(steps),
                    mask=figures.distribution(steps),
                    first_visits=figures.distribution(first),
                    repeats=figures.distribution(repeated),
                )
            )
    return found


def records(pairs: dict[str, list[Pair]]) -> list[dict[str, Any]]:
    """What became of each schema: one entry for a schema, with one for each engine in it.

    ``verdicts`` has for each instance whether it was accepted; ``mask_total`` and ``compile`` are
    microseconds.
    """
    found: dict[str, dict[str, Any]] = {}
    for name, of_engine in pairs.items():
        for job, outcome in of_engine:
            entry = found.setdefault(
                job.id, {"id": job.id, "valid": [instance.valid for instance in job.instances], "engines": {}}
            )
            entry["engines"][name] = {
                "status": outcome.status,
                "message": outcome.message,
                "compile": outcome.compile / 1e3,
                "steps": sum(len(run.steps) for run in outcome.runs),
                "mask_total": sum(int(run.steps.sum()) for run in outcome.runs) / 1e3,
                "mask_max": max((int(run.steps.max(initial=0)) for run in outcome.runs), default=0) / 1e3,
                "verdicts": [run.accepted for run in outcome.runs],
                "errors": [run.error for run in outcome.runs if run.error],
            }
    return list(found.values())
