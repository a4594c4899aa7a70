"""Ambiguous grammars, in which a row has an item for each earlier row: the same masks, in little time."""

from __future__ import annotations

import random
from typing import Any

import pytest
from naive import NaiveRecognizer, allowed_tokens, tokens_of
from processor_time import processor_time

import constrain
from constrain.engine import grammar_tables as tables_module
from constrain.engine import history
from constrain.engine.storage.schemas import WORK_LIST

TOKENS = [bytes((byte,)) for byte in b"ab1+-() \n"] + [b"aa", b"ab", b"1+", b"+1", b"1+1+1", b"aaaaaa", b"bab", b"</s>"]
VOCABULARY = constrain.Vocabulary(TOKENS, eos_ids=[len(TOKENS) - 1])

GRAMMARS = {
    "left and right": 'start: start "+" start | "1"',
    "two operators": 'start: start "+" start | start "-" start | "(" start ")" | "1"',
    "three of itself": 'start: start start start | start start | "a"',
    "an odd number of itself": 'start: start start start | "a" | "b"',
    "palindromes": 'start: "a" start "a" | "b" start "b" | "a" | "b" | ',
    "nullable": 'start: x start x | "a"\nx: "a" | "b" | ',
    "two nonterminals": 'start: x y | "a"\nx: y start | "a"\ny: start x | "b" | start',
    "words": "start: (WORD | start start)+\nWORD: /[ab]+/",
    "counted, and may be empty": 'start: x~2..40 "1"?\nx: ("a" | y)~0..7\ny: "b"~5 |',
    "counted twice": 'start: x~0..30\nx: y~6..11\ny: "a" x? | "b"',
    "a list of itself": 'start: s\ns: "a"* | s s',
    "lists through three rules": 'start: s\ns: x* | s s\nx: y+\ny: "a"* | "b"',
    "lists of lists": 'start: s\ns: x* | s s | "(" s ")"\nx: y+ | "1"\ny: "a"* | "b" x',
    "ignored": 'start: ("a" | "b")+\n%ignore /.*/s',
    "ignored between": 'start: start "+" start | "1"\n%ignore /[a1 ]+/',
}


def text_of(recognizer: NaiveRecognizer, choose: random.Random, length: int) -> bytes:
    """A random beginning of a text of this many bytes, or fewer if a text ends sooner."""
    done = bytearray()
    for _ in range(length):
        ways = [byte for byte in b"ab1+-() \n" if recognizer.is_viable_prefix(bytes((byte,)))]
        if not ways:
            break
        byte = choose.choice(ways)
        recognizer.push(byte)
        done.append(byte)
    return bytes(done)


@pytest.mark.parametrize("collects", [False, True], ids=["", "rows are forgotten"])
@pytest.mark.parametrize("name", GRAMMARS)
def test_masks_are_those_of_the_naive_recognizer(
    name: str, collects: bool, masks_compared: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if collects:
        monkeypatch.setattr(tables_module, "_COLLECT_BYTES", 0)
        monkeypatch.setattr(tables_module, "STEPS_KEPT", 4)
        monkeypatch.setattr(history, "STEPS_KEPT", 4)
    ir = constrain.Grammar.from_lark(GRAMMARS[name]).ir
    compiled = constrain.CompiledGrammar(ir, VOCABULARY)
    mask = constrain.allocate_token_bitmask(1, VOCABULARY.size)
    choose = random.Random(name)
    for length in (80, 110):
        # One with the same byte again and again where that is possible, for there every row has all origins.
        recognizer = NaiveRecognizer(ir)
        text = text_of(NaiveRecognizer(ir), choose, length) if length == 80 else b""
        if not text:
            unit = next(unit for unit in (b"a", b"1+", b"1") if recognizer.is_viable_prefix(3 * unit))
            text = unit * (length // len(unit))
        matcher = constrain.Matcher(compiled)
        for place, byte in enumerate(text):
            if place % 7 == 0 or place > len(text) - 3:
                matcher.fill_next_token_bitmask(mask)
                assert tokens_of(mask[0], VOCABULARY.size) == allowed_tokens(recognizer, VOCABULARY), text[:place]
                masks_compared.add()
            assert matcher.is_accepting() == recognizer.is_accepting()
            assert matcher.accept_bytes(bytes((byte,)))
            assert recognizer.push(byte)
        if not collects:
            matcher.rollback(len(text) // 2)
            recognizer.pop(len(text) // 2)
            matcher.fill_next_token_bitmask(mask)
            assert tokens_of(mask[0], VOCABULARY.size) == allowed_tokens(recognizer, VOCABULARY)


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("left and right", b"1+"),
        ("three of itself", b"a"),
        ("an odd number of itself", b"a"),
        ("palindromes", b"a"),
        ("ignored", b"a"),
        ("words", b"a"),
        ("a list of itself", b"a"),
        ("lists through three rules", b"a"),
    ],
)
def test_four_kilobytes_take_little_time(name: str, unit: bytes) -> None:
    matcher = constrain.Matcher(constrain.CompiledGrammar(constrain.Grammar.from_lark(GRAMMARS[name]).ir, VOCABULARY))
    matcher.accept_bytes(unit)
    with processor_time() as spent:
        assert matcher.accept_bytes(unit * (4096 // len(unit) - 1))
    # A second and a half at most on a quiet machine, ten times as much on a busy one; the cube of the length would
    # be minutes.
    assert spent.seconds < 40


@pytest.mark.parametrize("name", ["a list of itself", "lists through three rules"])
def test_rules_that_end_are_completed_for_many_origins_at_once(name: str) -> None:
    compiled = constrain.CompiledGrammar(constrain.Grammar.from_lark(GRAMMARS[name]).ir, VOCABULARY)
    assert constrain.Matcher(compiled).accept_bytes(b"a" * 1024)
    # One thing to do for 64 origins is three numbers; for each origin it would be 3,072 for each rule.
    assert compiled._tables.capacity(WORK_LIST) < 1024
