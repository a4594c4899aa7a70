"""What people get wrong in a first program: each is one line that says what was given and what is wanted."""

# mypy: disable-error-code=arg-type
from __future__ import annotations

import pathlib
import re
from collections.abc import Callable
from typing import Any

import pytest

import constrain
from constrain import Grammar, GrammarCompiler, Matcher, Vocabulary
from constrain.demo import load
from constrain.generation import generate

BYTES = Vocabulary([*(bytes([byte]) for byte in range(256)), b"</s>"], eos_ids=[256])
COMPILED = GrammarCompiler(BYTES).compile(Grammar.from_choices(["yes", "no"]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Matcher(COMPILED).accept_bytes("yes"), "takes bytes, not str: of a text, text.encode()"),
        # bytes(3) is b"\0\0\0".
        (lambda: Matcher(COMPILED).accept_bytes(3), "takes bytes, not int"),
        (lambda: Matcher(COMPILED).accept_tokens(121), "token_ids must be a list of token ids, not 121"),
        (lambda: Matcher(COMPILED).validate_tokens(121), "token_ids must be a list of token ids, not 121"),
        (lambda: Matcher(COMPILED).rollback(None), "rollback() takes a number of steps, not None"),
        (lambda: Matcher(COMPILED).rollback(0.5), "rollback() takes a number of steps, not 0.5"),
        (lambda: Matcher(COMPILED, stop_token_ids=3), "stop_token_ids must be a list of token ids, not 3"),
        (lambda: Vocabulary([b"a", b"b"], eos_ids=1), "eos_ids must be a list of token ids, not 1"),
        (lambda: COMPILED.recognizer().try_push_byte(b"y"), "b'y' is not a byte: an integer from 0 to 255"),
        (lambda: Grammar.from_lark(pathlib.Path("json.lark")), "of a file, path.read_text()"),
        (lambda: Grammar.from_regex(re.compile("a", re.IGNORECASE)), "of a compiled one, its .pattern"),
    ],
)
def test_wrong_arguments(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(constrain.ConstrainError) as raised:
        call()
    assert message in str(raised.value)


def test_other_kinds_of_bytes_are_bytes() -> None:
    assert Matcher(COMPILED).accept_bytes(bytearray(b"yes"))
    assert Matcher(COMPILED).accept_bytes(memoryview(b"yes"))


def test_a_tokenizer_is_no_vocabulary() -> None:
    tokenizer, _model = load()
    with pytest.raises(TypeError, match=r"takes a Vocabulary, not \w+: Vocabulary.from_tokenizer\(tokenizer\)"):
        GrammarCompiler(tokenizer)


def test_arguments_of_generate_in_another_order() -> None:
    tokenizer, model = load()
    with pytest.raises(TypeError, match=r"generate\(\) takes a CompiledGrammar"):
        generate(model, COMPILED, tokenizer)
    with pytest.raises(constrain.ConstrainError, match=r"<Vocabulary: 257 .*>, but the tokenizer has 12,288 tokens"):
        generate(model, tokenizer, COMPILED)
    with pytest.raises(constrain.ConstrainError, match=r"sampler must be a Sampler or a SamplerChain, not 0\.7"):
        generate(model, tokenizer, None, sampler=0.7)


@pytest.mark.parametrize("value", ["Person", 3, (int, str), [int]])
def test_a_value_is_no_type(value: object) -> None:
    pytest.importorskip("pydantic")
    with pytest.raises(constrain.GrammarError, match=r"it is a value \(\w+\); give a type"):
        Grammar.from_pydantic(value)


@pytest.mark.parametrize(
    ("choice", "same"),
    [
        ({"type": "function", "function": {"name": "look"}}, "look"),
        ({"type": "function", "name": "look"}, "look"),
        ({"type": "tool", "name": "look"}, "look"),
        ({"type": "any"}, "required"),
        ({"type": "none"}, "none"),
    ],
)
def test_the_choice_of_a_tool_as_requests_have_it(choice: dict[str, Any], same: str) -> None:
    tools = [{"name": "look", "parameters": {"type": "object"}}, {"name": "listen", "parameters": {"type": "object"}}]
    as_object = Grammar.from_tools(tools, style="qwen3", tool_choice=choice)
    as_name = Grammar.from_tools(tools, style="qwen3", tool_choice=same)
    compiler = GrammarCompiler(BYTES)
    assert compiler.compile(as_object) is compiler.compile(as_name)
