"""Functionary v3.2: each part of a turn begins with its recipient, behind a mark that the prompt ends with."""

from constrain.grammar.tools.style import ToolStyle

STYLE = ToolStyle(
    name="functionary_v3.2",
    forms=(("", "\n"),),
    ends=("",),
    trigger=">>>",
    separator="",
    text=("all\n", ""),
    preamble=("all\n", ">>>"),
    further=">>>",
    notes="Functionary v3.2; the prompt ends with >>>",
)
