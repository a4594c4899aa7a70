"""What the matchers of a batch have that stays the same from step to step.

A server has the same sequences in nearly all of its steps.  So a batch is looked at once, and known again by the
identities of its matchers.  What was found is kept with the first of them, until any of them is gone.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np

from constrain.arguments import check_integer
from constrain.engine.compiled_grammar import CompiledGrammar
from constrain.engine.matcher import Matcher
from constrain.engine.storage.tables import NO_TABLES, array_address
from constrain.errors import ConstrainError
from constrain.kernels.identities import are_at

Int64Array = np.ndarray[Any, np.dtype[np.int64]]

NO_TABLES_AT = array_address(NO_TABLES)

_NOBODY = np.empty(0, np.int64)


class Members:
    """What the matchers of a batch have that stays the same.

    Parameters
    ----------
    matchers : list of Matcher

    Attributes
    ----------
    identities : int64[n]
        Of the matchers; none when one of them is gone.
    grammars : list of CompiledGrammar
        That of each matcher.
    distinct : list of CompiledGrammar
        The same, each once.
    are_distinct : bool
        Whether no matcher is there twice.
    kinds : uint8[vocabulary], optional
        What each token is, if that is the same for all grammars.

    Raises
    ------
    ConstrainError
        If they are no batch: see :func:`constrain.fill_next_token_bitmask_batch`.
    """

    def __init__(self, matchers: list[Matcher]) -> None:
        for kind in set(map(type, matchers)):
            if not issubclass(kind, Matcher):
                wrong = next(position for position, matcher in enumerate(matchers) if type(matcher) is kind)
                raise ConstrainError(f"entry {wrong} of the batch is {kind.__name__}, not a Matcher")
        self.grammars = [matcher.compiled for matcher in matchers]
        self.distinct = list(dict.fromkeys(self.grammars))
        sizes = {grammar.vocabulary.size for grammar in self.distinct}
        if len(sizes) > 1:
            raise ConstrainError(f"a batch needs one vocabulary: these have sizes {sorted(sizes)}")
        numbers = {grammar: number for number, grammar in enumerate(self.distinct)}
        self._numbers = np.array([numbers[grammar] for grammar in self.grammars], np.int64)
        self.are_distinct = len(set(matchers)) == len(matchers)
        kinds = {id(grammar.vocabulary.kinds): grammar.vocabulary.kinds for grammar in self.distinct}
        self.kinds = next(iter(kinds.values())) if len(kinds) == 1 else None
        self.identities: Int64Array = np.array(list(map(id, matchers)), np.int64)
        self._references = [weakref.ref(matcher, self._forget) for matcher in matchers]

    def _forget(self, _reference: Any) -> None:
        """Another matcher may get the identity of one that is gone, and nobody may need its grammar any more."""
        self.identities, self.grammars, self.distinct, self._references = _NOBODY, [], [], []

    def contexts(self, busy: set[CompiledGrammar]) -> Int64Array:
        """The address of each grammar's ``ctx``, for kernels: int64[n].  In a busy one no state is known."""
        found = [NO_TABLES_AT if grammar in busy else grammar.context_address for grammar in self.distinct]
        addresses: Int64Array = np.array(found, np.int64)[self._numbers]
        return addresses


def list_matchers(matchers: Iterable[Matcher]) -> list[Matcher]:
    """The matchers of a batch.  Raises ConstrainError for what is no batch, such as one of them."""
    try:
        return list(matchers)
    except TypeError:
        raise ConstrainError(f"matchers must be a list of Matcher, not {type(matchers).__name__}") from None


def members_of(matchers: list[Matcher], threads: int = 1) -> Members:
    """What the matchers of a batch have that stays the same.

    Raises
    ------
    ConstrainError
        As :class:`Members`, or if ``threads`` is no number of threads.
    """
    if check_integer("threads", threads) < 1:
        raise ConstrainError(f"threads must be 1 or more, not {threads!r}")
    first: Any = matchers[0] if matchers else None
    known: Members | None = getattr(first, "_members", None)
    if known is None or not are_at(matchers, known.identities):
        known = Members(matchers)
        if matchers:
            first._members = known
    return known
