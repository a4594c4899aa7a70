"""DeepSeek V4: the XML of V3.2 in a section of another name."""

from constrain.grammar.tools.style import Reasoning, Section, ToolStyle

STYLE = ToolStyle(
    name="deepseek_v4",
    forms=(('<｜DSML｜invoke name="', '">\n'),),
    ends=("</｜DSML｜invoke>\n",),
    arguments="deepseek_xml",
    trigger="<｜DSML｜tool_calls>",
    section=Section("<｜DSML｜tool_calls>\n", "", "</｜DSML｜tool_calls>"),
    before_calls="\n\n",
    reasoning=Reasoning("<think>", "</think>", "\n\n"),
    notes="DeepSeek V4",
)
