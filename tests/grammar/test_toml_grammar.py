"""``grammars/toml.lark`` by either lexing: what it accepts Lark accepts, and tomllib reads."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Literal

import pytest
from lark import Lark

import constrain
from bench.fuzz import lexing

TEXT = (Path(__file__).resolve().parents[2] / "grammars" / "toml.lark").read_text()
LINES = [
    *("", "a=1", "# c", 'b = "x\\n\\u00e9"', "[t]", "[[ u . v ]]", "c=[1,2,\n3,] # d", "d={e=1, f.g=2.5}", "e={}"),
    *(
        "x=1.5e3",
        "x=inf",
        "x=1979-05-27T07:32:00.5Z",
        "x=1979-05-27",
        "x=07:32:00",
        "x=0x1F",
        "x=1_000",
        "inf=1",
        "1.2=3",
    ),
    *(
        'x="""a\n"b" \\\n c"""',
        "x='''a'b'''",
        'x=""""a"""""',
        'a."b c"=true',
        "true=false",
        "x=[[1],[]]",
        "x=-0",
        "é=1",
    ),
    *("x=1__0", "x=01", "x={a=1,}", "x=[1,,2]", 'x="\\q"', "a=1 b=2", "x=1.", "x=.5", "x=2024-02-30", "[a"),
]


@pytest.mark.parametrize("how", ["any", "longest"])
def test_texts_are_those_of_lark_and_tomllib(how: Literal["any", "longest"]) -> None:
    if sys.version_info < (3, 11):
        pytest.skip("tomllib comes with Python 3.11")
    import tomllib

    compiled = constrain.CompiledGrammar(
        constrain.Grammar.from_lark(TEXT, lexing=how).ir,
        constrain.Vocabulary([bytes((i,)) for i in range(256)] + [b"</s>"], eos_ids=[256]),
    )
    judge = Lark(TEXT, parser="lalr")
    rng = random.Random(5)
    verdicts = {True: 0, False: 0}
    for _ in range(800):
        text = "\n".join(rng.choice(LINES) for _ in range(rng.randint(1, 2)))
        for _ in range(rng.randint(0, 2)):
            at = rng.randint(0, len(text))
            text = rng.choice(
                (text[:at] + rng.choice("\"'[]{}.,=\n #-_01aTZ:\\+e") + text[at:], text[:at] + text[at + 1 :])
            )
        recognizer = compiled.recognizer()
        reads = all(recognizer.try_push_byte(byte) for byte in text.encode()) and recognizer.is_accepting()
        assert reads == lexing.accepts(judge, text), text
        try:
            tomllib.loads(text)
            verdict = ""
        except tomllib.TOMLDecodeError as error:
            verdict = str(error)
        # That a key comes twice is not for a grammar.
        if not verdict.startswith(
            ("Cannot overwrite", "Cannot declare", "Cannot mutate", "Cannot redefine", "Duplicate")
        ):
            assert reads == (not verdict), (text, verdict)
            verdicts[reads] += 1
    assert min(verdicts.values()) > 200
