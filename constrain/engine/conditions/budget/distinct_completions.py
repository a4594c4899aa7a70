"""Completions with keys that differ (completions_with_keys.py), each of which is looked for once."""

from __future__ import annotations

from constrain.engine.conditions.budget.completions_with_keys import NO_WAY, rest_with_keys
from constrain.engine.conditions.budget.expression_costs import NEVER
from constrain.engine.conditions.budget.known_completions import place_after, tokens_from
from constrain.engine.conditions.protocol import Walk
from constrain.engine.conditions.unique_keys.memory import MODE, OUTSIDE
from constrain.engine.conditions.unique_keys.object_keys import ObjectKeys
from constrain.engine.conditions.unique_keys.unique_keys import UniqueKeys
from constrain.engine.grammar_tables import GrammarTables
from constrain.engine.history import Place
from constrain.engine.storage.statuses import REPEATED_KEY
from constrain.errors import ConstrainError
from constrain.grammar.ir import BY_TEXT

_OUTSIDE_STRINGS = b'"{}[],:'
"""Outside of strings, bytes without which a token leaves the keys as they are."""

_MOST_BYTES = 16 << 20
"""All is forgotten when it takes about so much memory."""

Completion = tuple[int, list[int] | None]
"""How many tokens finish a text, and which, if they are not those of the rules alone; NEVER where no way is found."""


class DistinctCompletions:
    """Those of a compiled grammar, by what they depend on: the state and the keys of the open objects.

    Where more of the text may decide what is to come, such as the values of unique items, what is known is tried
    before it is taken.

    The lock of the compiled grammar is held by whoever calls a method.
    """

    def __init__(self, compiled: GrammarTables) -> None:
        self._generation = compiled.generation
        # By state and keys.
        self._at: dict[tuple[int, bytes], Completion] = {}
        # By state and keys before a token (and the text, if it decides), and the token.
        self._behind: dict[tuple[int, bytes, bytes], dict[int, Completion]] = {}
        self._size = 0

    def at(self, cursor: Walk, condition: UniqueKeys) -> list[int] | None:
        """What finishes the text at a cursor; None if it is the completion by the rules alone.

        Raises
        ------
        ConstrainError
            If no way is found.
        """
        compiled, keys = cursor.compiled, condition.at(cursor)
        self._drop_stale(compiled)
        length, found = self._of(compiled, cursor, keys, keys.signature())
        if length == NEVER:
            raise ConstrainError(NO_WAY)
        return found

    def behind(self, cursor: Walk, condition: UniqueKeys, tokens: list[int]) -> dict[int, Completion]:
        """What finishes the text behind each of some tokens, which the grammar allows."""
        compiled, keys = cursor.compiled, condition.at(cursor)
        self._drop_stale(compiled)
        here = keys.signature()
        text = cursor.text(cursor._steps) if _text_decides(compiled) else b""
        if (cursor._state, here, text) not in self._behind:
            self._size += len(here) + len(text)
        known = self._behind.setdefault((cursor._state, here, text), {})
        generation = compiled.generation
        for token in tokens:
            if token not in known:
                found = self._behind_token(cursor, condition, keys, here, token)
                if generation != compiled.generation:
                    # It goes on with what has been found, and others will not find it.
                    generation, known = compiled.generation, dict(known)
                known[token] = found
                self._size += 128
        return {token: known[token] for token in tokens}

    def _behind_token(
        self, cursor: Walk, condition: UniqueKeys, keys: ObjectKeys, here: bytes, token: int
    ) -> Completion:
        """``here`` is the signature of the keys at the cursor."""
        compiled = cursor.compiled
        data = compiled.vocabulary.tokens[token]
        there = place_after(compiled, cursor, [token])
        if there._state == 0:
            return NEVER, None
        if keys.memory[MODE] != OUTSIDE or len(data.translate(None, _OUTSIDE_STRINGS)) < len(data):
            keys = condition.after(cursor, data)
            if keys.status == REPEATED_KEY:
                return NEVER, None
            here = keys.signature()
        return self._of(compiled, there, keys, here)

    def _of(self, compiled: GrammarTables, place: Place, keys: ObjectKeys, signature: bytes) -> Completion:
        """The completion of a place; ``signature`` is that of the keys there."""
        if not compiled.ir.needs_distinct_keys and not keys.may_be_repeated():
            # The rules begin no key that could come again.
            return tokens_from(compiled, place), None
        generation = compiled.generation
        known = self._at.get((place._state, signature)) if generation == self._generation else None
        if known is not None and (not _text_decides(compiled) or _completes(compiled, place, known[1])):
            return known
        state = place._state
        result = rest_with_keys(compiled, place, keys)
        if generation == compiled.generation == self._generation:
            self._at[state, signature] = result
            self._size += 256 + len(signature)
        return result

    def _drop_stale(self, compiled: GrammarTables) -> None:
        """Forget what does not hold any more, and everything if it is too much."""
        if self._generation != compiled.generation or self._size > _MOST_BYTES:
            self._at, self._behind, self._size = {}, {}, 0
            self._generation = compiled.generation


def _text_decides(compiled: GrammarTables) -> bool:
    """Whether more of a text than its keys may decide how it goes on."""
    return compiled.unfolded is not None and compiled.unfolded.unfolding.decided_by == BY_TEXT


def _completes(compiled: GrammarTables, place: Place, tokens: list[int] | None) -> bool:
    """Whether what finished another text with the same state and keys surely finishes this one."""
    if tokens is None:
        return True  # what the rules say, they say of all such texts
    there = place_after(compiled, place, tokens)
    return there._state != 0 and compiled.accepts(there)
