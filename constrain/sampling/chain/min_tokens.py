"""No end before a number of tokens, or no end at all."""

from __future__ import annotations

from collections.abc import Iterable

from constrain.arguments import check_integer
from constrain.errors import ConstrainError
from constrain.sampling.chain.logit_bias import without
from constrain.sampling.chain.step import Candidates, Situation, Step


class MinTokens(Step):
    """The tokens that end a text are ruled out until ``count`` tokens were generated; None: always (``ignore_eos``).

    Where a grammar allows nothing but the end, the text ends.  transformers has it as
    ``MinNewTokensLengthLogitsProcessor``, llama.cpp as ``--ignore-eos``.
    """

    def __init__(self, count: int | None, eos_ids: Iterable[int]) -> None:
        if count is not None and check_integer("min_tokens", count) < 0:
            raise ConstrainError(f"min_tokens must be 0 or more, not {count}")
        self._count = count
        self._ends = frozenset(check_integer("eos_ids: an id", token) for token in eos_ids)

    def apply(self, candidates: Candidates, situation: Situation) -> Candidates:
        if self._count is not None and situation.generated >= self._count:
            return candidates
        return without(candidates, self._ends)
