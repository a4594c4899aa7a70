"""Places that go through a text: byte by byte over what depends on the text, and along a history once more."""

from __future__ import annotations

import numpy as np

from constrain.engine.grammar_tables import GrammarTables
from constrain.engine.history import BEFORE, STEP, STEPS_KEPT, Link, Place
from constrain.engine.parser import configurations as states
from constrain.engine.parser.companions import MARKS_SHIFT, NO_COMPANION, UNREAD, WORD_SHIFT, Int64Array, pack, unpack
from constrain.engine.parser.configurations import LOST
from constrain.engine.reentry import call_out
from constrain.engine.storage.header import CLASSES, OPEN_AT, OPEN_STATE
from constrain.engine.storage.schemas import CLASS_BYTES, STATE_MARKS
from constrain.engine.storage.statuses import STOPPED
from constrain.engine.storage.tables import TablesFullError, TextTooLargeError
from constrain.kernels.jit import without_dispatch
from constrain.kernels.untracking import untrack

BYTES_AT_ONCE = 1024
"""The most bytes for one call of a kernel: what it finds out stays until it is over."""

# A piece that takes more than this part of the limit on memory is followed by a shorter one: where memory ends within a
# piece, all that was found out for it is lost.
_PIECES_IN_LIMIT = 32

# A longer run of forced bytes is returned in pieces of this size.
_FORCED_LIMIT = 1 << 16

# A call that every token takes.
push_token_unchecked = without_dispatch(states.push_token)


class Traveller:
    """A place on the way to somewhere, which is kept while more of the grammar is found out.

    Its links spell the text before it, like those of a cursor.

    Attributes
    ----------
    word : int
        The marks of lexemes that ended in what was read (parser/companions.py).
    """

    def __init__(self, compiled: GrammarTables, state: int, parent: Link | None) -> None:
        self._compiled = compiled
        self.word = 0
        self._state = state
        self._parent = parent
        compiled.cursors.add(self)

    def read_all(self, data: bytes) -> None:
        """As :meth:`read` for any number of bytes, where nobody holds the number of a lexer state."""
        compiled = self._compiled
        here = [place for place in compiled.cursors if place is self or place._parent is self._parent]
        size = BYTES_AT_ONCE
        while data:
            compiled.compact_if_due()
            before = compiled.bytes_of_texts
            try:
                self.read(data[:size])
            except TablesFullError as error:
                if size == 1 or not compiled.can_compact:
                    raise
                # Nothing of the piece has been read.
                compiled.compact()
                if compiled.bytes_of_texts > compiled.limit_bytes // 2:
                    # A few bytes more at best, each of them at the price of another compaction.
                    if all(place in here or place._state == LOST for place in compiled.cursors):
                        raise TextTooLargeError(*error.args) from None
                    raise
                size = 1 + size // 16
                continue
            data = data[size:]
            if compiled.bytes_of_texts - before > compiled.limit_bytes // _PIECES_IN_LIMIT:
                size = 1 + size // 2
            else:
                size = min(BYTES_AT_ONCE, 2 * size)

    def read(self, data: bytes) -> None:
        """Go on with some bytes, piece by piece; to state 0 if they cannot follow.  The caller holds the lock."""
        compiled = self._compiled
        while data and self._state != 0:
            piece = data[:BYTES_AT_ONCE]
            state = compiled.run_at(self, states.push_bytes, np.frombuffer(piece, np.uint8))
            if state == STOPPED:
                state, count, word = _stopped_at(compiled)
                piece = data[:count]
                state = _close(compiled, state, (compiled.generation, self._state, piece, self._parent))
            else:
                state, word = unpack(state)
            self.word |= word
            self._parent = (compiled.generation, self._state, piece, self._parent)
            self._state = state
            data = data[len(piece) :]


def place_behind(compiled: GrammarTables, place: Place, data: bytes) -> Traveller:
    """The place behind some bytes, in state 0 if they cannot follow.  The caller holds the lock."""
    there = Traveller(compiled, place._state, place._parent)
    there.read(data)
    return there


def _stopped_at(compiled: GrammarTables) -> tuple[int, int, int]:
    """The open state at which the last kernel stopped, how many bytes it had read, and its marks as a word."""
    state = int(compiled.ctx[OPEN_STATE])
    marks = int(compiled._tables.array(STATE_MARKS)[state])
    return state, int(compiled.ctx[OPEN_AT]), marks << MARKS_SHIFT - WORD_SHIFT


def _close(compiled: GrammarTables, state: int, link: Link) -> int:
    """The state that an open state is after a text, which ends with the step of ``link``."""
    assert compiled.unfolded is not None
    place = Traveller(compiled, state, link)
    dots = np.empty(64, np.int32)
    count = states.open_dots(compiled.ctx, state, dots)
    if count > len(dots):
        dots = np.empty(count, np.int32)
        states.open_dots(compiled.ctx, state, dots)
    wanted = sorted(set(dots[:count].tolist()))
    *pairs, nothing_left = call_out(
        compiled, compiled.unfolded.close, wanted, lambda length: last_bytes(compiled, place._parent, length)
    )
    closed = compiled.run_at(place, states.close_state, *pairs)
    if closed == 0 and nothing_left is not None:
        raise nothing_left
    return closed


def bytes_of(compiled: GrammarTables, link: Link) -> bytes:
    """The bytes of a link's step."""
    step = link[STEP]
    return step if isinstance(step, bytes) else compiled.vocabulary.tokens[step]


def last_bytes(compiled: GrammarTables, link: Link | None, count: int) -> bytes:
    """The last ``count`` bytes of a text, or some more; all of it if it is shorter."""
    pieces = []
    while link is not None and count > 0:
        piece = bytes_of(compiled, link)
        pieces.append(piece)
        count -= len(piece)
        link = link[BEFORE]
    return b"".join(reversed(pieces))


def read_again(compiled: GrammarTables, link: Link | None) -> Traveller:
    """The place that a link leads to, by taking all steps again.

    The last links on the way there get states, so that going back further does not mean taking all
    steps each time.  The caller holds the lock.
    """
    way = []
    while link is not None:
        way.append(link)
        link = link[BEFORE]
    place = Traveller(compiled, compiled.start_state, None)
    while way:
        compiled.compact_if_due()
        link = way.pop()
        behind = Traveller(compiled, place._state, place._parent)
        if isinstance(link[STEP], bytes):
            place.read_all(link[STEP])
        else:
            place._state, _ = unpack(push_token(compiled, place, int(link[STEP])))
        last = behind._parent if len(way) < STEPS_KEPT - 1 else link[BEFORE]
        place._parent = (compiled.generation, behind._state, link[STEP], last)
        untrack(place._parent)
        settle = getattr(link[STEP], "settle", None)
        if settle is not None:
            place._state = settle(compiled, place)
    return place


def push_token(compiled: GrammarTables, place: Place, token: int, companion: Int64Array = NO_COMPANION) -> int:
    """What the kernel of that name gives, grown as it asks, and without stops; 0 if the token is not allowed.

    The caller holds the lock.
    """
    result: int = push_token_unchecked(compiled.ctx, place._state, token, companion)
    if result >= 0:
        return result
    result = compiled.run_at(place, states.push_token, token, companion)
    if result != STOPPED:
        return result
    there = place_behind(compiled, place, compiled.vocabulary.tokens[token])
    unread = 0 if companion is NO_COMPANION else UNREAD
    return there._state and pack(there._state, there.word | unread)


def push_bytes(compiled: GrammarTables, place: Place, data: bytes) -> int:
    """The same for some bytes, without a companion."""
    if len(data) <= BYTES_AT_ONCE:
        result = compiled.run_at(place, states.push_bytes, np.frombuffer(data, np.uint8))
        if result != STOPPED:
            return result
    traveller = Traveller(compiled, place._state, place._parent)
    traveller.read_all(data)
    return pack(traveller._state, traveller.word)


def forced_bytes(compiled: GrammarTables, place: Place) -> bytes:
    """The bytes that every continuation of a place's text begins with.  The caller holds the lock."""
    out = np.empty(_FORCED_LIMIT, np.uint8)
    count = compiled.run_at(place, states.forced, out)
    begin = 0
    while compiled.ctx[OPEN_AT] and count < _FORCED_LIMIT:
        place, begin = place_behind(compiled, place, out[begin:count].tobytes()), count
        count += compiled.run_at(place, states.forced, out[begin:])
    return out[:count].tobytes()


def can_go_on(compiled: GrammarTables, place: Place) -> bool:
    """Whether a place's text can go on.  The caller holds the lock."""
    first_of_class = compiled._tables.array(CLASS_BYTES)[: int(compiled.ctx[CLASSES])].tolist()
    return any(compiled.run_at(place, states.push_byte, byte) for byte in first_of_class)
