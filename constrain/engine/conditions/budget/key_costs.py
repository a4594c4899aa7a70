"""What finishing a text takes where keys that have to differ may cost more than the rules say.

The rules know the cheapest key of an object, and nothing of the keys that it has.  Behind ``{"b":1,`` of

    {"patternProperties": {"^b(|a)$": {"const": 1}}, "additionalProperties": false}

they finish the text with ``"b":1}``, which may be three tokens, where the next key has to be ``"ba"``, which may be
four tokens by itself.  So the text behind a token is finished with keys that differ (completions_with_keys.py), where
that can make a difference.

*Objects that need one key without a name at most*, all but those of
:attr:`constrain.grammar.ir.GrammarIR.needs_distinct_keys`.  The completion by the rules ends the key that is under way,
or writes the one that has to follow, and begins no further one in any object that has keys.  So a key comes again in it
only if

* the key that is under way begins one that is there: ``{"ab":1,"a``, or
* a key has to follow others: ``{"ab":1,``.

These are few of the tokens of a mask, and each of them is tried.  All others need what the rules say.

*Objects that need several.*  The completion by the rules may write the same key several times.  Where keys are not
scarce, each of them takes a token more at most, and a few are kept back.  Where they are, each token whose completion
by the rules is not *surely* short enough is tried.  Some things keep that to few tokens.

* What may surely be afforded: every key may be the dearest, with the dearest value.
* What a token leads to is known by the state and the keys there; most tokens lead to few.
* Within a string that is a value, the tokens without a quote change nothing about what follows the string.  They need
  as much more than by the rules as is needed where the mask is, whose completion is known.
* Within a key, behind the tokens without a quote the keys of the completion that is known where the mask is are left to
  follow, or one for the one that it is: they need a key and a value more than that.  The value may need more, so that
  is taken for true only where the tokens would be too many to be tried.

Where the grammar allows very many other tokens, as within a key of any text, those without a quote are not tried but
refused unless one of these holds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from constrain.engine.conditions.budget.completions_with_keys import NO_WAY, rest_with_keys
from constrain.engine.conditions.budget.expression_costs import FAR, MISSING, NEVER
from constrain.engine.conditions.budget.known_completions import beginning_tokens, place_after, tokens_from
from constrain.engine.conditions.budget.masks import forbid_tokens
from constrain.engine.conditions.protocol import Walk
from constrain.engine.conditions.unique_keys.memory import ESCAPE, IN_VALUE, MODE, N_KEYS, OUTSIDE
from constrain.engine.conditions.unique_keys.object_keys import ObjectKeys
from constrain.engine.conditions.unique_keys.quote_tokens import quote_tokens
from constrain.engine.conditions.unique_keys.unique_keys import UniqueKeys
from constrain.engine.grammar_tables import GrammarTables
from constrain.engine.history import Place
from constrain.engine.mask_memo import write_mask
from constrain.engine.storage import schemas as t
from constrain.engine.storage.statuses import REPEATED_KEY
from constrain.engine.vocabulary.bitmasks import Bitmask, allow, ids_in_mask, is_allowed, words_for
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

_KEYS_EXPECTED, _SCARCE_KEYS_EXPECTED = 9_999, 64
"""Keys in a text for which :meth:`KeyCosts.ample` leaves room."""

# Where several keys are needed, and are not scarce: the tokens that are kept back for keys to differ, and beyond twice
# a completion those with which nothing needs to be kept back.
_RESERVE, _ROOM = 8, 64

# How many bytes it takes at most to where many keys go on, and those of an escape that is under way.
_TO_MANY_KEYS, _TO_END_ESCAPE = 9, 5


class KeyCosts:
    """What is known of this in a compiled grammar.

    Its lock is held by whoever calls a method.

    Attributes
    ----------
    ample_steps : int
        Within so many tokens a text has no more keys than :meth:`ample` leaves room for.
    is_ample_behind_bytes : bool
        Whether it does so too where some steps were bytes, with any number of keys.
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
        self._quoted = quoted = quote_tokens(compiled.vocabulary)
        quotes = np.zeros((1, words_for(compiled.vocabulary.size)), np.int32)
        self._is_scarce = compiled.ir.has_scarce_keys()
        # Whether every token that is not surely cheap enough is tried, or some tokens are kept back.
        self._is_tried = self._needs_several and self._is_scarce
        self._keeps_back = self._needs_several and not self._is_scarce
        # Bytes that are no tokens may be those with which many keys go on.
        self._is_scarce |= not (compiled._tables.array(t.BYTE_COSTS)["token"][0x20:0x7F] >= 0).all()
        for token in quoted.tokens.tolist() if self._is_tried else ():
            allow(quotes[0], token)
        self._quotes = quotes[0]
        self._n_symbols, self._dearest, self._worst = -1, 0, 0
        self._keys_expected = _SCARCE_KEYS_EXPECTED if self._is_scarce else _KEYS_EXPECTED
        self.ample_steps = self._keys_expected // quoted.most_keys
        self.is_ample_behind_bytes = not self._is_scarce

    def ample(self, compiled: GrammarTables, highest: int) -> int:
        """What is enough for any token whose completion by the rules takes at most ``highest`` tokens."""
        return self._with_keys(compiled, highest, self._keys_expected)

    def is_sure(self, compiled: GrammarTables, count: int, n_keys: int, most: int) -> bool:
        """Whether ``most`` tokens are enough for a completion by the rules of ``count``, whatever the keys are.

        There are ``n_keys`` of them.
        """
        # Mostly it is far from enough, or far more than that.
        return count <= most and self._with_keys(compiled, count, n_keys) <= most

    def _sure(self, compiled: GrammarTables, n_keys: int, most: int) -> int:
        """The longest completion by the rules for which ``most`` tokens are enough, whatever the keys are; or -1."""
        low, high = -1, most
        while low < high:
            middle = (low + high + 1) // 2
            if self.is_sure(compiled, middle, n_keys, most):
                low = middle
            else:
                high = middle - 1
        return low

    def _with_keys(self, compiled: GrammarTables, count: int, n_keys: int) -> int:
        """What a completion of ``count`` tokens by the rules takes at most, whatever the ``n_keys`` keys are."""
        if not self._needs_several:
            return count + self._most_more(compiled, n_keys)
        if self._keeps_back:
            return 2 * count + _ROOM
        # Every key of the completion, and the one under way, may be a dearer one.
        further = count * self._quoted.most_keys
        return count + self._most_more(compiled, n_keys + further) * (1 + further)

    def _enough(self, cursor: Walk, most: int, more: int) -> int:
        """The longest completion by the rules that leaves room for keys to differ, where several are needed.

        It takes more by what the plan does, by as much again as it is longer than the one of this place (it then needs
        more keys), and by some tokens for a key that a token leads into.
        """
        here = tokens_from(cursor.compiled, cursor)
        if here == NEVER:
            return most
        enough = most - _RESERVE - more
        return max((enough + here) // 2 if enough > here else enough, (most - _ROOM) // 2, 0)

    def _most_more(self, compiled: GrammarTables, n_keys: int) -> int:
        """How much more than the cheapest a key and the rest of its object may cost, if there are ``n_keys`` keys."""
        tables = compiled._tables
        n_symbols = tables.used(t.SYMBOLS)
        if n_symbols != self._n_symbols:
            symbols, lexemes = tables.array(t.SYMBOLS)[:n_symbols], self._lexemes
            rests = tables.array(t.REST_COSTS)[:n_symbols][np.isin(symbols, ~lexemes)]
            worst = tables.array(t.EXPRESSION_COSTS)["worst"][tables.array(t.LEXEMES)["expression"][lexemes]]
            self._n_symbols = n_symbols
            self._dearest = int(rests[rests < FAR].max(initial=0))
            worst = np.where((worst < 0) | (worst >= MISSING), _WORST_UNKNOWN, worst)
            self._worst = int(worst.max(initial=0))
        if self._is_scarce:
            # Where there are few ways to go on, each key may have to be longer than the one before.  Tokens that reach
            # over the begin of the key or the end of the object have to be spelled otherwise.
            joined = 2 * (self._quoted.longest - 1)
            return min(self._dearest + (n_keys + 1) * (self._worst + 1) + joined, NEVER)
        # Each byte with which many keys go on leaves a tenth of those that are there.  What follows one key may follow
        # the other too, but tokens that reach over the begin of the key or its end have to be spelled otherwise.
        key = self._worst + _TO_END_ESCAPE + _TO_MANY_KEYS * len(str(n_keys))
        return min(key + sum(self._quoted.longest_around_key), NEVER)

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
        if not self._needs_several:
            restrict_to(most, out, index)
            self._restrict_next_keys(cursor, condition, most, out, index)
            return
        if self._keeps_back:
            restrict_to(self._enough(cursor, most, more), out, index)
            return
        compiled = cursor.compiled
        sure = self._sure(compiled, int(condition.at(cursor).memory[N_KEYS]), most)
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

    def _restrict_next_keys(self, cursor: Walk, condition: UniqueKeys, most: int, out: Bitmask, index: int) -> None:
        """Take those tokens out behind which a key might come again, and ``most`` tokens are not enough."""
        rests = self._behind(cursor, condition, self._to_try(cursor.compiled, out[index], condition.at(cursor)))
        refused = [token for token, (length, _) in rests.items() if length > most]
        forbid_tokens(out, index, np.array(refused, np.int32))

    def _to_try(self, compiled: GrammarTables, row: Bitmask, keys: ObjectKeys) -> list[int]:
        """The tokens of a mask that may lead to where a key might come again, and some more."""
        quoted = self._quoted
        taken = keys.may_be_repeated()
        found: set[int] = set()
        if keys.is_in_escape() and taken:
            return ids_in_mask(row).tolist()  # type: ignore[no-any-return]
        is_outside = keys.memory[MODE] == OUTSIDE
        # A quote behind a backslash is none that ends a string.
        for tokens in quoted.to_key if keys.memory[ESCAPE] else (quoted.to_key[0 if is_outside else 1],):
            found.update(tokens)
        if taken:
            found.update(quoted.with_backslash)
            if not keys.is_in_key():
                found.update(quoted.with_blank_before)
            begin = b"" if keys.is_in_key() else b'"'
            for rest in taken:
                found.update(beginning_tokens(compiled, begin + rest))
        return sorted(token for token in found if is_allowed(row, token))

    def rest_at(self, cursor: Walk, condition: UniqueKeys) -> list[int] | None:
        """What finishes the text at a cursor; None if it is the completion by the rules alone.

        Raises
        ------
        ConstrainError
            If no way is found.
        """
        self._look(cursor.compiled)
        keys = condition.at(cursor)
        if not self._needs_several and not keys.may_be_repeated():
            return None
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
        if self._keeps_back:
            return [] if count <= self._enough(cursor, most, more) else None
        keys = condition.at(cursor)
        if self._needs_several:
            sure = self._sure(cursor.compiled, int(keys.memory[N_KEYS]), most)
            untried, is_rest_tried = self._untried(cursor, condition, sure, most, more)
            if b'"' not in cursor.compiled.vocabulary.tokens[token]:
                if count <= untried:
                    return []
                if not is_rest_tried:
                    return None
        elif b"," not in cursor.compiled.vocabulary.tokens[token] and not keys.may_be_repeated():
            return []
        length, found = self._behind(cursor, condition, [token])[token]
        return None if length > most else found or []

    def _untried(self, cursor: Walk, condition: UniqueKeys, sure: int, most: int, more: int) -> tuple[int, bool]:
        """The most that completions by the rules may take behind tokens without a quote that are not tried.

        And whether the others of them are tried, or refused.
        """
        keys = condition.at(cursor)
        if _is_within_value(cursor.compiled, cursor, keys):
            # What follows may be joined to the string's end in other tokens here and there.
            return max(sure, most - more - (2 * (self._quoted.longest - 1) if more else 0)), False
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
        if is_rest_tried:
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
        if not self._needs_several and not keys.may_be_repeated():
            return tokens_from(compiled, there), None
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
