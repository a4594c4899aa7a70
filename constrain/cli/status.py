"""Exit codes, and the exception that ends a command with one of them."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """What the command's exit code says; the same in every command."""

    OK = 0
    INPUT = 1
    USAGE = 2
    LENGTH = 3
    INTERRUPTED = 130
    PIPE = 141


class Stop(Exception):
    """End the command with this status and one line on stderr (none where the message is empty)."""

    def __init__(self, status: Exit, message: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
