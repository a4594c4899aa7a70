"""GigaChat 3.5: XML of its own, as that of DeepSeek V4."""

from constrain.grammar.tools.style import Reasoning, Section, ToolStyle

STYLE = ToolStyle(
    name="gigachat3.5",
    forms=(('<｜GCML｜invoke name="', '">\n'),),
    ends=("</｜GCML｜invoke>\n",),
    arguments="gigachat_xml",
    trigger="<｜GCML｜tool_calls>",
    section=Section("<｜GCML｜tool_calls>\n", "", "</｜GCML｜tool_calls>"),
    reasoning=Reasoning("<think>", "</think>", "\n\n"),
    notes="GigaChat 3.5",
)
