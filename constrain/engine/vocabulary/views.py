"""Views of a vocabulary: vocabularies with the same tokens, some of which stand for something else there.

The last few of a vocabulary are kept with it, since a trie of 128,000 tokens takes a third of a second.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from constrain.engine.vocabulary.vocabulary import Vocabulary
from constrain.forking import call_in_child

_MOST_VIEWS = 4

_lock = threading.Lock()

View = TypeVar("View", bound=Vocabulary)


@call_in_child
def _renew_lock() -> None:
    """After a fork nobody releases a lock that another thread held."""
    global _lock
    _lock = threading.Lock()


def kept_view(plain: Vocabulary, key: Hashable, make: Callable[[], View]) -> View:
    """The view of a vocabulary under a key, made if it is not there."""
    with _lock:
        view = plain.views.get(key)
    if view is None:
        view = make()
    with _lock:
        # Another thread may have made one meanwhile.
        view = plain.views.setdefault(key, view)
        plain.views.move_to_end(key)
        while len(plain.views) > _MOST_VIEWS:
            plain.views.popitem(last=False)
    return view  # type: ignore[return-value]


def with_more_ends(plain: Vocabulary, tokens: Iterable[int]) -> Vocabulary:
    """The view of a vocabulary in which some ordinary tokens are end tokens too, and no text.

    In grammars they have no name, so a grammar names in it what it names in ``plain``.
    """
    key = frozenset(tokens)

    def make() -> Vocabulary:
        view = Vocabulary(plain.tokens, {*plain.eos_ids, *key}, plain.special_ids)
        view.names, view.tokenizer = plain.names, plain.tokenizer
        return view

    return kept_view(plain, ("ends", key), make)
