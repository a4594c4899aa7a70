"""GigaChat 3: a JSON object in a message of its own."""

from constrain.grammar.tools.style import ToolStyle

STYLE = ToolStyle(
    name="gigachat3",
    forms=(('<|message_sep|>\n\nfunction call<|role_sep|>\n{"name": "', '", "arguments": '),),
    ends=("}",),
    trigger="<|message_sep|>",
    separator="",
    notes="GigaChat 3, which writes one call a turn",
)
