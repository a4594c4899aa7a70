"""What was loaded once is kept on disk (cache_folder.py) and loaded from there again, in a tenth of the time.

It is found by content: SHA-256 of the file and of the files beside it that a reader looks at, the arguments, and the
sources of this package's tokenizers.  So nothing has to be invalidated.  A file that is cut off or damaged is as if it
were not there (storage/disk_cache.py).

A GGUF file may hold a whole model.  Its tokenizer is decided by what stands in front of the tensors, so it is found by
the file's size and its first bytes, and what is found there says how much of the file was read, and the hash of that:
it is taken if that part of the file has this hash.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from constrain.cache_folder import find_in_caches, writable_cache_folder
from constrain.engine.storage import disk_cache
from constrain.errors import TokenizerError
from constrain.kernels.digests import source_hash
from constrain.tokenizers.base import Tokenizer
from constrain.tokenizers.formats.gguf_metadata import metadata_length
from constrain.tokenizers.state_arrays import UnknownStateError, from_arrays, to_arrays
from constrain.version import __version__

_FORMAT = "constrain tokenizer 2"
_PACKAGE = Path(__file__).parent
_BESIDE = ("tokenizer_config.json", "generation_config.json", "config.json", "special_tokens_map.json")
SMALLEST = 200_000
"""Smaller files are read sooner than looked up, in bytes."""
LARGEST = 1 << 28
"""Of larger ones nothing is kept, but of GGUF files: to hash them would take longer than to read a vocabulary."""
FIRST_BYTES = 1 << 20
"""By these a GGUF file is found."""
_PIECE = 1 << 18
_PART = "part"
"""The array with the part of a GGUF file that was read: its length in 8 bytes, and its hash."""

Part = npt.NDArray[np.uint8]


def loaded_through_cache(path: Path, arguments: object, load: Callable[[], Tokenizer]) -> Tokenizer:
    """What ``load`` returns for a file, from the cache if it is there.

    ``arguments``: what else decides the result; its representation counts.
    """
    try:
        before = _stamps(path)
        size = path.stat().st_size
        # Small ones first: what is no plain file has no size, and to open it may wait for ever.
        if size < SMALLEST:
            return load()
        is_gguf = _starts_with_gguf(path)
        if size > LARGEST and not is_gguf:
            return load()
        name = disk_cache.name_of(f"tokenizer-{_key_of(path, arguments, FIRST_BYTES if is_gguf else size)}")
        found = _kept(name, path, is_gguf)
    except OSError:  # the reader has the better words
        return load()
    if found is not None:
        return found
    tokenizer = load()
    folder = writable_cache_folder()
    if folder is None:
        return tokenizer
    # Such as a tokenizer of another library, or a file that went away or was cut off meanwhile.
    with contextlib.suppress(UnknownStateError, OSError, TokenizerError):
        arrays = to_arrays(tokenizer)
        if is_gguf:
            arrays[_PART] = _part_of(path, metadata_length(path))
        # What was hashed is what was read.
        if _stamps(path) == before:
            disk_cache.write(folder / name, arrays)
    return tokenizer


def _kept(name: str, path: Path, is_gguf: bool) -> Tokenizer | None:
    kept = find_in_caches(name)
    arrays = None if kept is None else disk_cache.read(kept)
    if arrays is None:
        return None
    if is_gguf and (_PART not in arrays or not _is_part_of(path, arrays[_PART])):
        return None
    with contextlib.suppress(UnknownStateError):
        found = from_arrays(arrays)
        if isinstance(found, Tokenizer):
            return found
    return None


def _stamps(path: Path) -> list[tuple[int, int, int] | None]:
    """What changes with a file, and with those beside it; None for one that is not there."""
    stamps: list[tuple[int, int, int] | None] = []
    for file in (path, *(path.parent / name for name in _BESIDE)):
        try:
            found = file.stat()
        except OSError:
            stamps.append(None)
        else:
            stamps.append((found.st_size, found.st_mtime_ns, found.st_ino))
    return stamps


def _starts_with_gguf(path: Path) -> bool:
    with path.open("rb", 0) as file:
        return file.read(4) == b"GGUF"


def _key_of(path: Path, arguments: object, count: int) -> str:
    """What a file is found by, of which the first ``count`` bytes are hashed."""
    # The name may tell the encoding of a rank file.
    decides = (_FORMAT, __version__, _sources(), path.name, path.stat().st_size, arguments)
    digest = hashlib.sha256(repr(decides).encode("utf-8", "surrogatepass"))
    digest.update(_hash_of(path, count))
    for file in (path.parent / name for name in _BESIDE):
        digest.update(_hash_of(file) if file.is_file() else b"-")
    return digest.hexdigest()[:32]


def _hash_of(path: Path, count: int | None = None) -> bytes:
    """SHA-256 of a file, or of its first bytes."""
    digest = hashlib.sha256()
    piece = memoryview(bytearray(_PIECE))
    left = path.stat().st_size if count is None else count
    with path.open("rb", 0) as file:
        while left > 0 and (read := file.readinto(piece[: min(left, _PIECE)])):
            digest.update(piece[:read])
            left -= read
    return digest.digest()


def _part_of(path: Path, length: int) -> Part:
    return np.frombuffer(length.to_bytes(8, "little") + _hash_of(path, length), np.uint8)


def _is_part_of(path: Path, part: Part) -> bool:
    length = int.from_bytes(part[:8].tobytes(), "little")
    return length <= min(path.stat().st_size, LARGEST) and part.tobytes() == _part_of(path, length).tobytes()


@cache
def _sources() -> str:
    """A hash over the sources of the tokenizers."""
    digest = hashlib.sha256()
    for folder, folders, names in os.walk(_PACKAGE):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            if name.endswith(".py"):
                digest.update(source_hash(os.path.join(folder, name)))
    return digest.hexdigest()
