"""Mistral: a list of JSON objects."""

from constrain.grammar.tools.style import Section, ToolStyle

STYLE = ToolStyle(
    name="mistral",
    forms=(('{"name": "', '", "arguments": '),),
    ends=("}", ', "id": "{id}"}'),
    trigger="[TOOL_CALLS]",
    section=Section("[TOOL_CALLS][", ", ", "]"),
    notes="Mistral 7B v0.3, Nemo, Small and Large to version 7 of the tokenizer",
)
