"""What finishing a text takes where keys that have to differ may cost more than the rules say.

The rules know the cheapest key of an object, and nothing of the keys that it has.  Behind ``{"b":1,`` of

    {"patternProperties": {"^b(|a)$": {"const": 1}}, "additionalProperties": false}

they finish the text with ``"b":1}``, which may be three tokens, where the next key has to be ``"ba"``, which may be
four tokens by itself.  To *try* a token is to finish the text behind it with keys that differ
(distinct_completions.py).  That takes too long for all tokens of a mask.  Which are tried depends on the grammar:

* Objects need one key without a name at most, as in nearly all schemas: :class:`NextKeyCosts`.
* They need several, of keys that are not scarce: :class:`ReservedKeyCosts`, which tries none.
* They need several, of scarce keys (:attr:`constrain.grammar.ir.GrammarIR.has_scarce_keys`):
  :class:`ScarceKeyCosts`.

A token is *sure* if so many tokens are left that keys may cost what they like.  Sure tokens are not tried.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from constrain.engine.conditions.budget.distinct_completions import DistinctCompletions
from constrain.engine.conditions.budget.expression_costs import FAR, MISSING, NEVER
from constrain.engine.conditions.budget.known_completions import beginning_tokens, place_after, tokens_from
from constrain.engine.conditions.budget.masks import forbid_tokens
from constrain.engine.conditions.protocol import Walk
from constrain.engine.conditions.unique_keys.memory import ESCAPE, IN_VALUE, MODE, N_KEYS, OUTSIDE
from constrain.engine.conditions.unique_keys.object_keys import ObjectKeys
from constrain.engine.conditions.unique_keys.quote_tokens import QuoteTokens, quote_tokens
from constrain.engine.conditions.unique_keys.unique_keys import UniqueKeys
from constrain.engine.grammar_tables import GrammarTables
from constrain.engine.history import Place
from constrain.engine.mask_memo import write_mask
from constrain.engine.parser.companions import MARK_ENDED, NO_COMPANION, unpack
from constrain.engine.parser.configurations import push_token
from constrain.engine.storage import schemas as t
from constrain.engine.vocabulary.bitmasks import Bitmask, allow, forbid, ids_in_mask, is_allowed, words_for

_MANY, _MANY_IN_KEY = 8192, 1024
"""Where the grammar allows more tokens than this, those without a quote are not tried.

Within a key each makes another key, and there is more to find out.
"""

_WORST_UNKNOWN = 64
"""What finishing a key that is under way may cost where that is not known."""

_KEYS_EXPECTED, _SCARCE_KEYS_EXPECTED = 9_999, 64
"""Keys in a text for which :meth:`KeyCosts.ample` leaves room."""

_RESERVE, _ROOM = 8, 64
"""The tokens that :class:`ReservedKeyCosts` keeps back, and beyond twice a completion those with which it need not."""

_TO_MANY_KEYS, _TO_END_ESCAPE = 9, 5
"""How many bytes it takes at most to where many keys go on, and those of an escape that is under way."""

RestrictTo = Callable[[int, Bitmask, int], None]
"""Takes the tokens out of row ``index`` of a mask whose completion by the rules takes more than ``most``.

Called with ``most``, the mask and ``index``.
"""


class TokensLeft(NamedTuple):
    """Where a text stands, and how many tokens are left behind its next one."""

    cursor: Walk
    condition: UniqueKeys
    most: int
    more: int = 0
    """How many tokens the cheapest completion with keys that differ takes more than the one by the rules, here."""


class KeyCosts(ABC):
    """What keys that must differ cost in a compiled grammar.

    Its lock is held by whoever calls a method.

    Attributes
    ----------
    ample_steps : int
        A text of so many tokens has no more keys than :meth:`ample` leaves room for.
    is_ample_behind_bytes : bool
        Whether that holds also where some steps were bytes, whatever keys those had.
    """

    ample_steps: int = NEVER
    is_ample_behind_bytes: bool = True
    _keys_expected = _KEYS_EXPECTED

    def __init__(self, compiled: GrammarTables) -> None:
        self._quoted = quote_tokens(compiled.vocabulary)
        self._completions = DistinctCompletions(compiled)

    @abstractmethod
    def _at_most(self, compiled: GrammarTables, count: int, n_keys: int) -> int:
        """What a completion of ``count`` tokens by the rules takes at most, whatever the ``n_keys`` keys are."""

    @abstractmethod
    def restrict(self, left: TokensLeft, restrict_to: RestrictTo, out: Bitmask, index: int) -> None:
        """Take the tokens out of a mask behind which the tokens that are left are not known to be enough."""

    @abstractmethod
    def rest_behind(self, left: TokensLeft, token: int, count: int) -> list[int] | None:
        """What finishes the text behind a token that is not sure.

        Empty if it is the completion by the rules, which takes ``count`` tokens, not more than are left.  None if
        :meth:`restrict` takes the token out of a mask.
        """

    def ample(self, compiled: GrammarTables, highest: int) -> int:
        """What is enough for any token whose completion by the rules takes at most ``highest`` tokens."""
        return self._at_most(compiled, highest, self._keys_expected)

    def is_sure(self, compiled: GrammarTables, count: int, n_keys: int, most: int) -> bool:
        """Whether ``most`` tokens are enough for a completion by the rules of ``count``, whatever the keys are.

        There are ``n_keys`` of them.
        """
        return count <= most and self._at_most(compiled, count, n_keys) <= most

    def rest_at(self, cursor: Walk, condition: UniqueKeys) -> list[int] | None:
        """What finishes the text at a cursor; None if it is the completion by the rules alone.

        Raises
        ------
        ConstrainError
            If no way is found.
        """
        return self._completions.at(cursor, condition)

    def rest_behind_first_key(self, left: TokensLeft, token: int, count: int) -> list[int] | None:
        """What finishes the text behind a token where no key has ended so far; see :meth:`rest_behind`.

        The token may end the first key and lead to the next, which has to be another one.
        """
        cursor = left.cursor
        compiled = cursor.compiled
        if token not in self._quoted.to_next_key or self.is_sure(compiled, count, 1, left.most):
            return []
        result = compiled.run_at(cursor, push_token, token, NO_COMPANION)
        if result >= 0 and not unpack(result)[1] & MARK_ENDED:
            return []
        return self._rest_if_tried(left, token)

    def restrict_first_key(self, left: TokensLeft, row: Bitmask) -> None:
        """Forbid the tokens to which :meth:`rest_behind_first_key` objects."""
        compiled = left.cursor.compiled
        for token in self._quoted.to_next_key:
            if is_allowed(row, token):
                count = tokens_from(compiled, place_after(compiled, left.cursor, [token]))
                if count > left.most or self.rest_behind_first_key(left, token, count) is None:
                    forbid(row, token)

    def _try(self, left: TokensLeft, tokens: list[int], out: Bitmask, index: int) -> None:
        """Take those of some tokens out of a mask behind which the tokens that are left are not enough."""
        rests = self._completions.behind(left.cursor, left.condition, tokens)
        refused = [token for token, (length, _) in rests.items() if length > left.most]
        forbid_tokens(out, index, np.array(refused, np.int32))

    def _rest_if_tried(self, left: TokensLeft, token: int) -> list[int] | None:
        """The same for one token: what finishes the text; None if that takes more tokens than are left."""
        length, found = self._completions.behind(left.cursor, left.condition, [token])[token]
        return None if length > left.most else found or []


class NextKeyCosts(KeyCosts):
    """Where objects need one key without a name at most.

    The completion by the rules ends the key that is under way, or writes the one that has to follow, and begins no
    further one in any object that has keys.  So a key comes again in it only if

    * the key that is under way begins one that is there: ``{"ab":1,"a``, or
    * a key has to follow others: ``{"ab":1,``.

    The tokens that lead there are few, and each of them is tried.  All others need what the rules say.
    """

    def __init__(self, compiled: GrammarTables) -> None:
        super().__init__(compiled)
        # Bytes that are no tokens may be those with which many keys go on.
        has_all = (compiled._tables.array(t.BYTE_COSTS)["token"][0x20:0x7F] >= 0).all()
        is_scarce = not has_all or compiled.ir.has_scarce_keys()
        self._dearest = _DearestMember(compiled, self._quoted, is_scarce=is_scarce)
        if is_scarce:
            self._keys_expected = _SCARCE_KEYS_EXPECTED
        self.ample_steps = self._keys_expected // self._quoted.most_keys
        self.is_ample_behind_bytes = not is_scarce

    def _at_most(self, compiled: GrammarTables, count: int, n_keys: int) -> int:
        return count + self._dearest.most_more(compiled, n_keys)

    def restrict(self, left: TokensLeft, restrict_to: RestrictTo, out: Bitmask, index: int) -> None:
        """See :class:`KeyCosts`."""
        restrict_to(left.most, out, index)
        row = out[index]
        to_try = self._to_try(left.cursor.compiled, row, left.condition.at(left.cursor))
        self._try(left, sorted(token for token in to_try if is_allowed(row, token)), out, index)

    def rest_behind(self, left: TokensLeft, token: int, count: int) -> list[int] | None:
        """See :class:`KeyCosts`."""
        cursor = left.cursor
        if b"," not in cursor.compiled.vocabulary.tokens[token] and not left.condition.at(cursor).may_be_repeated():
            return []
        return self._rest_if_tried(left, token)

    def _to_try(self, compiled: GrammarTables, row: Bitmask, keys: ObjectKeys) -> Iterable[int]:
        """The tokens that may lead to where a key might come again, and some more; of those of a mask all."""
        quoted = self._quoted
        taken = keys.may_be_repeated()
        if keys.is_in_escape() and taken:
            return ids_in_mask(row).tolist()  # type: ignore[no-any-return]
        found: set[int] = set()
        from_outside, from_string = quoted.to_key
        if keys.memory[ESCAPE]:
            # A quote behind a backslash is none that ends a string.
            found.update(from_outside, from_string)
        else:
            found.update(from_outside if keys.memory[MODE] == OUTSIDE else from_string)
        if taken:
            found.update(quoted.with_backslash)
            if not keys.is_in_key():
                found.update(quoted.with_blank_before)
            begin = b"" if keys.is_in_key() else b'"'
            for rest in taken:
                found.update(beginning_tokens(compiled, begin + rest))
        return found


class ReservedKeyCosts(KeyCosts):
    """Where objects need several keys, and those are not scarce.

    The completion by the rules may write the same key several times.  For each of them to differ takes a token more
    at most.  So many are kept back, and some more for a key that a token leads into.
    """

    def _at_most(self, compiled: GrammarTables, count: int, n_keys: int) -> int:
        return 2 * count + _ROOM

    def restrict(self, left: TokensLeft, restrict_to: RestrictTo, out: Bitmask, index: int) -> None:
        """See :class:`KeyCosts`."""
        restrict_to(self._enough(left), out, index)

    def rest_behind(self, left: TokensLeft, token: int, count: int) -> list[int] | None:
        """See :class:`KeyCosts`."""
        return [] if count <= self._enough(left) else None

    def _enough(self, left: TokensLeft) -> int:
        """The longest completion by the rules that leaves room for keys to differ.

        It takes ``left.more`` tokens, as the one of this place does, and as many again as it is longer than that one,
        since it then needs more keys.
        """
        here = tokens_from(left.cursor.compiled, left.cursor)
        if here == NEVER:
            return left.most
        enough = left.most - _RESERVE - left.more
        return max((enough + here) // 2 if enough > here else enough, (left.most - _ROOM) // 2, 0)


class _Limits(NamedTuple):
    """How long completions by the rules may be, so that tokens need not be tried."""

    sure: int
    """Behind sure tokens."""
    unquoted: int
    """Behind tokens without a quote."""
    tries_unquoted: bool
    """Whether the others without a quote are tried; if not, they are refused."""


class ScarceKeyCosts(KeyCosts):
    """Where objects need several keys, and those may be scarce.

    The completion by the rules may write the same key several times, and each that takes its place may be dear.  So
    each token is tried that is not sure, but for most without a quote:

    * Within a string that is a value they change nothing about what follows the string.  They need as much more than
      by the rules as is needed at the cursor, whose completion is known.
    * Within a key, the keys of that completion are left to follow them, or one of those in place of the key itself.
      They need one more key and value at most.  The value may be an object that needs several keys itself, which this
      says nothing of; so it is relied on only where there are too many tokens to try them all, and the others without a
      quote are refused then.
    * Elsewhere they are tried, if there are not too many of them, and refused otherwise.
    """

    is_ample_behind_bytes = False
    _keys_expected = _SCARCE_KEYS_EXPECTED

    def __init__(self, compiled: GrammarTables) -> None:
        super().__init__(compiled)
        self._dearest = _DearestMember(compiled, self._quoted, is_scarce=True)
        self.ample_steps = self._keys_expected // self._quoted.most_keys
        quotes = np.zeros((1, words_for(compiled.vocabulary.size)), np.int32)
        for token in self._quoted.tokens.tolist():
            allow(quotes[0], token)
        self._quotes = quotes[0]
        # How many tokens the grammar allows in a state.
        self._counts: dict[int, int] = {}
        self._generation = compiled.generation

    def _at_most(self, compiled: GrammarTables, count: int, n_keys: int) -> int:
        # Every key of the completion, and the one under way, may be a dearer one.
        further = count * self._quoted.most_keys
        return count + self._dearest.most_more(compiled, n_keys + further) * (1 + further)

    def restrict(self, left: TokensLeft, restrict_to: RestrictTo, out: Bitmask, index: int) -> None:
        """See :class:`KeyCosts`."""
        limits = self._limits(left)
        row, of_sure = out[index], out[index : index + 1].copy()
        restrict_to(limits.sure, of_sure, 0)
        kept = of_sure[0]
        if limits.unquoted > limits.sure:
            of_unquoted = out[index : index + 1].copy()
            restrict_to(limits.unquoted, of_unquoted, 0)
            kept |= of_unquoted[0] & ~self._quotes
        restrict_to(left.most, out, index)
        tried = row & ~kept
        if not limits.tries_unquoted:
            tried &= self._quotes
        row[:] = kept | tried
        self._try(left, ids_in_mask(tried).tolist(), out, index)

    def rest_behind(self, left: TokensLeft, token: int, count: int) -> list[int] | None:
        """See :class:`KeyCosts`."""
        if b'"' not in left.cursor.compiled.vocabulary.tokens[token]:
            limits = self._limits(left)
            if count <= limits.unquoted:
                return []
            if not limits.tries_unquoted:
                return None
        return self._rest_if_tried(left, token)

    def _limits(self, left: TokensLeft) -> _Limits:
        cursor, condition, most, more = left
        compiled, keys = cursor.compiled, condition.at(cursor)
        n_keys = int(keys.memory[N_KEYS])
        sure = self._sure(compiled, n_keys, most)
        if _is_within_value(compiled, cursor, keys):
            # What follows may be joined to the string's end in other tokens here and there.
            joined = 2 * (self._quoted.longest - 1) if more else 0
            return _Limits(sure, max(sure, most - more - joined), tries_unquoted=False)
        count = self._count_at(cursor)
        if not keys.is_in_key():
            return _Limits(sure, sure, tries_unquoted=count <= _MANY)
        # The more there is to come, the longer a token takes.
        effort = count * (1 + tokens_from(compiled, cursor) // 16)
        if compiled.unfolded is not None:
            # What was written so far may decide what is to come.
            effort *= 4 + n_keys
        if effort <= _MANY_IN_KEY:
            return _Limits(sure, sure, tries_unquoted=True)
        one_more = self._dearest.most_more(compiled, n_keys)
        return _Limits(sure, max(sure, most - more - one_more), tries_unquoted=False)

    def _sure(self, compiled: GrammarTables, n_keys: int, most: int) -> int:
        """The longest completion by the rules that is sure with ``most`` tokens; or -1."""
        low, high = -1, most
        while low < high:
            middle = (low + high + 1) // 2
            if self.is_sure(compiled, middle, n_keys, most):
                low = middle
            else:
                high = middle - 1
        return low

    def _count_at(self, cursor: Walk) -> int:
        """How many tokens the grammar allows at a cursor."""
        compiled = cursor.compiled
        if self._generation != compiled.generation:
            self._generation, self._counts = compiled.generation, {}
        found = self._counts.get(cursor._state)
        if found is None:
            row = np.zeros((1, words_for(compiled.vocabulary.size)), np.int32)
            write_mask(compiled, cursor, row, 0)
            found = len(ids_in_mask(row[0]))
            if self._generation == compiled.generation:
                self._counts[cursor._state] = found
        return found


class _DearestMember:
    """What a key that must differ, and the rest of its object, may cost more than the cheapest."""

    def __init__(self, compiled: GrammarTables, quoted: QuoteTokens, *, is_scarce: bool) -> None:
        self._lexemes = np.array(compiled.ir.distinct_keys)
        self._quoted = quoted
        self._is_scarce = is_scarce
        # Of the key that is dearest to finish, and what follows such keys; for so many symbols as there were.
        self._n_symbols, self._key, self._rest = -1, 0, 0

    def most_more(self, compiled: GrammarTables, n_keys: int) -> int:
        """How many tokens more it may cost, if there are ``n_keys`` keys."""
        self._update(compiled)
        if self._is_scarce:
            # Where there are few ways to go on, each key may have to be longer than the one before.  Tokens that reach
            # over the begin of the key or the end of the object have to be spelled otherwise.
            joined = 2 * (self._quoted.longest - 1)
            return min(self._rest + (n_keys + 1) * (self._key + 1) + joined, NEVER)
        # Each byte with which many keys go on leaves a tenth of those that are there.  What follows one key may follow
        # the other too, but tokens that reach over the begin of the key or its end have to be spelled otherwise.
        key = self._key + _TO_END_ESCAPE + _TO_MANY_KEYS * len(str(n_keys))
        return min(key + sum(self._quoted.longest_around_key), NEVER)

    def _update(self, compiled: GrammarTables) -> None:
        """Look at the symbols again if there are more than there were: rules may have been made since."""
        tables, lexemes = compiled._tables, self._lexemes
        n_symbols = tables.used(t.SYMBOLS)
        if n_symbols == self._n_symbols:
            return
        symbols = tables.array(t.SYMBOLS)[:n_symbols]
        rests = tables.array(t.REST_COSTS)[:n_symbols][np.isin(symbols, ~lexemes)]
        worst = tables.array(t.EXPRESSION_COSTS)["worst"][tables.array(t.LEXEMES)["expression"][lexemes]]
        worst = np.where((worst < 0) | (worst >= MISSING), _WORST_UNKNOWN, worst)
        self._n_symbols = n_symbols
        self._key, self._rest = int(worst.max(initial=0)), int(rests[rests < FAR].max(initial=0))


def key_costs_of(compiled: GrammarTables) -> KeyCosts | None:
    """What keys that must differ cost in a compiled grammar; None if it has no such keys."""
    ir = compiled.ir
    if not ir.distinct_keys:
        return None
    if not ir.needs_distinct_keys:
        return NextKeyCosts(compiled)
    return ScarceKeyCosts(compiled) if ir.has_scarce_keys() else ReservedKeyCosts(compiled)


def _is_within_value(compiled: GrammarTables, place: Place, keys: ObjectKeys) -> bool:
    """Whether a place is within one string that is a value, and nothing else is under way."""
    if keys.memory[MODE] != IN_VALUE:
        return False
    lexer_state = compiled.only_lexer_state(place)
    return lexer_state is not None and bool(compiled._tables.array(t.LEXER_STATES)[lexer_state]["count"] == 1)
