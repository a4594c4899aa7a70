"""A matcher for one request of a serving engine: within its number of tokens, and ending with its own stop tokens.

An engine counts the token that ends a text, a budget of a :class:`~constrain.engine.matcher.Matcher` does not.  So a
text gets one token less than the request has, where it fits; if it does not, it is complete with the request's last
token and the engine says that it was cut there.
"""

from __future__ import annotations

from collections.abc import Sequence

from constrain.engine.compiled_grammar import CompiledGrammar
from constrain.engine.matcher import Matcher
from constrain.engine.vocabulary.bitmasks import Bitmask, allow, forbid, is_allowed
from constrain.errors import ConstrainError


def matcher_within(compiled: CompiledGrammar, tokens: int | None) -> Matcher:
    """A matcher whose text is complete within ``tokens``, together with its end token where that fits.

    Raises
    ------
    ConstrainError
        If no text of the grammar is known that takes so few tokens; the message says how many are needed.
    """
    if tokens is None:
        return Matcher(compiled)
    if tokens > 0:
        try:
            return Matcher(compiled, tokens - 1)
        except ConstrainError:
            pass
    return Matcher(compiled, max(tokens, 0))


class RequestMatcher:
    """The place of one request in its grammar.

    Parameters
    ----------
    compiled : CompiledGrammar
    ends : sequence of int, optional
        The special tokens that end the request, where they are not the end tokens of the vocabulary.
    tokens : int, optional
        How many tokens the engine makes at most, the end token included.

    Raises
    ------
    ConstrainError
        If the tokens are too few for any text of the grammar.
    """

    def __init__(self, compiled: CompiledGrammar, ends: Sequence[int] | None = None, tokens: int | None = None) -> None:
        self.matcher = matcher_within(compiled, tokens)
        self._own_ends = compiled.vocabulary.eos_ids
        self._ends = None if ends is None else frozenset(ends)

    def fill(self, mask: Bitmask, row: int) -> None:
        """Write the tokens that may come next into a row of an int32 array, the request's end tokens among them."""
        matcher = self.matcher
        matcher.fill_next_token_bitmask(mask, row)
        if self._ends is not None:
            may_end = is_allowed(mask[row], self._own_ends[0])
            for token in self._own_ends:
                forbid(mask[row], token)
            if may_end:
                for token in self._ends:
                    allow(mask[row], token)

    def accept(self, token: int) -> bool:
        """Go on with a token; False, and nothing changes, if it is not allowed here, or no token of the vocabulary."""
        if self._ends is not None:
            if token in self._ends:
                token = self._own_ends[0]
            elif token in self._own_ends:
                return False
        if not 0 <= token < self.matcher.compiled.vocabulary.size:
            return False
        return self.matcher.accept_token(token)

    def count_legal(self, tokens: Sequence[int]) -> int:
        """How many of the tokens could be accepted one after the other; the matcher stays where it is."""
        ahead = self.fork()
        count = 0
        while count < len(tokens) and ahead.accept(tokens[count]):
            count += 1
        return count

    def fork(self) -> RequestMatcher:
        """An independent one at the same place; constant time."""
        twin = object.__new__(RequestMatcher)
        twin.matcher, twin._own_ends, twin._ends = self.matcher.fork(), self._own_ends, self._ends
        return twin
