"""What a model's turn says: its thoughts, its text and its calls, from the same styles that grammars are made from.

``parse(text, style)`` reads a whole turn, :class:`TurnParser` one that still streams.
"""

# ruff: noqa: E402 (numpy before what imports it)

from constrain.uninterrupted import load_numpy

load_numpy()

from constrain.tools.parser import Call, Event, Turn, TurnParser, parse

__all__ = ["Call", "Event", "Turn", "TurnParser", "parse"]
