"""Phi 4 mini: a list of JSON objects."""

from constrain.grammar.tools.style import Section, ToolStyle

STYLE = ToolStyle(
    name="phi4",
    forms=(('{"name": "', '", "arguments": '),),
    ends=("}",),
    trigger="<|tool_call|>",
    section=Section("<|tool_call|>[", ", ", "]<|/tool_call|>"),
    notes="Phi 4 mini",
)
