"""What a compiler keeps: the most recently used grammars that fit, whatever they have grown to."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest

from constrain.engine.grammar_cache import GrammarCache


class Sized:
    """A grammar of some size, which notes how often it is weighed."""

    def __init__(self, size):
        self.size = size
        self.weighed = 0

    @property
    def nbytes(self):
        self.weighed += 1
        return self.size


def test_a_naive_cache_keeps_the_same():
    rng = random.Random(5)
    for limit in (0, 10, 60):
        cache, model = GrammarCache(), {}
        for _ in range(400):
            key = rng.randrange(12)
            found = cache.get(key)
            assert found is model.get(key)
            if found is not None:
                model[key] = model.pop(key)
                found.size = rng.randrange(1, 20)
            else:
                grammar = Sized(rng.randrange(1, 20))
                assert cache.keep(key, grammar, limit) is grammar
                model[key] = grammar
                while sum(each.size for each in model.values()) > limit and len(model) > 1:
                    del model[next(iter(model))]
            assert cache.grammars() == list(model.values())
            assert len(cache) == len(model)


def test_what_was_there_before_stays():
    cache = GrammarCache()
    first = Sized(1)
    cache.keep("a", first, 10)
    cache.keep("b", Sized(1), 10)
    assert cache.keep("a", Sized(1), 10) is first
    assert cache.grammars()[-1] is first


def test_few_are_weighed_each_time_and_all_in_turn():
    cache = GrammarCache()
    grammars = [Sized(1) for _ in range(500)]
    for key, grammar in enumerate(grammars):
        cache.keep(key, grammar, 1000)
    assert sum(each.weighed for each in grammars) <= 16 * 500
    # They grow without a word, and are found to have before others come.
    for grammar in grammars:
        grammar.size = 3
    for key in range(500, 540):
        cache.keep(key, Sized(1), 1000)
    assert sum(each.size for each in cache.grammars()) <= 1000
    assert len(cache) > 300


def test_with_much_room_hardly_any_are_weighed():
    cache = GrammarCache()
    grammars = [Sized(1) for _ in range(100)]
    for key, grammar in enumerate(grammars):
        cache.keep(key, grammar, 1000)
    assert sum(each.weighed for each in grammars) <= 2 * 100
    for grammar in grammars:
        grammar.size = 20
    for key in range(100, 200):
        cache.keep(key, Sized(1), 1000)
    assert cache.nbytes == sum(each.size for each in cache.grammars()) <= 1000


def test_an_exception_leaves_a_cache():
    cache = GrammarCache()

    class Interrupted(SimpleNamespace):
        @property
        def nbytes(self):
            raise KeyboardInterrupt

    cache.keep("a", Sized(5), 8)
    with pytest.raises(KeyboardInterrupt):
        cache.keep("b", Interrupted(), 8)
    del cache._grammars["b"]  # as where the exception comes before it is there
    cache.keep("c", Sized(5), 8)
    assert len(cache) == 1
    assert cache.nbytes == 5
    cache.keep("d", Sized(3), 8)
    assert len(cache) == 2
