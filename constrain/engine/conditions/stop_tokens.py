"""Stop tokens: other tokens than those of the vocabulary that end a text, for one matcher.

A stop token is allowed exactly where the text is complete, whatever its bytes are: it is never a piece of text.  Only
where a grammar names a special token as a part of the text may it stand there too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from constrain.engine.conditions.protocol import Walk
from constrain.engine.history import Place
from constrain.engine.parser.companions import ALWAYS_ASKS, Int64Array
from constrain.engine.vocabulary.bitmasks import Bitmask, allow, forbid
from constrain.engine.vocabulary.vocabulary import END, NORMAL, SPECIAL, Vocabulary


class StopTokens:
    """The condition that some tokens end the text, and no others.

    Parameters
    ----------
    vocabulary : Vocabulary
        Of the compiled grammar.
    ids : iterable of int
        The tokens, which are in the vocabulary; may be none, and then the text never ends.

    Attributes
    ----------
    kinds : bytes
        For each token what it is to the matcher: NORMAL, SPECIAL or END.
    ids : tuple of int
    """

    asks_always = True
    note = 1
    companion: Int64Array = ALWAYS_ASKS

    def __init__(self, vocabulary: Vocabulary, ids: Iterable[int]) -> None:
        self._stops = frozenset(ids)
        self.ids = tuple(sorted(self._stops))
        self._others = frozenset(vocabulary.eos_ids) - self._stops
        self._spelled = vocabulary.spelled_ids
        kinds = bytearray(vocabulary.kind_bytes)
        for token in self._others:
            kinds[token] = NORMAL if token in self._spelled else SPECIAL
        for token in self._stops:
            kinds[token] = END
        self.kinds = bytes(kinds)

    def push(self, cursor: Walk, step: int | bytes, behind: Place, word: int) -> bool:
        # A token that ends the text is no step of the grammar, and special ones are not asked about.
        return True

    def restrict(self, cursor: Any, out: Bitmask, index: int) -> None:
        row = out[index]
        ends = cursor.compiled.accepts(cursor)
        for token in self._stops:
            if ends:
                allow(row, token)
            elif token not in self._spelled:
                forbid(row, token)
        for token in self._others:
            # Where the text may end, the mask does not tell whether the token stands for that alone.
            if token not in self._spelled or (ends and not cursor.fork().accept_token(token)):
                forbid(row, token)

    def rewind(self, steps: int) -> None:
        pass

    def copy(self) -> Any:
        return self
