"""Folders for what can be made again: tables of vocabularies, and machine code."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def cache_folders() -> list[Path]:
    """Where to look, in this order; none of them needs to exist.

    ``CONSTRAIN_CACHE_DIR`` alone if it is set.  Otherwise the package's own folder, which an image or an administrator
    may have filled; the user's cache folder; and one in the folder for temporary files that bears the user's number.
    Folders of other users are left out, since what is loaded from here is trusted.
    """
    named = os.environ.get("CONSTRAIN_CACHE_DIR")
    if named:
        return [Path(named)]
    folders = [_PACKAGE / "__pycache__"]
    with contextlib.suppress(RuntimeError):  # there is no home
        folders.append(_of_user() / "constrain")
    folders.append(Path(tempfile.gettempdir()) / f"constrain-{_user()}")
    return [folders[0], *(folder for folder in folders[1:] if _is_own(folder))]


def _of_user() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def writable_cache_folder() -> Path | None:
    """The first of these folders that can be written, made if need be; None without any."""
    for folder in cache_folders():
        with contextlib.suppress(OSError):
            # The package's folder is for everyone who can read the package, the others are for one user.
            folder.mkdir(mode=0o755 if folder.parent == _PACKAGE else 0o700, parents=True, exist_ok=True)
            if _can_be_written(folder):
                return folder
    return None


def find_in_caches(name: str) -> Path | None:
    """The first file of this name in these folders."""
    return next((path for folder in cache_folders() if (path := folder / name).is_file()), None)


def _can_be_written(folder: Path) -> bool:
    # What os.access says is not always so, on network drives for one.
    with tempfile.TemporaryFile(dir=folder):
        return True


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0


def _is_own(folder: Path) -> bool:
    try:
        return folder.stat().st_uid in (0, _user())
    except OSError:
        return True  # it is not there yet
