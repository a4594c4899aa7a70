"""What the steps of a matcher bring of the parts of its text, as events.

An event reader (constrain/grammar/events.py) makes of a place and some bytes the place behind them.  Here the places
behind all steps that were read are kept as a linked list, so going back is dropping some, and a fork shares them.  No
step is read before somebody asks for its events.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from constrain.characters import whole_characters
from constrain.engine.captures import Capture
from constrain.engine.vocabulary.vocabulary import Vocabulary
from constrain.grammar.events import Event, EventReader


class EventStream:
    """The events of one text, as far as they have been told.

    Parameters
    ----------
    reader : EventReader
    vocabulary : Vocabulary

    Attributes
    ----------
    steps : int
        How many steps have been read.
    places : linked list
        The place behind the last step that was read, and those before it.
    read_step, tokens
        The reader's ``read`` and the vocabulary's tokens, for the matcher, which reads a single token itself.
    """

    __slots__ = ("_reader", "places", "read_step", "steps", "tokens")

    def __init__(self, reader: EventReader, vocabulary: Vocabulary) -> None:
        self._reader, self.read_step = reader, reader.read
        self.tokens = vocabulary.tokens
        self.steps = 0
        self.places: Any = (None, reader.start)

    def copy(self) -> EventStream:
        """One for a fork, in constant time."""
        twin = EventStream.__new__(EventStream)
        twin._reader, twin.read_step, twin.tokens = self._reader, self.read_step, self.tokens
        twin.places, twin.steps = self.places, self.steps
        return twin

    def rewind(self, steps: int) -> None:
        """Be as after so many steps, if more have been read."""
        while self.steps > steps:
            self.places = self.places[0]
            self.steps -= 1

    def read(self, steps: Sequence[int | bytes]) -> list[Event]:
        """The events of the steps that come next."""
        places = self.places
        read, tokens = self.read_step, self.tokens
        events: list[Event] = []
        for step in steps:
            if isinstance(step, bytes):
                place = read(places[1], step, None, events)
            else:
                place = read(places[1], tokens[step], step, events)
            places = places, place
        self.places, self.steps = places, self.steps + len(steps)
        return events

    def end(self) -> list[Event]:
        """The events of the token that ends the text."""
        events = self.finish()
        self.places, self.steps = (self.places, self.places[1]), self.steps + 1
        return events

    def finish(self) -> list[Event]:
        """The events that it brings that the text ends here; nothing is kept of them."""
        events: list[Event] = []
        self._reader.finish(self.places[1], events)
        return events


class CaptureStream:
    """The same for grammars that capture rules: what is captured, compared with what had been.

    Each time that it is asked, all captures are worked out (:meth:`constrain.Matcher.captures`).
    """

    def __init__(self) -> None:
        # What had been captured after some steps: (before, steps, captures).
        self._told: Any = None

    def copy(self) -> CaptureStream:
        """One for a fork, in constant time."""
        twin = CaptureStream()
        twin._told = self._told
        return twin

    def rewind(self, steps: int) -> None:
        """Be as after so many steps, if more have been told of."""
        while self._told is not None and self._told[1] > steps:
            self._told = self._told[0]

    def compare(self, steps: int, found: list[Capture]) -> list[Event]:
        """The events that make what was captured ``found``."""
        known = [] if self._told is None else self._told[2]
        if self._told is not None and self._told[1] == steps:
            self._told = self._told[0]
        self._told = self._told, steps, found
        events = []
        for index, capture in enumerate(found):
            before = known[index] if index < len(known) else None
            if before == capture:
                continue
            text = _text_of(capture)
            shown = _text_of(before) if before is not None and before.name == capture.name else ""
            delta = text[len(shown) :] if text.startswith(shown) else text
            events.append(Event(None, capture.name, "capture", delta, capture.is_complete, _as_it_is, text))
        return events


def _as_it_is(_kind: Any, content: Any, _is_complete: bool) -> Any:
    return content


def _text_of(capture: Capture) -> str:
    """The characters of a capture that are certain; bytes that are none become U+FFFD when it is complete."""
    data = capture.data
    if not capture.is_complete:
        data = data[: whole_characters(data)]
    return data.decode("utf-8", "replace")
