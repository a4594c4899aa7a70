"""Tokenizers of repositories on the Hugging Face Hub, through ``huggingface_hub``."""

from __future__ import annotations

import re
from pathlib import Path

from constrain.errors import TokenizerError
from constrain.extras import how_to_install
from constrain.tokenizers.model_names import hub_cache

_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")

FILES = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "generation_config.json", "config.json"),
    *("chat_template.jinja", "chat_template.json", "additional_chat_templates/*.jinja", "*.model", "*.tiktoken"),
)
"""What is downloaded of a repository: no weights."""


def is_hub_id(name: str) -> bool:
    """Whether a name has the form ``organization/repository``."""
    return _ID.fullmatch(name) is not None and ".." not in name and "--" not in name


def folder_of_hub_id(name: str, download: bool = False, revision: str | None = None) -> Path:
    """The folder with the files of a repository, from the cache, or with ``download`` from the Hub.

    Raises :class:`TokenizerError` if ``huggingface_hub`` is not installed, or the files are not there; the message
    says what to do.
    """
    try:
        import huggingface_hub
    except ImportError:
        raise TokenizerError(
            f"{name}: no such file or folder; if it is the id of a repository on the Hugging Face Hub, huggingface_hub"
            f" is needed: {how_to_install('hub')}"
        ) from None
    try:
        folder = huggingface_hub.snapshot_download(
            name,
            revision=revision,
            cache_dir=hub_cache(),
            allow_patterns=list(FILES),
            local_files_only=not download,
        )
    except Exception as error:  # the library raises what its HTTP client raises, which depends on its version
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        if download:
            raise TokenizerError(f"{name}: it could not be downloaded from the Hugging Face Hub: {reason}") from None
        raise TokenizerError(
            f"{name}: no such file or folder, and no repository of this name in the Hugging Face cache;"
            f" load_tokenizer({name!r}, download=True) fetches it from the Hub, once ({reason})"
        ) from None
    return Path(folder)
