"""Host names with A-labels (``xn--...``), as rules made on demand.

What is behind the prefix of an A-label is read octet by octet, and each time the text says what may follow
(:mod:`~.punycode`): further octets, and the end of the label if it is valid.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import NamedTuple

from constrain.grammar import rules_on_demand as on_demand
from constrain.grammar.ir import BY_TEXT, HARD, NEVER, OPEN, UNSURE, GrammarBuilder, Symbol
from constrain.grammar.json_schema.lexical.idn.punycode import MAX_LABEL, OCTETS, PREFIX, ROOM, is_valid, next_octets
from constrain.grammar.json_schema.lexical.strings import Spelling
from constrain.grammar.languages.regular import Regular, concat, intersect, literal
from constrain.grammar.regex import regex_code_points

MAX_NAME = 253

# Room for the shortest A-label behind its prefix, ``xn--zca``.
_SHORTEST = 3

_END, _INNER = "[A-Za-z0-9]", "[A-Za-z0-9-]"
# Two hyphens after two characters are kept for A-labels (RFC 5890, section 2.3.1).
LABEL = (
    f"(?:{_END}{{1,2}}|{_END}{_INNER}{_END}(?:{_INNER}{{0,59}}{_END})?"
    f"|{_END}{_INNER}-{_END}(?:{_INNER}{{0,58}}{_END})?)"
)
"""A label of ASCII that is no A-label."""

_QUOTE = literal('"')


def _written(pattern: str, longest: int, spelling: Spelling) -> Regular:
    """The texts of a pattern that have one to ``longest`` characters."""
    parts = pattern, f"(?s:.{{1,{longest}}})"
    return intersect(*(regex_code_points(part, encode_char=spelling.points) for part in parts))


@lru_cache(maxsize=4)
def _plain_names(spelling: Spelling) -> Regular:
    return _written(f"{LABEL}(?:\\.{LABEL})*", MAX_NAME, spelling)


@lru_cache(maxsize=512)
def _to_next(room: int, spelling: Spelling) -> Regular:
    """From the end of an A-label to behind the prefix of the next one."""
    return _written(f"\\.(?:{LABEL}\\.)*[xX][nN]--", room - _SHORTEST, spelling)


@lru_cache(maxsize=512)
def _to_end(room: int, spelling: Spelling) -> Regular:
    """From the end of an A-label over other labels to the end of the name."""
    return _written(f"(?:\\.{LABEL})+", room, spelling)


@lru_cache(maxsize=512)
def _one_of(octets: str, spelling: Spelling) -> Regular:
    listed = "".join(octet + octet.upper() if octet.isalpha() else octet for octet in octets if octet != "-")
    return regex_code_points(f"[{listed}{'-' if '-' in octets else ''}]", encode_char=spelling.points)


def has_valid_a_labels(name: str) -> bool:
    """Whether all A-labels of a host name are valid."""
    labels = name.lower().split(".")
    return all(is_valid(label[len(PREFIX) :]) for label in labels if label.startswith(PREFIX))


class _Ahead(NamedTuple):
    """The same for a mask that looks ahead: further octets of any kind, of which ``left`` are no question."""

    left: int


class _Place(NamedTuple):
    """Within an A-label."""

    is_valid: bool
    """Whether it may end here."""
    octets: str
    """What may follow in it."""
    room: int
    """How many octets the name has room for, if the label may end."""
    left: int
    """How many octets may follow, whatever they are."""


_BEGIN = _Place(False, "", -1, 0)


class HostNames:
    """The template of names with an A-label; see :mod:`constrain.grammar.rules_on_demand`.

    Parameters
    ----------
    builder : GrammarBuilder
        Takes the lexemes that are known beforehand.
    opened : callable
        Puts before a token what may stand before it.
    spelling : Spelling
    """

    decided_by = BY_TEXT

    def __init__(self, builder: GrammarBuilder, opened: Callable[[Regular], Regular], spelling: Spelling) -> None:
        self._builder = builder
        self._opened = opened
        self.spelling = spelling
        begin = _written(f"(?:{LABEL}\\.)*[xX][nN]--", MAX_NAME - _SHORTEST, spelling)
        self.begins = builder.lexeme(opened(concat(_QUOTE, begin)), "a host name")

    def plain(self) -> Symbol:
        """The symbol of names without A-labels."""
        return self._builder.lexeme(self._opened(concat(_QUOTE, _plain_names(self.spelling), _QUOTE)), "a host name")

    def begin(self, unfolding: on_demand.UnfoldedAutomata) -> tuple[on_demand.Automaton, Hashable]:
        """An automaton for a compiled grammar, and its first state."""
        return _Names(self, unfolding), _BEGIN


class _Names:
    def __init__(self, template: HostNames, unfolding: on_demand.UnfoldedAutomata) -> None:
        self._begins = template.begins
        self._lexeme = unfolding.lexeme
        self._quote = unfolding.lexeme(_QUOTE)
        self._spelling = template.spelling
        self._dot = unfolding.lexeme(self._spelling.text("."))

    def edges(self, state: _Place | _Ahead) -> tuple[list[on_demand.Right], list[on_demand.Edge]]:
        """The ways to end in a state, and those to go on."""
        if isinstance(state, _Ahead):
            return [], self._edges_ahead(state.left)
        if state == _BEGIN:
            return [], [((self._begins,), None, OPEN | HARD)]
        ends: list[on_demand.Right] = []
        further: list[on_demand.Edge] = []
        if state.octets:
            kind = OPEN if state.left > 0 else OPEN | HARD
            further.append(((self._lexeme(_one_of(state.octets, self._spelling), "Punycode"),), state.left - 1, kind))
        if state.is_valid:
            ends.append((self._quote,))
            if state.room > 1:
                ends.append((self._lexeme(_to_end(state.room, self._spelling), "labels"), self._quote))
            if state.room > len(PREFIX) + _SHORTEST:
                further.append(((self._lexeme(_to_next(state.room, self._spelling), "labels"),), None, OPEN | HARD))
        return ends, further

    def _edges_ahead(self, left: int) -> list[on_demand.Edge]:
        # The text decides whether the label may end, and what may follow when its end is near.
        unsure = OPEN | HARD | UNSURE
        further: list[on_demand.Edge] = [((self._quote,), None, unsure), ((self._dot,), None, unsure)]
        octet = self._lexeme(_one_of(OCTETS, self._spelling), "Punycode")
        further.append(((octet,), left - 1, 0) if left > 0 else ((octet,), None, unsure))
        return further

    def follow(self, state: _Place | _Ahead, edge: int) -> Hashable:
        """What a mask may take for the state behind an octet."""
        return _Ahead(edge)

    def least(self, state: _Place, costs: on_demand.Costs) -> int:
        """What the closing quote costs where the label may end.

        Which octets make an A-label valid is not looked for: so none is begun that a budget or a completion has to end.
        """
        return costs.of(self._quote) if state.is_valid else NEVER

    def least_behind(self, state: _Place | _Ahead, edge: Hashable, costs: on_demand.Costs) -> int:
        """It is not known whether the label can end there."""
        return NEVER

    def close(self, state: _Place, edge: Hashable, text: on_demand.TextBefore) -> Hashable:
        """The place in the A-label that the text ends with."""
        # No quote is part of a name, and no character takes more than six bytes.
        data = text(6 * MAX_NAME + 1)
        name = json.loads(data[data.rfind(b'"') :] + b'"')
        label = name.rpartition(".")[2]
        tail = label[len(PREFIX) :].lower()
        name_room = MAX_NAME - len(name)
        room = min(MAX_LABEL - len(label), name_room)
        is_end = is_valid(tail)
        return _Place(is_end, next_octets(tail, room), name_room if is_end else 0, max(room - ROOM, 0))
