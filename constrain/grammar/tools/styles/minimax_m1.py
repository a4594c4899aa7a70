"""MiniMax M1: JSON objects, one a line."""

from constrain.grammar.tools.style import Reasoning, Section, ToolStyle

STYLE = ToolStyle(
    name="minimax_m1",
    forms=(('{"name": "', '", "arguments": '),),
    ends=("}\n",),
    trigger="<tool_calls>",
    section=Section("<tool_calls>\n", "", "</tool_calls>"),
    reasoning=Reasoning("<think>", "</think>", "\n\n"),
    notes="MiniMax M1",
)
