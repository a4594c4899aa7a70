"""Turns as models write them, and what they are read as: the grammar allows what the parser reads, to the character."""

from __future__ import annotations

from typing import Any

import pytest
from byte_tokens import BYTES, fits

import constrain
from constrain.tools import Call, TurnParser, parse

WRITE = {
    "name": "write",
    "parameters": {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]},
}
STOP = {"name": "stop", "parameters": {"type": "object", "properties": {}}}


def compiled(style: str, tools: Any = (WRITE, STOP), **options: Any) -> constrain.CompiledGrammar:
    return constrain.CompiledGrammar(constrain.Grammar.from_tools(tools, style=style, **options).ir, BYTES)


def read(text: str, style: str, tools: Any = (WRITE, STOP), **options: bool) -> tuple[str, str, list[Call]]:
    """What a turn is read as, which is the same where it comes sign by sign."""
    turn = parse(text, style, tools, **options)
    parser = TurnParser(style, tools, **options)
    for sign in text:
        parser.feed(sign)
    parser.finish()
    assert parser.turn == turn
    return turn.reasoning, turn.text, turn.calls


@pytest.mark.parametrize(
    ("style", "begin", "end"),
    [
        (
            "seed_oss",
            "<seed:tool_call>\n<function=write>\n<parameter=code>",
            "</parameter>\n</function>\n</seed:tool_call>",
        ),
        ("mimo", "<tool_call><function=write><parameter=code>", "</parameter></function></tool_call>"),
        (
            "qwen3_coder",
            "<tool_call>\n<function=write>\n<parameter=code>\n",
            "\n</parameter>\n</function>\n</tool_call>",
        ),
    ],
)
@pytest.mark.parametrize("code", ["x", "x\n", "\nx", "\n\n", "\n", "", "  x ", "a\n\nb\n"])
def test_strings_in_xml_keep_their_line_ends(style: str, begin: str, end: str, code: str) -> None:
    """The templates of Seed-OSS and MiMo write a string as it is, that of Qwen 3 Coder between two line ends."""
    turn = begin + code + end
    assert fits(compiled(style), turn)
    assert read(turn, style) == ("", "", [Call("write", {"code": code})])
    # Each string that a schema lists is that one, too.
    one = {"name": "write", "parameters": {"type": "object", "properties": {"code": {"const": code}}}}
    other = {"name": "write", "parameters": {"type": "object", "properties": {"code": {"const": f"{code}\n"}}}}
    assert fits(compiled(style, [one]), turn)
    assert not fits(compiled(style, [other]), turn)


M3 = "]<]minimax[>["
M3_STOP = f'{M3}<tool_call>\n{M3}<invoke name="stop">{M3}</invoke>\n{M3}</tool_call>'


@pytest.mark.parametrize(
    ("begin", "thoughts"),
    [("", ""), ("</mm:think>", ""), ("<mm:think></mm:think>", ""), ("<mm:think>hm</mm:think>", "hm")],
)
def test_minimax_m3_ends_thoughts_that_it_did_not_begin(begin: str, thoughts: str) -> None:
    for rest, said, calls in (
        ("Hi", "Hi", []),
        (f"Hi{M3_STOP}", "Hi", [Call("stop", {})]),
        (M3_STOP, "", [Call("stop", {})]),
    ):
        for grammar in (compiled("minimax_m3"), compiled("minimax_m3", reasoning=40)):
            assert fits(grammar, begin + rest)
        assert fits(compiled("minimax_m3", tool_choice="required"), begin + rest) == (not said)
        assert fits(compiled("minimax_m3", reasoning_begun=True), begin + rest) == bool(begin)
        assert fits(compiled("minimax_m3", reasoning=False), begin + rest) == (not begin)
        assert read(begin + rest, "minimax_m3") == (thoughts, said, calls)
    for wrong in ("</mm:think></mm:think>Hi", "Hi</mm:think>", "</mm:think><mm:think>hm</mm:think>Hi"):
        assert not fits(compiled("minimax_m3"), wrong)
    # Where the prompt has begun them, that is their end.
    assert read(f"</mm:think>{M3_STOP}", "minimax_m3", reasoning_begun=True) == ("", "", [Call("stop", {})])


def test_a_tool_whose_schema_names_no_arguments() -> None:
    """MiniMax M3 writes the name of an argument in its end: a schema that says nothing of names would be an error."""
    bare = {"name": "stop", "parameters": {"type": "object", "description": "none"}}
    assert fits(compiled("minimax_m3", [WRITE, bare], tool_choice="required"), M3_STOP)
    argument = M3_STOP.replace('"stop">', f'"stop">{M3}<a>1{M3}</a>')
    assert not fits(compiled("minimax_m3", [WRITE, bare]), argument)
    for open_one, options in (
        ({**bare, "parameters": {"type": "object", "additionalProperties": True}}, {}),
        (bare, {"closed": False}),
    ):
        with pytest.raises(constrain.SchemaError, match="members that the schema does not name"):
            compiled("minimax_m3", [open_one], **options)
    assert fits(compiled("hermes", [bare]), '<tool_call>\n{"name": "stop", "arguments": {"a": 1}}\n</tool_call>')


@pytest.mark.parametrize(
    ("style", "before", "call"),
    [
        ("minimax_m2", "\n", '<minimax:tool_call>\n<invoke name="stop">\n</invoke>\n</minimax:tool_call>'),
        ("glm4.5", "\n", "<tool_call>stop\n</tool_call>"),
        *(
            (
                f"deepseek_{version}",
                "\n\n",
                f'<｜DSML｜{blank}{calls}>\n<｜DSML｜{blank}invoke name="stop">\n</｜DSML｜{blank}invoke>\n'
                f"</｜DSML｜{blank}{calls}>",
            )
            for version, blank, calls in (
                ("v3.2", "", "function_calls"),
                ("v4", "", "tool_calls"),
                ("v4.1", " ", "calls"),
            )
        ),
    ],
)
def test_what_stands_before_calls_without_text_is_no_text(style: str, before: str, call: str) -> None:
    stop = [Call("stop", {})]
    for thoughts, hm in (("", ""), ("<think>hm</think>", "hm"), ("<think></think>", "")):
        options = {"reasoning": bool(thoughts)}
        turn = thoughts + before + call
        for choice in ("auto", "required"):
            assert fits(compiled(style, tool_choice=choice, **options), turn)
        assert read(turn, style, **options) == (hm, "", stop)
        assert read(thoughts + call, style, **options) == (hm, "", stop)
        # Behind a text it is a part of that; and so it is where no call follows.
        assert read(f"{thoughts}Hi{before}{call}", style, **options) == (hm, f"Hi{before}", stop)
    for wrong in (call.replace("stop", "s p"), call[:5]):
        assert read(before + wrong, style, reasoning=False)[1:] == (before + wrong, [])
    assert read(f"{before}Hi", style, reasoning=False)[1:] == (f"{before}Hi", [])
    assert read(before, style, reasoning=False)[1:] == (before, [])


@pytest.mark.parametrize("kind", ["", " <|constrain|>json", " json"])
def test_a_text_of_harmony_that_says_it_is_json(kind: str) -> None:
    turn = f'<|channel|>final{kind}<|message|>{{"a": 1}}'
    thoughts = "<|channel|>analysis<|message|>hm<|end|><|start|>assistant"
    for end in ("", "<|return|>"):
        assert read(turn + end, "harmony") == ("", '{"a": 1}', [])
        assert read(thoughts + turn + end, "harmony") == ("hm", '{"a": 1}', [])
    assert fits(compiled("harmony"), thoughts + turn) == (not kind)


WRITTEN_OTHERWISE = [
    (
        "command_r",
        'I look.\nAction:\n```json\n[{"tool_name": "write", "parameters": {"code": "x"}}]\n```',
        "",
        "I look.\n",
    ),
    ("internlm2", '<|action_start|><|plugin|>\n{"name": "write", "arguments": {"code": "x"}}<|action_end|>', "", ""),
    (
        "internlm2",
        'So<|action_start|> <|plugin|>\n{"name": "write", "parameters": {"code": "x"}}<|action_end|>',
        "",
        "So",
    ),
    ("jamba", ' <tool_calls>[{"name": "write", "arguments": {"code": "x"}}]</tool_calls>', "", " "),
    (
        "hunyuan_a13b",
        '<think>\nhm\n</think>\n<tool_calls>[{"name": "write", "arguments": {"code": "x"}}]</tool_calls>',
        "hm\n",
        "",
    ),
    (
        "gigachat3",
        'So<|message_sep|>\n\nfunction call<|role_sep|>\n{"name": "write", "arguments": {"code": "x"}}',
        "",
        "So",
    ),
    (
        "gigachat3.5",
        '<think>hm</think>\n\nSo\n\n<｜GCML｜tool_calls>\n<｜GCML｜invoke name="write">\n'
        '<｜GCML｜parameter name="code" string="true">x'
        "</｜GCML｜parameter>\n</｜GCML｜invoke>\n</｜GCML｜tool_calls>",
        "hm",
        "So\n\n",
    ),
    (
        "solar_open2",
        "<|think:start|>hm<|think:end|>So<|tool_call:start|>write\n<|tool_arg:start|>code<|tool_arg:value|>x<|tool_arg:end|>\n"
        "<|tool_call:end|>",
        "hm",
        "So",
    ),
    (
        "dots",
        'So<dots_function_call><invoke name="write"><parameter name="code">x</parameter></invoke></dots_function_call>',
        "",
        "So",
    ),
    (
        "step3",
        "hm\n</think>\n<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜>"
        '<steptml:invoke name="write"><steptml:parameter name="code">x</steptml:parameter></steptml:invoke>'
        "<｜tool_call_end｜><｜tool_calls_end｜>",
        "hm\n",
        "",
    ),
]


@pytest.mark.parametrize(("style", "turn", "thoughts", "said"), WRITTEN_OTHERWISE)
def test_turns_that_templates_and_parsers_have(style: str, turn: str, thoughts: str, said: str) -> None:
    assert read(turn, style) == (thoughts, said, [Call("write", {"code": "x"})])
    assert fits(compiled(style), turn) == (style not in ("command_r", "jamba", "dots", "step3"))


def test_a_turn_of_xlam_is_calls_or_text() -> None:
    calls = '[{"name": "write", "arguments": {"code": "]"}}, {"name": "stop", "arguments": {}}]'
    assert fits(compiled("xlam"), calls)
    assert read(calls, "xlam") == ("", "", [Call("write", {"code": "]"}), Call("stop", {})])
    for text in ("Sorry [1].", "", "{}"):
        assert fits(compiled("xlam"), text)
        assert read(text, "xlam") == ("", text, [])
    assert not fits(compiled("xlam"), "[]")
    assert not fits(compiled("xlam"), f"So {calls}, ") or not read(f"So {calls}", "xlam")[2]


def test_values_of_functiongemma() -> None:
    values = {"type": "object", "properties": {"a": {}, "b": {"type": "array"}, "c": {"type": "object"}}}
    tool = {"name": "put", "parameters": values}
    turn = "<start_function_call>call:put{a:<escape>x, {y}<escape>,b:[1,<escape>z<escape>,true],c:{d:null}}"
    turn += "<end_function_call>"
    assert fits(compiled("functiongemma", [tool]), turn)
    put = Call("put", {"a": "x, {y}", "b": [1, "z", True], "c": {"d": None}})
    assert read(turn, "functiongemma", [tool]) == ("", "", [put])
    assert not fits(compiled("functiongemma", [tool]), turn + "<start_function_response>")


STRAY_MARKS = [
    ("kimi_k2", "<|tool_call_begin|>"),
    ("glm4.5", "</tool_call>"),
    ("glm4.5", "<arg_key>"),
    ("minimax_m2", "</minimax:tool_call>"),
    ("minimax_m2", "</invoke>"),
]


@pytest.mark.parametrize(("style", "mark"), STRAY_MARKS)
def test_text_holds_no_stray_mark_of_a_call(style: str, mark: str) -> None:
    grammar = compiled(style, reasoning=False)
    assert fits(grammar, f"So {mark[:-1]} it is.")
    assert not fits(grammar, f"So {mark} it is.")
    assert read(f"So {mark} it is.", style, reasoning=False) == ("", f"So {mark} it is.", [])


@pytest.mark.parametrize("space", ["", "\n", "\n\n", " \r\n"])
@pytest.mark.parametrize(
    ("style", "turn", "end"),
    [
        ("granite3.3", "<think>hm</think>@<response>Hi</response>", ""),
        ("granite3.3", '<think>hm</think>@<|tool_call|>[{"name": "write", "arguments": {"code": "x"}}]', ""),
        ("command_r7b", "<|START_THINKING|>hm<|END_THINKING|>@<|START_RESPONSE|>Hi<|END_RESPONSE|>", ""),
        ("harmony", "@<|channel|>final<|message|>Hi<|return|>", "<|return|>"),
    ],
)
def test_white_space_before_marks_is_no_text(style: str, turn: str, end: str, space: str) -> None:
    thoughts = "hm" if "hm" in turn else ""
    said, calls = ("Hi", []) if "Hi" in turn else ("", [Call("write", {"code": "x"})])
    assert read(turn.replace("@", space), style) == (thoughts, said, calls)
    assert fits(compiled(style), turn.replace("@", space).removesuffix(end)) == (not space)


@pytest.mark.parametrize("text", ["\n\nSo", "  ", "<resp", "\n<respond>", ""])
def test_white_space_before_a_text_without_marks_is_text(text: str) -> None:
    assert read(f"<think>hm</think>{text}", "granite3.3") == ("hm", text, [])


KIMI = '<|tool_call_begin|>functions.write:{}<|tool_call_argument_begin|>{{"code": "x"}}<|tool_call_end|>'
TWO = KIMI.format(0) + KIMI.format(1)
KIMI_TURNS = [
    ("So" + TWO, "", "So", True),
    (f"So{KIMI.format(0)}\n{KIMI.format(1)}!", "", "So!", True),
    ("<think>hm</think>" + TWO, "hm", "", True),
    ("<think>hm" + TWO, "hm", "", True),
    (f"So<|tool_call_section_begin|>{TWO}<|tool_call_section_end|>", "", "So", True),
    (f"<|tool_calls_section_begin|>{TWO}<|tool_call_section_end|>", "", "", True),
    (f"<|tool_calls_section_begin|>{TWO}", "", "", False),
]


@pytest.mark.parametrize(("turn", "thoughts", "said", "is_complete"), KIMI_TURNS)
def test_calls_of_kimi_k2_without_their_section(turn: str, thoughts: str, said: str, is_complete: bool) -> None:
    assert read(turn, "kimi_k2") == (thoughts, said, [Call("write", {"code": "x"})] * 2)
    parsed = parse(turn, "kimi_k2", (WRITE, STOP))
    assert ([call.id for call in parsed.calls], parsed.is_complete) == (
        ["functions.write:0", "functions.write:1"],
        is_complete,
    )
    assert not fits(compiled("kimi_k2"), turn)
