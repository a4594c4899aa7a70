"""Apriel: a list of JSON objects."""

from constrain.grammar.tools.style import Reasoning, Section, ToolStyle

STYLE = ToolStyle(
    name="apriel",
    forms=(('{"name": "', '", "arguments": '),),
    ends=("}",),
    trigger="<tool_calls>",
    before_calls="\n",
    section=Section("<tool_calls>[", ", ", "]</tool_calls>"),
    reasoning=Reasoning("Here are my reasoning steps:\n", "[BEGIN FINAL RESPONSE]", "\n", is_open=True),
    notes="Apriel 1.5 and 1.6",
)
