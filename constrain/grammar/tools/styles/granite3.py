"""Granite 3: a list of JSON objects, as its prompts ask for."""

from constrain.grammar.tools.style import Section, ToolStyle

STYLE = ToolStyle(
    name="granite3",
    forms=(('{"name": "', '", "arguments": '),),
    ends=("}",),
    trigger="<|tool_call|>",
    section=Section("<|tool_call|>[", ", ", "]"),
    notes="Granite 3.0 to 3.3",
)
