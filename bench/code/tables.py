"""Results as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.code.result import LABELS, EngineFigures, LanguageResult
from bench.maskbench.tables import microseconds, table

_NONE = "-"
_HEADER = (
    "engine", "tokens", *LABELS, "first 500", "first quarter", "last quarter", "new", "2nd program", "compile", "tables"
)  # fmt: skip


def report(languages: Sequence[LanguageResult]) -> str:
    """A section for each language, and the ratios of all of them."""
    return "\n\n".join(part for language in languages for part in section(language)) + "\n"


def section(language: LanguageResult) -> Iterator[str]:
    """The parts of a language's section."""
    tokens = " and ".join(f"{count:,}" for count in language.tokens)
    lines = " and ".join(f"{count:,}" for count in language.lines)
    yield f"**{language.name}**: two programs of {tokens} tokens, {lines} lines. Mask + accept, microseconds."
    yield table(_HEADER, [_row(engine) for engine in language.engines])
    if language.ratios:
        yield table(
            ("ratio", "tokens", *LABELS),
            [
                (f"{each.name} / {each.other}", f"{each.steps:,}", *(_share(each.share[label]) for label in LABELS))
                for each in language.ratios
            ],
        )
    notes = [f"- {engine.name}: {message}" for engine in language.engines for message in engine.messages]
    notes += [
        f"- {engine.name}: of the small program {probe!r}, {message}"
        for engine in language.engines
        for probe, message in engine.probes.items()
    ]
    notes += [
        f"- {engine.name}: {engine.interrupted} slow steps were interrupted by other processes; "
        f"max without them {microseconds(engine.undisturbed['max'])}"
        for engine in language.engines
        if engine.interrupted and engine.undisturbed
    ]
    if notes:
        yield "\n".join(notes)


def _row(engine: EngineFigures) -> tuple[str, ...]:
    return (
        engine.name,
        f"{engine.steps:,}" if engine.steps else _NONE,
        *(microseconds(engine.mask.get(label)) for label in LABELS),
        microseconds(engine.beginning),
        microseconds(engine.first_quarter),
        microseconds(engine.last_quarter),
        _NONE if engine.new is None else f"{engine.new:.0%}",
        microseconds(engine.second),
        _NONE if engine.compile is None else f"{engine.compile / 1e3:,.1f} ms",
        _NONE if engine.table_bytes is None else f"{engine.table_bytes / 1e6:,.1f} MB",
    )


def _share(value: float) -> str:
    return f"{value:.3f}" if value < 1 else f"{value:.2f}"
