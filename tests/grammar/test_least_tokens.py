"""What a text of a language may begin with, of which so much is left: against all texts of small languages."""

import itertools
import random

import pytest

import constrain
from constrain.grammar.ir import GrammarBuilder
from constrain.grammar.languages.derivatives import Automaton
from constrain.grammar.languages.regular import EMPTY, Literal, byte_set, complement, concat, intersect, repeat, union
from constrain.grammar.least_tokens import _Rests, without_least, write_least
from constrain.grammar.regex import regex_language

LETTERS = b"ab"


def language(rng, depth):
    """A random finite language."""
    kind = rng.random()
    if depth == 0 or kind < 0.2:
        return rng.choice(
            [Literal(b""), Literal(b"a"), Literal(b"ab"), Literal(b"bba"), byte_set(LETTERS), byte_set(b"b")]
        )
    if kind < 0.45:
        return concat(*(language(rng, depth - 1) for _ in range(rng.randint(2, 3))))
    if kind < 0.65:
        return union(*(language(rng, depth - 1) for _ in range(2)))
    if kind < 0.85:
        low = rng.randint(0, 2)
        return repeat(language(rng, depth - 1), low, low + rng.randint(0, 2))
    all_texts = repeat(byte_set(LETTERS), 0, 6)
    return intersect(language(rng, depth - 1), all_texts, complement(language(rng, depth - 1)))


def texts_of(language, most):
    automaton = Automaton(language)
    everything = (bytes(each) for length in range(most + 1) for each in itertools.product(LETTERS, repeat=length))
    return [text for text in everything if automaton.matches(text)]


def refuse(reason):
    return constrain.GrammarError(reason)


@pytest.mark.parametrize("seed", range(120))
def test_beginnings_of_texts_of_which_so_much_is_left(seed):
    rng = random.Random(seed)
    rests = _Rests(refuse)
    some = language(rng, 3)
    while rests.longest(some) > 9:
        some = language(rng, 3)
    longest, texts = rests.longest(some), texts_of(some, 9)
    assert longest == max(map(len, texts), default=float("-inf"))
    assert rests.shortest(some) == min(map(len, texts), default=float("inf"))
    for left in range(6):
        expected = {text[:end] for text in texts for end in range(len(text) - left + 1)}
        found = rests.begins(some, left)
        assert set(texts_of(found, 9)) == expected, (some, left)
    # From behind any byte of a text the shortest way to an end is no longer than is said.
    for text in texts:
        for end in range(1, len(text) + 1):
            assert min(len(other) - end for other in texts if other.startswith(text[:end])) <= rests.way_out(some)


@pytest.mark.parametrize("pattern", ["a*", "(a|b)*ab", "a*b{0,3}", "(ab*){2,4}", "a+|b{1,2}"])
def test_endless_texts(pattern):
    some = regex_language(pattern)
    rests = _Rests(refuse)
    assert rests.longest(some) == float("inf")
    texts = texts_of(some, 9)
    for left in (1, 3, float("inf")):
        expected = {
            text[:end] for text in texts for end in range(len(text) + 1) if end <= 4 and len(text) - end >= min(left, 4)
        }
        assert set(texts_of(rests.begins(some, left), 4)) >= expected
    assert texts_of(rests.begins(union(regex_language("b{1,2}"), EMPTY), 3), 4) == []


def test_beginnings_that_are_the_same_are_worked_out_once():
    rests = _Rests(refuse)
    no_end = intersect(regex_language("(a|b)*"), complement(regex_language("(a|b)*bb(a|b)*")))
    assert rests.begins(no_end, 4000) is rests.begins(no_end, 3999)
    assert rests.begins(concat(no_end, Literal(b"bb")), 4000) == rests.begins(concat(no_end, Literal(b"bb")), 3999)


def test_large_automata_and_deep_rules_are_refused():
    builder = GrammarBuilder()
    rule = builder.nonterminal()
    large = intersect(regex_language("(a|b)*a(a|b){12}"), complement(regex_language("b*")))
    with pytest.raises(constrain.GrammarError, match="an automaton of more than 200 states"):
        write_least(builder, rule, large, 3, refuse)
    deep = byte_set(b"a")
    for _ in range(5000):
        deep = union(concat(byte_set(b"b"), deep), Literal(b"a"))
    with pytest.raises(constrain.GrammarError, match="nested too deeply"):
        write_least(builder, rule, deep, 3, refuse)


def test_the_grammar_without_gates():
    grammar = constrain.Grammar.from_lark('start: r ";"\nr[min_tokens=3]: /[ab]+/')
    plain = without_least(grammar.ir)
    rule = grammar.ir.token_limits[0].symbol
    assert [right for left, right in plain.productions if left == rule] == [
        (right[-1],)
        for left, right in grammar.ir.productions
        if left == rule and ~right[-1] not in grammar.ir.token_lexemes
    ]
    assert without_least(plain) == plain
