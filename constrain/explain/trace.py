"""A text, token by token: what was allowed at each, how long the mask took, and what the grammar was waiting for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from constrain.engine.compiled_grammar import CompiledGrammar
from constrain.engine.compiler import GrammarCompiler
from constrain.engine.expectations import in_words
from constrain.engine.matcher import Matcher
from constrain.engine.vocabulary.bitmasks import allocate_token_bitmask, ids_in_mask
from constrain.engine.vocabulary.vocabulary import NORMAL, Vocabulary
from constrain.errors import ConstrainError
from constrain.explain.allowed import Ids, Probabilities, RankedToken, first_ids, probabilities, rank
from constrain.grammar.grammar import Grammar
from constrain.tokenizers.base import Tokenizer

# What has to come next is shown as far as this.
_FORCED_SHOWN = 200

# What a tokenizer makes of a text is not asked to depend on what comes so many bytes later.
_FURTHER_BYTES = 1 << 16


@dataclass(frozen=True)
class Place:
    """What is allowed after some text.

    Attributes
    ----------
    allowed : int
        How many tokens.
    mask_seconds : float
        How long it took to find them, for the first time in this grammar.
    complete : bool
        Whether the text may end here.
    expected : str
        What the grammar waits for, in words.
    rules : tuple of str
        The rules (JSON Schema: places in the schema) that it waits in.
    forced : bytes
        What has to come next (at most 200 bytes of it).
    best : list of RankedToken
        Some of the tokens that are allowed.
    """

    allowed: int
    mask_seconds: float
    complete: bool
    expected: str
    rules: tuple[str, ...]
    forced: bytes
    best: list[RankedToken]


@dataclass(frozen=True)
class Step:
    """One token of the text.

    Attributes
    ----------
    token : int
    data : bytes
    before : Place
        What was allowed in its place.
    accepted : bool
        Whether it is; if not, it is the last step.
    forced : bool
        Whether there was no choice: nothing else could stand there.
    probability : float or None
        What a model says of it, among what is allowed; None without a model, or if it is not allowed.
    """

    token: int
    data: bytes
    before: Place
    accepted: bool
    forced: bool
    probability: float | None


@dataclass(frozen=True)
class Trace:
    """A text, token by token.

    Attributes
    ----------
    steps : list of Step
    end : Place
        What is allowed after the last step; where a token was refused, after the bytes of it that could be read.
    read : int
        How many bytes of the text the grammar could read.
    unread : bytes
        What comes after the last step.
    own_tokens : bool
        Whether the tokens are those of the tokenizer.  If not, since it does not keep the text as it is, they are
        always the longest that fits.
    """

    steps: list[Step] = field(default_factory=list)
    end: Place | None = None
    read: int = 0
    unread: bytes = b""
    own_tokens: bool = True

    @property
    def refused(self) -> bool:
        """Whether the grammar refuses the text somewhere in its last step."""
        return bool(self.steps) and not self.steps[-1].accepted

    @property
    def valid(self) -> bool:
        """Whether the text is valid from beginning to end."""
        return not self.refused and not self.unread and self.end is not None and self.end.complete


def trace_text(
    compiled: CompiledGrammar,
    tokenizer: Tokenizer,
    data: bytes,
    *,
    model: Any = None,
    most: int = 5000,
    best: int = 12,
    on_step: Callable[[], object] | None = None,
) -> Trace:
    """Walk through a text token by token, as far as the grammar allows.

    Parameters
    ----------
    compiled : CompiledGrammar
        Freshly compiled, or mask times are those of masks that are known.
    tokenizer : Tokenizer
        Of the vocabulary that it was compiled for.
    data : bytes
        The text.  It is tokenized as far as ``most`` tokens can reach, and a little further.
    model : has ``logits(ids)``, optional
        Ranks the tokens that are allowed.
    most : int
        How many tokens to walk over.
    best : int
        How many of the allowed tokens to name at each place.
    on_step : callable, optional
        Called after each token.

    Raises
    ------
    ConstrainError
        If the text has a byte that is in no token, or the model does not fit.
    """
    _load_kernels(compiled.vocabulary)
    tokens, own = tokens_of_text(compiled.vocabulary, tokenizer, _beginning(data, reach(compiled.vocabulary, most)))
    walk = _Walk(compiled, model, best, first_ids(tokenizer) if model is not None else [])
    steps: list[Step] = []
    read = 0
    for token in tokens[:most]:
        step = walk.step(token)
        steps.append(step)
        if on_step is not None:
            on_step()
        if not step.accepted:
            break
        read += len(step.data)
    shown = sum(len(step.data) for step in steps)
    if steps and not steps[-1].accepted:
        read += walk.read_part(steps[-1].data)
    return Trace(steps, walk.look()[0], read, data[shown:], own)


def reach(vocabulary: Vocabulary, most: int) -> int:
    """How many bytes of a text decide which its first ``most`` tokens are."""
    return most * max(map(len, vocabulary.tokens), default=0) + _FURTHER_BYTES


def _beginning(data: bytes, length: int) -> bytes:
    """No more than so many bytes of a text, and no part of a character."""
    while 0 < length < len(data) and data[length] & 0xC0 == 0x80:
        length -= 1
    return data[:length]


def tokens_of_text(vocabulary: Vocabulary, tokenizer: Tokenizer, data: bytes) -> tuple[Sequence[int], bool]:
    """The tokens of a text, and whether they are what the tokenizer makes of it.

    Where its tokens do not add up to the text (it normalizes, it puts a space in front, the text holds the name of
    a special token), the longest token that fits is taken at every place.
    """
    try:
        ids = tokenizer.encode(data.decode()).ids
    except (UnicodeDecodeError, ConstrainError):
        ids = []
    if tokenizer.strips_leading_space and ids:
        ids = _without_leading_space(vocabulary, ids)
    usable = all(token < vocabulary.size and vocabulary.kinds[token] == NORMAL for token in ids)
    if usable and b"".join(map(vocabulary.shown, ids)) == data:
        return ids, True
    by_bytes = {
        token: index
        for index, token in reversed(list(enumerate(vocabulary.tokens)))
        if token and vocabulary.kinds[index] == NORMAL
    }
    longest = max(map(len, by_bytes), default=0)
    found: list[int] = []
    at = 0
    while at < len(data):
        pieces = (data[at : at + length] for length in range(min(longest, len(data) - at), 0, -1))
        piece = next((piece for piece in pieces if piece in by_bytes), None)
        if piece is None:
            raise ConstrainError(f"byte {at} of the text (0x{data[at]:02x}) is in no token of this tokenizer")
        found.append(by_bytes[piece])
        at += len(piece)
    return found, False


def _without_leading_space(vocabulary: Vocabulary, ids: list[int]) -> list[int]:
    """Tokens without the space that SentencePiece puts in front of a text; as they are, if there is no such token."""
    first = vocabulary.tokens[ids[0]]
    if first == b" ":
        return ids[1:]
    rest = first.removeprefix(b" ")
    return [vocabulary.tokens.index(rest), *ids[1:]] if rest in vocabulary.tokens else ids


class _Walk:
    """Goes through a text, and looks around at every token."""

    def __init__(self, compiled: CompiledGrammar, model: Any, best: int, before: list[int]) -> None:
        self._vocabulary = compiled.vocabulary
        self._matcher = Matcher(compiled)
        self._mask = allocate_token_bitmask(1, self._vocabulary.size)
        self._model = model
        self._best = best
        self._ids = before

    def step(self, token: int) -> Step:
        """Look around, and go on with a token if it is allowed."""
        data = self._vocabulary.shown(token)
        place, ids, shares = self.look()
        accepted = self._matcher.accept_token(token)
        self._ids.append(token)
        only = place.allowed == 1 or (bool(data) and place.forced.startswith(data))
        share = float(shares[np.searchsorted(ids, token)]) if accepted and shares is not None else None
        return Step(token, data, place, accepted, accepted and only, share)

    def look(self) -> tuple[Place, Ids, Probabilities | None]:
        """What is allowed here, its tokens, and with a model their probabilities."""
        matcher = self._matcher
        start = perf_counter()
        matcher.fill_next_token_bitmask(self._mask)
        seconds = perf_counter() - start
        ids = ids_in_mask(self._mask[0])
        shares = None
        if self._model is not None and len(ids):
            shares = probabilities(ids, self._model.logits(self._ids))
        best = rank(ids, shares, self._best)
        expected = matcher.expected()
        rules = sorted({rule for each in expected for rule in each.rules})
        forced = matcher.forced_bytes()[:_FORCED_SHOWN]
        complete = matcher.is_accepting()
        return Place(len(ids), seconds, complete, in_words(expected), tuple(rules), forced, best), ids, shares

    def read_part(self, data: bytes) -> int:
        """Go on with as many bytes of a refused token as the grammar takes; returns how many."""
        for length in range(len(data) - 1, 0, -1):
            if self._matcher.accept_bytes(data[:length]):
                return length
        return 0


def _load_kernels(vocabulary: Vocabulary) -> None:
    """Have the machine code loaded, so that it is not counted as part of the first mask."""
    matcher = Matcher(GrammarCompiler(vocabulary).compile(Grammar.from_regex("a|[b-d]{3}")))
    matcher.fill_next_token_bitmask(allocate_token_bitmask(1, vocabulary.size))
