"""What was loaded once is kept on disk (cache_folder.py) and loaded from there again, in a tenth of the time.

It is found by content: a hash of the file and of the files beside it that a reader looks at, of the arguments, and of
the sources of this package's tokenizers.  So nothing has to be invalidated.  A file that is cut off or damaged is as if
it were not there (storage/disk_cache.py).
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

from constrain.cache_folder import find_in_caches, writable_cache_folder
from constrain.engine.storage import disk_cache
from constrain.tokenizers.base import Tokenizer
from constrain.tokenizers.state_arrays import UnknownStateError, from_arrays, to_arrays

_FORMAT = b"constrain tokenizer 1"
_PACKAGE = Path(__file__).parent
_BESIDE = ("tokenizer_config.json", "generation_config.json", "config.json", "special_tokens_map.json")
SMALLEST = 200_000
"""Smaller files are read sooner than looked up, in bytes."""
LARGEST = 1 << 28
"""Larger files hold a whole model, and hashing them would take longer than reading their vocabulary."""


def loaded_through_cache(path: Path, arguments: object, load: Callable[[], Tokenizer]) -> Tokenizer:
    """What ``load`` returns for a file, from the cache if it is there.

    ``arguments``: what else decides the result; its representation counts.
    """
    try:
        if not SMALLEST <= path.stat().st_size <= LARGEST:
            return load()
        name = disk_cache.name_of(f"tokenizer-{_key_of(path, arguments)}")
    except OSError:  # the reader has the better words
        return load()
    kept = find_in_caches(name)
    arrays = None if kept is None else disk_cache.read(kept)
    if arrays is not None:
        try:
            found = from_arrays(arrays)
            if isinstance(found, Tokenizer):
                return found
        except UnknownStateError:
            pass
    tokenizer = load()
    folder = writable_cache_folder()
    if folder is not None:
        with contextlib.suppress(UnknownStateError):  # such as a tokenizer of another library
            disk_cache.write(folder / name, to_arrays(tokenizer))
    return tokenizer


def _key_of(path: Path, arguments: object) -> str:
    digest = hashlib.blake2b(_FORMAT + _sources(), digest_size=16)
    # The name may tell the encoding of a rank file.
    digest.update(repr((path.name, arguments)).encode("utf-8", "surrogatepass"))
    for file in (path, *(path.parent / name for name in _BESIDE)):
        content = file.read_bytes() if file.is_file() else b"-"
        digest.update(len(content).to_bytes(8, "little"))
        digest.update(content)
    return digest.hexdigest()


@cache
def _sources() -> bytes:
    digest = hashlib.blake2b()
    for file in sorted(_PACKAGE.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.digest()
