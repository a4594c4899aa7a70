"""``constrain explain``: the table, the page, and what happens when it cannot be written."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest


def test_a_table(run):
    status, out, err = run("explain", "--regex", "(yes|no)!", "--text", "yes!")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert re.match(r"token +id +allowed +mask us +expected$", lines[0])
    assert re.match(r"'ye?s?' +\d+ +\d+ +[\d.,]+ +'yes!' or 'no!'$", lines[1])
    assert re.search(r"'!' +\d+ +1 +[\d.,]+ forced +'!'$", lines[-2])
    assert re.match(r"\(end\) +1 +[\d.,]+ +end of text$", lines[-1])


def test_a_model_says_how_likely_each_token_was(run):
    status, out, err = run("explain", "--regex", "yes!|[0-9]", "--text", "yes!", "--model", "demo")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert re.match(r"token +id +allowed +mask us +likely +expected$", lines[0])
    assert re.match(r"'ye?s?' +\d+ +\d+ +[\d.,]+ +\d+\.\d\d % ", lines[1])
    assert re.match(r"'!' +\d+ +1 +[\d.,]+ +100\.00 % forced ", lines[-2])
    assert re.match(r"\(end\) +1 +[\d.,]+ +end of text$", lines[-1])
    assert len({line.index(word) for line, word in ((lines[0], "expected"), (lines[-1], "end of text"))}) == 1
    # A token that is refused has no share among those that are allowed.
    refused = run("explain", "--regex", "yes", "--text", "no", "--model", "demo")[1].splitlines()[1]
    assert "%" not in refused


def test_a_page_on_stdout(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, err = run("explain", "--choices", "yes,no", "--text", "yes", "--html", "-")
    assert (status, err) == (0, "constrain: --text is valid\n")
    assert out.startswith("<!DOCTYPE html>")
    assert not list(tmp_path.iterdir())


def test_a_text_that_breaks_the_grammar(run):
    status, out, _ = run("explain", "--regex", "(yes|no)!", "--text", "yesterday")
    assert status == 1
    assert "refused" in out
    assert re.search(r"^\(stopped here\) .*'!'$", out, re.MULTILINE)


def test_a_text_that_is_not_finished(run):
    assert run("explain", "--regex", "(yes|no)!", "--text", "yes")[0] == 1
    assert run("explain", "--regex", "(yes|no)!", stdin=b"yes!\n")[0] == 0


def test_the_limit_is_said(run):
    status, out, err = run("explain", "--regex", "[a-z ]*", "--limit", "3", "--text", "one two three four five six")
    assert (status, len(out.splitlines())) == (0, 5)
    assert err == "constrain: the first 3 tokens are shown (--limit)\n"
    assert "(more)" in out


def test_a_page(run, tmp_path):
    page = tmp_path / "page.html"
    status, out, err = run("explain", "--choices", "yes,no", "--text", "yes", "--html", page, "--model", "demo")
    assert (status, out) == (0, "")
    assert err == f"constrain: --text is valid; the page is {page}\n"
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]
    if os.name == "posix":
        mask = os.umask(0)
        os.umask(mask)
        assert page.stat().st_mode & 0o777 == 0o666 & ~mask


def test_what_was_there_keeps_its_mode_and_its_link(run, tmp_path):
    page, link = tmp_path / "page.html", tmp_path / "link.html"
    page.write_text("old")
    page.chmod(0o640)
    link.symlink_to(page)
    assert run("explain", "--choices", "yes", "--text", "yes", "--html", link)[0] == 0
    assert link.is_symlink()
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert page.stat().st_mode & 0o777 == 0o640


def test_a_page_that_cannot_be_written(run, tmp_path):
    for target, reason in (
        (tmp_path / "missing" / "page.html", "No such file or directory"),
        (tmp_path, "Is a directory"),
        ("a\0b", "null"),
    ):
        status, out, err = run("explain", "--choices", "a", "--text", "a", "--html", target)
        assert (status, out) == (1, "")
        assert err.startswith("constrain: cannot write ")
        assert reason in err
        assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_device(run):
    status, _, err = run("explain", "--choices", "a", "--text", "a", "--html", "/dev/full")
    assert (status, err) == (1, "constrain: cannot write '/dev/full': No space left on device\n")


def test_a_full_disk_leaves_no_half_file(run, tmp_path, monkeypatch):
    page = tmp_path / "page.html"
    page.write_text("the page of yesterday")

    def full(*_):
        raise OSError(28, "No space left on device")

    # The first call that needs room on the disk for good: what was written so far goes again.
    monkeypatch.setattr("os.replace", full)
    status, _, err = run("explain", "--choices", "a", "--text", "a", "--html", page)
    assert (status, err) == (1, f"constrain: cannot write '{page}': No space left on device\n")
    assert [file.read_text() for file in tmp_path.iterdir()] == ["the page of yesterday"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--text", "a"], "exactly one of"),
        (["--choices", "a", "--text", "a", "--limit", "0"], "'--limit'"),
        (["--choices", "a", "--text", "a", "--model", "demo", "--tokenizer", "x"], "brings its own tokenizer"),
    ],
)
def test_bad_usage(run, arguments, message):
    status, out, err = run("explain", *arguments)
    assert (status, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
