"""How a Lark grammar is read, by options and by ``%llguidance``."""

from __future__ import annotations

import json
from typing import Any

import pytest
from byte_tokens import BYTES

import constrain
from constrain.errors import GrammarError


def fitting(grammar: str, texts: tuple[str, ...], **options: Any) -> list[str]:
    compiled = constrain.CompiledGrammar(constrain.Grammar.from_lark(grammar, **options).ir, BYTES)
    found = []
    for text in texts:
        matcher = constrain.Matcher(compiled)
        if matcher.accept_bytes(text.encode()) and matcher.is_accepting():
            found.append(text)
    return found


@pytest.mark.parametrize("grammar", ["start: /k\\w/i", 'start: "k"i /\\w/', "start: A\nA: /(?!x)k/i /\\w/"])
def test_case_of_ascii_alone(grammar: str) -> None:
    texts = ("ké", "Ké", "\u212aé", "x")
    assert fitting(grammar, texts) == ["ké", "Ké", "\u212aé"]
    assert fitting(grammar, texts, case="ascii") == ["ké", "Ké"]


def test_classes_and_ranges_fold_ascii_alone() -> None:
    assert fitting("start: /[à-öa-c]/i", ("à", "À", "b", "B"), case="ascii") == ["à", "b", "B"]


TEXTS = ("ab", " ab", "a b", "a  b", "ab ", "ab  ", "  a b ")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, list(TEXTS)),
        ({"allow_initial_skip": True}, list(TEXTS)),
        ({"allow_initial_skip": False}, ["ab", "a b", "a  b", "ab ", "ab  "]),
        ({"ignore_once": True}, ["ab", " ab", "a b", "ab "]),
        ({"ignore_once": True, "allow_initial_skip": False}, ["ab", "a b", "ab "]),
        ({"skip_repetition": "once"}, ["ab", " ab", "a b", "ab "]),
        ({"skip_repetition": "repeat"}, list(TEXTS)),
    ],
)
def test_what_is_ignored(options: dict[str, bool | str], expected: list[str]) -> None:
    said = ", ".join(f'"{name}": {json.dumps(value)}' for name, value in options.items())
    grammar = f'%llguidance {{{said}}}\nstart: "a" "b"\n%ignore " "'
    assert fitting(grammar, TEXTS) == expected
    if "allow_initial_skip" not in options:
        assert fitting(grammar, TEXTS, initial_ignore=False) == [text for text in expected if text[0] != " "]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"case": "any"}, "case must be 'unicode' or 'ascii'"),
        ({"initial_ignore": 1}, "initial_ignore must be a boolean"),
        ({"lexing": "longest", "case": "ascii"}, 'lexing="longest" reads as Lark does'),
        ({"lexing": "longest-basic", "initial_ignore": False}, 'lexing="longest-basic" reads as Lark does'),
    ],
)
def test_faults(options: Any, message: str) -> None:
    with pytest.raises(GrammarError, match=message):
        constrain.Grammar.from_lark('start: "a"', **options)


def test_nothing_is_ignored_behind_an_empty_string() -> None:
    grammar = 'start: "" "a"\n%ignore " "'
    assert fitting(grammar, ("a", " a", "a "), initial_ignore=False) == ["a", "a "]
    assert fitting(grammar, ("a", " a", "a ")) == ["a", " a", "a "]


SOME_BYTES = [bytes((byte,)) for byte in (0x0A, 0x20, 0x41, 0x61, 0x6B, 0xA0, 0xC3, 0xFE, 0xFF)]


@pytest.mark.parametrize(
    ("grammar", "expected"),
    [
        ("start: /./", SOME_BYTES[1:]),
        ("start: /(?s:.)/", SOME_BYTES),
        ("start: /[^a]/", [byte for byte in SOME_BYTES if byte != b"a"]),
        (r"start: /[\x80-\xfe]/", [b"\xa0", b"\xc3", b"\xfe"]),
        (r"start: /(?-u:\xa0)|A/", [b"A", b"\xa0"]),
        (r"start: /(?-u)\xa0|(?i-u:K)|(?s-u:[\xfe])/", [b"k", b"\xa0", b"\xfe"]),
        (r"start: /\w/", [b"A", b"a", b"k"]),
        (r"start: /\s/", [b"\n", b" "]),
        ('start: "K"i', [b"k"]),
        ("start: A\nA: ~/[a-z]/", [byte for byte in SOME_BYTES if byte not in (b"a", b"k")]),
        (r"start: A\nA: /(?!a)./".replace(r"\n", "\n"), [byte for byte in SOME_BYTES[1:] if byte != b"a"]),
    ],
)
def test_texts_that_need_not_be_utf_8(grammar: str, expected: list[bytes]) -> None:
    read = constrain.Grammar.from_lark('%llguidance {"allow_invalid_utf8": true}\n' + grammar)
    compiled = constrain.CompiledGrammar(read.ir, BYTES)

    def fits(data: bytes) -> bool:
        matcher = constrain.Matcher(compiled)
        return matcher.accept_bytes(data) and matcher.is_accepting()

    assert [byte for byte in SOME_BYTES if fits(byte)] == expected


def test_strings_are_utf_8_all_the_same() -> None:
    option = '%llguidance {"allow_invalid_utf8": true}\n'
    assert fitting(option + 'start: /é+/ "ü" "a".."é"', ("éüa", "ééüé", "éü\u00ff", "é")) == ["éüa", "ééüé"]


@pytest.mark.parametrize(
    ("grammar", "message"),
    [
        ("start: /[é]/", r"line 2, column 8: in the regex: a byte regex has no characters that are not ASCII in a set"),
        ("start: /é(/", r"line 2, column 8: in the regex: "),
        ("start: /e(/", r"line 2, column 10: in the regex: "),
        (r"start: /\x{e9}/", r"line 2, column 8: in the regex: a byte regex .* write \\xHH"),
        ("start: x\nx[max_chars=2]: /./", r"line 3, column 1: \[max_chars\] counts characters"),
        ("start: /./ <[3]>", "may hold the byte 0xff"),
    ],
)
def test_what_bytes_do_not_go_with(grammar: str, message: str) -> None:
    with pytest.raises(GrammarError, match=message):
        fitting('%llguidance {"allow_invalid_utf8": true}\n' + grammar, ())
