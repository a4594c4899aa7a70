"""K2 Horizon: XML of keys and values, in a section, with marks of its own."""

from constrain.grammar.tools.style import Reasoning, Section, ToolStyle

STYLE = ToolStyle(
    name="k2_horizon",
    forms=(("<ifm|tool_call>", ""),),
    ends=("</ifm|tool_call>",),
    arguments="k2_horizon_xml",
    trigger="<ifm|tool_calls>",
    section=Section("<ifm|tool_calls>\n", "\n", "\n</ifm|tool_calls>"),
    reasoning=Reasoning("<ifm|think>\n", "</ifm|think>", is_open=True),
    excludes=("<ifm|tool_call>", "</ifm|tool_call>", "</ifm|tool_calls>"),
    notes="K2 Horizon, whose prompt asks for calls in XML (tool_call_format=xml)",
)
