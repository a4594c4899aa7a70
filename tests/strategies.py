"""Hypothesis strategies: regular languages, grammars and vocabularies that are small and awkward.

Everything is over four bytes, two of which are the two halves of one character, so that strings,
tokens and lexemes meet often, and ill-formed UTF-8 comes up by itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from naive import NaiveRecognizer, VocabularyLike

from constrain.grammar.ir import GrammarBuilder, GrammarIR, Symbol
from constrain.grammar.languages.quotation import Quotation
from constrain.grammar.languages.regular import (
    EMPTY,
    EPSILON,
    Complement,
    Concat,
    Intersect,
    Literal,
    Regular,
    Repeat,
    Union,
    byte_set,
    complement,
    concat,
    intersect,
    repeat,
    union,
)
from constrain.grammar.languages.utf8 import ANY_CHAR, ANY_TEXT

ALPHABET = b"ab\xc3\xa9"
LENGTH = 3
"""Up to which length tests that list all strings list them."""

_PIECES = (b"a", b"b", "é".encode(), b"\xc3", b"\xa9", b"ab", b"ba", b"aa")


def strings_of_length_up_to(length: int) -> frozenset[bytes]:
    """Every string over the alphabet up to a length."""
    return frozenset(
        bytes(letters) for count in range(length + 1) for letters in itertools.product(ALPHABET, repeat=count)
    )


def words(max_pieces: int = 3) -> st.SearchStrategy[bytes]:
    """Short byte strings over the alphabet, the empty one included."""
    return st.lists(st.sampled_from(_PIECES), max_size=max_pieces).map(b"".join)


# -- regular languages -------------------------------------------------------------------------


def _bounds(lows: Sequence[int], extras: Sequence[int | None]) -> st.SearchStrategy[tuple[int, int | None]]:
    low, extra = st.sampled_from(lows), st.sampled_from(extras)
    return st.tuples(low, extra).map(lambda pair: (pair[0], None if pair[1] is None else pair[0] + pair[1]))


# Large counters only where nothing is repeated inside them: a counter in a counter costs their product.
_SMALL_BOUNDS = _bounds((0, 0, 1, 1, 2, 3), (None, 0, 1, 2))
_LARGE_BOUNDS = _bounds((0, 0, 0, 1, 1, 2, 3, 7, 40), (None, None, 0, 1, 2, 5, 90))


def _repeats(item: st.SearchStrategy[Regular]) -> st.SearchStrategy[Regular]:
    return st.tuples(item, _SMALL_BOUNDS, st.booleans()).map(
        lambda drawn: (repeat if drawn[2] else Repeat)(drawn[0], *drawn[1])
    )


def _many(item: st.SearchStrategy[Regular]) -> st.SearchStrategy[list[Regular]]:
    return st.lists(item, min_size=2, max_size=3)


def _extend(item: st.SearchStrategy[Regular]) -> st.SearchStrategy[Regular]:
    # Trees as the functions build them, and raw ones (nested, with repeated or empty parts) that are as legal.
    return st.one_of(
        _many(item).map(lambda parts: concat(*parts)),
        _many(item).map(lambda parts: Concat(tuple(parts))),
        _many(item).map(lambda parts: union(*parts)),
        _many(item).map(lambda parts: Union(tuple(parts))),
        _repeats(item),
        _many(item).map(lambda parts: intersect(*parts)),
        _many(item).map(lambda parts: Intersect(tuple(parts))),
        item.map(complement),
        item.map(Complement),
        item.map(lambda tree: intersect(ANY_TEXT, complement(tree))),
    )


def quotations() -> st.SearchStrategy[Regular]:
    """Texts of few pieces to be quoted from, which are often the same, or begin with each other."""
    pieces = st.lists(words().filter(len), min_size=1, max_size=6)
    whole = pieces.map(
        lambda parts: Quotation(b"".join(parts), b"".join(b"\1" + bytes(len(part) - 1) for part in parts))
    )
    begun = st.tuples(whole, st.sampled_from(ALPHABET)).map(lambda drawn: drawn[0].after(drawn[1]))
    return st.one_of(whole, begun)


def _leaves() -> st.SearchStrategy[Regular]:
    return st.one_of(
        words().map(Literal),
        st.sets(st.sampled_from(ALPHABET), min_size=1).map(byte_set),
        st.sampled_from((EMPTY, EPSILON, ANY_CHAR, ANY_TEXT)),
        quotations(),
    )


def regulars(max_leaves: int = 6) -> st.SearchStrategy[Regular]:
    """Trees of all kinds of node."""
    return st.recursive(_leaves(), _extend, max_leaves=max_leaves)


# -- grammars ----------------------------------------------------------------------------------


def _weighted(*choices: tuple[int, st.SearchStrategy[Regular]]) -> st.SearchStrategy[Regular]:
    """One of the strategies, each with its weight (``one_of`` gives every branch of a nested choice the same)."""
    slots = [strategy for weight, strategy in choices for _ in range(weight)]
    return st.integers(0, len(slots) - 1).flatmap(slots.__getitem__)


def _lexemes() -> st.SearchStrategy[Regular]:
    # Mostly plain ones: with too many rich lexemes nothing is ever forbidden.
    starred = st.tuples(st.sets(st.sampled_from(ALPHABET), min_size=1), _LARGE_BOUNDS).map(
        lambda drawn: repeat(byte_set(drawn[0]), *drawn[1])
    )
    piece, word = st.sampled_from(_PIECES).map(Literal), words().map(Literal)
    return _weighted((5, piece), (2, word), (2, starred), (2, regulars(3)))


_Shape = tuple[Sequence[int], ...]
# Productions of nonterminal X in terms of X (0), another nonterminal Y (1) and lexemes L (2), M (3).
_SHAPES: dict[str, _Shape] = {
    "left recursion": ((0, 2), (2,)),
    "left recursion over nothing": ((0, 2), ()),
    "right recursion": ((2, 0), (3,)),
    "right recursion over nothing": ((2, 0), ()),
    "both sides": ((0, 0), (2,)),
    "both sides and nothing": ((0, 2, 0), ()),
    "middle": ((2, 0, 3), ()),
    "middle of the same": ((2, 0, 2), (3,)),
    "hidden left recursion": ((1, 0, 2), (3,)),
    "hidden right recursion": ((2, 0, 1), (3,)),
    "cycle": ((0,), (2,)),
    "long cycle": ((1,), (2,)),
    "nothing": ((),),
    "unproductive": ((0, 2),),
    "pair": ((1, 1), (2, 3)),
    "separated list": ((2,), (0, 3, 2)),
}


def _exactly(counts: st.SearchStrategy[int], items: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    """As many items as drawn; plain lists are mostly as short as they may be."""
    return counts.flatmap(lambda count: st.lists(items, min_size=count, max_size=count))


@st.composite
def grammars(draw: st.DrawFn, max_nonterminals: int = 4) -> GrammarIR:
    """Grammars with every sort of recursion, nullable and unproductive rules, cycles, and lexemes to ignore.

    Their language may be empty.
    """
    builder = GrammarBuilder()
    lexemes = [builder.lexeme(tree) for tree in draw(_exactly(st.sampled_from((3, 2, 4, 1)), _lexemes()))]
    count = min(draw(st.sampled_from((2, 3, 1, 4))), max_nonterminals)
    nonterminals = [builder.nonterminal(f"n{index}") for index in range(count)]
    for left in nonterminals:
        for name in draw(_exactly(st.sampled_from((1, 2)), st.sampled_from(sorted(_SHAPES)))):
            other = draw(st.sampled_from(nonterminals))
            first, second = draw(st.sampled_from(lexemes)), draw(st.sampled_from(lexemes))
            symbols = (left, other, first, second)
            for shape in _SHAPES[name]:
                builder.add(left, [symbols[index] for index in shape])
        for right in draw(_exactly(st.sampled_from((1, 0, 2)), _right_hand_sides(lexemes, nonterminals))):
            builder.add(left, right)
    ignore: list[Symbol] = []
    if draw(st.booleans()):
        extra = [builder.lexeme(tree) for tree in draw(st.lists(_lexemes(), max_size=1))]
        ignore = draw(st.lists(st.sampled_from(lexemes + extra), min_size=1, max_size=2, unique=True))
    return builder.finish(nonterminals[0], ignore=ignore)


def viable_grammars(max_nonterminals: int = 4) -> st.SearchStrategy[GrammarIR]:
    """Those of :func:`grammars` whose language has a string."""
    return grammars(max_nonterminals).filter(lambda ir: NaiveRecognizer(ir).is_viable)


def _right_hand_sides(lexemes: list[Symbol], nonterminals: list[Symbol]) -> st.SearchStrategy[list[Symbol]]:
    return st.lists(st.sampled_from(lexemes) | st.sampled_from(lexemes) | st.sampled_from(nonterminals), max_size=3)


# -- vocabularies ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tokens:
    """The arguments of ``constrain.Vocabulary``."""

    tokens: list[bytes]
    eos_ids: list[int]
    special_ids: list[int]

    def as_arguments(self) -> dict[str, Any]:
        return {"tokens": self.tokens, "eos_ids": self.eos_ids, "special_ids": self.special_ids}


@st.composite
def vocabularies(draw: st.DrawFn, complete: bool = False) -> Tokens:
    """Duplicates, empty tokens, special tokens with the bytes of ordinary ones, several EOS ids, ill-formed UTF-8.

    ``complete``: every byte of the alphabet is a token, so that whatever is viable can be written.
    """
    tokens = draw(_exactly(st.sampled_from((20, 10, 40, 3)), words(4)))
    complete = complete or draw(st.booleans())
    special = draw(st.lists(words(2) | st.just(b"<s>"), max_size=3))
    eos = draw(st.lists(words(1) | st.just(b"</s>"), min_size=1, max_size=3))
    singles = [bytes((byte,)) for byte in ALPHABET] if complete else []
    kinds = [*((token, "") for token in tokens + singles), *((token, "special") for token in special)]
    kinds += [(token, "eos") for token in eos]
    kinds = draw(st.permutations(kinds))
    eos_ids = [index for index, (_, kind) in enumerate(kinds) if kind == "eos"]
    special_ids = [index for index, (_, kind) in enumerate(kinds) if kind == "special"]
    # Tokenizer files list EOS among the special tokens or leave it out; both are usual.
    if draw(st.booleans()):
        special_ids += eos_ids
    return Tokens([token for token, _ in kinds], eos_ids, special_ids)


def walks(max_size: int = 14) -> st.SearchStrategy[list[int]]:
    """Choices for a walk, to be taken with :func:`step`."""
    return st.lists(st.integers(0, 999), min_size=max_size // 2, max_size=max_size)


def step(choice: int, allowed: set[int], vocabulary: VocabularyLike) -> int | None:
    """The token that a walk takes next (never EOS, rarely an empty one), None if there is none."""
    onward = sorted(allowed.difference(vocabulary.eos_ids))
    longer = [token for token in onward if vocabulary.tokens[token]]
    onward = onward if not longer or choice % 8 == 7 else longer
    return onward[choice // 8 % len(onward)] if onward else None
