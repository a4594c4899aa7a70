"""Names as words of an alphabet: a shorter way to write a sequence, which everything else takes as one."""

from __future__ import annotations

import pickle

import pytest
from byte_tokens import BYTES

from constrain import CompiledGrammar, Matcher
from constrain.grammar.ir import GrammarBuilder, GrammarIR
from constrain.grammar.json_schema.lexical.prelude import plain_stock
from constrain.grammar.json_schema.lexical.strings import ASCII_CHARACTERS, EVERY_WAY
from constrain.grammar.languages.regular import FIRST_LETTER, Concat, Regular, Word, concat, frame, literal, union

NAME = "na/me ~"
TEXTS = [
    rb"na/me ~",
    rb"na\/me ~",
    rb"\u006ea/me\u0020~",
    rb"na/m",
    rb"na/me",
    rb"na/me ~~",
    rb"Na/me ~",
    rb"na\me ~",
    rb"",
]


def _letters(text: str) -> tuple[Regular, ...]:
    return tuple(ASCII_CHARACTERS[ord(letter) - FIRST_LETTER] for letter in text)


def test_names_are_words() -> None:
    assert type(EVERY_WAY.text(NAME)) is Word
    # One letter is itself, and what is not printable ASCII is no letter.
    assert EVERY_WAY.text("a") == _letters("a")[0]
    for text in ("", "caf\u00e9", "a\n", "\u007fb"):
        assert type(EVERY_WAY.text(text)) is not Word


def test_a_word_equals_the_sequence_of_its_letters() -> None:
    word, sequence = Word(ASCII_CHARACTERS, NAME.encode()), Concat(_letters(NAME))
    assert word.parts == sequence.parts
    assert word == sequence
    assert sequence == word
    assert hash(word) == hash(sequence)
    assert len({word, sequence, Word(ASCII_CHARACTERS, NAME.encode())}) == 1
    assert word != Word(ASCII_CHARACTERS, b"name")
    assert word != Concat(_letters("name"))
    assert Concat(_letters("name")) != word
    # The same letters of another alphabet, which has equal ones, and of one that has others.
    assert word == Word((ASCII_CHARACTERS[0], *ASCII_CHARACTERS[1:]), NAME.encode())
    assert word != Word(ASCII_CHARACTERS[::-1], NAME.encode())
    assert union(word, sequence) is word
    assert repr(word) == repr(sequence).replace("Concat", "Word", 1)
    with pytest.raises(AttributeError):
        word.other  # noqa: B018


def test_a_word_can_be_pickled() -> None:
    word = Word(ASCII_CHARACTERS, b"name")
    hash(word)
    again = pickle.loads(pickle.dumps(word))
    assert type(again) is Word
    assert again == word
    assert hash(again) == hash(word)


def _grammar(body: Regular, has_stock: bool) -> GrammarIR:
    """A body by itself, between two others as the key of an object, and in the middle of a sequence."""
    builder = GrammarBuilder()
    start = builder.nonterminal("start")
    before, after = literal("{"), literal("}")
    if has_stock:
        before, after = plain_stock()[-6:-4]
    twice = frame(after, body, before)
    for language in (body, frame(before, body, after), twice, concat(literal("["), body, literal("]"))):
        builder.add(start, (builder.own_lexeme(language),))
    return builder.finish(start, stock=plain_stock if has_stock else None)


@pytest.mark.parametrize("has_stock", [False, True], ids=["alone", "with the prelude"])
def test_the_engine_reads_a_word_as_its_letters(has_stock: bool) -> None:
    bodies = (Word(ASCII_CHARACTERS, NAME.encode()), Concat(_letters(NAME)))
    grammars = [CompiledGrammar(_grammar(body, has_stock), BYTES) for body in bodies]
    ends = [b"", b"{", b"}", b"[", b"]"]
    found = set()
    for text in TEXTS:
        for opening in ends:
            for closing in ends:
                results = []
                for compiled in grammars:
                    matcher = Matcher(compiled)
                    results.append((matcher.accept_bytes(opening + text + closing), matcher.is_accepting()))
                assert results[0] == results[1], opening + text + closing
                if results[0] == (True, True):
                    found.add(opening + text + closing)
    assert {b"na/me ~", rb"\u006ea/me\u0020~", rb"{na\/me ~}", b"[na/me ~]", b"}na/me ~{"} <= found
    assert not any(NAME[:6].encode() + b"}" in text for text in found)
