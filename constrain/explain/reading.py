"""How far a text can be read by a grammar, and what was expected where it cannot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from constrain.engine.compiled_grammar import CompiledGrammar
from constrain.engine.expectations import Expectation
from constrain.engine.matcher import Matcher

_BYTES_AT_ONCE = 1 << 14


@dataclass(frozen=True)
class Reading:
    """What came of reading a text.

    Attributes
    ----------
    length : int
        How many bytes can be read; all of them, if the text is the beginning of something valid.
    refused : bool
        Whether there is a byte after them, which no valid text goes on with.
    complete : bool
        Whether all has been read and is valid.
    expected : list of Expectation
        What may come after ``length`` bytes; empty if the text is complete.
    forced : bytes
        What has to come after ``length`` bytes, as far as there is no choice.
    """

    length: int
    refused: bool
    complete: bool
    expected: list[Expectation]
    forced: bytes


def read_text(
    compiled: CompiledGrammar, data: bytes, *, limit: int = 64, on_read: Callable[[int], object] | None = None
) -> Reading:
    """Read a text as far as the grammar allows.

    Parameters
    ----------
    compiled : CompiledGrammar
        For any vocabulary: only bytes matter.
    data : bytes
        The text, usually UTF-8.
    limit : int
        How many expectations are worked out at most.
    on_read : callable (int) -> object, optional
        Called with the number of bytes read every now and then.
    """
    matcher = Matcher(compiled)
    length, step = 0, _BYTES_AT_ONCE
    while length < len(data):
        piece = data[length : length + step]
        if matcher.accept_bytes(piece):
            length += len(piece)
            if on_read is not None:
                on_read(len(piece))
        elif len(piece) == 1:
            break
        else:
            step = len(piece) // 2
    refused = length < len(data)
    complete = not refused and matcher.is_accepting()
    return Reading(
        length=length,
        refused=refused,
        complete=complete,
        expected=[] if complete else matcher.expected(limit),
        forced=b"" if complete else matcher.forced_bytes(),
    )


def without_last_line_break(compiled: CompiledGrammar, data: bytes) -> bytes:
    """A text without the line break at its end, if it is valid so and not as it is.

    Editors and pipes end a text with a line break that is none of its own.
    """
    if not data.endswith(b"\n") or read_text(compiled, data).complete:
        return data
    for end in (b"\r\n", b"\n"):
        if data.endswith(end) and read_text(compiled, data[: -len(end)]).complete:
            return data[: -len(end)]
    return data
