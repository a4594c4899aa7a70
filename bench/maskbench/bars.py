"""One chart for a first look: the time for a mask, an engine a row, for light and for dark pages.

The command draws it; ``python -m bench.maskbench.bars maskbench.json FOLDER`` draws it again from the figures of a run.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10
from pathlib import Path
from typing import Any

_WIDTH, _ROW, _TOP, _BOTTOM = 760, 34, 58, 46
_LEFT, _RIGHT = 130, 120
_FONT = "font-family:system-ui,-apple-system,'Segoe UI',sans-serif"


@dataclass(frozen=True)
class _Colours:
    text: str
    soft: str
    line: str
    ours: str
    other: str


# Nothing is painted behind the chart: it stands on the page's own background.
_THEMES = {
    "light": _Colours("#1f2328", "#59636e", "#d1d9e0", "#d9480f", "#4c6a92"),
    "dark": _Colours("#f0f6fc", "#9198a1", "#3d444d", "#ffa94d", "#8fb2dd"),
}


Figures = Mapping[str, Mapping[str, float]]
"""Microseconds by engine: ``mean``, ``p50`` and ``p99``, as in the command's JSON."""


def write(folder: Path, found: Mapping[str, Any]) -> list[str]:
    """Write ``masks-light.svg`` and ``masks-dark.svg`` of a run's figures, as its JSON has them."""
    # A step that another process interrupted is the scheduler's time; leaving it out favours the slower engine.
    engines = {name: engine["undisturbed"] for name, engine in found["engines"].items() if engine.get("undisturbed")}
    verdicts = {name: engine["verdicts"] for name, engine in found["engines"].items()}
    schemas = max((each["schemas"] for each in verdicts.values()), default=0)
    size = found["settings"]["vocabulary_size"]
    names = []
    for theme, colours in _THEMES.items():
        name = f"masks-{theme}.svg"
        svg = drawing(
            engines,
            "Time for a mask, JSON Schemas of MaskBench",
            f"{schemas:,} schemas, {size:,} tokens; each engine on those that it compiles in time; "
            "without steps that were interrupted",
            colours,
        )
        (folder / name).write_text(svg, encoding="utf-8")
        names.append(name)
    return names


def drawing(engines: Figures, title: str, note: str, colours: _Colours) -> str:
    """The chart as SVG: from the median to the 99th percentile a bar, the mean as a line across; ours comes first."""
    rows = {name: (figures["p50"], figures["p99"]) for name, figures in engines.items()}
    means = {name: figures["mean"] for name, figures in engines.items()}
    ends = [value for name, (p50, p99) in rows.items() for value in (p50, p99, means[name])] or [1.0, 10.0]
    low, high = floor(log10(max(min(ends), 0.01))), ceil(log10(max(max(ends), 0.01)) + 0.05)
    height = _TOP + _ROW * len(rows) + _BOTTOM

    def x(microseconds: float) -> float:
        share = (log10(max(microseconds, 0.01)) - low) / max(high - low, 1)
        return round(_LEFT + share * (_WIDTH - _LEFT - _RIGHT), 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}" '
        f'role="img" style="{_FONT}">',
        f"<title>{escape(title)}</title>",
        _text(0, 18, title, colours.text, size=15, weight=600),
        _text(0, 36, "bar: median to 99th percentile; line and number: mean; logarithmic scale", colours.soft),
    ]
    foot = _TOP + _ROW * len(rows)
    for power in range(low, high + 1):
        place = x(10.0**power)
        parts.append(f'<path d="M{place} {_TOP - 8}V{foot}" stroke="{colours.line}"/>')
        parts.append(_text(place, foot + 16, _microseconds(10.0**power), colours.soft, anchor="middle"))
    for index, (name, (p50, p99)) in enumerate(rows.items()):
        middle = _TOP + _ROW * index + 10
        colour = colours.ours if index == 0 else colours.other
        begin, end = x(p50), x(p99)
        parts.append(_text(_LEFT - 12, middle + 5, name, colours.text, "end", 13, 600 if index == 0 else 400))
        parts.append(
            f'<rect x="{begin}" y="{middle - 8}" width="{max(round(end - begin, 1), 2)}" height="16" rx="3" '
            f'fill="{colour}"/>'
        )
        mean = x(means[name])
        parts.append(f'<path d="M{mean} {middle - 12}V{middle + 12}" stroke="{colours.text}" stroke-width="2.5"/>')
        parts.append(_text(max(end, mean) + 8, middle + 5, _microseconds(means[name]), colours.text, size=13))
    parts.append(_text(0, height - 6, note, colours.soft))
    return "\n".join([*parts, "</svg>", ""])


def _microseconds(value: float) -> str:
    return f"{value:.3g} µs" if value < 1000 else f"{value / 1000:,.3g} ms"


def _text(x: float, y: float, text: str, colour: str, anchor: str = "start", size: int = 12, weight: int = 400) -> str:
    return (
        f'<text x="{x}" y="{y}" fill="{colour}" font-size="{size}" font-weight="{weight}" '
        f'text-anchor="{anchor}">{escape(text)}</text>'
    )


if __name__ == "__main__":
    write(Path(sys.argv[2]), json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
