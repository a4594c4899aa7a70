"""The chart of mask times for a first look, light and dark."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from math import log10
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.maskbench import bars

FIGURES = {
    "constrain": {"mean": 26.5, "p50": 2.5, "p99": 97.06},
    "other <&>": {"mean": 99.9, "p50": 10.0, "p99": 99_900.0},
}
FOUND = {
    "engines": {name: {"undisturbed": mask, "verdicts": {"schemas": 1234}} for name, mask in FIGURES.items()}
    | {"absent": {"undisturbed": None, "verdicts": {"schemas": 0}}},
    "settings": {"vocabulary_size": 128256},
}


def test_both_themes(tmp_path: Path) -> None:
    assert bars.write(tmp_path, FOUND) == ["masks-light.svg", "masks-dark.svg"]
    light, dark = ((tmp_path / f"masks-{theme}.svg").read_text() for theme in ("light", "dark"))
    colours = r"#[0-9a-f]{6}"
    assert re.sub(colours, "#", light) == re.sub(colours, "#", dark)
    assert not set(re.findall(colours, light)) & set(re.findall(colours, dark))
    for svg in (light, dark):
        texts = [
            element.text for element in ElementTree.fromstring(svg).iter() if element.text and element.text.strip()
        ]
        assert texts.count("Time for a mask, JSON Schemas of MaskBench") == 2
        assert {"constrain", "other <&>", "26.5 µs", "99.9 µs"} <= set(texts)
        assert any(str(text).startswith("1,234 schemas, 128,256 tokens; each engine") for text in texts)
        assert "absent" not in texts
        # Nothing is loaded from elsewhere.
        assert "href" not in svg
        assert "url(" not in svg


def test_bars_stand_where_their_times_are() -> None:
    svg = bars.drawing(FIGURES, "t", "n", bars._THEMES["light"])
    ticks = {
        text: float(x) for x, text in re.findall(r'<text x="([\d.]+)"[^>]*text-anchor="middle">([^<]*)</text>', svg)
    }
    assert next(iter(ticks)) == "1 µs"
    rectangles = [
        (float(x), float(width)) for x, width in re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', svg)
    ]
    decade = ticks["10 µs"] - ticks["1 µs"]
    begin, width = rectangles[0]
    assert begin == pytest.approx(ticks["1 µs"] + decade * log10(2.5), abs=0.2)
    assert begin + width == pytest.approx(ticks["1 µs"] + decade * log10(97.06), abs=0.3)
    assert rectangles[1][0] == pytest.approx(ticks["10 µs"], abs=0.2)


def test_nothing_measured() -> None:
    ElementTree.fromstring(bars.drawing({}, "t", "n", bars._THEMES["dark"]))
    nothing = dict.fromkeys(("mean", "p50", "p99"), 0.0)
    ElementTree.fromstring(bars.drawing({"a": nothing}, "t", "n", bars._THEMES["dark"]))


def test_the_chart_of_a_run_is_drawn_again(tmp_path: Path) -> None:
    (tmp_path / "maskbench.json").write_text(json.dumps(FOUND))
    command = [sys.executable, "-m", "bench.maskbench.bars", str(tmp_path / "maskbench.json"), str(tmp_path)]
    subprocess.run(command, check=True, cwd=Path(__file__).parents[2])
    again = (tmp_path / "masks-dark.svg").read_text()
    bars.write(tmp_path, FOUND)
    assert (tmp_path / "masks-dark.svg").read_text() == again


def test_the_readme_s_charts_are_of_one_run() -> None:
    docs = Path(__file__).parents[2] / "docs"
    light, dark = ((docs / f"masks-{theme}.svg").read_text() for theme in ("light", "dark"))
    colours = r"#[0-9a-f]{6}"
    assert re.sub(colours, "#", light) == re.sub(colours, "#", dark)
    names = [element.text for element in ElementTree.fromstring(light).iter() if element.get("text-anchor") == "end"]
    assert names[0] == "constrain"
    assert {"llguidance", "xgrammar", "outlines-core"} <= set(names)
