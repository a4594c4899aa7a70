"""``Grammar.from_lark(..., indenter=...)``: Lark's parser with its ``Indenter`` is the judge."""

from __future__ import annotations

import importlib
import inspect
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lark
import pytest
from lark import Lark
from lark.indenter import Indenter, PythonIndenter

import constrain
from constrain.engine.storage import schemas
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


def test_equal_grammars_have_equal_keys() -> None:
    class Wide(Blocks):
        tab_len = 4

    keys = [
        constrain.Grammar.from_lark(BLOCKS, lexing="longest", indenter=each).key for each in (Blocks, Blocks(), Wide)
    ]
    assert keys[0] == keys[1] != keys[2]
    assert keys[0][:2] == ("indented lark", BLOCKS)


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


NESTED = r"""
start: (_NL | stmt)*
stmt: NAME _NL | "if" NAME ":" _NL _INDENT stmt+ _DEDENT
NAME: /[a-z]+/
_NL: (/\r?\n[\t ]*/)+
%ignore /[\t ]+/
%ignore "(c)"
%declare _INDENT _DEDENT
"""


def test_a_line_that_has_to_be_indented_is_no_end_within_a_block() -> None:
    """What is ignored may stand behind the end of a line only where something can follow."""
    ir = constrain.Grammar.from_lark(NESTED, lexing="longest", indenter=Blocks).ir
    grammar = constrain.CompiledGrammar(ir, BYTES)
    for begin, end in (("if a:\n", "(c)"), ("if a:\n  if b:\n  ", "(c)"), ("if a:\n  if b:\n", "(c)")):
        recognizer = grammar.recognizer()
        assert all(map(recognizer.try_push_byte, begin.encode()))
        assert not all(map(recognizer.try_push_byte, end.encode())), begin + end
    assert reads(grammar, "if a:\n  if b:\n   (c)c\n")


def test_equal_stacks_are_interned_once(compiled: constrain.CompiledGrammar) -> None:
    """A stack in a block, where the text cannot end, was made anew each time that it was reached."""
    for text in ("if a:\n  if (b):\n    c = d\n", "if (a):\n  b\n  if c:\n    d\n"):
        assert reads(compiled, text)
    tables = compiled._tables
    items = tables.get(schemas.EARLEY_ITEMS)
    sets = [
        (each["accepts"], items[each["offset"] :][: each["count"]].tobytes())
        for each in tables.get(schemas.EARLEY_SETS)
    ]
    assert len(set(sets)) == len(sets) > 50


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
            chosen = rng.choice(allowed)
            assert matcher.accept_token(chosen)
            text += tokens[chosen]


STATEMENTS = [
    *('x = ""\n', 'x = """a"""\n', "x = '' ''\n", 'x = """a\n"""\n', "x = rb\"a\" Rb'''b'''\n", 'x = u""r""\n'),
    *(
        "x=0\n",
        "x=00\n",
        "x=0_0\n",
        "x=01\n",
        "x=001\n",
        "x=0.5\n",
        "x=1if a else b\n",
        "x=1..real\n",
        "x = 1j + 00j\n",
    ),
    *(
        "def f(a, *b, c=1, **d):\n    return a\n",
        "class A(B):\n  x: int = 3\n  def f(self): pass\n",
        "@a.b(c)\ndef f(): pass\n",
    ),
    *("try:\n  a\nexcept E as e:\n  b\nfinally:\n  c\n", "match x:\n  case [a, *b]: pass\n", "match = case\n"),
    *(
        "print(a,\n  b)\n",
        "if a:\n  b\n\n  # c\n  d\n",
        "x = a \\\n  + b\n",
        'x = "a\\"b"\n',
        "x = not a in b is not c\n",
    ),
]


@pytest.fixture(scope="module")
def of_python() -> tuple[constrain.CompiledGrammar, Lark]:
    """The grammar that Lark comes with."""
    text = (Path(lark.__file__).parent / "grammars" / "python.lark").read_text(encoding="utf-8")
    ir = constrain.Grammar.from_lark(text, start="file_input", lexing="longest", indenter=PythonIndenter).ir
    judge = Lark(text, parser="lalr", postlex=PythonIndenter(), start="file_input")
    return constrain.CompiledGrammar(ir, BYTES), judge


def test_python_is_what_larks_grammar_accepts(of_python: tuple[constrain.CompiledGrammar, Lark]) -> None:
    compiled, judge = of_python
    rng = random.Random(11)
    accepted = 0
    for text in STATEMENTS:
        assert reads(compiled, text) == accepts(judge, text), text
    for _ in range(1500):
        text = "".join(rng.choices(STATEMENTS, k=rng.randint(1, 2)))
        for _ in range(rng.randint(0, 3)):
            at = rng.randint(0, len(text))
            char = rng.choice("\"'0123 \n\t\\#()[]{}:=.,_abrfux+-*@")
            text = rng.choice((text[:at] + char + text[at:], text[:at] + text[at + 1 :]))
        expected = accepts(judge, text)
        accepted += expected
        assert reads(compiled, text) == expected, text
    assert 400 < accepted < 1200


@pytest.fixture(scope="module")
def with_words(of_python: tuple[constrain.CompiledGrammar, Lark]) -> constrain.CompiledGrammar:
    """Lark's grammar of Python on a vocabulary with tokens of several bytes, many of them blanks."""
    tokens = [bytes((i,)) for i in range(256)]
    tokens += [b" " * count + end for count in range(1, 84) for end in (b"", b"#", b"x")][1:]
    tokens += [b"\n" + b" " * count for count in range(84)][1:]
    vocabulary = constrain.Vocabulary([*tokens, b"</s>"], eos_ids=[len(tokens)])
    return constrain.CompiledGrammar(of_python[0].ir, vocabulary)


def mask_of(compiled: constrain.CompiledGrammar, text: bytes) -> set[int]:
    matcher = constrain.Matcher(compiled)
    assert matcher.accept_bytes(text)
    mask = constrain.allocate_token_bitmask(1, compiled.vocabulary.size)
    matcher.fill_next_token_bitmask(mask)
    return {i for i in range(compiled.vocabulary.size) if mask[0, i // 32] >> (i % 32) & 1}


def test_a_comment_at_the_beginning_of_a_block_makes_few_lexer_states(
    with_words: constrain.CompiledGrammar,
) -> None:
    """The lexemes of all columns leave one guard, and not one for each column."""
    tokens = with_words.vocabulary.tokens
    for text in (b"if x:\n    #", b"if x:\n    # ", b"if x:\n  #", b"if x:\n    if y:\n        #\n   # "):
        found = mask_of(with_words, text)
        for i in range(0, len(tokens) - 1, 7):
            recognizer = with_words.recognizer()
            assert all(map(recognizer.try_push_byte, text))
            assert all(map(recognizer.try_push_byte, tokens[i])) == (i in found), (text, tokens[i])
    assert with_words.statistics()["lexer_states"] < 3_000


@pytest.mark.parametrize("module", ["bisect", "colorsys", "keyword", "sched"])
def test_files_of_the_standard_library_are_accepted(
    module: str, of_python: tuple[constrain.CompiledGrammar, Lark]
) -> None:
    text = inspect.getsource(importlib.import_module(module))
    compiled, judge = of_python
    assert accepts(judge, text)
    assert reads(compiled, text)


@pytest.mark.parametrize(
    ("grammar", "right", "wrong"),
    [
        # A match that is void lets one in that comes later in the order.
        ('start: A "c" | B "d"\nA.1: /a(?!b)/\nB: /abb/\n', ["ac", "abbd"], ["abc", "abd", "abbc"]),
        # Behind a void match comes the next best of the same regex.
        ("start: A B\nA: /ab?(?!c)/\nB: /c|d|xd/\n", ["abd", "ad", "axd", "abxd"], ["ac", "abc", "abbd"]),
        # Within a regex.
        ('start: A "x"\nA: /"(?!ab)[a-z]*"/\n', ['"a"x', '"ba"x', '""x'], ['"ab"x', '"abc"x']),
    ],
)
def test_look_ahead_is_followed(grammar: str, right: list[str], wrong: list[str]) -> None:
    judge = Lark(grammar, parser="lalr")
    compiled = constrain.CompiledGrammar(constrain.Grammar.from_lark(grammar, lexing="longest").ir, BYTES)
    assert [accepts(judge, text) for text in right + wrong] == [True] * len(right) + [False] * len(wrong)
    assert [reads(compiled, text) for text in right + wrong] == [True] * len(right) + [False] * len(wrong)


@pytest.mark.parametrize(
    ("grammar", "other"),
    [
        # Both match ac.
        ('start: (A | B | "c")*\nA.1: /a(?!b)/\nB: /a[bc]/\n', "B"),
        # In abcd the lexer goes back to a.
        ("start: A B\nA: /ab?(?!c)/\nB: /d|bcd/\n", "A"),
    ],
)
def test_look_ahead_that_cannot_be_followed_is_refused(grammar: str, other: str) -> None:
    with pytest.raises(GrammarError, match=f'"A": its look-ahead, beside "{other}", cannot be followed exactly'):
        constrain.Grammar.from_lark(grammar, lexing="longest")


class NoTab(Blocks):
    tab_len = 0


class OwnWay(Blocks):
    def handle_NL(self, token: lark.Token) -> Iterator[lark.Token]:
        yield token


@pytest.mark.parametrize(
    ("grammar", "options", "message"),
    [
        (BLOCKS, {"lexing": "any", "indenter": Blocks}, 'indenter is for lexing="longest"'),
        (BLOCKS, {"lexing": "longest"}, '%declare is not supported: "_INDENT"'),
        (BLOCKS, {"lexing": "longest", "indenter": 5}, "indenter must be a lark.indenter.Indenter"),
        (BLOCKS, {"lexing": "longest", "indenter": NoTab}, "tab_len of an indenter must be a positive number"),
        (BLOCKS, {"lexing": "longest", "indenter": OwnWay}, "an indenter with a handle_NL() of its own"),
        (
            BLOCKS.replace("| COMMENT)+", "| COMMENT)+ /(?!x)/"),
            {"lexing": "longest", "indenter": Blocks},
            '"_NL" has look-ahead',
        ),
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
