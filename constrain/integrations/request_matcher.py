"""A matcher for one request of a serving engine: within its number of tokens, and ending with its own stop tokens.

An engine counts the token that ends a text, a budget of a :class:`~constrain.engine.matcher.Matcher` does not.  So a
text gets one token less than the request has, where it fits; if it does not, it is complete with the request's last
token and the engine says that it was cut there.
"""

from __future__ import annotations

from collections.abc import Sequence

from constrain.engine.compiled_grammar import CompiledGrammar
from constrain.engine.matcher import Matcher
from constrain.errors import ConstrainError, LimitError
from constrain.limits import Deadline, limited


def matcher_within(
    compiled: CompiledGrammar,
    tokens: int | None,
    *,
    stop_token_ids: Sequence[int] | None = None,
    time_limit: float | Deadline | None = None,
) -> Matcher:
    """A matcher whose text is complete within ``tokens``, together with its end token where that fits.

    Parameters
    ----------
    compiled : CompiledGrammar
    tokens : int, optional
        How many tokens the engine makes at most, the end token included.
    stop_token_ids : sequence of int, optional
        The tokens that end the request, where they are not the end tokens of the vocabulary.
    time_limit : float or Deadline, optional
        Seconds that it may take to find the shortest text.

    Raises
    ------
    ConstrainError
        If no text of the grammar is known that takes so few tokens; the message says how many are needed.
    LimitError
        If it takes too much time or memory to find that out.
    """
    with limited(time_limit, "finding its shortest text"):
        if tokens is None:
            return Matcher(compiled, stop_token_ids=stop_token_ids)
        if tokens > 0:
            try:
                return Matcher(compiled, tokens - 1, stop_token_ids=stop_token_ids)
            except LimitError:
                raise
            except ConstrainError:
                pass
        return Matcher(compiled, max(tokens, 0), stop_token_ids=stop_token_ids)
