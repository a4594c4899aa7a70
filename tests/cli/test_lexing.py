"""``--lexing``, which says how a Lark grammar is read, and ``--no-budget``."""

from __future__ import annotations

import re

import pytest

RULES = """
start: ("return" " " NAME | NAME "=" NAME) ";"
NAME: /[a-z]{1,8}/
"""
LONGEST = ("--lexing", "longest")


@pytest.fixture
def lark(tmp_path):
    file = tmp_path / "g.lark"
    # Under the longest match "return" can be no name, so `return=a;` is a text by any split only.
    file.write_text(RULES)
    return file


@pytest.mark.parametrize("lexing", ["longest", "longest-basic"])
def test_check_reads_as_lark_does(run, lark, lexing):
    for text, any_split, longest in (("return a;", True, True), ("ab=c;", True, True), ("return=a;", True, False)):
        for arguments, valid in (((), any_split), (("--lexing", "any"), any_split), (("--lexing", lexing), longest)):
            status, out, err = run("check", "--lark", lark, *arguments, "--text", text)
            assert (status, err) == (0 if valid else 1, ""), (text, arguments)
            assert out.startswith("--text: valid" if valid else "--text:1:7: not valid")


def test_the_contextual_lexer_is_not_the_basic_one(run, tmp_path):
    file = tmp_path / "g.lark"
    file.write_text('start: "a" X | "c" Y\nX: /b/\nY: /ab/\n')
    assert run("check", "--lark", file, *LONGEST, "--text", "ab")[0] == 0
    assert run("check", "--lark", file, "--lexing", "longest-basic", "--text", "ab")[0] == 1


def test_mask_and_explain(run, lark):
    for arguments, mark in ((), True), (LONGEST, False):
        _, out, err = run("mask", "--lark", lark, *arguments, "--prefix", "return", "--limit", 0)
        assert ('"="' in out) is mark, err
        status, out, err = run("explain", "--lark", lark, *arguments, "--text", "return=a;")
        assert status == (0 if mark else 1)
        assert err == ""


def test_generated_texts_are_complete_within_the_budget(run, lark):
    for seed in range(5):
        for most in (5, 200):
            status, out, err = run("generate", "--lark", lark, *LONGEST, "-n", most, "--seed", seed)
            assert status == 0, err
            assert re.fullmatch(r"(return |(?!return=)[a-z]{1,8}=)(?!return;)[a-z]{1,8};\n", out)
    status, out, err = run("generate", "--lark", lark, "--lexing", "longest-basic", "-n", 5)
    assert status == 0, err
    assert out.endswith(";\n")


def test_without_a_budget_a_text_may_be_cut(run):
    status, out, err = run("generate", "--regex", "[a-z]{400}", "--no-budget", "-n", 5)
    assert status == 3
    assert re.fullmatch("[a-z]+\n", out)
    assert err.endswith("constrain: the text is not complete: with --no-budget it is cut after 5 tokens\n")
    status, out, _ = run("generate", "--regex", "[a-z]{400}", "-n", 5)
    assert (status, out) == (3, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["generate", "--regex", "a", *LONGEST], "--lexing needs --lark"),
        (["generate", "--ebnf", "g", "--lexing", "any"], "--lexing needs --lark"),
        (["check", "--gbnf", "g", *LONGEST, "--text", "a"], "--lexing needs --lark"),
        (["mask", "--schema", "g", *LONGEST], "--lexing needs --lark"),
        (["explain", "--choices", "a", *LONGEST, "--text", "a"], "--lexing needs --lark"),
        (["check", "--lark", "g", "--lexing", "short", "--text", "a"], "'short' is not one of"),
        (["check", "--lark", "g", "--ebnf", "h", "--text", "a"], "but there is --lark and --ebnf"),
        (["generate", "--ebnf", "-", "--prompt-file", "-"], "cannot both come from stdin"),
        (["generate", "--model", "m", "--backend", "transformers", *LONGEST], "but there is none"),
        (["generate", "--model", "m", "--backend", "transformers", "--style", "qwen3"], "but there is none"),
        (["generate", "--model", "m", "--backend", "transformers", "--no-budget"], "--no-budget needs a grammar"),
    ],
)
def test_what_does_not_go_together(run, arguments, message):
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert message in err


def test_a_grammar_under_any_option_holds_for_a_model(run, tmp_path):
    # The grammar is read before the model is: it is not forgotten beside --model.
    for option, text in (("--ebnf", "root ::= nowhere"), ("--structural-tag", "{"), ("--lark", "start: nowhere")):
        file = tmp_path / "grammar"
        file.write_text(text)
        status, _, err = run("generate", "--model", tmp_path, "--backend", "transformers", option, file)
        assert status == 1
        assert err.startswith(f"constrain: {file}: ")
