"""``constrain generate``: models, prompts, chats, stop texts, statistics; and what goes wrong with them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from constrain import demo

ROOT = Path(__file__).resolve().parents[2]
ROWS = ["generate", "--regex", "[a-z]{3,9}", "--seed", "5"]


# -- without another model -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--prompt", "a", "--prompt-file", "b"], "--prompt and --prompt-file exclude each other"),
        (["--stop", ""], "--stop needs a text"),
        (["--stop", "\udcff"], "--stop is not UTF-8 text"),
        (["--system", "\udcff"], "--system is not UTF-8 text"),
        (["--system", "be kind"], "--system is for a chat, and this model has no chat template"),
        (["--min-p", "2"], "min_p must be"),
        (["--repetition-penalty", "0"], "repetition_penalty must be"),
        (["--repetition-window", "-1"], "repetition_window must be"),
        (["--count", "0"], "'--count'"),
        (["--max-seq-len", "1"], "'--max-seq-len'"),
        (["--eviction-window", "9"], "eviction_window is for eviction_policy 'sliding'"),
        (["--kv-type", "q5"], "'q5' is not one of"),
        (["--max-kv-size", "9 pages"], "--max-kv-size must be a number of tokens, or of bytes such as 512MB"),
        (["--evict", "attention", "--max-kv-size", "9" * 400 + "TB"], "--max-kv-size must be a number of tokens"),
        (["--evict", "attention", "--max-kv-size", "9" * 5000], "--max-kv-size must be a number of tokens"),
        (["--max-kv-size", "900"], "max_kv_size is for eviction_policy 'sliding' and 'attention'"),
        (["--evict", "attention"], "eviction_policy 'attention' needs a max_kv_size"),
        (["--backend", "onnx"], "'onnx' is not one of"),
        (["--backend", "transformers"], "the transformers backend needs the path of a model"),
        (["--backend", "demo", "--model", "x"], "the demo backend has its own model"),
    ],
)
def test_bad_usage(run, arguments, message):
    status, out, err = run(*ROWS, *arguments)
    assert (status, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--kv-type", "q8"], "the demo backend has no kv_type; transformers and llama-cpp have"),
        (["--max-seq-len", "9"], "the demo backend has no max_seq_len; transformers, llama-cpp and callable have"),
        (["--eviction-policy", "sliding"], "the demo backend has no eviction_policy; transformers and llama-cpp have"),
        (["--chat", "--prompt", "x"], "this model has no chat template"),
        (["--prompt-file", "/missing/file"], "cannot read '/missing/file'"),
        (["--model", "/missing/model"], "/missing/model: no such file or folder; a model of the Hugging Face Hub"),
    ],
)
def test_what_cannot_be_done(run, arguments, message):
    status, out, err = run(*ROWS, *arguments)
    assert (status, out) == (1, "")
    assert message in err
    assert err.count("\n") == 1


def test_grammar_and_prompt_from_stdin(run):
    status, _, err = run("generate", "--schema", "-", "--prompt-file", "-")
    assert status == 2
    assert "cannot both come from stdin" in err


def test_a_prompt_from_a_file_is_the_same_prompt(run, tmp_path):
    file = tmp_path / "prompt"
    file.write_text("My name is ", encoding="utf-8-sig")
    assert run(*ROWS, "--prompt-file", file)[1] == run(*ROWS, "--prompt", "My name is ")[1]
    assert run(*ROWS, "--prompt-file", "-", stdin=b"My name is ")[1] == run(*ROWS, "--prompt", "My name is ")[1]


def test_several_texts_with_a_seed_each(run):
    status, out, err = run(*ROWS, "--count", "3")
    assert status == 0
    texts = out.splitlines()
    assert re.findall(r"; seed (\d+)\n", err) == ["5", "6", "7"]
    assert [run(*ROWS[:-1], seed)[1] for seed in (5, 6, 7)] == [text + "\n" for text in texts]
    assert run(*ROWS, "--count", "3", "--no-stream")[1] == out
    last = str(2**64 - 1)
    assert re.findall(r"; seed (\d+)\n", run(*ROWS[:-1], last, "--count", "2")[2]) == [last, "0"]


def test_a_stop_text_ends_it(run):
    whole = run(*ROWS)[1].removesuffix("\n")
    assert len(whole) > 2
    status, out, _ = run(*ROWS, "--stop", whole[1], "--stop", whole[2])
    assert (status, out) == (0, whole[0] + "\n")


def test_statistics_as_json(run):
    status, out, err = run(*ROWS, "--json-stats", "--count", "2")
    assert status == 0
    lines = [json.loads(line) for line in err.splitlines() if line.startswith("{")]
    assert len(lines) == 2
    for line, text, seed in zip(lines, out.splitlines(), (5, 6), strict=True):
        assert (line["backend"], line["seed"], line["finish_reason"]) == ("demo", seed, "complete")
        assert 0 < line["tokens"] <= len(text)
        assert 0 <= line["forced_share"] <= 1
        assert line["seconds_to_first_token"] > 0
        assert line["total_seconds"] >= line["mask_seconds"] + line["model_seconds"] + line["sample_seconds"]
        assert line["tokens_per_second"] == line["tokens"] / line["total_seconds"]
    assert "tokens" not in err.replace('"tokens', "").replace("_tokens", "")


PERSON = ROOT / "grammars" / "person.schema.json"


@pytest.mark.parametrize("name", ["person", "recipe", "tree", "api_call"])
def test_the_demonstration_writes_json_as_a_person_would(run, name):
    schema = ROOT / "grammars" / f"{name}.schema.json"
    for seed in range(3):
        status, out, err = run("generate", "-s", schema, "--seed", seed, "-n", 400)
        assert (status, "white space" in err) == (0, False)
        assert out == json.dumps(json.loads(out), indent=2, ensure_ascii=False) + "\n"
        jsonschema.validate(json.loads(out), json.loads(schema.read_text()))


def test_other_layouts(run):
    generate = ("generate", "-s", PERSON, "--seed", 1)
    for options, written in (
        (["--indent", "4"], {"indent": 4}),
        (["--indent", "0"], {"indent": 0}),
        (["--whitespace", "compact"], {"separators": (",", ":")}),
    ):
        status, out, _ = run(*generate, *options)
        assert status == 0
        assert out == json.dumps(json.loads(out), ensure_ascii=False, **written) + "\n"
    flexible = {run(*generate, "--whitespace", "flexible")[1], run(*generate, "--max-whitespace", "9")[1]}
    assert not any(out == json.dumps(json.loads(out), indent=2) + "\n" for out in flexible)


def test_conventions_of_other_engines(run, tmp_path):
    schema = tmp_path / "schema.json"
    schema.write_text('{"type": "object", "properties": {"a": {"type": "string", "pattern": "x"}}, "required": ["a"]}')
    options = ("--no-additional-properties", "--whitespace-pattern", "[ ]", "--unicode-escapes", "never")
    texts = ("--patterns", "full", "--surrounding-whitespace", "--spelling", "canonical")
    status, out, _ = run("generate", "-s", schema, "--seed", "1", *options, *texts)
    assert status == 0
    assert out.strip() == '{ "a" : "x" }'
    status, _, err = run("generate", "-s", schema, "--whitespace-pattern", "x")
    assert status != 0
    assert "whitespace_pattern: 'x': it matches no white space of JSON" in err


def test_where_an_indent_takes_too_many_tokens(run):
    status, out, err = run("generate", "-s", PERSON, "-n", "40", "--seed", "1")
    assert status == 0
    assert json.loads(out)["name"]
    assert err.startswith("constrain: with an indent the shortest text takes more than 40 tokens, so white space")
    status, out, err = run("generate", "-s", PERSON, "-n", "3")
    assert (status, out) == (3, "")
    assert "with an indent" not in err
    assert "takes 35 tokens" in err


def test_where_there_is_no_text_with_an_indent(run):
    """Thirty levels are more than the front-end unrolls for an indent."""
    links = {f"n{n}": {"type": "array", "items": {"$ref": f"#/$defs/n{n + 1}"}, "minItems": 1} for n in range(29)}
    schema = json.dumps({"$ref": "#/$defs/n0", "$defs": {**links, "n29": {"const": 1}}})
    status, out, err = run("generate", "-s", "-", stdin=schema.encode())
    assert status == 0
    assert out.count("[") >= 29
    assert err.startswith("constrain: no text that fits this schema can be written with an indent, so white space")
    assert run("generate", "-s", "-", "--indent", "2", stdin=schema.encode())[0] == 1
    status, _, err = run("generate", "-s", "-", stdin=b'{"type": "strin"}')
    assert (status, err.count("\n")) == (1, 1)


@pytest.mark.parametrize("arguments", [["--indent", "-1"], ["--indent", "65"], ["--indent", "x"]])
def test_wrong_indents(run, arguments):
    status, out, err = run("generate", "-s", PERSON, *arguments)
    assert (status, out) == (2, "")
    assert "'--indent'" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["--whitespace", "compact", "--indent", "2"],
        ["--max-whitespace", "3", "--whitespace-pattern", " *"],
        ["--max-whitespace", "0", "--indent", "0"],
    ],
)
def test_white_space_is_said_in_one_way(run, arguments):
    status, out, err = run("generate", "-s", PERSON, *arguments)
    assert (status, out) == (2, "")
    assert err.startswith(f"constrain: {arguments[0]} and {arguments[2]} exclude each other")
    assert err.count("\n") == 1


def test_the_built_in_model_has_a_name(run):
    arguments = ["generate", "--choices", "yes,no", "--seed", "1"]
    assert run(*arguments, "--model", "demo")[:2] == run(*arguments)[:2]
    assert run("generate", "--model", "demo")[0] == 2


def test_short_options_are_the_long_ones(run):
    long = run("generate", "--schema", PERSON, "--prompt", "a", "--num-tokens", 60, "--temperature", 1.2, "--seed", 1)[
        1
    ]
    assert run("generate", "-s", PERSON, "-p", "a", "-n", 60, "-t", 1.2, "--seed", 1)[1] == long
    for short, option, value in (("-r", "--regex", "a|b"), ("-c", "--choices", "a,b")):
        assert run("generate", short, value, "--seed", 1)[1] == run("generate", option, value, "--seed", 1)[1]
    assert run("check", "-c", "a", "-t", "a")[0] == 0
    assert run("mask", "-r", "ab", "-p", "a")[1] == run("mask", "--regex", "ab", "--prefix", "a")[1]


def test_a_penalty_makes_a_difference(run):
    rows = ["generate", "--regex", "[a-z ]{60}", "--seed", "1"]
    assert run(*rows)[1] == run(*rows, "--repetition-penalty", "1.1", "--repetition-window", "64")[1]
    assert run(*rows)[1] != run(*rows, "--repetition-penalty", "3")[1]
    assert run(*rows, "--repetition-penalty", "1")[1] != run(*rows, "--repetition-penalty", "3")[1]


def test_the_text_is_complete_within_the_tokens(run, tmp_path):
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "array"}}, "required": ["a", "b"]}
    file = tmp_path / "schema.json"
    file.write_text(json.dumps(schema))
    for most in (9, 12, 20, 40):
        status, out, err = run(
            "generate", "--schema", file, "-n", most, "--temperature", "1.5", "--seed", most, "--json-stats"
        )
        assert status == 0, err
        jsonschema.validate(json.loads(out), schema)
        assert json.loads(err.splitlines()[-1])["tokens"] <= most


def test_help_is_in_sections(run):
    status, out, _ = run("generate", "--help")
    assert status == 0
    titles = re.findall(r"^(\w.*):$", out, re.MULTILINE)
    assert titles == [
        "Grammar, at most one",
        "How a --lark grammar is read",
        "A turn with --tools",
        "How the JSON of a --schema is written",
        "Model",
        "Prompt",
        "Output",
        "Sampling",
        "Further samplers",
        "Memory of the model",
        "Options",
    ]


# -- with a model on disk ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    pytest.importorskip("torch", reason="the extra 'transformers' is not installed")
    pytest.importorskip("transformers", reason="the extra 'transformers' is not installed")
    from tiny_models import write_folder

    return write_folder(tmp_path_factory.mktemp("model"), chat=True)


@pytest.fixture(scope="module")
def gguf(folder, tmp_path_factory):
    pytest.importorskip("gguf", reason="the package 'gguf' is not installed")
    pytest.importorskip("llama_cpp", reason="the extra 'llama-cpp' is not installed")
    from tiny_models import write_gguf
    from transformers import AutoModelForCausalLM

    state = AutoModelForCausalLM.from_pretrained(folder).state_dict()
    weights = {name: tensor.numpy() for name, tensor in state.items()}
    return write_gguf(tmp_path_factory.mktemp("gguf") / "model.gguf", weights, chat=True)


def stats(err):
    return json.loads(err.splitlines()[-1])


def test_a_folder_of_transformers(run, folder):
    rows = ["generate", "--model", folder, "--json-stats", "--seed", "3"]
    status, out, err = run(*rows, "--regex", "(yes|no), (a|b|c){2,9}", "--prompt", "name", "--no-chat")
    assert status == 0, err
    assert re.fullmatch("(yes|no), (a|b|c){2,9}\n", out)
    assert stats(err)["backend"] == "transformers"
    assert err.count("\n") == 1, "no progress bars, no warnings"
    plain = stats(err)["prompt_tokens"]
    # Free text; in a chat, as the model has a template.
    status, out, err = run(*rows, "--prompt", "name", "-n", "20")
    assert status == 0, err
    assert stats(err)["finish_reason"] in ("length", "complete")
    assert stats(err)["prompt_tokens"] > plain
    with_system = stats(run(*rows, "--prompt", "name", "-n", "1", "--system", "be kind")[2])["prompt_tokens"]
    assert with_system > stats(err)["prompt_tokens"]


def test_both_backends_say_the_same(run, folder, gguf):
    rows = ["--regex", "[a-e ]{10,30}", "--prompt", "name", "--temperature", "0", "--kv-type", "f32"]
    texts = {run("generate", "--model", model, *rows)[1] for model in (folder, gguf)}
    assert len(texts) == 1
    assert re.fullmatch("[a-e ]{10,30}\n", texts.pop())


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--chat"], 2, "a chat needs a --prompt"),
        (["--no-chat", "--system", "x"], 2, "without --no-chat"),
        (["--max-seq-len", "999"], 1, "max_seq_len is 999, but the model was made for at most 256 tokens"),
        (["--prompt", "a" * 600], 1, "has no room for more"),
        (["--prompt", "a", "--no-chat", "--max-seq-len", "5", "--regex", "x{50}"], 3, "room for 3 tokens"),
        (["--backend", "llama-cpp"], 1, "no .gguf file in this folder"),
    ],
)
def test_what_a_model_cannot_do(run, folder, arguments, status, message):
    result, out, err = run("generate", "--model", folder, *arguments)
    assert (result, out) == (status, "")
    assert message in err
    assert err.count("\n") == 1


def test_models_that_are_none(run, tmp_path):
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "config.json").write_text('{"model_type": "nothing"}')
    for path, message in (
        (tmp_path, "no config.json in this folder"),
        (broken, "no tokenizer in this folder"),
        (broken / "config.json", "not a GGUF file"),
    ):
        status, out, err = run("generate", "--choices", "a,b", "--model", path)
        assert (status, out) == (1, "")
        assert str(path) in err
        assert message in err
        assert err.count("\n") == 1


def test_sliding(run, folder, gguf):
    for model in (folder, gguf):
        rows = ["generate", "--model", model, "--no-chat", "--prompt", "name", "--json-stats", "--max-seq-len", "32"]
        grammar = ["--regex", "[a-e]{60,80}", "-n", "80"]
        assert run(*rows, *grammar)[0] == 3
        status, out, err = run(*rows, *grammar, "--eviction-policy", "sliding", "--protected-prefix", "4")
        assert status == 0, err
        assert re.fullmatch("[a-e]{60,80}\n", out)
        assert stats(err)["tokens"] > 32


def test_forgetting_by_attention(run, folder):
    rows = ["generate", "--model", folder, "--no-chat", "--prompt", "name", "--regex", "[a-e]{60,80}", "-n", "80"]
    for size in ("24", "12KB"):
        status, out, err = run(*rows, "--json-stats", "--evict", "attention", "--max-kv-size", size)
        assert status == 0, err
        assert re.fullmatch("[a-e]{60,80}\n", out)
        kv = stats(err)["kv"]
        assert kv["dropped"] > 0
        assert kv["kept"] <= 24
        assert kv["tokens"] == kv["kept"] + kv["dropped"]
    assert "forgotten" in run(*rows, "--evict", "sliding", "--max-kv-size", "24")[2]


@pytest.mark.skipif(os.name == "nt", reason="no SIGINT to send to one process")
@pytest.mark.usefixtures("interruptible")
def test_interrupt_with_a_model(folder):
    rows = ["generate", "--model", str(folder), "--prompt", "a", "--no-chat", "--regex", "[a-e]{2000}", "-n", "2000"]
    rows += ["--eviction-policy", "sliding"]
    with subprocess.Popen(
        [sys.executable, "-m", "constrain", *rows], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout.read(10)
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        err = process.stderr.read().decode()
    assert process.returncode == 130
    assert err.strip() == "constrain: interrupted"


def test_demo_is_the_default():
    assert demo.load()[0].chat_template is None


def test_a_turn_with_tools(run, tmp_path):
    tools = tmp_path / "tools.json"
    parameters = {"type": "object", "properties": {"city": {"enum": ["Oslo"]}}, "required": ["city"]}
    for content in ([{"name": "f", "parameters": parameters}], {"tools": [{"name": "f", "parameters": parameters}]}):
        tools.write_text(json.dumps(content))
        arguments = ["generate", "--tools", str(tools), "--style", "hermes", "--tool-choice", "required", "--one-call"]
        status, out, _ = run(*arguments)
        assert status == 0
        assert "".join(out.split()) == '<tool_call>{"name":"f","arguments":{"city":"Oslo"}}</tool_call>'


def test_thoughts_with_a_budget(run, tmp_path):
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps([{"name": "f"}]))
    arguments = ["generate", "--tools", str(tools), "--style", "deepseek_r1", "--reasoning-tokens", "12"]
    status, out, _ = run(*arguments, "--tool-choice", "none", "-n", "30")
    assert status == 0
    assert len(out.partition("</think>")[0]) < 100
    assert "</think>" in out
    status, out, err = run(*arguments, "--no-reasoning")
    assert (status, out) == (2, "")
    assert "--no-reasoning and --reasoning-tokens exclude each other" in err
    arguments[-1] = "1"
    status, out, err = run(*arguments)
    assert (status, out) == (1, "")
    assert "--reasoning-tokens 1 is too few: what it limits takes " in err
    arguments[4] = "llama3"
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert "--reasoning-tokens: there are no thoughts in the style llama3" in err


def test_a_structural_tag(run, tmp_path):
    tag = tmp_path / "tag.json"
    tag.write_text(json.dumps({"type": "structural_tag", "format": {"type": "const_string", "value": "xyz"}}))
    assert run("generate", "--structural-tag", str(tag))[:2] == (0, "xyz\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tools", "x.json"], "--tools needs --style"),
        (["--regex", "a", "--style", "qwen3"], "--style needs --tools"),
        (["--regex", "a", "--no-reasoning"], "--no-reasoning needs --tools"),
        (["--regex", "a", "--reasoning-begun"], "--reasoning-begun needs --tools"),
        (["--regex", "a", "--reasoning-tokens", "5"], "--reasoning-tokens needs --tools"),
        (["--regex", "a", "--structural-tag", "x.json"], "but there is --regex and --structural-tag"),
    ],
)
def test_options_of_turns_that_do_not_go_together(run, arguments, message):
    status, out, err = run("generate", *arguments)
    assert (status, out) == (2, "")
    assert message in err


def test_a_file_of_tools_without_tools(run, tmp_path):
    tools = tmp_path / "tools.json"
    for text, message in (
        ("{", "at #: invalid JSON at line 1, column 2"),
        ("{}", "a file of tools holds a list"),
        ("[3]", "at #/0: a tool is"),
    ):
        tools.write_text(text)
        status, _, err = run("generate", "--tools", str(tools), "--style", "hermes")
        assert status == 1
        assert f"{tools}: {message}" in err
