"""What finishing a text takes where keys that have to differ may cost much more than the rules say.

The rules know the cheapest key of an object.  Where there is always another one much like it, as among all strings,
a few tokens more are enough, and the budget keeps them back (budget.py).  Where keys are scarce
(:attr:`constrain.grammar.ir.GrammarIR.has_scarce_keys`) the next one may be of any length, and so may its value: behind
``{"en": 1,`` of

    {"propertyNames": {"enum": ["en", "a_very_long_name"]}}

a text cannot be finished as cheaply as behind ``{``.  So each token whose completion by the rules is not *surely* short
enough is tried: the text behind it is finished with keys that differ (completions_with_keys.py).  Some things keep
that to few tokens.

* What may surely be afforded: the difference is at most what the dearest key and its value cost.
* What a token leads to is known by the state and the keys there; most tokens lead to few.
* Within a string that is a value, the tokens without a quote change nothing about what follows the string.  They need
  as much more than by the rules as is needed where the mask is, whose completion is known.
* Within a key, behind the tokens without a quote the keys of the completion that is known where the mask is are left to
  follow, or one for the one that it is: they need a key and a value more than that.  Where objects need several keys
  the value may need more, so there it is taken for true only where the tokens would be too many to be tried.

Where the grammar allows very many other tokens, as within a key of any text, those without a quote are not tried but
refused unless one of these holds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from constrain.engine.conditions.budget.completions_with_keys import NO_WAY, rest_with_keys
from constrain.engine.conditions.budget.expression_costs import FAR, MISSING, NEVER
from constrain.engine.conditions.budget.known_completions import place_after, tokens_from
from constrain.engine.conditions.budget.masks import forbid_tokens
from constrain.engine.conditions.protocol import Walk
from constrain.engine.conditions.unique_keys.memory import IN_VALUE, MODE, N_KEYS, OUTSIDE
from constrain.engine.conditions.unique_keys.object_keys import ObjectKeys
from constrain.engine.conditions.unique_keys.quote_tokens import quote_tokens
from constrain.engine.conditions.unique_keys.unique_keys import UniqueKeys
from constrain.engine.grammar_tables import GrammarTables
from constrain.engine.history import Place
from constrain.engine.mask_memo import write_mask
from constrain.engine.storage import schemas as t
from constrain.engine.storage.statuses import REPEATED_KEY
from constrain.engine.vocabulary.bitmasks import Bitmask, allow, ids_in_mask, words_for
from constrain.errors import ConstrainError

_OUTSIDE_STRINGS = b'"{}[],:'
"""Outside of strings, bytes without which a token leaves the keys as they are."""

_MANY, _MANY_IN_KEY = 8192, 1024
"""Where the grammar allows more tokens than this, those without a quote are not tried.

Within a key each makes another key, and there is more to find out.
"""

# All is forgotten when it takes about so much memory.
_MOST_BYTES = 16 << 20

# How many tokens finish a text, and which, if they are not those of the rules alone; NEVER where no way is found.
_Rest = tuple[int, list[int] | None]

# What finishing a key that is under way may cost where that is not known.
_WORST_UNKNOWN = 64

_KEYS_EXPECTED = 64
"""Keys in a text for which :meth:`ScarceKeyCosts.ample` leaves room."""


class ScarceKeyCosts:
    """What is known of this in a compiled grammar with scarce keys.

    Its lock is held by whoever calls a method.
    """

    def __init__(self, compiled: GrammarTables) -> None:
        self._generation = compiled.generation
        self._lexemes = np.array(compiled.ir.distinct_keys)
        self._needs_several = compiled.ir.needs_distinct_keys
        # By state and keys.
        self._lengths: dict[tuple[int, bytes], _Rest] = {}
        # The same by the place before a token, and the token behind which it is.
        self._tokens: dict[tuple[int, bytes], dict[int, _Rest]] = {}
        # How many tokens the grammar allows in a state.
        self._counts: dict[int, int] = {}
        self._size = 0
        quotes = np.zeros((1, words_for(compiled.vocabulary.size)), np.int32)
        for token in quote_tokens(compiled.vocabulary).tokens.tolist():
            allow(quotes[0], token)
        self._quotes = quotes[0]
        self._n_symbols, self._dearest = -1, 0
        self._keys_of_token = max(map(_most_keys, compiled.vocabulary.tokens), default=1) if self._needs_several else 1

    def ample(self, compiled: GrammarTables, highest: int) -> int:
        """What is enough for any token whose completion by the rules takes at most ``highest`` tokens."""
        more = self._most_more(compiled, _KEYS_EXPECTED)
        return highest + more * (1 + highest * self._keys_of_token if self._needs_several else 1)

    def sure(self, compiled: GrammarTables, keys: ObjectKeys, most: int) -> int:
        """The longest completion by the rules for which ``most`` tokens are enough, whatever the keys are."""
        more = self._most_more(compiled, int(keys.memory[N_KEYS]))
        # Every key of the completion, and the one under way, may be a dearer one.
        rest = max(most - more, 0)
        return rest // (1 + more * self._keys_of_token) if self._needs_several else rest

    def _most_more(self, compiled: GrammarTables, count: int) -> int:
        """How much more a key and its value may cost than the cheapest, if there are ``count`` keys already."""
        tables = compiled._tables
        n_symbols = tables.used(t.SYMBOLS)
        if n_symbols != self._n_symbols:
            symbols, lexemes = tables.array(t.SYMBOLS)[:n_symbols], self._lexemes
            rests = tables.array(t.REST_COSTS)[:n_symbols][np.isin(symbols, ~lexemes)]
            worst = tables.array(t.EXPRESSION_COSTS)["worst"][tables.array(t.LEXEMES)["expression"][lexemes]]
            self._n_symbols = n_symbols
            rests = rests[rests < FAR]
            dearest = int(rests.max(initial=0) - rests.min(initial=NEVER)) if len(rests) else 0
            worst = np.where((worst < 0) | (worst >= MISSING), _WORST_UNKNOWN, worst)
            self._dearest = dearest + int(worst.max(initial=0))
        # Where there are few ways to go on, each key may have to be longer than the one before.
        return min(self._dearest + 2 + count, NEVER)

    def _look(self, compiled: GrammarTables) -> None:
        """Forget what does not hold any more."""
        if self._generation != compiled.generation or self._size > _MOST_BYTES:
            self._lengths, self._tokens, self._counts, self._size = {}, {}, {}, 0
            self._generation = compiled.generation

    def restrict(
        self,
        cursor: Walk,
        condition: UniqueKeys,
        most: int,
        more: int,
        restrict_to: Callable[[int, Bitmask, int], object],
        out: Bitmask,
        index: int,
    ) -> None:
        """Take the tokens out of a mask behind which ``most`` tokens are not known to be enough.

        Parameters
        ----------
        more : int
            How many tokens the cheapest completion with keys that differ takes more than the one by the rules, here.
        restrict_to : callable (most, out, index)
            Takes those tokens out of a mask whose completion by the rules takes more than ``most``.
        """
        compiled = cursor.compiled
        sure = self.sure(compiled, condition.at(cursor), most)
        row, of_sure = out[index], out[index : index + 1].copy()
        untried, is_rest_tried = self._untried(cursor, condition, sure, most, more)
        restrict_to(sure, of_sure, 0)
        kept = of_sure[0]
        if untried > sure:
            of_untried = out[index : index + 1].copy()
            restrict_to(untried, of_untried, 0)
            kept = of_untried[0]
            kept &= ~self._quotes
            kept |= of_sure[0]
        restrict_to(most, out, index)
        tried = row & ~kept
        if not is_rest_tried:
            tried &= self._quotes
        row[:] = kept | tried
        rests = self._behind(cursor, condition, ids_in_mask(tried).tolist())
        refused = [token for token, (length, _) in rests.items() if length > most]
        forbid_tokens(out, index, np.array(refused, np.int32))

    def rest_at(self, cursor: Walk, condition: UniqueKeys) -> list[int] | None:
        """What finishes the text at a cursor; None if it is the completion by the rules alone.

        Raises
        ------
        ConstrainError
            If no way is found.
        """
        self._look(cursor.compiled)
        keys = condition.at(cursor)
        length, found = self._length(cursor.compiled, cursor, keys, keys.signature())
        if length == NEVER:
            raise ConstrainError(NO_WAY)
        return found

    def rest_behind(
        self, cursor: Walk, condition: UniqueKeys, token: int, count: int, most: int, more: int
    ) -> list[int] | None:
        """What finishes the text behind a token that :meth:`restrict` leaves in a mask, which is not a sure one.

        Empty if it is the completion by the rules, which takes ``count`` tokens.  None if the token is not left.
        """
        if count > most:
            return None
        sure = self.sure(cursor.compiled, condition.at(cursor), most)
        untried, is_rest_tried = self._untried(cursor, condition, sure, most, more)
        if b'"' not in cursor.compiled.vocabulary.tokens[token]:
            if count <= untried:
                return []
            if not is_rest_tried:
                return None
        length, found = self._behind(cursor, condition, [token])[token]
        return None if length > most else found or []

    def _untried(self, cursor: Walk, condition: UniqueKeys, sure: int, most: int, more: int) -> tuple[int, bool]:
        """The most that completions by the rules may take behind tokens without a quote that are not tried.

        And whether the others of them are tried, or refused.
        """
        keys = condition.at(cursor)
        if _is_within_value(cursor.compiled, cursor, keys):
            # What follows may be joined to the string's end in other tokens here and there.
            return max(sure, most - more - (2 if more else 0)), False
        count = self._count_at(cursor)
        if not keys.is_in_key():
            return sure, count <= _MANY
        # The more there is to come, the longer a token takes.
        effort = count * (1 + tokens_from(cursor.compiled, cursor) // 16)
        n_keys = int(keys.memory[N_KEYS])
        if cursor.compiled.unfolded is not None:
            # What was written so far may decide what is to come.
            effort *= 4 + n_keys
        is_rest_tried = effort <= _MANY_IN_KEY
        if self._needs_several and is_rest_tried:
            # The value under the key may be an object that needs several, of which the known completion has none.
            return sure, True
        # Behind any key those of the known completion are left to follow, or one for the one that it is.
        return max(sure, most - more - self._most_more(cursor.compiled, n_keys)), is_rest_tried

    def _behind(self, cursor: Walk, condition: UniqueKeys, tokens: list[int]) -> dict[int, _Rest]:
        """What finishes the text behind each of some tokens, which the grammar allows."""
        compiled, keys = cursor.compiled, condition.at(cursor)
        self._look(compiled)
        here = keys.signature()
        known = self._tokens.setdefault((cursor._state, here), {})
        generation = compiled.generation
        for token in tokens:
            if token not in known:
                found = self._after(cursor, condition, keys, here, token)
                if generation != compiled.generation:
                    # It goes on with what has been found, and others will not find it.
                    generation, known = compiled.generation, dict(known)
                known[token] = found
                self._size += 128
        return {token: known[token] for token in tokens}

    def _after(self, cursor: Walk, condition: UniqueKeys, keys: ObjectKeys, here: bytes, token: int) -> _Rest:
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
        return self._length(compiled, there, keys, here)

    def _length(self, compiled: GrammarTables, place: Place, keys: ObjectKeys, signature: bytes) -> _Rest:
        generation = compiled.generation
        known = self._lengths.get((place._state, signature)) if generation == self._generation else None
        if known is not None:
            return known
        state = place._state
        result = rest_with_keys(compiled, place, keys)
        if generation == compiled.generation == self._generation:
            self._lengths[state, signature] = result
            self._size += 256 + len(signature)
        return result

    def _count_at(self, cursor: Walk) -> int:
        """How many tokens the grammar allows at a cursor."""
        compiled = cursor.compiled
        self._look(compiled)
        found = self._counts.get(cursor._state)
        if found is None:
            row = np.zeros((1, words_for(compiled.vocabulary.size)), np.int32)
            write_mask(compiled, cursor, row, 0)
            found = len(ids_in_mask(row[0]))
            if self._generation == compiled.generation:
                self._counts[cursor._state] = found
        return found


def _is_within_value(compiled: GrammarTables, place: Place, keys: ObjectKeys) -> bool:
    """Whether a place is within one string that is a value, and nothing else is under way."""
    if keys.memory[MODE] != IN_VALUE:
        return False
    lexer_state = compiled.only_lexer_state(place)
    return lexer_state is not None and bool(compiled._tables.array(t.LEXER_STATES)[lexer_state]["count"] == 1)


def _most_keys(token: bytes) -> int:
    """How many keys a token ends at most: each with a colon, and between two of them are the quotes of the second."""
    return min(token.count(b":"), 1 + token.count(b'"') // 2)
