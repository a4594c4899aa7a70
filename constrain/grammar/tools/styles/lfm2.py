"""LFM 2 and 2.5: a list of calls in Python between two tags, with text before and behind it."""

from constrain.grammar.tools.style import Reasoning, Section, ToolStyle

STYLE = ToolStyle(
    name="lfm2",
    forms=(("", ""),),
    ends=("",),
    arguments="python",
    trigger="<|tool_call_start|>",
    section=Section("<|tool_call_start|>[", ", ", "]<|tool_call_end|>", is_last=False),
    reasoning=Reasoning("<think>", "</think>", "\n"),
    notes="LFM2, LFM2.5",
)
