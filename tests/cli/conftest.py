"""What tests of the command line have in common."""

from __future__ import annotations

import io
import signal
import sys
from collections.abc import Callable, Iterator

import pytest

from constrain.cli.main import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command in this process; returns the exit code, stdout and stderr."""

    def run(*arguments: object, stdin: bytes | None = None) -> tuple[int, str, str]:
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        status = main([str(argument) for argument in arguments])
        captured = capsysbinary.readouterr()
        return status, captured.out.decode(), captured.err.decode()

    return run


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Processes that are started can be interrupted, even if the tests run in the background and so ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
