"""Hy3: XML of keys and values, in a section."""

from constrain.grammar.tools.style import Reasoning, Section, ToolStyle

STYLE = ToolStyle(
    name="hy3",
    forms=(("<tool_call>", "<tool_sep>"),),
    ends=("</tool_call>",),
    arguments="glm_xml",
    trigger="<tool_calls>",
    section=Section("<tool_calls>\n", "\n", "\n</tool_calls>"),
    reasoning=Reasoning("<think>", "</think>"),
    notes="Hy3 (Hunyuan)",
)
