"""Hy3 as it was released: a suffix in each mark."""

from constrain.grammar.tools.style import Reasoning, Section, ToolStyle

_SUFFIX = ":opensource"

STYLE = ToolStyle(
    name="hy3_opensource",
    forms=((f"<tool_call{_SUFFIX}>", f"<tool_sep{_SUFFIX}>"),),
    ends=(f"</tool_call{_SUFFIX}>",),
    arguments="hy3_opensource_xml",
    trigger=f"<tool_calls{_SUFFIX}>",
    section=Section(f"<tool_calls{_SUFFIX}>\n", "\n", f"\n</tool_calls{_SUFFIX}>"),
    reasoning=Reasoning(f"<think{_SUFFIX}>", f"</think{_SUFFIX}>"),
    notes="Hy3, whose tokens have a suffix",
)
