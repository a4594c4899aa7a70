"""``Grammar.from_lark(..., indenter=...)``: Lark's parser with its ``Indenter`` is the judge."""

from __future__ import annotations

import random
from typing import Any

import pytest
from lark import Lark
from lark.indenter import Indenter

import constrain
from constrain.errors import GrammarError

BYTES = constrain.Vocabulary([bytes((i,)) for i in range(256)] + [b"</s>"], eos_ids=[256])

BLOCKS = r"""
start: (_NL | stmt)*
stmt: expr _NL | "if" expr ":" suite ["else" ":" suite] | "try" ":" suite "finally" ":" suite
suite: expr _NL | _NL _INDENT stmt+ _DEDENT
expr: NAME | "(" [expr ("," expr)*] ")" | NAME "=" expr
NAME: /[a-z]+/
COMMENT: /#[^\n]*/
_NL: (/\r?\n[\t ]*/ | COMMENT)+
%ignore /[\t ]+/
%ignore /\\[\t ]*\r?\n/
%ignore COMMENT
%declare _INDENT _DEDENT
"""
PIECES = [
    *("a", "b", "if ", "if a:", "else:", ":", "\n", "\n", "\n  ", "\n  ", "\n    ", "\n\t", " ", "(", ")", "#", " # x"),
    *("try:", "finally:", ",", "=", "\\\n", "\r\n"),
]


class Blocks(Indenter):
    NL_type = "_NL"
    OPEN_PAREN_types = ["LPAR"]  # noqa: RUF012
    CLOSE_PAREN_types = ["RPAR"]  # noqa: RUF012
    INDENT_type = "_INDENT"
    DEDENT_type = "_DEDENT"
    tab_len = 8


@pytest.fixture(scope="module")
def compiled() -> constrain.CompiledGrammar:
    ir = constrain.Grammar.from_lark(BLOCKS, lexing="longest", indenter=Blocks).ir
    return constrain.CompiledGrammar(ir, BYTES)


@pytest.fixture(scope="module")
def judge() -> Lark:
    return Lark(BLOCKS, parser="lalr", postlex=Blocks())


def reads(grammar: constrain.CompiledGrammar, text: str) -> bool:
    recognizer = grammar.recognizer()
    return all(recognizer.try_push_byte(byte) for byte in text.encode()) and recognizer.is_accepting()


def accepts(judge: Lark, text: str) -> bool:
    # The indenter has errors of its own, and assertions.
    try:
        judge.parse(text)
    except Exception:
        return False
    return True


TEXTS = {
    "a\n": True,
    "if a:\n  b\nc\n": True,
    "if a:\nb\n": False,
    "if a:\n  b\n c\n": False,
    "if a:\n  if b:\n    c\n  d\ne\n": True,
    "if a:\n  if b:\n    c\nd\n": True,
    "try:\n  a\n": False,
    "try:\n  a\nfinally: b\n": True,
    "(a,\n b)\n": True,
    "(a, # c\n\n\t b)\n": True,
    "if a:\n  b\n  # c\n\nelse: d\n": True,
    "if a:\n        b\n\tc\n": True,
    "if a:\n\t b\n        c\n": False,
    "a = \\\n  b\n": True,
    "a # x\n": True,
    "a # x": False,
    "a)\n": False,
    "  a\n": True,
    "\n  a\n": False,
    "": True,
}


def test_blocks_are_those_of_the_indenter(compiled: constrain.CompiledGrammar, judge: Lark) -> None:
    assert {text: accepts(judge, text) for text in TEXTS} == TEXTS
    assert {text: reads(compiled, text) for text in TEXTS} == TEXTS


def walk(grammar: constrain.CompiledGrammar, rng: random.Random) -> str:
    """A random text of pieces that are allowed, which nowhere comes to a dead end."""
    recognizer, text = grammar.recognizer(), ""
    for _ in range(rng.randint(1, 30)):
        for piece in rng.sample(PIECES, len(PIECES)):
            count = 0
            for byte in piece.encode():
                if not recognizer.try_push_byte(byte):
                    break
                count += 1
            if count == len(piece.encode()):
                text += piece
                break
            recognizer.pop_bytes(count)
    assert recognizer.is_accepting() or any(map(recognizer.try_push_byte, range(256))), f"a dead end: {text!r}"
    return text


def test_walks_and_mutations_are_judged_as_by_lark(compiled: constrain.CompiledGrammar, judge: Lark) -> None:
    rng = random.Random(5)
    accepted = 0
    for _ in range(600):
        text = mutated = walk(compiled, rng)
        for _ in range(rng.randint(1, 3)):
            at = rng.randint(0, len(mutated))
            mutated = rng.choice((mutated[:at] + rng.choice(PIECES) + mutated[at:], mutated[:at] + mutated[at + 1 :]))
        for each in (text, text + "\n", mutated, mutated + "\n"):
            expected = accepts(judge, each)
            accepted += expected
            assert reads(compiled, each) == expected, each
    assert 200 < accepted < 1800


def test_masks_are_those_of_the_bytes() -> None:
    """Tokens that hold the end of a line, its indentation and what follows."""
    tokens = [
        b"a",
        b":",
        b"\n",
        b"  ",
        b" ",
        b"if a",
        b":\n",
        b":\n  a",
        b"\n  a",
        b"\na",
        b"\n    a\n",
        b"\n\na",
        b"(",
    ]
    vocabulary = constrain.Vocabulary([*tokens, b"</s>"], eos_ids=[len(tokens)])
    grammar = constrain.CompiledGrammar(
        constrain.Grammar.from_lark(BLOCKS, lexing="longest", indenter=Blocks()).ir, vocabulary
    )
    rng = random.Random(3)
    for _ in range(12):
        matcher, text = constrain.Matcher(grammar), b""
        for _ in range(14):
            mask = constrain.allocate_token_bitmask(1, vocabulary.size)
            matcher.fill_next_token_bitmask(mask)
            allowed = [i for i in range(len(tokens)) if mask[0, i // 32] >> (i % 32) & 1]
            found = []
            for i, token in enumerate(tokens):
                recognizer = grammar.recognizer()
                if all(map(recognizer.try_push_byte, text + token)):
                    found.append(i)
            assert allowed == found, text
            if not allowed:
                break
            token = rng.choice(allowed)
            assert matcher.accept_token(token)
            text += tokens[token]


class NoTab(Blocks):
    tab_len = 0


@pytest.mark.parametrize(
    ("grammar", "options", "message"),
    [
        (BLOCKS, {"lexing": "any", "indenter": Blocks}, 'indenter is for lexing="longest"'),
        (BLOCKS, {"lexing": "longest"}, '%declare is not supported: "_INDENT"'),
        (BLOCKS, {"lexing": "longest", "indenter": 5}, "indenter must be a lark.indenter.Indenter"),
        ('start: "a"', {"lexing": "longest", "indenter": Blocks}, 'the grammar has no terminal "_NL"'),
        (
            BLOCKS.replace("_NL _INDENT stmt+ _DEDENT", "_NL _INDENT stmt+"),
            {"lexing": "longest", "indenter": Blocks},
            "the rule suite opens a bracket or an indent that it does not close",
        ),
        (
            BLOCKS.replace('"(" [expr ("," expr)*] ")"', '"(" [expr _NL] ")"'),
            {"lexing": "longest", "indenter": Blocks},
            "ends a line within brackets",
        ),
        (
            BLOCKS.replace("suite: expr _NL | _NL _INDENT stmt+", "suite: _INDENT stmt+"),
            {"lexing": "longest", "indenter": Blocks},
            "_INDENT would have to come behind COLON",
        ),
        (
            BLOCKS + "%ignore _NL\n",
            {"lexing": "longest", "indenter": Blocks},
            '"_NL" is ignored',
        ),
    ],
)
def test_what_is_refused(grammar: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(GrammarError) as caught:
        constrain.Grammar.from_lark(grammar, **options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
