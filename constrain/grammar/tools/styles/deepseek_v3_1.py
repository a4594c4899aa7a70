"""DeepSeek V3.1: JSON behind the name."""

from constrain.grammar.tools.style import Reasoning, Section, ToolStyle

STYLE = ToolStyle(
    name="deepseek_v3.1",
    forms=(("<｜tool▁call▁begin｜>", "<｜tool▁sep｜>"),),
    ends=("<｜tool▁call▁end｜>",),
    trigger="<｜tool▁calls▁begin｜>",
    section=Section("<｜tool▁calls▁begin｜>", "", "<｜tool▁calls▁end｜>"),
    reasoning=Reasoning("<think>", "</think>"),
    notes="DeepSeek V3.1 and V3.2 Exp",
)
