"""What all commands have in common: sections of the help, completion, and outputs that cannot be written."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from constrain.cli.main import _SECTIONS, cli

COMMAND = [sys.executable, "-m", "constrain"]
needs_dev_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")


def test_every_command_is_in_a_section():
    named = [name for names in _SECTIONS.values() for name in names]
    assert sorted(named) == sorted(cli.commands)


@pytest.mark.parametrize("name", ["check", "explain", "mask", "tokenize", "warmup"])
def test_help_has_sections_and_says_what_options_take(run, name):
    status, out, err = run(name, "--help")
    assert (status, err) == (0, "")
    assert len(re.findall(r"^[A-Z][a-z]+(?:, [a-z ]+)?:", out, re.MULTILINE)) >= 2
    # Every option has a word to say for itself.
    for option in cli.commands[name].params:
        if option.param_type_name == "option":
            assert option.help


@pytest.mark.parametrize("name", ["check", "explain", "generate", "mask"])
def test_bad_usage_points_to_the_help_of_the_command(run, name):
    status, out, err = run(name, "--schema")
    assert (status, out) == (2, "")
    assert err == f"constrain: Option '--schema' requires an argument. (see 'constrain {name} --help')\n"


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("constrain ch", "plain,check"),
        ("constrain check --sch", "plain,--schema"),
        ("constrain generate --backend d", "plain,demo"),
        ("constrain mask --model d", "file,d"),
    ],
)
def test_completion(words, completed):
    environment = {
        **os.environ,
        "_CONSTRAIN_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    code = "import sys; from constrain.cli.main import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == f"{completed}\n"


# What is left in a buffer is written when the interpreter ends, where no exception can be caught any more.
both_buffered_and_not = pytest.mark.parametrize("unbuffered", ["", "1"])


@needs_dev_full
@both_buffered_and_not
@pytest.mark.parametrize(
    "arguments", [["--version"], ["check", "--help"], ["check", "--choices", "a", "--text", "a"], ["tokenize", "a"]]
)
def test_a_full_disk_is_one_line(arguments, unbuffered):
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with open("/dev/full", "wb") as full:
        done = subprocess.run([*COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, env=environment, check=False)
    assert done.returncode == 1
    assert done.stderr.endswith(b"constrain: cannot write the output: No space left on device\n")
    assert b"Traceback" not in done.stderr


@needs_dev_full
@both_buffered_and_not
def test_where_there_is_nobody_to_tell_the_exit_code_has_to_do(unbuffered):
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with open("/dev/full", "wb") as full:
        assert subprocess.run([*COMMAND, "bogus"], stderr=full, env=environment, check=False).returncode == 2


@pytest.mark.skipif(os.name != "posix", reason="sets the locale of a POSIX system")
def test_text_of_the_command_line_in_a_locale_of_ascii_alone():
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    arguments = ["check", "--choices", "ä,ö".encode(), "--text", "ö".encode()]
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, env=environment, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"--text: valid\n", b"")
    arguments[-1] = b"\xff"
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, env=environment, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"--text is not UTF-8 text" in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="closes a file descriptor in a shell")
def test_without_an_output():
    script = f"'{sys.executable}' -m constrain check --choices a --text a >&-"
    done = subprocess.run(["sh", "-c", script], stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (1, b"constrain: there is no standard output to write to\n")


@pytest.mark.skipif(os.name != "posix", reason="closes a file descriptor in a shell")
def test_without_an_input():
    script = f"'{sys.executable}' -m constrain check --schema - --text a <&-"
    done = subprocess.run(["sh", "-c", script], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (1, b"constrain: there is no standard input to read\n")


@pytest.mark.skipif(os.name != "posix", reason="closes a file descriptor in a shell")
@pytest.mark.parametrize(("choices", "status"), [("a", 0), ("a,,b", 2)])
def test_without_anywhere_for_messages(choices, status):
    script = f"'{sys.executable}' -m constrain generate --choices {choices} 2>&-"
    done = subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, check=False)
    assert (done.returncode, done.stdout) == (status, b"" if status else b"a\n")


@pytest.mark.skipif(os.name != "posix", reason="needs a pipe without a reader")
@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["check", "--help"]])
def test_help_for_nobody(arguments):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*COMMAND, *arguments], stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize(
    "arguments",
    [
        ["tokenize", "--file", "-"],
        ["explain", "--regex", "[a-z ]*", "-"],
    ],
)
def test_a_closed_pipe(arguments):
    with subprocess.Popen(
        [*COMMAND, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdin.write(b"word " * 4_000)
        process.stdin.close()
        assert process.stdout.read(10)
        process.stdout.close()
        err = process.stderr.read().decode()
    assert process.returncode == 141
    assert "Traceback" not in err


@pytest.mark.skipif(os.name != "posix", reason="needs a shell with head")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "arguments",
    [["mask", "--regex", ".*", "--limit", "0"], ["mask", "--regex", ".*", "--limit", "0", "--json"]],
)
def test_into_head(arguments, unbuffered):
    """What does not fit into the pipe is not lost in silence, however Python writes."""
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        head = subprocess.run(["head", "-c", "9"], stdin=process.stdout, capture_output=True, check=True)
        process.stdout.close()
        err = process.stderr.read()
    assert (process.returncode, len(head.stdout)) == (141, 9)
    assert b"Traceback" not in err
    whole = subprocess.run([*COMMAND, *arguments], capture_output=True, check=True, env=environment).stdout
    assert len(whole) > 1 << 16
    assert whole.endswith(b"\n")


def test_bench_alone_prints_its_help(run):
    status, out, err = run("bench")
    assert (status, out) == (2, "")
    assert err.startswith("Usage: constrain bench")
    assert "Commands:\n  code " in err
    assert "\n  mask " in err
    assert run("bench", "--help")[:2] == (0, err)
    status, out, err = run("bench", "nothing")
    assert (status, err.count("\n")) == (2, 1)


@pytest.mark.skipif(os.name == "nt", reason="no SIGINT to send to one process")
@pytest.mark.usefixtures("interruptible")
def test_interrupt():
    with subprocess.Popen(
        [sys.executable, "-m", "constrain", "check", "--choices", "a", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        # More than a pipe holds: when it is written, the command is reading.
        process.stdin.write(bytes(1 << 20))
        process.stdin.flush()
        # A signal between two reads is seen only by the next one, which may wait for ever.
        for _ in range(60):
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1)
                break
        else:
            process.kill()
        err = process.stderr.read().decode()
    assert process.returncode == 130
    assert err.strip() == "constrain: interrupted"


def test_interrupt_while_the_command_is_loaded():
    code = """
import sys

class Interrupted:
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupted())
from constrain.__main__ import run
sys.exit(run())
"""
    done = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "constrain: interrupted\n")


def test_warmup_of_a_tokenizer(run, tmp_path):
    status, out, err = run("warmup", "--tokenizer", tmp_path / "missing")
    assert (status, out) == (1, "")
    assert "missing: no such file" in err
