"""Completions in which no key comes again.

The completion of a state (completions.py) knows the rules only, so an object that needs three keys gets the shortest
one three times, and a key that was there before is just ended.  There the key goes on for one character more.
"""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Final

from constrain.engine.history import Place, Traveller
from constrain.engine.known_completions import completion, fewest_tokens, tokens_from
from constrain.engine.node_costs import NEVER
from constrain.engine.statuses import REPEATED_KEY

if TYPE_CHECKING:
    from constrain.engine.compiled import CompiledGrammar
    from constrain.engine.distinct_keys import ObjectKeys

# With what a key may go on, what is likely to be possible first.
_LIKELY = (string.ascii_lowercase + string.digits + string.ascii_uppercase + "_-.").encode()
_CHARACTERS: Final = bytes(dict.fromkeys(_LIKELY + bytes(range(256))))

_MOST_CHANGES = 4096


def without_repeated_keys(compiled: CompiledGrammar, place: Place, keys: ObjectKeys) -> list[int] | None:
    """The tokens of a completion in which no key comes again; None if the known one is such, or none is found.

    The keys are those at the place.  The caller holds the lock of the compiled grammar.
    """
    done = b""
    for _ in range(_MOST_CHANGES):
        rest = _completion(compiled, place)
        if rest is None:
            return None
        ahead = keys.copy()
        ahead.read(rest)
        if ahead.status != REPEATED_KEY:
            return fewest_tokens(compiled, done + rest) if done else None
        end = 0
        while True:
            behind = keys.copy()
            behind.read(rest[end : end + 1])
            if behind.status == REPEATED_KEY:
                break
            keys = behind
            end += 1
        place = _after(compiled, place, rest[:end])
        further = _further(compiled, place, keys)
        if further is None:
            return None
        place = _after(compiled, place, further)
        keys = keys.copy()
        keys.read(further)
        done += rest[:end] + further
    return None


def _completion(compiled: CompiledGrammar, place: Place) -> bytes | None:
    """The known completion of a place."""
    if tokens_from(compiled, place) == NEVER:
        return None
    tokens = compiled.vocabulary.tokens
    return b"".join([tokens[token] for token in completion(compiled, place)])


def _after(compiled: CompiledGrammar, place: Place, data: bytes) -> Traveller:
    """The place after some bytes."""
    there = Traveller(compiled, place._state, place._parent)
    there.read(data)
    return there


def _further(compiled: CompiledGrammar, place: Place, keys: ObjectKeys) -> bytes | None:
    """A byte with which the key under way goes on, if possible to one that can end there."""
    found = None
    for byte in _CHARACTERS:
        further = bytes((byte,))
        there = _after(compiled, place, further)
        behind = keys.copy()
        behind.read(further)
        if there._state == 0 or not behind.is_in_key():
            continue
        behind.read(b'"')
        if behind.status != REPEATED_KEY and _after(compiled, there, b'"')._state != 0:
            return further
        found = found or further
    return found
