"""Qwen 3 Coder and Qwen 3.5: XML."""

from constrain.grammar.tools.style import Reasoning, ToolStyle

STYLE = ToolStyle(
    name="qwen3_coder",
    # Qwen 3 Coder often leaves out the first mark, and writes the last one all the same.
    forms=(("<tool_call>\n<function=", ">\n"), ("<function=", ">\n")),
    ends=("</function>\n</tool_call>",),
    arguments="qwen_xml",
    trigger="<tool_call>",
    also_triggers=("<function=",),
    reasoning=Reasoning("<think>\n", "</think>", "\n\n"),
    notes="Qwen 3 Coder, Qwen 3.5",
)
