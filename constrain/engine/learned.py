"""What a compiled grammar has learned, to be taken over by another one: the ways to its states, and their masks.

Kernels trust their tables, so tables that come from elsewhere would have to be proved right, number by number.  Nothing
of that kind is taken over.  What is written is what can be said about the grammar from outside:

* *ways*: bytes that lead from a known place to another.  They are read by the kernels of the one that takes them over,
  which makes its own states, Earley sets and automata of them, as for any text;
* *masks*: which tokens are allowed at the end of a way.  A mask is a set of tokens, and every one must be a token of
  the vocabulary that text may have.

So no bytes can bring a kernel to read or write beyond a table.  Nor do masks leave the grammar that they come with: the
vocabulary's shared masks are not made of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from constrain import limits
from constrain.engine.automata.lexer_states import NO_DENSE
from constrain.engine.grammar_tables import GrammarTables
from constrain.engine.masks.lexer_masks import FIRST_SHARED
from constrain.engine.masks.state_masks import write_mask
from constrain.engine.parser import configurations as states
from constrain.engine.parser.companions import STATE_BITS
from constrain.engine.parser.configurations import IN_ROOTS, NO_MASK
from constrain.engine.storage import schemas as t
from constrain.engine.storage.header import CLASSES
from constrain.engine.storage.statuses import STOPPED
from constrain.engine.storage.tables import NO_TABLES, TablesFullError
from constrain.engine.traveller import BYTES_AT_ONCE, Traveller
from constrain.engine.vocabulary.vocabulary import Vocabulary
from constrain.errors import ConstrainError
from constrain.kernels.jit import without_dispatch

# A call for each way.
push_bytes_unchecked = without_dispatch(states.push_bytes)

Array = np.ndarray[Any, np.dtype[Any]]
Learned = dict[str, Array]

MOST_STATES = 4096
"""The ways to so many states are kept: those with a mask that the fewest bytes lead to."""

MOST_MASK_BYTES = 16 << 20
"""Masks may take so much."""

_NAMES = ("ways", "from", "bytes", "dense_of", "ends", "tokens", "dense")


def note_learned(compiled: GrammarTables) -> Learned:
    """What a compiled grammar has learned.  The caller holds the lock.

    Returns
    -------
    dict of arrays
        ``from`` (int32[n]): for each place the one before it, by number; 0 is the beginning of a text, and place ``i``
        of the array has the number ``i + 1``.  ``ways`` (int32[n]), ``bytes`` (uint8[m]): where the bytes of each way
        end, and these.  ``ends`` (int32[n + 1]), ``tokens`` (int32[k]): where the tokens of each place, the beginning
        among them, end, and these.  ``dense_of`` (int32[n + 1]), ``dense`` (int32[words * d]): for each place which
        of the dense masks is added to them, or -1.
    """
    if compiled.ctx is NO_TABLES:
        return _arrays([], [], [], [], [])
    ways = _shortest_ways(compiled)
    records = compiled._tables.array(t.STATE_MASKS)
    is_known = (records["dense"] != NO_MASK) & (records["token_count"] >= 0)
    masks = _Masks(compiled)
    masks.add(compiled.start_state)
    numbers = {compiled.start_state: 0}
    origins: list[int] = []
    steps: list[bytes] = []
    for state in ways:
        if len(numbers) >= MOST_STATES or masks.nbytes > MOST_MASK_BYTES:
            break
        if not is_known[state] or state in numbers:
            continue
        way, before = b"", state
        while before not in numbers:
            before, piece = ways[before]
            way = piece + way
        if len(way) <= BYTES_AT_ONCE:
            origins.append(numbers[before])
            steps.append(way)
            numbers[state] = len(numbers)
            masks.add(state)
    return _arrays(origins, steps, masks.dense_of, masks.lists, masks.dense)


def _arrays(
    origins: list[int], steps: list[bytes], dense_of: list[int], lists: list[Array], dense: list[bytes]
) -> Learned:
    return {
        "from": np.array(origins, np.int32),
        "ways": np.cumsum([len(step) for step in steps], dtype=np.int32),
        "bytes": np.frombuffer(b"".join(steps), np.uint8),
        "dense_of": np.array(dense_of, np.int32),
        "ends": np.cumsum([len(each) for each in lists], dtype=np.int32),
        "tokens": np.concatenate([np.empty(0, np.int32), *lists]),
        "dense": np.frombuffer(b"".join(dense), np.int32),
    }


def _shortest_ways(compiled: GrammarTables) -> dict[int, tuple[int, bytes]]:
    """For each state that a known way leads to, the state before it and the bytes between, in order of that search."""
    tables = compiled._tables
    classes = int(compiled.ctx[CLASSES])
    first_of_class = [bytes((byte,)) for byte in tables.array(t.CLASS_BYTES)[:classes].tolist()]
    count = tables.used(t.STATE_HASHES)
    after = tables.array(t.TRANSITIONS)[: count * classes].reshape(count, classes)
    found: dict[int, tuple[int, bytes]] = {compiled.start_state: (0, b"")}
    level = [compiled.start_state]
    while level:
        following = []
        for state in level:
            row = after[state]
            for byte_class in np.flatnonzero(row > 0).tolist():
                target = int(row[byte_class])
                if target not in found:
                    found[target] = state, first_of_class[byte_class]
                    following.append(target)
        level = following
    return found


class _Masks:
    """Masks of states as tokens beside dense masks, each of which is there once."""

    def __init__(self, compiled: GrammarTables) -> None:
        self._compiled = compiled
        self._words = compiled._words
        self._places: dict[bytes, int] = {}
        self._row = np.zeros((1, self._words), np.int32)
        self._text = compiled.vocabulary.text_bits
        self.dense: list[bytes] = []
        self.dense_of: list[int] = []
        self.lists: list[Array] = []
        self.nbytes = 0

    def add(self, state: int) -> None:
        """Note the mask of a state; that of no token for the beginning of a text if it has none."""
        tables, words = self._compiled._tables, self._words
        mask = tables.array(t.STATE_MASKS)[state]
        dense, count = int(mask["dense"]), int(mask["token_count"])
        tokens = np.empty(0, np.int32)
        data = b""
        if dense == NO_MASK or count < 0:
            self.dense_of.append(-2)
            self.lists.append(tokens)
            return
        if dense == IN_ROOTS:
            write_mask(self._compiled.ctx, state, self._row, 0)
            row = self._row[0] & self._text
            bits = np.unpackbits(row.view(np.uint8), bitorder="little")
            if np.count_nonzero(bits) <= words // 4:
                tokens = np.flatnonzero(bits).astype(np.int32)
            else:
                data = row.tobytes()
        else:
            lists = tables.array(t.TOKEN_LISTS)
            pieces = [
                lists[int(mask[begin]) :][: int(mask[length])]
                for begin, length in (("tokens", "token_count"), ("inside", "inside_count"))
            ]
            tokens = np.concatenate(pieces)
            if dense >= 0:
                data = tables.array(t.DENSE_MASKS)[dense : dense + words].tobytes()
            elif dense != NO_DENSE:
                shared = self._compiled.vocabulary.shared.tables[t.SHARED_DENSE]
                data = shared[(FIRST_SHARED - dense) * words :][:words].tobytes()
        if data and data not in self._places:
            self._places[data] = len(self.dense)
            self.dense.append(data)
            self.nbytes += len(data)
        self.nbytes += tokens.nbytes
        self.dense_of.append(self._places[data] if data else -1)
        self.lists.append(tokens)


def _damaged(reason: str) -> ConstrainError:
    return ConstrainError(f"these bytes are not what a compiled grammar has learned: {reason}")


def _check(learned: Learned, vocabulary: Vocabulary, words: int) -> None:
    """Refuse all that cannot be what a grammar for this vocabulary has learned.

    Raises
    ------
    ConstrainError
    """
    if set(learned) != set(_NAMES) or any(
        array.dtype != (np.uint8 if name == "bytes" else np.int32) for name, array in learned.items()
    ):
        raise _damaged("other arrays")
    count = len(learned["from"])
    dense_of, dense, tokens = learned["dense_of"], learned["dense"], learned["tokens"]
    if len(learned["ways"]) != count or len(learned["ends"]) != len(dense_of) or len(dense_of) not in (0, count + 1):
        raise _damaged("arrays of different lengths")
    if count and not len(dense_of):
        raise _damaged("no masks")
    for ends, pool in ((learned["ways"], learned["bytes"]), (learned["ends"], tokens)):
        if (np.diff(ends, prepend=0) < 0).any() or (int(ends[-1]) if len(ends) else 0) != len(pool):
            raise _damaged("parts beyond their array")
    if (learned["from"] < 0).any() or (learned["from"] > np.arange(count)).any():
        raise _damaged("a way from a place that is not known before it")
    if len(dense) % words or (dense_of < -2).any() or (dense_of >= len(dense) // words).any():
        raise _damaged("a mask beyond the array of masks")
    text = vocabulary.text_bits
    if (tokens < 0).any() or (tokens >= vocabulary.size).any():
        raise _damaged("a token that the vocabulary does not have")
    if not (text[tokens >> 5] >> (tokens & 31) & 1).all() or (dense.reshape(-1, words) & ~text).any():
        raise _damaged("a token in a mask that is no text")


def take_over(compiled: GrammarTables, learned: Learned) -> None:
    """Let a grammar that was just compiled know what another one has learned.  The caller holds the lock.

    It stops where the grammar's limits of memory are reached.

    Raises
    ------
    ConstrainError
        If the arrays do not fit together, or are not of a grammar like this one.
    LimitError
        If time runs out.
    """
    words = compiled._words
    _check(learned, compiled.vocabulary, words)
    if not len(learned["dense_of"]) or learned["dense"].nbytes + learned["tokens"].nbytes > compiled.mask_limit_bytes:
        return
    try:
        _put_masks(compiled, learned, _read_ways(compiled, learned))
    except TablesFullError:
        # Nothing depends on it.
        compiled.begin()


def _read_ways(compiled: GrammarTables, learned: Learned) -> list[int]:
    """The states that the ways lead to."""
    found = [compiled.start_state]
    # As soon as a kernel asks for something, states are kept as places, since they may be given other numbers then.
    places: list[Traveller] = []
    data, ctx = learned["bytes"], compiled.ctx
    begin = 0
    for origin, end in zip(learned["from"].tolist(), learned["ways"].tolist(), strict=True):
        if not 0 < end - begin <= BYTES_AT_ONCE:
            raise _damaged("a way of no bytes, or too many")
        result = -1 if places else push_bytes_unchecked(ctx, found[origin], data[begin:end])
        if result < 0:
            limits.check()
            places = places or [Traveller(compiled, state, None) for state in found]
            result = compiled.run_at(places[origin], states.push_bytes, data[begin:end])
        if result == STOPPED or result <= 0:
            raise _damaged("a way that leads nowhere")
        if places:
            places.append(Traveller(compiled, result & STATE_BITS, None))
        else:
            found.append(result & STATE_BITS)
        begin = end
    return [place._state for place in places] if places else found


def _put_masks(compiled: GrammarTables, learned: Learned, numbers: list[int]) -> None:
    tables, words = compiled._tables, compiled._words
    first_dense, first_token = tables.used(t.DENSE_MASKS), tables.used(t.TOKEN_LISTS)
    tables.append(t.DENSE_MASKS, learned["dense"])
    tables.append(t.TOKEN_LISTS, learned["tokens"])
    known = np.flatnonzero(learned["dense_of"] > -2)
    at = np.array(numbers, np.int64)[known]
    dense_of, ends = learned["dense_of"][known], learned["ends"]
    counts = np.diff(ends, prepend=0)
    records = tables.array(t.STATE_MASKS)
    records["dense"][at] = np.where(dense_of >= 0, first_dense + dense_of * words, NO_DENSE)
    records["tokens"][at] = first_token + (ends - counts)[known]
    records["token_count"][at] = counts[known]
    records["inside_count"][at] = 0
