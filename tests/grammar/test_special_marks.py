"""Marks of tools' turns that are special tokens: the same turns as with marks of text, and no others."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any

import pytest

import constrain
from constrain.errors import ConstrainError, SchemaError
from constrain.grammar.tools.style import ToolStyle
from constrain.tools import parse

TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}]
HARMONY = ["<|channel|>", "<|message|>", "<|start|>", "<|constrain|>", "<|call|>", "<|end|>", "<|return|>"]
PYTHON_TAG = ["<|python_tag|>"]


def _compiled(
    names: Sequence[str], style: str | ToolStyle, tools: Any = TOOLS, **options: Any
) -> constrain.CompiledGrammar:
    ids = range(257, 257 + len(names))
    vocabulary = constrain.Vocabulary(
        [*(bytes((byte,)) for byte in range(256)), b"</s>", *(b"" for _ in names)],
        special_ids=ids,
        eos_ids=[256],
        names=dict(zip(ids, names, strict=True)),
    )
    grammar = constrain.Grammar.from_tools(tools, style=style, special_tokens=names, **options)
    return constrain.CompiledGrammar(grammar.ir, vocabulary)


def _reads(compiled: constrain.CompiledGrammar, text: str, names: Sequence[str]) -> bool:
    """Whether a turn is one, its marks being tokens."""
    matcher = constrain.Matcher(compiled)
    for part in re.split(f"({'|'.join(map(re.escape, names))})", text):
        taken = matcher.accept_token(257 + names.index(part)) if part in names else matcher.accept_bytes(part.encode())
        if not taken:
            return False
    return matcher.is_accepting()


CALL = '{"a": 1}'
PIECES = {
    "harmony": [
        "<|channel|>analysis<|message|>",
        "hm",
        "<|end|>",
        "<|start|>assistant",
        "<|channel|>final<|message|>",
        "<|return|>",
        f"<|channel|>commentary to=functions.f <|constrain|>json<|message|>{CALL}<|call|>",
    ],
    "llama3_python_tag": ["hm", "<|python_tag|>", f'{{"name": "f", "parameters": {CALL}}}', "<|python_tag|>{"],
}


@pytest.mark.parametrize("choice", ["auto", "required", "none"])
@pytest.mark.parametrize("parallel", [True, False])
@pytest.mark.parametrize(("style", "names"), [("harmony", HARMONY), ("llama3_python_tag", PYTHON_TAG)])
def test_turns_are_those_of_text_with_marks_as_tokens(
    style: str, names: list[str], parallel: bool, choice: str
) -> None:
    options: dict[str, Any] = {"tool_choice": choice, "parallel": parallel}
    compiled = _compiled(names, style, **options)
    text = constrain.Grammar.from_tools(TOOLS, style=style, **options)
    judge = constrain.CompiledGrammar(text.ir, compiled.vocabulary)
    found = 0
    for length in range(5):
        for pieces in itertools.product(PIECES[style], repeat=length):
            turn = "".join(pieces)
            matcher = constrain.Matcher(judge)
            # As text this mark is only kept out of what it ends; a token is in no text at all.
            expected = "<|return|>" not in turn.removesuffix("<|return|>")
            expected = expected and matcher.accept_bytes(turn.encode()) and matcher.is_accepting()
            assert _reads(compiled, turn, names) == expected, turn
            found += expected
    assert found


def test_characters_of_a_token_are_text() -> None:
    compiled = _compiled(PYTHON_TAG, "llama3_python_tag")
    matcher = constrain.Matcher(compiled)
    assert matcher.accept_bytes(b"<|python_tag|> is text")
    assert matcher.is_accepting()
    assert matcher.accept_token(257)
    assert not matcher.accept_bytes(b"x")


def test_a_call_that_begins_with_text() -> None:
    style = ToolStyle("x", (("call <|x|>", ":"),), ("<|y|>",), "call ")
    names = ["<|x|>", "<|y|>"]
    compiled = _compiled(names, style)
    assert _reads(compiled, f"so call <|x|>f:{CALL}<|y|> call <|x|>f:{CALL}<|y|>.", names)
    assert not _reads(compiled, "so call f", names)
    assert not _reads(compiled, f"so <|x|>f:{CALL}<|y|>", names)


@pytest.mark.parametrize(
    ("style", "names", "turn"),
    [
        (
            "phi4",
            ["<|tool_call|>", "<|/tool_call|>"],
            f'<|tool_call|>[{{"name": "f", "arguments": {CALL}}}]<|/tool_call|>',
        ),
        (
            "command_r7b",
            ["<|START_THINKING|>", "<|END_THINKING|>", "<|START_ACTION|>", "<|END_ACTION|>", "<|END_RESPONSE|>"],
            "<|START_THINKING|>hm<|END_THINKING|><|START_ACTION|>[\n"
            f'    {{"tool_call_id": "10", "tool_name": "f", "parameters": {CALL}}}\n]<|END_ACTION|>',
        ),
        (
            "seed_oss",
            ["<seed:tool_call>", "</seed:tool_call>"],
            "so <seed:tool_call>\n<function=f>\n<parameter=a>1</parameter>\n</function>\n</seed:tool_call>.",
        ),
    ],
)
def test_calls_that_end_with_text_before_a_token(style: str, names: list[str], turn: str) -> None:
    compiled = _compiled(names, style)
    assert _reads(compiled, turn, names)
    # The last mark as text.
    assert not _reads(compiled, turn, names[: -2 if style == "command_r7b" else -1])
    assert not _reads(compiled, turn.replace("1", "x"), names)


def test_free_text_does_not_end_with_text_before_a_token() -> None:
    style = ToolStyle("x", (("<|x|>", ":"),), ("<|y|>",), "<|x|>", text=("<|t|>", "end<|y|>"))
    with pytest.raises(ConstrainError, match=re.escape("the end 'end<|y|>' of free text is text")):
        _compiled(["<|x|>", "<|y|>"], style)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("<|call|>", "special_tokens must be names"),
        ([""], "special_tokens must be names"),
        ([3], "special_tokens must be names"),
        (["<|x|>"], "special_tokens: there is no '<|x|>' in a turn of the style harmony"),
        (["f"], "at #/0: the name of a tool holds 'f', which is one of special_tokens"),
    ],
)
def test_errors_of_special_tokens(names: Any, message: str) -> None:
    with pytest.raises(ConstrainError) as caught:
        constrain.Grammar.from_tools(TOOLS, style="harmony", special_tokens=names)
    assert str(caught.value).startswith(message)


NAMED = {
    "name": "f",
    "parameters": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "string"}, "c": {"type": "array", "items": {}}},
        "required": ["a"],
    },
}
STOP = {"name": "stop", "parameters": {"type": "object"}}
AROUND_NAMES = {
    "kimi_k3": (
        "<|open|>response<|sep|><|close|>response<|sep|><|open|>tools<|sep|>",
        '<|open|>call tool="{}" index="1"<|sep|>',
        '<|open|>argument key="{}" type="{}"<|sep|>{}<|close|>argument<|sep|>',
        "<|close|>call<|sep|>",
        "<|close|>tools<|sep|><|close|>message<|sep|>",
    ),
    "k2_horizon": (
        "<ifm|tool_calls>\n",
        "<ifm|tool_call>{}\n",
        "<ifm|arg_key>{}</ifm|arg_key>\n<ifm|arg_value>{2}</ifm|arg_value>\n",
        "</ifm|tool_call>",
        "\n</ifm|tool_calls>",
    ),
    "solar_open2": (
        "",
        "<|tool_call:start|>{}\n",
        "<|tool_arg:start|>{}<|tool_arg:value|>{2}<|tool_arg:end|>\n",
        "<|tool_call:end|>",
        "",
    ),
}


def _turn_with_names(style: str, *members: tuple[str, str, str], tool: str = "f") -> str:
    begin, head, member, end, behind = AROUND_NAMES[style]
    kept = member if "{2}" not in member else member.replace("{}", "{0}", 1)
    return begin + head.format(tool) + "".join(kept.format(*each) for each in members) + end + behind


@pytest.mark.parametrize("order", ["schema", "any"])
@pytest.mark.parametrize("style", AROUND_NAMES)
def test_tokens_around_the_names_of_arguments(style: str, order: str) -> None:
    names = sorted(set(re.findall(r"<\|[a-z_:]+\|>|</?ifm\|[a-z_]+>", "".join(AROUND_NAMES[style]))))
    options: dict[str, Any] = {"tool_choice": "required", "reasoning": False, "property_order": order}
    compiled = _compiled(names, style, [NAMED, STOP], **options)
    one, text, many = ("a", "number", "1"), ("b", "string", "x <y"), ("c", "array", '[1, "z"]')
    for members in ((one,), (one, text), (one, text, many), (one, many)):
        turn = _turn_with_names(style, *members)
        assert _reads(compiled, turn, names)
        assert parse(turn, style, [NAMED, STOP]).calls[0].name == "f"
        # What is spelled is no token.
        matcher = constrain.Matcher(compiled)
        assert not (matcher.accept_bytes(turn.encode()) and matcher.is_accepting())
    assert _reads(compiled, _turn_with_names(style, text, one), names) == (order == "any")
    assert _reads(compiled, _turn_with_names(style, tool="stop"), names)
    for wrong in ((), (text,), (one, one), (one, ("d", "number", "1")), (("a", "number", "x"),)):
        assert not _reads(compiled, _turn_with_names(style, *wrong), names)
    some = {**NAMED, "parameters": {**NAMED["parameters"], "additionalProperties": True}}
    with pytest.raises(SchemaError, match="members that the schema does not name are not supported in this style"):
        _compiled(names, style, [some], **options)


@pytest.mark.parametrize("parallel", [True, False])
def test_a_trigger_that_is_a_token_and_one_that_is_text(parallel: bool) -> None:
    names = {257: "<tool_call>", 258: "</tool_call>"}
    texts = [*(bytes((byte,)) for byte in range(256)), b"</s>", b"", b""]
    vocabulary = constrain.Vocabulary(texts, eos_ids=[256], special_ids=list(names), names=names)
    grammar = constrain.Grammar.from_tools(
        TOOLS, style="qwen3_coder", special_tokens=names.values(), parallel=parallel, reasoning=False
    )
    compiled = constrain.GrammarCompiler(vocabulary).compile(grammar)

    def follows(*parts: str | int) -> bool:
        matcher = constrain.Matcher(compiled)
        tokens = [token for part in parts for token in ([part] if isinstance(part, int) else part.encode())]
        return all(map(matcher.accept_token, tokens)) and matcher.is_accepting()

    text = "<function=f>\n<parameter=a>\n3\n</parameter>\n</function>\n"
    call, bare = (257, f"\n{text}", 258), (text, 258)
    for begin in ((), ("Hi <tool_call>. ",)):
        assert follows(*begin)
        assert follows(*begin, *call)
        assert follows(*begin, *bare)
        for other in (call, bare):
            assert follows(*begin, *call, *other) == follows(*begin, *bare, *other) == parallel
        assert not follows(*begin, text)
        assert not follows(*begin, text.replace("3", "x"), 258)
