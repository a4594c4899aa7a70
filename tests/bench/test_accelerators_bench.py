"""The command that says what accelerators are worth: its figures and its table."""

from __future__ import annotations

import numpy as np
import pytest

from bench.accelerators import ALL, Run, figures_of, table_of


def test_figures_are_microseconds() -> None:
    times = np.array([[1000 * i, 500] for i in range(1001)])
    assert figures_of(Run(times, 2_500_000)) == pytest.approx([500, 900, 990, 999, 500.5, 2.5])


def test_a_table_holds_times_and_ratios() -> None:
    usual = np.full((10, 2), 2000)
    slower = usual.copy()
    slower[:, 0] *= 2
    lines = table_of({ALL: Run(usual, 3_000_000), "self_loops": Run(slower, 6_000_000)})
    assert lines[2] == "| nothing | 2.0 us | 2.0 us | 2.0 us | 2.0 us | 4.0 us | 3.0 MB |"
    assert lines[3] == "| self_loops | 2.00 | 2.00 | 2.00 | 2.00 | 1.50 | 2.00 |"
    assert lines[0].count("|") == lines[1].count("|") == lines[2].count("|")
