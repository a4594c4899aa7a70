"""Jamba: a list of JSON objects, one a line."""

from constrain.grammar.tools.style import Section, ToolStyle

STYLE = ToolStyle(
    name="jamba",
    forms=(('{"name": "', '", "arguments": '),),
    ends=("}",),
    trigger="<tool_calls>",
    section=Section("<tool_calls>[\n    ", ",\n    ", "\n]</tool_calls>"),
    notes="Jamba 1.5 and 1.6",
)
