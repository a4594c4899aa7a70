"""Where the last whole character of some UTF-8 ends."""

from __future__ import annotations


def whole_characters(data: bytes | bytearray) -> int:
    """The length of ``data`` without an unfinished character at its end."""
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            return len(data) - back if back < (2 if byte < 0xE0 else 3 if byte < 0xF0 else 4) else len(data)
        if byte < 0x80:
            break
    return len(data)
