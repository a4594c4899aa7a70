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
