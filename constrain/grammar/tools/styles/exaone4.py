"""EXAONE 4: JSON between tags."""

from constrain.grammar.tools.style import Reasoning, ToolStyle

STYLE = ToolStyle(
    name="exaone4",
    forms=(('<tool_call>{"name": "', '", "arguments": '),),
    ends=("}</tool_call>",),
    trigger="<tool_call>",
    reasoning=Reasoning("<think>", "</think>", "\n\n"),
    notes="EXAONE 4.0",
)
