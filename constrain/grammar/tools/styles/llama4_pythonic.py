"""Llama 4, and Llama 3.2 and ToolACE as their prompts ask for: a list of calls in Python, which is the whole turn."""

from constrain.grammar.tools.style import Section, ToolStyle

STYLE = ToolStyle(
    name="llama4_pythonic",
    forms=(("", ""),),
    ends=("",),
    arguments="python",
    trigger="[",
    section=Section("[", ", ", "]"),
    is_whole=True,
    notes="Llama 4, Llama 3.2, ToolACE",
)
