"""Step 3: XML of its own, in the marks of DeepSeek V3."""

from constrain.grammar.tools.style import Reasoning, Section, ToolStyle

STYLE = ToolStyle(
    name="step3",
    forms=(('<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="', '">\n'),),
    ends=("</steptml:invoke><｜tool_call_end｜>\n",),
    arguments="step3_xml",
    trigger="<｜tool_calls_begin｜>",
    section=Section("<｜tool_calls_begin｜>\n", "", "<｜tool_calls_end｜>"),
    reasoning=Reasoning("<think>\n", "</think>", "\n", is_open=True),
    notes="Step 3",
)
