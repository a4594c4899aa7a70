"""Llama 3.1 to 4: a JSON object as it is."""

from constrain.grammar.tools.style import ToolStyle

STYLE = ToolStyle(
    name="llama3",
    forms=(('{"name": "', '", "parameters": '),),
    ends=("}",),
    trigger='{"name": ',
    separator="; ",
    also_read=(
        ('{"name": "', '", "arguments": '),
        ('<|python_tag|>{"name": "', '", "parameters": '),
        ('<|python_tag|>{"name": "', '", "arguments": '),
    ),
    notes="Llama 3.1, 3.2, 3.3 and 4",
)
