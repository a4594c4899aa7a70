"""Rank files of OpenAI's encodings from where they are public, checked by their SHA-256."""

from __future__ import annotations

import contextlib
import os
import tempfile
from hashlib import sha256
from pathlib import Path

from constrain.errors import TokenizerError

ADDRESS = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"

SHA256 = {
    "r50k_base": "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
    "p50k_base": "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}
"""The files that are public, and the SHA-256 of each, as tiktoken has them."""

_LARGEST = 16 << 20
_SECONDS = 60.0


def download_rank_file(source: str, place: Path) -> Path:
    """Fetch a rank file and put it at ``place``, whole or not at all.

    Raises :class:`TokenizerError` if it is not public, cannot be fetched or written, or is not the file that it should
    be.
    """
    if source not in SHA256:
        raise TokenizerError(f"the rank file of {source} is not public; these are: {', '.join(SHA256)}")
    # It would be a fifteenth of the time that importing the tokenizers takes, and few programs download anything.
    from urllib.request import urlopen

    address = ADDRESS.format(source)
    try:
        with urlopen(address, timeout=_SECONDS) as answer:  # the address is a constant
            data: bytes = answer.read(_LARGEST + 1)
    except OSError as error:  # what urllib raises is one
        raise TokenizerError(f"{address}: it could not be downloaded: {error}") from None
    found = sha256(data).hexdigest()
    if found != SHA256[source]:
        raise TokenizerError(f"{address}: the file has the SHA-256 {found}, and should have {SHA256[source]}")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=place.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            Path(name).replace(place)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise TokenizerError(f"{place}: {error.strerror}") from None
    return place
