"""LFM2 with calls in JSON, where the prompt asks for them."""

from constrain.grammar.tools.style import Reasoning, Section, ToolStyle

STYLE = ToolStyle(
    name="lfm2_json",
    forms=(('{"name": "', '", "arguments": '),),
    ends=("}",),
    trigger="<|tool_call_start|>",
    section=Section("<|tool_call_start|>[", ", ", "]<|tool_call_end|>", is_last=False),
    reasoning=Reasoning("<think>", "</think>", "\n"),
    notes="LFM2, LFM2.5, whose prompt says that calls are JSON",
)
