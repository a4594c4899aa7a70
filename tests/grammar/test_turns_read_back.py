"""Turns that a model wrote a little otherwise than its style does are read back all the same."""

from __future__ import annotations

import json
import re

import pytest

from constrain.grammar.tools.style import ToolStyle
from constrain.grammar.tools.styles import STYLES
from constrain.tools import Call, Turn, TurnParser, parse
from tests.grammar.test_tools import WRITTEN

TOOLS = [
    {"name": name, "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
    for name in ("get_weather", "get_time")
]
PARIS, OSLO = Call("get_weather", {"city": "Paris"}), Call("get_time", {"city": "Oslo"})


def read(text: str, style: str, **options: bool) -> Turn:
    """A turn, which is the same where it comes sign by sign."""
    turn = parse(text, style, TOOLS, **options)
    parser = TurnParser(style, TOOLS, **options)
    for sign in text:
        parser.feed(sign)
    parser.finish()
    assert parser.turn == turn
    return turn


def written(style: ToolStyle, space: str) -> str:
    """Two calls in a style of JSON, with other white space in its marks than the style writes."""

    def other(text: str, exact: str = "") -> str:
        rest = text.removeprefix(exact)
        filled = rest.replace("{number}", "0").replace("{id}", "abcdefghi")
        spaced = re.sub(r"\s+|(?<=[{},])(?! )|(?<=[\]>])(?=[\[<])", space, filled)
        return text[: len(text) - len(rest)] + spaced

    begin, separator, end = "", style.between_calls, ""
    if style.section is not None:
        section = style.section
        begin, separator, end = other(section.begin, style.trigger), other(section.separator), other(section.end)
    calls = []
    for call in (PARIS, OSLO):
        before, between = style.forms[0]
        behind = other(between.replace("{name}", call.name))
        head = other(before, "" if style.section is not None else style.trigger) + call.name + behind
        calls.append(f'{head}{{"city": "{call.arguments["city"]}"}}{other(style.ends[0]).rstrip()}')
    return begin + separator.join(calls) + end


@pytest.mark.parametrize("space", ["", " ", "\n    "])
@pytest.mark.parametrize(
    "name", [name for name, style in STYLES.items() if style.arguments == "json" and not style.ends_turn]
)
def test_white_space_in_marks_may_be_another(name: str, space: str) -> None:
    assert read(written(STYLES[name], space), name, reasoning=False) == Turn(calls=[PARIS, OSLO])


@pytest.mark.parametrize(
    ("style", "text"),
    [
        ("qwen3_coder", "<tool_call><function=get_weather><parameter=city>Paris</parameter></function></tool_call>"),
        (
            "minimax_m2",
            '</think><minimax:tool_call><invoke name="get_weather"><parameter name="city">Paris</parameter></invoke>'
            "</minimax:tool_call>",
        ),
        (
            "glm4.5",
            "<tool_call>get_weather\n  <arg_key>city</arg_key>\n  <arg_value>Paris</arg_value>\n  </tool_call>",
        ),
        ("lfm2", "<|tool_call_start|> [ get_weather(city='Paris') ] <|tool_call_end|>"),
        ("llama4_pythonic", "[get_weather(city='Paris')]"),
    ],
)
def test_white_space_between_marks_and_other_arguments(style: str, text: str) -> None:
    assert read(text, style) == Turn(calls=[PARIS])


@pytest.mark.parametrize(
    ("style", "text"),
    [
        (
            "kimi_k2",
            "<|tool_calls_section_begin|>\n<|tool_call_begin|>\nfunctions.get_weather:0 <|tool_call_argument_begin|> "
            '{"city": "Paris"} <|tool_call_end|>\n<|tool_calls_section_end|>',
        ),
        ("mistral", '[TOOL_CALLS]  [ {"name" : "get_weather" , "arguments" : {"city": "Paris"} } ]'),
        (
            "deepseek_v3.1",
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜> get_weather <｜tool▁sep｜> CITY <｜tool▁call▁end｜>",
        ),
    ],
)
def test_white_space_around_tokens_and_signs(style: str, text: str) -> None:
    if style == "deepseek_v3.1":
        text = text.replace("CITY", '{"city": "Paris"}') + " <｜tool▁calls▁end｜>"
    assert read(text, style) == Turn(calls=[PARIS])


@pytest.mark.parametrize("separator", ["; ", ";", " ;\n"])
@pytest.mark.parametrize("begin", ["", "<|python_tag|>"])
def test_calls_of_llama_and_what_separates_them(separator: str, begin: str) -> None:
    calls = [
        '{"name": "get_weather", "parameters": {"city": "Paris"}}',
        '{"name": "get_time", "arguments": {"city": "Oslo"}}',
    ]
    assert read(begin + separator.join(calls), "llama3") == Turn(calls=[PARIS, OSLO])
    # What separates nothing is text.
    assert read(f"{begin}{calls[0]}{separator}So", "llama3") == Turn(text=f"{separator}So", calls=[PARIS])


@pytest.mark.parametrize(
    ("schema", "written", "value"),
    [
        ({"type": "object"}, "{'a': [1, True, None]}", {"a": [1, True, None]}),
        (
            {"type": "array", "items": {"type": "object"}},
            """[{"a": 'b'}, {'a': "it's"}]""",
            [{"a": "b"}, {"a": "it's"}],
        ),
        ({"type": "array"}, "(1, 'a')", [1, "a"]),
        # Where a string is valid it is one; and so is what is not valid in either way.
        ({"type": ["object", "string"]}, "{'a': 1}", "{'a': 1}"),
        ({"type": "object"}, "{'a': open()}", "{'a': open()}"),
        ({"type": "integer"}, "{'a': 1}", "{'a': 1}"),
        ({}, "{'a': 1}", "{'a': 1}"),
    ],
)
def test_lists_and_dictionaries_of_python_in_xml(schema: dict[str, object], written: str, value: object) -> None:
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"x": schema}}}
    text = f"<tool_call>\n<function=f>\n<parameter=x>\n{written}\n</parameter>\n</function>\n</tool_call>"
    assert parse(text, "qwen3_coder", [tool]).calls == [Call("f", {"x": value})]
    assert parse(text, "qwen3_coder").calls == [Call("f", {"x": written})]


@pytest.mark.parametrize(
    ("kind", "written", "value"), [("integer", "42", 42), ("object", '{"a": 1}', {"a": 1}), ("string", "42", "42")]
)
def test_a_value_that_is_marked_as_a_string_where_none_is_valid(kind: str, written: str, value: object) -> None:
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"x": {"type": kind}}}}
    text = (
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="f">\n<｜DSML｜parameter name="x" string="true">'
        f"{written}</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>"
    )
    assert parse(text, "deepseek_v3.2", [tool]).calls == [Call("f", {"x": value})]
    assert parse(text, "deepseek_v3.2").calls == [Call("f", {"x": written})]


@pytest.mark.parametrize(
    ("style", "ids"),
    [
        ("kimi_k2", ["functions.get_weather:0", "functions.get_time:1"]),
        ("mistral", ["abcdefghi", None]),
        ("command_r7b", ["0", "1"]),
        ("kimi_k3", ["1", "2"]),
        ("hermes", [None, None]),
    ],
)
def test_what_models_call_their_calls(style: str, ids: list[str | None]) -> None:
    assert [call.id for call in read(WRITTEN[style], style, reasoning=False).calls] == ids


def test_ids_of_mistral_with_arguments() -> None:
    call = '[TOOL_CALLS]get_weather[CALL_ID]abcDEF789[ARGS]{"city": "Paris"}'
    assert [call.id for call in read(call, "mistral_args").calls] == ["abcDEF789"]


@pytest.mark.parametrize(
    ("style", "text"),
    [
        ("hermes", '<tool_call>\n{"arguments": {"city": "Paris"}, "name": "get_weather"}\n</tool_call>'),
        ("qwen3", '<tool_call>{"arguments":{"city": "Paris"} ,"name" : "get_weather"}</tool_call>'),
        ("mistral", '[TOOL_CALLS] [{"arguments": {"city": "Paris"}, "name": "get_weather"}]'),
        ("mistral", '[TOOL_CALLS][{"arguments": {"city": "Paris"}, "name": "get_weather", "id": "abcdefghi"}]'),
    ],
)
def test_a_name_behind_the_arguments(style: str, text: str) -> None:
    assert read(text, style) == Turn(calls=[PARIS])
    parser = TurnParser(style, TOOLS, arguments=True)
    assert [(event.kind, event.text) for event in parser.feed(text)] == [("begin", PARIS.name), ("call", PARIS.name)]
    broken = text.replace('"name"', '"nome"')
    assert read(broken, style) == Turn(text=broken, is_complete=False)


def test_a_name_among_the_arguments_is_none() -> None:
    text = '<tool_call>\n{"arguments": {"name": "Jo"}, "name": "get_time"}\n</tool_call>'
    assert read(text, "hermes") == Turn(calls=[Call("get_time", {"name": "Jo"})])


@pytest.mark.parametrize("space", ["", "\n"])
@pytest.mark.parametrize(
    ("written", "value"),
    [
        ('{"x": 1}', {"x": 1}),
        ('{"x": "MARK"}', {"x": "MARK"}),
        # Which is an object where the schema says so.
        ("{'x': 'MARK', 'y': True}", "{'x': 'MARK', 'y': True}"),
        ('{"x: 1}', '{"x: 1}'),
        ('{"x": [1, 2}', '{"x": [1, 2}'),
        ('{"x": 1]', '{"x": 1]'),
        ('["', '["'),
    ],
)
def test_broken_json_in_xml_ends_where_its_mark_stands(written: str, value: object, space: str) -> None:
    mark = "</｜DSML｜parameter>"
    name, argument = f'<｜DSML｜invoke name="{PARIS.name}">', '<｜DSML｜parameter name="a" string="false">'
    call = f"{name}\n{argument}{written.replace('MARK', mark)}{space}{mark}\n</｜DSML｜invoke>\n"
    turn = read(f"<｜DSML｜function_calls>\n{call}{call}</｜DSML｜function_calls>", "deepseek_v3.2", reasoning=False)
    expected = json.loads(json.dumps(value).replace("MARK", mark))
    if isinstance(value, str):
        expected += space
    assert turn == Turn(calls=[Call(PARIS.name, {"a": expected})] * 2)


def test_arguments_that_are_json_in_a_string() -> None:
    call = '<tool_call>\n{"name": "get_weather", "arguments": VALUE}\n</tool_call>'
    assert read(call.replace("VALUE", json.dumps('{"city": "Paris"}')), "hermes") == Turn(calls=[PARIS])
    for value in ("hello", "3", '"{}"', "[1]", '{"city": '):
        text = call.replace("VALUE", json.dumps(value))
        assert read(text, "hermes") == Turn(text=text, is_complete=False)
    parser = TurnParser("hermes", arguments=True)
    events = parser.feed(call.replace("VALUE", json.dumps('{"city": "Paris"}')))
    assert [event.kind for event in events] == ["begin", "call"]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("'cat <<E\nx\r\nE'", "cat <<E\nx\r\nE"),
        ('"""a\nb\0"""', "a\nb\0"),
        ("'a\0b'", "a\0b"),
        ("{'a', 'b'}", ["a", "b"]),
        ("[007, -05, 0, 0.05, 1e05, '007']", [7, -5, 0, 0.05, 1e5, "007"]),
    ],
)
def test_values_that_are_no_python_but_plain(written: str, value: object) -> None:
    assert read(f"[get_weather(city={written})]", "llama4_pythonic") == Turn(
        calls=[Call("get_weather", {"city": value})]
    )


def test_calls_in_python_need_no_blank_between_them() -> None:
    text = "[get_weather(city='Paris'),\n  get_time(city='Oslo'),get_weather(city='Paris')]"
    assert read(text, "llama4_pythonic") == Turn(calls=[PARIS, OSLO, PARIS])


@pytest.mark.parametrize(
    ("style", "text"),
    [
        ("llama3", '{"name": "get_weather", "arguments": {"city": "Paris"}}'),
        ("llama3_python_tag", '<|python_tag|>{"name": "get_weather", "arguments": {"city": "Paris"}}'),
        ("mistral_args", '[TOOL_CALLS]get_weather{"city": "Paris"}'),
        (
            "kimi_k2",
            '<|tool_calls_section_begin|><|tool_call_begin|>get_weather:0<|tool_call_argument_begin|>{"city": "Paris"}'
            "<|tool_call_end|><|tool_calls_section_end|>",
        ),
        ("harmony", '<|channel|>commentary to=functions.get_weather<|message|>{"city": "Paris"}<|call|>'),
        ("harmony", '<|channel|>analysis to=functions.get_weather<|message|>{"city": "Paris"}<|call|>'),
        (
            "harmony",
            '<|channel|>commentary to=functions.get_weather<|constrain|>json<|message|>{"city": "Paris"}<|call|>',
        ),
        ("harmony", '<|channel|>commentary to=functions.get_weather json<|message|>{"city": "Paris"}<|call|>'),
        ("harmony", '<|channel|>analysis to=functions.get_weather code<|message|>{"city": "Paris"}<|call|>'),
        ("harmony", ' to=functions.get_weather<|channel|>commentary<|message|>{"city": "Paris"}<|call|>'),
    ],
)
def test_other_forms_of_a_call(style: str, text: str) -> None:
    assert read(text, style) == Turn(calls=[PARIS])


def test_the_token_that_ends_a_turn_need_not_be_in_its_text() -> None:
    """Servers leave it out, and in harmony it is the end of the call."""
    call = '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Paris"}'
    assert read(call, "harmony") == Turn(calls=[PARIS])
    assert read(call + "<|cal", "harmony").calls == []
    # Gemma 4 ends its turn now and then without the end of the call.
    assert read('<|tool_call>call:get_weather{city:<|"|>Paris<|"|>}', "gemma4") == Turn(calls=[PARIS])
    # Elsewhere a call without its end was cut off.
    assert not read('<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}', "hermes").is_complete


@pytest.mark.parametrize(
    "text",
    ["a {b: 1}", '{ "name": "get_weather", "parameters": {"city": "Paris"}}', "<tool _call>\n{}", '{"name":', "}, {"],
)
def test_what_the_grammar_takes_for_text_is_text(text: str) -> None:
    """The trigger of a style stands as it is."""
    assert read(text, "llama3") == Turn(text=text)


def test_white_space_behind_calls_is_text() -> None:
    call = '{"name": "get_weather", "parameters": {"city": "Paris"}}'
    assert read(f"{call} \n.", "llama3") == Turn(text=" \n.", calls=[PARIS])
    section = f"<TOOLCALL>[{call.replace('parameters', 'arguments')}]</TOOLCALL>"
    assert read(f"{section}\n", "nemotron_nano_v2", reasoning=False) == Turn(text="\n", calls=[PARIS])


@pytest.mark.parametrize(
    ("style", "call", "rest"),
    [
        ("mistral", '[TOOL_CALLS][{"name": "get_time", "arguments": {"city": "Oslo"}}', "\n\n, and"),
        ("minimax_m1", '<tool_calls>\n{"name": "get_time", "arguments": {"city": "Oslo"}}', "\n\nand"),
        ("command_r7b", "", " \t, and"),
        (
            "minimax_m3",
            ']<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="get_time">]<]minimax[>[<city>Oslo]<]minimax[>[</city>'
            "]<]minimax[>[</invoke>",
            "\n\nand",
        ),
    ],
)
def test_white_space_behind_a_call_in_a_section_that_breaks_off(style: str, call: str, rest: str) -> None:
    """It is text, as all that follows, in however many pieces it comes."""
    if style == "command_r7b":
        before, between = STYLES[style].forms[0]
        call = f'{STYLES[style].section.begin}{before}get_time{between}{{"city": "Oslo"}}}}'.replace("{number}", "0")
    assert read(call + rest, style) == Turn(text=rest, calls=[OSLO], is_complete=False)


@pytest.mark.parametrize(
    ("style", "call"),
    [
        ("hermes", '<tool_call>\n{"name": "get_weather", "arguments": {"n": VALUE}}\n</tool_call>'),
        ("qwen3_coder", "<tool_call>\n<function=f>\n<parameter=n>\nVALUE\n</parameter>\n</function>\n</tool_call>"),
        ("gemma4", "<|tool_call>call:f{n:VALUE}<tool_call|>"),
        ("llama4_pythonic", "[f(n=VALUE)]"),
    ],
)
def test_a_number_beyond_a_float_is_no_infinity(style: str, call: str) -> None:
    """Infinity could not be written as JSON again."""
    for written, value in (("1e400", 10**400), ("-15E399", -15 * 10**399), ("[1.5, 1e400]", [1.5, 10**400])):
        (read_call,) = read(call.replace("VALUE", written), style).calls
        assert read_call.arguments == {"n": value}
        assert json.loads(json.dumps(read_call.arguments)) == {"n": value}


REASONING = [name for name, style in STYLES.items() if style.reasoning is not None]


@pytest.mark.parametrize("name", REASONING)
def test_a_call_in_thoughts_ends_them(name: str) -> None:
    """Models forget the mark that does, or write it behind the call."""
    thoughts = STYLES[name].reasoning
    assert thoughts is not None
    call = WRITTEN[name][WRITTEN[name].index(STYLES[name].trigger) :]
    begun = f"{thoughts.begin}Hm, <b>.{call}"
    turn = read(begun, name)
    assert (turn.reasoning, turn.calls, turn.is_complete) == ("Hm, <b>.", parse(WRITTEN[name], name, TOOLS).calls, True)
    assert turn.text == ""
    for after in ("", "\n"):
        assert STYLES[name].end or read(f"{begun}{after}{thoughts.end}", name) == turn
    # What only looks like one is thought.
    quoted = f"{thoughts.begin}Hm, {STYLES[name].trigger[:-1]}.{thoughts.end}"
    assert read(quoted, name).reasoning == f"Hm, {STYLES[name].trigger[:-1]}."


def test_text_behind_the_end_of_thoughts_that_a_call_has_ended() -> None:
    call = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
    assert read(f"<think>\nHm.{call}\n</think>\n\nSo {call}", "qwen3") == Turn("So ", "Hm.", [PARIS, PARIS])
    assert read(f"<think>\nHm.{call}\n{call} so", "qwen3") == Turn(" so", "Hm.", [PARIS, PARIS])


@pytest.mark.parametrize("name", REASONING)
def test_white_space_around_the_beginning_of_thoughts_may_be_another(name: str) -> None:
    thoughts = STYLES[name].reasoning
    assert thoughts is not None
    for begin in (thoughts.begin.strip(), f"\n{thoughts.begin}", f" \n{thoughts.begin.strip()}"):
        for begun in (False, True):
            turn = read(f"{begin}Hm.{thoughts.end}", name, reasoning_begun=begun)
            assert (turn.reasoning, turn.text, turn.is_complete) == ("Hm.", "", True)
    text = f" \n{thoughts.begin.strip()[:-1]}"
    assert STYLES[name].text is not None or read(text, name, reasoning_begun=False) == Turn(text=text)


@pytest.mark.parametrize("style", ["hermes", "mistral", "kimi_k2", "harmony"])
@pytest.mark.parametrize("sign", [" ", "a"])
def test_a_mark_that_streams_is_read_once(style: str, sign: str) -> None:
    """A name or white space of 100,000 characters: read from its beginning for each of them it would take a minute."""
    chosen = STYLES[style]
    before, between = chosen.forms[0]
    begin = ("" if chosen.section is None else chosen.section.begin) + before + ("get_time" if sign == " " else "")
    turn = begin + sign * 100_000 + between + "[".rjust(20_000) + "]"
    parser = TurnParser(style)
    for each in turn:
        parser.feed(each)
    parser.finish()
    assert parser.turn == parse(turn, style)


def test_a_text_full_of_what_begins_calls() -> None:
    text = "<tool_call>f" * 100_000
    assert parse(text, "hermes") == Turn(text=text)
