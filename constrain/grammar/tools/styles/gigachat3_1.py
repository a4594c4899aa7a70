"""GigaChat 3.1: a JSON object behind a mark."""

from constrain.grammar.tools.style import ToolStyle

STYLE = ToolStyle(
    name="gigachat3.1",
    forms=(('<|function_call|>{"name": "', '", "arguments": '),),
    ends=("}",),
    trigger="<|function_call|>",
    separator="",
    notes="GigaChat 3.1, which writes one call a turn",
)
