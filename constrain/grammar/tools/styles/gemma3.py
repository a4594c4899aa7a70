"""Gemma 3: a JSON object in a block of code, as its prompts ask for."""

from constrain.grammar.tools.style import ToolStyle

STYLE = ToolStyle(
    name="gemma3",
    forms=(('```json\n{"name": "', '", "parameters": '),),
    ends=("}\n```",),
    trigger="```json\n{",
    notes="Gemma 3",
)
