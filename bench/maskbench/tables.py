"""A result as Markdown tables, which read well in a terminal too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.maskbench.engines import OURS
from bench.maskbench.figures import LABELS, Figures
from bench.maskbench.jobs import Status
from bench.maskbench.result import Result

_NONE = "-"
_SUBJECT_LABELS = ("mean", "p50", "p90", "p99", "max")


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, its first column to the left and the others to the right."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cells[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)),
        ]
        return f"| {' | '.join(padded)} |"

    rule = "|".join(["-" * (widths[0] + 2), *("-" * (width + 1) + ":" for width in widths[1:])])
    return "\n".join([line(header), f"|{rule}|", *map(line, rows)])


def microseconds(value: float | None) -> str:
    """With about three digits."""
    if value is None:
        return _NONE
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def _ratio(value: float) -> str:
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def _megabytes(value: int) -> str:
    return f"{value / 1e6:,.0f}" if value else _NONE


def report(result: Result) -> str:
    """All tables, with a line above each that says what it is."""
    return "\n\n".join(_sections(result)) + "\n"


def _sections(result: Result) -> Iterator[str]:
    machine, settings = result.machine, result.settings
    yield (
        f"{machine['cpu']}, {machine['cores']} cores, load average {machine['load_before']} before and "
        f"{machine['load_after']} after; Python {machine['python']}; vocabulary of {settings['vocabulary_size']:,} "
        f"tokens; at most {settings['limit_seconds']:g} s for a schema; seed {settings['seed']}."
    )
    if result.absent:
        yield f"Not installed, so not measured: {', '.join(result.absent)} (pip install -e '.[bench]')."
    if result.engines:
        yield from _schemas(result)
    if result.subjects:
        yield "Other grammars, over a text each; microseconds."
        yield _subjects(result)
    if result.walks:
        clock = f" at {result.clock_ghz:.2f} GHz" if result.clock_ghz else ""
        yield f"The walk over the token trie by itself{clock} (first masks of new expressions; the fastest run)."
        yield table(
            ("place", "nodes looked at", "of them alive", "ns a node", "cycles a node"),
            [
                (
                    walk.name,
                    f"{walk.nodes:,}",
                    f"{walk.alive:,}",
                    f"{walk.nanoseconds:.2f}",
                    _NONE if walk.cycles is None else f"{walk.cycles:.1f}",
                )
                for walk in result.walks
            ],
        )


def _schemas(result: Result) -> Iterator[str]:
    engines = result.engines
    names = list(engines)
    measured = max(engine.verdicts.schemas for engine in engines.values())
    yield (
        f"MaskBench: {measured:,} schemas, drawn from {result.available:,}"
        + (f"; {measured:,} of {result.selected:,} done before the time was up" if measured < result.selected else "")
        + f". An engine that has used {result.settings['budget_seconds']:g} s is given no more."
    )
    counts = [
        ("version", [engine.ready.version for engine in engines.values()]),
        *(
            (label, [f"{getattr(engine.verdicts, key):,}" for engine in engines.values()])
            for label, key in (
                ("schemas given", "schemas"),
                ("schemas passing", "passing"),
                ("schemas compiled and run to the end", "measured"),
                ("compile errors", "compile_errors"),
                ("timeouts", "timeouts"),
                ("crashes", "crashes"),
                ("instances run", "instances"),
                ("wrongly rejected", "wrongly_rejected"),
                ("wrongly accepted", "wrongly_accepted"),
                ("rejected with an error", "errors"),
            )
        ),
        ("memory after imports, MB", [_megabytes(engine.ready.imported) for engine in engines.values()]),
        ("... and the vocabulary, MB", [_megabytes(engine.ready.loaded) for engine in engines.values()]),
        ("peak memory, MB", [_megabytes(engine.peak_memory) for engine in engines.values()]),
    ]
    yield table(("", *names), [(label, *cells) for label, cells in counts])

    yield "All that each engine did, microseconds. (Each on the schemas that it compiles: not for comparing.)"
    rows = [("steps", *(f"{engine.steps:,}" for engine in engines.values()))]
    for title, key in (("mask + accept", "mask"), ("compile + first mask", "compile")):
        rows += [
            (f"{title}, {label}", *(microseconds(getattr(engine, key).get(label)) for engine in engines.values()))
            for label in LABELS
        ]
    rows.append(
        ("of each step: the clock and the look-up", *(microseconds(e.ready.overhead / 1e3) for e in engines.values()))
    )
    rows.append(("steps interrupted by other processes", *(f"{engine.interrupted:,}" for engine in engines.values())))
    rows += [
        (f"mask + accept without them, {label}", *(microseconds(e.undisturbed.get(label)) for e in engines.values()))
        for label in ("mean", "p99.9", "max")
    ]
    yield table(("", *names), rows)

    if OURS in engines:
        ours = engines[OURS]
        yield f"{OURS}, masks of places new to the grammar, and of places visited before; mask + accept, microseconds."
        yield table(
            ("", "steps", *LABELS),
            [
                ("first visits", f"{ours.first_count:,}", *_cells(ours.first_visits)),
                ("repeats", f"{ours.steps - ours.first_count:,}", *_cells(ours.repeats)),
            ],
        )
    for name, pair in result.comparisons.items():
        yield (
            f"{OURS} and {name} on the {pair.schemas:,} schemas that both compile and run to the end, "
            f"{pair.steps:,} steps that both took; microseconds."
        )
        yield table(
            ("", *LABELS),
            [
                row
                for title, key in (("mask + accept", "mask"), ("compile + first mask", "compile"))
                if pair.ratios[key]
                for row in (
                    (f"{title}, {OURS}", *_cells(pair.ours[key])),
                    (f"{title}, {name}", *_cells(pair.theirs[key])),
                    ("ratio", *(_ratio(pair.ratios[key][label]) for label in LABELS)),
                )
            ]
            if pair.schemas
            else [("nothing in common", *[_NONE] * len(LABELS))],
        )


def _cells(figures: Figures, labels: Sequence[str] = LABELS) -> list[str]:
    return [microseconds(figures.get(label)) for label in labels]


def _subjects(result: Result) -> str:
    rows = []
    for entry in result.subjects:
        if entry.status is not Status.MEASURED:
            verdict = entry.status.value
        elif entry.accepted == entry.instances:
            verdict = "accepted"
        else:
            verdict = f"rejected {entry.instances - entry.accepted} of {entry.instances}"
        compiled = microseconds(entry.compile) if entry.compile >= 0 else _NONE
        rows.append(
            (entry.subject, entry.engine, verdict, compiled, f"{entry.steps:,}", *_cells(entry.mask, _SUBJECT_LABELS))
        )
        for title, part in (("first visits", entry.first_visits), ("repeats", entry.repeats)):
            if part:
                rows.append(("", "", f"... {title}", "", "", *_cells(part, _SUBJECT_LABELS)))
    return table(("grammar", "engine", "text", "compile + first", "steps", *_SUBJECT_LABELS), rows)
