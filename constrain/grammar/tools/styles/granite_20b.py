"""Granite 20B function calling: JSON objects behind a mark."""

from constrain.grammar.tools.style import ToolStyle

STYLE = ToolStyle(
    name="granite_20b",
    forms=(('<function_call> {"name": "', '", "arguments": '),),
    ends=("}",),
    trigger="<function_call>",
    separator="",
    notes="Granite 20B function calling",
)
