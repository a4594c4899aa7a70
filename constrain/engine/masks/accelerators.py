"""Accelerators: what makes masks quicker and changes none; and the door through which they are asked.

The plain engine makes every lexer mask by one walk over the trie (lexer_masks.py) and every step by one byte.  It is
complete and exact.  An accelerator, a file in masks/fast/, knows something about some lexer states, subtrees of the
trie or tokens that spares it work.  All keep one contract:

* It is a kernel ``int64(ctx, a, b)`` behind a link (storage/links.py).  Nothing imports it in order to call it.
* It gives the tokens and boundaries that the plain engine would, or it answers NOT_MINE.
* If it answers NOT_MINE, FAIL or LIMIT it has added no token and no boundary.
* Where it is switched off, or has not been loaded, a kernel that always answers NOT_MINE stands behind its link.

So each can be switched off by itself, for one compiled grammar: its tables have addresses of their own.  By default all
are on.  With the environment variable ``CONSTRAIN_PLAIN=1`` none is, and none is imported.

There are two kinds, by what they are asked:

* for the mask of a lexer state, ``(ctx, lexer_state, 0)``: the door asks them in the order of their links, and takes
  the first answer.  0 or more says that the record of the mask is written;
* for a part of a walk: the tokens and boundaries of a subtree of the trie, or what follows a boundary.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, NamedTuple

from constrain.engine.automata.lexer_states import NO_DENSE, NOT_SPLIT
from constrain.engine.masks.lexer_masks import walk_lexer_mask
from constrain.engine.storage.header import RESULT2
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import (
    END_MASK_LINKS,
    F_ALONG_WORDS,
    F_BESIDE,
    F_BOUNDED,
    F_LEXER_MASK,
    F_MASK_BY_CORE,
    F_NEIGHBOUR,
    F_OFFER,
    F_RELATIVE,
    F_SELF_LOOP,
    F_SHARED_MASK,
    F_STAR_CLOSURE,
    FIRST_MASK_LINK,
    far_call,
    far_entry,
)
from constrain.engine.storage.schemas import lexer_masks
from constrain.engine.storage.statuses import NOT_MINE
from constrain.errors import ConstrainError
from constrain.kernels.language import int64

if TYPE_CHECKING:
    from constrain.engine.vocabulary.vocabulary import Vocabulary

PLAIN_VARIABLE = "CONSTRAIN_PLAIN"
"""The environment variable that switches all accelerators off where nothing else is said."""


class Accelerator(NamedTuple):
    """An accelerator, and how it is switched off."""

    name: str
    """Also of its file in masks/fast/."""
    links: tuple[int, ...]
    """The links behind which its kernels stand."""
    gives: str
    """What it answers."""


ACCELERATORS = (
    Accelerator(
        "shared_masks",
        (F_SHARED_MASK, F_OFFER),
        "the mask that another grammar has made for the same expressions",
    ),
    Accelerator(
        "relative_masks",
        (F_RELATIVE, F_BOUNDED, F_ALONG_WORDS, F_BESIDE),
        "the mask of a state that another one agrees with but for few trie nodes",
    ),
    Accelerator(
        "star_closures",
        (F_STAR_CLOSURE,),
        "the mask of a state that repeats a character, by the tokens made of such characters",
    ),
    Accelerator(
        "neighbours",
        (F_NEIGHBOUR,),
        "the mask of a state with which another one, whose mask is known, is soon the same",
    ),
    Accelerator(
        "self_loops",
        (F_SELF_LOOP,),
        "the tokens of a subtree over which a lexer state stays what it is, and its boundaries as one",
    ),
    Accelerator(
        "core_masks",
        (F_MASK_BY_CORE,),
        "the mask of a state, put together of what is known for all states with the same cores",
    ),
)
NAMES = tuple(accelerator.name for accelerator in ACCELERATORS)

_FOLDER = "constrain.engine.masks.fast"
_loaded: dict[str, Any] = {}


def names_in_use(names: Collection[str] | None) -> tuple[str, ...]:
    """The accelerators that are on, in the order of the registry, where somebody has asked for ``names``.

    None asks for all of them, or with ``CONSTRAIN_PLAIN=1`` for none.

    Raises
    ------
    ConstrainError
        If there is no accelerator of some name.
    """
    if names is None:
        return () if os.environ.get(PLAIN_VARIABLE, "") not in ("", "0") else NAMES
    if names is NAMES:
        return NAMES
    if isinstance(names, str):
        raise ConstrainError(f"accelerators are a collection of names, not the string {names!r}")
    unknown = sorted(set(names) - set(NAMES))
    if unknown:
        raise ConstrainError(f"unknown accelerators: {', '.join(unknown)}; there are {', '.join(NAMES)}")
    return tuple(name for name in NAMES if name in names)


def load(*names: str) -> None:
    """Load accelerators: their kernels stand behind their links then, in tables that are made afterwards."""
    for name in names:
        if name not in _loaded:
            _loaded[name] = importlib.import_module(f"{_FOLDER}.{name}")


@functools.cache
def links_without(names: tuple[str, ...]) -> tuple[int, ...]:
    """Load the accelerators ``names``; returns the links of all others."""
    load(*names)
    return tuple(link for one in ACCELERATORS if one.name not in names for link in one.links)


def publish(vocabulary: Vocabulary, run: Callable[..., int], lexer_state: int) -> None:
    """Share the mask of a lexer state that fast/shared_masks.py has noted as worth it (NEW_MASK)."""
    _loaded["shared_masks"].publish(vocabulary, run, lexer_state)


@njit_inner(RESULT2)
def lexer_mask(ctx, lexer_state, _unused):
    """Make the mask of a lexer state unless it is made; returns 0, FAIL or LIMIT.

    This is the door: accelerators are asked in the order of their links, and then the plain walk is made.
    """
    if lexer_masks(ctx)[lexer_state].dense != NOT_SPLIT:
        return int64(0)
    for link in range(FIRST_MASK_LINK, END_MASK_LINKS):
        status = far_call(ctx, link, lexer_state, 0)
        if status != NOT_MINE:
            return min(status, int64(0))
    status = walk_lexer_mask(ctx, lexer_state)
    if status == 0 and lexer_masks(ctx)[lexer_state].dense != NO_DENSE:
        far_call(ctx, F_OFFER, lexer_state, 1)
    return status


far_entry(F_LEXER_MASK, lexer_mask)

# Kernels are compiled when a process starts, not when a grammar comes.
links_without(names_in_use(None))
