"""The progress bar: after a second, on a terminal, and nowhere else."""

from __future__ import annotations

import io
import sys

import pytest

from constrain.cli import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run(stream: io.StringIO | None, patience: float, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "_PATIENCE", patience)
    with progress.Progress("reading", 10) as bar:
        for _ in range(5):
            bar.advance(2)
    return "" if stream is None else stream.getvalue()


def test_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = run(Terminal(), -1, monkeypatch)
    assert "reading" in shown
    assert "100%" in shown


def test_what_is_quick_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(Terminal(), 1000, monkeypatch) == ""


def test_none_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(io.StringIO(), -1, monkeypatch) == ""
    assert run(None, -1, monkeypatch) == ""


def test_what_is_at_work_and_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "_PATIENCE", -1)
    with progress.Progress("compiling", 3, unit="files") as bar:
        for name in ("parser", "masks", "sampler"):
            bar.begin(name)
            bar.advance()
    shown = terminal.getvalue()
    places = [
        shown.index(words)
        for words in ("3 of 3 files left: parser", "2 of 3 files left: masks", "1 of 3 files left: sampler")
    ]
    assert places == sorted(places)
    assert "0 of 3 files left" in shown
