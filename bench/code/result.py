"""From steps to figures, and to JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from bench.code.measuring import EngineRun
from bench.maskbench.figures import Figures, distribution
from bench.maskbench.jobs import Nanoseconds

LABELS = ("mean", "p50", "p90", "p99", "max")
BEGINNING = 500
"""How many tokens are the beginning of a program."""


@dataclass(frozen=True)
class EngineFigures:
    """One engine on one language; microseconds, unless said otherwise.

    Attributes
    ----------
    steps : int
        Tokens of the first program that were measured.
    mask : Figures
        Mask + look-up + accept over the first program: mean, p50, p90, p99, max.
    undisturbed : Figures
        The same without the slow steps that other processes interrupted.
    interrupted : int
        How many those are.
    beginning, first_quarter, last_quarter : float or None
        Means over parts of the first program; None where it was not run to its end.
    new : float or None
        The share of steps with a mask that the grammar had not computed before, in the last quarter.
    second : float or None
        Mean over the second program.
    compile : float or None
        From the grammar's text to the first mask; None if there is none.
    table_bytes : int or None
        Of the compiled grammar after both programs.
    grammar_lines : int
        Of the text that the engine got.
    messages : list of str
        Why there is no compiled grammar, or why a program did not come to its end.
    probes : dict of str to str
        The language's small programs that it does not take, and why.
    """

    name: str
    version: str
    grammar_lines: int
    compile: float | None
    steps: int = 0
    mask: Figures = field(default_factory=dict)
    undisturbed: Figures = field(default_factory=dict)
    interrupted: int = 0
    beginning: float | None = None
    first_quarter: float | None = None
    last_quarter: float | None = None
    new: float | None = None
    second: float | None = None
    table_bytes: int | None = None
    peak_memory: int = 0
    messages: list[str] = field(default_factory=list)
    probes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Ratio:
    """One engine's figures as a share of another's, over the steps of the first program that both took."""

    name: str
    other: str
    steps: int
    share: Figures


@dataclass(frozen=True)
class LanguageResult:
    """A language with all engines.

    Attributes
    ----------
    tokens, lines : list of int
        Of the programs.
    """

    name: str
    tokens: list[int]
    lines: list[int]
    engines: list[EngineFigures]
    ratios: list[Ratio]

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def engine_figures(run: EngineRun, grammar: str) -> EngineFigures:
    """The figures of an engine's run."""
    lines = sum(1 for line in grammar.splitlines() if line.strip())
    compile_time = run.compile / 1e3 if run.compile >= 0 else None
    if not run.programs:
        return EngineFigures(
            run.name, run.ready.version, lines, compile_time, messages=[run.message] * bool(run.message)
        )
    first = run.programs[0]
    steps = first.steps
    whole = not first.message
    quarter = len(steps) // 4
    last = run.programs[-1]
    return EngineFigures(
        run.name,
        run.ready.version,
        lines,
        compile_time,
        len(steps),
        _figures(steps),
        _figures(steps[~first.interrupted]),
        int(first.interrupted.sum()),
        _mean(steps[:BEGINNING]) if len(steps) >= BEGINNING else None,
        _mean(steps[:quarter]) if whole else None,
        _mean(steps[-quarter:]) if whole and quarter else None,
        float(first.first[-quarter:].mean()) if first.first is not None and quarter else None,
        _mean(run.programs[1].steps) if len(run.programs) > 1 else None,
        last.table_bytes,
        last.peak_memory,
        [f"program {number}: {each.message}" for number, each in enumerate(run.programs, 1) if each.message],
        run.probes,
    )


def ratio(run: EngineRun, other: EngineRun) -> Ratio | None:
    """The figures of ``run`` by those of ``other``; None if there is no step that both took."""
    if not run.programs or not other.programs:
        return None
    count = min(len(run.programs[0].steps), len(other.programs[0].steps))
    if not count:
        return None
    mine, theirs = (_figures(each.programs[0].steps[:count]) for each in (run, other))
    return Ratio(run.name, other.name, count, {label: mine[label] / max(theirs[label], 1e-3) for label in LABELS})


def _figures(steps: Nanoseconds) -> Figures:
    everything = distribution(steps)
    return {label: everything[label] for label in LABELS if label in everything}


def _mean(steps: Nanoseconds) -> float | None:
    return float(np.mean(steps)) / 1e3 if len(steps) else None
