"""Nemotron Nano v2: a list of JSON objects."""

from constrain.grammar.tools.style import Reasoning, Section, ToolStyle

STYLE = ToolStyle(
    name="nemotron_nano_v2",
    forms=(('{"name": "', '", "arguments": '),),
    ends=("}",),
    trigger="<TOOLCALL>",
    section=Section("<TOOLCALL>[", ", ", "]</TOOLCALL>"),
    reasoning=Reasoning("<think>\n", "</think>", "\n\n", is_open=True),
    notes="Nemotron Nano v2",
)
