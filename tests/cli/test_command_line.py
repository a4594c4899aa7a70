"""The command line: what it prints where, its exit codes, and one line for whatever is wrong."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from constrain.cli.main import main
from constrain.version import __version__

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 99},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}


@pytest.fixture
def run(capsysbinary):
    """Run the command in this process; returns the exit code, stdout and stderr."""

    def run(*arguments):
        status = main([str(argument) for argument in arguments])
        captured = capsysbinary.readouterr()
        return status, captured.out.decode(), captured.err.decode()

    return run


def command(*arguments, **options):
    return subprocess.Popen([sys.executable, "-m", "constrain", *arguments], stderr=subprocess.PIPE, **options)


def one_line(text):
    first, _, rest = text.partition("\n")
    if "compiling kernels" in first and rest:
        text = rest  # whichever test comes first on a machine also gets to see this
    assert text.startswith("constrain")
    assert text.endswith("\n")
    assert text.count("\n") == 1
    assert "Traceback" not in text
    return text


# -- help and usage ------------------------------------------------------------------------------


def test_help_lists_commands_and_exit_codes(run):
    for flag in ("--help", "-h"):
        status, out, err = run(flag)
        assert (status, err) == (0, "")
        for text in (
            "generate",
            "warmup",
            "0    done",
            "1    bad input",
            "2    bad usage",
            "3    --num-tokens",
            "130",
            "141",
        ):
            assert text in out
    status, out, _ = run("generate", "--help")
    assert status == 0
    assert all(
        f"--{name}" in out
        for name in ("schema", "regex", "lark", "gbnf", "ebnf", "choices", "lexing", "prompt", "seed")
    )


def test_version(run):
    assert run("--version") == (0, f"constrain {__version__}\n", "")


def test_without_arguments_it_shows_the_help(run):
    status, out, err = run()
    assert (status, out) == (2, "")
    assert err.startswith("Usage: constrain")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["generate"],
            "--gbnf, --ebnf, --choices, --structural-tag, --tools is needed, but there is none",
        ),
        (["generate", "--regex", "a", "--choices", "b"], "but there is --regex and --choices"),
        (["generate", "--choices", ""], "there is no choice"),
        (["generate", "--choices", "a,,b"], "a choice is empty"),
        (["generate", "--choices", 'a,"b'], "not a line of CSV"),
        (["generate", "--regex", "a", "--max-tokens", "-5"], "'--max-tokens': -5 is not in the range"),
        (["generate", "--regex", "a", "--max-tokens", "0"], "'--max-tokens': 0 is not in the range"),
        (["generate", "--regex", "a", "--max-tokens", "many"], "'many' is not a valid integer"),
        (["generate", "--regex", "a", "--temperature", "-1"], "temperature must be a number from 0 up, not -1.0"),
        (["generate", "--regex", "a", "--temperature", "nan"], "temperature must be"),
        (["generate", "--regex", "a", "--top-p", "0"], "top_p must be above 0"),
        (["generate", "--regex", "a", "--top-k", "-1"], "top_k must be"),
        (["generate", "--regex", "a", "--seed", "-1"], "'--seed': -1 is not in the range"),
        (["generate", "--regex", "a", "--seed", str(2**64)], "'--seed'"),
        (["generate", "--regex"], "requires an argument"),
        (["generate", "--regex", "a\udcff"], "--regex is not UTF-8 text"),
        (["generate", "--regex", "a", "--prompt", "\udcff"], "--prompt is not UTF-8 text"),
        (["generate", "--regex", "a", "--bad-word", "\udcff"], "--bad-word is not UTF-8 text"),
        (["generate", "--regex", "a", "--samplers", "\udcff"], "--samplers is not UTF-8 text"),
        (["generate", "--schema", os.devnull, "--whitespace-pattern", "\udcff"], "--whitespace-pattern is not UTF-8"),
        (["generate", "--regex", "a", "--samplers", "dry,nowhere"], "no step is called 'nowhere'"),
        (["generate", "--regex", "a", "--bad-word", ""], "--bad-word needs a text"),
        (["generate", "--tools", os.devnull, "--style", "nowhere"], "there is no style 'nowhere'"),
        (
            ["mask", "--tools", os.devnull, "--style", "qwen3", "--no-reasoning", "--reasoning-tokens", "5"],
            "--no-reasoning and --reasoning-tokens exclude each other",
        ),
        (["tokenize", "--decode", "--special", "5"], "do not go with --decode"),
        (["tokenize", "--decode", "--read", "none", "5"], "do not go with --decode"),
        (["tokenize", "--read", "\udcff", "a"], "--read is not UTF-8 text"),
        (["generate", "--bogus"], "No such option"),
        (["generate", "--regex", "a", "stray"], "unexpected extra argument"),
        (["bogus"], "No such command 'bogus'"),
        (["--bogus"], "No such option"),
    ],
)
def test_bad_usage_is_one_line_and_exit_code_2(run, arguments, message):
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert message in one_line(err)
    assert "--help'" in err


# -- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "content", "message"),
    [
        ("--schema", '{"type": "object",\n "oops}', "line 2, column"),
        ("--schema", "", "line 1, column 1"),
        ("--schema", "[" * 100_000, ""),
        ("--schema", '{"type": "strin"}', "#/type"),
        ("--schema", '{"type": "string", "minLength": 3, "maxLength": 1}', "#"),
        ("--schema", '{"properties": {"a": {"not": 5}}}', "#/properties/a"),
        ("--schema", b'{"const": "\xff"}', "not UTF-8 text (byte 11)"),
        ("--lark", "start: nowhere\n", "line 1, column"),
        ("--lark", "begin: /a/\n", "start"),
        ("--lark", 'start: "a\n', "line 1"),
        ("--llguidance", "start: @a\n", "line 1, column 8: there is no grammar @a"),
        ("--llguidance", '{"grammars": []}', "a list of grammars looks like"),
        ("--gbnf", "root ::= nowhere\n", "line 1, column"),
        ("--gbnf", 'other ::= "a"\n', "root"),
        ("--ebnf", "root ::= nowhere\n", "line 1, column"),
        (
            "--schema",
            '{"maximum": 1e99999999999999999999}',
            "the exponent of the number '1e99999999999999999999' is too large",
        ),
        ("--schema", '{"const": ' + "1" * 5_000 + "}", "#/const: the number"),
        ("--structural-tag", "[" * 100_000, "nested too deeply"),
        ("--structural-tag", '{"type": "regex",\n "oops}', "line 2, column"),
        ("--tools", "[" * 100_000, "nested too deeply"),
        ("--tools", "[{]", "line 1, column"),
    ],
)
def test_bad_file_is_one_line_and_exit_code_1(run, tmp_path, option, content, message):
    file = tmp_path / "grammar.txt"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    style = ["--style", "qwen3"] if option == "--tools" else []
    status, out, err = run("generate", option, file, *style)
    assert (status, out) == (1, "")
    assert one_line(err).startswith(f"constrain: {file}: ")
    assert message in err


@pytest.mark.parametrize("pattern", ["(", "a{2,1}", "[b-a]", "\\", "(?=a)(?<=b)"])
def test_bad_regex_is_one_line_and_exit_code_1(run, pattern):
    status, out, err = run("generate", "--regex", pattern)
    assert (status, out) == (1, "")
    assert one_line(err).startswith("constrain: --regex: ")


@pytest.mark.parametrize("option", ["--schema", "--lark", "--gbnf", "--ebnf"])
def test_unreadable_file_is_one_line_and_exit_code_1(run, tmp_path, option):
    for path, reason in ((tmp_path / "missing", "No such file"), (tmp_path, "Is a directory")):
        status, out, err = run("generate", option, path)
        assert (status, out) == (1, "")
        assert one_line(err).startswith(f"constrain: cannot read '{path}': {reason}")


# -- generation ----------------------------------------------------------------------------------


def check_report(err, tokens=None):
    assert "demonstration model" in err
    summary = re.search(
        r"^constrain: (\d+) tokens?(?: \(\d+ % forced\))?(?:, first after [\d.]+ ms)?"
        r"(?:, then [\d.]+ ms a token \(p99 [\d.]+ ms\))?"
        r", masks [\d.]+ ms \(\d+ % of the time\); seed \d+$",
        err,
        re.MULTILINE,
    )
    assert summary, err
    if tokens is not None:
        assert int(summary[1]) == tokens


def test_json_schema(run, tmp_path):
    file = tmp_path / "schema.json"
    file.write_text(json.dumps(SCHEMA), encoding="utf-8-sig")
    for seed in range(4):
        status, out, err = run("generate", "--schema", file, "--seed", seed, "--prompt", "A person:")
        assert status == 0, err
        jsonschema.validate(json.loads(out), SCHEMA)
        assert out.endswith("\n")
        check_report(err)
        assert f"seed {seed}\n" in err


def test_warnings_are_shown(run, tmp_path):
    file = tmp_path / "schema.json"
    file.write_text(json.dumps({"const": 1, "frobnicate": 1}))
    status, out, err = run("generate", "--schema", file)
    assert (status, json.loads(out)) == (0, 1)
    assert f"constrain: warning: {file}: at #/frobnicate: " in err
    file.write_text(json.dumps({"const": 1, **{f"x{i}": 1 for i in range(20)}}))
    _, _, err = run("generate", "--schema", file)
    assert err.count("constrain: warning: ") == 6
    assert "and 15 more\n" in err


def test_json_schema_from_stdin(run, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"const": "caf\xc3\xa9"}')))
    status, out, _ = run("generate", "--schema", "-")
    assert (status, json.loads(out)) == (0, "café")


def test_other_grammars(run, tmp_path):
    lark = tmp_path / "g.lark"
    lark.write_text('%import .words.WORD\nstart: WORD ("+" WORD)~2\n')
    (tmp_path / "words.lark").write_text("WORD: /[a-c]/\n")
    gbnf = tmp_path / "g.gbnf"
    gbnf.write_text('root ::= [a-c] ("+" [a-c]){2}\n')
    ebnf = tmp_path / "g.ebnf"
    ebnf.write_text('root ::= Regex("[a-c]") ("+" [a-c]){2}\n')
    listed = tmp_path / "g.json"
    grammars = [{"lark_grammar": 'start: @c ("+" @c)~2'}, {"name": "c", "lark_grammar": "start: /[a-c]/"}]
    listed.write_text(json.dumps({"grammars": grammars}))
    files = (["--lark", lark], ["--llguidance", listed], ["--gbnf", gbnf], ["--ebnf", ebnf])
    for arguments in (*files, ["--regex", r"[a-c](\+[a-c]){2}"]):
        status, out, err = run("generate", *arguments, "--seed", 1)
        assert status == 0, err
        assert re.fullmatch(r"[a-c](\+[a-c]){2}\n", out)
    for choices, allowed in (("yes,no", {"yes", "no"}), ('"a, b"', {"a, b"}), ("ü", {"ü"})):
        status, out, err = run("generate", "--choices", choices)
        assert status == 0, err
        assert out.removesuffix("\n") in allowed


def test_a_seed_repeats_and_seeds_differ(run):
    outputs = {seed: run("generate", "--regex", "[a-z ]{30}", "--seed", seed)[1] for seed in (1, 2)}
    assert run("generate", "--regex", "[a-z ]{30}", "--seed", 1)[1] == outputs[1] != outputs[2]
    greedy = [run("generate", "--regex", "[a-z ]{30}", "--temperature", "0")[1] for _ in range(2)]
    assert greedy[0] == greedy[1]


def test_running_out_of_tokens_is_exit_code_3(run):
    for option in ("--max-tokens", "--num-tokens", "-n"):
        status, out, err = run("generate", "--regex", "[a-z]{400}", option, "7")
        assert (status, out) == (3, "")
        said = re.search(r"--num-tokens 7 is too little: the shortest text of the grammar takes (\d+) tokens\n$", err)
        assert said, err
    status, out, err = run("generate", "--regex", "[a-z]{400}", "-n", said[1])
    assert status == 0
    assert re.fullmatch("[a-z]{400}\n", out)
    check_report(err, tokens=int(said[1]))


# -- the process ---------------------------------------------------------------------------------


def test_nothing_heavy_is_imported_for_help_and_usage_errors():
    code = (
        "import sys; from constrain.cli.main import main; main(['--help']); main(['generate']);"
        "sys.exit(bool({'numpy', 'numba', 'lark'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


ENDLESS = ["generate", "--regex", "[a-z ]{100000}", "--max-tokens", "100000"]


@pytest.mark.skipif(os.name == "nt", reason="no SIGINT to send to one process")
@pytest.mark.usefixtures("interruptible")
def test_interrupt():
    with command(*ENDLESS, stdout=subprocess.PIPE) as process:
        assert process.stdout.read(10)
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        err = process.stderr.read().decode()
    assert process.returncode == 130
    assert err.endswith("constrain: interrupted\n")
    assert "Traceback" not in err


def test_closed_pipe():
    with command(*ENDLESS, stdout=subprocess.PIPE) as process:
        assert process.stdout.read(10)
        process.stdout.close()
        err = process.stderr.read().decode()
    assert process.returncode == 141
    assert re.fullmatch("constrain: .* demonstration model.*\n", err)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_full_disk():
    with open("/dev/full", "wb") as full, command("generate", "--choices", "a", stdout=full) as process:
        err = process.stderr.read().decode()
    assert process.returncode == 1
    assert err.endswith("constrain: cannot write the output: No space left on device\n")
    assert "Traceback" not in err


# -- the first run -------------------------------------------------------------------------------


def import_kernels(**environment):
    code = (
        "from constrain.cli import first_run; first_run.announce_compilation();"
        "import constrain.sampling.kernels.arithmetic as k, numpy; k.uniform(numpy.zeros(1, dtype=numpy.uint64))"
    )
    environment = {**os.environ, "CONSTRAIN_KERNELS": "jit", "NUMBA_CACHE_DIR": "", **environment}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return done.stderr


def test_compiling_is_announced_once(tmp_path):
    message = one_line(import_kernels(CONSTRAIN_CACHE_DIR=str(tmp_path)))
    assert message.startswith("constrain: compiling kernels for this machine (first run")
    assert import_kernels(CONSTRAIN_CACHE_DIR=str(tmp_path)) == ""


def test_warmup(run):
    status, out, err = run("warmup")
    assert (status, out) == (0, "")
    assert re.search(r"^constrain: kernels are ready \([\d.]+ s\)$", err, re.MULTILINE)


def test_without_a_writable_cache_it_still_runs(tmp_path):
    (tmp_path / "file").write_text("")
    err = import_kernels(CONSTRAIN_CACHE_DIR=str(tmp_path / "file" / "folder"))
    assert re.match(r"constrain: compiling kernels .*no cache folder can be written", err)


def test_a_schema_in_place_of_its_file(run):
    status, out, err = run("generate", "--schema", '{"type": "null"}')
    assert (status, out) == (1, "")
    assert one_line(err).endswith("; '-' reads it from stdin\n")
