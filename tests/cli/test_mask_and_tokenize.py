"""``constrain mask`` and ``constrain tokenize``: what they print, for a person and for a program."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from constrain import demo

TOKENIZER = demo.load()[0]


# -- mask ----------------------------------------------------------------------------------------


def test_mask(run):
    status, out, err = run("mask", "--choices", "yes,no")
    assert (status, err) == (0, "")
    count = int(out.split()[0])
    assert out.splitlines()[:3] == [
        f"{count} of {TOKENIZER.vocab_size:,} tokens are allowed; the text cannot end here",
        "expected: 'no' or 'yes'",
        "forced: nothing",
    ]
    listed = re.findall(r"^ +(\d+)  '(\w+)'$", out, re.MULTILINE)
    assert len(listed) == count
    assert {text for _, text in listed} <= {"y", "ye", "yes", "n", "no"}
    assert all(TOKENIZER.token_bytes(int(token)) == text.encode() for token, text in listed)
    assert [int(token) for token, _ in listed] == sorted(int(token) for token, _ in listed)


def test_mask_after_a_prefix(run, tmp_path):
    file = tmp_path / "prefix"
    file.write_text("ye")
    for arguments, stdin in (
        (["--prefix", "ye"], None),
        (["--prefix-file", file], None),
        (["--prefix-file", "-"], b"ye"),
    ):
        status, out, _ = run("mask", "--choices", "yes!,no", *arguments, stdin=stdin)
        assert status == 0
        assert "forced: 's!'" in out
        assert "expected: 's!'" in out


def test_mask_at_the_end(run):
    status, out, _ = run("mask", "--choices", "yes,no", "--prefix", "yes")
    assert status == 0
    assert out.startswith("1 of ")
    assert "the text is complete and may end here" in out
    assert "end of text (<|endoftext|>)" in out


def test_mask_with_a_model(run):
    status, out, _ = run("mask", "--regex", "the [a-z]+", "--prefix", "the ", "--model", "demo", "--limit", "4")
    assert status == 0
    shares = [float(share) for share in re.findall(r"^ +\d+ +([\d.]+) %", out, re.MULTILINE)]
    assert len(shares) == 4
    assert shares == sorted(shares, reverse=True)
    assert "more (--limit)" in out


def test_mask_as_json(run):
    status, out, _ = run("mask", "--regex", "é[a-z]", "--json", "--limit", "0")
    answer = json.loads(out)
    assert status == 0
    assert answer["allowed"] == len(answer["tokens"])
    assert (answer["vocabulary"], answer["complete"]) == (TOKENIZER.vocab_size, False)
    assert answer["forced"] == {"text": "é"}
    assert answer["expected"] == "'é'"
    assert {"id": answer["tokens"][0]["id"], "bytes": [0xC3]} == answer["tokens"][0]
    answer = json.loads(run("mask", "--regex", "a", "--prefix", "a", "--json", "--model", "demo")[1])
    assert answer["tokens"] == [{"id": TOKENIZER.eos_ids[0], "end_of_text": True, "probability": 1.0}]


def test_mask_with_another_tokenizer(run, tmp_path):
    content = json.loads((Path(demo.__file__).parent / "tokenizer.json").read_text())
    # The same without its merges: the first 256 tokens, and the special one.
    content["model"]["merges"] = []
    content["model"]["vocab"] = {token: i for token, i in content["model"]["vocab"].items() if i < 256}
    content["added_tokens"][0]["id"] = 256
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps(content))
    status, out, err = run("mask", "--choices", "yes,no", "--tokenizer", file)
    assert status == 0, err
    assert out.startswith("2 of 257 tokens are allowed")


def test_mask_of_a_prefix_that_breaks_the_grammar(run):
    status, out, err = run("mask", "--choices", "yes,no", "--prefix", "yup")
    assert (status, out) == (1, "")
    assert err == (
        "constrain: --prefix:1:2: not the beginning of a valid text: 'u' cannot stand here; expected: 'es'\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "exactly one of"),
        (["--regex", "a", "-r", "b"], "--regex is there twice"),
        (["--choices", "a,b", "--choices=c"], "--choices is there twice"),
        (["--choices", "a", "--prefix", "a", "--prefix-file", "x"], "exclude each other"),
        (["--schema", "-", "--prefix-file", "-"], "cannot both come from stdin"),
        (["--choices", "a", "--limit", "-1"], "'--limit'"),
        (["--choices", "a", "--prefix", "\udcff"], "--prefix is not UTF-8 text"),
    ],
)
def test_bad_usage_of_mask(run, arguments, message):
    status, out, err = run("mask", *arguments)
    assert (status, out) == (2, "")
    assert message in err


def test_unreadable_tokenizers(run, tmp_path):
    broken = tmp_path / "tokenizer.json"
    broken.write_text("{")
    for path in (tmp_path / "missing", broken):
        for command in (["mask", "--choices", "a"], ["tokenize", "a"]):
            status, out, err = run(*command, "--tokenizer", path)
            assert (status, out) == (1, "")
            assert str(path) in err
            assert err.count("\n") == 1


# -- tokenize ------------------------------------------------------------------------------------


def test_tokenize(run):
    status, out, err = run("tokenize", "Hello, wörld")
    encoding = TOKENIZER.encode("Hello, wörld")
    assert status == 0
    rows = re.findall(r"^ *(\d+) +(\d+)-(\d+) +(?:'.*'|byte 0x\w\w)  \[([0-9a-f ]+)\]$", out, re.MULTILINE)
    assert [int(row[0]) for row in rows] == encoding.ids
    assert [(int(row[1]), int(row[2])) for row in rows] == encoding.offsets
    assert b"".join(bytes.fromhex(row[3]) for row in rows) == "Hello, wörld".encode()
    assert err == f"constrain: {len(rows)} tokens, 12 characters, 13 bytes, {13 / len(rows):.2f} bytes a token\n"


def test_tokenize_from_file_and_stdin(run, tmp_path):
    file = tmp_path / "text"
    file.write_text("Hello")
    expected = run("tokenize", "Hello")
    assert run("tokenize", "--file", file) == expected
    assert run("tokenize", stdin=b"Hello") == expected
    assert run("tokenize", "-f", "-", stdin=b"Hello") == expected
    assert run("tokenize", "") == (0, "", "constrain: 0 tokens, 0 characters, 0 bytes\n")


def test_ids_there_and_back(run):
    text = "Any text: 😀\tré\u0301sumé\n\n  x <|endoftext|>"
    status, out, _ = run("tokenize", text, "--ids")
    assert status == 0
    assert list(map(int, out.split())) == TOKENIZER.encode(text).ids
    assert run("tokenize", "--decode", out) == (0, text + "\n", "")
    assert run("tokenize", "--decode", json.dumps(TOKENIZER.encode(text).ids))[1] == text + "\n"
    assert json.loads(run("tokenize", "--decode", "--json", "195")[1]) == {"ids": [195], "bytes": [195]}


def test_tokenize_as_json(run):
    answer = json.loads(run("tokenize", "a😀<|endoftext|>", "--json")[1])
    assert (answer["tokenizer"], answer["vocabulary"]) == ("demo", TOKENIZER.vocab_size)
    first, *middle, last = answer["tokens"]
    assert first == {"id": TOKENIZER.encode("a").ids[0], "token": "a", "begin": 0, "end": 1, "text": "a"}
    assert b"".join(bytes(each["bytes"]) for each in middle) == "😀".encode()
    assert last["special"] is True
    assert "text" not in last


def test_tokenize_in_colour(run, monkeypatch):
    monkeypatch.setattr("constrain.cli.tokenize.colours_wanted", lambda: True)
    out = run("tokenize", "Hello\x1b[31m")[1]
    assert out.startswith("\x1b[30m\x1b[44m")
    assert "\x1b[31m" not in out  # that of the text itself
    assert "\\x1b" in out
    monkeypatch.undo()
    assert "\x1b" not in run("tokenize", "Hello\x1b[31m")[1]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["a", "--file", "b"], 2, "exclude each other"),
        (["a", "--ids", "--json"], 2, "--ids goes with neither"),
        (["\udcff"], 2, "not UTF-8 text"),
        (["a", "--read", "b"], 2, "--read: 'b' is named, which is no special token of this tokenizer"),
        (["--decode", "1 two"], 1, "'two' is not a token id"),
        (["--decode", "-1"], 2, "No such option"),
        (["--decode", "[-1]"], 1, "'-1' is not a token id"),
        (["--decode", "99999999"], 1, "out of range"),
    ],
)
def test_what_is_refused(run, arguments, status, message):
    code, out, err = run("tokenize", *arguments)
    assert (code, out) == (status, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_file_that_is_no_text(run):
    assert run("tokenize", stdin=b"ab\xff") == (1, "", "constrain: stdin: not UTF-8 text (byte 2)\n")
