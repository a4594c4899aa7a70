"""Llama 3.1 to 3.3: a JSON object behind the tag for code."""

from constrain.grammar.tools.style import ToolStyle

STYLE = ToolStyle(
    name="llama3_python_tag",
    forms=(('<|python_tag|>{"name": "', '", "parameters": '),),
    ends=("}",),
    trigger="<|python_tag|>",
    separator="",
    also_read=(('<|python_tag|>{"name": "', '", "arguments": '),),
    notes="Llama 3.1, 3.2 and 3.3",
)
