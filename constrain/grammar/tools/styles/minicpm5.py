"""MiniCPM5: XML in which strings with signs of XML stand in sections of their own."""

from constrain.grammar.tools.style import Reasoning, ToolStyle

STYLE = ToolStyle(
    name="minicpm5",
    forms=(('<function name="', '">'),),
    ends=("</function>",),
    arguments="minicpm_xml",
    trigger="<function name=",
    reasoning=Reasoning("<think>\n", "</think>", "\n\n"),
    notes="MiniCPM5",
)
