"""The grammars in ``grammars/`` and the programs that read such texts: real texts, mutated ones, and generated ones.

Each grammar is sound: what it accepts, its judge accepts.  The judges accept more.
"""

from __future__ import annotations

import ast
import csv
import datetime
import functools
import importlib
import io
import ipaddress
import json
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import urllib.parse
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import constrain
from bench.code.languages import c as c_programs
from bench.code.languages import javascript as javascript_programs
from bench.code.languages import sql as sql_programs
from constrain import demo

TEXTS = Path(__file__).resolve().parent / "texts"
GRAMMARS = Path(__file__).resolve().parents[2] / "grammars"
BENCH_TEXTS = Path(__file__).resolve().parents[2] / "bench" / "maskbench" / "texts"

Judge = Callable[[list[str], Path], list[str]]
"""What is wrong with the syntax of each text; empty for nothing.  The folder is for files."""


# -- judges ---------------------------------------------------------------------------------------


def _one_by_one(judge: Callable[[str], str]) -> Judge:
    return lambda texts, folder: [judge(text) for text in texts]


def _statements(script: str) -> list[str]:
    found, part = [], ""
    for piece in re.split("(;)", script):
        part += piece
        if piece == ";" and sqlite3.complete_statement(part):
            found.append(part)
            part = ""
    return [*found, part]


_SQL_SYNTAX = "syntax error|unrecognized token|incomplete input|clause|unknown join"
_SQL_COMMENT = r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*"


def _sql(script: str) -> str:
    """What SQLite says to a script, but for names that there are not and the like."""
    database = sqlite3.connect(":memory:")
    for statement in _statements(script):
        if re.fullmatch(_SQL_COMMENT, statement, re.DOTALL):
            continue
        # With EXPLAIN, SQLite prepares it and does nothing.
        explained = re.match(_SQL_COMMENT + "explain", statement, re.IGNORECASE | re.DOTALL)
        try:
            database.execute(statement if explained else "explain " + statement)
        except (sqlite3.Error, sqlite3.Warning) as error:
            # A statement with parameters is prepared, and then they are missed.
            about_names = re.search("may not have an ON or USING|number of bindings|did not supply a value", str(error))
            if not about_names and re.search(_SQL_SYNTAX, str(error)):
                return f"{error}: {statement}"
    return ""


_C_LITERAL = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/'
_C_TYPE = r"\b(?:FILE|DIR|bool|va_list|[A-Za-z]\w*_t|[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*)\b"
_C_DIRECTIVE = r"(?m)^(?:[ \t\f]|/\*.*?\*/)*#(?:[^\n\\]|\\[ \t\f\v]*\r?\n|\\.)*\n"
_C_SYNTAX = (
    "error: .*(expected|missing terminating|unterminated|stray|invalid suffix|exponent has no|invalid digit|empty char"
    "|without a previous|too many decimal|hexadecimal)"
)


def _c(texts: list[str], folder: Path) -> list[str]:
    """What gcc says to the syntax of programs, in which each name that is spelled as a type is one."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not there")
    names = []
    for number, text in enumerate(texts):
        code = re.sub(_C_DIRECTIVE, "\n", text)
        types = sorted(set(re.findall(_C_TYPE, re.sub(_C_LITERAL, " ", code, flags=re.DOTALL))))
        names.append(folder / f"{number}.c")
        names[-1].write_bytes(("".join(f"typedef int {name}; " for name in types) + "\n" + code).encode())
    found = [""] * len(texts)
    command = ["gcc", "-std=c11", "-fsyntax-only", "-w", "-fno-diagnostics-show-caret", *map(str, names)]
    done = subprocess.run(command, capture_output=True, env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"}, check=False)
    for line in done.stderr.decode(errors="replace").split("\n"):
        match = re.search(r"/(\d+)\.c:\d+:\d+: (.*)", line)
        if match and re.search(_C_SYNTAX, match[2]):
            found[int(match[1])] = match[2]
    return found


_NODE = """
const vm = require("vm"), texts = JSON.parse(require("fs").readFileSync(0, "utf8"));
const verdicts = texts.map((text) => { try { new vm.Script(text); return ""; } catch (e) { return e.message; } });
process.stdout.write(JSON.stringify(verdicts));
"""


def _javascript(texts: list[str], folder: Path) -> list[str]:
    """What node says to scripts, but that names are declared twice."""
    if shutil.which("node") is None:
        pytest.skip("node is not there")
    done = subprocess.run(["node", "-e", _NODE], input=json.dumps(texts).encode(), capture_output=True, check=True)
    twice = "already been declared|Duplicate parameter|Duplicate __proto__|'use strict' directive"
    return ["" if re.search(twice, verdict) else verdict for verdict in json.loads(done.stdout)]


def _arithmetic(text: str) -> str:
    # Names may be Python's keywords here, and numbers begin with zeros.
    python = re.sub(r"[A-Za-z_]\w*|\d+(\.\d+)?([eE][+-]?\d+)?", lambda m: "1" if m[0][0].isdigit() else "x", text)
    try:
        ast.parse(python.replace("^", "**").strip(" "), mode="eval")
    except SyntaxError as error:
        return str(error)
    return ""


def _csv(text: str) -> str:
    try:
        list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error as error:
        return str(error)
    return "" if "\r" not in re.sub(r'"[^"]*"|\r\n', "", text) else "a lone carriage return"


def _toml(text: str) -> str:
    if sys.version_info < (3, 11):
        pytest.skip("tomllib comes with Python 3.11")
    tomllib = importlib.import_module("tomllib")
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        # That a key is defined twice is not for a grammar.
        twice = "Cannot overwrite|Cannot declare|Cannot mutate|Cannot redefine|Duplicate"
        return "" if re.match(twice, str(error)) else str(error)
    return ""


def _datetime(text: str) -> str:
    if sys.version_info < (3, 11):
        pytest.skip("datetime reads all of the format from Python 3.11 on")
    # There is no year 0 in Python.
    text = text.replace("0000-", "2000-")
    try:
        if re.match(r"\d\d:", text):
            datetime.time.fromisoformat(text)
        else:
            datetime.datetime.fromisoformat(text)
    except ValueError as error:
        return str(error)
    return ""


def _url(text: str) -> str:
    try:
        parts = urllib.parse.urlsplit(text)
        if "[" in parts.netloc:
            ipaddress.IPv6Address(parts.hostname)
        elif not parts.hostname or parts.port == -1:
            return "no host"
    except ValueError as error:
        return str(error)
    return "" if re.fullmatch(r"(?:[!#$&-;=?-\[\]_a-z~]|%[0-9A-Fa-f]{2})+", text) else "a character that is in no URL"


def _markdown(text: str) -> str:
    markdown_it = pytest.importorskip("markdown_it")
    tokens = markdown_it.MarkdownIt("commonmark").enable("table").parse(text)
    kinds = [token.type for token in tokens if token.level == 0]
    rows = sum(token.type == "tr_open" for token in tokens)
    lines = len(text.strip("\r\n").split("\n"))
    if kinds != ["table_open", "table_close"]:
        return f"not one table: {kinds}"
    return "" if rows == lines - 1 else f"{rows} rows in {lines} lines"


# -- the grammars ---------------------------------------------------------------------------------

_TABLE = "| Name | Age |\n|:-----|----:|\n| Ada  | 36 |\n| `a\\|b` | *x* |\n"
JUDGES: dict[str, Judge] = {
    "sql.lark": _one_by_one(_sql),
    "c.lark": _c,
    "javascript.lark": _javascript,
    "arithmetic.lark": _one_by_one(_arithmetic),
    "csv.lark": _one_by_one(_csv),
    "toml.lark": _one_by_one(_toml),
    "iso_datetime.lark": _one_by_one(_datetime),
    "url.lark": _one_by_one(_url),
    "markdown_table.lark": _one_by_one(_markdown),
}


def _parts(items: Callable[[random.Random], object], unlike: str = "$^") -> list[str]:
    found = items(random.Random(4))
    return [text for text in (next(found) for _ in range(60)) if not re.search(unlike, text)]  # type: ignore[call-overload]


def real_texts(name: str) -> list[str]:
    if name == "sql.lark":
        library = (TEXTS / "library.sql").read_text()
        return [
            library,
            (BENCH_TEXTS / "library.sql").read_text(),
            *(part + "\n" for part in library.split("\n\n") if part),
            *_parts(sql_programs.items),
        ]
    if name == "c.lark":
        files = [(TEXTS / "hash_map.c").read_text(), (BENCH_TEXTS / "queue.c").read_text()]
        return [*files, *_parts(c_programs.items)]
    if name == "javascript.lark":
        beyond = r"\b(import|export|async|await)\b|[(=?&|:,<>] /|return /|\(/"
        return [(TEXTS / "queue.js").read_text(), *_parts(javascript_programs.items, beyond)]
    return {
        "arithmetic.lark": ["1 + 2*3", "-x ^ -2", "(1.5e-3 + sin(x, 2)) / y_1 - -4", "2^3^4", "f(g(x), (y))"],
        "csv.lark": ["name,age\nAda,36\n", 'a,"b, ""c""\nd",e\r\n1,,3\r\n', ",,\n"],
        "toml.lark": [
            Path(GRAMMARS.parent / "pyproject.toml").read_text(),
            "[[a.'b c']]\nd = [1, {e = 1979-05-27}] # f\n",
        ],
        "iso_datetime.lark": ["2024-02-29", "23:59:59.5Z", "2024-02-29T23:59:59+01:00", "1999-12-31T00:00:00"],
        "url.lark": [
            "https://user:pw@example.org:8080/a/b%20c/?q=1&r=a/b#top",
            "ftp://192.168.0.1/",
            "ws://[2001:db8::1]:80/",
        ],
        "markdown_table.lark": [_TABLE, "|a|\n|-|"],
    }[name]


@functools.cache
def grammar(name: str) -> constrain.Grammar:
    return constrain.Grammar.from_lark((GRAMMARS / name).read_text())


@functools.cache
def recognizers(name: str) -> constrain.CompiledGrammar:
    vocabulary = constrain.Vocabulary([bytes((i,)) for i in range(256)] + [b"</s>"], eos_ids=[256])
    return constrain.GrammarCompiler(vocabulary).compile(grammar(name))


def accepts(name: str, text: str) -> bool:
    recognizer = recognizers(name).recognizer()
    return all(recognizer.try_push_byte(byte) for byte in text.encode()) and recognizer.is_accepting()


def mutations(texts: list[str], count: int) -> list[str]:
    rng = random.Random(5)
    short = [text for text in texts if len(text) < 800] or texts
    pool = re.findall(r"\w+|[^\w\s]+|\s+", " ".join(texts))
    found = []
    for _ in range(count):
        parts = re.findall(r"\w+|[^\w\s]|\s+", rng.choice(short))
        for _change in range(rng.choice((1, 1, 2, 3))):
            at = rng.randrange(len(parts)) if parts else 0
            parts[at : at + rng.choice((0, 1))] = rng.choice(([], [rng.choice(pool)], [rng.choice(pool)], parts[-3:-2]))
        found.append("".join(parts))
    return found


@pytest.mark.parametrize("name", sorted(JUDGES))
def test_real_texts_are_accepted(name: str, tmp_path: Path) -> None:
    texts = real_texts(name)
    assert [text for text in texts if not accepts(name, text)] == []
    assert [verdict for verdict in JUDGES[name](texts, tmp_path) if verdict] == []


@pytest.mark.parametrize("name", sorted(JUDGES))
def test_what_is_accepted_of_mutated_texts_the_judge_accepts(name: str, tmp_path: Path) -> None:
    texts = mutations(real_texts(name), 250)
    verdicts = {True: 0, False: 0}
    for text, wrong in zip(texts, JUDGES[name](texts, tmp_path), strict=True):
        accepted = accepts(name, text)
        verdicts[accepted] += 1
        assert not (accepted and wrong), (text, wrong)
    assert min(verdicts.values()) > 10


@functools.cache
def demo_vocabulary() -> tuple[constrain.Vocabulary, list[bytes]]:
    tokenizer, _ = demo.load()
    vocabulary = constrain.Vocabulary.from_tokenizer(tokenizer)
    return vocabulary, [tokenizer.token_bytes(token) or b"" for token in range(vocabulary.size)]


def generated(name: str, seed: int, max_tokens: int) -> str:
    """A text of random tokens within a budget; mostly short tokens, each first character as likely as any other."""
    vocabulary, spellings = demo_vocabulary()
    matcher = constrain.Matcher(constrain.GrammarCompiler(vocabulary).compile(grammar(name)), max_tokens=max_tokens)
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    rng, text = random.Random(seed), b""
    for _ in range(max_tokens):
        matcher.fill_next_token_bitmask(mask)
        bits = np.unpackbits(mask[0].view(np.uint8), bitorder="little")[: vocabulary.size]
        allowed = [int(token) for token in np.flatnonzero(bits)]
        token = rng.choice(allowed)
        short: dict[bytes, list[int]] = {}
        for each in allowed:
            if len(spellings[each]) <= 2 and spellings[each].strip():
                short.setdefault(spellings[each][:1], []).append(each)
        if short and rng.random() < 0.7:
            token = rng.choice(short[rng.choice(sorted(short))])
        assert matcher.accept_token(token)
        text += spellings[token]
        if matcher.is_terminated():
            return text.decode()
    assert matcher.is_accepting()
    return text.decode()


@pytest.mark.parametrize("name", sorted(JUDGES))
def test_what_is_generated_within_a_budget_the_judge_accepts(name: str, tmp_path: Path) -> None:
    texts = [generated(name, seed, 16 + 24 * (seed % 2)) for seed in range(40)]
    assert len(set(texts)) > 30
    assert {text: wrong for text, wrong in zip(texts, JUDGES[name](texts, tmp_path), strict=True) if wrong} == {}
