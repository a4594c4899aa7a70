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


ERNIE_CALL = '<tool_call>\n{"name": "write", "arguments": {"code": "x"}}\n</tool_call>\n'
INKLING_CALL = 'write<|content_invoke_tool_json|>{"name":"write","args":{"code":"x"}}<|end_message|>'
MUSE_CALL = (
    ' to=write<|message|><atem:function_calls>\n<atem:invoke name="write">\n'
    '<atem:parameter name="code">x</atem:parameter>\n</atem:invoke>\n</atem:function_calls>'
)
SOLAR_CALL = '<|tool_call:begin|>a1<|tool_call:name|>write<|tool_call:args|>{"code": "x"}<|tool_call:end|>'
K2_CALL = "<ifm|tool_call>write\n<ifm|arg_key>code</ifm|arg_key>\n<ifm|arg_value>x</ifm|arg_value>\n</ifm|tool_call>\n"
MESSAGES = [
    ("functionary_v3.2", "all\nSo.", "", "So.", 0),
    ("functionary_v3.2", 'all\nSo.>>>write\n{"code": "x"}', "", "So.", 1),
    ("functionary_v3.2", 'write\n{"code": "x"}>>>write\n{"code": "x"}', "", "", 2),
    ("functionary_v3.2", 'all\nSo.>>>all\nAnd.>>>write\n{"code": "x"}', "", "So.And.", 1),
    ("solar_open", "<|think|>hm<|end|><|begin|>assistant<|content|>So.<|end|>", "hm", "So.", 0),
    ("solar_open", f"<|tool_calls|>{SOLAR_CALL}{SOLAR_CALL}<|calls|>", "", "", 2),
    (
        "solar_open",
        f"<|think|>hm<|end|><|begin|>assistant<|content|>So.<|end|><|begin|>assistant<|tool_calls|>{SOLAR_CALL}<|calls|>",
        "hm",
        "So.",
        1,
    ),
    ("muse_glimmer", " to=self<|message|>hm<|eom|><|start|>assistant to=user<|message|>So.<|eot|>", "hm", "So.", 0),
    ("muse_glimmer", f"{MUSE_CALL}<|eom|><|start|>assistant{MUSE_CALL}<|eot|>", "", "", 2),
    ("muse_glimmer", MUSE_CALL, "", "", 1),
    ("muse_glimmer", f" to=user<|message|>So.<|eom|><|start|>assistant{MUSE_CALL}<|eot|>", "", "So.", 1),
    (
        "inkling",
        f"<|content_thinking|>hm<|end_message|><|message_model|><|content_text|>So.<|end_message|><|message_model|>"
        f"{INKLING_CALL}<|message_model|>{INKLING_CALL}<|content_model_end_sampling|>",
        "hm",
        "So.",
        2,
    ),
    ("inkling", "<|content_text|>So.<|end_message|><|content_model_end_sampling|>", "", "So.", 0),
    ("inkling", "<|content_text|>So.<|content_model_end_sampling|>", "", "So.", 0),
    ("ernie4.5", "hm\n</think>\n<response>\nSo.\n</response>\n", "hm\n", "So.", 0),
    ("ernie4.5", f"hm\n</think>\n\n\n{ERNIE_CALL}\n\n{ERNIE_CALL}", "hm\n", "", 2),
    ("ernie4.5", f"hm\n</think>\n<response>\nSo.\n</response>\n\n\n{ERNIE_CALL}", "hm\n", "So.", 1),
    ("k2_horizon", f"hm\n</ifm|think>So.\n<ifm|tool_calls>\n{K2_CALL}{K2_CALL}</ifm|tool_calls>", "hm\n", "So.\n", 2),
]


@pytest.mark.parametrize(("style", "turn", "thoughts", "said", "calls"), MESSAGES)
def test_turns_of_several_messages(style: str, turn: str, thoughts: str, said: str, calls: int) -> None:
    assert read(turn, style) == (thoughts, said, [Call("write", {"code": "x"})] * calls)
    assert parse(turn, style).is_complete
    for options in ({}, {"reasoning": 40}, {"parallel": False}, {"tool_choice": "write"}, {"tool_choice": "none"}):
        one, choice = "parallel" in options, options.get("tool_choice", "auto")
        # Where a call is asked for, no text stands before it.
        wanted = {"write": calls == 1 and not said, "none": not calls, "auto": not one or calls < 2}[str(choice)]
        if choice != "write" or style != "k2_horizon":
            assert fits(compiled(style, **options), turn) == wanted
    assert fits(compiled(style, reasoning=False), turn) == (not thoughts)
    name = turn.replace("write", "writes")
    assert name == turn or not fits(compiled(style), name)


def test_a_turn_that_ends_with_the_token_that_ends_its_calls() -> None:
    turn = f"<|tool_calls|>{SOLAR_CALL}"
    assert read(turn, "solar_open") == ("", "", [Call("write", {"code": "x"})])
    assert parse(turn, "solar_open").is_complete
    assert not parse(turn[:-3], "solar_open").is_complete
    assert parse(turn, "solar_open").calls[0].id == "a1"


@pytest.mark.parametrize(
    ("style", "turn", "said"),
    [
        # What no message begins with is text, and so is a call whose names differ.
        ("functionary_v3.2", "Hello world", "Hello world"),
        ("functionary_v3.2", "write\nnothing", "write\nnothing"),
        ("inkling", INKLING_CALL.replace('"write"', '"stop"'), INKLING_CALL.replace('"write"', '"stop"')),
        ("muse_glimmer", MUSE_CALL.replace('"write"', '"stop"'), None),
    ],
)
def test_messages_that_are_no_calls(style: str, turn: str, said: str | None) -> None:
    _, text, calls = read(turn, style)
    assert said is None or (text, calls) == (said, [])
    assert not fits(compiled(style), turn)


@pytest.mark.parametrize(
    ("style", "name"), [("functionary_v3.2", "all"), ("muse_glimmer", "user"), ("muse_glimmer", "self")]
)
def test_a_tool_with_the_name_of_a_recipient_is_refused(style: str, name: str) -> None:
    with pytest.raises(constrain.SchemaError, match=f"{name!r} cannot be told from a text"):
        compiled(style, [{**STOP, "name": name}])
    compiled(style, [{**STOP, "name": f"{name}s"}])


@pytest.mark.parametrize(
    ("written", "code", "is_allowed"),
    [
        ("x", "x", True),
        ("", "", True),
        ("x > y", "x > y", True),
        ("<![CDATA[x < y &\n]]>", "x < y &\n", True),
        ("<![CDATA[</param></function>]]>", "</param></function>", True),
        ("<![CDATA[plain]]>", "plain", True),
        ("<![CDATA[3]]>", "3", True),
        ("3", "3", True),
        ("a\nb", "a\nb", False),
        ("a & b", "a & b", False),
        ("<![CDATA[a]]>b", "<![CDATA[a]]>b", False),
    ],
)
def test_strings_of_minicpm5_may_be_sections(written: str, code: str, is_allowed: bool) -> None:
    turn = f'<function name="write"><param name="code">{written}</param></function>'
    assert read(turn, "minicpm5") == ("", "", [Call("write", {"code": code})])
    assert fits(compiled("minicpm5"), turn) == is_allowed
    for schema, holds in (
        ({"const": code}, True),
        ({"minLength": len(code)}, True),
        ({"minLength": len(code) + 1}, False),
    ):
        properties = {"code": {"type": "string", **schema}}
        one = {"name": "write", "parameters": {"type": "object", "properties": properties}}
        assert fits(compiled("minicpm5", [one]), turn) == (is_allowed and holds)


def test_calls_with_nothing_between_them() -> None:
    """GLM 4.5 writes a line end between two calls, GLM 4.7 nothing; where calls are required there is no text."""
    call = "<tool_call>write<arg_key>code</arg_key><arg_value>x</arg_value></tool_call>"
    for style, between in (("glm4.5", "\n"), ("glm4.7", ""), ("laguna_s", ""), ("laguna_xs", "\n"), ("ling3", "\n")):
        for other in ("", "\n"):
            turn = f"<think>hm</think>{call}{other}{call}"
            assert read(turn, style) == ("hm", "", [Call("write", {"code": "x"})] * 2) or other != between
            assert fits(compiled(style, tool_choice="required"), turn) == (other == between)
            assert fits(compiled(style), turn)


def test_an_answer_of_muse_glimmer_may_quote_a_call() -> None:
    quoted = MUSE_CALL.partition("<|message|>")[2]
    turn = f" to=self<|message|>I {quoted}.<|eom|><|start|>assistant to=user<|message|>So: {quoted}<|eot|>"
    assert read(turn, "muse_glimmer") == (f"I {quoted}.", f"So: {quoted}", [])
    assert fits(compiled("muse_glimmer"), turn)


def test_firefunction_writes_a_blank_before_calls() -> None:
    call = 'functools[{"name": "write", "arguments": {"code": "x"}}]'
    for turn in (call, f" {call}"):
        assert read(turn, "firefunction") == ("", "", [Call("write", {"code": "x"})])
        assert fits(compiled("firefunction", tool_choice="required"), turn)
    assert not fits(compiled("firefunction", tool_choice="required"), f"  {call}")


def test_step_3_5_writes_calls_one_behind_the_other() -> None:
    call = "<tool_call>\n<function=write>\n<parameter=code>\nx\n</parameter>\n</function>\n</tool_call>"
    turn = f"hm\n</think>\n{call}{call}"
    assert read(turn, "step3.5") == ("hm\n", "", [Call("write", {"code": "x"})] * 2)
    assert fits(compiled("step3.5", tool_choice="required"), turn)
