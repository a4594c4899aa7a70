"""Percentile curves as a picture: how long a step and a compile take, the slowest at the right."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bench.maskbench.jobs import Nanoseconds

# From 0 to 99.999, closer together where the curves are steep; as "nines" along the axis.
_NINES = np.linspace(0.0, 5.0, 251)
_TICKS = {0.0: "min", 0.30103: "p50", 1.0: "p90", 2.0: "p99", 3.0: "p99.9", 4.0: "p99.99"}


def curve(times: Nanoseconds) -> tuple[np.ndarray, np.ndarray]:
    """Points of a curve: nines (1 is p90, 2 is p99, ...), and microseconds.

    It ends where there is less than one measurement beyond.
    """
    last = np.log10(max(len(times), 1))
    nines = np.append(_NINES[last > _NINES], last)
    return nines, np.percentile(times, 100 * (1 - 10.0**-nines)) / 1e3


def draw(path: Path, masks: dict[str, Nanoseconds], compiles: dict[str, Nanoseconds], title: str) -> None:
    """Draw both kinds of times of each engine, on logarithmic scales, to an SVG or PNG file.

    Parameters
    ----------
    masks, compiles : dict of str to int64[n]
        Nanoseconds by engine; engines without any are left out.
    """
    import matplotlib

    matplotlib.use("Agg")
    # The same run gives the same file.
    matplotlib.rcParams["svg.hashsalt"] = "maskbench"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(11, 4.5), constrained_layout=True)
    for axis, what, times in zip(axes, ("mask + accept", "compile + first mask"), (masks, compiles), strict=True):
        for number, (name, values) in enumerate(times.items()):
            if len(values):
                axis.plot(*curve(values), label=name, color=f"C{number}", linewidth=2.2 if number == 0 else 1.4)
        axis.set_yscale("log")
        axis.set_title(what)
        axis.set_ylabel("microseconds")
        axis.set_xlabel("percentile")
        longest = max((np.log10(len(values)) for values in times.values() if len(values)), default=1.0)
        ticks = {place: label for place, label in _TICKS.items() if place <= longest + 0.05}
        axis.set_xticks(list(ticks), list(ticks.values()))
        axis.grid(True, which="major", alpha=0.35)
        if axis.lines:
            axis.legend(frameon=False)
    figure.suptitle(title, fontsize=11)
    figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)
