"""The recogniser: bytes in, bytes back out, the same answers as the naive one, and at a bounded cost."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import NaiveRecognizer
from processor_time import processor_time
from strategies import ALPHABET, viable_grammars

import constrain
from constrain.grammar.ir import GrammarBuilder, GrammarIR
from constrain.grammar.languages.regular import EMPTY, EPSILON, Literal, Regular, Repeat, byte_range, literal, repeat
from constrain.grammar.languages.utf8 import ANY_TEXT


def compile_bytes(ir: GrammarIR) -> constrain.CompiledGrammar:
    """Compile for the 256 bytes and EOS."""
    tokens = [*(bytes((byte,)) for byte in range(256)), b""]
    return constrain.GrammarCompiler(constrain.Vocabulary(tokens, eos_ids=[256])).compile(constrain.Grammar(ir))


def push_all(recognizer: constrain.Recognizer, data: bytes) -> bool:
    return all(recognizer.try_push_byte(byte) for byte in data)


@settings(max_examples=200)
@given(
    viable_grammars(),
    st.lists(
        st.one_of(st.sampled_from(ALPHABET), st.integers(-5, -1), st.sampled_from(b"\x00z\xff")),
        min_size=5,
        max_size=30,
    ),
)
def test_pushes_and_pops(ir: GrammarIR, steps: list[int]) -> None:
    """``steps`` are bytes to push, or (negative) how many to pop."""
    naive = NaiveRecognizer(ir)
    recognizer = compile_bytes(ir).recognizer()
    depth = 0
    assert recognizer.is_accepting() == naive.is_accepting()
    for step in steps:
        if step < 0:
            count = min(-step, depth)
            recognizer.pop_bytes(count)
            naive.pop(count)
            depth -= count
        else:
            pushed = recognizer.try_push_byte(step)
            assert pushed is naive.push(step)
            depth += pushed
        assert recognizer.is_accepting() is naive.is_accepting()


@settings(max_examples=60)
@given(viable_grammars(), st.lists(st.integers(0, 255), min_size=3, max_size=8))
def test_every_byte_at_every_place(ir: GrammarIR, walk: list[int]) -> None:
    naive = NaiveRecognizer(ir)
    recognizer = compile_bytes(ir).recognizer()
    for choice in walk:
        possible = []
        for byte in range(256):
            if recognizer.try_push_byte(byte):
                possible.append(byte)
                recognizer.pop_bytes(1)
        assert possible == naive.next_bytes()
        if not possible:
            break
        byte = possible[choice % len(possible)]
        assert recognizer.try_push_byte(byte)
        assert naive.push(byte)


def test_arguments_out_of_range() -> None:
    builder = GrammarBuilder()
    recognizer = compile_bytes(builder.finish(builder.lexeme(repeat(literal("a"))))).recognizer()
    assert recognizer.try_push_byte(ord("a"))
    for byte in (-1, 256, 1 << 40):
        with pytest.raises(constrain.ConstrainError):
            recognizer.try_push_byte(byte)
    for count in (2, -1):
        with pytest.raises(constrain.ConstrainError):
            recognizer.pop_bytes(count)
    recognizer.pop_bytes(1)
    with pytest.raises(constrain.ConstrainError):
        recognizer.pop_bytes(1)


def test_recognizers_of_one_grammar_are_independent() -> None:
    builder = GrammarBuilder()
    compiled = compile_bytes(builder.finish(builder.lexeme(literal("abc"))))
    first, second = compiled.recognizer(), compiled.recognizer()
    assert push_all(first, b"abc")
    assert not second.try_push_byte(ord("b"))
    assert second.try_push_byte(ord("a"))
    assert first.is_accepting()
    assert not second.is_accepting()


# -- what a scanner with longest match gets wrong ---------------------------------------------


def sequence_of(*lexemes: Regular) -> GrammarIR:
    builder = GrammarBuilder()
    return builder.finish(builder.sequence([builder.lexeme(lexeme) for lexeme in lexemes]))


@pytest.mark.parametrize(
    ("lexemes", "accepted", "refused"),
    [
        ((repeat(literal("a")), literal("a"), literal("b")), [b"ab", b"aaab"], [b"b", b"a"]),
        ((repeat(literal("a"), 1), repeat(literal("a"), 2, 2)), [b"aaa", b"aaaaa"], [b"aa"]),
        ((EPSILON, literal("x"), EPSILON), [b"x"], [b"", b"xx"]),
        ((Repeat(byte_range(0x30, 0x39), 1, None), literal("0")), [b"10", b"000"], [b"0", b"01"]),
        ((ANY_TEXT, literal("é"), ANY_TEXT), ["é".encode(), "aéé".encode()], [b"", b"\xc3", b"a"]),
    ],
)
def test_every_split_counts(lexemes: tuple[Regular, ...], accepted: list[bytes], refused: list[bytes]) -> None:
    compiled = compile_bytes(sequence_of(*lexemes))
    for text in accepted:
        recognizer = compiled.recognizer()
        assert push_all(recognizer, text)
        assert recognizer.is_accepting(), text
    for text in refused:
        recognizer = compiled.recognizer()
        assert not (push_all(recognizer, text) and recognizer.is_accepting()), text


def test_unsatisfiable_part_is_cut_off_at_its_first_byte() -> None:
    builder = GrammarBuilder()
    start, endless = builder.nonterminal("start"), builder.nonterminal("endless")
    builder.add(start, (builder.lexeme(literal("yes")),))
    builder.add(start, (builder.lexeme(literal("no")), builder.lexeme(EMPTY)))
    builder.add(start, (endless,))
    builder.add(endless, (builder.lexeme(literal("e")), endless))
    recognizer = compile_bytes(builder.finish(start)).recognizer()
    assert not recognizer.try_push_byte(ord("n"))
    assert not recognizer.try_push_byte(ord("e"))
    assert push_all(recognizer, b"yes")


# -- cost ----------------------------------------------------------------------------------------


def right_recursive_list() -> GrammarIR:
    builder = GrammarBuilder()
    items = builder.nonterminal("items")
    item, comma = builder.lexeme(literal("item")), builder.lexeme(literal(","))
    builder.add(items, (item,))
    builder.add(items, (item, comma, items))
    return builder.finish(items)


def right_recursive_to_nothing() -> GrammarIR:
    builder = GrammarBuilder()
    items, more = builder.nonterminal("items"), builder.nonterminal("more")
    builder.add(items, (builder.lexeme(literal("item")), more))
    builder.add(more, (builder.lexeme(literal(",")), items))
    builder.add(more)
    return builder.finish(items)


def right_recursive_in_brackets() -> GrammarIR:
    """The list is followed by something, so its end is not the end of the input."""
    builder = GrammarBuilder()
    items = builder.nonterminal("items")
    item, comma = builder.lexeme(literal("item")), builder.lexeme(literal(","))
    builder.add(items, (item, builder.optional(builder.sequence((comma, items)))))
    return builder.finish(builder.sequence((items, builder.lexeme(literal(";")))))


def left_recursive_list() -> GrammarIR:
    builder = GrammarBuilder()
    items = builder.nonterminal("items")
    item, comma = builder.lexeme(literal("item")), builder.lexeme(literal(","))
    builder.add(items, (item,))
    builder.add(items, (items, comma, item))
    return builder.finish(items)


def seconds_for_list(ir: GrammarIR, count: int) -> float:
    """Time to take a list of ``count`` items (best of three), masks and a look at the end included."""
    best = float("inf")
    for _ in range(3):
        compiled = compile_bytes(ir)
        matcher = constrain.Matcher(compiled)
        mask = constrain.allocate_token_bitmask(1, 257)
        with processor_time() as spent:
            for index in range(count):
                assert matcher.accept_bytes(b",item" if index else b"item")
                if index % 100 == 0:
                    matcher.fill_next_token_bitmask(mask, 0)
            ended = matcher.is_accepting() or matcher.accept_bytes(b";")
        best = min(best, spent.seconds)
        assert ended
        assert matcher.is_accepting()
    return best


@pytest.mark.parametrize(
    "grammar",
    [right_recursive_list, right_recursive_to_nothing, right_recursive_in_brackets, left_recursive_list],
    ids=lambda grammar: grammar.__name__,
)
def test_long_list_is_linear(grammar: object) -> None:
    ir = grammar()  # type: ignore[operator]
    seconds_for_list(ir, 100)
    whole = seconds_for_list(ir, 10_000)
    # Twice the items cost four times as much if every item walks back over all before it; a fast
    # machine may do both in so little time that their ratio means nothing.
    assert whole < 0.5 or whole / seconds_for_list(ir, 5_000) < 3.5
    assert whole < 10


@pytest.mark.parametrize("depth", [5_000])
def test_deep_nesting(depth: int) -> None:
    builder = GrammarBuilder()
    value = builder.nonterminal("value")
    opening, closing = builder.lexeme(literal("[")), builder.lexeme(literal("]"))
    builder.add(value, (opening, value, closing))
    builder.add(value, (builder.lexeme(literal("x")),))
    recognizer = compile_bytes(builder.finish(value)).recognizer()
    with processor_time() as spent:
        assert push_all(recognizer, b"[" * depth + b"x" + b"]" * (depth - 1))
        assert not recognizer.is_accepting()
        assert recognizer.try_push_byte(ord("]"))
        assert recognizer.is_accepting()
        assert not recognizer.try_push_byte(ord("]"))
        recognizer.pop_bytes(depth + 1)
        assert not recognizer.try_push_byte(ord("]"))
        assert push_all(recognizer, b"x" + b"]" * depth)
        assert recognizer.is_accepting()
    assert spent.seconds < 10


def test_long_literal_and_large_counter() -> None:
    text = b"0123456789" * 1_000
    recognizer = compile_bytes(sequence_of(Literal(text), repeat(literal("ab"), 3_000, 3_001))).recognizer()
    assert push_all(recognizer, text + b"ab" * 2_999)
    assert not recognizer.is_accepting()
    assert push_all(recognizer, b"ab")
    assert recognizer.is_accepting()
    assert push_all(recognizer, b"ab")
    assert recognizer.is_accepting()
    assert not recognizer.try_push_byte(ord("a"))
