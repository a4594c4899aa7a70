"""``constrain check``: valid or not, the place, and what was expected."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from constrain.cli import grammar_options

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name"],
        "additionalProperties": False,
    }
)


@pytest.fixture
def schema(tmp_path):
    file = tmp_path / "schema.json"
    file.write_text(SCHEMA)
    return file


def test_a_valid_text(run, schema, tmp_path):
    file = tmp_path / "text.json"
    file.write_text('{"name": "Ada", "age": 3}')
    assert run("check", "--schema", schema, file) == (0, f"{file}: valid\n", "")
    assert run("check", "--schema", schema, "--text", '{"name": "é"}') == (0, "--text: valid\n", "")
    assert run("check", "--schema", schema, stdin=b'{"name": ""}') == (0, "stdin: valid\n", "")
    assert run("check", "--schema", schema, "-", stdin=b'{"name": ""}') == (0, "stdin: valid\n", "")
    assert run("check", "-q", "--schema", schema, file) == (0, "", "")


def test_place_caret_and_expectation(run, schema, tmp_path):
    file = tmp_path / "text.json"
    file.write_text('{\n  "name": "Ada",\n\t"age": "x"\n}\n')
    status, out, err = run("check", "--schema", schema, file)
    assert (status, err) == (1, "")
    assert out == (
        f"{file}:3:9: not valid: '\"' cannot stand here\n"
        '  3 |     "age": "x"\n'
        "    |            ^\n"
        "expected: an integer\n"
        "the schema says:\n"
        '  3:9: /age: "x" is not an integer (#/properties/age/type)\n'
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"nom": 1}', 'expected: the rest of a property name ("name")'),
        ('{"name": 1}', "expected: a string"),
        ('{"name": "A"]', "expected: '}' or ','"),
        ('{"name": "A", "x": 1}', 'expected: the rest of a property name ("age")'),
        ('{"name": "A", }', 'expected: a property name ("age")'),
        ('{"name": "A"} x', "expected: end of text"),
        ('{"name": "A', "--text:1:12: incomplete: the text ends before it is valid"),
        ('{"name": "A', "needed: more of a string or '\"'"),
        ('{"name": "A"', "needed: '}' or ','"),
        ("", "--text:1:1: incomplete: the text ends before it is valid"),
    ],
)
def test_what_is_said(run, schema, text, said):
    status, out, _ = run("check", "--schema", schema, "--text", text)
    assert status == 1

    def parts(line):
        # Alternatives come in the order of the grammar's lexemes, which is up to the front-end.
        return sorted(re.split(" or |: ", line))

    assert parts(said) in map(parts, out.splitlines())


def test_what_is_forced_is_said(run):
    status, out, _ = run("check", "--regex", "a(bcd)e+", "--text", "a")
    assert status == 1
    assert out.endswith("needed: 'bcd'\nin any case next: 'bcde'\n")


@pytest.mark.parametrize(
    ("grammar", "text", "said"),
    [
        (("--regex", "a(b)?"), "ac", "expected: 'b' or end of text"),
        (("--choices", "a,ab,abc"), "ax", "expected: 'b', 'bc' or end of text"),
        (("--regex", "a(b|c{0,2})d?"), "ax", "end of text"),
        (("--lark", 'start: A "!"\nA: "a" "b"?\n'), "ax", "(more of A)"),
        (("--gbnf", 'root ::= "a" "b"? "c"?\n'), "ax", "end of text"),
        (("--schema", '{"enum": [1, 12]}'), "1x", "expected: "),
        (("--schema", '{"type": "string", "pattern": "^a(b)?$"}'), '"ax"', "expected: "),
    ],
)
def test_nothing_is_not_among_what_is_expected(run, tmp_path, grammar, text, said):
    option, value = grammar
    if option in ("--lark", "--gbnf", "--schema"):
        file = tmp_path / "grammar"
        file.write_text(value)
        value = file
    status, out, _ = run("check", option, value, "--text", text)
    assert status == 1
    assert said in out
    assert "''" not in out
    assert " or or " not in out


def test_a_line_break_at_the_end_is_overlooked_unless_told(run):
    for end in ("\n", "\r\n"):
        assert run("check", "--choices", "a,b", "--text", f"a{end}")[0] == 0
        status, out, _ = run("check", "--choices", "a,b", "--exact", "--text", f"a{end}")
        assert status == 1
        assert "expected: end of text" in out
    assert run("check", "--choices", "a,b", "--text", "a\n\n")[0] == 1
    assert run("check", "--regex", "a\n", "--text", "a\n")[0] == 0
    assert "incomplete" in run("check", "--regex", "a\nb", "--text", "a\n")[1]


def test_a_byte_order_mark_is_overlooked(run):
    assert run("check", "--choices", "a", stdin=b"\xef\xbb\xbfa")[0] == 0


def test_json(run, schema):
    assert json.loads(run("check", "--json", "--schema", schema, "--text", '{"name": ""}')[1]) == {"valid": True}
    status, out, _ = run("check", "--json", "--schema", schema, "--text", '{"name": é')
    answer = json.loads(out)
    assert status == 1
    assert out.count("\n") == 1
    assert answer["alternatives"][0]["texts"] == ["a string"]
    assert answer["alternatives"][0]["rules"] == ["#"]
    assert {key: answer[key] for key in ("valid", "incomplete", "line", "column", "byte", "expected")} == {
        "valid": False,
        "incomplete": False,
        "line": 1,
        "column": 10,
        "byte": 9,
        "expected": "a string",
    }


def test_what_the_schema_says(run, schema):
    """Names that the text and the schema bring, told to a person and to a program."""
    person = ROOT / "grammars" / "person.schema.json"
    status, out, _ = run("check", "--schema", person, "--text", '{"name": "Ada", "age": 36}')
    assert status == 1
    assert "''" not in out
    assert out.splitlines()[4:6] == ["the schema says:", '  1:1: missing: "email", "role" and "hobbies" (#/required)']
    status, out, _ = run("check", "--json", "--schema", person, "--text", '{"name": "Ada", "age": 36}')
    assert json.loads(out)["faults"][0] == {
        "line": 1,
        "column": 1,
        "byte": 0,
        "place": "",
        "message": 'missing: "email", "role" and "hobbies"',
        "schema_place": "#/required",
    }
    assert json.loads(run("check", "--json", "--schema", person, "--text", "x")[1])["faults"] == []
    assert "faults" not in json.loads(run("check", "--json", "--regex", "a", "--text", "x")[1])
    assert run("check", "-q", "--schema", person, "--text", "{}")[1:] == ("", "")


def test_many_faults_are_cut(run, schema):
    text = json.dumps({f"key{index}": index for index in range(30)})
    status, out, _ = run("check", "--schema", schema, "--text", text)
    assert status == 1
    assert out.endswith("  and 19 more\n")


def test_names_of_the_text_cannot_steer_a_terminal(run, schema):
    out = run("check", "--schema", schema, "--text", json.dumps({"name": "a", "\x1b[31m": 1}))[1]
    assert "\x1b" not in out
    out = run("check", "--schema", schema, "--text", '{"name": "a", "\u202e": 1}')[1]
    assert "\u202e" not in out.split("the schema says:")[1]


def test_bytes_that_are_no_text(run):
    status, out, _ = run("check", "--regex", "[a-z]+", stdin=b"ab\xff\x1b[31m")
    assert status == 1
    assert "not valid: byte 0xff cannot stand here" in out
    assert "ab\\xff\\x1b[31m" in out
    assert "\x1b" not in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--text", "a"], "exactly one of"),
        (["--choices", "a", "--text", "a", "file"], "exclude each other"),
        (["--schema", "-", "-"], "cannot both come from stdin"),
        (["--choices", "a", "--text", "a", "--json", "--quiet"], "--json and --quiet exclude each other"),
        (["--choices", "a", "--text", "\udcff"], "--text is not UTF-8 text"),
    ],
)
def test_bad_usage(run, arguments, message):
    status, out, err = run("check", *arguments)
    assert (status, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_name_that_a_terminal_might_obey(run, tmp_path):
    file = tmp_path / "a\x1b[31mb"
    file.write_text("a")
    assert run("check", "--choices", "a", file) == (0, f"{tmp_path}/a\\x1b[31mb: valid\n", "")
    status, out, err = run("check", "--choices", "a", f"{file}c")
    assert (status, out) == (1, "")
    assert "\x1b" not in err


def test_unreadable_files(run, tmp_path):
    for file in (tmp_path / "missing", tmp_path, "a\0b"):
        status, out, err = run("check", "--choices", "a", file)
        assert (status, out) == (1, "")
        assert err.startswith("constrain: cannot read")
        assert err.count("\n") == 1


def test_a_text_without_an_end(run, monkeypatch):
    monkeypatch.setattr(grammar_options, "_MOST_BYTES", 1 << 20)
    for arguments in (["--choices", "a", "/dev/zero"], ["--schema", "/dev/zero", "--text", "a"]):
        status, out, err = run("check", *arguments)
        assert (status, out) == (1, "")
        assert err == "constrain: cannot read '/dev/zero': it has more than 1 MB, the most that is read\n"
    assert run("check", "--choices", "a", stdin=b"a" * (1 << 20)) != (1, "", "")
    status, out, err = run("check", "--choices", "a", stdin=b"a" * ((1 << 20) + 1))
    assert (status, out, err) == (1, "", "constrain: cannot read '-': it has more than 1 MB, the most that is read\n")


def test_without_a_text_a_terminal_is_not_waited_for():
    pty = pytest.importorskip("pty", reason="no terminals here")
    ours, theirs = pty.openpty()
    try:
        command = [sys.executable, "-m", "constrain", "check", "--choices", "a"]
        done = subprocess.run(command, stdin=theirs, capture_output=True, timeout=60, check=False)
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == 2
    assert b"there is no text" in done.stderr


def test_colours_for_a_terminal_only(run, monkeypatch):
    monkeypatch.setattr("constrain.cli.output.colours_wanted", lambda: True)
    assert "\x1b[32mvalid\x1b[0m" in run("check", "--choices", "a", "--text", "a")[1]
    monkeypatch.undo()
    assert run("check", "--choices", "a", "--text", "a")[1] == "--text: valid\n"


@pytest.mark.parametrize("kind", ["tools", "structural-tag"])
def test_what_is_not_supported_in_schemas_within(run, tmp_path, kind):
    schema = {"properties": {"a": {"type": "string", "pattern": r"^(.)\1$"}}}
    file = tmp_path / "grammar.json"
    if kind == "tools":
        file.write_text(json.dumps([{"name": "f", "parameters": schema}]))
        options = ("--tools", file, "--style", "llama4_pythonic")
    else:
        file.write_text(json.dumps({"type": "json_schema", "json_schema": schema}))
        options = ("--structural-tag", file)
    text = '[f(a="xy")]' if kind == "tools" else '{"a": "xy"}'
    status, _, err = run("check", *options, "--text", text)
    assert status == 1
    assert "pattern '^(.)\\\\1$'" in err
    status, out, err = run("check", *options, "--lenient", "--text", text)
    assert (status, out) == (0, "--text: valid\n")
    assert "it is not enforced" in err
    status, _, err = run("check", *options, "--lenient", "--indent", "2", "--text", text)
    assert status == 2
    assert "--indent needs --schema" in err
