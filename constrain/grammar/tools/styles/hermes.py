"""Hermes and Qwen 2.5: JSON between tags."""

from constrain.grammar.tools.style import ToolStyle

STYLE = ToolStyle(
    name="hermes",
    forms=(('<tool_call>\n{"name": "', '", "arguments": '),),
    ends=("}\n</tool_call>", "}</tool_call>"),
    trigger="<tool_call>",
    notes="Hermes 2 Pro and 3, Qwen 2.5",
)
