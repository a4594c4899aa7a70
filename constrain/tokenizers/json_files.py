"""Reads the JSON files of a model folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from constrain.errors import TokenizerError
from constrain.tokenizers.file_errors import errors_of

_LARGEST_FILE = 64 * 2**20


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file; anything else is a :class:`TokenizerError` with the path."""
    with errors_of(path):
        if path.stat().st_size > _LARGEST_FILE:
            raise TokenizerError(f"larger than {_LARGEST_FILE >> 20} MiB")
        try:
            content = json.loads(path.read_bytes().decode("utf-8-sig"))
        except RecursionError:
            raise TokenizerError("nested too deeply") from None
        except ValueError as error:
            raise TokenizerError(f"not JSON: {error}") from None
        if not isinstance(content, dict):
            raise TokenizerError("a JSON object was expected")
        return content
