"""What a text says so far: events of the parts of a text, and what reads them (engine/event_stream.py drives it)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol

EventKind = Literal["object", "array", "string", "number", "boolean", "null", "capture"]

Steps = tuple[Any, ...]
"""Which part of a JSON text, as a linked list: the steps to what it is in, and its key or number there; or nothing."""


class Event:
    """What a step brought of one part of a text.

    Attributes
    ----------
    name : str or None
        What a capture is called; None for a part of a JSON text.
    kind : str
        ``"object"``, ``"array"``, ``"string"``, ``"number"``, ``"boolean"``, ``"null"`` or ``"capture"``.
    delta : str
        What a string or a capture has more than in the event before, decoded; of numbers and constants, their spelling.
        Empty for objects and arrays.
    is_complete : bool
        Whether nothing more can come of it.
    """

    __slots__ = ("_content", "_decode", "_steps", "delta", "is_complete", "kind", "name")

    def __init__(
        self,
        steps: Steps | None,
        name: str | None,
        kind: EventKind,
        delta: str,
        is_complete: bool,
        decode: Callable[[EventKind, Any, bool], Any],
        content: Any,
    ) -> None:
        self._steps = steps
        self.name = name
        self.kind = kind
        self.delta = delta
        self.is_complete = is_complete
        self._decode = decode
        self._content = content

    @property
    def pointer(self) -> str | None:
        """Which part of a JSON text, as a JSON pointer (RFC 6901), written when it is asked for; None for a capture."""
        # The pointers of all parts of a text that is nested deeply would be as long as the square of its length.
        if self._steps is None:
            return None
        parts, steps = [], self._steps
        while steps:
            steps, step = steps
            parts.append("/" + str(step).replace("~", "~0").replace("/", "~1"))
        return "".join(reversed(parts))

    @property
    def value(self) -> Any:
        """The decoded value so far, as ``json.loads`` makes it; worked out when it is asked for.

        But a number beyond a float, such as ``1e400``, is an integer and no infinity, up to 4,300 digits.

        Of a string, the characters that are certain: no half of a character or of an escape.  Of a number, what it
        would be if it ended here, or None where no number ends there (``-``, ``1.``).  Of ``true``, ``false`` and
        ``null``, None until it is complete.  Of an object or array, what it holds when it is complete, and an empty one
        before.

        Raises
        ------
        ValueError
            Where ``json.loads`` does: of an integer of more digits than Python converts.
        """
        return self._decode(self.kind, self._content, self.is_complete)

    def __repr__(self) -> str:
        where = self.name if self.pointer is None else self.pointer
        return f"<Event {self.kind} {where!r}: {self.value!r}{'' if self.is_complete else ' ...'}>"


class EventReader(Protocol):
    """Reads texts of one grammar, step by step.

    A *place* is what is known behind some bytes.  It is never changed, so going back in a text is taking an older one.
    """

    start: Any
    """The place at the beginning of a text."""

    def read(self, place: Any, data: bytes, key: int | None, events: list[Event]) -> Any:
        """The place behind some more bytes; what they bring is added to ``events``.

        ``key`` is a number that stands for these bytes, always the same ones; None for bytes that come once.
        """

    def finish(self, place: Any, events: list[Event]) -> None:
        """Add what it brings that the text ends here."""
