"""Completions of texts of grammars with ``lexing="longest"``: the matcher itself is the judge of what is found."""

from __future__ import annotations

import random
from pathlib import Path

import lark
import pytest
from lark.indenter import PythonIndenter

import constrain
from bench.fuzz import lexing

BYTES = constrain.Vocabulary([bytes((i,)) for i in range(256)] + [b"</s>"], eos_ids=[256])
LIST = 'start: "[" A ("," A)* "]"\nA: /[0-9]+/\n%ignore " "\n'
JSON = r"""
?start: value
?value: object | array | string | SIGNED_NUMBER | "true" | "false" | "null"
array: "[" [value ("," value)*] "]"
object: "{" [pair ("," pair)*] "}"
pair: string ":" value
string: ESCAPED_STRING
%import common (ESCAPED_STRING, SIGNED_NUMBER, WS)
%ignore WS
"""
PYTHON = (Path(lark.__file__).parent / "grammars" / "python.lark").read_text(encoding="utf-8")


def compiled(grammar: str, vocabulary: constrain.Vocabulary = BYTES, **options: object) -> constrain.CompiledGrammar:
    ir = constrain.Grammar.from_lark(grammar, lexing="longest", **options).ir  # type: ignore[arg-type]
    return constrain.CompiledGrammar(ir, vocabulary)


@pytest.fixture(scope="module")
def python() -> constrain.CompiledGrammar:
    return compiled(PYTHON, start="file_input", indenter=PythonIndenter)


def completed(grammar: constrain.CompiledGrammar, text: str) -> bytes:
    """The completion of a text, each token of which is allowed, after which the text may end."""
    matcher = constrain.Matcher(grammar)
    assert matcher.accept_bytes(text.encode()), text
    tokens = matcher.completion()
    assert matcher.tokens_to_finish() == len(tokens)
    assert not tokens or not matcher.is_accepting()
    assert matcher.accept_tokens(tokens), (text, tokens)
    assert matcher.is_accepting(), (text, tokens)
    return b"".join(grammar.vocabulary.tokens[token] for token in tokens)


@pytest.mark.parametrize(
    ("grammar", "text", "rest"),
    [
        (LIST, "[1", b"]"),
        (LIST, "[1, ", b"0]"),
        (LIST, "", b"[0]"),
        (JSON, '{"a', b'":0}'),
        (JSON, '{"a\\u12', b'":0}'),
        (JSON, '[[{"a":[-1e', b"0]}]]"),
        (JSON, "[tr", b"ue]"),
        (JSON, '{"a": null, ', b'"":0}'),
        (JSON, "[" * 300, b"]" * 300),
        # The lexer takes `returnA` for a name, so something has to stand between.
        ('start: "return" NAME ";" | NAME "=" "=" ";"\nNAME: /[A-Z]+/i\n%ignore " "\n', "return", b" A;"),
        # `1.` is no number, and behind it only another point goes on, or a digit.
        ('start: V ".." V\nV: /[0-9]+(\\.[0-9]+)?/\n%ignore " "\n', "1.", b".0"),
    ],
)
def test_texts_are_completed(grammar: str, text: str, rest: bytes) -> None:
    assert completed(compiled(grammar), text) == rest


@pytest.mark.parametrize(
    "text",
    [
        *("", "x = (", "if x:", "if x:\n  ", "def f(a, b=", "try:\n  pass\n", "a if b ", "lambda x", "'abc", '"""abc'),
        *(
            "import a.",
            "@",
            "while 1:\n  if x:\n    y = [\n  1,",
            "async def",
            "x = 1 if y",
            "return x if",
            "#abc",
            "a\\",
        ),
        "class A:\n    def f(self):\n        return [x for x in",
    ],
)
def test_statements_of_python_are_completed(python: constrain.CompiledGrammar, text: str) -> None:
    rest = completed(python, text)
    assert len(rest) < 20
    judge = lark.Lark(PYTHON, parser="lalr", start="file_input", postlex=PythonIndenter())
    judge.parse(text + rest.decode())


@pytest.mark.parametrize("seed", range(30))
def test_random_beginnings_are_completed(seed: int) -> None:
    rng = random.Random(seed)
    try:
        grammar = compiled(lexing.random_grammar(rng))
    except constrain.GrammarError:
        return
    for _ in range(20):
        matcher, text = constrain.Matcher(grammar), ""
        for _ in range(rng.randint(0, 12)):
            # Only some characters are of interest.
            allowed = [each for each in 'abc1.;" ()x' if matcher.fork().accept_bytes(each.encode())]
            if not allowed:
                break
            text += rng.choice(allowed)
            assert matcher.accept_bytes(text[-1].encode())
        completed(grammar, text)


def test_the_text_found_is_spelled_with_the_fewest_tokens() -> None:
    tokens = [*(bytes((i,)) for i in range(256)), b"]]", b'"":']
    grammar = compiled(JSON, constrain.Vocabulary([*tokens, b"</s>"], eos_ids=[len(tokens)]))
    matcher = constrain.Matcher(grammar)
    assert matcher.accept_bytes(b"[[[[")
    assert matcher.completion() == [256, 256]


def test_a_vocabulary_without_all_bytes() -> None:
    vocabulary = constrain.Vocabulary([b"[1", b",1]", b"1", b",", b"</s>"], eos_ids=[4])
    grammar = compiled(LIST, vocabulary)
    assert completed(grammar, "") == b"[1,1]"
    assert completed(grammar, "[7,") in (b"1,1]", b"11,1]")
    without_end = compiled(LIST, constrain.Vocabulary([b"[", b"1", b"</s>"], eos_ids=[2]))
    with pytest.raises(constrain.ConstrainError, match=r"no way to complete the text was found"):
        constrain.Matcher(without_end).completion()


def test_a_search_that_goes_on_for_ever_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A matcher whose completion is given up is where it was."""
    from constrain.engine.conditions.budget import stack_completions

    monkeypatch.setattr(stack_completions, "_MOST_STEPS", 3)
    monkeypatch.setattr(stack_completions, "_STEPS_PER_BYTE", 0)
    matcher = constrain.Matcher(compiled(JSON))
    assert matcher.accept_bytes(b'{"a')
    with pytest.raises(constrain.LimitError, match=r"no completion of the text was found in time"):
        matcher.completion()
    assert matcher.accept_bytes(b'":0}')
    assert matcher.is_accepting()
    assert matcher.completion() == []
