"""Llama 4: a list of calls in Python between the tags for code."""

from constrain.grammar.tools.style import Section, ToolStyle

STYLE = ToolStyle(
    name="llama4_python_start",
    forms=(("", ""),),
    ends=("",),
    arguments="python",
    trigger="<|python_start|>",
    section=Section("<|python_start|>[", ", ", "]<|python_end|>"),
    notes="Llama 4",
)
