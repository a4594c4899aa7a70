"""Olmo 3: calls in Python with JSON's words, a line each."""

from constrain.grammar.tools.style import Reasoning, Section, ToolStyle

STYLE = ToolStyle(
    name="olmo3",
    forms=(("", ""),),
    ends=("",),
    arguments="python_line",
    trigger="<function_calls>",
    section=Section("<function_calls>", "\n", "</function_calls>"),
    reasoning=Reasoning("<think>", "</think>", "\n\n"),
    notes="Olmo 3 Instruct and Think",
)
