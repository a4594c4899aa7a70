"""DeepSeek R1: JSON in a block of code, with thoughts that the prompt has begun."""

from constrain.grammar.tools.style import Reasoning, Section, ToolStyle

STYLE = ToolStyle(
    name="deepseek_r1",
    forms=(("<｜tool▁call▁begin｜>function<｜tool▁sep｜>", "\n```json\n"),),
    ends=("\n```<｜tool▁call▁end｜>",),
    trigger="<｜tool▁calls▁begin｜>",
    section=Section("<｜tool▁calls▁begin｜>", "\n", "<｜tool▁calls▁end｜>"),
    reasoning=Reasoning("<think>\n", "</think>", "\n\n", is_open=True),
    notes="DeepSeek R1",
)
