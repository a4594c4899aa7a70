"""The second process of a first run: it fills the same cache, and its absence or failure changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from constrain.cli import first_run


def test_it_fills_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_run, "_KERNELS", ("constrain.demo.ngram_kernels",))
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setenv("CONSTRAIN_KERNELS", "jit")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    process = first_run._compile_beside()
    assert process is not None
    assert process.wait(120) == 0
    assert list(tmp_path.glob("**/ngram_kernels.*.nbc"))
    first_run._end(process)


def test_it_is_ended_with_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_run, "_KERNELS", ("time; time.sleep(1000)",))
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    process = first_run._compile_beside()
    assert process is not None
    first_run._end(process)
    assert process.returncode not in (None, 0)


@pytest.mark.parametrize(
    ("name", "value"), [("os.cpu_count", lambda: 1), ("sys.executable", ""), ("sys.executable", "/nowhere/python")]
)
def test_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: object) -> None:
    monkeypatch.setattr(name, value)
    assert first_run._compile_beside() is None
