"""Locks after a fork.

``os.fork`` copies the memory of a process and one of its threads, the one that calls it.  A lock that another thread
holds at that moment is held in the child for ever, and what that thread was changing is left half changed.  So whoever
has a lock says here what becomes of it in a child: a new lock, and nothing that depends on what was under way.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import Any

_owners: weakref.WeakSet[Any] = weakref.WeakSet()
_functions: list[Callable[[], None]] = []


def renew_in_child(owner: Any) -> None:
    """Call ``owner._renew_after_fork()`` in each forked child, as long as ``owner`` lives."""
    _owners.add(owner)


def call_in_child(function: Callable[[], None]) -> Callable[[], None]:
    """Call a function of a module in each forked child (a decorator)."""
    _functions.append(function)
    return function


def _after_fork() -> None:
    for function in _functions:
        function()
    # Not by iterating over the set itself, which another thread may have been doing.
    references: Any = _owners.data  # type: ignore[attr-defined]
    for reference in list(references):
        owner = reference()
        if owner is not None:
            owner._renew_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
