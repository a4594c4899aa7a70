"""Completions in which no key comes again.

The completion of a state (completions.py) knows the rules only, so an object that needs three keys gets the shortest
one three times, and a key that was there before is just ended.  Such a key is replaced by the cheapest one that the
object does not have, and what follows it by the completion from there.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import string
from collections.abc import Collection
from heapq import heappop, heappush
from itertools import count
from typing import Final, NamedTuple

import numpy as np

from constrain.engine.conditions.budget.completions import reset_costs
from constrain.engine.conditions.budget.expression_costs import FAR, NEVER
from constrain.engine.conditions.budget.known_completions import completion, fewest_tokens, tokens_from
from constrain.engine.conditions.unique_keys.object_keys import ObjectKeys
from constrain.engine.grammar_tables import GrammarTables
from constrain.engine.history import Place
from constrain.engine.storage.header import CLASSES, CTX, OPEN
from constrain.engine.storage.jit import njit_entry
from constrain.engine.storage.links import F_STEP, F_TOKENS, far_call
from constrain.engine.storage.schemas import BYTE_CLASSES, BYTE_COSTS
from constrain.engine.storage.statuses import REPEATED_KEY
from constrain.engine.traveller import Traveller, place_behind
from constrain.errors import ConstrainError, LimitError
from constrain.kernels.language import int64

# With what a key may go on, what is likely to be possible first.
_LIKELY = (string.ascii_lowercase + string.digits + string.ascii_uppercase + "_-.").encode()
_CHARACTERS: Final = bytes(dict.fromkeys(_LIKELY + bytes(range(256))))

_QUOTE, _BACKSLASH = b'"\\'

_MOST_KEYS = 4096

NO_WAY = "no way to complete the text without a key that comes again was found"


def rest_with_keys(compiled: GrammarTables, place: Place, keys: ObjectKeys) -> tuple[int, list[int] | None]:
    """How many tokens complete a text so that no key comes again, and which, if not the known ones; or NEVER."""
    if keys.status == REPEATED_KEY:
        return NEVER, None
    try:
        found = without_repeated_keys(compiled, place, keys)
    except LimitError:
        raise
    except ConstrainError:
        return NEVER, None
    return (tokens_from(compiled, place) if found is None else len(found)), found


def without_repeated_keys(compiled: GrammarTables, place: Place, keys: ObjectKeys) -> list[int] | None:
    """The tokens of a completion in which no key comes again; None if the known one is such, or there is none.

    The keys are those at the place.  The caller holds the lock of the compiled grammar.

    Raises
    ------
    ConstrainError
        If none is found.
    """
    done = b""
    for _ in range(_MOST_KEYS):
        if tokens_from(compiled, place) == NEVER:
            if done:
                break
            return None
        spelled = completion(compiled, place)
        rest = b"".join([compiled.vocabulary.tokens[token] for token in spelled])
        begin = _repeated_key(keys, rest)
        if begin is None:
            tokens = fewest_tokens(compiled, done + rest) if done else _if_longer(compiled, place, spelled)
            if done and tokens is None:
                break
            return tokens
        place, keys = place_behind(compiled, place, rest[:begin]), _with(keys, rest[:begin])
        key = _new_key(compiled, place, keys, compiled.kept(_KeySteps))
        if key is None:
            break
        place, keys = place_behind(compiled, place, key), _with(keys, key)
        done += rest[:begin] + key
    raise ConstrainError(NO_WAY)


def _if_longer(compiled: GrammarTables, place: Place, tokens: list[int]) -> list[int] | None:
    """The known completion of a place, if it takes another number of tokens than was said: more, or one far less.

    Where rules leave keys out that were written, they say what the cheapest key costs, as often as one is needed.
    Where the text decides what is to come, they say that it is far.
    """
    return None if len(tokens) <= tokens_from(compiled, place) < FAR else tokens


def _repeated_key(keys: ObjectKeys, data: bytes) -> int | None:
    """Where the first key begins in some bytes that was there before; None if there is none."""
    # Mostly there is none, and all can be read at once.
    if _with(keys, data).status != REPEATED_KEY:
        return None
    ahead = keys.copy()
    begin = 0
    for place in range(len(data)):
        was_in_key = ahead.is_in_key()
        ahead.read(data[place : place + 1])
        if ahead.status == REPEATED_KEY:
            return begin
        if not was_in_key:
            begin = place + 1
    return None


def _with(keys: ObjectKeys, data: bytes) -> ObjectKeys:
    """The keys after some bytes."""
    behind = keys.copy()
    behind.read(data)
    return behind


def _new_key(compiled: GrammarTables, place: Place, keys: ObjectKeys, steps: _KeySteps) -> bytes | None:
    """How the key under way goes on to one that is not there: up to its end, or to where no other one begins so.

    The one is found that costs least with the completion behind it, as long as no state gets another number.
    """
    order = count()
    start: _At = compiled.generation, place._state
    # The cost, and how it is put together; whether no key that is there begins so; the bytes, and where they lead to;
    # and the key as far as it is read, None where its escapes have to be read first.
    todo: list[tuple[int, int, int, bool, bytes, _At, _Key | None]] = [(0, next(order), 0, False, b"", start, None)]
    seen: set[tuple[int, int, bytes]] = set()
    # The cost of a new key: what is not cheaper, and comes later, need not be looked at.
    best = 2 * NEVER
    while todo:
        _, _, before, is_new, text, at, key = heappop(todo)
        if is_new:
            return text
        if key is None:
            key = _key_of(_with(keys, text))
        if not text:
            here = place
        elif at[0] != compiled.generation:
            here = place_behind(compiled, place, text)
        else:
            here = Traveller(compiled, at[1], (at[0], place._state, text, place._parent))
        been = compiled.generation, here._state, key.read
        if been in seen:
            continue
        seen.add(been)
        ways = steps.of(here)
        if before + ways.least >= best:
            continue
        known: dict[int, list[bytes]] = {}
        for rest in key.rests or ():
            if rest:
                known.setdefault(rest[0], []).append(rest[1:])
        for byte, price, behind, there in ways.all if key.rests is None else ways.first(known):
            then: _Key | None = None
            is_free = False
            if key.rests is not None and byte != _BACKSLASH:
                if byte == _QUOTE and b"" in key.rests:
                    continue
                is_free = byte == _QUOTE or byte not in known
                if not is_free:
                    then = _Key(key.read + bytes((byte,)), known[byte])
            cost = before + price
            if cost + behind < best:
                heappush(todo, (cost + behind, next(order), cost, is_free, text + bytes((byte,)), there, then))
                best = cost + behind if is_free else best
    return None


class _Key(NamedTuple):
    """A key that is under way."""

    read: bytes
    """As in :meth:`ObjectKeys.key_under_way`."""
    rests: list[bytes] | None
    """How it would go on to be one that is there; None within an escape."""


def _key_of(keys: ObjectKeys) -> _Key:
    return _Key(keys.key_under_way(), None if keys.is_in_escape() else keys.may_be_repeated())


@njit_entry(int64(CTX, int64, int64[::1], int64[::1]))
def find_next_states(ctx, state, states, counts):
    """Write for each class of bytes which state it leads to, and how many tokens complete the text there.

    To ``states`` (int64[n]) 0 where it may not come, and OPEN where the text decides; to ``counts`` (int64[n]) what is
    known of the others.  Returns 0, FAIL, LIMIT or UNMADE.
    """
    reset_costs(ctx)
    for byte_class in range(ctx[CLASSES]):
        then = far_call(ctx, F_STEP, state, int64(byte_class))
        if then < 0:
            return then
        states[byte_class] = min(then, int64(OPEN))
        if 0 < then < OPEN:
            count = far_call(ctx, F_TOKENS, then, 0)
            if count < 0:
                return count
            counts[byte_class] = count
    return int64(0)


_At = tuple[int, int]
"""Where a place was in a generation: the generation, and its state.

Whoever has many does not keep places, each of which takes time whenever states get other numbers.
"""

_MOST_STATES = 256
"""Of so many states :class:`_KeySteps` keeps what follows, some 30 KB each."""


_Step = tuple[int, int, int, _At]
"""A byte, its cost, the cost behind it, and where it leads to."""


class _Steps:
    """The bytes with which a key may go on in a state."""

    def __init__(self, steps: list[_Step]) -> None:
        self.all = steps
        self.least = min((price + behind for _, price, behind, _ in steps), default=NEVER)
        self._places = {step[0]: place for place, step in enumerate(steps)}
        # By byte: the places of all that lead to the same state.  Quote and backslash are by themselves.
        self._alike: dict[int, list[int]] = {}
        groups: dict[tuple[int, int], list[int]] = {}
        for place, (byte, _, _, there) in enumerate(steps):
            alone = byte if byte in (_QUOTE, _BACKSLASH) else -1
            self._alike[byte] = groups.setdefault((there[1], alone), [])
            self._alike[byte].append(place)
        self._firsts = [group[0] for group in groups.values()]

    def first(self, known: Collection[int]) -> list[_Step]:
        """Quote, backslash, the ``known`` bytes, and of the others the first of those that lead to the same state."""
        places = set(self._firsts)
        for byte in known:
            alike = self._alike.get(byte)
            if alike is not None:
                places.add(self._places[byte])
                places.update(next(([place] for place in alike if self.all[place][0] not in known), ()))
        return [self.all[place] for place in sorted(places)]


class _KeySteps:
    """The steps in each state.

    It is kept with the compiled grammar, since most texts that are finished need the same.
    """

    def __init__(self, compiled: GrammarTables) -> None:
        self._compiled = compiled
        self._class_of: list[int] = compiled._tables.array(BYTE_CLASSES).tolist()
        costs: list[int] = compiled._tables.get(BYTE_COSTS)["cost"].tolist()
        self._bytes = [(byte, costs[byte]) for byte in sorted(_CHARACTERS, key=costs.__getitem__)]
        self._generation = compiled.generation
        self._known: dict[int, _Steps] = {}

    def of(self, place: Place) -> _Steps:
        """Those at a place."""
        compiled = self._compiled
        if compiled.generation != self._generation or len(self._known) > _MOST_STATES:
            self._generation, self._known = compiled.generation, {}
        known = self._known.get(place._state)
        if known is None:
            states, counts = np.zeros(256, np.int64), np.zeros(256, np.int64)
            compiled.run_at(place, find_next_states, states, counts)
            generation = compiled.generation
            at = [(count, (generation, state)) for state, count in zip(states.tolist(), counts.tolist(), strict=True)]
            found = []
            for byte, cost in self._bytes:
                which = self._class_of[byte]
                if at[which][1][1] == OPEN:
                    there = place_behind(compiled, place, bytes((byte,)))
                    at[which] = tokens_from(compiled, there), (compiled.generation, there._state)
                if at[which][1][1]:
                    found.append((byte, cost, *at[which]))
            known = _Steps(found)
            if self._generation == compiled.generation:
                self._known[place._state] = known
        return known
