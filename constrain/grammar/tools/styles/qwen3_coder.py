"""Qwen 3 Coder and Qwen 3.5: XML."""

from constrain.grammar.tools.style import Reasoning, ToolStyle

STYLE = ToolStyle(
    name="qwen3_coder",
    forms=(("<tool_call>\n<function=", ">\n"),),
    ends=("</function>\n</tool_call>",),
    arguments="qwen_xml",
    trigger="<tool_call>",
    reasoning=Reasoning("<think>\n", "</think>", "\n\n"),
    notes="Qwen 3 Coder, Qwen 3.5",
)
