"""The naive recogniser against a second oracle that shares nothing with it: sets of strings.

The oracle lists every string of a small grammar up to a length, bottom up, as a least fixed point.
"""

from __future__ import annotations

from hypothesis import given, settings
from naive import NaiveRecognizer
from naive_completion import Completer
from naive_regular import is_viable_prefix, matches
from strategies import LENGTH, grammars, regulars, strings_of_length_up_to

from constrain.grammar.ir import GrammarBuilder, GrammarIR
from constrain.grammar.languages.regular import (
    EMPTY,
    EPSILON,
    ByteSet,
    Complement,
    Concat,
    Empty,
    Intersect,
    Literal,
    Regular,
    Repeat,
    Union,
    complement,
    literal,
)

UNIVERSE = strings_of_length_up_to(LENGTH)


def joined(left: frozenset[bytes], right: frozenset[bytes]) -> frozenset[bytes]:
    return frozenset(a + b for a in left for b in right if len(a) + len(b) <= LENGTH)


def language(tree: Regular) -> frozenset[bytes]:
    """Every string of a regular language up to ``LENGTH`` bytes of the test alphabet."""
    if isinstance(tree, Empty):
        return frozenset()
    if isinstance(tree, Literal):
        return UNIVERSE & {tree.data}
    if isinstance(tree, ByteSet):
        return frozenset(text for text in UNIVERSE if len(text) == 1 and tree.bits >> text[0] & 1)
    if isinstance(tree, Concat):
        result = frozenset((b"",))
        for part in tree.parts:
            result = joined(result, language(part))
        return result
    if isinstance(tree, Union):
        return frozenset().union(*map(language, tree.parts))
    if isinstance(tree, Intersect):
        return UNIVERSE.intersection(*map(language, tree.parts))
    if isinstance(tree, Complement):
        return UNIVERSE - language(tree.item)
    assert isinstance(tree, Repeat)
    item = language(tree.item)
    power, result, count = frozenset((b"",)), frozenset(), 0
    seen: set[frozenset[bytes]] = set()
    while tree.high is None or count <= tree.high:
        if count >= tree.low:
            # Powers of a set of bounded strings repeat; from a repeated one on nothing new comes.
            if power in seen:
                break
            seen.add(power)
            result |= power
        power, count = joined(power, item), count + 1
    return result


def strings(ir: GrammarIR) -> frozenset[bytes]:
    """Every string of a grammar up to ``LENGTH`` bytes of the test alphabet."""
    skip = frozenset((b"",))
    while True:
        longer = skip.union(*(joined(skip, language(ir.lexemes[lexeme])) for lexeme in ir.ignore))
        if longer == skip:
            break
        skip = longer
    lexemes = [joined(joined(skip, language(lexeme)), skip) for lexeme in ir.lexemes]
    derived: list[frozenset[bytes]] = [frozenset()] * len(ir.nonterminal_names)
    changed = True
    while changed:
        changed = False
        for left, right in ir.productions:
            texts = frozenset((b"",))
            for symbol in right:
                texts = joined(texts, derived[symbol] if symbol >= 0 else lexemes[~symbol])
            if not texts <= derived[left]:
                derived[left] |= texts
                changed = True
    return joined(joined(skip, derived[ir.start]), skip)


@given(regulars())
def test_derivatives_equal_the_listed_language(tree: Regular) -> None:
    expected = language(tree)
    assert expected == {text for text in UNIVERSE if matches(tree, text)}
    for text in expected:
        assert all(is_viable_prefix(tree, text[:end]) for end in range(len(text) + 1))


def test_liveness_below_intersections_and_complements() -> None:
    some, other = Literal(b"aa"), Repeat(Literal(b"aaa"), 0, None)
    everything = complement(EMPTY)
    no_a = Complement(Concat((everything, Literal(b"a"), everything)))
    assert not is_viable_prefix(Intersect((some, other)), b"")
    assert is_viable_prefix(Intersect((Repeat(some, 1, None), other)), b"")
    assert not is_viable_prefix(Intersect((Repeat(some, 1, 2), Repeat(some, 3, None))), b"")
    assert not is_viable_prefix(Complement(Repeat(ByteSet((1 << 256) - 1), 0, None)), b"")
    assert not is_viable_prefix(Complement(Union((everything, some))), b"")
    assert is_viable_prefix(no_a, b"")
    assert is_viable_prefix(no_a, b"b")
    assert not is_viable_prefix(no_a, b"ba")
    assert not is_viable_prefix(Intersect((no_a, Literal(b"bab"))), b"")


@settings(max_examples=80)
@given(grammars())
def test_recogniser_equals_the_listed_strings(ir: GrammarIR) -> None:
    recognizer = NaiveRecognizer(ir)
    expected = strings(ir)
    assert expected == {text for text in UNIVERSE if recognizer.accepts(text)}
    prefixes = {text[:end] for text in expected for end in range(len(text) + 1)}
    viable = {text for text in UNIVERSE if recognizer.is_viable_prefix(text)}
    assert prefixes <= viable
    # What is viable and not the start of a listed string must be the start of a longer one.
    completer = Completer(recognizer) if viable else None
    for text in viable:
        assert completer
        assert recognizer.push_bytes(text)
        end = completer.shortest()
        recognizer.pop(len(text))
        assert recognizer.accepts(text + end)
        # No listed string with this beginning is shorter.
        assert not any(longer.startswith(text) and len(longer) < len(text + end) for longer in expected)


def test_push_and_pop() -> None:
    builder = GrammarBuilder()
    start = builder.nonterminal("start")
    builder.add(start, (builder.lexeme(literal("ab")), start))
    builder.add(start)
    recognizer = NaiveRecognizer(builder.finish(start))
    assert recognizer.is_accepting()
    assert recognizer.push(ord("a"))
    assert not recognizer.push(ord("a"))
    assert not recognizer.is_accepting()
    assert recognizer.push(ord("b"))
    assert recognizer.is_accepting()
    recognizer.pop(1)
    assert not recognizer.is_accepting()
    assert recognizer.accepts(b"bab")
    assert not recognizer.accepts(b"ba")
    assert recognizer.is_viable_prefix(b"ba")
    assert recognizer.push_bytes(b"baba")
    assert not recognizer.push_bytes(b"bb")
    recognizer.pop(5)
    assert recognizer.accepts(b"")


def test_unproductive_parts_are_not_viable() -> None:
    builder = GrammarBuilder()
    start, loop = builder.nonterminal("start"), builder.nonterminal("loop")
    builder.add(loop, (builder.lexeme(literal("b")), loop))
    builder.add(start, (builder.lexeme(literal("a")),))
    builder.add(start, (loop,))
    builder.add(start, (builder.lexeme(literal("c")), builder.lexeme(EMPTY)))
    recognizer = NaiveRecognizer(builder.finish(start))
    assert recognizer.next_bytes() == [ord("a")]


def test_empty_language_has_no_viable_prefix() -> None:
    builder = GrammarBuilder()
    start = builder.nonterminal("start")
    builder.add(start, (start,))
    recognizer = NaiveRecognizer(builder.finish(start))
    assert not recognizer.is_viable_prefix(b"")
    assert not recognizer.accepts(b"")


def test_cycle_over_an_empty_lexeme() -> None:
    builder = GrammarBuilder()
    a, b = builder.nonterminal("a"), builder.nonterminal("b")
    builder.add(a, (b, a, b))
    builder.add(a, (builder.lexeme(literal("x")),))
    builder.add(b, (builder.lexeme(EPSILON),))
    builder.add(b, (a,))
    recognizer = NaiveRecognizer(builder.finish(a))
    assert [recognizer.accepts(b"x" * count) for count in range(5)] == [False, True, True, True, True]
