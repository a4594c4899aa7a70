"""Errors about a file say which."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from constrain.errors import TokenizerError


@contextmanager
def errors_of(path: Path) -> Iterator[None]:
    """Have errors about a file, and those of reading or writing it, be a :class:`TokenizerError` with its path."""
    try:
        yield
    except TokenizerError as error:
        raise TokenizerError(f"{path}: {error}") from None
    except OSError as error:
        raise TokenizerError(f"{path}: {error.strerror}") from None
