"""Apertus: a list of JSON objects with the name for a key."""

from constrain.grammar.tools.style import Reasoning, Section, ToolStyle

STYLE = ToolStyle(
    name="apertus",
    forms=(('{"', '": '),),
    ends=("}",),
    trigger="<|tools_prefix|>",
    section=Section("<|tools_prefix|>[", ", ", "]<|tools_suffix|>"),
    reasoning=Reasoning("<|inner_prefix|>", "<|inner_suffix|>"),
    notes="Apertus",
)
