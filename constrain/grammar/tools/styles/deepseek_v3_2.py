"""DeepSeek V3.2: XML of its own."""

from constrain.grammar.tools.style import Reasoning, Section, ToolStyle

STYLE = ToolStyle(
    name="deepseek_v3.2",
    forms=(('<｜DSML｜invoke name="', '">\n'),),
    ends=("</｜DSML｜invoke>\n",),
    arguments="deepseek_xml",
    trigger="<｜DSML｜function_calls>",
    section=Section("<｜DSML｜function_calls>\n", "", "</｜DSML｜function_calls>"),
    before_calls="\n\n",
    reasoning=Reasoning("<think>", "</think>"),
    notes="DeepSeek V3.2",
)
