"""Qwen 3: as Hermes, with thoughts."""

from constrain.grammar.tools.style import Reasoning, ToolStyle

STYLE = ToolStyle(
    name="qwen3",
    forms=(('<tool_call>\n{"name": "', '", "arguments": '),),
    ends=("}\n</tool_call>", "}</tool_call>"),
    trigger="<tool_call>",
    reasoning=Reasoning("<think>\n", "</think>", "\n\n"),
    notes="Qwen 3 (with its thoughts), QwQ",
)
