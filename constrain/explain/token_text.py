"""Tokens in front of a person: their bytes as text, whatever they are."""

from __future__ import annotations

from typing import Any


def bytes_as_json(data: bytes) -> dict[str, Any]:
    """Bytes for JSON: ``{"text": ...}`` if they are UTF-8, else ``{"bytes": [...]}``."""
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"bytes": list(data)}


def visible(data: bytes) -> str:
    """Bytes as text without anything that cannot be seen: escapes for what cannot be printed or is not UTF-8."""
    out = []
    for character in data.decode("utf-8", "surrogateescape"):
        if "\udc80" <= character <= "\udcff":
            out.append(f"\\x{ord(character) - 0xDC00:02x}")
        else:
            out.append(character if character.isprintable() else ascii(character)[1:-1])
    return "".join(out)
