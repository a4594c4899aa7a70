"""Which folders are looked into for what can be made again, and which of them is written."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest

from constrain import cache_folder
from constrain.engine.storage import disk_cache

pytestmark = pytest.mark.skipif(os.name == "nt", reason="users and modes of files are POSIX's")


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Folders of this test's own in the place of the package's, the user's and the one for temporary files."""
    package, home, temporary = (tmp_path / name for name in ("package", "home", "temporary"))
    for folder in (package, home, temporary):
        folder.mkdir()
    monkeypatch.setattr(cache_folder, "_PACKAGE", package)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("CONSTRAIN_CACHE_DIR", raising=False)
    return {
        "package": package / "__pycache__",
        "user": next(folder for folder in cache_folder.cache_folders() if home in folder.parents),
        "temporary": temporary / f"constrain-{os.getuid()}",
    }


def block(folder: Path) -> None:
    """Put a file where a folder would have to be: so root cannot make it either."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text("")


def test_the_order(places: dict[str, Path]) -> None:
    assert cache_folder.cache_folders() == list(places.values())
    for folder in places.values():
        assert cache_folder.writable_cache_folder() == folder
        folder.rmdir()
        block(folder)
    assert cache_folder.writable_cache_folder() is None


def test_the_first_file_counts_also_where_nothing_can_be_written(places: dict[str, Path]) -> None:
    assert cache_folder.find_in_caches("file") is None
    for folder in reversed(places.values()):
        folder.mkdir(parents=True)
        (folder / "file").write_text(str(folder))
        folder.chmod(0o555)
        assert cache_folder.find_in_caches("file") == folder / "file"


def test_a_folder_that_is_named_is_the_only_one(places: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    named = places["temporary"].parent / "named" / "deep"
    monkeypatch.setenv("CONSTRAIN_CACHE_DIR", str(named))
    assert cache_folder.cache_folders() == [named]
    assert cache_folder.writable_cache_folder() == named
    block(named.parent / "file")
    monkeypatch.setenv("CONSTRAIN_CACHE_DIR", str(named.parent / "file" / "below"))
    assert cache_folder.writable_cache_folder() is None


def test_folders_of_other_users_are_left_out(places: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    # Anyone can make a folder of that name among the temporary files; what lies there would be run.
    other = os.getuid() + 1
    monkeypatch.setattr(cache_folder, "_user", lambda: other)
    folder = places["temporary"].with_name(f"constrain-{other}")
    folder.mkdir()
    if os.getuid() == 0:
        # The administrator's are trusted.
        assert folder in cache_folder.cache_folders()
        os.chown(folder, other + 1, -1)
    assert folder not in cache_folder.cache_folders()


def test_without_a_home(places: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("there is none")

    monkeypatch.setattr(Path, "home", no_home)
    assert cache_folder.cache_folders() == [places["package"], places["temporary"]]


def test_what_one_user_writes_others_can_read(places: dict[str, Path]) -> None:
    folder = cache_folder.writable_cache_folder()
    assert folder == places["package"]
    assert folder.stat().st_mode & 0o755 == 0o755
    path = folder / disk_cache.name_of("file")
    assert disk_cache.write(path, {"a": np.arange(3)})
    assert path.stat().st_mode & 0o044 == 0o044
    places["package"].chmod(0o755)
    block(places["package"] / "x")
    assert not (cache_folder._of_user() / "constrain").exists()
