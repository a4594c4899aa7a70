"""Hypothesis profiles, the folder of shared test data, and the count of compared masks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

_COMPARED = pytest.StashKey[list[int]]()

settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("default"), derandomize=True, print_blob=False)
# Deterministic unless asked otherwise: `--hypothesis-profile=default` looks for new counterexamples.
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


class MaskCount:
    """How many masks a session compared with brute force; tests call :meth:`add`."""

    def __init__(self, counts: list[int]) -> None:
        self._counts = counts

    def add(self, masks: int = 1) -> None:
        self._counts[0] += masks


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_COMPARED] = [0]


@pytest.fixture(scope="session")
def masks_compared(pytestconfig: pytest.Config) -> MaskCount:
    """The session's counter, printed at the end of the run."""
    return MaskCount(pytestconfig.stash[_COMPARED])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.stash[_COMPARED][0]:
        terminalreporter.write_line(f"masks compared with brute force: {config.stash[_COMPARED][0]}")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of vocabularies and schemas that do not lie in the repository."""
    named = os.environ.get("CONSTRAIN_TEST_DATA")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no test data at {folder}: set CONSTRAIN_TEST_DATA to the folder that holds vocab/")
    return folder
