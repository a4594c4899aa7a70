"""Names of models and encodings, and where the rank file of an encoding may lie.

Rank files are looked for in the folder that is given, in the cache of tiktoken, and in that of Hugging Face; one is
downloaded only where the caller says so.
"""

from __future__ import annotations

import os
import tempfile
from hashlib import sha1
from pathlib import Path

from constrain.errors import TokenizerError
from constrain.tokenizers.formats.rank_encodings import ENCODINGS
from constrain.tokenizers.rank_download import ADDRESS, SHA256, download_rank_file

MODEL_ENCODINGS: dict[str, str] = {
    **dict.fromkeys(("gpt-5*", "gpt-4.5", "gpt-4.1", "gpt-4o", "chatgpt-4o", "o1", "o3", "o4-mini"), "o200k_base"),
    "gpt-oss": "o200k_harmony",
    **dict.fromkeys(("gpt-4", "gpt-3.5", "gpt-3.5-turbo", "gpt-35-turbo", "davinci-002", "babbage-002"), "cl100k_base"),
    **dict.fromkeys(("text-embedding-ada-002", "text-embedding-3"), "cl100k_base"),
    **dict.fromkeys(("text-davinci-003", "text-davinci-002", "code-davinci", "code-cushman"), "p50k_base"),
    **dict.fromkeys(("davinci-codex", "cushman-codex"), "p50k_base"),
    **dict.fromkeys(("text-davinci-edit", "code-davinci-edit"), "p50k_edit"),
    **dict.fromkeys(("text-davinci-001", "text-curie", "text-babbage", "text-ada", "davinci", "curie"), "r50k_base"),
    **dict.fromkeys(("babbage", "ada", "text-similarity", "text-search", "code-search"), "r50k_base"),
    **dict.fromkeys(("gpt2", "gpt-2"), "gpt2"),
}
"""The encoding of each model.  A name stands for its versions too: ``gpt-4o`` for ``gpt-4o-2024-08-06``; the longest
name counts.  A name that ends with ``*`` stands for all that begin so: ``gpt-5*`` for ``gpt-5.1-codex``.  (``gpt-4``
does not stand for ``gpt-4.1``, which has another encoding.)  The table may be changed."""


def encoding_of_name(name: str) -> str | None:
    """The encoding that an encoding's or a model's name stands for; None if it is neither."""
    if name in ENCODINGS:
        return name
    model = name.removeprefix("ft:")
    known = [key for key in MODEL_ENCODINGS if _stands_for(key, model)]
    return MODEL_ENCODINGS[max(known, key=len)] if known else None


def _stands_for(key: str, model: str) -> bool:
    if key.endswith("*"):
        return model.startswith(key[:-1])
    return model == key or model.startswith((f"{key}-", f"{key}:"))


def find_rank_file(encoding: str, folder: Path | None = None, download: bool = False) -> Path:
    """The rank file of an encoding.

    ``folder``, or a folder within it, may have it under the name ``<encoding>.tiktoken``; tiktoken keeps it under
    the SHA-1 of its address in ``TIKTOKEN_CACHE_DIR``, ``DATA_GYM_CACHE_DIR`` or the folder for temporary files;
    Hugging Face in a snapshot of a repository.  With ``download`` a file that is nowhere is fetched, checked, and put
    into ``folder``, or where tiktoken looks for it.

    Raises :class:`TokenizerError` with all of these places if it is in none of them.
    """
    if encoding not in ENCODINGS:
        raise TokenizerError(f"unknown encoding {encoding!r}; known ones: {', '.join(ENCODINGS)}")
    source = ENCODINGS[encoding].file or encoding
    name = f"{source}.tiktoken"
    places: list[Path] = []
    own = _tiktoken_cache() / sha1(ADDRESS.format(source).encode()).hexdigest()
    if folder is not None:
        if not folder.is_dir():
            raise TokenizerError(f"{folder}: no such folder")
        places.append(folder / name)
        places += sorted(folder.glob(f"*/{name}"))
    if source in SHA256:
        places.append(own)
    hub = hub_cache()
    places += sorted(hub.glob(f"models--*/snapshots/*/{name}"))
    for place in places:
        if place.is_file():
            return place
    if download:
        return download_rank_file(source, own if folder is None else folder / name)
    looked = ", ".join(map(str, [*places, hub / "models--*" / "snapshots" / "*" / name]))
    fetched = f"; load_tokenizer({encoding!r}, download=True) fetches it, once" if source in SHA256 else ""
    raise TokenizerError(
        f"no rank file of the encoding {encoding}; looked for {looked}; give the path of {name}, or its folder to"
        f" load_tokenizer(folder=){fetched}"
    )


def hub_cache() -> Path:
    """Where Hugging Face keeps what it has downloaded, by its environment variables."""
    for variable, rest in (("HF_HUB_CACHE", ""), ("HUGGINGFACE_HUB_CACHE", ""), ("HF_HOME", "hub")):
        if os.environ.get(variable):
            return Path(os.environ[variable]).expanduser() / rest
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(home).expanduser() / "huggingface" / "hub"


def _tiktoken_cache() -> Path:
    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        if variable in os.environ:
            return Path(os.environ[variable])
    return Path(tempfile.gettempdir()) / "data-gym-cache"
