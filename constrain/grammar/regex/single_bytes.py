"""Regexes over bytes, which need not be UTF-8: ``.`` is a byte, and so is each that a set holds."""

from __future__ import annotations

import re

from constrain.errors import GrammarError
from constrain.grammar.languages.regular import Regular, byte_set
from constrain.grammar.languages.utf8 import CodePoints
from constrain.grammar.regex import regex_code_points
from constrain.grammar.regex.parser import Dialect

# An escape, a set, what says that characters are bytes in the syntax of Rust, or a character.
_UNIT = re.compile(r"\\x\{|\\.|\(\?[imsx]*-u[:)]|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)


def byte_language(pattern: str, flags: str = "", dialect: Dialect = "python") -> Regular:
    """The language of a regex whose characters are bytes; what is not ASCII in it is its bytes.

    Parameters
    ----------
    pattern : str
        ``\\xHH`` is a byte; ``\\w``, ``\\d`` and ``\\s``, and the case of letters, are those of ASCII.
    flags : str
        Any of ``i s m x``.
    dialect : "python" or "rust"

    Raises
    ------
    GrammarError
        If the pattern is invalid, or has characters in a set or an escape that are no bytes.
    """

    def spelled(found: re.Match[str]) -> str:
        part = found[0]
        if part.startswith("(?"):
            others = part.replace("-u", "")
            return "" if others == "(?)" else others
        if part[:2] in ("\\u", "\\U", "\\p", "\\P") or part == "\\x{" or (len(part) > 1 and not part.isascii()):
            raise GrammarError(
                f"a byte regex has no characters that are not ASCII in a set or an escape, as in {part!r}; write \\xHH"
            )
        return part if part.isascii() else "(?:" + "".join(f"\\x{byte:02x}" for byte in part.encode()) + ")"

    written = _UNIT.sub(spelled, pattern)
    try:
        return regex_code_points(written, flags="a" + flags, dialect=dialect, encode_char=_single_bytes)
    except GrammarError as error:
        if written == pattern:
            raise
        # Its place is one in another text.
        raise GrammarError(error.reason) from None


def _single_bytes(points: CodePoints) -> Regular:
    """Code points that are bytes, each as that byte."""
    return byte_set(byte for first, last in points for byte in range(first, min(last, 255) + 1))
