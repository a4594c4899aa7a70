"""U-labels, the labels of internationalized names, as an automaton over kinds of characters (RFC 5891 to 5893).

What RFC 5892 says about characters in context and RFC 5893 about direction needs some memory of what came before, but
little: :func:`label_automaton` has about a hundred states.  As a regular expression it would have to be an intersection
of a dozen, whose derivatives are far too many.

What is left out: that a label's Punycode has at most 63 octets, and that a label is in normal form C.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from constrain.grammar.json_schema.lexical.idn.table import PACKED, RUNS, TRAITS
from constrain.grammar.languages.utf8 import CodePoints, holds
from constrain.unicode_categories import spans_by_value, unpack_runs

_L, _RTL, _AN, _EN, _NSM, _OTHER = range(6)
_NO_JOINING, _DUAL, _LEFT, _RIGHT, _TRANSPARENT = range(5)
_GREEK, _HEBREW, _KANA = 1, 2, 3

_HYPHEN, _SMALL_L, _MIDDLE_DOT, _KERAIA, _GERESH, _KANA_DOT, _NON_JOINER, _JOINER, _ARABIC, _EXTENDED = range(1, 11)

# Characters that may only stand in the right company (RFC 5892, appendix A), and those that are that company.
_SPECIAL: tuple[tuple[int, int, int], ...] = (
    *((0xB7, 0xB7, _MIDDLE_DOT), (0x375, 0x375, _KERAIA)),
    *((0x5F3, 0x5F4, _GERESH), (0x660, 0x669, _ARABIC), (0x6F0, 0x6F9, _EXTENDED), (0x200C, 0x200C, _NON_JOINER)),
    *((0x200D, 0x200D, _JOINER), (0x30FB, 0x30FB, _KANA_DOT)),
)


class Kind(NamedTuple):
    """Characters that the rules do not tell apart."""

    bidi: int
    joining: int = _NO_JOINING
    script: int = 0
    is_mark: int = 0
    is_virama: int = 0
    special: int = 0
    is_ascii: bool = False


_ASCII = (
    (Kind(_L, is_ascii=True), ((0x61, 0x6B), (0x6D, 0x7A))),
    (Kind(_L, special=_SMALL_L, is_ascii=True), ((0x6C, 0x6C),)),
    (Kind(_EN, is_ascii=True), ((0x30, 0x39),)),
    (Kind(_OTHER, special=_HYPHEN, is_ascii=True), ((0x2D, 0x2D),)),
)


@lru_cache(maxsize=1)
def kinds() -> dict[Kind, CodePoints]:
    """The code points of each kind that a U-label may hold."""
    found: dict[Kind, CodePoints] = dict(_ASCII)
    table = unpack_runs(PACKED, RUNS).astype(np.uint16)
    for first, last, special in _SPECIAL:
        table[first : last + 1] |= special << 8
    for value, points in spans_by_value(table).items():
        if value:
            found[Kind(*TRAITS[(value & 0xFF) - 1], value >> 8)] = points
    return found


class _State(NamedTuple):
    """What matters of the characters so far."""

    length: int = 0
    """How many, up to four."""
    third_is_hyphen: bool = False
    is_wide: bool = False
    """Whether there was one beyond ASCII."""
    last: int = 0
    """What the last one is, as far as the next one asks: a hyphen, an l, a virama or Hebrew."""
    needs: int = 0
    """What must come next: an l, a Greek letter, or (after transparent ones) one that joins to its right."""
    joins: bool = False
    """Whether the last that is not transparent joins to its left."""
    kana: int = 0
    """A katakana middle dot is without kana (1), or there is kana (2)."""
    digits: int = 0
    """Arabic-Indic digits, or extended ones."""
    direction: int = -1
    """In names with a right-to-left label: that of this label."""
    ends: bool = True
    """Whether the label may end here, as to its direction."""
    numbers: int = 0
    """In a right-to-left label: European numbers, or Arabic ones."""


_LAST_HYPHEN, _LAST_L, _LAST_VIRAMA, _LAST_HEBREW = 1, 2, 3, 4
_NEEDS_L, _NEEDS_GREEK, _NEEDS_JOINING = 1, 2, 3


def _step(state: _State, kind: Kind, bidi: bool) -> _State | None:
    """The state after a character; None if it must not come here."""
    special = kind.special
    if state.length == 0 and (kind.is_mark or special == _HYPHEN):
        return None
    if state.length == 3 and state.third_is_hyphen and special == _HYPHEN:
        return None
    needs = state.needs
    if needs == _NEEDS_L and special != _SMALL_L:
        return None
    if needs == _NEEDS_GREEK and kind.script != _GREEK:
        return None
    if needs == _NEEDS_JOINING and kind.joining not in (_TRANSPARENT, _DUAL, _RIGHT):
        return None
    needs = _NEEDS_JOINING if needs == _NEEDS_JOINING and kind.joining == _TRANSPARENT else 0
    if special == _MIDDLE_DOT:
        if state.last != _LAST_L:
            return None
        needs = _NEEDS_L
    elif special == _KERAIA:
        needs = _NEEDS_GREEK
    elif special == _GERESH:
        if state.last != _LAST_HEBREW:
            return None
    elif special == _JOINER:
        if state.last != _LAST_VIRAMA:
            return None
    elif special == _NON_JOINER and state.last != _LAST_VIRAMA:
        if not state.joins:
            return None
        needs = _NEEDS_JOINING
    digits = state.digits
    if special in (_ARABIC, _EXTENDED):
        if digits not in (0, special):
            return None
        digits = special
    kana = 2 if kind.script == _KANA else max(state.kana, 1) if special == _KANA_DOT else state.kana
    joins = state.joins if kind.joining == _TRANSPARENT else kind.joining in (_DUAL, _LEFT)
    last = 0
    if special == _HYPHEN:
        last = _LAST_HYPHEN
    elif special == _SMALL_L:
        last = _LAST_L
    elif kind.is_virama:
        last = _LAST_VIRAMA
    elif kind.script == _HEBREW:
        last = _LAST_HEBREW
    direction, ends, numbers = state.direction, state.ends, state.numbers
    if not bidi:
        if kind.bidi in (_RTL, _AN):
            return None
    else:
        if direction < 0:
            if kind.bidi not in (_L, _RTL):
                return None
            direction = kind.bidi
        if kind.bidi in ((_RTL, _AN) if direction == _L else (_L,)):
            return None
        if direction == _RTL and kind.bidi in (_EN, _AN):
            if numbers not in (0, kind.bidi):
                return None
            numbers = kind.bidi
        if kind.bidi != _NSM:
            ends = kind.bidi in ((_L, _EN) if direction == _L else (_RTL, _EN, _AN))
    return _State(
        min(state.length + 1, 4),
        state.length == 2 and special == _HYPHEN,
        state.is_wide or not kind.is_ascii,
        *(last, needs, joins, kana, digits, direction, ends, numbers),
    )


def _is_final(state: _State) -> bool:
    return state.is_wide and state.last != _LAST_HYPHEN and not state.needs and state.kana != 1 and state.ends


class Automaton(NamedTuple):
    """States are numbers, 0 is the first; ``steps[state][kind]`` is the next one."""

    steps: tuple[dict[Kind, int], ...]
    finals: frozenset[int]


@lru_cache(maxsize=2)
def label_automaton(bidi: bool) -> Automaton:
    """The least automaton of U-labels: of names without right-to-left labels, or as the Bidi rule wants them."""
    alphabet = list(kinds())
    numbers = {_State(): 0}
    order = [_State()]
    rows: list[list[int]] = []
    for state in order:
        row = []
        for kind in alphabet:
            after = _step(state, kind, bidi)
            if after is None:
                row.append(-1)
                continue
            if after not in numbers:
                numbers[after] = len(order)
                order.append(after)
            row.append(numbers[after])
        rows.append(row)
    # Moore's refinement: states stay together as long as nothing tells them apart.
    groups = [int(_is_final(state)) for state in order]
    count = 0
    while count != len(set(groups)):
        count = len(set(groups))
        signatures: dict[tuple[int, ...], int] = {}
        refined = []
        for index, row in enumerate(rows):
            signature = (groups[index], *[-1 if after < 0 else groups[after] for after in row])
            refined.append(signatures.setdefault(signature, len(signatures)))
        groups = refined
    first: dict[int, int] = {}
    for index, group in enumerate(groups):
        first.setdefault(group, index)
    names = {group: number for number, group in enumerate(first)}
    steps = tuple(
        {kind: names[groups[after]] for kind, after in zip(alphabet, rows[index], strict=True) if after >= 0}
        for index in first.values()
    )
    return Automaton(steps, frozenset(names[group] for group, index in first.items() if _is_final(order[index])))


def is_u_label(label: str, bidi: bool) -> bool:
    """Whether a text is such a label."""
    automaton, state = label_automaton(bidi), 0
    for character in label:
        kind = kind_of(ord(character))
        after = None if kind is None else automaton.steps[state].get(kind)
        if after is None:
            return False
        state = after
    return state in automaton.finals


@lru_cache(maxsize=10_000)
def kind_of(point: int) -> Kind | None:
    """The kind of a code point; None if no label may hold it."""
    return next((kind for kind, points in kinds().items() if holds(points, point)), None)
