"""Lark's grammar of Python over the files of the standard library: ``python -m bench.python_files``.

Each file is read byte by byte with ``lexing="longest"`` and ``PythonIndenter``; Lark's own parser and ``ast.parse`` are
the judges.
"""

from __future__ import annotations

import ast
import random
import sysconfig
import time
import warnings
from pathlib import Path

import click
import lark
from lark.indenter import PythonIndenter

import constrain

START = "file_input"


def grammar_text() -> str:
    """The grammar that Lark comes with."""
    return (Path(lark.__file__).parent / "grammars" / "python.lark").read_text(encoding="utf-8")


def accepts(parser: lark.Lark, text: str) -> bool:
    """Whether Lark accepts a text; its indenter has errors of its own."""
    try:
        parser.parse(text)
    except Exception:
        return False
    return True


def is_python(text: str) -> bool:
    """Whether CPython accepts a text."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


@click.command()
@click.option("--seconds", default=60.0, show_default=True, help="For files in random order; 0 for all files.")
@click.option("--seed", default=1, show_default=True)
def python_files(seconds: float, seed: int) -> None:
    """Compare what is accepted with Lark's parser and with CPython."""
    text = grammar_text()
    began = time.process_time()
    grammar = constrain.Grammar.from_lark(text, start=START, lexing="longest", indenter=PythonIndenter)
    vocabulary = constrain.Vocabulary([*(bytes((byte,)) for byte in range(256)), b"</s>"], eos_ids=[256])
    compiled = constrain.GrammarCompiler(vocabulary).compile(grammar)
    click.echo(f"read and compiled in {time.process_time() - began:.2f} s of processor time")
    judge = lark.Lark(text, parser="lalr", postlex=PythonIndenter(), start=START)
    files = sorted(
        file for file in Path(sysconfig.get_paths()["stdlib"]).rglob("*.py") if "site-packages" not in file.parts
    )
    random.Random(seed).shuffle(files)
    end = time.monotonic() + seconds if seconds else float("inf")
    count = size = differences = 0
    spent = 0.0
    for file in files:
        if time.monotonic() > end:
            break
        try:
            source = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        recognizer = compiled.recognizer()
        began = time.process_time()
        data = source.encode()
        found = all(map(recognizer.try_push_byte, data)) and recognizer.is_accepting()
        spent += time.process_time() - began
        by_lark = accepts(judge, source)
        count += 1
        size += len(data)
        differences += found != by_lark
        if found != by_lark or not found:
            verdicts = f"here {found}, Lark {by_lark}, CPython {is_python(source)}"
            click.echo(f"{file.relative_to(sysconfig.get_paths()['stdlib'])}: {verdicts}")
    click.echo(f"{count} files, {size} bytes, {differences} differences from Lark; {1e6 * spent / size:.1f} us a byte")


if __name__ == "__main__":
    python_files(prog_name="python -m bench.python_files")
