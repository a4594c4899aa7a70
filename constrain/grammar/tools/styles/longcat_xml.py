"""LongCat Flash Lite and its successors: XML of keys and values, with marks of its own."""

from constrain.grammar.tools.style import Reasoning, ToolStyle

STYLE = ToolStyle(
    name="longcat_xml",
    forms=(("<longcat_tool_call>", ""),),
    ends=("</longcat_tool_call>",),
    arguments="longcat_xml",
    trigger="<longcat_tool_call>",
    reasoning=Reasoning("<longcat_think>\n", "</longcat_think>", "\n"),
    excludes=("</longcat_tool_call>", "<longcat_arg_key>", "<longcat_arg_value>"),
    notes="LongCat Flash Lite, LongCat 2.0",
)
