"""Events of JSON texts: an incremental reader, for texts that a grammar has found to be JSON.

The reader has two layers.  The *lexical* one knows whether the text is between tokens, in a string or in a number, and
what of an escape or a character has begun; it knows nothing of nesting.  So there are few lexical states, and what the
bytes of a vocabulary's token are in one of them is worked out once: a short list of operations.  The other layer does
these operations on the objects and arrays that are open.

Worked example: the token ``s", "na`` within a string is TEXT "s", which ends, and TEXT "na", which begins; and the
state is within a string again.  Whether that string is a key is known to the layer above alone.

All that is kept are tuples that are never changed: a place in a text is one of them, and an older one stays valid.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from constrain.characters import whole_characters
from constrain.grammar.events import Event, EventKind, Steps
from constrain.grammar.json_numbers import read_number

_OPEN_OBJECT, _OPEN_ARRAY, _CLOSE = range(3)

# More of a string, or of a number, true, false or null: what it is more of, and whether it begins and ends here.
_BEGINS, _ENDS, _TEXT, _NUMBER, _BOOLEAN, _NULL = 1, 2, 4, 8, 16, 32
_KINDS: dict[int, EventKind] = {_TEXT: "string", _NUMBER: "number", _BOOLEAN: "boolean", _NULL: "null"}

_Operation = tuple[int, str]

# What a lexical state is: between tokens; what a value without quotes is more of; and within a string, the bytes of an
# escape or of a character that has begun.
_BETWEEN: Final = 0
_Lexical = int | bytes

_NO_JSON = "the text is no JSON"

# The operations of so many pairs of a lexical state and a token are kept.
_MOST_KNOWN = 1 << 16


class _State(dict[int, "_Known"]):
    """A lexical state, and for tokens that were met there what they are."""

    __slots__ = ("lexical",)

    def __init__(self, lexical: _Lexical) -> None:
        self.lexical = lexical


_TOKEN = re.compile(rb"[^ \t\r\n,:]")
_PLAIN_END = re.compile(rb"[ \t\r\n,\]}]")
_IN_STRING = re.compile(rb'(?:[^"\\]+|\\[^u]|\\u[0-9a-fA-F]{4})*', re.DOTALL)
# The first half of a pair of escapes, as the last of what is whole.
_FIRST_HALF = re.compile(rb"(?<!\\)(?:\\\\)*(\\u[dD][89abAB][0-9a-fA-F]{2})\Z")

# What a token is in a state: its text where it is more of a string and nothing else, or None; its operations; and the
# state behind it.
_Known = tuple["str | None", tuple[_Operation, ...], _State]

# An open object or array: the one around it, whether it is an object, its steps, the key whose value is next, its
# members as a linked list (before, key, kind, content), and how many these are.
_Frame = tuple[Any, bool, Steps, "str | None", Any, int]

# A place: the lexical state, the innermost frame, the steps to the string or number that has begun (None for a key),
# and its text as a linked list (before, piece).
_Place = tuple[_State, "_Frame | None", "Steps | None", Any]


class JsonReader:
    """Reads JSON texts (an :class:`~constrain.grammar.events.EventReader`).

    What it says of other texts means nothing; it may raise ValueError.
    """

    def __init__(self) -> None:
        first = _State(_BETWEEN)
        self._states: dict[_Lexical, _State] = {_BETWEEN: first}
        self._count = 0
        self.start: _Place = (first, None, None, None)

    def _known(self, state: _State, data: bytes, key: int | None) -> _Known:
        """What some bytes are in a state."""
        operations, lexical = _operations(state.lexical, data)
        then = self._states.get(lexical)
        if then is None:
            then = self._states[lexical] = _State(lexical)
        is_text = len(operations) == 1 and operations[0][0] == _TEXT
        known = operations[0][1] if is_text else None, operations, then
        if key is not None:
            if self._count >= _MOST_KNOWN:
                # A list of them, which is made at once: meanwhile another thread may meet a further state.
                for each in list(self._states.values()):
                    each.clear()
                self._states, self._count = {state.lexical: state, lexical: then}, 0
            state[key] = known
            self._count += 1
        return known

    def read(self, place: _Place, data: bytes, key: int | None, events: list[Event]) -> _Place:
        """The place behind some more bytes; what they bring is added to ``events``."""
        state, frame, steps, text = place
        try:
            more, operations, state = state[key]  # type: ignore[index]
        except KeyError:
            more, operations, state = self._known(state, data, key)
        if more is not None:
            # The usual case within a string.
            text = text, more
            if steps is not None:
                events.append(Event(steps, None, "string", more, False, _decoded, text))
            return state, frame, steps, text
        if not operations:
            return state, frame, steps, text
        for code, piece in operations:
            if code >= _TEXT:
                if code & _BEGINS:
                    is_key = code < _NUMBER and frame is not None and frame[1] and frame[3] is None
                    steps = None if is_key else _steps_below(frame)
                if piece:
                    text = text, piece
                if steps is not None:
                    kind = _KINDS[code & -_TEXT]
                    events.append(Event(steps, None, kind, piece, code & _ENDS != 0, _decoded, text))
                    if code & _ENDS:
                        frame, steps, text = _with_member(frame, kind, text), None, None
                elif code & _ENDS:
                    if frame is None:
                        raise ValueError(_NO_JSON)
                    outer, is_object, where, _, members, count = frame
                    frame, text = (outer, is_object, where, _joined(text), members, count), None
            elif code == _CLOSE:
                if frame is None:
                    raise ValueError(_NO_JSON)
                outer, is_object, where, _, members, _ = frame
                kind = "object" if is_object else "array"
                events.append(Event(where, None, kind, "", True, _decoded, members))
                frame = _with_member(outer, kind, members)
            else:
                is_object = code == _OPEN_OBJECT
                where = _steps_below(frame)
                events.append(Event(where, None, "object" if is_object else "array", "", False, _decoded, None))
                frame = frame, is_object, where, None, None, 0
        return state, frame, steps, text

    def finish(self, place: _Place, events: list[Event]) -> None:
        """Add what it brings that the text ends here: a number has no other end."""
        lexical = place[0].lexical
        if isinstance(lexical, int) and lexical != _BETWEEN:
            events.append(Event(place[2], None, _KINDS[lexical], "", True, _decoded, place[3]))


def _steps_below(frame: _Frame | None) -> Steps:
    """The steps to what comes next."""
    if frame is None:
        return ()
    step = frame[3] if frame[1] else frame[5]
    if step is None:
        raise ValueError(_NO_JSON)
    return frame[2], step


def _with_member(frame: _Frame | None, kind: EventKind, content: Any) -> _Frame | None:
    if frame is None:
        return None
    outer, is_object, steps, name, members, count = frame
    return outer, is_object, steps, None, (members, name, kind, content), count + 1


# -- lexical ---------------------------------------------------------------------------------------


def _operations(state: _Lexical, data: bytes) -> tuple[tuple[_Operation, ...], _Lexical]:
    """What some bytes are behind a lexical state, and the state behind them."""
    found: list[_Operation] = []
    at, size, begins = 0, len(data), 0
    while True:
        if isinstance(state, bytes):
            data, at = state + data[at:], 0
            size = len(data)
            match = _IN_STRING.match(data)
            assert match is not None
            stop = match.end()
            if stop < size and data[stop] == 0x22:
                found.append((_TEXT | begins | _ENDS, _decoded_string(data[:stop])))
                state, at, begins = _BETWEEN, stop + 1, 0
                continue
            stop = _certain(data[:stop])
            if stop or begins:
                found.append((_TEXT | begins, _decoded_string(data[:stop])))
            return tuple(found), data[stop:]
        if state != _BETWEEN:
            end = _PLAIN_END.search(data, at)
            stop = size if end is None else end.start()
            ends = 0 if end is None else _ENDS
            if stop > at or ends:
                found.append((state | begins | ends, data[at:stop].decode("ascii")))
            if end is None:
                return tuple(found), state
            state, at, begins = _BETWEEN, stop, 0
        match = _TOKEN.search(data, at)
        if match is None:
            return tuple(found), _BETWEEN
        byte, at = data[match.start()], match.end()
        if byte == 0x22:
            state, begins = b"", _BEGINS
        elif byte in b"{[":
            found.append((_OPEN_OBJECT if byte == 0x7B else _OPEN_ARRAY, ""))
        elif byte in b"}]":
            found.append((_CLOSE, ""))
        else:
            kind = _BOOLEAN if byte in b"tf" else _NULL if byte == 0x6E else _NUMBER
            state, at, begins = kind, match.start(), _BEGINS


def _certain(data: bytes) -> int:
    """How many bytes within a string, of whole escapes, are whole characters whatever follows."""
    match = _FIRST_HALF.search(data)
    if match is not None:
        return match.start(1)
    return whole_characters(data)


# -- values ----------------------------------------------------------------------------------------


def _decoded_string(data: bytes) -> str:
    if b"\\" not in data:
        return data.decode()
    text: str = json.loads(b'"' + data + b'"', strict=False)
    return text


def _joined(text: Any) -> str:
    pieces = []
    while text is not None:
        text, piece = text
        pieces.append(piece)
    return pieces[0] if len(pieces) == 1 else "".join(reversed(pieces))


def _decoded(kind: EventKind, content: Any, is_complete: bool) -> Any:
    """The value of what an event is of, without recursion: texts may be nested deeper than Python's calls."""
    if kind == "string":
        return _joined(content)
    if kind not in ("object", "array"):
        text = _joined(content)
        if is_complete or kind == "number":
            try:
                return json.loads(text, parse_float=read_number)
            except json.JSONDecodeError:
                # It is no number yet.
                return None
        return None
    whole: Any = {} if kind == "object" else []
    todo = [(whole, content)]
    while todo:
        into, members = todo.pop()
        listed = []
        while members is not None:
            members, key, of, inner = members
            listed.append((key, of, inner))
        for key, of, inner in reversed(listed):
            if of in ("object", "array"):
                value: Any = {} if of == "object" else []
                todo.append((value, inner))
            else:
                value = _decoded(of, inner, True)
            if key is None:
                into.append(value)
            else:
                into[key] = value
    return whole
