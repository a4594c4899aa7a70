"""DeepSeek V3: JSON in a block of code."""

from constrain.grammar.tools.style import Section, ToolStyle

STYLE = ToolStyle(
    name="deepseek_v3",
    forms=(("<｜tool▁call▁begin｜>function<｜tool▁sep｜>", "\n```json\n"),),
    ends=("\n```<｜tool▁call▁end｜>",),
    trigger="<｜tool▁calls▁begin｜>",
    section=Section("<｜tool▁calls▁begin｜>", "\n", "<｜tool▁calls▁end｜>"),
    notes="DeepSeek V3",
)
