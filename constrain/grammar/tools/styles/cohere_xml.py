"""Command models that call in XML: each value says its kind, objects and arrays are XML too."""

from constrain.grammar.tools.style import Reasoning, Section, ToolStyle

STYLE = ToolStyle(
    name="cohere_xml",
    forms=(('<cofl:tool_call id="{number}" name="', '">'),),
    ends=("</cofl:tool_call>",),
    arguments="cohere_xml",
    trigger="<cofl:tool_calls>",
    section=Section("<cofl:tool_calls>", "", "</cofl:tool_calls>"),
    reasoning=Reasoning("<|START_THINKING|>", "<|END_THINKING|>"),
    notes="Command models with calls in XML",
)
