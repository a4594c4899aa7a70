"""Limits of what knows nothing of them, which an exception from another thread ends."""

from __future__ import annotations

import signal
import sys
import threading
import time
import weakref

import pytest

from constrain.errors import GrammarError, LimitError
from constrain.limits import limited
from constrain.watched import watched


def _for_ever() -> None:
    while True:
        pass


class _Held:
    """What goes on for ever when it is freed, unless an exception comes, which Python then drops."""

    def __del__(self) -> None:
        _for_ever()


class _Referred:
    pass


def _is_traced() -> None:
    """A profiler sees calls: CPython 3.11 hangs at the next one if it looks for an exception that was taken back."""

    def hang(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, hang)
    seen: list[str] = []
    signal.setitimer(signal.ITIMER_REAL, 20)
    sys.setprofile(lambda _frame, event, _argument: seen.append(event))
    try:
        _at_rest()
    finally:
        sys.setprofile(None)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert "call" in seen


def _at_rest() -> None:
    pass


def _in_a_finalizer() -> None:
    _Held()
    _for_ever()


def _in_a_callback() -> None:
    referred = _Referred()
    reference = weakref.ref(referred, lambda _: _for_ever())
    del referred
    assert reference() is None
    _for_ever()


def _at_once() -> None:
    _for_ever()


def _in_what_becomes_another_error() -> None:
    try:
        _for_ever()
    except BaseException:
        raise GrammarError("the work's own") from None


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("work", [_at_once, _in_a_finalizer, _in_a_callback, _in_what_becomes_another_error])
def test_what_takes_too_long_ends(work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("constrain.watched.MOST_SECONDS", 0.05)
    with pytest.raises(LimitError, match=r"takes more than 0\.05 s"), limited(None):
        watched(work)
    _is_traced()
    # And no exception comes later.
    end = time.thread_time() + 0.5
    while time.thread_time() < end:
        pass
    assert not any(thread.name == "constrain-watch" and thread.is_alive() for thread in threading.enumerate())


@pytest.mark.parametrize("error", [KeyboardInterrupt, GrammarError])
def test_other_errors_pass(error: type[BaseException]) -> None:
    def work() -> None:
        raise error("the work's own")

    with limited(None), pytest.raises(error, match="the work's own"):
        watched(work)


def test_what_it_returns() -> None:
    with limited(None):
        assert watched(lambda: 5) == 5
    _is_traced()
    assert watched(lambda: 5) == 5
