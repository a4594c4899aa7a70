"""What a backend says about its keys and values."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class KVStatistics:
    """The keys and values of the text that a backend answered for last.

    Attributes
    ----------
    tokens : int
        Of the text, prompt included.
    kept : int
        Whose keys and values are there, in each layer.
    dropped : int
        Whose keys and values were forgotten; ``tokens - kept``.
    evictions : int
        How many times some were forgotten.
    size : int or None
        In bytes; None where the backend cannot say it.
    largest : int or None
        The most that there were at any time since the text began, in bytes.
    """

    tokens: int
    kept: int
    dropped: int
    evictions: int
    size: int | None = None
    largest: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return asdict(self)
