"""Hypothesis profiles, the folder of shared test data, workers, garbage, and the count of compared masks."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from constrain.kernels import build, library, native

_COMPARED = pytest.StashKey[list[int]]()
_WORKERS = 2

# A whole run compares more, also without the data that CONSTRAIN_TEST_DATA names.
_MASKS_OF_A_WHOLE_RUN = 1

settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("default"), derandomize=True, print_blob=False)
# Deterministic unless asked otherwise: `--hypothesis-profile=default` looks for new counterexamples.
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Whole folders are tested by two processes; fewer tests are done sooner without them."""
    is_worker = "PYTEST_XDIST_WORKER" in os.environ
    if is_worker or not config.pluginmanager.hasplugin("xdist") or config.option.numprocesses is not None:
        return
    folders = any(Path(argument).is_dir() for argument in config.args)
    if folders and not _is_selection(config) and not config.option.usepdb and not config.option.collectonly:
        config.option.numprocesses = min(_WORKERS, len(os.sched_getaffinity(0)))
        config.option.dist = "worksteal"
        _compile_beforehand(config.rootpath / ".pytest_cache" / "constrain")


def _compile_beforehand(folder: Path) -> None:
    """Let all processes of this run have a library of machine code, where one can be made.

    It takes as long as compiling all kernels once, and saves each process that the tests start a second or two.
    """
    if {"CONSTRAIN_KERNELS", "CONSTRAIN_CACHE_DIR", "NUMBA_DISABLE_JIT", "NUMBA_BOUNDSCHECK"} & set(os.environ):
        return
    if library.loaded is not None:
        return
    name = native.native_name()
    path = folder / f"{name}{native.SUFFIX}"
    if not (path.exists() and isinstance(library.load(path), library.Library)):
        try:
            print("compiling the kernels ...", file=sys.stderr)
            build.build_native(folder)
        except RuntimeError as error:
            print(f"kernels are compiled as they are needed: {error}", file=sys.stderr)
            return
    os.environ["CONSTRAIN_CACHE_DIR"] = str(folder)


def _is_selection(config: pytest.Config) -> bool:
    option = config.option
    # The plug-in for the last failed ones may be switched off.
    last_failed = getattr(option, "lf", False)
    return any((option.keyword, option.markexpr, option.deselect, last_failed, option.ignore, option.ignore_glob))


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_COMPARED] = [0]
    worker = getattr(config, "workerinput", None)
    if worker is not None and library.loaded is None:
        # The workers share the cache of kernels: where it is empty, they begin at different ends of what there is to
        # compile, and take from each other what is done.
        modules = _modules_with_kernels()
        for module in modules if worker["workerid"] == "gw0" else reversed(modules):
            importlib.import_module(module)


def _modules_with_kernels() -> list[str]:
    root = Path(__file__).resolve().parents[1]
    files = sorted(path for path in (root / "constrain").rglob("*.py") if b"@njit" in path.read_bytes())
    return [".".join(path.relative_to(root).with_suffix("").parts) for path in files]


class MaskCount:
    """How many masks a session compared with brute force; tests call :meth:`add`."""

    def __init__(self, counts: list[int]) -> None:
        self._counts = counts

    def add(self, masks: int = 1) -> None:
        self._counts[0] += masks


@pytest.fixture(scope="session")
def masks_compared(pytestconfig: pytest.Config) -> MaskCount:
    """The session's counter, printed at the end of the run.  A test that asks for it has to compare a mask."""
    return MaskCount(pytestconfig.stash[_COMPARED])


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    count = pyfuncitem.config.stash[_COMPARED]
    before = count[0]
    result = yield
    if "masks_compared" in pyfuncitem.fixturenames:
        assert count[0] > before, "the test compared no mask"
    return result


@pytest.fixture(autouse=True, scope="module")
def _what_lives_is_left_alone() -> Iterator[None]:
    """Behind each file, spare the garbage collector what has survived.

    Thousands of tests leave millions of objects, and going through them again and again is a tenth of a whole run.
    """
    yield
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add what a worker counted."""
    node.config.stash[_COMPARED][0] += getattr(node, "workeroutput", {}).get("masks compared", 0)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    compared = config.stash[_COMPARED][0]
    if hasattr(config, "workeroutput"):
        config.workeroutput["masks compared"] = compared
    elif _is_whole(session) and compared < _MASKS_OF_A_WHOLE_RUN:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _is_whole(session: pytest.Session) -> bool:
    config = session.config
    passed = session.exitstatus == pytest.ExitCode.OK and not config.option.collectonly
    return passed and config.args_source is pytest.Config.ArgsSource.TESTPATHS and not _is_selection(config)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    compared = config.stash[_COMPARED][0]
    if compared:
        terminalreporter.write_line(f"masks compared with brute force: {compared}")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of vocabularies and schemas that do not lie in the repository."""
    named = os.environ.get("CONSTRAIN_TEST_DATA")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no test data at {folder}: set CONSTRAIN_TEST_DATA to the folder that holds vocab/")
    return folder
