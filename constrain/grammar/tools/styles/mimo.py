"""MiMo: the XML of Qwen 3 Coder on one line."""

from constrain.grammar.tools.style import Reasoning, ToolStyle

STYLE = ToolStyle(
    name="mimo",
    forms=(("<tool_call><function=", ">"),),
    ends=("</function></tool_call>",),
    arguments="seed_xml",
    trigger="<tool_call>",
    separator="",
    reasoning=Reasoning("<think>", "</think>"),
    excludes=("</tool_call>", "<function="),
    notes="MiMo V2.6",
)
