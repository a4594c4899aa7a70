"""Further samplers on the command line."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from constrain.cli.generate import generate

CHOICES = ["--choices", "alpha,beta,gamma", "--seed", "3"]


def run(*arguments):
    result = CliRunner().invoke(generate, [*CHOICES, *arguments])
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize(
    "options",
    [
        ["--typical", "0.9", "--presence-penalty", "0.1"],
        ["--top-n-sigma", "1"],
        ["--dynatemp-range", "0.5"],
        ["--xtc-probability", "1", "--xtc-threshold", "0.05"],
        ["--dry-multiplier", "0.8", "--dry-breaker", ","],
        ["--mirostat", "--mirostat-tau", "3"],
        ["--min-tokens", "5"],
        ["--ignore-eos"],
        ["--bad-word", "alpha"],
        ["--samplers", "temperature, top_k,min_p"],
    ],
    ids=lambda options: options[0],
)
def test_every_option_gives_a_text_of_the_grammar(options):
    code, text, said = run(*options)
    assert code == 0, said
    assert text.strip() in ("alpha", "beta", "gamma")
    assert run(*options)[1] == text


def test_a_bad_word_is_not_written():
    for seed in range(6):
        arguments = ["--regex", "[ab]{8}", "--seed", str(seed)]
        text = CliRunner().invoke(generate, [*arguments, "--bad-word", "ab"]).stdout.strip()
        assert len(text) == 8
        assert "ab" not in text
    # Unless the grammar leaves nothing else.
    assert "alpha" in {run("--bad-word", "alpha", "--seed", str(seed))[1].strip() for seed in range(12)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--samplers", "topk", "--top-k", "5"], "no step is called 'topk'"),
        (["--samplers", ","], "--samplers needs names of steps"),
        (["--xtc-probability", "2"], "xtc_probability must be from 0 to 1"),
        (["--dry-multiplier", "1", "--dry-breaker", ""], "--dry-breaker needs a text"),
        (["--typical", "0"], "typical must be above 0"),
        (["--samplers", "top_k", "--min-p", "0.5"], "--min-p: --samplers leaves min_p out"),
        (
            ["--samplers", "temperature", "--repetition-window", "5"],
            "--repetition-window: --samplers leaves penalties out",
        ),
        (["--dry-base", "2"], "--dry-base needs --dry-multiplier"),
        (["--xtc-threshold", "0.2"], "--xtc-threshold needs --xtc-probability"),
        (["--mirostat-tau", "3"], "--mirostat-tau needs --mirostat"),
        (["--dynatemp-exponent", "2"], "--dynatemp-exponent needs --dynatemp-range"),
        (["--repetition-penalty", "1", "--repetition-window", "5"], "--repetition-window needs a penalty"),
        (["--beams", "2", "--length-penalty", "nan"], "length_penalty must be between -40 and 40, not nan"),
        (["--mirostat", "--top-k", "5"], "--top-k and --mirostat exclude each other"),
    ],
)
def test_what_is_refused(options, message):
    code, text, said = run(*options)
    assert (code, text) == (2, "")
    assert message in said


def test_the_help_has_a_section_for_them():
    text = CliRunner().invoke(generate, ["--help"]).output
    assert "Further samplers" in text
    assert json.dumps("--dry-base")[1:-1] in text


def test_beams_write_the_most_likely_texts():
    code, text, said = run("--beams", "3", "--count", "3", "--json-stats")
    assert code == 0, said
    assert len(text.split()) == 3
    assert set(text.split()) <= {"alpha", "beta", "gamma"}
    scores = [json.loads(line)["score"] for line in said.splitlines() if line.startswith("{")]
    assert scores == sorted(scores, reverse=True)
    assert run("--beams", "2")[1].strip() == text.split()[0]
    for options, words in (
        (["--beams", "1", "--count", "2"], "--count 2 is more than --beams 1"),
        (["--beams", "1", "--stop", "x"], "--stop is for texts that are drawn, and --beams draws none"),
        (["--beams", "1", "--temperature", "0.8"], "--temperature is for texts that are drawn"),
        (["--beams", "1", "--min-tokens", "3"], "--min-tokens is for texts that are drawn"),
        (["--beams", "1001"], "1001 is not in the range 1<=x<=1000"),
        (["--length-penalty", "2"], "--length-penalty needs --beams"),
    ):
        code, _, said = run(*options)
        assert code == 2
        assert words in said
    status = CliRunner().invoke(generate, ["--regex", "a{20}", "--beams", "2", "-n", "3"], standalone_mode=False)
    assert "--num-tokens 3 is too little" in str(status.exception)


def test_how_likely_the_prompt_is():
    _, text, said = run("--prompt", "The dog ran.", "--prompt-log-probabilities")
    assert text.strip() in ("alpha", "beta", "gamma")
    tokens = json.loads(next(line for line in said.splitlines() if line.startswith("{")))["prompt"]
    assert tokens[0]["log_probability"] is None
    assert all(token["log_probability"] < 0 for token in tokens[1:])
    assert [token["token"] for token in tokens][-1] == "."
