"""Command R7B: a numbered list of JSON objects, or a text between marks."""

from constrain.grammar.tools.style import Reasoning, Section, ToolStyle

STYLE = ToolStyle(
    name="command_r7b",
    forms=(('{"tool_call_id": "{number}", "tool_name": "', '", "parameters": '),),
    ends=("}",),
    trigger="<|START_ACTION|>",
    section=Section("<|START_ACTION|>[\n    ", ",\n    ", "\n]<|END_ACTION|>"),
    reasoning=Reasoning("<|START_THINKING|>", "<|END_THINKING|>"),
    text=("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
    notes="Command R7B",
)
