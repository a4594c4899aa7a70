"""DeepSeek V4.1: the XML of V4 with a blank before each name of a tag."""

from constrain.grammar.tools.style import Reasoning, Section, ToolStyle

STYLE = ToolStyle(
    name="deepseek_v4.1",
    forms=(('<｜DSML｜ invoke name="', '">\n'),),
    ends=("</｜DSML｜ invoke>\n",),
    arguments="deepseek_v4_1_xml",
    trigger="<｜DSML｜ calls>",
    section=Section("<｜DSML｜ calls>\n", "", "</｜DSML｜ calls>"),
    before_calls="\n\n",
    reasoning=Reasoning("<think>", "</think>", "\n\n"),
    notes="DeepSeek V4.1",
)
