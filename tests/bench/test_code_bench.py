"""The benchmark of programming languages: its programs, its grammars in each notation, and its machinery."""

from __future__ import annotations

import ast
import base64
import contextlib
import json
import shutil
import sqlite3
import subprocess
import warnings
from pathlib import Path

import lark
import maskbench_workers
import numpy as np
import pytest
from byte_tokens import fits

import constrain
from bench.code import measuring, notation, tables
from bench.code.command import _result
from bench.code.engines import CANDIDATES, LLGUIDANCE, OURS, OURS_GBNF
from bench.code.languages import LANGUAGES
from bench.code.measuring import EngineRun, Program, ProgramRun
from bench.code.result import engine_figures, ratio
from bench.code.worker import Compile, Lost, Part, Player
from bench.maskbench.jobs import Kind, Ready
from bench.maskbench.runner import WorkerFailed
from bench.maskbench.vocabulary import TokenTable
from constrain.cli import bench as bench_command
from constrain.cli.main import main

SEEDS = (1, 2, 3)

WRONG = {
    "c": (
        "int f(int a) { return a + ; }",
        "int f(int a) { if a { } }",
        "struct { int a }; int b;",
        "int 1a;",
        "int a = 'ab';",
    ),
    "sql": (
        "SELECT FROM t;",
        "SELECT a FROM t WHERE b = ;",
        "INSERT INTO t VALUES 1;",
        "SELECT 'a;",
        "DROP t;",
        "SELECT a",
    ),
    "python": (
        "if x:\ny = 1\n",
        "def f(:\n    pass\n",
        "x = [1, 2\ny = 1\n",
        "if x:\n    y = 1\n  z = 2\n",
        "x = 'a\n",
        "class A\n    pass\n",
        "x = 1",
    ),
    "javascript": (
        "let a b = 1;",
        "if (a { b(); }",
        "x = `a ${b;",
        "class A { f( { } }",
        "for (const a of) { }",
        "x = ;",
    ),
    "rust": ("fn f( { }", "struct A { a u8 }", "fn f() { let x = ; }", "fn f() { match a { b => } }", "impl { }"),
    "graphql": (
        "query { }",
        "type A { a: }",
        "query ($a Int) { b }",
        "{ a(b: ) }",
        'type A { "a" }',
        "fragment on A { b }",
    ),
}


@pytest.fixture(scope="module")
def compiler() -> constrain.GrammarCompiler:
    """For single bytes."""
    return constrain.GrammarCompiler(constrain.Vocabulary([bytes([i]) for i in range(256)] + [b"</s>"], eos_ids=[256]))


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a rank file of bytes and some longer tokens; the file."""
    folder = tmp_path_factory.mktemp("data") / "vocab"
    folder.mkdir()
    tokens = [*(bytes([i]) for i in range(256)), b"SE", b"LE", b"SELE", b"CT", b"  ", b" t", b");", b"int"]
    lines = (b"%s %d\n" % (base64.b64encode(token), rank) for rank, token in enumerate(tokens))
    file = folder / "llama3.tiktoken"
    file.write_bytes(b"".join(lines))
    return file


def of_length(count: int, name: str, seed: int) -> str:
    """A program of at least ``count`` characters."""
    return LANGUAGES[name].program(seed, lambda text: len(text) >= count)


def accepts(compiled: constrain.CompiledGrammar, text: str) -> bool:
    return fits(compiled, text)


# -- programs and grammars --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", ["lark", "gbnf"])
@pytest.mark.parametrize("name", LANGUAGES)
def test_programs_belong_to_their_grammars(name: str, dialect: str, compiler: constrain.GrammarCompiler) -> None:
    text = getattr(LANGUAGES[name], dialect)()
    compiled = compiler.compile(getattr(constrain.Grammar, f"from_{dialect}")(text))
    for seed in SEEDS:
        assert accepts(compiled, of_length(60_000, name, seed)), seed
    for probe in LANGUAGES[name].probes:
        assert accepts(compiled, probe), probe
    for wrong in WRONG[name]:
        assert not accepts(compiled, wrong), wrong


@pytest.mark.parametrize("name", LANGUAGES)
def test_llguidance_reads_the_grammar(name: str) -> None:
    llguidance = pytest.importorskip("llguidance")
    text = llguidance.LLMatcher.grammar_from_lark(LANGUAGES[name].llguidance())
    assert llguidance.LLMatcher.validate_grammar(text) == ""


@pytest.mark.parametrize("name", LANGUAGES)
def test_programs_depend_on_their_seeds_alone(name: str) -> None:
    text = of_length(3000, name, 1)
    assert text == of_length(3000, name, 1)
    assert text != of_length(3000, name, 2)
    longer = of_length(20_000, name, 1)
    assert longer.startswith(text)
    assert len(longer) > len(text)


@pytest.mark.parametrize("name", LANGUAGES)
def test_programs_have_many_names_and_are_nested(name: str) -> None:
    text = of_length(20_000, name, 1)
    words = {word.strip("_") for word in text.replace("(", " ").replace(".", " ").split() if word.isidentifier()}
    assert len(words) > 300
    indents = {len(line) - len(line.lstrip()) for line in text.splitlines() if line.strip()}
    assert len(indents) >= (2 if name == "sql" else 4)


@pytest.mark.parametrize("seed", SEEDS)
def test_programs_in_python_are_python(seed: int) -> None:
    with warnings.catch_warnings():
        # "a" is 1, and the like.
        warnings.simplefilter("ignore", SyntaxWarning)
        module = ast.parse(of_length(40_000, "python", seed))
    assert sum(isinstance(node, ast.FunctionDef) for node in ast.walk(module)) > 20


@pytest.mark.parametrize("seed", SEEDS)
def test_programs_in_sql_are_sql(seed: int) -> None:
    connection = sqlite3.connect(":memory:")
    statement, count = "", 0
    for line in of_length(30_000, "sql", seed).splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            # Rows are made up, and constraints may not hold; what is not SQL is an error of its own.
            with contextlib.suppress(sqlite3.IntegrityError):
                connection.execute(statement)
            statement, count = "", count + 1
    assert not statement.strip()
    assert count > 30


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
@pytest.mark.parametrize("seed", SEEDS)
def test_programs_in_javascript_are_javascript(seed: int, tmp_path: Path) -> None:
    file = tmp_path / "program.mjs"
    file.write_text(of_length(40_000, "javascript", seed), encoding="utf-8")
    done = subprocess.run(["node", "--check", str(file)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr[:500]


@pytest.mark.parametrize("name", ["c", "sql"])
def test_a_parser_with_a_lexer_reads_the_programs(name: str) -> None:
    # Lark's lexer tries terminals one after the other; which comes first is said here.
    text = (
        LANGUAGES[name]
        .lark()
        .replace("TYPE_NAME: ", "TYPE_NAME.2: ")
        .replace("_t/", "_t\\b/")
        .replace("FLOAT:", "FLOAT.2:")
    )
    parser = lark.Lark(text, parser="lalr")
    for seed in SEEDS:
        assert parser.parse(of_length(8000, name, seed)).children
    with pytest.raises(lark.exceptions.UnexpectedInput):
        parser.parse(WRONG[name][0])


# -- notations --------------------------------------------------------------------------------------------------------


def test_gbnf_has_white_space_after_every_terminal() -> None:
    text = 'start: NAME+ ["=" (NUMBER | "x"i)] // a note\n     | "a"*\nNAME: /[a-z_]+/\nNUMBER: /\\d+/\n%ignore SPACE\n'
    with pytest.raises(notation.NotPlain, match="d"):
        notation.to_gbnf(text)
    text = text.replace("\\d", "[0-9]") + "SPACE: /[ \\n]+/\n"
    assert notation.to_gbnf(text).splitlines() == [
        "root ::= ws start",
        'start ::= (NAME ws)+ ("=" ws (NUMBER ws | [xX] ws))? |',
        '    ("a" ws)*',
        "NAME ::= [a-z_]+",
        "NUMBER ::= [0-9]+",
        "ws ::= ([ \\n])*",
    ]


@pytest.mark.parametrize(
    ("regex", "gbnf"),
    [
        ("ab+c", '"a" "b"+ "c"'),
        ("abc", '"abc"'),
        (r"\/\*", '"/*"'),
        (r'"\\.', r'"\"\\" [^\n]'),
        (r"[^\]\\\"]{2,3}", r'[^\]\\"]{2,3}'),
        (r"(?:a|[b\-])?", r'( "a" | [b\-] )?'),
    ],
)
def test_regexes_as_gbnf(regex: str, gbnf: str, compiler: constrain.GrammarCompiler) -> None:
    made = notation.to_gbnf(f"start: A\nA: /{regex}/\n")
    assert made == f"root ::= start\nstart ::= A\nA ::= {gbnf}\n"
    mine, other = (
        compiler.compile(grammar)
        for grammar in (constrain.Grammar.from_gbnf(made), constrain.Grammar.from_regex(regex.replace(r"\/", "/")))
    )
    for text in ("abc", "abbc", "a", "b", "-", "", "/*", '"\\x', "]]", "xx", "xxx", "xxxx"):
        assert accepts(mine, text) == accepts(other, text), text


@pytest.mark.parametrize("text", ["start: a -> b", "start: /(?=a)/", "start: /^a/", 'start: "a"~3', "a", "start: {x}"])
def test_what_is_not_plain_is_refused(text: str) -> None:
    with pytest.raises(notation.NotPlain):
        notation.to_gbnf(text)


def test_blanks_are_put_after_strings_and_terminals() -> None:
    made = notation.with_blanks('a: "(" NAME+ _LINE // B\n | b "x"', "_B", {'"("': "_S"})
    assert made == 'a: "(" [_S] (NAME [_B])+ _LINE // B\n | b "x" [_B]'


# -- machinery --------------------------------------------------------------------------------------------------------


def test_a_program_says_where_its_tokens_are(vocabulary: Path) -> None:
    pytest.importorskip("tiktoken")
    program = Program.of("SELECT ä\n  t;", TokenTable.read(vocabulary))
    assert sum(program.lengths) == len(program.text.encode())
    assert program.place(0) == "token 0 ('SELE', line 1, column 1)"
    assert program.place(len(program.tokens) - 1) == f"token {len(program.tokens) - 1} (';', line 2, column 4)"


def test_both_programs_run_through_both_notations(vocabulary: Path) -> None:
    pytest.importorskip("tiktoken")
    language, table = LANGUAGES["sql"], TokenTable.read(vocabulary)
    programs = [Program.make(language, seed, 300, table) for seed in (1, 2)]
    wrong = Program.of("SELECT 1; SELEKT 2;", table)
    seen: list[str] = []
    runs = measuring.measure(
        language,
        [OURS, OURS_GBNF],
        programs,
        [wrong, Program.of("SELECT 1;", table)],
        vocabulary,
        limits={OURS_GBNF: 100},
        part=64,
        progress=seen.append,
    )
    first, second = runs
    assert [run.name for run in runs] == [OURS, OURS_GBNF]
    assert [len(run.steps) for run in first.programs] == [len(program.tokens) for program in programs]
    assert [run.message for run in first.programs] == ["", ""]
    assert all((run.steps > 0).all() for run in first.programs)
    assert first.compile > 0
    assert first.programs[0].first is not None
    assert first.programs[0].first[0]
    assert first.programs[1].first is not None
    assert not first.programs[1].first[0]
    assert 0 < (first.programs[0].table_bytes or 0) < (first.programs[1].table_bytes or 0)
    # One with a limit gets the beginning of one program only.
    assert [len(run.steps) for run in second.programs] == [100]
    assert second.programs[0].message == ""
    for run in runs:
        (message,) = run.probes.values()
        assert list(run.probes) == [wrong.text]
        assert message.startswith("refuses token ")
        assert "line 1, column 15" in message
    assert any("compiles" in text for text in seen)
    result = _result(language, programs, runs)
    report = tables.report([result])
    assert f"{len(programs[0].tokens):,} and {len(programs[1].tokens):,} tokens" in report
    assert "of the small program 'SELECT 1; SELEKT 2;', refuses token" in report
    json.dumps(result.to_json())


def test_a_refused_program_and_a_refused_grammar_are_told(vocabulary: Path) -> None:
    pytest.importorskip("tiktoken")
    language, table = LANGUAGES["sql"], TokenTable.read(vocabulary)
    programs = [Program.of("SELECT a FROM t WHERE = 1;\n", table), Program.of("SELECT a FROM t", table)]
    (run,) = measuring.measure(language, [OURS], programs, [], vocabulary, limits={}, part=4)
    assert run.programs[0].message.startswith("refuses token ")
    assert len(run.programs[0].steps) < len(programs[0].tokens)
    assert run.programs[1].message == "refuses the end of the program"
    figures = engine_figures(run, language.lark())
    assert figures.messages[0].startswith("program 1: refuses token")
    assert figures.first_quarter is None

    player = Player(OURS, vocabulary)
    try:
        player.wait()
        answer = player.ask(Compile(Kind.LARK, "start: nothing"), 60)
        assert getattr(answer, "nanoseconds", None) == -1
        assert "nothing" in getattr(answer, "message", "")
    finally:
        player.kill()


def test_a_process_that_ends_costs_its_engine_only(vocabulary: Path) -> None:
    player = Player(OURS, vocabulary, maskbench_workers.mute)
    try:
        player.wait()
        assert player.ask(Part([1], 1.0), 0.2) == Lost("not done after 0.2 s")
        # It is not asked again.
        assert player.ask(Part([1], 1.0), 60) == Lost("not done after 0.2 s")
    finally:
        player.kill()
    with pytest.raises(WorkerFailed):
        Player(OURS, vocabulary, maskbench_workers.stillborn).wait()


def program_run(steps: list[int], message: str = "") -> ProgramRun:
    times = np.array(steps, np.int64) * 1000
    first = np.arange(len(steps)) % 2 == 0
    return ProgramRun(times, times > 90_000, first, message, 2_000_000, 0)


def test_figures() -> None:
    run = EngineRun("one", Ready(version="1"), 5_000_000)
    run.programs = [program_run([*[40] * 250, *[20] * 500, *[10] * 249, 100]), program_run([7, 9])]
    figures = engine_figures(run, "a\n\nb\n")
    assert (figures.steps, figures.interrupted, figures.grammar_lines) == (1000, 1, 2)
    assert figures.mask["p50"] == pytest.approx(20)
    assert (figures.mask["max"], figures.undisturbed["max"]) == (100, 40)
    assert (figures.beginning, figures.first_quarter) == (30, 40)
    assert figures.last_quarter == pytest.approx((249 * 10 + 100) / 250)
    assert (figures.new, figures.second, figures.compile) == (0.5, 8, 5000)
    assert figures.messages == []
    # What did not come to its end has no last quarter.
    run.programs[0] = program_run([40] * 600, "refuses token 599")
    figures = engine_figures(run, "")
    assert (figures.beginning, figures.last_quarter) == (40, None)


def test_ratios_are_over_the_steps_that_both_took() -> None:
    mine, other = EngineRun("one", Ready()), EngineRun("two", Ready())
    assert ratio(mine, other) is None
    mine.programs, other.programs = [program_run([10, 10, 1000])], [program_run([20, 20])]
    found = ratio(mine, other)
    assert found is not None
    assert (found.steps, found.share["mean"], found.share["max"]) == (2, 0.5, 0.5)
    other.programs = [program_run([])]
    assert ratio(mine, other) is None


# -- the command ------------------------------------------------------------------------------------------------------


def test_programs_and_grammars_are_written(
    vocabulary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tiktoken")
    monkeypatch.setenv("CONSTRAIN_TEST_DATA", str(vocabulary.parents[1]))
    arguments = ["--languages", "sql,c", "--tokens", "50", "--seed", "4"]
    assert main(["bench", "code", *arguments, "--write", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out == ""
    written = {file.name for file in (tmp_path / "out").iterdir()}
    assert written == {
        f"{name}{suffix}" for name in ("c", "sql") for suffix in (".lark", ".llguidance.lark", ".gbnf")
    } | {
        "program.c",
        "program.sql",
    }
    assert (tmp_path / "out" / "program.sql").read_text() == LANGUAGES["sql"].program(4, lambda text: len(text) >= 100)


def test_the_command_measures(
    vocabulary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tiktoken")
    monkeypatch.setenv("CONSTRAIN_TEST_DATA", str(vocabulary.parents[1]))
    file = tmp_path / "found.json"
    arguments = ["--languages", "graphql", "--engines", "constrain", "--tokens", "100", "--clock", "processor"]
    assert main(["bench", "code", *arguments, "--json", str(file)]) == 0
    out = capsys.readouterr().out
    assert "**graphql**: two programs of" in out
    assert "| constrain |" in out
    found = json.loads(file.read_text())
    assert found["settings"]["clock"] == "processor"
    assert found["report"] in out
    (language,) = found["languages"]
    assert language["engines"][0]["steps"] == language["tokens"][0] >= 100


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--languages", "c,cobol"], "'cobol' is none of c, sql, python, javascript, rust, graphql"),
        (["--engines", "none"], f"'none' is none of {', '.join(CANDIDATES)}"),
        (["--tokens", "0"], "0 is not in the range"),
    ],
)
def test_wrong_options_are_told(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "code", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_without_the_vocabulary_there_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CONSTRAIN_TEST_DATA", str(tmp_path))
    assert main(["bench", "code"]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "no " in error
    assert "llama3.tiktoken: let CONSTRAIN_TEST_DATA name the folder" in error


def test_an_engine_that_is_not_installed_is_told(
    vocabulary: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tiktoken")
    monkeypatch.setenv("CONSTRAIN_TEST_DATA", str(vocabulary.parents[1]))
    monkeypatch.setattr("bench.code.command.installed", lambda name: name != LLGUIDANCE)
    assert main(["bench", "code", "--engines", f"{OURS},{LLGUIDANCE}"]) == 1
    assert "llguidance: not installed" in capsys.readouterr().err


def test_without_a_checkout_the_command_says_where_it_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench_command, "_ROOT", tmp_path)
    assert main(["bench", "code"]) == 1
    assert "run it in a checkout" in capsys.readouterr().err
